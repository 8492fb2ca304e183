//! Values that have another shape in policies than in Envoy's configuration.

use serde_json::{Value, json};

use super::convert::{lookup, number, texts};

/// The largest limit: what Envoy Gateway writes where no rule limits all requests.
const UNLIMITED: u32 = u32::MAX;

/// The limits of local rate limits in a policy: of all requests, and of each rule with selectors.
pub(super) fn local_limits_of_policy(rules: &Value) -> Option<Value> {
    let mut all = json!([UNLIMITED, 1]);
    let mut selected = Vec::new();
    for rule in rules.as_array()? {
        let seconds = match lookup(rule, &["limit", "unit"])?.as_str()? {
            "Second" => 1,
            "Minute" => 60,
            "Hour" => 3_600,
            "Day" => 86_400,
            "Week" => 604_800,
            "Month" => 2_592_000,
            "Year" => 31_536_000,
            _ => return None,
        };
        let limit = json!([number(lookup(rule, &["limit", "requests"])?)?, seconds]);
        match lookup(rule, &["clientSelectors"]).and_then(Value::as_array) {
            Some(selectors) if !selectors.is_empty() => {
                // One descriptor for each method.
                let methods = selectors.iter().filter_map(|one| lookup(one, &["methods"]));
                let methods: usize = methods
                    .filter_map(|list| list.as_array().map(Vec::len))
                    .sum();
                selected.extend(std::iter::repeat_n(limit, methods.max(1)));
            }
            _ => all = limit,
        }
    }
    Some(json!({"all": all, "selected": selected}))
}

/// The same in the configuration of Envoy's filter.
pub(super) fn local_limits_of_envoy(filter: &Value) -> Option<Value> {
    let limit = |bucket: &Value| {
        let seconds = lookup(bucket, &["fill_interval"])?
            .as_str()?
            .strip_suffix('s')?;
        Some(json!([
            number(lookup(bucket, &["max_tokens"])?)?,
            seconds.parse::<u64>().ok()?
        ]))
    };
    let descriptors = lookup(filter, &["descriptors"]).and_then(Value::as_array);
    let selected: Option<Vec<Value>> = descriptors
        .into_iter()
        .flatten()
        .map(|one| limit(lookup(one, &["token_bucket"])?))
        .collect();
    Some(json!({"all": limit(lookup(filter, &["token_bucket"])?)?, "selected": selected?}))
}

/// What a consistent hash of a policy is made of.
pub(super) fn hash_of_policy(hash: &Value) -> Option<Value> {
    let names = |field: &str, what: &str| {
        let list = lookup(hash, &[field])?.as_array()?.iter();
        list.map(|one| Some(format!("{what} {}", lookup(one, &["name"])?.as_str()?)))
            .collect::<Option<Vec<String>>>()
    };
    let name = |field: &str, what: &str| {
        let name = lookup(hash, &[field, "name"])?.as_str()?;
        Some(vec![format!("{what} {name}")])
    };
    let parts = match lookup(hash, &["type"])?.as_str()? {
        "SourceIP" => vec!["source address".to_owned()],
        "Header" => name("header", "header")?,
        "Headers" => names("headers", "header")?,
        "Cookie" => name("cookie", "cookie")?,
        "QueryParams" => names("queryParams", "query parameter")?,
        _ => return None,
    };
    Some(Value::from(parts))
}

/// The same in the action of an Envoy route.
pub(super) fn hash_of_envoy(policies: &Value) -> Option<Value> {
    let part = |policy: &Value| {
        let name = |path: &[&str]| lookup(policy, path).and_then(Value::as_str);
        if let Some(name) = name(&["header", "header_name"]) {
            return Some(format!("header {name}"));
        }
        if let Some(name) = name(&["cookie", "name"]) {
            return Some(format!("cookie {name}"));
        }
        if let Some(name) = name(&["query_parameter", "name"]) {
            return Some(format!("query parameter {name}"));
        }
        let source = lookup(policy, &["connection_properties", "source_ip"])?;
        (source == &Value::Bool(true)).then(|| "source address".to_owned())
    };
    let parts: Option<Vec<String>> = policies.as_array()?.iter().map(part).collect();
    parts.map(Value::from)
}

/// The actions of an authorization in a policy: by default, and of each rule.
pub(super) fn actions_of_policy(authorization: &Value) -> Option<Value> {
    let action = |value: &Value| Some(value.as_str()?.to_uppercase());
    let default = match lookup(authorization, &["defaultAction"]) {
        Some(value) => action(value)?,
        None => "DENY".to_owned(),
    };
    let rules = lookup(authorization, &["rules"]).and_then(Value::as_array);
    let rules = rules.into_iter().flatten();
    let rules: Option<Vec<String>> = rules
        .map(|rule| action(lookup(rule, &["action"])?))
        .collect();
    Some(json!({"default": default, "rules": rules?}))
}

/// The same in the configuration of Envoy's filter.
pub(super) fn actions_of_envoy(filter: &Value) -> Option<Value> {
    let matcher = lookup(filter, &["rbac", "matcher"])?;
    let name = |action: &Value| {
        let name = lookup(action, &["action", "typed_config", "name"])?;
        Some(name.as_str()?.to_owned())
    };
    let default = name(lookup(matcher, &["on_no_match"])?)?;
    let matchers = lookup(matcher, &["matcher_list", "matchers"]).and_then(Value::as_array);
    let matchers = matchers.into_iter().flatten();
    let rules: Option<Vec<String>> = matchers
        .map(|one| name(lookup(one, &["on_match"])?))
        .collect();
    Some(json!({"default": default, "rules": rules?}))
}

/// The origins that CORS allows, in a policy.
pub(super) fn origins_of_policy(origins: &Value) -> Option<Value> {
    let origins = texts(origins)?;
    let origins = origins.iter().map(|origin| match origin.contains('*') {
        true => json!({"regex": wildcard(origin)}),
        false => json!({"exact": origin}),
    });
    Some(origins.collect())
}

/// The same in the configuration of Envoy's filter.
pub(super) fn origins_of_envoy(origins: &Value) -> Option<Value> {
    let origins = origins.as_array()?.iter();
    let origins = origins.map(|origin| match lookup(origin, &["exact"]) {
        Some(exact) => Some(json!({"exact": exact})),
        None => Some(json!({"regex": lookup(origin, &["safe_regex", "regex"])?})),
    });
    origins.collect()
}

/// The regular expression that Envoy Gateway makes of an origin with wildcards.
fn wildcard(origin: &str) -> String {
    let mut regex = String::new();
    for c in origin.chars() {
        match c {
            '*' => regex.push_str(".*"),
            '\\' | '.' | '+' | '?' | '(' | ')' | '|' | '[' | ']' | '{' | '}' | '^' | '$' => {
                regex.extend(['\\', c]);
            }
            _ => regex.push(c),
        }
    }
    regex
}

/// Status codes of a policy, sorted.
pub(super) fn codes(codes: &Value) -> Option<Value> {
    let codes: Option<Vec<Value>> = codes.as_array()?.iter().map(number).collect();
    let mut codes = codes?;
    codes.sort_by_key(Value::as_i64);
    codes.dedup();
    Some(Value::from(codes))
}

/// Status codes of ranges in Envoy's configuration, each without its end.
pub(super) fn codes_of_ranges(ranges: &Value) -> Option<Value> {
    let mut codes = Vec::new();
    for range in ranges.as_array()? {
        let bound = |name| number(lookup(range, &[name])?)?.as_i64();
        let (start, end) = (bound("start")?, bound("end")?);
        (0..1000).contains(&start).then_some(())?;
        codes.extend((start..end.min(1000)).map(Value::from));
    }
    codes.dedup();
    Some(Value::from(codes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_compared_by_bucket() {
        let rules = json!([
            {"limit": {"requests": 10, "unit": "Minute"}},
            {"clientSelectors": [{"headers": [{"name": "x"}]}], "limit": {"requests": 3, "unit": "Hour"}},
        ]);
        let filter = json!({
            "token_bucket": {"max_tokens": 10, "tokens_per_fill": 10, "fill_interval": "60s"},
            "descriptors": [{"token_bucket": {"max_tokens": 3, "fill_interval": "3600s"}}],
        });
        assert_eq!(
            local_limits_of_policy(&rules),
            local_limits_of_envoy(&filter)
        );
        let none = json!([]);
        let all = local_limits_of_policy(&none).unwrap();
        assert_eq!(all["all"], json!([4_294_967_295_u32, 1]));
    }

    #[test]
    fn other_shapes() {
        let hash = json!({"type": "Header", "header": {"name": "x"}});
        let envoy = json!([{"header": {"header_name": "x"}}]);
        assert_eq!(hash_of_policy(&hash), hash_of_envoy(&envoy));
        let authorization = json!({"defaultAction": "Deny", "rules": [{"action": "Allow"}]});
        let filter = json!({"rbac": {"matcher": {
            "matcher_list": {"matchers": [{"on_match": {"action": {"typed_config": {"name": "ALLOW"}}}}]},
            "on_no_match": {"action": {"typed_config": {"name": "DENY"}}},
        }}});
        assert_eq!(actions_of_policy(&authorization), actions_of_envoy(&filter));
        let origins = json!(["https://*.example.com", "https://a.test"]);
        let matchers = json!([{"safe_regex": {"regex": "https://.*\\.example\\.com"}}, {"exact": "https://a.test"}]);
        assert_eq!(origins_of_policy(&origins), origins_of_envoy(&matchers));
        let ranges = json!([{"start": "200", "end": "202"}, {"start": "300", "end": "301"}]);
        assert_eq!(codes(&json!([300, 200, 201])), codes_of_ranges(&ranges));
    }
}

//! Patterns of profiles that match nothing in the schema of the CRD: `listKeys`, `atomicPaths`, `reducers`,
//! and `fields` of limits and targets. Such a setting has no effect, so it is probably misspelt.

use serde_json::Value;

use super::{FindingPage, ScopedFinding, finding};
use crate::api::v1;
use crate::insight::{Code, Visibility};
use entail_core::effective::{PolicyKind, World};
use entail_core::model::{FieldStep, GroupKind, Object, ObjectKey, groups, nearest};
use entail_core::profile::{Profile, ProfileOrigin};
use v1::finding::Severity;

/// A pattern of a profile.
struct Pattern<'p> {
    setting: &'static str,
    path: &'p [String],
    /// For `listKeys`: the key of the items. Only these paths continue inside the items of lists.
    key: Option<&'p str>,
}

/// Why a pattern matches nothing.
struct Mismatch {
    problem: String,
    /// The nearest field, if there is one.
    nearest: Option<String>,
}

/// Adds a finding for each pattern that matches nothing in any version of the CRD of its kind.
pub(super) fn unmatched_patterns(
    world: &World,
    visibility: &dyn Visibility,
    findings: &mut FindingPage<'_>,
) {
    for (_, entry) in world.store().of_kind(&GroupKind::crd()) {
        let definition = &entry.object;
        let defined = definition.defined_kind();
        let Some(kind) = defined.filter(|kind| visibility.includes_kind(kind)) else {
            continue;
        };
        if !visibility.is_unrestricted() && !visibility.includes_object(&definition.key) {
            // The finding names fields of the CRD.
            continue;
        }
        let body = definition.body.value();
        for profile in world.kinds_of(&kind).map(PolicyKind::profile) {
            let schemas = schemas_of_rules(profile, &body);
            if schemas.is_empty() {
                continue;
            }
            for pattern in patterns(profile) {
                if let Some(mismatch) = mismatch(&pattern, &schemas) {
                    findings.push(describe(world, profile, definition, &pattern, &mismatch));
                }
            }
        }
    }
}

fn describe(
    world: &World,
    profile: &Profile,
    definition: &Object,
    pattern: &Pattern<'_>,
    mismatch: &Mismatch,
) -> ScopedFinding {
    let near = mismatch.nearest.as_ref();
    let near = near.map(|field| format!("; the nearest field is `{field}`"));
    let message = format!(
        "profile `{}`: {} `{}` matches nothing in the schema of the CRD `{}`: {}{}",
        profile.name,
        pattern.setting,
        pattern.path.join("."),
        definition.key.name,
        mismatch.problem,
        near.unwrap_or_default()
    );
    // A built-in profile may know fields that the installed version of the CRD does not have.
    let severity = match profile.origin {
        ProfileOrigin::Configured => Severity::Warning,
        ProfileOrigin::BuiltIn | ProfileOrigin::Derived => Severity::Note,
    };
    let document = GroupKind::new(groups::ENTAIL, "PolicyProfile");
    let document = ObjectKey::new(document, "", profile.name.clone());
    let is_object = profile.origin == ProfileOrigin::Configured;
    let found = ScopedFinding {
        severity,
        ..finding(world, Code::PatternMatchesNothing, &document, message)
    };
    if is_object && world.store().get(&document).is_some() {
        return found;
    }
    ScopedFinding {
        visible_with: None,
        object: profile.policy.to_string(),
        ..found
    }
}

fn patterns(profile: &Profile) -> Vec<Pattern<'_>> {
    let lists = profile.list_keys.iter().map(|(path, key)| Pattern {
        setting: "listKeys",
        path,
        key: Some(key),
    });
    let atomic = profile.atomic_paths.iter().map(|path| Pattern {
        setting: "atomicPaths",
        path,
        key: None,
    });
    let reducers = profile.reducers.iter().map(|reducer| Pattern {
        setting: "reducers",
        path: &reducer.path,
        key: None,
    });
    let allowed = profile.limits.fields().map(|path| Pattern {
        setting: "limits.fields",
        path,
        key: None,
    });
    let targets = profile.allowed_fields().map(|path| Pattern {
        setting: "targets.fields",
        path,
        key: None,
    });
    let patterns = lists.chain(atomic).chain(reducers);
    patterns.chain(allowed).chain(targets).collect()
}

/// The schemas of the rules in all versions of a CRD: those of bare rules and those of blocks.
fn schemas_of_rules<'d>(profile: &Profile, definition: &'d Value) -> Vec<&'d Value> {
    let versions = definition.pointer("/spec/versions");
    let versions = versions.and_then(Value::as_array).into_iter().flatten();
    let rules = versions.filter_map(|version| {
        let root = version.pointer("/schema/openAPIV3Schema")?;
        let mut path = profile.rules.path.iter();
        path.try_fold(root, |schema, step| match step {
            FieldStep::Field(name) => schema.get("properties")?.get(name),
            FieldStep::Index(_) | FieldStep::Any | FieldStep::With(..) => schema.get("items"),
        })
    });
    let blocks = || {
        profile
            .rules
            .defaults
            .iter()
            .chain(&profile.rules.overrides)
    };
    rules
        .flat_map(|bare| {
            let properties = bare.get("properties");
            let block = move |name: &'_ String| properties?.get(name);
            std::iter::once(bare).chain(blocks().filter_map(block))
        })
        .collect()
}

/// Returns why a pattern matches nothing in the schemas; `None` if it matches.
fn mismatch(pattern: &Pattern<'_>, schemas: &[&Value]) -> Option<Mismatch> {
    let mut matched = schemas.to_vec();
    for (depth, segment) in pattern.path.iter().enumerate() {
        if pattern.key.is_some() {
            matched = matched.into_iter().map(inside_lists).collect();
        }
        if matched.iter().any(|schema| is_open(schema)) {
            return None;
        }
        let next = matched.iter().flat_map(|schema| fields(schema, segment));
        let next: Vec<&Value> = next.collect();
        if next.is_empty() {
            let above = pattern.path.iter().take(depth);
            let above: Vec<&str> = above.map(String::as_str).collect();
            return Some(no_field(segment, &above, &matched));
        }
        matched = next;
    }
    match pattern.key {
        Some(key) => wrong_key(key, pattern.path, &matched),
        None => None,
    }
}

fn no_field(segment: &str, above: &[&str], schemas: &[&Value]) -> Mismatch {
    let names = schemas.iter().flat_map(|schema| names(schema)).collect();
    let joined = above.join(".");
    let near = nearest(segment, names).map(|name| {
        let parts = above.iter().copied().chain([name.as_str()]);
        parts.collect::<Vec<_>>().join(".")
    });
    let place = if joined.is_empty() {
        "the rules have".to_owned()
    } else {
        format!("`{joined}` has")
    };
    Mismatch {
        problem: format!("{place} no field `{segment}`"),
        nearest: near.or(Some(joined).filter(|field| !field.is_empty())),
    }
}

/// Checks that one of the matched fields is a list of objects with the key.
fn wrong_key(key: &str, path: &[String], schemas: &[&Value]) -> Option<Mismatch> {
    if schemas.iter().any(|schema| is_open(schema)) {
        return None;
    }
    let items: Vec<&Value> = schemas.iter().filter_map(|s| s.get("items")).collect();
    let field = path.join(".");
    if items.is_empty() {
        return Some(Mismatch {
            problem: format!("`{field}` is not a list"),
            nearest: None,
        });
    }
    let has_key = |schema: &&Value| is_open(schema) || !fields(schema, key).is_empty();
    if items.iter().any(has_key) {
        return None;
    }
    let names = items.iter().flat_map(|schema| names(schema)).collect();
    Some(Mismatch {
        problem: format!("the items of `{field}` have no field `{key}`"),
        nearest: nearest(key, names),
    })
}

/// The schemas of the fields with a name; `*` is any field.
fn fields<'s>(schema: &'s Value, name: &str) -> Vec<&'s Value> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let named = properties.into_iter().flatten();
    let named = named.filter(|(field, _)| *field == name || name == "*");
    let others = schema.get("additionalProperties");
    let others = others.filter(|schema| schema.is_object());
    named.map(|(_, schema)| schema).chain(others).collect()
}

fn names(schema: &Value) -> Vec<String> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties
        .into_iter()
        .flatten()
        .map(|(name, _)| name.clone())
        .collect()
}

/// The schema of the items, if a schema describes a list.
fn inside_lists(mut schema: &Value) -> &Value {
    while let Some(items) = schema.get("items") {
        schema = items;
    }
    schema
}

/// Whether objects may have fields that their schema does not describe.
fn is_open(schema: &Value) -> bool {
    let is_true = |field: &str| schema.get(field) == Some(&Value::Bool(true));
    is_true("x-kubernetes-preserve-unknown-fields")
        || is_true("x-kubernetes-embedded-resource")
        || is_true("additionalProperties")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problem(path: &str, key: Option<&str>) -> Option<(String, String)> {
        let schema = json!({"properties": {
            "rules": {"items": {"properties": {
                "name": {"type": "string"},
                "matches": {"items": {"properties": {"path": {}}}},
            }}},
            "limits": {"additionalProperties": {"properties": {"rate": {"type": "integer"}}}},
            "open": {"x-kubernetes-preserve-unknown-fields": true},
            "retry": {"properties": {"attempts": {"type": "integer"}}},
        }});
        let path: Vec<String> = path.split('.').map(str::to_owned).collect();
        let pattern = Pattern {
            setting: "x",
            path: &path,
            key,
        };
        let mismatch = mismatch(&pattern, &[&schema])?;
        Some((mismatch.problem, mismatch.nearest.unwrap_or_default()))
    }

    #[test]
    fn patterns_that_match_have_no_problem() {
        for path in [
            "rules",
            "limits.*.rate",
            "limits.any.rate",
            "open.a.b",
            "retry.attempts",
            "*.attempts",
        ] {
            assert_eq!(problem(path, None), None, "{path}");
        }
        assert_eq!(problem("rules", Some("name")), None);
        assert_eq!(problem("rules.matches", Some("path")), None);
        assert_eq!(problem("open.a", Some("name")), None);
    }

    #[test]
    fn patterns_that_match_nothing_have_the_nearest_field() {
        let found = |problem: &str, near: &str| Some((problem.to_owned(), near.to_owned()));
        assert_eq!(
            problem("rulez", None),
            found("the rules have no field `rulez`", "rules")
        );
        assert_eq!(
            problem("retry.atempts", None),
            found("`retry` has no field `atempts`", "retry.attempts")
        );
        assert_eq!(
            problem("limits.*.window", None),
            found("`limits.*` has no field `window`", "limits.*")
        );
        // Only `listKeys` continues inside lists.
        assert_eq!(
            problem("rules.matches", None),
            found("`rules` has no field `matches`", "rules")
        );
        assert_eq!(
            problem("rules", Some("nam")),
            found("the items of `rules` have no field `nam`", "name")
        );
        assert_eq!(
            problem("retry", Some("name")),
            found("`retry` is not a list", "")
        );
    }
}

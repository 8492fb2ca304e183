//! From an object to a policy: where its rules stand and what makes it Invalid (specification 3.4,
//! 5.1).

use std::sync::Arc;

use serde_json::{Map, Value};

use super::policy::{Block, Policy, StrategySource};
use super::{EmptyBehavior, OrderRule, OrderSource, PolicyClass, Profile, StrategyField};
use crate::expr::Expression;
use crate::model::{
    BlockName, FieldStep, GroupKind, Object, Segment, Strategy, Unit, at_path, groups, is_unset,
};

/// Fields that are never rules where they stand beside them (specification 5.1).
const TARGETING: [&str; 3] = ["targetRef", "targetRefs", "targetSelectors"];

/// Reads a policy. Whatever is wrong with it is data: the policy is Invalid or a reference of it is.
pub fn read_policy(profile: &Profile, object: &Arc<Object>) -> Policy {
    let mut warnings = Vec::new();
    let spec = object.body.get("spec").unwrap_or(&Value::Null);
    let (references, wrong) = super::references::read(profile, spec, &mut warnings);
    let blocks = blocks(profile, &object.body);
    let invalid = wrong.or(blocks.as_ref().err().cloned());
    Policy {
        key: object.key.clone(),
        object: Arc::clone(object),
        order: profile.order.iter().map(|r| order_key(r, object)).collect(),
        references,
        blocks: blocks.unwrap_or_default(),
        invalid,
        untrusted: profile.trust_status.then(|| untrusted(object)).flatten(),
        selects_workloads: profile
            .workload_selector
            .as_ref()
            .is_some_and(|path| !is_unset(at_path(&object.body, path, None))),
        warnings,
    }
}

/// XListenerSet counts as ListenerSet (specification 1.1); `core` is the empty group (specification 3.1).
pub(super) fn normalize_kind(group: &str, kind: &str) -> GroupKind {
    match (group, kind) {
        (groups::GATEWAY_X, "XListenerSet") => GroupKind::new(groups::GATEWAY, "ListenerSet"),
        ("core", _) => GroupKind::new(groups::CORE, kind),
        _ => GroupKind::new(group, kind),
    }
}

/// The blocks of a policy.
fn blocks(profile: &Profile, body: &Value) -> Result<Vec<Block>, String> {
    let layout = &profile.rules;
    let empty = Map::new();
    let place = match at_path(body, &layout.path, None) {
        None | Some(Value::Null) => &empty,
        Some(Value::Object(fields)) => fields,
        Some(_) => return Err("rules are no object".to_owned()),
    };
    let defaults = named_block(place, &layout.defaults)?;
    let overrides = named_block(place, &layout.overrides)?;
    let bare = bare_rules(profile, place);
    if defaults.is_some() && overrides.is_some() && !layout.both_blocks {
        return Err("both a defaults and an overrides block: the kind allows one".to_owned());
    }
    let has_block = defaults.is_some() || overrides.is_some();
    if has_block && !bare.is_empty() && !layout.mix_with_bare {
        let fields: Vec<&str> = bare.keys().map(String::as_str).collect();
        return Err(format!(
            "a block stands beside bare rules: `{}`",
            fields.join("`, `")
        ));
    }
    let mut found = Vec::new();
    let unset_beside = layout
        .unset
        .as_ref()
        .is_some_and(|name| place.contains_key(name));
    if !has_block || !bare.is_empty() || unset_beside {
        let offers_empty = !has_block;
        found.push(block(
            profile,
            body,
            place,
            BlockName::Bare,
            bare,
            offers_empty,
        )?);
    }
    for (name, fields) in [
        (BlockName::Defaults, defaults),
        (BlockName::Overrides, overrides),
    ] {
        if let Some(fields) = fields {
            let rules = block_rules(profile, fields);
            found.push(block(profile, body, fields, name, rules, true)?);
        }
    }
    Ok(found)
}

/// The block of one direction; singular and plural together are Invalid.
fn named_block<'v>(
    place: &'v Map<String, Value>,
    names: &[String],
) -> Result<Option<&'v Map<String, Value>>, String> {
    let mut found = None;
    for name in names {
        let fields = match place.get(name) {
            None | Some(Value::Null) => continue,
            Some(Value::Object(fields)) => fields,
            Some(_) => return Err(format!("block `{name}` is no object")),
        };
        if found.replace(fields).is_some() {
            return Err(format!(
                "singular and plural of one block: `{}`",
                names.join("`, `")
            ));
        }
    }
    Ok(found)
}

/// What stands at the rules' place besides targeting, strategy, block and excluded fields.
fn bare_rules(profile: &Profile, place: &Map<String, Value>) -> Map<String, Value> {
    let layout = &profile.rules;
    let blocks = layout.defaults.iter().chain(&layout.overrides);
    let at_spec = layout.path == [FieldStep::Field("spec".to_owned())];
    let mut rules = block_rules(profile, place);
    rules.retain(|name, _| {
        let targeting =
            at_spec && (TARGETING.contains(&name.as_str()) || selector_field(profile, name));
        !targeting && !blocks.clone().any(|b| b == name)
    });
    // `when` belongs to blocks: bare rules have no condition (specification 5.4).
    if let Some((name, value)) = layout.when.as_ref().and_then(|w| place.get_key_value(w)) {
        rules.insert(name.clone(), value.clone());
    }
    rules
}

/// Whether a field of `spec` is the profile's selector of workloads.
fn selector_field(profile: &Profile, name: &str) -> bool {
    match profile.workload_selector.as_deref() {
        Some([FieldStep::Field(spec), FieldStep::Field(field), ..]) => {
            spec == "spec" && field == name
        }
        _ => false,
    }
}

/// The fields of a block that are rules.
fn block_rules(profile: &Profile, fields: &Map<String, Value>) -> Map<String, Value> {
    let layout = &profile.rules;
    let is_rule = |name: &String| {
        let strategy = profile
            .strategy_choice
            .fields
            .iter()
            .any(|field| match field {
                StrategyField::Name(field) => field == name,
                // A path that leads to this very place.
                StrategyField::Path(path) => match path.split_last() {
                    Some((FieldStep::Field(last), above)) => last == name && above == layout.path,
                    _ => false,
                },
            });
        !strategy
            && !layout.exclude.contains(name)
            && layout.when.as_ref() != Some(name)
            && layout.unset.as_ref() != Some(name)
    };
    fields
        .iter()
        .filter(|(name, _)| is_rule(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn block(
    profile: &Profile,
    body: &Value,
    place: &Map<String, Value>,
    name: BlockName,
    rules: Map<String, Value>,
    offers_empty: bool,
) -> Result<Block, String> {
    let layout = &profile.rules;
    let strategy = match profile.class {
        PolicyClass::Inherited => super::strategy::strategy(profile, body, place, name)?,
        PolicyClass::Direct | PolicyClass::Listed => Strategy::None,
    };
    let when = match layout.when.as_ref().and_then(|w| place.get(w)) {
        Some(Value::String(text)) if name != BlockName::Bare => {
            Some(Expression::compile(text).map_err(|e| format!("condition `{text}` {e}"))?)
        }
        Some(Value::Null) | None => None,
        Some(_) if name == BlockName::Bare => None,
        Some(_) => return Err("condition is no string".to_owned()),
    };
    let unset = match layout.unset.as_ref().and_then(|u| place.get(u)) {
        Some(value) => unset_names(value)?,
        None => Vec::new(),
    };
    Ok(Block {
        name,
        participates: match profile.empty {
            // A Direct policy holds its place even if it is empty (specification 11.9).
            _ if profile.class == PolicyClass::Direct => offers_empty || !rules.is_empty(),
            EmptyBehavior::Blocking => offers_empty || !rules.is_empty(),
            EmptyBehavior::Transparent => !is_empty(profile, &rules),
        },
        rules,
        strategy: match profile.strategy_choice.annotation {
            Some(_) => StrategySource::ByAnnotation(strategy),
            None => StrategySource::Fixed(strategy),
        },
        when,
        unset,
    })
}

/// Whether rules count as empty; those that hold only nulls do not (specification 5.6, 11.7).
fn is_empty(profile: &Profile, rules: &Map<String, Value>) -> bool {
    if rules.is_empty() {
        return true;
    }
    let holds = |path: &Vec<String>| {
        let mut fields = Some(rules);
        let (last, above) = path.split_last()?;
        for name in above {
            fields = fields?.get(name)?.as_object();
        }
        fields?.get(last)
    };
    !profile.empty_unless.is_empty() && !profile.empty_unless.iter().any(|p| holds(p).is_some())
}

fn unset_names(value: &Value) -> Result<Vec<Unit>, String> {
    let wrong = || "unset is no list of names".to_owned();
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(items) => items
            .iter()
            .map(|item| {
                let text = item.as_str().filter(|t| !t.is_empty()).ok_or_else(wrong)?;
                // A name that is no dotted path is the name of one field.
                Ok(Unit::parse(text).unwrap_or_else(|| Unit(vec![Segment::Field(text.into())])))
            })
            .collect(),
        _ => Err(wrong()),
    }
}

/// The value of an order key; smaller is established (specification 4.5, 11.5).
fn order_key(rule: &OrderRule, object: &Object) -> i128 {
    let value = match &rule.source {
        OrderSource::Field(path) => at_path(&object.body, path, None).cloned(),
        OrderSource::Annotation(name) => object
            .annotations
            .get(name)
            .map(|v| Value::from(v.as_str())),
    };
    let key = match &rule.values {
        Some(values) => {
            let place = value
                .as_ref()
                .and_then(Value::as_str)
                .and_then(|text| values.iter().position(|v| v == text));
            place.unwrap_or(values.len()) as i128
        }
        None => match &value {
            Some(Value::Number(number)) => number.to_string().parse().unwrap_or(0),
            Some(Value::String(text)) => text.trim().parse().unwrap_or(0),
            _ => 0,
        },
    };
    if rule.descending { -key } else { key }
}

/// The reason of the policy's own controller, if at least one Accepted condition has the current
/// generation and all of those are False (docs/profiles-reference.md, `trustStatus`).
fn untrusted(object: &Object) -> Option<String> {
    let status = object.body.get("status")?;
    let lists = std::iter::once(status.get("conditions")).chain(
        status
            .get("ancestors")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .map(|ancestor| ancestor.get("conditions")),
    );
    let current: Vec<&Value> = lists
        .flatten()
        .filter_map(Value::as_array)
        .flatten()
        .filter(|c| c.get("type").and_then(Value::as_str) == Some("Accepted"))
        .filter(|c| c.get("observedGeneration").and_then(Value::as_i64) == object.generation)
        .collect();
    let refused = |c: &&Value| c.get("status").and_then(Value::as_str) == Some("False");
    if current.is_empty() || !current.iter().all(refused) {
        return None;
    }
    let reason = current.first()?.get("reason").and_then(Value::as_str);
    Some(reason.unwrap_or("Invalid").to_owned())
}

//! Parses policies: finds their rules and determines whether they are Invalid (specification 3.4,
//! 5.1).

use std::num::NonZero;
use std::sync::Arc;

use serde_json::{Map, Value};
use thin_vec::ThinVec;

use super::policy::{Block, Policy, StrategySource};
use super::{EmptyBehavior, OrderRule, OrderSource, PolicyClass, Profile, StrategyField};
use crate::expr::Expression;
use crate::model::{
    BlockName, Encoded, FieldStep, Granularity, GroupKind, Object, Rules, Segment, Strategy, Unit,
    groups, is_unset,
};

/// Targeting fields, which are never rules (specification 5.1).
const TARGETING: [&str; 3] = ["targetRef", "targetRefs", "targetSelectors"];

/// The reason of policies that are being deleted, for kinds that ignore these (specification 1.7).
pub const BEING_DELETED: &str = "BeingDeleted";

fn is_being_deleted(object: &Object) -> bool {
    object.body.is_set_at(["metadata", "deletionTimestamp"])
}

/// Parses a policy. Never fails: a malformed policy is Invalid, or one of its references is. Of the object, only what is
/// looked into is decoded: rules are copied as they are encoded.
pub fn read_policy(profile: &Profile, object: &Arc<Object>) -> Policy {
    let mut warnings = Vec::new();
    let body = object.body.encoded();
    let spec = object.body.spec();
    let (references, wrong) = super::references::read(profile, spec, &mut warnings);
    let blocks = blocks(profile, object, body);
    let wrong = wrong.as_ref().or(blocks.as_ref().err());
    let invalid = object.unreadable.clone().or(wrong.map(Into::into));
    Policy {
        key: object.key.clone(),
        object: Arc::clone(object),
        order: profile
            .order
            .iter()
            .map(|rule| order_key(rule, object, body))
            .collect(),
        references: references.into(),
        blocks: blocks.unwrap_or_default().into(),
        invalid,
        untrusted: match profile.ignores_deleted && is_being_deleted(object) {
            true => Some(BEING_DELETED.into()),
            false => profile
                .trust_status
                .then(|| untrusted(object, body).map(Into::into))
                .flatten(),
        },
        selects_workloads: profile
            .workload_selector
            .as_ref()
            .and_then(|path| object.body.at_path(path, None))
            .is_some_and(|value| selects(&value)),
        warnings: warnings.into(),
        named_objects: ThinVec::new(),
        missing: None,
    }
}

/// Whether a selector selects some workloads, and not all (specification 11.45).
fn selects(selector: &Value) -> bool {
    match selector {
        Value::Object(fields) => fields.values().any(|field| !is_unset(Some(field))),
        _ => !is_unset(Some(selector)),
    }
}

/// Normalizes a kind: XListenerSet means ListenerSet (specification 1.1), and `core` the empty group
/// (specification 3.1).
pub(super) fn normalize_kind(group: &str, kind: &str) -> GroupKind {
    match group {
        "core" => GroupKind::new(groups::CORE, kind),
        _ => GroupKind::new(group, kind).canonical(),
    }
}

/// Returns the blocks of a policy, or why it is Invalid.
fn blocks(profile: &Profile, object: &Object, body: Encoded<'_>) -> Result<Vec<Block>, String> {
    let layout = &profile.rules;
    let container = match body.at_path(&layout.path, None) {
        Some(fields) if fields.is_object() => fields,
        Some(value) if !value.is_null() => return Err("the rules are not an object".to_owned()),
        _ => Encoded::EMPTY_OBJECT,
    };
    let defaults = named_block(container, &layout.defaults)?;
    let overrides = named_block(container, &layout.overrides)?;
    let mut bare = bare_rules(profile, container);
    if !profile.instances.is_empty() {
        let mut fields = bare.to_map();
        super::instances::by_identity(profile, &object.key, &mut fields);
        bare = Rules::new(&fields);
    }
    if defaults.is_some() && overrides.is_some() && !layout.both_blocks {
        return Err(
            "the policy has both a defaults and an overrides block: the kind allows one".to_owned(),
        );
    }
    let has_block = defaults.is_some() || overrides.is_some();
    if has_block && !bare.is_empty() && !layout.mix_with_bare {
        let fields: Vec<&str> = bare.encoded().fields().map(|(name, _)| name).collect();
        return Err(format!(
            "the policy has bare rules beside a block: `{}`",
            fields.join("`, `")
        ));
    }
    let mut blocks = Vec::new();
    let has_bare_unset = layout
        .unset
        .as_ref()
        .is_some_and(|name| container.get(name).is_some());
    if !has_block || !bare.is_empty() || has_bare_unset {
        let participates_if_empty = !has_block;
        blocks.push(block(
            profile,
            body,
            container,
            BlockName::Bare,
            bare,
            participates_if_empty,
        )?);
    }
    for (name, fields) in [
        (BlockName::Defaults, defaults),
        (BlockName::Overrides, overrides),
    ] {
        if let Some(fields) = fields {
            let rules = Rules::picked(fields, |name| is_rule(profile, name));
            blocks.push(block(profile, body, fields, name, rules, true)?);
        }
    }
    Ok(blocks)
}

/// Returns the block with one of the given names. More than one of them is Invalid.
fn named_block<'v>(
    container: Encoded<'v>,
    names: &[String],
) -> Result<Option<Encoded<'v>>, String> {
    let mut block = None;
    for name in names {
        let Some(fields) = container.get(name).filter(|value| !value.is_null()) else {
            continue;
        };
        if !fields.is_object() {
            return Err(format!("block `{name}` is not an object"));
        }
        if block.replace(fields).is_some() {
            return Err(format!(
                "the policy has more than one of the blocks `{}`",
                names.join("`, `")
            ));
        }
    }
    Ok(block)
}

/// Returns the bare rules: all fields except targeting, strategy, block and excluded fields.
fn bare_rules(profile: &Profile, container: Encoded<'_>) -> Rules {
    let layout = &profile.rules;
    let at_spec = layout.path == [FieldStep::Field("spec".to_owned())];
    Rules::picked(container, |name| {
        let targeting = at_spec && (TARGETING.contains(&name) || selector_field(profile, name));
        let mut blocks = layout.defaults.iter().chain(&layout.overrides);
        // Only blocks have conditions: in bare rules, `when` is a rule (specification 5.4).
        layout.when.as_deref() == Some(name)
            || is_rule(profile, name) && !targeting && !blocks.any(|block| block == name)
    })
}

/// Reports whether a field of `spec` is the workload selector of the profile.
fn selector_field(profile: &Profile, name: &str) -> bool {
    match profile.workload_selector.as_deref() {
        Some([FieldStep::Field(spec), FieldStep::Field(field), ..]) => {
            spec == "spec" && field == name
        }
        _ => false,
    }
}

/// Reports whether a field of a block is a rule.
fn is_rule(profile: &Profile, name: &str) -> bool {
    let layout = &profile.rules;
    let mut strategies = profile.strategy_choice.fields.iter();
    let is_strategy = strategies.any(|field| match field {
        StrategyField::Name(field) => field == name,
        // The path is that of a field of these rules.
        StrategyField::Path(path) => match path.split_last() {
            Some((FieldStep::Field(last), above)) => last == name && above == layout.path,
            _ => false,
        },
    });
    !is_strategy
        && !layout.exclude.iter().any(|excluded| excluded == name)
        && layout.when.as_deref() != Some(name)
        && layout.unset.as_deref() != Some(name)
}

/// Adds a value at a path if the object above it is present and lacks the field (specification 5.10).
fn complete(fields: &mut Map<String, Value>, path: &[String], value: &Value) {
    match path {
        [name] => {
            fields.entry(name.clone()).or_insert_with(|| value.clone());
        }
        [name, below @ ..] => {
            if let Some(Value::Object(fields)) = fields.get_mut(name) {
                complete(fields, below, value);
            }
        }
        [] => {}
    }
}

fn block(
    profile: &Profile,
    body: Encoded<'_>,
    container: Encoded<'_>,
    name: BlockName,
    mut rules: Rules,
    participates_if_empty: bool,
) -> Result<Block, String> {
    let layout = &profile.rules;
    let strategy = match profile.class {
        PolicyClass::Inherited => super::strategy::strategy(profile, body, container, name)?,
        PolicyClass::Direct | PolicyClass::Listed | PolicyClass::Unprofiled => Strategy::None,
    };
    let merges = !matches!(strategy.granularity(), None | Some(Granularity::Atomic));
    if merges && !rules.is_empty() && !profile.field_defaults.is_empty() {
        let mut fields = rules.to_map();
        for default in &profile.field_defaults {
            complete(&mut fields, &default.path, &default.value);
        }
        rules = Rules::new(&fields);
    }
    let condition = layout.when.as_ref().and_then(|w| container.get(w));
    let condition = condition.filter(|value| name != BlockName::Bare && !value.is_null());
    let when = match condition.map(Encoded::text) {
        None => None,
        Some(None) => return Err("the condition is not a string".to_owned()),
        Some(Some(text)) => {
            Some(Expression::compile(text).map_err(|e| format!("condition `{text}` {e}"))?)
        }
    };
    let unset = match layout.unset.as_ref().and_then(|u| container.get(u)) {
        Some(value) => unset_names(&value.value())?,
        None => Vec::new(),
    };
    Ok(Block {
        name,
        participates: match profile.empty {
            // A Direct policy takes part even if it is empty (specification 11.9).
            _ if profile.class == PolicyClass::Direct => participates_if_empty || !rules.is_empty(),
            EmptyBehavior::Blocking | EmptyBehavior::ByStrategy => {
                participates_if_empty || !rules.is_empty()
            }
            EmptyBehavior::Transparent => !is_empty(profile, &rules),
        },
        rules,
        strategy: match profile.strategy_choice.annotation {
            Some(_) => StrategySource::ByAnnotation(strategy),
            None => StrategySource::Fixed(strategy),
        },
        when,
        unset: unset.into(),
        missing: ThinVec::new(),
        unchecked: ThinVec::new(),
        replaces: ThinVec::new(),
    })
}

/// Reports whether rules count as empty. Rules with only nulls do not (specification 5.6, 11.7).
pub(super) fn is_empty(profile: &Profile, rules: &Rules) -> bool {
    if rules.is_empty() {
        return true;
    }
    !profile.empty_unless.is_empty()
        && !profile
            .empty_unless
            .iter()
            .any(|path| rules.encoded().at_fields(path).is_some())
}

fn unset_names(value: &Value) -> Result<Vec<Unit>, String> {
    let error = || "`unset` is not a list of names".to_owned();
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(items) => items
            .iter()
            .map(|item| {
                let text = item.as_str().filter(|t| !t.is_empty()).ok_or_else(error)?;
                // A name that is not a dotted path is the name of one field.
                Ok(Unit::parse(text).unwrap_or_else(|| Unit(vec![Segment::Field(text.into())])))
            })
            .collect(),
        _ => Err(error()),
    }
}

/// Returns the value of a sort key; smaller is more established (specification 4.5, 11.5).
fn order_key(rule: &OrderRule, object: &Object, body: Encoded<'_>) -> i128 {
    let value = match &rule.source {
        OrderSource::Field(path) => body.at_path(path, None).map(Encoded::value),
        OrderSource::Annotation(name) => object.annotations.get(name).map(Value::from),
    };
    let key = match &rule.values {
        Some(values) => {
            let position = value
                .as_ref()
                .and_then(Value::as_str)
                .and_then(|text| values.iter().position(|v| v == text));
            position.unwrap_or(values.len()) as i128
        }
        None => match &value {
            Some(Value::Number(number)) => number.to_string().parse().unwrap_or(0),
            Some(Value::String(text)) => text.trim().parse().unwrap_or(0),
            _ => 0,
        },
    };
    if rule.descending { -key } else { key }
}

/// Returns the reason of the policy's own controller, if at least one Accepted condition has the
/// current generation and all such conditions are False (docs/profiles-reference.md, `trustStatus`).
fn untrusted(object: &Object, body: Encoded<'_>) -> Option<String> {
    let status = body.get("status")?.value();
    let lists = std::iter::once(status.get("conditions")).chain(
        status
            .get("ancestors")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .map(|ancestor| ancestor.get("conditions")),
    );
    let generation = object.generation.map(NonZero::get);
    let current: Vec<&Value> = lists
        .flatten()
        .filter_map(Value::as_array)
        .flatten()
        .filter(|c| c.get("type").and_then(Value::as_str) == Some("Accepted"))
        .filter(|c| c.get("observedGeneration").and_then(Value::as_i64) == generation)
        .collect();
    let is_false = |c: &&Value| c.get("status").and_then(Value::as_str) == Some("False");
    if current.is_empty() || !current.iter().all(is_false) {
        return None;
    }
    let reason = current.first()?.get("reason").and_then(Value::as_str);
    Some(reason.unwrap_or("Invalid").to_owned())
}

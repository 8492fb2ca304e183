//! References to objects in the rules of policies: which of the objects are missing (specification 5.7).

use serde_json::{Map, Value};

use crate::model::{FieldStep, GroupKind, ObjectKey, Outcome, Rules, Segment, Str, Unit, groups};
use crate::profile::{
    FieldReference, MissingObjects, MissingReference, Policy, Profile, UncheckedReference,
};
use crate::store::{Projection, Store};

/// A value at a path, with the steps that lead to it: `[*]` is replaced by indexes.
type Found<'v> = (Vec<FieldStep>, &'v Value);

/// The references of one block that one setting of the profile describes.
#[derive(Debug, Default)]
struct References {
    /// All objects that are named.
    named: Vec<ObjectKey>,
    /// The missing ones: the steps to the reference, and what is wrong.
    missing: Vec<(Vec<FieldStep>, String)>,
    /// Those of which it is not known whether they exist, with the steps to the reference.
    unchecked: Vec<(Vec<FieldStep>, ObjectKey)>,
}

/// What is known of a reference.
enum Existence {
    Exists,
    /// It is missing, and why.
    Missing(String),
    NotKnown,
}

/// Looks up the objects that the rules of a policy reference, and records the missing ones.
pub(crate) fn with_references(profile: &Profile, mut policy: Policy, store: &Store) -> Policy {
    if profile.references.is_empty() && profile.exclusive.is_empty() {
        return policy;
    }
    let mut problems: Vec<String> = Vec::new();
    let mut reason: Option<Str> = None;
    let mut blocks = std::mem::take(&mut policy.blocks);
    for block in &mut blocks {
        let mut rules = block.rules.to_map();
        // Items are removed at the end, so that the indexes of the others do not change.
        let mut omitted: Vec<Vec<FieldStep>> = Vec::new();
        for setting in &profile.references {
            let found = references(profile, setting, &policy, &rules, store);
            policy.named_objects.extend(found.named);
            for (steps, object) in found.unchecked {
                let item = open_item(setting, &steps, &rules);
                let fail_open = open_object(setting).map(unit);
                if item.is_some() || fail_open.is_some() {
                    block.unchecked.push(UncheckedReference {
                        object,
                        unit: unit(&steps),
                        fail_open,
                    });
                }
            }
            for (steps, problem) in found.missing {
                problems.push(format!("`{}`: {problem}", text(&steps)));
                reason.get_or_insert_with(|| setting.reason.clone());
                match open_item(setting, &steps, &rules) {
                    Some(item) => omitted.push(item),
                    None => block.missing.push(MissingReference {
                        unit: unit(&steps),
                        fail_open: open_object(setting).map(unit),
                    }),
                }
            }
        }
        omitted.sort_by_key(|steps| text(steps));
        omitted.dedup();
        // From the last item to the first.
        omitted.sort_by_key(|steps| std::cmp::Reverse(index(steps)));
        if !omitted.is_empty() {
            omitted.iter().for_each(|steps| remove(&mut rules, steps));
            block.rules = Rules::new(&rules);
        }
    }
    policy.blocks = blocks;
    policy.named_objects.sort();
    policy.named_objects.dedup();
    let mut closed = policy.blocks.iter().flat_map(|block| &block.missing);
    let effect = match closed.any(|missing| missing.fail_open.is_none()) {
        true => "where it would act, no value is in force, and its controller answers with errors",
        false => "what fails open is left out",
    };
    policy.missing = reason
        .map(|reason| MissingObjects {
            reason,
            message: format!("{}; {effect}", problems.join("; ")),
        })
        .or_else(|| excluded(profile, &policy))
        .map(Box::new);
    policy
}

/// Why a policy is not accepted that itself sets fields that exclude each other (specification 5.12).
fn excluded(profile: &Profile, policy: &Policy) -> Option<MissingObjects> {
    let found = profile.exclusive.iter().find_map(|setting| {
        let mut blocks = policy
            .blocks
            .iter()
            .map(|block| setting.set_in(&block.rules.to_map()));
        blocks.find(|set| set.len() > 1)
    })?;
    let names: Vec<String> = found.iter().map(|field| format!("`{field}`")).collect();
    Some(MissingObjects {
        reason: Outcome::Invalid.as_str().into(),
        message: format!("{} exclude each other", names.join(" and ")),
    })
}

/// Finds the references of one setting in the rules of a block.
fn references(
    profile: &Profile,
    setting: &FieldReference,
    policy: &Policy,
    rules: &Map<String, Value>,
    store: &Store,
) -> References {
    let mut result = References::default();
    let mut count = 0;
    for (steps, value) in values(rules, &setting.path) {
        let Some(target) = target(setting, policy, value) else {
            continue;
        };
        count += 1;
        match existence(profile, policy, (&target, value), store) {
            Existence::Exists => {}
            Existence::Missing(problem) => result.missing.push((steps, problem)),
            Existence::NotKnown => result.unchecked.push((steps, target.clone())),
        }
        result.named.push(target);
    }
    if setting.one_is_enough && result.missing.len() < count {
        if result.missing.len() + result.unchecked.len() < count {
            result.unchecked.clear();
        }
        result.missing.clear();
    }
    result
}

/// The object that a reference names; `None` if the value is not a reference.
fn target(setting: &FieldReference, policy: &Policy, value: &Value) -> Option<ObjectKey> {
    let text = |field: &str| value.get(field).and_then(Value::as_str);
    let name = text("name").filter(|name| !name.is_empty())?;
    let group = text("group").unwrap_or(&setting.kind.group);
    let kind = match text("kind") {
        Some(kind) => GroupKind::new(group, kind).canonical(),
        None => setting.kind.clone(),
    };
    let own = &policy.key.namespace;
    let namespace = text("namespace").filter(|namespace| !namespace.is_empty());
    Some(ObjectKey::new(kind, namespace.unwrap_or(own), name))
}

/// Whether the object of a reference is there, with the port and the permission that the reference needs.
fn existence(
    profile: &Profile,
    policy: &Policy,
    (target, value): (&ObjectKey, &Value),
    store: &Store,
) -> Existence {
    if !store.knows(target) {
        return Existence::NotKnown;
    }
    let own = &policy.key.namespace;
    if target.namespace != *own && !store.permits(profile.resource(), own, target) {
        return Existence::Missing(format!(
            "no ReferenceGrant in namespace `{}` permits the reference to `{target}`",
            target.namespace
        ));
    }
    let Some(entry) = store.get(target) else {
        return Existence::Missing(format!("`{target}` does not exist"));
    };
    let port = value.get("port").and_then(Value::as_u64);
    match (&entry.projection, port) {
        (Projection::Service(ports), Some(port))
            if target.kind.is(groups::CORE, "Service")
                && !u16::try_from(port).is_ok_and(|port| ports.has(port)) =>
        {
            Existence::Missing(format!("`{target}` has no port {port}"))
        }
        _ => Existence::Exists,
    }
}

/// The boolean that lets requests pass without the object that holds it; `None` if it stands in items of a list.
fn open_object(setting: &FieldReference) -> Option<&[FieldStep]> {
    let path = setting.fail_open.as_deref()?;
    (!path.contains(&FieldStep::Any)).then_some(path)
}

/// The item of a list that is left out because it holds the reference and fails open.
fn open_item(
    setting: &FieldReference,
    steps: &[FieldStep],
    rules: &Map<String, Value>,
) -> Option<Vec<FieldStep>> {
    let field = setting.fail_open.as_deref()?;
    let (last, holder) = field.split_last()?;
    if holder.last() != Some(&FieldStep::Any) {
        return None;
    }
    let item = steps.get(..holder.len())?.to_vec();
    let FieldStep::Field(name) = last else {
        return None;
    };
    let value = at(rules, &item)?;
    (value.get(name) == Some(&Value::Bool(true))).then_some(item)
}

/// The values at a path; `[*]` stands for every item of a list.
fn values<'v>(rules: &'v Map<String, Value>, path: &[FieldStep]) -> Vec<Found<'v>> {
    let Some((FieldStep::Field(name), below)) = path.split_first() else {
        return Vec::new();
    };
    let first = rules.get(name);
    let mut found: Vec<Found<'v>> = first
        .map(|value| (vec![FieldStep::Field(name.clone())], value))
        .into_iter()
        .collect();
    for step in below {
        let mut next = Vec::new();
        for (steps, value) in found {
            let with = |step: FieldStep| {
                let mut steps = steps.clone();
                steps.push(step);
                steps
            };
            match step {
                FieldStep::Field(name) => {
                    next.extend(value.get(name).map(|value| (with(step.clone()), value)));
                }
                _ => {
                    let items = value.as_array().into_iter().flatten().enumerate();
                    next.extend(items.map(|(index, item)| (with(FieldStep::Index(index)), item)));
                }
            }
        }
        found = next;
    }
    found
}

/// The value at steps of fields and indexes.
fn at<'v>(rules: &'v Map<String, Value>, steps: &[FieldStep]) -> Option<&'v Value> {
    let (FieldStep::Field(name), below) = steps.split_first()? else {
        return None;
    };
    crate::model::at_path(rules.get(name)?, below, None)
}

/// Removes an item of a list, or a field.
fn remove(rules: &mut Map<String, Value>, steps: &[FieldStep]) {
    let Some((FieldStep::Field(name), mut below)) = steps.split_first() else {
        return;
    };
    let mut value = rules.get_mut(name);
    while let (Some(found), Some((step, rest))) = (value, below.split_first()) {
        below = rest;
        value = match step {
            FieldStep::Field(name) => found.get_mut(name),
            FieldStep::Index(index) => {
                if let (true, Some(items)) = (rest.is_empty(), found.as_array_mut())
                    && *index < items.len()
                {
                    items.remove(*index);
                    return;
                }
                found.get_mut(*index)
            }
            FieldStep::Any | FieldStep::With(..) => None,
        };
    }
}

/// The unit of the fields at the beginning of a path, up to its first list.
fn unit(steps: &[FieldStep]) -> Unit {
    let fields = steps.iter().map_while(|step| match step {
        FieldStep::Field(name) => Some(Segment::Field(name.as_str().into())),
        _ => None,
    });
    Unit(fields.collect())
}

/// The index at the end of steps.
fn index(steps: &[FieldStep]) -> usize {
    match steps.last() {
        Some(FieldStep::Index(index)) => *index,
        _ => 0,
    }
}

/// Steps as text, as in `extProc[0].backendRefs[1]`.
fn text(steps: &[FieldStep]) -> String {
    let mut text = String::new();
    for step in steps {
        match step {
            FieldStep::Field(name) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(name);
            }
            FieldStep::Index(index) => text.extend(["[", &index.to_string(), "]"]),
            FieldStep::Any => text.push_str("[*]"),
            FieldStep::With(field, value) => text.extend(["[", field, "=", value, "]"]),
        }
    }
    text
}

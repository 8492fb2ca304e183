//! Values that a controller refuses: those that policies on a target cannot have (specification 2.11, 2.13), and
//! fields that exclude each other (specification 5.12).

use serde_json::{Map, Value};

use super::document::{ExclusiveDoc, TargetDoc};
use super::limits::other_field;
use super::references::TARGET_KINDS;
use super::settings::{dotted, dotted_list};
use super::{
    ExclusiveFields, ForbiddenValue, Policy, PolicyClass, Profile, TargetKind, TargetKinds,
};
use crate::model::{FieldStep, GroupKind, Segment, Unit, groups, nearest, parse_field_path};

impl TargetKind {
    /// A kind that policies of all contents can name as a whole.
    pub(super) fn without_sections(kind: GroupKind) -> Self {
        Self {
            kind,
            sections: false,
            ports: false,
            fields: Vec::new(),
            without: Vec::new(),
            merged: false,
            root_only: false,
        }
    }

    /// Why a policy cannot be on this target with its own rules; `None` if it can (specification 2.11).
    pub fn refusal_of(&self, policy: &Policy) -> Option<String> {
        // Most targets allow everything.
        if self.fields.is_empty() && self.without.is_empty() {
            return None;
        }
        let mut blocks = policy.blocks.iter();
        let refusal = blocks.find_map(|block| self.refusal(&block.rules.to_map()))?;
        let kind = &self.kind;
        Some(format!(
            "a policy that targets `{kind}` cannot have {refusal}"
        ))
    }

    /// Describes the first thing in rules that a policy on this target cannot have; `None` if it can have all of
    /// them (specification 2.11).
    pub fn refusal(&self, rules: &Map<String, Value>) -> Option<String> {
        if let Some(field) = other_field(rules, &self.fields) {
            return Some(format!("the field `{field}`"));
        }
        let mut forbidden = self.without.iter();
        let found = forbidden.find(|value| is_set(rules, &value.path))?;
        Some(format!("a value at `{}`", found.text))
    }
}

impl Profile {
    /// The position of a target in the list of targets, if policies on it are checked again after they were merged
    /// (specification 2.13).
    pub fn merge_check(&self, kind: &GroupKind) -> Option<u32> {
        let TargetKinds::Listed(targets) = &self.targets else {
            return None;
        };
        let mut targets = (0..).zip(targets);
        let found = targets.find(|(_, target)| target.merged && target.kind == *kind);
        found.map(|(position, _)| position)
    }

    /// The target at a position of the list of targets.
    pub fn target_at(&self, position: u32) -> Option<&TargetKind> {
        match &self.targets {
            TargetKinds::Listed(targets) => targets.get(position as usize),
            TargetKinds::Any { .. } => None,
        }
    }

    /// Whether policies on some target are checked again after they were merged (specification 2.13).
    pub fn checks_merges(&self) -> bool {
        match &self.targets {
            TargetKinds::Listed(targets) => targets.iter().any(|target| target.merged),
            TargetKinds::Any { .. } => false,
        }
    }
}

impl ExclusiveFields {
    /// The fields that have a value in rules.
    pub fn set_in<'f>(&'f self, rules: &Map<String, Value>) -> Vec<&'f Unit> {
        let is_set = |field: &&Unit| {
            let value = super::policy::value_at(rules, &field.0);
            value.is_some_and(|value| !value.is_null())
        };
        self.fields.iter().filter(is_set).collect()
    }

    /// The place of the object that is left out, if the rules say that requests pass without it.
    pub fn holder_if_open(&self, rules: &Map<String, Value>) -> Option<&[Segment]> {
        let place = &self.fail_open.as_ref()?.0;
        let (_, holder) = place.split_last()?;
        let is_open = super::policy::value_at(rules, place) == Some(&Value::Bool(true));
        is_open.then_some(holder)
    }
}

/// Whether a value stands at a path. A null and an empty list are none.
fn is_set(rules: &Map<String, Value>, path: &[FieldStep]) -> bool {
    match path.split_first() {
        Some((FieldStep::Field(name), below)) => {
            rules.get(name).is_some_and(|value| is_set_in(value, below))
        }
        _ => false,
    }
}

fn is_set_in(value: &Value, path: &[FieldStep]) -> bool {
    match path.split_first() {
        None => match value {
            Value::Null => false,
            Value::Array(items) => !items.is_empty(),
            _ => true,
        },
        Some((FieldStep::Field(name), below)) => {
            value.get(name).is_some_and(|value| is_set_in(value, below))
        }
        Some((_, below)) => {
            let mut items = value.as_array().into_iter().flatten();
            items.any(|item| is_set_in(item, below))
        }
    }
}

/// Resolves a target.
///
/// # Errors
/// A malformed path.
pub(super) fn target(doc: &TargetDoc) -> Result<TargetKind, String> {
    let is_usable = |step: &FieldStep| matches!(step, FieldStep::Field(_) | FieldStep::Any);
    let without = doc.without.iter().map(|text| {
        let path = parse_field_path(text).filter(|path| path.iter().all(is_usable));
        let path = path.ok_or_else(|| {
            format!("targets.without: `{text}` is not a path of fields and `[*]`")
        })?;
        Ok(ForbiddenValue {
            path,
            text: text.as_str().into(),
        })
    });
    let kind = super::read::normalize_kind(&doc.group, &doc.kind);
    known_to_the_gateway_api(&kind)?;
    Ok(TargetKind {
        kind,
        sections: doc.sections.unwrap_or(true),
        ports: doc.ports,
        fields: dotted_list(Some(&doc.fields), "targets.fields")?,
        without: without.collect::<Result<_, String>>()?,
        merged: doc.merged,
        root_only: doc.namespaces == super::document::TargetNamespaces::Root,
    })
}

/// Refuses a kind of the Gateway API's group that policies cannot target, which is most likely misspelt: any other kind
/// is taken for one of backends.
fn known_to_the_gateway_api(kind: &GroupKind) -> Result<(), String> {
    if &*kind.group != groups::GATEWAY || TARGET_KINDS.contains(&&*kind.kind) {
        return Ok(());
    }
    let near = nearest(&kind.kind, TARGET_KINDS.map(str::to_owned).to_vec());
    Err(match near {
        Some(near) => format!("targets: no kind `{kind}`: did you mean `{near}`?"),
        None => format!(
            "targets: no kind `{kind}`: those of the group are {}",
            TARGET_KINDS.join(", ")
        ),
    })
}

/// Resolves fields that exclude each other.
///
/// # Errors
/// A malformed path, or fewer than two fields, or a boolean that does not stand in an object above all of them.
pub(super) fn exclusive(doc: &ExclusiveDoc) -> Result<ExclusiveFields, String> {
    let fields = dotted_list(Some(&doc.fields), "exclusive.fields")?;
    let meet = |a: &[String], b: &[String]| a.starts_with(b) || b.starts_with(a);
    let overlap = fields.iter().enumerate().any(|(index, field)| {
        let mut others = fields.iter().take(index);
        others.any(|other| meet(field, other))
    });
    if fields.len() < 2 || overlap {
        return Err(
            "exclusive.fields: at least two are required, none of which is above another"
                .to_owned(),
        );
    }
    let fail_open = doc.fail_open.as_deref();
    let fail_open = fail_open.map(|text| dotted(text, "exclusive.failOpen"));
    let fail_open = fail_open.transpose()?;
    if let Some(path) = &fail_open {
        let holder = path.get(..path.len() - 1).unwrap_or_default();
        let stands_above = |field: &Vec<String>| field.starts_with(holder) && !meet(field, path);
        if holder.is_empty() || !fields.iter().all(stands_above) {
            return Err(format!(
                "exclusive.failOpen: `{}` is not a field of an object above all of the fields",
                path.join(".")
            ));
        }
    }
    Ok(ExclusiveFields {
        fields: fields.iter().map(|field| Unit::of_fields(field)).collect(),
        fail_open: fail_open.map(|path| Unit::of_fields(&path)),
    })
}

/// The reason for which these settings contradict the others, if there is one.
pub(super) fn contradiction(profile: &Profile) -> Option<&'static str> {
    let choice = &profile.strategy_choice;
    let conditions = |target: &TargetKind| target.fields.is_empty() && target.without.is_empty();
    let targets = match &profile.targets {
        TargetKinds::Listed(targets) => targets.as_slice(),
        TargetKinds::Any { .. } => &[],
    };
    let mut merged = targets.iter().filter(|target| target.merged).peekable();
    let inherited = profile.class == PolicyClass::Inherited;
    if merged.peek().is_some() && !(inherited && choice.lower && choice.annotation.is_none()) {
        Some(
            "targets.merged requires class Inherited, `strategy.owner: Lower`, and a strategy that no annotation chooses",
        )
    } else if merged.any(conditions) {
        Some("targets.merged: needs `fields` or `without`")
    } else if !profile.exclusive.is_empty() && !inherited {
        Some("exclusive requires class Inherited")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_value_stands_at_a_path_unless_it_is_null_or_an_empty_list() {
        let rules = json!({"a": {"b": [{"c": 1}, {"d": []}, {"e": null}]}, "f": {}});
        let rules = rules.as_object().unwrap();
        for (path, expected) in [
            ("a.b[*].c", true),
            ("a.b[*].d", false),
            ("a.b[*].e", false),
            ("a.b", true),
            ("f", true),
            ("f.g", false),
            ("f[*]", false),
        ] {
            let steps = parse_field_path(path).unwrap();
            assert_eq!(is_set(rules, &steps), expected, "{path}");
        }
    }
}

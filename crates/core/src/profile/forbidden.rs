//! Values that a controller refuses: those that policies on a target cannot have (specification 2.11, 2.13), and
//! fields that exclude each other (specification 5.12).

use serde_json::{Map, Value};

use super::document::{ExclusiveDoc, TargetDoc, ValidationDoc};
use super::limits::other_field;
use super::references::TARGET_KINDS;
use super::settings::{dotted, dotted_list};
use super::{
    ExclusiveFields, ForbiddenValue, Policy, PolicyClass, Profile, TargetKind, TargetKinds,
    Validation,
};
use crate::expr::Expression;
use crate::model::{FieldStep, GroupKind, Segment, Unit, groups, nearest, parse_field_path};

/// The number of validations that a target can have.
const MAX_VALIDATIONS: usize = 8;

/// Why a policy cannot be on a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It has this field or value.
    Has(String),
    /// A rule says this.
    Says(String),
}

impl TargetKind {
    /// A kind that policies of all contents can name as a whole.
    pub(super) fn without_sections(kind: GroupKind) -> Self {
        Self {
            kind,
            sections: false,
            ports: false,
            fields: Vec::new(),
            without: Vec::new(),
            validations: Vec::new(),
            merged: false,
            root_only: false,
        }
    }

    /// Why a policy cannot be on this target with its own rules; `None` if it can (specification 2.11).
    pub fn refusal_of(&self, policy: &Policy) -> Option<String> {
        // Most targets allow everything.
        if !self.has_conditions() {
            return None;
        }
        let mut blocks = policy.blocks.iter();
        let refusal = blocks.find_map(|block| self.refusal(&block.rules.to_map()))?;
        let kind = &self.kind;
        Some(match refusal {
            Refusal::Has(what) => format!("a policy that targets `{kind}` cannot have {what}"),
            Refusal::Says(what) => what,
        })
    }

    /// The first thing in rules for which a policy cannot be on this target; `None` if it can (specification 2.11).
    pub fn refusal(&self, rules: &Map<String, Value>) -> Option<Refusal> {
        if let Some(field) = other_field(rules, &self.fields) {
            return Some(Refusal::Has(format!("the field `{field}`")));
        }
        let mut forbidden = self.without.iter();
        if let Some(found) = forbidden.find(|value| is_set(rules, &value.path)) {
            return Some(Refusal::Has(format!("a value at `{}`", found.text)));
        }
        let mut validations = self.validations.iter();
        validations
            .find_map(|validation| validation.failure(rules))
            .map(Refusal::Says)
    }

    fn has_conditions(&self) -> bool {
        !(self.fields.is_empty() && self.without.is_empty() && self.validations.is_empty())
    }
}

impl Validation {
    /// Why rules fail the validation; `None` if they pass.
    fn failure(&self, rules: &Map<String, Value>) -> Option<String> {
        let is_read =
            |(name, value): &(&String, &Value)| !value.is_null() && self.rule.reads("self", name);
        let mut read = rules.iter().filter(is_read).peekable();
        if read.peek().is_none() && self.holds_without {
            return None;
        }
        let read = read.map(|(name, value)| (name.clone(), without_nulls(value)));
        match self.evaluate(read.collect()) {
            Ok(true) => None,
            Ok(false) => Some(self.message.to_string()),
            Err(error) => Some(format!("{} (cannot be checked: {error})", self.message)),
        }
    }

    fn evaluate(&self, read: Map<String, Value>) -> Result<bool, String> {
        let value = self.rule.evaluate(&[("self", &Value::Object(read))])?;
        Ok(value == Value::Bool(true))
    }
}

/// A value without the nulls of its objects, also of those in lists: an API server does not store them.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let set = fields.iter().filter(|(_, value)| !value.is_null());
            let set = set.map(|(name, value)| (name.clone(), without_nulls(value)));
            Value::Object(set.collect())
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
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

/// Whether a value stands at a path below another value.
pub(super) fn is_set_in(value: &Value, path: &[FieldStep]) -> bool {
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

/// Parses a path of fields and `[*]`.
///
/// # Errors
/// The text is malformed, or has other steps.
pub(super) fn path_of_items(text: &str, setting: &str) -> Result<Vec<FieldStep>, String> {
    let is_usable = |step: &FieldStep| matches!(step, FieldStep::Field(_) | FieldStep::Any);
    let path = parse_field_path(text).filter(|path| path.iter().all(is_usable));
    path.ok_or_else(|| format!("{setting}: `{text}` is not a path of fields and `[*]`"))
}

/// Resolves a validation.
///
/// # Errors
/// The rule does not compile, or reads another variable than `self`, or the message is unusable.
fn validation(doc: &ValidationDoc) -> Result<Validation, String> {
    let (source, message) = (&doc.rule, &doc.message);
    let refused = |why: &str| format!("targets.validations: `{source}` {why}");
    let rule = Expression::compile(source).map_err(|why| refused(&why))?;
    if rule.variables() != ["self"] {
        return Err(refused("does not read `self` alone"));
    }
    if message.trim().is_empty() || message.contains(char::is_control) {
        return Err(refused("needs a message of one line"));
    }
    let validation = Validation {
        rule,
        holds_without: true,
        message: message.as_str().into(),
    };
    let holds_without = validation.evaluate(Map::new()) == Ok(true);
    Ok(Validation {
        holds_without,
        ..validation
    })
}

/// Resolves a target.
///
/// # Errors
/// A malformed path or validation.
pub(super) fn target(doc: &TargetDoc) -> Result<TargetKind, String> {
    let without = doc.without.iter().map(|text| {
        Ok(ForbiddenValue {
            path: path_of_items(text, "targets.without")?,
            text: text.as_str().into(),
        })
    });
    let kind = super::read::normalize_kind(&doc.group, &doc.kind);
    known_to_the_gateway_api(&kind)?;
    if doc.validations.len() > MAX_VALIDATIONS {
        return Err(format!(
            "targets.validations: at most {MAX_VALIDATIONS} are allowed"
        ));
    }
    let validations = doc.validations.iter().map(validation);
    Ok(TargetKind {
        kind,
        sections: doc.sections.unwrap_or(true),
        ports: doc.ports,
        fields: dotted_list(Some(&doc.fields), "targets.fields")?,
        without: without.collect::<Result<_, String>>()?,
        validations: validations.collect::<Result<_, String>>()?,
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
    } else if merged.any(|target| !target.has_conditions()) {
        Some("targets.merged: needs `fields`, `without` or `validations`")
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

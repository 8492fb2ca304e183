//! Sections of a resource kind: several policies in one object (specification 2.14).

use serde_json::Value;

use super::document::{SectionDoc, SectionWhereDoc};
use super::settings::field_path;
use super::{PolicyClass, Profile};
use crate::model::{FieldStep, GroupKind, Object};

/// Which objects of the resource kind are policies of a profile (specification 2.14).
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Membership {
    /// All.
    #[default]
    Whole,
    /// Those that have the section.
    Section(PolicySection),
    /// Those that have none of the sections. This is for the objects that no profile describes.
    Outside(Vec<PolicySection>),
}

/// A section of a resource kind.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicySection {
    /// Path of the field, from the root of the object, that an object with the section has.
    pub field: Vec<FieldStep>,
    /// What else holds of an object with the section.
    pub condition: Option<SectionCondition>,
}

/// A condition on a value of an object with a section.
#[derive(Clone, Debug, PartialEq)]
pub struct SectionCondition {
    /// Path of the value from the root of the object.
    pub field: Vec<FieldStep>,
    /// The values that count.
    pub values: Vec<String>,
    /// Whether the value must be one of `values`, and not some other or none.
    pub is_one_of: bool,
}

impl PolicySection {
    /// Whether an object has the section.
    pub fn holds(&self, object: &Object) -> bool {
        let is_met = |condition: &SectionCondition| {
            let value = object.body.at_path(&condition.field, None);
            let text = value.as_ref().and_then(Value::as_str);
            let is_listed = text.is_some_and(|text| condition.values.iter().any(|v| v == text));
            is_listed == condition.is_one_of
        };
        object.body.is_set(&self.field) && self.condition.iter().all(is_met)
    }
}

impl Profile {
    /// Whether an object of the resource kind is a policy of the profile's kind (specification 2.14).
    pub fn reads(&self, object: &Object) -> bool {
        match &self.membership {
            Membership::Whole => true,
            Membership::Section(section) => section.holds(object),
            Membership::Outside(sections) => !sections.iter().any(|one| one.holds(object)),
        }
    }

    /// The resource kind whose objects are the policies: that of the profile without its section.
    pub fn resource(&self) -> &GroupKind {
        &self.resource
    }
}

/// Resolves the section of a profile's policy.
///
/// # Errors
/// The name or a path is malformed, or the condition names no values.
pub(super) fn membership(given: Option<&SectionDoc>) -> Result<Membership, String> {
    let Some(doc) = given else {
        return Ok(Membership::Whole);
    };
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if doc.name.is_empty() || !doc.name.chars().all(is_name) {
        return Err(format!(
            "policy.section.name: `{}` is not a name of lower-case letters and digits",
            doc.name
        ));
    }
    let by_name = format!("spec.{}", doc.name);
    let field = doc.field.as_deref().unwrap_or(&by_name);
    let field = field_path(Some(field), "policy.section.field")?;
    let condition = doc.condition.as_ref().map(condition).transpose()?;
    Ok(Membership::Section(PolicySection {
        field: field.unwrap_or_default(),
        condition,
    }))
}

fn condition(doc: &SectionWhereDoc) -> Result<SectionCondition, String> {
    let field = field_path(Some(&doc.field), "policy.section.where.field")?;
    let (values, is_one_of) = match (&doc.values, &doc.not) {
        (Some(values), None) => (values, true),
        (None, Some(values)) => (values, false),
        _ => return Err("policy.section.where: give either `values` or `not`".to_owned()),
    };
    if values.is_empty() {
        return Err("policy.section.where: the list of values is empty".to_owned());
    }
    Ok(SectionCondition {
        field: field.unwrap_or_default(),
        values: values.clone(),
        is_one_of,
    })
}

/// Refuses forms of attachment that name an object and not a section of it.
pub(super) fn contradiction(profile: &Profile) -> Option<&'static str> {
    let has_section = matches!(profile.membership, Membership::Section(_));
    (has_section && profile.attach.filter && profile.class != PolicyClass::Unprofiled).then_some(
        "policy.section: a filter in a route rule names a whole object; remove `filter` from `attach`",
    )
}

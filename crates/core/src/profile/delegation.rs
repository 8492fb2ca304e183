//! How a kind follows delegation between Routes (specification 1.8).

use std::collections::BTreeMap;

use serde::Deserialize;

use super::document::DelegationDoc;
use super::resolve::SettingResult;
use super::{EffectiveTarget, PolicyClass, Profile};
use crate::model::{Level, MetadataMap};

/// Whose policies take precedence where a Route delegates to child Routes (specification 1.8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delegation {
    /// Without the annotation.
    pub prefer: DelegationPreference,
    /// Annotation of the Route that delegates.
    pub annotation: Option<String>,
    /// The meaning of values of the annotation.
    pub values: BTreeMap<String, DelegationPreference>,
    /// The meaning of all other values.
    pub other_values: DelegationPreference,
}

/// The policies that take precedence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
pub enum DelegationPreference {
    /// Those of the child Routes.
    #[default]
    Child,
    /// Those of the Route that delegates.
    Parent,
    /// It is not known how they are merged.
    NotFollowed,
}

impl Delegation {
    /// The preference of a Route that delegates.
    pub(crate) fn preference(&self, annotations: &MetadataMap) -> DelegationPreference {
        let annotation = self.annotation.as_ref();
        match annotation.and_then(|name| annotations.get(name)) {
            Some(value) => self.values.get(value).copied().unwrap_or(self.other_values),
            None => self.prefer,
        }
    }
}

/// Reads the setting.
///
/// # Errors
/// The setting contradicts itself or the class.
pub(super) fn resolve(
    doc: Option<DelegationDoc>,
    class: PolicyClass,
) -> SettingResult<Option<Delegation>> {
    let Some(DelegationDoc {
        prefer,
        annotation,
        values,
        other_values,
    }) = doc
    else {
        return Ok(None);
    };
    let prefer = prefer.unwrap_or_default();
    if annotation.is_none() && (values.is_some() || other_values.is_some()) {
        return Err("delegation: `values` and `otherValues` require `annotation`".to_owned());
    }
    let has_choice = annotation.is_some() || prefer == DelegationPreference::Parent;
    if class != PolicyClass::Inherited && has_choice {
        return Err(
            "delegation: `prefer: Parent` and `annotation` require class Inherited".to_owned(),
        );
    }
    Ok(Some(Delegation {
        prefer,
        annotation,
        values: values.unwrap_or_default(),
        other_values: other_values.unwrap_or(prefer),
    }))
}

/// Child Routes are below the rules of their parents.
pub(super) fn contradiction(profile: &Profile) -> Option<&'static str> {
    let above = match profile.effective {
        EffectiveTarget::Level(level) => level < Level::RouteRule,
        EffectiveTarget::Every | EffectiveTarget::Target => false,
    };
    (profile.delegation.is_some() && above).then_some(
        "delegation requires an effective target at or below RouteRule: Routes are below rules that delegate",
    )
}

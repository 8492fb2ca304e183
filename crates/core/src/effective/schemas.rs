//! Reads the schemas of a kind's rules from its CRD, for the granularity Structural (specification 5.2).

use serde_json::Value;

use super::PolicyKind;
use crate::merge::Schemas;
use crate::model::{FieldStep, Granularity, Object};
use crate::profile::Profile;

/// The schemas of the rules by block.
#[derive(Debug, Default)]
pub(crate) struct KindSchemas {
    bare: Option<Value>,
    defaults: Option<Value>,
    overrides: Option<Value>,
}

impl KindSchemas {
    /// Reads the schemas from the CRD, if the kind's granularity needs them.
    pub fn of(profile: &Profile, definition: Option<&Object>) -> Self {
        let structural =
            |s: &crate::model::Strategy| s.granularity() == Some(Granularity::Structural);
        if !profile.strategies.iter().any(structural) {
            return Self::default();
        }
        let spec = definition.and_then(|definition| definition.body.get("spec"));
        let schema = spec.as_ref().and_then(stored_schema);
        let Some(bare) = schema.and_then(|schema| at_rules(profile, schema)) else {
            return Self::default();
        };
        let block = |names: &[String]| {
            let properties = bare.get("properties")?;
            names.iter().find_map(|name| properties.get(name)).cloned()
        };
        Self {
            defaults: block(&profile.rules.defaults),
            overrides: block(&profile.rules.overrides),
            bare: Some(bare.clone()),
        }
    }

    pub fn borrow(&self) -> Schemas<'_> {
        Schemas {
            bare: self.bare.as_ref(),
            defaults: self.defaults.as_ref(),
            overrides: self.overrides.as_ref(),
        }
    }
}

impl PolicyKind {
    /// The schemas of the rules from the CRD.
    pub(crate) fn schemas(&self) -> Schemas<'_> {
        self.schemas.borrow()
    }
}

/// The schema of the storage version of a CRD with a spec.
fn stored_schema(spec: &Value) -> Option<&Value> {
    let versions = spec.get("versions")?.as_array()?;
    let stored = versions
        .iter()
        .find(|v| v.get("storage") == Some(&Value::Bool(true)));
    let version = stored.or(versions.first())?;
    version.get("schema")?.get("openAPIV3Schema")
}

/// The part of the schema that describes the rules.
fn at_rules<'s>(profile: &Profile, root: &'s Value) -> Option<&'s Value> {
    profile
        .rules
        .path
        .iter()
        .try_fold(root, |node, step| match step {
            FieldStep::Field(name) => node.get("properties")?.get(name),
            FieldStep::Index(_) | FieldStep::Any | FieldStep::With(..) => node.get("items"),
        })
}

//! Which profile describes a kind: configured beats built-in beats derived (specification 2.1).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::Store;
use crate::model::{GroupKind, groups};
use crate::profile::{
    PolicyLabel, Profile, ProfileDocument, ProfileError, ProfileOrigin, built_in, parse_value,
};

/// The profile documents that do not come from the store: built-in ones and those of files. Clones
/// share them.
#[derive(Clone, Debug, Default)]
pub struct ProfileSources {
    built_in: Arc<Vec<(String, ProfileDocument)>>,
    configured: Arc<Vec<(String, ProfileDocument)>>,
}

/// The profile of every kind, resolved against the CRDs of a store.
#[derive(Clone, Debug, Default)]
pub struct ProfileRegistry {
    /// By kind.
    pub profiles: BTreeMap<GroupKind, Arc<Profile>>,
    /// Kinds whose configured profile is refused: nothing can be said of them (specification 2.5).
    pub refused: BTreeSet<GroupKind>,
    /// Why profiles are refused.
    pub problems: Vec<ProfileError>,
}

/// What a CRD says of its kind.
struct Crd {
    kind: GroupKind,
    name: String,
    cluster_scoped: bool,
    label: Option<PolicyLabel>,
}

impl ProfileSources {
    /// The built-in profiles alone.
    pub fn shipped() -> Self {
        // That they parse is tested; one that did not would be no profile.
        Self {
            built_in: Arc::new(built_in().iter().flatten().cloned().collect()),
            configured: Arc::default(),
        }
    }

    /// Adds documents of files, with their places.
    pub fn configure(&mut self, documents: impl IntoIterator<Item = (String, ProfileDocument)>) {
        Arc::make_mut(&mut self.configured).extend(documents);
    }

    /// Resolves all profiles against a store: its PolicyProfile objects count as configured, and
    /// its CRDs give classes and derived profiles.
    pub fn resolve(&self, store: &Store) -> ProfileRegistry {
        let crds: Vec<Crd> = crds(store).collect();
        let label = |kind: &GroupKind| {
            crds.iter()
                .find(|crd| crd.kind == *kind)
                .and_then(|crd| crd.label)
        };
        let mut registry = ProfileRegistry::default();
        for crd in &crds {
            let Some(label) = crd.label else { continue };
            match Profile::derive(&crd.kind, &crd.name, crd.cluster_scoped, label) {
                Ok(profile) => registry.insert(profile),
                Err(problem) => registry.problems.push(problem),
            }
        }
        for (place, document) in &*self.built_in {
            let kind = document.policy();
            match Profile::resolve(document, ProfileOrigin::BuiltIn, label(&kind), place) {
                Ok(profile) => registry.insert(profile),
                Err(problem) => registry.problems.push(problem),
            }
        }
        let mut configured = self.configured.to_vec();
        configured.extend(registry.documents_of(store));
        registry.add_configured(&configured, &label);
        registry
    }
}

impl ProfileRegistry {
    fn insert(&mut self, profile: Profile) {
        self.profiles
            .insert(profile.policy.clone(), Arc::new(profile));
    }

    /// The PolicyProfile objects of a store; those that cannot be read are problems.
    fn documents_of(&mut self, store: &Store) -> Vec<(String, ProfileDocument)> {
        let kind = GroupKind::new(groups::ENTAIL, "PolicyProfile");
        let mut found = Vec::new();
        for ((_, name), entry) in store.of_kind(&kind) {
            let place = match &entry.object.location {
                Some(location) => location.to_string(),
                None => format!("PolicyProfile/{name}"),
            };
            match parse_value(&entry.object.body, &place) {
                Ok(document) => found.push((place, document)),
                Err(problem) => {
                    self.problems.push(problem);
                    self.refuse(policy_of(&entry.object.body));
                }
            }
        }
        found
    }

    fn add_configured(
        &mut self,
        documents: &[(String, ProfileDocument)],
        label: &dyn Fn(&GroupKind) -> Option<PolicyLabel>,
    ) {
        for (place, document) in documents {
            let kind = document.policy();
            let twin = documents
                .iter()
                .find(|(_, other)| !std::ptr::eq(other, document) && other.policy() == kind);
            // Neither of two can be preferred (specification 11.3).
            let resolved = match twin {
                Some((other, _)) => Err(ProfileError::new(
                    place.clone(),
                    format!("kind `{kind}` has another profile at {other}: keep one"),
                )),
                None => Profile::resolve(document, ProfileOrigin::Configured, label(&kind), place),
            };
            match resolved {
                Ok(profile) => self.insert(profile),
                Err(problem) => {
                    self.problems.push(problem);
                    self.refuse(Some(kind));
                }
            }
        }
    }

    /// Falling back to another profile would change meanings without a word.
    fn refuse(&mut self, kind: Option<GroupKind>) {
        if let Some(kind) = kind {
            self.profiles.remove(&kind);
            self.refused.insert(kind);
        }
    }
}

/// The kind that a refused profile was about, if it says so.
fn policy_of(body: &Value) -> Option<GroupKind> {
    let policy = body.get("spec")?.get("policy")?;
    let group = policy
        .get("group")
        .and_then(Value::as_str)
        .unwrap_or_default();
    Some(GroupKind::new(group, policy.get("kind")?.as_str()?))
}

/// The CRDs of a store.
fn crds(store: &Store) -> impl Iterator<Item = Crd> {
    let kind = GroupKind::crd();
    let crds: Vec<Crd> = store
        .of_kind(&kind)
        .filter_map(|(_, entry)| {
            let object = &entry.object;
            let scope = object.body.pointer("/spec/scope");
            Some(Crd {
                kind: object.defined_kind()?,
                name: object.key.name.to_string(),
                cluster_scoped: scope.and_then(Value::as_str) == Some("Cluster"),
                label: PolicyLabel::read(&object.labels),
            })
        })
        .collect();
    crds.into_iter()
}

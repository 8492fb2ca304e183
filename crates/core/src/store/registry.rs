//! The profile of each kind. Configured profiles override built-in ones, which override derived ones
//! (specification 2.1).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::Store;
use crate::model::{GroupKind, groups};
use crate::profile::{
    PolicyLabel, Profile, ProfileDocument, ProfileError, ProfileOrigin, built_in, parse_value,
};

/// The profile documents that do not come from the store: built-in ones and those of files. Clones
/// share the documents.
#[derive(Clone, Debug, Default)]
pub struct ProfileSources {
    built_in: Arc<Vec<(String, ProfileDocument)>>,
    configured: Arc<Vec<(String, ProfileDocument)>>,
}

/// The profile of every kind, resolved against the CRDs of a store.
#[derive(Clone, Debug, Default)]
pub struct ProfileRegistry {
    /// The profiles by kind.
    pub profiles: BTreeMap<GroupKind, Arc<Profile>>,
    /// Kinds whose configured profile is refused. Their state is unknown (specification 2.5).
    pub refused: BTreeSet<GroupKind>,
    /// The errors of refused profiles.
    pub problems: Vec<ProfileError>,
}

/// The kind that a CRD defines.
struct Crd {
    kind: GroupKind,
    name: String,
    cluster_scoped: bool,
    label: Option<PolicyLabel>,
}

impl ProfileSources {
    /// Returns the built-in profiles.
    pub fn shipped() -> Self {
        // A test checks that all of them parse.
        Self {
            built_in: Arc::new(built_in().iter().flatten().cloned().collect()),
            configured: Arc::default(),
        }
    }

    /// Adds documents of files, each with its location.
    pub fn configure(&mut self, documents: impl IntoIterator<Item = (String, ProfileDocument)>) {
        Arc::make_mut(&mut self.configured).extend(documents);
    }

    /// Resolves all profiles against a store. PolicyProfile objects count as configured; CRDs give
    /// classes and derived profiles.
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
        for (location, document) in &*self.built_in {
            let kind = document.policy();
            match Profile::resolve(document, ProfileOrigin::BuiltIn, label(&kind), location) {
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

    /// Reads the PolicyProfile objects of a store and records the malformed ones as problems.
    fn documents_of(&mut self, store: &Store) -> Vec<(String, ProfileDocument)> {
        let kind = GroupKind::new(groups::ENTAIL, "PolicyProfile");
        let mut documents = Vec::new();
        for ((_, name), entry) in store.of_kind(&kind) {
            let location = match &entry.object.location {
                Some(location) => location.to_string(),
                None => format!("PolicyProfile/{name}"),
            };
            match parse_value(&entry.object.body, &location) {
                Ok(document) => documents.push((location, document)),
                Err(problem) => {
                    self.problems.push(problem);
                    self.refuse(policy_of(&entry.object.body));
                }
            }
        }
        documents
    }

    fn add_configured(
        &mut self,
        documents: &[(String, ProfileDocument)],
        label: &dyn Fn(&GroupKind) -> Option<PolicyLabel>,
    ) {
        for (location, document) in documents {
            let kind = document.policy();
            let duplicate = documents
                .iter()
                .find(|(_, other)| !std::ptr::eq(other, document) && other.policy() == kind);
            // With two profiles of one kind, both are refused (specification 11.3).
            let resolved = match duplicate {
                Some((other, _)) => Err(ProfileError::new(
                    location.clone(),
                    format!("kind `{kind}` has another profile at {other}: keep one"),
                )),
                None => {
                    Profile::resolve(document, ProfileOrigin::Configured, label(&kind), location)
                }
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

    /// Marks a kind as refused. Falling back to another profile would silently change the meaning of
    /// its policies.
    fn refuse(&mut self, kind: Option<GroupKind>) {
        if let Some(kind) = kind {
            self.profiles.remove(&kind);
            self.refused.insert(kind);
        }
    }
}

/// Returns the kind of a refused profile, if it can be read.
fn policy_of(body: &Value) -> Option<GroupKind> {
    let policy = body.get("spec")?.get("policy")?;
    let group = policy
        .get("group")
        .and_then(Value::as_str)
        .unwrap_or_default();
    Some(GroupKind::new(group, policy.get("kind")?.as_str()?))
}

/// Returns the CRDs of a store.
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

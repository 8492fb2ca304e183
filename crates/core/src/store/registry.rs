//! The profile of each kind. Configured profiles override built-in ones, which override derived ones
//! (specification 2.1).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::{Rule, Store};
use crate::model::{GroupKind, Object, Str, groups};
use crate::profile::{
    DeclaredRouteKind, Membership, PolicyLabel, PolicySection, Profile, ProfileDocument,
    ProfileError, ProfileOrigin, built_in, parse_value, resolved_built_in,
};

/// The profile documents that do not come from the store: built-in ones and those of files. Clones
/// share the documents.
#[derive(Clone, Debug, Default)]
pub struct ProfileSources {
    has_built_in: bool,
    configured: Arc<Vec<(String, ProfileDocument)>>,
    aliases: Arc<Vec<ControllerAlias>>,
    assumed_classes: Arc<BTreeMap<Str, Str>>,
    complete_kinds: Arc<BTreeSet<GroupKind>>,
}

/// Configures which profiles describe the policies of a controller with a name of its own (specification
/// 2.6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerAlias {
    /// The `controllerName` of GatewayClasses.
    pub controller: Str,
    /// The API group of policy kinds, or a controller that profiles list.
    pub profiles: Str,
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
            has_built_in: true,
            ..Self::default()
        }
    }

    /// Adds documents of files, each with its location.
    pub fn configure(&mut self, documents: impl IntoIterator<Item = (String, ProfileDocument)>) {
        Arc::make_mut(&mut self.configured).extend(documents);
    }

    /// Adds aliases of controllers.
    pub fn add_aliases(&mut self, aliases: impl IntoIterator<Item = ControllerAlias>) {
        Arc::make_mut(&mut self.aliases).extend(aliases);
    }

    /// Sets the controller of a GatewayClass for worlds in which the class does not exist.
    pub fn assume_class(&mut self, class: Str, controller: Str) {
        Arc::make_mut(&mut self.assumed_classes).insert(class, controller);
    }

    /// Adds a kind of which worlds hold all objects (specification 5.7).
    pub fn assume_complete(&mut self, kind: GroupKind) {
        Arc::make_mut(&mut self.complete_kinds).insert(kind);
    }

    /// The kinds of which worlds hold all objects.
    pub fn complete_kinds(&self) -> &Arc<BTreeSet<GroupKind>> {
        &self.complete_kinds
    }

    /// The aliases of controllers.
    pub fn aliases(&self) -> &[ControllerAlias] {
        &self.aliases
    }

    /// The controllers of GatewayClasses that do not exist.
    pub fn assumed_classes(&self) -> &BTreeMap<Str, Str> {
        &self.assumed_classes
    }

    /// Resolves all profiles against a store. PolicyProfile objects count as configured; CRDs give
    /// classes and derived profiles.
    pub fn resolve(&self, store: &Store) -> ProfileRegistry {
        let crds: Vec<Crd> = crds(store).collect();
        let label = |kind: &GroupKind| {
            let resource = kind.resource();
            let crd = crds.iter().find(|crd| crd.kind == resource);
            crd.and_then(|crd| crd.label)
        };
        let mut registry = ProfileRegistry::default();
        for crd in &crds {
            let Some(label) = crd.label else { continue };
            match Profile::derive(&crd.kind, &crd.name, crd.cluster_scoped, label) {
                Ok(profile) => registry.insert(Arc::new(profile)),
                Err(problem) => registry.problems.push(problem),
            }
        }
        if self.has_built_in {
            registry.add_built_in(&label);
        }
        let mut configured = self.configured.to_vec();
        configured.extend(registry.documents_of(store));
        registry.add_configured(&configured, &label);
        registry
    }
}

impl ProfileRegistry {
    /// Adds the kinds without a profile whose objects look like policies, or that filters of route rules
    /// reference (specification 2.7). Kinds of which only the targets were read count as kinds without a
    /// profile.
    pub(crate) fn add_unprofiled(&mut self, store: &Store) {
        // A source may have read a kind for its targets alone, before it had a profile.
        self.profiles.retain(|_, profile| {
            let mut objects = store.of_kind(profile.resource());
            !objects.any(|(_, entry)| entry.object.is_targets_only())
        });
        let mut sections: BTreeMap<GroupKind, Vec<PolicySection>> = BTreeMap::new();
        for profile in self.profiles.values() {
            if let Membership::Section(section) = &profile.membership {
                let of_resource = sections.entry(profile.resource().clone()).or_default();
                of_resource.push(section.clone());
            }
        }
        let no_sections = Vec::new();
        let sections_of = |kind: &GroupKind| sections.get(kind).unwrap_or(&no_sections);
        let is_known = |kind: &GroupKind| {
            self.profiles.contains_key(kind)
                || self.refused.contains(kind)
                || store.affects_topology(kind)
        };
        let kinds = store.kinds().filter(|kind| {
            let mut objects = store.of_kind(kind);
            let is_outside = |object: &Object| {
                let mut sections = sections_of(kind).iter();
                object.has_target_reference() && !sections.any(|section| section.holds(object))
            };
            !is_known(kind) && objects.any(|(_, entry)| is_outside(&entry.object))
        });
        let mut kinds: BTreeSet<GroupKind> = kinds.cloned().collect();
        for (_, route) in store.routes() {
            let filters = route.rules.iter().flat_map(Rule::all_extensions);
            let filters = filters.map(|filter| &filter.kind);
            kinds.extend(filters.filter(|kind| !is_known(kind)).cloned());
        }
        for kind in kinds {
            match Profile::unprofiled(&kind, sections_of(&kind).clone()) {
                Ok(profile) => {
                    self.profiles.insert(kind, Arc::new(profile));
                }
                Err(problem) => self.problems.push(problem),
            }
        }
    }

    /// Adds a profile. Profiles of the resource kind as a whole, or of its sections, give way to one of a source
    /// with precedence (specification 2.14).
    fn insert(&mut self, profile: Arc<Profile>) {
        let is_whole = |profile: &Profile| profile.policy == *profile.resource();
        self.profiles.retain(|_, other| {
            other.resource() != profile.resource() || is_whole(other) == is_whole(&profile)
        });
        self.profiles.insert(profile.policy.clone(), profile);
    }

    fn add_built_in(&mut self, label: &dyn Fn(&GroupKind) -> Option<PolicyLabel>) {
        let documents = built_in().iter().flatten();
        for ((location, document), resolved) in documents.zip(resolved_built_in()) {
            let found = match label(&document.policy()) {
                None => resolved.clone(),
                label => Profile::resolve(document, ProfileOrigin::BuiltIn, label, location)
                    .map(Arc::new),
            };
            match found {
                Ok(profile) => self.insert(profile),
                Err(problem) => self.problems.push(problem),
            }
        }
    }

    /// Reads the Routes of the kinds that profiles declare (specification 1.9). If two profiles differ about one, that of
    /// the first policy kind counts.
    pub(crate) fn declare_route_kinds(&mut self, store: &mut Store) {
        let mut kinds: BTreeMap<GroupKind, (DeclaredRouteKind, Str)> = BTreeMap::new();
        let mut problems = Vec::new();
        for profile in self.profiles.values() {
            for declared in &profile.route_kinds {
                let (first, by) = kinds
                    .entry(declared.kind.clone())
                    .or_insert_with(|| (declared.clone(), profile.name.clone()));
                if first != declared {
                    let reason = format!(
                        "routeKinds: profile `{by}` says something else of `{}`, and counts: make them equal",
                        declared.kind
                    );
                    problems.push(ProfileError::new(profile.name.to_string(), reason));
                }
            }
        }
        self.problems.extend(problems);
        let kinds = kinds.into_iter();
        let kinds: BTreeMap<_, _> = kinds
            .map(|(kind, (declared, _))| (kind, declared))
            .collect();
        let generators = kinds.values().filter(|declared| declared.generates);
        let present = generators.filter(|declared| store.count(&declared.kind) > 0);
        let generators: Arc<[_]> = present
            .map(|declared| (declared.kind.clone(), declared.like.clone()))
            .collect();
        if !generators.is_empty() {
            for profile in self.profiles.values_mut() {
                Arc::make_mut(profile).generators = Arc::clone(&generators);
            }
        }
        store.declare_route_kinds(kinds);
    }

    /// Reads the ControllerAlias objects of a store, with their places, and records the malformed ones as problems.
    pub(crate) fn aliases_of(&mut self, store: &Store) -> Vec<(ControllerAlias, String)> {
        let kind = GroupKind::new(groups::ENTAIL, "ControllerAlias");
        let mut aliases = Vec::new();
        for ((_, name), entry) in store.of_kind(&kind) {
            let location = match &entry.object.location {
                Some(location) => location.to_string(),
                None => format!("ControllerAlias/{name}"),
            };
            let spec = entry.object.body.get("spec");
            let text = |field: &str| {
                let value = spec.as_ref()?.get(field)?;
                value.as_str().filter(|text| !text.is_empty())
            };
            match (text("controllerName"), text("profiles")) {
                (Some(controller), Some(profiles)) => {
                    let alias = ControllerAlias {
                        controller: controller.into(),
                        profiles: profiles.into(),
                    };
                    aliases.push((alias, location));
                }
                _ => self.problems.push(ProfileError::of_alias(
                    location,
                    "set `spec.controllerName` and `spec.profiles`".to_owned(),
                )),
            }
        }
        aliases
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
            let body = entry.object.body.value();
            match parse_value(&body, &location) {
                Ok(document) => documents.push((location, document)),
                Err(problem) => {
                    self.problems.push(problem);
                    self.refuse(policy_of(&body));
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
            let is_same = |other: &GroupKind| {
                let resource = kind.resource();
                let overlaps = *other == resource || kind == resource;
                *other == kind || (overlaps && other.resource() == resource)
            };
            let duplicate = documents
                .iter()
                .find(|(_, other)| !std::ptr::eq(other, document) && is_same(&other.policy()));
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
                Ok(profile) => self.insert(Arc::new(profile)),
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
            let resource = kind.resource();
            let is_whole = kind == resource;
            self.profiles.retain(|other, profile| {
                let stays = *other != kind && (!is_whole && *other != resource);
                *profile.resource() != resource || stays
            });
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
    let kind = GroupKind::new(group, policy.get("kind")?.as_str()?);
    let section = policy.pointer("/section/name").and_then(Value::as_str);
    Some(match section {
        Some(section) => kind.with_section(section),
        None => kind,
    })
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
                cluster_scoped: scope.as_ref().and_then(Value::as_str) == Some("Cluster"),
                label: PolicyLabel::read(&object.labels),
            })
        })
        .collect();
    crds.into_iter()
}

//! Computes effective policies by the rules of `docs/specification.md`.
//!
//! [`World::from_store`] reads a store from scratch. [`World::answer`] computes the effective policy of
//! an [`AttachmentChain`]: the nodes of a path that have policies. Equal chains have equal answers. The
//! engine finds the chains of all paths.

pub(crate) mod acceptance;
mod acting;
mod answer;
mod answer_key;
pub(crate) mod chain;
mod controllers;
pub(crate) mod delegation;
mod direct;
pub(crate) mod enforcement;
mod explain;
#[cfg(any(test, feature = "judge"))]
#[doc(hidden)]
pub mod judge;
mod limits;
mod listed;
mod losses;
mod merge_check;
mod own;
mod parameters;
pub(crate) mod policy_table;
mod schemas;
mod stack;
mod status;
mod unknown;
mod volatile_fields;
pub(crate) mod waypoints;

pub use acting::ActingObjects;
pub(crate) use acting::AnswerSources;
pub use answer::FoldedChain;
pub use answer_key::{AnswerKey, SharedGroups};
pub use controllers::{Activity, Controllers, UnknownController};
pub use explain::{AttachedPolicy, NodeAttachments};
pub use status::{PolicyStatus, Statuses};
pub use waypoints::PathRoot;
pub(crate) use waypoints::WaypointVersions;

use std::sync::{Arc, OnceLock};

use self::delegation::DelegatedNodes;
use self::limits::ReplacedNodes;
use self::policy_table::{NodeTable, PolicyTable};
use self::schemas::KindSchemas;
use self::waypoints::{WaypointTable, services_behind_waypoints};
use crate::attach::{AttachmentGroup, PolicyAttachment, attach, with_references};
use crate::model::{
    GroupKind, InternalError, NodeKey, Object, Outcome, PathErrorReason, PathName, SourceState, Str,
};
use crate::profile::{
    LimitSet, Policy, PolicyClass, Profile, ProfileError, is_routing_filter, read_policy,
};
use crate::store::{ProfileSources, Store};
use crate::topology::{NodeId, PathStep, ResolvedPath, RootController, Topology};

/// The objects of a store, their topology, and the policies of every kind on the nodes that they are
/// attached to, after conflicts are resolved. A clone shares all data; a later change to either copies
/// only what it changes.
#[derive(Clone, Debug)]
pub struct World {
    pub(crate) store: Store,
    pub(crate) topology: Arc<Topology>,
    pub(crate) kinds: Vec<Arc<PolicyKind>>,
    pub(crate) refused: Arc<[GroupKind]>,
    pub(crate) problems: Arc<[ProfileError]>,
    pub(crate) profiles: Arc<ProfileSources>,
    /// The controllers that profiles and the configuration name.
    pub(crate) controllers: Controllers,
    /// Where policies take the place of others that enforce other kinds (specification 2.10).
    pub(crate) replaced: Vec<ReplacedNodes>,
}

/// A policy kind: its profile, its policies, and the nodes that they are attached to.
#[derive(Clone, Debug)]
pub struct PolicyKind {
    pub(crate) profile: Arc<Profile>,
    pub(crate) table: PolicyTable,
    /// The CRD of the kind.
    pub(crate) definition: Option<Arc<Object>>,
    /// The schemas of the rules from the CRD, by block.
    pub(crate) schemas: Arc<KindSchemas>,
    /// The policies on each node.
    pub(crate) nodes: NodeTable,
    /// The waypoints of mesh roots, if the kind has waypoints (specification 2.12).
    pub(crate) waypoints: Option<Arc<WaypointTable>>,
    /// The internal error that makes the kind UNKNOWN, if there is one. All clones share it.
    pub(crate) fault: Arc<OnceLock<InternalError>>,
}

/// The policies of a kind that are attached to a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct NodePolicies {
    /// Accepted policies in groups, from less to more specific; in a group the most established first. In an
    /// empty group a rejected policy keeps others out (specification 7.6).
    pub(crate) groups: PolicyGroups,
    /// Policies that are not accepted (specification 9.4).
    pub(crate) rejected: Box<[NodeRejection]>,
    /// The limits of the kind that concern attachments to the node's object (specification 2.10).
    pub(crate) limits: LimitSet,
    /// The position, among the targets of the kind, of the one that policies on the node are checked by after they
    /// were merged (specification 2.13).
    pub(crate) merge_check: Option<u32>,
}

/// Policies in groups, sorted by group. Most nodes have one group of one policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PolicyGroups(Box<[(AttachmentGroup, Box<[usize]>)]>);

/// A policy that is attached to a node but not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeRejection {
    pub(crate) group: AttachmentGroup,
    pub(crate) policy: usize,
    pub(crate) reason: String,
    pub(crate) message: String,
}

/// The nodes of a path that have policies of a kind. Equal chains have equal answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct AttachmentChain {
    /// Nodes with policies, from least to most specific.
    pub(crate) steps: Vec<PathStep>,
    /// The client namespace, if a policy for the clients of that namespace is attached to one of the
    /// nodes (specification 4.6).
    pub(crate) client: Option<Str>,
    /// The node whose object sets own fields that are merged (specification 6.4).
    pub(crate) own: Option<NodeId>,
    /// Whether the path ends above the kind's effective level.
    pub(crate) inherited_only: bool,
    /// Why it is not known whether the kind acts on the path; `None` if it acts (specification 2.6).
    pub(crate) unknown: Option<UnknownController>,
    /// The limits that hold on the path (specification 2.10).
    pub(crate) limits: LimitSet,
    /// The child Routes of a rule on the path, whose policies are not known (specification 1.8).
    pub(crate) delegated: Option<DelegatedNodes>,
    /// The nodes of each Route on the path whose policies its child Routes cannot override, from the root down
    /// (specification 1.8).
    pub(crate) preferred: Vec<Vec<NodeId>>,
}

impl World {
    /// Reads a store from scratch. The result depends on the objects alone, not on the order in which
    /// they arrived (specification 6.5).
    pub fn from_store(store: Store, profiles: &ProfileSources) -> Self {
        Self::read(store, profiles, None)
    }

    /// Reads the store of this world from scratch. Shares equal profiles, and policies whose objects did not change.
    pub(crate) fn rebuilt(&self) -> Self {
        Self::read(self.store.clone(), &self.profiles, Some(self))
    }

    fn read(mut store: Store, profiles: &ProfileSources, before: Option<&Self>) -> Self {
        store.assume_complete(profiles.complete_kinds());
        let mut registry = profiles.resolve(&store);
        registry.declare_route_kinds(&mut store);
        let controllers = Controllers::read(&mut registry, &store, profiles);
        registry.add_unprofiled(&store);
        let traits_of = |controller: &RootController| {
            controllers.routing_traits(registry.profiles.values(), controller)
        };
        let mut topology = Topology::build(&store, &traits_of);
        topology.add_node(NodeKey::root());
        let loaded = registry.profiles.values();
        for service in services_behind_waypoints(loaded, &store, &topology, &controllers) {
            topology.add_mesh_root(&service);
        }
        let mut kinds = Vec::with_capacity(registry.profiles.len());
        for profile in registry.profiles.into_values() {
            // Filters that are a part of routing for every Gateway are no policies (specification 2.7).
            if is_routing_filter(&profile.policy)
                && profile.is_unprofiled()
                && !controllers.may_act(&profile, &topology)
            {
                continue;
            }
            let known = before.and_then(|before| before.kind(&profile.policy));
            let known = known.filter(|known| *known.profile == *profile);
            let profile = known.map_or(profile, |known| Arc::clone(&known.profile));
            kinds.push(PolicyKind::read(profile, &store, &topology, known));
        }
        for kind in &kinds {
            for (service, client) in kind.clients() {
                topology.add_policy_client(&service, client);
            }
        }
        topology.shrink();
        for kind in &mut kinds {
            kind.resolve_conflicts(&topology);
        }
        WaypointTable::fill(&mut kinds, &store, &topology, &controllers);
        let kinds: Vec<Arc<PolicyKind>> = kinds.into_iter().map(Arc::new).collect();
        Self {
            store,
            topology: Arc::new(topology),
            replaced: ReplacedNodes::of_kinds(&kinds),
            kinds,
            refused: registry.refused.into_iter().collect(),
            problems: registry.problems.into(),
            profiles: Arc::new(profiles.clone()),
            controllers,
        }
    }

    /// The store that the world was read from.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The sources of profiles other than the store.
    pub fn profiles(&self) -> &ProfileSources {
        &self.profiles
    }

    /// The topology of the store.
    pub fn topology(&self) -> &Arc<Topology> {
        &self.topology
    }

    /// The kinds that have a profile, and those without one whose objects look like policies (specification
    /// 2.7), sorted.
    pub fn kinds(&self) -> &[Arc<PolicyKind>] {
        &self.kinds
    }

    /// The kinds that have a profile, sorted.
    pub fn profiled_kinds(&self) -> impl Iterator<Item = &PolicyKind> {
        let kinds = self.kinds.iter().map(|kind| &**kind);
        kinds.filter(|kind| !kind.is_unprofiled())
    }

    /// The controllers that profiles and the configuration name.
    pub fn controllers(&self) -> &Controllers {
        &self.controllers
    }

    /// The kinds whose profile is refused: they are UNKNOWN (specification 2.5).
    pub fn refused(&self) -> &[GroupKind] {
        &self.refused
    }

    /// The errors for which profiles are refused.
    pub fn problems(&self) -> &[ProfileError] {
        &self.problems
    }

    /// Finds a kind that has a profile.
    pub fn kind(&self, kind: &GroupKind) -> Option<&PolicyKind> {
        // They are sorted.
        let number = self
            .kinds
            .binary_search_by(|known| known.profile.policy.cmp(kind));
        let found = self.kinds.get(number.ok()?)?;
        (!found.is_unprofiled()).then_some(found)
    }

    /// The kinds with a profile whose policies are objects of a resource kind: one, or its sections
    /// (specification 2.14).
    pub fn kinds_of<'w>(&'w self, resource: &'w GroupKind) -> impl Iterator<Item = &'w PolicyKind> {
        let kinds = self.profiled_kinds();
        kinds.filter(move |kind| kind.profile.resource() == resource)
    }

    /// Whether all policies of a kind are known. UNKNOWN differs from a kind without policies
    /// (specification 2.3, 2.5).
    pub fn state(&self, kind: &GroupKind) -> SourceState {
        let Some(kind) = self.kind(kind).filter(|kind| kind.fault().is_none()) else {
            return SourceState::Unknown;
        };
        let own = self.store.state(kind.profile.resource());
        let other = self.dependency_state(kind).map(|(state, _)| state);
        own.max(other).unwrap_or(SourceState::Complete)
    }

    /// Resolves the name of a path to its steps.
    ///
    /// # Errors
    /// Returns the reason of the first step that fails (specification 1.4).
    pub fn locate(&self, path: &PathName<'_>) -> Result<ResolvedPath, PathErrorReason> {
        self.topology.locate(&self.store, path)
    }
}

impl PolicyKind {
    /// Reads the policies of a kind and resolves their references. `before` is the kind with the same profile in an
    /// earlier world.
    fn read(
        profile: Arc<Profile>,
        store: &Store,
        topology: &Topology,
        before: Option<&Self>,
    ) -> Self {
        let shared = before.map(|before| &before.table);
        // Where rules reference objects, policies depend on these, too.
        let known = shared.filter(|_| profile.references.is_empty());
        let mut policies: Vec<Arc<Policy>> = store
            .of_kind(profile.resource())
            .filter(|(_, entry)| profile.reads(&entry.object))
            .map(|(name, entry)| {
                let known = known.and_then(|known| known.of_object(name, &entry.object));
                known.unwrap_or_else(|| {
                    let policy = read_policy(&profile, &entry.object);
                    Arc::new(with_references(&profile, policy, store))
                })
            })
            .collect();
        if profile.is_unprofiled() {
            let missing = unknown::missing_filters(&profile, store);
            policies.extend(missing.into_iter().map(Arc::new));
        }
        let attached = attach(&profile, &policies, store, topology);
        let definition = World::definition(store, profile.resource());
        // A CRD is large, and its schema is the same in most rebuilds.
        let schemas = before.filter(|before| {
            let both = before.definition.as_ref().zip(definition.as_ref());
            both.is_some_and(|(one, other)| Arc::ptr_eq(one, other))
        });
        let schemas = match schemas {
            Some(before) => Arc::clone(&before.schemas),
            None => Arc::new(KindSchemas::of(&profile, definition.as_deref())),
        };
        let mut table = PolicyTable::default();
        for (slot, (policy, attached)) in policies.into_iter().zip(attached).enumerate() {
            table.put(slot, policy, attached, shared);
        }
        Self {
            schemas,
            definition,
            profile,
            table,
            nodes: NodeTable::default(),
            waypoints: None,
            fault: Arc::default(),
        }
    }

    /// The Services that have policies for the clients of one namespace, each with that namespace
    /// (specification 4.6).
    fn clients(&self) -> Vec<((Str, Str), Str)> {
        let attached = self.policies().filter_map(|(slot, _)| self.attached(slot));
        attached
            .flat_map(PolicyAttachment::nodes)
            .filter_map(|(node, group)| match group {
                AttachmentGroup::Clients(client) => {
                    let object = &node.object;
                    Some((
                        (object.namespace.clone(), object.name.clone()),
                        client.clone(),
                    ))
                }
                _ => None,
            })
            .collect()
    }

    /// Resolves conflicts and records the policies of each node.
    fn resolve_conflicts(&mut self, topology: &Topology) {
        let slots: Vec<usize> = self.policies().map(|(slot, _)| slot).collect();
        let resolution = acceptance::resolve_conflicts(
            &self.profile,
            self.schemas.borrow(),
            &self.table,
            slots,
            topology,
        );
        for (slot, lost) in resolution.losses_by_policy() {
            self.table.record_losses(slot, |_| true, lost);
        }
        let mut by_node: Vec<_> = resolution.by_node(&self.profile).into_iter().collect();
        by_node.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        for (key, on_node) in by_node {
            if let Some(node) = topology.node(&key) {
                self.nodes.put(node, on_node);
            }
        }
    }

    /// The kind's profile.
    pub fn profile(&self) -> &Arc<Profile> {
        &self.profile
    }

    /// The reason why no spec is computed for this kind, if there is one.
    pub fn not_computed(&self) -> Option<&'static str> {
        (self.profile.class == PolicyClass::Listed).then_some(listed::NOT_COMPUTED)
    }

    /// The outcome of a policy and its reason: `Accepted`, the outcome of its first reference, or the
    /// reason from the status that its controller wrote (specification 3.3, 3.4, 10).
    pub fn outcome(&self, policy: usize) -> (Outcome, String) {
        let Some(read) = self.policy_at(policy) else {
            return (Outcome::Invalid, String::new());
        };
        if self.is_unprofiled() {
            return (Outcome::NoProfile, Outcome::NoProfile.to_string());
        }
        if read.is_invalid() {
            return (Outcome::Invalid, Outcome::Invalid.to_string());
        }
        let outcome = self
            .attached(policy)
            .map_or(Outcome::Invalid, PolicyAttachment::outcome);
        match (&read.untrusted, &read.missing) {
            (Some(reason), _) if outcome == Outcome::Accepted => {
                (Outcome::Untrusted, reason.to_string())
            }
            (None, Some(missing)) if outcome == Outcome::Accepted => {
                (Outcome::Invalid, missing.reason.to_string())
            }
            _ => (outcome, outcome.to_string()),
        }
    }
}

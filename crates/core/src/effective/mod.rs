//! What an effective policy is: the specification, written to be read beside
//! `docs/specification.md`.
//!
//! [`World::from_store`] reads a store from scratch; [`World::answer`] returns what a chain of nodes with
//! policies comes to. The engine finds the chains of all paths. Equal chains have equal answers.

pub(crate) mod acceptance;
mod answer;
mod answer_key;
pub(crate) mod chain;
mod direct;
pub(crate) mod enforcement;
mod explain;
#[cfg(any(test, feature = "judge"))]
#[doc(hidden)]
pub mod judge;
mod listed;
mod losses;
mod own;
mod schemas;
mod stack;
pub(crate) mod standing;
mod status;

pub use answer_key::AnswerKey;
pub use explain::NodeAttachments;
pub use status::{PolicyStatus, Statuses};

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use self::schemas::KindSchemas;
use self::standing::{NodeTable, PolicyTable};
use crate::attach::{AttachmentGroup, PolicyAttachment, attach};
use crate::model::{
    GroupKind, InternalError, NodeKey, Object, Outcome, PathErrorReason, PathName, SourceState, Str,
};
use crate::profile::{Policy, PolicyClass, Profile, ProfileError, read_policy};
use crate::store::{ProfileSources, Store};
use crate::topology::{NodeId, PathStep, ResolvedPath, Topology};

/// Everything that is known, with the policies of every kind settled on their nodes.
/// A clone shares everything: it costs what is changed in either afterwards.
#[derive(Clone, Debug)]
pub struct World {
    pub(crate) store: Store,
    pub(crate) topology: Arc<Topology>,
    pub(crate) kinds: Vec<Arc<PolicyKind>>,
    pub(crate) refused: Arc<[GroupKind]>,
    pub(crate) problems: Arc<[ProfileError]>,
    pub(crate) profiles: Arc<ProfileSources>,
}

/// A policy kind, its policies and where they stand.
#[derive(Clone, Debug)]
pub struct PolicyKind {
    pub(crate) profile: Arc<Profile>,
    pub(crate) table: PolicyTable,
    /// The CRD.
    pub(crate) definition: Option<Arc<Object>>,
    /// Its schemas of the rules, by block.
    pub(crate) schemas: Arc<KindSchemas>,
    /// What stands on each node.
    pub(crate) nodes: NodeTable,
    /// What was missing that cannot be, if something was: all who share the kind see it.
    pub(crate) fault: Arc<OnceLock<InternalError>>,
}

/// What stands on a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct NodePolicies {
    /// Accepted ones in groups, from less to more specific; in a group the established first.
    pub(crate) groups: BTreeMap<AttachmentGroup, Vec<usize>>,
    /// Those that are not accepted (specification 9.4).
    pub(crate) rejected: Vec<NodeRejection>,
}

/// A policy that is attached to a node but not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeRejection {
    pub(crate) group: AttachmentGroup,
    pub(crate) policy: usize,
    pub(crate) reason: String,
    pub(crate) message: String,
}

/// The nodes of a path that matter to a kind: equal chains, equal answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct AttachmentChain {
    /// Nodes with policies, from least to most specific.
    pub(crate) steps: Vec<PathStep>,
    /// The client namespace, where a policy for its own clients stands on one of them.
    pub(crate) client: Option<Str>,
    /// The node whose object's own fields join (specification 6.4).
    pub(crate) own: Option<NodeId>,
    /// The path ends above the kind's effective level.
    pub(crate) inherited_only: bool,
}

impl World {
    /// Reads a store from scratch. Deterministic: order of arrival, map order and threads never
    /// change a byte (specification 6.5).
    pub fn from_store(store: Store, profiles: &ProfileSources) -> Self {
        let registry = profiles.resolve(&store);
        let mut topology = Topology::build(&store);
        topology.add_node(NodeKey::root());
        let mut kinds = Vec::with_capacity(registry.profiles.len());
        for profile in registry.profiles.into_values() {
            kinds.push(PolicyKind::read(profile, &store, &topology));
        }
        for kind in &kinds {
            for (service, client) in kind.clients() {
                topology.set_apart(&service, client);
            }
        }
        for kind in &mut kinds {
            kind.resolve_conflicts(&topology);
        }
        Self {
            store,
            topology: Arc::new(topology),
            kinds: kinds.into_iter().map(Arc::new).collect(),
            refused: registry.refused.into_iter().collect(),
            problems: registry.problems.into(),
            profiles: Arc::new(profiles.clone()),
        }
    }

    /// The objects that it was read from.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The profiles that were given beside the store.
    pub fn profiles(&self) -> &ProfileSources {
        &self.profiles
    }

    /// Its topology.
    pub fn topology(&self) -> &Arc<Topology> {
        &self.topology
    }

    /// The kinds that have a profile, sorted.
    pub fn kinds(&self) -> &[Arc<PolicyKind>] {
        &self.kinds
    }

    /// Kinds whose profile is refused: nothing can be said of them (specification 2.5).
    pub fn refused(&self) -> &[GroupKind] {
        &self.refused
    }

    /// Why profiles are refused.
    pub fn problems(&self) -> &[ProfileError] {
        &self.problems
    }

    /// The kind with a profile.
    pub fn kind(&self, kind: &GroupKind) -> Option<&PolicyKind> {
        let mut kinds = self.kinds.iter();
        kinds
            .find(|k| k.profile.policy == *kind)
            .map(|kind| &**kind)
    }

    /// What is known of a kind. An unknown kind is not the same answer as no policy
    /// (specification 2.3, 2.5).
    pub fn state(&self, kind: &GroupKind) -> SourceState {
        if self.kind(kind).is_none_or(|kind| kind.fault().is_some()) {
            return SourceState::Unknown;
        }
        self.store.state(kind).unwrap_or(SourceState::Complete)
    }

    /// The resolved path of a path.
    ///
    /// # Errors
    /// The first step that fails (specification 1.4).
    pub fn locate(&self, path: &PathName<'_>) -> Result<ResolvedPath, PathErrorReason> {
        self.topology.locate(&self.store, path)
    }
}

impl PolicyKind {
    /// Reads the policies of a kind and resolves their references.
    fn read(profile: Arc<Profile>, store: &Store, topology: &Topology) -> Self {
        let policies: Vec<Policy> = store
            .of_kind(&profile.policy)
            .map(|(_, entry)| read_policy(&profile, &entry.object))
            .collect();
        let attached = attach(&profile, &policies, store, topology);
        let definition = World::definition(store, &profile.policy);
        let mut table = PolicyTable::default();
        for (slot, (policy, attached)) in policies.into_iter().zip(attached).enumerate() {
            table.put(slot, policy, attached);
        }
        Self {
            schemas: Arc::new(KindSchemas::of(&profile, definition.as_deref())),
            definition,
            profile,
            table,
            nodes: NodeTable::default(),
            fault: Arc::default(),
        }
    }

    /// Services and the namespaces that policies for their own clients set apart on them.
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

    /// Settles conflicts and puts accepted policies on their nodes.
    fn resolve_conflicts(&mut self, topology: &Topology) {
        let slots: Vec<usize> = self.policies().map(|(slot, _)| slot).collect();
        let resolution = acceptance::resolve_conflicts(
            &self.profile,
            self.schemas.borrow(),
            &self.table.policies,
            &self.table.attachment_points,
            slots,
        );
        for (slot, lost) in resolution.lost_of() {
            self.table.lose(slot, |_| true, lost);
        }
        let mut found: Vec<_> = resolution.by_node().into_iter().collect();
        found.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        for (key, here) in found {
            if let Some(node) = topology.node(&key) {
                self.nodes.put(node, here);
            }
        }
    }

    /// The kind's profile.
    pub fn profile(&self) -> &Arc<Profile> {
        &self.profile
    }

    /// Why nothing is computed, if so.
    pub fn not_computed(&self) -> Option<&'static str> {
        (self.profile.class == PolicyClass::Listed).then_some(listed::NOT_COMPUTED)
    }

    /// The outcome of a policy and its reason: `Accepted`, the outcome of its first reference, or
    /// its controller's word (specification 3.3, 3.4, 10).
    pub fn outcome(&self, policy: usize) -> (Outcome, String) {
        let Some(read) = self.policy_at(policy) else {
            return (Outcome::Invalid, String::new());
        };
        if read.is_invalid() {
            return (Outcome::Invalid, Outcome::Invalid.to_string());
        }
        let outcome = self
            .attached(policy)
            .map_or(Outcome::Invalid, PolicyAttachment::outcome);
        match &read.untrusted {
            Some(reason) if outcome == Outcome::Accepted => (Outcome::Untrusted, reason.clone()),
            _ => (outcome, outcome.to_string()),
        }
    }
}

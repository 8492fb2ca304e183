//! What an effective policy is: the specification, written to be read beside
//! `docs/semantics.md`.
//!
//! [`World::full`] reads a store from scratch; [`World::frames`] says which nodes of a path matter
//! to a kind, and [`World::answer`] what they come to. Equal frames have equal answers.

pub(crate) mod acceptance;
mod answer;
mod direct;
mod explain;
mod listed;
mod losses;
mod own;
mod question;
mod schemas;
pub(crate) mod scope;
mod stack;
mod status;
mod tally;

pub use explain::AttachedHere;
pub use question::Question;
pub use status::{PolicyStatus, Statuses};

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashMap;

use self::acceptance::Place;
use self::schemas::OwnSchemas;
use crate::attach::{Attached, Group, attach};
use crate::model::{
    GroupKind, NodeKey, Object, ObjectKey, Outcome, PathName, PathReason, SourceState, Str,
};
use crate::profile::{Class, Policy, Profile, ProfileError, read_policy};
use crate::store::{Profiles, Store};
use crate::topology::{NodeId, Step, Topology, Trail};

/// Everything that is known, with the policies of every kind settled on their nodes.
#[derive(Debug)]
pub struct World {
    pub(crate) store: Store,
    pub(crate) topology: Arc<Topology>,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) refused: Vec<GroupKind>,
    pub(crate) problems: Vec<ProfileError>,
    pub(crate) profiles: Profiles,
}

/// A policy kind, its policies and where they stand.
#[derive(Debug)]
pub struct Kind {
    pub(crate) profile: Arc<Profile>,
    pub(crate) policies: Vec<Policy>,
    pub(crate) attached: Vec<Attached>,
    /// Where the references of each policy point, before conflicts are settled.
    pub(crate) places: Vec<Vec<Place>>,
    /// The CRD.
    pub(crate) definition: Option<Arc<Object>>,
    /// Its schemas of the rules, by block.
    pub(crate) schemas: OwnSchemas,
    /// Accepted policies of each node.
    pub(crate) nodes: HashMap<NodeId, NodePolicies>,
}

/// What stands on a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct NodePolicies {
    /// Accepted ones in groups, from less to more specific; in a group the established first.
    pub(crate) groups: BTreeMap<Group, Vec<usize>>,
    /// Those that are not accepted (SEMANTICS §9.4).
    pub(crate) rejected: Vec<RejectedHere>,
}

/// A policy that is attached to a node but not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RejectedHere {
    pub(crate) group: Group,
    pub(crate) policy: usize,
    pub(crate) reason: String,
    pub(crate) message: String,
}

/// The nodes of a path that matter to a kind: equal frames, equal answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Frames {
    /// Nodes with policies, from least to most specific.
    pub(crate) steps: Vec<Step>,
    /// The client namespace, where a policy for its own clients stands on one of them.
    pub(crate) client: Option<Str>,
    /// The node whose object's own fields join (SEMANTICS §6.4).
    pub(crate) own: Option<NodeId>,
    /// The path ends above the kind's effective level.
    pub(crate) inherited_only: bool,
}

impl World {
    /// Reads a store from scratch. Deterministic: order of arrival, map order and threads never
    /// change a byte (SEMANTICS §6.5).
    pub fn full(store: Store, profiles: &Profiles) -> Self {
        let registry = profiles.resolve(&store);
        let mut topology = Topology::build(&store);
        topology.add_node(NodeKey::root());
        let mut kinds = Vec::with_capacity(registry.profiles.len());
        for profile in registry.profiles.into_values() {
            kinds.push(Kind::read(profile, &store, &topology));
        }
        for kind in &kinds {
            for (service, client) in kind.clients() {
                topology.set_apart(&service, client);
            }
        }
        for kind in &mut kinds {
            kind.settle(&topology);
        }
        Self {
            store,
            topology: Arc::new(topology),
            kinds,
            refused: registry.refused.into_iter().collect(),
            problems: registry.problems,
            profiles: profiles.clone(),
        }
    }

    /// The objects that it was read from.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The profiles that were given beside the store.
    pub fn profiles(&self) -> &Profiles {
        &self.profiles
    }

    /// Its topology.
    pub fn topology(&self) -> &Arc<Topology> {
        &self.topology
    }

    /// The kinds that have a profile, sorted.
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// Kinds whose profile is refused: nothing can be said of them (SEMANTICS §2.5).
    pub fn refused(&self) -> &[GroupKind] {
        &self.refused
    }

    /// Why profiles are refused.
    pub fn problems(&self) -> &[ProfileError] {
        &self.problems
    }

    /// The kind with a profile.
    pub fn kind(&self, kind: &GroupKind) -> Option<&Kind> {
        self.kinds.iter().find(|k| k.profile.policy == *kind)
    }

    /// What is known of a kind. An unknown kind is not the same answer as no policy
    /// (SEMANTICS §2.3, §2.5).
    pub fn state(&self, kind: &GroupKind) -> SourceState {
        if self.kind(kind).is_none() {
            return SourceState::Unknown;
        }
        self.store.state(kind).unwrap_or(SourceState::Complete)
    }

    /// The trail of a path.
    ///
    /// # Errors
    /// The first step that fails (SEMANTICS §1.4).
    pub fn locate(&self, path: &PathName<'_>) -> Result<Trail, PathReason> {
        self.topology.locate(&self.store, path)
    }
}

impl Kind {
    /// Reads the policies of a kind and resolves their references.
    fn read(profile: Arc<Profile>, store: &Store, topology: &Topology) -> Self {
        let policies: Vec<Policy> = store
            .of_kind(&profile.policy)
            .map(|(_, entry)| read_policy(&profile, &entry.object))
            .collect();
        let attached = attach(&profile, &policies, store, topology);
        let definition = World::definition(store, &profile.policy);
        Self {
            schemas: OwnSchemas::of(&profile, definition.as_deref()),
            definition,
            places: attached.iter().map(acceptance::places).collect(),
            profile,
            policies,
            attached,
            nodes: HashMap::new(),
        }
    }

    /// Services and the namespaces that policies for their own clients set apart on them.
    fn clients(&self) -> Vec<((Str, Str), Str)> {
        self.attached
            .iter()
            .flat_map(Attached::nodes)
            .filter_map(|(node, group)| match group {
                Group::Clients(client) => {
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
    fn settle(&mut self, topology: &Topology) {
        let settled = acceptance::settle(
            &self.profile,
            self.schemas.borrow(),
            &self.policies,
            &self.places,
            (0..self.policies.len()).collect(),
        );
        for (loser, place, message) in &settled.lost {
            if let Some(own) = self.attached.get_mut(*loser) {
                acceptance::lose(own, place, message);
            }
        }
        let found = settled.by_node().into_iter();
        let nodes = found.filter_map(|(key, here)| Some((topology.node(&key)?, here)));
        self.nodes = nodes.collect();
    }

    /// The kind's profile.
    pub fn profile(&self) -> &Arc<Profile> {
        &self.profile
    }

    /// Its policies, by namespace and name.
    pub fn policies(&self) -> &[Policy] {
        &self.policies
    }

    /// Why nothing is computed, if so.
    pub fn not_computed(&self) -> Option<&'static str> {
        (self.profile.class == Class::Listed).then_some(listed::REASON)
    }

    /// What the references of a policy came to.
    pub fn attached(&self, policy: usize) -> Option<&Attached> {
        self.attached.get(policy)
    }

    /// The outcome of a policy and its reason: `Accepted`, the outcome of its first reference, or
    /// its controller's word (SEMANTICS §3.3, §3.4, §10).
    pub fn outcome(&self, policy: usize) -> (Outcome, String) {
        let Some(read) = self.policies.get(policy) else {
            return (Outcome::Invalid, String::new());
        };
        if read.is_invalid() {
            return (Outcome::Invalid, Outcome::Invalid.to_string());
        }
        let outcome = self
            .attached
            .get(policy)
            .map_or(Outcome::Invalid, Attached::outcome);
        match &read.untrusted {
            Some(reason) if outcome == Outcome::Accepted => (Outcome::Untrusted, reason.clone()),
            _ => (outcome, outcome.to_string()),
        }
    }

    /// The index of a policy.
    pub fn policy(&self, key: &ObjectKey) -> Option<usize> {
        self.policies.iter().position(|p| p.key == *key)
    }
}

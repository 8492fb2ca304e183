//! Computes the attachment chain of a kind step by step, on the way down a path.
//!
//! The judge computes the same chain from a whole resolved path with `World::attachment_chain`. The engine
//! works by steps because paths with equal chain states continue alike. Tests compare the two.

use smallvec::SmallVec;

use crate::effective::delegation::DelegatedNodes;
use crate::effective::waypoints::ServiceAttachments;
use crate::effective::{Activity, AttachmentChain, PolicyKind, World};
use crate::model::{Level, NodeKey, Str};
use crate::profile::{EffectiveTarget, LimitSet, MetConditions, PolicyClass};
use crate::topology::{NodeId, PathStep, RootKind};

/// The attachment chain of a kind after some steps of a path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct ChainState {
    /// Whether the kind acts on this path (specification 2.4, 2.6).
    activity: Activity,
    /// Nodes with policies, from least to most specific.
    steps: SmallVec<[PathStep; 4]>,
    /// Whether a policy for the clients of this path's namespace is attached to one of the nodes
    /// (specification 4.6).
    own_clients: bool,
    /// The node whose object sets own fields that are merged (specification 6.4).
    own: Option<NodeId>,
    /// The conditions of the kind's limits that the path has met.
    met: MetConditions,
    /// The limits that hold on the path (specification 2.10).
    limits: LimitSet,
    /// The attachments to Services that count on the path (specification 2.12).
    services: ServiceAttachments,
    /// What few paths have; `None` if there is nothing.
    rare: Option<Box<RareState>>,
}

/// What few chain states have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct RareState {
    /// Namespaces above earlier nodes of the path, for a Direct kind that can target Namespaces.
    layer_namespaces: Vec<NodeId>,
    /// The child Routes of a rule on the path whose policies are not known (specification 1.8).
    delegated: Option<DelegatedNodes>,
    /// The nodes of each Route on the path whose policies its child Routes cannot override (specification 1.8).
    preferred: Vec<Vec<NodeId>>,
}

/// How the chain of a kind starts at a root.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ChainStart {
    /// Whether the kind acts on the paths of the root.
    pub activity: Activity,
    /// The conditions of limits that the root meets.
    pub met: MetConditions,
    /// The attachments to Services that count.
    pub services: ServiceAttachments,
}

/// The effect of a trie node on the chain state of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct ChainEffect {
    /// The Namespace above the node, if it has policies or can be the target of a Direct kind.
    namespace: Option<NodeId>,
    /// Whether the Namespace replaces the chain of a Direct kind (specification 7.4).
    namespace_is_layer: bool,
    /// The node, if it has policies.
    node: Option<NodeId>,
    /// Whether the node's object replaces the chain of a Direct kind (specification 7.4).
    is_layer: bool,
    /// The level whose nodes do not apply from here on (specification 7.5, 7.6).
    drops: Option<Level>,
    /// The node, if its object sets own fields.
    own: Option<NodeId>,
    /// Whether the kind merges own fields: those of the last node only, so each node replaces them.
    reads_own_fields: bool,
    /// The conditions of limits that the node meets.
    met: MetConditions,
    /// The child Routes of the node, if it is a rule, and their policies are not known (specification 1.8).
    pub(super) delegated: Option<DelegatedNodes>,
    /// The nodes of the Route that delegates here whose policies the child Routes cannot override.
    pub(super) preferred: Vec<NodeId>,
}

/// One step down a path.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepContext {
    pub node: NodeId,
    pub level: Level,
    pub root: RootKind,
}

impl World {
    /// The effect of a step on the chain state of a kind; `None` if it has none.
    pub(super) fn effect(&self, kind: &PolicyKind, step: StepContext) -> Option<ChainEffect> {
        let profile = &*kind.profile;
        if let EffectiveTarget::Level(level) = profile.effective
            && step.level > level
            && step.root != RootKind::Namespace
        {
            // Policies on nodes below the effective level never act (specification 2.3).
            return None;
        }
        let key = self.topology().key(step.node);
        let whole = key.section.is_none();
        let direct = profile.class == PolicyClass::Direct;
        let is_layer = |key: &NodeKey| direct && profile.targets_object(&key.object.kind);
        let reached = whole && profile.namespace_reaches.contains(&step.level);
        let above = self
            .topology()
            .namespace(&key.object.namespace)
            .filter(|_| reached);
        let namespace_is_layer = above.is_some_and(|ns| is_layer(self.topology().key(ns)));
        let namespace = above.filter(|ns| kind.nodes.contains_key(ns) || namespace_is_layer);
        // For a Direct kind, policies of a section count only if the kind can target its object.
        let is_relevant = !direct || is_layer(key);
        // Without policies there is no answer that own fields could change.
        let reads_own_fields = !profile.own_fields.is_empty() && !kind.nodes.is_empty();
        let effect = ChainEffect {
            namespace,
            namespace_is_layer,
            node: Some(step.node).filter(|node| is_relevant && kind.nodes.contains_key(node)),
            is_layer: whole && is_layer(key) && !kind.joins_gateway(step.level),
            drops: kind.dropped_at(self.topology(), step.node, step.level),
            own: Some(step.node)
                .filter(|&node| reads_own_fields && self.sets_own_fields(kind, node)),
            reads_own_fields,
            met: self.met_conditions(profile, step.node, step.level),
            delegated: None,
            preferred: Vec::new(),
        };
        (effect != ChainEffect::default()).then_some(effect)
    }

    /// Whether the object of a node sets own fields of the kind.
    fn sets_own_fields(&self, kind: &PolicyKind, node: NodeId) -> bool {
        let chain = AttachmentChain {
            own: Some(node),
            ..AttachmentChain::default()
        };
        self.own_rules(kind, &chain).is_some()
    }
}

impl ChainState {
    /// The chain state of a kind at the beginning of a path. Policies of the root namespace are above all
    /// others (specification 3.1).
    pub fn start(kind: &PolicyKind, start: ChainStart, root: Option<NodeId>, client: &Str) -> Self {
        let ChainStart {
            activity,
            met,
            services,
        } = start;
        let mut chain_state = ChainState {
            activity,
            met,
            services,
            limits: kind.profile.limits.holding(met),
            ..ChainState::default()
        };
        if chain_state.activity != Activity::Inactive
            && kind.profile.class != PolicyClass::Direct
            && kind.profile.root_namespace.is_some()
            && let Some(root) = root
        {
            chain_state.push(kind, root, Level::Root, client);
        }
        chain_state
    }

    /// The chain state after one more step.
    pub fn after(
        &self,
        kind: &PolicyKind,
        effect: &ChainEffect,
        level: Level,
        client: &Str,
    ) -> Self {
        let mut chain_state = self.clone();
        if chain_state.activity == Activity::Inactive {
            return chain_state;
        }
        chain_state.met.add(effect.met);
        chain_state.limits = kind.profile.limits.holding(chain_state.met);
        // All policies count where it is not known whether the kind acts.
        let replaces = chain_state.activity.is_active();
        if let Some(namespace) = effect.namespace {
            let step = PathStep {
                node: namespace,
                level: Level::Namespace,
            };
            let is_layer = effect.namespace_is_layer && replaces;
            let is_known = |rare: &RareState| rare.layer_namespaces.contains(&namespace);
            if is_layer && !chain_state.rare.as_deref().is_some_and(is_known) {
                let rare = chain_state.rare.get_or_insert_default();
                rare.layer_namespaces.push(namespace);
                chain_state.clear();
                chain_state.push(kind, namespace, Level::Namespace, client);
            } else if !is_layer
                && (kind.profile.class != PolicyClass::Direct || !replaces)
                && !chain_state.steps.contains(&step)
            {
                chain_state.push(kind, namespace, Level::Namespace, client);
            }
        }
        if let Some(level) = effect.drops.filter(|_| replaces) {
            chain_state.steps.retain(|step| step.level != level);
        }
        if effect.is_layer && replaces {
            chain_state.clear();
        }
        if let Some(node) = effect.node.filter(|_| chain_state.services.includes(level)) {
            chain_state.push(kind, node, level, client);
        }
        if let Some(delegated) = &effect.delegated {
            let rare = chain_state.rare.get_or_insert_default();
            rare.delegated.get_or_insert_with(|| delegated.clone());
        }
        if !effect.preferred.is_empty() {
            let rare = chain_state.rare.get_or_insert_default();
            rare.preferred.push(effect.preferred.clone());
        }
        if effect.reads_own_fields {
            chain_state.own = effect.own;
        }
        chain_state
    }

    fn clear(&mut self) {
        self.steps.clear();
        self.own_clients = false;
    }

    /// Adds a node to the chain, if some policy on it concerns the client.
    fn push(&mut self, kind: &PolicyKind, node: NodeId, level: Level, client: &Str) {
        let Some(on_node) = kind.nodes.get(&node) else {
            return;
        };
        let own_clients = on_node.is_for(client);
        if own_clients || on_node.is_for_all() {
            self.own_clients |= own_clients;
            self.steps.push(PathStep { node, level });
        }
    }

    /// Whether the chain depends on the client namespace.
    pub fn is_for_clients(&self) -> bool {
        self.own_clients
    }

    /// The nodes of the chain.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> {
        let delegated = self.delegated().into_iter();
        let delegated = delegated.flat_map(|found| found.nodes.iter());
        let steps = self.steps.iter().map(|step| step.node);
        steps.chain(delegated.copied())
    }

    fn delegated(&self) -> Option<&DelegatedNodes> {
        self.rare.as_ref()?.delegated.as_ref()
    }

    /// The attachment chain; `None` if it is empty.
    pub fn attachment_chain(&self, inherited_only: bool, client: &Str) -> Option<AttachmentChain> {
        let delegated = self.delegated();
        let of_children = delegated.is_some_and(|found| !found.nodes.is_empty());
        (!self.steps.is_empty() || of_children).then(|| AttachmentChain {
            steps: self.steps.to_vec(),
            client: self.own_clients.then(|| client.clone()),
            own: self.own,
            inherited_only,
            unknown: self.activity.unknown().cloned(),
            limits: self.limits,
            delegated: delegated.cloned(),
            preferred: self
                .rare
                .as_ref()
                .map(|rare| rare.preferred.clone())
                .unwrap_or_default(),
        })
    }
}

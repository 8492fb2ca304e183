//! A kind's way down a path, step by step: what [`World::attachment_chain`] says of a
//! whole resolved path at once. The engine goes this way, since paths that went alike so far go alike from
//! here on; the tests hold one against the other.

use crate::effective::{AttachmentChain, PolicyKind, World};
use crate::model::{Level, NodeKey, Str};
use crate::profile::{EffectiveTarget, PolicyClass};
use crate::topology::{NodeId, PathStep, RootKind};

/// Where a kind stands after some steps of a path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct ChainState {
    /// The kind does not act on this path (specification 2.4).
    inactive: bool,
    /// Nodes with policies, from least to most specific.
    steps: Vec<PathStep>,
    /// A policy for its own clients stands on one of them.
    own_clients: bool,
    /// The node whose object's own fields join (specification 6.4).
    own: Option<NodeId>,
    /// Namespaces that stood on the path already, where they can be a Direct kind's layer.
    layer_namespaces: Vec<NodeId>,
}

/// What a place does to a kind's chain state; equal effects lead the same way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct ChainEffect {
    /// The Namespace that stands above the node, if it has policies or is a layer.
    namespace: Option<NodeId>,
    /// It is the layer of a Direct kind from here on (specification 7.4).
    namespace_is_layer: bool,
    /// The node, if it has policies.
    node: Option<NodeId>,
    /// Its object is the layer of a Direct kind from here on.
    is_layer: bool,
    /// The node whose own fields join, if it sets some.
    own: Option<NodeId>,
    /// Own fields are those of the last node: what was above does not count.
    reads_own_fields: bool,
}

/// A step that is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepContext {
    pub node: NodeId,
    pub level: Level,
    pub root: RootKind,
}

impl World {
    /// What a place does to the chain state of a kind; `None` for nothing.
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
        let is_layer = |key: &NodeKey| direct && profile.target(&key.object.kind).is_some();
        let reached = whole && profile.namespace_reaches.contains(&step.level);
        let above = self
            .topology()
            .namespace(&key.object.namespace)
            .filter(|_| reached);
        let namespace_is_layer = above.is_some_and(|ns| is_layer(self.topology().key(ns)));
        let namespace = above.filter(|ns| kind.nodes.contains_key(ns) || namespace_is_layer);
        // A section belongs to a Direct kind's layer if its object does.
        let is_relevant = !direct || is_layer(key);
        let reads_own_fields = !profile.own_fields.is_empty();
        let effect = ChainEffect {
            namespace,
            namespace_is_layer,
            node: Some(step.node).filter(|node| is_relevant && kind.nodes.contains_key(node)),
            is_layer: whole && is_layer(key),
            own: Some(step.node)
                .filter(|&node| reads_own_fields && self.sets_own_fields(kind, node)),
            reads_own_fields,
        };
        (effect != ChainEffect::default()).then_some(effect)
    }

    /// Whether the object of a node sets fields that the kind's profile names.
    fn sets_own_fields(&self, kind: &PolicyKind, node: NodeId) -> bool {
        let chain = AttachmentChain {
            own: Some(node),
            ..AttachmentChain::default()
        };
        self.own_rules(kind, &chain).is_some()
    }
}

impl ChainState {
    /// The chain state of a kind at the beginning of a path: its root namespace stands above everything
    /// (specification 3.1).
    pub fn start(kind: &PolicyKind, acts: bool, root: Option<NodeId>, client: &Str) -> Self {
        let mut chain_state = ChainState {
            inactive: !acts,
            ..ChainState::default()
        };
        if acts
            && kind.profile.class != PolicyClass::Direct
            && kind.profile.root_namespace.is_some()
            && let Some(root) = root
        {
            chain_state.push(kind, root, Level::Root, client);
        }
        chain_state
    }

    /// The chain state one step further.
    pub fn after(
        &self,
        kind: &PolicyKind,
        effect: &ChainEffect,
        level: Level,
        client: &Str,
    ) -> Self {
        let mut chain_state = self.clone();
        if chain_state.inactive {
            return chain_state;
        }
        if let Some(namespace) = effect.namespace {
            let step = PathStep {
                node: namespace,
                level: Level::Namespace,
            };
            if effect.namespace_is_layer && !chain_state.layer_namespaces.contains(&namespace) {
                chain_state.layer_namespaces.push(namespace);
                chain_state.clear();
                chain_state.push(kind, namespace, Level::Namespace, client);
            } else if !effect.namespace_is_layer
                && kind.profile.class != PolicyClass::Direct
                && !chain_state.steps.contains(&step)
            {
                chain_state.push(kind, namespace, Level::Namespace, client);
            }
        }
        if effect.is_layer {
            chain_state.clear();
        }
        if let Some(node) = effect.node {
            chain_state.push(kind, node, level, client);
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

    /// Puts a node on the chain state, if something on it acts for the client.
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

    /// Whether a policy for its own clients stands on it.
    pub fn is_for_clients(&self) -> bool {
        self.own_clients
    }

    /// The nodes that it rests on.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> {
        self.steps.iter().map(|step| step.node)
    }

    /// The chain that it comes to; `None` if nothing stands on it.
    pub fn attachment_chain(&self, inherited_only: bool, client: &Str) -> Option<AttachmentChain> {
        (!self.steps.is_empty()).then(|| AttachmentChain {
            steps: self.steps.clone(),
            client: self.own_clients.then(|| client.clone()),
            own: self.own,
            inherited_only,
        })
    }
}

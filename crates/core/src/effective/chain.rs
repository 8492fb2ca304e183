//! Which nodes of a path matter to a kind: whether it acts there, where the path is cut, and where
//! Namespaces stand (specification 1.2, 2.3, 2.4).

use super::{AttachmentChain, PolicyKind, World};
use crate::model::{Level, NodeKey};
use crate::profile::{EffectiveTarget, PolicyClass, Profile};
use crate::topology::{PathStep, ResolvedPath, RootKind, Topology};

impl World {
    /// The chain of a kind on a path; `None` if the kind does not act there or nothing of it is
    /// attached.
    pub fn attachment_chain(
        &self,
        kind: &PolicyKind,
        resolved: &ResolvedPath,
    ) -> Option<AttachmentChain> {
        let profile = &*kind.profile;
        if kind.nodes.is_empty() {
            return None;
        }
        let steps = self.steps(kind, resolved)?;
        let inherited_only = !reaches_effective_level(profile, resolved.root, resolved.end());
        let layer = match profile.class {
            PolicyClass::Direct => self.direct_layer(profile, &steps),
            PolicyClass::Inherited | PolicyClass::Listed => steps,
        };
        let mut chain = AttachmentChain {
            inherited_only,
            ..AttachmentChain::default()
        };
        for step in layer {
            let Some(here) = kind.nodes.get(&step.node) else {
                continue;
            };
            let own_clients = here.is_for(&resolved.client);
            if !own_clients && !here.is_for_all() {
                continue;
            }
            if own_clients {
                chain.client = Some(resolved.client.clone());
            }
            chain.steps.push(step);
        }
        if chain.steps.is_empty() {
            return None;
        }
        if !profile.own_fields.is_empty() {
            chain.own = cut(profile, resolved).last().map(|step| step.node);
        }
        Some(chain)
    }
}

impl World {
    /// The path as a kind sees it: cut at its effective level, with Namespaces; `None` if the kind
    /// does not act there.
    pub(crate) fn steps(
        &self,
        kind: &PolicyKind,
        resolved: &ResolvedPath,
    ) -> Option<Vec<PathStep>> {
        let profile = &*kind.profile;
        acts_on(profile, resolved)
            .then(|| with_namespaces(profile, &self.topology, &cut(profile, resolved)))
    }

    /// Whether a path is a scope of a kind: it ends at the effective level (specification 2.3, 7.2).
    pub fn is_scope(&self, kind: &PolicyKind, resolved: &ResolvedPath) -> bool {
        let profile = &*kind.profile;
        if !acts_on(profile, resolved)
            || !reaches_effective_level(profile, resolved.root, resolved.end())
        {
            return false;
        }
        let cut = cut(profile, resolved);
        if cut.len() != resolved.steps.len() {
            return false;
        }
        if profile.effective != EffectiveTarget::Target {
            return true;
        }
        // The target object, and each of its sections.
        let steps = with_namespaces(profile, &self.topology, &cut);
        let layer = self.direct_layer(profile, &steps);
        layer.last().is_some_and(|last| Some(last) == cut.last())
    }
}

impl Topology {
    /// Whether a step is a whole object of a kind that references may name.
    fn is_target(&self, profile: &Profile, step: &PathStep) -> bool {
        let key = self.key(step.node);
        // The node above everything stands for no object that could be named.
        let named = step.level != Level::Root && profile.target(&key.object.kind).is_some();
        key.section.is_none() && named
    }
}

impl World {
    /// The layer of the deepest object of a target kind, even if it has no policy, with its section
    /// on the path (specification 7.4).
    fn direct_layer(&self, profile: &Profile, steps: &[PathStep]) -> Vec<PathStep> {
        let topology = &self.topology;
        let Some(deepest) = steps.iter().rposition(|s| topology.is_target(profile, s)) else {
            return Vec::new();
        };
        let object = steps.get(deepest).map(|s| &topology.key(s.node).object);
        steps
            .iter()
            .skip(deepest)
            .take_while(|s| Some(&topology.key(s.node).object) == object)
            .copied()
            .collect()
    }
}

fn acts_on(profile: &Profile, resolved: &ResolvedPath) -> bool {
    acts(profile, resolved.root, resolved.controller.as_deref())
}

/// Whether a path reaches the kind's effective level; above it a look-up gives what is gathered
/// so far (specification 2.3).
pub(crate) fn reaches_effective_level(profile: &Profile, root: RootKind, end: Level) -> bool {
    let level = match profile.effective {
        // With controllers, namespaces are no scopes (specification 11.2).
        EffectiveTarget::Every | EffectiveTarget::Target => {
            return root != RootKind::Namespace || profile.controllers.is_empty();
        }
        EffectiveTarget::Level(level) => level,
    };
    match root {
        RootKind::GatewayClass => level == Level::GatewayClass,
        RootKind::Namespace => level == Level::GatewayClass && profile.controllers.is_empty(),
        RootKind::Gateway => level <= end,
        // The root has the level of a Gateway, and of a Listener while the path has no port
        // (specification 1.3).
        RootKind::Mesh => level <= end.max(Level::Listener),
    }
}

/// The path down to the effective level: a look-up below gives the same answer, and policies on
/// nodes below never act.
fn cut(profile: &Profile, resolved: &ResolvedPath) -> Vec<PathStep> {
    let EffectiveTarget::Level(level) = profile.effective else {
        return resolved.steps.clone();
    };
    resolved
        .steps
        .iter()
        .filter(|step| step.level <= level || resolved.root == RootKind::Namespace)
        .copied()
        .collect()
}

/// A Namespace stands directly above the least specific node that lives in it and that the kind
/// reaches (specification 1.2); the root node stands above everything (specification 3.1).
fn with_namespaces(profile: &Profile, topology: &Topology, steps: &[PathStep]) -> Vec<PathStep> {
    let mut found: Vec<PathStep> = Vec::with_capacity(steps.len() + 4);
    if profile.root_namespace.is_some() {
        found.extend(topology.node(&NodeKey::root()).map(|node| PathStep {
            node,
            level: Level::Root,
        }));
    }
    for step in steps {
        let key = topology.key(step.node);
        let reached = key.section.is_none() && profile.namespace_reaches.contains(&step.level);
        let above = topology
            .namespace(&key.object.namespace)
            .filter(|_| reached)
            .map(|node| PathStep {
                node,
                level: Level::Namespace,
            });
        if let Some(above) = above.filter(|above| !found.contains(above)) {
            found.push(above);
        }
        found.push(*step);
    }
    found
}

/// Whether a kind acts below a root (specification 2.4).
pub(crate) fn acts(profile: &Profile, root: RootKind, controller: Option<&str>) -> bool {
    match root {
        RootKind::Gateway | RootKind::GatewayClass => profile.acts_below(controller),
        RootKind::Mesh => profile.mesh,
        RootKind::Namespace => true,
    }
}

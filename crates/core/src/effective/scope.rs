//! Which nodes of a path matter to a kind: whether it acts there, where the path is cut, and where
//! Namespaces stand (SEMANTICS §1.2, §2.3, §2.4).

use super::{Frames, Kind, World};
use crate::model::{Level, NodeKey};
use crate::profile::{Class, EffectiveTarget, Profile};
use crate::topology::{Step, Topology, Trail, TrailRoot};

impl World {
    /// The frames of a kind on a path; `None` if the kind does not act there or nothing of it is
    /// attached.
    pub fn frames(&self, kind: &Kind, trail: &Trail) -> Option<Frames> {
        let profile = &*kind.profile;
        if kind.nodes.is_empty() {
            return None;
        }
        let steps = self.steps(kind, trail)?;
        let inherited_only = !reaches(profile, trail.root, trail.end());
        let layer = match profile.class {
            Class::Direct => self.direct_layer(profile, &steps),
            Class::Inherited | Class::Listed => steps,
        };
        let mut frames = Frames {
            inherited_only,
            ..Frames::default()
        };
        for step in layer {
            let Some(here) = kind.nodes.get(&step.node) else {
                continue;
            };
            let own_clients = here.is_for(&trail.client);
            if !own_clients && !here.is_for_all() {
                continue;
            }
            if own_clients {
                frames.client = Some(trail.client.clone());
            }
            frames.steps.push(step);
        }
        if frames.steps.is_empty() {
            return None;
        }
        if !profile.own_fields.is_empty() {
            frames.own = cut(profile, trail).last().map(|step| step.node);
        }
        Some(frames)
    }
}

impl World {
    /// The path as a kind sees it: cut at its effective level, with Namespaces; `None` if the kind
    /// does not act there.
    pub(crate) fn steps(&self, kind: &Kind, trail: &Trail) -> Option<Vec<Step>> {
        let profile = &*kind.profile;
        acts_on(profile, trail)
            .then(|| with_namespaces(profile, &self.topology, &cut(profile, trail)))
    }

    /// Whether a path is a scope of a kind: it ends at the effective level (SEMANTICS §2.3, §7.2).
    pub fn is_scope(&self, kind: &Kind, trail: &Trail) -> bool {
        let profile = &*kind.profile;
        if !acts_on(profile, trail) || !reaches(profile, trail.root, trail.end()) {
            return false;
        }
        let cut = cut(profile, trail);
        if cut.len() != trail.steps.len() {
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
    fn is_target(&self, profile: &Profile, step: &Step) -> bool {
        let key = self.key(step.node);
        // The node above everything stands for no object that could be named.
        let named = step.level != Level::Root && profile.target(&key.object.kind).is_some();
        key.section.is_none() && named
    }
}

impl World {
    /// The layer of the deepest object of a target kind, even if it has no policy, with its section
    /// on the path (SEMANTICS §7.4).
    fn direct_layer(&self, profile: &Profile, steps: &[Step]) -> Vec<Step> {
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

fn acts_on(profile: &Profile, trail: &Trail) -> bool {
    acts(profile, trail.root, trail.controller.as_deref())
}

/// Whether a path reaches the kind's effective level; above it a look-up gives what is gathered
/// so far (SEMANTICS §2.3).
pub(crate) fn reaches(profile: &Profile, root: TrailRoot, end: Level) -> bool {
    let level = match profile.effective {
        // With controllers, namespaces are no scopes (SEMANTICS §11.2).
        EffectiveTarget::Every | EffectiveTarget::Target => {
            return root != TrailRoot::Namespace || profile.controllers.is_empty();
        }
        EffectiveTarget::Level(level) => level,
    };
    match root {
        TrailRoot::GatewayClass => level == Level::GatewayClass,
        TrailRoot::Namespace => level == Level::GatewayClass && profile.controllers.is_empty(),
        TrailRoot::Gateway => level <= end,
        // The root has the level of a Gateway, and of a Listener while the path has no port
        // (SEMANTICS §1.3).
        TrailRoot::Mesh => level <= end.max(Level::Listener),
    }
}

/// The path down to the effective level: a look-up below gives the same answer, and policies on
/// nodes below never act.
fn cut(profile: &Profile, trail: &Trail) -> Vec<Step> {
    let EffectiveTarget::Level(level) = profile.effective else {
        return trail.steps.clone();
    };
    trail
        .steps
        .iter()
        .filter(|step| step.level <= level || trail.root == TrailRoot::Namespace)
        .copied()
        .collect()
}

/// A Namespace stands directly above the least specific node that lives in it and that the kind
/// reaches (SEMANTICS §1.2); the root node stands above everything (§3.1).
fn with_namespaces(profile: &Profile, topology: &Topology, steps: &[Step]) -> Vec<Step> {
    let mut found: Vec<Step> = Vec::with_capacity(steps.len() + 4);
    if profile.root_namespace.is_some() {
        found.extend(topology.node(&NodeKey::root()).map(|node| Step {
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
            .map(|node| Step {
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

/// Whether a kind acts below a root (SEMANTICS §2.4).
pub(crate) fn acts(profile: &Profile, root: TrailRoot, controller: Option<&str>) -> bool {
    match root {
        TrailRoot::Gateway | TrailRoot::GatewayClass => profile.acts_below(controller),
        TrailRoot::Mesh => profile.mesh,
        TrailRoot::Namespace => true,
    }
}

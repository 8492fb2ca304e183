//! Where a kind acts, where its paths end, and what stands on them (specification 1.2, 2.3, 2.4).

use super::{AttachmentChain, PolicyKind};
use crate::model::{GroupKind, InternalError, Level, Str};
use crate::profile::{EffectiveTarget, Profile};
use crate::topology::{PathStep, RootKind};

impl PolicyKind {
    /// Whether a path reaches the kind's effective level.
    pub fn reaches_effective_level(&self, root: RootKind, end: Level) -> bool {
        reaches_effective_level(&self.profile, root, end)
    }

    /// Whether a path that ends at a level, at an object of some kind, is a scope if the kind acts
    /// on it: it ends at the effective level; without one the target object and each of its sections
    /// are scopes (specification 2.3, 7.2).
    pub fn ends_at_scope(&self, root: RootKind, end: Level, object: &GroupKind) -> bool {
        let targets = self.profile.effective != EffectiveTarget::Target
            || self.profile.target(object).is_some();
        targets && self.reaches_effective_level(root, end) && self.keeps(root, end)
    }

    /// Whether a step at a level counts on paths of a root: policies below the effective level
    /// never act, and a look-up there gives the same answer.
    pub fn keeps(&self, root: RootKind, level: Level) -> bool {
        root == RootKind::Namespace || self.sees(level)
    }

    /// Whether steps at a level can stand on paths, as the kind sees them; the node above
    /// everything does if the profile has a root namespace (specification 3.1).
    pub(crate) fn sees(&self, level: Level) -> bool {
        match (level, self.profile.effective) {
            (Level::Root, _) => self.profile.root_namespace.is_some(),
            (_, EffectiveTarget::Level(effective)) => level <= effective,
            _ => true,
        }
    }

    /// Whether the Namespace of an object at a level stands above it (specification 1.2).
    pub(crate) fn sees_namespace(&self, level: Level) -> bool {
        self.profile.namespace_reaches.contains(&level)
    }

    /// Whether fields of objects join the policies (specification 6.4).
    pub fn reads_own_fields(&self) -> bool {
        !self.profile.own_fields.is_empty()
    }

    /// A chain without the nodes that nothing stands on any more; `None` if none is left.
    pub(crate) fn standing_chain(&self, mut chain: AttachmentChain) -> Option<AttachmentChain> {
        let nobody = Str::default();
        let client = chain.client.take();
        let mut own_clients = false;
        chain.steps.retain(|step| {
            let Some(here) = self.nodes.get(&step.node) else {
                return false;
            };
            let is_for = client.is_some() && here.is_for(client.as_ref().unwrap_or(&nobody));
            own_clients |= is_for;
            is_for || here.is_for_all()
        });
        chain.client = client.filter(|_| own_clients);
        (!chain.steps.is_empty()).then_some(chain)
    }

    /// The steps of a chain that a policy stands on.
    pub(crate) fn stood_on(&self, slot: usize, chain: &AttachmentChain) -> Vec<PathStep> {
        let stands = |step: &&PathStep| {
            let here = self.nodes.get(&step.node);
            let mut groups = here.into_iter().flat_map(|here| here.applying(chain));
            groups.any(|policies| policies.contains(&slot))
        };
        chain.steps.iter().filter(stands).copied().collect()
    }

    /// The number of slots for policies; some may be free.
    pub fn slots(&self) -> usize {
        self.table.policies.len()
    }

    /// Records that something is missing on which answers of this kind rest: the kind is unknown
    /// from then on.
    pub fn fail(&self, error: InternalError) {
        // The first error is kept.
        let _ = self.fault.set(error);
    }

    /// Why the kind is unknown, if something was missing.
    pub fn fault(&self) -> Option<InternalError> {
        self.fault.get().copied()
    }
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

/// Whether a kind acts below a root (specification 2.4).
pub(crate) fn acts(profile: &Profile, root: RootKind, controller: Option<&str>) -> bool {
    match root {
        RootKind::Gateway | RootKind::GatewayClass => profile.acts_below(controller),
        RootKind::Mesh => profile.mesh,
        RootKind::Namespace => true,
    }
}

//! What an answer rests on: equal questions have equal answers. It outlives the numbers of nodes
//! and policies, so what was computed for one world is known in the next.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::{Frames, Kind, World};
use crate::attach::Group;
use crate::model::{GroupKind, Level, NodeKey, Object, Strategy};
use crate::profile::{Class, Instruction, Profile};

/// All that an answer of a kind depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Question {
    profile: Same<Profile>,
    /// The CRD of the kind: its schema says what is merged how.
    definition: Option<Same<Object>>,
    inherited_only: bool,
    groups: Vec<Asked>,
    /// The object whose own fields join, and its version.
    own: Option<(NodeKey, Same<Object>)>,
    rejected: Vec<(Same<Object>, String, String)>,
}

/// The policies of one group on one node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Asked {
    level: Level,
    group: Group,
    /// The node's name, where answers tell it.
    node: Option<String>,
    policies: Vec<(Same<Object>, Vec<Strategy>)>,
}

/// One and the same version of something: versions are never changed in place.
#[derive(Clone, Debug)]
struct Same<T>(Arc<T>);

impl<T> PartialEq for Same<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T> Eq for Same<T> {}

impl<T> Hash for Same<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

impl World {
    /// What the answer for these frames rests on.
    pub fn question(&self, kind: &Kind, frames: &Frames) -> Question {
        Question {
            profile: Same(Arc::clone(&kind.profile)),
            definition: kind.definition.clone().map(Same),
            inherited_only: frames.inherited_only,
            groups: self.asked(kind, frames),
            own: frames.own.and_then(|node| self.own_version(node)),
            rejected: rejected(kind, frames),
        }
    }

    fn asked(&self, kind: &Kind, frames: &Frames) -> Vec<Asked> {
        let told = kind.profile.class == Class::Listed;
        let mut found = Vec::with_capacity(frames.steps.len());
        for step in &frames.steps {
            let Some(here) = kind.nodes.get(&step.node) else {
                continue;
            };
            for (group, policies) in here.groups.iter().filter(|(g, _)| frames.includes(g)) {
                let policies = policies.iter().filter_map(|&index| {
                    let policy = kind.policies.get(index)?;
                    let chosen = policy.blocks.iter().filter_map(|block| {
                        let Instruction::ByAnnotation(_) = block.strategy else {
                            return None;
                        };
                        Some(self.strategy_on(kind, step.node, block))
                    });
                    Some((Same(Arc::clone(&policy.object)), chosen.collect()))
                });
                found.push(Asked {
                    level: step.level,
                    group: group.clone(),
                    node: told.then(|| self.topology().describe(step.node)),
                    policies: policies.collect(),
                });
            }
        }
        found
    }

    fn own_version(&self, node: crate::topology::NodeId) -> Option<(NodeKey, Same<Object>)> {
        let key = self.topology().key(node).clone();
        let entry = self.store().get(&key.object)?;
        Some((key, Same(Arc::clone(&entry.object))))
    }

    /// The CRD of a kind.
    pub(super) fn definition(store: &crate::store::Store, kind: &GroupKind) -> Option<Arc<Object>> {
        let crds = GroupKind::crd();
        let mut found = store.of_kind(&crds).map(|(_, entry)| &entry.object);
        found
            .find(|object| object.defined_kind().as_ref() == Some(kind))
            .cloned()
    }
}

fn rejected(kind: &Kind, frames: &Frames) -> Vec<(Same<Object>, String, String)> {
    if frames.inherited_only {
        return Vec::new();
    }
    let here = frames
        .steps
        .iter()
        .filter_map(|step| kind.nodes.get(&step.node));
    here.flat_map(|here| &here.rejected)
        .filter(|rejected| frames.includes(&rejected.group))
        .filter_map(|rejected| {
            let policy = kind.policies.get(rejected.policy)?;
            Some((
                Same(Arc::clone(&policy.object)),
                rejected.reason.clone(),
                rejected.message.clone(),
            ))
        })
        .collect()
}

//! From frames to an ordered stack (SEMANTICS §4).

use super::{Frames, Kind, NodePolicies, World};
use crate::attach::Group;
use crate::merge::{Layer, Stack, StackGroup};
use crate::model::{Level, Str, Strategy};
use crate::profile::{Block, Instruction, Policy};
use crate::topology::NodeId;

/// A policy with the node that it stands on.
#[derive(Clone, Debug)]
pub(crate) struct Standing<'k> {
    pub index: usize,
    pub policy: &'k Policy,
    pub node: NodeId,
    pub level: Level,
}

impl Kind {
    /// The groups of accepted policies on the frames' nodes, from least to most specific; in a
    /// group the most established first.
    pub(crate) fn groups(&self, frames: &Frames) -> Vec<Vec<Standing<'_>>> {
        let mut found = Vec::new();
        for step in &frames.steps {
            let Some(here) = self.nodes.get(&step.node) else {
                continue;
            };
            for policies in here.applying(frames) {
                let standing = policies.iter().filter_map(|&index| {
                    Some(Standing {
                        index,
                        policy: self.policies.get(index)?,
                        node: step.node,
                        level: step.level,
                    })
                });
                found.push(standing.collect());
            }
        }
        found
    }
}

impl World {
    /// The stack that is folded.
    pub(crate) fn stack<'k>(&self, kind: &Kind, groups: &[Vec<Standing<'k>>]) -> Stack<'k> {
        let groups = groups.iter().filter_map(|group| {
            let level = group.first()?.level;
            let layers = group.iter().map(|standing| Layer {
                policy: Some(standing.index),
                blocks: standing
                    .policy
                    .blocks
                    .iter()
                    .map(|block| (block, self.strategy_on(kind, standing.node, block)))
                    .collect(),
            });
            Some(StackGroup {
                level,
                layers: layers.collect(),
            })
        });
        Stack {
            groups: groups.collect(),
        }
    }
}

impl World {
    /// How a block joins: by the profile or the policy, or by an annotation on the policy's target,
    /// where one whose value is not offered counts as omitted (SEMANTICS §5.3, §11.6).
    pub(crate) fn strategy_on(&self, kind: &Kind, node: NodeId, block: &Block) -> Strategy {
        let Instruction::ByAnnotation(omitted) = block.strategy else {
            return block.strategy.strategy();
        };
        let object = &self.topology().key(node).object;
        let annotations = self.store().get(object).map(|e| &e.object.annotations);
        kind.profile
            .chooser
            .annotation
            .as_ref()
            .and_then(|name| annotations?.get(name))
            .and_then(|raw| kind.profile.strategy_named(raw, block.name))
            .unwrap_or(omitted)
    }
}

impl NodePolicies {
    /// The groups of all policies here, accepted or not.
    pub(crate) fn all_groups(&self) -> impl Iterator<Item = &Group> {
        let rejected = self.rejected.iter().map(|r| &r.group);
        self.groups.keys().chain(rejected)
    }

    /// Whether something here bears on the paths of all clients.
    pub(crate) fn is_for_all(&self) -> bool {
        self.all_groups().any(|g| !matches!(g, Group::Clients(_)))
    }

    /// Whether something here is for the clients of one namespace alone (SEMANTICS §4.6).
    pub(crate) fn is_for(&self, client: &Str) -> bool {
        self.all_groups()
            .any(|g| matches!(g, Group::Clients(c) if c == client))
    }

    /// The groups that act for the frames' client.
    fn applying<'n>(&'n self, frames: &'n Frames) -> impl Iterator<Item = &'n Vec<usize>> {
        self.groups
            .iter()
            .filter(|(group, _)| frames.includes(group))
            .map(|(_, policies)| policies)
    }
}

impl Frames {
    /// Whether policies of a group act: those for the clients of one namespace act for them only
    /// (SEMANTICS §4.6).
    pub(crate) fn includes(&self, group: &Group) -> bool {
        match group {
            Group::Clients(client) => self.client.as_ref() == Some(client),
            Group::Whole | Group::Filter(_) => true,
        }
    }

    /// Whether the path ends above the kind's effective level.
    pub fn inherited_only(&self) -> bool {
        self.inherited_only
    }
}

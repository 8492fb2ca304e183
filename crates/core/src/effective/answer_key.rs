//! Keys of answers. A key refers to versions of objects and not to numbers of nodes or policies, so an
//! answer that was computed for one world can be reused in the next.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use hashbrown::HashSet;

use super::{AttachmentChain, PolicyKind, UnknownController, World};
use crate::attach::AttachmentGroup;
use crate::model::{GroupKind, Level, NodeKey, Object, ObjectKey, PolicyRef, Strategy};
use crate::profile::{LimitSet, MissingObjects, PolicyClass, Profile, StrategySource};

/// Everything that the answer of a kind depends on: equal keys have equal answers, also across rebuilds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AnswerKey {
    profile: PtrEq<Profile>,
    /// The CRD of the kind: its schema determines how fields are merged.
    definition: Option<PtrEq<Object>>,
    inherited_only: bool,
    groups: Box<[Arc<GroupKey>]>,
    /// What few answers have; `None` if there is nothing.
    rare: Option<Box<RareInputs>>,
}

/// The groups of policies that keys share: all paths below a Gateway have its policies in their keys.
#[derive(Debug, Default)]
pub struct SharedGroups(HashSet<Arc<GroupKey>>);

/// What few answers depend on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct RareInputs {
    unknown: Option<UnknownController>,
    /// The message about child Routes, and the policies that it concerns.
    delegated: Option<(String, Vec<PolicyRef>)>,
    /// The object whose own fields are merged, and its version.
    own: Option<(NodeKey, PtrEq<Object>)>,
    rejected: Vec<(PtrEq<Object>, String, String)>,
}

/// The policies of one group on one node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct GroupKey {
    level: Level,
    group: AttachmentGroup,
    policies: Box<[PolicyKey]>,
    /// What few groups have; `None` if there is nothing.
    context: Option<Box<GroupContext>>,
}

/// What the meaning of a group depends on besides its policies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct GroupContext {
    /// The place among the levels of the chain, if it is not that of the path (specification 1.8).
    precedence: usize,
    /// The limits that hold for the policies.
    limits: LimitSet,
    /// The target whose conditions the policies must meet when they are merged (specification 2.13).
    merge_check: Option<u32>,
    /// The node's name, for kinds whose answers contain it.
    node: Option<String>,
}

/// A version of a policy. Each answer has one for each of its policies, so it is small.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct PolicyKey {
    object: PtrEq<Object>,
    /// What few policies have; `None` if there is nothing.
    context: Option<Box<PolicyContext>>,
}

/// What the meaning of a policy depends on besides its object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct PolicyContext {
    /// The strategies of blocks that an annotation on the target chooses.
    strategies: Vec<Strategy>,
    /// The references to missing objects (specification 5.7).
    missing: Option<Box<MissingObjects>>,
    /// The objects of references that were not checked.
    unchecked: Vec<ObjectKey>,
}

/// A pointer that is compared by address. The data is never changed in place, so equal addresses mean
/// the same version.
#[derive(Clone, Debug)]
struct PtrEq<T>(Arc<T>);

impl<T> PartialEq for PtrEq<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T> Eq for PtrEq<T> {}

impl<T> Hash for PtrEq<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

impl AnswerKey {
    /// Replaces groups by equal ones of other keys.
    pub fn share(&mut self, known: &mut SharedGroups) {
        for group in &mut self.groups {
            *group = Arc::clone(known.0.get_or_insert_with(group, Arc::clone));
        }
    }
}

impl World {
    /// The key of the answer for a chain.
    pub fn answer_key(&self, kind: &PolicyKind, chain: &AttachmentChain) -> AnswerKey {
        AnswerKey {
            profile: PtrEq(Arc::clone(&kind.profile)),
            definition: kind.definition.clone().map(PtrEq),
            inherited_only: chain.inherited_only,
            groups: self.group_keys(kind, chain).into(),
            rare: unless_default(RareInputs {
                unknown: chain.unknown.clone(),
                delegated: self.delegated_key(kind, chain),
                own: chain.own.and_then(|node| self.own_version(node)),
                rejected: rejected(kind, chain),
            }),
        }
    }

    fn delegated_key(
        &self,
        kind: &PolicyKind,
        chain: &AttachmentChain,
    ) -> Option<(String, Vec<PolicyRef>)> {
        chain.delegated.as_ref()?;
        // A rule that delegates has an entry without policies, too: the answer there has no rejected policies
        // either.
        let unknown = kind.unknown(chain, &self.topology);
        Some(unknown.map_or_else(Default::default, |found| (found.message, found.policies)))
    }

    fn group_keys(&self, kind: &PolicyKind, chain: &AttachmentChain) -> Vec<Arc<GroupKey>> {
        let is_listed = kind.profile.class == PolicyClass::Listed;
        let mut found = Vec::with_capacity(chain.steps.len());
        for (step, on_node, limits) in kind.acting(chain) {
            let counts = |group: &AttachmentGroup| chain.includes(group) || !group.is_evaluated();
            for (group, policies) in on_node.groups.iter().filter(|(group, _)| counts(group)) {
                let policies = policies.iter().filter_map(|&index| {
                    let policy = kind.required_policy(index)?;
                    let strategies = policy.blocks.iter().filter_map(|block| {
                        let StrategySource::ByAnnotation(_) = block.strategy else {
                            return None;
                        };
                        Some(self.strategy_on(kind, step.node, block))
                    });
                    let unchecked = policy.blocks.iter().flat_map(|block| &block.unchecked);
                    let context = PolicyContext {
                        strategies: strategies.collect(),
                        missing: policy.missing.clone(),
                        unchecked: unchecked.map(|found| found.object.clone()).collect(),
                    };
                    Some(PolicyKey {
                        object: PtrEq(Arc::clone(&policy.object)),
                        context: unless_default(context),
                    })
                });
                found.push(Arc::new(GroupKey {
                    level: step.level,
                    group: group.clone(),
                    policies: policies.collect(),
                    context: unless_default(GroupContext {
                        precedence: chain.precedence(step.node),
                        limits,
                        merge_check: on_node.merge_check,
                        node: is_listed.then(|| self.topology().describe(step.node)),
                    }),
                }));
            }
        }
        found
    }

    fn own_version(&self, node: crate::topology::NodeId) -> Option<(NodeKey, PtrEq<Object>)> {
        let key = self.topology().key(node).clone();
        let entry = self.store().get(&key.object)?;
        Some((key, PtrEq(Arc::clone(&entry.object))))
    }

    /// Finds the CRD of a kind.
    pub(super) fn definition(store: &crate::store::Store, kind: &GroupKind) -> Option<Arc<Object>> {
        let crds = GroupKind::crd();
        let mut found = store.of_kind(&crds).map(|(_, entry)| &entry.object);
        found
            .find(|object| object.defined_kind().as_ref() == Some(kind))
            .cloned()
    }
}

/// Boxes a value that has content.
fn unless_default<T: Default + PartialEq>(value: T) -> Option<Box<T>> {
    (value != T::default()).then(|| Box::new(value))
}

fn rejected(kind: &PolicyKind, chain: &AttachmentChain) -> Vec<(PtrEq<Object>, String, String)> {
    kind.acting(chain)
        .flat_map(|(_, on_node, _)| on_node.rejections(chain))
        .filter_map(|rejected| {
            let policy = kind.required_policy(rejected.policy)?;
            kind.may_name_rejected(policy, chain).then_some((
                PtrEq(Arc::clone(&policy.object)),
                rejected.reason.clone(),
                rejected.message.clone(),
            ))
        })
        .collect()
}

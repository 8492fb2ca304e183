//! What the answers of a kind do not know (specification 1.8, 2.5 to 2.8).

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;

use super::{AttachmentChain, NodePolicies, PolicyKind};
use crate::attach::{AttachmentGroup, FilterReferences};
use crate::model::{Level, Object, ObjectKey, Outcome, PolicyRef, Unknown, UnknownReason};
use crate::profile::{Policy, PolicyClass, Profile, read_policy};
use crate::store::Store;
use crate::topology::Topology;

/// The number of policies that an answer lists.
pub(super) const MAX_LISTED: usize = 16;
/// The number of policies that a message names.
const MAX_NAMED: usize = 3;

impl PolicyKind {
    /// What is not known of the kind on the paths with this chain. The list of policies is bounded, because
    /// every path below a node would repeat it; the message has their number.
    pub(super) fn unknown(&self, chain: &AttachmentChain, topology: &Topology) -> Option<Unknown> {
        let mut unknown = self.unknown_of_all(chain, topology)?;
        unknown.policies.truncate(MAX_LISTED);
        Some(unknown)
    }

    fn unknown_of_all(&self, chain: &AttachmentChain, topology: &Topology) -> Option<Unknown> {
        let unknown = match &chain.unknown {
            _ if self.profile.class == PolicyClass::Unprofiled => self.unprofiled(chain),
            Some(controller) => {
                let policies = self.references(chain, |on_node| on_node.valid(chain));
                (!policies.is_empty()).then(|| Unknown {
                    reason: UnknownReason::ControllerUnknown,
                    message: controller.message(),
                    policies,
                })
            }
            None => None,
        };
        let unknown = unknown.or_else(|| self.delegated(chain, topology));
        match unknown {
            None if chain.unknown.is_none() && !self.is_unprofiled() => {
                let mut nodes = self.acting(chain).map(|(_, on_node, _)| on_node);
                if !nodes.any(NodePolicies::may_be_unknown) {
                    return None;
                }
                let not_evaluated = both(self.selecting(chain), self.backend_filters(chain));
                both(self.unreadable(chain), not_evaluated)
            }
            unknown => unknown,
        }
    }

    /// The policies of which parts could not be read (specification 2.5).
    fn unreadable(&self, chain: &AttachmentChain) -> Option<Unknown> {
        let is_unreadable = |slot: &usize| {
            let policy = self.required_policy(*slot);
            policy.is_some_and(|policy| policy.object.unreadable.is_some())
        };
        let policies = self.references(chain, |on_node| {
            let rejected = on_node.rejections(chain).map(|r| r.policy);
            rejected.filter(is_unreadable).collect()
        });
        (!policies.is_empty()).then(|| Unknown {
            reason: UnknownReason::PolicyUnreadable,
            message: format!(
                "{} may apply: entail cannot read all of it, but its controller may",
                names(&policies)
            ),
            policies,
        })
    }

    /// The policies on the path and on the child Routes of its rule, if it delegates (specification 1.8).
    fn delegated(&self, chain: &AttachmentChain, topology: &Topology) -> Option<Unknown> {
        let delegation = topology
            .delegations
            .get(chain.delegated.as_ref()?.delegation)?;
        let mut policies = self.references(chain, |on_node| on_node.valid(chain));
        let of_children = chain.delegated_nodes();
        let of_children = of_children.filter_map(|node| self.nodes.get(&node));
        let of_children = of_children.flat_map(|on_node| on_node.valid(chain));
        let of_children = of_children.filter_map(|slot| self.required_policy(slot));
        policies.extend(of_children.map(|policy| PolicyRef::of(&policy.key)));
        policies.sort();
        policies.dedup();
        (!policies.is_empty()).then(|| Unknown {
            reason: UnknownReason::DelegationNotFollowed,
            message: format!(
                "a rule of the path delegates to {}, and it is not known how policies there are merged: they can add \
                 to those of this path or override them",
                delegation.children
            ),
            policies,
        })
    }

    /// The policies that select workloads (specification 2.8).
    fn selecting(&self, chain: &AttachmentChain) -> Option<Unknown> {
        let policies = self.references(chain, |on_node| {
            on_node.of_group(&AttachmentGroup::Selecting)
        });
        (!policies.is_empty()).then(|| Unknown {
            reason: UnknownReason::SelectorNotEvaluated,
            message: format!(
                "{} may apply: it depends on labels of workloads, which are not evaluated",
                names(&policies)
            ),
            policies,
        })
    }

    /// The policies that filters of backendRefs reference (specification 2.8).
    fn backend_filters(&self, chain: &AttachmentChain) -> Option<Unknown> {
        let policies = self.references(chain, |on_node| {
            on_node.of_group(&AttachmentGroup::BackendFilter)
        });
        (!policies.is_empty()).then(|| Unknown {
            reason: UnknownReason::BackendFilterNotEvaluated,
            message: format!(
                "a filter of a backendRef references {}, which may apply to requests to this backend: filters of \
                 backendRefs are not evaluated",
                names(&policies)
            ),
            policies,
        })
    }

    /// What it means that references of policies were not checked, each the policy and the object (specification
    /// 5.7).
    pub(super) fn unchecked(&self, references: &[(usize, &ObjectKey)]) -> Option<Unknown> {
        let slots = references.iter();
        let slots = slots.filter_map(|&(slot, _)| self.required_policy(slot));
        let mut policies: Vec<PolicyRef> = slots.map(|policy| PolicyRef::of(&policy.key)).collect();
        policies.sort();
        policies.dedup();
        policies.truncate(MAX_LISTED);
        let objects: BTreeSet<&ObjectKey> = references.iter().map(|&(_, object)| object).collect();
        let first = objects.first()?;
        let more = match objects.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Some(Unknown {
            reason: UnknownReason::ReferenceNotChecked,
            message: format!(
                "it is not known whether `{first}`{more} exists, to which {} refers: if it does not, requests \
                 pass unchecked (fail open)",
                names(&policies)
            ),
            policies,
        })
    }

    /// The policies of a kind without a profile, all of which are unknown (specification 2.7).
    fn unprofiled(&self, chain: &AttachmentChain) -> Option<Unknown> {
        let by_reference = self.references(chain, NodePolicies::referring);
        let (reason, policies) = match by_reference.is_empty() {
            false => (UnknownReason::NoProfile, by_reference),
            true => (
                UnknownReason::FilterUnknown,
                self.references(chain, NodePolicies::filtering),
            ),
        };
        (!policies.is_empty()).then(|| Unknown {
            reason,
            message: match reason {
                UnknownReason::FilterUnknown => format!(
                    "a filter of the {} references {}, and the kind has no profile",
                    match self.filters_rule(chain) {
                        true => "rule",
                        false => "backendRef",
                    },
                    names(&policies)
                ),
                _ => format!(
                    "{} may apply, and the kind has no profile",
                    names(&policies)
                ),
            },
            policies,
        })
    }

    /// Whether a filter of the route rule on a path references a policy, and not only filters of backendRefs.
    fn filters_rule(&self, chain: &AttachmentChain) -> bool {
        let mut rules = chain
            .steps
            .iter()
            .filter(|step| step.level == Level::RouteRule);
        rules.any(|step| {
            let on_node = self.nodes.get(&step.node);
            on_node.is_some_and(|on_node| !on_node.filtering().is_empty())
        })
    }

    /// The policies that `select` returns for the nodes of a chain, sorted.
    fn references(
        &self,
        chain: &AttachmentChain,
        select: impl Fn(&NodePolicies) -> Vec<usize>,
    ) -> Vec<PolicyRef> {
        let nodes = self.acting(chain).map(|(_, on_node, _)| on_node);
        let slots: BTreeSet<usize> = nodes.flat_map(select).collect();
        let policies = slots.into_iter();
        let policies = policies.filter_map(|slot| self.required_policy(slot));
        let mut found: Vec<PolicyRef> = policies.map(|p| PolicyRef::of(&p.key)).collect();
        found.sort();
        found
    }

    /// The policies for which it is not known whether they are in force on the paths with this chain, by slot
    /// and with the reason (specification 1.8, 2.6). A policy that lost its node is not in force there, whatever is
    /// not known.
    pub(crate) fn unknown_slots(
        &self,
        chain: &AttachmentChain,
        topology: &Topology,
    ) -> Vec<(usize, UnknownReason)> {
        if !chain.is_unknown() {
            return Vec::new();
        }
        let on_path = match chain.unknown {
            Some(_) => UnknownReason::ControllerUnknown,
            None => UnknownReason::DelegationNotFollowed,
        };
        let nodes = self.acting(chain);
        let nodes = nodes.map(|(_, on_node, _)| (on_node, on_path));
        let delegated = chain.delegated.iter();
        let of_children =
            delegated.flat_map(|found| self.nodes_of_children(topology, found.delegation));
        let of_children = of_children.filter_map(|node| self.nodes.get(&node));
        let of_children =
            of_children.map(|on_node| (on_node, UnknownReason::DelegationNotFollowed));
        let nodes = nodes.chain(of_children);
        nodes
            .flat_map(|(on_node, reason)| {
                let accepted = on_node.applying(chain);
                let slots = accepted.flat_map(|(_, policies)| policies.iter().copied());
                slots.map(move |slot| (slot, reason))
            })
            .collect()
    }
}

impl NodePolicies {
    /// The policies that are not Invalid and that are attached for the client of the chain.
    fn valid(&self, chain: &AttachmentChain) -> Vec<usize> {
        let accepted = self.applying(chain);
        let accepted = accepted.flat_map(|(_, policies)| policies.iter().copied());
        let rejected = self.rejections(chain);
        let rejected = rejected.filter(|r| r.reason != Outcome::Invalid.as_str());
        let valid: BTreeSet<usize> = accepted.chain(rejected.map(|r| r.policy)).collect();
        valid.into_iter().collect()
    }

    /// Whether a policy on the node may be unreadable, select workloads, or be referenced by a filter of a backendRef.
    fn may_be_unknown(&self) -> bool {
        let is_unevaluated = |group: &AttachmentGroup| {
            matches!(
                group,
                AttachmentGroup::Selecting | AttachmentGroup::BackendFilter
            )
        };
        !self.rejected.is_empty() || self.groups.iter().any(|(group, _)| is_unevaluated(group))
    }

    /// The accepted policies of a group.
    fn of_group(&self, group: &AttachmentGroup) -> Vec<usize> {
        self.groups.get(group).unwrap_or_default().to_vec()
    }

    /// The policies that references attach, accepted or not.
    fn referring(&self) -> Vec<usize> {
        self.of_groups(|group| !matches!(group, AttachmentGroup::Filter(_)))
    }

    /// The policies that filters attach, accepted or not.
    fn filtering(&self) -> Vec<usize> {
        self.of_groups(|group| matches!(group, AttachmentGroup::Filter(_)))
    }

    fn of_groups(&self, includes: fn(&AttachmentGroup) -> bool) -> Vec<usize> {
        let accepted = self.groups.iter().filter(|(group, _)| includes(group));
        let accepted = accepted.flat_map(|(_, policies)| policies.iter().copied());
        let rejected = self.rejected.iter().filter(|r| includes(&r.group));
        accepted.chain(rejected.map(|r| r.policy)).collect()
    }
}

/// The objects of a kind without a profile that filters of route rules and backendRefs reference, and that do not
/// exist or belong to sections with a profile. They are unknown all the same.
pub(super) fn missing_filters(profile: &Profile, store: &Store) -> Vec<Policy> {
    let references = FilterReferences::of(profile, store);
    let keys = references.policies().map(|(namespace, name)| {
        ObjectKey::new(profile.policy.clone(), namespace.clone(), name.clone())
    });
    let missing = keys.filter(|key| {
        let entry = store.get(key);
        entry.is_none_or(|entry| !profile.reads(&entry.object))
    });
    let objects = missing.map(|key| Arc::new(Object::new(key, json!({}))));
    objects
        .map(|object| read_policy(profile, &object))
        .collect()
}

/// What is not known about one answer, of two things that may be known. The reason is that of the first.
pub(super) fn both(first: Option<Unknown>, second: Option<Unknown>) -> Option<Unknown> {
    let (first, second) = match (first, second) {
        (Some(first), Some(second)) => (first, second),
        (first, second) => return first.or(second),
    };
    let mut policies = first.policies;
    policies.extend(second.policies);
    policies.sort();
    policies.dedup();
    policies.truncate(MAX_LISTED);
    Some(Unknown {
        reason: first.reason,
        message: format!("{}; {}", first.message, second.message),
        policies,
    })
}

/// The first names of policies.
fn names(policies: &[PolicyRef]) -> String {
    let named: Vec<String> = policies
        .iter()
        .take(MAX_NAMED)
        .map(ToString::to_string)
        .collect();
    let more = policies.len().saturating_sub(MAX_NAMED);
    match more {
        0 => named.join(", "),
        _ => format!("{} and {more} more", named.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effective::World;
    use crate::model::{Change, GroupKind, PathName, groups};
    use crate::store::ProfileSources;

    fn object(
        kind: GroupKind,
        namespace: &str,
        name: &str,
        spec: serde_json::Value,
    ) -> Arc<Object> {
        let key = ObjectKey::new(kind, namespace, name);
        Arc::new(Object::new(key, json!({ "spec": spec })))
    }

    #[test]
    fn an_answer_names_policies_that_could_not_be_read() {
        let gateway = GroupKind::new(groups::GATEWAY, "Gateway");
        let listeners = json!([{"name": "http", "port": 80, "protocol": "HTTP"}]);
        let spec = json!({"gatewayClassName": "eg", "listeners": listeners});
        let class = json!({"controllerName": "gateway.envoyproxy.io/gatewayclass-controller"});
        let target = json!([{"group": groups::GATEWAY, "kind": "Gateway", "name": "gw"}]);
        let policy = |name: &str, unreadable: Option<&str>| {
            let kind = GroupKind::parse("SecurityPolicy.gateway.envoyproxy.io");
            let rules = json!({"targetRefs": target, "cors": {"allowOrigins": ["*"]}});
            let policy = object(kind, "ns", name, rules);
            Arc::new(Object {
                unreadable: unreadable.map(Into::into),
                ..(*policy).clone()
            })
        };
        for (deep, whole) in [("a", "b"), ("b", "a")] {
            let mut store = Store::default();
            store.apply(Change {
                upserts: vec![
                    object(
                        GroupKind::new(groups::GATEWAY, "GatewayClass"),
                        "",
                        "eg",
                        class.clone(),
                    ),
                    object(gateway.clone(), "ns", "gw", spec.clone()),
                    policy(deep, Some("cannot be read")),
                    policy(whole, None),
                ],
                ..Change::default()
            });
            let world = World::from_store(store, &ProfileSources::shipped());
            let resolved = world.locate(&PathName::parse("gateways/ns/gw").unwrap());
            let mut kinds = world.kinds().iter();
            let kind = kinds.find(|kind| &*kind.profile().policy.kind == "SecurityPolicy");
            let kind = kind.unwrap();
            let chain = world.attachment_chain(kind, &resolved.unwrap()).unwrap();
            let answer = world.answer(kind, &chain);
            let unknown = answer.unknown.unwrap();
            assert_eq!(unknown.reason, UnknownReason::PolicyUnreadable);
            assert_eq!(unknown.policies.len(), 1);
            assert_eq!(&*unknown.policies[0].name, deep);
        }
    }

    #[test]
    fn the_list_of_unknown_policies_is_bounded() {
        let gateway = GroupKind::new(groups::GATEWAY, "Gateway");
        let listeners = json!([{"name": "http", "port": 80, "protocol": "HTTP"}]);
        let spec = json!({"gatewayClassName": "c", "listeners": listeners});
        let mut upserts = vec![object(gateway, "ns", "gw", spec)];
        let target = json!({"group": groups::GATEWAY, "kind": "Gateway", "name": "gw"});
        for number in 0..100 {
            let name = format!("p{number:03}");
            let spec = json!({ "targetRefs": [target.clone()] });
            upserts.push(object(GroupKind::parse("Foo.f.io"), "ns", &name, spec));
        }
        let mut store = Store::default();
        store.apply(Change {
            upserts,
            ..Change::default()
        });
        let world = World::from_store(store, &ProfileSources::shipped());
        let resolved = world.locate(&PathName::parse("gateways/ns/gw").unwrap());
        let mut kinds = world.kinds().iter();
        let kind = kinds.find(|kind| kind.is_unprofiled()).unwrap();
        let chain = world.attachment_chain(kind, &resolved.unwrap()).unwrap();
        let unknown = world.answer(kind, &chain).unknown.unwrap();
        assert_eq!(unknown.policies.len(), MAX_LISTED);
        assert!(
            unknown.message.contains("and 97 more"),
            "{}",
            unknown.message
        );
    }
}

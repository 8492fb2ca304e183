//! From references to nodes: every form of attachment, and an outcome for each reference
//! (SEMANTICS §3). Conflicts between policies are settled later.

mod permit;
mod section;
mod targets;

use std::collections::BTreeMap;

use crate::model::{GroupKind, NodeKey, ObjectKey, Outcome, Section, Str};
use crate::profile::{Policy, Profile};
use crate::store::{Name, Projection, ROUTE_KINDS, Store};
use crate::topology::Topology;

/// Index of a policy among those of its kind.
pub type PolicyIndex = usize;

/// What a policy's references came to.
#[derive(Clone, Debug, Default)]
pub struct Attached {
    /// One for each reference, in order; one for a policy that needs none.
    pub references: Vec<RefOutcome>,
}

/// The outcome of one reference (SEMANTICS §3.3).
#[derive(Clone, Debug, PartialEq)]
pub struct RefOutcome {
    /// Where the reference stands, such as `spec.targetRefs[0]`.
    pub place: String,
    /// What it came to.
    pub outcome: Outcome,
    /// What was wrong, for people; empty if it attaches.
    pub message: String,
    /// The nodes that it attaches to.
    pub nodes: Vec<(NodeKey, Group)>,
}

/// Policies of one node in groups, from less to more specific (SEMANTICS §4.6, §11.1).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Group {
    /// The node's own.
    Whole,
    /// Those for the clients of one namespace.
    Clients(Str),
    /// Those by filter, by the filter's place in the rule counted from the last: the first filter
    /// is the most specific (SEMANTICS §3.1).
    Filter(std::cmp::Reverse<u32>),
}

/// What a reference is resolved against.
pub(crate) struct Context<'a> {
    profile: &'a Profile,
    store: &'a Store,
    topology: &'a Topology,
    policy: &'a Policy,
}

/// Rules that name policies of a kind by ExtensionRef filter: by policy, with the filter's place in
/// its rule.
#[derive(Clone, Debug, Default)]
pub struct Filters(BTreeMap<Name, Vec<(NodeKey, u32)>>);

/// Resolves the references of all policies of a kind.
pub fn attach(
    profile: &Profile,
    policies: &[Policy],
    store: &Store,
    topology: &Topology,
) -> Vec<Attached> {
    let filters = Filters::of(profile, store);
    policies
        .iter()
        .map(|policy| attach_one(profile, policy, (store, topology), &filters))
        .collect()
}

/// Resolves the references of one policy.
pub fn attach_one(
    profile: &Profile,
    policy: &Policy,
    (store, topology): (&Store, &Topology),
    filters: &Filters,
) -> Attached {
    let context = Context {
        profile,
        store,
        topology,
        policy,
    };
    context.attach(filters)
}

impl Filters {
    /// The filters of all routes that name policies of a kind; none if the kind has no such form.
    pub fn of(profile: &Profile, store: &Store) -> Self {
        if profile.attach.filter {
            filters(store, &profile.policy)
        } else {
            Self::default()
        }
    }
}

impl Context<'_> {
    fn attach(&self, filters: &Filters) -> Attached {
        let policy = self.policy;
        if policy.selects_workloads {
            return Attached {
                references: vec![RefOutcome {
                    place: "spec".to_owned(),
                    outcome: Outcome::SelectorNotEvaluated,
                    message: "it selects workloads, which are no nodes of a path".to_owned(),
                    nodes: Vec::new(),
                }],
            };
        }
        let mut references: Vec<RefOutcome> = policy
            .references
            .iter()
            .map(|reference| {
                let resolved = self.resolve(reference);
                let (nodes, failed) = match resolved {
                    Ok(nodes) => (nodes, None),
                    Err(failed) => (Vec::new(), Some(failed)),
                };
                let (outcome, message) = failed.unwrap_or((Outcome::Accepted, String::new()));
                RefOutcome {
                    place: reference.place.clone(),
                    outcome,
                    message,
                    nodes,
                }
            })
            .collect();
        if self.profile.attach.filter {
            references.extend(self.by_filter(filters, references.is_empty()));
        } else if references.is_empty() && self.profile.attach.namespace {
            references.push(self.by_namespace());
        }
        Attached { references }
    }

    /// The rules whose filters name the policy.
    fn by_filter(&self, filters: &Filters, needed: bool) -> Option<RefOutcome> {
        let key = &self.policy.key;
        let name = (key.namespace.clone(), key.name.clone());
        let nodes: Vec<(NodeKey, Group)> = filters
            .0
            .get(&name)
            .into_iter()
            .flatten()
            .map(|(node, at)| (node.clone(), Group::Filter(std::cmp::Reverse(*at))))
            .collect();
        if nodes.is_empty() && !needed {
            return None;
        }
        let outcome = if nodes.is_empty() {
            Outcome::TargetNotFound
        } else {
            Outcome::Accepted
        };
        Some(RefOutcome {
            place: "filter".to_owned(),
            outcome,
            message: if nodes.is_empty() {
                "no filter of a route rule names it".to_owned()
            } else {
                String::new()
            },
            nodes,
        })
    }

    /// Without a reference: the policy's own namespace, or the node above everything.
    fn by_namespace(&self) -> RefOutcome {
        let namespace = &self.policy.key.namespace;
        let root = self.profile.root_namespace.as_ref() == Some(namespace);
        let node = if root {
            NodeKey::root()
        } else {
            NodeKey::namespace(namespace.clone())
        };
        RefOutcome {
            place: "metadata.namespace".to_owned(),
            outcome: Outcome::Accepted,
            message: String::new(),
            nodes: vec![(node, Group::Whole)],
        }
    }
}

/// The rules of all routes that name policies of a kind by filter: policy name to rules, with the
/// filter's place in its rule.
fn filters(store: &Store, kind: &GroupKind) -> Filters {
    let mut found = Filters::default();
    for row in &ROUTE_KINDS {
        let route_kind = GroupKind::new(crate::model::groups::GATEWAY, row.kind);
        for ((namespace, name), entry) in store.of_kind(&route_kind) {
            let Projection::Route(route) = &entry.projection else {
                continue;
            };
            let key = ObjectKey::new(route_kind.clone(), namespace.clone(), name.clone());
            for (index, rule) in (0u32..).zip(&route.rules) {
                for (at, extension) in (0u32..).zip(&rule.extensions) {
                    if extension.kind == *kind {
                        let policy = (namespace.clone(), extension.name.clone());
                        let node = NodeKey::section(key.clone(), Section::Rule(index));
                        found.0.entry(policy).or_default().push((node, at));
                    }
                }
            }
        }
    }
    found
}

impl Attached {
    /// The outcome of the whole policy: accepted if one reference is, else the outcome of the
    /// first (SEMANTICS §3.3).
    pub fn outcome(&self) -> Outcome {
        let mut outcomes = self.references.iter().map(|r| r.outcome);
        let first = outcomes.clone().next().unwrap_or(Outcome::Invalid);
        outcomes.find(|&o| o == Outcome::Accepted).unwrap_or(first)
    }

    /// The nodes of accepted references, each once with its most specific group twice counted once
    /// (SEMANTICS §3.5).
    pub fn nodes(&self) -> impl Iterator<Item = &(NodeKey, Group)> {
        self.references
            .iter()
            .filter(|r| r.outcome == Outcome::Accepted)
            .flat_map(|r| &r.nodes)
    }
}

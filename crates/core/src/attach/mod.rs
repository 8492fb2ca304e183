//! Attachment: resolves the references of policies to nodes, with an outcome for each reference
//! (specification 3). Conflicts between policies are resolved in [`crate::effective`].

mod cross_namespace;
mod field_references;
mod section;
mod targets;

pub(crate) use field_references::with_references;

use std::collections::BTreeMap;
use std::sync::Arc;

use thin_vec::{ThinVec, thin_vec};

use crate::model::{NodeKey, Outcome, Section, Str, shared_name};
use crate::profile::{Policy, Profile};
use crate::store::{ExtensionRef, NamespacedName, Rule, Store};
use crate::topology::Topology;

/// The index of a policy among the policies of its kind.
pub type PolicyIndex = usize;

/// The outcomes of the references of one policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PolicyAttachment {
    /// One outcome for each reference, in order; a single one for a policy that needs no reference.
    pub references: ThinVec<ReferenceOutcome>,
}

/// The outcome of one reference (specification 3.3).
#[derive(Clone, Debug, PartialEq)]
pub struct ReferenceOutcome {
    /// The field path of the reference, such as `spec.targetRefs[0]`.
    pub field: Str,
    /// The outcome.
    pub outcome: Outcome,
    /// A human-readable reason; empty if the reference attaches.
    pub message: Str,
    /// The nodes that the reference attaches the policy to.
    pub nodes: ThinVec<(NodeKey, AttachmentGroup)>,
}

/// The group of a policy among those of one node. Groups are ordered from less to more specific
/// (specification 4.6, 11.1).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AttachmentGroup {
    /// Policies that name a listener of a ListenerSet as a section of the Gateway. They are less specific than
    /// all others on the path (specification 7.5).
    GatewaySection,
    /// Policies that name the port of the Gateway that a listener has (specification 3.6).
    Port,
    /// Policies for the whole node.
    Whole,
    /// Policies for the clients in one namespace.
    Clients(Str),
    /// Policies attached by filter, with the index of the filter in its rule. The first filter is the
    /// most specific (specification 3.1).
    Filter(std::cmp::Reverse<u32>),
    /// Policies that a filter of a backendRef of the rule references, of a kind with a profile. They are not evaluated;
    /// answers name them (specification 2.8).
    BackendFilter,
    /// Policies that select workloads. They are not evaluated; answers name them (specification 2.8).
    Selecting,
}

impl AttachmentGroup {
    /// Whether policies of the group can take part on the paths of a client namespace (specification 4.6).
    pub fn is_for(&self, client: &str) -> bool {
        match self {
            AttachmentGroup::Clients(namespace) => **namespace == *client,
            AttachmentGroup::GatewaySection
            | AttachmentGroup::Port
            | AttachmentGroup::Whole
            | AttachmentGroup::Filter(_)
            | AttachmentGroup::BackendFilter
            | AttachmentGroup::Selecting => true,
        }
    }

    /// Whether policies of the group are evaluated. Answers only name the others, so they take part in no conflict
    /// (specification 2.8).
    pub fn is_evaluated(&self) -> bool {
        !matches!(
            self,
            AttachmentGroup::BackendFilter | AttachmentGroup::Selecting
        )
    }
}

/// The policy whose references are resolved, and the data that they are resolved against.
pub(crate) struct Context<'a> {
    profile: &'a Profile,
    store: &'a Store,
    topology: &'a Topology,
    policy: &'a Policy,
}

/// The nodes that ExtensionRef filters attach policies of a kind to, by policy: route rules, and for kinds without a
/// profile also backendRefs.
#[derive(Clone, Debug, Default)]
pub struct FilterReferences(BTreeMap<NamespacedName, Vec<(NodeKey, AttachmentGroup)>>);

/// Resolves the references of all policies of a kind, in the order of `policies`.
pub fn attach(
    profile: &Profile,
    policies: &[Arc<Policy>],
    store: &Store,
    topology: &Topology,
) -> Vec<PolicyAttachment> {
    let filters = FilterReferences::of(profile, store);
    policies
        .iter()
        .map(|policy| attach_policy(profile, policy, (store, topology), &filters))
        .collect()
}

/// Resolves the references of one policy.
pub fn attach_policy(
    profile: &Profile,
    policy: &Policy,
    (store, topology): (&Store, &Topology),
    filters: &FilterReferences,
) -> PolicyAttachment {
    let context = Context {
        profile,
        store,
        topology,
        policy,
    };
    context.attach(filters)
}

impl FilterReferences {
    /// Collects the filters of all routes that reference policies of a kind. Empty if the kind does not
    /// attach by filter.
    pub fn of(profile: &Profile, store: &Store) -> Self {
        if profile.attach.filter {
            filters(store, profile)
        } else {
            Self::default()
        }
    }

    /// The namespaces and names of the policies that filters reference.
    pub fn policies(&self) -> impl Iterator<Item = &NamespacedName> {
        self.0.keys()
    }
}

impl Context<'_> {
    fn attach(&self, filters: &FilterReferences) -> PolicyAttachment {
        let policy = self.policy;
        if policy.selects_workloads {
            return PolicyAttachment {
                references: thin_vec![ReferenceOutcome {
                    field: shared_name("spec"),
                    outcome: Outcome::SelectorNotEvaluated,
                    message: "the policy selects workloads, which are not nodes of a path".into(),
                    nodes: thin_vec![(self.namespace_node(), AttachmentGroup::Selecting)],
                }],
            };
        }
        let mut references: ThinVec<ReferenceOutcome> = policy
            .references
            .iter()
            .map(|reference| {
                let resolved = self.resolve(reference);
                let (nodes, error) = match resolved {
                    Ok(nodes) => (nodes, None),
                    Err(error) => (Vec::new(), Some(error)),
                };
                let (outcome, message) = error.unwrap_or((Outcome::Accepted, String::new()));
                ReferenceOutcome {
                    field: reference.field.clone(),
                    outcome,
                    message: message.into(),
                    nodes: nodes.into(),
                }
            })
            .collect();
        if self.profile.attach.filter {
            references.extend(self.by_filter(filters, references.is_empty()));
        } else if references.is_empty() && self.profile.attach.namespace {
            references.push(self.by_namespace());
        }
        PolicyAttachment { references }
    }

    /// Returns the route rules whose filters reference the policy, and those of which a backendRef has such a filter.
    fn by_filter(
        &self,
        filters: &FilterReferences,
        needed: bool,
    ) -> impl Iterator<Item = ReferenceOutcome> + use<> {
        let key = &self.policy.key;
        let name = (key.namespace.clone(), key.name.clone());
        let nodes = filters.0.get(&name).into_iter().flatten().cloned();
        let (of_rules, of_backends): (ThinVec<_>, ThinVec<_>) =
            nodes.partition(|(_, group)| group.is_evaluated());
        let is_missing = of_rules.is_empty() && of_backends.is_empty();
        let reference = |outcome, message: &str, nodes| ReferenceOutcome {
            field: shared_name("filter"),
            outcome,
            message: message.into(),
            nodes,
        };
        let found = (!of_rules.is_empty()).then(|| reference(Outcome::Accepted, "", of_rules));
        let not_evaluated = (!of_backends.is_empty()).then(|| {
            let message = "a filter of a backendRef references the policy, and is not evaluated";
            reference(Outcome::BackendFilterNotEvaluated, message, of_backends)
        });
        let missing = (is_missing && needed).then(|| {
            let message = "no filter of a route rule references the policy";
            reference(Outcome::TargetNotFound, message, ThinVec::new())
        });
        [found, not_evaluated, missing].into_iter().flatten()
    }

    /// Attaches a policy without references to its own namespace, or to the root node.
    fn by_namespace(&self) -> ReferenceOutcome {
        ReferenceOutcome {
            field: shared_name("metadata.namespace"),
            outcome: Outcome::Accepted,
            message: Str::new(),
            nodes: thin_vec![(self.namespace_node(), AttachmentGroup::Whole)],
        }
    }

    /// The node of the policy's own namespace, or the root node.
    fn namespace_node(&self) -> NodeKey {
        let namespace = &self.policy.key.namespace;
        if self.profile.root_namespace.as_ref() == Some(namespace) {
            NodeKey::root()
        } else {
            NodeKey::namespace(namespace.clone())
        }
    }
}

/// Collects the route rules and backendRefs that reference policies of a kind by filter. The filter of a backendRef
/// belongs to the rule if the kind has a profile: its scopes may end there (specification 2.8).
fn filters(store: &Store, profile: &Profile) -> FilterReferences {
    let kind = &profile.policy;
    let in_order = |at: u32| AttachmentGroup::Filter(std::cmp::Reverse(at));
    let mut references = FilterReferences::default();
    for (key, route) in store.routes() {
        for (index, rule) in (0u32..).zip(&route.rules) {
            let mut add = |section: &Section, extension: &ExtensionRef, group| {
                if extension.kind == *kind {
                    let policy = (key.namespace.clone(), extension.name.clone());
                    let node = NodeKey::section(key.clone(), section.clone());
                    references.0.entry(policy).or_default().push((node, group));
                }
            };
            let of_rule = Section::Rule(index);
            for (at, extension) in (0u32..).zip(&rule.extensions) {
                add(&of_rule, extension, in_order(at));
            }
            for (section, extensions) in backend_sections(index, rule) {
                for (at, extension) in (0u32..).zip(extensions) {
                    match profile.is_unprofiled() {
                        true => add(&section, extension, in_order(at)),
                        false => add(&of_rule, extension, AttachmentGroup::BackendFilter),
                    }
                }
            }
        }
    }
    references
}

/// The backendRefs of a rule that have filters, with these filters (specification 2.7).
fn backend_sections(index: u32, rule: &Rule) -> impl Iterator<Item = (Section, &[ExtensionRef])> {
    let backends = rule.backends.iter().enumerate();
    let filtered = backends.filter(|(_, backend)| !backend.extensions.is_empty());
    filtered.filter_map(move |(at, backend)| {
        let first = u32::try_from(rule.first_reference(at)?).ok()?;
        Some((Section::BackendRef(index, first), &*backend.extensions))
    })
}

impl PolicyAttachment {
    /// Returns the outcome of the whole policy: Accepted if any reference is, else the outcome of the
    /// first reference (specification 3.3).
    pub fn outcome(&self) -> Outcome {
        let mut outcomes = self.references.iter().map(|r| r.outcome);
        let first = outcomes.clone().next().unwrap_or(Outcome::Invalid);
        outcomes.find(|&o| o == Outcome::Accepted).unwrap_or(first)
    }

    /// The nodes whose answers may depend on the policy: those of accepted references, and of references that are not
    /// evaluated. A node can occur more than once.
    pub fn relevant_nodes(&self) -> impl Iterator<Item = &(NodeKey, AttachmentGroup)> {
        self.references
            .iter()
            .filter(|r| r.outcome == Outcome::Accepted || r.outcome.is_not_evaluated())
            .flat_map(|r| &r.nodes)
    }

    /// Returns the nodes of accepted references (specification 3.5). A node can occur more than once.
    pub fn nodes(&self) -> impl Iterator<Item = &(NodeKey, AttachmentGroup)> {
        self.references
            .iter()
            .filter(|r| r.outcome == Outcome::Accepted)
            .flat_map(|r| &r.nodes)
    }
}

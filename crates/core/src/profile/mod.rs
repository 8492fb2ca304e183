//! Profiles: declarative descriptions of policy kinds, read from YAML (docs/profiles-reference.md).
//!
//! Only this module knows policy kinds by name, and only in the YAML files of the built-in profiles.

mod builtin;
mod checked;
mod delegation;
mod document;
mod forbidden;
mod ignored;
mod instances;
mod label;
mod limits;
mod policy;
mod preset;
mod read;
mod references;
mod resolve;
mod route_kinds;
mod routing_filters;
mod section;
mod settings;
mod strategy;
mod validate;
mod volatile_fields;
mod waypoints;

pub(crate) use builtin::resolved as resolved_built_in;
pub use builtin::{built_in, built_in_sources};
pub use checked::{Checked, CheckedBy};
pub use delegation::{Delegation, DelegationPreference};
pub use document::{ProfileDocument, ProfileError, parse_documents, parse_value};
pub use forbidden::Refusal;
pub use label::PolicyLabel;
pub use limits::{
    LimitSet, LimitedBlocks, Limits, ListenerField, ListenerTraits, MetConditions, ReplacedBy,
    RootTraits, TlsMode, WaypointNamespace, fieldwise,
};
pub use policy::{
    Block, MissingObjects, MissingReference, Policy, Reference, ReferenceTarget,
    SelectorNamespaces, StrategySource, UncheckedReference,
};
pub use read::{BEING_DELETED, read_policy};
pub use route_kinds::DeclaredRouteKind;
pub use routing_filters::{RoutingFilter, is_routing_filter, routing_filters};
pub use section::{Membership, PolicySection, SectionCondition};
pub use settings::target_level;
pub use waypoints::{CanaryLabel, LabelValues, WaypointLabel, Waypoints};

use std::iter;
use std::sync::Arc;

use serde::Deserialize;

use crate::expr::Expression;
use crate::model::{FieldStep, Granularity, GroupKind, Level, Str, Strategy, Unit};

/// A resolved profile, in which every setting has a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// `metadata.name`.
    pub name: Str,
    /// Source of the profile.
    pub origin: ProfileOrigin,
    /// The policy kind that the profile describes. If the profile describes a section, its name is part of the
    /// kind: `Kind:section` (specification 2.14).
    pub policy: GroupKind,
    /// The resource kind whose objects are the policies: `policy` without its section.
    pub(crate) resource: GroupKind,
    /// Which objects of the resource kind are policies.
    pub membership: Membership,
    /// Whether the kind is cluster-scoped.
    pub cluster_scoped: bool,
    /// Patterns of the controllers of GatewayClasses that the kind applies to; empty means any. `*` matches
    /// any characters (specification 2.4, 2.6).
    pub controllers: Vec<Str>,
    /// Whether the kind applies to mesh paths (specification 2.4).
    pub mesh: bool,
    /// Class of the kind (specification 2.2).
    pub class: PolicyClass,
    /// The kinds that references can name (specification 3).
    pub targets: TargetKinds,
    /// The level whose behaviour the kind changes (specification 2.3).
    pub effective: EffectiveTarget,
    /// The levels that policies on a Namespace reach (specification 1.2).
    pub namespace_reaches: Vec<Level>,
    /// Target kinds without Kubernetes objects (specification 3.2).
    pub virtual_targets: Vec<GroupKind>,
    /// Forms of attachment (specification 3.1).
    pub attach: AttachmentForms,
    /// The namespace whose policies attach to the root node, with `attach.namespace`.
    pub root_namespace: Option<Str>,
    /// Path of the workload selector of a policy.
    pub workload_selector: Option<Vec<FieldStep>>,
    /// How a `sectionName` references an unnamed rule: the text before and after its 1-based number.
    pub unnamed_rules: Option<(String, String)>,
    /// References into other namespaces (specification 3.1, 4.6).
    pub cross_namespace: CrossNamespace,
    /// Maximum number of references of one policy.
    pub max_targets: usize,
    /// How policies reach the listeners of ListenerSets (specification 7.5).
    pub listener_sets: ListenerSetReach,
    /// Whether policies on listeners of one port conflict (specification 7.6).
    pub conflicts: ConflictScope,
    /// Where a policy contains its rules (specification 5.1).
    pub rules: RulesLayout,
    /// The strategies that the kind offers (specification 5.2).
    pub strategies: Vec<Strategy>,
    /// How the strategy is chosen (specification 5.3).
    pub strategy_choice: StrategyChoice,
    /// Paths of the maps of named rules, for the Rule granularity.
    pub rule_maps: Vec<Vec<String>>,
    /// For Structural: paths of lists and their key fields, in addition to the CRD schema.
    pub list_keys: Vec<(Vec<String>, String)>,
    /// The order of the items of merged lists (specification 5.13).
    pub list_order: ListOrder,
    /// How policies of Routes and of their child Routes act together; `None` if delegation is not followed
    /// (specification 1.8).
    pub delegation: Option<Delegation>,
    /// The Route kinds of the project besides those of the Gateway API (specification 1.9).
    pub route_kinds: Vec<DeclaredRouteKind>,
    /// The Route kinds of all profiles whose Routes generate others, each with the kind that it generates.
    pub(crate) generators: Arc<[(GroupKind, GroupKind)]>,
    /// Paths that are one unit under every granularity.
    pub atomic_paths: Vec<Vec<String>>,
    /// The reducers and the strategies under which they apply (specification 5.2, 5.9).
    pub reducers: Vec<Reducer>,
    /// Fields of which several instances apply together (specification 5.11).
    pub instances: Vec<InstanceField>,
    /// Order of the fold (specification 6.1, 6.2).
    pub fold: FoldOrder,
    /// The levels that the fold covers (specification 6.3).
    pub span: FoldSpan,
    /// How several policies on one node act (specification 4.3).
    pub same_target: SameTarget,
    /// Sort keys of establishment that precede age (specification 4.5).
    pub order: Vec<OrderRule>,
    /// The meaning of an empty policy (specification 5.6).
    pub empty: EmptyBehavior,
    /// Paths of which at least one must be present for rules to count as not empty (specification
    /// 5.6).
    pub empty_unless: Vec<Vec<String>>,
    /// What fields count as that a policy leaves out of an object that it merges (specification 5.10).
    pub field_defaults: Vec<FieldDefault>,
    /// Fields of the target object that are merged below all policies (specification 6.4).
    pub own_fields: Vec<OwnField>,
    /// References to objects that must exist (specification 5.7).
    pub references: Vec<FieldReference>,
    /// Fields that exclude each other (specification 5.12).
    pub exclusive: Vec<ExclusiveFields>,
    /// Whether to ignore policies that their own controller did not accept.
    pub trust_status: bool,
    /// The paths on which only some fields are rules, or none (specification 2.10).
    pub limits: Limits,
    /// How objects say which Gateway serves the mesh paths of a Service (specification 2.12).
    pub waypoints: Option<Waypoints>,
    /// Whether to ignore policies that are being deleted (specification 1.7).
    pub ignores_deleted: bool,
    /// Vocabulary and ancestors of statuses (specification 10).
    pub status: StatusStyle,
    /// How the profile was checked against its controller.
    pub checked: Option<Checked>,
}

/// The source of a profile. Configured overrides built-in, which overrides derived (specification
/// 2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProfileOrigin {
    /// Derived from the label of a CRD.
    Derived,
    /// Shipped with entail.
    BuiltIn,
    /// Configured by the user.
    Configured,
}

/// The class of a policy kind (specification 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum PolicyClass {
    /// One policy wins as a whole on its node (specification 7).
    Direct,
    /// Policies are merged along the path.
    Inherited,
    /// Policies are listed and not merged (specification 8).
    Listed,
    /// No profile describes the kind: its policies are attached but not interpreted (specification 2.7).
    #[serde(skip)]
    Unprofiled,
}

impl PolicyClass {
    /// The name in profiles.
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "Direct",
            Self::Inherited => "Inherited",
            Self::Listed => "Listed",
            Self::Unprofiled => "Unprofiled",
        }
    }
}

/// The kinds that references can name.
#[derive(Clone, Debug, PartialEq)]
pub enum TargetKinds {
    /// Any kind of the hierarchy, with sections. GatewayClass only for derived cluster-scoped kinds
    /// (specification 3.1).
    Any {
        /// Whether references can name a GatewayClass.
        gateway_class: bool,
    },
    /// The kinds in the list.
    Listed(Vec<TargetKind>),
}

/// A kind that references can name.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetKind {
    /// The kind; ListenerSet stands for XListenerSet as well.
    pub kind: GroupKind,
    /// Whether references can name sections of it.
    pub sections: bool,
    /// Whether references can name ports of it by number: `port` beside a Gateway, and the `sectionName` of a backend
    /// (specification 3.6).
    pub ports: bool,
    /// The fields that a policy which names the kind can have, as paths; empty means all (specification 2.11).
    pub fields: Vec<Vec<String>>,
    /// The values that a policy which names the kind cannot have (specification 2.11).
    pub without: Vec<ForbiddenValue>,
    /// What must be true of a policy which names the kind (specification 2.11).
    pub validations: Vec<Validation>,
    /// Whether all of them are checked again for what becomes of the policy when it is merged (specification 2.13).
    pub merged: bool,
    /// Whether only policies in the root namespace can name the kind (specification 2.11).
    pub root_only: bool,
}

/// What must be true of the rules of a policy (specification 2.11), named as in `x-kubernetes-validations` of a CRD.
#[derive(Clone, Debug, PartialEq)]
pub struct Validation {
    /// The expression; `self` is the rules, without the nulls of objects. An error counts as false.
    pub rule: Expression,
    /// Whether the rule holds where no field that it reads is set, which is what most policies are.
    pub holds_without: bool,
    /// What is said of a policy for which the rule is false.
    pub message: Str,
}

/// A place at which a policy cannot have a value (specification 2.11).
#[derive(Clone, Debug, PartialEq)]
pub struct ForbiddenValue {
    /// Path in the rules; `[*]` stands for every item of a list.
    pub path: Vec<FieldStep>,
    /// The path as it is written.
    pub text: Str,
}

/// The level whose behaviour a kind changes (specification 2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffectiveTarget {
    /// Every level has its own effective policy.
    Every,
    /// The target object and each of its sections; for Direct kinds (specification 7.2).
    Target,
    /// The given level.
    Level(Level),
}

/// The forms of attachment that a kind supports (specification 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttachmentForms {
    /// `targetRef`, `targetRefs` and selectors.
    pub refs: bool,
    /// ExtensionRef filters in route rules.
    pub filter: bool,
    /// Without a reference, to the policy's own namespace.
    pub namespace: bool,
}

/// Whether references into other namespaces are allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum CrossNamespace {
    /// Not allowed.
    #[default]
    Never,
    /// Allowed with a ReferenceGrant in the namespace of the target.
    ReferenceGrant,
    /// Allowed.
    Any,
    /// Allowed, and the policy applies to clients in its own namespace only (specification 4.6).
    Clients,
}

/// How policies on Gateways reach the listeners of ListenerSets (specification 7.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenerSetReach {
    /// Whether a policy on a whole Gateway applies to the listeners of its ListenerSets.
    pub from_gateway: bool,
    /// Whether a `sectionName` of a Gateway can name a listener of one of its ListenerSets.
    pub gateway_sections: bool,
}

/// The policies that conflict with each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum ConflictScope {
    /// Those on one node.
    #[default]
    Node,
    /// Also those on HTTP listeners of a Gateway that have one port (specification 7.6).
    Port,
}

/// Where a policy contains its rules (specification 5.1).
#[derive(Clone, Debug, PartialEq)]
pub struct RulesLayout {
    /// Path of the bare rules.
    pub path: Vec<FieldStep>,
    /// Fields that are not rules, in addition to targeting, strategy and block fields.
    pub exclude: Vec<String>,
    /// Accepted names of the defaults block.
    pub defaults: Vec<String>,
    /// Accepted names of the overrides block.
    pub overrides: Vec<String>,
    /// Whether one policy can have both blocks.
    pub both_blocks: bool,
    /// Whether a policy with a block can have bare rules too.
    pub mix_with_bare: bool,
    /// Name of the condition field inside a block (specification 5.4).
    pub when: Option<String>,
    /// Name of the list of unset names (specification 5.5).
    pub unset: Option<String>,
}

/// How the strategy is chosen (specification 5.3).
#[derive(Clone, Debug, PartialEq)]
pub struct StrategyChoice {
    /// Fields of the policy that name the strategy.
    pub fields: Vec<StrategyField>,
    /// Whether the strategy of the lower policy of a pair applies.
    pub lower: bool,
    /// Annotation on the target of the higher policy that names the strategy.
    pub annotation: Option<String>,
    /// Accepted values and their meaning; if empty, the names of strategies are accepted.
    pub values: Vec<(String, StrategyValue)>,
    /// The strategy for an omitted value.
    pub default: Option<StrategyValue>,
}

/// The location of a strategy field.
#[derive(Clone, Debug, PartialEq)]
pub enum StrategyField {
    /// A field of the block, or beside bare rules.
    Name(String),
    /// A path from the policy's root.
    Path(Vec<FieldStep>),
}

/// The meaning of a value of a strategy field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StrategyValue {
    /// A granularity, combined with the direction of the block. Bare rules are defaults.
    Granularity(crate::model::Granularity),
    /// A full strategy.
    Strategy(Strategy),
}

/// A reducer, by default of the Custom granularity.
#[derive(Clone, Debug, PartialEq)]
pub struct Reducer {
    /// Path of the values; `*` matches any field.
    pub path: Vec<String>,
    /// The reducing function.
    pub reduce: ReduceFunction,
    /// The strategies under which it applies (specification 5.9).
    pub strategies: Vec<Strategy>,
}

/// A field of which several instances apply together (specification 5.11).
#[derive(Clone, Debug, PartialEq)]
pub struct InstanceField {
    /// Path of the field in the rules.
    pub path: Vec<String>,
    /// Path, in the value of the field, of what identifies an instance; empty if that is the policy.
    pub key: Vec<String>,
    /// Name of a field in the value that turns off all instances.
    pub disable: Option<String>,
}

/// The order of the items of lists that are merged by key (specification 5.13).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum ListOrder {
    /// The items so far, then those that are added.
    #[default]
    Added,
    /// As in a strategic merge patch of Kubernetes.
    StrategicMergePatch,
}

/// A reducing function. In profiles, a lower-case name or `{cel: ...}`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(
    missing_docs,
    reason = "docs/profiles-reference.md describes the variants"
)]
pub enum ReduceFunction {
    Min,
    Max,
    And,
    Or,
    Union,
    Intersection,
    Append,
    Prepend,
    /// An expression with the variables `established` and `challenger`.
    #[serde(skip)]
    Cel(Expression),
}

/// The order of the fold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum FoldOrder {
    /// From the most specific policy up (specification 6.1).
    #[default]
    BottomUp,
    /// The literal stack of GEP-713 (specification 6.2).
    TopDown,
}

/// The levels that the fold covers (specification 6.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoldSpan {
    /// All levels.
    AllLevels,
    /// The most specific policy and the next one above it. If levels are given, the next one must be
    /// on one of them.
    ClosestParent(Vec<Level>),
}

/// How several policies on one node act (specification 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum SameTarget {
    /// All apply, in order of establishment.
    Established,
    /// The older policy wins under defaults and under overrides.
    OldestWins,
    /// Only the oldest policy is accepted.
    RejectNewer,
    /// Policies are accepted unless they overlap with an older one.
    UnionOrReject,
    /// No policy is accepted where there are several (specification 4.7).
    RejectAll,
}

/// One sort key of establishment that precedes age (specification 4.5).
#[derive(Clone, Debug, PartialEq)]
pub struct OrderRule {
    /// The value that is compared.
    pub source: OrderSource,
    /// Whether larger values come first.
    pub descending: bool,
    /// The values in order, with all others last; `None` compares integers.
    pub values: Option<Vec<String>>,
}

/// The source of a sort key.
#[derive(Clone, Debug, PartialEq)]
pub enum OrderSource {
    /// A field of the policy.
    Field(Vec<FieldStep>),
    /// An annotation of the policy.
    Annotation(String),
}

/// The meaning of an empty policy (specification 5.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum EmptyBehavior {
    /// It is skipped like an absent policy.
    #[default]
    Transparent,
    /// It replaces everything that would be inherited.
    Blocking,
    /// By its strategy: an atomic one replaces everything that would be inherited, and any other adds
    /// nothing to it (specification 5.8).
    ByStrategy,
}

/// What a field counts as that a policy leaves out of an object that it merges (specification 5.10).
#[derive(Clone, Debug, PartialEq)]
pub struct FieldDefault {
    /// Path of the field in the rules; the object above it must be present.
    pub path: Vec<String>,
    /// The value; null erases the field of the policy that it is merged with.
    pub value: serde_json::Value,
}

/// A field of the target object that is merged below all policies (specification 6.4).
#[derive(Clone, Debug, PartialEq)]
pub struct OwnField {
    /// Path in the object; `[*]` selects the rule that is on the path.
    pub object: Vec<FieldStep>,
    /// Path in the rules.
    pub policy: Vec<String>,
    /// What the value does.
    pub mode: OwnFieldMode,
}

/// What a field of the target object does to the rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum OwnFieldMode {
    /// It is merged with the policies.
    #[default]
    Merge,
    /// It takes the place of what policies have at the path. The result has no value there.
    Replace,
}

/// References to objects in the rules of policies (specification 5.7).
#[derive(Clone, Debug, PartialEq)]
pub struct FieldReference {
    /// Path of the references in the rules; `[*]` stands for every item of a list.
    pub path: Vec<FieldStep>,
    /// The kind of the object where a reference does not name one.
    pub kind: GroupKind,
    /// Whether one existing object is enough.
    pub one_is_enough: bool,
    /// Path of a boolean in the rules. If it is true, the object or list item that holds it is left out
    /// where a referenced object is missing.
    pub fail_open: Option<Vec<FieldStep>>,
    /// The reason of the condition Accepted.
    pub reason: Str,
}

/// Fields of which the controller refuses more than one in a result (specification 5.12).
#[derive(Clone, Debug, PartialEq)]
pub struct ExclusiveFields {
    /// The fields, as paths in the rules.
    pub fields: Vec<Unit>,
    /// Path of a boolean in an object above all of them. If it is true, the object is left out.
    pub fail_open: Option<Unit>,
}

/// Vocabulary and ancestors of statuses (specification 10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusStyle {
    /// Vocabulary of the condition.
    pub vocabulary: Vocabulary,
    /// Kind of the ancestors.
    pub ancestor: Ancestor,
}

/// The vocabulary of the condition that reports whether a policy is in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[allow(
    missing_docs,
    reason = "docs/profiles-reference.md describes the variants"
)]
pub enum Vocabulary {
    #[default]
    Programmed,
    Enforced,
    EnforcedWithAdditions,
}

/// The objects that a status is reported for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[allow(
    missing_docs,
    reason = "docs/profiles-reference.md describes the variants"
)]
pub enum Ancestor {
    #[default]
    Gateway,
    Target,
    None,
}

impl TargetKinds {
    /// Returns whether references can name sections of a kind; `None` if they cannot name the kind.
    fn sections_of(&self, kind: &GroupKind) -> Option<bool> {
        match self {
            TargetKinds::Listed(list) => list.iter().find(|t| t.kind == *kind).map(|t| t.sections),
            TargetKinds::Any { gateway_class } => match &*kind.kind {
                "GatewayClass" => gateway_class.then_some(false),
                _ => Some(true),
            },
        }
    }
}

impl Profile {
    /// Returns whether references can name sections of a kind; `None` if they cannot name the kind.
    pub fn target(&self, kind: &GroupKind) -> Option<bool> {
        self.targets.sections_of(kind)
    }

    /// The kind by which references name objects of a kind that is on a path: that of the Route that a Route
    /// generates, unless the kind of the Route is listed itself (specification 1.9).
    pub(crate) fn target_kind<'k>(&'k self, kind: &'k GroupKind) -> &'k GroupKind {
        let mut generators = self.generators.iter();
        match generators.find(|(generator, _)| generator == kind) {
            Some((_, generated)) if self.listed_target(kind).is_none() => generated,
            _ => kind,
        }
    }

    /// Whether references can name an object of a kind that is on a path.
    pub fn targets_object(&self, kind: &GroupKind) -> bool {
        self.target(self.target_kind(kind)).is_some()
    }

    /// Whether references can name ports of a kind by number (specification 3.6).
    pub fn names_ports_of(&self, kind: &GroupKind) -> bool {
        self.listed_target(kind).is_some_and(|target| target.ports)
    }

    /// Returns the entry of a kind in the list of targets.
    pub fn listed_target(&self, kind: &GroupKind) -> Option<&TargetKind> {
        match &self.targets {
            TargetKinds::Listed(list) => list.iter().find(|t| t.kind == *kind),
            TargetKinds::Any { .. } => None,
        }
    }

    /// Reports whether an empty block under a strategy merges, so that it offers nothing (specification
    /// 5.8).
    pub fn empty_merges(&self, strategy: Strategy) -> bool {
        self.empty == EmptyBehavior::ByStrategy
            && strategy.granularity() != Some(Granularity::Atomic)
    }

    /// Returns the fields that targets allow.
    pub fn allowed_fields(&self) -> impl Iterator<Item = &[String]> {
        let listed = match &self.targets {
            TargetKinds::Listed(list) => list.as_slice(),
            TargetKinds::Any { .. } => &[],
        };
        let fields = listed.iter().flat_map(|target| &target.fields);
        fields.map(Vec::as_slice)
    }

    /// Returns the kinds of objects that answers about the policies depend on: that of the policies, the listed targets, and
    /// the declared Routes.
    pub fn kinds(&self) -> impl Iterator<Item = &GroupKind> {
        let routes = self.route_kinds.iter().map(|route| &route.kind);
        iter::once(self.resource())
            .chain(self.target_kinds())
            .chain(routes)
    }

    /// Returns the kinds of objects that the profile lists as targets.
    fn target_kinds(&self) -> impl Iterator<Item = &GroupKind> {
        let listed = match &self.targets {
            TargetKinds::Listed(list) => list.as_slice(),
            TargetKinds::Any { .. } => &[],
        };
        let kinds = listed.iter().map(|target| &target.kind);
        kinds.filter(|kind| !self.virtual_targets.contains(kind))
    }

    /// The level of a target kind. Kinds outside the hierarchy are backends.
    pub fn level_of(&self, kind: &GroupKind) -> Level {
        match self.route_kinds.iter().any(|route| route.kind == *kind) {
            true => Level::Route,
            false => target_level(kind),
        }
    }

    /// Returns the strategy that a raw value means for a block; `None` if the kind does not offer it
    /// (specification 5.3).
    pub fn parse_strategy(&self, raw: &str, block: crate::model::BlockName) -> Option<Strategy> {
        strategy::parse_strategy(self, raw, block).ok()
    }

    /// Whether an entry of `controllers` matches a `controllerName` (specification 2.4).
    pub fn lists_controller(&self, name: &str) -> bool {
        let mut patterns = self.controllers.iter();
        patterns.any(|pattern| matches_pattern(pattern, name))
    }

    /// Whether this stands for the missing profile of a kind (specification 2.7).
    pub fn is_unprofiled(&self) -> bool {
        self.class == PolicyClass::Unprofiled
    }
}

/// Whether a text matches a pattern, in which `*` stands for any characters.
pub fn matches_pattern(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(start) else {
        return false;
    };
    let mut parts = rest.split('*').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return text.ends_with(part);
        }
        match text.split_once(part) {
            Some((_, after)) => text = after,
            None => return false,
        }
    }
    true
}

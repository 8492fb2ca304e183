//! What a policy kind is: one generic description, read from YAML (docs/profiles-reference.md).
//!
//! This room alone names policy kinds, and only in the YAML files of the built-in profiles.

mod builtin;
mod document;
mod label;
mod policy;
mod preset;
mod read;
mod reads_status;
mod references;
mod resolve;
mod settings;
mod strategy;
mod validate;

pub use builtin::{built_in, built_in_sources};
pub use document::{ProfileDocument, ProfileError, parse_documents, parse_value};
pub use label::PolicyLabel;
pub use policy::{Block, Policy, Reference, ReferenceTarget, SelectorNamespaces, StrategySource};
pub use read::read_policy;
pub use settings::target_level;

use crate::expr::Expression;
use crate::model::{FieldStep, GroupKind, Level, Str, Strategy};

/// A resolved profile: every setting has a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// `metadata.name`.
    pub name: Str,
    /// Where it comes from.
    pub origin: ProfileOrigin,
    /// The kind that it describes.
    pub policy: GroupKind,
    /// Whether policies of the kind are cluster-scoped.
    pub cluster_scoped: bool,
    /// Controllers below whose GatewayClasses the kind acts; empty means any (specification 2.4).
    pub controllers: Vec<Str>,
    /// Whether it acts on mesh paths (specification 2.4).
    pub mesh: bool,
    /// Class (specification 2.2).
    pub class: PolicyClass,
    /// What references may name (specification 3).
    pub targets: TargetKinds,
    /// The level whose behaviour the kind changes (specification 2.3).
    pub effective: EffectiveTarget,
    /// Levels that a Namespace stands above (specification 1.2).
    pub namespace_reaches: Vec<Level>,
    /// Kinds without Kubernetes objects (specification 3.2).
    pub virtual_targets: Vec<GroupKind>,
    /// Forms of attachment (specification 3.1).
    pub attach: AttachmentForms,
    /// With `attach.namespace`: the namespace whose policies stand above everything.
    pub root_namespace: Option<Str>,
    /// Path of a selector of workloads.
    pub workload_selector: Option<Vec<FieldStep>>,
    /// How a `sectionName` addresses an unnamed rule: text before and after its 1-based number.
    pub unnamed_rules: Option<(String, String)>,
    /// References into other namespaces (specification 3.1, 4.6).
    pub cross_namespace: CrossNamespace,
    /// Most references of one policy.
    pub max_targets: usize,
    /// Where rules stand (specification 5.1).
    pub rules: RulesLayout,
    /// What the kind offers (specification 5.2).
    pub strategies: Vec<Strategy>,
    /// Who chooses among them (specification 5.3).
    pub strategy_choice: StrategyChoice,
    /// Paths of the maps of named rules, for the Rule granularity.
    pub rule_maps: Vec<Vec<String>>,
    /// For Structural: list path to key field, where the CRD's schema does not say.
    pub list_keys: Vec<(Vec<String>, String)>,
    /// Paths that are one unit whatever the granularity.
    pub atomic_paths: Vec<Vec<String>>,
    /// For Custom (specification 5.2).
    pub reducers: Vec<Reducer>,
    /// Direction of the fold (specification 6.1, 6.2).
    pub fold: FoldOrder,
    /// How far it reaches (specification 6.3).
    pub span: FoldSpan,
    /// Several policies on one node (specification 4.3).
    pub same_target: SameTarget,
    /// Keys before age (specification 4.5).
    pub order: Vec<OrderRule>,
    /// What an empty policy means (specification 5.6).
    pub empty: EmptyBehavior,
    /// Paths of which one must be there for rules to count as not empty (specification 5.6).
    pub empty_unless: Vec<Vec<String>>,
    /// Fields of the target object that join below all policies (specification 6.4).
    pub own_fields: Vec<OwnField>,
    /// Leave out what its own controller does not accept.
    pub trust_status: bool,
    /// Words and ancestors of statuses (specification 10).
    pub status: StatusStyle,
}

/// Where a profile comes from; configured beats built-in beats derived (specification 2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProfileOrigin {
    /// From the label of a CRD.
    Derived,
    /// Shipped with entail.
    BuiltIn,
    /// Given by the user.
    Configured,
}

/// Class of a kind (specification 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyClass {
    /// One policy wins whole on its node (specification 7).
    Direct,
    /// Policies are merged along the path.
    Inherited,
    /// Policies are listed, not merged (specification 8).
    Listed,
}

/// What references may name.
#[derive(Clone, Debug, PartialEq)]
pub enum TargetKinds {
    /// Any kind of the hierarchy, with sections; GatewayClass only for derived cluster-scoped
    /// kinds (specification 3.1).
    Any {
        /// Whether GatewayClass is among them.
        gateway_class: bool,
    },
    /// These.
    Listed(Vec<TargetKind>),
}

/// One kind that references may name.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetKind {
    /// The kind; XListenerSet is written as ListenerSet.
    pub kind: GroupKind,
    /// Whether its sections may be named.
    pub sections: bool,
}

/// The level whose behaviour a kind changes (specification 2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffectiveTarget {
    /// Every level has an answer of its own.
    Every,
    /// For Direct kinds: the target object and each of its sections (specification 7.2).
    Target,
    /// This level.
    Level(Level),
}

/// Forms of attachment that a kind knows (specification 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttachmentForms {
    /// `targetRef`, `targetRefs`, selectors.
    pub refs: bool,
    /// ExtensionRef filters in route rules.
    pub filter: bool,
    /// No reference at all: the policy's own namespace.
    pub namespace: bool,
}

/// References into other namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrossNamespace {
    /// Not allowed.
    Never,
    /// With a ReferenceGrant in the target's namespace.
    ReferenceGrant,
    /// Without asking.
    Any,
    /// For requests from the policy's namespace only (specification 4.6).
    Clients,
}

/// Where rules stand in a policy (specification 5.1).
#[derive(Clone, Debug, PartialEq)]
pub struct RulesLayout {
    /// Path of the bare rules.
    pub path: Vec<FieldStep>,
    /// Fields that are no rules, besides targeting, strategy and block fields.
    pub exclude: Vec<String>,
    /// Names of the defaults block.
    pub defaults: Vec<String>,
    /// Names of the overrides block.
    pub overrides: Vec<String>,
    /// Whether one policy may carry both.
    pub both_blocks: bool,
    /// Whether blocks may stand beside bare rules.
    pub mix_with_bare: bool,
    /// Name of the condition field inside a block (specification 5.4).
    pub when: Option<String>,
    /// Name of the list of unset names (specification 5.5).
    pub unset: Option<String>,
}

/// Who chooses the strategy (specification 5.3).
#[derive(Clone, Debug, PartialEq)]
pub struct StrategyChoice {
    /// Fields of the policy that name it.
    pub fields: Vec<StrategyField>,
    /// Whether the lower policy of a pair dictates.
    pub lower: bool,
    /// Annotation on the higher policy's target that names it.
    pub annotation: Option<String>,
    /// Raw values and what they mean; empty: the names themselves.
    pub values: Vec<(String, StrategyValue)>,
    /// For an omitted value.
    pub default: Option<StrategyValue>,
}

/// Where a strategy field stands.
#[derive(Clone, Debug, PartialEq)]
pub enum StrategyField {
    /// In the block, and for bare rules where they stand.
    Name(String),
    /// A path from the policy's root.
    Path(Vec<FieldStep>),
}

/// What a value of a strategy field means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StrategyValue {
    /// A granularity: in a block with its direction, for bare rules with defaults.
    Granularity(crate::model::Granularity),
    /// A full strategy.
    Strategy(Strategy),
}

/// A reducer of the Custom granularity.
#[derive(Clone, Debug, PartialEq)]
pub struct Reducer {
    /// Where; `*` matches any field.
    pub path: Vec<String>,
    /// What.
    pub reduce: ReduceFunction,
}

/// Reducing functions.
#[derive(Clone, Debug, PartialEq)]
#[allow(
    missing_docs,
    reason = "the words say it; the reference describes them"
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
    /// An expression over `established` and `challenger`.
    Cel(Expression),
}

/// Direction of the fold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoldOrder {
    /// From the most specific policy up (specification 6.1).
    BottomUp,
    /// The literal stack of GEP-713 (specification 6.2).
    TopDown,
}

/// How far the fold reaches (specification 6.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoldSpan {
    /// All levels.
    AllLevels,
    /// The most specific policy and the next one above it; if levels are given, only one there.
    ClosestParent(Vec<Level>),
}

/// Several policies on one node (specification 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SameTarget {
    /// All act, in order of establishment.
    Established,
    /// The older wins under defaults and overrides alike.
    OldestWins,
    /// Only the oldest is accepted.
    RejectNewer,
    /// All that do not overlap an older one.
    UnionOrReject,
}

/// One key of the order before age (specification 4.5).
#[derive(Clone, Debug, PartialEq)]
pub struct OrderRule {
    /// What is read.
    pub source: OrderSource,
    /// Larger first.
    pub descending: bool,
    /// Values in their order, others last; without it integers.
    pub values: Option<Vec<String>>,
}

/// What an order key reads.
#[derive(Clone, Debug, PartialEq)]
pub enum OrderSource {
    /// A field of the policy.
    Field(Vec<FieldStep>),
    /// An annotation of the policy.
    Annotation(String),
}

/// What an empty policy means (specification 5.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmptyBehavior {
    /// It is skipped like an absent one.
    Transparent,
    /// It is a result that takes the place of what would be inherited.
    Blocking,
}

/// A field of the target object that joins the fold (specification 6.4).
#[derive(Clone, Debug, PartialEq)]
pub struct OwnField {
    /// Path in the object; `[*]` is the rule on the path.
    pub object: Vec<FieldStep>,
    /// Path in the rules.
    pub policy: Vec<String>,
}

/// Words and ancestors of statuses (specification 10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusStyle {
    /// Which words.
    pub vocabulary: Vocabulary,
    /// Which ancestors.
    pub ancestor: Ancestor,
}

/// Words of the in-force condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "the words say it; the reference describes them"
)]
pub enum Vocabulary {
    Programmed,
    Enforced,
    EnforcedWithAdditions,
}

/// Which objects a status is told for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "the words say it; the reference describes them"
)]
pub enum Ancestor {
    Gateway,
    Target,
    None,
}

impl Profile {
    /// Whether references may name this kind, and its sections: `None` if not at all.
    pub fn target(&self, kind: &GroupKind) -> Option<bool> {
        match &self.targets {
            TargetKinds::Listed(list) => list.iter().find(|t| t.kind == *kind).map(|t| t.sections),
            TargetKinds::Any { gateway_class } => match &*kind.kind {
                "GatewayClass" => gateway_class.then_some(false),
                _ => Some(true),
            },
        }
    }

    /// The kinds of objects that references may name, as far as the profile lists them.
    pub fn target_kinds(&self) -> impl Iterator<Item = &GroupKind> {
        let listed = match &self.targets {
            TargetKinds::Listed(list) => list.as_slice(),
            TargetKinds::Any { .. } => &[],
        };
        let kinds = listed.iter().map(|target| &target.kind);
        kinds.filter(|kind| !self.virtual_targets.contains(kind))
    }

    /// The strategy that a raw value means for a block; `None` if the kind does not offer it
    /// (specification 5.3).
    pub fn parse_strategy(&self, raw: &str, block: crate::model::BlockName) -> Option<Strategy> {
        strategy::parse_strategy(self, raw, block).ok()
    }

    /// Whether the kind acts below a Gateway whose class has this controller (specification 2.4).
    pub fn acts_below(&self, controller: Option<&str>) -> bool {
        self.controllers.is_empty()
            || controller.is_some_and(|name| self.controllers.iter().any(|c| &**c == name))
    }
}

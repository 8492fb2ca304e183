//! Effective policies and the origins of their values (specification 9).

use serde_json::Value;

use super::level::Level;
use super::object_key::{ObjectKey, Str};
use super::strategy::Strategy;
use super::unit::Unit;
use super::unknown::Unknown;

/// The namespace and name of a policy whose kind is known from the context.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PolicyRef {
    /// Namespace; empty for cluster-scoped policies.
    pub namespace: Str,
    /// Name.
    pub name: Str,
}

/// The block of a policy that contains a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BlockName {
    /// Rules outside any block: implicit defaults.
    Bare,
    /// The defaults block.
    Defaults,
    /// The overrides block.
    Overrides,
    /// A field of the target object itself (specification 6.4).
    OwnFields,
}

/// The policies that set a unit and everything below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The unit; the empty unit (`*`) if one policy sets everything.
    pub unit: Unit,
    /// The policies, sorted. More than one if a reducer combined their values.
    pub policies: Vec<PolicyRef>,
    /// The object, if the value is one of its own fields.
    pub object: Option<ObjectKey>,
    /// The block that contains the value.
    pub block: BlockName,
    /// The strategy by which the block was merged.
    pub strategy: Strategy,
}

/// A policy that is attached on the path but not accepted (specification 9.4).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RejectedPolicy {
    /// The policy.
    pub policy: PolicyRef,
    /// `Invalid`, `Conflicted`, or the reason that the policy's own controller gave.
    pub reason: String,
    /// A human-readable description of the reason.
    pub message: String,
}

/// One policy of a listed kind (specification 8).
#[derive(Clone, Debug, PartialEq)]
pub struct ListedPolicy {
    /// The policy.
    pub policy: PolicyRef,
    /// The node of the path that the policy is attached to, as `Kind/ns/name[#section]`.
    pub node: String,
    /// The level of that node.
    pub level: Level,
    /// The rules of the policy, unchanged.
    pub spec: Value,
}

/// The effective policy of one kind on one path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EffectivePolicy {
    /// The merged rules; `None` if and only if no block of a policy took part (specification 5.6).
    pub spec: Option<Value>,
    /// The origins of all values, sorted by unit.
    pub origins: Vec<Origin>,
    /// The strategy of the least specific policy that took part (specification 5.3).
    pub strategy: Option<Strategy>,
    /// The policies of a listed kind, in order.
    pub listed: Vec<ListedPolicy>,
    /// Policies that are attached on the path but not accepted, sorted.
    pub rejected: Vec<RejectedPolicy>,
    /// Whether the path ends above the kind's effective level, so that the answer holds only what is
    /// inherited so far.
    pub inherited_only: bool,
    /// Why the answer was not computed; `None` if it was.
    pub not_computed: Option<String>,
    /// What the answer does not know; `None` if it is complete (specification 2.5).
    pub unknown: Option<Unknown>,
}

/// Why the value that a policy offered is not in the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LossReason {
    /// A more specific policy sets the unit, and this value is a default.
    MoreSpecificDefault,
    /// A more specific policy overrides the unit, and no less specific policy overrides that.
    MoreSpecificOverride,
    /// A less specific policy overrides the unit.
    LessSpecificOverride,
    /// An older policy on the same node sets the unit.
    Older,
    /// A newer policy on the same node sets the unit.
    Newer,
    /// A more specific policy unsets the unit.
    Unset,
    /// A null deletes the unit.
    DeletedByNull,
    /// The condition of the block is not true on this path.
    ConditionFalse,
    /// The policy is beyond the closest parent.
    BeyondClosestParent,
    /// A field of the target object sets the unit.
    OwnField,
    /// An object that a policy references is missing (specification 5.7).
    MissingReference,
    /// The unit is one of several fields that exclude each other (specification 5.12).
    ExclusiveFields,
    /// A policy on a section, or on a more specific target, replaces this policy there as a whole.
    SectionTaken,
    /// The overrides block of the same policy sets the unit.
    SamePolicyOverride,
}

/// A policy that offered a unit and was overridden.
#[derive(Clone, Debug, PartialEq)]
pub struct OverriddenPolicy {
    /// The policy.
    pub policy: PolicyRef,
    /// The block that contains the offered unit.
    pub block: BlockName,
    /// The offered unit: equal to, above or below the unit of the result.
    pub unit: Unit,
    /// The offered value.
    pub value: Value,
    /// Why the policy is overridden.
    pub reason: LossReason,
}

/// One unit of a result with the policies that set it and those that they override (specification 9.1).
#[derive(Clone, Debug, PartialEq)]
pub struct UnitExplanation {
    /// The unit.
    pub unit: Unit,
    /// The value; `None` if a null deleted the unit or `unset` excludes it.
    pub value: Option<Value>,
    /// The origin of the value; `None` if no policy sets the unit.
    pub origin: Option<Origin>,
    /// The policies that are overridden in the unit, from the least to the most specific.
    pub overridden: Vec<OverriddenPolicy>,
}

/// An effective policy with the setting and the overridden policies of each unit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Explanation {
    /// The effective policy, as look-ups return it.
    pub effective: EffectivePolicy,
    /// Every unit that at least one policy offers.
    pub units: Vec<UnitExplanation>,
}

impl PolicyRef {
    /// Returns the reference to the policy with a key.
    pub fn of(key: &ObjectKey) -> Self {
        Self {
            namespace: key.namespace.clone(),
            name: key.name.clone(),
        }
    }
}

impl std::fmt::Display for PolicyRef {
    /// `namespace/name`, or `name` for cluster-scoped policies.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}

impl BlockName {
    /// Returns the name that answers use.
    pub fn as_str(self) -> &'static str {
        match self {
            BlockName::Bare => "rules",
            BlockName::Defaults => "defaults",
            BlockName::Overrides => "overrides",
            BlockName::OwnFields => "own fields",
        }
    }
}

impl LossReason {
    /// All reasons.
    pub const ALL: [LossReason; 14] = [
        LossReason::MoreSpecificDefault,
        LossReason::MoreSpecificOverride,
        LossReason::LessSpecificOverride,
        LossReason::Older,
        LossReason::Newer,
        LossReason::Unset,
        LossReason::DeletedByNull,
        LossReason::ConditionFalse,
        LossReason::BeyondClosestParent,
        LossReason::OwnField,
        LossReason::MissingReference,
        LossReason::ExclusiveFields,
        LossReason::SectionTaken,
        LossReason::SamePolicyOverride,
    ];

    /// Returns the phrase that explanations use.
    pub fn as_str(self) -> &'static str {
        match self {
            LossReason::MoreSpecificDefault => "more specific default",
            LossReason::MoreSpecificOverride => "more specific override",
            LossReason::LessSpecificOverride => "less specific override",
            LossReason::Older => "older",
            LossReason::Newer => "newer",
            LossReason::Unset => "unset",
            LossReason::DeletedByNull => "deleted by null",
            LossReason::ConditionFalse => "condition false",
            LossReason::BeyondClosestParent => "beyond the closest parent",
            LossReason::OwnField => "own field of the object",
            LossReason::MissingReference => "missing reference",
            LossReason::ExclusiveFields => "fields that exclude each other",
            LossReason::SectionTaken => "a more specific target takes its part whole",
            LossReason::SamePolicyOverride => "override of the same policy",
        }
    }
}

impl EffectivePolicy {
    /// Reports whether the answer is empty: the kind has no policy on the path.
    pub fn is_empty(&self) -> bool {
        self.spec.is_none()
            && self.listed.is_empty()
            && self.rejected.is_empty()
            && self.not_computed.is_none()
            && self.unknown.is_none()
    }
}

//! Effective policies and where their values come from (specification 9).

use serde_json::Value;

use super::level::Level;
use super::object::{ObjectKey, Str};
use super::strategy::Strategy;
use super::unit::Unit;

/// A policy of the kind at hand.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PolicyRef {
    /// Namespace; empty for cluster-scoped policies.
    pub namespace: Str,
    /// Name.
    pub name: Str,
}

/// Which block of a policy a value stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BlockName {
    /// Rules without a block: implicit defaults.
    Bare,
    /// The defaults block.
    Defaults,
    /// The overrides block.
    Overrides,
    /// A field of the target object itself (specification 6.4).
    OwnFields,
}

/// Who says a unit. It holds for everything at and below the unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The unit; the empty unit (`*`) where one policy gives everything.
    pub unit: Unit,
    /// The policies, sorted; several where reducers made the value of them.
    pub policies: Vec<PolicyRef>,
    /// The object, where the value is one of its own fields.
    pub object: Option<ObjectKey>,
    /// The block that it stands in.
    pub block: BlockName,
    /// The strategy by which the block joined.
    pub strategy: Strategy,
}

/// A policy that is attached on the path, but not accepted (specification 9.4).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RejectedPolicy {
    /// The policy.
    pub policy: PolicyRef,
    /// Why: `Invalid`, `Conflicted`, or the reason of its own controller.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
}

/// One policy of a listed kind, in its place (specification 8).
#[derive(Clone, Debug, PartialEq)]
pub struct ListedPolicy {
    /// The policy.
    pub policy: PolicyRef,
    /// The node of the path that it is attached to, `Kind/ns/name[#section]`.
    pub node: String,
    /// The level of that node.
    pub level: Level,
    /// Its rules, as they stand in the policy.
    pub spec: Value,
}

/// The answer of one kind on one path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EffectivePolicy {
    /// The merged rules; `None` exactly if no policy's block took part (specification 5.6).
    pub spec: Option<Value>,
    /// Who says what, sorted by unit.
    pub origins: Vec<Origin>,
    /// The strategy of the least specific policy that took part: it dictates (specification 5.3).
    pub strategy: Option<Strategy>,
    /// For listed kinds: the policies in order.
    pub listed: Vec<ListedPolicy>,
    /// Policies that are attached here but not accepted, sorted.
    pub rejected: Vec<RejectedPolicy>,
    /// The look-up was above the kind's effective level: what is gathered so far.
    pub inherited_only: bool,
    /// Why nothing was computed, if so.
    pub not_computed: Option<String>,
}

/// Why a policy's value is not the result's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LossReason {
    /// A more specific policy says it, and defaults yield.
    MoreSpecificDefault,
    /// A more specific policy overrides it, and nothing above says otherwise.
    MoreSpecificOverride,
    /// A less specific policy overrides it.
    LessSpecificOverride,
    /// An older policy on the same node holds it.
    Older,
    /// A newer policy on the same node holds it.
    Newer,
    /// A more specific policy unsets it.
    Unset,
    /// A null deletes it.
    DeletedByNull,
    /// The block's condition is not true on this path.
    ConditionFalse,
    /// It lies beyond the closest parent.
    BeyondClosestParent,
    /// The target object's own field says it.
    OwnField,
    /// A policy on a section, or on a more specific target, takes its part whole.
    SectionTaken,
    /// The overrides block of the same policy says it.
    SamePolicyOverride,
}

/// A policy that offered a unit and lost it.
#[derive(Clone, Debug, PartialEq)]
pub struct BeatenPolicy {
    /// The policy.
    pub policy: PolicyRef,
    /// The block that it offered the unit in.
    pub block: BlockName,
    /// The unit as it offered it: at, above or below the unit that won.
    pub unit: Unit,
    /// What it offered.
    pub value: Value,
    /// Why it lost.
    pub reason: LossReason,
}

/// One unit of a result with its winner and those that it beat (specification 9.1).
#[derive(Clone, Debug, PartialEq)]
pub struct UnitExplanation {
    /// The unit.
    pub unit: Unit,
    /// Its value; `None` where a null deleted it or `unset` keeps it out.
    pub value: Option<Value>,
    /// Who won it; `None` where nobody did.
    pub origin: Option<Origin>,
    /// Who lost it, from the least specific on.
    pub beaten: Vec<BeatenPolicy>,
}

/// An effective policy with the whole story.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Explanation {
    /// The answer, as look-ups give it.
    pub effective: EffectivePolicy,
    /// Every unit that some policy offers.
    pub units: Vec<UnitExplanation>,
}

impl PolicyRef {
    /// The policy of a key.
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
    /// The word in answers.
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
    /// The phrase in explanations.
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
            LossReason::SectionTaken => "a more specific target takes its part whole",
            LossReason::SamePolicyOverride => "override of the same policy",
        }
    }
}

impl EffectivePolicy {
    /// Whether it says nothing at all, as for a kind without a policy on the path.
    pub fn is_empty(&self) -> bool {
        self.spec.is_none()
            && self.listed.is_empty()
            && self.rejected.is_empty()
            && self.not_computed.is_none()
    }
}

//! Policies, parsed according to their profile.

use std::sync::Arc;

use serde_json::{Map, Value};
use thin_vec::ThinVec;

use crate::expr::Expression;
use crate::model::{
    BlockName, Encoded, GroupKind, LabelSelector, Object, ObjectKey, Rules, Segment, Str, Strategy,
    Timestamp, Unit,
};

/// A policy, parsed according to the profile of its kind.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Key of the policy.
    pub key: ObjectKey,
    /// The object that the policy was parsed from.
    pub object: Arc<Object>,
    /// Sort keys that precede age in the order of establishment; smaller is more established
    /// (specification 4.5).
    pub order: ThinVec<i128>,
    /// The references, in the order of the policy.
    pub references: ThinVec<Reference>,
    /// The blocks: bare rules first, then defaults, then overrides (specification 11.10).
    pub blocks: ThinVec<Block>,
    /// Why the whole policy is Invalid; `None` if it is valid (specification 3.4).
    pub invalid: Option<Str>,
    /// The reason of the policy's controller, if the profile trusts it and it does not accept the
    /// policy; or that the policy is being deleted, if the kind ignores such policies.
    pub untrusted: Option<Str>,
    /// Whether the policy selects workloads, which are not nodes (specification 3.1).
    pub selects_workloads: bool,
    /// Warnings about unusual but harmless content.
    pub warnings: ThinVec<String>,
    /// The objects that the rules reference, as far as the profile names the references (specification 5.7).
    pub named_objects: ThinVec<ObjectKey>,
    /// Why the policy is not accepted, if some of these objects are missing.
    pub missing: Option<Box<MissingObjects>>,
}

/// Why a policy that references missing objects is not accepted (specification 5.7).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MissingObjects {
    /// The reason of the condition Accepted.
    pub reason: Str,
    /// The references and what is wrong with them.
    pub message: String,
}

/// A reference of a block to a missing object.
#[derive(Clone, Debug, PartialEq)]
pub struct MissingReference {
    /// The reference, or the list above it.
    pub unit: Unit,
    /// The boolean that says whether requests pass without the value, if the profile names one.
    pub fail_open: Option<Unit>,
}

/// A reference of a block to an object of a kind, or in a namespace, of which nothing is known.
#[derive(Clone, Debug, PartialEq)]
pub struct UncheckedReference {
    /// The object.
    pub object: ObjectKey,
    /// The reference, or the list above it.
    pub unit: Unit,
    /// The boolean that says whether requests pass without the value; `None` if an item of a list says that they
    /// do.
    pub fail_open: Option<Unit>,
}

/// One reference of a policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    /// Field path of the reference, such as `spec.targetRefs[0]`.
    pub field: Str,
    /// Kind of the target.
    pub kind: GroupKind,
    /// Name or selector of the target.
    pub target: ReferenceTarget,
    /// `sectionName`.
    pub section: Option<Str>,
    /// `port`, if the kind can name ports of the target (specification 3.6).
    pub port: Option<u16>,
    /// `namespace`.
    pub namespace: Option<Str>,
    /// `namespaces` of a selector.
    pub namespaces: SelectorNamespaces,
    /// Why the reference is malformed; `None` if it is well-formed.
    pub invalid: Option<Str>,
}

/// The target of a reference: an object by name, or objects by labels.
#[derive(Clone, Debug, PartialEq)]
pub enum ReferenceTarget {
    /// The object with this name.
    Name(Str),
    /// The objects with matching labels.
    Selector(Box<LabelSelector>),
}

/// The namespaces that a selector covers (specification 3.1).
#[derive(Clone, Debug, Default, PartialEq)]
pub enum SelectorNamespaces {
    /// The namespace of the policy.
    #[default]
    Same,
    /// All namespaces.
    All,
    /// The namespaces with matching labels.
    Selector(Box<LabelSelector>),
}

/// A block of rules.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// Name of the block.
    pub name: BlockName,
    /// The rules, without targeting, strategy and block fields.
    pub rules: Rules,
    /// Source of the strategy.
    pub strategy: StrategySource,
    /// The condition (specification 5.4).
    pub when: Option<Expression>,
    /// The units that less specific defaults cannot add (specification 5.5).
    pub unset: ThinVec<Unit>,
    /// Whether the rules take part. An empty block is skipped, unless the kind is Blocking
    /// (specification 5.6).
    pub participates: bool,
    /// The references to missing objects (specification 5.7).
    pub missing: ThinVec<MissingReference>,
    /// The references of which it is not known whether the object exists, among those without which requests
    /// can pass (specification 5.7).
    pub unchecked: ThinVec<UncheckedReference>,
    /// Of own fields: the units whose values are replaced by fields of the object (specification 6.4).
    pub replaces: ThinVec<Unit>,
}

/// The source of the strategy of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StrategySource {
    /// The profile or the policy.
    Fixed(Strategy),
    /// An annotation on the target of the policy, with this default.
    ByAnnotation(Strategy),
}

impl Block {
    /// Reports whether the block offers or unsets something.
    pub fn has_effect(&self) -> bool {
        self.participates || !self.unset.is_empty()
    }
}

impl MissingReference {
    /// Reports whether requests pass without the value, by the rules that hold it.
    pub fn fails_open(&self, rules: &Rules) -> bool {
        let Some(Unit(place)) = &self.fail_open else {
            return false;
        };
        encoded_at(rules, place).is_some_and(Encoded::is_true)
    }

    /// Reports whether rules hold the reference, or the list that it is in.
    pub fn is_in(&self, rules: &Rules) -> bool {
        encoded_at(rules, &self.unit.0).is_some()
    }

    /// The place of the object that holds the boolean.
    pub fn holder(&self) -> Option<&[Segment]> {
        let (_, holder) = self.fail_open.as_ref()?.0.split_last()?;
        Some(holder)
    }
}

impl UncheckedReference {
    /// Reports whether rules hold the reference, or the list that it is in.
    pub fn is_in(&self, rules: &Rules) -> bool {
        encoded_at(rules, &self.unit.0).is_some()
    }

    /// Reports whether requests pass without the value, by the rules that hold it.
    pub fn fails_open(&self, rules: &Rules) -> bool {
        let Some(Unit(place)) = &self.fail_open else {
            return true;
        };
        encoded_at(rules, place).is_some_and(Encoded::is_true)
    }
}

impl StrategySource {
    /// Returns the strategy, ignoring annotations.
    pub fn strategy(self) -> Strategy {
        match self {
            StrategySource::Fixed(strategy) | StrategySource::ByAnnotation(strategy) => strategy,
        }
    }
}

impl Policy {
    /// Reports whether the policy offers and unsets nothing, so that it is skipped like an absent
    /// policy (specification 5.6, 11.8).
    pub fn is_transparent(&self) -> bool {
        !self.blocks.iter().any(Block::has_effect)
    }

    /// Returns the sort key of establishment: the keys of the profile, age, and `namespace/name`
    /// (specification 4.2, 4.4, 4.5). Smaller is more established.
    pub fn establishment(&self) -> (&[i128], bool, i64, String) {
        let created = self.object.created;
        (
            &self.order,
            // A missing timestamp counts as newest.
            created.is_none(),
            created.map_or(0, Timestamp::seconds),
            self.key.qualified_name(),
        )
    }

    /// Reports whether the whole policy is Invalid.
    pub fn is_invalid(&self) -> bool {
        self.invalid.is_some()
    }
}

/// The value at a place of fields; `None` for the place of the rules themselves.
fn encoded_at<'r>(rules: &'r Rules, place: &[Segment]) -> Option<Encoded<'r>> {
    let mut value = rules.encoded();
    for segment in place {
        let Segment::Field(name) = segment else {
            return None;
        };
        value = value.get(name)?;
    }
    (!place.is_empty()).then_some(value)
}

/// The value at a place of fields.
pub(super) fn value_at<'r>(rules: &'r Map<String, Value>, place: &[Segment]) -> Option<&'r Value> {
    let mut fields = Some(rules);
    let mut value = None;
    for segment in place {
        let Segment::Field(name) = segment else {
            return None;
        };
        value = fields.and_then(|fields| fields.get(&**name));
        fields = value.and_then(Value::as_object);
    }
    value
}

//! A policy as its profile reads it.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::expr::Expression;
use crate::model::{BlockName, GroupKind, LabelSelector, Object, ObjectKey, Str, Strategy, Unit};

/// A policy, read by the profile of its kind.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Identity.
    pub key: ObjectKey,
    /// The object that it was read from.
    pub object: Arc<Object>,
    /// Its place among policies of one node: keys before age, smaller is established
    /// (specification 4.5).
    pub order: Vec<i128>,
    /// Its references, in the order in which they are written.
    pub references: Vec<Reference>,
    /// Its blocks; bare rules first, then defaults, then overrides (specification 11.10).
    pub blocks: Vec<Block>,
    /// Why the whole policy is Invalid, if it is (specification 3.4).
    pub invalid: Option<String>,
    /// The reason of its controller, where the profile trusts it and it does not accept the policy.
    pub untrusted: Option<String>,
    /// It selects workloads, which are no nodes (specification 3.1).
    pub selects_workloads: bool,
    /// What is odd but harmless.
    pub warnings: Vec<String>,
}

/// One reference of a policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    /// Where it stands, such as `spec.targetRefs[0]`.
    pub place: String,
    /// The kind that it names.
    pub kind: GroupKind,
    /// What it names.
    pub target: ReferenceTarget,
    /// `sectionName`.
    pub section: Option<Str>,
    /// `namespace`.
    pub namespace: Option<Str>,
    /// `namespaces` of a selector.
    pub namespaces: SelectorNamespaces,
    /// Why it cannot be read, if so.
    pub invalid: Option<String>,
}

/// An object by name, or objects by labels.
#[derive(Clone, Debug, PartialEq)]
pub enum ReferenceTarget {
    /// By name.
    Name(Str),
    /// By labels.
    Selector(LabelSelector),
}

/// Where a selector looks (specification 3.1).
#[derive(Clone, Debug, Default, PartialEq)]
pub enum SelectorNamespaces {
    /// In the policy's namespace.
    #[default]
    Same,
    /// Everywhere.
    All,
    /// In the namespaces with these labels.
    Selector(LabelSelector),
}

/// A block of rules.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// Which one.
    pub name: BlockName,
    /// The rules; targeting, strategy and block fields are not among them.
    pub rules: Map<String, Value>,
    /// How it joins.
    pub strategy: StrategySource,
    /// Its condition (specification 5.4).
    pub when: Option<Expression>,
    /// What higher defaults must not add (specification 5.5).
    pub unset: Vec<Unit>,
    /// Whether its rules are offered: an empty block is skipped, unless the kind is Blocking
    /// (specification 5.6).
    pub participates: bool,
}

/// Who says how a block joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StrategySource {
    /// The profile or the policy.
    Fixed(Strategy),
    /// An annotation on the policy's target; this where it does not say.
    ByAnnotation(Strategy),
}

impl StrategySource {
    /// The strategy without a look at annotations.
    pub fn strategy(self) -> Strategy {
        match self {
            StrategySource::Fixed(strategy) | StrategySource::ByAnnotation(strategy) => strategy,
        }
    }
}

impl Policy {
    /// Whether it offers nothing and unsets nothing: skipped like an absent one
    /// (specification 5.6, 11.8).
    pub fn is_transparent(&self) -> bool {
        self.blocks
            .iter()
            .all(|block| !block.participates && block.unset.is_empty())
    }

    /// The order of establishment: keys, age, then the string `namespace/name`
    /// (specification 4.2, 4.4, 4.5). Smaller is established.
    pub fn establishment(&self) -> (&[i128], bool, i64, String) {
        let created = self.object.created;
        (
            &self.order,
            // No timestamp is newest.
            created.is_none(),
            created.map_or(0, |t| t.0),
            self.key.qualified_name(),
        )
    }

    /// Whether the outcome of the whole policy is Invalid.
    pub fn is_invalid(&self) -> bool {
        self.invalid.is_some()
    }
}

//! Own fields of the target object (specification 6.4).

use serde_json::{Map, Value};

use super::{AttachmentChain, PolicyKind, World};
use crate::merge::{Layer, StackGroup};
use crate::model::{
    BlockName, Direction, Granularity, Level, NodeKey, Section, Strategy, at_path, is_unset,
};
use crate::profile::{Block, StrategySource};

/// The own fields that join below all policies.
#[derive(Debug)]
pub(crate) struct OwnRules {
    /// The object at the end of the path.
    pub object: NodeKey,
    block: Block,
    strategy: Strategy,
}

impl World {
    /// The values that the profile names, taken from the object at the end of the path; `None` if
    /// it sets none of them.
    pub(crate) fn own_rules(&self, kind: &PolicyKind, chain: &AttachmentChain) -> Option<OwnRules> {
        let object = self.topology().key(chain.own?).clone();
        let body = &self.store().get(&object.object)?.object.body;
        let rule = match object.section {
            Some(Section::Rule(index)) => Some(index as usize),
            _ => None,
        };
        let mut rules = Map::new();
        for field in &kind.profile.own_fields {
            let value = at_path(body, &field.object, rule);
            if let Some(value) = value.filter(|v| !is_unset(Some(v))) {
                put(&mut rules, &field.policy, value.clone());
            }
        }
        if rules.is_empty() {
            return None;
        }
        // They join in the kind's granularity.
        let offered = kind
            .profile
            .strategies
            .iter()
            .filter_map(|s| s.granularity());
        let strategy = Strategy::Merge(
            offered.max().unwrap_or(Granularity::Field),
            Direction::Defaults,
        );
        Some(OwnRules {
            object,
            strategy,
            block: Block {
                name: BlockName::OwnFields,
                rules,
                strategy: StrategySource::Fixed(strategy),
                when: None,
                unset: Vec::new(),
                participates: true,
            },
        })
    }
}

impl OwnRules {
    /// The lowest group of the stack.
    pub(crate) fn group(&self) -> StackGroup<'_> {
        StackGroup {
            level: Level::BackendPort,
            layers: vec![Layer {
                policy: None,
                blocks: vec![(&self.block, self.strategy)],
            }],
        }
    }
}

/// Puts a value at a path, making the objects above it.
fn put(rules: &mut Map<String, Value>, path: &[String], value: Value) {
    let Some((first, rest)) = path.split_first() else {
        return;
    };
    if rest.is_empty() {
        rules.insert(first.clone(), value);
        return;
    }
    let below = rules
        .entry(first.clone())
        .or_insert_with(|| Value::Object(Map::new()));
    if let Some(below) = below.as_object_mut() {
        put(below, rest, value);
    }
}

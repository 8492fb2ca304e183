//! Own fields: values of the target object that are merged below all policies (specification 6.4).

use serde_json::{Map, Value};
use thin_vec::ThinVec;

use super::{AttachmentChain, PolicyKind, World};
use crate::merge::{Layer, StackGroup};
use crate::model::{
    BlockName, Direction, Granularity, Level, NodeKey, Rules, Section, Strategy, Unit, is_unset,
};
use crate::profile::{Block, OwnFieldMode, StrategySource};

/// The own fields of an object, as a block that is merged below all policies.
#[derive(Debug)]
pub(crate) struct OwnRules {
    /// The object at the end of the path.
    pub object: NodeKey,
    block: Block,
    strategy: Strategy,
}

impl World {
    /// Reads the fields that the profile names from the object at the end of the path; `None` if the
    /// object sets none of them.
    pub(crate) fn own_rules(&self, kind: &PolicyKind, chain: &AttachmentChain) -> Option<OwnRules> {
        let object = self.topology().key(chain.own?).clone();
        let body = &self.store().get(&object.object)?.object.body;
        let rule = match object.section {
            Some(Section::Rule(index)) => Some(index as usize),
            _ => None,
        };
        let mut rules = Map::new();
        let mut replaces: Vec<Unit> = Vec::new();
        for field in &kind.profile.own_fields {
            // Nodes of rules read the same object, each a small part of it.
            let value = body.at_path(&field.object, rule);
            match (value.filter(|v| !is_unset(Some(v))), field.mode) {
                (None, _) => {}
                (Some(value), OwnFieldMode::Merge) => {
                    put(&mut rules, &field.policy, value);
                }
                (Some(_), OwnFieldMode::Replace) => replaces.push(Unit::of_fields(&field.policy)),
            }
        }
        if rules.is_empty() && replaces.is_empty() {
            return None;
        }
        replaces.sort();
        replaces.dedup();
        // They are merged with the finest granularity that the kind offers.
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
                participates: !rules.is_empty(),
                rules: Rules::new(&rules),
                strategy: StrategySource::Fixed(strategy),
                when: None,
                unset: ThinVec::new(),
                missing: ThinVec::new(),
                unchecked: ThinVec::new(),
                replaces: replaces.into(),
            },
        })
    }
}

impl OwnRules {
    /// The group for the own fields, the most specific one of a stack.
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

/// Inserts a value at a path and creates the objects above it.
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

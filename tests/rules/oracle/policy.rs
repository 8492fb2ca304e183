//! What one policy offers (specification 5): its blocks with their strategies.

use serde_json::Value;

use super::join::RuleSet;
use super::leaf::{Leaf, dotted, flatten};
use super::settings::{Direction, Granularity, Settings, Strategy, granularity, strategy, texts};

/// One block.
#[derive(Clone, Debug)]
pub struct Block {
    pub strategy: Strategy,
    pub lines: Vec<Leaf>,
    /// What it names, even if `emptyUnless` makes nothing of it: acceptance looks at that (specification 4.3).
    pub named: Vec<Leaf>,
    /// There are rules, or the kind is Blocking: the block is not skipped.
    pub counts: bool,
    pub when: Option<String>,
    pub unset: Vec<String>,
}

/// A policy.
#[derive(Clone, Debug)]
pub struct Policy {
    /// `namespace/name`.
    pub name: String,
    pub namespace: String,
    /// `None`: newest.
    pub created: Option<String>,
    pub refs: Vec<Value>,
    /// Bare rules, then defaults, then overrides (specification 11.10); a kind of one strategy per policy has
    /// just one.
    pub blocks: Vec<Block>,
}

impl Block {
    /// Its rules; of a block that counts though it is empty, that nothing is said (specification 5.6).
    pub fn sheet(&self, policy: &str) -> RuleSet {
        RuleSet {
            sealed: (self.counts && self.lines.is_empty()).then(|| policy.to_owned()),
            lines: self.lines.clone(),
        }
    }
}

impl Policy {
    /// Whether it says nothing at all (specification 5.6), not even `unset`.
    pub fn is_transparent(&self) -> bool {
        self.blocks
            .iter()
            .all(|block| !block.counts && block.unset.is_empty())
    }

    /// Reads a policy that the generator knows to be valid.
    pub fn read(kind: &Settings, object: &Value) -> Self {
        let metadata = &object["metadata"];
        let spec = &object["spec"];
        let part = |name: &str| metadata[name].as_str().unwrap_or_default();
        let name = format!("{}/{}", part("namespace"), part("name"));
        let mut refs: Vec<Value> = spec["targetRefs"].as_array().cloned().unwrap_or_default();
        refs.extend(spec.get("targetRef").cloned());
        let mut blocks = vec![read_block(kind, &name, spec, None)];
        let (defaults, overrides) = (&kind.defaults_names, &kind.overrides_names);
        for (names, direction) in [
            (defaults, Direction::Defaults),
            (overrides, Direction::Overrides),
        ] {
            for block in names.iter().filter_map(|block| spec.get(block)) {
                blocks.push(read_block(kind, &name, block, Some(direction)));
            }
        }
        Self {
            name,
            namespace: part("namespace").to_owned(),
            created: metadata["creationTimestamp"].as_str().map(str::to_owned),
            refs,
            blocks,
        }
    }
}

/// Reads a block, or the bare rules (no direction).
fn read_block(kind: &Settings, by: &str, from: &Value, within: Option<Direction>) -> Block {
    let mut rules = from.as_object().unwrap().clone();
    let mut never = vec!["targetRef", "targetRefs", "targetSelectors"];
    never.extend(kind.field.as_deref());
    never.extend(kind.unset.as_deref());
    if within.is_some() {
        never.extend(kind.when.as_deref());
    } else {
        never.extend(kind.defaults_names.iter().map(String::as_str));
        never.extend(kind.overrides_names.iter().map(String::as_str));
    }
    for name in never {
        rules.remove(name);
    }
    let rules = Value::Object(rules);
    let field = |name: &Option<String>| name.as_ref().and_then(|name| from.get(name)).cloned();
    let empty = is_empty(kind, &rules);
    let named = flatten(&rules, by, &kind.list_keys);
    let raw = field(&kind.field);
    let when = field(&kind.when).filter(|_| within.is_some());
    let unset = field(&kind.unset);
    Block {
        strategy: chosen(kind, raw.as_ref().and_then(Value::as_str), within),
        counts: !empty || (kind.blocking && within_or_alone(kind, from, within)),
        lines: if empty { Vec::new() } else { named.clone() },
        named,
        when: when.and_then(|when| when.as_str().map(str::to_owned)),
        unset: unset.map(|list| texts(&list)).unwrap_or_default(),
    }
}

/// Missing bare rules beside blocks are absent, not empty.
fn within_or_alone(kind: &Settings, spec: &Value, within: Option<Direction>) -> bool {
    let mut names = kind.defaults_names.iter().chain(&kind.overrides_names);
    within.is_some() || !names.any(|name| spec.get(name).is_some())
}

/// Specification 5.6: nothing there, or none of what must be there. A null counts as being there (specification 11.7).
fn is_empty(kind: &Settings, rules: &Value) -> bool {
    let there = |path: &String| {
        let mut at = Some(rules);
        for step in path.split('.') {
            at = at.and_then(|value| value.get(step));
        }
        at.is_some()
    };
    let nothing = rules.as_object().is_none_or(|fields| fields.is_empty());
    nothing || (!kind.empty_unless.is_empty() && !kind.empty_unless.iter().any(there))
}

/// Specification 5.3, 11.6: the strategy of a block.
fn chosen(kind: &Settings, raw: Option<&str>, within: Option<Direction>) -> Strategy {
    let spelled = raw.map(|raw| kind.values.get(raw).map_or(raw, String::as_str));
    let meant = |name: &str| {
        strategy(name).or_else(|| {
            Some(Strategy {
                granularity: granularity(name)?,
                direction: within.unwrap_or(Direction::Defaults),
            })
        })
    };
    if let Some(name) = spelled {
        return meant(name).unwrap_or_else(|| panic!("no strategy {name}"));
    }
    let suits = |s: &Strategy| within.is_none_or(|direction| direction == s.direction);
    if let Some(default) = kind.default.as_deref().and_then(meant).filter(suits) {
        return default;
    }
    // Of the two customs the law names neither; defaults first, as with the others.
    let order = [
        (Granularity::Atomic, Direction::Defaults),
        (Granularity::Patch, Direction::Defaults),
        (Granularity::Atomic, Direction::Overrides),
        (Granularity::Patch, Direction::Overrides),
        (Granularity::Custom, Direction::Defaults),
        (Granularity::Custom, Direction::Overrides),
    ];
    for (granularity, direction) in order {
        let strategy = Strategy {
            granularity,
            direction,
        };
        if kind.strategies.contains(&strategy) && suits(&strategy) {
            return strategy;
        }
    }
    *kind
        .strategies
        .iter()
        .find(|s| suits(s))
        .unwrap_or(&kind.strategies[0])
}

/// Takes the named paths out of lines, and the objects that this empties (specification 5.5).
pub fn without(lines: &[Leaf], unset: &[String]) -> Vec<Leaf> {
    let named: Vec<_> = unset.iter().map(|name| dotted(name)).collect();
    let gone = |leaf: &Leaf| named.iter().any(|name| leaf.path.starts_with(name));
    // An object that is emptied has no line of its own in this form, and so it goes by itself.
    lines.iter().filter(|leaf| !gone(leaf)).cloned().collect()
}

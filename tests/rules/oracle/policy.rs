//! What one policy offers (specification 5): its blocks with their strategies, and whether it is valid (3.4).

use entail_core::expr::Expression;
use entail_core::model::Timestamp;
use serde_json::{Map, Value};

use super::existing::{self, Missing, Unchecked};
use super::join::{Merged, RuleSet};
use super::leaf::{Leaf, Step, dotted, flatten, written};
use super::objects::{Found, Objects, at};
use super::schema::Shape;
use super::settings::{Class, Direction, Granularity, Settings, Strategy, granularity, strategy};

/// One block.
#[derive(Clone, Debug)]
pub struct Block {
    pub strategy: Strategy,
    pub lines: Vec<Leaf>,
    /// What it names, even if `emptyUnless` makes nothing of it: acceptance looks at that (specification 4.3).
    pub named: Vec<Leaf>,
    /// The same before it is taken apart.
    pub rules: Value,
    /// There are rules, or the kind is Blocking: the block is not skipped.
    pub counts: bool,
    /// If it is empty, it adds nothing and takes nothing away (specification 5.8).
    pub merges_if_empty: bool,
    pub when: Option<String>,
    pub unset: Vec<String>,
    /// References to objects that are not there (specification 5.7).
    pub missing: Vec<Missing>,
    pub unchecked: Vec<Unchecked>,
    /// The reasons for which the policy is not accepted then.
    pub reasons: Vec<String>,
    /// Which block of a path it is.
    pub number: usize,
}

/// What comes first, in the order of 4.5, 4.4 and 4.2.
pub type Age = (Vec<i128>, bool, Option<Timestamp>, String);

/// A policy.
#[derive(Clone, Debug)]
pub struct Policy {
    /// `namespace/name`, or the name of a cluster-scoped one.
    pub name: String,
    pub namespace: String,
    pub age: Age,
    /// It is malformed (specification 3.4).
    pub invalid: bool,
    /// Why it is not accepted though it holds its places: it references missing objects (specification 5.7).
    pub missing: Option<String>,
    /// Bare rules, then defaults, then overrides (specification 11.10); a kind of one strategy per policy has
    /// just one.
    pub blocks: Vec<Block>,
    /// Something of it is left where limits hold (specification 2.10).
    pub left: bool,
    /// Limits let its atomic blocks meet field by field.
    pub fieldwise: bool,
}

impl Block {
    /// Its rules; of a block that counts though it is empty, that nothing is said (specification 5.6), or that it is
    /// merged with what others say (5.8).
    pub fn sheet(&self, policy: &str) -> RuleSet {
        let empty = self.counts && self.lines.is_empty();
        let merged = Merged {
            path: Vec::new(),
            list: false,
            by: [policy.to_owned()].into(),
        };
        RuleSet {
            sealed: (empty && !self.merges_if_empty).then(|| policy.to_owned()),
            lines: self.lines.clone(),
            merged: (empty && self.merges_if_empty)
                .then_some(merged)
                .into_iter()
                .collect(),
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

    /// Reads a policy. `choice` is what an annotation of the target says of the strategy (specification 5.3).
    pub fn read(kind: &Settings, objects: &Objects, found: &Found, choice: Option<&str>) -> Self {
        let name = match found.namespace.as_str() {
            "" => found.name.clone(),
            namespace => format!("{namespace}/{}", found.name),
        };
        let reader = Reader {
            kind,
            objects,
            namespace: &found.namespace,
            by: &name,
            body: &found.body,
            choice,
        };
        let blocks = reader.blocks();
        let mut reasons = blocks.iter().flatten().flat_map(|block| &block.reasons);
        Self {
            missing: reasons.next().cloned().or_else(|| {
                let mut blocks = blocks.iter().flatten();
                let excluded = blocks.any(|block| super::refused::excludes(kind, &block.rules));
                excluded.then(|| "Invalid".to_owned())
            }),
            age: age(kind, found, &name),
            namespace: found.namespace.clone(),
            invalid: blocks.is_none(),
            blocks: blocks.unwrap_or_default(),
            left: true,
            fieldwise: false,
            name,
        }
    }
}

/// Specification 4.2, 4.4, 4.5.
fn age(kind: &Settings, found: &Found, name: &str) -> Age {
    let keys = kind.order.iter().map(|key| {
        let value = match (&key.annotation, &key.field) {
            (Some(annotation), _) => found.annotation(annotation).map(Value::from),
            (_, Some(field)) => at(&found.body, field).cloned(),
            _ => None,
        };
        if let Some(values) = &key.values {
            let place = values
                .iter()
                .position(|known| value.as_ref().is_some_and(|v| v == known));
            return place.unwrap_or(values.len()) as i128;
        }
        let number = match &value {
            // A text that is an integer after trimming counts (11.5).
            Some(Value::String(text)) => text.trim().parse().unwrap_or(0),
            Some(value) => value
                .as_i64()
                .map(i128::from)
                .or(value.as_u64().map(i128::from))
                .unwrap_or(0),
            None => 0,
        };
        if key.descending { -number } else { number }
    });
    let created = found.body["metadata"]["creationTimestamp"].as_str();
    let created = created.and_then(Timestamp::parse);
    (keys.collect(), created.is_none(), created, name.to_owned())
}

struct Reader<'k> {
    kind: &'k Settings,
    objects: &'k Objects,
    namespace: &'k str,
    by: &'k str,
    body: &'k Value,
    choice: Option<&'k str>,
}

impl Reader<'_> {
    /// The blocks; `None` if the policy is malformed (specification 3.4).
    fn blocks(&self) -> Option<Vec<Block>> {
        let (kind, body, reader) = (self.kind, self.body, self);
        let empty = Value::Object(Map::new());
        let rules = at(body, &kind.path)
            .filter(|rules| !rules.is_null())
            .unwrap_or(&empty);
        let fields = rules.as_object()?;
        let mut blocks = Vec::new();
        for (names, direction) in [
            (&kind.defaults_names, Direction::Defaults),
            (&kind.overrides_names, Direction::Overrides),
        ] {
            let here: Vec<_> = names
                .iter()
                .filter_map(|name| Some((name, fields.get(name).filter(|block| !block.is_null())?)))
                .collect();
            // The singular and the plural of one block.
            if here.len() > 1 {
                return None;
            }
            for (name, block) in here {
                // The singular and the plural name one block: the CRD describes it by either of them (11.43).
                let path = |name: &str| format!("{}.{name}", kind.path);
                let described =
                    |name: &&String| Shape::describes(kind.schema.as_ref(), &path(name));
                let described = [name].into_iter().chain(names).find(described);
                blocks.push(reader.block(
                    block,
                    &path(described.unwrap_or(name)),
                    Some(direction),
                )?);
            }
        }
        if blocks.len() > 1 && !kind.both_blocks {
            return None;
        }
        let bare = reader.block(rules, &kind.path, None);
        let says = !reader.rules(fields, None).is_empty();
        if says && !blocks.is_empty() && !kind.mix_with_bare {
            return None;
        }
        let mut bare = bare?;
        if !says && !blocks.is_empty() {
            // Missing bare rules beside blocks are absent, not empty.
            bare.counts = false;
        }
        blocks.insert(0, bare);
        Some(blocks)
    }

    /// The fields that are rules (specification 5.1).
    fn rules(&self, from: &Map<String, Value>, within: Option<Direction>) -> Map<String, Value> {
        let kind = self.kind;
        let mut never: Vec<String> = ["targetRef", "targetRefs", "targetSelectors"]
            .map(str::to_owned)
            .into();
        never.extend(kind.unset.clone());
        never.extend(kind.exclude.clone());
        if within.is_some() {
            never.extend(kind.when.clone());
        } else {
            never.extend(kind.defaults_names.clone());
            never.extend(kind.overrides_names.clone());
        }
        let below = format!("{}.", kind.path);
        for path in kind.fields.iter().chain(&kind.workload_selector) {
            match path.contains('.') {
                // A path from the root; inside the rules only where they stand.
                true if within.is_none() => {
                    never.extend(path.strip_prefix(&below).map(str::to_owned))
                }
                true => {}
                false => never.push(path.clone()),
            }
        }
        let mut rules = Value::Object(from.clone());
        for name in never {
            remove(&mut rules, &name);
        }
        match rules {
            Value::Object(rules) => rules,
            _ => Map::new(),
        }
    }

    fn block(&self, from: &Value, path: &str, within: Option<Direction>) -> Option<Block> {
        let kind = self.kind;
        let fields = from.as_object()?;
        let strategy = self.chosen(fields, within);
        let mut rules = Value::Object(self.rules(fields, within));
        self.by_identity(&mut rules);
        let empty = rules.as_object().is_none_or(Map::is_empty);
        if strategy.is_some_and(|s| s.granularity != Granularity::Atomic) && !empty {
            for (path, value) in &kind.field_defaults {
                complete(&mut rules, path, value);
            }
        }
        let checked = existing::check(kind, self.objects, self.namespace, &mut rules);
        let shape = Shape::of(kind.schema.as_ref(), path, &kind.list_keys);
        let named = flatten(&rules, self.by, &shape);
        let empty = is_empty(kind, &rules);
        let when = match kind.when.as_ref().filter(|_| within.is_some()) {
            None => None,
            Some(name) => match fields.get(name) {
                None | Some(Value::Null) => None,
                Some(source) => {
                    let source = source.as_str()?;
                    Expression::compile(source).ok()?;
                    Some(source.to_owned())
                }
            },
        };
        let unset = match kind.unset.as_ref().and_then(|name| fields.get(name)) {
            None | Some(Value::Null) => Vec::new(),
            Some(list) => {
                let names: Option<Vec<String>> = list
                    .as_array()?
                    .iter()
                    .map(|name| name.as_str().map(str::to_owned))
                    .collect();
                names?
            }
        };
        Some(Block {
            strategy: strategy?,
            merges_if_empty: kind.by_strategy
                && strategy.is_some_and(|s| s.granularity != Granularity::Atomic),
            // A Direct policy takes part even if it is empty (11.23).
            counts: !empty || kind.blocking || kind.class == Class::Direct,
            lines: if empty { Vec::new() } else { named.clone() },
            named,
            rules,
            when,
            unset,
            missing: checked.missing,
            unchecked: checked.unchecked,
            reasons: checked.reasons,
            number: 0,
        })
    }

    /// Specification 5.11: a field that has instances is a map with one of them, or with what turns all off.
    fn by_identity(&self, rules: &mut Value) {
        for (path, key, disable) in &self.kind.instances {
            let pointer = format!("/{}", path.replace('.', "/"));
            if key.is_empty() {
                let value = rules.pointer_mut(&pointer).filter(|v| !v.is_null());
                if let Some(value) = value {
                    *value = serde_json::json!({self.by: value.clone()});
                }
                continue;
            }
            let Some(value) = rules.pointer_mut(&pointer).filter(|v| v.is_object()) else {
                continue;
            };
            let off = disable.as_ref().filter(|name| value.get(name).is_some());
            if let Some(name) = off {
                let kept = value[name].clone();
                *value = serde_json::json!({name: kept});
                continue;
            }
            let own = self
                .by
                .split_once('/')
                .map_or("", |(namespace, _)| namespace);
            let named = value.pointer(&format!("/{}", key.replace('.', "/")));
            let of = |field: &str| named.and_then(|named| named[field].as_str());
            let namespace = of("namespace").filter(|n| !n.is_empty()).unwrap_or(own);
            let name = match (of("name"), named) {
                (Some(name), _) => name.to_owned(),
                (None, Some(Value::String(name))) => name.clone(),
                (None, Some(other)) => other.to_string(),
                (None, None) => String::new(),
            };
            let identity = format!("{namespace}/{name}");
            *value = serde_json::json!({identity: value.clone()});
        }
    }

    /// Specification 5.3, 11.6: the strategy of a block; `None`: it is not offered, or not clear.
    fn chosen(&self, fields: &Map<String, Value>, within: Option<Direction>) -> Option<Strategy> {
        let kind = self.kind;
        let mut found = Vec::new();
        for name in &kind.fields {
            found.extend(match name.contains('.') {
                true => at(self.body, name).filter(|value| !value.is_null()),
                false => fields.get(name).filter(|value| !value.is_null()),
            });
        }
        // Two strategy fields in one place.
        if found.len() > 1 {
            return None;
        }
        let meant = |name: &str| {
            let meant = strategy(name).or_else(|| {
                Some(Strategy {
                    granularity: granularity(name)?,
                    direction: within.unwrap_or(Direction::Defaults),
                })
            });
            let suits = |s: &Strategy| within.is_none_or(|direction| direction == s.direction);
            meant.filter(|s| kind.strategies.contains(s) && suits(s))
        };
        let spelled = |raw: &str| match kind.values.is_empty() {
            true => meant(raw),
            false => kind.values.get(raw).and_then(|name| meant(name)),
        };
        if let Some(raw) = found.first() {
            return spelled(raw.as_str()?);
        }
        // An annotation that is not offered counts as omitted (11.6).
        if let Some(chosen) = self.choice.and_then(spelled) {
            return Some(chosen);
        }
        if let Some(default) = kind.default.as_deref().and_then(meant) {
            return Some(default);
        }
        let order = [
            (Granularity::Atomic, Direction::Defaults),
            (Granularity::Patch, Direction::Defaults),
            (Granularity::Atomic, Direction::Overrides),
            (Granularity::Patch, Direction::Overrides),
            // Of the two customs the law names neither; defaults first, as with the others.
            (Granularity::Custom, Direction::Defaults),
            (Granularity::Custom, Direction::Overrides),
        ];
        let suits = |s: &&Strategy| within.is_none_or(|direction| direction == s.direction);
        let offered = || kind.strategies.iter().filter(suits);
        let usual = order.iter().find_map(|(granularity, direction)| {
            offered().find(|s| s.granularity == *granularity && s.direction == *direction)
        });
        // A block of a direction that the kind lacks is invalid.
        usual.or_else(|| offered().next()).copied()
    }
}

/// Specification 5.10: what a field counts as that is missing in an object that says something.
fn complete(rules: &mut Value, path: &str, value: &Value) {
    let (above, name) = path.rsplit_once('.').unwrap_or(("", path));
    let mut object = Some(rules);
    for step in above.split('.').filter(|step| !step.is_empty()) {
        object = object.and_then(|object| object.get_mut(step));
    }
    if let Some(fields) = object.and_then(Value::as_object_mut) {
        fields.entry(name).or_insert(value.clone());
    }
}

fn remove(rules: &mut Value, path: &str) {
    match path.split_once('.') {
        None => {
            rules.as_object_mut().and_then(|fields| fields.remove(path));
        }
        Some((first, rest)) => {
            if let Some(inner) = rules.get_mut(first) {
                remove(inner, rest);
            }
        }
    }
}

/// Specification 5.6: nothing there, or none of what must be there. A null counts as being there (specification 11.7).
fn is_empty(kind: &Settings, rules: &Value) -> bool {
    let there = |path: &String| at(rules, path).is_some();
    let nothing = rules.as_object().is_none_or(Map::is_empty);
    let applies = !kind.blocking && kind.class != Class::Direct;
    nothing || (applies && !kind.empty_unless.is_empty() && !kind.empty_unless.iter().any(there))
}

/// Whether a name of `unset` names a place or something above it (specification 5.5).
pub fn names(name: &str, path: &[Step]) -> bool {
    let fields = dotted(name);
    (1..=path.len()).any(|length| path[..length] == fields[..] || written(&path[..length]) == name)
}

/// Takes the named paths out of lines, and the objects that this empties (specification 5.5).
pub fn without(lines: &[Leaf], unset: &[String]) -> Vec<Leaf> {
    let gone = |leaf: &Leaf| unset.iter().any(|name| names(name, &leaf.path));
    // An object that is emptied has no line of its own in this form, and so it goes by itself.
    lines.iter().filter(|leaf| !gone(leaf)).cloned().collect()
}

//! Rules as a flat list of leaves, the way in which a person would write them down: one line per
//! value, its whole path in front. Everything else in the oracle looks at such lines.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::schema::Shape;

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// A field of an object.
    Field(String),
    /// An item of a keyed list: its keys, and their values as JSON.
    Item(Vec<(String, String)>),
}

/// A path from the rules' root.
pub type Path = Vec<Step>;

/// One line: a scalar, a list, a null or an empty object, and who says it.
#[derive(Clone, Debug, PartialEq)]
pub struct Leaf {
    /// Where.
    pub path: Path,
    /// What.
    pub value: Value,
    /// Policies, `namespace/name`; an object for own fields is written `=Kind/ns/name`.
    pub by: BTreeSet<String>,
    /// By the schema of the block that the line comes from: how many steps its structural unit has, if
    /// something above it is one unit.
    pub closed: Option<usize>,
    /// A list that is united with others (specification 5.2, structural).
    pub set: bool,
    /// A list whose items have keys; only an empty one is a line.
    pub keyed: bool,
    /// The blocks that say it, by their numbers on the path; none of own fields.
    pub from: BTreeSet<usize>,
}

/// Takes rules apart.
pub fn flatten(rules: &Value, by: &str, shape: &Shape) -> Vec<Leaf> {
    let mut leaves = Vec::new();
    walk(rules, &mut Vec::new(), by, shape, None, &mut leaves);
    // The root itself is no unit: `{}` has no leaves.
    leaves.retain(|leaf| !leaf.path.is_empty());
    leaves
}

fn walk(
    value: &Value,
    path: &mut Path,
    by: &str,
    shape: &Shape,
    closed: Option<usize>,
    out: &mut Vec<Leaf>,
) {
    let place = match path.last() {
        Some(Step::Field(_)) => shape.place(&names(path)),
        _ => Default::default(),
    };
    let closed = closed.or(place.closed.then_some(path.len()));
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, inner) in fields {
                path.push(Step::Field(name.clone()));
                walk(inner, path, by, shape, closed, out);
                path.pop();
            }
        }
        Value::Array(items) if !items.is_empty() && keys_of(items, &place.keys).is_some() => {
            let steps = keys_of(items, &place.keys).unwrap();
            for (step, item) in steps.into_iter().zip(items) {
                path.push(step);
                walk(item, path, by, shape, closed, out);
                path.pop();
            }
        }
        other => out.push(Leaf {
            path: path.clone(),
            value: other.clone(),
            by: BTreeSet::from([by.to_owned()]),
            closed,
            set: place.set && closed.is_none(),
            keyed: !place.keys.is_empty() && closed.is_none(),
            from: BTreeSet::new(),
        }),
    }
}

/// The steps to the items of a keyed list: only if all have all keys, and no two the same (specification 5.2).
fn keys_of(items: &[Value], keys: &[String]) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    for item in items {
        let mut values = Vec::new();
        for key in keys {
            let value = item.as_object()?.get(key)?;
            if value.is_null() || value.is_object() || value.is_array() {
                return None;
            }
            values.push((key.clone(), value.to_string()));
        }
        let step = Step::Item(values);
        if keys.is_empty() || steps.contains(&step) {
            return None;
        }
        steps.push(step);
    }
    Some(steps)
}

fn names(path: &[Step]) -> Vec<&str> {
    let fields = path.iter().filter_map(|step| match step {
        Step::Field(name) => Some(name.as_str()),
        Step::Item(_) => None,
    });
    fields.collect()
}

/// Whether a name can be written without quotes (specification 9.1).
fn is_bare(name: &str) -> bool {
    !name.is_empty() && !name.contains(['.', '[', ']', ' ', '"', '*'])
}

/// The path of fields, without items (specification 11.33).
pub fn fields_only(path: &[Step]) -> Path {
    let fields = path.iter().filter(|step| matches!(step, Step::Field(_)));
    fields.cloned().collect()
}

/// Whether a dotted path of a profile, in which `*` is any field, names this place (specification 11.33).
pub fn fits(pattern: &str, path: &[Step]) -> bool {
    // An item is not a field: the path that ends in one is not the list's.
    if matches!(path.last(), Some(Step::Item(_))) {
        return false;
    }
    let (pattern, path) = (dotted(pattern), fields_only(path));
    let any = Step::Field("*".to_owned());
    pattern.len() == path.len() && pattern.iter().zip(&path).all(|(p, s)| *p == any || p == s)
}

/// The path as specification 9.1 writes it.
pub fn written(path: &[Step]) -> String {
    if path.is_empty() {
        return "*".to_owned();
    }
    let mut text = String::new();
    for step in path {
        match step {
            Step::Field(name) => {
                if !text.is_empty() {
                    text.push('.');
                }
                match is_bare(name) {
                    true => text.push_str(name),
                    false => text.push_str(&Value::from(name.as_str()).to_string()),
                }
            }
            Step::Item(keys) => {
                let value = |json: &str| {
                    let bare = json.trim_matches('"');
                    let plain = is_bare(bare) && !bare.contains([',', '=', '\\']);
                    if plain {
                        bare.to_owned()
                    } else {
                        json.to_owned()
                    }
                };
                let pairs: Vec<_> = keys
                    .iter()
                    .map(|(key, v)| format!("{key}={}", value(v)))
                    .collect();
                text.push_str(&format!("[{}]", pairs.join(",")));
            }
        }
    }
    text
}

/// A dotted path of fields; a segment may be a JSON string (specification 9.1).
pub fn dotted(text: &str) -> Path {
    let mut path = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let mut parsed = serde_json::Deserializer::from_str(rest).into_iter::<String>();
        let (name, length) = match parsed.next() {
            Some(Ok(name)) => (name, parsed.byte_offset()),
            _ => {
                let length = rest.find('.').unwrap_or(rest.len());
                (rest[..length].to_owned(), length)
            }
        };
        path.push(Step::Field(name));
        rest = rest[length..].strip_prefix('.').unwrap_or_default();
    }
    path
}

/// A value under construction.
enum Tree {
    Object(BTreeMap<String, Tree>),
    List(Vec<(Step, Tree)>),
    Value(Value),
}

/// Puts rules together again. Tombstones are dropped, their parents are not; a null inside a list
/// is plain data (specification 5.2).
pub fn assemble(leaves: &[Leaf]) -> Value {
    let mut root = Tree::Object(BTreeMap::new());
    for leaf in leaves {
        let tombstone = is_tombstone(leaf);
        let depth = leaf.path.len() - usize::from(tombstone);
        let mut at = &mut root;
        for (index, step) in leaf.path[..depth].iter().enumerate() {
            at = below(at, step);
            if let (Tree::Value(Value::Null), Some(next)) = (&*at, leaf.path.get(index + 1)) {
                *at = match next {
                    Step::Field(_) => Tree::Object(BTreeMap::new()),
                    Step::Item(_) => Tree::List(Vec::new()),
                };
            }
        }
        if !tombstone {
            *at = Tree::Value(leaf.value.clone());
        }
    }
    plain(root)
}

/// Whether the line says that something is deleted.
pub fn is_tombstone(leaf: &Leaf) -> bool {
    leaf.value.is_null() && !leaf.path.iter().any(|s| matches!(s, Step::Item(_)))
}

fn below<'t>(tree: &'t mut Tree, step: &Step) -> &'t mut Tree {
    match (tree, step) {
        (Tree::Object(fields), Step::Field(name)) => fields
            .entry(name.clone())
            .or_insert(Tree::Value(Value::Null)),
        (Tree::List(items), Step::Item(_)) => {
            let at = items
                .iter()
                .position(|(key, _)| key == step)
                .unwrap_or_else(|| {
                    items.push((step.clone(), Tree::Value(Value::Null)));
                    items.len() - 1
                });
            &mut items[at].1
        }
        _ => panic!("the oracle's lines contradict each other at {step:?}"),
    }
}

fn plain(tree: Tree) -> Value {
    match tree {
        Tree::Object(fields) => fields.into_iter().map(|(k, v)| (k, plain(v))).collect(),
        Tree::List(items) => items.into_iter().map(|(_, item)| plain(item)).collect(),
        Tree::Value(value) => value,
    }
}

/// The value at a path of assembled rules.
pub fn value_at<'v>(rules: &'v Value, path: &[Step]) -> Option<&'v Value> {
    let mut found = rules;
    for step in path {
        found = match step {
            Step::Field(name) => found.get(name)?,
            Step::Item(keys) => {
                let is = |item: &&Value| {
                    keys.iter()
                        .all(|(key, v)| item[key].to_string().as_str() == v.as_str())
                };
                found.as_array()?.iter().find(is)?
            }
        };
    }
    Some(found)
}

//! Rules as a flat list of leaves, the way in which a person would write them down: one line per
//! value, its whole path in front. Everything else in the oracle looks at such lines.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// A field of an object.
    Field(String),
    /// An item of a keyed list: the key and its value.
    Item(String, String),
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
}

/// Takes rules apart. `list_keys` maps a dotted path of fields to the key of its list.
pub fn flatten(rules: &Value, by: &str, list_keys: &BTreeMap<String, String>) -> Vec<Leaf> {
    let mut leaves = Vec::new();
    walk(rules, &mut Vec::new(), by, list_keys, &mut leaves);
    // The root itself is no unit: `{}` has no leaves.
    leaves.retain(|leaf| !leaf.path.is_empty());
    leaves
}

fn walk(
    value: &Value,
    path: &mut Path,
    by: &str,
    list_keys: &BTreeMap<String, String>,
    out: &mut Vec<Leaf>,
) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, inner) in fields {
                path.push(Step::Field(name.clone()));
                walk(inner, path, by, list_keys, out);
                path.pop();
            }
        }
        Value::Array(items) if !items.is_empty() && keys_of(path, items, list_keys).is_some() => {
            for (step, item) in keys_of(path, items, list_keys)
                .unwrap()
                .into_iter()
                .zip(items)
            {
                path.push(step);
                walk(item, path, by, list_keys, out);
                path.pop();
            }
        }
        other => out.push(Leaf {
            path: path.clone(),
            value: other.clone(),
            by: BTreeSet::from([by.to_owned()]),
        }),
    }
}

/// The steps to the items of a keyed list: only if all have the key, and no two the same (specification 5.2).
fn keys_of(path: &Path, items: &[Value], keys: &BTreeMap<String, String>) -> Option<Vec<Step>> {
    let key = keys.get(&fields_only(path))?;
    let mut steps = Vec::new();
    for item in items {
        let step = Step::Item(
            key.clone(),
            item.as_object()?.get(key)?.as_str()?.to_owned(),
        );
        if steps.contains(&step) {
            return None;
        }
        steps.push(step);
    }
    Some(steps)
}

/// The dotted path without items.
pub fn fields_only(path: &[Step]) -> String {
    let fields = path.iter().filter_map(|step| match step {
        Step::Field(name) => Some(name.as_str()),
        Step::Item(..) => None,
    });
    fields.collect::<Vec<_>>().join(".")
}

/// The path as specification 9.1 writes it.
pub fn written(path: &[Step]) -> String {
    if path.is_empty() {
        return "*".to_owned();
    }
    let mut text = String::new();
    for step in path {
        match step {
            Step::Field(name) if text.is_empty() => text.push_str(name),
            Step::Field(name) => text.push_str(&format!(".{name}")),
            Step::Item(key, value) => text.push_str(&format!("[{key}={value}]")),
        }
    }
    text
}

/// A dotted path of fields.
pub fn dotted(text: &str) -> Path {
    text.split('.')
        .map(|name| Step::Field(name.to_owned()))
        .collect()
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
                    Step::Item(..) => Tree::List(Vec::new()),
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
    leaf.value.is_null() && !leaf.path.iter().any(|s| matches!(s, Step::Item(..)))
}

fn below<'t>(tree: &'t mut Tree, step: &Step) -> &'t mut Tree {
    match (tree, step) {
        (Tree::Object(fields), Step::Field(name)) => fields
            .entry(name.clone())
            .or_insert(Tree::Value(Value::Null)),
        (Tree::List(items), Step::Item(..)) => {
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

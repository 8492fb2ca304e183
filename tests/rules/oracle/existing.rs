//! References of policies to objects that must exist (specification 5.7), and own fields that replace values (6.4).

use std::collections::BTreeSet;

use serde_json::Value;

use super::fold::{Folded, Node};
use super::join::{RuleSet, is_container};
use super::leaf::{Leaf, Path, Step, assemble, dotted, value_at};
use super::objects::{GATEWAY, Objects, key, normal};
use super::policy::{Block, Policy};
use super::settings::{Direction, Settings};

/// A setting that says where references stand.
#[derive(Clone, Debug)]
pub struct References {
    pub path: String,
    pub group: String,
    pub kind: String,
    pub one_is_enough: bool,
    pub fail_open: Option<String>,
    pub reason: String,
}

/// A reference to a missing object in a block.
#[derive(Clone, Debug)]
pub struct Missing {
    /// The reference, or the list above it.
    path: Path,
    /// What lets requests pass, and what is left out then.
    pub fail_open: Option<(Path, Path)>,
}

/// What is wrong with the references of a block: the reasons, and what they do to the result.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    pub reasons: Vec<String>,
    pub missing: Vec<Missing>,
    pub unchecked: Vec<Unchecked>,
}

/// A reference of which it is not known whether the object exists, or the list above it, and the field that lets
/// requests pass: none if an item of a list does.
pub type Unchecked = (Path, Option<Path>);

/// What is known of a reference.
#[derive(Clone, Copy, PartialEq)]
enum Existence {
    Exists,
    Missing,
    NotKnown,
}

/// Checks the references in the rules of a block; items of lists that fail open are taken out.
pub fn check(kind: &Settings, objects: &Objects, namespace: &str, rules: &mut Value) -> Checked {
    let mut checked = Checked::default();
    let mut out: BTreeSet<String> = BTreeSet::new();
    for setting in &kind.references {
        let mut found = Vec::new();
        walk(rules, &setting.path, "", &mut found);
        let named = |value: &Value| value["name"].as_str().is_some_and(|name| !name.is_empty());
        let states: Vec<(&String, Existence)> = found
            .iter()
            .filter(|(_, value)| named(value))
            .map(|(at, value)| (at, existence(kind, setting, objects, namespace, value)))
            .collect();
        let any = |state| states.iter().any(|(_, found)| *found == state);
        let enough = |state| setting.one_is_enough && any(state);
        for (pointer, state) in &states {
            let open = setting.fail_open.as_deref();
            let holder = open.map(|path| path.rsplit_once('.').unwrap());
            let in_item = holder.filter(|(holder, _)| holder.ends_with("[*]"));
            // An item that fails open: as many steps as the holder has names and stars.
            let item = in_item.and_then(|(holder, name)| {
                let steps = holder.matches('.').count() + 1 + holder.matches("[*]").count();
                let item: Vec<&str> = pointer.split('/').take(steps + 1).collect();
                let item = item.join("/");
                (rules.pointer(&item).unwrap()[name] == true).then_some(item)
            });
            let before = |path: &str| dotted(path.split("[*]").next().unwrap());
            match state {
                Existence::Exists => continue,
                _ if enough(Existence::Exists) => continue,
                Existence::NotKnown => {
                    let field = open.filter(|_| in_item.is_none()).map(before);
                    if item.is_some() || field.is_some() {
                        checked.unchecked.push((before(&setting.path), field));
                    }
                    continue;
                }
                Existence::Missing if enough(Existence::NotKnown) => continue,
                Existence::Missing => checked.reasons.push(setting.reason.clone()),
            }
            if let Some(item) = item {
                out.insert(item);
                continue;
            }
            checked.missing.push(Missing {
                path: before(&setting.path),
                fail_open: holder.map(|(holder, _)| (before(open.unwrap()), before(holder))),
            });
        }
    }
    // The last item first.
    let number = |item: &str| item.rsplit('/').next().unwrap().parse::<usize>().unwrap();
    let mut out: Vec<String> = out.into_iter().collect();
    out.sort_by_key(|item| std::cmp::Reverse(number(item)));
    for item in out {
        let (list, _) = item.rsplit_once('/').unwrap();
        rules
            .pointer_mut(list)
            .unwrap()
            .as_array_mut()
            .unwrap()
            .remove(number(&item));
    }
    checked
}

/// The values at a path, with their JSON pointers; `[*]` is every item.
pub fn walk(value: &Value, path: &str, at: &str, found: &mut Vec<(String, Value)>) {
    let (step, rest) = path.split_once('.').unwrap_or((path, ""));
    let (name, every) = match step.strip_suffix("[*]") {
        Some(name) => (name, true),
        None => (step, false),
    };
    let Some(value) = value.get(name) else {
        return;
    };
    let at = format!("{at}/{name}");
    let values: Vec<(String, &Value)> = match every {
        true => {
            let items = value.as_array().into_iter().flatten().enumerate();
            items
                .map(|(index, item)| (format!("{at}/{index}"), item))
                .collect()
        }
        false => vec![(at, value)],
    };
    for (at, value) in values {
        match rest {
            "" => found.push((at, value.clone())),
            rest => walk(value, rest, &at, found),
        }
    }
}

fn existence(
    kind: &Settings,
    setting: &References,
    objects: &Objects,
    own: &str,
    reference: &Value,
) -> Existence {
    let text = |name: &str| reference[name].as_str();
    let group = text("group").unwrap_or(&setting.group);
    let (group, of) = normal(group, text("kind").unwrap_or(&setting.kind));
    let namespace = text("namespace").filter(|n| !n.is_empty()).unwrap_or(own);
    let name = text("name").unwrap();
    // Of a kind or a namespace without any known object nothing is known.
    let known = objects.all().any(|o| o.group == group && o.kind == of);
    let lives = !namespace.is_empty() && objects.all().any(|o| o.namespace == namespace);
    if !known || !lives {
        return Existence::NotKnown;
    }
    if namespace != own && !is_granted(kind, objects, own, (&group, &of, namespace, name)) {
        return Existence::Missing;
    }
    let Some(found) = objects.get(&key(&group, &of, namespace, name)) else {
        return Existence::Missing;
    };
    let port = reference["port"].as_u64();
    let is_service = group.is_empty() && of == "Service";
    let lacks_port = port.filter(|_| is_service).is_some_and(|port| {
        let mut ports = found.body["spec"]["ports"].as_array().into_iter().flatten();
        !ports.any(|p| p["port"].as_u64() == Some(port))
    });
    match lacks_port {
        true => Existence::Missing,
        false => Existence::Exists,
    }
}

fn is_granted(
    kind: &Settings,
    objects: &Objects,
    own: &str,
    (group, of, namespace, name): (&str, &str, &str, &str),
) -> bool {
    let grants = objects
        .all()
        .filter(|o| o.group == GATEWAY && o.kind == "ReferenceGrant" && o.namespace == namespace);
    let entries = |grant: &super::objects::Found, field: &str| {
        grant.body["spec"][field]
            .as_array()
            .cloned()
            .unwrap_or_default()
    };
    let same = |entry: &Value, group: &str, of: &str| {
        let part = |name: &str| entry[name].as_str().unwrap_or_default();
        normal(part("group"), part("kind")) == (group.to_owned(), of.to_owned())
    };
    grants.into_iter().any(|grant| {
        let from = entries(grant, "from");
        let to = entries(grant, "to");
        from.iter()
            .any(|e| same(e, &kind.group, &kind.kind) && e["namespace"] == own)
            && to.iter().any(|e| {
                same(e, group, of) && e["name"].as_str().is_none_or(|n| n.is_empty() || n == name)
            })
    })
}

/// Whether the result holds something at or below a path that is of a block.
fn holds(folded: &Folded, block: &Block, path: &Path) -> bool {
    let mut lines = folded.lines().iter();
    lines.any(|line| line.path.starts_with(path) && line.from.contains(&block.number))
}

fn is_open(folded: &Folded, field: &[Step]) -> bool {
    value_at(&assemble(folded.lines()), field) == Some(&true.into())
}

/// The blocks with their policies.
fn blocks(nodes: &[Node]) -> impl Iterator<Item = (&Policy, &Block)> {
    let policies = nodes.iter().flat_map(|node| &node.policies);
    policies.flat_map(|policy| policy.blocks.iter().map(move |block| (policy, block)))
}

/// What a result comes to where referenced objects are missing.
pub fn withdraw(kind: &Settings, nodes: &[Node], mut folded: Folded) -> Folded {
    let mut failed: BTreeSet<String> = BTreeSet::new();
    let mut omitted: Vec<Path> = Vec::new();
    for (policy, block) in blocks(nodes) {
        for missing in &block.missing {
            if !holds(&folded, block, &missing.path) {
                continue;
            }
            match &missing.fail_open {
                Some((field, holder)) if is_open(&folded, field) => omitted.push(holder.clone()),
                _ => {
                    failed.insert(policy.name.clone());
                }
            }
        }
    }
    if !failed.is_empty() {
        folded.rules = None;
        folded.closed_by = failed;
        return folded;
    }
    if let Some(rules) = &mut folded.rules {
        for path in omitted {
            remove(kind, rules, &path);
        }
    }
    folded
}

/// Names the policies of which the result holds a reference that was not checked and that lets requests pass.
pub fn with_unchecked(nodes: &[Node], folded: Folded) -> Folded {
    let found = blocks(nodes).filter(|(_, block)| {
        let mut unchecked = block.unchecked.iter();
        unchecked.any(|(path, field)| {
            let open = field.as_ref().is_none_or(|field| is_open(&folded, field));
            open && holds(&folded, block, path)
        })
    });
    let unchecked = found.map(|(policy, _)| policy.name.clone()).collect();
    Folded {
        unchecked,
        ..folded
    }
}

/// Takes out what stands at a path.
pub fn remove(kind: &Settings, rules: &mut RuleSet, path: &[Step]) {
    rules.lines.retain(|line| !line.path.starts_with(path));
    let lines = &rules.lines;
    rules
        .merged
        .retain(|merged| is_container(kind, lines, &merged.path, merged.list));
}

/// Takes out the values for which the object has its own; they are replaced by a tombstone of the object.
pub fn replace(
    kind: &Settings,
    nodes: &[Node],
    own: &[(Path, String)],
    mut folded: Folded,
) -> Folded {
    let Some(rules) = &mut folded.rules else {
        return folded;
    };
    for (path, object) in own {
        let here: Vec<&Leaf> = rules
            .lines
            .iter()
            .filter(|l| l.path.starts_with(path))
            .collect();
        let overrides = |line: &Leaf| {
            blocks(nodes).any(|(_, block)| {
                let is_override = block.strategy.direction == Direction::Overrides;
                is_override && line.from.contains(&block.number)
            })
        };
        if here.is_empty() || here.iter().any(|line| overrides(line)) {
            continue;
        }
        remove(kind, rules, path);
        folded.replaced.push((path.clone(), object.clone()));
    }
    for (path, object) in &folded.replaced {
        rules.lines.push(Leaf {
            path: path.clone(),
            value: Value::Null,
            by: [format!("={object}")].into(),
            closed: None,
            set: false,
            keyed: false,
            from: BTreeSet::new(),
        });
    }
    folded
}

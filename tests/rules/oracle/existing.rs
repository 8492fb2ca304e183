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
    fail_open: Option<(Path, Path)>,
}

/// What is wrong with the references of a block: the reasons, and what they do to the result.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    pub reasons: Vec<String>,
    pub missing: Vec<Missing>,
}

/// Checks the references in the rules of a block; items of lists that fail open are taken out.
pub fn check(kind: &Settings, objects: &Objects, namespace: &str, rules: &mut Value) -> Checked {
    let mut checked = Checked::default();
    let mut out: BTreeSet<String> = BTreeSet::new();
    for setting in &kind.references {
        let mut found = Vec::new();
        walk(rules, &setting.path, "", &mut found);
        found.retain(|(_, value)| value["name"].as_str().is_some_and(|name| !name.is_empty()));
        let wrong: Vec<&String> = found
            .iter()
            .filter(|(_, value)| is_missing(kind, setting, objects, namespace, value))
            .map(|(pointer, _)| pointer)
            .collect();
        if setting.one_is_enough && wrong.len() < found.len() {
            continue;
        }
        for pointer in wrong {
            checked.reasons.push(setting.reason.clone());
            let open = setting.fail_open.as_deref();
            let holder = open.map(|path| path.rsplit_once('.').unwrap());
            if let Some((holder, name)) = holder.filter(|(holder, _)| holder.ends_with("[*]")) {
                // The item: as many steps as the holder has names and stars.
                let steps = holder.matches('.').count() + 1 + holder.matches("[*]").count();
                let item: Vec<&str> = pointer.split('/').take(steps + 1).collect();
                let item = item.join("/");
                if rules.pointer(&item).unwrap()[name] == true {
                    out.insert(item);
                    continue;
                }
            }
            let before = |path: &str| dotted(path.split("[*]").next().unwrap());
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

fn is_missing(
    kind: &Settings,
    setting: &References,
    objects: &Objects,
    own: &str,
    reference: &Value,
) -> bool {
    let text = |name: &str| reference[name].as_str();
    let group = text("group").unwrap_or(&setting.group);
    let (group, of) = normal(group, text("kind").unwrap_or(&setting.kind));
    let namespace = text("namespace").filter(|n| !n.is_empty()).unwrap_or(own);
    let name = text("name").unwrap();
    // Of a kind or a namespace without any known object nothing is known.
    let known = objects.all().any(|o| o.group == group && o.kind == of);
    let lives = !namespace.is_empty() && objects.all().any(|o| o.namespace == namespace);
    if !known || !lives {
        return false;
    }
    if namespace != own && !is_granted(kind, objects, own, (&group, &of, namespace, name)) {
        return true;
    }
    let Some(found) = objects.get(&key(&group, &of, namespace, name)) else {
        return true;
    };
    let port = reference["port"].as_u64();
    let is_service = group.is_empty() && of == "Service";
    port.filter(|_| is_service).is_some_and(|port| {
        let mut ports = found.body["spec"]["ports"].as_array().into_iter().flatten();
        !ports.any(|p| p["port"].as_u64() == Some(port))
    })
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

/// Whether a line of the result comes from a block.
fn is_of(policy: &Policy, block: &Block, line: &Leaf) -> bool {
    let same = |own: &Leaf| own.path == line.path && own.value == line.value;
    line.by.contains(&policy.name) && block.lines.iter().any(same)
}

/// Whether the reference in the result is that of another block of the policy, which has parts in common with it.
fn is_of_another_block(policy: &Policy, block: &Block, path: &Path, result: &Value) -> bool {
    let found = value_at(result, path);
    let mut others = policy.blocks.iter();
    found != value_at(&block.rules, path)
        && others.any(|other| value_at(&other.rules, path) == found)
}

/// What a result comes to where referenced objects are missing.
pub fn withdraw(kind: &Settings, nodes: &[Node], mut folded: Folded) -> Folded {
    let Some(rules) = &mut folded.rules else {
        return folded;
    };
    let whole = assemble(&rules.lines);
    let mut failed: BTreeSet<String> = BTreeSet::new();
    let mut omitted: Vec<Path> = Vec::new();
    for policy in nodes.iter().flat_map(|node| &node.policies) {
        for block in &policy.blocks {
            for missing in &block.missing {
                let at = |line: &&Leaf| line.path.starts_with(&missing.path);
                let mut lines = rules.lines.iter().filter(at);
                if !lines.any(|line| is_of(policy, block, line))
                    || is_of_another_block(policy, block, &missing.path, &whole)
                {
                    continue;
                }
                let open =
                    |(field, _): &&(Path, Path)| value_at(&whole, field) == Some(&true.into());
                match missing.fail_open.as_ref().filter(open) {
                    Some((_, holder)) => omitted.push(holder.clone()),
                    None => {
                        failed.insert(policy.name.clone());
                    }
                }
            }
        }
    }
    if !failed.is_empty() {
        folded.rules = None;
        folded.closed_by = failed;
        return folded;
    }
    for path in omitted {
        remove(kind, rules, &path);
    }
    folded
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
    // A block of a policy with several places counts if its condition holds at one of them.
    let failed: BTreeSet<_> = folded.failed.difference(&folded.held).cloned().collect();
    let Some(rules) = &mut folded.rules else {
        return folded;
    };
    for (path, object) in own {
        let here: Vec<&Leaf> = rules
            .lines
            .iter()
            .filter(|l| l.path.starts_with(path))
            .collect();
        let policies = || nodes.iter().flat_map(|node| &node.policies);
        let overrides = |line: &Leaf| {
            policies().any(|policy| {
                policy.blocks.iter().enumerate().any(|(at, block)| {
                    block.strategy.direction == Direction::Overrides
                        && is_of(policy, block, line)
                        && !failed.contains(&(policy.name.clone(), at))
                })
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
        });
    }
    folded
}

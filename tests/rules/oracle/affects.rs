//! Which objects policies affect (specification 9.3, 11.21, 11.29, 11.40).

use std::collections::{BTreeMap, BTreeSet};

use super::compare::effective;
use super::force::{Scenes, is_direct_scope};
use super::objects::Objects;
use super::place::{AttachedKind, PathView};
use super::settings::Class;
use super::unmerged;

/// Key of an object or section, to the policies of a kind that affect it.
pub fn affected(placed: &AttachedKind, scenes: &Scenes) -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let policies: Vec<_> = placed
        .policies
        .iter()
        .map(|attached| (&attached.policy.name, placed.held(&attached.policy.name)))
        .collect();
    for scene in scenes.values().filter(|scene| scene.scope) {
        let contributing = contributors(placed, scene);
        for (name, held) in &policies {
            if !contributing.contains(*name) || !scene.has(held) {
                continue;
            }
            for node in reached(placed, scene, name) {
                for key in keys(placed.objects, &node) {
                    all.entry(key).or_default().insert((*name).clone());
                }
            }
        }
    }
    all
}

/// Those who contribute a unit on a path; an empty container that others filled is one (11.40).
fn contributors(placed: &AttachedKind, scene: &PathView) -> BTreeSet<String> {
    match placed.kind.class {
        Class::Listed => unmerged::listed(placed, scene).into_iter().collect(),
        Class::Direct if !is_direct_scope(placed, scene) => BTreeSet::new(),
        Class::Direct => unmerged::winner(placed, scene)
            .filter(|policy| policy.left && effective(placed, scene).closed_by.is_empty())
            .map(|p| p.name.clone())
            .into_iter()
            .collect(),
        Class::Inherited => {
            let rules = effective(placed, scene).rules.unwrap_or_default();
            let lines = rules.lines.iter().flat_map(|line| line.by.clone());
            let merged = rules.merged.iter().flat_map(|merged| merged.by.clone());
            lines.chain(merged).chain(rules.sealed.clone()).collect()
        }
    }
}

/// The nodes that a policy affects on a path where it contributes: those that it is attached to, and all below; a Direct
/// policy only the nodes that it is attached to, of the object that answers (11.21).
fn reached(placed: &AttachedKind, scene: &PathView, name: &str) -> Vec<String> {
    let stands = |key: &str| {
        let mut here = scene.nodes.iter().filter(|node| node.key == key);
        here.any(|node| node.policies.iter().any(|p| p.name == name))
    };
    let keys = scene.downwards.iter().cloned();
    if placed.kind.class == Class::Direct {
        let layer = unmerged::layer(placed, scene);
        let answers = |key: &String| layer.iter().any(|node| node.key == *key);
        return keys.filter(|key| stands(key) && answers(key)).collect();
    }
    keys.skip_while(|key| !stands(key)).collect()
}

/// The keys under which a node is listed (11.16): a section, and its object in part.
fn keys(objects: &Objects, node: &str) -> Vec<String> {
    let Some((object, section)) = node.split_once('#') else {
        return Vec::from([node.to_owned()])
            .into_iter()
            .filter(|key| !key.is_empty())
            .collect();
    };
    let name = section.strip_prefix('#').and_then(|index| {
        let rule = &objects.get(object)?.body["spec"]["rules"][index.parse::<usize>().ok()?];
        let name = rule["name"].as_str()?;
        // Of two rules of one name the first has it (11.38).
        let first = super::objects::rule_named(&objects.get(object)?.body, name)?;
        (first.to_string() == index).then(|| name.to_owned())
    });
    let section = name.unwrap_or_else(|| section.to_owned());
    vec![format!("{object}#{section}"), object.to_owned()]
}

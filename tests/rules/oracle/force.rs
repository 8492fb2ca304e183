//! How far policies are in force (specification 10), counted from the second evaluator's paths.

use std::collections::{BTreeMap, BTreeSet};

use entail_core::engine::PathEngine;
use serde_json::json;

use super::compare::{effective, paths, placed};
use super::fold::{Folded, Node};
use super::leaf::{Leaf, Path, written};
use super::place::{AttachedKind, PathView};
use super::policy::Policy;
use super::settings::Class;
use super::support::{case, entail_of, long};
use super::unmerged;
use super::worlds::World;

/// (c) Every policy's state.
pub fn statuses(world: &World) -> Vec<String> {
    let entail = entail_of(&world.documents());
    let paths = paths(&entail);
    let engine = PathEngine::new(entail.clone());
    let statuses = engine.statuses();
    let mut wrong = Vec::new();
    for placed in placed(world) {
        let name = &placed.kind.kind;
        let kinds = entail.kinds().iter();
        let at = kinds
            .into_iter()
            .position(|k| *k.profile().policy.kind == **name)
            .unwrap();
        for (slot, policy) in entail.kinds()[at].policies() {
            let status = statuses.of(at, slot).unwrap();
            let key = policy.key.qualified_name();
            let (expected, scopes) = state(&placed, &paths, &key);
            let told = status.in_force.map(|force| force.as_str());
            if told != expected && !vague(&placed, &key) {
                let policy = format!("{}/{key}", long(name));
                let expect = json!({"status": [{"policy": policy, "inForce": expected}]});
                wrong.push(case(world, name, &expect, &json!([told, scopes])));
            }
        }
    }
    wrong
}

/// What one scope says of a policy.
#[derive(Default)]
struct Count {
    scopes: usize,
    won: usize,
    lost: usize,
    additions: bool,
}

/// Whether the law leaves it open: it offers an empty object, or the empty whole of a Blocking kind,
/// and does not say when one stands that others have filled; or one of its blocks offers what lies
/// inside a unit of the other.
fn vague(placed: &AttachedKind, name: &str) -> bool {
    let Some(policy) = placed.policies.iter().find(|p| p.name == name) else {
        return false;
    };
    let lines = || policy.blocks.iter().flat_map(|b| &b.lines);
    let inside = |a: &Leaf| lines().any(|b| a.path != b.path && a.path.starts_with(&b.path));
    let empty = policy.blocks.iter().any(|block| block.lines.is_empty());
    empty || lines().any(|line| line.value == json!({}) || inside(line))
}

/// The word of specification 10, and the units that are lost in each scope; no word for a policy that is not
/// accepted.
fn state(
    placed: &AttachedKind,
    paths: &[String],
    name: &str,
) -> (Option<&'static str>, BTreeMap<String, Vec<String>>) {
    let mut scopes = BTreeMap::new();
    let found = placed.policies.iter().find(|p| p.name == name);
    let counts = placed.kind.class != Class::Listed && placed.is_accepted(name);
    let Some(policy) = found.filter(|_| counts) else {
        return (None, scopes);
    };
    let mut count = Count::default();
    for path in paths {
        let scene = placed.scene(path);
        let there = stands_in(placed, &scene, name);
        let silent = placed.kind.class == Class::Inherited && policy.is_transparent();
        if scene.acts && scene.scope && there && !silent {
            let lost = match placed.kind.class {
                Class::Direct => whole(placed, &scene, name, &mut count),
                _ => tally(policy, &effective(placed, &scene), &mut count),
            };
            scopes.insert(path.clone(), lost);
        }
    }
    let word = match (count.scopes, count.won, count.lost, count.additions) {
        (0, ..) => "NoScope",
        (_, _, 0, false) => "All",
        (_, _, 0, true) => "AllWithAdditions",
        (_, 0, _, _) => "None",
        (_, _, _, false) => "Part",
        (_, _, _, true) => "PartWithAdditions",
    };
    (Some(word), scopes)
}

/// Whether the policy reaches a scope. Of a Direct kind only the layer that answers does; without
/// an effective level the target and its sections are the scopes, and nothing below them (specification 7.2).
fn stands_in(placed: &AttachedKind, scene: &PathView, name: &str) -> bool {
    let stands = |node: &Node| node.policies.iter().any(|p| p.name == name);
    if placed.kind.class != Class::Direct {
        return scene.nodes.iter().any(stands);
    }
    let layer = unmerged::layer(placed, scene);
    let ends = |node: &&Node| Some(&node.key) == scene.nodes.last().map(|end| &end.key);
    let scope = !placed.kind.by_target || layer.first().is_some_and(ends);
    scope && layer.into_iter().any(stands)
}

/// Counts one scope of a policy that wins whole, or not at all (specification 7.1).
fn whole(placed: &AttachedKind, scene: &PathView, name: &str, count: &mut Count) -> Vec<String> {
    count.scopes += 1;
    if unmerged::winner(placed, scene).is_some_and(|p| p.name == name) {
        count.won += 1;
        return Vec::new();
    }
    count.lost += 1;
    vec!["*".to_owned()]
}

/// The leaves of all its blocks; two blocks that hold the same one count once (specification 11.15). An empty
/// block that counts is one unit, the whole (specification 11.9).
fn offered(policy: &Policy) -> BTreeSet<Path> {
    let mut paths: BTreeSet<Path> = BTreeSet::new();
    for block in policy.blocks.iter().filter(|block| block.counts) {
        paths.extend(block.lines.iter().map(|line| line.path.clone()));
        if block.lines.is_empty() {
            paths.insert(Path::new());
        }
    }
    paths
}

/// Counts one scope; returns what is lost there.
fn tally(policy: &Policy, folded: &Folded, count: &mut Count) -> Vec<String> {
    count.scopes += 1;
    let name = &policy.name;
    let rules = folded.rules.clone().unwrap_or_default();
    let stands = |path: &Path| match path.is_empty() {
        true => rules.sealed.as_ref() == Some(name),
        false => {
            let mut lines = rules.lines.iter();
            lines.any(|line| line.path == *path && line.by.contains(name))
        }
    };
    let offered = offered(policy);
    let (won, lost): (Vec<_>, Vec<_>) = offered.iter().partition(|path| stands(path));
    count.won += won.len();
    count.lost += lost.len();
    let meets = |a: &Path, b: &Path| a.starts_with(b) || b.starts_with(a);
    let foreign = |line: &Leaf| {
        !line.by.contains(name)
            && !line.by.iter().all(|by| by.starts_with('='))
            && !offered.iter().any(|path| meets(path, &line.path))
    };
    count.additions |= !won.is_empty() && rules.lines.iter().any(foreign);
    lost.into_iter().map(|path| written(path)).collect()
}

//! How far policies are in force (SEMANTICS §10), counted from the second evaluator's paths.

use std::collections::BTreeSet;

use super::compare::{paths, placed};
use super::fold::{Folded, fold};
use super::leaf::{Leaf, Path, is_tombstone};
use super::place::Placed;
use super::policy::Policy;
use super::support::entail_of;
use super::worlds::World;

/// (c) Every policy's state.
pub fn statuses(world: &World) -> Vec<String> {
    let entail = entail_of(&world.documents());
    let paths = paths(&entail);
    let statuses = entail.statuses();
    let mut wrong = Vec::new();
    for placed in placed(world) {
        let name = &placed.kind.kind;
        let kinds = entail.kinds().iter();
        let at = kinds
            .into_iter()
            .position(|k| *k.profile().policy.kind == **name)
            .unwrap();
        let policies = entail.kinds()[at].policies();
        for (policy, status) in policies.iter().zip(&statuses.kinds[at]) {
            let key = policy.key.qualified_name();
            let expected = state(&placed, &paths, &key);
            let told = status.in_force.map(|force| force.as_str());
            if told != expected {
                wrong.push(format!(
                    "seed {}: {name}/{key}: oracle {expected:?}, entail {told:?}\n{:#}",
                    world.seed,
                    world
                        .profiles
                        .iter()
                        .find(|p| p["spec"]["policy"]["kind"] == **name)
                        .unwrap(),
                ));
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

/// The word of §10; `None` for a policy that is not accepted.
fn state(placed: &Placed, paths: &[String], name: &str) -> Option<&'static str> {
    let policy = placed.policies.iter().find(|p| p.name == name)?;
    if !placed.is_accepted(name) {
        return None;
    }
    let mut count = Count::default();
    for path in paths {
        let scene = placed.scene(path);
        let there = scene
            .nodes
            .iter()
            .any(|n| n.policies.iter().any(|p| p.name == name));
        if scene.acts && scene.scope && there && !policy.is_transparent() {
            let folded = fold(&placed.kind, &scene.nodes, &scene.own);
            tally(policy, &folded, &mut count);
        }
    }
    Some(
        match (count.scopes, count.won, count.lost, count.additions) {
            (0, ..) => "NoScope",
            (_, _, 0, false) => "All",
            (_, _, 0, true) => "AllWithAdditions",
            (_, 0, _, _) => "None",
            (_, _, _, false) => "Part",
            (_, _, _, true) => "PartWithAdditions",
        },
    )
}

/// The leaves of all its blocks; two blocks that hold the same one count once (§11.15).
fn offered(policy: &Policy) -> BTreeSet<Path> {
    let mut paths: BTreeSet<Path> = BTreeSet::new();
    for block in &policy.blocks {
        paths.extend(block.lines.iter().map(|line| line.path.clone()));
    }
    paths
}

fn tally(policy: &Policy, folded: &Folded, count: &mut Count) {
    count.scopes += 1;
    let lines = || folded.lines().iter();
    let mut won = 0;
    for path in offered(policy) {
        let stands = |line: &Leaf| line.path == path && line.by.contains(&policy.name);
        if lines().any(stands) {
            won += 1;
        } else {
            count.lost += 1;
        }
    }
    count.won += won;
    let offered = offered(policy);
    let foreign = |line: &Leaf| {
        !line.by.contains(&policy.name)
            && !line.by.iter().all(|by| by.starts_with('='))
            && !offered.contains(&line.path)
            && !is_tombstone(line)
    };
    count.additions |= won > 0 && lines().any(foreign);
}

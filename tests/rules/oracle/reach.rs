//! The paths and objects that policies affect, and their units there.

use std::collections::BTreeMap;

use entail::api::v1;
use entail::insight::{AccessScope, list_affected};
use entail::snapshot::Snapshot;
use entail_core::model::Unit;
use serde_json::json;

use super::affects::affected;
use super::compare::{effective, unit};
use super::force::{Scenes, stands_in};
use super::leaf::{Leaf, Path, written};
use super::place::{AttachedKind, PathView};
use super::policy::Policy;
use super::questions::{Differences, blocks, full_name, lines};
use super::settings::Class;
use super::unmerged;

/// The paths and objects that each policy affects, with its units there.
pub fn reach(
    placed: &AttachedKind,
    scenes: &Scenes,
    snapshot: &Snapshot,
    differ: &mut Differences,
) {
    let affected = affected(placed, scenes);
    for attached in &placed.policies {
        let name = &attached.policy.name;
        let object = full_name(placed, name);
        let subject = v1::list_affected_request::Subject::Policy(object.clone());
        let request = v1::ListAffectedRequest {
            subject: Some(subject),
            ..Default::default()
        };
        let told = list_affected(snapshot, &request, &AccessScope::default()).unwrap();
        let objects = affected.iter().filter(|(_, by)| by.contains(name));
        let objects: Vec<&String> = objects.map(|(key, _)| key).collect();
        let about = format!("{object} affects");
        differ.equal(&about, &json!(objects), &json!(told.objects));
        let told: BTreeMap<&str, &v1::AffectedPath> = told
            .paths
            .iter()
            .map(|path| (path.path.as_str(), path))
            .collect();
        let scopes = scenes.iter().filter(|(_, scene)| scene.scope);
        let expected: BTreeMap<&str, Units> = scopes
            .filter_map(|(path, scene)| {
                Some((path.as_str(), units(placed, scene, &attached.policy)?))
            })
            .collect();
        let unknown = told.keys().any(|path| !expected.contains_key(path));
        let is_missing = |(path, units): (&&str, &Units)| {
            !told.contains_key(path) && !units.are_empty_containers()
        };
        let missing = expected.iter().any(is_missing);
        let about = format!("{object} reaches {:?}", expected.keys());
        let names: Vec<_> = told.keys().collect();
        differ.holds(&about, !unknown && !missing, &json!(names));
        for (path, expected) in &expected {
            let Some(told) = told.get(path) else { continue };
            let is = expected.are(&told.effective_units, &told.overridden_units);
            let said = json!([told.effective_units, told.overridden_units]);
            differ.holds(&format!("{object} on {path}: {expected:?}"), is, &said);
        }
    }
}

/// What a policy comes to on a path.
#[derive(Debug)]
enum Units {
    /// It is one unit, and in force or not.
    Whole(bool),
    /// An empty block of a Blocking kind, which others filled (11.9).
    Filled,
    /// The units that it holds, the empty containers that others filled, what it lost, and all that it offered.
    Parts {
        won: Vec<Unit>,
        filled: Vec<Unit>,
        lost: Vec<Unit>,
        offered: Vec<Unit>,
    },
}

/// What a policy comes to on a path; `None` if it says nothing there.
fn units(placed: &AttachedKind, scene: &PathView, policy: &Policy) -> Option<Units> {
    let name = &policy.name;
    match placed.kind.class {
        Class::Listed => {
            let listed = unmerged::listed(placed, scene).contains(name);
            return listed.then_some(Units::Whole(true));
        }
        _ if !stands_in(placed, scene, name) => return None,
        Class::Direct => {
            let winner = unmerged::winner(placed, scene);
            // A policy that fails closed has nothing in force (5.7).
            let open = effective(placed, scene).closed_by.is_empty();
            return Some(Units::Whole(
                open && winner.is_some_and(|w| w.name == *name),
            ));
        }
        Class::Inherited => {}
    }
    let folded = effective(placed, scene);
    let rules = folded.rules.clone().unwrap_or_default();
    let mut blocks = blocks(scene, policy);
    let all: Vec<&Leaf> = lines(scene, policy).collect();
    // An empty block of a Blocking kind is one unit, the whole (11.9).
    if all.is_empty() {
        blocks.next()?;
        return Some(match rules.sealed.as_ref() == Some(name) {
            true if rules.lines.is_empty() => Units::Whole(true),
            true => Units::Filled,
            // An empty policy that merges inherits everything, and sets nothing (5.8).
            false if placed.kind.by_strategy => Units::Filled,
            false => Units::Whole(false),
        });
    }
    let mine = |line: &&Leaf| line.by.contains(name);
    let stands = |leaf: &Leaf| {
        let mut lines = rules.lines.iter().filter(mine);
        lines.any(|line| line.path == leaf.path)
    };
    let lost = all
        .iter()
        .filter(|line| !stands(line) && !is_empty_container(line));
    let merged = rules
        .merged
        .iter()
        .filter(|merged| merged.by.contains(name));
    let parsed = |path: &Path| Unit::parse(&written(path)).unwrap();
    // An empty block beside another one is the whole, too: it is in force where nothing else stands, and otherwise
    // others filled it (11.9).
    let whole = (rules.sealed.as_ref() == Some(name)).then(Unit::default);
    let (whole, filled_whole) = match rules.lines.is_empty() {
        true => (whole, None),
        false => (None, whole),
    };
    let offers_whole = blocks.any(|block| block.lines.is_empty());
    let offered = all.iter().map(|line| unit(line));
    let won = rules.lines.iter().filter(mine).map(unit);
    Some(Units::Parts {
        won: won.chain(whole).collect(),
        filled: merged
            .map(|merged| parsed(&merged.path))
            .chain(filled_whole)
            .collect(),
        lost: lost.map(|line| unit(line)).collect(),
        offered: offered.chain(offers_whole.then(Unit::default)).collect(),
    })
}

/// An empty object or list may be merged with others without a loss (11.37, 11.39).
fn is_empty_container(line: &Leaf) -> bool {
    line.value == json!([]) || line.value == json!({})
}

impl Units {
    /// Whether they are those that entail names, whose units may be larger than lines.
    fn are(&self, effective: &[String], overridden: &[String]) -> bool {
        let (won, filled, lost, offered) = match self {
            Units::Whole(true) => return effective == ["*"],
            Units::Whole(false) => return effective.is_empty() && overridden == ["*"],
            Units::Filled => return true,
            Units::Parts {
                won,
                filled,
                lost,
                offered,
            } => (won, filled, lost, offered),
        };
        let parsed = |texts: &[String]| -> Vec<Unit> {
            texts
                .iter()
                .map(|text| Unit::parse(text).unwrap())
                .collect()
        };
        let (effective, overridden) = (parsed(effective), parsed(overridden));
        let meet = |a: &Unit, b: &Unit| a.covers(b) || b.covers(a);
        let covered = |line: &Unit| effective.iter().any(|unit| unit.covers(line));
        let used = |unit: &Unit| won.iter().chain(filled).any(|line| unit.covers(line));
        let met = |line: &Unit| overridden.iter().any(|unit| meet(unit, line));
        let known = |unit: &Unit| offered.iter().any(|line| meet(unit, line));
        won.iter().all(covered)
            && effective.iter().all(used)
            && lost.iter().all(met)
            && overridden.iter().all(known)
    }

    /// Whether nothing but empty containers was offered, which others may have filled: that is no unit of its own.
    fn are_empty_containers(&self) -> bool {
        match self {
            Units::Filled => true,
            Units::Whole(_) => false,
            Units::Parts { won, lost, .. } => won.is_empty() && lost.is_empty(),
        }
    }
}

//! Compares what `entail lint` and `entail reach` say with the second evaluator, by content: the findings about
//! policies, the units that are lost and where, and the paths, units and objects that a policy affects.

use std::collections::{BTreeMap, BTreeSet};

use entail::api::v1;
use entail::insight::{AccessScope, list_affected, list_findings};
use entail::snapshot::Snapshot;
use entail_core::model::Unit;
use serde_json::{Value, json};

use super::affects::affected;
use super::compare::{effective, paths, unit};
use super::fold::fold;
use super::follow::version;
use super::force::{Scenes, Status, here, stands_in, statuses};
use super::judge::{Judge, scenes};
use super::leaf::{Leaf, Path, is_tombstone, written};
use super::losses::losses;
use super::place::{Attached, AttachedKind, PathView};
use super::policy::Policy;
use super::settings::{Class, SameTarget, Settings};
use super::support::{case, entail_of};
use super::targets::Outcome;
use super::unmerged;
use super::worlds::World;

/// A finding: its severity, its reason, and what it is about.
type Finding = (i32, String, String);

/// The paths of a lost unit, and those that may count beside them.
#[derive(Default)]
struct LostPaths {
    certain: BTreeSet<String>,
    possible: BTreeSet<String>,
}

/// The differences of a world.
pub fn compared(world: &World) -> Vec<String> {
    let documents = world.documents();
    let entail = entail_of(&documents);
    let paths = paths(&entail);
    let snapshot = Snapshot::build(entail, version());
    let judge = Judge::new(&documents);
    let request = v1::ListFindingsRequest::default();
    let found = list_findings(&snapshot, &request, &AccessScope::default()).findings;
    let mut wrong = Vec::new();
    for placed in judge.kinds() {
        let scenes = scenes(&placed, &paths);
        let mut differ = Differences::default();
        let statuses = statuses(&placed, &scenes);
        about_policies(&placed, &statuses, &found, &mut differ);
        about_losses(&placed, &scenes, &found, &mut differ);
        about_order(&placed, &scenes, &found, &mut differ);
        reach(&placed, &scenes, &snapshot, &mut differ);
        let kind = &placed.kind.kind;
        let differ = differ.0.into_iter();
        wrong.extend(differ.map(|(expected, told)| case(world, kind, &expected, &told)));
    }
    wrong
}

/// What is expected, and what entail says instead.
#[derive(Default)]
struct Differences(Vec<(Value, Value)>);

impl Differences {
    fn equal(&mut self, about: &str, expected: &Value, told: &Value) {
        if expected != told {
            self.0
                .push((json!({about: expected}), json!({about: told})));
        }
    }

    fn holds(&mut self, about: &str, is: bool, told: &Value) {
        if !is {
            self.0.push((json!(about), told.clone()));
        }
    }
}

fn full_name(placed: &AttachedKind, policy: &str) -> String {
    format!("{}/{policy}", placed.kind.long())
}

fn severity(of: v1::finding::Severity) -> i32 {
    of.into()
}

/// The findings about single policies.
fn about_policies(
    placed: &AttachedKind,
    statuses: &BTreeMap<String, Status>,
    found: &[v1::Finding],
    differ: &mut Differences,
) {
    let compared = [
        "Invalid",
        "NotTrusted",
        "TargetNotFound",
        "RefNotPermitted",
        "Conflicted",
        "SelectorNotEvaluated",
        "Overridden",
        "NoScope",
        "ControllerUnknown",
    ];
    for attached in &placed.policies {
        let name = &attached.policy.name;
        let object = full_name(placed, name);
        let mine = found.iter().filter(|finding| {
            finding.object == object && compared.contains(&finding.reason.as_str())
        });
        let mut told: Vec<Finding> = mine.map(|finding| told(attached, finding)).collect();
        let mut expected = expected(placed, attached, &statuses[name]);
        told.sort();
        expected.sort();
        differ.equal(&format!("lint {object}"), &json!(expected), &json!(told));
    }
}

/// A finding of entail's, without the words that explain it.
fn told(attached: &Attached, finding: &v1::Finding) -> Finding {
    let text = &finding.message;
    let about = match finding.reason.as_str() {
        "Overridden" => text.as_str(),
        "NotTrusted" => text.rsplit(": ").next().unwrap_or_default(),
        "NoScope" | "ControllerUnknown" => "",
        "Invalid" if attached.policy.invalid => "",
        _ => text.split(": ").next().unwrap_or_default(),
    };
    (finding.severity, finding.reason.clone(), about.to_owned())
}

fn expected(placed: &AttachedKind, attached: &Attached, status: &Status) -> Vec<Finding> {
    use v1::finding::Severity::{Error, Note, Warning};
    let finding =
        |of, reason: &str, about: &str| (severity(of), reason.to_owned(), about.to_owned());
    if attached.policy.invalid {
        return vec![finding(Error, "Invalid", "")];
    }
    let mut all = Vec::new();
    if let Some(reason) = &attached.distrusted {
        all.push(finding(Error, "NotTrusted", reason));
    }
    if attached.references.by_workload {
        all.push(finding(Note, "SelectorNotEvaluated", "spec"));
        return all;
    }
    let held = placed.held(&attached.policy.name);
    for (field, outcome) in &attached.references.outcomes {
        let lost = |places: &Vec<_>| places.iter().all(|place| !held.contains(place));
        all.extend(match outcome {
            Outcome::Invalid => Some(finding(Error, "Invalid", field)),
            Outcome::RefNotPermitted => Some(finding(Error, "RefNotPermitted", field)),
            Outcome::TargetNotFound => Some(finding(Error, "TargetNotFound", field)),
            // Of a policy that its controller does not accept, that is all that is said.
            Outcome::Found(places) if attached.distrusted.is_none() && lost(places) => {
                Some(finding(Warning, "Conflicted", field))
            }
            Outcome::Found(_) => None,
        });
    }
    let mut by: Vec<&str> = status.overridden_by.iter().map(String::as_str).collect();
    // By namespace and then by name.
    by.sort_by_key(|name| name.split_once('/').unwrap_or(("", name)));
    let by = match by.is_empty() {
        true => "other fields".to_owned(),
        false => by.join(", "),
    };
    all.extend(match status.in_force {
        Some("None") => {
            let paths = status.paths;
            let text = format!("not in effect: overridden on all {paths} paths by {by}");
            Some(finding(Warning, "Overridden", &text))
        }
        Some("NoScope") => Some(finding(Warning, "NoScope", "")),
        Some("Unknown") => Some(finding(Warning, "ControllerUnknown", "")),
        _ => None,
    });
    all
}

/// The lines of a policy on a path, those of blocks that count.
fn lines<'s>(scene: &'s PathView, policy: &'s Policy) -> impl Iterator<Item = &'s Leaf> {
    let blocks = here(scene, policy).blocks.iter();
    blocks
        .filter(|block| block.counts)
        .flat_map(|block| &block.lines)
}

/// Units that are lost in silence: each with the policies that offered it, and the paths.
fn about_losses(
    placed: &AttachedKind,
    scenes: &Scenes,
    found: &[v1::Finding],
    differ: &mut Differences,
) {
    let mut lost: BTreeMap<(String, String), LostPaths> = BTreeMap::new();
    for (path, scene) in scenes.iter().filter(|(_, scene)| scene.scope) {
        if placed.kind.class == Class::Direct && !super::force::is_direct_scope(placed, scene) {
            continue;
        }
        for text in losses(placed, scene) {
            let place = Unit::parse(&text).unwrap();
            for attached in &placed.policies {
                let policy = &attached.policy;
                if !stands_in(placed, scene, &policy.name) {
                    continue;
                }
                // A Direct policy is one unit, so that each that lost is named (7.3, 11.18).
                let direct = placed.kind.class == Class::Direct;
                let is_winner = || {
                    let winner = unmerged::winner(placed, scene);
                    winner.is_some_and(|winner| winner.name == policy.name)
                };
                let (mut certain, mut possible) = (direct && !is_winner(), direct && !is_winner());
                for line in lines(scene, policy).filter(|_| !direct) {
                    let own = unit(line);
                    certain |= place.covers(&own) && !is_tombstone(line);
                    possible |= place.covers(&own) || own.covers(&place);
                }
                let key = (full_name(placed, &policy.name), text.clone());
                let entry = lost.entry(key).or_default();
                if certain {
                    entry.certain.insert(path.clone());
                }
                if possible {
                    entry.possible.insert(path.clone());
                }
            }
        }
    }
    let kind = format!("{}/", placed.kind.long());
    let found = found
        .iter()
        .filter(|finding| finding.reason == "SilentLoss" && finding.object.starts_with(&kind));
    let mut told = BTreeMap::new();
    for finding in found {
        let (unit, rest) = finding.message.split_once("` is lost on ").unwrap();
        let key = (
            finding.object.clone(),
            unit.trim_start_matches('`').to_owned(),
        );
        told.insert(key, sample(rest));
    }
    let keys: BTreeSet<_> = lost.keys().chain(told.keys()).cloned().collect();
    for key in keys {
        let none = LostPaths::default();
        let expected = lost.get(&key).unwrap_or(&none);
        let (count, names) = told.get(&key).cloned().unwrap_or_default();
        let is = (expected.certain.len()..=expected.possible.len()).contains(&count)
            && names.len() == count.min(3)
            && names.iter().all(|name| expected.possible.contains(name));
        let about = format!("{key:?} is lost on {:?}", expected.certain);
        differ.holds(&about, is, &json!([count, names]));
    }
}

/// The number of paths in a message, and the names in it.
fn sample(text: &str) -> (usize, BTreeSet<String>) {
    let (count, names) = text.split_once(": ").unwrap();
    let count = count.split(' ').next().unwrap().parse().unwrap();
    let names = names.trim_end_matches(", ...").split(", ");
    (count, names.map(str::to_owned).collect())
}

/// Where merging top-down would give another result (specification 6.2).
fn about_order(
    placed: &AttachedKind,
    scenes: &Scenes,
    found: &[v1::Finding],
    differ: &mut Differences,
) {
    let kind = &placed.kind;
    // Own fields below a stack are not described: a profile with both is refused.
    if !kind.own_fields.is_empty() {
        return;
    }
    let compared = kind.class == Class::Inherited
        && !kind.top_down
        && !kind.owner_lower
        && kind.same_target != SameTarget::OldestWins;
    let top_down = Settings {
        top_down: true,
        ..kind.clone()
    };
    let differs = |scene: &PathView| {
        let mut policies = scene.nodes.iter().flat_map(|node| &node.policies);
        let plain = policies.all(|policy| {
            let mut blocks = policy.blocks.iter();
            let guarded = blocks.any(|block| block.when.is_some() || !block.unset.is_empty());
            policy.blocks.iter().filter(|block| block.counts).count() <= 1 && !guarded
        });
        let spec = |kind: &Settings| fold(kind, &scene.nodes, &[]).spec();
        plain && spec(kind) != spec(&top_down)
    };
    let scopes = scenes.iter().filter(|(_, scene)| scene.scope && compared);
    let expected: BTreeSet<&String> = scopes
        .filter(|(_, scene)| differs(scene))
        .map(|(path, _)| path)
        .collect();
    let mut told = found
        .iter()
        .filter(|finding| finding.reason == "FoldOrder" && finding.object == kind.long());
    let (count, names) = told.next().map_or_else(Default::default, |finding| {
        sample(finding.message.split_once("another result on ").unwrap().1)
    });
    let is = count == expected.len() && names.iter().all(|name| expected.contains(name));
    differ.holds(
        &format!("top-down differs on {expected:?}"),
        is,
        &json!([count, names]),
    );
}

/// The paths and objects that each policy affects, with its units there.
fn reach(placed: &AttachedKind, scenes: &Scenes, snapshot: &Snapshot, differ: &mut Differences) {
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
            return Some(Units::Whole(winner.is_some_and(|w| w.name == *name)));
        }
        Class::Inherited => {}
    }
    let folded = effective(placed, scene);
    let rules = folded.rules.clone().unwrap_or_default();
    let mut blocks = here(scene, policy).blocks.iter();
    let all: Vec<&Leaf> = lines(scene, policy).collect();
    // An empty block of a Blocking kind is one unit, the whole (11.9).
    if all.is_empty() {
        blocks.find(|block| block.counts)?;
        return Some(match rules.sealed.as_ref() == Some(name) {
            true if rules.lines.is_empty() => Units::Whole(true),
            true => Units::Filled,
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
    Some(Units::Parts {
        won: rules.lines.iter().filter(mine).map(unit).collect(),
        filled: merged.map(|merged| parsed(&merged.path)).collect(),
        lost: lost.map(|line| unit(line)).collect(),
        offered: all.iter().map(|line| unit(line)).collect(),
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

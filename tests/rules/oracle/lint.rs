//! The findings about policies, the units that are lost and where, and the paths where the order of merging matters.

use std::collections::{BTreeMap, BTreeSet};

use entail::api::v1;
use entail_core::model::Unit;
use serde_json::json;

use super::compare::{effective, unit};
use super::fold::fold;
use super::force::{Scenes, Status, is_direct_scope, stands_in, statuses};
use super::leaf::is_tombstone;
use super::losses::{has_one_unit, losses, most_specific};
use super::place::{Attached, AttachedKind, PathView};
use super::policy::Policy;
use super::questions::{Differences, blocks, full_name, lines};
use super::settings::{Class, SameTarget, Settings};
use super::targets::{Outcome, Place};
use super::unmerged;
use super::waypoints::Waypoint;

/// A finding: its severity, its reason, and what it is about.
type Finding = (i32, String, String);

/// The paths of a lost unit, and those that may count beside them.
#[derive(Default)]
struct LostPaths {
    certain: BTreeSet<String>,
    possible: BTreeSet<String>,
}

/// Compares the findings about a kind.
pub fn compare(
    placed: &AttachedKind,
    scenes: &Scenes,
    found: &[v1::Finding],
    differ: &mut Differences,
) {
    let statuses = statuses(placed, scenes);
    about_policies(placed, &statuses, found, differ);
    about_losses(placed, scenes, found, differ);
    about_order(placed, scenes, found, differ);
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
        "BackendFilterNotEvaluated",
        "Overridden",
        "NoScope",
        "NoWaypoint",
        "ControllerUnknown",
        "DelegationNotFollowed",
        // What random profiles say of missing objects (specification 5.7).
        "NoConfig",
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
        "NoScope" | "ControllerUnknown" | "DelegationNotFollowed" => "",
        "Invalid" if attached.policy.invalid => "",
        // A field of the rules is quoted: an object that it names is missing.
        _ if text.starts_with('`') => "",
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
    if let Some(reason) = &attached.policy.missing {
        all.push(finding(Error, reason, ""));
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
            Outcome::NotEvaluated(_) => Some(finding(Warning, "BackendFilterNotEvaluated", field)),
            // Of a policy that its controller does not accept, that is all that is said.
            Outcome::Found(places) if attached.distrusted.is_none() && lost(places) => {
                Some(finding(Warning, "Conflicted", field))
            }
            Outcome::Found(_) => None,
        });
    }
    let idle = idle(placed, attached);
    let waits = !idle.is_empty();
    all.extend(
        idle.iter()
            .map(|field| finding(Warning, "NoWaypoint", field)),
    );
    if status.refused {
        all.push(finding(Error, "Invalid", "not in effect"));
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
            Some(finding(Note, "Overridden", &text))
        }
        Some("NoScope") if waits => None,
        Some("NoScope") => Some(finding(Warning, "NoScope", "")),
        Some("Unknown") => Some(finding(Warning, status.unknown.unwrap_or_default(), "")),
        _ => None,
    });
    all
}

/// The references of a policy that name a Service without a waypoint (2.12).
fn idle(placed: &AttachedKind, attached: &Attached) -> Vec<String> {
    if placed.kind.waypoints.is_null() {
        return Vec::new();
    }
    let is_idle = |place: &Place| {
        let service = place.node.split('#').next().unwrap_or_default();
        service.starts_with("Service/") && matches!(placed.waypoint(service), Waypoint::None)
    };
    // A node that it lost to another policy does not count. One that its controller rejects has lost none.
    let held = placed.held(&attached.policy.name);
    let kept = |place: &Place| attached.distrusted.is_some() || held.contains(place);
    let outcomes = attached.references.outcomes.iter();
    let idle = outcomes.filter(|(_, outcome)| match outcome {
        Outcome::Found(places) => places.iter().any(|place| kept(place) && is_idle(place)),
        _ => false,
    });
    idle.map(|(field, _)| field.clone()).collect()
}

/// Whether a policy lost a unit of a loss report on a path for certain, and whether it may be said.
fn loses(placed: &AttachedKind, scene: &PathView, policy: &Policy, place: &Unit) -> (bool, bool) {
    // The policy of a Direct kind that is in force has lost nothing, and every other one all that it offers (7.3,
    // 11.18), one that fails closed, too (5.7).
    let in_force = placed.kind.class == Class::Direct
        && effective(placed, scene).closed_by.is_empty()
        && unmerged::winner(placed, scene).is_some_and(|w| w.name == policy.name);
    if in_force {
        return (false, false);
    }
    // What fails open is not offered, though the loss report may name it (5.7).
    let missing = || blocks(scene, policy).flat_map(|block| &block.missing);
    let holders = || missing().filter_map(|missing| missing.fail_open.as_ref());
    let (mut certain, mut possible) = (false, false);
    for line in lines(scene, policy) {
        let own = unit(line);
        let is_left_out = holders().any(|(_, holder)| line.path.starts_with(holder));
        certain |= place.covers(&own) && !is_tombstone(line) && !is_left_out;
        possible |= place.covers(&own) || own.covers(place);
    }
    // An empty block is one unit, the whole (11.9).
    if place.0.is_empty() && blocks(scene, policy).any(has_one_unit) {
        let spared = most_specific(placed, scene);
        certain |= spared.is_some_and(|spared| spared.name != policy.name);
        possible = true;
    }
    (certain, possible)
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
        if placed.kind.class == Class::Direct && !is_direct_scope(placed, scene) {
            continue;
        }
        for text in losses(placed, scene) {
            let place = Unit::parse(&text).unwrap();
            for attached in &placed.policies {
                let policy = &attached.policy;
                if !stands_in(placed, scene, &policy.name) {
                    continue;
                }
                let (certain, possible) = loses(placed, scene, policy, &place);
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
    // Own fields below a stack, and several instances of a field, are not described: a profile with top-down and one
    // of them is refused.
    let keyed = kind.instances.iter().any(|(_, key, _)| !key.is_empty());
    if !kind.own_fields.is_empty() || keyed {
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
        let spec = |kind: &Settings| fold(kind, &scene.nodes, &[], &[]).spec();
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

//! Compares statuses and affected objects with those of the second evaluator (specification 9.3, 10).

use std::collections::{BTreeMap, BTreeSet};

use entail_core::effective::World as Entail;
use entail_core::engine::PathEngine;
use entail_core::model::{NodeKey, Outcome};
use serde_json::{Value, json};

use super::affects::affected;
use super::compare::{number_of, paths};
use super::force::{Scenes, Status, statuses};
use super::judge::{Judge, scenes};
use super::place::AttachedKind;
use super::support::{case, entail_of};
use super::worlds::World;

/// (c) Every policy's status, and what it affects.
pub fn compared(world: &World) -> Vec<String> {
    let documents = world.documents();
    let entail = entail_of(&documents);
    let judge = Judge::new(&documents);
    let paths = paths(&entail);
    let engine = PathEngine::new(entail.clone());
    let mut wrong = Vec::new();
    let affecting = affecting(&engine);
    for placed in judge.kinds() {
        let scenes = scenes(&placed, &paths);
        for (expect, told) in differences(&entail, &engine, &placed, &scenes) {
            wrong.push(case(world, &placed.kind.name(), &expect, &told));
        }
        let kind = placed.kind.long();
        let expected = affected(&placed, &scenes);
        let none = BTreeSet::new();
        let keys: BTreeSet<&String> = expected.keys().chain(affecting.keys()).collect();
        for key in keys {
            let told = affecting
                .get(key)
                .and_then(|kinds| kinds.get(&kind))
                .unwrap_or(&none);
            let expected = expected.get(key).unwrap_or(&none);
            if told != expected {
                let long = |names: &BTreeSet<String>| -> Vec<String> {
                    names.iter().map(|name| format!("{kind}/{name}")).collect()
                };
                let expect = json!({"affected": {key: long(expected)}});
                wrong.push(case(world, &placed.kind.name(), &expect, &json!(told)));
            }
        }
    }
    wrong
}

/// entail's policies by the key of an object that they affect, and by kind.
fn affecting(engine: &PathEngine) -> BTreeMap<String, BTreeMap<String, BTreeSet<String>>> {
    let topology = engine.world().topology();
    let mut all = BTreeMap::new();
    for number in 0..topology.len() {
        let key = topology.key_at(number).unwrap();
        if *key == NodeKey::root() {
            continue;
        }
        let text = topology.describe(topology.node(key).unwrap());
        let section = text.split_once('#').map(|(_, section)| section);
        let mut kinds: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (kind, policy) in engine.affecting(&key.object, section, None) {
            kinds
                .entry(kind.to_string())
                .or_default()
                .insert(policy.to_string());
        }
        all.insert(text.clone(), kinds);
    }
    all
}

fn differences(
    entail: &Entail,
    engine: &PathEngine,
    placed: &AttachedKind,
    scenes: &Scenes,
) -> Vec<(Value, Value)> {
    let number = number_of(entail, &placed.kind);
    let kind = &entail.kinds()[number];
    let all = engine.statuses();
    let expected = statuses(placed, scenes);
    let mut wrong = Vec::new();
    for (slot, policy) in kind.policies() {
        let key = policy.key.qualified_name().to_string();
        let found = all.of(number, slot).unwrap();
        let told = Status {
            in_force: found.in_force.map(|force| force.as_str()),
            unknown: found.unknown.map(|reason| reason.as_str()),
            overridden_by: found
                .overridden_by
                .iter()
                .map(ToString::to_string)
                .collect(),
            ancestors: found.ancestors.iter().map(ToString::to_string).collect(),
            paths: found.paths,
            overridden_paths: found.overridden_paths,
            overridden_units: found.overridden_units.iter().cloned().collect(),
            refused: found.refused.is_some(),
        };
        let attached = placed
            .policies
            .iter()
            .find(|p| p.policy.name == key)
            .unwrap();
        let accepted = placed.accepted(attached).1;
        let (outcome, reason) = kind.outcome(slot);
        // Policies with missing references have the reason of the profile (5.7).
        let outcome = match outcome {
            Outcome::Invalid => reason,
            outcome => format!("{outcome:?}"),
        };
        // The reason of its own controller is not compared here.
        let outcome = if outcome == "Untrusted" {
            accepted.clone()
        } else {
            outcome
        };
        if accepted != outcome || told != expected[&key] {
            let text = |accepted: &str, status: &Status| {
                json!({"status": [{
                    "policy": format!("{}/{key}", placed.kind.long()),
                    "accepted": {"reason": accepted}, "inForce": status.in_force,
                    "overriddenBy": status.overridden_by, "ancestors": status.ancestors,
                }], "units": status.overridden_units, "paths": [status.paths, status.overridden_paths]})
            };
            let mut said = text(&outcome, &told);
            said["details"] = json!(format!("{found:?}"));
            wrong.push((text(&accepted, &expected[&key]), said));
        }
    }
    wrong
}

//! Compares the trie and the automaton with a walk of whole paths: names and their order, chains, statuses,
//! ancestors, and the objects that policies affect.

use std::collections::BTreeSet;

use entail_core::effective::World as Entail;
use entail_core::engine::PathEngine;
use entail_core::model::{NodeKey, PathName};
use entail_core::topology::{ListedPath, WalkControl};

use super::support::entail_of;
use super::worlds::World;

/// The differences between the engine and the judge for a world.
pub fn judged(world: &World) -> Vec<String> {
    let engine = PathEngine::new(entail_of(&world.documents()));
    let wrong = differences(&engine);
    let seed = world.seed;
    wrong
        .into_iter()
        .map(|w| format!("seed {seed}: {w}"))
        .collect()
}

/// The differences between an engine and the judge for the engine's world.
pub fn differences(engine: &PathEngine) -> Vec<String> {
    let mut wrong = Vec::new();
    names(engine, &mut wrong);
    chains(engine, &mut wrong);
    statuses(engine, &mut wrong);
    wrong
}

fn names(engine: &PathEngine, wrong: &mut Vec<String>) {
    let mut walked = Vec::new();
    let topology = engine.world().topology();
    topology.visit(&mut |name, _| walked.push(name.to_owned()));
    let mut listed = Vec::new();
    let mut visit = |path: &ListedPath<'_, ()>| {
        listed.push(path.name.to_owned());
        WalkControl::Descend
    };
    let trie = engine.trie();
    trie.list(None, (), |(), _| Some(()), &mut visit);
    if walked != listed {
        wrong.push("the names or their order differ".to_owned());
    }
    let numbered = (0..trie.paths()).map(|number| trie.name_at(number).unwrap());
    if !numbered.eq(listed.iter().cloned()) {
        wrong.push("the names by number differ".to_owned());
    }
}

fn chains(engine: &PathEngine, wrong: &mut Vec<String>) {
    let world: &Entail = engine.world();
    world.topology().visit(&mut |name, resolved| {
        let path = PathName::parse(name).unwrap();
        let end = engine.locate(&path).unwrap().unwrap();
        for (number, kind) in world.kinds().iter().enumerate() {
            let judged = world.attachment_chain(kind, resolved);
            let found = engine.chain(number, end.state).unwrap();
            let alike = match (&judged, &found) {
                (Some(judged), Some(found)) => judged.is_like(found),
                (None, None) => true,
                _ => false,
            };
            let (root, level) = engine.automaton().end(end.state).unwrap();
            let object = engine.object_kind(*end.resolved.last().unwrap()).unwrap();
            let ends = kind.ends_at_scope(root, level, object);
            let scope = world.is_scope(kind, resolved);
            // `ends_at_scope` does not consider whether the kind acts on the path; the chain does.
            let is_active = found.as_ref().is_some_and(|chain| !chain.is_unknown());
            let scopes_alike = scope == ends || (!scope && !is_active);
            if !alike || !scopes_alike {
                let kind = &kind.profile().policy.kind;
                wrong.push(format!("{name}: {kind}: {found:?} and not {judged:?}"));
            }
        }
    });
}

fn statuses(engine: &PathEngine, wrong: &mut Vec<String>) {
    let world = engine.world();
    let (judged, affected) = world.judged_statuses();
    let found = engine.statuses();
    for (number, kind) in world.kinds().iter().enumerate() {
        for (slot, policy) in kind.policies() {
            let statuses = (found.of(number, slot), judged.of(number, slot));
            if statuses.0 != statuses.1 {
                wrong.push(format!("{}: {statuses:?}", policy.key));
            }
            let nodes = engine.affected_by(number, slot, None);
            let affecting = affected
                .iter()
                .filter(|(_, by)| by.contains(&(number, slot)));
            let expected: Vec<_> = affecting.map(|(node, _)| *node).collect();
            if nodes != expected {
                let names = |nodes: &[_]| -> Vec<String> {
                    nodes
                        .iter()
                        .map(|n| world.topology().describe(*n))
                        .collect()
                };
                let (nodes, expected) = (names(&nodes), names(&expected));
                wrong.push(format!(
                    "{}: affects {nodes:?} and not {expected:?}",
                    policy.key
                ));
            }
        }
    }
    let mut checked = BTreeSet::new();
    for number in 0..world.topology().len() {
        let key = world.topology().key_at(number).unwrap();
        // An engine that follows changes keeps the numbers of nodes that no object has any more.
        let Some(node) = world.topology().node(key) else {
            continue;
        };
        let text = world.topology().describe(node);
        if *key == NodeKey::root() || !checked.insert(text.clone()) {
            continue;
        }
        let section = text.split_once('#').map(|(_, section)| section);
        let mut found = engine.affecting(&key.object, section, None);
        let mut expected = world.judged_affecting(&affected, &text);
        // Which policies they are is compared here, not their order: that follows the slots of an engine, and
        // one that follows changes fills them in the order of arrival.
        found.sort();
        expected.sort();
        if found != expected {
            wrong.push(format!(
                "{text}: affected by {found:?} and not {expected:?}"
            ));
        }
    }
}

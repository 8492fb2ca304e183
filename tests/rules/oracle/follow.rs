//! An engine that follows changes against a world that is read from scratch after each.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use entail::api::v1;
use entail::insight::{
    AccessScope, ChangeEffect, compare, explain, get_topology, list_affected, list_findings,
    list_paths, list_policies, resolve_request,
};
use entail::snapshot::{Snapshot, SnapshotBuilder, Version};
use entail_core::effective::World as Entail;
use entail_core::engine::PathEngine;
use entail_core::model::{Change, PathName};
use entail_core::store::{ChangeSet, Store};
use entail_core::topology::PathTrie;
use serde_json::{Value, json};

use super::profiles::GROUP;
use super::rng::Rng;
use super::support::{SHIPPED, objects_of};
use super::worlds::World;

/// How many changes follow each other.
const STEPS: usize = 12;

/// A world on its way.
pub struct WorldHistory {
    pub rng: Rng,
    store: Store,
    pub snapshot_builder: SnapshotBuilder,
    /// What there is, and what there could be.
    present: Vec<Value>,
    absent: Vec<Value>,
    paths: BTreeMap<String, Bytes>,
    wrong: Vec<String>,
}

/// The version of a snapshot of a test.
pub fn version() -> Version {
    Version {
        epoch: "oracle".into(),
        generation: 1,
        synced_at: Default::default(),
    }
}

/// (e) After every change the engine answers what a world read from scratch answers, and answers
/// that did not change are the same bytes in memory.
pub fn engine(world: &World) -> Vec<String> {
    let mut way = WorldHistory::start(world);
    way.check("the start", world.seed);
    for step in 0..STEPS {
        let (told, upserts, deletes) = way.change();
        way.follow(&upserts, &deletes);
        way.check(&format!("step {step}, {told}"), world.seed);
        if !way.wrong.is_empty() {
            return way.wrong;
        }
    }
    // Nothing is left of what is gone.
    let all: Vec<Value> = std::mem::take(&mut way.present);
    way.follow(&[], &all);
    way.check("the end", world.seed);
    let work = way.snapshot_builder.stats();
    if (work.parts, work.bodies) != (0, 0) {
        way.wrong
            .push(format!("seed {}: left over: {work:?}", world.seed));
    }
    way.wrong
}

/// A random change of a world: what it is called, what comes and what goes.
pub type NextChange = fn(&mut WorldHistory) -> (String, Vec<Value>, Vec<Value>);

/// As [`engine`], where it is mostly routes and Services that change. Also returns the number of such changes, and how
/// many rebuilt the world.
pub fn routes(world: &World) -> (Vec<String>, u64, u64) {
    let next: NextChange = |way| match way.rng.percent(12) {
        true => way.change(),
        false => way.change_routes(),
    };
    follow_steps(WorldHistory::for_routes(world), world.seed, next, false)
}

/// As [`engine`], where it is mostly Namespaces that change, and what they exist by. Also returns the number of changes,
/// and how many rebuilt the world.
pub fn namespaces(world: &World) -> (Vec<String>, u64, u64) {
    let next: NextChange = |way| match way.rng.below(8) {
        0 => way.change(),
        1 => way.change_routes(),
        _ => way.change_namespaces(),
    };
    follow_steps(WorldHistory::for_namespaces(world), world.seed, next, true)
}

/// As [`engine`], where it is mostly Gateways, ListenerSets and classes that change. Also returns the number of changes,
/// and how many rebuilt the world.
pub fn gateways(world: &World) -> (Vec<String>, u64, u64) {
    let next: NextChange = |way| match way.rng.below(8) {
        0 | 1 => way.change(),
        2 => way.change_routes(),
        3 => way.change_namespaces(),
        _ => way.change_gateways(),
    };
    follow_steps(WorldHistory::for_gateways(world), world.seed, next, true)
}

/// Follows changes of a world until something is wrong; with their effects, if these are `compared`. Also returns the number
/// of changes, and how many rebuilt the world.
fn follow_steps(
    mut way: WorldHistory,
    seed: u64,
    next: NextChange,
    compared: bool,
) -> (Vec<String>, u64, u64) {
    way.check("the start", seed);
    let mut updates = 0;
    for step in 0..2 * STEPS {
        let (told, upserts, deletes) = next(&mut way);
        if compared {
            way.compare_effects(&told, &upserts, &deletes);
        }
        way.follow(&upserts, &deletes);
        updates += 1;
        way.check(&format!("step {step}, {told}"), seed);
        if !way.wrong.is_empty() {
            break;
        }
    }
    let rebuilds = way.snapshot_builder.stats().rebuilds;
    (way.wrong, updates, rebuilds)
}

/// As [`engine`], where any of the changes above follow each other, many in each world: only the answers, the trie and
/// the counts are compared after each, and all else after the last. Also returns the number of changes, and how many rebuilt
/// the world.
pub fn all_kinds(world: &World) -> (Vec<String>, u64, u64) {
    let mut way = WorldHistory::with(world, |rng, documents| {
        super::namespaces::prepare(rng, documents);
        super::gateways::prepare_gateways(rng, documents);
    });
    let mut updates = 0;
    let mut told = String::new();
    for step in 0..20 * STEPS {
        let (what, upserts, deletes) = match way.rng.below(4) {
            0 => way.change(),
            1 => way.change_routes(),
            2 => way.change_namespaces(),
            _ => way.change_gateways(),
        };
        told = format!("step {step}, {what}");
        way.follow(&upserts, &deletes);
        updates += 1;
        let (ours, full) = way.both();
        way.check_answers([&ours, &full], &told, world.seed);
        if !way.wrong.is_empty() {
            return (way.wrong, updates, 0);
        }
    }
    way.check(&told, world.seed);
    let rebuilds = way.snapshot_builder.stats().rebuilds;
    (way.wrong, updates, rebuilds)
}

/// (j) The effect of a change that is computed in place is that of a world that is read from scratch, and leaves the
/// snapshot as it is. Also returns the number of changes, and how many of their effects were computed in place.
pub fn effects(world: &World) -> (Vec<String>, u64, u64) {
    let mut way = WorldHistory::with(world, super::edits::prepare);
    let (mut changes, mut in_place) = (0, 0);
    for step in 0..2 * STEPS {
        let (told, upserts, deletes) = match way.rng.percent(50) {
            true => way.change(),
            false => way.change_routes(),
        };
        changes += 1;
        in_place += u64::from(way.compare_effects(&told, &upserts, &deletes));
        way.follow(&upserts, &deletes);
        way.check(&format!("step {step}, {told}"), world.seed);
        if !way.wrong.is_empty() {
            way.wrong
                .iter_mut()
                .for_each(|wrong| wrong.insert_str(0, &format!("seed {}: ", world.seed)));
            break;
        }
    }
    (way.wrong, changes, in_place)
}

/// Lets some kinds have policies for their own clients (specification 4.6), which the second evaluator does not
/// know: here both sides are ours.
fn widen(rng: &mut Rng, documents: &mut [Value]) {
    let mut wide = Vec::new();
    for document in documents.iter_mut() {
        if document["kind"] == "PolicyProfile" && rng.percent(30) {
            document["spec"]["crossNamespace"] = json!("Clients");
            wide.push(document["spec"]["policy"]["kind"].clone());
        }
    }
    for document in documents.iter_mut().filter(|d| wide.contains(&d["kind"])) {
        let spec = &mut document["spec"];
        for reference in spec["targetRefs"].as_array_mut().into_iter().flatten() {
            if reference["kind"] == "Service" && rng.percent(60) {
                let namespace = rng.pick(&["a-b", "a", "shop"]).to_owned();
                reference["namespace"] = json!(namespace);
            }
        }
    }
}

fn parsed(document: &Value) -> Vec<Arc<entail_core::model::Object>> {
    objects_of(document).into_iter().map(Arc::new).collect()
}

fn apply(store: &mut Store, upserts: &[Value], deletes: &[Value]) -> ChangeSet {
    store.apply(Change {
        upserts: upserts.iter().flat_map(parsed).collect(),
        deletes: deletes
            .iter()
            .flat_map(parsed)
            .map(|object| object.key.clone())
            .collect(),
        ..Change::default()
    })
}

impl WorldHistory {
    /// A world of which a part is there at first.
    pub fn start(world: &World) -> Self {
        Self::with(world, |_, _| {})
    }

    /// As [`WorldHistory::start`], of a world with many routes that can change in place.
    pub fn for_routes(world: &World) -> Self {
        Self::with(world, super::edits::prepare)
    }

    /// As [`WorldHistory::start`], of a world in which much goes by namespaces.
    pub fn for_namespaces(world: &World) -> Self {
        Self::with(world, super::namespaces::prepare)
    }

    /// As [`WorldHistory::start`], of a world with many Gateways and ListenerSets.
    pub fn for_gateways(world: &World) -> Self {
        Self::with(world, super::gateways::prepare)
    }

    fn with(world: &World, prepare: fn(&mut Rng, &mut Vec<Value>)) -> Self {
        let mut rng = Rng::new(world.seed ^ 0x5EED);
        let mut documents = world.documents();
        widen(&mut rng, &mut documents);
        prepare(&mut rng, &mut documents);
        rng.shuffle(&mut documents);
        let kept = documents.len() * 2 / 3;
        let absent = documents.split_off(kept);
        let mut store = Store::default();
        apply(&mut store, &documents, &[]);
        Self {
            snapshot_builder: SnapshotBuilder::new(Entail::from_store(store.clone(), &SHIPPED)),
            rng,
            store,
            present: documents,
            absent,
            paths: BTreeMap::new(),
            wrong: Vec::new(),
        }
    }

    pub fn follow(&mut self, upserts: &[Value], deletes: &[Value]) {
        let changed = apply(&mut self.store, upserts, deletes);
        self.snapshot_builder.update(self.store.clone(), &changed);
    }

    /// Compares the effect of a change, if it is computed in place, with the difference to a world that is read from
    /// scratch. Returns whether it is.
    fn compare_effects(&mut self, told: &str, upserts: &[Value], deletes: &[Value]) -> bool {
        let snapshot = self.snapshot_builder.snapshot(version());
        let scope = AccessScope::default();
        let mut store = self.store.clone();
        let changed = apply(&mut store, upserts, deletes);
        let found = ChangeEffect::in_place(&snapshot, store.clone(), &changed, &scope);
        let Some(found) = found else { return false };
        let after = PathEngine::new(Entail::from_store(store, &SHIPPED));
        // The kinds that are unknown are those of the paths that were compared, which are fewer.
        let expected = v1::PreviewChangeResponse {
            kinds: found.differences.kinds.clone(),
            ..compare(snapshot.engine(), &after, &scope)
        };
        if found.differences != expected {
            let differences = found.differences;
            self.wrong.push(format!(
                "{told}: the effect is {differences:?}, not {expected:?}"
            ));
        }
        true
    }

    /// A random change: what it is called, what comes and what goes.
    pub fn change(&mut self) -> (String, Vec<Value>, Vec<Value>) {
        let many = if self.rng.percent(15) { 4 } else { 1 };
        let (mut told, mut upserts, mut deletes) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..many {
            let at = self.rng.below(self.present.len().max(1));
            match self.rng.below(10) {
                0..=2 if !self.absent.is_empty() => {
                    let which = self.rng.below(self.absent.len());
                    let document = self.absent.swap_remove(which);
                    told.push(format!("comes {}", name(&document)));
                    self.present.push(document.clone());
                    upserts.push(document);
                }
                3..=4 if self.present.len() > 1 => {
                    let document = self.present.swap_remove(at);
                    told.push(format!("goes {}", name(&document)));
                    self.absent.push(document.clone());
                    deletes.push(document);
                }
                _ => {
                    // Policies change more often than what they stand on.
                    let policies = self.present.iter().enumerate().filter(|(_, document)| {
                        document["apiVersion"] == format!("{GROUP}/v1").as_str()
                    });
                    let policies: Vec<usize> = policies.map(|(at, _)| at).collect();
                    let at = if policies.is_empty() || self.rng.percent(20) {
                        at
                    } else {
                        self.rng.choose(&policies)
                    };
                    let Some(mut document) = self.present.get(at).cloned() else {
                        continue;
                    };
                    let how = self.alter(&mut document);
                    told.push(format!("{how} {}", name(&document)));
                    self.present[at] = document.clone();
                    upserts.push(document);
                }
            }
        }
        // What goes and comes in one change is there, and what changes and goes is not.
        let is_there = |document: &Value| self.present.iter().any(|p| name(p) == name(document));
        deletes.retain(|gone| !is_there(gone));
        upserts.retain(|new| is_there(new));
        (told.join(", "), upserts, deletes)
    }

    /// A random change of routes and Services, as [`WorldHistory::change`].
    pub fn change_routes(&mut self) -> (String, Vec<Value>, Vec<Value>) {
        use super::edits;
        let many = if self.rng.percent(15) { 8 } else { 1 };
        let (mut told, mut upserts, mut deletes) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..many {
            let is_one = match self.rng.percent(80) {
                true => edits::is_route,
                false => edits::is_service,
            };
            let of_kind = |all: &[Value]| -> Vec<usize> {
                let all = all
                    .iter()
                    .enumerate()
                    .filter(|(_, document)| is_one(document));
                all.map(|(at, _)| at).collect()
            };
            let (present, absent) = (of_kind(&self.present), of_kind(&self.absent));
            let action = self.rng.below(10);
            if action < 2 && !absent.is_empty() {
                let at = self.rng.choose(&absent);
                let document = self.absent.swap_remove(at);
                told.push(format!("comes {}", name(&document)));
                self.present.push(document.clone());
                upserts.push(document);
            } else if present.is_empty() {
                continue;
            } else if action < 4 {
                let document = self.present.swap_remove(self.rng.choose(&present));
                told.push(format!("goes {}", name(&document)));
                self.absent.push(document.clone());
                deletes.push(document);
            } else {
                let at = self.rng.choose(&present);
                let mut document = self.present[at].clone();
                if action < 5 && edits::is_route(&document) {
                    document = edits::copied(&mut self.rng, &document, 50 + number);
                    let known = self.present.iter().chain(&self.absent);
                    if known
                        .into_iter()
                        .any(|known| name(known) == name(&document))
                    {
                        continue;
                    }
                    told.push(format!("a new {}", name(&document)));
                    self.present.push(document.clone());
                } else {
                    let how = match edits::is_route(&document) {
                        true => edits::edit_route(&mut self.rng, &mut document, &self.present),
                        false => edits::edit_service(&mut self.rng, &mut document),
                    };
                    told.push(format!("{how} {}", name(&document)));
                    self.present[at] = document.clone();
                }
                upserts.push(document);
            }
        }
        let is_there = |document: &Value| self.present.iter().any(|p| name(p) == name(document));
        deletes.retain(|gone| !is_there(gone));
        upserts.retain(|new| is_there(new));
        (told.join(", "), upserts, deletes)
    }

    /// A random change of Gateways, ListenerSets and classes, as [`WorldHistory::change`].
    pub fn change_gateways(&mut self) -> (String, Vec<Value>, Vec<Value>) {
        use super::gateways;
        let many = if self.rng.percent(25) { 4 } else { 1 };
        let (mut told, mut upserts, mut deletes) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..many {
            let of_kind = |all: &[Value]| -> Vec<usize> {
                let all = all.iter().enumerate();
                let all = all.filter(|(_, document)| gateways::is_one(document));
                all.map(|(at, _)| at).collect()
            };
            let (present, absent) = (of_kind(&self.present), of_kind(&self.absent));
            match self.rng.below(12) {
                0..=1 if !absent.is_empty() => {
                    let document = self.absent.swap_remove(self.rng.choose(&absent));
                    told.push(format!("comes {}", name(&document)));
                    self.present.push(document.clone());
                    upserts.push(document);
                }
                _ if present.is_empty() => {}
                0..=2 => {
                    let document = self.present.swap_remove(self.rng.choose(&present));
                    told.push(format!("goes {}", name(&document)));
                    self.absent.push(document.clone());
                    deletes.push(document);
                }
                3 => {
                    let original = self.present[self.rng.choose(&present)].clone();
                    let document = gateways::copied(&mut self.rng, &original, number);
                    let is_same = |d: &Value| name(d) == name(&document);
                    self.present.retain(|d| !is_same(d));
                    self.absent.retain(|d| !is_same(d));
                    told.push(format!("like another {}", name(&document)));
                    self.present.push(document.clone());
                    upserts.push(document);
                }
                _ => {
                    let at = self.rng.choose(&present);
                    let mut document = self.present[at].clone();
                    let how = gateways::edit(&mut self.rng, &mut document, &self.present);
                    told.push(format!("{how} {}", name(&document)));
                    self.present[at] = document.clone();
                    upserts.push(document);
                }
            }
        }
        let is_there = |document: &Value| self.present.iter().any(|p| name(p) == name(document));
        deletes.retain(|gone| !is_there(gone));
        upserts.retain(|new| is_there(new));
        (told.join(", "), upserts, deletes)
    }

    /// A random change of Namespaces and of what they exist by, as [`WorldHistory::change`].
    pub fn change_namespaces(&mut self) -> (String, Vec<Value>, Vec<Value>) {
        use super::namespaces;
        let many = if self.rng.percent(25) { 4 } else { 1 };
        let (mut told, mut upserts, mut deletes) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..many {
            let name = namespaces::pick(&mut self.rng);
            let is_own = |d: &Value| namespaces::is_namespace(d) && d["metadata"]["name"] == name;
            let own = self.present.iter().position(is_own);
            if let Some((what, document)) = self.change_grant() {
                told.push(what);
                upserts.push(document);
                continue;
            }
            match (self.rng.below(10), own) {
                (0..=3, Some(at)) => {
                    let document = &mut self.present[at];
                    let how = namespaces::edit(&mut self.rng, document);
                    told.push(format!("{how} namespace {name}"));
                    upserts.push(document.clone());
                }
                (4..=5, Some(at)) => {
                    told.push(format!("namespace {name} goes"));
                    deletes.push(self.present.swap_remove(at));
                }
                (0..=5, None) => {
                    told.push(format!("namespace {name} comes"));
                    let document = namespaces::namespace(&mut self.rng, name);
                    self.present.push(document.clone());
                    upserts.push(document);
                }
                (6..=7, _) => {
                    told.push(format!("all goes in {name}"));
                    let all = std::mem::take(&mut self.present);
                    let goes = |d: &Value| namespaces::inside(d) == Some(name);
                    let (gone, stay): (Vec<_>, Vec<_>) = all.into_iter().partition(goes);
                    self.present = stay;
                    self.absent.extend(gone.iter().cloned());
                    deletes.extend(gone);
                }
                _ => {
                    let document = namespaces::object(&mut self.rng, name, &self.present);
                    told.push(format!("in {name} comes {}", self::name(&document)));
                    let is_same = |d: &Value| self::name(d) == self::name(&document);
                    self.present.retain(|d| !is_same(d));
                    self.absent.retain(|d| !is_same(d));
                    self.present.push(document.clone());
                    upserts.push(document);
                }
            }
        }
        let is_there = |document: &Value| self.present.iter().any(|p| name(p) == name(document));
        deletes.retain(|gone| !is_there(gone));
        upserts.retain(|new| is_there(new));
        (told.join(", "), upserts, deletes)
    }

    /// Now and then, another version of a ReferenceGrant, and what it is called.
    fn change_grant(&mut self) -> Option<(String, Value)> {
        use super::namespaces;
        let grants = self.present.iter().enumerate();
        let grants = grants.filter(|(_, document)| namespaces::is_grant(document));
        let grants: Vec<usize> = grants.map(|(at, _)| at).collect();
        if grants.is_empty() || !self.rng.percent(25) {
            return None;
        }
        let at = self.rng.choose(&grants);
        let mut document = self.present[at].clone();
        let how = match self.rng.percent(70) {
            true => namespaces::edit_grant(&mut self.rng, &mut document, &self.present),
            false => self.alter(&mut document),
        };
        self.present[at] = document.clone();
        Some((format!("{how} {}", name(&document)), document))
    }

    fn alter(&mut self, document: &mut Value) -> &'static str {
        let kind = document["kind"].clone();
        let stands = ["Service", "Namespace", "Gateway", "GatewayClass"];
        if stands.iter().any(|of| kind == *of) && self.rng.percent(40) {
            return self.change_waypoint(document);
        }
        let is_policy = document["spec"].get("targetRefs").is_some()
            || document["spec"].get("targetRef").is_some();
        match self.rng.below(6) {
            0 => {
                let color = self.rng.pick(&["red", "blue"]).to_owned();
                document["metadata"]["labels"]["color"] = json!(color);
                "labels"
            }
            1 => {
                let count = self.rng.below(1_000);
                document["status"] = json!({"observed": count});
                "status of"
            }
            2 if is_policy => {
                let minute = self.rng.below(5);
                document["metadata"]["creationTimestamp"] =
                    json!(format!("2026-01-01T00:0{minute}:00Z"));
                "age of"
            }
            _ if is_policy => self.exchange(document, &kind),
            2 => self.beside_the_paths(document),
            _ => {
                if let Some(rules) = document["spec"]["rules"].as_array_mut() {
                    rules.pop();
                    return "a rule less in";
                }
                if let Some(listeners) = document["spec"]["listeners"].as_array_mut() {
                    let by = 1.min(listeners.len());
                    listeners.rotate_left(by);
                    return "listeners turned in";
                }
                "nothing to"
            }
        }
    }

    /// Other labels and annotations that waypoints go by, or none (2.12).
    fn change_waypoint(&mut self, document: &mut Value) -> &'static str {
        let metadata = &mut document["metadata"];
        for (field, names) in [
            ("labels", ["way", "way-ns", "way-for", "canary"].as_slice()),
            ("annotations", &["weight"]),
        ] {
            if let Some(values) = metadata[field].as_object_mut() {
                values.retain(|name, _| !names.contains(&name.as_str()) || self.rng.percent(50));
            }
        }
        let gateways = super::waypoints::gateways(self.present.iter());
        super::waypoints::label(&mut self.rng, document, &gateways);
        "waypoint of"
    }

    /// Edits that move no path: own fields may join, matches and annotations say nothing.
    fn beside_the_paths(&mut self, document: &mut Value) -> &'static str {
        let count = self.rng.below(4);
        let spec = &mut document["spec"];
        if !spec.is_object() {
            return "nothing to";
        }
        match self.rng.below(3) {
            0 => spec["own"] = json!(count),
            1 => {
                for rule in spec["rules"].as_array_mut().into_iter().flatten().take(1) {
                    rule["own"] = json!(count.is_multiple_of(2));
                    rule["matches"] = json!([{"path": {"value": format!("/{count}")}}]);
                }
            }
            _ => document["metadata"]["annotations"]["note"] = json!(count.to_string()),
        }
        "fields beside the paths of"
    }

    /// Another policy's rules, with its targets or without them, in this one's name.
    fn exchange(&mut self, document: &mut Value, kind: &Value) -> &'static str {
        let documents = self.present.iter().chain(&self.absent);
        let alike: Vec<Value> = documents
            .filter(|other| other["kind"] == *kind)
            .cloned()
            .collect();
        let mut spec = self.rng.choose(&alike)["spec"].clone();
        if self.rng.percent(50) {
            document["spec"] = spec;
            return "spec of";
        }
        let fields = spec.as_object_mut().unwrap();
        for field in ["targetRefs", "targetRef"] {
            fields.remove(field);
            if let Some(own) = document["spec"].get(field) {
                fields.insert(field.to_owned(), own.clone());
            }
        }
        document["spec"] = spec;
        "rules of"
    }

    /// The snapshot of the engine, and that of a world read from scratch.
    fn both(&mut self) -> (Snapshot, Snapshot) {
        let ours = self.snapshot_builder.snapshot(version());
        let full = Snapshot::build(Entail::from_store(self.store.clone(), &SHIPPED), version());
        (ours, full)
    }

    /// Holds the engine's answers, and what questions come to, against those of a world read from scratch.
    fn check(&mut self, step: &str, seed: u64) {
        let (ours, full) = self.both();
        self.check_answers([&ours, &full], step, seed);
        let mut wrong = Vec::new();
        for found in super::paths::differences(ours.engine()) {
            wrong.push(format!("seed {seed}, {step}: {found}"));
        }
        for (ours, full) in replies(&ours).into_iter().zip(replies(&full)) {
            if ours != full {
                wrong.push(format!("seed {seed}, {step}: {ours}\nand not {full}"));
            }
        }
        for path in resolved_differently(&ours, &full) {
            wrong.push(format!(
                "seed {seed}, {step}: {path} is resolved differently"
            ));
        }
        self.wrong.extend(wrong);
    }

    /// Holds the answers, the trie and the counts of two snapshots against each other.
    fn check_answers(&mut self, [ours, full]: [&Snapshot; 2], step: &str, seed: u64) {
        let mut wrong = Vec::new();
        let mut now = BTreeMap::new();
        full.world().topology().visit(&mut |name, _| {
            let bytes = |snapshot: &Snapshot| {
                let body = snapshot.look_up(&PathName::parse(name).unwrap());
                body.map(|body| snapshot.reply(body).result)
            };
            let (said, expected) = (bytes(ours), bytes(full));
            if said != expected {
                wrong.push(format!("seed {seed}, {step}: another answer on {name}"));
            }
            let Some(said) = said else { return };
            // Equal bytes are the same bytes.
            let before = self.paths.get(name).filter(|before| **before == said);
            if before.is_some_and(|before| before.as_ptr() != said.as_ptr()) {
                wrong.push(format!("seed {seed}, {step}: {name} was encoded again"));
            }
            now.insert(name.to_owned(), said);
        });
        for gone in self.paths.keys().filter(|path| !now.contains_key(*path)) {
            // A client that nothing sets apart any more answers as `*`.
            let is_there = |snapshot: &Snapshot| {
                let path = PathName::parse(gone).unwrap();
                snapshot.look_up(&path).is_some()
            };
            if is_there(ours) != is_there(full) {
                wrong.push(format!("seed {seed}, {step}: {gone} is still there"));
            }
        }
        for found in order_and_counts(ours.engine().trie()) {
            wrong.push(format!("seed {seed}, {step}: {found}"));
        }
        let known = self.paths.keys();
        for found in other_reasons(ours, full, known, |path| now.contains_key(path)) {
            wrong.push(format!("seed {seed}, {step}: {found}"));
        }
        if let Some(counts) = other_counts(ours, full, now.len()) {
            wrong.push(format!("seed {seed}, {step}: counts {counts}"));
        }
        self.paths = now;
        self.wrong.extend(wrong);
    }
}

/// The counts of paths and answers, if they differ.
fn other_counts(ours: &Snapshot, full: &Snapshot, paths: usize) -> Option<String> {
    let same = ours.paths() == paths as u64
        && ours.distinct_answers() == full.distinct_answers()
        && ours.unknown_kinds() == full.unknown_kinds();
    let counts = (ours.paths(), paths, ours.distinct_answers());
    (!same).then(|| format!("{counts:?}"))
}

/// The paths of requests that take other rules.
fn resolved_differently(ours: &Snapshot, full: &Snapshot) -> Vec<&'static str> {
    let differs = |path: &&str| {
        let asked = v1::ResolveRequestRequest {
            path: (*path).to_owned(),
            ..Default::default()
        };
        let mut replies =
            [ours, full].map(|s| resolve_request(s, &asked, &AccessScope::default()).unwrap());
        replies.iter_mut().for_each(|reply| reply.version = None);
        replies[0] != replies[1]
    };
    let paths = ["/", "/0", "/1", "/2"];
    paths.into_iter().filter(differs).collect()
}

/// Paths that do not exist, for other reasons: those that existed before, and some like them.
fn other_reasons<'p>(
    ours: &Snapshot,
    full: &Snapshot,
    known: impl Iterator<Item = &'p String>,
    exists: impl Fn(&String) -> bool,
) -> Vec<String> {
    let mut found = Vec::new();
    let missing = known.flat_map(|path| {
        let rule = path.replacen("/rules/#0", "/rules/#7", 1);
        [path.clone(), rule, format!("{path}/ports/9")]
    });
    for path in missing.filter(|path| !exists(path)) {
        let Ok(path) = PathName::parse(&path) else {
            continue;
        };
        let reasons = [ours, full].map(|snapshot| snapshot.path_reason(&path));
        if reasons[0] != reasons[1] {
            found.push(format!("{path}: {reasons:?}"));
        }
    }
    found
}

/// What is wrong with the numbers of trie nodes: children come before their parents, and paths lead to all that are not
/// counted as left behind.
fn order_and_counts(trie: &PathTrie) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut reached: BTreeSet<_> = trie.roots().map(|(root, _)| root).collect();
    for id in trie.ids().rev() {
        for child in trie.below(trie.node(id).unwrap()) {
            if child >= id {
                wrong.push(format!("{child:?} is below {id:?}"));
            }
            if reached.contains(&id) {
                reached.insert(child);
            }
        }
    }
    if trie.len() != reached.len() + trie.unreachable() {
        let counts = (trie.len(), reached.len(), trie.unreachable());
        wrong.push(format!("{counts:?} trie nodes, reached and left"));
    }
    wrong
}

/// All paths in small pages.
fn pages(snapshot: &Snapshot) -> Vec<String> {
    let mut found = Vec::new();
    let mut page = v1::ListPathsRequest {
        page_size: 3,
        ..Default::default()
    };
    loop {
        let reply = list_paths(snapshot, &page, &AccessScope::default()).unwrap();
        found.push(format!("{reply:?}"));
        page.page_token = reply.next_page_token;
        if page.page_token.is_empty() {
            return found;
        }
    }
}

/// What questions about single routes and Services come to.
fn object_replies(snapshot: &Snapshot) -> Vec<String> {
    let all = AccessScope::default();
    let mut found = Vec::new();
    for object in snapshot.world().store().objects() {
        if !matches!(
            &*object.key.kind.kind,
            "Service" | "HTTPRoute" | "TCPRoute" | "Backend"
        ) {
            continue;
        }
        let name = object.key.to_string();
        let request = v1::ListPathsRequest {
            name: name.clone(),
            ..Default::default()
        };
        found.push(format!("{:?}", list_paths(snapshot, &request, &all)));
        let request = v1::ExplainRequest {
            name: name.clone(),
            ..Default::default()
        };
        found.push(format!("{:?}", explain(snapshot, &request, &all)));
        let request = v1::ListAffectedRequest {
            subject: Some(v1::list_affected_request::Subject::Object(name)),
            ..Default::default()
        };
        found.push(format!("{:?}", list_affected(snapshot, &request, &all)));
    }
    found
}

/// What questions about everything come to.
fn replies(snapshot: &Snapshot) -> Vec<String> {
    let all = AccessScope::default();
    let mut found = vec![
        format!(
            "{:?}",
            explain(snapshot, &v1::ExplainRequest::default(), &all)
        ),
        format!("{:?}", get_topology(snapshot, &Default::default(), &all)),
        format!(
            "{:?}",
            list_findings(snapshot, &v1::ListFindingsRequest::default(), &all)
        ),
        format!(
            "{:?}",
            list_paths(snapshot, &v1::ListPathsRequest::default(), &all)
        ),
    ];
    found.extend(pages(snapshot));
    found.extend(object_replies(snapshot));
    let policies = list_policies(snapshot, &v1::ListPoliciesRequest::default(), &all).unwrap();
    for status in &policies.policies {
        let policy = status.policy.clone().unwrap_or_default();
        let name = format!("{}/{}/{}", status.kind, policy.namespace, policy.name);
        let subject = v1::list_affected_request::Subject::Policy(name);
        let request = v1::ListAffectedRequest {
            subject: Some(subject),
            ..Default::default()
        };
        found.push(format!("{:?}", list_affected(snapshot, &request, &all)));
    }
    found.push(format!("{policies:?}"));
    found
}

fn name(document: &Value) -> String {
    let metadata = &document["metadata"];
    let part = |name: &str| metadata[name].as_str().unwrap_or_default();
    let kind = document["kind"].as_str().unwrap();
    format!("{kind}/{}/{}", part("namespace"), part("name"))
}

//! Admission reviews: the effect of a change that is not applied, and the warnings about it.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use entail::insight::{
    AccessScope, ChangeEffect, ChangedObject, NameScope, ObjectChange, warnings,
};
use entail::snapshot::Snapshot;
use entail_core::model::{Change, GroupKind, Object, ObjectKey};
use serde_json::{Value, json};

use crate::bench_world::{BenchWorld, generate, is_on, mark, version};
use crate::rows::{Row, millis, row};

/// Number of reviews of each kind.
const REVIEWS: usize = 300;

/// The world that reviews are asked about.
struct ReviewedWorld {
    world: BenchWorld,
    snapshot: Snapshot,
    /// Number of effects that needed a world that is read from scratch.
    rebuilds: usize,
}

impl ReviewedWorld {
    fn of(name: &'static str) -> Self {
        let world = generate(name);
        let snapshot = world.snapshot_builder().snapshot(version());
        Self {
            world,
            snapshot,
            rebuilds: 0,
        }
    }

    /// The objects of some kinds for which a function returns true.
    fn objects(&self, is: impl Fn(&GroupKind, &Value) -> bool) -> Vec<Object> {
        let objects = self.world.store.objects();
        let objects = objects.filter(|object| is(&object.key.kind, &object.body.value()));
        objects.map(|object| Object::clone(object)).collect()
    }

    fn review(&mut self, key: &ObjectKey, change: ObjectChange, applied: Change) -> Duration {
        let began = Instant::now();
        let mut store = self.snapshot.world().store().clone();
        let changed = store.apply(applied);
        assert!(!changed.is_empty());
        let scope = AccessScope::default();
        let effect = ChangeEffect::in_place(&self.snapshot, store.clone(), &changed, &scope);
        self.rebuilds += usize::from(effect.is_none());
        let effect =
            effect.unwrap_or_else(|| ChangeEffect::of(&self.snapshot, store, &changed, &scope));
        let names = NameScope::own(key, [self.snapshot.world(), effect.after.world()]);
        let names = &names;
        black_box(warnings(
            &self.snapshot,
            ChangedObject { key, change, names },
            &effect,
        ));
        began.elapsed()
    }

    fn upsert(&mut self, object: Object, change: ObjectChange) -> Duration {
        let key = object.key.clone();
        let applied = Change {
            upserts: vec![Arc::new(object)],
            ..Change::default()
        };
        self.review(&key, change, applied)
    }

    fn delete(&mut self, object: Object) -> Duration {
        let deletes = vec![object.key.clone()];
        let applied = Change {
            deletes,
            ..Change::default()
        };
        self.review(&object.key, ObjectChange::Deleted, applied)
    }
}

/// Reviews objects in turn; returns p50 and p99.
fn percentiles(
    objects: &[Object],
    mut review: impl FnMut(Object, usize) -> Duration,
) -> (Duration, Duration) {
    let turns = (0..REVIEWS).map(|number| (objects[number * 37 % objects.len()].clone(), number));
    let mut times: Vec<Duration> = turns
        .map(|(object, number)| review(object, number))
        .collect();
    times.sort();
    (times[REVIEWS / 2], times[REVIEWS * 99 / 100])
}

/// A new name for a copy of an object.
fn renamed(mut object: Object, number: usize) -> Object {
    let name = format!("added-{number}");
    object.key.name = name.clone().into();
    object
        .body
        .edit(|body| body["metadata"]["name"] = name.into());
    object
}

/// What grows with the paths that a change affects has no target.
const GATEWAY: &str = "edited policy of a Gateway";

/// What is reviewed, with p50 and p99.
type Reviewed = (&'static str, (Duration, Duration));

/// Reviews of policies of routes and Gateways.
fn of_policies(reviewed: &mut ReviewedWorld, routes: &[Object]) -> Vec<Reviewed> {
    let on_routes = reviewed.objects(|_, body| is_on(body, "HTTPRoute"));
    let on_gateways = reviewed.objects(|_, body| is_on(body, "Gateway"));
    let mut found = Vec::new();
    for (what, policies) in [
        ("edited policy of a route", &on_routes),
        (GATEWAY, &on_gateways),
    ] {
        let times = percentiles(policies, |mut policy, number| {
            policy.body.edit(|body| mark(body, number));
            reviewed.upsert(policy, ObjectChange::Updated)
        });
        found.push((what, times));
    }
    let deleted = percentiles(&on_routes, |policy, _| reviewed.delete(policy));
    found.push(("deleted policy of a route", deleted));
    let added = percentiles(&on_routes, |policy, number| {
        let route = &routes[number * 41 % routes.len()];
        reviewed.upsert(
            attached(renamed(policy, number), route),
            ObjectChange::Created,
        )
    });
    found.push(("new policy of a route", added));
    found
}

/// A policy with another route as its target.
fn attached(mut policy: Object, route: &Object) -> Object {
    policy.key.namespace = route.key.namespace.clone();
    policy.body.edit(|body| {
        body["metadata"]["namespace"] = json!(&*route.key.namespace);
        for target in ["/spec/targetRef/name", "/spec/targetRefs/0/name"] {
            if let Some(name) = body.pointer_mut(target) {
                *name = json!(&*route.key.name);
            }
        }
    });
    policy
}

/// Reviews of routes.
fn of_routes(reviewed: &mut ReviewedWorld, routes: &[Object]) -> Vec<Reviewed> {
    let edited = percentiles(routes, |mut route, _| {
        route.body.edit(|body| {
            body["spec"]["rules"].as_array_mut().unwrap().pop();
        });
        reviewed.upsert(route, ObjectChange::Updated)
    });
    let added = percentiles(routes, |route, number| {
        reviewed.upsert(renamed(route, number), ObjectChange::Created)
    });
    let deleted = percentiles(routes, |route, _| reviewed.delete(route));
    vec![
        ("a rule less in a route", edited),
        ("new route", added),
        ("deleted route", deleted),
    ]
}

/// The rows of reviews of a world.
fn of_world(name: &'static str) -> Vec<Row> {
    let mut reviewed = ReviewedWorld::of(name);
    let routes = reviewed.objects(|kind, _| &*kind.kind == "HTTPRoute");
    let mut found = of_policies(&mut reviewed, &routes);
    found.extend(of_routes(&mut reviewed, &routes));
    let (paths, rebuilds) = (reviewed.snapshot.paths(), reviewed.rebuilds);
    let rows = found.into_iter().map(|(what, (p50, p99))| {
        let promise = format!("review: {what}, {paths} paths");
        let figure = format!("p50 {:.2} ms, p99 {:.2} ms", millis(p50), millis(p99));
        match what {
            GATEWAY => row(&promise, "-", figure, None),
            _ => row(&promise, "p99 <= 10 ms", figure, millis(p99) <= 10.0),
        }
    });
    let mut rows: Vec<Row> = rows.collect();
    rows.push(row(
        "worlds read from scratch for these",
        "0",
        rebuilds.to_string(),
        rebuilds == 0,
    ));
    rows
}

/// Reviews of policies and routes.
pub fn reviews() -> Vec<Row> {
    ["100k", "teams"].into_iter().flat_map(of_world).collect()
}

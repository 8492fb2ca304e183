//! Changes of the world of teams, from the changed object to the published snapshot.

use std::time::Duration;

use entail_core::model::{GroupKind, Object};
use serde_json::json;

use crate::bench_world::{generate, unused_profile};
use crate::changing_world::{ChangingWorld, gateway_api};
use crate::rows::{Row, least, median, millis, row};

/// Number of changes of each kind.
const TIMES: usize = 41;

/// What changes, and how long that takes.
type TimedChange = (String, Duration);

/// Changes of single objects, compared with the rebuild that a changed profile causes.
pub fn teams() -> Vec<Row> {
    let mut world = ChangingWorld::new(generate("teams"));
    let rebuild = least(3, || {
        let number = world.number();
        world.upsert(unused_profile(number))
    });
    let before = world.snapshot_builder.stats().rebuilds;
    let changes = [
        &of_routes(&mut world)[..],
        &gone_and_back(&mut world, &GroupKind::service(), TIMES),
        &gone_and_back(&mut world, &GroupKind::new("", "Namespace"), TIMES),
        &[listener_comes(&mut world)],
    ]
    .concat();
    // Each takes a fortieth of all paths with it.
    let gateways = gone_and_back(&mut world, &gateway_api("Gateway"), 5);
    let wide = gateway_policies_change(&mut world);
    let rebuilds = world.snapshot_builder.stats().rebuilds - before;
    let mut rows: Vec<Row> = changes
        .into_iter()
        .map(|change| compared(change, rebuild, 5.0))
        .collect();
    for (what, time) in gateways {
        let what = format!("{what} with 500 routes");
        rows.push(compared((what, time), rebuild, 50.0));
    }
    let wide = ("a Gateway's policy, 500 routes below".to_owned(), wide);
    rows.push(compared(wide, rebuild, 15.0));
    rows.push(row(
        "rebuilds for these",
        "0",
        rebuilds.to_string(),
        rebuilds == 0,
    ));
    rows
}

fn of_routes(world: &mut ChangingWorld) -> [TimedChange; 4] {
    let route = gateway_api("HTTPRoute");
    let rule = world.often(TIMES, |world| {
        let route = world.route_without_a_rule();
        world.upsert(route)
    });
    let moved = world.often(TIMES, |world| {
        let (mut moved, number) = world.next(&route);
        moved.body.edit(|body| {
            body["spec"]["parentRefs"][0]["name"] = format!("gw-{:03}", number % 40).into();
            // Hostnames are those of one listener.
            body["spec"].as_object_mut().unwrap().remove("hostnames");
        });
        world.upsert(moved)
    });
    let added = world.often(TIMES, |world| {
        let (mut added, number) = world.next(&route);
        let name = format!("added-{number}");
        added.key.name = name.as_str().into();
        added
            .body
            .edit(|body| body["metadata"]["name"] = name.into());
        world.upsert(added)
    });
    let deleted = world.often(TIMES, |world| {
        let (gone, _) = world.next(&route);
        world.delete(&gone)
    });
    [
        ("a route loses a rule", rule),
        ("a route moves to another Gateway", moved),
        ("a new route", added),
        ("a deleted route", deleted),
    ]
    .map(|(what, time)| (what.to_owned(), time))
}

/// A Gateway gets a listener, to which its routes are not attached.
fn listener_comes(world: &mut ChangingWorld) -> TimedChange {
    let time = world.often(TIMES, |world| {
        let (mut gateway, number) = world.next(&gateway_api("Gateway"));
        gateway.body.edit(|body| {
            let listeners = body["spec"]["listeners"].as_array_mut().unwrap();
            let name = format!("another-{number}");
            listeners.push(json!({"name": name, "port": 9_000, "protocol": "HTTP"}));
        });
        world.upsert(gateway)
    });
    ("a Gateway gets a listener".to_owned(), time)
}

/// Objects of a kind are deleted, and created again.
fn gone_and_back(world: &mut ChangingWorld, kind: &GroupKind, times: usize) -> [TimedChange; 2] {
    let mut deleted = Vec::new();
    let gone = world.often(times, |world| {
        let (object, _) = world.next(kind);
        let time = world.delete(&object);
        deleted.push(object);
        time
    });
    let back = world.often(times, |world| world.upsert(deleted.pop().unwrap()));
    let kind = &kind.kind;
    [
        (format!("a deleted {kind}"), gone),
        (format!("a {kind} appears"), back),
    ]
}

/// The policies of Gateways change.
fn gateway_policies_change(world: &mut ChangingWorld) -> Duration {
    let policies = policies_of_gateways(world);
    world.often(TIMES, |world| {
        let number = world.number();
        let mut policy = policies[number % policies.len()].clone();
        policy.body.edit(|body| {
            let limits = body["spec"]["defaults"]["limits"].as_object_mut().unwrap();
            for (_, limit) in limits {
                limit["rates"][0]["limit"] = (2_000 + number).into();
            }
        });
        world.upsert(policy)
    })
}

/// The policies of Gateways that set defaults.
fn policies_of_gateways(world: &ChangingWorld) -> Vec<Object> {
    let kind = GroupKind::new("kuadrant.io", "RateLimitPolicy");
    let all = world.world.store.of_kind(&kind);
    let of_gateways = all.filter(|((namespace, name), _)| {
        &***namespace == "edge" && name.starts_with("gw-") && name.ends_with("-defaults")
    });
    of_gateways
        .map(|(_, entry)| Object::clone(&entry.object))
        .collect()
}

/// A row of a change, with its share of a rebuild.
fn compared((what, time): TimedChange, rebuild: Duration, most: f64) -> Row {
    let share = 100.0 * time.as_secs_f64() / rebuild.as_secs_f64();
    row(
        &what,
        &format!("<= {most} ms"),
        format!("{:.2} ms ({share:.2} % of a rebuild)", millis(time)),
        millis(time) <= most,
    )
}

impl ChangingWorld {
    /// The median of some changes.
    fn often(&mut self, times: usize, mut change: impl FnMut(&mut Self) -> Duration) -> Duration {
        median((0..times).map(|_| change(self)).collect())
    }
}

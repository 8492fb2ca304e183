//! The cost of assertions: on a world of a platform, from scratch and after a change.

use std::sync::Arc;
use std::time::{Duration, Instant};

use entail::insight::{AssertionChecker, today};
use entail::snapshot::{SnapshotBuilder, Version};
use entail_core::model::{Change, GroupKind, Object};

use crate::bench_world::{BenchWorld, generate, read, version};
use crate::rows::{Row, least, median, millis, row};

/// Two assertions about all rules: a pattern, and a condition that reads the Route, too.
const ASSERTIONS: &str = "
apiVersion: entail.dev/v1alpha1
kind: ClusterEffectivePolicyAssertion
metadata: {name: limited}
spec:
  policies: {limit: RateLimitPolicy.kuadrant.io}
  expect: {cel: 'has(limit.limits) && size(limit.limits) > 0'}
---
apiVersion: entail.dev/v1alpha1
kind: ClusterEffectivePolicyAssertion
metadata: {name: named}
spec:
  policies: {limit: RateLimitPolicy.kuadrant.io}
  expect: {cel: \"has(limit.limits) || route.name == 'none'\"}
";

/// A world that a checker follows.
struct Followed {
    world: BenchWorld,
    builder: SnapshotBuilder,
    checker: AssertionChecker,
    generation: u64,
    edits: usize,
}

impl Followed {
    /// Applies changed objects. Returns the time of the check that follows.
    fn change(&mut self, upserts: Vec<Object>) -> Duration {
        let changed = self.world.store.apply(Change {
            upserts: upserts.into_iter().map(Arc::new).collect(),
            ..Change::default()
        });
        self.builder.update(self.world.store.clone(), &changed);
        self.check()
    }

    fn check(&mut self) -> Duration {
        self.generation += 1;
        let snapshot = Arc::new(self.builder.snapshot(Version {
            generation: self.generation,
            ..version()
        }));
        let began = Instant::now();
        let results = self.checker.follow(&snapshot, today());
        let time = began.elapsed();
        assert_eq!(results.len(), 2);
        assert!(
            results.iter().all(|result| result.paths > 90_000),
            "{results:?}"
        );
        time
    }

    /// The median of the times of checks after edits of one object of a kind each.
    fn median(&mut self, kind: &GroupKind, edit: fn(&mut Object, usize)) -> Duration {
        let times = (0..41).map(|_| {
            self.edits += 1;
            self.edit(kind, self.edits, edit)
        });
        median(times.collect())
    }

    /// Edits another object of a kind.
    fn edit(&mut self, kind: &GroupKind, number: usize, edit: fn(&mut Object, usize)) -> Duration {
        let mut object = self.world.object(kind, number);
        edit(&mut object, number);
        self.change(vec![object])
    }
}

fn edit_policy(policy: &mut Object, number: usize) {
    let limit = serde_json::json!({"rates": [{"limit": number, "window": "1s"}]});
    policy
        .body
        .edit(|body| body["spec"]["limits"]["edited"] = limit);
}

fn drop_rule(route: &mut Object, _: usize) {
    route.body.edit(|body| {
        let rules = body["spec"]["rules"].as_array_mut().unwrap();
        if rules.len() > 1 {
            rules.pop();
        }
    });
}

fn edit_label(route: &mut Object, number: usize) {
    route.labels.insert("edit", &number.to_string());
}

/// The time of a check from scratch, and after changes of one object.
pub fn assertions() -> Vec<Row> {
    let mut world = generate("teams");
    let upserts = read(ASSERTIONS, "assertions").into_iter().map(Arc::new);
    world.store.apply(Change {
        upserts: upserts.collect(),
        ..Change::default()
    });
    let builder = world.snapshot_builder();
    let mut followed = Followed {
        world,
        builder,
        checker: AssertionChecker::default(),
        generation: 0,
        edits: 0,
    };
    let cold = least(3, || {
        followed.checker = AssertionChecker::default();
        followed.check()
    });
    let policies = GroupKind::parse("RateLimitPolicy.kuadrant.io");
    let routes = GroupKind::new("gateway.networking.k8s.io", "HTTPRoute");
    let policy = followed.median(&policies, edit_policy);
    let rule = followed.median(&routes, drop_rule);
    let label = followed.median(&routes, edit_label);
    let row_of = |what: &str, time: Duration| {
        let promise = format!("two assertions, 100 000 paths: {what}");
        row(
            &promise,
            "<= 5 ms",
            format!("{:.2} ms", millis(time)),
            millis(time) <= 5.0,
        )
    };
    vec![
        row(
            "two assertions, 100 000 paths: cold",
            "<= 1 s",
            format!("{:.0} ms", millis(cold)),
            millis(cold) <= 1_000.0,
        ),
        row_of("a policy, median", policy),
        row_of("a rule less in a route, median", rule),
        row_of("a label of a route, median", label),
    ]
}

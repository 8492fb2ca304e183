//! Assertions of a small world that follow its changes.

use std::sync::Arc;

use entail::api::v1;
use entail::insight::{AssertionChecker, today};
use entail::snapshot::{SnapshotBuilder, Version};
use entail::source::manifests::read_objects;
use entail_core::effective::World;
use entail_core::model::{Change, Object};
use entail_core::store::{ProfileSources, Store};
use v1::assertion_result::Outcome;

const WORLD: &str = "
apiVersion: entail.dev/v1alpha1
kind: PolicyProfile
metadata: {name: foos.f.io}
spec: {preset: most-specific-field, policy: {group: f.io, kind: Foo}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: shop}
spec: {gatewayClassName: c, listeners: [{name: l, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: r, namespace: shop}
spec: {parentRefs: [{name: gw}], rules: [{backendRefs: [{name: s, port: 80}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: s, namespace: shop}
spec: {ports: [{port: 80}]}
";

/// A world and the checker that follows it.
struct Followed {
    store: Store,
    builder: SnapshotBuilder,
    checker: AssertionChecker,
    generation: u64,
}

impl Followed {
    fn new(text: &str) -> Self {
        let mut store = Store::default();
        store.apply(Change {
            upserts: objects(text),
            ..Change::default()
        });
        let world = World::from_store(store.clone(), &ProfileSources::shipped());
        Self {
            store,
            builder: SnapshotBuilder::new(world),
            checker: AssertionChecker::default(),
            generation: 0,
        }
    }

    /// Applies a change. Returns the outcomes of the checker that follows, which are those of a new one.
    fn change(&mut self, upserts: &str, deletes: &str) -> Vec<(String, Outcome)> {
        let deletes = objects(deletes).into_iter();
        let changed = self.store.apply(Change {
            upserts: objects(upserts),
            deletes: deletes.map(|object| object.key.clone()).collect(),
            ..Change::default()
        });
        self.builder.update(self.store.clone(), &changed);
        self.generation += 1;
        let snapshot = Arc::new(self.builder.snapshot(Version {
            epoch: "e".into(),
            generation: self.generation,
            synced_at: prost_types::Timestamp::default(),
        }));
        let followed = self.checker.follow(&snapshot, today());
        let anew = AssertionChecker::default().follow(&snapshot, today());
        assert_eq!(followed, anew);
        let outcomes = followed.into_iter();
        outcomes
            .map(|result| (result.object.clone(), result.outcome()))
            .collect()
    }
}

fn objects(text: &str) -> Vec<Arc<Object>> {
    let parsed = read_objects(text, "world");
    assert!(parsed.problems.is_empty(), "{:?}", parsed.problems);
    let objects = parsed.objects.into_iter();
    objects.map(|one| Arc::new(one.object)).collect()
}

fn policy(limit: u32) -> String {
    format!(
        "{{apiVersion: f.io/v1, kind: Foo, metadata: {{name: p, namespace: shop}}, spec: {{targetRefs: [{{group: \
         gateway.networking.k8s.io, kind: HTTPRoute, name: r}}], limit: {limit}}}}}\n"
    )
}

fn assertion(name: &str) -> String {
    format!(
        "{{apiVersion: entail.dev/v1alpha1, kind: EffectivePolicyAssertion, metadata: {{name: {name}, namespace: shop}}, \
         spec: {{policies: {{p: Foo}}, expect: {{cel: 'p.limit < 5'}}}}}}\n---\n"
    )
}

#[test]
fn an_assertion_that_was_beyond_the_maximum_number_for_a_while_is_checked_from_scratch() {
    let twenty: String = (0..20)
        .map(|number| assertion(&format!("b{number:02}")))
        .collect();
    let mut followed = Followed::new(&format!("{WORLD}---\n{twenty}{}", policy(1)));
    let last = |outcomes: Vec<(String, Outcome)>| outcomes.last().unwrap().1;
    assert_eq!(last(followed.change("", "")), Outcome::Passed);
    // Another one takes its place, and then it is broken.
    let another = assertion("a");
    assert_eq!(last(followed.change(&another, "")), Outcome::Unknown);
    assert_eq!(last(followed.change(&policy(9), "")), Outcome::Unknown);
    assert_eq!(last(followed.change("", &another)), Outcome::Failed);
}

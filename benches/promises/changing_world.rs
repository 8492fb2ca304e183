//! A world that changes, object by object.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use entail::snapshot::SnapshotBuilder;
use entail_core::model::{Change, GroupKind, Object};

use crate::bench_world::{BenchWorld, version};

/// A world that changes, each time to its next snapshot.
pub struct ChangingWorld {
    pub world: BenchWorld,
    pub snapshot_builder: SnapshotBuilder,
    number: usize,
}

impl ChangingWorld {
    /// Computes all answers of a world.
    pub fn new(world: BenchWorld) -> Self {
        Self {
            snapshot_builder: world.snapshot_builder(),
            world,
            number: 0,
        }
    }

    /// A copy of another object of a kind each time, with a number.
    pub fn next(&mut self, kind: &GroupKind) -> (Object, usize) {
        let number = self.number();
        (self.world.object(kind, number), number)
    }

    /// Another number each time.
    pub fn number(&mut self) -> usize {
        self.number += 1;
        self.number
    }

    /// Another HTTPRoute each time, without its last rule.
    pub fn route_without_a_rule(&mut self) -> Object {
        let (mut route, _) = self.next(&gateway_api("HTTPRoute"));
        route.body.edit(|body| {
            body["spec"]["rules"].as_array_mut().unwrap().pop();
        });
        route
    }

    /// Returns the time from a change to the published snapshot.
    pub fn change(&mut self, change: Change) -> Duration {
        let began = Instant::now();
        let changed = self.world.store.apply(change);
        let store = self.world.store.clone();
        self.snapshot_builder.update(store, &changed);
        // It is dropped after the time is taken, as the server does in another thread.
        let _published = black_box(self.snapshot_builder.snapshot(version()));
        began.elapsed()
    }

    /// As [`Self::change`] for one object.
    pub fn upsert(&mut self, object: Object) -> Duration {
        self.change(Change {
            upserts: vec![Arc::new(object)],
            ..Change::default()
        })
    }

    /// As [`Self::change`] for an object that is gone.
    pub fn delete(&mut self, object: &Object) -> Duration {
        self.change(Change {
            deletes: vec![object.key.clone()],
            ..Change::default()
        })
    }
}

/// A kind of Gateway API.
pub fn gateway_api(kind: &str) -> GroupKind {
    GroupKind::new("gateway.networking.k8s.io", kind)
}

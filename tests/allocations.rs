//! Counts allocations. A look-up does not allocate, from the path name to the bytes of the reply; the buffers of the codec
//! are not included. An expression does not copy its variables.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test fails by panicking"
)]

use std::sync::{Arc, Mutex, PoisonError};

use bytes::BufMut;
use entail::insight::get_stored;
use entail::snapshot::{Snapshot, SnapshotCell, Version};
use entail::subscription::SubscriptionHub;
use entail_core::expr::{Expression, Variable};
use prost::Message;
use serde_json::json;

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

/// Held while allocations are counted: those of all threads are.
static COUNTING: Mutex<()> = Mutex::new(());

/// Returns a world with a Gateway, a mesh root, named and unnamed rules, and a policy.
fn snapshots() -> Arc<SnapshotCell> {
    let objects = json!([
        {"apiVersion": "entail.dev/v1alpha1", "kind": "PolicyProfile", "metadata": {"name": "ps"},
         "spec": {"policy": {"group": "example.com", "kind": "P"}}},
        {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
         "metadata": {"name": "gw", "namespace": "ns"},
         "spec": {"gatewayClassName": "c", "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]}},
        {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
         "metadata": {"name": "r", "namespace": "ns"},
         "spec": {"parentRefs": [{"name": "gw"}, {"group": "", "kind": "Service", "name": "s"}],
                  "rules": [{"name": "one", "backendRefs": [{"name": "s", "port": 80}]}, {}]}},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "ns"},
         "spec": {"ports": [{"port": 80}]}},
        {"apiVersion": "example.com/v1", "kind": "P", "metadata": {"name": "p", "namespace": "ns"},
         "spec": {"targetRefs": [{"kind": "Gateway", "name": "gw"}], "defaults": {"a": {"b": [1, 2, 3]}}}},
    ]);
    let world = entail::app::world_of(objects.as_array().unwrap());
    let version = Version {
        epoch: "test".into(),
        generation: 1,
        synced_at: Default::default(),
    };
    let subscriptions = SubscriptionHub::default();
    subscriptions.publish(Arc::new(Snapshot::build(world, version)));
    Arc::clone(subscriptions.snapshots())
}

#[test]
fn a_look_up_does_not_allocate() {
    let _counting = COUNTING.lock().unwrap_or_else(PoisonError::into_inner);
    let snapshots = snapshots();
    let names = [
        "gateways/ns/gw",
        "gateways/ns/gw/listeners/http",
        "gateways/ns/gw/listeners/http/routes/HTTPRoute/ns/r/rules/one",
        "gateways/ns/gw/listeners/http/routes/HTTPRoute/ns/r/rules/#0",
        "gateways/ns/gw/listeners/http/routes/HTTPRoute/ns/r/rules/one/backends/Service/ns/s/ports/80",
        "gateways/ns/gw/listeners/http/routes/HTTPRoute/ns/r/rules/#1",
        "mesh/*/services/ns/s/routes/HTTPRoute/ns/r/rules/one",
        "mesh/somebody/services/ns/s",
        "namespaces/ns",
    ];
    let mut buffer: Vec<u8> = Vec::with_capacity(1 << 16);
    // The first load registers this thread with the cell, which allocates once.
    assert!(snapshots.load().is_some() && snapshots.with(|_| ()).is_some());
    let _profiler = dhat::Profiler::builder().testing().build();
    let before = dhat::HeapStats::get();
    for _ in 0..100 {
        for name in names {
            let reply = snapshots.with(|snapshot| get_stored(snapshot, name));
            let reply = reply.flatten();
            buffer.clear();
            // The codec encodes into a buffer that exists already.
            if let Some(reply) = &reply {
                reply.encode_raw(&mut (&mut buffer).limit(1 << 16));
            }
            dhat::assert!(!buffer.is_empty());
        }
    }
    let after = dhat::HeapStats::get();
    dhat::assert_eq!(after.total_blocks - before.total_blocks, 0);
    // The counter works: a new string allocates.
    let text = "gateways/ns/gw".to_owned();
    let counted = dhat::HeapStats::get();
    dhat::assert!(counted.total_blocks > after.total_blocks && !text.is_empty());
}

#[test]
fn an_expression_does_not_copy_its_variables() {
    let _counting = COUNTING.lock().unwrap_or_else(PoisonError::into_inner);
    let expression = Expression::compile("has(self.list) && self.list[1].name == 'n1'").unwrap();
    let allocated = |items: usize| {
        let list: Vec<_> = (0..items)
            .map(|n| json!({"name": format!("n{n}")}))
            .collect();
        let variable = Variable::of(&json!({ "list": list })).unwrap();
        // The first evaluation registers the functions.
        assert_eq!(
            expression.evaluate_variables(&[("self", &variable)], &mut 0),
            Ok(json!(true))
        );
        let _profiler = dhat::Profiler::builder().testing().build();
        let before = dhat::HeapStats::get();
        let value = expression.evaluate_variables(&[("self", &variable)], &mut 0);
        let after = dhat::HeapStats::get();
        assert_eq!(value, Ok(json!(true)));
        after.total_bytes - before.total_bytes
    };
    assert_eq!(allocated(10_000), allocated(2));
}

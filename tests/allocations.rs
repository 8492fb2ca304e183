//! A look-up allocates nothing from the path's name to the reply's bytes. The codec's own buffers
//! come after that.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test fails by panicking"
)]

use std::sync::Arc;

use bytes::BufMut;
use entail::insight::get_stored;
use entail::snapshot::{Snapshot, SnapshotCell, Version};
use prost::Message;

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

/// A world with a Gateway, a mesh root, named and unnamed rules, and a policy.
fn snapshots() -> SnapshotCell {
    let objects = serde_json::json!([
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
    let snapshots = SnapshotCell::default();
    snapshots.publish(Arc::new(Snapshot::build(world, version)));
    snapshots
}

#[test]
fn from_the_name_to_the_bytes_nothing_is_allocated() {
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
    // The first load registers this thread with the cell, once for all.
    assert!(snapshots.load().is_some() && snapshots.with(|_| ()).is_some());
    let _profiler = dhat::Profiler::builder().testing().build();
    let before = dhat::HeapStats::get();
    for _ in 0..100 {
        for name in names {
            let found = snapshots.with(|snapshot| get_stored(snapshot, name));
            let reply = found.flatten();
            buffer.clear();
            // What the codec does with it: into a buffer that is there already.
            if let Some(reply) = &reply {
                reply.encode_raw(&mut (&mut buffer).limit(1 << 16));
            }
            dhat::assert!(!buffer.is_empty());
        }
    }
    let after = dhat::HeapStats::get();
    dhat::assert_eq!(after.total_blocks - before.total_blocks, 0);
    // The counter counts: a reply that is put together anew does allocate.
    let text = "gateways/ns/gw".to_owned();
    let counted = dhat::HeapStats::get();
    dhat::assert!(counted.total_blocks > after.total_blocks && !text.is_empty());
}

//! Reads arbitrary manifests: invalid objects are skipped, and the world of the others has an answer
//! and an equal explanation on each path.

use std::sync::{Arc, LazyLock};

use entail::source::manifests::read_objects;
use entail_core::effective::World;
use entail_core::engine::PathEngine;
use entail_core::model::Change;
use entail_core::store::{ProfileSources, Store};

static SHIPPED: LazyLock<ProfileSources> = LazyLock::new(ProfileSources::shipped);

/// Checks one input.
pub fn check(text: &str) {
    let parsed = read_objects(text, "fuzz");
    let mut store = Store::default();
    store.apply(Change {
        upserts: parsed
            .objects
            .into_iter()
            .map(|read| Arc::new(read.object))
            .collect(),
        ..Change::default()
    });
    let engine = PathEngine::new(World::from_store(store, &SHIPPED));
    let world = engine.world();
    let statuses = engine.statuses();
    assert_eq!(statuses.kinds.len(), world.kinds().len());
    let mut remaining = 100;
    world.topology().visit(&mut |_, trail| {
        // Bounds the time per input: a world can have very many paths.
        if remaining == 0 {
            return;
        }
        remaining -= 1;
        for kind in world.kinds() {
            if let Some(chain) = world.attachment_chain(kind, trail) {
                assert_eq!(
                    world.explain(kind, &chain).effective,
                    world.answer(kind, &chain)
                );
            }
        }
    });
}

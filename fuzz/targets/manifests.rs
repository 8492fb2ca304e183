//! Manifests of any content: what is not good costs only itself, and the rest is a world that
//! answers on each of its paths.

use std::sync::{Arc, LazyLock};

use entail::source::manifests::read_objects;
use entail_core::effective::World;
use entail_core::model::Change;
use entail_core::store::{ProfileSources, Store};

static SHIPPED: LazyLock<ProfileSources> = LazyLock::new(ProfileSources::shipped);

/// Checks one input.
pub fn check(text: &str) {
    let Ok(parsed) = read_objects(text, "fuzz") else {
        return;
    };
    let mut store = Store::default();
    store.apply(Change {
        upserts: parsed
            .objects
            .into_iter()
            .map(|read| Arc::new(read.object))
            .collect(),
        ..Change::default()
    });
    let world = World::from_store(store, &SHIPPED);
    let statuses = world.statuses();
    assert_eq!(statuses.kinds.len(), world.kinds().len());
    let mut left = 100;
    world.topology().visit(&mut |_, trail| {
        // Enough to see that none breaks; a world of many paths is not the point here.
        if left == 0 {
            return;
        }
        left -= 1;
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

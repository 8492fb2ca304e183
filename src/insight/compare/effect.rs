//! The effect of a change of the objects of a snapshot.

use super::{compare, compare_changed};
use crate::api::v1;
use crate::insight::Visibility;
use crate::snapshot::Snapshot;
use entail_core::engine::Engine;
use entail_core::store::{ChangeSet, Store};

/// A world after a change, and how its answers differ from those of the snapshot.
#[derive(Debug)]
pub struct ChangeEffect {
    /// The world after the change.
    pub after: Engine,
    /// The changes. The kinds that are unknown are those on compared paths, and on paths that only one world has.
    pub differences: v1::PreviewChangeResponse,
}

impl ChangeEffect {
    /// Computes the effect of a change where that needs no world that is read from scratch, and compares only what may
    /// differ; `None` where it does. The time grows with what the change affects. The objects in `changed` are those in
    /// which `store` differs from the snapshot.
    pub fn in_place(
        snapshot: &Snapshot,
        store: Store,
        changed: &ChangeSet,
        visibility: &dyn Visibility,
    ) -> Option<Self> {
        let mut after = snapshot.fork();
        let updated = after.follow_in_place(store, changed)?;
        // What went wrong inside is recorded by the engine; the world is read from scratch then.
        let changed = after.changed_paths(&updated).ok()??;
        let worlds = [snapshot.engine(), after.paths()];
        let differences = compare_changed(worlds, Some(&changed), visibility);
        Some(Self { after, differences })
    }

    /// Computes the effect of any change, and compares all paths.
    pub fn of(
        snapshot: &Snapshot,
        store: Store,
        changed: &ChangeSet,
        visibility: &dyn Visibility,
    ) -> Self {
        let mut after = snapshot.fork();
        after.follow(store, changed);
        let differences = compare(snapshot.engine(), after.paths(), visibility);
        Self { after, differences }
    }
}

//! The objects that are known, put where they belong, with the profiles that read them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::SystemTime;

use crate::snapshot::{BuildStats, Snapshot, SnapshotBuilder, Version};
use crate::source::manifests::KindScopes;
use entail_core::effective::World;
use entail_core::model::{Change, GroupKind, KindState, Object, Outcome, SourceState, Str, groups};
use entail_core::store::{ChangeSet, ProfileSources, Store, required_kinds};

/// Takes changes and makes worlds of them.
#[derive(Debug)]
pub(super) struct ObjectCache {
    profiles: ProfileSources,
    store: Store,
    /// The kinds that profiles call cluster-scoped. Sources know those that were known at the
    /// start; PolicyProfiles among the objects may add others.
    cluster_scoped: BTreeSet<GroupKind>,
    scopes: KindScopes,
    /// The kinds that answers rest on.
    wanted: BTreeSet<GroupKind>,
    /// Whether a source tells how much it knows of each kind: one that was not told of is unknown.
    is_watched: bool,
    /// Made with the first snapshot.
    snapshot_builder: Option<SnapshotBuilder>,
    /// Objects that the publisher does not know of.
    pending: ChangeSet,
}

impl ObjectCache {
    pub fn new(profiles: ProfileSources) -> Self {
        Self::with_store(profiles, Store::default())
    }

    /// With objects that are known already.
    pub fn with_store(profiles: ProfileSources, store: Store) -> Self {
        let (cluster_scoped, wanted) = kinds_of(&profiles, &store);
        Self {
            scopes: scopes_of(&cluster_scoped, &store),
            cluster_scoped,
            wanted,
            is_watched: false,
            profiles,
            store,
            snapshot_builder: None,
            pending: ChangeSet::new(),
        }
    }

    /// The same for a source that tells how much it knows of each kind.
    pub fn with_kind_states(mut self) -> Self {
        self.is_watched = true;
        self.mark_unknown_kinds();
        self
    }

    /// The kinds that answers rest on: those of the topology, policies and what they may name.
    pub fn wanted(&self) -> &BTreeSet<GroupKind> {
        &self.wanted
    }

    /// Kinds of which nothing was told are unknown.
    fn mark_unknown_kinds(&mut self) {
        if !self.is_watched {
            return;
        }
        let new = self.wanted.iter();
        let new = new.filter(|kind| self.store.state(kind).is_none());
        let states = new.map(|kind| KindState {
            kind: kind.clone(),
            state: SourceState::Unknown,
        });
        let states = states.collect();
        self.store.apply(Change {
            states,
            ..Change::default()
        });
    }

    /// What is known of the scopes of kinds.
    pub fn scopes(&self) -> KindScopes {
        self.scopes.clone()
    }

    /// The objects.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// How much is known of each kind that answers rest on.
    pub fn states(&self) -> impl Iterator<Item = (&GroupKind, SourceState)> {
        let state = |kind| self.store.state(kind).unwrap_or(SourceState::Complete);
        self.wanted.iter().map(move |kind| (kind, state(kind)))
    }

    /// How many policies of each kind there are, by outcome.
    pub fn outcomes(&self) -> BTreeMap<(GroupKind, Outcome), usize> {
        let snapshot_builder = self.snapshot_builder.as_ref();
        snapshot_builder
            .map(SnapshotBuilder::outcomes)
            .unwrap_or_default()
    }

    /// What was done since the start.
    pub fn stats(&self) -> BuildStats {
        let snapshot_builder = self.snapshot_builder.as_ref();
        snapshot_builder
            .map(SnapshotBuilder::stats)
            .unwrap_or_default()
    }

    /// How many objects there are.
    pub fn objects(&self) -> usize {
        self.store.len()
    }

    /// Applies a change; returns how many objects truly changed.
    pub fn apply(&mut self, mut change: Change) -> usize {
        for object in &mut change.upserts {
            place(&self.scopes, object);
        }
        for key in &mut change.deletes {
            key.namespace = self.scopes.namespace(&key.kind, &key.namespace);
        }
        let told = change.states.iter();
        let states = told.filter(|told| self.store.state(&told.kind) != Some(told.state));
        let states = states.count();
        let changed = self.store.apply(change);
        let moved = if changed.keys().any(|key| key.kind.defines_kinds()) {
            self.update_scopes()
        } else {
            0
        };
        let count = changed.len() + moved + states;
        self.add_pending(changed);
        count
    }

    /// Keeps what changed for the next snapshot.
    fn add_pending(&mut self, changed: ChangeSet) {
        for (key, difference) in changed {
            let known = self.pending.entry(key).or_insert(difference);
            *known = difference.max(*known);
        }
    }

    /// Learns the scopes of kinds anew; returns how many objects moved. Kinds that stop being
    /// cluster-scoped move when they are read the next time: where they were written is not known
    /// here.
    fn update_scopes(&mut self) -> usize {
        (self.cluster_scoped, self.wanted) = kinds_of(&self.profiles, &self.store);
        self.mark_unknown_kinds();
        self.scopes = scopes_of(&self.cluster_scoped, &self.store);
        let mut moves = Change::default();
        let kinds: Vec<GroupKind> = self.store.kinds().cloned().collect();
        for kind in kinds
            .iter()
            .filter(|kind| self.scopes.is_cluster_scoped(kind))
        {
            for ((namespace, _), entry) in self.store.of_kind(kind) {
                if namespace.is_empty() {
                    continue;
                }
                let mut object = Arc::clone(&entry.object);
                moves.deletes.push(object.key.clone());
                place(&self.scopes, &mut object);
                moves.upserts.push(object);
            }
        }
        let moved = moves.upserts.len();
        let changed = self.store.apply(moves);
        self.add_pending(changed);
        moved
    }

    /// The world of what is known now.
    pub fn world(&self) -> World {
        World::from_store(self.store.clone(), &self.profiles)
    }

    /// A snapshot of what is known now, and then no other.
    pub fn into_snapshot(self, version: Version) -> Snapshot {
        Snapshot::build(self.world(), version)
    }

    /// A snapshot of what is known now; it shares what did not change with the one before.
    pub fn snapshot(&mut self, version: Version) -> Snapshot {
        let changed = std::mem::take(&mut self.pending);
        // It is put back when all went well: after a panic half-way all is read anew.
        let snapshot_builder = match self.snapshot_builder.take() {
            Some(mut snapshot_builder) => {
                snapshot_builder.update(self.store.clone(), &changed);
                snapshot_builder
            }
            None => SnapshotBuilder::new(World::from_store(self.store.clone(), &self.profiles)),
        };
        self.snapshot_builder
            .insert(snapshot_builder)
            .snapshot(version)
    }

    /// Why profiles are refused.
    pub fn problems(&self) -> BTreeSet<String> {
        let worlds = self.snapshot_builder.iter().map(SnapshotBuilder::world);
        worlds.flat_map(refusals).collect()
    }
}

/// Why profiles of a world are refused, a line each.
pub(super) fn refusals(world: &World) -> impl Iterator<Item = String> {
    let problems = world.problems().iter();
    problems.map(|p| format!("{}: profile refused: {}", p.place, p.reason))
}

fn place(scopes: &KindScopes, object: &mut Arc<Object>) {
    let key = &object.key;
    if scopes.namespace(&key.kind, &key.namespace) != key.namespace {
        scopes.assign_namespace(Arc::make_mut(object));
    }
}

/// The scopes of kinds, by profiles and CRDs.
fn scopes_of(cluster_scoped: &BTreeSet<GroupKind>, store: &Store) -> KindScopes {
    let mut scopes = KindScopes::new(cluster_scoped.clone());
    let crds = GroupKind::crd();
    scopes.update_from_crds(store.of_kind(&crds).map(|(_, entry)| &*entry.object));
    scopes
}

/// The kinds that are cluster-scoped by their profiles, and all that answers rest on.
fn kinds_of(
    profiles: &ProfileSources,
    store: &Store,
) -> (BTreeSet<GroupKind>, BTreeSet<GroupKind>) {
    let registry = profiles.resolve(store);
    let mut cluster_scoped = BTreeSet::new();
    let mut wanted: BTreeSet<GroupKind> = required_kinds().collect();
    for profile in registry.profiles.values() {
        if profile.cluster_scoped {
            cluster_scoped.insert(profile.policy.clone());
        }
        wanted.insert(profile.policy.clone());
        wanted.extend(profile.target_kinds().cloned());
    }
    // Whatever a profile says: nobody's secrets are read.
    wanted.remove(&GroupKind::new(groups::CORE, "Secret"));
    (cluster_scoped, wanted)
}

/// A name for this start of the process: unlike that of any other start.
pub(super) fn epoch() -> Str {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let nanoseconds = since.map_or(0, |since| since.as_nanos());
    let text = format!("{nanoseconds} {}", std::process::id());
    let hash = crate::api::etag(text.as_bytes());
    hash.chars().take(16).collect::<String>().into()
}

/// The moment, as messages tell it.
pub(super) fn now() -> prost_types::Timestamp {
    SystemTime::now().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::manifests::read_objects;
    use entail_core::model::ObjectKey;

    const POLICY: &str =
        "{apiVersion: p.io/v1, kind: P, metadata: {name: a, namespace: x}, spec: {v: 1}}\n---\n";
    const PROFILE: &str = "apiVersion: entail.dev/v1alpha1\nkind: PolicyProfile\n\
        metadata: {name: ps.p.io}\nspec: {policy: {group: p.io, kind: P}, scope: Cluster}\n";

    fn change(text: &str) -> Change {
        let objects = read_objects(text, "a.yaml").objects;
        Change {
            upserts: objects
                .into_iter()
                .map(|read| Arc::new(read.object))
                .collect(),
            ..Change::default()
        }
    }

    fn keys(cache: &ObjectCache) -> Vec<String> {
        let store = &cache.store;
        let kind = GroupKind::parse("P.p.io");
        let names = store.of_kind(&kind);
        names
            .map(|(_, entry)| entry.object.key.to_string())
            .collect()
    }

    #[test]
    fn profiles_among_the_objects_say_where_policies_live() {
        let mut cache = ObjectCache::new(ProfileSources::shipped());
        assert_eq!(cache.apply(change(POLICY)), 1);
        assert_eq!(keys(&cache), ["P.p.io/x/a"]);
        assert_eq!(cache.apply(change(PROFILE)), 2);
        assert_eq!(keys(&cache), ["P.p.io/a"]);
        assert_eq!(cache.apply(change(POLICY)), 0);
        // The source deletes by the name that it knows.
        let deletes = vec![ObjectKey::new(GroupKind::parse("P.p.io"), "x", "a")];
        let gone = Change {
            deletes,
            ..Change::default()
        };
        assert_eq!(cache.apply(gone), 1);
        assert!(keys(&cache).is_empty());
    }

    #[test]
    fn epochs_differ() {
        let first = epoch();
        assert_eq!(first.len(), 16);
        assert_ne!(first, epoch());
    }
}

//! The objects of the source and the profiles; builds worlds and snapshots from them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::SystemTime;

use crate::snapshot::{BuildStats, Snapshot, SnapshotBuilder, Version};
use crate::source::manifests::KindScopes;
use entail_core::effective::World;
use entail_core::model::{Change, GroupKind, KindState, Object, Outcome, SourceState, Str};
use entail_core::store::{ChangeSet, ProfileSources, Store, required_kinds};

/// Applies changes of the source to the store and builds worlds and snapshots from it.
#[derive(Debug)]
pub(super) struct ObjectCache {
    profiles: ProfileSources,
    store: Store,
    kinds: KindsToRead,
    scopes: KindScopes,
    /// Whether the source reports the state of each kind; a kind without a report is unknown.
    has_kind_states: bool,
    /// Created with the first snapshot.
    snapshot_builder: Option<SnapshotBuilder>,
    /// Changes of the store, since the first snapshot, that no snapshot contains yet.
    pending: ChangeSet,
}

impl ObjectCache {
    /// Creates a cache without objects.
    pub fn new(profiles: ProfileSources) -> Self {
        Self::with_store(profiles, Store::default())
    }

    /// Creates a cache with the objects of a store.
    pub fn with_store(profiles: ProfileSources, mut store: Store) -> Self {
        store.assume_complete(profiles.complete_kinds());
        let kinds = KindsToRead::of(&profiles, &store);
        Self {
            scopes: scopes_of(&kinds.cluster_scoped, &store),
            kinds,
            has_kind_states: false,
            profiles,
            store,
            snapshot_builder: None,
            pending: ChangeSet::new(),
        }
    }

    /// Marks all desired kinds as unknown until the source reports their state.
    pub fn with_kind_states(mut self) -> Self {
        self.has_kind_states = true;
        self.mark_unknown_kinds();
        self
    }

    /// The kinds to read from the source: those of the topology, all policy kinds, kinds without a profile
    /// whose CRDs have target references, and the kinds that policies may target.
    pub fn desired_kinds(&self) -> &BTreeSet<GroupKind> {
        &self.kinds.desired
    }

    /// The desired kinds without a profile, which are read for their target references alone (specification
    /// 2.7).
    pub fn targets_only(&self) -> &BTreeSet<GroupKind> {
        &self.kinds.targets_only
    }

    /// The kinds that are no policies and of whose objects no answer depends on the status.
    pub fn without_status(&self) -> &BTreeSet<GroupKind> {
        &self.kinds.without_status
    }

    /// Sets the state of desired kinds without a state to unknown.
    fn mark_unknown_kinds(&mut self) {
        if !self.has_kind_states {
            return;
        }
        let new = self.kinds.desired.iter();
        let new = new.filter(|kind| self.store.state(kind).is_none());
        self.set_states(new.cloned().collect(), SourceState::Unknown);
    }

    /// Sets complete kinds to stale of which statuses are needed that were not needed before: they are missing until the
    /// source has read the kind again.
    fn mark_kinds_without_status(&mut self, before: &KindsToRead) {
        if !self.has_kind_states {
            return;
        }
        let needed = before.without_status.difference(&self.kinds.without_status);
        let needed = needed.filter(|kind| self.store.state(kind) == Some(SourceState::Complete));
        self.set_states(needed.cloned().collect(), SourceState::Stale);
    }

    /// Sets the state of kinds.
    fn set_states(&mut self, kinds: Vec<GroupKind>, state: SourceState) {
        let states = kinds.into_iter().map(|kind| KindState { kind, state });
        let states = states.collect();
        self.store.apply(Change {
            states,
            ..Change::default()
        });
    }

    /// The scopes of the kinds, by profiles and CRDs.
    pub fn scopes(&self) -> KindScopes {
        self.scopes.clone()
    }

    /// The objects.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The state of each desired kind.
    pub fn states(&self) -> impl Iterator<Item = (&GroupKind, SourceState)> {
        let state = |kind| self.store.state(kind).unwrap_or(SourceState::Complete);
        self.kinds
            .desired
            .iter()
            .map(move |kind| (kind, state(kind)))
    }

    /// Sets whether some input could not be read and nothing stands for it.
    pub fn set_lacks_input(&mut self, lacks_input: bool) {
        self.store.set_lacks_input(lacks_input);
    }

    /// The change after which no kind is complete, because the source has stopped.
    pub fn as_stale(&self) -> Change {
        let assertions = GroupKind::assertions().into_iter();
        let kinds = assertions.chain(self.kinds.desired.iter().cloned());
        let kinds: BTreeSet<GroupKind> = kinds.collect();
        let is_complete = |kind: &GroupKind| {
            let state = self.store.state(kind);
            state.is_none_or(|state| state == SourceState::Complete)
        };
        let complete = kinds.into_iter().filter(is_complete);
        Change {
            states: complete
                .map(|kind| KindState {
                    kind,
                    state: SourceState::Stale,
                })
                .collect(),
            ..Change::default()
        }
    }

    /// The number of policies by kind and outcome.
    pub fn outcomes(&self) -> BTreeMap<(GroupKind, Outcome), usize> {
        let snapshot_builder = self.snapshot_builder.as_ref();
        snapshot_builder
            .map(SnapshotBuilder::outcomes)
            .unwrap_or_default()
    }

    /// Counters of the work since the start.
    pub fn stats(&self) -> BuildStats {
        let snapshot_builder = self.snapshot_builder.as_ref();
        snapshot_builder
            .map(SnapshotBuilder::stats)
            .unwrap_or_default()
    }

    /// The number of objects.
    pub fn objects(&self) -> usize {
        self.store.len()
    }

    /// Applies a change; returns the number of objects that differ from before.
    pub fn apply(&mut self, mut change: Change) -> usize {
        let secrets = GroupKind::secret();
        if !self.profiles.complete_kinds().contains(&secrets) {
            change.upserts.retain(|object| object.key.kind != secrets);
        }
        for object in &mut change.upserts {
            assign_namespace(&self.scopes, object);
        }
        for key in &mut change.deletes {
            key.namespace = self.scopes.namespace(&key.kind, &key.namespace);
        }
        let changed = self.store.apply(change);
        let moved = if changed.keys().any(|key| key.kind.defines_kinds()) {
            self.update_scopes()
        } else {
            0
        };
        let count = changed.len() + moved;
        self.add_pending(changed);
        count
    }

    /// Adds changes to those that the next snapshot has to apply.
    fn add_pending(&mut self, changed: ChangeSet) {
        // The first snapshot reads the whole store.
        if self.snapshot_builder.is_none() {
            return;
        }
        for (key, difference) in changed {
            let pending = self.pending.entry(key).or_insert(difference);
            *pending = difference.max(*pending);
        }
    }

    /// Recomputes the scopes of the kinds and the desired kinds, and removes the namespace of
    /// objects whose kind became cluster-scoped; returns the number of those objects.
    ///
    /// Objects whose kind became namespaced keep their keys until the source sends them again,
    /// because their original namespace is not stored.
    fn update_scopes(&mut self) -> usize {
        let kinds = KindsToRead::of(&self.profiles, &self.store);
        let before = std::mem::replace(&mut self.kinds, kinds);
        self.mark_unknown_kinds();
        self.mark_kinds_without_status(&before);
        self.scopes = scopes_of(&self.kinds.cluster_scoped, &self.store);
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
                assign_namespace(&self.scopes, &mut object);
                moves.upserts.push(object);
            }
        }
        let moved = moves.upserts.len();
        let changed = self.store.apply(moves);
        self.add_pending(changed);
        moved
    }

    /// Builds the world of the current objects.
    pub fn world(&self) -> World {
        World::from_store(self.store.clone(), &self.profiles)
    }

    /// Builds one snapshot from scratch.
    pub fn into_snapshot(self, version: Version) -> Snapshot {
        Snapshot::build(self.world(), version)
    }

    /// Whether the next snapshot can say something else than the last one. Most changes in a cluster are of statuses, on
    /// which nothing depends; they wait for a change that has an effect.
    pub fn has_effect(&mut self) -> bool {
        let snapshot_builder = self.snapshot_builder.as_ref();
        snapshot_builder.is_none_or(|builder| builder.depends_on(&self.store, &mut self.pending))
    }

    /// Builds the next snapshot, which shares everything that did not change with the previous one.
    pub fn snapshot(&mut self, version: Version) -> Snapshot {
        let changed = std::mem::take(&mut self.pending);
        // The builder is put back after success only: after a panic, the next snapshot is built
        // from scratch.
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

    /// The problems of the profiles in the last snapshot, one line each.
    pub fn problems(&self) -> BTreeSet<String> {
        let worlds = self.snapshot_builder.iter().map(SnapshotBuilder::world);
        worlds.flat_map(profile_problems).collect()
    }
}

/// The problems of the profiles of a world, one line each.
pub(super) fn profile_problems(world: &World) -> impl Iterator<Item = String> {
    let problems = world.problems().iter();
    problems.map(ToString::to_string)
}

/// Removes or sets the namespace of an object according to the scope of its kind.
fn assign_namespace(scopes: &KindScopes, object: &mut Arc<Object>) {
    let key = &object.key;
    if scopes.namespace(&key.kind, &key.namespace) != key.namespace {
        scopes.assign_namespace(Arc::make_mut(object));
    }
}

/// Returns the scopes of kinds, by profiles and CRDs.
fn scopes_of(cluster_scoped: &BTreeSet<GroupKind>, store: &Store) -> KindScopes {
    let mut scopes = KindScopes::new(cluster_scoped.clone());
    let crds = GroupKind::crd();
    scopes.update_from_crds(store.of_kind(&crds).map(|(_, entry)| &*entry.object));
    scopes
}

/// The kinds to read from the source.
#[derive(Debug)]
struct KindsToRead {
    /// The kinds that profiles declare as cluster-scoped. Sources use those of the start;
    /// PolicyProfiles among the objects may add others.
    cluster_scoped: BTreeSet<GroupKind>,
    /// The kinds that effective policies depend on.
    desired: BTreeSet<GroupKind>,
    /// Those of them of which only the target references are needed.
    targets_only: BTreeSet<GroupKind>,
    /// Those of which no status is needed. Statuses of policies are kept: a profile that trusts them may be added, or
    /// previewed.
    without_status: BTreeSet<GroupKind>,
}

impl KindsToRead {
    fn of(profiles: &ProfileSources, store: &Store) -> Self {
        let registry = profiles.resolve(store);
        let mut cluster_scoped = BTreeSet::new();
        let mut desired: BTreeSet<GroupKind> = required_kinds().collect();
        for profile in registry.profiles.values() {
            if profile.cluster_scoped {
                cluster_scoped.insert(profile.resource().clone());
            }
            desired.extend(profile.kinds().cloned());
        }
        // Policies of kinds without a profile are read for their targets (specification 2.7).
        let crd = GroupKind::crd();
        let crds = || store.of_kind(&crd).map(|(_, entry)| &entry.object);
        // No answer depends on assertions: a cluster without them is complete.
        let assertions = crds().filter_map(|crd| crd.defined_kind());
        desired.extend(assertions.filter(GroupKind::is_assertion));
        let with_targets = crds().filter(|crd| crd.defines_target_reference());
        let targets_only: BTreeSet<GroupKind> = with_targets
            .filter_map(|crd| crd.defined_kind())
            .filter(|kind| !desired.contains(kind))
            .collect();
        desired.extend(targets_only.iter().cloned());
        let profiles = || registry.profiles.values();
        let is_policy = |kind: &GroupKind| profiles().any(|profile| profile.resource() == kind);
        // The status of a CRD tells when its kind is served.
        let can_do_without = |kind: &&GroupKind| !kind.is_crd() && !is_policy(kind);
        let without_status = match profiles().any(|profile| profile.reads_target_status()) {
            true => BTreeSet::new(),
            false => desired.iter().filter(can_do_without).cloned().collect(),
        };
        // Secrets are never read, not even if a profile allows them as targets.
        desired.remove(&GroupKind::secret());
        Self {
            cluster_scoped,
            desired,
            targets_only,
            without_status,
        }
    }
}

/// Returns a unique identifier for this run of the process.
pub(super) fn epoch() -> Str {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let nanoseconds = since.map_or(0, |since| since.as_nanos());
    let text = format!("{nanoseconds} {}", std::process::id());
    let hash = crate::api::etag(text.as_bytes());
    hash.chars().take(16).collect::<String>().into()
}

/// The current time as a protobuf timestamp.
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

    #[test]
    fn no_kind_is_complete_once_the_source_has_stopped() {
        let mut cache = ObjectCache::new(ProfileSources::shipped());
        cache.apply(change(&format!("{PROFILE}---\n{POLICY}")));
        cache.apply(Change {
            states: vec![KindState {
                kind: GroupKind::parse("Service"),
                state: SourceState::Forbidden,
            }],
            ..Change::default()
        });
        cache.apply(cache.as_stale());
        assert!(cache.has_effect());
        let snapshot = cache.snapshot(Version {
            epoch: epoch(),
            generation: 1,
            synced_at: now(),
        });
        let states = snapshot.kinds().iter();
        let states: BTreeMap<&str, _> = states.map(|kind| (&*kind.kind, kind.state())).collect();
        use crate::api::v1::kind_state::State;
        for kind in ["P.p.io", "HTTPRoute.gateway.networking.k8s.io", "Namespace"] {
            assert_eq!(
                states.get(kind),
                Some(&State::Stale),
                "{kind} in {states:?}"
            );
        }
        assert_eq!(states.get("Service"), Some(&State::Forbidden));
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
    fn kinds_whose_crds_have_target_references_are_read() {
        let crd = |kind: &str, reference: &str| {
            let plural = kind.to_lowercase();
            format!(
                "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: {plural}.f.io}}\n\
                 spec: {{group: f.io, names: {{kind: {kind}}}, versions: [{{name: v1, schema: {{openAPIV3Schema: \
                 {{properties: {{spec: {{properties: {{{reference}}}}}}}}}}}}}]}}\n---\n"
            )
        };
        let policy = "targetRefs: {items: {properties: {group: {}, kind: {}, name: {}}}}";
        let scaler = "targetRef: {properties: {apiVersion: {}, kind: {}, name: {}}}";
        let mut cache = ObjectCache::new(ProfileSources::shipped());
        cache.apply(change(&(crd("Foo", policy) + &crd("Scaler", scaler))));
        let desired = |kind: &str| cache.desired_kinds().contains(&GroupKind::parse(kind));
        assert!(desired("Foo.f.io"));
        assert!(!desired("Scaler.f.io"));
        let foo = BTreeSet::from([GroupKind::parse("Foo.f.io")]);
        assert_eq!(*cache.targets_only(), foo);
        // With a profile, its objects are read whole.
        let profile = PROFILE
            .replace("p.io", "f.io")
            .replace("kind: P}", "kind: Foo}");
        cache.apply(change(&profile));
        assert!(cache.desired_kinds().is_superset(&foo));
        assert!(cache.targets_only().is_empty());
    }

    #[test]
    fn a_policy_profile_among_the_objects_sets_the_scope_of_its_kind() {
        let mut cache = ObjectCache::new(ProfileSources::shipped());
        assert_eq!(cache.apply(change(POLICY)), 1);
        assert_eq!(keys(&cache), ["P.p.io/x/a"]);
        assert_eq!(cache.apply(change(PROFILE)), 2);
        assert_eq!(keys(&cache), ["P.p.io/a"]);
        assert_eq!(cache.apply(change(POLICY)), 0);
        // The source deletes by the key as it is written in the manifest.
        let deletes = vec![ObjectKey::new(GroupKind::parse("P.p.io"), "x", "a")];
        let gone = Change {
            deletes,
            ..Change::default()
        };
        assert_eq!(cache.apply(gone), 1);
        assert!(keys(&cache).is_empty());
    }

    /// The world of the tests of effects: a Gateway, a Route and a policy.
    fn written(status: &str, annotation: &str, attempts: u64, profile: &str) -> Change {
        let status = format!("status: {{conditions: [{{type: Accepted, status: '{status}'}}]}}");
        let metadata = format!("namespace: x, annotations: {{{annotation}: written}}");
        change(&format!(
            "{profile}\n---\napiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {{name: gw, {metadata}}}\n\
             spec: {{gatewayClassName: c, listeners: [{{name: l, port: 80, protocol: HTTP}}]}}\n{status}\n---\n\
             apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {{name: r, {metadata}}}\n\
             spec: {{parentRefs: [{{name: gw}}], rules: [{{}}]}}\n{status}\n---\n\
             apiVersion: p.io/v1\nkind: P\nmetadata: {{name: a, {metadata}}}\n\
             spec: {{targetRefs: [{{group: gateway.networking.k8s.io, kind: HTTPRoute, name: r}}], attempts: {attempts}}}\n\
             {status}\n"
        ))
    }

    fn snapshot(cache: &mut ObjectCache, generation: u64) -> Snapshot {
        cache.snapshot(Version {
            epoch: "test".into(),
            generation,
            synced_at: prost_types::Timestamp::default(),
        })
    }

    #[test]
    fn only_changes_that_something_depends_on_have_an_effect() {
        let profile = |settings: &str| {
            format!(
                "apiVersion: entail.dev/v1alpha1\nkind: PolicyProfile\nmetadata: {{name: ps.p.io}}\n\
                 spec: {{preset: most-specific-field, policy: {{group: p.io, kind: P}}, {settings}}}"
            )
        };
        let (plain, trusting) = (profile("trustStatus: false"), profile("trustStatus: true"));
        let mut cache = ObjectCache::new(ProfileSources::shipped());
        assert!(cache.has_effect(), "the first snapshot is needed");
        cache.apply(written("True", "unread", 1, &plain));
        snapshot(&mut cache, 1);
        assert!(!cache.has_effect());
        cache.apply(written("Unknown", "unread", 1, &plain));
        assert!(!cache.has_effect(), "statuses");
        cache.apply(written("Unknown", "other", 1, &plain));
        assert!(!cache.has_effect(), "an annotation");
        cache.apply(written(
            "Unknown",
            "delegation.x.io/inherit-parent-matcher",
            1,
            &plain,
        ));
        assert!(cache.has_effect(), "an annotation that routing reads");
        cache.apply(written("Unknown", "other", 2, &plain));
        assert!(cache.has_effect(), "a policy");
        cache.apply(written("True", "other", 1, &plain));
        assert!(!cache.has_effect(), "what is changed back");
        // What waited is not lost: a profile that trusts statuses reads the latest.
        cache.apply(written("False", "other", 1, &plain));
        assert!(!cache.has_effect());
        cache.apply(written("False", "other", 1, &trusting));
        assert!(cache.has_effect(), "a profile");
        snapshot(&mut cache, 2);
        let outcomes = cache.outcomes();
        let outcomes: Vec<Outcome> = outcomes.keys().map(|(_, outcome)| *outcome).collect();
        assert_eq!(outcomes, [Outcome::Untrusted]);
        cache.apply(written("True", "other", 1, &trusting));
        assert!(cache.has_effect(), "a status that is trusted");
    }

    #[test]
    fn statuses_are_kept_of_policies_and_where_a_profile_reads_them() {
        let mut cache = ObjectCache::new(ProfileSources::shipped());
        let is_without = |cache: &ObjectCache, kind: &str| {
            cache.without_status().contains(&GroupKind::parse(kind))
        };
        let route = "HTTPRoute.gateway.networking.k8s.io";
        cache.apply(change(PROFILE));
        assert!(is_without(&cache, route) && is_without(&cache, "Service"));
        for kept in ["P.p.io", "CustomResourceDefinition.apiextensions.k8s.io"] {
            assert!(!is_without(&cache, kept), "{kept}");
        }
        let reading = "preset: most-specific-field, ownFields: [{object: status.x, policy: x}]";
        let reading = PROFILE.replace("scope: Cluster", reading);
        cache.apply(change(&reading));
        assert!(!is_without(&cache, route));
    }

    #[test]
    fn a_kind_is_stale_until_statuses_that_a_new_profile_reads_are_there() {
        let mut cache = ObjectCache::new(ProfileSources::shipped()).with_kind_states();
        let route = GroupKind::parse("HTTPRoute.gateway.networking.k8s.io");
        let complete = || Change {
            states: vec![KindState {
                kind: route.clone(),
                state: SourceState::Complete,
            }],
            ..Change::default()
        };
        cache.apply(change(PROFILE));
        cache.apply(complete());
        assert_eq!(cache.store().state(&route), Some(SourceState::Complete));
        let reading = "preset: most-specific-field, ownFields: [{object: status.x, policy: x}]";
        cache.apply(change(&PROFILE.replace("scope: Cluster", reading)));
        assert_eq!(cache.store().state(&route), Some(SourceState::Stale));
        cache.apply(complete());
        assert_eq!(cache.store().state(&route), Some(SourceState::Complete));
    }

    #[test]
    fn epochs_differ() {
        let first = epoch();
        assert_eq!(first.len(), 16);
        assert_ne!(first, epoch());
    }
}

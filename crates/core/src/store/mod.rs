//! The current objects, projected to what rules need. A change is a transaction.
//!
//! This room decides nothing about paths or policies.

mod grant;
mod listener;
mod projection;
mod registry;
mod route;

pub use grant::Grant;
pub use listener::{AllowedNamespaces, Gateway, Listener, ListenerSet};
pub use projection::{Projection, ServicePorts};
pub use registry::{ProfileRegistry, ProfileSources};
pub use route::{
    BackendRef, ExtensionRef, ParentRef, ROUTE_KINDS, Route, RouteKind, Rule, route_kind,
};

use std::collections::BTreeMap;
use std::sync::Arc;

use rpds::RedBlackTreeMapSync;
use serde_json::Value;

use crate::model::{Change, GroupKind, KindState, Object, ObjectKey, SourceState, Str, groups};

/// Namespace and name of an object of a known kind.
pub type NamespacedName = (Str, Str);

/// All current objects. A clone shares them: it costs what is changed in either afterwards.
#[derive(Clone, Debug, Default)]
pub struct Store {
    kinds: BTreeMap<GroupKind, ObjectMap>,
    /// How many objects live in each namespace.
    object_counts: RedBlackTreeMapSync<Str, usize>,
    states: BTreeMap<GroupKind, SourceState>,
}

/// What truly changed.
pub type ChangeSet = BTreeMap<ObjectKey, ChangeKind>;

/// How an object differs from what was known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// In its status, and the bookkeeping that comes with it: few answers rest on that.
    Status,
    /// In what it says, or it is new, or gone.
    Whole,
}

/// The kinds that answers rest on whatever the policies are: those of the topology, grants, and
/// what says which policies there are.
pub fn required_kinds() -> impl Iterator<Item = GroupKind> {
    let routes = ROUTE_KINDS.iter().map(|row| (groups::GATEWAY, row.kind));
    let others = [
        (groups::GATEWAY, "GatewayClass"),
        (groups::GATEWAY, "Gateway"),
        (groups::GATEWAY, "ListenerSet"),
        (groups::GATEWAY_X, "XListenerSet"),
        (groups::GATEWAY, "ReferenceGrant"),
        (groups::CORE, "Namespace"),
        (groups::CORE, "Service"),
        (groups::MULTICLUSTER, "ServiceImport"),
        (groups::APIEXTENSIONS, "CustomResourceDefinition"),
        (groups::ENTAIL, "PolicyProfile"),
    ];
    let all = routes.chain(others);
    all.map(|(group, kind)| GroupKind::new(group, kind))
}

/// The objects of a kind.
type ObjectMap = RedBlackTreeMapSync<NamespacedName, Arc<StoredObject>>;

/// One object and its projection.
#[derive(Clone, Debug)]
pub struct StoredObject {
    /// The object.
    pub object: Arc<Object>,
    /// What rules read of it.
    pub projection: Projection,
}

impl Store {
    /// Applies a change. Returns the keys of the objects that truly changed: what a source repeats
    /// is dropped.
    pub fn apply(&mut self, change: Change) -> ChangeSet {
        let mut changed = ChangeSet::new();
        for gone in change.deletes {
            let key = normalize_key(gone.clone());
            let name = (key.namespace.clone(), key.name.clone());
            let Some(objects) = self.kinds.get_mut(&key.kind) else {
                continue;
            };
            // Two kinds may share the key: the other one stays.
            let known = objects.get(&name);
            if known.is_some_and(|known| known.object.key.kind == gone.kind)
                && objects.remove_mut(&name)
            {
                if objects.is_empty() {
                    self.kinds.remove(&key.kind);
                }
                self.count_removed(&key.namespace);
                changed.insert(key, ChangeKind::Whole);
            }
        }
        for object in change.upserts {
            let key = normalize_key(object.key.clone());
            let name = (key.namespace.clone(), key.name.clone());
            let objects = self.kinds.entry(key.kind.clone()).or_default();
            let old = objects.get(&name);
            // Of two kinds that share the key the one that it is called by counts.
            if object.key.kind != key.kind && old.is_some_and(|old| old.object.key.kind == key.kind)
            {
                continue;
            }
            let differs = match old {
                Some(old) => difference(&old.object, &object),
                None => Some(ChangeKind::Whole),
            };
            let Some(differs) = differs else { continue };
            let is_new = old.is_none();
            let projection = Projection::of(&key, &object);
            objects.insert_mut(name, Arc::new(StoredObject { object, projection }));
            if is_new {
                self.count_added(&key.namespace);
            }
            // One that goes and comes in one change is another.
            let known = changed.entry(key).or_insert(differs);
            *known = differs.max(*known);
        }
        for KindState { kind, state } in change.states {
            self.states.insert(kind, state);
        }
        changed
    }

    fn count_added(&mut self, namespace: &Str) {
        if !namespace.is_empty() {
            let count = self.objects_in_namespace(namespace) + 1;
            self.object_counts.insert_mut(namespace.clone(), count);
        }
    }

    fn count_removed(&mut self, namespace: &Str) {
        match self.objects_in_namespace(namespace) {
            0 => {}
            1 => {
                self.object_counts.remove_mut(namespace);
            }
            count => self.object_counts.insert_mut(namespace.clone(), count - 1),
        }
    }

    /// How many objects live in a namespace.
    pub fn objects_in_namespace(&self, namespace: &str) -> usize {
        self.object_counts
            .get(namespace)
            .copied()
            .unwrap_or_default()
    }

    /// The objects of a kind, by namespace and name.
    pub fn of_kind(
        &self,
        kind: &GroupKind,
    ) -> impl Iterator<Item = (&NamespacedName, &StoredObject)> {
        let objects = self.kinds.get(kind).into_iter().flatten();
        objects.map(|(name, entry)| (name, &**entry))
    }

    /// All objects, by kind, namespace and name.
    pub fn objects(&self) -> impl Iterator<Item = &Arc<Object>> {
        let entries = self.kinds.values().flatten();
        entries.map(|(_, entry)| &entry.object)
    }

    /// The kinds of which there are objects.
    pub fn kinds(&self) -> impl Iterator<Item = &GroupKind> {
        self.kinds.keys()
    }

    /// How many objects of a kind there are.
    pub fn count(&self, kind: &GroupKind) -> usize {
        self.kinds.get(kind).map_or(0, ObjectMap::size)
    }

    /// One object.
    pub fn get(&self, key: &ObjectKey) -> Option<&StoredObject> {
        let name = (key.namespace.clone(), key.name.clone());
        self.kinds.get(&key.kind)?.get(&name).map(|entry| &**entry)
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.kinds.values().map(ObjectMap::size).sum()
    }

    /// Whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// What the sources say of a kind; `None` if they say nothing.
    pub fn state(&self, kind: &GroupKind) -> Option<SourceState> {
        self.states.get(kind).copied()
    }

    /// What is known of kinds, as far as a source has told.
    pub fn states(&self) -> impl Iterator<Item = (&GroupKind, SourceState)> {
        self.states.iter().map(|(kind, state)| (kind, *state))
    }

    /// The namespaces that exist, with their labels: a Namespace exists as soon as an object lives
    /// in it, and always has the label of its name (specification 1.2).
    pub fn namespaces(&self) -> BTreeMap<Str, BTreeMap<String, String>> {
        let kind = GroupKind::new(groups::CORE, "Namespace");
        let mut found: BTreeMap<Str, BTreeMap<String, String>> = BTreeMap::new();
        for namespace in self.object_counts.keys() {
            found.insert(namespace.clone(), BTreeMap::new());
        }
        for ((_, name), entry) in self.of_kind(&kind) {
            found.insert(name.clone(), entry.object.labels.clone());
        }
        for (name, labels) in &mut found {
            labels.insert("kubernetes.io/metadata.name".to_owned(), name.to_string());
        }
        found
    }

    /// The grants of a namespace.
    pub fn grants_in<'s>(&'s self, namespace: &'s str) -> impl Iterator<Item = &'s Grant> {
        let kind = GroupKind::new(groups::GATEWAY, "ReferenceGrant");
        let from: NamespacedName = (namespace.into(), "".into());
        self.kinds
            .get(&kind)
            .into_iter()
            .flat_map(move |grants| grants.range(from.clone()..))
            .take_while(move |((ns, _), _)| **ns == *namespace)
            .filter_map(|(_, entry)| match &entry.projection {
                Projection::Grant(grant) => Some(grant),
                _ => None,
            })
    }

    /// Whether a grant permits a reference from objects of a kind in a namespace to an object.
    pub fn permits(&self, kind: &GroupKind, namespace: &str, to: &ObjectKey) -> bool {
        self.grants_in(&to.namespace)
            .any(|grant| grant.permits(kind, namespace, &to.kind, &to.name))
    }
}

/// XListenerSet counts as ListenerSet (specification 1.1).
fn normalize_key(key: ObjectKey) -> ObjectKey {
    if key.kind.is(groups::GATEWAY_X, "XListenerSet") {
        let kind = GroupKind::new(groups::GATEWAY, "ListenerSet");
        return ObjectKey { kind, ..key };
    }
    key
}

/// How two versions of an object differ; `None` if they mean the same: where it was read does not
/// count.
fn difference(old: &Object, new: &Object) -> Option<ChangeKind> {
    let same = old.labels == new.labels
        && old.annotations == new.annotations
        && old.created == new.created
        && old.generation == new.generation;
    if same && old.body == new.body {
        return None;
    }
    let essence = |object: &Object| -> Vec<(String, Value)> {
        let fields = object.body.as_object().into_iter().flatten();
        let kept = fields.filter(|(name, _)| *name != "status");
        kept.map(|(name, value)| (name.clone(), without_version(name, value)))
            .collect()
    };
    let quiet = same && essence(old) == essence(new);
    Some(if quiet {
        ChangeKind::Status
    } else {
        ChangeKind::Whole
    })
}

/// Metadata without what the API server counts up at each write.
fn without_version(name: &str, value: &Value) -> Value {
    let mut value = value.clone();
    if name == "metadata"
        && let Some(metadata) = value.as_object_mut()
    {
        metadata.remove("resourceVersion");
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn set(group: &str, kind: &str, gateway: &str) -> Arc<Object> {
        let body = json!({"spec": {"parentRef": {"name": gateway}, "listeners": []}});
        Arc::new(Object {
            key: ObjectKey::new(GroupKind::new(group, kind), "a", "x"),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            created: None,
            generation: None,
            body,
            location: None,
        })
    }

    fn apply(store: &mut Store, upserts: &[&Arc<Object>], deletes: &[&Arc<Object>]) -> usize {
        let changed = store.apply(Change {
            upserts: upserts.iter().map(|&object| Arc::clone(object)).collect(),
            deletes: deletes.iter().map(|object| object.key.clone()).collect(),
            ..Change::default()
        });
        changed.len()
    }

    #[test]
    fn of_two_kinds_with_one_key_one_goes_and_the_other_stays() {
        let old = set(groups::GATEWAY_X, "XListenerSet", "old");
        let new = set(groups::GATEWAY, "ListenerSet", "new");
        let mut store = Store::default();
        let parent = |store: &Store| match &store.get(&new.key).map(|e| &e.projection) {
            Some(Projection::ListenerSet(set)) => set.gateway.clone().map(|(_, name)| name),
            _ => None,
        };
        assert_eq!(apply(&mut store, &[&old], &[]), 1);
        assert_eq!(parent(&store).as_deref(), Some("old"));
        assert_eq!(apply(&mut store, &[&new], &[]), 1);
        // Whichever comes last, and whether the other one goes.
        assert_eq!(apply(&mut store, &[&old], &[]), 0);
        assert_eq!(apply(&mut store, &[], &[&old]), 0);
        assert_eq!(parent(&store).as_deref(), Some("new"));
        assert_eq!(apply(&mut store, &[], &[&new]), 1);
        assert!(store.is_empty());
        apply(&mut store, &[&old], &[]);
        assert_eq!(apply(&mut store, &[], &[&old]), 1);
    }
}

//! The current objects, projected to the fields that rules need. Changes apply as transactions.
//!
//! This module does not derive paths or evaluate policies.

mod declared_routes;
mod grant;
mod listener;
mod parameters;
mod projection;
mod registry;
mod route;

pub use grant::Grant;
pub use listener::{AllowedNamespaces, Gateway, Listener, ListenerSet};
pub use parameters::ParametersRef;
pub use projection::{Projection, ServicePorts};
pub use registry::{ControllerAlias, ProfileRegistry, ProfileSources};
pub use route::{
    BackendRef, ExtensionRef, ParentRef, ROUTE_KINDS, Route, RouteKind, Rule,
    reduce_detached_route, route_kind,
};

use self::declared_routes::DeclaredRoutes;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rpds::RedBlackTreeMapSync;

use crate::model::{
    Change, ChunkedList, GroupKind, KindState, MetadataMap, NodeKey, Object, ObjectKey,
    SourceState, Str, Timestamp, groups,
};

/// Namespace and name of an object of a known kind.
pub type NamespacedName = (Str, Str);

/// All current objects. A clone shares its objects with the original, so that it is cheap and each
/// later change costs only what it touches.
#[derive(Clone, Debug, Default)]
pub struct Store {
    kinds: BTreeMap<GroupKind, ObjectList>,
    /// Number of objects in each namespace.
    object_counts: RedBlackTreeMapSync<Str, usize>,
    states: BTreeMap<GroupKind, SourceState>,
    declared: Arc<DeclaredRoutes>,
    /// The kinds of which all objects are known (specification 5.7).
    complete: Arc<BTreeSet<GroupKind>>,
    /// Whether some input could not be read, so that any kind may lack objects (specification 2.5).
    lacks_input: bool,
    /// What differs from the whole store in a part of it; `None` in a whole store.
    part: Option<Arc<PartKnowledge>>,
}

/// What a part of a store knows (specification 5.7). Its objects that were hidden tell nothing.
#[derive(Debug, Default)]
struct PartKnowledge {
    /// The objects of which only the whole store knows if they exist.
    known: BTreeSet<ObjectKey>,
    /// The number of hidden objects of each kind.
    hidden_kinds: BTreeMap<GroupKind, usize>,
    /// The number of hidden objects in each namespace.
    hidden_namespaces: BTreeMap<Str, usize>,
    /// The number of hidden ReferenceGrants in each namespace.
    hidden_grants: BTreeMap<Str, usize>,
    /// The namespaces that exist although all objects in them may be gone.
    namespaces: BTreeSet<Str>,
    /// The Routes that are gone and keep their listeners.
    holders: Vec<HiddenHolder>,
}

/// What a part of a store keeps of the whole one, besides objects.
#[derive(Clone, Debug, Default)]
pub struct PartContext {
    /// The objects that the part knows of if the whole store does, whether they exist or not.
    pub named: BTreeSet<ObjectKey>,
    /// The objects that stay although they are hidden: that they do must not be seen elsewhere.
    pub hidden: Vec<ObjectKey>,
    /// The namespaces that exist in the part, too, because they act on what is seen there: a namespace exists if an
    /// object is in it, also if none of these objects stays.
    pub namespaces: BTreeSet<Str>,
    /// The ReferenceGrants that stay although they are hidden: no namespace exists because of them.
    pub grants: Vec<ObjectKey>,
    /// The listeners that a Route keeps, with the Route, which does not stay itself.
    pub holders: BTreeSet<(NodeKey, ObjectKey)>,
}

/// A Route that a part of a store lacks and that has a listener which serves no other.
#[derive(Clone, Debug)]
pub(crate) struct HiddenHolder {
    pub listener: NodeKey,
    pub route: ObjectKey,
    pub created: Option<Timestamp>,
}

/// The label that the API server gives every Namespace: its name.
pub const NAMESPACE_NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// The keys of the objects that a change modified, with the kind of difference.
pub type ChangeSet = BTreeMap<ObjectKey, ChangeKind>;

/// How an object differs from its previous version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// Only the status differs, which few answers depend on.
    Status,
    /// Only the status and fields of `metadata` differ that few answers depend on: annotations, owners, finalizers.
    Metadata,
    /// Other fields differ, or the object is new or deleted.
    Whole,
}

/// Returns the kinds that are needed regardless of policies: the kinds of the topology,
/// ReferenceGrant, and the kinds that define policy kinds and controllers.
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
        (groups::ENTAIL, "ControllerAlias"),
    ];
    let all = routes.chain(others);
    all.map(|(group, kind)| GroupKind::new(group, kind))
}

/// The objects of a kind, ordered by namespace and name.
type ObjectList = ChunkedList<Arc<StoredObject>>;

/// Compares an object with a name.
fn by_name(name: (&str, &str)) -> impl Fn(&Arc<StoredObject>) -> Ordering {
    move |entry| {
        let (namespace, own) = entry.name();
        (&**namespace, &**own).cmp(&name)
    }
}

/// An object and its projection.
#[derive(Clone, Debug)]
pub struct StoredObject {
    /// The object.
    pub object: Arc<Object>,
    /// The fields that rules need.
    pub projection: Projection,
}

impl StoredObject {
    /// Namespace and name.
    fn name(&self) -> (&Str, &Str) {
        let key = &self.object.key;
        (&key.namespace, &key.name)
    }
}

impl Store {
    /// Applies a change and returns the objects that it modified. Objects that a source repeats
    /// without a difference are not among them.
    pub fn apply(&mut self, change: Change) -> ChangeSet {
        let mut changed: Vec<(ObjectKey, ChangeKind)> = Vec::new();
        for deleted in change.deletes {
            let key = normalize_key(deleted.clone());
            let Some(objects) = self.kinds.get_mut(&key.kind) else {
                continue;
            };
            // An XListenerSet and a ListenerSet share a key: deleting one keeps the other.
            let existing = objects.find(by_name((&key.namespace, &key.name)));
            if existing.is_some_and(|existing| existing.object.key.kind == deleted.kind)
                && objects.take(by_name((&key.namespace, &key.name))).is_some()
            {
                if objects.is_empty() {
                    self.kinds.remove(&key.kind);
                }
                self.count_removed(&key.namespace);
                changed.push((key, ChangeKind::Whole));
            }
        }
        for object in change.upserts {
            let key = normalize_key(object.key.clone());
            let objects = self.kinds.entry(key.kind.clone()).or_default();
            let old = objects.find(by_name((&key.namespace, &key.name)));
            // Of an XListenerSet and a ListenerSet with one key, the ListenerSet takes precedence.
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
            let stored = Arc::new(StoredObject { object, projection });
            objects.put(by_name((&key.namespace, &key.name)), stored);
            if is_new {
                self.count_added(&key.namespace);
            }
            changed.push((key, differs));
        }
        for KindState { kind, state } in change.states {
            self.states.insert(kind, state);
        }
        // An object that is deleted and added in one change is a new object.
        changed.sort_by(|a, b| b.cmp(a));
        changed.dedup_by(|a, b| a.0 == b.0);
        changed.into_iter().collect()
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

    /// Returns the number of objects in a namespace.
    pub fn objects_in_namespace(&self, namespace: &str) -> usize {
        self.object_counts
            .get(namespace)
            .copied()
            .unwrap_or_default()
    }

    /// Whether a namespace exists because an object is in it (specification 1.2). In a part, ReferenceGrants that
    /// its caller may not see do not count.
    pub fn is_inhabited(&self, namespace: &str) -> bool {
        let part = self.part.as_ref();
        let grants = part.and_then(|part| part.hidden_grants.get(namespace));
        self.objects_in_namespace(namespace) > grants.copied().unwrap_or_default()
    }

    /// The labels of a namespace; `None` if it does not exist. It exists by its own object, or because an object is in it,
    /// and always has the label `kubernetes.io/metadata.name` (specification 1.2).
    pub fn namespace_labels(&self, name: &Str) -> Option<MetadataMap> {
        let kind = GroupKind::new(groups::CORE, "Namespace");
        let own = self.get(&ObjectKey::new(kind, "", name.clone()));
        let mut kept = self.part.iter().map(|part| &part.namespaces);
        let exists = own.is_some()
            || self.is_inhabited(name)
            || kept.any(|namespaces| namespaces.contains(name));
        let own = own.map(|entry| entry.object.labels.clone());
        let mut labels = own.unwrap_or_default();
        labels.insert(NAMESPACE_NAME_LABEL, name);
        exists.then_some(labels)
    }

    /// Returns the objects of a kind, ordered by namespace and name.
    pub fn of_kind(&self, kind: &GroupKind) -> impl Iterator<Item = ((&Str, &Str), &StoredObject)> {
        let objects = self.kinds.get(kind).into_iter().flat_map(ObjectList::iter);
        objects.map(|entry| (entry.name(), &**entry))
    }

    /// Returns the Routes of all kinds: those of the Gateway API, then the declared ones, each ordered by kind,
    /// namespace and name.
    pub fn routes(&self) -> impl Iterator<Item = (ObjectKey, &Route)> {
        self.standard_routes().chain(self.declared_routes())
    }

    fn standard_routes(&self) -> impl Iterator<Item = (ObjectKey, &Route)> {
        ROUTE_KINDS.iter().flat_map(|row| {
            let kind = GroupKind::new(groups::GATEWAY, row.kind);
            let objects = self.kinds.get(&kind).into_iter();
            let objects = objects.flat_map(ObjectList::iter);
            objects.filter_map(move |entry| match &entry.projection {
                Projection::Route(route) => {
                    let (namespace, name) = entry.name();
                    let key = ObjectKey::new(kind.clone(), namespace.clone(), name.clone());
                    Some((key, &**route))
                }
                _ => None,
            })
        })
    }

    /// Returns all objects, ordered by kind, namespace and name.
    pub fn objects(&self) -> impl Iterator<Item = &Arc<Object>> {
        let entries = self.kinds.values().flat_map(ObjectList::iter);
        entries.map(|entry| &entry.object)
    }

    /// Sets the kinds of which no object exists besides those of the store (specification 5.7).
    pub fn assume_complete(&mut self, kinds: &Arc<BTreeSet<GroupKind>>) {
        self.complete = Arc::clone(kinds);
    }

    /// Whether no object of a kind is assumed to exist besides those of the store (specification 5.7).
    pub fn is_assumed_complete(&self, kind: &GroupKind) -> bool {
        self.complete.contains(kind)
    }

    /// Sets whether some input could not be read, so that any kind may lack objects (specification 2.5).
    pub fn set_lacks_input(&mut self, lacks_input: bool) {
        self.lacks_input = lacks_input;
    }

    /// Whether some input could not be read, so that any kind may lack objects (specification 2.5).
    pub fn lacks_input(&self) -> bool {
        self.lacks_input
    }

    /// Whether it is known if an object exists: of a kind or in a namespace of which no object is known, only where the
    /// kind is assumed to be complete (specification 5.7).
    pub fn knows(&self, object: &ObjectKey) -> bool {
        let (kind, namespace) = (&object.kind, &object.namespace);
        let mut parts = self.part.iter();
        self.knows_of_kind(kind) && self.knows_inside(namespace)
            || parts.any(|part| part.known.contains(object))
            || self.complete.contains(kind)
    }

    /// Whether an object of a kind is known.
    pub fn knows_of_kind(&self, kind: &GroupKind) -> bool {
        let part = self.part.as_ref();
        let hidden = part.and_then(|part| part.hidden_kinds.get(kind));
        self.count(kind) > hidden.copied().unwrap_or_default()
    }

    /// Whether an object in a namespace is known.
    pub fn knows_inside(&self, namespace: &str) -> bool {
        let part = self.part.as_ref();
        let hidden = part.and_then(|part| part.hidden_namespaces.get(namespace));
        self.objects_in_namespace(namespace) > hidden.copied().unwrap_or_default()
    }

    /// The Routes that a part of a store lacks and that have listeners nevertheless.
    pub(crate) fn hidden_holders(&self) -> &[HiddenHolder] {
        self.part.as_ref().map_or(&[], |part| &part.holders)
    }

    /// Returns a part of the store without some objects.
    #[must_use]
    pub fn without(&self, objects: Vec<ObjectKey>, context: PartContext) -> Self {
        let mut knowledge = PartKnowledge::default();
        for key in context.hidden {
            let kind = key.kind.clone().canonical();
            *knowledge.hidden_kinds.entry(kind).or_default() += 1;
            let namespaces = &mut knowledge.hidden_namespaces;
            *namespaces.entry(key.namespace.clone()).or_default() += 1;
        }
        for key in context.grants {
            *knowledge.hidden_grants.entry(key.namespace).or_default() += 1;
        }
        let mut part = self.clone();
        part.apply(Change {
            deletes: objects,
            ..Change::default()
        });
        let holders = context.holders.into_iter();
        let holders = holders.filter(|(_, route)| part.get(route).is_none());
        knowledge.holders = holders
            .map(|(listener, route)| HiddenHolder {
                listener,
                created: self.get(&route).and_then(|entry| entry.object.created),
                route,
            })
            .collect();
        part.part = Some(Arc::new(knowledge));
        // Without those that the part knows, and that exist in it, by themselves: a preview can delete the objects by
        // which they do.
        let (mut known, mut namespaces) = (context.named, context.namespaces);
        known.retain(|key| self.knows(key) && !part.knows(key));
        namespaces.retain(|name| part.namespace_labels(name).is_none());
        if let Some(knowledge) = part.part.as_mut().and_then(Arc::get_mut) {
            knowledge.known = known;
            knowledge.namespaces = namespaces;
        }
        part
    }

    /// Returns the kinds that have objects.
    pub fn kinds(&self) -> impl Iterator<Item = &GroupKind> {
        self.kinds.keys()
    }

    /// Returns the number of objects of a kind.
    pub fn count(&self, kind: &GroupKind) -> usize {
        self.kinds.get(kind).map_or(0, ObjectList::len)
    }

    /// Returns the object with a key.
    pub fn get(&self, key: &ObjectKey) -> Option<&StoredObject> {
        self.named(&key.kind, (&key.namespace, &key.name))
    }

    /// Returns the object of a kind with a namespace and a name.
    pub fn named(&self, kind: &GroupKind, name: (&str, &str)) -> Option<&StoredObject> {
        let found = self.kinds.get(kind)?.find(by_name(name));
        found.map(|entry| &**entry)
    }

    /// Returns how an object differs from its version in another store; `None` if it does not.
    pub fn difference(&self, other: &Self, key: &ObjectKey) -> Option<ChangeKind> {
        match (other.get(key), self.get(key)) {
            (Some(old), Some(new)) if Arc::ptr_eq(&old.object, &new.object) => None,
            (Some(old), Some(new)) => difference(&old.object, &new.object),
            (None, None) => None,
            _ => Some(ChangeKind::Whole),
        }
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.kinds.values().map(ObjectList::len).sum()
    }

    /// Reports whether the store has no objects.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Returns the state of a kind; `None` if no source reported one.
    pub fn state(&self, kind: &GroupKind) -> Option<SourceState> {
        self.states.get(kind).copied()
    }

    /// Returns the kinds with a reported state.
    pub fn states(&self) -> impl Iterator<Item = (&GroupKind, SourceState)> {
        self.states.iter().map(|(kind, state)| (kind, *state))
    }

    /// Returns the namespaces that exist, with their labels as [`Store::namespace_labels`].
    pub fn namespaces(&self) -> BTreeMap<Str, MetadataMap> {
        let kind = GroupKind::new(groups::CORE, "Namespace");
        let own = self.of_kind(&kind).map(|((_, name), _)| name);
        let kept = self.part.iter().flat_map(|part| &part.namespaces);
        let names: BTreeSet<&Str> = self.object_counts.keys().chain(own).chain(kept).collect();
        let existing = names.into_iter();
        let existing =
            existing.filter_map(|name| Some((name.clone(), self.namespace_labels(name)?)));
        existing.collect()
    }

    /// Returns the objects of a kind in a namespace, ordered by name.
    pub fn of_kind_in<'s>(
        &'s self,
        kind: &GroupKind,
        namespace: &'s str,
    ) -> impl Iterator<Item = (&'s Str, &'s StoredObject)> + use<'s> {
        let objects = self.kinds.get(kind).into_iter();
        let objects = objects.flat_map(move |all| all.iter_from(by_name((namespace, ""))));
        let inside = objects.take_while(move |entry| **entry.name().0 == *namespace);
        inside.map(|entry| (entry.name().1, &**entry))
    }

    /// Returns the ReferenceGrants of a namespace.
    pub fn grants_in<'s>(&'s self, namespace: &'s str) -> impl Iterator<Item = &'s Grant> {
        let kind = GroupKind::new(groups::GATEWAY, "ReferenceGrant");
        let grants = self.of_kind_in(&kind, namespace);
        grants.filter_map(|(_, entry)| match &entry.projection {
            Projection::Grant(grant) => Some(&**grant),
            _ => None,
        })
    }

    /// Reports whether a ReferenceGrant permits a reference from objects of a kind in a namespace to
    /// an object.
    pub fn permits(&self, kind: &GroupKind, namespace: &str, to: &ObjectKey) -> bool {
        self.grants_in(&to.namespace)
            .any(|grant| grant.permits(kind, namespace, &to.kind, &to.name))
    }
}

/// Maps XListenerSet to ListenerSet (specification 1.1).
fn normalize_key(key: ObjectKey) -> ObjectKey {
    ObjectKey {
        kind: key.kind.canonical(),
        ..key
    }
}

/// Returns how two versions of an object differ. `None` if they are equal but for the `resourceVersion`, which changes
/// with each write, and for the line in the same file.
fn difference(old: &Object, new: &Object) -> Option<ChangeKind> {
    let same = !new.is_moved_from(old)
        && old.labels == new.labels
        && old.created == new.created
        && old.generation == new.generation
        && old.unreadable == new.unreadable;
    if !same {
        return Some(ChangeKind::Whole);
    }
    if old.body == new.body && old.annotations == new.annotations {
        return None;
    }
    let (before, now) = (old.body.encoded(), new.body.encoded());
    if !before.equals_without(now, &["status", "metadata"]) {
        return Some(ChangeKind::Whole);
    }
    let metadata = match (before.get("metadata"), now.get("metadata")) {
        (Some(before), Some(now)) => before.equals_without(now, &["resourceVersion"]),
        (before, now) => before.is_some() == now.is_some(),
    };
    let is_deleted = |object: &Object| object.body.is_set_at(["metadata", "deletionTimestamp"]);
    if is_deleted(old) != is_deleted(new) {
        Some(ChangeKind::Whole)
    } else if !metadata || old.annotations != new.annotations {
        Some(ChangeKind::Metadata)
    } else {
        (!old.body.has_same(&new.body, "status")).then_some(ChangeKind::Status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn set(group: &str, kind: &str, gateway: &str) -> Arc<Object> {
        let body = json!({"spec": {"parentRef": {"name": gateway}, "listeners": []}});
        let key = ObjectKey::new(GroupKind::new(group, kind), "a", "x");
        Arc::new(Object::new(key, body))
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
    fn what_controllers_write_often_is_told_apart() {
        let object = |annotation: &str, version: &str, status: &str, spec: &str, time: &Value| {
            let key = ObjectKey::new(GroupKind::new("g", "K"), "a", "x");
            let metadata = json!({
                "name": "x", "resourceVersion": version, "annotations": {"a": annotation}, "deletionTimestamp": time,
            });
            let body = json!({"metadata": metadata, "spec": spec, "status": status});
            let mut object = Object::new(key, body);
            object.annotations.insert("a", annotation);
            object
        };
        let none = Value::Null;
        let before = object("1", "1", "1", "1", &none);
        let cases = [
            (object("1", "2", "1", "1", &none), None),
            (object("1", "2", "2", "1", &none), Some(ChangeKind::Status)),
            (
                object("2", "2", "2", "1", &none),
                Some(ChangeKind::Metadata),
            ),
            (object("1", "1", "1", "2", &none), Some(ChangeKind::Whole)),
            (
                object("1", "1", "1", "1", &json!("now")),
                Some(ChangeKind::Whole),
            ),
        ];
        for (now, expected) in cases {
            assert_eq!(difference(&before, &now), expected, "{:?}", now.body);
        }
        let without_status = Object::new(before.key.clone(), json!({"spec": "1"}));
        let with_status = Object::new(before.key.clone(), json!({"spec": "1", "status": {}}));
        assert_eq!(
            difference(&without_status, &with_status),
            Some(ChangeKind::Status)
        );
    }

    #[test]
    fn listener_sets_take_precedence_over_experimental_ones() {
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
        // Independent of the order, and of a deletion of the other one.
        assert_eq!(apply(&mut store, &[&old], &[]), 0);
        assert_eq!(apply(&mut store, &[], &[&old]), 0);
        assert_eq!(parent(&store).as_deref(), Some("new"));
        assert_eq!(apply(&mut store, &[], &[&new]), 1);
        assert!(store.is_empty());
        apply(&mut store, &[&old], &[]);
        assert_eq!(apply(&mut store, &[], &[&old]), 1);
    }
}

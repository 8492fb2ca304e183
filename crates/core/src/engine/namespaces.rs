//! What follows from Namespaces that come, go or have other labels (specification 1.2).

use std::collections::BTreeSet;

use super::Engine;
use super::change_impact::ChangeImpact;
use crate::effective::WaypointVersions;
use crate::model::{GroupKind, LabelSelector, MetadataMap, ObjectKey, Str, groups};
use crate::profile::{Reference, ReferenceTarget, SelectorNamespaces};
use crate::store::{AllowedNamespaces, Listener, Projection, ROUTE_KINDS, Store};
use crate::topology::PathPatch;

/// The labels of a namespace before and now, as far as it exists.
struct NamespaceLabels<'e> {
    before: Option<&'e MetadataMap>,
    now: Option<MetadataMap>,
}

/// What may be admitted otherwise because of the labels of namespaces.
#[derive(Default)]
struct AdmittedObjects {
    routes: BTreeSet<ObjectKey>,
    /// ListenerSets.
    sets: BTreeSet<ObjectKey>,
}

impl NamespaceLabels<'_> {
    /// Whether a selector takes the namespace before or now, but not both.
    fn differ_for(&self, selector: &LabelSelector) -> bool {
        let is_selected = |labels: &MetadataMap| selector.matches(labels);
        self.before.is_some_and(is_selected) != self.now.as_ref().is_some_and(is_selected)
    }

    /// Whether a listener or Gateway admits the namespace before or now, but not both.
    fn differ_for_admission(&self, from: &AllowedNamespaces) -> bool {
        match from {
            AllowedNamespaces::Selector(Some(selector)) => self.differ_for(selector),
            _ => false,
        }
    }

    /// Whether a reference of a policy selects other objects.
    fn differ_for_reference(&self, reference: &Reference) -> bool {
        let by_labels = match &reference.target {
            ReferenceTarget::Selector(selector) if reference.kind.is_namespace() => {
                self.differ_for(selector)
            }
            _ => false,
        };
        let by_namespace = match &reference.namespaces {
            SelectorNamespaces::Selector(selector) => self.differ_for(selector),
            SelectorNamespaces::Same | SelectorNamespaces::All => false,
        };
        by_labels || by_namespace
    }
}

impl Engine {
    /// Adds what follows from changed namespaces; `None` if the world must be rebuilt. The topology is still the one
    /// before.
    pub(super) fn follow_namespaces(
        &self,
        before: &Store,
        impact: &mut ChangeImpact,
    ) -> Option<()> {
        if impact.namespaces.is_empty() {
            return Some(());
        }
        let (world, now) = (self.world(), self.world().store());
        let waypoints = WaypointVersions::of(world, before, &impact.namespaces);
        if waypoints.is_some_and(|waypoints| waypoints.differ_in(&impact.namespaces)) {
            return None;
        }
        let names = impact.namespaces.iter();
        let labels = names.clone().map(|name| NamespaceLabels {
            before: world.topology().namespace_labels().get(name),
            now: now.namespace_labels(name),
        });
        let labels: Vec<NamespaceLabels<'_>> = labels.collect();
        let mut attached = AdmittedObjects::default();
        for (name, labels) in names.zip(&labels) {
            if labels.before != labels.now.as_ref() {
                attached.add(now, name, labels);
            }
        }
        let policies = self.policies_selecting(|reference| {
            let mut labels = labels.iter();
            labels.any(|labels| labels.differ_for_reference(reference))
        });
        let referencing = self.policies_referencing_into(before, &impact.namespaces);
        for set in &attached.sets {
            let version = now.get(set);
            self.add_gateway(set, (version, version), impact);
        }
        impact.routes.extend(attached.routes);
        impact.add_policies(policies.into_iter().chain(referencing));
        Some(())
    }

    /// The policies whose rules reference objects in namespaces of which objects are known before or now, but not both
    /// (specification 5.7), each with the number of its kind.
    fn policies_referencing_into(
        &self,
        before: &Store,
        namespaces: &BTreeSet<Str>,
    ) -> Vec<(usize, ObjectKey)> {
        let now = self.world().store();
        let is_other = |name: &&Str| before.knows_inside(name) != now.knows_inside(name);
        let others: BTreeSet<&Str> = namespaces.iter().filter(is_other).collect();
        let mut found = Vec::new();
        for (number, kind) in self.world().kinds().iter().enumerate() {
            if others.is_empty() || kind.profile.references.is_empty() {
                continue;
            }
            for (_, policy) in kind.policies() {
                let mut named = policy.named_objects.iter();
                if named.any(|object| others.contains(&object.namespace)) {
                    found.push((number, policy.key.clone()));
                }
            }
        }
        found
    }

    /// Whether paths that stay go through a namespace that has come or gone: to a backend there.
    pub(super) fn changes_paths_through(&self, patch: &PathPatch) -> bool {
        let topology = self.world().topology();
        let nodes = patch.added.iter().chain(&patch.removed);
        let mut objects = nodes.map(|node| &topology.key(*node).object);
        objects
            .any(|object| object.kind.is_namespace() && topology.has_outer_backends(&object.name))
    }
}

impl AdmittedObjects {
    /// Adds the routes of a namespace, if listeners admit it that did not or the other way round, and its ListenerSets, if
    /// it is so with Gateways.
    fn add(&mut self, store: &Store, name: &Str, labels: &NamespaceLabels<'_>) {
        let set = GroupKind::new(groups::GATEWAY, "ListenerSet");
        let (mut other_sets, mut other_routes) = (false, false);
        for kind in [&GroupKind::gateway(), &set] {
            for (_, entry) in store.of_kind(kind) {
                let listeners: &[Listener] = match &entry.projection {
                    Projection::Gateway(gateway) => {
                        other_sets |= labels.differ_for_admission(&gateway.allowed_listeners);
                        &gateway.listeners
                    }
                    Projection::ListenerSet(set) => &set.listeners,
                    _ => continue,
                };
                let mut listeners = listeners.iter();
                other_routes |=
                    listeners.any(|listener| labels.differ_for_admission(&listener.namespaces));
            }
        }
        let inside = |kind: &GroupKind| {
            let objects = store.of_kind_in(kind, name);
            let keys =
                objects.map(|(own, _)| ObjectKey::new(kind.clone(), name.clone(), own.clone()));
            keys.collect::<Vec<ObjectKey>>()
        };
        if other_sets {
            self.sets.extend(inside(&set));
        }
        if other_routes {
            let standard = ROUTE_KINDS.iter();
            let standard = standard.map(|row| GroupKind::new(groups::GATEWAY, row.kind));
            self.routes.extend(standard.flat_map(|kind| inside(&kind)));
            let declared = store.declared_route_kinds();
            self.routes.extend(declared.flat_map(inside));
        }
    }
}

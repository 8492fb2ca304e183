//! Decides which answers a changed object can affect. Most changes in a cluster, such as statuses and
//! leases, affect none.

use std::collections::{BTreeMap, BTreeSet};

use super::Engine;
use super::attachment_index::AttachmentIndex;
use crate::model::{ObjectKey, Str, at_path, groups, is_unset};
use crate::profile::{Profile, Reference, ReferenceTarget};
use crate::store::{ChangeKind, Projection, Route, Store, StoredObject, route_kind};

/// What changed objects can affect, apart from paths that a rebuild must find. By default nothing.
#[derive(Default)]
pub(super) struct ChangeImpact {
    /// The policies that are read again, by the number of their kind: they changed, they reference a changed object or
    /// target it.
    pub(super) policies: BTreeMap<usize, BTreeSet<ObjectKey>>,
    /// The routes whose paths may change.
    pub(super) routes: BTreeSet<ObjectKey>,
    /// The Services that came, went or have other ports.
    pub(super) services: BTreeSet<ObjectKey>,
    /// The namespaces that may have come, gone or have other labels.
    pub(super) namespaces: BTreeSet<Str>,
    /// The GatewayClasses, Gateways and ListenerSets that changed, or that may be admitted otherwise.
    pub(super) gateways: BTreeSet<ObjectKey>,
    /// The changed objects that can be nodes of paths. The answers there may depend on their fields.
    pub(super) objects: BTreeSet<ObjectKey>,
}

/// Two versions of an object, of which one can be missing.
pub(super) type Versions<'s> = (Option<&'s StoredObject>, Option<&'s StoredObject>);

impl ChangeImpact {
    /// Adds what another change affects.
    pub(super) fn extend(&mut self, other: Self) {
        for (number, keys) in other.policies {
            self.policies.entry(number).or_default().extend(keys);
        }
        self.routes.extend(other.routes);
        self.services.extend(other.services);
        self.namespaces.extend(other.namespaces);
        self.gateways.extend(other.gateways);
        self.objects.extend(other.objects);
    }

    /// Adds policies, each with the number of its kind.
    pub(super) fn add_policies(&mut self, policies: impl IntoIterator<Item = (usize, ObjectKey)>) {
        for (number, policy) in policies {
            self.policies.entry(number).or_default().insert(policy);
        }
    }
}

impl Engine {
    /// What a changed object can affect; `None` if the world must be rebuilt.
    pub(super) fn change_impact(
        &self,
        key: &ObjectKey,
        change: ChangeKind,
        before: &Store,
    ) -> Option<ChangeImpact> {
        let kinds = self.world().kinds().iter().enumerate();
        // The sections of a resource kind are several kinds (specification 2.14).
        let numbers: Vec<usize> = kinds
            .filter(|(_, kind)| *kind.profile.resource() == key.kind)
            .map(|(number, _)| number)
            .collect();
        let now = self.world().store();
        let versions = (before.get(key), now.get(key));
        let mut impact = ChangeImpact::default();
        if !self.world().depends_on(key, change, versions.0, versions.1) {
            return Some(impact);
        }
        // A kind without a profile becomes a kind of the world with its first policy. Filters may reference
        // objects that do not exist.
        if self.belongs_to_no_kind(&numbers, key) {
            return None;
        }
        let rereads = |&number: &usize| {
            self.is_filter(number, key)
                || self.loses_last_policy(number, key, before)
                || self.changes_what_is_read(number, key, before)
        };
        if numbers.iter().any(rereads) {
            return None;
        }
        if numbers.is_empty()
            && !key.kind.defines_kinds()
            && let (Some(before), Some(now)) = (before.get(key), now.get(key))
            && self.is_equivalent(before, now)
        {
            return Some(impact);
        }
        // The first object in a namespace, or the last one.
        let inside = [before, now].map(|store| {
            let namespace = &key.namespace;
            (store.is_inhabited(namespace), store.knows_inside(namespace))
        });
        if inside[0] != inside[1] {
            impact.namespaces.insert(key.namespace.clone());
        }
        let is_target = numbers.is_empty() && self.patches(key, versions, &mut impact)?;
        if !is_target
            && (now.affects_topology(&key.kind) || self.referenced_kinds.contains(&key.kind))
        {
            return None;
        }
        impact.add_policies(numbers.into_iter().map(|number| (number, key.clone())));
        // Policies reference objects: it matters whether these exist (specification 5.7).
        // No policy references an assertion.
        let comes_or_goes = versions.0.is_some() != versions.1.is_some();
        if comes_or_goes && !key.kind.is_assertion() {
            let is_known = |store: &Store| store.knows_of_kind(&key.kind);
            let mut kinds = self.world().kinds().iter();
            if is_known(before) != is_known(now)
                && kinds.any(|kind| !kind.profile.references.is_empty())
            {
                return None;
            }
        }
        if comes_or_goes || is_target {
            impact.add_policies(self.policies_naming(key));
        }
        Some(impact)
    }

    /// Adds what a changed object affects that paths go through or depend on, if the paths of single routes can be changed
    /// for it. Returns whether the object is one of these; `None` if the world must be rebuilt.
    fn patches(
        &self,
        key: &ObjectKey,
        versions: Versions<'_>,
        impact: &mut ChangeImpact,
    ) -> Option<bool> {
        let is_import = key.kind.is(groups::MULTICLUSTER, "ServiceImport");
        if route_kind(&key.kind).is_some() {
            self.patches_route(key, versions).then_some(())?;
            impact.routes.insert(key.clone());
        } else if key.kind.is(groups::CORE, "Service") || is_import {
            self.patches_service(key, versions).then_some(())?;
            let [before, now] =
                [versions.0, versions.1].map(|version| version.map(|v| &v.projection));
            if before != now && !is_import {
                impact.services.insert(key.clone());
            }
        } else if key.kind.is_namespace() {
            self.has_same_own_fields(versions).then_some(())?;
            impact.namespaces.insert(key.name.clone());
        } else if key.kind.is(groups::GATEWAY, "ReferenceGrant") {
            self.has_same_own_fields(versions).then_some(())?;
            self.follow_grant(key, versions, impact);
        } else if key.kind.is_above_routes() {
            self.has_same_own_fields(versions).then_some(())?;
            self.add_gateway(key, versions, impact);
        } else {
            return Some(false);
        }
        // Of Gateways, answers below them depend on annotations alone: their own fields are the same.
        if !key.kind.is_above_routes() || self.has_other_annotations(versions) {
            impact.objects.insert(key.clone());
        }
        impact.add_policies(self.policies_targeting(key));
        let labels = [versions.0, versions.1].into_iter().flatten();
        let labels = labels.map(|version| &version.object.labels);
        impact.add_policies(
            self.policies_selecting(|reference| match &reference.target {
                ReferenceTarget::Selector(selector) if reference.kind == key.kind => {
                    labels.clone().any(|labels| selector.matches(labels))
                }
                _ => false,
            }),
        );
        Some(true)
    }

    /// Whether the paths of a changed route can be changed without those of others.
    pub(super) fn patches_route(&self, key: &ObjectKey, (before, now): Versions<'_>) -> bool {
        let (topology, store) = (self.world().topology(), self.world().store());
        let [old, new] = [before, now].map(|version| match &version?.projection {
            Projection::Route(route) => Some(&**route),
            _ => None,
        });
        let mut routes = old.into_iter().chain(new);
        routes.all(|route| topology.can_patch_route(store, key, route))
            && has_same_filters(old, new)
            && (before.is_none() || now.is_none() || self.has_same_own_fields((before, now)))
    }

    /// Whether a changed Service is not more than a backend, and means the same for its own fields.
    fn patches_service(&self, key: &ObjectKey, versions: Versions<'_>) -> bool {
        let name = (key.namespace.clone(), key.name.clone());
        self.world().topology().is_backend_only(key)
            && !self.world().has_waypoint(&name)
            && self.has_same_own_fields(versions)
    }

    /// Whether two versions of an object have other annotations that profiles read.
    fn has_other_annotations(&self, versions: Versions<'_>) -> bool {
        let (Some(before), Some(now)) = versions else {
            return true;
        };
        let mut kinds = self.world().kinds().iter();
        kinds.any(|kind| !same_annotation(&kind.profile, before, now))
    }

    fn has_same_own_fields(&self, versions: Versions<'_>) -> bool {
        let kinds = self.world().kinds().iter();
        same_own_fields(kinds.map(|kind| &*kind.profile), versions)
    }

    /// The policies that target an object by name, each with the number of its kind.
    pub(super) fn policies_targeting(&self, object: &ObjectKey) -> Vec<(usize, ObjectKey)> {
        self.policies_of(|index| index.by_target.get(object).iter().copied())
    }

    /// The policies that select objects by a reference for which `is_affected` holds, each with the number of its kind.
    pub(super) fn policies_selecting(
        &self,
        is_affected: impl Fn(&Reference) -> bool,
    ) -> Vec<(usize, ObjectKey)> {
        let mut selecting = self.policies_of(|index| index.selecting.iter().copied());
        selecting.retain(|(number, key)| {
            let kind = self.world().kinds().get(*number);
            let policy = kind.and_then(|kind| kind.policy_at(kind.table.slot(key)?));
            let mut references = policy.into_iter().flat_map(|policy| &policy.references);
            references.any(&is_affected)
        });
        selecting
    }

    /// The policies in some slots of each kind.
    fn policies_of<'e, I: Iterator<Item = usize>>(
        &'e self,
        slots: impl Fn(&'e AttachmentIndex) -> I,
    ) -> Vec<(usize, ObjectKey)> {
        let mut found = Vec::new();
        for (number, (index, kind)) in self.indexes.iter().zip(self.world().kinds()).enumerate() {
            let policies = slots(index).filter_map(|slot| kind.policy_at(slot));
            found.extend(policies.map(|policy| (number, policy.key.clone())));
        }
        found
    }

    /// The policies whose rules reference an object, each with the number of its kind.
    fn policies_naming(&self, object: &ObjectKey) -> Vec<(usize, ObjectKey)> {
        self.policies_of(|index| index.by_object.get(object).iter().copied())
    }

    /// Whether an object looks like a policy, and no kind of the world reads it.
    fn belongs_to_no_kind(&self, numbers: &[usize], key: &ObjectKey) -> bool {
        let Some(entry) = self.world().store().get(key) else {
            return false;
        };
        let is_read = |&number: &usize| {
            let kind = self.world().kinds().get(number);
            kind.is_some_and(|kind| kind.profile.reads(&entry.object))
        };
        entry.object.has_target_reference()
            && !numbers.iter().any(is_read)
            && !self.world().refused().contains(&key.kind)
    }

    /// Whether filters of route rules reference objects of an unprofiled kind, this one among them.
    fn is_filter(&self, number: usize, key: &ObjectKey) -> bool {
        let kind = self.world().kinds().get(number);
        let index = self
            .indexes
            .get(number)
            .filter(|_| kind.is_some_and(|kind| kind.is_unprofiled()));
        let name = (key.namespace.clone(), key.name.clone());
        index.is_some_and(|index| index.filters.policies().any(|other| *other == name))
    }

    /// Whether a kind without a profile had its last policy in this object: it is no kind of the world any more.
    fn loses_last_policy(&self, number: usize, key: &ObjectKey, before: &Store) -> bool {
        let kind = self.world().kinds().get(number);
        let refers = |entry: &StoredObject| {
            kind.is_some_and(|kind| kind.profile.reads(&entry.object))
                && entry.object.has_target_reference()
        };
        let now = self.world().store();
        kind.is_some_and(|kind| kind.is_unprofiled())
            && before.get(key).is_some_and(refers)
            && !now.of_kind(&key.kind).any(|(_, entry)| refers(entry))
    }

    /// Whether a kind is evaluated from now on because its objects are whole, or no longer because of one only
    /// the targets are read.
    fn changes_what_is_read(&self, number: usize, key: &ObjectKey, before: &Store) -> bool {
        let is_reduced = |store: &Store| {
            let entry = store.get(key);
            entry.is_some_and(|entry| entry.object.is_targets_only())
        };
        let now = self.world().store();
        match self.world().kinds().get(number) {
            Some(kind) if kind.is_unprofiled() => {
                let mut objects = now.of_kind(&key.kind);
                is_reduced(before) && !objects.any(|(_, entry)| entry.object.is_targets_only())
            }
            Some(_) => is_reduced(now),
            None => false,
        }
    }

    /// Whether two versions of an object that is not a policy are equal for all answers. For example, a
    /// route may match different requests, or a Service select different pods.
    fn is_equivalent(&self, before: &StoredObject, now: &StoredObject) -> bool {
        // Declared kinds of Routes have no projection.
        !self.world().store().declares(&now.object.key.kind)
            && before.projection == now.projection
            // ListenerSets and stream Routes of a listener are ordered by age.
            && before.object.created == now.object.created
            && before.object.labels == now.object.labels
            && self.world().kinds().iter().all(|kind| {
                same_annotation(&kind.profile, before, now)
                    && same_weight(&kind.profile, before, now)
            })
            && self.has_same_own_fields((Some(before), Some(now)))
    }
}

/// Whether two versions have the same values of the annotations that select the strategy (specification 5.3), and
/// the precedence of policies where a Route delegates (specification 1.8).
fn same_annotation(profile: &Profile, before: &StoredObject, now: &StoredObject) -> bool {
    let delegation = profile.delegation.iter();
    let of_delegation = delegation.filter_map(|delegation| delegation.annotation.as_ref());
    let mut names = profile
        .strategy_choice
        .annotation
        .iter()
        .chain(of_delegation);
    names.all(|name| before.object.annotations.get(name) == now.object.annotations.get(name))
}

/// Whether two versions have the same annotation with the part of the requests that a canary takes
/// (specification 2.12).
fn same_weight(profile: &Profile, before: &StoredObject, now: &StoredObject) -> bool {
    let waypoints = profile.waypoints.iter();
    let mut names = waypoints.filter_map(|w| Some(&w.canary.as_ref()?.weight));
    names.all(|name| before.object.annotations.get(name) == now.object.annotations.get(name))
}

/// Whether two versions have the same own fields of some kinds (specification 6.4).
fn same_own_fields<'p>(
    profiles: impl Iterator<Item = &'p Profile>,
    (before, now): Versions<'_>,
) -> bool {
    let mut fields = profiles.flat_map(|profile| &profile.own_fields).peekable();
    if fields.peek().is_none() {
        return true;
    }
    let rules = |version: &StoredObject| match &version.projection {
        Projection::Route(route) => route.rules.len(),
        _ => 0,
    };
    let versions = [before, now];
    let rules = versions
        .iter()
        .flatten()
        .map(|version| rules(version))
        .max();
    let bodies = versions.map(|version| version.map(|version| version.object.body.value()));
    fields.all(|field| {
        let mut scopes = std::iter::once(None).chain((0..rules.unwrap_or_default()).map(Some));
        scopes.all(|rule| {
            let [before, now] = bodies.each_ref().map(|body| {
                let value = at_path(body.as_ref()?, &field.object, rule);
                value.filter(|value| !is_unset(Some(value)))
            });
            before == now
        })
    })
}

/// Whether two versions of a route have the same filters that reference objects, in the same rules. Those of
/// backendRefs are nodes of their own, which follow no single route.
fn has_same_filters(before: Option<&Route>, now: Option<&Route>) -> bool {
    let rules = |route: Option<&Route>| {
        let rules = route.map_or(&[][..], |route| &*route.rules);
        let of_rules = rules.iter().map(|rule| rule.extensions.to_vec());
        let mut of_rules: Vec<_> = of_rules.collect();
        while of_rules.last().is_some_and(Vec::is_empty) {
            of_rules.pop();
        }
        of_rules
    };
    let mut both = before.into_iter().chain(now);
    both.all(|route| {
        let mut backends = route.rules.iter().flat_map(|rule| &*rule.backends);
        backends.all(|backend| backend.extensions.is_empty())
    }) && rules(before) == rules(now)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::effective::{PolicyKind, World};
    use crate::engine::EngineUpdate;
    use crate::model::{Change, GroupKind, Object, groups};
    use crate::store::ProfileSources;

    fn object(kind: GroupKind, name: &str, spec: Value) -> Object {
        let key = ObjectKey::new(kind, "ns", name);
        Object::new(key, json!({ "spec": spec }))
    }

    fn follow(engine: &mut Engine, upsert: Object) -> EngineUpdate {
        let mut store = engine.world().store().clone();
        let changed = store.apply(Change {
            upserts: vec![Arc::new(upsert)],
            ..Change::default()
        });
        engine.follow(store, &changed)
    }

    #[test]
    fn a_kind_is_evaluated_once_its_objects_are_whole() {
        let foo = GroupKind::parse("Foo.f.io");
        let targets = json!([{"group": groups::GATEWAY, "kind": "Gateway", "name": "gw"}]);
        let policy = object(foo.clone(), "p", json!({"targetRefs": targets, "limit": 1}));
        let profile = json!({"preset": "direct", "policy": {"group": "f.io", "kind": "Foo"}});
        let mut profile = object(
            GroupKind::new(groups::ENTAIL, "PolicyProfile"),
            "foos.f.io",
            profile,
        );
        profile.key.namespace = "".into();
        profile.body.edit(|body| {
            body["apiVersion"] = json!("entail.dev/v1alpha1");
            body["kind"] = json!("PolicyProfile");
            body["metadata"] = json!({"name": "foos.f.io"});
        });
        let gateway = json!({"gatewayClassName": "c", "listeners": []});
        let gateway = object(GroupKind::new(groups::GATEWAY, "Gateway"), "gw", gateway);
        let mut store = Store::default();
        store.apply(Change {
            upserts: vec![Arc::new(gateway), Arc::new(policy.clone().targets_only())],
            ..Change::default()
        });
        let mut engine = Engine::new(World::from_store(store, &ProfileSources::shipped()));
        let is_evaluated = |engine: &Engine| engine.world().kind(&foo).is_some();
        assert!(!is_evaluated(&engine));
        // With the profile alone, what the policy says is not known yet.
        assert_eq!(follow(&mut engine, profile), EngineUpdate::All);
        assert!(!is_evaluated(&engine));
        assert_eq!(
            engine
                .world()
                .kinds()
                .iter()
                .filter(|kind| kind.profile.policy == foo)
                .count(),
            1
        );
        assert_eq!(follow(&mut engine, policy.clone()), EngineUpdate::All);
        assert!(is_evaluated(&engine));
        assert_eq!(
            follow(&mut engine, policy.targets_only()),
            EngineUpdate::All
        );
        assert!(!is_evaluated(&engine));
    }

    /// The rules of the only Route in the topology, by their backends.
    fn backends(world: &World) -> Vec<String> {
        let mut paths = Vec::new();
        let topology = world.topology();
        topology.visit(&mut |name, _| {
            paths.extend(
                name.split_once("/backends/")
                    .map(|(_, last)| last.to_owned()),
            );
        });
        paths
    }

    #[test]
    fn routes_of_a_declared_kind_are_followed() {
        let route = |backend: &str| {
            let kind = GroupKind::parse("AIGatewayRoute.aigateway.envoyproxy.io");
            let rules = json!([{"backendRefs": [{"name": backend}]}]);
            object(
                kind,
                "r",
                json!({"parentRefs": [{"name": "gw"}], "rules": rules}),
            )
        };
        let gateway = json!({"gatewayClassName": "c", "listeners": [{"name": "l", "port": 80, "protocol": "HTTP"}]});
        let gateway = object(GroupKind::new(groups::GATEWAY, "Gateway"), "gw", gateway);
        let mut store = Store::default();
        store.apply(Change {
            upserts: vec![Arc::new(gateway)],
            ..Change::default()
        });
        let mut engine = Engine::new(World::from_store(store, &ProfileSources::shipped()));
        for name in ["one", "two"] {
            assert_eq!(follow(&mut engine, route(name)), EngineUpdate::All);
            let backend = format!("AIServiceBackend.aigateway.envoyproxy.io/ns/{name}");
            assert_eq!(backends(engine.world()), [backend]);
        }
        // Other objects do not lose what was declared.
        let other = |name| object(GroupKind::parse("Foo.f.io"), name, json!({}));
        follow(&mut engine, other("a"));
        assert_eq!(follow(&mut engine, other("b")), EngineUpdate::Nothing);
        assert_eq!(backends(engine.world()).len(), 1);
    }

    #[test]
    fn an_object_moves_from_section_to_section() {
        let profile = |section: &str| {
            let policy = json!({"group": "f.io", "kind": "Foo", "section": {"name": section}});
            let rules = json!({"path": format!("spec.{section}")});
            let spec = json!({"preset": "most-specific-field", "policy": policy, "rules": rules});
            let name = format!("{section}.foos.f.io");
            let kind = GroupKind::new(groups::ENTAIL, "PolicyProfile");
            let mut profile = object(kind, &name, spec);
            profile.key.namespace = "".into();
            profile.body.edit(|body| {
                body["apiVersion"] = json!("entail.dev/v1alpha1");
                body["kind"] = json!("PolicyProfile");
                body["metadata"] = json!({ "name": name });
            });
            profile
        };
        let foo = GroupKind::parse("Foo.f.io");
        let targets = json!([{"group": groups::GATEWAY, "kind": "Gateway", "name": "gw"}]);
        let policy = |sections: &[&str]| {
            let mut spec = json!({ "targetRefs": targets });
            for section in sections {
                spec[section] = json!({"v": 1});
            }
            object(foo.clone(), "p", spec)
        };
        let gateway = json!({"gatewayClassName": "c", "listeners": []});
        let gateway = object(GroupKind::new(groups::GATEWAY, "Gateway"), "gw", gateway);
        let mut store = Store::default();
        store.apply(Change {
            upserts: [gateway, profile("one"), profile("two"), policy(&["one"])]
                .map(Arc::new)
                .to_vec(),
            ..Change::default()
        });
        let mut engine = Engine::new(World::from_store(store, &ProfileSources::shipped()));
        let holders = |engine: &Engine| -> Vec<String> {
            let kinds = engine.world().kinds().iter();
            let of_foo = kinds.filter(|kind| *kind.profile.resource() == foo);
            let held = of_foo.filter(|kind| kind.policy_count() > 0);
            held.map(|kind| kind.profile.policy.kind.to_string())
                .collect()
        };
        assert_eq!(holders(&engine), ["Foo:one"]);
        for (sections, expected, rebuilds) in [
            (&["two"][..], &["Foo:two"][..], 0),
            (&["one", "two"], &["Foo:one", "Foo:two"], 0),
            // What no profile describes is a kind of its own, and comes and goes with a rebuild.
            (&["three"], &["Foo"], 1),
            (&["one", "three"], &["Foo:one"], 2),
        ] {
            follow(&mut engine, policy(sections));
            assert_eq!(holders(&engine), expected);
            assert_eq!(engine.rebuilds(), rebuilds, "{sections:?}");
        }
    }

    /// A policy of the kind Foo.
    fn foo(name: &str, group: &str, kind: &str, target: &str) -> Object {
        let targets = json!([{"group": group, "kind": kind, "name": target}]);
        let spec = json!({"targetRefs": targets, "limit": 1});
        object(GroupKind::parse("Foo.f.io"), name, spec)
    }

    /// Two routes with a backend each; the first one has a policy of the kind Foo.
    fn two_routes() -> Engine {
        let profile =
            json!({"preset": "most-specific-field", "policy": {"group": "f.io", "kind": "Foo"}});
        let kind = GroupKind::new(groups::ENTAIL, "PolicyProfile");
        let mut profile = object(kind, "foos.f.io", profile);
        profile.key.namespace = "".into();
        profile.body.edit(|body| {
            body["apiVersion"] = json!("entail.dev/v1alpha1");
            body["kind"] = json!("PolicyProfile");
            body["metadata"] = json!({"name": "foos.f.io"});
        });
        let gateway = json!({"gatewayClassName": "c", "listeners": [{"name": "l", "port": 80, "protocol": "HTTP"}]});
        let gateway = object(GroupKind::new(groups::GATEWAY, "Gateway"), "gw", gateway);
        let mut upserts = vec![
            profile,
            gateway,
            foo("first", groups::GATEWAY, "HTTPRoute", "one"),
        ];
        for (route, backend) in [("one", "a"), ("two", "b")] {
            let rules = json!([{"backendRefs": [{"name": backend, "port": 80}]}]);
            let spec = json!({"parentRefs": [{"name": "gw"}], "rules": rules});
            let kind = GroupKind::new(groups::GATEWAY, "HTTPRoute");
            upserts.push(object(kind, route, spec));
            let ports = json!({"ports": [{"port": 80}]});
            upserts.push(object(GroupKind::service(), backend, ports));
        }
        let mut store = Store::default();
        store.apply(Change {
            upserts: upserts.into_iter().map(Arc::new).collect(),
            ..Change::default()
        });
        Engine::new(World::from_store(store, &ProfileSources::shipped()))
    }

    #[test]
    fn the_first_policy_of_a_route_or_a_backend_changes_the_paths_through_it_alone() {
        let mut engine = two_routes();
        let states = engine.automaton().len();
        for (name, group, kind, target) in [
            ("second", groups::GATEWAY, "HTTPRoute", "two"),
            ("third", groups::CORE, "Service", "b"),
        ] {
            let updated = follow(&mut engine, foo(name, group, kind, target));
            let EngineUpdate::Paths { added, removed, .. } = updated else {
                panic!("{name}: {updated:?}");
            };
            assert!(!added.is_empty() && added.len() <= 4, "{name}: {added:?}");
            assert!(!removed.is_empty(), "{name}");
        }
        assert!(engine.automaton().len() > states);
    }

    #[test]
    fn a_fork_has_its_own_answers_and_errors() {
        let engine = two_routes();
        let mut fork = engine.fork();
        let error = crate::model::InternalError::pretended("a test");
        fork.world().kinds()[0].fail(error);
        assert_eq!(engine.world().kinds()[0].fault(), None);
        assert_eq!(fork.world().kinds()[0].fault(), Some(error));
        let on_gateway = foo("second", groups::GATEWAY, "Gateway", "gw");
        assert_eq!(follow(&mut fork, on_gateway), EngineUpdate::All);
        let count = |engine: &Engine| {
            let kind = GroupKind::parse("Foo.f.io");
            engine.world().kind(&kind).map(PolicyKind::policy_count)
        };
        assert_eq!((count(&engine), count(&fork)), (Some(1), Some(2)));
    }
}

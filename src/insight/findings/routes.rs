//! Conflicts between listeners and between routes. Controllers resolve them differently, so that
//! entail reports them and keeps all paths (specification 1.4).

use std::collections::BTreeMap;

use super::{FindingPage, ScopedFinding, finding};
use crate::api::v1::finding::Severity;
use crate::insight::Code;
use crate::insight::abridged;
use crate::insight::absent::why_no_match;
use entail_core::effective::World;
use entail_core::model::{GroupKind, ObjectKey, PathErrorReason, SourceState, Str, groups};
use entail_core::routing::{ListenerConflict, listener_conflicts};
use entail_core::store::{NamespacedName, Projection, route_kind};

/// Maximum number of listeners that a finding names.
const MAX_NAMES: usize = 5;

/// Adds the findings about conflicting listeners, refused ListenerSets, conflicting routes, parentRefs that do not attach, and
/// rules that delegate.
pub(super) fn conflicts(world: &World, findings: &mut FindingPage<'_>) {
    listeners(world, findings);
    listener_sets(world, findings);
    parents(world, findings);
    backends(world, findings);
    delegations(world, findings);
    routes(world, findings);
}

fn listeners(world: &World, findings: &mut FindingPage<'_>) {
    let kind = GroupKind::gateway();
    let set_kind = GroupKind::new(groups::GATEWAY, "ListenerSet");
    for ((namespace, name), _) in world.store().of_kind(&kind) {
        let name = (namespace.clone(), name.clone());
        let gateway = ObjectKey::new(kind.clone(), name.0.clone(), name.1.clone());
        if !findings.sees(&gateway) {
            continue;
        }
        let set_key =
            |set: &NamespacedName| ObjectKey::new(set_kind.clone(), set.0.clone(), set.1.clone());
        let sees = |set: &NamespacedName| findings.sees(&set_key(set));
        let conflicts = listener_conflicts(world.topology(), world.store(), &name, &sees);
        let mut groups: BTreeMap<_, Vec<&str>> = BTreeMap::new();
        for one in &conflicts {
            let is_same_host = one.conflict == ListenerConflict::Hostname;
            let hostname = is_same_host.then_some(one.hostname);
            let protocol = is_same_host.then_some(one.protocol);
            let key = (
                one.set,
                one.conflict,
                one.is_preceded,
                one.port,
                (hostname, protocol),
            );
            groups.entry(key).or_default().push(one.name);
        }
        for ((set, conflict, is_preceded, port, _), names) in groups {
            let key = set.map_or_else(|| gateway.clone(), set_key);
            let message = conflict_message(&gateway, &names, (conflict, is_preceded, port));
            findings.push(finding(world, Code::ListenerConflict, &key, message));
        }
    }
}

/// Adds the ListenerSets that their Gateway does not take.
fn listener_sets(world: &World, findings: &mut FindingPage<'_>) {
    let kind = GroupKind::new(groups::GATEWAY, "ListenerSet");
    for ((namespace, name), entry) in world.store().of_kind(&kind) {
        let key = ObjectKey::new(kind.clone(), namespace.clone(), name.clone());
        let Projection::ListenerSet(set) = &entry.projection else {
            continue;
        };
        let Some(gateway) = &set.gateway else {
            continue;
        };
        let gateway = ObjectKey::new(GroupKind::gateway(), gateway.0.clone(), gateway.1.clone());
        let found = world.store().get(&gateway);
        let reason = match found.map(|entry| &entry.projection) {
            Some(Projection::Gateway(taking)) => {
                let allowed = &taking.allowed_listeners;
                let topology = world.topology();
                match topology.admits_namespace(allowed, &gateway.namespace, namespace) {
                    true => continue,
                    false => PathErrorReason::ListenerSetNotAllowed,
                }
            }
            _ => PathErrorReason::GatewayNotFound,
        };
        let message = format!("{gateway} does not take it: {}", reason.explain());
        findings.push(ScopedFinding {
            severity: Severity::Warning,
            ..finding(world, reason.into(), &key, message)
        });
    }
}

fn conflict_message(
    gateway: &ObjectKey,
    names: &[&str],
    (conflict, is_preceded, port): (ListenerConflict, bool, u16),
) -> String {
    let names = abridged(
        &names
            .iter()
            .map(|name| format!("`{name}`"))
            .collect::<Vec<_>>(),
        MAX_NAMES,
    );
    let what = match conflict {
        ListenerConflict::Hostname => "same port, protocol (HTTPS and TLS are one) and hostname",
        ListenerConflict::Protocol => {
            "HTTP, the protocols with TLS (HTTPS, TLS) and TCP exclude each other on a port"
        }
    };
    match is_preceded {
        true => format!(
            "listeners {names} on port {port} conflict with others of {gateway} or of a ListenerSet before this one, which \
             take precedence: {what}; these are not served"
        ),
        false => {
            format!("listeners {names} on port {port} conflict: {what}; at most one is served")
        }
    }
}

/// Adds the parentRefs that do not attach, with the reason.
fn parents(world: &World, findings: &mut FindingPage<'_>) {
    for (key, route) in world.store().routes() {
        for (index, reason) in world.topology().rejected_parents(&key) {
            let Some(parent) = route.parents.get(*index) else {
                continue;
            };
            let why = match route_kind(&parent.kind) {
                Some(_) if *reason == PathErrorReason::NoMatchingParent => {
                    "no rule of that Route delegates to this one below a Gateway whose controller follows that"
                }
                None if *reason == PathErrorReason::NoMatchingParent => why_no_match(&parent.kind),
                _ => reason.explain(),
            };
            let message = format!(
                "spec.parentRefs[{index}] does not attach to {} `{}/{}`: {why}",
                parent.kind.kind, parent.namespace, parent.name,
            );
            findings.push(ScopedFinding {
                severity: Severity::Warning,
                ..finding(world, (*reason).into(), &key, message)
            });
        }
    }
}

/// Adds the backends that rules name in vain. Manifests without any Service are those of somebody who has them elsewhere.
fn backends(world: &World, findings: &mut FindingPage<'_>) {
    let service = GroupKind::new(groups::CORE, "Service");
    let store = world.store();
    let is_complete = matches!(store.state(&service), None | Some(SourceState::Complete));
    if !is_complete || store.of_kind(&service).next().is_none() {
        return;
    }
    for (key, route) in store.routes() {
        if !findings.sees(&key) {
            continue;
        }
        for (number, rule) in route.rules.iter().enumerate() {
            let refused = world
                .topology()
                .refused_backends(store, &key, (number, rule));
            for (backend, port, reason) in refused {
                let why = match (reason, port) {
                    (PathErrorReason::BackendNotFound, _) => "does not exist".to_owned(),
                    (PathErrorReason::PortNotFound, Some(port)) => format!("has no port {port}"),
                    (PathErrorReason::RefNotPermitted, _) => {
                        "is in another namespace, and no ReferenceGrant there permits it".to_owned()
                    }
                    (reason, _) => reason.explain().to_owned(),
                };
                let message = format!("spec.rules[{number}].backendRefs: `{backend}` {why}");
                findings.push(ScopedFinding {
                    severity: Severity::Warning,
                    ..finding(world, reason.into(), &key, message)
                });
            }
        }
    }
}

/// Adds the rules that delegate to other Routes where that is not followed, or not for all kinds with policies, and the
/// Routes that they name in vain (specification 1.8).
fn delegations(world: &World, findings: &mut FindingPage<'_>) {
    let kinds = world.kinds_below_delegation();
    let visibility = findings.visibility();
    for (key, route) in world.store().routes() {
        if !findings.sees(&key) {
            continue;
        }
        for rule in 0..route.rules.len() {
            let Some(children) = world.topology().children_of_rule(&key, rule) else {
                continue;
            };
            let mut add = |code: Code, message: String| {
                findings.push(ScopedFinding {
                    severity: Severity::Warning,
                    ..finding(world, code, &key, message)
                });
            };
            for (child, reason) in world.topology().refused_children(world.store(), &key, rule) {
                let reason = match visibility.includes_object(&child) {
                    true => reason,
                    false if visibility.is_unrestricted() => reason,
                    false => PathErrorReason::RouteNotFound,
                };
                let why = match reason {
                    PathErrorReason::NotAPath => "it is the Route of the rule",
                    reason => reason.explain(),
                };
                let message = format!("spec.rules[{rule}] delegates to `{child}` in vain: {why}");
                add(reason.into(), message);
            }
            let because = match world.topology().not_followed(&key, rule) {
                Some(reason) => reason.message().to_owned(),
                None => {
                    let kinds = kinds.iter();
                    let kinds = kinds.filter(|kind| world.is_unknown_below(kind, &key, rule));
                    let kinds = kinds.map(|kind| kind.profile().policy.to_string());
                    match kinds.collect::<Vec<_>>() {
                        kinds if kinds.is_empty() => continue,
                        kinds => {
                            let kinds = kinds.join("`, `");
                            format!("it is not known how `{kinds}` merges policies there")
                        }
                    }
                }
            };
            let message = format!(
                "spec.rules[{rule}] delegates to {children}, which is not followed: {because}. Effective policies \
                 are unknown at and below the rule"
            );
            add(Code::DelegationNotFollowed, message);
        }
    }
}

/// The number of Routes that the finding about a conflict names.
const MAX_NAMED_ROUTES: usize = 3;

/// The Routes of a listener that come before another one, for look-ups of those that conflict with it.
#[derive(Default)]
struct Rivals<'w> {
    /// By kind.
    of_kind: BTreeMap<&'w str, Vec<&'w ObjectKey>>,
    /// By kind and hostname; `None` for Routes without hostnames.
    of_host: BTreeMap<(&'w str, Option<&'w str>), Vec<&'w ObjectKey>>,
}

impl<'w> Rivals<'w> {
    fn add(&mut self, route: &'w ObjectKey, hosts: &'w [Str]) {
        let kind = &*route.kind.kind;
        self.of_kind.entry(kind).or_default().push(route);
        for host in names(hosts) {
            self.of_host.entry((kind, host)).or_default().push(route);
        }
    }

    /// The first Routes that conflict with a Route, and one more than are named; whether both are served.
    fn of(&self, route: &ObjectKey, hosts: &[Str]) -> (Vec<&'w ObjectKey>, bool) {
        let most = MAX_NAMED_ROUTES + 1;
        let other = match &*route.kind.kind {
            kind @ ("TCPRoute" | "UDPRoute") => {
                let same = self.of_kind.get(kind).into_iter().flatten();
                return (same.take(most).copied().collect(), false);
            }
            "HTTPRoute" => "GRPCRoute",
            "GRPCRoute" => "HTTPRoute",
            _ => return (Vec::new(), true),
        };
        if hosts.is_empty() {
            let all = self.of_kind.get(other).into_iter().flatten();
            return (all.take(most).copied().collect(), true);
        }
        let mut found: Vec<&ObjectKey> = Vec::new();
        let hosts = names(hosts).chain([None]);
        for host in hosts {
            let with_host = self.of_host.get(&(other, host)).into_iter().flatten();
            found.extend(with_host.take(most).copied());
        }
        found.sort();
        found.dedup();
        found.truncate(most);
        (found, true)
    }
}

/// The hostnames of a Route; a single `None` if it has none.
fn names(hosts: &[Str]) -> impl Iterator<Item = Option<&str>> {
    let none = hosts.is_empty().then_some(None);
    hosts.iter().map(|host| Some(&**host)).chain(none)
}

/// Adds conflicts between routes of a listener: an HTTPRoute and a GRPCRoute with the same hostname,
/// or several TCPRoutes or UDPRoutes. Each Route names the first of those before it that the caller sees, too.
fn routes(world: &World, findings: &mut FindingPage<'_>) {
    for (listener, routes) in world.topology().attached_routes() {
        let mut rivals = Rivals::default();
        for route in routes {
            if !findings.visibility().budget().step() {
                return;
            }
            let Some(projected) = world.store().route(route).filter(|_| findings.sees(route))
            else {
                continue;
            };
            let (conflicting, is_mixed) = rivals.of(route, &projected.hostnames);
            rivals.add(route, &projected.hostnames);
            if conflicting.is_empty() {
                continue;
            }
            let named = conflicting.iter().take(MAX_NAMED_ROUTES);
            let named: Vec<String> = named.map(|one| format!("`{one}`")).collect();
            let more = match conflicting.len() > MAX_NAMED_ROUTES {
                true => " and more",
                false => "",
            };
            let served = match is_mixed {
                true => "both are served, or the older one alone, depending on the controller",
                false => "at most one is served",
            };
            let message = format!(
                "conflicts with {}{more} on `{}`; {served}",
                named.join(", "),
                world.topology().describe(listener)
            );
            findings.push(finding(world, Code::RouteConflict, route, message));
        }
    }
}

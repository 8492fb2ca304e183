//! Conflicts between listeners and between routes. Controllers resolve them differently, so that
//! entail reports them and keeps all paths (specification 1.4).

use std::collections::BTreeMap;

use super::{FindingPage, ScopedFinding, finding};
use crate::api::v1::finding::Severity;
use crate::insight::Code;
use entail_core::effective::World;
use entail_core::model::{GroupKind, ObjectKey, PathErrorReason, SourceState, Str, groups};
use entail_core::store::{Listener, Projection, route_kind};

/// Adds the findings about conflicting listeners, conflicting routes, parentRefs that do not attach, and
/// rules that delegate.
pub(super) fn conflicts(world: &World, findings: &mut FindingPage<'_>) {
    listeners(world, findings);
    parents(world, findings);
    backends(world, findings);
    delegations(world, findings);
    routes(world, findings);
}

fn listeners(world: &World, findings: &mut FindingPage<'_>) {
    let kind = GroupKind::gateway();
    for ((namespace, name), entry) in world.store().of_kind(&kind) {
        let Projection::Gateway(gateway) = &entry.projection else {
            continue;
        };
        let mut same: BTreeMap<(u16, &str, Option<&str>), Vec<&str>> = BTreeMap::new();
        for listener in &gateway.listeners {
            same.entry(identity(listener))
                .or_default()
                .push(&listener.name);
        }
        for names in same.values().filter(|names| names.len() > 1) {
            let key = ObjectKey::new(kind.clone(), namespace.clone(), name.clone());
            let message = format!(
                "listeners `{}` conflict: same port, protocol and hostname; at most one is served",
                names.join("`, `")
            );
            findings.push(finding(world, Code::ListenerConflict, &key, message));
        }
    }
}

/// The fields that distinguish the listeners of a Gateway.
fn identity(listener: &Listener) -> (u16, &str, Option<&str>) {
    (
        listener.port,
        &listener.protocol,
        listener.hostname.as_deref(),
    )
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
                None if *reason == PathErrorReason::NoMatchingParent => {
                    "it has no listener with this sectionName and port"
                }
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
            let refused = world.topology().refused_backends(&key, (number, rule));
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

//! Conflicts between listeners and between routes. Controllers resolve them differently, so that
//! entail reports them and keeps all paths (specification 1.4).

use std::collections::BTreeMap;

use super::{ScopedFinding, finding};
use crate::api::v1;
use entail_core::effective::World;
use entail_core::model::{GroupKind, ObjectKey, PathErrorReason, UnknownReason, groups};
use entail_core::store::{Listener, Projection, route_kind};
use v1::finding::Severity;

/// Adds the findings about conflicting listeners, conflicting routes, parentRefs that do not attach, and
/// rules that delegate.
pub(super) fn conflicts(world: &World, findings: &mut Vec<ScopedFinding>) {
    listeners(world, findings);
    parents(world, findings);
    delegations(world, findings);
    routes(world, findings);
}

fn listeners(world: &World, findings: &mut Vec<ScopedFinding>) {
    let kind = GroupKind::new(groups::GATEWAY, "Gateway");
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
            findings.push(finding(
                world,
                Severity::Warning,
                "ListenerConflict",
                &key,
                message,
            ));
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
fn parents(world: &World, findings: &mut Vec<ScopedFinding>) {
    for (key, route) in world.store().routes() {
        for (index, reason) in world.topology().rejected_parents(&key) {
            let Some(parent) = route.parents.get(*index) else {
                continue;
            };
            let why = match route_kind(&parent.kind) {
                Some(_) if *reason == PathErrorReason::NoMatchingParent => {
                    "no rule of that Route delegates to this one below a Gateway whose controller follows that"
                }
                _ => reason.explain(),
            };
            let message = format!(
                "spec.parentRefs[{index}] does not attach to {} `{}/{}`: {why}",
                parent.kind.kind, parent.namespace, parent.name,
            );
            findings.push(finding(
                world,
                Severity::Warning,
                reason.as_str(),
                &key,
                message,
            ));
        }
    }
}

/// Adds the rules that delegate to other Routes where that is not followed, or not for all kinds with policies, and the
/// Routes that they name in vain (specification 1.8).
fn delegations(world: &World, findings: &mut Vec<ScopedFinding>) {
    let kinds = world.kinds_below_delegation();
    for (key, route) in world.store().routes() {
        for rule in 0..route.rules.len() {
            let Some(children) = world.topology().children_of_rule(&key, rule) else {
                continue;
            };
            let mut add = |reason: &str, message: String| {
                findings.push(finding(world, Severity::Warning, reason, &key, message));
            };
            for (child, reason) in world.topology().refused_children(world.store(), &key, rule) {
                let why = match reason {
                    PathErrorReason::NotAPath => "it is the Route of the rule",
                    reason => reason.explain(),
                };
                let message = format!("spec.rules[{rule}] delegates to `{child}` in vain: {why}");
                add(reason.as_str(), message);
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
            add(UnknownReason::DelegationNotFollowed.as_str(), message);
        }
    }
}

/// Adds conflicts between routes of a listener: an HTTPRoute and a GRPCRoute with the same hostname,
/// or several TCPRoutes or UDPRoutes.
fn routes(world: &World, findings: &mut Vec<ScopedFinding>) {
    for (listener, routes) in world.topology().attached_routes() {
        let projected: Vec<(&ObjectKey, &[entail_core::model::Str])> = routes
            .iter()
            .filter_map(|key| Some((*key, world.store().route(key)?.hostnames.as_slice())))
            .collect();
        for (at, (one, hosts)) in projected.iter().enumerate() {
            for (other, others) in projected.iter().skip(at + 1) {
                let kinds = (&*one.kind.kind, &*other.kind.kind);
                let mixed = matches!(
                    kinds,
                    ("HTTPRoute", "GRPCRoute") | ("GRPCRoute", "HTTPRoute")
                );
                let streams = kinds.0 == kinds.1 && matches!(kinds.0, "TCPRoute" | "UDPRoute");
                let shared = hosts.is_empty()
                    || others.is_empty()
                    || hosts.iter().any(|host| others.contains(host));
                if !(streams || mixed && shared) {
                    continue;
                }
                let served = match mixed {
                    true => "both are served, or the older one alone, depending on the controller",
                    false => "at most one is served",
                };
                let message = format!(
                    "conflicts with `{one}` on `{}`; {served}",
                    world.topology().describe(listener)
                );
                findings.push(finding(
                    world,
                    Severity::Warning,
                    "RouteConflict",
                    other,
                    message,
                ));
            }
        }
    }
}

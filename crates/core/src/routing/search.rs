//! The search for the rules of one request, on all Gateways that accept it.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::hostnames::Specificity;
use super::index::{RouteIndex, RouteMatch, RouteRef};
use super::listeners::{ListenerCandidate, ListenerFilter};
use super::request::{Protocol, Request};
use super::result::{
    MatchFailure, MatchedRule, NearMiss, NoMatchReason, RoutingOptions, RoutingResult,
};
use super::router::{IndexKey, RequestRouter};
use crate::model::{ListenerSetStep, ObjectKey, Root, RouteStep, RuleStep, TrafficPath};
use crate::store::{BackendRef, NamespacedName, Projection, Store};
use crate::topology::mesh::MeshRoute;
use crate::topology::{GatewayNode, Topology};

/// Maximum number of nearest_misses misses in a result.
const MAX_NEAR_MISSES: usize = 3;
/// Maximum number of matches that are examined for nearest_misses misses.
const MAX_EXAMINED_MATCHES: usize = 2_000;

/// The path of a listener or mesh root, with the index of its routes.
struct MatchScope<'t> {
    path: TrafficPath<'t>,
    index: Arc<RouteIndex>,
    port: Option<u16>,
}

/// The search for one request.
pub(super) struct Search<'a> {
    pub router: &'a RequestRouter,
    pub topology: &'a Topology,
    pub store: &'a Store,
    pub request: &'a Request,
    pub options: RoutingOptions,
    /// Whether building large indexes is disallowed.
    pub fast_only: bool,
    /// Whether an index was missing because of `fast_only`.
    pub index_missing: Cell<bool>,
}

impl<'a> Search<'a> {
    /// Searches one Gateway, or all Gateways if `named` is `None`.
    pub fn at_gateways(
        &self,
        named: Option<&NamespacedName>,
        filter: &ListenerFilter<'_>,
        result: &mut RoutingResult,
    ) {
        let gateways = &self.topology.gateways;
        let Some(name) = named else {
            for (name, gateway) in gateways {
                self.at_gateway(name, gateway, filter, result);
            }
            return;
        };
        match gateways.get_key_value(name) {
            Some((name, gateway)) => self.at_gateway(name, gateway, filter, result),
            None => result.failures.push(MatchFailure {
                path: root(name).to_string(),
                reason: NoMatchReason::GatewayNotFound,
                near_misses: Vec::new(),
            }),
        }
    }

    fn at_gateway(
        &self,
        name: &'a NamespacedName,
        gateway: &'a GatewayNode,
        filter: &ListenerFilter<'_>,
        result: &mut RoutingResult,
    ) {
        let mut ports: BTreeMap<u16, Vec<ListenerCandidate<'a>>> = BTreeMap::new();
        let listeners = ListenerCandidate::all(self.store, name, gateway);
        for listener in listeners
            .into_iter()
            .filter(|listener| listener.passes(filter))
        {
            ports
                .entry(listener.listener.port)
                .or_default()
                .push(listener);
        }
        let failure = |reason| MatchFailure {
            path: root(name).to_string(),
            reason,
            near_misses: Vec::new(),
        };
        if ports.is_empty() {
            result
                .failures
                .push(failure(NoMatchReason::ListenerNotFound));
        }
        for (port, mut listeners) in ports {
            if self.needs_host() && self.request.host.is_empty() {
                result
                    .failures
                    .push(failure(NoMatchReason::HostnameNotServed));
                continue;
            }
            let all = listeners.len();
            listeners.retain(|listener| !listener.is_conflicted);
            let conflicted = listeners.is_empty() && all > 0;
            listeners.retain(|listener| listener.accepts_host(&self.request.host));
            listeners.sort_by_key(ListenerCandidate::rank);
            if self.options.listener_isolation {
                listeners.truncate(1);
            }
            if listeners.is_empty() {
                let not_taken = failure(match conflicted {
                    true => NoMatchReason::ListenerConflicted,
                    false => NoMatchReason::HostnameNotServed,
                });
                // Report one failure for all ports.
                if !result.failures.contains(&not_taken) {
                    result.failures.push(not_taken);
                }
                continue;
            }
            let scopes = listeners
                .iter()
                .map(|listener| self.scope(name, listener, port));
            self.add_best_match(&scopes.collect::<Vec<_>>(), result);
        }
    }

    /// Reports whether a request without a host cannot be routed.
    fn needs_host(&self) -> bool {
        self.request.protocol == Protocol::Tls
    }

    fn scope(
        &self,
        name: &'a NamespacedName,
        listener: &ListenerCandidate<'a>,
        port: u16,
    ) -> MatchScope<'a> {
        let routes = || {
            let routes = listener.node.routes.iter();
            routes.filter_map(|&route| self.route_ref(route)).collect()
        };
        let key = self.topology.key(listener.node.node).clone();
        let mut path = root(name);
        path.listener_set = listener
            .set
            .map(|(namespace, name)| ListenerSetStep { namespace, name });
        path.listener = Some(&listener.node.name);
        MatchScope {
            path,
            index: self.index(IndexKey::Listener(key), listener.hostname(), routes),
            port: Some(port),
        }
    }

    fn index(
        &self,
        index_key: IndexKey,
        hostname: &str,
        routes: impl FnOnce() -> Vec<RouteRef<'a>>,
    ) -> Arc<RouteIndex> {
        let index = self
            .router
            .index(index_key, hostname, self.fast_only, routes);
        index.unwrap_or_else(|| {
            self.index_missing.set(true);
            Arc::default()
        })
    }

    fn route_ref(&self, route: usize) -> Option<RouteRef<'a>> {
        let key = &self.topology.routes.get(route)?.key;
        let entry = self.store.get(key)?;
        match &entry.projection {
            Projection::Route(route) => Some(RouteRef {
                key,
                object: &entry.object,
                route,
            }),
            _ => None,
        }
    }

    /// Searches the routes of a Service for a client: the routes in the client's namespace if any of
    /// them applies to the port or the whole Service, else the producer routes.
    pub fn in_mesh(
        &self,
        service: &'a NamespacedName,
        port: Option<u16>,
        client: &'a str,
        result: &mut RoutingResult,
    ) {
        let (namespace, name) = service;
        let at = |port| {
            TrafficPath::root(Root::Mesh {
                client,
                namespace,
                name,
                port,
            })
        };
        let Some(root) = self.topology.roots.get(service) else {
            result.failures.push(MatchFailure {
                path: at(None).to_string(),
                reason: NoMatchReason::ServiceNotFound,
                near_misses: Vec::new(),
            });
            return;
        };
        let applies = |route: &&MeshRoute| route.port.is_none() || route.port == port;
        let own = root.consumers.get(client).map_or(&[][..], Vec::as_slice);
        let consumer = own.iter().any(|route| applies(&route));
        let routes = if consumer { own } else { &root.producers };
        let mut routes: Vec<MeshRoute> = routes.iter().filter(applies).copied().collect();
        // A parentRef with the port takes precedence over one for the whole Service.
        routes.sort_by_key(|route| (route.route, route.port.is_none()));
        routes.dedup_by_key(|route| route.route);
        self.keep_first_kind(&mut routes);
        // All ports that no route references share one index.
        let own = port.filter(|port| root.ports.contains_key(port));
        let index_key = IndexKey::Service(service.clone(), own, consumer.then(|| client.into()));
        let index = self.index(index_key, "", || {
            let routes = routes.iter();
            routes
                .filter_map(|route| self.route_ref(route.route))
                .collect()
        });
        let parent_port = |key: &ObjectKey| {
            let route = self.topology.route_index.get(key);
            let mut routes = routes.iter().filter(|r| Some(&r.route) == route);
            routes.next().and_then(|route| route.port)
        };
        let port_of = |candidate: &RouteMatch| {
            let served = index.routes.get(candidate.route);
            served.and_then(|served| parent_port(&served.key))
        };
        let scope = |attached| MatchScope {
            path: at(attached),
            index: Arc::clone(&index),
            port,
        };
        match self.find(&index) {
            Some((_, candidate)) => {
                let scope = scope(port_of(candidate));
                result.matched.extend(self.matched_rule(&scope, candidate));
            }
            None => result.failures.push(self.match_failure(&scope(None))),
        }
    }

    /// Keeps the routes of the first kind in the order of GEP-1294. UDPRoutes are independent of the
    /// other kinds.
    fn keep_first_kind(&self, routes: &mut Vec<MeshRoute>) {
        const ORDER: [&str; 4] = ["GRPCRoute", "HTTPRoute", "TLSRoute", "TCPRoute"];
        let rank = |route: &MeshRoute| {
            let route = self.topology.routes.get(route.route)?;
            ORDER.iter().position(|kind| *kind == &*route.key.kind.kind)
        };
        let first = routes.iter().filter_map(rank).min();
        routes.retain(|route| rank(route).is_none_or(|rank| Some(rank) == first));
    }

    /// Adds the match with the most specific hostname among all scopes, or a failure. Earlier scopes
    /// win ties.
    fn add_best_match(&self, scopes: &[MatchScope<'a>], result: &mut RoutingResult) {
        let mut best: Option<(Specificity, &MatchScope<'a>, &RouteMatch)> = None;
        for scope in scopes {
            if let Some((specificity, candidate)) = self.find(&scope.index)
                && best.is_none_or(|(most, ..)| specificity > most)
            {
                best = Some((specificity, scope, candidate));
            }
        }
        match (best, scopes.first()) {
            (Some((_, scope, candidate)), _) => {
                result.matched.extend(self.matched_rule(scope, candidate))
            }
            (None, Some(first)) => result.failures.push(self.match_failure(first)),
            (None, None) => {}
        }
    }

    /// Returns the match that the request takes. A gRPC call that no GRPCRoute takes is matched as an
    /// HTTP request.
    fn find<'i>(&self, index: &'i RouteIndex) -> Option<(Specificity, &'i RouteMatch)> {
        let by_route = self.options.by_route_hostname;
        let result = index.find(self.request, by_route);
        if result.is_some() || self.request.protocol != Protocol::Grpc {
            return result;
        }
        index.find(&self.request.as_http(), by_route)
    }

    fn matched_rule(&self, scope: &MatchScope<'a>, candidate: &RouteMatch) -> Option<MatchedRule> {
        let key = &scope.index.routes.get(candidate.route)?.key;
        let route = self
            .topology
            .routes
            .get(*self.topology.route_index.get(key)?)?;
        let rule = route.rules.get(candidate.rule as usize)?;
        let kind = key.kind.short();
        let mut path = scope.path;
        path.route = Some(RouteStep {
            kind: &kind,
            namespace: &key.namespace,
            name: &key.name,
        });
        path.rule = Some(match &rule.name {
            Some(name) => RuleStep::Name(name),
            None => RuleStep::Index(candidate.rule),
        });
        Some(MatchedRule {
            path: path.to_string(),
            port: scope.port,
            rule: candidate.rule,
            at: candidate.at,
            matched: candidate.conditions.describe(),
            backends: self.backends(key, candidate.rule),
        })
    }

    /// Returns the backendRefs of a rule with their weights.
    fn backends(&self, route: &ObjectKey, rule: u32) -> Vec<(BackendRef, u32)> {
        let body = self.store.get(route).map(|entry| &entry.object.body);
        let rule = body.and_then(|body| body.pointer(&format!("/spec/rules/{rule}")));
        let list = rule.and_then(|rule| rule.get("backendRefs")?.as_array());
        let weight = |value: &Value| value.get("weight").map_or(Some(1), Value::as_u64);
        let read = |value: &Value| {
            let weight = u32::try_from(weight(value).unwrap_or_default());
            let reference = BackendRef::read(value, &route.namespace)?;
            Some((reference, weight.unwrap_or(u32::MAX)))
        };
        list.into_iter().flatten().filter_map(read).collect()
    }

    /// Returns the failure of a scope, with the nearest matches.
    fn match_failure(&self, scope: &MatchScope<'a>) -> MatchFailure {
        let request = self.request;
        let all = scope.index.of_host(&request.host);
        let applicable = all.filter(|candidate| candidate.is_for(request.protocol));
        let mut misses = Vec::new();
        for candidate in applicable.take(MAX_EXAMINED_MATCHES) {
            let conditions = &candidate.conditions;
            let mut missing: Vec<String> = conditions.unmet(request).collect();
            let path_matches = conditions.path.matches(request);
            if !path_matches {
                missing.insert(0, conditions.path.describe());
            }
            misses.push((
                (
                    !path_matches,
                    missing.len(),
                    candidate.route,
                    candidate.rule,
                ),
                missing,
            ));
        }
        let reason = match misses.is_empty() {
            true => NoMatchReason::NoRoute,
            false => NoMatchReason::NoMatch,
        };
        misses.sort_by_key(|(order, _)| *order);
        let nearest_misses = misses.into_iter().take(MAX_NEAR_MISSES);
        let near_misses = nearest_misses.filter_map(|((.., route, rule), missing)| {
            let route = scope.index.routes.get(route)?.key.clone();
            Some(NearMiss {
                route,
                rule,
                missing,
            })
        });
        MatchFailure {
            path: scope.path.to_string(),
            reason,
            near_misses: near_misses.collect(),
        }
    }
}

fn root(name: &NamespacedName) -> TrafficPath<'_> {
    let (namespace, name) = name;
    TrafficPath::root(Root::Gateway { namespace, name })
}

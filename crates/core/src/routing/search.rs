//! One request, on every Gateway that takes it.

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

/// Near misses that are told.
const MAX_NEAR_MISSES: usize = 3;
/// Matches that are looked at for them.
const MAX_EXAMINED_MATCHES: usize = 2_000;

/// Where a path begins, and the index that goes on from there.
struct MatchScope<'t> {
    path: TrafficPath<'t>,
    index: Arc<RouteIndex>,
    port: Option<u16>,
}

/// One request on its way.
pub(super) struct Search<'a> {
    pub router: &'a RequestRouter,
    pub topology: &'a Topology,
    pub store: &'a Store,
    pub request: &'a Request,
    pub options: RoutingOptions,
    /// Long indexes are not made.
    pub fast_only: bool,
    /// Whether one was missing.
    pub index_missing: Cell<bool>,
}

impl<'a> Search<'a> {
    pub fn at_gateways(
        &self,
        named: Option<&NamespacedName>,
        wanted: &ListenerFilter<'_>,
        found: &mut RoutingResult,
    ) {
        let gateways = &self.topology.gateways;
        let Some(name) = named else {
            for (name, gateway) in gateways {
                self.at_gateway(name, gateway, wanted, found);
            }
            return;
        };
        match gateways.get_key_value(name) {
            Some((name, gateway)) => self.at_gateway(name, gateway, wanted, found),
            None => found.failures.push(MatchFailure {
                path: root(name).to_string(),
                reason: NoMatchReason::GatewayNotFound,
                nearest: Vec::new(),
            }),
        }
    }

    fn at_gateway(
        &self,
        name: &'a NamespacedName,
        gateway: &'a GatewayNode,
        wanted: &ListenerFilter<'_>,
        found: &mut RoutingResult,
    ) {
        let mut ports: BTreeMap<u16, Vec<ListenerCandidate<'a>>> = BTreeMap::new();
        let listeners = ListenerCandidate::all(self.store, name, gateway);
        for listener in listeners
            .into_iter()
            .filter(|listener| listener.passes(wanted))
        {
            ports
                .entry(listener.listener.port)
                .or_default()
                .push(listener);
        }
        let no = |reason| MatchFailure {
            path: root(name).to_string(),
            reason,
            nearest: Vec::new(),
        };
        if ports.is_empty() {
            found.failures.push(no(NoMatchReason::ListenerNotFound));
        }
        for (port, mut listeners) in ports {
            if self.needs_host() && self.request.host.is_empty() {
                found.failures.push(no(NoMatchReason::HostNotTaken));
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
                let not_taken = no(match conflicted {
                    true => NoMatchReason::ListenerConflicted,
                    false => NoMatchReason::HostNotTaken,
                });
                // Once for all ports.
                if !found.failures.contains(&not_taken) {
                    found.failures.push(not_taken);
                }
                continue;
            }
            let starts = listeners
                .iter()
                .map(|listener| self.start(name, listener, port));
            self.go(&starts.collect::<Vec<_>>(), found);
        }
    }

    /// Whether only a server name leads on.
    fn needs_host(&self) -> bool {
        self.request.protocol == Protocol::Tls
    }

    fn start(
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

    /// Looks at the routes of a Service that count for a client: its own namespace's, if some are
    /// for the port or for the whole Service, else the producers'.
    pub fn in_mesh(
        &self,
        service: &'a NamespacedName,
        port: Option<u16>,
        client: &'a str,
        found: &mut RoutingResult,
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
            found.failures.push(MatchFailure {
                path: at(None).to_string(),
                reason: NoMatchReason::ServiceNotFound,
                nearest: Vec::new(),
            });
            return;
        };
        let counts = |route: &&MeshRoute| route.port.is_none() || route.port == port;
        let own = root.consumers.get(client).map_or(&[][..], Vec::as_slice);
        let consumer = own.iter().any(|route| counts(&route));
        let routes = if consumer { own } else { &root.producers };
        let mut routes: Vec<MeshRoute> = routes.iter().filter(counts).copied().collect();
        // What is attached to the port stands there.
        routes.sort_by_key(|route| (route.route, route.port.is_none()));
        routes.dedup_by_key(|route| route.route);
        self.keep_first_kind(&mut routes);
        // Ports that no route names are all alike.
        let own = port.filter(|port| root.ports.contains_key(port));
        let index_key = IndexKey::Service(service.clone(), own, consumer.then(|| client.into()));
        let index = self.index(index_key, "", || {
            let routes = routes.iter();
            routes
                .filter_map(|route| self.route_ref(route.route))
                .collect()
        });
        let stands = |key: &ObjectKey| {
            let route = self.topology.route_index.get(key);
            let mut routes = routes.iter().filter(|r| Some(&r.route) == route);
            routes.next().and_then(|route| route.port)
        };
        let port_of = |candidate: &RouteMatch| {
            let served = index.routes.get(candidate.route);
            served.and_then(|served| stands(&served.key))
        };
        let start = |attached| MatchScope {
            path: at(attached),
            index: Arc::clone(&index),
            port,
        };
        match self.find(&index) {
            Some((_, candidate)) => {
                let start = start(port_of(candidate));
                found.matched.extend(self.matched_rule(&start, candidate));
            }
            None => found.failures.push(self.missed(&start(None))),
        }
    }

    /// Of routes of several kinds on one Service those of the first kind count (GEP-1294); UDP is
    /// apart from the others.
    fn keep_first_kind(&self, routes: &mut Vec<MeshRoute>) {
        const ORDER: [&str; 4] = ["GRPCRoute", "HTTPRoute", "TLSRoute", "TCPRoute"];
        let rank = |route: &MeshRoute| {
            let route = self.topology.routes.get(route.route)?;
            ORDER.iter().position(|kind| *kind == &*route.key.kind.kind)
        };
        let first = routes.iter().filter_map(rank).min();
        routes.retain(|route| rank(route).is_none_or(|rank| Some(rank) == first));
    }

    /// Goes on from where a request may begin: the hostname that says most decides, then the
    /// listener.
    fn go(&self, starts: &[MatchScope<'a>], found: &mut RoutingResult) {
        let mut best: Option<(Specificity, &MatchScope<'a>, &RouteMatch)> = None;
        for start in starts {
            if let Some((specificity, candidate)) = self.find(&start.index)
                && best.is_none_or(|(most, ..)| specificity > most)
            {
                best = Some((specificity, start, candidate));
            }
        }
        match (best, starts.first()) {
            (Some((_, start, candidate)), _) => {
                found.matched.extend(self.matched_rule(start, candidate))
            }
            (None, Some(first)) => found.failures.push(self.missed(first)),
            (None, None) => {}
        }
    }

    /// The match that the request takes. A call that no GRPCRoute takes is a request like others.
    fn find<'i>(&self, index: &'i RouteIndex) -> Option<(Specificity, &'i RouteMatch)> {
        let by_route = self.options.by_route_hostname;
        let found = index.find(self.request, by_route);
        if found.is_some() || self.request.protocol != Protocol::Grpc {
            return found;
        }
        index.find(&self.request.as_http(), by_route)
    }

    fn matched_rule(&self, start: &MatchScope<'a>, candidate: &RouteMatch) -> Option<MatchedRule> {
        let key = &start.index.routes.get(candidate.route)?.key;
        let route = self
            .topology
            .routes
            .get(*self.topology.route_index.get(key)?)?;
        let rule = route.rules.get(candidate.rule as usize)?;
        let kind = key.kind.short();
        let mut path = start.path;
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
            port: start.port,
            rule: candidate.rule,
            at: candidate.at,
            matched: candidate.conditions.describe(),
            backends: self.backends(key, candidate.rule),
        })
    }

    /// The backendRefs of a rule, with their weights.
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

    /// Why no match is met, and which ones nearly are.
    fn missed(&self, start: &MatchScope<'a>) -> MatchFailure {
        let request = self.request;
        let all = start.index.of_host(&request.host);
        let mine = all.filter(|candidate| candidate.is_for(request.protocol));
        let mut misses = Vec::new();
        for candidate in mine.take(MAX_EXAMINED_MATCHES) {
            let conditions = &candidate.conditions;
            let mut lacks: Vec<String> = conditions.unmet(request).collect();
            let is_there = conditions.path.is(request);
            if !is_there {
                lacks.insert(0, conditions.path.describe());
            }
            misses.push((
                (!is_there, lacks.len(), candidate.route, candidate.rule),
                lacks,
            ));
        }
        let reason = match misses.is_empty() {
            true => NoMatchReason::NoRoute,
            false => NoMatchReason::NoMatch,
        };
        misses.sort_by_key(|(order, _)| *order);
        let near = misses.into_iter().take(MAX_NEAR_MISSES);
        let nearest = near.filter_map(|((.., route, rule), lacks)| {
            let route = start.index.routes.get(route)?.key.clone();
            Some(NearMiss { route, rule, lacks })
        });
        MatchFailure {
            path: start.path.to_string(),
            reason,
            nearest: nearest.collect(),
        }
    }
}

fn root(name: &NamespacedName) -> TrafficPath<'_> {
    let (namespace, name) = name;
    TrafficPath::root(Root::Gateway { namespace, name })
}

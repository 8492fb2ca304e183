//! One request, on every Gateway that takes it.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::doors::{Door, Wanted};
use super::find::{Matcher, Place};
use super::found::{Found, NearMiss, NoMatch, NotTaken, Rules, Taken};
use super::hosts::Specificity;
use super::index::{Candidate, Index, Serving};
use super::request::{Protocol, Request};
use crate::model::{ListenerSetStep, ObjectKey, Root, RouteStep, RuleStep, Walk};
use crate::store::{BackendRef, Name, Projection, Store};
use crate::topology::mesh::MeshRoute;
use crate::topology::{GatewayNode, Topology};

/// Near misses that are told.
const NEAREST: usize = 3;
/// Matches that are looked at for them.
const LOOKED_AT: usize = 2_000;

/// Where a walk begins, and the index that goes on from there.
struct Start<'t> {
    walk: Walk<'t>,
    index: Arc<Index>,
    port: Option<u16>,
}

/// One request on its way.
pub(super) struct Search<'a> {
    pub matcher: &'a Matcher,
    pub topology: &'a Topology,
    pub store: &'a Store,
    pub request: &'a Request,
    pub rules: Rules,
    /// Long indexes are not made.
    pub in_haste: bool,
    /// Whether one was missing.
    pub gave_up: Cell<bool>,
}

impl<'a> Search<'a> {
    pub fn at_gateways(&self, named: Option<&Name>, wanted: &Wanted<'_>, found: &mut Found) {
        let gateways = &self.topology.gateways;
        let Some(name) = named else {
            for (name, gateway) in gateways {
                self.at_gateway(name, gateway, wanted, found);
            }
            return;
        };
        match gateways.get_key_value(name) {
            Some((name, gateway)) => self.at_gateway(name, gateway, wanted, found),
            None => found.not_taken.push(NotTaken {
                path: root(name).to_string(),
                reason: NoMatch::GatewayNotFound,
                nearest: Vec::new(),
            }),
        }
    }

    fn at_gateway(
        &self,
        name: &'a Name,
        gateway: &'a GatewayNode,
        wanted: &Wanted<'_>,
        found: &mut Found,
    ) {
        let mut ports: BTreeMap<u16, Vec<Door<'a>>> = BTreeMap::new();
        let doors = Door::all(self.store, name, gateway);
        for door in doors.into_iter().filter(|door| door.is_wanted(wanted)) {
            ports.entry(door.listener.port).or_default().push(door);
        }
        let no = |reason| NotTaken {
            path: root(name).to_string(),
            reason,
            nearest: Vec::new(),
        };
        if ports.is_empty() {
            found.not_taken.push(no(NoMatch::ListenerNotFound));
        }
        for (port, mut doors) in ports {
            if self.needs_host() && self.request.host.is_empty() {
                found.not_taken.push(no(NoMatch::HostNotTaken));
                continue;
            }
            let all = doors.len();
            doors.retain(|door| !door.is_conflicted);
            let conflicted = doors.is_empty() && all > 0;
            doors.retain(|door| door.takes(&self.request.host));
            doors.sort_by_key(Door::rank);
            if self.rules.isolated {
                doors.truncate(1);
            }
            if doors.is_empty() {
                let not_taken = no(match conflicted {
                    true => NoMatch::ListenerConflicted,
                    false => NoMatch::HostNotTaken,
                });
                // Once for all ports.
                if !found.not_taken.contains(&not_taken) {
                    found.not_taken.push(not_taken);
                }
                continue;
            }
            let starts = doors.iter().map(|door| self.start(name, door, port));
            self.go(&starts.collect::<Vec<_>>(), found);
        }
    }

    /// Whether only a server name leads on.
    fn needs_host(&self) -> bool {
        self.request.protocol == Protocol::Tls
    }

    fn start(&self, name: &'a Name, door: &Door<'a>, port: u16) -> Start<'a> {
        let routes = || {
            let routes = door.node.routes.iter();
            routes.filter_map(|&route| self.serving(route)).collect()
        };
        let key = self.topology.key(door.node.node).clone();
        let mut walk = root(name);
        walk.listener_set = door
            .set
            .map(|(namespace, name)| ListenerSetStep { namespace, name });
        walk.listener = Some(&door.node.name);
        Start {
            walk,
            index: self.index(Place::Listener(key), door.hostname(), routes),
            port: Some(port),
        }
    }

    fn index(
        &self,
        place: Place,
        hostname: &str,
        routes: impl FnOnce() -> Vec<Serving<'a>>,
    ) -> Arc<Index> {
        let index = self.matcher.index(place, hostname, self.in_haste, routes);
        index.unwrap_or_else(|| {
            self.gave_up.set(true);
            Arc::default()
        })
    }

    fn serving(&self, route: usize) -> Option<Serving<'a>> {
        let key = &self.topology.routes.get(route)?.key;
        let entry = self.store.get(key)?;
        match &entry.projection {
            Projection::Route(route) => Some(Serving {
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
        service: &'a Name,
        port: Option<u16>,
        client: &'a str,
        found: &mut Found,
    ) {
        let (namespace, name) = service;
        let at = |port| {
            Walk::root(Root::Mesh {
                client,
                namespace,
                name,
                port,
            })
        };
        let Some(root) = self.topology.roots.get(service) else {
            found.not_taken.push(NotTaken {
                path: at(None).to_string(),
                reason: NoMatch::ServiceNotFound,
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
        let place = Place::Service(service.clone(), own, consumer.then(|| client.into()));
        let index = self.index(place, "", || {
            let routes = routes.iter();
            routes
                .filter_map(|route| self.serving(route.route))
                .collect()
        });
        let stands = |key: &ObjectKey| {
            let route = self.topology.route_index.get(key);
            let mut routes = routes.iter().filter(|r| Some(&r.route) == route);
            routes.next().and_then(|route| route.port)
        };
        let port_of = |candidate: &Candidate| {
            let served = index.routes.get(candidate.route);
            served.and_then(|served| stands(&served.key))
        };
        let start = |attached| Start {
            walk: at(attached),
            index: Arc::clone(&index),
            port,
        };
        match self.find(&index) {
            Some((_, candidate)) => {
                let start = start(port_of(candidate));
                found.taken.extend(self.taken(&start, candidate));
            }
            None => found.not_taken.push(self.missed(&start(None))),
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
    fn go(&self, starts: &[Start<'a>], found: &mut Found) {
        let mut best: Option<(Specificity, &Start<'a>, &Candidate)> = None;
        for start in starts {
            if let Some((specificity, candidate)) = self.find(&start.index)
                && best.is_none_or(|(most, ..)| specificity > most)
            {
                best = Some((specificity, start, candidate));
            }
        }
        match (best, starts.first()) {
            (Some((_, start, candidate)), _) => found.taken.extend(self.taken(start, candidate)),
            (None, Some(first)) => found.not_taken.push(self.missed(first)),
            (None, None) => {}
        }
    }

    /// The match that the request takes. A call that no GRPCRoute takes is a request like others.
    fn find<'i>(&self, index: &'i Index) -> Option<(Specificity, &'i Candidate)> {
        let by_route = self.rules.by_route_hostname;
        let found = index.find(self.request, by_route);
        if found.is_some() || self.request.protocol != Protocol::Grpc {
            return found;
        }
        index.find(&self.request.as_http(), by_route)
    }

    fn taken(&self, start: &Start<'a>, candidate: &Candidate) -> Option<Taken> {
        let key = &start.index.routes.get(candidate.route)?.key;
        let route = self
            .topology
            .routes
            .get(*self.topology.route_index.get(key)?)?;
        let rule = route.rules.get(candidate.rule as usize)?;
        let kind = key.kind.short();
        let mut walk = start.walk;
        walk.route = Some(RouteStep {
            kind: &kind,
            namespace: &key.namespace,
            name: &key.name,
        });
        walk.rule = Some(match &rule.name {
            Some(name) => RuleStep::Name(name),
            None => RuleStep::Index(candidate.rule),
        });
        Some(Taken {
            path: walk.to_string(),
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
    fn missed(&self, start: &Start<'a>) -> NotTaken {
        let request = self.request;
        let all = start.index.of_host(&request.host);
        let mine = all.filter(|candidate| candidate.is_for(request.protocol));
        let mut misses = Vec::new();
        for candidate in mine.take(LOOKED_AT) {
            let conditions = &candidate.conditions;
            let mut lacks: Vec<String> = conditions.failing(request).collect();
            let is_there = conditions.target.is(request);
            if !is_there {
                lacks.insert(0, conditions.target.describe());
            }
            misses.push((
                (!is_there, lacks.len(), candidate.route, candidate.rule),
                lacks,
            ));
        }
        let reason = match misses.is_empty() {
            true => NoMatch::NoRoute,
            false => NoMatch::NoMatch,
        };
        misses.sort_by_key(|(order, _)| *order);
        let near = misses.into_iter().take(NEAREST);
        let nearest = near.filter_map(|((.., route, rule), lacks)| {
            let route = start.index.routes.get(route)?.key.clone();
            Some(NearMiss { route, rule, lacks })
        });
        NotTaken {
            path: start.walk.to_string(),
            reason,
            nearest: nearest.collect(),
        }
    }
}

fn root(name: &Name) -> Walk<'_> {
    let (namespace, name) = name;
    Walk::root(Root::Gateway { namespace, name })
}

//! The search for the rules of one request, on all Gateways that accept it.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use hashbrown::HashSet;

use super::conditions::Subject;
use super::dialect::{Dialect, ListenerIsolation};
use super::hostnames::Specificity;
use super::index::{
    Candidate, DelegatingRule, IndexMatch, IndexRules, Lookup, RouteIndex, RouteMatch, RouteRef,
};
use super::listeners::{ListenerCandidate, ListenerFilter};
use super::patterns::Evaluation;
use super::request::{BadRequest, Protocol, Request, RequestParts};
use super::result::{
    MatchFailure, MatchedRule, NearMiss, NoMatchReason, RoutingOptions, RoutingResult,
};
use super::router::{IndexOwner, RequestRouter};
use crate::model::{Encoded, ListenerSetStep, ObjectKey, Root, Str, TrafficPath};
use crate::store::{BackendRef, NamespacedName, Store};
use crate::topology::mesh::MeshRoute;
use crate::topology::{GatewayNode, RootController, Topology};

/// Maximum number of near misses in a result.
const MAX_NEAR_MISSES: usize = 3;
/// Maximum number of child Routes of all rules of a listener that delegate, each counted for each way to it.
const MAX_CHILD_ROUTES: usize = 20_000;
/// Maximum number of matches that are examined for near misses.
const MAX_EXAMINED_MATCHES: usize = 2_000;

/// The path of a listener or mesh root, with the index of its routes.
pub(super) struct MatchScope<'t> {
    path: TrafficPath<'t>,
    pub index: Arc<RouteIndex>,
    port: Option<u16>,
}

/// The search for one request.
pub(super) struct Search<'a> {
    pub router: &'a RequestRouter,
    pub topology: &'a Topology,
    pub store: &'a Store,
    pub dialect_of: &'a dyn Fn(&RootController) -> &'static Dialect,
    pub parts: &'a RequestParts<'a>,
    pub options: RoutingOptions,
    /// Whether building large indexes is disallowed.
    pub fast_only: bool,
    /// Whether an index was missing because of `fast_only`.
    pub index_missing: Cell<bool>,
    /// Whether a regular expression was needed that was not compiled.
    pub pattern_missing: Cell<bool>,
}

/// The search among the Gateways of one dialect, or in the mesh.
pub(super) struct DialectSearch<'s, 'a> {
    pub search: &'s Search<'a>,
    pub dialect: &'static Dialect,
    pub request: &'s Request,
}

impl<'a> Search<'a> {
    /// The listeners by which the request can enter, of those that an entry point names.
    pub fn filter<'f>(
        &self,
        set: Option<&'f NamespacedName>,
        listener: Option<&'f Str>,
        port: Option<u16>,
    ) -> ListenerFilter<'f> {
        ListenerFilter {
            set,
            listener,
            port,
            protocol: self.parts.protocol,
        }
    }

    /// Searches one Gateway, or all Gateways if `named` is `None`.
    pub fn at_gateways(
        &self,
        named: Option<&NamespacedName>,
        filter: &ListenerFilter<'_>,
        result: &mut RoutingResult,
    ) {
        let gateways = &*self.topology.gateways;
        // The request as each dialect reads it.
        let mut requests = BTreeMap::new();
        let Some(name) = named else {
            for gateway in gateways {
                self.at_gateway(gateway, filter, &mut requests, result);
            }
            return;
        };
        match gateways.get_key_value(name) {
            Some(gateway) => self.at_gateway(gateway, filter, &mut requests, result),
            None => result.failures.push(MatchFailure {
                path: root(name).to_string(),
                reason: NoMatchReason::GatewayNotFound,
                near_misses: Vec::new(),
                dialect: None,
                refusal: None,
            }),
        }
    }

    fn at_gateway(
        &self,
        (name, gateway): (&'a NamespacedName, &'a GatewayNode),
        filter: &ListenerFilter<'_>,
        requests: &mut BTreeMap<&'static str, Result<Request, BadRequest>>,
        result: &mut RoutingResult,
    ) {
        let dialect = self.options.dialect.unwrap_or_else(|| {
            let class = self.topology.classes.get(&gateway.class);
            (self.dialect_of)(&gateway.controller(class))
        });
        let request = requests.entry(&dialect.name);
        match request.or_insert_with(|| Request::read(self.parts, dialect)) {
            Ok(request) => {
                let search = DialectSearch {
                    search: self,
                    dialect,
                    request,
                };
                search.at_gateway(name, gateway, filter, result);
            }
            Err(bad) => {
                let failure = bad_request(root(name), bad, dialect);
                result.failures.push(failure);
            }
        }
    }

    /// Calls a function with the search in the dialect of a Gateway.
    ///
    /// # Errors
    /// The request cannot be read in that dialect.
    pub fn with_dialect<T>(
        &self,
        gateway: &GatewayNode,
        examine: impl FnOnce(&DialectSearch<'_, 'a>) -> T,
    ) -> Result<T, String> {
        let class = self.topology.classes.get(&gateway.class);
        let own = || (self.dialect_of)(&gateway.controller(class));
        self.in_dialect(self.options.dialect.unwrap_or_else(own), examine)
    }

    /// Calls a function with the search in the dialect of the mesh.
    ///
    /// # Errors
    /// The request cannot be read in that dialect.
    pub fn with_mesh_dialect<T>(
        &self,
        examine: impl FnOnce(&DialectSearch<'_, 'a>) -> T,
    ) -> Result<T, String> {
        let dialect = self.options.dialect.unwrap_or(Dialect::specification());
        self.in_dialect(dialect, examine)
    }

    fn in_dialect<T>(
        &self,
        dialect: &'static Dialect,
        examine: impl FnOnce(&DialectSearch<'_, 'a>) -> T,
    ) -> Result<T, String> {
        let request = Request::read(self.parts, dialect).map_err(|bad| bad.to_string())?;
        Ok(examine(&DialectSearch {
            search: self,
            dialect,
            request: &request,
        }))
    }

    /// Searches the routes of a Service for a client. The mesh has the dialect of the specification.
    pub fn in_mesh(
        &self,
        service: &NamespacedName,
        port: Option<u16>,
        client: &str,
        result: &mut RoutingResult,
    ) {
        let dialect = self.options.dialect.unwrap_or(Dialect::specification());
        match Request::read(self.parts, dialect) {
            Ok(request) => {
                let search = DialectSearch {
                    search: self,
                    dialect,
                    request: &request,
                };
                search.in_mesh(service, port, client, result);
            }
            Err(bad) => {
                let failure = bad_request(mesh_root(service, None, client), &bad, dialect);
                result.failures.push(failure);
            }
        }
    }
}

impl<'a> DialectSearch<'_, 'a> {
    fn at_gateway(
        &self,
        name: &'a NamespacedName,
        gateway: &'a GatewayNode,
        filter: &ListenerFilter<'_>,
        result: &mut RoutingResult,
    ) {
        let all = ListenerCandidate::all(self.search.store, name, gateway);
        let mut ports: BTreeMap<u16, Vec<ListenerCandidate<'a>>> = BTreeMap::new();
        for listener in all.iter().filter(|listener| listener.passes(filter)) {
            let on_port = ports.entry(listener.listener.port).or_default();
            on_port.push(*listener);
        }
        if ports.is_empty() {
            let reason = NoMatchReason::ListenerNotFound;
            result.failures.push(self.failure(root(name), reason));
        }
        for (port, listeners) in ports {
            match self.listeners_of_host(listeners) {
                Ok((listeners, isolation)) => {
                    let served = self.hostnames_of_others(&all, port, isolation);
                    let scopes = listeners.iter().map(|listener| {
                        let mut taken = served.clone();
                        taken.remove(listener.hostname());
                        (self.scope(name, listener, port), taken)
                    });
                    self.add_best_match(&scopes.collect::<Vec<_>>(), result);
                }
                Err(reason) => {
                    let failure = self.failure(root(name), reason);
                    // Report one failure for all ports.
                    if !result.failures.contains(&failure) {
                        result.failures.push(failure);
                    }
                }
            }
        }
    }

    /// Returns the listeners of a port that serve the host, from the most specific hostname, and how they
    /// are isolated (specification 12.5).
    pub fn listeners_of_host(
        &self,
        mut listeners: Vec<ListenerCandidate<'a>>,
    ) -> Result<(Vec<ListenerCandidate<'a>>, ListenerIsolation), NoMatchReason> {
        // TLS without a server name matches nothing.
        if self.request.protocol == Protocol::Tls && self.request.host.is_empty() {
            return Err(NoMatchReason::HostnameNotServed);
        }
        let has_tls = listeners
            .iter()
            .any(|one| &*one.listener.protocol != "HTTP");
        let all = listeners.len();
        listeners.retain(|listener| !listener.is_conflicted);
        let conflicted = listeners.is_empty() && all > 0;
        listeners.retain(|listener| listener.accepts_host(&self.request.host));
        listeners.sort_by_key(ListenerCandidate::rank);
        let isolation = self.search.options.listener_isolation;
        let isolation = match isolation.unwrap_or(self.dialect.listener_isolation) {
            ListenerIsolation::EqualHostnames if has_tls => ListenerIsolation::Full,
            isolation => isolation,
        };
        if isolation == ListenerIsolation::Full {
            listeners.truncate(1);
        }
        match (listeners.is_empty(), conflicted) {
            (false, _) => Ok((listeners, isolation)),
            (true, true) => Err(NoMatchReason::ListenerConflicted),
            (true, false) => Err(NoMatchReason::HostnameNotServed),
        }
    }

    /// Returns the hostnames that only their own listener serves: with `EqualHostnames`, those of all
    /// listeners of the port.
    pub fn hostnames_of_others(
        &self,
        all: &[ListenerCandidate<'a>],
        port: u16,
        isolation: ListenerIsolation,
    ) -> HashSet<&'a str> {
        let all = all
            .iter()
            .filter(|_| isolation == ListenerIsolation::EqualHostnames);
        let of_port = all.filter(|one| one.listener.port == port && !one.is_conflicted);
        let hostnames = of_port.map(ListenerCandidate::hostname);
        hostnames.filter(|hostname| !hostname.is_empty()).collect()
    }

    pub fn scope(
        &self,
        name: &'a NamespacedName,
        listener: &ListenerCandidate<'a>,
        port: u16,
    ) -> MatchScope<'a> {
        let routes = || {
            let routes = self.search.topology.routes_of(listener.node).iter();
            let gateway = self.search.topology.gateways.get(name);
            let delegates = gateway.is_some_and(|gateway| gateway.delegates);
            let left = Cell::new(if delegates { MAX_CHILD_ROUTES } else { 0 });
            routes
                .filter_map(|&route| self.route_ref(route, delegates, &left))
                .collect()
        };
        let key = self.search.topology.key(listener.node.node).clone();
        MatchScope {
            path: listener_path(name, listener),
            index: self.index(IndexOwner::Listener(key), listener.hostname(), routes),
            port: Some(port),
        }
    }

    fn index(
        &self,
        owner: IndexOwner,
        hostname: &str,
        routes: impl FnOnce() -> Vec<RouteRef<'a>>,
    ) -> Arc<RouteIndex> {
        let Search {
            router,
            options,
            fast_only,
            index_missing,
            ..
        } = self.search;
        let precedence = options.hostname_precedence;
        let rules = IndexRules {
            dialect: self.dialect,
            precedence: precedence.unwrap_or(self.dialect.hostname_precedence),
        };
        let index = router.index((owner, rules), hostname, *fast_only, routes);
        index.unwrap_or_else(|| {
            index_missing.set(true);
            Arc::default()
        })
    }

    /// A route with its child Routes, if it `delegates` below this Gateway and as long as some are `left` of the number
    /// for a listener. There are as many levels as rules on a path can delegate.
    fn route_ref(&self, route: usize, delegates: bool, left: &Cell<usize>) -> Option<RouteRef<'a>> {
        let topology = self.search.topology;
        let node = topology.routes.get(route)?;
        let store = self.search.store;
        // Requests take the Route that the controller made of it.
        let generated = store.generated(&node.key);
        if generated.is_some_and(|generated| store.get(&generated).is_some()) {
            return None;
        }
        let (entry, route) = (store.get(&node.key)?, store.route(&node.key)?);
        let kind = store.route_kind(&node.key.kind)?;
        let rules = node.rules.iter().enumerate().filter(|_| delegates);
        let rules = rules.filter(|(_, rule)| topology.delegations.is_followed(rule.node));
        let delegating = rules.map(|(number, rule)| {
            let is_bounded = rule.children.len() <= left.get();
            left.set(left.get().saturating_sub(rule.children.len()));
            let children = rule.children.iter().filter(|_| is_bounded);
            DelegatingRule {
                rule: number,
                children: children
                    .filter_map(|&child| self.route_ref(child, delegates, left))
                    .collect(),
                only: topology.delegations.delegates_only(rule.node),
                is_bounded,
            }
        });
        Some(RouteRef {
            key: &node.key,
            kind,
            object: &entry.object,
            route,
            delegating: delegating.collect(),
        })
    }

    /// Searches the routes of a Service for a client: the routes in the client's namespace if any of
    /// them applies to the port or the whole Service, else the producer routes.
    fn in_mesh(
        &self,
        service: &NamespacedName,
        port: Option<u16>,
        client: &str,
        result: &mut RoutingResult,
    ) {
        let topology = self.search.topology;
        let Some((index, routes)) = self.mesh_index(service, port, client) else {
            let path = mesh_root(service, None, client);
            let failure = self.failure(path, NoMatchReason::ServiceNotFound);
            result.failures.push(failure);
            return;
        };
        let parent_port = |key: &ObjectKey| {
            let route = topology.routes.number(key);
            let mut routes = routes.iter().filter(|r| Some(r.route) == route);
            routes.next().and_then(|route| route.port)
        };
        let port_of = |candidate: &RouteMatch| {
            let served = index.routes.get(candidate.route);
            served.and_then(|served| parent_port(&served.key))
        };
        let scope = |attached| MatchScope {
            path: mesh_root(service, attached, client),
            index: Arc::clone(&index),
            port,
        };
        let none_taken = HashSet::new();
        match self
            .find(&index, &none_taken)
            .and_then(|found| found.candidate)
        {
            Some(candidate) => {
                let scope = scope(port_of(candidate.found));
                self.add_match(&scope, candidate, result);
            }
            None => {
                let failure = self.match_failure(&scope(None), &none_taken);
                result.failures.push(failure);
            }
        }
    }

    /// The index of the routes that apply to a port of a Service for a client, and these; `None` if the Service has none.
    pub fn mesh_index(
        &self,
        service: &NamespacedName,
        port: Option<u16>,
        client: &str,
    ) -> Option<(Arc<RouteIndex>, Vec<MeshRoute>)> {
        let root = self.search.topology.roots.get(service);
        let root = root.filter(|root| root.has_routes())?;
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
        let owner = IndexOwner::Service(service.clone(), own, consumer.then(|| client.into()));
        let index = self.index(owner, "", || {
            let routes = routes.iter();
            routes
                .filter_map(|route| self.route_ref(route.route, false, &Cell::new(0)))
                .collect()
        });
        Some((index, routes))
    }

    /// Keeps the routes of the first kind in the order of GEP-1294. UDPRoutes are independent of the
    /// other kinds.
    fn keep_first_kind(&self, routes: &mut Vec<MeshRoute>) {
        const ORDER: [&str; 4] = ["GRPCRoute", "HTTPRoute", "TLSRoute", "TCPRoute"];
        let rank = |route: &MeshRoute| {
            let route = self.search.topology.routes.get(route.route)?;
            let like = self.search.store.route_kind(&route.key.kind)?.kind;
            ORDER.iter().position(|kind| *kind == like)
        };
        let first = routes.iter().filter_map(rank).min();
        routes.retain(|route| rank(route).is_none_or(|rank| Some(rank) == first));
    }

    /// Adds the match with the most specific hostname among all scopes, or a failure. Earlier scopes
    /// win ties. Each scope is given with the hostnames that it does not serve.
    fn add_best_match(
        &self,
        scopes: &[(MatchScope<'a>, HashSet<&str>)],
        result: &mut RoutingResult,
    ) {
        let mut best: Option<(Specificity, usize, Option<Candidate<'_>>)> = None;
        for (at, (scope, taken)) in scopes.iter().enumerate() {
            if let Some(found) = self.find(&scope.index, taken)
                && best.is_none_or(|(most, ..)| found.specificity > most)
            {
                best = Some((found.specificity, at, found.candidate));
            }
        }
        let at = best.map_or(0, |(_, at, _)| at);
        match (scopes.get(at), best.and_then(|(.., candidate)| candidate)) {
            (Some((scope, _)), Some(candidate)) => {
                self.add_match(scope, candidate, result);
            }
            (Some((scope, taken)), None) => {
                result.failures.push(self.match_failure(scope, taken));
            }
            (None, _) => {}
        }
    }

    /// Returns the match that the request takes. A gRPC call that no GRPCRoute takes is matched as an
    /// HTTP request.
    pub fn find<'i>(&self, index: &'i RouteIndex, taken: &HashSet<&str>) -> Option<IndexMatch<'i>> {
        let evaluation = self.evaluation();
        let lookup = Lookup {
            request: self.request,
            dialect: self.dialect,
            evaluation: &evaluation,
        };
        let result = index.find(lookup, taken);
        let has_match = result.is_some_and(|found| found.candidate.is_some());
        if has_match || self.request.protocol != Protocol::Grpc {
            return result;
        }
        let request = &self.request.as_http();
        index.find(Lookup { request, ..lookup }, taken)
    }

    /// What the search did not need to compile stays so: a description is not worth it.
    pub fn describing<'e>(&'e self, was_missing: &'e Cell<bool>) -> Evaluation<'e> {
        Evaluation {
            may_compile: false,
            was_missing,
            ..self.evaluation()
        }
    }

    /// Regular expressions are compiled where the caller can wait for it.
    pub fn evaluation(&self) -> Evaluation<'_> {
        Evaluation {
            patterns: self.search.router.patterns(),
            may_compile: !self.search.fast_only,
            was_missing: &self.search.pattern_missing,
        }
    }

    /// Adds the rule of a match, or a failure if it is not known whether it takes the request, or if the rule delegates
    /// and it is not decided which child Route does.
    fn add_match(
        &self,
        scope: &MatchScope<'_>,
        candidate: Candidate<'_>,
        result: &mut RoutingResult,
    ) {
        let Some(matched) = self.matched_rule(scope, candidate.found) else {
            return;
        };
        let reason = match candidate {
            _ if candidate.is_undecided => NoMatchReason::RegexNotEvaluated,
            _ if candidate.found.is_undecided => NoMatchReason::DelegationNotFollowed,
            _ => {
                result.matched.push(matched);
                return;
            }
        };
        result.failures.push(MatchFailure {
            path: matched.path,
            ..self.failure(scope.path, reason)
        });
    }

    /// Appends the steps of a rule to the name of a path.
    fn write_rule(
        &self,
        scope: &MatchScope<'_>,
        (route, rule): (usize, u32),
        path: &mut String,
    ) -> Option<()> {
        let topology = self.search.topology;
        let key = &scope.index.routes.get(route)?.key;
        let node = topology.routes.with_key(key)?;
        let ObjectKey {
            kind,
            namespace,
            name,
        } = key;
        // Writing to a String does not fail.
        let _ = write!(path, "/routes/{}/{namespace}/{name}/rules/", kind.short());
        let _ = match &node.rules.get(rule as usize)?.name {
            Some(name) => write!(path, "{name}"),
            None => write!(path, "#{rule}"),
        };
        Some(())
    }

    fn matched_rule(&self, scope: &MatchScope<'_>, candidate: &RouteMatch) -> Option<MatchedRule> {
        let key = &scope.index.routes.get(candidate.route)?.key;
        let mut path = scope.path.to_string();
        let above = candidate
            .delegated
            .iter()
            .flat_map(|delegated| &delegated.above);
        for &(route, rule) in above.chain([&(candidate.route, candidate.rule)]) {
            self.write_rule(scope, (route, rule), &mut path)?;
        }
        Some(MatchedRule {
            path,
            port: scope.port,
            rule: candidate.rule,
            at: candidate.at,
            matched: candidate
                .conditions
                .describe(&scope.index.routes.get(candidate.route)?.patterns),
            backends: self.backends(key, candidate.rule),
            dialect: self.dialect,
            refusal: self.request.refusal,
        })
    }

    /// Returns the backendRefs of a rule with their weights.
    fn backends(&self, route: &ObjectKey, rule: u32) -> Vec<(BackendRef, u32)> {
        let entry = self.search.store.get(route);
        let spec = entry.map_or(Encoded::EMPTY_OBJECT, |entry| entry.object.body.spec());
        let mut rules = spec.items_of("rules");
        let rule = rules.nth(rule as usize);
        let default = self.search.store.default_backend(&route.kind);
        let weight = |value: Encoded<'_>| value.get("weight").map_or(Some(1), Encoded::unsigned);
        let read = |value: Encoded<'_>| {
            let weight = u32::try_from(weight(value).unwrap_or_default());
            let reference = BackendRef::read(value, &route.namespace, &default)?;
            Some((reference, weight.unwrap_or(u32::MAX)))
        };
        let references = rule
            .into_iter()
            .flat_map(|rule| rule.items_of("backendRefs"));
        references.filter_map(read).collect()
    }

    /// Returns the failure of a scope, with the nearest matches.
    fn match_failure(&self, scope: &MatchScope<'_>, taken: &HashSet<&str>) -> MatchFailure {
        let request = self.request;
        let all = scope.index.of_host(&request.host, self.dialect, taken);
        let applicable = all.filter(|candidate| candidate.is_for(request.protocol));
        let mut misses = Vec::new();
        let was_missing = Cell::new(false);
        let evaluation = self.describing(&was_missing);
        for candidate in applicable.take(MAX_EXAMINED_MATCHES) {
            let Some(route) = scope.index.routes.get(candidate.route) else {
                continue;
            };
            let subject = Subject {
                request,
                evaluation: &evaluation,
                patterns: &route.patterns,
            };
            let (path_matches, missing) = candidate.conditions.missing(&subject);
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
            near_misses: near_misses.collect(),
            ..self.failure(scope.path, reason)
        }
    }

    /// Returns a failure without near misses.
    fn failure(&self, path: TrafficPath<'_>, reason: NoMatchReason) -> MatchFailure {
        MatchFailure {
            path: path.to_string(),
            reason,
            near_misses: Vec::new(),
            dialect: Some(self.dialect),
            refusal: self.request.refusal,
        }
    }
}

/// Returns the failure of a request that cannot be read in a dialect.
fn bad_request(path: TrafficPath<'_>, bad: &BadRequest, dialect: &'static Dialect) -> MatchFailure {
    MatchFailure {
        path: path.to_string(),
        reason: bad.into(),
        near_misses: Vec::new(),
        dialect: Some(dialect),
        refusal: None,
    }
}

/// The path of a listener.
pub(super) fn listener_path<'t>(
    name: &'t NamespacedName,
    listener: &ListenerCandidate<'t>,
) -> TrafficPath<'t> {
    let mut path = root(name);
    path.listener_set = listener
        .set
        .map(|(namespace, name)| ListenerSetStep { namespace, name });
    path.listener = Some(&listener.node.name);
    path
}

fn root(name: &NamespacedName) -> TrafficPath<'_> {
    let (namespace, name) = name;
    TrafficPath::root(Root::Gateway { namespace, name })
}

pub(super) fn mesh_root<'p>(
    (namespace, name): &'p NamespacedName,
    port: Option<u16>,
    client: &'p str,
) -> TrafficPath<'p> {
    TrafficPath::root(Root::Mesh {
        client,
        namespace,
        name,
        port,
    })
}

//! An index of the matches of all routes of one listener or Service, by host and path.
//!
//! The order of precedence (Gateway API, HTTPRouteRule `matches`; specification 12.6 to 12.10) is: the most
//! specific hostname; Exact paths, then the longest prefix, then regular expressions from the longest; a
//! method; more headers; more query parameters; the older route; its name; the first rule; the first match.
//! The dialect can change the order.

use std::cmp::Reverse;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use serde_json::Value;

use super::child_routes::{self, ChildKeys};
use super::conditions::{MatchConditions, PathMatcher, StringMatcher, Subject};
use super::dialect::{
    Dialect, GrpcMatches, HostnameFallback, HostnamePrecedence, HttpAndGrpc, RegexOrder, RouteOrder,
};
use super::hostnames::{HostnameSet, Specificity, hosts_of};
use super::patterns::{Evaluation, PatternCache, PatternCollector, RoutePatterns, Verdict};
use super::request::{Protocol, Request};
use crate::model::{Object, ObjectKey, Timestamp};
use crate::store::{Route, RouteKind};
use crate::topology::hostname::intersection;

/// A route of a listener or Service.
#[derive(Clone, Debug)]
pub(super) struct RouteRef<'s> {
    pub key: &'s ObjectKey,
    /// The kind of the Gateway API whose matches it has.
    pub kind: &'static RouteKind,
    pub object: &'s Arc<Object>,
    pub route: &'s Route,
    /// The rules whose requests child Routes take (specification 1.8).
    pub delegating: Vec<DelegatingRule<'s>>,
}

/// A rule that delegates, with its child Routes.
#[derive(Clone, Debug)]
pub(super) struct DelegatingRule<'s> {
    /// Index of the rule in its route.
    pub rule: usize,
    pub children: Vec<RouteRef<'s>>,
    /// Whether the rule has no other backends, and takes no requests itself.
    pub only: bool,
    /// Whether all child Routes are there: a listener has only so many.
    pub is_bounded: bool,
}

/// A route that an index contains.
#[derive(Debug)]
pub(super) struct IndexedRoute {
    pub key: ObjectKey,
    object: Arc<Object>,
    /// The regular expressions of its matches.
    pub patterns: Arc<RoutePatterns>,
}

/// All matches of a listener or Service.
#[derive(Debug, Default)]
pub(super) struct RouteIndex {
    /// The hostname of the listener; empty if it has none.
    hostname: String,
    /// The indexed routes, from the oldest, and then the child Routes.
    pub routes: Vec<IndexedRoute>,
    /// The rules that delegate, sorted: they depend on more than the routes.
    delegations: Vec<Delegation>,
    /// By effective hostname: one table for each specificity of the route's own hostname, from the most
    /// specific.
    hosts: HashMap<String, Vec<(Specificity, MatchTable)>>,
}

/// A rule that delegates: its route and index, whether it only delegates, whether all child Routes are there, and these.
type Delegation = (ObjectKey, usize, bool, bool, Vec<ObjectKey>);

/// The matches for one hostname.
#[derive(Debug, Default)]
struct MatchTable {
    /// All matches, in the order of routes, rules and matches.
    all: Vec<RouteMatch>,
    /// The matches with a fixed path, prefix or call, by key.
    keyed: HashMap<String, Vec<RouteMatch>>,
    /// Length of the longest key in bytes.
    longest: usize,
    /// The matches with a regular expression.
    patterns: Vec<RouteMatch>,
}

/// One match of a rule.
#[derive(Clone, Debug)]
pub(super) struct RouteMatch {
    /// Index of its route in [`RouteIndex::routes`].
    pub route: usize,
    /// Index of its rule in the route.
    pub rule: u32,
    /// Index of the match in the rule; `None` for route kinds without matches.
    pub at: Option<u32>,
    /// The rules that delegate to the route, from the listener down, and the place among all matches of the first.
    pub delegated: Option<Arc<DelegatedMatch>>,
    /// Whether the rule delegates, and it is not decided which child Route takes a request.
    pub is_undecided: bool,
    pub(super) family: TrafficKind,
    pub conditions: Arc<MatchConditions>,
}

/// How a match of a child Route is reached.
#[derive(Debug)]
pub(super) struct DelegatedMatch {
    /// Routes by their index in [`RouteIndex::routes`], each with the index of the rule that delegates.
    pub above: Vec<(usize, u32)>,
    /// The number of the match among those of the first rule.
    pub number: u32,
}

/// The traffic that a route kind matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TrafficKind {
    Http,
    Grpc,
    /// Connections, matched by server name or not at all.
    Stream,
    /// Datagrams.
    Datagram,
}

/// A function that reads a match of a route kind.
type ConditionsReader = fn(&Value, &Dialect, &mut PatternCollector) -> MatchConditions;

/// The sort key of matches with the same path: the smallest one takes precedence. The index of the
/// route encodes age and name.
type Precedence = (Vec<Reverse<usize>>, usize, u32, Option<u32>);

/// What an index depends on besides its routes.
#[derive(Clone, Copy, Debug)]
pub(super) struct IndexRules {
    pub dialect: &'static Dialect,
    /// Which hostnames are compared; a request can choose otherwise than its dialect.
    pub precedence: HostnamePrecedence,
}

/// Where the search for a request in an index ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct IndexMatch<'i> {
    /// The specificity of the hostname.
    pub specificity: Specificity,
    /// The match; `None` if the routes of the hostname have none, and no other hostname is searched.
    pub candidate: Option<Candidate<'i>>,
}

/// A match that takes a request, or that may take it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate<'i> {
    pub found: &'i RouteMatch,
    /// Whether it is not known if the request meets its conditions (specification 12.9).
    pub is_undecided: bool,
}

/// A request and what it takes to find its match.
#[derive(Clone, Copy)]
pub(super) struct Lookup<'l> {
    pub request: &'l Request,
    pub dialect: &'l Dialect,
    pub evaluation: &'l Evaluation<'l>,
}

impl RouteIndex {
    /// Builds the index of the routes of a listener with a hostname (empty if it has none), or of a
    /// Service. Hostnames do not matter in the mesh, where clients can use any name of the Service.
    pub fn of(
        hostname: &str,
        mut routes: Vec<RouteRef<'_>>,
        is_mesh: bool,
        rules: IndexRules,
        patterns: &PatternCache,
    ) -> Self {
        let dialect = rules.dialect;
        routes.sort_by_cached_key(|route_ref| route_ref.order(dialect));
        let mut index = Self {
            hostname: hostname.to_owned(),
            delegations: delegations(&routes),
            ..Self::default()
        };
        let mut used_hosts: [HostnameSet; 2] = Default::default();
        let mut child_keys = ChildKeys::new(&routes);
        for (position, route_ref) in routes.iter().enumerate() {
            let hosts = if is_mesh {
                HashMap::from([(String::new(), Specificity::default())])
            } else {
                route_ref.hosts(hostname, rules.precedence)
            };
            let conflicting = match dialect.http_and_grpc {
                HttpAndGrpc::Oldest => conflicting_hosts(&mut used_hosts, route_ref),
                HttpAndGrpc::HttpFirst => None,
            };
            if let Some([own, other]) = conflicting {
                // The older one of an HTTPRoute and a GRPCRoute with a common host takes precedence.
                if hosts.keys().any(|host| other.overlaps(host)) {
                    continue;
                }
                hosts.keys().for_each(|host| own.add(host));
            }
            let mut candidates =
                route_ref.candidates(position, dialect, child_keys.patterns(position));
            child_routes::expand(&mut candidates, route_ref, &mut child_keys, dialect);
            index.add(candidates, &hosts);
        }
        for tables in index.hosts.values_mut() {
            tables.sort_by_key(|(specificity, _)| Reverse(*specificity));
            tables.iter_mut().for_each(|(_, table)| table.sort(dialect));
        }
        let served = child_keys.into_patterns(patterns);
        let served = served.map(|(route_ref, patterns)| IndexedRoute {
            key: route_ref.key.clone(),
            object: Arc::clone(route_ref.object),
            patterns,
        });
        index.routes = served.collect();
        index
    }

    /// Reports whether an index of `routes` would equal this one.
    pub fn is_of(&self, hostname: &str, routes: &[RouteRef<'_>]) -> bool {
        let own = self.routes.iter().map(|own| (&own.key, &own.object));
        let own: HashMap<&ObjectKey, &Arc<Object>> = own.collect();
        let is_indexed = |route_ref: &RouteRef<'_>| {
            let existing = own.get(route_ref.key);
            existing.is_some_and(|existing| has_same_matches(existing, route_ref.object))
        };
        let indexed = ChildKeys::new(routes).into_routes();
        let as_many = self.hostname == hostname && self.routes.len() == indexed.len();
        as_many && indexed.into_iter().all(is_indexed) && self.delegations == delegations(routes)
    }

    fn add(&mut self, candidates: Vec<RouteMatch>, hosts: &HashMap<String, Specificity>) {
        for (host, &specificity) in hosts {
            let tables = self.hosts.entry(host.clone()).or_default();
            let at = match tables
                .iter()
                .position(|(existing, _)| *existing == specificity)
            {
                Some(at) => at,
                None => {
                    tables.push((specificity, MatchTable::default()));
                    tables.len() - 1
                }
            };
            if let Some((_, table)) = tables.get_mut(at) {
                candidates.iter().for_each(|candidate| table.add(candidate));
            }
        }
    }

    /// Returns the match that takes a request, or the hostname whose routes have none. `taken` are
    /// hostnames that the index does not serve because another listener has them.
    pub fn find(&self, lookup: Lookup<'_>, taken: &HashSet<&str>) -> Option<IndexMatch<'_>> {
        let dialect = lookup.dialect;
        for host in hosts_of(&lookup.request.host) {
            let Some(tables) = self.hosts.get(&host).filter(|_| !taken.contains(&*host)) else {
                continue;
            };
            let mut found = tables.iter();
            let candidate = found.find_map(|(_, table)| table.find(lookup, &self.routes));
            if candidate.is_some() || dialect.hostname_fallback == HostnameFallback::Never {
                return Some(IndexMatch {
                    specificity: Specificity::of(&host),
                    candidate,
                });
            }
        }
        None
    }

    /// Reports whether a route has a match for any host.
    pub fn has_matches_of(&self, route: usize) -> bool {
        let tables = self.hosts.values().flatten();
        let mut all = tables.flat_map(|(_, table)| &table.all);
        all.any(|candidate| candidate.route == route)
    }

    /// Returns all matches that [`Self::find`] may look at.
    pub fn of_host<'i>(
        &'i self,
        host: &str,
        dialect: &Dialect,
        taken: &HashSet<&str>,
    ) -> impl Iterator<Item = &'i RouteMatch> + use<'i> {
        let most = match dialect.hostname_fallback {
            HostnameFallback::LessSpecific => usize::MAX,
            HostnameFallback::Never => 1,
        };
        let hosts = hosts_of(host).filter(|host| !taken.contains(&**host));
        let tables = hosts.filter_map(|host| self.hosts.get(&host)).take(most);
        let tables: Vec<_> = tables.collect();
        tables
            .into_iter()
            .flatten()
            .flat_map(|(_, table)| &table.all)
    }
}

impl MatchTable {
    fn add(&mut self, candidate: &RouteMatch) {
        let key = match &candidate.conditions.path {
            PathMatcher::Exact(path) => Some(format!("={path}")),
            PathMatcher::Prefix(path) => Some(format!("^{path}")),
            PathMatcher::Call(service, method) => call(service.as_ref(), method.as_ref()),
            PathMatcher::Regex(_) => None,
        };
        self.all.push(candidate.clone());
        match key {
            Some(key) => {
                self.longest = self.longest.max(key.len());
                self.keyed.entry(key).or_default().push(candidate.clone());
            }
            None => self.patterns.push(candidate.clone()),
        }
    }

    fn sort(&mut self, dialect: &Dialect) {
        for candidates in self.keyed.values_mut() {
            candidates.sort_by_cached_key(|candidate| candidate.precedence(dialect));
        }
        self.patterns.sort_by_cached_key(|candidate| {
            let length = candidate.conditions.path.length();
            (Reverse(length), candidate.precedence(dialect))
        });
    }

    /// Returns the first match in order of precedence. Skips keys that are longer than the longest key of
    /// the table.
    fn find<'i>(&'i self, lookup: Lookup<'_>, routes: &'i [IndexedRoute]) -> Option<Candidate<'i>> {
        let Lookup {
            request, dialect, ..
        } = lookup;
        let path = &*request.path;
        let mut key = String::new();
        let mut keyed = |parts: [&str; 4]| {
            if parts.iter().map(|part| part.len()).sum::<usize>() > self.longest {
                return None;
            }
            key.clear();
            key.extend(parts);
            first(self.keyed.get(&key)?, lookup, routes)
        };
        let patterns_come_first = dialect.regular_expressions == RegexOrder::BeforePrefixes;
        let patterns = |are_first: bool| match are_first == patterns_come_first {
            true => first(&self.patterns, lookup, routes),
            false => None,
        };
        match request.protocol {
            Protocol::Http => {
                let exact = keyed(["=", path, "", ""]).or_else(|| patterns(true));
                if exact.is_some() {
                    return exact;
                }
                let ends = path.rmatch_indices('/').map(|(at, _)| at);
                let ends = std::iter::once(path.len()).chain(ends);
                let mut prefixes = ends.filter_map(|end| path.get(..end));
                let prefix = prefixes.find_map(|prefix| keyed(["^", prefix, "", ""]));
                prefix.or_else(|| patterns(false))
            }
            Protocol::Grpc => {
                let (service, method) = request.call().unwrap_or_default();
                let exact = keyed(["!", service, "/", method]).or_else(|| patterns(true));
                exact
                    .or_else(|| keyed(["!", service, "/", ""]))
                    .or_else(|| keyed(["!", "", "/", method]))
                    .or_else(|| patterns(false))
                    .or_else(|| keyed(["!", "", "/", ""]))
            }
            Protocol::Tls | Protocol::Tcp | Protocol::Udp => keyed(["^", "", "", ""]),
        }
    }
}

/// Returns the first candidate whose conditions a request meets, or may meet.
fn first<'c>(
    candidates: &'c [RouteMatch],
    lookup: Lookup<'_>,
    routes: &'c [IndexedRoute],
) -> Option<Candidate<'c>> {
    let for_protocol = candidates
        .iter()
        .filter(|candidate| candidate.is_for(lookup.request.protocol));
    for found in for_protocol {
        let Some(route) = routes.get(found.route) else {
            continue;
        };
        let subject = Subject {
            request: lookup.request,
            evaluation: lookup.evaluation,
            patterns: &route.patterns,
        };
        match found.conditions.verdict(&subject) {
            Verdict::Unmet => {}
            verdict => {
                let is_undecided = verdict == Verdict::NotDecided;
                return Some(Candidate {
                    found,
                    is_undecided,
                });
            }
        }
    }
    None
}

/// Reports whether two versions of a route have the same matches: only their status may differ. Labels select child
/// Routes, and annotations say how these match.
fn has_same_matches(one: &Arc<Object>, other: &Arc<Object>) -> bool {
    let same_spec = || one.body.has_same(&other.body, "spec");
    let same_metadata = || one.labels == other.labels && one.annotations == other.annotations;
    Arc::ptr_eq(one, other) || (one.created == other.created && same_metadata() && same_spec())
}

/// The rules of routes and of their child Routes that delegate, sorted.
fn delegations(routes: &[RouteRef<'_>]) -> Vec<Delegation> {
    let mut found = Vec::new();
    let mut pending: Vec<&RouteRef<'_>> = routes.iter().collect();
    while let Some(route_ref) = pending.pop() {
        for rule in &route_ref.delegating {
            let children = rule.children.iter().map(|child| child.key.clone());
            let children: Vec<ObjectKey> = children.collect();
            let key = route_ref.key.clone();
            found.push((key, rule.rule, rule.only, rule.is_bounded, children));
            pending.extend(&rule.children);
        }
    }
    found.sort();
    found.dedup();
    found
}

/// Returns the key of a call; `None` if a part of it is a regular expression.
fn call(service: Option<&StringMatcher>, method: Option<&StringMatcher>) -> Option<String> {
    let part = |text: Option<&StringMatcher>| match text {
        None => Some(String::new()),
        Some(StringMatcher::Exact(text)) => Some(text.clone()),
        Some(StringMatcher::Regex(_)) => None,
    };
    Some(format!("!{}/{}", part(service)?, part(method)?))
}

impl RouteMatch {
    /// Reports whether the match applies to a protocol.
    pub fn is_for(&self, protocol: Protocol) -> bool {
        match protocol {
            Protocol::Http => self.family == TrafficKind::Http,
            Protocol::Grpc => self.family == TrafficKind::Grpc,
            Protocol::Tls | Protocol::Tcp => self.family == TrafficKind::Stream,
            Protocol::Udp => self.family == TrafficKind::Datagram,
        }
    }

    fn precedence(&self, dialect: &Dialect) -> Precedence {
        let criteria = dialect.match_order.iter();
        let counts = criteria.map(|criterion| Reverse(self.conditions.count(*criterion)));
        let counts = counts.collect();
        // A child Route has the place of the rule that delegates to it.
        let delegated = self.delegated.as_ref();
        match delegated.and_then(|found| Some((found.above.first()?, found.number))) {
            Some((&(route, rule), number)) => (counts, route, rule, Some(number)),
            None => (counts, self.route, self.rule, self.at),
        }
    }
}

impl<'s> RouteRef<'s> {
    /// Returns the sort key of the route: the smallest one takes precedence.
    fn order(&self, dialect: &Dialect) -> (bool, Timestamp, [String; 2], &'s ObjectKey) {
        let ObjectKey {
            namespace, name, ..
        } = self.key;
        let names = match dialect.route_order {
            RouteOrder::NamespacedName => [format!("{namespace}/{name}"), String::new()],
            RouteOrder::NamespaceThenName => [namespace.to_string(), name.to_string()],
        };
        let is_grpc = self.kind.kind == "GRPCRoute";
        let created = self.object.created.unwrap_or(Timestamp::LATEST);
        let is_later = is_grpc && dialect.http_and_grpc == HttpAndGrpc::HttpFirst;
        (is_later, created, names, self.key)
    }
}

impl RouteRef<'_> {
    /// The number of routes: this one, and its child Routes for each way to them.
    pub fn size(&self) -> usize {
        let children = self.delegating.iter().flat_map(|rule| &rule.children);
        1 + children.map(RouteRef::size).sum::<usize>()
    }

    /// Returns the effective hostnames of the route. With `Route`, each has the specificity of the most
    /// specific hostname of the route that leads to it.
    fn hosts(
        &self,
        hostname: &str,
        precedence: HostnamePrecedence,
    ) -> HashMap<String, Specificity> {
        let mut result: HashMap<String, Specificity> = HashMap::new();
        let own = self.route.hostnames.iter().map(|name| &**name);
        let none = self.route.hostnames.is_empty().then_some("");
        for name in own.chain(none) {
            if let Some(effective) = intersection(hostname, name) {
                let existing = result.entry(effective.to_owned()).or_default();
                if precedence == HostnamePrecedence::Route {
                    *existing = (*existing).max(Specificity::of(name));
                }
            }
        }
        result
    }

    fn candidates(
        &self,
        position: usize,
        dialect: &Dialect,
        patterns: &mut PatternCollector,
    ) -> Vec<RouteMatch> {
        let (family, read): (_, Option<ConditionsReader>) = match self.kind.kind {
            "HTTPRoute" => (TrafficKind::Http, Some(MatchConditions::http)),
            "GRPCRoute" => match dialect.grpc_matches {
                GrpcMatches::Calls => (TrafficKind::Grpc, Some(MatchConditions::grpc)),
                GrpcMatches::Paths => (TrafficKind::Http, Some(MatchConditions::grpc)),
            },
            "UDPRoute" => (TrafficKind::Datagram, None),
            _ => (TrafficKind::Stream, None),
        };
        let rules = self.object.body.pointer("/spec/rules");
        let rules = rules.as_ref().and_then(Value::as_array);
        let mut result = Vec::new();
        for rule in 0..self.route.rules.len() {
            let value = rules.and_then(|rules| rules.get(rule));
            let matches = value.and_then(|rule| rule.get("matches"));
            let matches = matches.and_then(Value::as_array).filter(|m| !m.is_empty());
            // A rule without matches has one match without conditions.
            let none = [Value::Null];
            let matches = matches.map_or(&none[..], Vec::as_slice);
            for (at, value) in (0..).zip(matches) {
                result.push(RouteMatch {
                    route: position,
                    rule: u32::try_from(rule).unwrap_or(u32::MAX),
                    at: read.map(|_| at),
                    delegated: None,
                    is_undecided: false,
                    family,
                    conditions: Arc::new(
                        read.map(|read| read(value, dialect, patterns))
                            .unwrap_or_default(),
                    ),
                });
            }
        }
        result
    }
}

/// Returns the hostnames of the route's own kind, and of the kind that it cannot share hosts with.
/// `None` for kinds without such a restriction.
fn conflicting_hosts<'t>(
    used_hosts: &'t mut [HostnameSet; 2],
    route_ref: &RouteRef<'_>,
) -> Option<[&'t mut HostnameSet; 2]> {
    let [http, grpc] = used_hosts;
    match route_ref.kind.kind {
        "HTTPRoute" => Some([http, grpc]),
        "GRPCRoute" => Some([grpc, http]),
        _ => None,
    }
}

//! The matches of all routes that serve at one place, found by host and path and not by looking
//! through them.
//!
//! What comes first (Gateway API, HTTPRouteRule `matches`): the hostname that says most; Exact paths,
//! then the longest prefix, then regular expressions, which is our choice; then a method, more
//! headers, more query parameters, the older route, its name, the first rule, the first match. Of
//! regular expressions the longer one.

use std::cmp::Reverse;
use std::sync::Arc;

use hashbrown::HashMap;
use serde_json::Value;

use super::conditions::{MatchConditions, PathMatcher, StringMatcher};
use super::hostnames::{HostnameSet, Specificity, hosts_of};
use super::request::{Protocol, Request};
use crate::model::{Object, ObjectKey, Timestamp};
use crate::store::Route;
use crate::topology::hostname::intersection;

/// A route that serves at a place.
#[derive(Clone, Copy, Debug)]
pub(super) struct RouteRef<'s> {
    pub key: &'s ObjectKey,
    pub object: &'s Arc<Object>,
    pub route: &'s Route,
}

/// A route that an index was made of.
#[derive(Debug)]
pub(super) struct IndexedRoute {
    pub key: ObjectKey,
    object: Arc<Object>,
}

/// All matches at a place.
#[derive(Debug, Default)]
pub(super) struct RouteIndex {
    /// The place's own hostname.
    hostname: String,
    /// What it was made of, from the oldest route on.
    pub routes: Vec<IndexedRoute>,
    /// By hostname: what routes themselves name, from the one that says most.
    hosts: HashMap<String, Vec<(Specificity, MatchTable)>>,
}

/// The matches of one hostname.
#[derive(Debug, Default)]
struct MatchTable {
    /// In the order of routes, rules and matches.
    all: Vec<RouteMatch>,
    keyed: HashMap<String, Vec<RouteMatch>>,
    /// Bytes of the longest key.
    longest: usize,
    patterns: Vec<RouteMatch>,
}

/// A match.
#[derive(Clone, Debug)]
pub(super) struct RouteMatch {
    /// Its route's place among the routes.
    pub route: usize,
    /// The index of its rule.
    pub rule: u32,
    /// Its index in the rule; none for kinds without matches.
    pub at: Option<u32>,
    family: TrafficKind,
    pub conditions: Arc<MatchConditions>,
}

/// What routes of a kind match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TrafficKind {
    Http,
    Grpc,
    /// Connections, by their server name or not at all.
    Stream,
    /// Packets.
    Datagram,
}

/// Reads a match of a kind.
type ConditionsReader = fn(&Value) -> MatchConditions;

/// How candidates of one target follow each other; the routes stand in order already.
type Precedence = (
    bool,
    Reverse<usize>,
    Reverse<usize>,
    usize,
    u32,
    Option<u32>,
);

impl RouteIndex {
    /// The index of some routes at a place with a hostname, which is empty if it has none. In the
    /// mesh, where the Service is called by whatever name, hostnames do not count.
    pub fn of(hostname: &str, mut routes: Vec<RouteRef<'_>>, is_mesh: bool) -> Self {
        routes.sort_by_cached_key(|route_ref| {
            let ObjectKey {
                namespace, name, ..
            } = &route_ref.key;
            let created = route_ref.object.created.unwrap_or(Timestamp(i64::MAX));
            (created, format!("{namespace}/{name}"), route_ref.key)
        });
        let mut index = Self {
            hostname: hostname.to_owned(),
            ..Self::default()
        };
        let mut taken: [HostnameSet; 2] = Default::default();
        for (position, route_ref) in routes.iter().enumerate() {
            let hosts = if is_mesh {
                HashMap::from([(String::new(), Specificity::default())])
            } else {
                route_ref.hosts(hostname)
            };
            if let Some([own, other]) = both(&mut taken, route_ref) {
                // An older route of the other kind has a host in common: this one does not serve.
                if hosts.keys().any(|host| other.overlaps(host)) {
                    continue;
                }
                hosts.keys().for_each(|host| own.add(host));
            }
            index.add(position, route_ref, &hosts);
        }
        for tables in index.hosts.values_mut() {
            tables.sort_by_key(|(specificity, _)| Reverse(*specificity));
            tables.iter_mut().for_each(|(_, table)| table.sort());
        }
        let served = routes.iter().map(|route_ref| IndexedRoute {
            key: route_ref.key.clone(),
            object: Arc::clone(route_ref.object),
        });
        index.routes = served.collect();
        index
    }

    /// Whether it would be the same of other routes.
    pub fn is_of(&self, hostname: &str, routes: &[RouteRef<'_>]) -> bool {
        let own = self.routes.iter().map(|own| (&own.key, &own.object));
        let own: HashMap<&ObjectKey, &Arc<Object>> = own.collect();
        let is_known = |route_ref: &RouteRef<'_>| {
            let known = own.get(route_ref.key);
            known.is_some_and(|known| matches_alike(known, route_ref.object))
        };
        let as_many = self.hostname == hostname && self.routes.len() == routes.len();
        as_many && routes.iter().all(is_known)
    }

    fn add(
        &mut self,
        position: usize,
        route_ref: &RouteRef<'_>,
        hosts: &HashMap<String, Specificity>,
    ) {
        let candidates = route_ref.candidates(position);
        for (host, &specificity) in hosts {
            let tables = self.hosts.entry(host.clone()).or_default();
            let at = match tables.iter().position(|(known, _)| *known == specificity) {
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

    /// The match that a request takes. With `by_route`, of routes whose hostnames come to the same
    /// here, those go first that say more themselves (Gateway API 1.7).
    pub fn find(&self, request: &Request, by_route: bool) -> Option<(Specificity, &RouteMatch)> {
        for host in hosts_of(&request.host) {
            let Some(tables) = self.hosts.get(&host) else {
                continue;
            };
            let mut found = tables.iter().filter_map(|(_, table)| table.find(request));
            let found = if by_route {
                found.next()
            } else {
                found.min_by_key(|(rank, candidate)| (*rank, candidate.precedence()))
            };
            if let Some((_, candidate)) = found {
                return Some((Specificity::of(&host), candidate));
            }
        }
        None
    }

    /// All matches that a request's host leads to.
    pub fn of_host<'i>(&'i self, host: &str) -> impl Iterator<Item = &'i RouteMatch> + use<'i> {
        let hosts: Vec<String> = hosts_of(host).collect();
        let tables = hosts.into_iter().filter_map(|host| self.hosts.get(&host));
        tables.flatten().flat_map(|(_, table)| &table.all)
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

    fn sort(&mut self) {
        for candidates in self.keyed.values_mut() {
            candidates.sort_by_key(RouteMatch::precedence);
        }
        let patterns = &mut self.patterns;
        patterns.sort_by_key(|c| (Reverse(c.conditions.path.length()), c.precedence()));
    }

    /// The first match, and how many steps lead to it. Keys are written one after the other, and
    /// none that is longer than all that there are.
    fn find(&self, request: &Request) -> Option<(usize, &RouteMatch)> {
        let path = &*request.path;
        let mut key = String::new();
        let mut keyed = |parts: [&str; 4]| {
            if parts.iter().map(|part| part.len()).sum::<usize>() > self.longest {
                return None;
            }
            key.clear();
            key.extend(parts);
            first(self.keyed.get(&key)?, request)
        };
        let patterns = || first(&self.patterns, request);
        match request.protocol {
            Protocol::Http => {
                if let Some(found) = keyed(["=", path, "", ""]) {
                    return Some((0, found));
                }
                let ends = path.rmatch_indices('/').map(|(at, _)| at);
                let ends = std::iter::once(path.len()).chain(ends);
                let prefixes = ends.filter_map(|end| path.get(..end));
                let mut prefixes = (1..).zip(prefixes);
                let prefix =
                    prefixes.find_map(|(rank, prefix)| Some((rank, keyed(["^", prefix, "", ""])?)));
                prefix.or_else(|| patterns().map(|found| (usize::MAX, found)))
            }
            Protocol::Grpc => {
                let (service, method) = request.call().unwrap_or_default();
                let named = [[service, method], [service, ""], ["", method]];
                let mut named = (0..).zip(named);
                let found = named.find_map(|(rank, [service, method])| {
                    Some((rank, keyed(["!", service, "/", method])?))
                });
                found
                    .or_else(|| patterns().map(|found| (3, found)))
                    .or_else(|| keyed(["!", "", "/", ""]).map(|found| (4, found)))
            }
            Protocol::Tls | Protocol::Tcp | Protocol::Udp => {
                keyed(["^", "", "", ""]).map(|found| (0, found))
            }
        }
    }
}

/// The first of some candidates that a request meets.
fn first<'c>(candidates: &'c [RouteMatch], request: &Request) -> Option<&'c RouteMatch> {
    let mut candidates = candidates.iter();
    candidates.find(|candidate| {
        let conditions = &candidate.conditions;
        candidate.is_for(request.protocol)
            && conditions.path.is(request)
            && conditions.are_met(request)
    })
}

/// Whether two versions of a route match the same: their statuses say nothing.
fn matches_alike(one: &Arc<Object>, other: &Arc<Object>) -> bool {
    let same_spec = || one.body.get("spec") == other.body.get("spec");
    Arc::ptr_eq(one, other) || (one.created == other.created && same_spec())
}

/// The key of a call; none if a part of it is a regular expression.
fn call(service: Option<&StringMatcher>, method: Option<&StringMatcher>) -> Option<String> {
    let part = |text: Option<&StringMatcher>| match text {
        None => Some(String::new()),
        Some(StringMatcher::Exact(text)) => Some(text.clone()),
        Some(StringMatcher::Regex(_)) => None,
    };
    Some(format!("!{}/{}", part(service)?, part(method)?))
}

impl RouteMatch {
    /// Whether requests of a protocol may take it.
    pub fn is_for(&self, protocol: Protocol) -> bool {
        match protocol {
            Protocol::Http => self.family == TrafficKind::Http,
            Protocol::Grpc => self.family == TrafficKind::Grpc,
            Protocol::Tls | Protocol::Tcp => self.family == TrafficKind::Stream,
            Protocol::Udp => self.family == TrafficKind::Datagram,
        }
    }

    fn precedence(&self) -> Precedence {
        let (headers, parameters) = self.conditions.counts();
        let has_method = self.conditions.method.is_some();
        let (headers, parameters) = (Reverse(headers), Reverse(parameters));
        (
            !has_method,
            headers,
            parameters,
            self.route,
            self.rule,
            self.at,
        )
    }
}

impl RouteRef<'_> {
    /// Its hostnames here, and what says most of what it names itself for each.
    fn hosts(&self, hostname: &str) -> HashMap<String, Specificity> {
        let mut found: HashMap<String, Specificity> = HashMap::new();
        let own = self.route.hostnames.iter().map(|name| &**name);
        let none = self.route.hostnames.is_empty().then_some("");
        for name in own.chain(none) {
            if let Some(both) = intersection(hostname, name) {
                let known = found.entry(both.to_owned()).or_default();
                *known = (*known).max(Specificity::of(name));
            }
        }
        found
    }

    fn candidates(&self, position: usize) -> Vec<RouteMatch> {
        let (family, read): (_, Option<ConditionsReader>) = match &*self.key.kind.kind {
            "HTTPRoute" => (TrafficKind::Http, Some(MatchConditions::http)),
            "GRPCRoute" => (TrafficKind::Grpc, Some(MatchConditions::grpc)),
            "UDPRoute" => (TrafficKind::Datagram, None),
            _ => (TrafficKind::Stream, None),
        };
        let rules = self
            .object
            .body
            .pointer("/spec/rules")
            .and_then(Value::as_array);
        let mut found = Vec::new();
        for rule in 0..self.route.rules.len() {
            let value = rules.and_then(|rules| rules.get(rule));
            let matches = value.and_then(|rule| rule.get("matches"));
            let matches = matches.and_then(Value::as_array).filter(|m| !m.is_empty());
            // A rule without matches has one that asks for nothing.
            let none = [Value::Null];
            let matches = matches.map_or(&none[..], Vec::as_slice);
            for (at, value) in (0..).zip(matches) {
                found.push(RouteMatch {
                    route: position,
                    rule: u32::try_from(rule).unwrap_or(u32::MAX),
                    at: read.map(|_| at),
                    family,
                    conditions: Arc::new(read.map(|read| read(value)).unwrap_or_default()),
                });
            }
        }
        found
    }
}

/// The hostnames of a route's own kind and of the kind that it may not share one with, if there is
/// one.
fn both<'t>(
    taken: &'t mut [HostnameSet; 2],
    route_ref: &RouteRef<'_>,
) -> Option<[&'t mut HostnameSet; 2]> {
    let [http, grpc] = taken;
    match &*route_ref.key.kind.kind {
        "HTTPRoute" => Some([http, grpc]),
        "GRPCRoute" => Some([grpc, http]),
        _ => None,
    }
}

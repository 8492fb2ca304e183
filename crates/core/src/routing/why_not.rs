//! Why a rule does not take a request: the first condition that fails, at each listener or Service that could send it there.

use std::cmp::Reverse;
use std::sync::Arc;

use hashbrown::HashSet;

use super::conditions::{PathMatcher, Subject};
use super::dialect::{Dialect, MatchCriterion};
use super::hostnames::matches;
use super::index::{RouteIndex, RouteMatch};
use super::listeners::{ListenerCandidate, ListenerFilter};
use super::request::{EntryPoint, Protocol};
use super::result::NoMatchReason;
use super::search::{DialectSearch, MatchScope, Search, listener_path, mesh_root};
use crate::model::{ObjectKey, Str};
use crate::store::NamespacedName;
use crate::topology::GatewayNode;

/// Maximum number of rules that are examined, each at all listeners of its route.
const MAX_RULES: usize = 64;
/// Maximum number of answers.
const MAX_ANSWERS: usize = 64;

/// The rules that a question is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleTarget {
    /// The route; all if `None`.
    pub route: Option<ObjectKey>,
    /// The name of the rule, or `#` and its index; all rules if `None`.
    pub rule: Option<Str>,
}

/// Why a rule does not take a request at a listener or Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleMiss {
    /// The route.
    pub route: ObjectKey,
    /// Index of the rule.
    pub rule: u32,
    /// The name of the rule.
    pub name: Option<Str>,
    /// Name of the path of the listener or Service; empty if the route is attached to none.
    pub path: String,
    /// The first condition that fails.
    pub reason: RuleMissReason,
    /// Human-readable facts: the hostnames, the unmet conditions, or the match that takes the request instead.
    pub details: Vec<String>,
}

/// The first condition that fails, in the order in which they are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleMissReason {
    /// None fails: the rule takes the request.
    TakesRequest,
    /// No listener and no Service takes the route.
    NotAttached,
    /// The request does not enter at this listener: its name, port or protocol is another.
    NotAddressed,
    /// The host of the request is that of another listener, or of none.
    ListenerHostname,
    /// The hostnames of the route do not include the host, or another route of the host takes it whole.
    RouteHostname,
    /// The request does not meet a match of the rule.
    UnmetCondition,
    /// Another match comes first.
    OtherMatchFirst,
    /// Requests do not pass the rule, because it delegates them, or it is not known whether they do.
    NotDecided,
}

/// A rule of a route.
#[derive(Clone, Copy)]
struct RuleAt<'t> {
    route: &'t ObjectKey,
    /// The number of the route in the topology.
    number: usize,
    index: u32,
    name: Option<&'t Str>,
}

impl RuleMissReason {
    /// Returns the reason in CamelCase.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TakesRequest => "TakesRequest",
            Self::NotAttached => "NotAttached",
            Self::NotAddressed => "NotAddressed",
            Self::ListenerHostname => "ListenerHostname",
            Self::RouteHostname => "RouteHostname",
            Self::UnmetCondition => "UnmetCondition",
            Self::OtherMatchFirst => "OtherMatchFirst",
            Self::NotDecided => "NotDecided",
        }
    }
}

impl RuleAt<'_> {
    fn miss(&self, path: String, reason: RuleMissReason, details: Vec<String>) -> RuleMiss {
        RuleMiss {
            route: self.route.clone(),
            rule: self.index,
            name: self.name.cloned(),
            path,
            reason,
            details,
        }
    }
}

impl Search<'_> {
    /// Returns for each rule, and each listener or Service, the first condition that fails.
    pub fn why_not(&self, entry_point: &EntryPoint, target: &RuleTarget) -> Vec<RuleMiss> {
        let mut found = Vec::new();
        for rule in self.rules(target) {
            let before = found.len();
            match entry_point {
                EntryPoint::Gateway {
                    gateway,
                    set,
                    listener,
                    port,
                } => {
                    let filter = self.filter(set.as_ref(), listener.as_ref(), *port);
                    let gateways = self.topology.gateways.iter();
                    let is_named =
                        |name: &NamespacedName| gateway.as_ref().is_none_or(|one| one == name);
                    for (name, node) in gateways {
                        self.at_gateway_miss(
                            (name, node),
                            is_named(name),
                            &filter,
                            rule,
                            &mut found,
                        );
                    }
                }
                EntryPoint::Service {
                    service,
                    port,
                    client,
                } => found.extend(self.in_mesh_miss(service, *port, client, rule)),
            }
            if found.len() == before {
                found.push(self.not_attached(rule));
            }
            if found.len() >= MAX_ANSWERS {
                break;
            }
        }
        found.truncate(MAX_ANSWERS);
        found
    }

    fn rules<'t>(&'t self, target: &RuleTarget) -> Vec<RuleAt<'t>> {
        let topology = self.topology;
        let is_rule = |name: Option<&Str>, index: usize| match target.rule.as_deref() {
            None => true,
            Some(wanted) => {
                name.is_some_and(|name| **name == *wanted) || wanted == format!("#{index}")
            }
        };
        let all = target.route.is_none().then(|| self.route_keys());
        let keys = all.into_iter().flatten().chain(target.route.clone());
        let numbers = keys.filter_map(|key| topology.routes.number(&key));
        let routes = numbers.filter_map(|at| Some((at, topology.routes.get(at)?)));
        let rules = routes.flat_map(|(at, route)| {
            let rules = route.rules.iter().enumerate();
            let named = rules.filter(|(index, rule)| is_rule(rule.name.as_ref(), *index));
            named.map(move |(index, rule)| RuleAt {
                route: &route.key,
                number: at,
                index: u32::try_from(index).unwrap_or(u32::MAX),
                name: rule.name.as_ref(),
            })
        });
        rules.take(MAX_RULES).collect()
    }

    /// The keys of all Routes in order.
    fn route_keys(&self) -> impl Iterator<Item = ObjectKey> {
        let kinds = self.store.kinds();
        let kinds = kinds.filter(|kind| self.store.route_kind(kind).is_some());
        kinds.flat_map(|kind| {
            let names = self.store.of_kind(kind).map(|(name, _)| name);
            names.map(|(namespace, name)| {
                ObjectKey::new(kind.clone(), namespace.clone(), name.clone())
            })
        })
    }

    fn not_attached(&self, rule: RuleAt<'_>) -> RuleMiss {
        let rejected = self.topology.rejected_parents(rule.route).iter();
        let parents = self
            .store
            .route(rule.route)
            .map_or(&[][..], |route| &route.parents);
        let details = rejected.filter_map(|&(at, reason)| {
            let parent = parents.get(at)?;
            let name = format!("{} {}/{}", parent.kind.kind, parent.namespace, parent.name);
            Some(format!(
                "parentRefs[{at}] ({name}): {} ({reason})",
                reason.explain()
            ))
        });
        let route = self.topology.routes.get(rule.number);
        // Requests come to it by the rules that delegate to it (specification 1.8).
        if route.is_some_and(|route| self.topology.delegations.has_node(route.node)) {
            let detail =
                "rules of other Routes delegate to this one: ask for such a rule".to_owned();
            return rule.miss(String::new(), RuleMissReason::NotDecided, vec![detail]);
        }
        let details: Vec<String> = details.collect();
        if details.is_empty() && !parents.is_empty() {
            let detail = "its route is attached to other parents".to_owned();
            return rule.miss(String::new(), RuleMissReason::NotAddressed, vec![detail]);
        }
        rule.miss(String::new(), RuleMissReason::NotAttached, details)
    }

    fn at_gateway_miss(
        &self,
        (name, gateway): (&NamespacedName, &GatewayNode),
        is_named: bool,
        filter: &ListenerFilter<'_>,
        rule: RuleAt<'_>,
        found: &mut Vec<RuleMiss>,
    ) {
        let all = ListenerCandidate::all(self.store, name, gateway);
        let has_route =
            |one: &&ListenerCandidate<'_>| self.topology.is_attached(rule.number, one.node);
        for listener in all.iter().filter(has_route) {
            let path = listener_path(name, listener).to_string();
            if !is_named || !listener.passes(filter) {
                let its = listener.listener;
                let detail = format!(
                    "the listener has port {} and protocol {}",
                    its.port, its.protocol
                );
                found.push(rule.miss(path, RuleMissReason::NotAddressed, vec![detail]));
                continue;
            }
            let examined = self.with_dialect(gateway, |search| {
                search.examine_listener((name, listener), &all, rule)
            });
            let (reason, details) =
                examined.unwrap_or_else(|bad| (RuleMissReason::NotDecided, vec![bad]));
            found.push(rule.miss(path, reason, details));
        }
    }

    fn in_mesh_miss(
        &self,
        service: &NamespacedName,
        port: Option<u16>,
        client: &str,
        rule: RuleAt<'_>,
    ) -> Option<RuleMiss> {
        let examined = self.with_mesh_dialect(|search| {
            let (index, _) = search.mesh_index(service, port, client)?;
            index
                .routes
                .iter()
                .any(|route| route.key == *rule.route)
                .then(|| {
                    let none = HashSet::new();
                    search.examine((&index, &none), rule)
                })
        });
        let path = mesh_root(service, None, client).to_string();
        let (reason, details) = match examined {
            Ok(examined) => examined?,
            Err(bad) => (RuleMissReason::NotDecided, vec![bad]),
        };
        Some(rule.miss(path, reason, details))
    }
}

impl<'a> DialectSearch<'_, 'a> {
    /// Why a rule does not take the request at a listener that the request can enter by.
    fn examine_listener(
        &self,
        (name, listener): (&'a NamespacedName, &ListenerCandidate<'a>),
        all: &[ListenerCandidate<'a>],
        rule: RuleAt<'_>,
    ) -> (RuleMissReason, Vec<String>) {
        let port = listener.listener.port;
        let of_port = all.iter().filter(|other| {
            other.listener.port == port && other.listener.protocol == listener.listener.protocol
        });
        let served = self.listeners_of_host(of_port.copied().collect());
        let (serving, isolation) = match served {
            Ok(found) => found,
            Err(NoMatchReason::HostnameNotServed) => Default::default(),
            Err(reason) => return (RuleMissReason::ListenerHostname, vec![reason.to_string()]),
        };
        if listener.is_conflicted {
            let reason = NoMatchReason::ListenerConflicted;
            return (RuleMissReason::ListenerHostname, vec![reason.to_string()]);
        }
        if !serving
            .iter()
            .any(|other| other.node.node == listener.node.node)
        {
            let detail = match serving.first() {
                Some(other) if listener.accepts_host(&self.request.host) => format!(
                    "the listener `{}` of the port has a more specific hostname (`{}`) and takes the host whole",
                    other.node.name,
                    other.hostname()
                ),
                _ => format!(
                    "the hostname of the listener (`{}`) does not include the host `{}`",
                    listener.hostname(),
                    self.request.host
                ),
            };
            return (RuleMissReason::ListenerHostname, vec![detail]);
        }
        let mut taken = self.hostnames_of_others(all, port, isolation);
        taken.remove(listener.hostname());
        let scope: MatchScope<'a> = self.scope(name, listener, port);
        self.examine((&scope.index, &taken), rule)
    }

    /// Why a rule does not take the request among the routes of an index.
    fn examine(
        &self,
        (index, taken): (&Arc<RouteIndex>, &HashSet<&str>),
        rule: RuleAt<'_>,
    ) -> (RuleMissReason, Vec<String>) {
        let request = self.request;
        let own = index
            .routes
            .iter()
            .position(|route| route.key == *rule.route);
        let is_own =
            |candidate: &RouteMatch| Some(candidate.route) == own && candidate.rule == rule.index;
        let all: Vec<&RouteMatch> = index.of_host(&request.host, self.dialect, taken).collect();
        let mut candidates = all.iter().filter(|candidate| is_own(candidate)).peekable();
        let (Some(own), true) = (own, candidates.peek().is_some()) else {
            return self.without_candidates(index, own, rule.route);
        };
        let winner = self.find(index, taken).and_then(|found| found.candidate);
        if winner.is_some_and(|winner| is_own(winner.found)) {
            let undecided =
                winner.is_some_and(|winner| winner.is_undecided || winner.found.is_undecided);
            return match undecided {
                true => (RuleMissReason::NotDecided, Vec::new()),
                false => (RuleMissReason::TakesRequest, Vec::new()),
            };
        }
        let (nearest, missing) = match self.nearest(index, own, candidates.copied()) {
            Some(found) => found,
            None => {
                return (
                    RuleMissReason::NotDecided,
                    vec!["requests of this protocol do not match it".to_owned()],
                );
            }
        };
        if !missing.is_empty() {
            return (RuleMissReason::UnmetCondition, missing);
        }
        let details = winner.and_then(|winner| {
            let route = index.routes.get(winner.found.route)?;
            let described = winner.found.conditions.describe(&route.patterns);
            let why = first_by(winner.found, nearest, self.dialect);
            Some(format!(
                "{}, rule {}, comes first: {described}; {why}",
                route.key, winner.found.rule
            ))
        });
        (
            RuleMissReason::OtherMatchFirst,
            details.into_iter().collect(),
        )
    }

    /// Why a route has no match for the host: its hostnames, or other Routes have its place.
    fn without_candidates(
        &self,
        index: &RouteIndex,
        own: Option<usize>,
        key: &ObjectKey,
    ) -> (RuleMissReason, Vec<String>) {
        let route = self.search.store.route(key);
        let names = route.map_or(&[][..], |route| &route.hostnames);
        let host = &self.request.host;
        let serves = names.is_empty() || names.iter().any(|name| matches(Some(name), host));
        if serves && !own.is_some_and(|own| index.has_matches_of(own)) {
            let detail = "its requests go to other Routes: a rule delegates them, a Route of another kind has the host, or \
                          the controller made another Route of it";
            return (RuleMissReason::NotDecided, vec![detail.to_owned()]);
        }
        (RuleMissReason::RouteHostname, vec![self.hostnames(key)])
    }

    /// The match with the fewest unmet conditions, and these.
    fn nearest<'i>(
        &self,
        index: &RouteIndex,
        own: usize,
        candidates: impl Iterator<Item = &'i RouteMatch>,
    ) -> Option<(&'i RouteMatch, Vec<String>)> {
        let route = index.routes.get(own)?;
        // The caller waits: regular expressions are compiled, so that what they decide is known.
        let evaluation = self.evaluation();
        let protocol = self.request.protocol;
        // A call that no GRPCRoute takes is matched as an HTTP request.
        let as_http = (protocol == Protocol::Grpc).then(|| self.request.as_http());
        let read_for = |candidate: &RouteMatch| match &as_http {
            _ if candidate.is_for(protocol) => Some(self.request),
            Some(as_http) if candidate.is_for(Protocol::Http) => Some(as_http),
            _ => None,
        };
        let for_protocol = candidates.filter_map(|one| Some((one, read_for(one)?)));
        let unmet = for_protocol.map(|(candidate, request)| {
            let subject = Subject {
                request,
                evaluation: &evaluation,
                patterns: &route.patterns,
            };
            let (_, missing) = candidate.conditions.missing(&subject);
            (candidate, missing)
        });
        unmet.min_by_key(|(_, missing)| missing.len())
    }

    /// What is known of the hostnames of a route that does not take the host.
    fn hostnames(&self, key: &ObjectKey) -> String {
        let route = self.search.store.route(key);
        let names = route.map_or(&[][..], |route| &route.hostnames);
        match names.is_empty() {
            true => "a route with a more specific hostname takes the host whole".to_owned(),
            false => {
                let names: Vec<String> = names
                    .iter()
                    .take(8)
                    .map(|name| format!("`{name}`"))
                    .collect();
                format!(
                    "the hostnames of the route ({}) do not include `{}`, or a route with a more specific one takes it whole",
                    names.join(", "),
                    self.request.host
                )
            }
        }
    }
}

/// Why one match comes before another whose conditions the request meets as well.
fn first_by(winner: &RouteMatch, other: &RouteMatch, dialect: &Dialect) -> String {
    let (one, two) = (&winner.conditions, &other.conditions);
    if path_rank(&one.path) != path_rank(&two.path) {
        return "its path condition is more specific".to_owned();
    }
    let differs = |criterion: &&MatchCriterion| one.count(**criterion) != two.count(**criterion);
    if let Some(criterion) = dialect.match_order.iter().find(differs) {
        let what = match criterion {
            MatchCriterion::PathLength => "its path is longer",
            MatchCriterion::Method => "it has a condition on the method",
            MatchCriterion::Headers
            | MatchCriterion::HeadersAndMethod
            | MatchCriterion::ExactHeadersAndMethod => "it has more conditions on headers",
            MatchCriterion::QueryParameters | MatchCriterion::ExactQueryParameters => {
                "it has more conditions on query parameters"
            }
        };
        return what.to_owned();
    }
    match winner.route == other.route {
        true => "it is an earlier rule of the same route".to_owned(),
        false => {
            "its hostname is more specific, or its route is older or the first by name".to_owned()
        }
    }
}

/// Orders path conditions as the Gateway API does: exact, then from the longest prefix.
fn path_rank(path: &PathMatcher) -> (u8, Reverse<usize>) {
    match path {
        PathMatcher::Exact(path) => (0, Reverse(path.len())),
        PathMatcher::Call(service, method) => {
            let parts = usize::from(service.is_some()) + usize::from(method.is_some());
            (0, Reverse(parts))
        }
        PathMatcher::Prefix(path) => (1, Reverse(path.len())),
        PathMatcher::Regex(_) => (2, Reverse(0)),
    }
}

//! Dialects: how the proxies of a project find the rule of a request, where the Gateway API leaves it open or the
//! project does otherwise (specification 12).

use std::sync::LazyLock;

use serde::Deserialize;

use super::request::{Protocol, RequestParts};
use crate::model::{InternalError, Str};
use crate::profile::matches_pattern;

/// The built-in dialects.
const BUILT_IN: &str = include_str!("dialects.yaml");

/// The methods that Envoy's parser of HTTP/1.1 knows, sorted.
const METHODS: [&str; 34] = [
    "ACL",
    "BIND",
    "CHECKOUT",
    "CONNECT",
    "COPY",
    "DELETE",
    "GET",
    "HEAD",
    "LINK",
    "LOCK",
    "MERGE",
    "MKACTIVITY",
    "MKCALENDAR",
    "MKCOL",
    "MOVE",
    "MSEARCH",
    "NOTIFY",
    "OPTIONS",
    "PATCH",
    "POST",
    "PROPFIND",
    "PROPPATCH",
    "PURGE",
    "PUT",
    "REBIND",
    "REPORT",
    "SEARCH",
    "SOURCE",
    "SUBSCRIBE",
    "TRACE",
    "UNBIND",
    "UNLINK",
    "UNLOCK",
    "UNSUBSCRIBE",
];

/// How requests are read and matched. The default is what the Gateway API specifies (specification 12.2).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Dialect {
    /// The name in requests and answers.
    pub name: String,
    /// The name of the project.
    pub title: String,
    /// The controllers whose Gateways have this dialect: `controllerName`s, in which `*` stands for any characters.
    pub controllers: Vec<String>,
    /// The API group of the project's policies, by which a `ControllerAlias` can name it.
    pub group: String,
    /// Where to look if the most specific hostname has no match (specification 12.6).
    pub hostname_fallback: HostnameFallback,
    /// Which hostnames of routes are compared (specification 12.6).
    pub hostname_precedence: HostnamePrecedence,
    /// Which listeners of a port serve a request (specification 12.5).
    pub listener_isolation: ListenerIsolation,
    /// HTTPRoutes and GRPCRoutes with a common host on one listener (specification 12.7).
    pub http_and_grpc: HttpAndGrpc,
    /// TCPRoutes and UDPRoutes on one listener (specification 1.4).
    pub stream_routes: StreamRoutes,
    /// How the matches of GRPCRoutes are read (specification 12.8).
    pub grpc_matches: GrpcMatches,
    /// Regular expressions among paths (specification 12.9).
    pub regular_expressions: RegexOrder,
    /// The order of matches with the same path, from the most important criterion (specification 12.10).
    pub match_order: Vec<MatchCriterion>,
    /// The order of routes of one age (specification 12.10).
    pub route_order: RouteOrder,
    /// A header that a request repeats (specification 12.11).
    pub repeated_headers: RepeatedHeaders,
    /// Conditions of one match on the same header or query parameter (specification 12.11).
    pub repeated_conditions: RepeatedConditions,
    /// How query parameters are read (specification 12.11).
    pub query: QueryReading,
    /// A dot at the end of the host (specification 12.4).
    pub trailing_dot: TrailingDot,
    /// Hosts that are not valid (specification 12.4).
    pub authority: Authority,
    /// What the proxy refuses before it looks for a rule (specification 12.12).
    pub refuses: Vec<Refusal>,
}

/// Where to look for a match if the most specific hostname with routes has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum HostnameFallback {
    /// Among the routes of less specific hostnames.
    #[default]
    LessSpecific,
    /// Nowhere: each hostname is a virtual host of its own.
    Never,
}

/// Which hostnames are compared for precedence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
pub enum HostnamePrecedence {
    /// The intersections with the listener, then the routes' own hostnames (Gateway API 1.7).
    #[default]
    Route,
    /// The intersections alone.
    Intersection,
}

/// Which listeners of a port serve a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum ListenerIsolation {
    /// The listener with the most specific matching hostname.
    #[default]
    Full,
    /// All listeners without TLS, but no listener serves a hostname that another one has. Listeners with TLS are
    /// chosen by server name, as with `Full`.
    EqualHostnames,
    /// All listeners whose hostname matches.
    None,
}

/// Which TCPRoutes and UDPRoutes of a listener have paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum StreamRoutes {
    /// All: which one is served is not decided.
    #[default]
    All,
    /// The oldest UDPRoute; and the oldest TCPRoute, unless the listener has a TLSRoute. Routes with several rules are
    /// not served.
    OldestAlone,
}

/// How an HTTPRoute and a GRPCRoute with a common host share a listener.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum HttpAndGrpc {
    /// The older route alone is served.
    #[default]
    Oldest,
    /// Both are served; of equal matches those of HTTPRoutes come first.
    HttpFirst,
}

/// How the matches of GRPCRoutes are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum GrpcMatches {
    /// As conditions on gRPC calls: service and method, service, method, any.
    #[default]
    Calls,
    /// As conditions on paths, for all requests: an exact path, a prefix, the end of path and query. The regular
    /// expressions of service and method are put together as they are.
    Paths,
}

/// The place of regular expressions among the path conditions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum RegexOrder {
    /// After prefixes, and before matches of any gRPC call.
    #[default]
    AfterPrefixes,
    /// Between exact paths and prefixes.
    BeforePrefixes,
}

/// A number of a match by which matches are compared: more come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum MatchCriterion {
    /// The characters of the path as it is written.
    PathLength,
    /// The condition on the method.
    Method,
    /// The conditions on headers.
    Headers,
    /// The conditions on headers, method included.
    HeadersAndMethod,
    /// The conditions on headers, method included, that are no regular expressions.
    ExactHeadersAndMethod,
    /// The conditions on query parameters.
    QueryParameters,
    /// The conditions on query parameters that are no regular expressions.
    ExactQueryParameters,
}

/// The order of routes of one age.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum RouteOrder {
    /// By the text `{namespace}/{name}`.
    #[default]
    NamespacedName,
    /// By namespace, then by name.
    NamespaceThenName,
}

/// What a condition on a repeated header is compared with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum RepeatedHeaders {
    /// All values, joined by commas.
    #[default]
    Joined,
    /// Each value: one that meets the condition is enough.
    AnyValue,
}

/// Which of several conditions on one header or query parameter count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum RepeatedConditions {
    /// The first.
    #[default]
    First,
    /// All.
    All,
}

/// How names and values of query parameters are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum QueryReading {
    /// Percent-decoded.
    #[default]
    Decoded,
    /// As they are written.
    Raw,
}

/// A dot at the end of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum TrailingDot {
    /// It is removed.
    #[default]
    Removed,
    /// It is part of the host.
    Kept,
}

/// Which hosts are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum Authority {
    /// Names and addresses, with a port from 0 to 65535 or without.
    #[default]
    Strict,
    /// Any characters of an authority; what follows the last colon is a port and not read.
    Lenient,
}

/// What a proxy refuses before it looks for a rule, as it is installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Refusal {
    /// A header name with an underscore.
    HeaderUnderscores,
    /// A method that is not registered.
    UnknownMethods,
    /// A path or query with characters outside ASCII.
    NonAsciiPaths,
}

impl Default for Dialect {
    fn default() -> Self {
        Self {
            name: "specification".to_owned(),
            title: "Gateway API".to_owned(),
            controllers: Vec::new(),
            group: String::new(),
            hostname_fallback: HostnameFallback::default(),
            hostname_precedence: HostnamePrecedence::default(),
            listener_isolation: ListenerIsolation::default(),
            http_and_grpc: HttpAndGrpc::default(),
            stream_routes: StreamRoutes::default(),
            grpc_matches: GrpcMatches::default(),
            regular_expressions: RegexOrder::default(),
            match_order: vec![
                MatchCriterion::Method,
                MatchCriterion::Headers,
                MatchCriterion::QueryParameters,
            ],
            route_order: RouteOrder::default(),
            repeated_headers: RepeatedHeaders::default(),
            repeated_conditions: RepeatedConditions::default(),
            query: QueryReading::default(),
            trailing_dot: TrailingDot::default(),
            authority: Authority::default(),
            refuses: Vec::new(),
        }
    }
}

impl Refusal {
    /// Describes what is refused.
    pub fn message(self) -> &'static str {
        match self {
            Self::HeaderUnderscores => "a header name has an underscore",
            Self::UnknownMethods => "the method is not one of those that HTTP/1.1 proxies know",
            Self::NonAsciiPaths => {
                "the path has characters outside ASCII that are not percent-encoded"
            }
        }
    }
}

impl Dialect {
    /// The dialect of the Gateway API specification.
    pub fn specification() -> &'static Self {
        static SPECIFICATION: LazyLock<Dialect> = LazyLock::new(Dialect::default);
        &SPECIFICATION
    }

    /// All dialects; the first one is that of the specification.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        static DIALECTS: LazyLock<Vec<Dialect>> =
            LazyLock::new(|| match serde_saphyr::from_str(BUILT_IN) {
                Ok(dialects) => dialects,
                Err(_) => {
                    let _ = InternalError::missing("the built-in dialects");
                    Vec::new()
                }
            });
        std::iter::once(Self::specification()).chain(&*DIALECTS)
    }

    /// Finds a dialect by its name.
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::all().find(|dialect| dialect.name == name)
    }

    /// Returns why the proxy refuses a request before it looks for a rule (specification 12.12). A request that the
    /// proxy accepted is not refused.
    pub(super) fn refusal(&self, parts: &RequestParts<'_>) -> Option<Refusal> {
        let applies = |refusal: &Refusal| match refusal {
            Refusal::HeaderUnderscores => parts.headers.iter().any(|(name, _)| name.contains('_')),
            // HTTP/2 and thus gRPC have no list of methods.
            Refusal::UnknownMethods => {
                parts.protocol == Protocol::Http
                    && !parts.method.is_empty()
                    && METHODS.binary_search(&parts.method).is_err()
            }
            Refusal::NonAsciiPaths => !parts.path.is_ascii(),
        };
        let mut refusals = self.refuses.iter().filter(|_| !parts.is_normalized);
        refusals.find(|refusal| applies(refusal)).copied()
    }

    /// Finds the dialect of a Gateway (specification 12.1). `controllers` are the `controllerName` of its class, or
    /// what a `ControllerAlias` says instead: an API group or another `controllerName`.
    pub fn of_controller(controllers: &[Str]) -> &'static Self {
        let is_meant = |dialect: &&Self, name: &Str| {
            let mut patterns = dialect.controllers.iter();
            (!dialect.group.is_empty() && *dialect.group == **name)
                || patterns.any(|pattern| matches_pattern(pattern, name))
        };
        let mut dialects = Self::all();
        let found = dialects.find(|dialect| controllers.iter().any(|name| is_meant(dialect, name)));
        found.unwrap_or_else(Self::specification)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_built_in_dialects_are_read() {
        let dialects: Vec<Dialect> = serde_saphyr::from_str(BUILT_IN).unwrap();
        assert!(dialects.iter().all(|one| !one.title.is_empty()));
        assert!(dialects.iter().all(|one| !one.controllers.is_empty()));
        let names: BTreeSet<_> = Dialect::all().map(|one| &one.name).collect();
        assert_eq!(names.len(), Dialect::all().count());
        assert_eq!(
            Dialect::named("envoy-gateway").unwrap().title,
            "Envoy Gateway"
        );
    }

    #[test]
    fn methods_are_sorted() {
        assert!(METHODS.is_sorted());
    }

    #[test]
    fn controllers_and_aliases_select_dialects() {
        let of = |name: &str| &*Dialect::of_controller(&[name.into()]).name;
        assert_eq!(
            of("gateway.envoyproxy.io/gatewayclass-controller"),
            "envoy-gateway"
        );
        assert_eq!(of("gateway.envoyproxy.io"), "envoy-gateway");
        assert_eq!(of("example.com/another"), "specification");
        assert_eq!(Dialect::of_controller(&[]).name, "specification");
    }
}

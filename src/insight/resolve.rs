//! Finds the route rule that matches a request, and the effective policies of the rule.

use hashbrown::HashSet;

use super::failure::shortened;
use super::lookup::{find, incomplete_kinds, requested_kinds};
use super::{AccessScope, Failure, QuerySubject, Visibility, parameters};
use crate::api::{decode_policies, v1};
use crate::snapshot::{PathAnswer, Snapshot};
use entail_core::model::{
    GroupKind, ObjectKey, PathName, Root, RouteStep, RuleStep, Str, TrafficPath,
};
use entail_core::routing::{
    Dialect, EntryPoint, HostnamePrecedence, ListenerIsolation, MatchFailure, MatchedRule,
    NoMatchReason, Protocol, Refusal, Request, RequestParts, RoutingOptions, RoutingResult,
    RuleMiss, RuleMissReason, RuleTarget,
};
use v1::resolve_request_request::{HostnamePrecedence as WirePrecedence, Protocol as WireProtocol};

/// Maximum size of a request to resolve, in bytes: four times what Envoy accepts by default. Each regular expression of
/// the routes at a listener may read all of it.
pub const MAX_REQUEST_BYTES: usize = 256 * 1024;
/// A request up to this size, in bytes, is resolved where it was received. Matching a larger one takes long enough to be
/// noticed by the other requests of that thread.
const SMALL_REQUEST: usize = 8 * 1024;
/// What a header counts beside its name and value, as in HTTP/2 (RFC 9113, section 6.5.2).
const HEADER_OVERHEAD: usize = 32;

/// Resolves a request.
///
/// # Errors
/// The request is malformed.
pub fn resolve_request(
    snapshot: &Snapshot,
    request_message: &v1::ResolveRequestRequest,
    scope: &AccessScope,
) -> Result<v1::ResolveRequestResponse, Failure> {
    Ok(resolve(snapshot, request_message, scope, false)?.unwrap_or_default())
}

/// Resolves a request if that is quick; `None` if the router of its listener has to be built first, or if the request is
/// large.
///
/// # Errors
/// The request is malformed.
pub fn try_resolve_request(
    snapshot: &Snapshot,
    request_message: &v1::ResolveRequestRequest,
    scope: &AccessScope,
) -> Result<Option<v1::ResolveRequestResponse>, Failure> {
    resolve(snapshot, request_message, scope, true)
}

/// Returns the paths of the rules that match a request. With `fast_only`, returns `None` if the router of the listener
/// has to be built first, or if the request is large.
///
/// # Errors
/// The request is malformed.
pub fn matching_rule_paths(
    snapshot: &Snapshot,
    request_message: &v1::ResolveRequestRequest,
    fast_only: bool,
) -> Result<Option<Vec<String>>, Failure> {
    let routed = find_rules(snapshot, request_message, fast_only)?;
    Ok(routed.map(|result| result.matched.into_iter().map(|rule| rule.path).collect()))
}

fn find_rules(
    snapshot: &Snapshot,
    request_message: &v1::ResolveRequestRequest,
    fast_only: bool,
) -> Result<Option<RoutingResult>, Failure> {
    let size = size_of(request_message);
    if size > MAX_REQUEST_BYTES {
        let message = format!(
            "the host, path, method and headers of the request have {size} bytes, maximum {MAX_REQUEST_BYTES}"
        );
        return Err(Failure::invalid("RequestTooLarge", message));
    }
    if fast_only && size > SMALL_REQUEST {
        return Ok(None);
    }
    let headers = request_message.headers.iter();
    let headers = headers.map(|header| (header.name.clone(), header.value.clone()));
    let (path, headers) = (path_of(request_message), headers.collect::<Vec<_>>());
    let request = parts_of(request_message, &path, &headers);
    let entry_point = entry_point_of(request_message)?;
    let options = options_of(request_message)?;
    // What the specification refuses is an error, unless a Gateway of another dialect reads it.
    let bad = Request::read(
        &request,
        options.dialect.unwrap_or(Dialect::specification()),
    )
    .err();
    let Some(result) = snapshot.resolve(&entry_point, &request, options, fast_only) else {
        return Ok(None);
    };
    let is_read = |failure: &MatchFailure| failure.dialect.is_some() && !failure.is_bad_request();
    match bad {
        Some(bad) if result.matched.is_empty() && !result.failures.iter().any(is_read) => {
            let reason = NoMatchReason::from(&bad).as_str();
            Err(Failure::invalid(reason, bad.to_string()))
        }
        _ => Ok(Some(result)),
    }
}

/// The size of what routes are matched with, in bytes.
fn size_of(request_message: &v1::ResolveRequestRequest) -> usize {
    let texts = [
        &request_message.host,
        &request_message.sni,
        &request_message.method,
        &request_message.path,
        &request_message.grpc_service,
        &request_message.grpc_method,
    ];
    let headers = request_message.headers.iter();
    let headers = headers.map(|header| header.name.len() + header.value.len() + HEADER_OVERHEAD);
    texts.into_iter().map(String::len).sum::<usize>() + headers.sum::<usize>()
}

fn options_of(request_message: &v1::ResolveRequestRequest) -> Result<RoutingOptions, Failure> {
    let dialect = match &*request_message.dialect {
        "" => None,
        name => Some(Dialect::named(name).ok_or_else(|| {
            let names: Vec<&str> = Dialect::all().map(|one| &*one.name).collect();
            let names = names.join("`, `");
            let name = shortened(name);
            let message = format!("unknown dialect `{name}`: use one of `{names}`");
            Failure::invalid("NotADialect", message)
        })?),
    };
    Ok(RoutingOptions {
        dialect,
        hostname_precedence: match request_message.hostname_precedence() {
            WirePrecedence::Unspecified => None,
            WirePrecedence::Route => Some(HostnamePrecedence::Route),
            WirePrecedence::Intersection => Some(HostnamePrecedence::Intersection),
        },
        listener_isolation: request_message
            .disable_listener_isolation
            .then_some(ListenerIsolation::None),
    })
}

fn resolve(
    snapshot: &Snapshot,
    request_message: &v1::ResolveRequestRequest,
    scope: &AccessScope,
    fast_only: bool,
) -> Result<Option<v1::ResolveRequestResponse>, Failure> {
    // To tell why a rule does not match, the indexes of all its listeners are needed.
    if fast_only && !request_message.why_not.is_empty() {
        return Ok(None);
    }
    let Some(mut result) = find_rules(snapshot, request_message, fast_only)? else {
        return Ok(None);
    };
    result.matched.retain(|rule| scope.has_path(&rule.path));
    result
        .failures
        .retain(|failure| scope.has_path(&failure.path));
    let kinds = requested_kinds(&request_message.kinds)?;
    let resolved = result.matched.iter();
    let resolved = resolved.map(|rule| resolved_of(snapshot, rule, &kinds, scope));
    let version = snapshot.version();
    let names = result.matched.iter().map(|rule| &rule.path);
    Ok(Some(v1::ResolveRequestResponse {
        resolved: resolved.collect::<Result<_, _>>()?,
        unresolved: result.failures.iter().map(unresolved_of).collect(),
        version: Some(version.message()),
        synced_at: Some(version.synced_at),
        kinds: incomplete_kinds(snapshot, &kinds, scope),
        unread_parameters: parameters::of_paths(snapshot, names, scope),
        why_not: why_not(snapshot, request_message, &result.matched, scope)?,
    }))
}

/// Why the rules that a request asks for do not take it. Rules whose paths the caller does not see are left out, and so are
/// facts about other listeners.
fn why_not(
    snapshot: &Snapshot,
    request_message: &v1::ResolveRequestRequest,
    matched: &[MatchedRule],
    scope: &AccessScope,
) -> Result<Vec<v1::RuleMiss>, Failure> {
    if request_message.why_not.is_empty() {
        return Ok(Vec::new());
    }
    let target = rule_target(snapshot, &request_message.why_not, scope)?;
    let headers = request_message.headers.iter();
    let headers = headers.map(|header| (header.name.clone(), header.value.clone()));
    let (path, headers) = (path_of(request_message), headers.collect::<Vec<_>>());
    let request = parts_of(request_message, &path, &headers);
    let entry_point = entry_point_of(request_message)?;
    let options = options_of(request_message)?;
    let misses = snapshot.why_not(&entry_point, &request, options, &target);
    let is_all = scope.is_unrestricted();
    let visible = misses.into_iter().filter(|miss| match &*miss.path {
        "" => is_all,
        path => scope.has_path(&format!("{path}{}", steps_of(miss))),
    });
    let mut found: Vec<RuleMiss> = visible.map(|miss| settled(miss, matched)).collect();
    if !is_all {
        let others = found.iter_mut();
        let others = others.filter(|miss| miss.reason == RuleMissReason::ListenerHostname);
        others.for_each(|miss| miss.details.clear());
    }
    // Listeners that the request does not enter by are told only if the route has no other.
    let addressed: HashSet<(ObjectKey, u32)> = found
        .iter()
        .filter(|miss| miss.reason != RuleMissReason::NotAddressed)
        .map(|miss| (miss.route.clone(), miss.rule))
        .collect();
    found.retain(|miss| {
        let is_other = miss.reason == RuleMissReason::NotAddressed;
        !is_other || !addressed.contains(&(miss.route.clone(), miss.rule))
    });
    if found.is_empty() {
        let name = shortened(&request_message.why_not);
        return Err(Failure::no_such_object(format!(
            "no route has the rule `{name}`: use `kind/namespace/name#rule`, or `rule/name`"
        )));
    }
    let told = found.into_iter().map(|miss| v1::RuleMiss {
        route: miss.route.to_string(),
        rule_index: miss.rule,
        rule_name: miss.name.as_deref().unwrap_or_default().to_owned(),
        path: miss.path,
        reason: miss.reason.as_str().to_owned(),
        details: miss.details,
    });
    Ok(told.collect())
}

/// The steps of a rule below a listener or Service, as in the name of a path.
fn steps_of(miss: &RuleMiss) -> String {
    let ObjectKey {
        kind,
        namespace,
        name,
    } = &miss.route;
    let rule = match &miss.name {
        Some(rule) => rule.to_string(),
        None => format!("#{}", miss.rule),
    };
    format!("/routes/{}/{namespace}/{name}/rules/{rule}", kind.short())
}

/// An answer that agrees with the rules that the request takes: where routes of several listeners compete, or rules
/// delegate, one listener alone does not decide.
fn settled(mut miss: RuleMiss, matched: &[MatchedRule]) -> RuleMiss {
    let steps = steps_of(&miss);
    let path = format!("{}{steps}", miss.path);
    let takes = matched.iter().find(|rule| match &*miss.path {
        "" => rule.path.ends_with(&steps),
        _ => rule.path == path || rule.path.starts_with(&format!("{path}/routes/")),
    });
    if let Some(rule) = takes {
        miss.reason = RuleMissReason::TakesRequest;
        miss.details = match rule.path == path {
            true => Vec::new(),
            false => vec![format!("as {}", rule.path)],
        };
    } else if miss.reason == RuleMissReason::TakesRequest {
        let is_beside =
            |rule: &&MatchedRule| rule.path.split('/').take(3).eq(path.split('/').take(3));
        let other = matched.iter().find(is_beside);
        (miss.reason, miss.details) = match other {
            Some(other) => {
                let told = format!(
                    "a route of another listener of the port comes first: {}",
                    other.path
                );
                (RuleMissReason::OtherMatchFirst, vec![told])
            }
            None => (RuleMissReason::NotDecided, Vec::new()),
        };
    }
    miss
}

fn rule_target(
    snapshot: &Snapshot,
    text: &str,
    scope: &AccessScope,
) -> Result<RuleTarget, Failure> {
    if let Some(rule) = text
        .strip_prefix("rule/")
        .filter(|rule| !rule.contains('/'))
    {
        // Which routes have such a rule depends on routes that the caller may not see.
        if !scope.is_unrestricted() {
            let message = "name the route of the rule: `kind/namespace/name#rule`";
            return Err(Failure::invalid("NotARule", message));
        }
        return Ok(RuleTarget {
            route: None,
            rule: Some(rule.into()),
        });
    }
    match QuerySubject::read(text, snapshot.world(), scope)? {
        QuerySubject::Object(key, section) => Ok(RuleTarget {
            route: Some(key),
            rule: section.map(Str::from),
        }),
        QuerySubject::All | QuerySubject::Path(_) => {
            let text = shortened(text);
            let message =
                format!("malformed rule `{text}`: use `kind/namespace/name#rule`, or `rule/name`");
            Err(Failure::invalid("NotARule", message))
        }
    }
}

/// Returns the path of a request with its query.
fn path_of(request_message: &v1::ResolveRequestRequest) -> String {
    match (
        &*request_message.grpc_service,
        &*request_message.grpc_method,
    ) {
        ("", "") => request_message.path.clone(),
        (service, method) => format!("/{service}/{method}"),
    }
}

fn parts_of<'m>(
    request_message: &'m v1::ResolveRequestRequest,
    path: &'m str,
    headers: &'m [(String, String)],
) -> RequestParts<'m> {
    let protocol = match request_message.protocol() {
        WireProtocol::Unspecified | WireProtocol::Http => Protocol::Http,
        WireProtocol::Grpc => Protocol::Grpc,
        WireProtocol::Tls => Protocol::Tls,
        WireProtocol::Tcp => Protocol::Tcp,
        WireProtocol::Udp => Protocol::Udp,
    };
    RequestParts {
        protocol,
        host: match protocol {
            Protocol::Tls => &request_message.sni,
            _ => &request_message.host,
        },
        method: &request_message.method,
        path,
        headers,
        raw_query: request_message.raw_query,
        is_normalized: request_message.normalized_path,
    }
}

fn entry_point_of(request_message: &v1::ResolveRequestRequest) -> Result<EntryPoint, Failure> {
    let port = match u16::try_from(request_message.port) {
        Ok(0) => None,
        Ok(port) => Some(port),
        Err(_) => {
            let message = format!("{} is not a port", request_message.port);
            return Err(Failure::invalid("NotAPort", message));
        }
    };
    let (gateway, set) = (
        parse_name(&request_message.gateway)?,
        parse_name(&request_message.listener_set)?,
    );
    if let Some(service) = parse_name(&request_message.service)? {
        let is_both = gateway.is_some() || set.is_some() || !request_message.listener.is_empty();
        if is_both {
            return Err(Failure::invalid(
                "GatewayAndService",
                "a request enters through a Gateway or a Service: set one of the two",
            ));
        }
        let client = match &*request_message.client_namespace {
            "" => "*",
            client => client,
        };
        return Ok(EntryPoint::Service {
            service,
            port,
            client: client.into(),
        });
    }
    if gateway.is_none() && (set.is_some() || !request_message.listener.is_empty()) {
        return Err(Failure::invalid(
            "NoGateway",
            "`listener` and `listener_set` need `gateway`",
        ));
    }
    Ok(EntryPoint::Gateway {
        gateway,
        set,
        listener: (!request_message.listener.is_empty())
            .then(|| request_message.listener.as_str().into()),
        port,
    })
}

/// Parses `namespace/name`; returns `None` for an empty text.
fn parse_name(text: &str) -> Result<Option<(Str, Str)>, Failure> {
    if text.is_empty() {
        return Ok(None);
    }
    let parts = text.split_once('/');
    let parts =
        parts.filter(|(ns, name)| !ns.is_empty() && !name.is_empty() && !name.contains('/'));
    let (namespace, name) = parts.ok_or_else(|| {
        let text = shortened(text);
        let message = format!("malformed name `{text}`: use `namespace/name`");
        Failure::invalid("NotAName", message)
    })?;
    Ok(Some((namespace.into(), name.into())))
}

fn resolved_of(
    snapshot: &Snapshot,
    rule: &MatchedRule,
    kinds: &[GroupKind],
    scope: &AccessScope,
) -> Result<v1::ResolvedRequest, Failure> {
    let body = find(snapshot, &rule.path, scope)?;
    let in_scope = scope.narrow(kinds);
    let policies = v1::PathPolicies {
        policies: decode_policies(body.policies(&in_scope)),
        etag: body.etag_of(&in_scope),
        ..v1::PathPolicies::default()
    };
    let walk = match PathName::parse(&rule.path) {
        Ok(PathName::Traffic(walk)) => Some(walk),
        _ => None,
    };
    Ok(v1::ResolvedRequest {
        path: rule.path.clone(),
        r#ref: walk.as_ref().map(path_ref),
        port: rule.port.unwrap_or_default().into(),
        rule_index: rule.rule,
        match_index: rule.at,
        matched: rule.matched.clone(),
        policies: Some(policies),
        backends: backends(snapshot, rule, (body, &in_scope), scope),
        dialect: rule.dialect.name.clone(),
        refusal: refusal(rule.refusal),
    })
}

fn refusal(refusal: Option<Refusal>) -> String {
    refusal.map(Refusal::message).unwrap_or_default().to_owned()
}

/// Converts a path to its parts, down to the rule.
pub fn path_ref(walk: &TrafficPath<'_>) -> v1::PathRef {
    let mut parts = v1::PathRef::default();
    match walk.root {
        Root::Gateway { namespace, name } => parts.gateway = format!("{namespace}/{name}"),
        Root::Mesh {
            client,
            namespace,
            name,
            port,
        } => {
            parts.service = format!("{namespace}/{name}");
            parts.client_namespace = client.to_owned();
            parts.service_port = port.unwrap_or_default().into();
        }
    }
    let set = walk
        .listener_set
        .map(|set| format!("{}/{}", set.namespace, set.name));
    parts.listener_set = set.unwrap_or_default();
    parts.listener = walk.listener.unwrap_or_default().to_owned();
    let name = |r: RouteStep<'_>| format!("{}/{}/{}", r.kind, r.namespace, r.name);
    let rule_name = |rule: RuleStep<'_>| match rule {
        RuleStep::Index(index) => format!("#{index}"),
        RuleStep::Name(name) => name.to_owned(),
    };
    let delegating = walk.delegating.iter();
    let delegating = delegating.map(|(route, rule)| format!("{}/{}", name(route), rule_name(rule)));
    parts.delegating_rules = delegating.collect();
    parts.route = walk.route.map(name).unwrap_or_default();
    parts.rule = walk.rule.map(rule_name).unwrap_or_default();
    parts
}

/// The backends of a rule, in the order of its backendRefs, with the policies of some kinds that differ from the answer
/// of the rule.
fn backends(
    snapshot: &Snapshot,
    rule: &MatchedRule,
    (of_rule, in_scope): (&PathAnswer, &[GroupKind]),
    scope: &AccessScope,
) -> Vec<v1::ResolvedBackend> {
    rule.backends
        .iter()
        .map(|(reference, weight)| {
            let key = ObjectKey::new(
                reference.kind.clone(),
                reference.namespace.clone(),
                reference.name.clone(),
            );
            let mut path = format!(
                "{}/backends/{}/{}/{}",
                rule.path,
                key.kind.short(),
                key.namespace,
                key.name
            );
            let mut backend = key.to_string();
            if let Some(port) = reference.port {
                path.push_str(&format!("/ports/{port}"));
                backend.push_str(&format!("#{port}"));
            }
            let parsed = PathName::parse(&path).ok();
            let body = parsed.and_then(|path| snapshot.look_up(&path));
            let reason = parsed.filter(|_| body.is_none());
            // The exact reason can tell whether an object exists that the caller may not see.
            let reason = reason.map(|parsed| {
                let reason = snapshot.path_reason(&parsed);
                Failure::not_found(snapshot, &path, reason, scope).reason
            });
            let visible = body.filter(|_| scope.has_path(&path));
            let policies = visible.map(|body| body.policies_unlike(of_rule, in_scope));
            v1::ResolvedBackend {
                backend,
                weight: *weight,
                reason: reason.unwrap_or_default(),
                policies: policies.map(decode_policies).unwrap_or_default(),
                path: match body {
                    Some(_) => path,
                    None => String::new(),
                },
            }
        })
        .collect()
}

fn unresolved_of(failure: &MatchFailure) -> v1::UnresolvedRequest {
    let near_misses = failure.near_misses.iter().map(|near| v1::NearMiss {
        route: near.route.to_string(),
        rule_index: near.rule,
        missing: near.missing.clone(),
    });
    v1::UnresolvedRequest {
        path: failure.path.clone(),
        reason: failure.reason.as_str().to_owned(),
        message: failure.reason.to_string(),
        near_misses: near_misses.collect(),
        dialect: failure
            .dialect
            .map(|one| one.name.clone())
            .unwrap_or_default(),
        refusal: refusal(failure.refusal),
    }
}

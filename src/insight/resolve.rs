//! The rule that a request takes, and what holds there.

use super::look_up::{asked as asked_kinds, find, incomplete_kinds};
use super::{Failure, Scope};
use crate::api::{policies_of, v1};
use crate::snapshot::Snapshot;
use entail_core::model::{GroupKind, ObjectKey, PathName, Root, RuleStep, Str, Walk};
use entail_core::routing::{
    BadRequest, Entrance, Found, NotTaken, Parts, Protocol, Request, Rules, Taken,
};
use v1::resolve_request_request::{HostnamePrecedence, Protocol as Speaks};

/// Resolves a request.
///
/// # Errors
/// What is wrong with it.
pub fn resolve_request(
    snapshot: &Snapshot,
    asked: &v1::ResolveRequestRequest,
    scope: &Scope,
) -> Result<v1::ResolveRequestResponse, Failure> {
    Ok(resolve(snapshot, asked, scope, false)?.unwrap_or_default())
}

/// Resolves a request if it takes no time; else there is no answer.
///
/// # Errors
/// What is wrong with it.
pub fn resolve_in_haste(
    snapshot: &Snapshot,
    asked: &v1::ResolveRequestRequest,
    scope: &Scope,
) -> Result<Option<v1::ResolveRequestResponse>, Failure> {
    resolve(snapshot, asked, scope, true)
}

/// The paths of the rules that a request takes, and nothing else; none if it is not known and there
/// is haste.
///
/// # Errors
/// What is wrong with the request.
pub fn rules_of_request(
    snapshot: &Snapshot,
    asked: &v1::ResolveRequestRequest,
    in_haste: bool,
) -> Result<Option<Vec<String>>, Failure> {
    let found = found(snapshot, asked, in_haste)?;
    Ok(found.map(|found| found.taken.into_iter().map(|taken| taken.path).collect()))
}

fn found(
    snapshot: &Snapshot,
    asked: &v1::ResolveRequestRequest,
    in_haste: bool,
) -> Result<Option<Found>, Failure> {
    let request = request_of(asked)?;
    let entrance = entrance_of(asked)?;
    let rules = Rules {
        by_route_hostname: asked.hostname_precedence() != HostnamePrecedence::Intersection,
        isolated: !asked.not_isolated,
    };
    Ok(snapshot.resolve(&entrance, &request, rules, in_haste))
}

fn resolve(
    snapshot: &Snapshot,
    asked: &v1::ResolveRequestRequest,
    scope: &Scope,
    in_haste: bool,
) -> Result<Option<v1::ResolveRequestResponse>, Failure> {
    let Some(mut found) = found(snapshot, asked, in_haste)? else {
        return Ok(None);
    };
    found.taken.retain(|taken| scope.has_path(&taken.path));
    found.not_taken.retain(|not| scope.has_path(&not.path));
    let kinds = asked_kinds(&asked.kinds);
    let resolved = found.taken.iter();
    let resolved = resolved.map(|taken| resolved_of(snapshot, taken, &kinds, scope));
    let version = snapshot.version();
    Ok(Some(v1::ResolveRequestResponse {
        resolved: resolved.collect::<Result<_, _>>()?,
        unresolved: found.not_taken.iter().map(unresolved_of).collect(),
        version: Some(version.message()),
        synced_at: Some(version.synced_at),
        kinds: incomplete_kinds(snapshot, &kinds, scope),
    }))
}

fn request_of(asked: &v1::ResolveRequestRequest) -> Result<Request, Failure> {
    let protocol = match asked.protocol() {
        Speaks::Unspecified | Speaks::Http => Protocol::Http,
        Speaks::Grpc => Protocol::Grpc,
        Speaks::Tls => Protocol::Tls,
        Speaks::Tcp => Protocol::Tcp,
        Speaks::Udp => Protocol::Udp,
    };
    let call = (!asked.grpc_service.is_empty() || !asked.grpc_method.is_empty())
        .then(|| format!("/{}/{}", asked.grpc_service, asked.grpc_method));
    let headers = asked.headers.iter();
    let headers = headers.map(|header| (header.name.clone(), header.value.clone()));
    let headers: Vec<_> = headers.collect();
    let parts = Parts {
        protocol,
        host: match protocol {
            Protocol::Tls => &asked.sni,
            _ => &asked.host,
        },
        method: &asked.method,
        path: call.as_deref().unwrap_or(&asked.path),
        headers: &headers,
        raw_query: asked.raw_query,
    };
    Request::read(&parts).map_err(|bad| {
        let reason = match bad {
            BadRequest::Host(_) => "NotAHost",
            BadRequest::Path(_) => "NotARequestPath",
            BadRequest::AmbiguousPath(_) => "AmbiguousPath",
        };
        Failure::invalid(reason, bad.to_string())
    })
}

fn entrance_of(asked: &v1::ResolveRequestRequest) -> Result<Entrance, Failure> {
    let port = match u16::try_from(asked.port) {
        Ok(0) => None,
        Ok(port) => Some(port),
        Err(_) => {
            let message = format!("{} is no port", asked.port);
            return Err(Failure::invalid("NotAPort", message));
        }
    };
    let (gateway, set) = (named(&asked.gateway)?, named(&asked.listener_set)?);
    if let Some(service) = named(&asked.service)? {
        let is_both = gateway.is_some() || set.is_some() || !asked.listener.is_empty();
        if is_both {
            return Err(Failure::invalid(
                "TwoEntrances",
                "a request comes in by a Gateway or calls a Service: name one of the two",
            ));
        }
        let client = match &*asked.client_namespace {
            "" => "*",
            client => client,
        };
        return Ok(Entrance::Service {
            service,
            port,
            client: client.into(),
        });
    }
    if gateway.is_none() && (set.is_some() || !asked.listener.is_empty()) {
        return Err(Failure::invalid(
            "NoGateway",
            "a listener is one of a Gateway: name the Gateway as well",
        ));
    }
    Ok(Entrance::Gateway {
        gateway,
        set,
        listener: (!asked.listener.is_empty()).then(|| asked.listener.as_str().into()),
        port,
    })
}

/// Namespace and name; none if the text is empty.
fn named(text: &str) -> Result<Option<(Str, Str)>, Failure> {
    if text.is_empty() {
        return Ok(None);
    }
    let parts = text.split_once('/');
    let parts =
        parts.filter(|(ns, name)| !ns.is_empty() && !name.is_empty() && !name.contains('/'));
    let (namespace, name) = parts.ok_or_else(|| {
        let message = format!("`{text}` is no name: write `namespace/name`");
        Failure::invalid("NotAName", message)
    })?;
    Ok(Some((namespace.into(), name.into())))
}

fn resolved_of(
    snapshot: &Snapshot,
    taken: &Taken,
    kinds: &[GroupKind],
    scope: &Scope,
) -> Result<v1::ResolvedRequest, Failure> {
    let body = find(snapshot, &taken.path, scope)?;
    let wanted = scope.narrow(kinds);
    let policies = v1::PathPolicies {
        policies: policies_of(body.policies(&wanted)),
        etag: body.etag_of(&wanted),
        ..v1::PathPolicies::default()
    };
    let walk = match PathName::parse(&taken.path) {
        Ok(PathName::Walk(walk)) => Some(walk),
        _ => None,
    };
    Ok(v1::ResolvedRequest {
        path: taken.path.clone(),
        r#ref: walk.as_ref().map(path_ref),
        port: taken.port.unwrap_or_default().into(),
        rule_index: taken.rule,
        match_index: taken.at,
        matched: taken.matched.clone(),
        policies: Some(policies),
        backends: backends(snapshot, taken),
    })
}

/// The parts of a path's name, down to its rule.
pub fn path_ref(walk: &Walk<'_>) -> v1::PathRef {
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
    let route = walk
        .route
        .map(|r| format!("{}/{}/{}", r.kind, r.namespace, r.name));
    parts.route = route.unwrap_or_default();
    parts.rule = match walk.rule {
        Some(RuleStep::Index(index)) => format!("#{index}"),
        Some(RuleStep::Name(name)) => name.to_owned(),
        None => String::new(),
    };
    parts
}

/// The backendRefs of a rule, in their order.
fn backends(snapshot: &Snapshot, taken: &Taken) -> Vec<v1::ResolvedBackend> {
    taken
        .backends
        .iter()
        .map(|(reference, weight)| {
            let key = ObjectKey::new(
                reference.kind.clone(),
                reference.namespace.clone(),
                reference.name.clone(),
            );
            let mut path = format!(
                "{}/backends/{}/{}/{}",
                taken.path,
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
            let is_path = parsed.is_some_and(|path| snapshot.look_up(&path).is_some());
            let reason = parsed.filter(|_| !is_path);
            let reason = reason.map(|path| snapshot.why_not(&path).to_string());
            v1::ResolvedBackend {
                backend,
                weight: *weight,
                reason: reason.unwrap_or_default(),
                path: if is_path { path } else { String::new() },
            }
        })
        .collect()
}

fn unresolved_of(not: &NotTaken) -> v1::UnresolvedRequest {
    let nearest = not.nearest.iter().map(|near| v1::NearMiss {
        route: near.route.to_string(),
        rule_index: near.rule,
        lacks: near.lacks.clone(),
    });
    v1::UnresolvedRequest {
        path: not.path.clone(),
        reason: not.reason.as_str().to_owned(),
        message: not.reason.to_string(),
        nearest: nearest.collect(),
    }
}

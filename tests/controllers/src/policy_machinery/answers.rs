//! What entail makes of a world.

use std::collections::BTreeMap;

use entail::api::v1;
use entail::app::load_values;
use entail::insight::{LocalBackend, QueryBackend};
use serde_json::Value;

use super::admission::{array, text};
use super::verdict::PathKey;

/// The kinds that are merged.
pub const MERGED: [&str; 3] = ["AuthPolicy", "RateLimitPolicy", "TokenRateLimitPolicy"];

/// The kinds that apply to listeners.
pub const DIRECT: [&str; 2] = ["DNSPolicy", "TLSPolicy"];

/// The answers of entail for one world.
#[derive(Debug)]
pub struct Answers {
    backend: LocalBackend,
    /// The answers of the merged kinds on every path to a rule of an HTTPRoute or a GRPCRoute.
    pub paths: BTreeMap<PathKey, BTreeMap<String, v1::EffectivePolicy>>,
    /// The statuses of policies by kind and `namespace/name`.
    pub statuses: BTreeMap<(String, String), v1::PolicyStatus>,
}

impl Answers {
    /// Asks entail about a world.
    ///
    /// # Errors
    /// Returns the reason why entail does not answer.
    pub fn read(objects: &[Value]) -> Result<Self, String> {
        let mut backend = load_values(objects, &[]).map_err(|error| error.to_string())?;
        let listed = backend.list_paths(v1::ListPathsRequest {
            levels: vec!["RouteRule".to_owned()],
            page_size: 10_000,
            ..v1::ListPathsRequest::default()
        });
        let mut paths = BTreeMap::new();
        for path in listed.map_err(|error| format!("{error:?}"))?.paths {
            let key = path_key(&path, objects).ok_or_else(|| format!("cannot read {path}"))?;
            paths.insert(key, get(&mut backend, &path, &MERGED)?);
        }
        let policies = backend.list_policies(v1::ListPoliciesRequest {
            page_size: 10_000,
            ..v1::ListPoliciesRequest::default()
        });
        let statuses = policies
            .map_err(|error| format!("{error:?}"))?
            .policies
            .into_iter()
            .filter_map(|status| {
                let kind = status.kind.split('.').next()?.to_owned();
                let policy = policy_name(status.policy.as_ref()?);
                Some(((kind, policy), status))
            })
            .collect();
        Ok(Self {
            backend,
            paths,
            statuses,
        })
    }

    /// Whether entail takes a policy for invalid.
    pub fn has_invalid(&self) -> bool {
        let mut conditions = self.statuses.values().flat_map(|status| &status.conditions);
        conditions.any(|condition| condition.reason == "Invalid")
    }

    /// The answer of a direct kind on a listener.
    ///
    /// # Errors
    /// Returns the reason why entail does not answer.
    pub fn listener(
        &mut self,
        gateway: &str,
        listener: &str,
        kind: &str,
    ) -> Result<Option<v1::EffectivePolicy>, String> {
        let path = format!("gateways/{gateway}/listeners/{listener}");
        Ok(get(&mut self.backend, &path, &[kind])?.remove(kind))
    }
}

/// The effective policies of a path that have a specification.
fn get(
    backend: &mut LocalBackend,
    path: &str,
    kinds: &[&str],
) -> Result<BTreeMap<String, v1::EffectivePolicy>, String> {
    let reply = backend.get(v1::GetEffectivePoliciesRequest {
        target: Some(v1::get_effective_policies_request::Target::Path(
            path.to_owned(),
        )),
        kinds: kinds
            .iter()
            .map(|kind| format!("{kind}.kuadrant.io"))
            .collect(),
        ..v1::GetEffectivePoliciesRequest::default()
    });
    let reply = reply.map_err(|error| format!("{path}: {error:?}"))?;
    if let Some(state) = reply.kinds.first() {
        return Err(format!("{path}: {state:?}"));
    }
    let result = reply.result.unwrap_or_default();
    if let Some(error) = result.error {
        return Err(format!("{path}: {error:?}"));
    }
    let with_spec = result
        .policies
        .into_iter()
        .filter(|p| p.spec_json.is_some());
    Ok(with_spec
        .map(|policy| (policy.kind.clone(), policy))
        .collect())
}

/// `namespace/name`.
pub fn policy_name(policy: &v1::PolicyRef) -> String {
    format!("{}/{}", policy.namespace, policy.name)
}

/// Reads a path name. The listener of a ListenerSet is written `namespace/set/listener`.
fn path_key(path: &str, objects: &[Value]) -> Option<PathKey> {
    let steps: Vec<&str> = path.split('/').collect();
    let (gateway, listener, rest) = match steps.as_slice() {
        [
            "gateways",
            namespace,
            name,
            "listenersets",
            set_namespace,
            set,
            "listeners",
            listener,
            rest @ ..,
        ] => (
            format!("{namespace}/{name}"),
            format!("{set_namespace}/{set}/{listener}"),
            rest,
        ),
        [
            "gateways",
            namespace,
            name,
            "listeners",
            listener,
            rest @ ..,
        ] => (format!("{namespace}/{name}"), (*listener).to_owned(), rest),
        _ => return None,
    };
    let ["routes", kind, namespace, name, "rules", rule] = rest else {
        return None;
    };
    let route = object(objects, kind, &format!("{namespace}/{name}"))?;
    let index = match rule.strip_prefix('#') {
        Some(index) => index.parse().ok()?,
        None => array(route, "/spec/rules").position(|r| text(r, "/name") == *rule)?,
    };
    Some(PathKey {
        gateway,
        listener,
        route_kind: (*kind).to_owned(),
        route: format!("{namespace}/{name}"),
        rule: index,
    })
}

/// Finds an object by kind and `namespace/name`.
pub fn object<'a>(objects: &'a [Value], kind: &str, name: &str) -> Option<&'a Value> {
    objects.iter().find(|object| {
        text(object, "/kind") == kind
            && name.split_once('/')
                == Some((
                    text(object, "/metadata/namespace"),
                    text(object, "/metadata/name"),
                ))
    })
}

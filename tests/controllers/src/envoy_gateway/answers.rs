//! What entail answers about a world.

use std::collections::{BTreeMap, BTreeSet};

use entail::api::v1;
use entail::app::load_values_with;
use entail::config::ControllerSettings;
use entail::insight::{LocalBackend, QueryBackend};
use entail_core::model::{GroupKind, groups};
use serde_json::Value;

/// The kinds that take effect at a rule.
pub const RULE_KINDS: [&str; 3] = [
    "BackendTrafficPolicy",
    "SecurityPolicy",
    "EnvoyExtensionPolicy",
];

/// The answers of entail about one world.
#[derive(Debug)]
pub struct Answers {
    /// The statuses of all policies.
    pub statuses: Vec<v1::PolicyStatus>,
    /// The rules of routes on each listener.
    pub rules: Vec<RuleAnswer>,
    /// The listeners.
    pub listeners: Vec<ListenerAnswer>,
    /// The ports of backends.
    pub backends: Vec<BackendAnswer>,
    /// For each policy, as `kind/namespace/name`, the paths on which it is attached.
    pub shares: BTreeMap<String, Vec<v1::AffectedPath>>,
}

/// A listener, as both sides name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerPlace {
    /// Its name in the intermediate representation.
    pub name: String,
    /// `Gateway` or `ListenerSet`.
    pub owner: &'static str,
    /// The namespace of the owner.
    pub namespace: String,
    /// The name of the owner.
    pub owner_name: String,
    /// The name of the listener.
    pub section: String,
}

/// A rule of a route.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RulePlace {
    /// The kind of the route.
    pub kind: String,
    /// The namespace of the route.
    pub namespace: String,
    /// The name of the route.
    pub name: String,
    /// The index of the rule.
    pub index: usize,
    /// Its name, or the one that a replay gives it.
    pub section: String,
}

/// The effective policy of a kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Effective {
    /// There is none.
    None,
    /// entail does not know.
    Unknown,
    /// No value is in force: an object is missing without which the controller refuses requests.
    FailsClosed,
    /// The merged rules.
    Rules(Box<v1::EffectivePolicy>, Value),
}

/// The answers for a rule on a listener.
#[derive(Clone, Debug)]
pub struct RuleAnswer {
    /// The path of entail.
    pub path: String,
    /// The listener.
    pub listener: ListenerPlace,
    /// The rule.
    pub rule: RulePlace,
    /// The effective policies by kind.
    pub kinds: BTreeMap<&'static str, Effective>,
    /// The backends, as entail names nodes: `Kind/namespace/name`, and the ports of Services as `#name`.
    pub backends: BTreeSet<String>,
    /// Whether the controller cannot connect to one of the backends, because its policy fails closed.
    pub closed_backend: bool,
}

/// The answer for a listener.
#[derive(Clone, Debug)]
pub struct ListenerAnswer {
    /// The path of entail.
    pub path: String,
    /// The listener.
    pub listener: ListenerPlace,
    /// The effective ClientTrafficPolicy.
    pub effective: Effective,
}

/// The answer for a port of a backend.
#[derive(Clone, Debug)]
pub struct BackendAnswer {
    /// The kind, namespace and name of the backend, and its port.
    pub backend: (String, String, String, String),
    /// The effective BackendTLSPolicy.
    pub effective: Effective,
}

/// What entail is told: the controller knows all objects that it references, and so does entail.
fn settings() -> ControllerSettings {
    let complete = [
        (groups::CORE, "Secret"),
        (groups::CORE, "ConfigMap"),
        (groups::CORE, "Service"),
        ("gateway.envoyproxy.io", "Backend"),
    ];
    let kinds = complete.map(|(group, kind)| GroupKind::new(group, kind));
    ControllerSettings {
        complete_kinds: kinds.to_vec(),
        ..ControllerSettings::default()
    }
}

/// Loads a world and asks everything that is compared.
///
/// # Errors
/// Returns the message of the first query that failed.
pub fn ask(objects: &[Value]) -> Result<Answers, String> {
    let mut backend =
        load_values_with(objects, &[], &settings()).map_err(|error| error.to_string())?;
    let statuses = backend
        .list_policies(v1::ListPoliciesRequest {
            page_size: 10_000,
            ..Default::default()
        })
        .map_err(|error| error.to_string())?
        .policies;
    let mut answers = Answers {
        shares: shares(&mut backend, &statuses)?,
        statuses,
        rules: Vec::new(),
        listeners: Vec::new(),
        backends: Vec::new(),
    };
    for path in paths(&mut backend, "RouteRule")? {
        let Some((listener, Some(rule))) = places(&path, objects) else {
            continue;
        };
        let found = effective(&mut backend, &path, &RULE_KINDS)?;
        answers.rules.push(RuleAnswer {
            path,
            listener,
            rule,
            kinds: found,
            backends: BTreeSet::new(),
            closed_backend: false,
        });
    }
    for path in paths(&mut backend, "Listener")? {
        let Some((listener, None)) = places(&path, objects) else {
            continue;
        };
        let mut found = effective(&mut backend, &path, &["ClientTrafficPolicy"])?;
        let effective = found
            .remove("ClientTrafficPolicy")
            .unwrap_or(Effective::None);
        answers.listeners.push(ListenerAnswer {
            path,
            listener,
            effective,
        });
    }
    answers.ask_backends(&mut backend, objects)?;
    Ok(answers)
}

impl Answers {
    /// Asks for the ports of backends, and for backends that are named without a port.
    fn ask_backends(
        &mut self,
        backend: &mut LocalBackend,
        objects: &[Value],
    ) -> Result<(), String> {
        let mut ports = paths(backend, "BackendPort")?;
        ports.extend(paths(backend, "Backend")?);
        for path in ports {
            let Some(place) = backend_place(&path) else {
                continue;
            };
            let mut found = effective(backend, &path, &["BackendTLSPolicy"])?;
            let effective = found.remove("BackendTLSPolicy").unwrap_or(Effective::None);
            self.add_backend(&path, &effective, objects);
            // On the path of a UDPRoute a backend has no policy.
            let mut known = self.backends.iter_mut();
            match known.find(|known| known.backend == place) {
                Some(known) if known.effective == Effective::None => known.effective = effective,
                Some(_) => {}
                None => self.backends.push(BackendAnswer {
                    backend: place,
                    effective,
                }),
            }
        }
        Ok(())
    }

    /// Adds the backend of a path to the answer for its rule.
    fn add_backend(&mut self, path: &str, effective: &Effective, objects: &[Value]) {
        let Some((rule, backend)) = path.split_once("/backends/") else {
            return;
        };
        let parts: Vec<&str> = backend.split('/').collect();
        let Some(answer) = self.rules.iter_mut().find(|answer| answer.path == rule) else {
            return;
        };
        answer.closed_backend |= *effective == Effective::FailsClosed;
        let node = parts.iter().take(3).copied().collect::<Vec<_>>().join("/");
        if let [kind, namespace, name, _, port] = parts[..] {
            let service = objects.iter().find(|one| is(one, kind, namespace, name));
            let ports = service.and_then(|service| service["spec"]["ports"].as_array());
            let named = ports
                .into_iter()
                .flatten()
                .filter(|one| one["port"].as_u64() == port.parse().ok());
            let names = named.filter_map(|one| one["name"].as_str());
            answer
                .backends
                .extend(names.map(|name| format!("{node}#{name}")));
        }
        answer.backends.insert(node);
    }
}

fn shares(
    backend: &mut LocalBackend,
    statuses: &[v1::PolicyStatus],
) -> Result<BTreeMap<String, Vec<v1::AffectedPath>>, String> {
    let mut shares = BTreeMap::new();
    for status in statuses {
        let name = policy_name(status);
        let subject = v1::list_affected_request::Subject::Policy(name.clone());
        let request = v1::ListAffectedRequest {
            subject: Some(subject),
            ..v1::ListAffectedRequest::default()
        };
        let reply = backend
            .all_affected(request)
            .map_err(|error| format!("{name}: {error}"))?;
        shares.insert(name, reply.paths);
    }
    Ok(shares)
}

/// The name of a policy as entail writes it: `Kind.group/namespace/name`.
pub fn policy_name(status: &v1::PolicyStatus) -> String {
    let policy = status.policy.clone().unwrap_or_default();
    format!("{}/{}/{}", status.kind, policy.namespace, policy.name)
}

fn paths(backend: &mut LocalBackend, level: &str) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    let mut token = String::new();
    loop {
        let request = v1::ListPathsRequest {
            levels: vec![level.to_owned()],
            page_size: 10_000,
            page_token: token,
            ..Default::default()
        };
        let reply = backend
            .list_paths(request)
            .map_err(|error| error.to_string())?;
        found.extend(reply.paths);
        token = reply.next_page_token;
        if token.is_empty() {
            return Ok(found);
        }
    }
}

fn effective(
    backend: &mut LocalBackend,
    path: &str,
    kinds: &[&'static str],
) -> Result<BTreeMap<&'static str, Effective>, String> {
    let reply = backend
        .get(v1::GetEffectivePoliciesRequest {
            target: Some(v1::get_effective_policies_request::Target::Path(
                path.to_owned(),
            )),
            ..Default::default()
        })
        .map_err(|error| format!("{path}: {error}"))?;
    let policies = reply.result.unwrap_or_default().policies;
    let mut found = BTreeMap::new();
    for kind in kinds {
        let policy = policies.iter().find(|policy| policy.kind == *kind);
        found.insert(*kind, policy.map_or(Effective::None, answer));
    }
    Ok(found)
}

fn answer(policy: &v1::EffectivePolicy) -> Effective {
    let is_unknown = policy.spec_json.is_none() && policy.unknown.is_some();
    if is_unknown || !policy.not_computed.is_empty() {
        return Effective::Unknown;
    }
    let rules = policy.spec_json.as_deref().map(serde_json::from_str);
    match rules {
        Some(Ok(rules)) => Effective::Rules(Box::new(policy.clone()), rules),
        Some(Err(_)) => Effective::Unknown,
        None if policy.rejected.iter().any(fails_closed) => Effective::FailsClosed,
        None => Effective::None,
    }
}

/// Whether a policy is rejected because an object is missing (specification 5.7) or because it sets fields that exclude
/// each other (5.12), and not for its references or a conflict.
fn fails_closed(rejected: &v1::RejectedPolicy) -> bool {
    let effects = [
        "; where it would act, ",
        "; what fails open ",
        " exclude each other",
    ];
    let reasons = ["Invalid", "NoValidCACertificate"];
    reasons.contains(&rejected.reason.as_str())
        && effects.iter().any(|text| rejected.message.contains(text))
}

/// The listener of a path and, if the path ends at a rule, the rule.
fn places(path: &str, objects: &[Value]) -> Option<(ListenerPlace, Option<RulePlace>)> {
    let mut parts = path.split('/');
    if parts.next()? != "gateways" {
        return None;
    }
    let (namespace, gateway) = (parts.next()?, parts.next()?);
    let mut step = parts.next()?;
    let mut listener = ListenerPlace {
        name: format!("{namespace}/{gateway}/"),
        owner: "Gateway",
        namespace: namespace.to_owned(),
        owner_name: gateway.to_owned(),
        section: String::new(),
    };
    if step == "listenersets" {
        let (namespace, name) = (parts.next()?, parts.next()?);
        listener.name += &format!("{namespace}/{name}/");
        listener.owner = "ListenerSet";
        listener.namespace = namespace.to_owned();
        listener.owner_name = name.to_owned();
        step = parts.next()?;
    }
    if step != "listeners" {
        return None;
    }
    listener.section = parts.next()?.to_owned();
    listener.name += &listener.section;
    if parts.next().is_none() {
        return Some((listener, None));
    }
    let (kind, namespace, name) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next()? != "rules" {
        return None;
    }
    let (index, section) = rule(kind, namespace, name, parts.next()?, objects)?;
    let (kind, namespace, name) = (kind.to_owned(), namespace.to_owned(), name.to_owned());
    Some((
        listener,
        Some(RulePlace {
            kind,
            namespace,
            name,
            index,
            section,
        }),
    ))
}

/// The index and the name of a rule, of which a path has one.
fn rule(
    kind: &str,
    namespace: &str,
    name: &str,
    text: &str,
    objects: &[Value],
) -> Option<(usize, String)> {
    if let Some(index) = text.strip_prefix('#') {
        let index = index.parse().ok()?;
        return Some((index, format!("judge-rule-{index}")));
    }
    let route = objects
        .iter()
        .find(|object| is(object, kind, namespace, name))?;
    let rules = route["spec"]["rules"].as_array()?;
    let index = rules.iter().position(|rule| rule["name"] == text)?;
    Some((index, text.to_owned()))
}

/// Whether an object has this kind, namespace and name.
pub fn is(object: &Value, kind: &str, namespace: &str, name: &str) -> bool {
    object["kind"] == kind
        && object["metadata"]["name"] == name
        && object["metadata"]["namespace"].as_str().unwrap_or_default() == namespace
}

fn backend_place(path: &str) -> Option<(String, String, String, String)> {
    let (_, backend) = path.split_once("/backends/")?;
    let mut parts = backend.split('/').map(str::to_owned);
    let (kind, namespace, name) = (parts.next()?, parts.next()?, parts.next()?);
    let kind = kind.split('.').next().unwrap_or_default().to_owned();
    let port = parts.nth(1).unwrap_or_default();
    Some((kind, namespace, name, port))
}

impl RulePlace {
    /// The name of the route in the intermediate representation.
    pub fn route(&self) -> String {
        format!(
            "{}/{}/{}",
            self.kind.to_lowercase(),
            self.namespace,
            self.name
        )
    }
}

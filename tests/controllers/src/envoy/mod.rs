//! Envoy, as Envoy Gateway configures it: which rule a request takes.
//!
//! Random routes are given to entail and to Envoy Gateway's translator. A real Envoy serves the
//! configuration of the translator on loopback, each rule answering with its name, and gets random
//! requests near the matches. entail resolves the same requests.

mod proxy;
mod requests;
mod world;

use std::collections::BTreeSet;
use std::path::Path;

use entail::api::v1;
use entail::app::load_values;
use entail::insight::{LocalBackend, QueryBackend};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::judge::{Controller, Judge, JudgeError};
use crate::report::{Facts, Report};
use crate::rng::Rng;
use crate::{RunError, Scope};
use proxy::{Proxy, ProxyError, Reply};
use requests::Request;

/// The requests of one world.
const REQUESTS: usize = 60;
/// How often another world is made if two virtual hosts have the same domain.
const TRIES: usize = 50;

/// Where the translator's listeners are served.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProxyConfiguration {
    /// Envoy's static configuration.
    bootstrap: Value,
    /// The ports of Gateways.
    listeners: Vec<ProxyListener>,
}

/// A port of a Gateway.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProxyListener {
    /// `namespace/name`.
    pub gateway: String,
    /// The port of the Gateway's listeners.
    pub port: u32,
    /// The address and port where Envoy listens.
    pub address: String,
}

/// The world as the API server would hold it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WorldReply {
    objects: Vec<Value>,
    refused: Vec<Value>,
}

/// The rule that a request takes: `kind/namespace/name`, the index of the rule and of the match.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    route: String,
    rule: u32,
    at: u32,
}

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    Rule(Rule),
    NoRule,
    /// It is refused before a rule is looked for.
    Refused,
}

/// What is compared: the proxy configured by the translator.
pub fn controller(translator: Controller) -> Controller {
    Controller {
        name: format!("Envoy, as configured by {}", translator.name),
        version: translator.version,
    }
}

/// Compares the worlds of the scope.
///
/// # Errors
/// Returns an error if the judge ended, or if Envoy cannot be started.
pub fn run(
    scope: &Scope,
    envoy: &Path,
    judge: &mut Judge,
    report: &mut Report,
) -> Result<(), RunError> {
    for seed in scope.seed..scope.seed.saturating_add(scope.worlds) {
        match compare(seed, envoy, judge, report) {
            Ok(()) => report.add_world(),
            Err(Stop::World(reason, message)) => {
                report.fail(reason, || format!("seed {seed}: {message}"));
            }
            Err(Stop::Run(error)) => return Err(error),
        }
    }
    Ok(())
}

/// Why a world is not compared.
enum Stop {
    /// This world, with a reason and a message.
    World(&'static str, String),
    Run(RunError),
}

impl From<JudgeError> for Stop {
    fn from(error: JudgeError) -> Self {
        match error {
            JudgeError::Refused(message) | JudgeError::Reply(message) => {
                Self::World("the translator fails", message)
            }
            other => Self::Run(other.into()),
        }
    }
}

impl From<ProxyError> for Stop {
    fn from(error: ProxyError) -> Self {
        match error {
            ProxyError::Refused(message) => Self::World("Envoy refuses the configuration", message),
            ProxyError::Start(error) => Self::Run(RunError::File("Envoy".to_owned(), error)),
        }
    }
}

fn compare(seed: u64, envoy: &Path, judge: &mut Judge, report: &mut Report) -> Result<(), Stop> {
    let mut rng = Rng::new(seed ^ 0x0070_726f_7879);
    let mut made = configure(&mut rng, judge)?;
    for _ in 0..TRIES {
        // Envoy refuses such a configuration as a whole: there is nothing to compare.
        if !has_doubles(&made.1.bootstrap) {
            break;
        }
        made = configure(&mut rng, judge)?;
    }
    let (world, configuration) = made;
    let mut backend = load_values(&world.objects, &[])
        .map_err(|error| Stop::World("entail fails", error.to_string()))?;
    let proxy = Proxy::start(envoy, &configuration.bootstrap, &configuration.listeners)?;
    let hints = requests::Hints::of(&world.objects);
    for _ in 0..REQUESTS {
        let Some(listener) = configuration
            .listeners
            .get(rng.below(configuration.listeners.len()))
        else {
            break;
        };
        let request = hints.request(&mut rng);
        let reply = match proxy.send(listener, &request) {
            Ok(reply) => reply,
            Err(error) => {
                report.fail("Envoy does not answer", || {
                    format!("seed {seed}: {request:?}: {error}")
                });
                continue;
            }
        };
        judge_request(seed, listener, &request, &reply, &mut backend, report);
    }
    Ok(())
}

/// Makes a random world, and Envoy's configuration of it.
fn configure(rng: &mut Rng, judge: &mut Judge) -> Result<(WorldReply, ProxyConfiguration), Stop> {
    let objects = world::world(rng);
    let request = json!({"op": "world", "objects": objects, "validate": true});
    let world: WorldReply = judge.ask(&request)?;
    if let Some(refusal) = world.refused.first() {
        let message = refusal.to_string();
        return Err(Stop::World(
            "the API server would refuse an object",
            message,
        ));
    }
    let (address, port) = proxy::place();
    let request = json!({"op": "proxy", "address": address, "port": port});
    Ok((world, judge.ask(&request)?))
}

/// Whether two virtual hosts of a listener have the same domain.
fn has_doubles(bootstrap: &Value) -> bool {
    let listeners = bootstrap["staticResources"]["listeners"].as_array();
    listeners.into_iter().flatten().any(|listener| {
        let config = &listener["filterChains"][0]["filters"][0]["typedConfig"]["routeConfig"];
        let hosts = config["virtualHosts"].as_array().into_iter().flatten();
        let domains = hosts.flat_map(|host| host["domains"].as_array().into_iter().flatten());
        let mut seen = BTreeSet::new();
        domains
            .filter_map(Value::as_str)
            .any(|domain| !seen.insert(domain))
    })
}

/// Compares what becomes of one request.
fn judge_request(
    seed: u64,
    listener: &ProxyListener,
    request: &Request,
    reply: &Reply,
    backend: &mut LocalBackend,
    report: &mut Report,
) {
    let asked = ask(backend, listener, request, None);
    // entail refuses a path that proxies read differently; a caller who has the proxy's path says so.
    let is_ambiguous = matches!(&asked, Err(error) if error.contains("ambiguous"));
    let (what, asked) = match (&reply.matched_path, is_ambiguous) {
        (Some(path), true) => (
            "rule of a request with the normalized path",
            ask(backend, listener, request, Some(path)),
        ),
        _ => ("rule of a request", asked),
    };
    let example = |entail: &dyn std::fmt::Debug, proxy: &dyn std::fmt::Debug| {
        format!(
            "seed {seed} port {}: {request}: entail {entail:?}, Envoy {proxy:?}",
            listener.port
        )
    };
    let proxy = match outcome(reply) {
        Ok(proxy) => proxy,
        Err(reason) => {
            report.fail("Envoy's answer cannot be read", || {
                format!("seed {seed}: {request}: {reason}")
            });
            return;
        }
    };
    let (entail, error) = match asked {
        Ok(outcome) => (outcome, None),
        Err(error) => (Outcome::Refused, Some(error)),
    };
    if entail == proxy {
        report.agree(what);
        return;
    }
    let mut facts: Facts = request
        .traits()
        .into_iter()
        .map(|name| (name.to_owned(), "yes".to_owned()))
        .collect();
    let name = |outcome: &Outcome| match outcome {
        Outcome::Rule(rule) => rule.route.split('/').next().unwrap_or_default().to_owned(),
        Outcome::NoRule => "none".to_owned(),
        Outcome::Refused => "refused".to_owned(),
    };
    facts.insert("entail".to_owned(), name(&entail));
    facts.insert("Envoy".to_owned(), name(&proxy));
    if let Some(error) = error {
        facts.insert("error".to_owned(), error);
    }
    report.differ(what, facts, || example(&entail, &proxy));
}

/// Asks entail about a request, with the path of the proxy if it is given.
fn ask(
    backend: &mut LocalBackend,
    listener: &ProxyListener,
    request: &Request,
    normalized: Option<&str>,
) -> Result<Outcome, String> {
    use v1::resolve_request_request::Protocol;
    let protocol = if request.is_call() {
        Protocol::Grpc
    } else {
        Protocol::Http
    };
    let headers = request
        .headers
        .iter()
        .map(|(name, value)| v1::RequestHeader {
            name: name.clone(),
            value: value.clone(),
        });
    let reply = backend.resolve(v1::ResolveRequestRequest {
        protocol: protocol.into(),
        gateway: listener.gateway.clone(),
        port: listener.port,
        host: request.host.clone(),
        method: request.method.clone(),
        path: normalized.unwrap_or(&request.path).to_owned(),
        headers: headers.collect(),
        normalized_path: normalized.is_some(),
        ..Default::default()
    });
    let reply = reply.map_err(|error| error.to_string())?;
    let refusals = reply.resolved.iter().map(|one| &one.refusal);
    let mut refusals = refusals.chain(reply.unresolved.iter().map(|one| &one.refusal));
    if refusals.any(|refusal| !refusal.is_empty()) {
        return Ok(Outcome::Refused);
    }
    Ok(match reply.resolved.first() {
        Some(found) => Outcome::Rule(Rule {
            route: found
                .r#ref
                .clone()
                .unwrap_or_default()
                .route
                .to_ascii_lowercase(),
            rule: found.rule_index,
            at: found.match_index.unwrap_or_default(),
        }),
        None => Outcome::NoRule,
    })
}

/// Reads what became of a request from Envoy's response.
fn outcome(reply: &Reply) -> Result<Outcome, String> {
    let unreadable = || format!("status {}, body {:?}", reply.status, reply.body);
    match (reply.status, &*reply.body) {
        (400, _) => Ok(Outcome::Refused),
        (200, "none") => Ok(Outcome::NoRule),
        // kind/namespace/name/rule/INDEX/match/INDEX/hostname
        (200, name) => {
            let parts: Vec<&str> = name.split('/').collect();
            let [kind, namespace, route, "rule", rule, "match", at, ..] = parts[..] else {
                return Err(unreadable());
            };
            Ok(Outcome::Rule(Rule {
                route: format!("{kind}/{namespace}/{route}"),
                rule: rule.parse().map_err(|_| unreadable())?,
                // A rule without matches has the index -1.
                at: at
                    .parse::<i64>()
                    .map_err(|_| unreadable())?
                    .try_into()
                    .unwrap_or_default(),
            }))
        }
        _ => Err(unreadable()),
    }
}

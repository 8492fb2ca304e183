//! Settings of the commands, filled from the command line, and their validation.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

mod callers;
mod document;
mod envoy;

use crate::server::{Address, AllowLists, SanPattern};
pub use crate::server::{
    DEFAULT_MAX_CONCURRENCY, DEFAULT_MAX_CONCURRENCY_PER_CLIENT, DEFAULT_MAX_CONNECTIONS,
    DEFAULT_MAX_CONNECTIONS_PER_CLIENT, Limits, TlsFiles,
};
pub use crate::telemetry::{LogFormat, LogSettings};
pub use callers::read_callers;
use entail_core::model::{GroupKind, Str};
use entail_core::store::ControllerAlias;
pub use envoy::read_envoy;

/// Default of `--listen`.
pub const DEFAULT_LISTEN: &str = "127.0.0.1:50051";
/// Default of `--drain-timeout`.
pub const DEFAULT_DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// How often manifests are scanned even if the file system reports no change.
pub const DEFAULT_POLL_INTERVAL: Duration = Duration::from_secs(10);
/// Default of `--checkpoint-interval`.
pub const DEFAULT_CHECKPOINT_INTERVAL: Duration = Duration::from_secs(10);
/// Default of `--api-timeout`.
pub const DEFAULT_API_TIMEOUT: Duration = Duration::from_secs(30);
/// Default of `--stale-after`. An API server sends something about each kind once a minute.
pub const DEFAULT_STALE_AFTER: Duration = Duration::from_secs(75);
/// Default of `--forbidden-after`. An API server that starts denies everything for up to half a minute.
pub const DEFAULT_FORBIDDEN_AFTER: Duration = Duration::from_secs(60);
/// Default of [`ClusterTimeouts::start_jitter`] of a server.
pub const DEFAULT_START_JITTER: Duration = Duration::from_secs(1);
/// Maximum drain timeout; a longer one is probably given in the wrong unit.
const MAX_DRAIN: Duration = Duration::from_secs(3600);

/// The inputs of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inputs {
    /// Manifests: files, directories (recursively), or `-` for standard input.
    pub manifests: Vec<PathBuf>,
    /// Files with PolicyProfile and ControllerAlias documents, or directories of such files.
    pub profiles: Vec<PathBuf>,
    /// What is known of controllers besides profiles.
    pub controllers: ControllerSettings,
    /// Whether to use the readable inputs if others cannot be read.
    pub allow_partial: bool,
    /// The largest file of manifests, and the most text of one document, in MiB; `None` for the
    /// default.
    pub max_manifest_mib: Option<u32>,
    /// The cluster to read instead of manifests.
    pub cluster: Option<ClusterSettings>,
}

/// What is known of controllers and of objects besides profiles and objects (specification 2.6, 5.7).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControllerSettings {
    /// Controllers with a name of their own, and the profiles that describe their policies.
    pub aliases: Vec<ControllerAlias>,
    /// The controllers of GatewayClasses that do not exist, by class.
    pub assumed_classes: Vec<(Str, Str)>,
    /// The kinds of which the input holds all objects.
    pub complete_kinds: Vec<GroupKind>,
}

/// How to connect to a cluster, and which of its objects to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterSettings {
    /// Path of the kubeconfig. Default: `KUBECONFIG`, then `~/.kube/config`, then the service
    /// account of the pod.
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig. Default: the current context.
    pub context: Option<String>,
    /// Only objects in these namespaces; all if empty.
    pub namespaces: Vec<String>,
    /// Only these Gateways, by namespace and name; all if empty.
    pub gateways: Vec<(String, String)>,
    /// Only these GatewayClasses and their Gateways; all if empty.
    pub classes: Vec<String>,
    /// How long to wait for the API server.
    pub timeouts: ClusterTimeouts,
}

/// How long to wait for the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterTimeouts {
    /// Maximum time until a watch, or a part of a list, is answered.
    pub request: Duration,
    /// How long nothing is heard of a kind until it is STALE.
    pub stale_after: Duration,
    /// How long a kind is denied by a ready server until it is FORBIDDEN without a review.
    pub forbidden_after: Duration,
    /// The first request is sent after a random part of this time. A server that is one of a fleet waits; a command does not.
    pub start_jitter: Duration,
}

impl Default for ClusterTimeouts {
    fn default() -> Self {
        Self {
            request: DEFAULT_API_TIMEOUT,
            stale_after: DEFAULT_STALE_AFTER,
            forbidden_after: DEFAULT_FORBIDDEN_AFTER,
            start_jitter: Duration::ZERO,
        }
    }
}

/// Authorization for PolicyInsightService.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InsightAuth {
    /// No authorization besides client certificates.
    #[default]
    None,
    /// Kubernetes authorization: TokenReview and SubjectAccessReview.
    Kubernetes,
}

/// Settings of the admission webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdmissionSettings {
    /// The address to listen on: `IP:PORT`.
    pub listen: String,
    /// Its certificates.
    pub tls: TlsFiles,
    /// Whether clients without a certificate may ask from other machines.
    pub any_client: bool,
    /// Whether warnings name objects of all namespaces.
    pub full_names: bool,
}

/// Settings of `serve`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServeSettings {
    /// Sources of objects and profiles.
    pub inputs: Inputs,
    /// Addresses of all services: `IP:PORT` or `unix:PATH`.
    pub listen: Vec<String>,
    /// Address of the health service alone.
    pub health_listen: Option<String>,
    /// Address of the HTTP server for metrics and readiness: `IP:PORT`.
    pub admin_listen: Option<String>,
    /// Unix socket of the same HTTP server, which also changes the log filter.
    pub admin_socket: Option<PathBuf>,
    /// Address of the console, a page in the browser: `IP:PORT`, on loopback.
    pub console_listen: Option<String>,
    /// Certificates. If set, TCP listeners require TLS, except those of health, metrics and the console.
    pub tls: Option<TlsFiles>,
    /// The admission webhook, which is disabled without it.
    pub admission: Option<AdmissionSettings>,
    /// Client certificate names that may use EffectivePolicyService; every client if empty.
    pub data_plane_sans: Vec<String>,
    /// Client certificate names that may use PolicyInsightService; every client if empty.
    pub insight_sans: Vec<String>,
    /// File of access rules, instead of both lists of names.
    pub callers: Option<PathBuf>,
    /// Authorization for PolicyInsightService over TCP.
    pub insight_auth: InsightAuth,
    /// File of the Envoy external authorization service, which is disabled without it.
    pub envoy: Option<PathBuf>,
    /// File for checkpoints of a cluster.
    pub checkpoint: Option<PathBuf>,
    /// Minimum time between checkpoints.
    pub checkpoint_pause: Duration,
    /// Whether to allow listeners on non-loopback addresses without client authentication.
    pub insecure_listen: bool,
    /// File to write the address of the first TCP listener to.
    pub port_file: Option<PathBuf>,
    /// Maximum time to wait for requests in flight at shutdown.
    pub drain_timeout: Duration,
    /// How often to scan manifests even if the file system reports no change.
    pub poll: Duration,
    /// Limits of clients and requests.
    pub limits: Limits,
    /// Settings of the log.
    pub log: LogSettings,
}

/// The validated addresses and allow lists of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenConfig {
    /// Addresses of all services.
    pub all: Vec<Address>,
    /// Address of the health service alone.
    pub health: Option<Address>,
    /// Address of the admin server.
    pub admin: Option<SocketAddr>,
    /// Address of the admission webhook.
    pub admission: Option<SocketAddr>,
    /// Address of the console.
    pub console: Option<SocketAddr>,
    /// Client certificate names by service, if there is no file of access rules.
    pub lists: AllowLists,
}

impl Default for ServeSettings {
    fn default() -> Self {
        Self {
            inputs: Inputs::default(),
            listen: vec![DEFAULT_LISTEN.to_owned()],
            health_listen: None,
            admin_listen: None,
            admin_socket: None,
            tls: None,
            admission: None,
            console_listen: None,
            data_plane_sans: Vec::new(),
            insight_sans: Vec::new(),
            callers: None,
            insight_auth: InsightAuth::None,
            envoy: None,
            checkpoint: None,
            checkpoint_pause: DEFAULT_CHECKPOINT_INTERVAL,
            insecure_listen: false,
            port_file: None,
            drain_timeout: DEFAULT_DRAIN_TIMEOUT,
            poll: DEFAULT_POLL_INTERVAL,
            limits: Limits::default(),
            log: LogSettings {
                filter: None,
                format: LogFormat::Text,
            },
        }
    }
}

impl Inputs {
    /// Checks the inputs.
    ///
    /// # Errors
    /// Returns all errors, one message each.
    pub fn check(&self) -> Result<(), Vec<String>> {
        let mut errors = Vec::new();
        match (&self.cluster, self.manifests.is_empty()) {
            (None, true) => errors.push("no source: set `--manifests` or `--kube`".to_owned()),
            (Some(_), false) => {
                errors.push("`--manifests` and `--kube` cannot be combined".to_owned());
            }
            _ => {}
        }
        if self.cluster.is_some() && !self.controllers.complete_kinds.is_empty() {
            errors.push(
                "`--assume-complete` and `--kube` cannot be combined: it is about manifests"
                    .to_owned(),
            );
        }
        let is_stdin = |path: &&PathBuf| path.as_path() == Path::new("-");
        if self.manifests.iter().filter(is_stdin).count() > 1 {
            errors
                .push("`--manifests -` is given twice: standard input can be read once".to_owned());
        }
        if errors.is_empty() {
            Ok(())
        } else {
            Err(errors)
        }
    }
}

impl ServeSettings {
    /// Checks all settings and parses the addresses.
    ///
    /// # Errors
    /// Returns all errors, one message each.
    pub fn check(&self) -> Result<ListenConfig, Vec<String>> {
        let mut errors = self.inputs.check().err().unwrap_or_default();
        let mut all: Vec<Address> = Vec::new();
        if self.listen.is_empty() {
            errors.push("no address to listen on: set `--listen`".to_owned());
        }
        for text in &self.listen {
            match self.listen_address(text) {
                Ok(address) if all.contains(&address) && !is_port_zero(&address) => {
                    errors.push(format!("`--listen {text}` is given twice: remove one"));
                }
                Ok(address) => all.push(address),
                Err(message) => errors.push(message),
            }
        }
        let health = valid(self.health_address(&all), &mut errors);
        let admin = valid(self.admin_address(), &mut errors);
        let admission = valid(self.admission_address(), &mut errors);
        let console = valid(self.console_address(), &mut errors);
        let lists = self.allow_lists(&mut errors);
        errors.extend(self.missing_cluster_problems());
        errors.extend(self.exposed_token_problem(&all));
        if self.port_file.is_some() && !all.iter().any(|a| matches!(a, Address::Tcp(_))) {
            errors.push("`--port-file` needs a TCP address in `--listen`".to_owned());
        }
        if self.drain_timeout > MAX_DRAIN {
            errors.push(format!(
                "`--drain-timeout` is longer than {} s",
                MAX_DRAIN.as_secs()
            ));
        }
        errors.extend(self.zero_limit_problems());
        errors.extend(self.zero_timeout_problems());
        errors.extend(self.log.check().err());
        if errors.is_empty() {
            Ok(ListenConfig {
                all,
                health,
                admin,
                admission,
                console,
                lists,
            })
        } else {
            Err(errors)
        }
    }

    fn listen_address(&self, text: &str) -> Result<Address, String> {
        let address: Address = text.parse().map_err(|error| format!("--listen: {error}"))?;
        if address.is_local() || self.insecure_listen || self.authenticates_clients() {
            return Ok(address);
        }
        Err(format!(
            "`--listen {text}` would accept unauthenticated clients: set `--tls-cert`, `--tls-key` \
             and `--tls-client-ca`, use loopback or `unix:PATH`, or set `--insecure-listen`"
        ))
    }

    /// Reports whether clients over TCP need a certificate.
    fn authenticates_clients(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some())
    }

    /// The address of health alone. The kubelet probes from the node without TLS, so any address is allowed.
    fn health_address(&self, all: &[Address]) -> Result<Option<Address>, String> {
        match self.health_listen.as_deref().map(str::parse::<Address>) {
            None => Ok(None),
            Some(Ok(address)) if all.contains(&address) && !is_port_zero(&address) => Err(format!(
                "`--health-listen {address}` is also an address of `--listen`"
            )),
            Some(Ok(address)) => Ok(Some(address)),
            Some(Err(error)) => Err(format!("--health-listen: {error}")),
        }
    }

    fn admin_address(&self) -> Result<Option<SocketAddr>, String> {
        let Some(text) = self.admin_listen.as_deref() else {
            return Ok(None);
        };
        match text.parse::<Address>() {
            Ok(Address::Tcp(address)) => Ok(Some(address)),
            Ok(Address::Unix(_)) => Err(format!(
                "`--admin-listen {text}` is a Unix socket: use `--admin-socket`"
            )),
            Err(error) => Err(format!("--admin-listen: {error}")),
        }
    }

    fn admission_address(&self) -> Result<Option<SocketAddr>, String> {
        let Some(admission) = &self.admission else {
            return Ok(None);
        };
        let text = &admission.listen;
        let address: Address = text
            .parse()
            .map_err(|error| format!("--admission-listen: {error}"))?;
        let has_client_ca = admission.tls.client_ca.is_some();
        if !address.is_local() && !has_client_ca && !admission.any_client {
            return Err(format!(
                "`--admission-listen {text}` would answer every client, with names of objects: set \
                 `--admission-tls-client-ca`, or `--admission-any-client` if only API servers reach it"
            ));
        }
        match address {
            Address::Tcp(address) => Ok(Some(address)),
            Address::Unix(_) => Err(format!(
                "`--admission-listen {text}` is a Unix socket: API servers need `IP:PORT`"
            )),
        }
    }

    /// The address of the console. Browsers have no client certificate, so what restricts callers by certificates must not
    /// be passed by it.
    fn console_address(&self) -> Result<Option<SocketAddr>, String> {
        let Some(text) = self.console_listen.as_deref() else {
            return Ok(None);
        };
        let address: Address = text
            .parse()
            .map_err(|error| format!("--console-listen: {error}"))?;
        let Address::Tcp(address) = address else {
            return Err(format!(
                "`--console-listen {text}` is a Unix socket: browsers need `IP:PORT`"
            ));
        };
        if !address.ip().is_loopback() {
            return Err(format!(
                "`--console-listen {text}` is not a loopback address: use `127.0.0.1:{}`, and reach it by `kubectl \
                 port-forward` or through SSH",
                address.port()
            ));
        }
        let lists = [&self.insight_sans, &self.data_plane_sans];
        let has_rules = self.callers.is_some() || lists.iter().any(|list| !list.is_empty());
        if has_rules && self.insight_auth != InsightAuth::Kubernetes {
            return Err(
                "`--console-listen` would show everything to each process on this machine, while `--callers`, \
                 `--insight-san` or `--data-plane-san` restrict who may ask: set `--insight-auth kubernetes`, so that the console requires a token"
                    .to_owned(),
            );
        }
        Ok(Some(address))
    }

    fn allow_lists(&self, errors: &mut Vec<String>) -> AllowLists {
        let mut read = |option: &str, names: &[String]| {
            let mut list: Vec<SanPattern> = Vec::with_capacity(names.len());
            for name in names {
                match name.parse() {
                    Ok(name) => list.push(name),
                    Err(error) => errors.push(format!("{option}: {error}")),
                }
            }
            list
        };
        let lists = AllowLists {
            data_plane: read("--data-plane-san", &self.data_plane_sans),
            insight: read("--insight-san", &self.insight_sans),
        };
        let has_lists = lists != AllowLists::default();
        if (has_lists || self.callers.is_some()) && !self.authenticates_clients() {
            errors.push(
                "`--data-plane-san`, `--insight-san` and `--callers` match client certificates: \
                 set `--tls-client-ca`"
                    .to_owned(),
            );
        }
        if has_lists && self.callers.is_some() {
            errors.push(
                "`--callers` cannot be combined with `--data-plane-san` or `--insight-san`: move \
                 the names into the file"
                    .to_owned(),
            );
        }
        lists
    }

    /// Returns an error if bearer tokens would be sent in plain text.
    fn exposed_token_problem(&self, all: &[Address]) -> Option<String> {
        let is_plain_text = self.tls.is_none() && !all.iter().all(Address::is_local);
        (is_plain_text && self.insight_auth == InsightAuth::Kubernetes).then(|| {
            "`--insight-auth kubernetes` on a non-loopback address would send tokens in plain \
             text: set `--tls-cert` and `--tls-key`"
                .to_owned()
        })
    }

    /// Returns an error for each setting that needs a cluster, if there is none.
    fn missing_cluster_problems(&self) -> impl Iterator<Item = String> {
        let uses_reviews = self.insight_auth == InsightAuth::Kubernetes;
        let has_cluster = self.inputs.cluster.is_some();
        [
            (self.checkpoint.is_some(), "`--checkpoint` needs `--kube`"),
            (uses_reviews, "`--insight-auth kubernetes` needs `--kube`"),
        ]
        .into_iter()
        .filter(move |(is_set, _)| *is_set && !has_cluster)
        .map(|(_, message)| message.to_owned())
    }

    /// Returns an error for each timeout of the API server that is zero.
    fn zero_timeout_problems(&self) -> impl Iterator<Item = String> {
        let timeouts = self.inputs.cluster.as_ref().map(|cluster| cluster.timeouts);
        let timeouts = timeouts.unwrap_or_default();
        [
            ("--api-timeout", timeouts.request),
            ("--stale-after", timeouts.stale_after),
            ("--forbidden-after", timeouts.forbidden_after),
        ]
        .into_iter()
        .filter(|(_, time)| time.is_zero())
        .map(|(option, _)| format!("`{option}` must be greater than 0"))
    }

    /// Returns an error for each limit that is zero, with which no request could be served.
    fn zero_limit_problems(&self) -> impl Iterator<Item = String> {
        let limits = &self.limits;
        [
            ("connections", limits.connections == 0),
            ("connections per client", limits.connections_per_client == 0),
            ("health connections", limits.health_connections == 0),
            ("connection setup", limits.connection_setup.is_zero()),
            (
                "held bytes per connection",
                limits.held_bytes_per_connection == 0,
            ),
            ("held bytes", limits.held_bytes == 0),
            ("reply progress", limits.reply_progress.is_zero()),
            ("request arrival", limits.request_arrival.is_zero()),
            ("probes per connection", limits.probes_per_connection == 0),
            ("request bytes", limits.request_bytes == 0),
            ("reply bytes", limits.reply_bytes == 0),
            ("streams", limits.streams == 0),
            ("concurrent look-ups", limits.requests == 0),
            (
                "concurrent requests per connection",
                limits.requests_per_connection == 0,
            ),
            ("request timeout", limits.request_timeout.is_zero()),
            ("header bytes", limits.header_bytes == 0),
            ("keepalive", limits.keepalive.is_zero()),
            ("keepalive timeout", limits.keepalive_timeout.is_zero()),
            (
                "concurrent insight requests",
                limits.insight_concurrency == 0,
            ),
            ("insight timeout", limits.insight_timeout.is_zero()),
            ("concurrent batches", limits.batch_concurrency == 0),
        ]
        .into_iter()
        .filter(|(_, is_zero)| *is_zero)
        .map(|(name, _)| format!("the limit `{name}` must be greater than 0"))
    }
}

/// The address of a listener, if there is a valid one. Adds the error of another one to `errors`.
fn valid<T>(address: Result<Option<T>, String>, errors: &mut Vec<String>) -> Option<T> {
    address.unwrap_or_else(|message| {
        errors.push(message);
        None
    })
}

fn is_port_zero(address: &Address) -> bool {
    matches!(address, Address::Tcp(address) if address.port() == 0)
}

#[cfg(test)]
mod tests;

//! Settings: plain data that the command line fills, and what is wrong with them.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

mod callers;
mod document;
mod envoy;

use crate::server::{Address, AllowLists, SanPattern};
pub use crate::server::{
    DEFAULT_MAX_CONCURRENCY, DEFAULT_MAX_CONCURRENCY_PER_CLIENT, Limits, TlsFiles,
};
pub use crate::telemetry::{LogFormat, LogSettings};
pub use callers::read_callers;
pub use envoy::read_envoy;

/// Where a server listens unless it is told otherwise.
pub const DEFAULT_LISTEN: &str = "127.0.0.1:50051";
/// How long requests may take to end after the signal to stop, unless told otherwise.
pub const DEFAULT_DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// How often manifests are looked at even if the file system tells of no change.
pub const DEFAULT_POLL_INTERVAL: Duration = Duration::from_secs(10);
/// How long to wait after a checkpoint before the next, unless told otherwise.
pub const DEFAULT_CHECKPOINT_INTERVAL: Duration = Duration::from_secs(10);
/// Longer drains are mistakes of the unit.
const MAX_DRAIN: Duration = Duration::from_secs(3600);

/// What a command reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inputs {
    /// Manifests: files, directories with all below them, `-` for standard input.
    pub manifests: Vec<PathBuf>,
    /// Files of PolicyProfile documents, or directories of such files.
    pub profiles: Vec<PathBuf>,
    /// Whether to go on with what can be read.
    pub allow_partial: bool,
    /// The largest file of manifests, and the most text of one document, in MiB; `None` for the
    /// default.
    pub max_manifest_mib: Option<u32>,
    /// The cluster to read instead of manifests.
    pub cluster: Option<ClusterSettings>,
}

/// How to reach a cluster, and what is kept of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterSettings {
    /// The kubeconfig; else `KUBECONFIG`, the user's own one, or the pod's account.
    pub kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig; else its current one.
    pub context: Option<String>,
    /// Namespaces to keep objects of; all if there are none.
    pub namespaces: Vec<String>,
    /// Gateways to keep, by namespace and name; all if there are none.
    pub gateways: Vec<(String, String)>,
    /// GatewayClasses to keep, with their Gateways; all if there are none.
    pub classes: Vec<String>,
}

/// What callers are held to who ask what people ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InsightAuth {
    /// To nothing but their certificates.
    #[default]
    None,
    /// To what their account may `get` in the cluster.
    Kubernetes,
}

/// Settings of `serve`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServeSettings {
    /// What to read and follow.
    pub inputs: Inputs,
    /// Where to listen: `IP:PORT` or `unix:PATH`.
    pub listen: Vec<String>,
    /// Where to serve health alone.
    pub health_listen: Option<String>,
    /// Where to serve metrics and readiness over HTTP: `IP:PORT`.
    pub admin_listen: Option<String>,
    /// A Unix socket for the same, and for the log's filter.
    pub admin_socket: Option<PathBuf>,
    /// Certificates: TCP listeners then speak TLS, but for health and admin.
    pub tls: Option<TlsFiles>,
    /// Names of callers that may look up effective policies; all that are let in if there are none.
    pub data_plane_sans: Vec<String>,
    /// Names of callers that may ask what people ask; likewise.
    pub insight_sans: Vec<String>,
    /// A file of rows that say who may ask what, in place of both.
    pub callers: Option<PathBuf>,
    /// What callers over TCP are held to who ask what people ask.
    pub insight_auth: InsightAuth,
    /// What Envoy is told that asks about requests; it is not answered without it.
    pub envoy: Option<PathBuf>,
    /// A file to keep what is known of a cluster in.
    pub checkpoint: Option<PathBuf>,
    /// How long to wait after a checkpoint before the next.
    pub checkpoint_pause: Duration,
    /// Whether others than this machine may connect without TLS.
    pub insecure_listen: bool,
    /// A file to write the address of the first TCP listener to.
    pub port_file: Option<PathBuf>,
    /// How long requests may take to end after the signal to stop.
    pub drain_timeout: Duration,
    /// How often to look at manifests even if the file system tells of no change.
    pub poll: Duration,
    /// What one caller may cost.
    pub limits: Limits,
    /// What to log.
    pub log: LogSettings,
}

/// Addresses to listen on and who may ask there, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenConfig {
    /// For all services.
    pub all: Vec<Address>,
    /// For health alone.
    pub health: Option<Address>,
    /// For metrics.
    pub admin: Option<SocketAddr>,
    /// Who may ask what, if no file says it.
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
    /// All that is wrong, one sentence each.
    pub fn check(&self) -> Result<(), Vec<String>> {
        let mut wrong = Vec::new();
        match (&self.cluster, self.manifests.is_empty()) {
            (None, true) => wrong.push(
                "nothing to read: name files or directories with `--manifests`, or a cluster with \
                 `--kube`"
                    .to_owned(),
            ),
            (Some(_), false) => {
                wrong.push("`--manifests` beside a cluster: name one of the two".to_owned());
            }
            _ => {}
        }
        let is_stdin = |path: &&PathBuf| path.as_path() == Path::new("-");
        if self.manifests.iter().filter(is_stdin).count() > 1 {
            wrong.push("`--manifests -` stands twice: standard input is read once".to_owned());
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }
}

impl ServeSettings {
    /// Checks all settings and reads the addresses.
    ///
    /// # Errors
    /// All that is wrong, one sentence each.
    pub fn check(&self) -> Result<ListenConfig, Vec<String>> {
        let mut wrong = self.inputs.check().err().unwrap_or_default();
        let mut all: Vec<Address> = Vec::new();
        if self.listen.is_empty() {
            wrong.push("nowhere to listen: give `--listen`".to_owned());
        }
        for text in &self.listen {
            match self.listen_address(text) {
                Ok(address) if all.contains(&address) && !is_port_zero(&address) => {
                    wrong.push(format!("`--listen {text}` stands twice: remove one"));
                }
                Ok(address) => all.push(address),
                Err(message) => wrong.push(message),
            }
        }
        // Probes come from the node and speak no TLS, so health alone may be open to it.
        let health = match self.health_listen.as_deref().map(str::parse::<Address>) {
            None => None,
            Some(Ok(address)) if all.contains(&address) && !is_port_zero(&address) => {
                wrong.push(format!(
                    "`--health-listen {address}` is taken by `--listen`"
                ));
                None
            }
            Some(Ok(address)) => Some(address),
            Some(Err(error)) => {
                wrong.push(format!("--health-listen: {error}"));
                None
            }
        };
        let admin = self.admin_address().unwrap_or_else(|message| {
            wrong.push(message);
            None
        });
        let lists = self.allow_lists(&mut wrong);
        wrong.extend(self.missing_cluster_problems());
        wrong.extend(self.exposed_token_problem(&all));
        if self.port_file.is_some() && !all.iter().any(|a| matches!(a, Address::Tcp(_))) {
            wrong.push("`--port-file` needs a TCP address in `--listen`".to_owned());
        }
        if self.drain_timeout > MAX_DRAIN {
            wrong.push(format!(
                "`--drain-timeout` is over {} s",
                MAX_DRAIN.as_secs()
            ));
        }
        wrong.extend(self.zero_limit_problems());
        wrong.extend(self.log.check().err());
        if wrong.is_empty() {
            Ok(ListenConfig {
                all,
                health,
                admin,
                lists,
            })
        } else {
            Err(wrong)
        }
    }

    fn listen_address(&self, text: &str) -> Result<Address, String> {
        let address: Address = text.parse().map_err(|error| format!("--listen: {error}"))?;
        let knows_callers = self.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some());
        if address.is_local() || self.insecure_listen || knows_callers {
            return Ok(address);
        }
        Err(format!(
            "`--listen {text}` would be open to whoever reaches it: give `--tls-cert`, `--tls-key` and \
             `--tls-client-ca`, listen on loopback or `unix:PATH`, or give `--insecure-listen`"
        ))
    }

    fn admin_address(&self) -> Result<Option<SocketAddr>, String> {
        let Some(text) = self.admin_listen.as_deref() else {
            return Ok(None);
        };
        match text.parse::<Address>() {
            Ok(Address::Tcp(address)) => Ok(Some(address)),
            Ok(Address::Unix(_)) => Err(format!(
                "`--admin-listen {text}` is a Unix socket: give it with `--admin-socket`"
            )),
            Err(error) => Err(format!("--admin-listen: {error}")),
        }
    }

    fn allow_lists(&self, wrong: &mut Vec<String>) -> AllowLists {
        let mut read = |option: &str, names: &[String]| {
            let mut list: Vec<SanPattern> = Vec::with_capacity(names.len());
            for name in names {
                match name.parse() {
                    Ok(name) => list.push(name),
                    Err(error) => wrong.push(format!("{option}: {error}")),
                }
            }
            list
        };
        let lists = AllowLists {
            data_plane: read("--data-plane-san", &self.data_plane_sans),
            insight: read("--insight-san", &self.insight_sans),
        };
        let has_lists = lists != AllowLists::default();
        let knows_callers = self.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some());
        if (has_lists || self.callers.is_some()) && !knows_callers {
            wrong.push(
                "`--data-plane-san`, `--insight-san` and `--callers` are about names in client \
                 certificates: they need `--tls-client-ca`"
                    .to_owned(),
            );
        }
        if has_lists && self.callers.is_some() {
            wrong.push(
                "`--callers` beside `--data-plane-san` or `--insight-san`: make rows of them"
                    .to_owned(),
            );
        }
        lists
    }

    /// Whether others could read the tokens of callers.
    fn exposed_token_problem(&self, all: &[Address]) -> Option<String> {
        let is_open = self.tls.is_none() && !all.iter().all(Address::is_local);
        (is_open && self.insight_auth == InsightAuth::Kubernetes).then(|| {
            "`--insight-auth kubernetes` off loopback without TLS: others could read the tokens on \
             their way; give `--tls-cert` and `--tls-key`"
                .to_owned()
        })
    }

    /// What makes no sense without a cluster.
    fn missing_cluster_problems(&self) -> impl Iterator<Item = String> {
        let asks = self.insight_auth == InsightAuth::Kubernetes;
        let given = [
            (
                self.checkpoint.is_some(),
                "`--checkpoint` keeps what a cluster said: it needs `--kube`",
            ),
            (
                asks,
                "`--insight-auth kubernetes` asks a cluster what callers may get: it needs `--kube`",
            ),
        ];
        let has_none = self.inputs.cluster.is_none();
        let wrong = given
            .into_iter()
            .filter(move |(given, _)| *given && has_none);
        wrong.map(|(_, why)| why.to_owned())
    }

    fn zero_limit_problems(&self) -> impl Iterator<Item = String> {
        let limits = &self.limits;
        [
            ("connections", limits.connections == 0),
            ("request bytes", limits.request_bytes == 0),
            ("reply bytes", limits.reply_bytes == 0),
            ("streams", limits.streams == 0),
            ("look-ups at once", limits.requests == 0),
            (
                "requests of a client at once",
                limits.requests_per_connection == 0,
            ),
            ("request timeout", limits.request_timeout.is_zero()),
            ("header bytes", limits.header_bytes == 0),
            ("keepalive", limits.keepalive.is_zero()),
            ("keepalive timeout", limits.keepalive_timeout.is_zero()),
            ("insight questions at once", limits.insight_concurrency == 0),
            ("insight timeout", limits.insight_timeout.is_zero()),
            ("batches at once", limits.batch_concurrency == 0),
        ]
        .into_iter()
        .filter(|(_, is_zero)| *is_zero)
        .map(|(name, _)| format!("the limit of {name} is 0: nothing could be answered"))
    }
}

fn is_port_zero(address: &Address) -> bool {
    matches!(address, Address::Tcp(address) if address.port() == 0)
}

#[cfg(test)]
mod tests;

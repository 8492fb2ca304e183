//! `entail serve`: the arguments of the server.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::args::{ClusterArgs, ControllerArgs, ManifestArgs};
use super::connect::DEFAULT_SERVER;
use crate::config::{
    AdmissionSettings, ClusterSettings, ClusterTimeouts, DEFAULT_API_TIMEOUT,
    DEFAULT_CHECKPOINT_INTERVAL, DEFAULT_DRAIN_TIMEOUT, DEFAULT_FORBIDDEN_AFTER,
    DEFAULT_MAX_CONCURRENCY, DEFAULT_MAX_CONCURRENCY_PER_CLIENT, DEFAULT_MAX_CONNECTIONS,
    DEFAULT_MAX_CONNECTIONS_PER_CLIENT, DEFAULT_STALE_AFTER, DEFAULT_START_JITTER, Limits,
    TlsFiles,
};

/// Log format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormatArg {
    /// Human-readable text.
    Text,
    /// One JSON object per line.
    Json,
}

/// Authorization for PolicyInsightService.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum InsightAuthArg {
    /// No authorization besides client certificates.
    None,
    /// Kubernetes authorization: TokenReview and SubjectAccessReview.
    Kubernetes,
}

/// Arguments of `entail serve`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
A listener on a non-loopback address needs `--tls-client-ca` or `--insecure-listen`. Certificate
files are reloaded when they change.

Examples:
  entail serve --kube
  entail serve --manifests examples/bakery
  entail serve --manifests examples/bakery --listen 127.0.0.1:0 --port-file /tmp/port
  entail serve --manifests examples/bakery --listen unix:/run/entail.sock
  entail serve --kube --listen 0.0.0.0:50051 --tls-cert tls.crt --tls-key tls.key \\
    --tls-client-ca ca.crt --checkpoint /var/lib/entail/checkpoint.yaml --admin-listen 0.0.0.0:9090")]
pub struct ServeArgs {
    /// Manifests to read and watch: files, directories, or `-` for standard input. May be
    /// repeated.
    #[arg(long, value_name = "PATH", num_args = 1..)]
    pub manifests: Vec<PathBuf>,
    /// Options that read from a cluster instead of manifests.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// Profiles of policy kinds, in addition to those in the manifests: files or directories.
    /// May be repeated.
    #[arg(long, value_name = "PATH", num_args = 1..)]
    pub profiles: Vec<PathBuf>,
    /// What is known of controllers besides profiles.
    #[command(flatten)]
    pub controllers: ControllerArgs,
    /// Serve the readable files at start even if some files cannot be read.
    #[arg(long)]
    pub allow_partial: bool,
    /// Limits of manifests.
    #[command(flatten)]
    pub manifest: ManifestArgs,
    /// Address to listen on: `host:port` (port 0 for any free port) or `unix:PATH`. May be repeated.
    #[arg(long, value_name = "ADDR", default_value = DEFAULT_SERVER)]
    pub listen: Vec<String>,
    /// Address for the health service alone, for kubelet probes without TLS.
    #[arg(long, value_name = "ADDR")]
    pub health_listen: Option<String>,
    /// Address of the HTTP server for `/metrics`, `/healthz` and `/readyz`.
    #[arg(long, value_name = "ADDR")]
    pub admin_listen: Option<String>,
    /// Unix socket of the same HTTP server, with `PUT /log` to change the log filter.
    #[arg(long, value_name = "PATH")]
    pub admin_socket: Option<PathBuf>,
    /// Address of the admission webhook: `POST /admit` over HTTPS answers AdmissionReviews with warnings of what
    /// a change takes away. It denies one only if an enforced assertion breaks. `entail admission` prints its configuration.
    #[arg(long, value_name = "ADDR", requires = "admission_tls_cert")]
    pub admission_listen: Option<String>,
    /// Certificate chain of the admission webhook in PEM.
    #[arg(long, value_name = "FILE", requires_all = ["admission_tls_key", "admission_listen"])]
    pub admission_tls_cert: Option<PathBuf>,
    /// Private key of that certificate in PEM.
    #[arg(long, value_name = "FILE", requires = "admission_tls_cert")]
    pub admission_tls_key: Option<PathBuf>,
    /// CA certificates of the API servers that may call the admission webhook, in PEM.
    #[arg(long, value_name = "FILE", requires = "admission_tls_cert")]
    pub admission_tls_client_ca: Option<PathBuf>,
    /// Let every client that reaches a non-loopback address call the admission webhook. API servers have a client
    /// certificate for webhooks only if that is configured.
    #[arg(
        long,
        requires = "admission_listen",
        conflicts_with = "admission_tls_client_ca"
    )]
    pub admission_any_client: bool,
    /// Name objects of all namespaces in warnings, and not only those in the namespace of the changed object and those
    /// that it names itself. Everybody who may change an object sees these names.
    #[arg(long, requires = "admission_listen")]
    pub admission_full_names: bool,
    /// Address of the console, a page in the browser: `127.0.0.1:PORT`. It shows what PolicyInsightService answers, and
    /// requires a token with `--insight-auth kubernetes`.
    #[arg(long, value_name = "ADDR")]
    pub console_listen: Option<String>,
    /// Server certificate chain in PEM. TCP listeners then require TLS, except those of health, metrics and the console.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Private key of the certificate in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// CA certificates of clients, in PEM. Clients without a certificate from one of them are
    /// refused.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_client_ca: Option<PathBuf>,
    /// Client certificate names that may use EffectivePolicyService: DNS (`*.` matches one label)
    /// or URI (`/*` matches everything below). May be repeated; without it, every client may.
    #[arg(long = "data-plane-san", value_name = "NAME")]
    pub data_plane_sans: Vec<String>,
    /// Client certificate names that may use PolicyInsightService, in the same form.
    #[arg(long = "insight-san", value_name = "NAME")]
    pub insight_sans: Vec<String>,
    /// File of access rules: which clients may use which services, paths and kinds. Replaces
    /// `--data-plane-san` and `--insight-san`.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["data_plane_sans", "insight_sans"])]
    pub callers: Option<PathBuf>,
    /// Authorization for PolicyInsightService over TCP. With `kubernetes`, clients send a bearer
    /// token and see the objects that their account may `get`. Clients on a Unix socket see
    /// everything.
    #[arg(long, value_enum, default_value_t = InsightAuthArg::None)]
    pub insight_auth: InsightAuthArg,
    /// Configuration file of the Envoy external authorization (`ext_authz`) service.
    #[arg(long, value_name = "FILE")]
    pub envoy_config: Option<PathBuf>,
    /// Maximum number of concurrent look-ups; further ones fail with RESOURCE_EXHAUSTED.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_MAX_CONCURRENCY)]
    pub max_concurrency: usize,
    /// Maximum number of concurrent requests per connection.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_MAX_CONCURRENCY_PER_CLIENT)]
    pub max_concurrency_per_client: usize,
    /// Maximum number of connections; beyond it, silent and idle ones give way to new ones.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_MAX_CONNECTIONS)]
    pub max_connections: usize,
    /// Maximum number of connections from one address, and with one client certificate.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_MAX_CONNECTIONS_PER_CLIENT)]
    pub max_connections_per_client: usize,
    /// Maximum number of watch streams.
    #[arg(long, value_name = "N", default_value_t = Limits::default().watches)]
    pub max_watches: usize,
    /// Maximum number of watch streams per connection.
    #[arg(long, value_name = "N", default_value_t = Limits::default().watches_per_connection)]
    pub max_watches_per_client: usize,
    /// File for checkpoints of the cluster state. After a restart the server answers from it, with
    /// state STALE, until it has read the cluster.
    #[arg(long, value_name = "FILE")]
    pub checkpoint: Option<PathBuf>,
    /// Minimum number of seconds between checkpoints.
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_CHECKPOINT_INTERVAL.as_secs())]
    pub checkpoint_pause: u64,
    /// Seconds without anything from the API server about a kind until its state is STALE.
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_STALE_AFTER.as_secs())]
    pub stale_after: u64,
    /// Seconds for which a ready API server denies a kind until its state is FORBIDDEN, even if no
    /// access review confirms it.
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_FORBIDDEN_AFTER.as_secs())]
    pub forbidden_after: u64,
    /// Maximum number of seconds until the first request to the API server. Each process waits for a random part
    /// of them, so that a fleet that starts does not ask all at once.
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_START_JITTER.as_secs())]
    pub start_jitter: u64,
    /// Seconds to wait until the API server answers a watch, or sends the next part of a list.
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_API_TIMEOUT.as_secs())]
    pub api_timeout: u64,
    /// File to write the address of the first TCP listener to.
    #[arg(long, value_name = "FILE")]
    pub port_file: Option<PathBuf>,
    /// Allow listeners on non-loopback addresses without client authentication.
    #[arg(long)]
    pub insecure_listen: bool,
    /// Seconds to wait for requests in flight after SIGTERM.
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_DRAIN_TIMEOUT.as_secs())]
    pub drain_timeout: u64,
    /// Log filter: a level, or levels by target, such as `info,entail::app=debug`. Defaults to
    /// `ENTAIL_LOG`, then `info`.
    #[arg(long, value_name = "FILTER")]
    pub log: Option<String>,
    /// Log format.
    #[arg(long, value_enum, default_value_t = LogFormatArg::Text)]
    pub log_format: LogFormatArg,
}

impl ServeArgs {
    /// The limits of requests and watch streams.
    pub(in crate::cli) fn limits(&self) -> Limits {
        Limits {
            requests: self.max_concurrency,
            requests_per_connection: self.max_concurrency_per_client,
            connections: self.max_connections,
            connections_per_client: self.max_connections_per_client,
            watches: self.max_watches,
            watches_per_connection: self.max_watches_per_client,
            ..Limits::default()
        }
    }

    /// How to read from a cluster, if the input is one.
    pub(in crate::cli) fn cluster_settings(&self) -> Option<ClusterSettings> {
        let access = self.cluster.access(&self.manifests)?;
        Some(ClusterSettings {
            timeouts: ClusterTimeouts {
                request: Duration::from_secs(self.api_timeout),
                stale_after: Duration::from_secs(self.stale_after),
                forbidden_after: Duration::from_secs(self.forbidden_after),
                start_jitter: Duration::from_secs(self.start_jitter),
            },
            ..access
        })
    }

    /// The admission webhook, if one is configured.
    pub(in crate::cli) fn admission_settings(&self) -> Option<AdmissionSettings> {
        let files = self.admission_tls_cert.clone();
        let (cert, key) = files.zip(self.admission_tls_key.clone())?;
        Some(AdmissionSettings {
            listen: self.admission_listen.clone()?,
            tls: TlsFiles {
                cert,
                key,
                client_ca: self.admission_tls_client_ca.clone(),
            },
            any_client: self.admission_any_client,
            full_names: self.admission_full_names,
        })
    }

    /// The TLS files, if a certificate is configured.
    pub(in crate::cli) fn tls_files(&self) -> Option<TlsFiles> {
        let (cert, key) = self.tls_cert.clone().zip(self.tls_key.clone())?;
        Some(TlsFiles {
            cert,
            key,
            client_ca: self.tls_client_ca.clone(),
        })
    }
}

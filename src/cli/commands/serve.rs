//! `entail serve`: its settings.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::args::{ClusterArgs, ManifestArgs};
use super::connect::DEFAULT_SERVER;
use crate::config::{
    DEFAULT_CHECKPOINT_INTERVAL, DEFAULT_DRAIN_TIMEOUT, DEFAULT_MAX_CONCURRENCY,
    DEFAULT_MAX_CONCURRENCY_PER_CLIENT, Limits, TlsFiles,
};

/// How a line of the log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormatArg {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// What callers are held to who explain and list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum InsightAuthArg {
    /// To nothing but their certificates.
    None,
    /// To their rights in the cluster: TokenReview and SubjectAccessReview.
    Kubernetes,
}

/// Runs the server.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
A listener off loopback is refused unless callers show certificates (`--tls-client-ca`) or
`--insecure-listen` is given. Files of certificates are taken anew when they change.

Examples:
  entail serve --kube
  entail serve --manifests examples/bakery
  entail serve --manifests examples/bakery --listen 127.0.0.1:0 --port-file /tmp/port
  entail serve --manifests examples/bakery --listen unix:/run/entail.sock
  entail serve --kube --listen 0.0.0.0:50051 --tls-cert tls.crt --tls-key tls.key \\
    --tls-client-ca ca.crt --checkpoint /var/lib/entail/checkpoint.yaml --admin-listen 0.0.0.0:9090")]
pub struct ServeArgs {
    /// Manifests to read and follow: files, directories, or `-` for standard input. May be
    /// repeated.
    #[arg(long, value_name = "PATH", num_args = 1..)]
    pub manifests: Vec<PathBuf>,
    /// A cluster instead of manifests.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// Profiles of policy kinds, beside those in the manifests: files or directories.
    #[arg(long, value_name = "PATH", num_args = 1..)]
    pub profiles: Vec<PathBuf>,
    /// Serve what can be read at the start, even if some files cannot.
    #[arg(long)]
    pub allow_partial: bool,
    /// How much a manifest may hold.
    #[command(flatten)]
    pub manifest: ManifestArgs,
    /// Where to listen: `host:port` (port 0 for any that is free) or `unix:PATH`. May be repeated.
    #[arg(long, value_name = "ADDR", default_value = DEFAULT_SERVER)]
    pub listen: Vec<String>,
    /// Where to serve health alone, for a kubelet that dials the pod's address without TLS.
    #[arg(long, value_name = "ADDR")]
    pub health_listen: Option<String>,
    /// Where to serve `/metrics`, `/healthz` and `/readyz` over HTTP.
    #[arg(long, value_name = "ADDR")]
    pub admin_listen: Option<String>,
    /// A Unix socket for the same, and for `PUT /log`, which changes what is logged.
    #[arg(long, value_name = "PATH")]
    pub admin_socket: Option<PathBuf>,
    /// The server's certificate and those between it and its CA, in PEM: TCP listeners speak TLS.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The key of the certificate.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// The CAs of callers: who shows no certificate of one of them is refused.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_client_ca: Option<PathBuf>,
    /// Callers over TLS that may look up effective policies, by a name in their certificate: DNS
    /// (`*.` for one label) or URI (`/*` for all below). May be repeated; without it all may.
    #[arg(long = "data-plane-san", value_name = "NAME")]
    pub data_plane_sans: Vec<String>,
    /// Callers over TLS that may explain and list, likewise.
    #[arg(long = "insight-san", value_name = "NAME")]
    pub insight_sans: Vec<String>,
    /// A file of rows that say which callers over TLS may ask what, of which paths and kinds, in
    /// place of both.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["data_plane_sans", "insight_sans"])]
    pub callers: Option<PathBuf>,
    /// What callers over TCP are held to who explain and list. With `kubernetes` they send a token of
    /// the cluster and see what their account may `get`; callers by a Unix socket see everything.
    #[arg(long, value_enum, default_value_t = InsightAuthArg::None)]
    pub insight_auth: InsightAuthArg,
    /// A file that says what Envoy is told when it asks about requests (`ext_authz`).
    #[arg(long, value_name = "FILE")]
    pub envoy_config: Option<PathBuf>,
    /// Look-ups that are worked on at once; more are turned away with RESOURCE_EXHAUSTED.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_MAX_CONCURRENCY)]
    pub max_concurrency: usize,
    /// Requests of one client, which is one connection, that are worked on at once.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_MAX_CONCURRENCY_PER_CLIENT)]
    pub max_concurrency_per_client: usize,
    /// Streams that follow paths, of all clients together.
    #[arg(long, value_name = "N", default_value_t = Limits::default().watches)]
    pub max_watches: usize,
    /// Streams of one client that follow paths.
    #[arg(long, value_name = "N", default_value_t = Limits::default().watches_per_connection)]
    pub max_watches_per_client: usize,
    /// A file to keep what is known of the cluster in: the next start answers from it at once, and
    /// says STALE until the cluster is read.
    #[arg(long, value_name = "FILE")]
    pub checkpoint: Option<PathBuf>,
    /// Seconds to wait after a checkpoint before the next.
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_CHECKPOINT_INTERVAL.as_secs())]
    pub checkpoint_pause: u64,
    /// A file to write the address of the first TCP listener to, once it is known.
    #[arg(long, value_name = "FILE")]
    pub port_file: Option<PathBuf>,
    /// Allow listeners off loopback that anybody may use.
    #[arg(long)]
    pub insecure_listen: bool,
    /// Seconds that requests may take to end after the signal to stop.
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_DRAIN_TIMEOUT.as_secs())]
    pub drain_timeout: u64,
    /// What to log: a level, or levels by target, such as `info,entail::app=debug`. Without it
    /// `ENTAIL_LOG` counts.
    #[arg(long, value_name = "FILTER")]
    pub log: Option<String>,
    /// How a line of the log is written.
    #[arg(long, value_enum, default_value_t = LogFormatArg::Text)]
    pub log_format: LogFormatArg,
}

impl ServeArgs {
    /// What callers may cost.
    pub(in crate::cli) fn limits(&self) -> Limits {
        Limits {
            requests: self.max_concurrency,
            requests_per_connection: self.max_concurrency_per_client,
            watches: self.max_watches,
            watches_per_connection: self.max_watches_per_client,
            ..Limits::default()
        }
    }

    /// The certificates, if there are some.
    pub(in crate::cli) fn tls_files(&self) -> Option<TlsFiles> {
        let (cert, key) = self.tls_cert.clone().zip(self.tls_key.clone())?;
        Some(TlsFiles {
            cert,
            key,
            client_ca: self.tls_client_ca.clone(),
        })
    }
}

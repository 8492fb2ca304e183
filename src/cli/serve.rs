//! `entail serve`: its settings.

use std::path::PathBuf;

use clap::Args;

use super::connect::DEFAULT_SERVER;

/// Runs the server.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
A listener off loopback without `--client-ca` is refused unless `--insecure-listen` is given.

Examples:
  entail serve --manifests examples/bakery
  entail serve --manifests examples/bakery --listen 127.0.0.1:0 --port-file /tmp/port
  entail serve --manifests examples/bakery --listen unix:/run/entail.sock")]
pub struct ServeArgs {
    /// Manifests to read and follow: files, directories, or `-` for standard input. May be
    /// repeated.
    #[arg(long, value_name = "PATH", num_args = 1.., required = true)]
    pub manifests: Vec<PathBuf>,
    /// Profiles of policy kinds, beside those in the manifests: files or directories.
    #[arg(long, value_name = "PATH", num_args = 1..)]
    pub profiles: Vec<PathBuf>,
    /// Serve what can be read at the start, even if some files cannot.
    #[arg(long)]
    pub allow_partial: bool,
    /// Where to listen: `host:port` (port 0 for any that is free) or `unix:PATH`. May be repeated.
    #[arg(long, value_name = "ADDR", default_value = DEFAULT_SERVER)]
    pub listen: Vec<String>,
    /// Where to serve health alone, for a kubelet that dials the pod's address without TLS.
    #[arg(long, value_name = "ADDR")]
    pub health_listen: Option<String>,
    /// A file to write the addresses to that are listened on, once they are known.
    #[arg(long, value_name = "FILE")]
    pub port_file: Option<PathBuf>,
    /// Allow listeners off loopback that anybody may use.
    #[arg(long)]
    pub insecure_listen: bool,
    /// Certificate chain of the server, PEM.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Private key of the server, PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Certificate authorities that clients must be known to, PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub client_ca: Option<PathBuf>,
}

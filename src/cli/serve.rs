//! `entail serve`: its settings.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::args::ClusterArgs;
use super::connect::DEFAULT_SERVER;
use crate::config::DEFAULT_DRAIN;

/// How a line of the log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogLines {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Runs the server.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
A listener off loopback is refused unless `--insecure-listen` is given: listen on loopback or a
Unix socket, behind a proxy that speaks TLS.

Examples:
  entail serve --kube
  entail serve --manifests examples/bakery
  entail serve --manifests examples/bakery --listen 127.0.0.1:0 --port-file /tmp/port
  entail serve --manifests examples/bakery --listen unix:/run/entail.sock")]
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
    /// Where to listen: `host:port` (port 0 for any that is free) or `unix:PATH`. May be repeated.
    #[arg(long, value_name = "ADDR", default_value = DEFAULT_SERVER)]
    pub listen: Vec<String>,
    /// Where to serve health alone, for a kubelet that dials the pod's address without TLS.
    #[arg(long, value_name = "ADDR")]
    pub health_listen: Option<String>,
    /// A file to write the address of the first TCP listener to, once it is known.
    #[arg(long, value_name = "FILE")]
    pub port_file: Option<PathBuf>,
    /// Allow listeners off loopback that anybody may use.
    #[arg(long)]
    pub insecure_listen: bool,
    /// Seconds that requests may take to end after the signal to stop.
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_DRAIN.as_secs())]
    pub drain_timeout: u64,
    /// What to log: a level, or levels by target, such as `info,entail::app=debug`. Without it
    /// `ENTAIL_LOG` counts.
    #[arg(long, value_name = "FILTER")]
    pub log: Option<String>,
    /// How a line of the log is written.
    #[arg(long, value_enum, default_value_t = LogLines::Text)]
    pub log_format: LogLines,
}

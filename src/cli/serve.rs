//! `entail serve`: its settings.

use std::path::PathBuf;

use clap::Args;

/// Runs the server.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  entail serve --manifests examples/bakery
  entail serve --manifests examples/bakery --listen 127.0.0.1:0 --port-file /tmp/port
  entail serve --manifests examples/bakery --listen unix:/run/entail.sock")]
pub struct ServeArgs {
    /// Manifests to read and follow: files, directories, or `-` for standard input.
    #[arg(long, value_name = "PATH", num_args = 1.., required = true)]
    pub manifests: Vec<PathBuf>,
    /// Profiles of policy kinds, beside those in the manifests: files or directories.
    #[arg(long, value_name = "PATH", num_args = 1..)]
    pub profiles: Vec<PathBuf>,
    /// Serve what can be read at the start, even if some files cannot.
    #[arg(long)]
    pub allow_partial: bool,
}

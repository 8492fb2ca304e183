//! Options that several commands share.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::CliError;
use crate::config::ClusterSettings;
use entail_client::ClientTls;

/// Heading of the options that name the source.
const SOURCE: &str = "Source";

/// Where answers come from.
#[derive(Args, Clone, Debug, Default)]
pub struct SourceArgs {
    /// Manifests to read: files, directories, or `-` for standard input. May be repeated.
    #[arg(
        long,
        value_name = "PATH",
        num_args = 1..,
        conflicts_with = "server",
        help_heading = SOURCE
    )]
    pub manifests: Vec<PathBuf>,
    /// Profiles of policy kinds, beside those in the manifests: files or directories.
    #[arg(
        long,
        value_name = "PATH",
        num_args = 1..,
        conflicts_with = "server",
        help_heading = SOURCE
    )]
    pub profiles: Vec<PathBuf>,
    /// A cluster instead of manifests.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// A running server to ask: `host:port`, `https://host:port` or `unix:PATH`.
    #[arg(long, value_name = "ADDR", help_heading = SOURCE, conflicts_with_all = ["kube", "kubeconfig", "context", "namespaces", "gateways", "classes"])]
    pub server: Option<String>,
    /// Certificates for a server that speaks TLS.
    #[command(flatten)]
    pub tls: TlsArgs,
    /// A token of the cluster, for a server that tells callers what they may get there
    /// (`--insight-auth kubernetes`); it is sent over TLS, to this machine and to Unix sockets only.
    #[arg(long, value_name = "FILE", requires = "server", help_heading = SOURCE)]
    pub token_file: Option<PathBuf>,
    /// Answer from what can be read, even if some files cannot.
    #[arg(long, conflicts_with = "server", help_heading = SOURCE)]
    pub allow_partial: bool,
    /// How much a manifest may hold.
    #[command(flatten)]
    pub limits: ManifestArgs,
}

/// How much a manifest may hold.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct ManifestArgs {
    /// The largest file of manifests, in MiB; also the most text of one document with all that its
    /// aliases repeat [default: 64].
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..=2048), help_heading = SOURCE)]
    pub max_manifest_size: Option<u32>,
}

/// Certificates for `--server https://host:port`, in PEM.
#[derive(Args, Clone, Debug, Default)]
pub struct TlsArgs {
    /// The CA of the server's certificate.
    #[arg(long, value_name = "FILE", requires = "server", help_heading = SOURCE)]
    pub tls_ca: Option<PathBuf>,
    /// The certificate to show to the server.
    #[arg(long, value_name = "FILE", requires = "tls_key", help_heading = SOURCE)]
    pub tls_cert: Option<PathBuf>,
    /// The key of the certificate.
    #[arg(long, value_name = "FILE", requires = "tls_cert", help_heading = SOURCE)]
    pub tls_key: Option<PathBuf>,
    /// The name in the server's certificate, where it is not that of the address.
    #[arg(long, value_name = "NAME", requires = "server", help_heading = SOURCE)]
    pub tls_server_name: Option<String>,
}

impl TlsArgs {
    /// The certificates.
    pub(super) fn files(&self) -> ClientTls {
        ClientTls {
            ca: self.tls_ca.clone(),
            identity: self.tls_cert.clone().zip(self.tls_key.clone()),
            server_name: self.tls_server_name.clone(),
        }
    }
}

/// A cluster as source.
#[derive(Args, Clone, Debug, Default)]
pub struct ClusterArgs {
    /// Read the cluster: that of the current context, or the one that this runs in.
    #[arg(long, conflicts_with = "manifests", help_heading = SOURCE)]
    pub kube: bool,
    /// The kubeconfig that says where the cluster is.
    #[arg(long, value_name = "FILE", conflicts_with = "manifests", help_heading = SOURCE)]
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig.
    #[arg(long, conflicts_with = "manifests", help_heading = SOURCE)]
    pub context: Option<String>,
    /// Of a cluster, keep objects of these namespaces alone. May be repeated.
    #[arg(long = "namespace", value_name = "NAMESPACE", conflicts_with = "manifests", help_heading = SOURCE)]
    pub namespaces: Vec<String>,
    /// Of a cluster, keep these Gateways alone. May be repeated.
    #[arg(long = "gateway", value_name = "NAMESPACE/NAME", value_parser = gateway_name, conflicts_with = "manifests", help_heading = SOURCE)]
    pub gateways: Vec<(String, String)>,
    /// Of a cluster, keep these GatewayClasses and their Gateways alone. May be repeated.
    #[arg(long = "gateway-class", value_name = "NAME", conflicts_with = "manifests", help_heading = SOURCE)]
    pub classes: Vec<String>,
}

/// What is asked for and how it is printed.
#[derive(Args, Clone, Debug)]
pub struct QueryArgs {
    /// A path (`gateways/...`, `mesh/...`, `gatewayclasses/...`, `namespaces/...`) or an object
    /// (`kind/namespace/name`, such as `httproute/baker/bread`).
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Where answers come from.
    #[command(flatten)]
    pub source: SourceArgs,
    /// Only this policy kind, as `Kind.group`, or `Kind` alone if that is clear. May be repeated.
    #[arg(long = "kind", value_name = "KIND")]
    pub kinds: Vec<String>,
    /// How to print.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    pub output: Format,
}

/// Where an answer comes from, what it is about, and how it is printed: for commands whose NAME, if
/// they take one, means something of its own.
#[derive(Args, Clone, Debug)]
pub struct CommonArgs {
    /// Where answers come from.
    #[command(flatten)]
    pub source: SourceArgs,
    /// Only this policy kind, as `Kind.group`, or `Kind` alone if that is clear. May be repeated.
    #[arg(long = "kind", value_name = "KIND")]
    pub kinds: Vec<String>,
    /// How to print.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    pub output: Format,
}

/// How to print.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Table,
    /// For people and programs.
    Yaml,
    /// For programs.
    Json,
}

/// Runs conformance cases.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  entail test tests/conformance/gwctl.yaml
  entail test tests/conformance/*.yaml")]
pub struct TestArgs {
    /// Files of cases.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// A list of cases that need a part that is not built yet.
    #[arg(long, value_name = "FILE")]
    pub pending: Option<PathBuf>,
    /// A list of cases whose expectation contradicts the rules.
    #[arg(long, value_name = "FILE")]
    pub disputed: Option<PathBuf>,
    /// Profiles of policy kinds, beside those in the cases. May be repeated.
    #[arg(long, value_name = "PATH")]
    pub profiles: Vec<PathBuf>,
}

/// Whether a name is one of a path.
pub(super) fn is_path(name: &str) -> bool {
    ["gateways/", "gatewayclasses/", "namespaces/", "mesh/"]
        .iter()
        .any(|root| name.starts_with(root))
}

impl CommonArgs {
    /// The question about a name, or about nothing in particular.
    #[must_use]
    pub(super) fn with_name(self, name: Option<String>) -> QueryArgs {
        QueryArgs {
            name,
            source: self.source,
            kinds: self.kinds,
            output: self.output,
        }
    }
}

impl QueryArgs {
    /// Options that take several values swallow a name that follows them, as in
    /// `get --manifests FOLDER NAME`: it is given back if it reads like a name and is no file.
    #[must_use]
    pub(super) fn recover_name(mut self) -> Self {
        let lists = [&mut self.source.manifests, &mut self.source.profiles];
        for list in lists {
            if self.name.is_some() || list.len() < 2 {
                continue;
            }
            let swallowed = list.last().filter(|path| is_name(path));
            if let Some(name) = swallowed.and_then(|path| path.to_str()) {
                self.name = Some(name.to_owned());
                list.pop();
            }
        }
        self
    }
}

impl ClusterArgs {
    /// The cluster, if one is named, or if this runs in one and no manifests are named.
    pub(super) fn access(&self, manifests: &[PathBuf]) -> Option<ClusterSettings> {
        let is_named = self.kube || self.kubeconfig.is_some() || self.context.is_some();
        let is_pod = || std::env::var_os("KUBERNETES_SERVICE_HOST").is_some();
        (is_named || manifests.is_empty() && is_pod()).then(|| ClusterSettings {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
            namespaces: self.namespaces.clone(),
            gateways: self.gateways.clone(),
            classes: self.classes.clone(),
        })
    }
}

impl SourceArgs {
    /// Fails if no source is given.
    ///
    /// # Errors
    /// What to do.
    pub(super) fn check(&self) -> Result<(), CliError> {
        if self.server.is_some()
            || !self.manifests.is_empty()
            || self.cluster.access(&self.manifests).is_some()
        {
            return Ok(());
        }
        Err(CliError::Usage(
            "no source is given: name manifests with `--manifests PATH`, a cluster with `--kube` or \
             a running server with `--server ADDR`"
                .to_owned(),
        ))
    }
}

/// Reads `NAMESPACE/NAME`.
fn gateway_name(text: &str) -> Result<(String, String), String> {
    let is_name = |part: &str| !part.is_empty() && !part.contains('/');
    match text.split_once('/') {
        Some((namespace, name)) if is_name(namespace) && is_name(name) => {
            Ok((namespace.to_owned(), name.to_owned()))
        }
        _ => Err("write `NAMESPACE/NAME`, such as `platform/storefront`".to_owned()),
    }
}

/// Whether a value of `--manifests` reads like a name, and not like a file.
fn is_name(path: &Path) -> bool {
    let Some(text) = path.to_str() else {
        return false;
    };
    let parts = text.split('/').collect::<Vec<_>>();
    let is_object = matches!(parts.len(), 2 | 3) && parts.iter().all(|part| !part.is_empty());
    let is_relative = text.starts_with(['/', '.', '~']);
    (is_path(text) || is_object) && !is_relative && !path.exists()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: QueryArgs,
    }

    fn settled(line: &[&str]) -> (Option<String>, usize) {
        let all = std::iter::once("x").chain(line.iter().copied());
        let args = Line::try_parse_from(all).unwrap().args.recover_name();
        (args.name, args.source.manifests.len())
    }

    #[test]
    fn a_name_may_stand_before_and_behind_the_manifests() {
        let name = Some("httproute/a/b".to_owned());
        assert_eq!(
            settled(&["httproute/a/b", "--manifests", "x", "y"]),
            (name.clone(), 2)
        );
        assert_eq!(settled(&["--manifests", "x", "httproute/a/b"]), (name, 1));
        assert_eq!(settled(&["--manifests", "x", "./a/b"]), (None, 2));
        assert_eq!(settled(&["--manifests", "httproute/a/b"]), (None, 1));
        let path = Some("gateways/a/b/listeners/c".to_owned());
        assert_eq!(
            settled(&["--manifests", "x", "gateways/a/b/listeners/c"]),
            (path, 1)
        );
    }

    #[test]
    fn a_source_is_needed() {
        assert!(SourceArgs::default().check().is_err());
        let line = ["x", "--manifests", "a", "--server", "b"];
        assert!(Line::try_parse_from(line).is_err());
    }
}

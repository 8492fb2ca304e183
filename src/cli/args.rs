//! Command line options that several commands share.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::CliError;
use super::names::NameArgs;
use crate::config::{ClusterSettings, ClusterTimeouts, ControllerSettings};
use entail_client::ClientTls;
use entail_core::model::{GroupKind, groups};
use entail_core::store::ControllerAlias;

/// Help heading of the options that select the source.
const SOURCE: &str = "Source";

/// The source of answers: manifests, a cluster, or a running server.
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
    /// Profiles of policy kinds, in addition to those in the manifests: files or directories.
    /// May be repeated.
    #[arg(
        long,
        value_name = "PATH",
        num_args = 1..,
        conflicts_with = "server",
        help_heading = SOURCE
    )]
    pub profiles: Vec<PathBuf>,
    /// What is known of controllers besides profiles.
    #[command(flatten)]
    pub controllers: ControllerArgs,
    /// Options that read from a cluster instead of manifests.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// Address of a running server: `host:port`, `https://host:port` or `unix:PATH`.
    #[arg(long, value_name = "ADDR", help_heading = SOURCE, conflicts_with_all = ["kube", "kubeconfig", "context", "namespaces", "gateways", "classes"])]
    pub server: Option<String>,
    /// Certificates for `--server`.
    #[command(flatten)]
    pub tls: TlsArgs,
    /// File with a ServiceAccount token, for a server with `--insight-auth kubernetes`. The token
    /// is sent only over TLS, to loopback addresses, and to Unix sockets.
    #[arg(long, value_name = "FILE", requires = "server", help_heading = SOURCE)]
    pub token_file: Option<PathBuf>,
    /// Use the readable files even if some files cannot be read.
    #[arg(long, conflicts_with = "server", help_heading = SOURCE)]
    pub allow_partial: bool,
    /// How much a manifest may hold.
    #[command(flatten)]
    pub limits: ManifestArgs,
}

/// What is known of controllers and objects besides profiles and manifests.
#[derive(Args, Clone, Debug, Default)]
pub struct ControllerArgs {
    /// Profiles that describe the policies of a controller with a name of its own: the API group of
    /// their kinds, or a controllerName that they list. May be repeated.
    #[arg(long = "controller", value_name = "NAME=GROUP", value_parser = pair, help_heading = SOURCE)]
    pub controllers: Vec<(String, String)>,
    /// Controller of a GatewayClass that the input does not contain. May be repeated.
    #[arg(long = "assume-class", value_name = "CLASS=CONTROLLER", value_parser = pair, help_heading = SOURCE)]
    pub assumed_classes: Vec<(String, String)>,
    /// Kinds of which the manifests hold all objects, such as `Secret,ConfigMap`: a policy that
    /// references another one is not valid. Of Secrets, only the names are read. May be repeated.
    #[arg(long = "assume-complete", value_name = "KIND[.GROUP]", value_delimiter = ',', value_parser = kind, help_heading = SOURCE)]
    pub complete_kinds: Vec<GroupKind>,
}

impl ControllerArgs {
    /// The settings that the arguments mean.
    pub(super) fn settings(&self) -> ControllerSettings {
        let aliases = self.controllers.iter();
        let classes = self.assumed_classes.iter();
        ControllerSettings {
            aliases: aliases
                .map(|(controller, profiles)| ControllerAlias {
                    controller: controller.as_str().into(),
                    profiles: profiles.as_str().into(),
                })
                .collect(),
            assumed_classes: classes
                .map(|(class, controller)| (class.as_str().into(), controller.as_str().into()))
                .collect(),
            complete_kinds: self.complete_kinds.clone(),
        }
    }
}

/// Parses `KIND` or `KIND.GROUP`.
fn kind(text: &str) -> Result<GroupKind, String> {
    let (kind, group) = text.split_once('.').unwrap_or((text, groups::CORE));
    let is_kind = kind.starts_with(|first: char| first.is_ascii_uppercase());
    if !is_kind || text.ends_with('.') {
        return Err("use `Kind` or `Kind.group`, such as `ConfigMap`".to_owned());
    }
    Ok(GroupKind::new(group, kind).canonical())
}

/// Parses `NAME=VALUE`.
fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once('=')
        .filter(|(name, value)| !name.is_empty() && !value.is_empty())
        .ok_or_else(|| "use `NAME=VALUE`".to_owned())?;
    Ok((name.to_owned(), value.to_owned()))
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
    /// CA certificate that signed the server certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "server", help_heading = SOURCE)]
    pub tls_ca: Option<PathBuf>,
    /// Client certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_key", help_heading = SOURCE)]
    pub tls_cert: Option<PathBuf>,
    /// Private key of the client certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert", help_heading = SOURCE)]
    pub tls_key: Option<PathBuf>,
    /// Name expected in the server certificate, if it differs from the host of the address.
    #[arg(long, value_name = "NAME", requires = "server", help_heading = SOURCE)]
    pub tls_server_name: Option<String>,
}

impl TlsArgs {
    /// Returns the certificate files in the form of the client library.
    pub(super) fn files(&self) -> ClientTls {
        ClientTls {
            ca: self.tls_ca.clone(),
            identity: self.tls_cert.clone().zip(self.tls_key.clone()),
            server_name: self.tls_server_name.clone(),
        }
    }
}

/// Options that select a cluster, and the objects to read from it.
#[derive(Args, Clone, Debug, Default)]
pub struct ClusterArgs {
    /// Read from a cluster: the current context, or the cluster of this pod.
    #[arg(long, conflicts_with = "manifests", help_heading = SOURCE)]
    pub kube: bool,
    /// Path of the kubeconfig file.
    #[arg(long, value_name = "FILE", conflicts_with = "manifests", help_heading = SOURCE)]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig.
    #[arg(long, conflicts_with = "manifests", help_heading = SOURCE)]
    pub context: Option<String>,
    /// Only objects in this namespace of the cluster. May be repeated.
    #[arg(long = "only-namespace", value_name = "NAMESPACE", conflicts_with = "manifests", help_heading = SOURCE)]
    pub namespaces: Vec<String>,
    /// Only this Gateway of the cluster. May be repeated.
    #[arg(long = "gateway", value_name = "NAMESPACE/NAME", value_parser = gateway_name, conflicts_with = "manifests", help_heading = SOURCE)]
    pub gateways: Vec<(String, String)>,
    /// Only this GatewayClass of the cluster and its Gateways. May be repeated.
    #[arg(long = "gateway-class", value_name = "NAME", conflicts_with = "manifests", help_heading = SOURCE)]
    pub classes: Vec<String>,
}

/// The options of a query: the name, the source, the policy kinds, and the output format.
#[derive(Args, Clone, Debug, Default)]
pub struct QueryArgs {
    /// The name.
    #[command(flatten)]
    pub name: NameArgs,
    /// The source of answers.
    #[command(flatten)]
    pub source: SourceArgs,
    /// Only this policy kind, as `Kind.group`, or as `Kind` if it is unambiguous. May be repeated.
    #[arg(long = "kind", value_name = "KIND")]
    pub kinds: Vec<String>,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    pub output: Format,
}

/// [`QueryArgs`] without a name: for commands that take no NAME, or define their own.
#[derive(Args, Clone, Debug)]
pub struct CommonArgs {
    /// The source of answers.
    #[command(flatten)]
    pub source: SourceArgs,
    /// Only this policy kind, as `Kind.group`, or as `Kind` if it is unambiguous. May be repeated.
    #[arg(long = "kind", value_name = "KIND")]
    pub kinds: Vec<String>,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    pub output: Format,
}

/// Output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Human-readable table; on a terminal with short names of paths.
    #[default]
    Table,
    /// Human-readable table with full names of paths.
    Wide,
    /// YAML.
    Yaml,
    /// JSON.
    Json,
}

/// Options of `entail test`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  entail test tests/conformance/gwctl.yaml
  entail test tests/conformance/*.yaml")]
pub struct TestArgs {
    /// Test case files.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// List of cases that fail because a feature is missing.
    #[arg(long, value_name = "FILE")]
    pub pending: Option<PathBuf>,
    /// List of cases whose expectation contradicts the specification.
    #[arg(long, value_name = "FILE")]
    pub disputed: Option<PathBuf>,
    /// Profiles of policy kinds, in addition to those in the cases. May be repeated.
    #[arg(long, value_name = "PATH")]
    pub profiles: Vec<PathBuf>,
}

impl Format {
    /// Whether the output is text for people.
    pub(super) fn is_text(self) -> bool {
        matches!(self, Self::Table | Self::Wide)
    }
}

impl CommonArgs {
    /// Adds a name.
    #[must_use]
    pub(super) fn with_name(self, name: NameArgs) -> QueryArgs {
        QueryArgs {
            name,
            source: self.source,
            kinds: self.kinds,
            output: self.output,
        }
    }
}

impl QueryArgs {
    /// Moves NAME back from list options that consumed it.
    #[must_use]
    pub(super) fn recover_name(mut self) -> Self {
        let lists = [&mut self.source.manifests, &mut self.source.profiles];
        self.name.recover(lists);
        self
    }

    /// The name as one word; `None` if there is none.
    ///
    /// # Errors
    /// The words and the namespace do not form one name.
    pub(super) fn name(&self) -> Result<Option<String>, CliError> {
        self.name.name()
    }
}

impl ClusterArgs {
    /// Returns how to reach the cluster, if an option selects one, or if this process runs in a pod
    /// and no manifests are given.
    pub(super) fn access(&self, manifests: &[PathBuf]) -> Option<ClusterSettings> {
        let is_selected = self.kube || self.kubeconfig.is_some() || self.context.is_some();
        let is_pod = || std::env::var_os("KUBERNETES_SERVICE_HOST").is_some();
        (is_selected || manifests.is_empty() && is_pod()).then(|| ClusterSettings {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
            namespaces: self.namespaces.clone(),
            gateways: self.gateways.clone(),
            classes: self.classes.clone(),
            timeouts: ClusterTimeouts::default(),
        })
    }
}

impl SourceArgs {
    /// Checks that a source is given.
    ///
    /// # Errors
    /// [`CliError::Usage`] if there is none.
    pub(super) fn check(&self) -> Result<(), CliError> {
        if self.server.is_some()
            || !self.manifests.is_empty()
            || self.cluster.access(&self.manifests).is_some()
        {
            return Ok(());
        }
        Err(CliError::Usage(
            "no source: use `--manifests PATH` for manifests, `--kube` for a cluster, or \
             `--server ADDR` for a running server"
                .to_owned(),
        ))
    }
}

/// Parses `NAMESPACE/NAME`.
pub(super) fn gateway_name(text: &str) -> Result<(String, String), String> {
    let is_name = |part: &str| !part.is_empty() && !part.contains('/');
    match text.split_once('/') {
        Some((namespace, name)) if is_name(namespace) && is_name(name) => {
            Ok((namespace.to_owned(), name.to_owned()))
        }
        _ => Err("use `NAMESPACE/NAME`, such as `platform/storefront`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        _args: QueryArgs,
    }

    #[test]
    fn exactly_one_source_is_required() {
        assert!(SourceArgs::default().check().is_err());
        let line = ["x", "--manifests", "a", "--server", "b"];
        assert!(Line::try_parse_from(line).is_err());
    }
}

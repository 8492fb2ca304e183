//! `entail admission`: prints the configuration of the admission webhook.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use k8s_openapi::ByteString;

use super::args::{ClusterArgs, gateway_name};
use super::document::Document;
use super::{CliError, ExitStatus, connect, console, yaml};
use crate::insight::reviewed_resources;
use entail_core::store::NAMESPACE_NAME_LABEL;

/// Name of the configuration.
const NAME: &str = "entail";
/// Name of the webhook in it.
const WEBHOOK: &str = "warnings.entail.dev";
/// Seconds for which the API server waits. `serve` answers within three quarters of it.
const TIMEOUT_SECONDS: u64 = 2;

/// Arguments of `entail admission`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
The rules are made of the policy kinds with a profile, in manifests or in a cluster; without a source,
of the built-in profiles. Objects in kube-system and in the namespace of the Service are not reviewed.
If `serve --admission-listen` does not answer, changes are applied without a warning.

Examples:
  entail admission --service entail-system/entail-admission --ca-file ca.crt
  entail admission --service entail-system/entail-admission --kube \\
    --inject-ca-from entail-system/entail-admission | kubectl apply -f -
  entail admission --url https://127.0.0.1:8443/admit --ca-file ca.crt --manifests examples/bakery")]
pub struct AdmissionArgs {
    /// Service of the webhook; port 443 unless another is given.
    #[arg(long, value_name = "NAMESPACE/NAME[:PORT]", value_parser = service, required_unless_present = "url")]
    pub service: Option<ServiceName>,
    /// Address of the webhook, instead of a Service: `https://host:port/admit`.
    #[arg(long, value_name = "URL", value_parser = url, conflicts_with = "service")]
    pub url: Option<String>,
    /// CA certificates that sign the certificate of the webhook, in PEM.
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// Certificate of cert-manager, whose CA it adds to the configuration.
    #[arg(long, value_name = "NAMESPACE/NAME", conflicts_with = "ca_file")]
    pub inject_ca_from: Option<String>,
    /// Manifests with profiles and CRDs: files, directories, or `-` for standard input. May be repeated.
    #[arg(long, value_name = "PATH", num_args = 1..)]
    pub manifests: Vec<PathBuf>,
    /// Options that read from a cluster instead of manifests.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// Profiles of policy kinds, in addition to those in the manifests: files or directories.
    /// May be repeated.
    #[arg(long, value_name = "PATH", num_args = 1..)]
    pub profiles: Vec<PathBuf>,
}

/// The Service of the webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceName {
    namespace: String,
    name: String,
    port: Option<u16>,
}

/// Runs the command.
pub(in crate::cli) fn run(args: &AdmissionArgs) -> Result<ExitStatus, CliError> {
    let ca = args.ca_file.as_deref().map(ca_bundle).transpose()?;
    let snapshot = connect::load_profiles(&args.manifests, &args.cluster, &args.profiles)?;
    let rules: Vec<Document> = reviewed_resources(snapshot.world())
        .into_iter()
        .map(|(group, resources)| {
            let resources: Vec<String> = resources.into_iter().collect();
            Document::map([
                ("apiGroups", Document::texts(&[group])),
                ("apiVersions", Document::texts(&["*"])),
                ("resources", Document::texts(&resources)),
                (
                    "operations",
                    Document::texts(&["CREATE", "UPDATE", "DELETE"]),
                ),
                ("scope", Document::text("*")),
            ])
        })
        .collect();
    yaml::write(&mut console::stdout(), &configuration(args, ca, rules))?;
    Ok(ExitStatus::Success)
}

/// The ValidatingWebhookConfiguration.
fn configuration(args: &AdmissionArgs, ca: Option<Document>, rules: Vec<Document>) -> Document {
    let mut metadata = vec![
        ("name".into(), Document::text(NAME)),
        (
            "labels".into(),
            Document::text_fields([("app.kubernetes.io/name", "entail")]),
        ),
    ];
    if let Some(certificate) = &args.inject_ca_from {
        let annotation = Document::text_fields([("cert-manager.io/inject-ca-from", certificate)]);
        metadata.push(("annotations".into(), annotation));
    }
    let mut excluded = vec!["kube-system".to_owned()];
    let mut client = match (&args.service, &args.url) {
        (Some(service), _) => {
            excluded.push(service.namespace.clone());
            vec![("service".into(), service.document())]
        }
        (None, url) => vec![(
            "url".into(),
            Document::optional(url.as_deref(), Document::text),
        )],
    };
    client.extend(ca.map(|ca| ("caBundle".into(), ca)));
    excluded.dedup();
    let selector = Document::map([
        ("key", Document::text(NAMESPACE_NAME_LABEL)),
        ("operator", Document::text("NotIn")),
        ("values", Document::texts(&excluded)),
    ]);
    let webhook = Document::map([
        ("name", Document::text(WEBHOOK)),
        ("clientConfig", Document::Map(client)),
        ("rules", Document::List(rules)),
        // Entail must never keep a change from being applied.
        ("failurePolicy", Document::text("Ignore")),
        ("matchPolicy", Document::text("Equivalent")),
        ("sideEffects", Document::text("None")),
        ("timeoutSeconds", Document::Number(TIMEOUT_SECONDS.into())),
        ("admissionReviewVersions", Document::texts(&["v1"])),
        (
            "namespaceSelector",
            Document::map([("matchExpressions", Document::List(vec![selector]))]),
        ),
    ]);
    Document::map([
        (
            "apiVersion",
            Document::text("admissionregistration.k8s.io/v1"),
        ),
        ("kind", Document::text("ValidatingWebhookConfiguration")),
        ("metadata", Document::Map(metadata)),
        ("webhooks", Document::List(vec![webhook])),
    ])
}

impl ServiceName {
    fn document(&self) -> Document {
        let mut fields = vec![
            ("namespace".into(), Document::text(&self.namespace)),
            ("name".into(), Document::text(&self.name)),
            ("path".into(), Document::text("/admit")),
        ];
        let port = self
            .port
            .map(|port| ("port".into(), Document::Number(port.into())));
        fields.extend(port);
        Document::Map(fields)
    }
}

/// Parses `NAMESPACE/NAME` or `NAMESPACE/NAME:PORT`.
fn service(text: &str) -> Result<ServiceName, String> {
    let wrong = || "use `NAMESPACE/NAME` or `NAMESPACE/NAME:PORT`".to_owned();
    let (name, port) = match text.split_once(':') {
        Some((name, port)) => (name, Some(port.parse().map_err(|_| wrong())?)),
        None => (text, None),
    };
    let (namespace, name) = gateway_name(name).map_err(|_| wrong())?;
    Ok(ServiceName {
        namespace,
        name,
        port,
    })
}

/// Checks an address. API servers accept only HTTPS.
fn url(text: &str) -> Result<String, String> {
    let rest = text.strip_prefix("https://");
    match rest.is_some_and(|rest| !rest.is_empty()) {
        true => Ok(text.to_owned()),
        false => Err("use `https://host:port/admit`".to_owned()),
    }
}

/// Reads CA certificates, and encodes them as the configuration has them.
fn ca_bundle(file: &Path) -> Result<Document, CliError> {
    let unreadable = |why: &str| CliError::Unreadable(format!("{}: {why}", file.display()));
    let pem = fs::read(file).map_err(|error| unreadable(&error.to_string()))?;
    let begin = b"-----BEGIN CERTIFICATE-----";
    if !pem.windows(begin.len()).any(|window| window == begin) {
        return Err(unreadable("no certificate in the file"));
    }
    let encoded = serde_json::to_value(ByteString(pem));
    let encoded = encoded.map_err(|error| unreadable(&error.to_string()))?;
    Ok(Document::from(encoded))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_encoded() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.crt");
        for (rest, encoded) in [
            ("~?>", "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tfj8+"),
            ("f", "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tZg=="),
            ("fo", "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tZm8="),
        ] {
            fs::write(&file, format!("-----BEGIN CERTIFICATE-----{rest}")).unwrap();
            assert_eq!(ca_bundle(&file).unwrap(), Document::text(encoded));
        }
        fs::write(&file, "no certificate").unwrap();
        assert!(ca_bundle(&file).is_err());
    }

    #[test]
    fn services_and_addresses_are_parsed() {
        let parsed = service("a/b:8443").unwrap();
        assert_eq!(
            (&*parsed.namespace, &*parsed.name, parsed.port),
            ("a", "b", Some(8443))
        );
        assert_eq!(service("a/b").unwrap().port, None);
        for text in ["a", "a/", "/b", "a/b/c", "a/b:x", "a/b:65536"] {
            assert!(service(text).is_err(), "{text}");
        }
        assert!(url("https://127.0.0.1:1/admit").is_ok());
        assert!(url("http://127.0.0.1:1/admit").is_err() && url("https://").is_err());
    }
}

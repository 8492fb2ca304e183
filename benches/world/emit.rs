//! Writes manifests: compact JSON documents, which are YAML, separated by `---`.

use super::{Kind, Route, Shape, Target, World};
use std::fmt::Write as _;
use std::path::Path;

/// One file of a world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// File name, without a directory.
    pub name: String,
    /// Content, in ASCII.
    pub text: String,
}

/// Maximum number of documents per file, so that no limit of a parser affects a world.
const DOCUMENTS: usize = 250;

/// creationTimestamp of the first object, in seconds since the Unix epoch (2024-01-01T00:00:00Z), and
/// the seconds between two objects.
const EPOCH: u64 = 1_704_067_200;
const STEP: u64 = 10;

const GROUP: &str = "gateway.networking.k8s.io";

impl World {
    /// Returns the manifests in a fixed order: class, namespaces, gateways, services, routes,
    /// policies.
    pub fn manifests(&self) -> Vec<File> {
        let shape = &self.shape;
        let mut files = Vec::new();
        chunk(&mut files, "class", [class()]);
        chunk(
            &mut files,
            "namespaces",
            (0..=shape.namespaces).map(namespace),
        );
        chunk(
            &mut files,
            "gateways",
            (0..shape.gateways).map(|number| gateway(shape, number)),
        );
        chunk(
            &mut files,
            "services",
            (0..shape.services).map(|number| service(shape, number)),
        );
        let routes = self.routes.iter().enumerate();
        chunk(
            &mut files,
            "routes",
            routes.map(|(number, value)| route(shape, number, value)),
        );
        for kind in Kind::ALL {
            let stem = format!("policies-{}", kind.stem());
            let policies = self.policies.iter().filter(|policy| policy.kind == kind);
            chunk(&mut files, &stem, policies.map(policy));
        }
        files
    }

    /// Writes `profiles.yaml` and the directory `manifests` to `out`, which is created if it does not
    /// exist and must be empty, so that files of another world are not mixed with these. Returns the
    /// number of bytes written.
    pub fn write(&self, out: &Path) -> Result<usize, String> {
        write_files(out, Some(&self.shape.profiles()), &self.manifests())
    }
}

impl Shape {
    /// Returns the PolicyProfile documents of the five kinds, `profiles.yaml`.
    pub fn profiles(&self) -> File {
        let profiles = Kind::ALL.map(|kind| format!("---\n{}", kind.profile(self)));
        File {
            name: "profiles.yaml".into(),
            text: profiles.concat(),
        }
    }
}

/// Writes a file of profiles and the directory `manifests` to `out`, see [`World::write`].
pub(super) fn write_files(
    out: &Path,
    profiles: Option<&File>,
    files: &[File],
) -> Result<usize, String> {
    let manifests = out.join("manifests");
    std::fs::create_dir_all(out).map_err(failed("create", out))?;
    if std::fs::read_dir(out)
        .map_err(failed("read", out))?
        .next()
        .is_some()
    {
        return Err(format!("the directory `{}` is not empty", out.display()));
    }
    std::fs::create_dir(&manifests).map_err(failed("create", &manifests))?;
    let mut bytes = 0;
    if let Some(file) = profiles {
        bytes += write_file(out, file)?;
    }
    for file in files {
        bytes += write_file(&manifests, file)?;
    }
    Ok(bytes)
}

/// Writes one file; returns its size in bytes.
fn write_file(directory: &Path, file: &File) -> Result<usize, String> {
    let path = directory.join(&file.name);
    std::fs::write(&path, &file.text).map_err(failed("write", &path))?;
    Ok(file.text.len())
}

/// Formats an I/O error.
fn failed(what: &str, path: &Path) -> impl FnOnce(std::io::Error) -> String {
    move |error| format!("cannot {what} `{}`: {error}", path.display())
}

/// Distributes documents over files `stem-000.yaml` and so on.
pub(super) fn chunk(
    files: &mut Vec<File>,
    stem: &str,
    documents: impl IntoIterator<Item = String>,
) {
    for (number, document) in documents.into_iter().enumerate() {
        if number % DOCUMENTS == 0 {
            let name = format!("{stem}-{:03}.yaml", number / DOCUMENTS);
            files.push(File {
                name,
                text: String::new(),
            });
        }
        if let Some(file) = files.last_mut() {
            let _ = writeln!(file.text, "---\n{document}");
        }
    }
}

/// Returns the name of a namespace by number.
pub(super) fn namespace_name(number: usize) -> String {
    match number {
        0 => "edge".into(),
        _ => format!("app-{number:03}"),
    }
}

/// Returns the creationTimestamp of the policy number `age` by age, after all other objects, in
/// seconds since the Unix epoch.
pub(super) fn policy_created(shape: &Shape, age: usize) -> u64 {
    created(2 + shape.namespaces + shape.gateways + shape.services + shape.routes + age)
}

/// Returns the creationTimestamp of the object at a position in the order class, namespaces,
/// gateways, services, routes, policies.
pub(super) fn created(place: usize) -> u64 {
    EPOCH + STEP * place as u64
}

/// Formats a time as RFC 3339, in whole seconds and UTC. Uses the algorithm `civil_from_days` by Howard
/// Hinnant.
fn rfc3339(seconds: u64) -> String {
    let days = seconds / 86_400 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let leap = day_of_era / 1460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153; // months from March
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = 400 * era + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Formats an object; `spec` is JSON. Cluster-scoped without a namespace.
pub(super) fn object(
    kind: (&str, &str),
    namespace: Option<usize>,
    name: &str,
    at: u64,
    spec: &str,
) -> String {
    let (version, kind) = kind;
    let place = namespace
        .map(|number| format!(r#""namespace":"{}","#, namespace_name(number)))
        .unwrap_or_default();
    let at = rfc3339(at);
    format!(
        r#"{{"apiVersion":"{version}","kind":"{kind}","metadata":{{"name":"{name}",{place}"generation":1,"creationTimestamp":"{at}"}},"spec":{spec}}}"#
    )
}

/// Formats the GatewayClass `bench`.
fn class() -> String {
    let kind = ("gateway.networking.k8s.io/v1", "GatewayClass");
    object(
        kind,
        None,
        "bench",
        created(0),
        r#"{"controllerName":"bench.example/controller"}"#,
    )
}

/// Formats a Namespace, with the label that the API server sets.
pub(super) fn namespace(number: usize) -> String {
    let name = namespace_name(number);
    let at = rfc3339(created(1 + number));
    format!(
        r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{name}","labels":{{"kubernetes.io/metadata.name":"{name}"}},"creationTimestamp":"{at}"}}}}"#
    )
}

/// Formats a Gateway: each listener has its own port, and every second one a wildcard hostname that
/// matches the hostnames of all routes.
fn gateway(shape: &Shape, number: usize) -> String {
    let listeners = (0..shape.listeners).map(|listener| {
        let host = if listener % 2 == 1 { r#""hostname":"*.bench.example","# } else { "" };
        let port = 8000 + listener;
        format!(
            r#"{{"name":"l-{listener:02}",{host}"port":{port},"protocol":"HTTP","allowedRoutes":{{"namespaces":{{"from":"All"}}}}}}"#
        )
    });
    let spec = format!(
        r#"{{"gatewayClassName":"bench","listeners":[{}]}}"#,
        joined(listeners)
    );
    let at = created(2 + shape.namespaces + number);
    object(
        ("gateway.networking.k8s.io/v1", "Gateway"),
        Some(0),
        &format!("gw-{number:03}"),
        at,
        &spec,
    )
}

/// Formats a Service with named ports.
fn service(shape: &Shape, number: usize) -> String {
    let ports = (0..shape.ports).map(|port| {
        let tcp = port_number(port);
        format!(r#"{{"name":"p-{port:02}","port":{tcp},"targetPort":{tcp},"protocol":"TCP"}}"#)
    });
    let ports = joined(ports);
    let name = format!("svc-{number:05}");
    let spec = format!(r#"{{"type":"ClusterIP","selector":{{"app":"{name}"}},"ports":[{ports}]}}"#);
    let at = created(2 + shape.namespaces + shape.gateways + number);
    object(
        ("v1", "Service"),
        Some(1 + number % shape.namespaces),
        &name,
        at,
        &spec,
    )
}

/// Returns the TCP port of a Service port by number.
fn port_number(port: usize) -> usize {
    8080 + port
}

/// Formats an HTTPRoute with its own hostname and a path prefix per rule.
fn route(shape: &Shape, number: usize, value: &Route) -> String {
    let section = value
        .listener
        .map(|listener| format!(r#","sectionName":"l-{listener:02}""#))
        .unwrap_or_default();
    let rules = value.rules.iter().enumerate().map(|(rule, refs)| {
        let name = match rule < shape.named_rules() {
            true => format!(r#""name":"step-{rule:02}","#),
            false => String::new(),
        };
        let refs = joined(refs.iter().map(|&(service, port)| {
            format!(r#"{{"name":"svc-{service:05}","port":{}}}"#, port_number(port))
        }));
        format!(
            r#"{{{name}"matches":[{{"path":{{"type":"PathPrefix","value":"/step-{rule:02}"}}}}],"backendRefs":[{refs}]}}"#
        )
    });
    let spec = format!(
        r#"{{"parentRefs":[{{"name":"gw-{:03}","namespace":"edge"{section}}}],"hostnames":["r-{number:06}.bench.example"],"rules":[{}]}}"#,
        value.gateway,
        joined(rules)
    );
    let at = created(2 + shape.namespaces + shape.gateways + shape.services + number);
    let kind = ("gateway.networking.k8s.io/v1", "HTTPRoute");
    object(
        kind,
        Some(value.namespace),
        &format!("route-{number:06}"),
        at,
        &spec,
    )
}

/// Formats a policy.
fn policy(policy: &super::Policy) -> String {
    let kind = ("bench.example/v1", policy.kind.name());
    let name = format!("{}-{:05}", policy.kind.stem(), policy.number);
    object(
        kind,
        Some(policy.namespace),
        &name,
        policy.created,
        &policy.spec,
    )
}

/// Formats the targetRef of a node as JSON.
pub(super) fn target_ref(target: Target) -> String {
    let (group, kind, name, section) = match target {
        Target::Namespace(number) => ("", "Namespace", namespace_name(number), None),
        Target::Gateway(number) => (GROUP, "Gateway", format!("gw-{number:03}"), None),
        Target::Listener(number, listener) => (
            GROUP,
            "Gateway",
            format!("gw-{number:03}"),
            Some(format!("l-{listener:02}")),
        ),
        Target::Route(number) => (GROUP, "HTTPRoute", format!("route-{number:06}"), None),
        Target::Rule(number, rule) => (
            GROUP,
            "HTTPRoute",
            format!("route-{number:06}"),
            Some(format!("step-{rule:02}")),
        ),
        Target::Service(number) => ("", "Service", format!("svc-{number:05}"), None),
        Target::Port(number, port) => (
            "",
            "Service",
            format!("svc-{number:05}"),
            Some(format!("p-{port:02}")),
        ),
    };
    let section = section
        .map(|name| format!(r#","sectionName":"{name}""#))
        .unwrap_or_default();
    format!(r#"{{"group":"{group}","kind":"{kind}","name":"{name}"{section}}}"#)
}

/// Joins items with commas.
pub(super) fn joined(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(",")
}

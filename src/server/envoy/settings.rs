//! What Envoy is told, and how a request's rule is found: the file of `--envoy-config`.

use std::sync::Arc;

use http::HeaderName;
use serde::Deserialize;

use super::identity::Dialect;
use entail_core::expr::Expression;
use entail_core::model::{FieldStep, GroupKind, parse_field_path};

/// The settings as they are written.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct EnvoyDocument {
    kinds: Vec<String>,
    metadata: MetadataDocument,
    headers: Vec<HeaderDocument>,
    deny: Vec<DenyDocument>,
    fail_open: Vec<CheckFailure>,
    gateway: Option<String>,
    listener: Option<String>,
    grpc_metadata: GrpcMetadata,
    dialects: Vec<DialectDocument>,
    r#match: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct MetadataDocument {
    key: String,
    max_bytes: usize,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HeaderDocument {
    name: String,
    kind: String,
    value: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DenyDocument {
    name: String,
    when: String,
    #[serde(default = "forbidden")]
    status: u16,
    #[serde(default)]
    body: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum DialectDocument {
    Known(String),
    Own(Box<EnvoyDialect>),
}

/// A dialect as it is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct EnvoyDialect {
    pub(in crate::server) name: String,
    pub(in crate::server) metadata: Option<MetadataField>,
    pub(in crate::server) route_name: Option<String>,
}

/// A list of objects in metadata.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::server) struct MetadataField {
    /// The metadata's namespace.
    pub namespace: String,
    /// Its field.
    pub field: String,
}

/// The names of gRPC metadata that Envoy sets and clients cannot.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(in crate::server) struct GrpcMetadata {
    /// The route's name.
    pub route: String,
    /// Objects as in the dialects' metadata: those of the virtual host.
    pub gateway: String,
}

/// Why a request would be denied though no rule says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(in crate::server) enum CheckFailure {
    /// It is not known which rule it takes.
    Unidentified,
    /// The rule is no path, or lies outside of what the caller may see.
    NotFound,
    /// Not everything is known of a kind.
    Incomplete,
    /// What is known of a kind is the last good state: its source does not answer at present.
    Stale,
    /// The policies are larger than metadata and headers may be.
    TooLarge,
    /// A rule for denials cannot be evaluated.
    RuleError,
}

/// The settings, checked.
#[derive(Clone, Debug)]
pub struct EnvoySettings {
    pub(in crate::server) kinds: Vec<GroupKind>,
    pub(in crate::server) key: String,
    pub(in crate::server) max_bytes: usize,
    pub(in crate::server) headers: Vec<HeaderRule>,
    pub(in crate::server) deny: Vec<DenyRule>,
    pub(in crate::server) fail_open: Vec<CheckFailure>,
    pub(in crate::server) gateway: Option<(String, String)>,
    pub(in crate::server) listener: Option<String>,
    pub(in crate::server) grpc_metadata: GrpcMetadata,
    pub(in crate::server) dialects: Arc<[Dialect]>,
    pub(in crate::server) matches: bool,
}

/// A header for the backend.
#[derive(Clone, Debug)]
pub(in crate::server) struct HeaderRule {
    pub name: HeaderName,
    pub kind: GroupKind,
    /// Where its value stands in the spec.
    pub value: Vec<FieldStep>,
}

/// A rule for denials.
#[derive(Clone, Debug)]
pub(in crate::server) struct DenyRule {
    pub name: String,
    pub when: Expression,
    pub status: u16,
    pub body: String,
}

/// Headers that Envoy does not let anybody set, or that requests are routed by.
const PROTECTED_HEADERS: [&str; 4] = ["host", "content-length", "transfer-encoding", "connection"];

fn forbidden() -> u16 {
    403
}

impl Default for EnvoyDocument {
    fn default() -> Self {
        Self {
            kinds: Vec::new(),
            metadata: MetadataDocument::default(),
            headers: Vec::new(),
            deny: Vec::new(),
            // An outage of the API server is not to be one of all requests.
            fail_open: vec![CheckFailure::Stale],
            gateway: None,
            listener: None,
            grpc_metadata: GrpcMetadata::default(),
            dialects: vec![DialectDocument::Known("envoy-gateway".to_owned())],
            r#match: false,
        }
    }
}

impl Default for MetadataDocument {
    fn default() -> Self {
        Self {
            key: "entail".to_owned(),
            max_bytes: 64 * 1024,
        }
    }
}

impl Default for GrpcMetadata {
    fn default() -> Self {
        Self {
            route: "x-entail-route".to_owned(),
            gateway: "x-entail-gateway".to_owned(),
        }
    }
}

impl EnvoyDocument {
    /// Checks the settings. `known` are the dialects that need no definition.
    ///
    /// # Errors
    /// All that is wrong, one sentence each.
    pub fn check(self, known: &[EnvoyDialect]) -> Result<EnvoySettings, Vec<String>> {
        let mut wrong = Vec::new();
        let mut keep = |error: String| wrong.push(error);
        let headers = self.headers.iter().map(HeaderRule::read);
        let headers: Vec<_> = headers
            .filter_map(|read| read.map_err(&mut keep).ok())
            .collect();
        let deny = self.deny.iter().map(DenyRule::read);
        let deny: Vec<_> = deny
            .filter_map(|read| read.map_err(&mut keep).ok())
            .collect();
        let dialects = self.dialects.iter().map(|dialect| dialect.read(known));
        let dialects: Vec<_> = dialects
            .filter_map(|read| read.map_err(&mut keep).ok())
            .collect();
        let gateway = self.gateway.as_deref().map(|text| {
            let parts = text.split_once('/');
            parts.ok_or_else(|| format!("`gateway: {text}` is no name: write `namespace/name`"))
        });
        let gateway = gateway.transpose().map_err(&mut keep).unwrap_or_default();
        if self.listener.is_some() && self.gateway.is_none() {
            keep("`listener` is one of a Gateway: set `gateway` as well".to_owned());
        }
        if self.metadata.key.is_empty() || self.metadata.key == "ext_authz_duration" {
            keep(format!(
                "`metadata.key: {}` cannot be used",
                self.metadata.key
            ));
        }
        for name in [&self.grpc_metadata.route, &self.grpc_metadata.gateway] {
            if HeaderName::from_bytes(name.as_bytes()).is_err() {
                keep(format!(
                    "`grpcMetadata`: `{name}` is no name of gRPC metadata"
                ));
            }
        }
        let gateway = gateway.map(|(ns, name)| (ns.to_owned(), name.to_owned()));
        let settings = EnvoySettings {
            kinds: self
                .kinds
                .iter()
                .map(|kind| GroupKind::parse(kind))
                .collect(),
            key: self.metadata.key,
            max_bytes: self.metadata.max_bytes,
            headers,
            deny,
            fail_open: self.fail_open,
            gateway,
            listener: self.listener,
            grpc_metadata: self.grpc_metadata,
            dialects: dialects.into(),
            matches: self.r#match,
        };
        if wrong.is_empty() {
            Ok(settings)
        } else {
            Err(wrong)
        }
    }
}

impl HeaderRule {
    fn read(document: &HeaderDocument) -> Result<Self, String> {
        let HeaderDocument { name, kind, value } = document;
        let parsed = HeaderName::from_bytes(name.as_bytes());
        let parsed = parsed
            .ok()
            .filter(|parsed| !PROTECTED_HEADERS.contains(&parsed.as_str()));
        Ok(Self {
            name: parsed.ok_or_else(|| format!("`headers`: `{name}` cannot be set"))?,
            kind: GroupKind::parse(kind),
            value: parse_field_path(value).ok_or_else(|| {
                format!(
                    "`headers`: `{value}` is no field of a spec: write one such as `retry.attempts`"
                )
            })?,
        })
    }
}

impl DenyRule {
    fn read(document: &DenyDocument) -> Result<Self, String> {
        let wrong = |what: String| format!("`deny`, `{}`: {what}", document.name);
        if !(400..600).contains(&document.status) {
            return Err(wrong(format!(
                "{} is no status of a denial",
                document.status
            )));
        }
        Ok(Self {
            name: document.name.clone(),
            when: Expression::compile(&document.when).map_err(wrong)?,
            status: document.status,
            body: document.body.clone(),
        })
    }
}

impl DialectDocument {
    fn read(&self, known: &[EnvoyDialect]) -> Result<Dialect, String> {
        let parts = match self {
            Self::Own(parts) => Some(&**parts),
            Self::Known(name) => known.iter().find(|parts| parts.name == *name),
        };
        match (parts, self) {
            (Some(parts), _) => Dialect::read(parts),
            (None, Self::Known(name)) => {
                let names: Vec<&str> = known.iter().map(|parts| &*parts.name).collect();
                let names = names.join(", ");
                Err(format!(
                    "`dialects`: `{name}` is none of {names}: define it"
                ))
            }
            (None, Self::Own(_)) => Err("`dialects`: an entry is empty".to_owned()),
        }
    }
}

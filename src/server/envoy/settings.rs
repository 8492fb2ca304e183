//! Settings of the service for Envoy: the `--envoy-config` file.

use std::sync::Arc;

use http::HeaderName;
use serde::Deserialize;

use super::identity::Dialect;
use entail_core::expr::Expression;
use entail_core::model::{FieldStep, GroupKind, parse_field_path};

/// The `--envoy-config` file.
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
    Builtin(String),
    Custom(Box<EnvoyDialect>),
}

/// A dialect in the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct EnvoyDialect {
    pub(in crate::server) name: String,
    pub(in crate::server) metadata: Option<MetadataField>,
    pub(in crate::server) route_name: Option<String>,
}

/// A metadata field with a list of objects.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::server) struct MetadataField {
    /// Namespace of the metadata.
    pub namespace: String,
    /// Name of the field.
    pub field: String,
}

/// Names of gRPC metadata that Envoy sets on the `Check` call.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(in crate::server) struct GrpcMetadata {
    /// Name of the Envoy route.
    pub route: String,
    /// Objects of the virtual host, as JSON in the form of the route metadata.
    pub gateway: String,
}

/// Failure that denies a request unless `failOpen` lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(in crate::server) enum CheckFailure {
    /// The rule that the request takes is unknown.
    Unidentified,
    /// The path of the rule does not exist, or the caller may not see it.
    NotFound,
    /// The data of a kind is incomplete.
    Incomplete,
    /// The data of a kind is stale: its source does not respond at present.
    Stale,
    /// The policies exceed the limits of metadata and headers.
    TooLarge,
    /// A deny rule cannot be evaluated.
    RuleError,
}

impl CheckFailure {
    /// The name in settings, metadata and replies.
    pub(in crate::server) fn as_str(self) -> &'static str {
        match self {
            Self::Unidentified => "Unidentified",
            Self::NotFound => "NotFound",
            Self::Incomplete => "Incomplete",
            Self::Stale => "Stale",
            Self::TooLarge => "TooLarge",
            Self::RuleError => "RuleError",
        }
    }
}

/// Validated settings.
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

/// A header that Envoy sets on the request to the backend.
#[derive(Clone, Debug)]
pub(in crate::server) struct HeaderRule {
    pub name: HeaderName,
    pub kind: GroupKind,
    /// Field of the spec with the value.
    pub value: Vec<FieldStep>,
}

/// A rule that denies requests.
#[derive(Clone, Debug)]
pub(in crate::server) struct DenyRule {
    pub name: String,
    pub when: Expression,
    pub status: u16,
    pub body: String,
}

/// Headers that Envoy does not allow to be set, or that it routes requests by.
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
            // An outage of the API server must not deny all requests.
            fail_open: vec![CheckFailure::Stale],
            gateway: None,
            listener: None,
            grpc_metadata: GrpcMetadata::default(),
            dialects: vec![DialectDocument::Builtin("envoy-gateway".to_owned())],
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
    /// Validates the settings. `builtin` are the dialects that need no definition.
    ///
    /// # Errors
    /// Returns all problems, one message each.
    pub fn check(self, builtin: &[EnvoyDialect]) -> Result<EnvoySettings, Vec<String>> {
        let mut problems = Vec::new();
        let mut report = |problem: String| problems.push(problem);
        let headers = self.headers.iter().map(HeaderRule::read);
        let headers: Vec<_> = headers
            .filter_map(|read| read.map_err(&mut report).ok())
            .collect();
        let deny = self.deny.iter().map(DenyRule::read);
        let deny: Vec<_> = deny
            .filter_map(|read| read.map_err(&mut report).ok())
            .collect();
        let dialects = self.dialects.iter().map(|dialect| dialect.read(builtin));
        let dialects: Vec<_> = dialects
            .filter_map(|read| read.map_err(&mut report).ok())
            .collect();
        let gateway = self.gateway.as_deref().map(|text| {
            let parts = text.split_once('/');
            parts.ok_or_else(|| format!("`gateway: {text}` is not a name: write `namespace/name`"))
        });
        let gateway = gateway.transpose().map_err(&mut report).unwrap_or_default();
        if self.listener.is_some() && self.gateway.is_none() {
            report("`listener` requires a Gateway: set `gateway` as well".to_owned());
        }
        if self.metadata.key.is_empty() || self.metadata.key == "ext_authz_duration" {
            report(format!(
                "`metadata.key: {}` cannot be used",
                self.metadata.key
            ));
        }
        for name in [&self.grpc_metadata.route, &self.grpc_metadata.gateway] {
            if HeaderName::from_bytes(name.as_bytes()).is_err() {
                report(format!(
                    "`grpcMetadata`: `{name}` is not a name of gRPC metadata"
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
        if problems.is_empty() {
            Ok(settings)
        } else {
            Err(problems)
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
                    "`headers`: `{value}` is not a field of a spec: write one such as `retry.attempts`"
                )
            })?,
        })
    }
}

impl DenyRule {
    fn read(document: &DenyDocument) -> Result<Self, String> {
        let problem = |what: String| format!("`deny`, `{}`: {what}", document.name);
        if !(400..600).contains(&document.status) {
            return Err(problem(format!(
                "{} is not a status for a denial: write one from 400 to 599",
                document.status
            )));
        }
        Ok(Self {
            name: document.name.clone(),
            when: Expression::compile(&document.when).map_err(problem)?,
            status: document.status,
            body: document.body.clone(),
        })
    }
}

impl DialectDocument {
    fn read(&self, builtin: &[EnvoyDialect]) -> Result<Dialect, String> {
        let parts = match self {
            Self::Custom(parts) => Some(&**parts),
            Self::Builtin(name) => builtin.iter().find(|parts| parts.name == *name),
        };
        match (parts, self) {
            (Some(parts), _) => Dialect::read(parts),
            (None, Self::Builtin(name)) => {
                let names: Vec<&str> = builtin.iter().map(|parts| &*parts.name).collect();
                let names = names.join(", ");
                Err(format!(
                    "`dialects`: `{name}` is not one of {names}: define it"
                ))
            }
            (None, Self::Custom(_)) => Err("`dialects`: an entry is empty".to_owned()),
        }
    }
}

//! Access rules: what callers may call and see, by the names in their certificates.

use std::str::FromStr;
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use tokio_rustls::rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;

use crate::api::etag;
use crate::insight::AccessScope;
use crate::server::admission::concurrency::Permits;
use crate::server::transport::request_counters::RpcService;
use entail_core::model::{GroupKind, PathPrefix};

/// A pattern for the subject alternative names (SANs) of client certificates: a DNS name, which may
/// start with `*.` for exactly one label, or a URI, which may end with `/*` for everything below
/// it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SanPattern(String);

/// The type of a subject alternative name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum SanKind {
    Dns,
    Uri,
}

/// Error for a text that is not a SAN pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not the name of a caller: write a DNS name such as `proxy.shop.svc` or `*.shop.svc`, or a URI such as \
     `spiffe://cluster.local/ns/shop/sa/proxy`"
)]
pub struct SanPatternError(String);

/// What callers over TLS may call and see.
#[derive(Clone, Debug)]
pub enum AccessRules {
    /// Callers on the list of a service may call it. An empty list permits every client certificate
    /// that the server accepts.
    AllowLists(AllowLists),
    /// Callers that match a rule may call and see what the rule permits; the first match counts.
    Rules(Vec<AccessRule>),
}

/// Lists of callers, by service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowLists {
    /// Callers of `EffectivePolicyService` and of the service for Envoy.
    pub data_plane: Vec<SanPattern>,
    /// Callers of `PolicyInsightService`.
    pub insight: Vec<SanPattern>,
}

/// A rule for the callers with certain names. The first rule with a matching name counts.
#[derive(Clone, Debug)]
pub struct AccessRule {
    names: Vec<SanPattern>,
    access: CallerAccess,
}

/// What a caller may call and see.
#[derive(Clone, Debug, Default)]
pub(in crate::server) struct CallerAccess {
    services: Vec<RpcService>,
    /// Paths and kinds that the caller may see.
    pub scope: Arc<AccessScope>,
    /// Permits that all callers of the rule share, if the rule limits them.
    pub permits: Option<Arc<Permits>>,
}

/// The `--callers` file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessRulesDocument {
    callers: Vec<AccessRuleDocument>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct AccessRuleDocument {
    names: Vec<String>,
    services: Vec<ServiceName>,
    #[serde(default, deserialize_with = "written")]
    prefixes: Option<Vec<String>>,
    #[serde(default, deserialize_with = "written")]
    kinds: Option<Vec<String>>,
    #[serde(default, deserialize_with = "written")]
    max_concurrency: Option<usize>,
}

/// Reads a field that is written: a null is no value, because only a field that is left out means everything.
fn written<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    field: D,
) -> Result<Option<T>, D::Error> {
    let value = Option::deserialize(field)?;
    let no_value = || D::Error::custom("the field has no value: write one, or leave the field out");
    value.map(Some).ok_or_else(no_value)
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ServiceName {
    Policies,
    Envoy,
    Insight,
}

impl FromStr for SanPattern {
    type Err = SanPatternError;

    fn from_str(text: &str) -> Result<Self, SanPatternError> {
        let name = text.strip_prefix("*.").unwrap_or(text);
        let is_uri = text.contains("://");
        let is_odd = |c: char| c.is_whitespace() || c == ',' || (c == '*' && !is_uri);
        let stars = text.matches('*').count();
        let stars_end = stars == 0 || (stars == 1 && (!is_uri || text.ends_with("/*")));
        if name.is_empty() || name.contains(is_odd) || !stars_end {
            return Err(SanPatternError(text.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }
}

impl SanPattern {
    /// Reports whether a name of a certificate matches. DNS names are compared without case; a
    /// pattern of one type never matches a name of the other.
    fn matches(&self, (kind, name): (SanKind, &str)) -> bool {
        let is_uri = self.0.contains("://");
        if is_uri != (kind == SanKind::Uri) {
            return false;
        }
        if is_uri {
            return match self.0.strip_suffix('*') {
                Some(prefix) => name
                    .strip_prefix(prefix)
                    .is_some_and(|rest| !rest.is_empty()),
                None => self.0 == name,
            };
        }
        match self.0.strip_prefix('*') {
            Some(zone) => {
                let at = name.find('.').unwrap_or(name.len());
                let (label, rest) = name.split_at_checked(at).unwrap_or_default();
                !label.is_empty() && rest.eq_ignore_ascii_case(zone)
            }
            None => self.0.eq_ignore_ascii_case(name),
        }
    }
}

impl AccessRules {
    /// Returns what the caller with a certificate may call and see.
    pub(in crate::server) fn access(
        &self,
        certificate: Option<&CertificateDer<'static>>,
    ) -> CallerAccess {
        let names = certificate.map(names).unwrap_or_default();
        let is_listed = |list: &[SanPattern]| {
            let matches =
                |san: &SanPattern| names.iter().any(|(kind, name)| san.matches((*kind, name)));
            list.iter().any(matches)
        };
        match self {
            Self::AllowLists(lists) => {
                CallerAccess::of_lists(|list| list.is_empty() || is_listed(list), lists)
            }
            Self::Rules(rules) => {
                let rule = rules.iter().find(|rule| is_listed(&rule.names));
                rule.map(|rule| rule.access.clone()).unwrap_or_default()
            }
        }
    }
}

impl Default for AccessRules {
    fn default() -> Self {
        Self::AllowLists(AllowLists::default())
    }
}

impl CallerAccess {
    fn of_lists(is_allowed: impl Fn(&[SanPattern]) -> bool, lists: &AllowLists) -> Self {
        let mut services = Vec::new();
        if is_allowed(&lists.data_plane) {
            services.extend([RpcService::Policies, RpcService::Envoy]);
        }
        if is_allowed(&lists.insight) {
            services.push(RpcService::Insight);
        }
        Self {
            services,
            ..Self::default()
        }
    }

    /// Reports whether a service may be called. Health and reflection are permitted to every
    /// caller.
    pub fn covers(&self, service: RpcService) -> bool {
        matches!(service, RpcService::Health | RpcService::Other)
            || self.services.contains(&service)
    }
}

impl AccessRulesDocument {
    /// Validates the rules.
    ///
    /// # Errors
    /// Returns all problems, one message each.
    pub fn check(self) -> Result<Vec<AccessRule>, Vec<String>> {
        let mut problems = Vec::new();
        if self.callers.is_empty() {
            problems.push("`callers` is empty: no caller would be permitted anything".to_owned());
        }
        let mut rules = Vec::with_capacity(self.callers.len());
        for (index, rule) in self.callers.into_iter().enumerate() {
            let rule = rule.read(|why| problems.push(format!("`callers[{index}]`: {why}")));
            rules.push(rule);
        }
        if problems.is_empty() {
            Ok(rules)
        } else {
            Err(problems)
        }
    }
}

impl AccessRuleDocument {
    /// Reads one rule. Reports each problem to `report`.
    fn read(self, mut report: impl FnMut(String)) -> AccessRule {
        if self.names.is_empty() {
            report("`names` is empty: no caller matches".to_owned());
        }
        if self.services.is_empty() {
            report("`services` is empty: remove the entry".to_owned());
        }
        if self.max_concurrency == Some(0) {
            report("`maxConcurrency` is 0: remove the entry".to_owned());
        }
        let mut names = Vec::with_capacity(self.names.len());
        for name in &self.names {
            match name.parse() {
                Ok(name) => names.push(name),
                Err(error) => report(format!("{error}")),
            }
        }
        for (field, list) in [("prefixes", &self.prefixes), ("kinds", &self.kinds)] {
            // An absent list means all; an empty list is probably not meant to.
            if list.as_ref().is_some_and(Vec::is_empty) {
                report(format!("`{field}` is empty: remove it to permit all"));
            }
        }
        let (prefix_texts, kinds) = (
            self.prefixes.unwrap_or_default(),
            self.kinds.unwrap_or_default(),
        );
        let mut prefixes = Vec::with_capacity(prefix_texts.len());
        for prefix in &prefix_texts {
            match PathPrefix::parse(prefix) {
                Ok(prefix) => prefixes.push(prefix),
                Err(error) => report(format!("`{prefix}` is not a path name: {error}")),
            }
        }
        if kinds.iter().any(String::is_empty) {
            report("a kind is empty: write `Kind.group`".to_owned());
        }
        let kinds = kinds.iter().map(|kind| GroupKind::parse(kind));
        let services = self.services.iter().map(|service| match service {
            ServiceName::Policies => RpcService::Policies,
            ServiceName::Envoy => RpcService::Envoy,
            ServiceName::Insight => RpcService::Insight,
        });
        AccessRule {
            names,
            access: CallerAccess {
                services: services.collect(),
                scope: Arc::new(AccessScope::new(prefixes, kinds.collect())),
                permits: self.max_concurrency.map(Permits::new),
            },
        }
    }
}

/// Returns the DNS names and URIs among the subject alternative names of a certificate; none if it
/// cannot be parsed.
fn names(certificate: &CertificateDer<'static>) -> Vec<(SanKind, String)> {
    let Ok(parsed) = EndEntityCert::try_from(certificate) else {
        return Vec::new();
    };
    let hosts = parsed.valid_dns_names().map(|name| (SanKind::Dns, name));
    let uris = parsed.valid_uri_names().map(|name| (SanKind::Uri, name));
    let names = hosts.chain(uris);
    names.map(|(kind, name)| (kind, name.to_owned())).collect()
}

/// Returns the name of the caller with a certificate: its first subject alternative name, or the
/// digest of a certificate without one.
pub(in crate::server) fn caller_name(certificate: &CertificateDer<'static>) -> String {
    match names(certificate).into_iter().next() {
        Some((SanKind::Dns, name)) => name.to_ascii_lowercase(),
        Some((SanKind::Uri, name)) => name,
        None => etag(certificate),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names() {
        for (san, name, is_match) in [
            ("proxy.shop.svc", "Proxy.shop.svc", true),
            ("proxy.shop.svc", "x.proxy.shop.svc", false),
            ("*.shop.svc", "proxy.shop.svc", true),
            ("*.shop.svc", "a.proxy.shop.svc", false),
            ("*.shop.svc", ".shop.svc", false),
            ("*.shop.svc", "shop.svc", false),
            ("spiffe://a/ns/shop/sa/x", "spiffe://a/ns/shop/sa/x", true),
            ("spiffe://a/ns/shop/sa/x", "spiffe://A/ns/shop/sa/x", false),
            ("spiffe://a/ns/shop/*", "spiffe://a/ns/shop/sa/x", true),
            ("spiffe://a/ns/shop/*", "spiffe://a/ns/shop/", false),
            ("spiffe://a/ns/shop/*", "spiffe://a/ns/shopping/sa/x", false),
        ] {
            let kind = match name.contains("://") {
                true => SanKind::Uri,
                false => SanKind::Dns,
            };
            let san: SanPattern = san.parse().unwrap();
            assert_eq!(san.matches((kind, name)), is_match, "{san:?} {name}");
        }
        // A DNS pattern does not match a URI with the same text.
        let san: SanPattern = "proxy.shop.svc".parse().unwrap();
        assert!(!san.matches((SanKind::Uri, "proxy.shop.svc")));
        for malformed in [
            "",
            "*",
            "*.",
            "a*.b",
            "*.a.*",
            "a b",
            "spiffe://a/*/b",
            "a,b",
        ] {
            assert!(malformed.parse::<SanPattern>().is_err(), "{malformed}");
        }
    }
}

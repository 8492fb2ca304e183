//! Who may ask what, by the names in certificates.

use std::str::FromStr;
use std::sync::Arc;

use serde::Deserialize;
use tokio_rustls::rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;

use crate::insight::AccessScope;
use crate::server::admission::concurrency::Permits;
use crate::server::transport::request_counters::RpcService;
use entail_core::model::{GroupKind, PathPrefix};

/// A name of callers, as certificates tell it: a DNS name, `*.` for one more label, or a URI, `/*`
/// at the end for all below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SanPattern(String);

/// What kind of name a certificate tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum SanKind {
    Dns,
    Uri,
}

/// Why a text is no name of callers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no name of a caller: write a DNS name such as `proxy.shop.svc` or `*.shop.svc`, or a URI such as \
     `spiffe://cluster.local/ns/shop/sa/proxy`"
)]
pub struct SanPatternError(String);

/// Who may ask what of those who connect over TLS.
#[derive(Clone, Debug)]
pub enum AccessRules {
    /// Whoever is on the list of a service; an empty list lets all who are let in.
    AllowLists(AllowLists),
    /// Whoever is on a row.
    Rules(Vec<AccessRule>),
}

/// Lists of callers by service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowLists {
    /// Effective policies, Envoy's questions among them.
    pub data_plane: Vec<SanPattern>,
    /// Answers for people.
    pub insight: Vec<SanPattern>,
}

/// Callers, and what they may ask. The first row with a name of theirs counts.
#[derive(Clone, Debug)]
pub struct AccessRule {
    names: Vec<SanPattern>,
    access: CallerAccess,
}

/// What a caller may ask.
#[derive(Clone, Debug, Default)]
pub(in crate::server) struct CallerAccess {
    services: Vec<RpcService>,
    /// Of which paths and kinds.
    pub scope: Arc<AccessScope>,
    /// The places of all callers of a row together, if they are bounded.
    pub permits: Option<Arc<Permits>>,
}

/// The rows as they are written.
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
    prefixes: Option<Vec<String>>,
    kinds: Option<Vec<String>>,
    max_concurrency: Option<usize>,
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
    /// Whether a name of a certificate is meant. DNS names know no case, and no URI is one.
    fn is(&self, (kind, name): (SanKind, &str)) -> bool {
        let is_uri = self.0.contains("://");
        if is_uri != (kind == SanKind::Uri) {
            return false;
        }
        if is_uri {
            return match self.0.strip_suffix('*') {
                Some(above) => name
                    .strip_prefix(above)
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
    /// What the caller with a certificate may ask.
    pub(in crate::server) fn access(
        &self,
        certificate: Option<&CertificateDer<'static>>,
    ) -> CallerAccess {
        let names = certificate.map(names).unwrap_or_default();
        let is_on = |list: &[SanPattern]| {
            let is_named =
                |san: &SanPattern| names.iter().any(|(kind, name)| san.is((*kind, name)));
            list.iter().any(is_named)
        };
        match self {
            Self::AllowLists(lists) => {
                CallerAccess::of_lists(|list| list.is_empty() || is_on(list), lists)
            }
            Self::Rules(rows) => {
                let row = rows.iter().find(|row| is_on(&row.names));
                row.map(|row| row.access.clone()).unwrap_or_default()
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
    fn of_lists(is_let_in: impl Fn(&[SanPattern]) -> bool, lists: &AllowLists) -> Self {
        let mut services = Vec::new();
        if is_let_in(&lists.data_plane) {
            services.extend([RpcService::Policies, RpcService::Envoy]);
        }
        if is_let_in(&lists.insight) {
            services.push(RpcService::Insight);
        }
        Self {
            services,
            ..Self::default()
        }
    }

    /// Whether a service may be asked. Health and reflection always may.
    pub fn covers(&self, service: RpcService) -> bool {
        matches!(service, RpcService::Health | RpcService::Other)
            || self.services.contains(&service)
    }
}

impl AccessRulesDocument {
    /// Reads the rows.
    ///
    /// # Errors
    /// All that is wrong, one sentence each.
    pub fn check(self) -> Result<Vec<AccessRule>, Vec<String>> {
        let mut wrong = Vec::new();
        if self.callers.is_empty() {
            wrong.push("`callers` has no row: nobody could ask anything".to_owned());
        }
        let mut rows = Vec::with_capacity(self.callers.len());
        for (at, row) in self.callers.into_iter().enumerate() {
            let read = row.read(|why| wrong.push(format!("`callers[{at}]`: {why}")));
            rows.push(read);
        }
        if wrong.is_empty() {
            Ok(rows)
        } else {
            Err(wrong)
        }
    }
}

impl AccessRuleDocument {
    fn read(self, mut tell: impl FnMut(String)) -> AccessRule {
        if self.names.is_empty() {
            tell("`names` is empty: it is the row of nobody".to_owned());
        }
        if self.services.is_empty() {
            tell("`services` is empty: leave the row out".to_owned());
        }
        if self.max_concurrency == Some(0) {
            tell("`maxConcurrency` is 0: leave the row out".to_owned());
        }
        let mut names = Vec::with_capacity(self.names.len());
        for name in &self.names {
            match name.parse() {
                Ok(name) => names.push(name),
                Err(error) => tell(format!("{error}")),
            }
        }
        for (field, list) in [("prefixes", &self.prefixes), ("kinds", &self.kinds)] {
            // Without it all is meant, which an empty list hardly is.
            if list.as_ref().is_some_and(Vec::is_empty) {
                tell(format!("`{field}` is empty: leave it out if all are meant"));
            }
        }
        let (given, kinds) = (
            self.prefixes.unwrap_or_default(),
            self.kinds.unwrap_or_default(),
        );
        let mut prefixes = Vec::with_capacity(given.len());
        for prefix in &given {
            match PathPrefix::parse(prefix) {
                Ok(prefix) => prefixes.push(prefix),
                Err(error) => tell(format!("`{prefix}` is no path name: {error}")),
            }
        }
        if kinds.iter().any(String::is_empty) {
            tell("a kind is empty: write `Kind.group`".to_owned());
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

/// The names that a certificate is for.
fn names(certificate: &CertificateDer<'static>) -> Vec<(SanKind, String)> {
    let Ok(read) = EndEntityCert::try_from(certificate) else {
        return Vec::new();
    };
    let hosts = read.valid_dns_names().map(|name| (SanKind::Dns, name));
    let uris = read.valid_uri_names().map(|name| (SanKind::Uri, name));
    let names = hosts.chain(uris);
    names.map(|(kind, name)| (kind, name.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_matched() {
        for (san, name, is) in [
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
            assert_eq!(san.is((kind, name)), is, "{san:?} {name}");
        }
        // A URI that reads like a host is none.
        let san: SanPattern = "proxy.shop.svc".parse().unwrap();
        assert!(!san.is((SanKind::Uri, "proxy.shop.svc")));
        for wrong in [
            "",
            "*",
            "*.",
            "a*.b",
            "*.a.*",
            "a b",
            "spiffe://a/*/b",
            "a,b",
        ] {
            assert!(wrong.parse::<SanPattern>().is_err(), "{wrong}");
        }
    }
}

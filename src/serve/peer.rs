//! Who calls: what the certificate of a connection allows.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Semaphore;
use tokio_rustls::rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;

use super::tally::Asked;
use super::tls::Certificates;

/// A name of callers, as certificates tell it: a DNS name, `*.` for one more label, or a URI, `/*`
/// at the end for all below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct San(String);

/// What kind of name a certificate tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NameKind {
    Dns,
    Uri,
}

/// Why a text is no name of callers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no name of a caller: write a DNS name such as `proxy.shop.svc` or `*.shop.svc`, or a URI such as \
     `spiffe://cluster.local/ns/shop/sa/proxy`"
)]
pub struct SanError(String);

/// Who may ask what, by the names in certificates; an empty list lets all who are let in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowLists {
    /// Effective policies.
    pub data_plane: Vec<San>,
    /// Answers for people.
    pub insight: Vec<San>,
}

/// The caller at the other end of a connection.
#[derive(Clone, Debug)]
pub(super) struct Peer(Arc<Caller>);

/// What is known of a caller.
#[derive(Debug)]
struct Caller {
    /// Who it is; none of this machine, or one that nothing is asked of.
    certified: Option<Certified>,
    /// One permit a stream that follows paths.
    watches: Arc<Semaphore>,
}

/// A caller over TLS.
#[derive(Debug)]
struct Certified {
    certificates: Arc<Certificates>,
    chain: Vec<CertificateDer<'static>>,
    may_look_up: bool,
    may_ask: bool,
    /// The trust that the chain was found good by last.
    good: AtomicU64,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The certificate that the connection began with is good no more.
    Unauthenticated,
    /// The caller's names are not on the list.
    Denied,
}

impl FromStr for San {
    type Err = SanError;

    fn from_str(text: &str) -> Result<Self, SanError> {
        let name = text.strip_prefix("*.").unwrap_or(text);
        let is_uri = text.contains("://");
        let is_odd = |c: char| c.is_whitespace() || c == ',' || (c == '*' && !is_uri);
        let stars = text.matches('*').count();
        let stars_end = stars == 0 || (stars == 1 && (!is_uri || text.ends_with("/*")));
        if name.is_empty() || name.contains(is_odd) || !stars_end {
            return Err(SanError(text.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }
}

impl San {
    /// Whether a name of a certificate is meant. DNS names know no case, and no URI is one.
    fn is(&self, (kind, name): (NameKind, &str)) -> bool {
        let is_uri = self.0.contains("://");
        if is_uri != (kind == NameKind::Uri) {
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

impl Peer {
    /// A caller of this machine, or one that nothing is asked of.
    pub fn unnamed(watches: usize) -> Self {
        Self::new(None, watches)
    }

    fn new(certified: Option<Certified>, watches: usize) -> Self {
        let watches = Semaphore::new(watches.min(Semaphore::MAX_PERMITS));
        Self(Arc::new(Caller {
            certified,
            watches: Arc::new(watches),
        }))
    }

    /// One permit a stream that follows paths.
    pub fn watches(&self) -> &Arc<Semaphore> {
        &self.0.watches
    }

    /// A caller over TLS, with the chain that it showed.
    pub fn certified(
        certificates: Arc<Certificates>,
        generation: u64,
        chain: Vec<CertificateDer<'static>>,
        lists: &AllowLists,
        watches: usize,
    ) -> Self {
        let names = chain.first().map(names).unwrap_or_default();
        let is_on = |list: &[San]| {
            let is_named = |san: &San| names.iter().any(|(kind, name)| san.is((*kind, name)));
            list.is_empty() || list.iter().any(is_named)
        };
        let certified = Certified {
            may_look_up: is_on(&lists.data_plane),
            may_ask: is_on(&lists.insight),
            certificates,
            chain,
            good: AtomicU64::new(generation),
        };
        Self::new(Some(certified), watches)
    }

    /// Whether the caller may ask a service. A CA that is trusted no more counts for open
    /// connections, too.
    pub fn may(&self, asked: Asked) -> Result<(), Refusal> {
        let Some(certified) = &self.0.certified else {
            return Ok(());
        };
        let trust = certified.certificates.now();
        if certified.good.load(Ordering::Relaxed) != trust.generation {
            if !trust.accepts(&certified.chain) {
                return Err(Refusal::Unauthenticated);
            }
            certified.good.store(trust.generation, Ordering::Relaxed);
        }
        let may = match asked {
            Asked::Policies | Asked::Envoy => certified.may_look_up,
            Asked::Insight => certified.may_ask,
            Asked::Health | Asked::Other => true,
        };
        may.then_some(()).ok_or(Refusal::Denied)
    }
}

/// The names that a certificate is for.
fn names(certificate: &CertificateDer<'static>) -> Vec<(NameKind, String)> {
    let Ok(read) = EndEntityCert::try_from(certificate) else {
        return Vec::new();
    };
    let hosts = read.valid_dns_names().map(|name| (NameKind::Dns, name));
    let uris = read.valid_uri_names().map(|name| (NameKind::Uri, name));
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
                true => NameKind::Uri,
                false => NameKind::Dns,
            };
            let san: San = san.parse().unwrap();
            assert_eq!(san.is((kind, name)), is, "{san:?} {name}");
        }
        // A URI that reads like a host is none.
        let san: San = "proxy.shop.svc".parse().unwrap();
        assert!(!san.is((NameKind::Uri, "proxy.shop.svc")));
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
            assert!(wrong.parse::<San>().is_err(), "{wrong}");
        }
    }
}

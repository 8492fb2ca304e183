//! Who calls: what the certificate of a connection allows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio_rustls::rustls::pki_types::CertificateDer;
use tonic::{Request, Status};

use super::Limits;
use super::callers::{Callers, Grant};
use super::load::Places;
use super::tally::Asked;
use super::tls::Certificates;
use crate::insight::Scope;

/// The caller at the other end of a connection.
#[derive(Clone, Debug)]
pub(super) struct Peer(Arc<Caller>);

/// What is known of a caller.
#[derive(Debug)]
struct Caller {
    /// Who it is; none of this machine, or one that nothing is asked of.
    certified: Option<Certified>,
    is_by_file: bool,
    /// What it may see: everything, if no row says otherwise.
    scope: Arc<Scope>,
    /// One a stream that follows paths.
    watches: Arc<Places>,
    /// One a request that is worked on.
    requests: Arc<Places>,
}

/// A caller over TLS.
#[derive(Debug)]
struct Certified {
    certificates: Arc<Certificates>,
    chain: Vec<CertificateDer<'static>>,
    grant: Grant,
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

impl Peer {
    /// A caller that nothing is asked of.
    pub fn unnamed(limits: &Limits) -> Self {
        Self::new(None, limits, false)
    }

    /// A caller by a Unix socket.
    pub fn by_file(limits: &Limits) -> Self {
        Self::new(None, limits, true)
    }

    /// Whether it comes by a Unix socket: the file's mode says who may.
    pub fn is_by_file(&self) -> bool {
        self.0.is_by_file
    }

    fn new(certified: Option<Certified>, limits: &Limits, is_by_file: bool) -> Self {
        let scope = certified
            .as_ref()
            .map(|known| Arc::clone(&known.grant.scope));
        Self(Arc::new(Caller {
            scope: scope.unwrap_or_default(),
            certified,
            is_by_file,
            watches: Places::new(limits.watches_per_connection),
            requests: Places::new(limits.requests_per_connection),
        }))
    }

    /// Its places: one a stream that follows paths.
    pub fn watches(&self) -> &Arc<Places> {
        &self.0.watches
    }

    /// Its places: one a request that is worked on.
    pub fn requests(&self) -> &Arc<Places> {
        &self.0.requests
    }

    /// What may be seen by it: what the row of its name says.
    pub fn scope(&self) -> Arc<Scope> {
        Arc::clone(&self.0.scope)
    }

    /// Whether a path may be looked up by it, with all kinds.
    pub fn sees(&self, path: &str) -> bool {
        self.0.scope.has_all_kinds() && self.0.scope.has_path(path)
    }

    /// The places of all callers of its row together, if they are bounded.
    pub fn places_of_row(&self) -> Option<&Arc<Places>> {
        self.0.certified.as_ref()?.grant.places.as_ref()
    }

    /// A caller over TLS, with the chain that it showed.
    pub fn certified(
        certificates: Arc<Certificates>,
        generation: u64,
        chain: Vec<CertificateDer<'static>>,
        callers: &Callers,
        limits: &Limits,
    ) -> Self {
        let certified = Certified {
            grant: callers.grant(chain.first()),
            certificates,
            chain,
            good: AtomicU64::new(generation),
        };
        Self::new(Some(certified), limits, false)
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
        let may = certified.grant.covers(asked);
        may.then_some(()).ok_or(Refusal::Denied)
    }
}

/// The caller of a request. Every connection says who it is; without that nothing is answered.
pub(super) fn peer_of<T>(request: &Request<T>) -> Result<&Peer, Status> {
    let peer = request.extensions().get::<Peer>();
    peer.ok_or_else(|| Refusal::Denied.status())
}

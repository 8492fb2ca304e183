//! Who calls: what the certificate of a connection allows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio_rustls::rustls::pki_types::CertificateDer;
use tonic::{Request, Status};

use crate::insight::AccessScope;
use crate::server::Limits;
use crate::server::access::rules::{AccessRules, CallerAccess};
use crate::server::admission::concurrency::Permits;
use crate::server::tls::certificates::Certificates;
use crate::server::transport::request_counters::RpcService;

/// The caller at the other end of a connection.
#[derive(Clone, Debug)]
pub(in crate::server) struct Peer(Arc<PeerState>);

/// What is known of a caller.
#[derive(Debug)]
struct PeerState {
    /// Who it is; none of this machine, or one that nothing is asked of.
    certified: Option<TlsIdentity>,
    is_unix_socket: bool,
    /// What it may see: everything, if no row says otherwise.
    scope: Arc<AccessScope>,
    /// One a stream that follows paths.
    watches: Arc<Permits>,
    /// One a request that is worked on.
    requests: Arc<Permits>,
}

/// A caller over TLS.
#[derive(Debug)]
struct TlsIdentity {
    certificates: Arc<Certificates>,
    chain: Vec<CertificateDer<'static>>,
    access: CallerAccess,
    /// The trust that the chain was found good by last.
    verified_generation: AtomicU64,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum AccessError {
    /// The certificate that the connection began with is good no more.
    Unauthenticated,
    /// The caller's names are not on the list.
    Denied,
}

impl Peer {
    /// A caller that nothing is asked of.
    pub fn anonymous(limits: &Limits) -> Self {
        Self::new(None, limits, false)
    }

    /// A caller by a Unix socket.
    pub fn over_unix_socket(limits: &Limits) -> Self {
        Self::new(None, limits, true)
    }

    /// Whether it comes by a Unix socket: the file's mode says who may.
    pub fn is_unix_socket(&self) -> bool {
        self.0.is_unix_socket
    }

    fn new(certified: Option<TlsIdentity>, limits: &Limits, is_unix_socket: bool) -> Self {
        let scope = certified
            .as_ref()
            .map(|known| Arc::clone(&known.access.scope));
        Self(Arc::new(PeerState {
            scope: scope.unwrap_or_default(),
            certified,
            is_unix_socket,
            watches: Permits::new(limits.watches_per_connection),
            requests: Permits::new(limits.requests_per_connection),
        }))
    }

    /// Its permits: one a stream that follows paths.
    pub fn watches(&self) -> &Arc<Permits> {
        &self.0.watches
    }

    /// Its permits: one a request that is worked on.
    pub fn requests(&self) -> &Arc<Permits> {
        &self.0.requests
    }

    /// What may be seen by it: what the row of its name says.
    pub fn scope(&self) -> Arc<AccessScope> {
        Arc::clone(&self.0.scope)
    }

    /// Whether a path may be looked up by it, with all kinds.
    pub fn may_look_up(&self, path: &str) -> bool {
        self.0.scope.has_all_kinds() && self.0.scope.has_path(path)
    }

    /// The permits of all callers of its row together, if they are bounded.
    pub fn rule_permits(&self) -> Option<&Arc<Permits>> {
        self.0.certified.as_ref()?.access.permits.as_ref()
    }

    /// A caller over TLS, with the chain that it showed.
    pub fn over_tls(
        certificates: Arc<Certificates>,
        generation: u64,
        chain: Vec<CertificateDer<'static>>,
        callers: &AccessRules,
        limits: &Limits,
    ) -> Self {
        let certified = TlsIdentity {
            access: callers.access(chain.first()),
            certificates,
            chain,
            verified_generation: AtomicU64::new(generation),
        };
        Self::new(Some(certified), limits, false)
    }

    /// Whether the caller may ask a service. A CA that is trusted no more counts for open
    /// connections, too.
    pub fn authorize(&self, service: RpcService) -> Result<(), AccessError> {
        let Some(certified) = &self.0.certified else {
            return Ok(());
        };
        let trust = certified.certificates.current();
        if certified.verified_generation.load(Ordering::Relaxed) != trust.generation {
            if !trust.verifies(&certified.chain) {
                return Err(AccessError::Unauthenticated);
            }
            certified
                .verified_generation
                .store(trust.generation, Ordering::Relaxed);
        }
        let may = certified.access.covers(service);
        may.then_some(()).ok_or(AccessError::Denied)
    }
}

/// The caller of a request. Every connection says who it is; without that nothing is answered.
pub(in crate::server) fn peer_of<T>(request: &Request<T>) -> Result<&Peer, Status> {
    let peer = request.extensions().get::<Peer>();
    peer.ok_or_else(|| AccessError::Denied.status())
}

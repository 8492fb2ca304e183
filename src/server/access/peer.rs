//! The caller of a connection, and what its certificate permits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio_rustls::rustls::pki_types::{CertificateDer, UnixTime};
use tonic::{Request, Status};

use crate::insight::AccessScope;
use crate::server::access::rules::{AccessRules, CallerAccess, caller_name};
use crate::server::admission::concurrency::Permits;
use crate::server::admission::connections::{ClientAddress, ConnectionEntry};
use crate::server::tls::certificates::{Certificates, expiry};
use crate::server::transport::request_counters::RpcService;

/// The caller at the other end of a connection.
#[derive(Clone, Debug)]
pub(in crate::server) struct Peer(Arc<PeerState>);

/// The state of a caller. All requests of a connection share it.
#[derive(Debug)]
struct PeerState {
    /// Identity of a caller over TLS; `None` over plain TCP and Unix sockets.
    identity: Option<TlsIdentity>,
    /// Who shares a share of what callers can hold.
    caller: Arc<str>,
    /// Paths and kinds that the caller may see; everything if no access rule restricts it.
    scope: Arc<AccessScope>,
    /// The connection, with the permits and the bytes that it holds.
    connection: Arc<ConnectionEntry>,
}

/// The identity of a caller over TLS.
#[derive(Debug)]
struct TlsIdentity {
    certificates: Arc<Certificates>,
    chain: Vec<CertificateDer<'static>>,
    access: CallerAccess,
    /// Generation of the certificates that last verified the chain.
    verified_generation: AtomicU64,
    /// When the next certificate of the chain expires, in seconds since the Unix epoch: the chain must be verified again
    /// then. Callers may send certificates that are not needed.
    next_expiry: AtomicU64,
}

/// Error of a request that access control denies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum AccessError {
    /// The client certificate of the connection is no longer valid.
    Unauthenticated,
    /// No access rule permits the call.
    Denied,
}

impl Peer {
    /// Creates a caller over plain TCP or a Unix socket, which may call everything.
    pub fn plain(connection: Arc<ConnectionEntry>) -> Self {
        let caller = connection.address().to_string().into();
        Self::new(None, connection, caller)
    }

    /// Returns how the caller connects: `unix`, `tls` or `tcp`.
    pub fn transport(&self) -> &'static str {
        match &self.0.identity {
            Some(_) => "tls",
            None if self.is_unix_socket() => "unix",
            None => "tcp",
        }
    }

    /// Reports whether the caller uses a Unix socket, whose file mode controls access.
    pub fn is_unix_socket(&self) -> bool {
        self.0.connection.address() == ClientAddress::UnixSocket
    }

    fn new(
        identity: Option<TlsIdentity>,
        connection: Arc<ConnectionEntry>,
        caller: Arc<str>,
    ) -> Self {
        let scope = identity
            .as_ref()
            .map(|identity| Arc::clone(&identity.access.scope));
        Self(Arc::new(PeerState {
            scope: scope.unwrap_or_default(),
            identity,
            caller,
            connection,
        }))
    }

    /// Returns the name of the caller: that of its certificate, or its address. What the callers of
    /// one name can hold is limited.
    pub fn caller(&self) -> &Arc<str> {
        &self.0.caller
    }

    /// Returns the permits of the connection for streams of `WatchEffectivePolicies`.
    pub fn watches(&self) -> &Arc<Permits> {
        &self.0.connection.watches
    }

    /// Returns the permits of the connection for requests.
    pub fn requests(&self) -> &Arc<Permits> {
        &self.0.connection.requests
    }

    /// Returns the permits of the connection for health and reflection.
    pub fn probes(&self) -> &Arc<Permits> {
        &self.0.connection.probes
    }

    /// Returns the connection.
    pub fn connection(&self) -> &Arc<ConnectionEntry> {
        &self.0.connection
    }

    /// Returns the paths and kinds that the access rule of the caller permits.
    pub fn scope(&self) -> Arc<AccessScope> {
        Arc::clone(&self.0.scope)
    }

    /// Reports whether the caller may look up a path with all kinds.
    pub fn may_look_up(&self, path: &str) -> bool {
        self.0.scope.has_all_kinds() && self.0.scope.has_path(path)
    }

    /// Returns the permits that all callers of the access rule share, if the rule limits them.
    pub fn rule_permits(&self) -> Option<&Arc<Permits>> {
        self.0.identity.as_ref()?.access.permits.as_ref()
    }

    /// Creates a caller over TLS. `generation` is that of the certificates which verified `chain`
    /// in the handshake.
    pub fn over_tls(
        certificates: Arc<Certificates>,
        generation: u64,
        chain: Vec<CertificateDer<'static>>,
        callers: &AccessRules,
        connection: Arc<ConnectionEntry>,
    ) -> Self {
        let by_name = chain.first().map(caller_name);
        let caller = by_name.unwrap_or_else(|| connection.address().to_string());
        let identity = TlsIdentity {
            access: callers.access(chain.first()),
            certificates,
            next_expiry: AtomicU64::new(next_expiry(&chain, UnixTime::now())),
            chain,
            verified_generation: AtomicU64::new(generation),
        };
        Self::new(Some(identity), connection, caller.into())
    }

    /// Checks that the caller may call a service. Verifies the certificate again if the trusted CAs
    /// have changed since the last check, so that revoked trust also applies to open connections, and if a certificate
    /// of its chain has expired.
    ///
    /// # Errors
    /// Returns an error if the certificate is no longer valid or no access rule permits the call.
    pub fn authorize(&self, service: RpcService) -> Result<(), AccessError> {
        let Some(identity) = &self.0.identity else {
            return Ok(());
        };
        if !identity.is_verified(UnixTime::now()) {
            return Err(AccessError::Unauthenticated);
        }
        let is_allowed = identity.access.covers(service);
        is_allowed.then_some(()).ok_or(AccessError::Denied)
    }
}

impl TlsIdentity {
    /// Whether the current CAs verify the chain. It is verified again only if something may have changed.
    fn is_verified(&self, now: UnixTime) -> bool {
        let trust = self.certificates.current();
        let is_of_now = self.verified_generation.load(Ordering::Relaxed) == trust.generation;
        if is_of_now && now.as_secs() <= self.next_expiry.load(Ordering::Relaxed) {
            return true;
        }
        if !trust.verifies(&self.chain) {
            return false;
        }
        let next = next_expiry(&self.chain, now);
        self.next_expiry.store(next, Ordering::Relaxed);
        self.verified_generation
            .store(trust.generation, Ordering::Relaxed);
        true
    }
}

/// When the next certificate of a chain expires, in seconds since the Unix epoch.
fn next_expiry(chain: &[CertificateDer<'static>], now: UnixTime) -> u64 {
    let expiries = chain.iter().filter_map(expiry);
    let to_come = expiries.filter(|expiry| *expiry >= now.as_secs());
    to_come.min().unwrap_or(u64::MAX)
}

/// Returns the caller of a request.
///
/// # Errors
/// Returns PERMISSION_DENIED if the request has none. The HTTP/2 layer adds one to every request.
pub(in crate::server) fn peer_of<T>(request: &Request<T>) -> Result<&Peer, Status> {
    let peer = request.extensions().get::<Peer>();
    peer.ok_or_else(|| AccessError::Denied.status())
}

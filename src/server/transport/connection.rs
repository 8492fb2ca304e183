//! Accepting of connections: bounded in number, with TLS on TCP if there are certificates. The
//! handshake and the HTTP/2 preface have a common deadline.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::net::RecvFlags;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;

use crate::server::access::peer::Peer;
use crate::server::access::rules::AccessRules;
use crate::server::admission::bounds::Bound;
use crate::server::admission::connections::{ClientAddress, ConnectionTable, ConnectionTicket};
use crate::server::admission::turns::yield_turn;
use crate::server::tls::certificates::Certificates;
use crate::server::transport::listener::{BoundListener, Socket, SocketFile};

/// Pause after a failure to accept a connection. If the process has no file descriptors left, the
/// next attempt would fail as well.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Number of bytes of the HTTP/2 preface.
const PREFACE: usize = 24;
/// Maximum number of connections that are accepted or have ended before other tasks run: with many that arrive at once,
/// look-ups would wait for all of them.
const ACCEPTS_PER_TURN: usize = 8;

/// Limits and credentials of the listeners.
#[derive(Clone, Debug)]
pub(in crate::server) struct AcceptConfig {
    /// The open connections of all listeners that share their limits.
    pub connections: Arc<ConnectionTable>,
    /// Certificates for TLS on TCP; plain TCP without.
    pub certificates: Option<Arc<Certificates>>,
    /// What callers over TLS may call and see.
    pub callers: Arc<AccessRules>,
    /// Time for the TLS handshake and the HTTP/2 preface.
    pub setup: Duration,
}

/// A listening socket.
#[derive(Debug)]
pub(in crate::server) enum Acceptor {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// An accepted connection, after its TLS handshake.
#[derive(Debug)]
pub(in crate::server) struct Connection {
    stream: Stream,
    peer: Peer,
    ticket: ConnectionTicket,
    /// When the client certificate expires.
    expires: Option<Instant>,
    /// Number of bytes that were read, up to `PREFACE`.
    read: usize,
}

#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    Unix(UnixStream),
}

/// Serves each connection of a listener in a task, until `stop` is cancelled. Returns the tasks that still run. Access to a
/// Unix socket is controlled by the mode of its file.
pub(in crate::server) async fn serve_each<F>(
    (acceptor, accept_config): (Acceptor, AcceptConfig),
    stop: &CancellationToken,
    serve: impl Fn(Connection) -> F + Send + Sync + 'static,
) -> JoinSet<()>
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut serving = JoinSet::new();
    let shared = Arc::new((accept_config, serve, stop.clone()));
    for number in 1_usize.. {
        if number.is_multiple_of(ACCEPTS_PER_TURN) {
            yield_turn().await;
        }
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            Some(_) = serving.join_next() => continue,
            accepted = acceptor.accept() => accepted,
        };
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "failed to accept a connection");
                // The usual reason is that no file descriptors are left.
                shared.0.connections.relieve();
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        if let Some(ticket) = shared.0.connections.admit(address) {
            let shared = Arc::clone(&shared);
            serving.spawn(async move {
                let (accept_config, serve, stop) = &*shared;
                let connected = connect(stream, ticket, accept_config, stop).await;
                if let Some(connection) = connected {
                    serve(connection).await;
                }
            });
        }
    }
    serving
}

/// Returns an accepted connection after its TLS handshake, if there are certificates.
async fn connect(
    stream: Stream,
    ticket: ConnectionTicket,
    accept_config: &AcceptConfig,
    stop: &CancellationToken,
) -> Option<Connection> {
    match (stream, &accept_config.certificates) {
        (Stream::Tcp(stream), Some(certificates)) => {
            let certificates = Arc::clone(certificates);
            let handshake = Box::pin(tls_handshake(stream, certificates, accept_config, ticket));
            stop.run_until_cancelled(handshake).await.flatten()
        }
        (stream, _) => Some(Connection {
            stream,
            peer: Peer::plain(Arc::clone(&ticket.entry)),
            ticket,
            expires: None,
            read: 0,
        }),
    }
}

impl Acceptor {
    /// The socket of a listener, and the file of a Unix socket, which is removed when it is dropped.
    pub fn of(listener: BoundListener) -> (Self, Option<SocketFile>) {
        match listener.socket {
            Socket::Tcp(socket) => (Self::Tcp(socket), None),
            Socket::Unix(socket, file) => (Self::Unix(socket), Some(file)),
        }
    }

    async fn accept(&self) -> io::Result<(Stream, ClientAddress)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                // This fails only if the connection is closed; the next read returns that error.
                let _set = stream.set_nodelay(true);
                Ok((Stream::Tcp(stream), ClientAddress::of(address.ip())))
            }
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                Ok((Stream::Unix(stream), ClientAddress::UnixSocket))
            }
        }
    }
}

async fn tls_handshake(
    stream: TcpStream,
    certificates: Arc<Certificates>,
    accept_config: &AcceptConfig,
    mut ticket: ConnectionTicket,
) -> Option<Connection> {
    let context = Arc::clone(&certificates.current());
    let acceptor = TlsAcceptor::from(Arc::clone(&context.config));
    let end = ticket.entry.accepted + accept_config.setup;
    let handshake = tokio::select! {
        handshake = tokio::time::timeout_at(end, acceptor.accept(stream)) => handshake,
        _ = ticket.entry.ended() => return None,
    };
    let stream = match handshake {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            tracing::debug!(%error, "TLS handshake failed");
            return None;
        }
        Err(_) => {
            ticket.record(Bound::ConnectionSetup);
            return None;
        }
    };
    let chain = stream.get_ref().1.peer_certificates();
    let chain = chain.map(<[_]>::to_vec).unwrap_or_default();
    let certificate = chain.first();
    if !certificate.is_none_or(|certificate| ticket.identify(certificate)) {
        return None;
    }
    let remaining = certificate.and_then(|certificate| context.remaining(certificate));
    let callers = &accept_config.callers;
    let entry = Arc::clone(&ticket.entry);
    Some(Connection {
        peer: Peer::over_tls(certificates, context.generation, chain, callers, entry),
        stream: Stream::Tls(Box::new(stream)),
        ticket,
        expires: remaining.and_then(|remaining| Instant::now().checked_add(remaining)),
        read: 0,
    })
}

impl Connection {
    /// Returns the caller.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Returns the table that the connection is in.
    pub fn table(&self) -> &Arc<ConnectionTable> {
        self.ticket.table()
    }

    /// Returns when the client certificate expires.
    pub fn expires(&self) -> Option<Instant> {
        self.expires
    }

    /// Waits until there are bytes to read. Returns `false` if the caller closes the connection before it sends any.
    pub async fn has_bytes(&self) -> io::Result<bool> {
        match &self.stream {
            // The handshake may have read more than its own.
            Stream::Tls(stream) if !stream.get_ref().1.wants_read() => Ok(true),
            Stream::Tls(stream) => tcp_has_bytes(stream.get_ref().0).await,
            Stream::Tcp(stream) => tcp_has_bytes(stream).await,
            Stream::Unix(stream) => {
                let peek = || peek(stream.as_fd());
                stream.async_io(Interest::READABLE, peek).await
            }
        }
    }

    /// Counts bytes that were read until the HTTP/2 preface is complete.
    fn received(&mut self, bytes: usize) {
        if self.read < PREFACE {
            self.read += bytes;
            if self.read >= PREFACE {
                self.ticket.ready();
            }
        }
    }
}

async fn tcp_has_bytes(stream: &TcpStream) -> io::Result<bool> {
    let peek = || peek(stream.as_fd());
    stream.async_io(Interest::READABLE, peek).await
}

/// Whether there are bytes to read; `false` at their end. An accepted socket counts as readable, so that waiting for this
/// takes a system call.
fn peek(socket: BorrowedFd<'_>) -> io::Result<bool> {
    let (_, count) = rustix::net::recv(socket, &mut [0; 1], RecvFlags::PEEK)?;
    Ok(count > 0)
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = match &mut self.stream {
            Stream::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
            Stream::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
            Stream::Unix(stream) => Pin::new(stream).poll_read(context, buffer),
        };
        self.received(buffer.filled().len().saturating_sub(before));
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.stream {
            Stream::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Stream::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
            Stream::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.stream {
            Stream::Tcp(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Stream::Tls(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Stream::Unix(stream) => Pin::new(stream).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            Stream::Tcp(stream) => stream.is_write_vectored(),
            Stream::Tls(stream) => stream.is_write_vectored(),
            Stream::Unix(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Tcp(stream) => Pin::new(stream).poll_flush(context),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(context),
            Stream::Unix(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(context),
            Stream::Unix(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

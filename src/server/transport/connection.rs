//! Accepting of connections: bounded in number, with TLS on TCP if there are certificates.

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_stream::wrappers::ReceiverStream;

use crate::server::Limits;
use crate::server::access::peer::Peer;
use crate::server::access::rules::AccessRules;
use crate::server::tls::certificates::Certificates;

/// Pause after a failure to accept a connection. If the process has no file descriptors left, the
/// next attempt would fail as well.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Timeout of the TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Maximum number of accepted connections that wait to be served.
const ACCEPT_QUEUE: usize = 64;

/// Limits and credentials of the listeners.
#[derive(Clone, Debug)]
pub(in crate::server) struct AcceptConfig {
    /// One permit per connection, shared by all listeners.
    pub permits: Arc<Semaphore>,
    /// Certificates for TLS on TCP; plain TCP without.
    pub certificates: Option<Arc<Certificates>>,
    /// What callers over TLS may call and see.
    pub callers: Arc<AccessRules>,
    pub limits: Arc<Limits>,
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
    _permit: OwnedSemaphorePermit,
}

#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    Unix(UnixStream),
}

/// Returns the connections of a listener as they are accepted. Access to a Unix socket is
/// controlled by the mode of its file.
pub(in crate::server) fn connections(
    listener: Acceptor,
    accept_config: AcceptConfig,
) -> ReceiverStream<Connection> {
    let (tx, accepted) = mpsc::channel(ACCEPT_QUEUE);
    tokio::spawn(async move {
        while let Some(permit) = accept_config.permit(&tx).await {
            let stream = tokio::select! {
                () = tx.closed() => return,
                accepted = listener.accept() => accepted,
            };
            let (stream, address) = match stream {
                Ok((stream, address)) => (Ok(stream), address),
                Err(error) => (Err(error), None),
            };
            match (stream, &accept_config.certificates) {
                // A handshake runs in its own task, so a slow caller does not delay others.
                (Ok(Stream::Tcp(stream)), Some(certificates)) => {
                    let (certificates, accept_config) =
                        (Arc::clone(certificates), accept_config.clone());
                    let tx = tx.clone();
                    tokio::spawn(async move {
                        let connection =
                            tls_handshake((stream, address), certificates, &accept_config, permit)
                                .await;
                        if let Some(connection) = connection {
                            // Sending fails only if the server no longer takes connections.
                            let _sent = tx.send(connection).await;
                        }
                    });
                }
                (Ok(stream), _) => {
                    let limits = &accept_config.limits;
                    let peer = match (&stream, address) {
                        (Stream::Unix(_), _) => Peer::over_unix_socket(limits),
                        (_, Some(address)) => Peer::over_tcp(address, limits),
                        (Stream::Tcp(_) | Stream::Tls(_), None) => Peer::anonymous(limits),
                    };
                    let connection = Connection {
                        stream,
                        peer,
                        _permit: permit,
                    };
                    if tx.send(connection).await.is_err() {
                        return;
                    }
                }
                (Err(error), _) => {
                    tracing::warn!(%error, "failed to accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    });
    ReceiverStream::new(accepted)
}

impl Acceptor {
    async fn accept(&self) -> io::Result<(Stream, Option<IpAddr>)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                // This fails only if the connection is closed; the next read returns that error.
                let _set = stream.set_nodelay(true);
                Ok((Stream::Tcp(stream), Some(address.ip())))
            }
            Self::Unix(listener) => Ok((Stream::Unix(listener.accept().await?.0), None)),
        }
    }
}

impl AcceptConfig {
    /// Waits for a permit for one more connection. Returns `None` if `tx` is closed.
    async fn permit<T>(&self, tx: &mpsc::Sender<T>) -> Option<OwnedSemaphorePermit> {
        tokio::select! {
            () = tx.closed() => None,
            permit = Arc::clone(&self.permits).acquire_owned() => permit.ok(),
        }
    }
}

async fn tls_handshake(
    (stream, address): (TcpStream, Option<IpAddr>),
    certificates: Arc<Certificates>,
    accept_config: &AcceptConfig,
    permit: OwnedSemaphorePermit,
) -> Option<Connection> {
    let (config, generation) = {
        let trust = certificates.current();
        (Arc::clone(&trust.config), trust.generation)
    };
    let acceptor = TlsAcceptor::from(config);
    let stream = match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            tracing::debug!(%error, "TLS handshake failed");
            return None;
        }
        Err(_) => {
            tracing::debug!("TLS handshake timed out");
            return None;
        }
    };
    let chain = stream.get_ref().1.peer_certificates();
    let chain = chain.map(<[_]>::to_vec).unwrap_or_default();
    Some(Connection {
        peer: Peer::over_tls(
            certificates,
            generation,
            chain,
            &accept_config.callers,
            (address, &accept_config.limits),
        ),
        stream: Stream::Tls(Box::new(stream)),
        _permit: permit,
    })
}

impl Connection {
    /// Returns the caller.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
            Stream::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
            Stream::Unix(stream) => Pin::new(stream).poll_read(context, buffer),
        }
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

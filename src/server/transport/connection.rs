//! Connections, as they are accepted: bounded in number, over TLS where there are certificates.

use std::io;
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

/// How long to wait after a connection that could not be accepted. Out of file descriptors, the
/// next attempt would fail as well.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How long a caller may take to shake hands.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Connections that may wait for the server to take them.
const ACCEPT_QUEUE: usize = 64;

/// Whom a listener lets in.
#[derive(Clone, Debug)]
pub(in crate::server) struct AcceptConfig {
    /// One permit a connection, of all listeners together.
    pub permits: Arc<Semaphore>,
    /// TLS on TCP, if there are certificates.
    pub certificates: Option<Arc<Certificates>>,
    pub callers: Arc<AccessRules>,
    pub limits: Arc<Limits>,
}

/// Where connections come in.
#[derive(Debug)]
pub(in crate::server) enum Acceptor {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// A connection.
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

/// The connections of a listener. Who may connect to a Unix socket is said by its file's mode.
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
            match (stream, &accept_config.certificates) {
                // Who is slow to shake hands holds up nobody else.
                (Ok(Stream::Tcp(stream)), Some(certificates)) => {
                    let (certificates, accept_config) =
                        (Arc::clone(certificates), accept_config.clone());
                    let tx = tx.clone();
                    tokio::spawn(async move {
                        let shaken =
                            tls_handshake(stream, certificates, &accept_config, permit).await;
                        if let Some(connection) = shaken {
                            let _gone = tx.send(connection).await;
                        }
                    });
                }
                (Ok(stream), _) => {
                    let peer = match &stream {
                        Stream::Unix(_) => Peer::over_unix_socket(&accept_config.limits),
                        Stream::Tcp(_) | Stream::Tls(_) => Peer::anonymous(&accept_config.limits),
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
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    });
    ReceiverStream::new(accepted)
}

impl Acceptor {
    async fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                // A connection that is gone already says so when it is read.
                let _gone = stream.set_nodelay(true);
                Ok(Stream::Tcp(stream))
            }
            Self::Unix(listener) => Ok(Stream::Unix(listener.accept().await?.0)),
        }
    }
}

impl AcceptConfig {
    /// Waits for room for one more connection; `None` when nobody takes connections any more.
    async fn permit<T>(&self, tx: &mpsc::Sender<T>) -> Option<OwnedSemaphorePermit> {
        tokio::select! {
            () = tx.closed() => None,
            permit = Arc::clone(&self.permits).acquire_owned() => permit.ok(),
        }
    }
}

async fn tls_handshake(
    stream: TcpStream,
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
            tracing::debug!(%error, "a caller is refused at the handshake");
            return None;
        }
        Err(_) => {
            tracing::debug!("a caller took too long to shake hands");
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
            &accept_config.limits,
        ),
        stream: Stream::Tls(Box::new(stream)),
        _permit: permit,
    })
}

impl Connection {
    /// Who is at the other end.
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
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.stream {
            Stream::Tcp(stream) => Pin::new(stream).poll_write_vectored(context, pieces),
            Stream::Tls(stream) => Pin::new(stream).poll_write_vectored(context, pieces),
            Stream::Unix(stream) => Pin::new(stream).poll_write_vectored(context, pieces),
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

//! A listener with a bounded number of connections and an idle timeout, for the admin server: its
//! clients must not exhaust the file descriptors of the process, or keep probes out. The oldest connection makes room
//! for a new one.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::sync::{CancellationToken, DropGuard, WaitForCancellationFutureOwned};

/// Maximum number of connections of a listener; with more, the oldest one ends when it waits for its client.
const MAX_CONNECTIONS: usize = 32;
/// Time without received bytes after which a connection is closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// A listener with at most [`MAX_CONNECTIONS`] connections.
#[derive(Debug)]
pub(super) struct BoundedListener<L> {
    inner: L,
    /// What ends each connection, from the oldest. It is also set once the connection is closed.
    open: VecDeque<CancellationToken>,
}

/// A connection whose reads fail after [`IDLE_TIMEOUT`] without received bytes.
#[derive(Debug)]
pub(super) struct IdleTimeoutStream<S> {
    inner: S,
    deadline: Pin<Box<Sleep>>,
    /// Completes when the connection has to make room.
    ended: Pin<Box<WaitForCancellationFutureOwned>>,
    _closed: DropGuard,
}

impl<L> BoundedListener<L> {
    pub fn new(inner: L) -> Self {
        Self {
            inner,
            open: VecDeque::new(),
        }
    }
}

impl<S> IdleTimeoutStream<S> {
    fn new(inner: S, timeout: Duration, end: CancellationToken) -> Self {
        Self {
            inner,
            deadline: Box::pin(sleep(timeout)),
            ended: Box::pin(end.clone().cancelled_owned()),
            _closed: end.drop_guard(),
        }
    }
}

impl<L: Listener> Listener for BoundedListener<L> {
    type Io = IdleTimeoutStream<L::Io>;
    type Addr = L::Addr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let (inner, address) = self.inner.accept().await;
        self.open.retain(|connection| !connection.is_cancelled());
        if self.open.len() >= MAX_CONNECTIONS
            && let Some(oldest) = self.open.pop_front()
        {
            oldest.cancel();
        }
        let end = CancellationToken::new();
        self.open.push_back(end.clone());
        (IdleTimeoutStream::new(inner, IDLE_TIMEOUT, end), address)
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.inner.local_addr()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for IdleTimeoutStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.inner).poll_read(context, buffer);
        if read.is_ready() {
            let deadline = Instant::now() + IDLE_TIMEOUT;
            self.deadline.as_mut().reset(deadline);
            return read;
        }
        let is_over = self.deadline.as_mut().poll(context).is_ready();
        match is_over || self.ended.as_mut().poll(context).is_ready() {
            true => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            false => Poll::Pending,
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for IdleTimeoutStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    #[tokio::test]
    async fn an_idle_connection_times_out() {
        let (_idle, inner) = tokio::io::duplex(64);
        let end = CancellationToken::new();
        let mut stream = IdleTimeoutStream::new(inner, Duration::from_millis(1), end);
        let error = stream.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn the_oldest_connection_makes_room() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut listener = BoundedListener::new(listener);
        let (mut clients, mut accepted) = (Vec::new(), VecDeque::new());
        for _ in 0..=MAX_CONNECTIONS {
            clients.push(TcpStream::connect(address).await.unwrap());
            accepted.push_back(listener.accept().await.0);
        }
        let error = accepted.pop_front().unwrap().read_u8().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        // The next one is open, and closed connections make room, too.
        clients.last_mut().unwrap().write_u8(7).await.unwrap();
        assert_eq!(accepted.back_mut().unwrap().read_u8().await.unwrap(), 7);
        accepted.clear();
        clients.push(TcpStream::connect(address).await.unwrap());
        let last = listener.accept().await.0;
        assert_eq!(listener.open.len(), 1);
        drop(last);
    }
}

//! A listener with a bounded number of connections and an idle timeout, for the admin server: its
//! clients must not exhaust the file descriptors of the process.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep};

/// Maximum number of connections of a listener; further ones wait to be accepted.
const MAX_CONNECTIONS: usize = 32;
/// Time without received bytes after which a connection is closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// A listener with at most [`MAX_CONNECTIONS`] connections.
#[derive(Debug)]
pub(super) struct BoundedListener<L> {
    inner: L,
    permits: Arc<Semaphore>,
}

/// A connection whose reads fail after [`IDLE_TIMEOUT`] without received bytes.
#[derive(Debug)]
pub(super) struct IdleTimeoutStream<S> {
    inner: S,
    deadline: Pin<Box<Sleep>>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl<L> BoundedListener<L> {
    pub fn new(inner: L) -> Self {
        Self {
            inner,
            permits: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
        }
    }
}

impl<L: Listener> Listener for BoundedListener<L> {
    type Io = IdleTimeoutStream<L::Io>;
    type Addr = L::Addr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        // The semaphore is never closed.
        let permit = Arc::clone(&self.permits).acquire_owned().await.ok();
        let (inner, address) = self.inner.accept().await;
        let io = IdleTimeoutStream {
            inner,
            deadline: Box::pin(sleep(IDLE_TIMEOUT)),
            _permit: permit,
        };
        (io, address)
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
        match self.deadline.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
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
    use tokio::io::AsyncReadExt;

    #[tokio::test]
    async fn an_idle_connection_times_out() {
        let (_idle, inner) = tokio::io::duplex(64);
        let mut stream = IdleTimeoutStream {
            inner,
            deadline: Box::pin(sleep(Duration::from_millis(1))),
            _permit: None,
        };
        let error = stream.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}

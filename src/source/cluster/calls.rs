//! What is asked of the API server, seen where requests leave: how often each resource is listed
//! and watched, and when a watch was opened last.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use http::{Method, Request, Response, StatusCode};
use tokio::sync::Notify;
use tower::{Layer, Service};

/// Requests by URL path, such as `/api/v1/services`.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    counts: Mutex<BTreeMap<String, Count>>,
    /// Wakes whoever waits for a watch to be opened.
    opened: Notify,
}

/// How often a resource was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Lists, a page each.
    pub lists: u64,
    /// Watches, the first and those that resume it.
    pub watches: u64,
    /// Watches that the server has accepted.
    pub opened: u64,
    /// Requests that would change something; there are none.
    pub writes: u64,
}

/// A client's service that is looked at.
#[derive(Clone, Debug)]
pub struct Seen<S> {
    inner: S,
    calls: Calls,
}

/// A request that is under way.
pub struct Asking<F> {
    future: Pin<Box<F>>,
    calls: Calls,
    /// The path of a watch.
    watch: Option<String>,
}

impl Calls {
    /// Everything that was asked.
    pub fn counts(&self) -> BTreeMap<String, Count> {
        let counts = self.inner.counts.lock();
        counts.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many watches of a path the server has accepted.
    pub(super) fn opened(&self, path: &str) -> u64 {
        let counts = self.inner.counts.lock();
        let counts = counts.unwrap_or_else(PoisonError::into_inner);
        counts.get(path).map_or(0, |count| count.opened)
    }

    /// Waits until the server has accepted more watches of a path than so many.
    pub(super) async fn opened_after(&self, path: &str, known: u64) {
        loop {
            let notified = self.inner.opened.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            if self.opened(path) > known {
                return;
            }
            notified.await;
        }
    }

    fn change(&self, path: &str, change: impl FnOnce(&mut Count)) {
        let counts = self.inner.counts.lock();
        let mut counts = counts.unwrap_or_else(PoisonError::into_inner);
        change(counts.entry(path.to_owned()).or_default());
    }
}

impl<S> Layer<S> for Calls {
    type Service = Seen<S>;

    fn layer(&self, inner: S) -> Seen<S> {
        Seen {
            inner,
            calls: self.clone(),
        }
    }
}

impl<S, B, R> Service<Request<B>> for Seen<S>
where
    S: Service<Request<B>, Response = Response<R>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Asking<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let path = request.uri().path();
        let query = request.uri().query().unwrap_or_default();
        let is_watch = query
            .split('&')
            .any(|part| matches!(part, "watch=true" | "watch=1"));
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        self.calls.change(path, |count| {
            if !reads {
                count.writes += 1;
            } else if is_watch {
                count.watches += 1;
            } else {
                count.lists += 1;
            }
        });
        Asking {
            watch: is_watch.then(|| path.to_owned()),
            calls: self.calls.clone(),
            future: Box::pin(self.inner.call(request)),
        }
    }
}

impl<F, R, E> Future for Asking<F>
where
    F: Future<Output = Result<Response<R>, E>>,
{
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = ready!(self.future.as_mut().poll(context));
        if let (Some(path), Ok(response)) = (self.watch.take(), &answer)
            && response.status() == StatusCode::OK
        {
            self.calls.change(&path, |count| count.opened += 1);
            self.calls.inner.opened.notify_waiters();
        }
        Poll::Ready(answer)
    }
}

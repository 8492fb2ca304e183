//! What is asked of the API server, seen where requests leave: how often each resource is listed
//! and watched, when a watch was opened last, and when the server said something of it last.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::SystemTime;

use http::{Method, Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use tokio::sync::Notify;
use tower::{Layer, Service};

/// Where reviews are posted.
const REVIEWS: [&str; 2] = [
    "/apis/authentication.k8s.io/v1/tokenreviews",
    "/apis/authorization.k8s.io/v1/subjectaccessreviews",
];

/// Requests by URL path, such as `/api/v1/services`.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    counts: Mutex<BTreeMap<String, Count>>,
    /// When the server said something last: an object, a bookmark, or that a watch is open.
    heard: Mutex<BTreeMap<String, SystemTime>>,
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
    /// Watches that the server has accepted, but for those that begin with a list.
    pub opened: u64,
    /// Questions about the tokens and the rights of callers, which are posted and change nothing.
    pub reviews: u64,
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
    path: String,
    /// A watch that begins where another ended.
    resumes: bool,
}

/// What the server answers, as it comes.
pub struct Heard<B> {
    inner: Pin<Box<B>>,
    calls: Calls,
    path: String,
}

impl Calls {
    /// Everything that was asked.
    pub fn counts(&self) -> BTreeMap<String, Count> {
        lock(&self.inner.counts).clone()
    }

    /// How many watches of a path the server has accepted.
    pub(super) fn opened(&self, path: &str) -> u64 {
        let counts = lock(&self.inner.counts);
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

    /// When the server said something of a path last.
    pub(super) fn heard(&self, path: &str) -> Option<SystemTime> {
        lock(&self.inner.heard).get(path).copied()
    }

    fn hear(&self, path: &str) {
        lock(&self.inner.heard).insert(path.to_owned(), SystemTime::now());
    }

    fn change(&self, path: &str, change: impl FnOnce(&mut Count)) {
        change(lock(&self.inner.counts).entry(path.to_owned()).or_default());
    }
}

/// What a panic half-way left is as good: each change is one insertion.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
    type Response = Response<Heard<R>>;
    type Error = S::Error;
    type Future = Asking<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let path = request.uri().path();
        let query = request.uri().query().unwrap_or_default();
        let says = |wanted: &[&str]| query.split('&').any(|part| wanted.contains(&part));
        let is_watch = says(&["watch=true", "watch=1"]);
        let resumes = is_watch && !says(&["sendInitialEvents=true"]);
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        // What the server serves is asked by two paths that list no objects.
        if !matches!(path, "/api" | "/apis") || !reads {
            self.calls.change(path, |count| {
                if !reads && REVIEWS.contains(&path) {
                    count.reviews += 1;
                } else if !reads {
                    count.writes += 1;
                } else if is_watch {
                    count.watches += 1;
                } else {
                    count.lists += 1;
                }
            });
        }
        Asking {
            path: path.to_owned(),
            resumes,
            calls: self.calls.clone(),
            future: Box::pin(self.inner.call(request)),
        }
    }
}

impl<F, R, E> Future for Asking<F>
where
    F: Future<Output = Result<Response<R>, E>>,
{
    type Output = Result<Response<Heard<R>>, E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = ready!(self.future.as_mut().poll(context))?;
        let path = std::mem::take(&mut self.path);
        if answer.status() == StatusCode::OK {
            self.calls.hear(&path);
            if self.resumes {
                self.calls.change(&path, |count| count.opened += 1);
                self.calls.inner.opened.notify_waiters();
            }
        }
        let calls = self.calls.clone();
        Poll::Ready(Ok(answer.map(|body| Heard {
            inner: Box::pin(body),
            calls,
            path,
        })))
    }
}

impl<B: Body> Body for Heard<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let piece = ready!(self.inner.as_mut().poll_frame(context));
        if matches!(piece, Some(Ok(_))) {
            self.calls.hear(&self.path);
        }
        Poll::Ready(piece)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

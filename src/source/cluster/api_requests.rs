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
const REVIEW_PATHS: [&str; 2] = [
    "/apis/authentication.k8s.io/v1/tokenreviews",
    "/apis/authorization.k8s.io/v1/subjectaccessreviews",
];

/// Requests by URL path, such as `/api/v1/services`.
#[derive(Clone, Debug, Default)]
pub struct ApiRequestRecorder {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    counts: Mutex<BTreeMap<String, ApiRequestCounts>>,
    /// When the server said something last: an object, a bookmark, or that a watch is open.
    last_contact: Mutex<BTreeMap<String, SystemTime>>,
    /// Wakes whoever waits for a watch to be opened.
    opened: Notify,
}

/// How often a resource was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ApiRequestCounts {
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
pub struct RecordingService<S> {
    inner: S,
    calls: ApiRequestRecorder,
}

/// A request that is under way.
pub struct ResponseFuture<F> {
    future: Pin<Box<F>>,
    calls: ApiRequestRecorder,
    path: String,
    /// A watch that begins where another ended.
    resumes: bool,
}

/// What the server answers, as it comes.
pub struct LastContact<B> {
    inner: Pin<Box<B>>,
    calls: ApiRequestRecorder,
    path: String,
}

impl ApiRequestRecorder {
    /// Everything that was asked.
    pub fn counts(&self) -> BTreeMap<String, ApiRequestCounts> {
        lock(&self.inner.counts).clone()
    }

    /// How many watches of a path the server has accepted.
    pub(super) fn opened(&self, path: &str) -> u64 {
        let counts = lock(&self.inner.counts);
        counts.get(path).map_or(0, |count| count.opened)
    }

    /// Waits until the server has accepted more watches of a path than so many.
    pub(super) async fn wait_for_watch(&self, path: &str, known: u64) {
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
    pub(super) fn last_contact(&self, path: &str) -> Option<SystemTime> {
        lock(&self.inner.last_contact).get(path).copied()
    }

    fn record_contact(&self, path: &str) {
        lock(&self.inner.last_contact).insert(path.to_owned(), SystemTime::now());
    }

    fn change(&self, path: &str, change: impl FnOnce(&mut ApiRequestCounts)) {
        change(lock(&self.inner.counts).entry(path.to_owned()).or_default());
    }
}

/// What a panic half-way left is as good: each change is one insertion.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<S> Layer<S> for ApiRequestRecorder {
    type Service = RecordingService<S>;

    fn layer(&self, inner: S) -> RecordingService<S> {
        RecordingService {
            inner,
            calls: self.clone(),
        }
    }
}

impl<S, B, R> Service<Request<B>> for RecordingService<S>
where
    S: Service<Request<B>, Response = Response<R>>,
{
    type Response = Response<LastContact<R>>;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future>;

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
                if !reads && REVIEW_PATHS.contains(&path) {
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
        ResponseFuture {
            path: path.to_owned(),
            resumes,
            calls: self.calls.clone(),
            future: Box::pin(self.inner.call(request)),
        }
    }
}

impl<F, R, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Response<R>, E>>,
{
    type Output = Result<Response<LastContact<R>>, E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = ready!(self.future.as_mut().poll(context))?;
        let path = std::mem::take(&mut self.path);
        if answer.status() == StatusCode::OK {
            self.calls.record_contact(&path);
            if self.resumes {
                self.calls.change(&path, |count| count.opened += 1);
                self.calls.inner.opened.notify_waiters();
            }
        }
        let calls = self.calls.clone();
        Poll::Ready(Ok(answer.map(|body| LastContact {
            inner: Box::pin(body),
            calls,
            path,
        })))
    }
}

impl<B: Body> Body for LastContact<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let piece = ready!(self.inner.as_mut().poll_frame(context));
        if matches!(piece, Some(Ok(_))) {
            self.calls.record_contact(&self.path);
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

//! A layer of the Kubernetes client that records the requests to the API server: how often each
//! resource is listed and watched, how many watches were accepted, and when a resource last received
//! data. Times are those of the monotonic clock.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use entail_core::model::GroupKind;
use http::{Method, Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use tokio::time::Instant;
use tower::{Layer, Service};

/// URL paths of access reviews.
const REVIEW_PATHS: [&str; 3] = [
    "/apis/authentication.k8s.io/v1/tokenreviews",
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    "/apis/authorization.k8s.io/v1/subjectaccessreviews",
];
/// URL paths of discovery and probes, which read no objects.
const UNCOUNTED_PATHS: [&str; 3] = ["/api", "/apis", "/readyz"];

/// Counts requests by URL path, such as `/api/v1/services`. Clones share the counts.
#[derive(Clone, Debug, Default)]
pub struct ApiRequestRecorder {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    counts: Mutex<BTreeMap<String, ApiRequestCounts>>,
    /// When the server last sent data of a resource: an event, a bookmark, or response headers.
    last_contact: Mutex<BTreeMap<String, Instant>>,
    /// The kinds that have been waited for for long, and since when.
    unread: Mutex<BTreeMap<GroupKind, Instant>>,
}

/// Number of requests for a resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ApiRequestCounts {
    /// List requests; each page counts.
    pub lists: u64,
    /// Watch requests, including those that resume a watch.
    pub watches: u64,
    /// Watch requests that the server accepted, except those that stream the initial list.
    pub opened: u64,
    /// Lists and watches that failed, were denied, or ended early.
    pub failures: u64,
    /// Reviews of tokens and access, which are posted but change nothing.
    pub reviews: u64,
    /// All other requests that are not GET or HEAD; a server sends none.
    pub writes: u64,
}

/// A client service that records requests and responses.
#[derive(Clone, Debug)]
pub struct RecordingService<S> {
    inner: S,
    calls: ApiRequestRecorder,
}

/// The future of a response.
pub struct ResponseFuture<F> {
    future: Pin<Box<F>>,
    calls: ApiRequestRecorder,
    path: String,
    /// Whether the request is a watch without an initial list.
    resumes: bool,
}

/// A response body that records when data arrives.
pub struct RecordingBody<B> {
    inner: Pin<Box<B>>,
    calls: ApiRequestRecorder,
    path: String,
}

impl ApiRequestRecorder {
    /// Returns the counts by URL path.
    pub fn counts(&self) -> BTreeMap<String, ApiRequestCounts> {
        lock(&self.inner.counts).clone()
    }

    /// Returns for how long each kind has been waited for that has not been read for long.
    pub fn unread(&self) -> BTreeMap<GroupKind, Duration> {
        let unread = lock(&self.inner.unread);
        let unread = unread.iter();
        unread
            .map(|(kind, since)| (kind.clone(), since.elapsed()))
            .collect()
    }

    /// Replaces the kinds that [`unread`](Self::unread) reports.
    pub(super) fn set_unread(&self, unread: BTreeMap<GroupKind, Instant>) {
        *lock(&self.inner.unread) = unread;
    }

    /// Returns when the server last sent data of a path.
    pub(super) fn last_contact(&self, path: &str) -> Option<Instant> {
        lock(&self.inner.last_contact).get(path).copied()
    }

    /// Counts a list or a watch that failed, was denied, or ended early.
    pub(super) fn record_failure(&self, path: &str) {
        self.count(path, |count| count.failures += 1);
    }

    fn record_contact(&self, path: &str) {
        lock(&self.inner.last_contact).insert(path.to_owned(), Instant::now());
    }

    fn count(&self, path: &str, add: impl FnOnce(&mut ApiRequestCounts)) {
        add(lock(&self.inner.counts).entry(path.to_owned()).or_default());
    }
}

/// Locks a mutex and ignores poisoning: each change is a single insertion, so the map is consistent
/// after a panic.
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
    type Response = Response<RecordingBody<R>>;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let path = request.uri().path();
        let query = request.uri().query().unwrap_or_default();
        let has_any = |parameters: &[&str]| query.split('&').any(|part| parameters.contains(&part));
        let is_watch = has_any(&["watch=true", "watch=1"]);
        let resumes = is_watch && !has_any(&["sendInitialEvents=true"]);
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        if !UNCOUNTED_PATHS.contains(&path) || !reads {
            self.calls.count(path, |count| {
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
    type Output = Result<Response<RecordingBody<R>>, E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let response = ready!(self.future.as_mut().poll(context))?;
        let path = std::mem::take(&mut self.path);
        if response.status() == StatusCode::OK {
            self.calls.record_contact(&path);
            if self.resumes {
                self.calls.count(&path, |count| count.opened += 1);
            }
        }
        let calls = self.calls.clone();
        Poll::Ready(Ok(response.map(|body| RecordingBody {
            inner: Box::pin(body),
            calls,
            path,
        })))
    }
}

impl<B: Body> Body for RecordingBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let frame = ready!(self.inner.as_mut().poll_frame(context));
        if matches!(frame, Some(Ok(_))) {
            self.calls.record_contact(&self.path);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

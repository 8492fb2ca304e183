//! HTTP/2 on the connections of a listener. The services are called when the headers of a request
//! arrive, before a task is spawned for it, so admission counts every request that has started.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::runtime::Handle;
use tokio::task::coop::has_budget_remaining;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tonic::body::Body;
use tonic::codegen::Service;

use crate::background;
use crate::server::Limits;
use crate::server::access::peer::Peer;
use crate::server::admission::bounds::{Bound, BoundCounters};
use crate::server::admission::connections::{ConnectionEntry, EndReason};
use crate::server::admission::turns::Turn;
use crate::server::transport::batched_writes::{BatchedConnection, SustainedReads, WaitingBytes};
use crate::server::transport::body::ReplyBody;
use crate::server::transport::connection::{AcceptConfig, Acceptor, Connection, serve_each};
use crate::server::transport::executor::RequestExecutor;
use crate::server::transport::fast_path::{FastPathService, ResponseFuture};
use crate::server::transport::turn_waker::TurnWaker;

/// Time for a connection that is ended because of its caller to say goodbye.
const EVICTION_GRACE: Duration = Duration::from_secs(1);

/// Maximum number of bytes of a stream that wait for the socket, beyond the last chunk.
const SEND_BUFFER: usize = 64 * 1024;

/// The services, called by one connection: adds the caller to each request.
struct ConnectionService {
    services: FastPathService,
    peer: Peer,
    executor: RequestExecutor,
}

type Http2 =
    http2::Connection<TokioIo<BatchedConnection<Connection>>, ConnectionService, RequestExecutor>;

/// HTTP/2 on a connection, and what it has written last.
struct Serving {
    http: Http2,
    waiting: WaitingBytes<Connection>,
    connection: Arc<ConnectionEntry>,
    executor: RequestExecutor,
    waker: TurnWaker,
    /// For times in which the connection is quiet.
    turn: Turn,
}

/// When the server ends a connection.
pub(in crate::server) struct Lifetime {
    connection: Arc<ConnectionEntry>,
    expires: Option<Instant>,
    setup: Duration,
    age: Duration,
    grace: Duration,
}

/// Serves on the connections of a listener until `stop` is cancelled and they are closed.
pub(in crate::server) async fn serve(
    listener: (Acceptor, AcceptConfig),
    services: FastPathService,
    limits: &Limits,
    stop: CancellationToken,
) {
    let (limits, of_each) = (Arc::new(limits.clone()), stop.clone());
    let connections = serve_each(listener, &stop, move |connection| {
        let (services, limits) = (services.clone(), Arc::clone(&limits));
        serve_when_readable(connection, services, limits, of_each.clone())
    });
    let mut connections = connections.await;
    while connections.join_next().await.is_some() {}
}

/// Serves on a connection once its caller has sent something. Until then, it has no HTTP/2 state, which would take 15 KB,
/// and nothing is written to it.
async fn serve_when_readable(
    connection: Connection,
    services: FastPathService,
    limits: Arc<Limits>,
    stop: CancellationToken,
) {
    let lifetime = Lifetime::of(&connection, &limits);
    let bounds = services.bounds();
    let sends = async {
        let sends = connection.has_bytes().await;
        if lifetime.connection.is_quiet() {
            // A caller may close thousands at once, or begin to send on all of them.
            let mut turn = Turn::of(connection.table().turns());
            poll_fn(|context| turn.poll(context)).await;
        }
        sends.unwrap_or_default()
    };
    tokio::select! {
        sends = sends => {
            if !sends {
                return;
            }
        }
        reason = lifetime.end_silent() => {
            if reason == EndReason::Silent {
                bounds.record(Bound::ConnectionSetup, &lifetime.connection.address());
            }
            return;
        }
        () = stop.cancelled() => return,
    }
    let (background, entry) = (services.background(), Arc::clone(&lifetime.connection));
    let (serving, sustained) = Serving::on(connection, services, &limits);
    // On the heap, so that those that say nothing have small tasks.
    let served = Box::pin(serve_connection_until(
        serving,
        lifetime,
        Arc::clone(&bounds),
        stop,
    ));
    let began = move || bounds.record(Bound::SustainedReads, &entry.address());
    serve_at_priority(served, sustained, background, began).await;
}

/// What ends serving a connection at a priority.
#[derive(Debug)]
enum Served {
    /// The connection has ended.
    Whole,
    /// Its priority is another now.
    ToOtherPriority,
}

/// Serves on a connection: at low priority, on another runtime, as long as its reads are sustained. `began` is called when
/// that begins.
async fn serve_at_priority<F: Future<Output = ()> + Send + 'static>(
    mut serving: Pin<Box<F>>,
    sustained: SustainedReads,
    background: Option<Handle>,
    began: impl Fn(),
) {
    let Some(background) = background else {
        return serving.await;
    };
    let usual = Handle::current();
    while let Served::ToOtherPriority = serve_while(&mut serving, &sustained, None).await {
        began();
        let (sustained, usual) = (sustained.clone(), usual.clone());
        let low = background.spawn(async move {
            let served = serve_while(&mut serving, &sustained, Some(&usual)).await;
            (served, serving)
        });
        // With this task, the other one ends, too.
        match AbortOnDropHandle::new(low).await {
            Ok((Served::ToOtherPriority, back)) => serving = back,
            _ => return,
        }
    }
}

/// Serves on a connection while its reads are not sustained. With the `usual` runtime: on a thread of low priority while
/// they are; the tasks and timers of the connection are those of the usual runtime even then.
async fn serve_while<F: Future<Output = ()>>(
    serving: &mut Pin<Box<F>>,
    sustained: &SustainedReads,
    usual: Option<&Handle>,
) -> Served {
    poll_fn(|context| {
        let polled = match usual {
            Some(usual) => {
                let _entered = usual.enter();
                let polled = serving.as_mut().poll(context);
                background::yield_core();
                polled
            }
            None => serving.as_mut().poll(context),
        };
        match polled {
            Poll::Ready(()) => Poll::Ready(Served::Whole),
            Poll::Pending if sustained.are_sustained() == usual.is_some() => Poll::Pending,
            Poll::Pending => Poll::Ready(Served::ToOtherPriority),
        }
    })
    .await
}

/// Serves on a connection until the caller closes it, the server ends it, or `stop` is cancelled.
async fn serve_connection_until(
    serving: Serving,
    lifetime: Lifetime,
    bounds: Arc<BoundCounters>,
    stop: CancellationToken,
) {
    let mut serving = pin!(serving);
    let result = tokio::select! {
        result = &mut serving => Some(result),
        // `Server::run` bounds the time to drain.
        () = stop.cancelled() => {
            // A connection without a preface has no requests, and must not delay the shutdown.
            if lifetime.connection.is_silent() {
                return;
            }
            serving.as_mut().graceful_shutdown();
            Some(serving.as_mut().await)
        }
        reason = lifetime.end() => {
            let address = lifetime.connection.address();
            let grace = match reason {
                EndReason::Silent => {
                    bounds.record(Bound::ConnectionSetup, &address);
                    return;
                }
                EndReason::Evicted if lifetime.connection.is_silent() => return,
                // Of thousands that are evicted in a second, as many would wait.
                EndReason::Evicted if serving.as_mut().end_uncalled() => return,
                EndReason::Evicted | EndReason::Unread => EVICTION_GRACE,
                EndReason::CertificateExpired => {
                    bounds.record(Bound::CertificateExpired, &address);
                    lifetime.grace
                }
                EndReason::Age => lifetime.grace,
            };
            serving.as_mut().graceful_shutdown();
            tokio::time::timeout(grace, serving.as_mut()).await.ok()
        }
    };
    if let Some(Err(error)) = result {
        tracing::debug!(%error, "connection failed");
        serving.waiting.close();
    }
}

impl Lifetime {
    /// The lifetime of an accepted connection.
    pub fn of(connection: &Connection, limits: &Limits) -> Self {
        Self {
            connection: Arc::clone(connection.peer().connection()),
            expires: connection.expires(),
            setup: limits.connection_setup,
            age: limits.connection_age,
            grace: limits.connection_grace,
        }
    }

    /// Time for the requests of the connection to end once it may not begin others.
    pub fn grace(&self) -> Duration {
        self.grace
    }

    /// Completes when the server must end a connection that has sent nothing.
    async fn end_silent(&self) -> EndReason {
        tokio::select! {
            reason = self.connection.ended() => reason,
            () = self.setup_over() => EndReason::Silent,
        }
    }

    /// Completes when the time for the handshake and the HTTP/2 preface is over.
    fn setup_over(&self) -> tokio::time::Sleep {
        tokio::time::sleep_until(self.connection.accepted + self.setup)
    }

    /// Completes when the server must end the connection.
    pub async fn end(&self) -> EndReason {
        let silent = async {
            self.setup_over().await;
            if !self.connection.is_silent() {
                std::future::pending::<()>().await;
            }
        };
        let expired = async {
            match self.expires {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            reason = self.connection.ended() => reason,
            () = silent => EndReason::Silent,
            () = expired => EndReason::CertificateExpired,
            () = tokio::time::sleep(self.age) => EndReason::Age,
        }
    }
}

impl Serving {
    /// Begins HTTP/2 on a connection. Also returns whether its reads are sustained.
    fn on(
        connection: Connection,
        services: FastPathService,
        limits: &Limits,
    ) -> (Self, SustainedReads) {
        let executor = RequestExecutor::new(services.background());
        let services = ConnectionService {
            services,
            peer: connection.peer().clone(),
            executor: executor.clone(),
        };
        let turn = Turn::of(connection.table().turns());
        let entry = Arc::clone(connection.peer().connection());
        let (connection, waiting) = BatchedConnection::new(connection);
        let sustained = connection.sustained_reads();
        let http = http(limits, executor.clone());
        let serving = Self {
            http: http.serve_connection(TokioIo::new(connection), services),
            waiting,
            connection: entry,
            executor,
            waker: TurnWaker::new(),
            turn,
        };
        (serving, sustained)
    }

    /// Tells the caller that the server takes no more requests; completes with the ones in progress.
    fn graceful_shutdown(mut self: Pin<&mut Self>) {
        Pin::new(&mut self.http).graceful_shutdown();
    }

    /// Tells the caller that the server takes no more requests, and closes the connection without waiting if it has sent
    /// none. Returns whether that was so.
    fn end_uncalled(mut self: Pin<&mut Self>) -> bool {
        if self.connection.has_called() {
            return false;
        }
        self.as_mut().graceful_shutdown();
        // A request may have arrived.
        let _pending = Pin::new(&mut self.http).poll(&mut Context::from_waker(Waker::noop()));
        let is_uncalled = !self.connection.has_called();
        if is_uncalled {
            self.waiting.close();
        }
        is_uncalled
    }
}

impl Future for Serving {
    type Output = Result<(), Box<dyn std::error::Error + Send + Sync>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        match this.connection.is_quiet() {
            true => ready!(this.turn.poll(context)),
            false => this.turn.leave(),
        }
        this.executor.begin_turn();
        let (http, waiting) = (&mut this.http, &this.waiting);
        let poll = |context: &mut Context<'_>| Pin::new(&mut *http).poll(context);
        let may_repeat = || !waiting.is_turn_over() && has_budget_remaining();
        let served = this.waker.poll(context, poll, may_repeat);
        // If the socket does not take all, it wakes this task.
        let look_ups = this.executor.look_ups();
        if let Poll::Ready(Err(error)) = this.waiting.poll_write(look_ups, context) {
            return Poll::Ready(Err(error.into()));
        }
        served.map_err(Into::into)
    }
}

fn http(limits: &Limits, executor: RequestExecutor) -> http2::Builder<RequestExecutor> {
    let mut http = http2::Builder::new(executor);
    // gRPC has no use for the date.
    http.timer(TokioTimer::new())
        .auto_date_header(false)
        .max_concurrent_streams(limits.streams)
        .max_send_buf_size(SEND_BUFFER)
        .max_header_list_size(limits.header_bytes)
        .keep_alive_interval(Some(limits.keepalive))
        .keep_alive_timeout(limits.keepalive_timeout);
    http
}

impl hyper::service::Service<Request<Incoming>> for ConnectionService {
    type Response = Response<ReplyBody>;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn call(&self, request: Request<Incoming>) -> ResponseFuture {
        self.peer.connection().called();
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(self.peer.clone());
        // The services are always ready: admission happens in the call.
        let response = self.services.clone().call(request);
        self.executor.expect(response.priority());
        response
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    fn one_thread() -> tokio::runtime::Runtime {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        runtime.worker_threads(1).enable_all().build().unwrap()
    }

    #[tokio::test]
    async fn a_connection_is_at_low_priority_as_long_as_its_reads_are_sustained() {
        let background = one_thread();
        let own = thread::current().id();
        let turns = [false, true, true, false, false, true, false];
        for (low, is_usual, times) in [
            (Some(background.handle().clone()), [1, 1, 0, 0, 1, 1, 0], 2),
            (None, [1; 7], 0),
        ] {
            let (sustained, threads) = (SustainedReads::default(), Arc::<Mutex<Vec<_>>>::default());
            let began = AtomicUsize::new(0);
            let serving = Box::pin({
                let (sustained, threads) = (sustained.clone(), Arc::clone(&threads));
                async move {
                    for turn in turns {
                        let is_own = thread::current().id() == own;
                        // What it spawns has the usual priority.
                        let task = tokio::spawn(async { thread::current().id() });
                        threads.lock().unwrap().push((u8::from(is_own), task));
                        sustained.set(turn);
                        tokio::task::yield_now().await;
                    }
                }
            });
            let count = || {
                began.fetch_add(1, Ordering::Relaxed);
            };
            serve_at_priority(serving, sustained, low, count).await;
            let mut found = Vec::new();
            let turns_had = std::mem::take(&mut *threads.lock().unwrap());
            for (is_own, task) in turns_had {
                found.push(is_own);
                assert_eq!(task.await.unwrap(), own);
            }
            assert_eq!((found, began.into_inner()), (is_usual.to_vec(), times));
        }
        background.shutdown_background();
    }

    #[tokio::test]
    async fn a_connection_at_low_priority_ends_with_its_task() {
        let background = one_thread();
        let sustained = SustainedReads::default();
        sustained.set(true);
        let (open, closed) = tokio::sync::oneshot::channel::<()>();
        let serving = Box::pin(async move {
            let _open = open;
            std::future::pending::<()>().await;
        });
        let low = Some(background.handle().clone());
        let task = tokio::spawn(serve_at_priority(serving, sustained, low, || {}));
        while background.metrics().num_alive_tasks() == 0 {
            tokio::task::yield_now().await;
        }
        task.abort();
        let closed = tokio::time::timeout(Duration::from_secs(5), closed).await;
        assert!(closed.expect("the connection is still open").is_err());
        background.shutdown_background();
    }
}

//! The admin server: metrics, liveness, readiness and the log filter over HTTP.
//!
//! It has its own thread and runtime, so that it responds when the rest of the process is busy.

use std::fmt;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::serve::Listener;
use tokio::net::{TcpListener, UnixListener};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::bounded::BoundedListener;
use super::{LogControl, Metrics};
use crate::server::StdListener;

/// The content type of OpenMetrics.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Maximum time to wait for requests in flight at shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(500);

/// Readiness of the server, with details.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// Whether look-ups are answered.
    pub is_ready: bool,
    /// Version of the snapshot and state of each kind, one line each.
    pub lines: Vec<String>,
    /// Problems of the sources, one line each.
    pub problems: Vec<String>,
}

/// Everything that the handlers read.
#[derive(Clone)]
pub struct AdminState {
    /// The metrics.
    pub metrics: Arc<Metrics>,
    /// Returns the current readiness.
    pub ready: Arc<dyn Fn() -> Readiness + Send + Sync>,
    /// The log filter, which clients of the Unix socket may change.
    pub log: Option<LogControl>,
}

/// The admin server on its own thread; it stops when this value is dropped.
#[derive(Debug)]
pub struct AdminServer {
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for AdminState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdminState").finish_non_exhaustive()
    }
}

impl Drop for AdminServer {
    fn drop(&mut self) {
        self.stop.cancel();
        // Waits until the socket file is removed, at most `SHUTDOWN_TIMEOUT`.
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

impl AdminServer {
    /// Starts to serve on bound listeners. The problems in `/readyz` and the `/log` endpoint are
    /// served on Unix sockets only.
    ///
    /// # Errors
    /// Returns an error if the runtime or the thread cannot be started.
    pub fn start(state: &AdminState, listeners: Vec<StdListener>) -> io::Result<Self> {
        let stop = CancellationToken::new();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (state, stopping) = (state.clone(), stop.clone());
        let thread = std::thread::Builder::new()
            .name("entail-admin".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    let mut serving = JoinSet::new();
                    for listener in listeners {
                        serving.spawn(serve(state.clone(), listener, stopping.clone()));
                    }
                    let all = async { while serving.join_next().await.is_some() {} };
                    let deadline = async {
                        stopping.cancelled().await;
                        tokio::time::sleep(SHUTDOWN_TIMEOUT).await;
                    };
                    tokio::select! {
                        () = all => {}
                        () = deadline => {}
                    }
                });
                runtime.shutdown_background();
            })?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }
}

async fn serve(state: AdminState, listener: StdListener, stop: CancellationToken) {
    let stopped = stop.cancelled_owned();
    let common = Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(|| async { "ok\n" }));
    match listener {
        StdListener::Tcp(listener) => {
            let app = common.route("/readyz", get(ready)).with_state(state);
            serve_router(TcpListener::from_std(listener), app, stopped).await;
        }
        StdListener::Unix(listener, _file) => {
            let app = common
                .route("/readyz", get(ready_with_problems))
                .route("/log", get(log_filter).put(set_log_filter))
                .with_state(state);
            serve_router(UnixListener::from_std(listener), app, stopped).await;
        }
    }
}

/// Serves on a listener until `stopped` completes.
async fn serve_router<L>(
    listener: io::Result<L>,
    app: Router,
    stopped: impl Future<Output = ()> + Send + 'static,
) where
    L: Listener,
    L::Addr: fmt::Debug,
{
    let served = async {
        axum::serve(BoundedListener::new(listener?), app)
            .with_graceful_shutdown(stopped)
            .await
    };
    if let Err(error) = served.await {
        tracing::error!(%error, "admin server failed");
    }
}

/// Renders the metrics on another thread: reading them may wait for the reconciler, and this thread
/// answers probes.
async fn metrics(State(state): State<AdminState>) -> Response {
    let text = tokio::task::spawn_blocking(move || state.metrics.text());
    match text.await {
        Ok(text) => ([(header::CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Readiness for TCP clients: without problems, which contain names of objects.
async fn ready(State(state): State<AdminState>) -> Response {
    let readiness = (state.ready)();
    reply(readiness.is_ready, &readiness.lines)
}

/// Readiness for clients of the Unix socket.
async fn ready_with_problems(State(state): State<AdminState>) -> Response {
    let Readiness {
        is_ready,
        lines,
        problems,
    } = (state.ready)();
    reply(is_ready, &[lines, problems].concat())
}

fn reply(is_ready: bool, lines: &[String]) -> Response {
    let (status, first) = if is_ready {
        (StatusCode::OK, "ok")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not ready")
    };
    let lines = std::iter::once(first).chain(lines.iter().map(String::as_str));
    let text: String = lines.flat_map(|line| [line, "\n"]).collect();
    (status, text).into_response()
}

async fn log_filter(State(state): State<AdminState>) -> Response {
    match &state.log {
        Some(log) => format!("{}\n", log.filter()).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn set_log_filter(State(state): State<AdminState>, filter: String) -> Response {
    let Some(log) = &state.log else {
        return StatusCode::NOT_FOUND.into_response();
    };
    match log.set(filter.trim()) {
        Ok(()) => {
            tracing::info!(filter = log.filter(), "log filter changed");
            StatusCode::NO_CONTENT.into_response()
        }
        Err(message) => (StatusCode::BAD_REQUEST, format!("{message}\n")).into_response(),
    }
}

//! What operators and Prometheus ask over HTTP: metrics, health, readiness, and the log's filter.
//!
//! It has a thread and a runtime of its own: when everything else is busy it still answers.

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

/// How long what is under way may hold up the end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(500);

/// Whether the server is ready, and what there is to say about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// Whether look-ups are answered.
    pub is_ready: bool,
    /// What is in use, a line each.
    pub lines: Vec<String>,
    /// What is wrong in the sources, a line each.
    pub problems: Vec<String>,
}

/// What is asked.
#[derive(Clone)]
pub struct AdminState {
    /// The metrics.
    pub metrics: Arc<Metrics>,
    /// Whether the server is ready.
    pub ready: Arc<dyn Fn() -> Readiness + Send + Sync>,
    /// The log, to be changed by whoever may open the Unix socket.
    pub log: Option<LogControl>,
}

/// A server of its own thread; it ends when this is dropped.
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
        // So that the socket's file is gone; it takes no longer than `SHUTDOWN_TIMEOUT`.
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

impl AdminServer {
    /// Answers on listeners that are bound already: of TCP all but what is wrong in detail and the
    /// log, of a Unix socket all.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(watched: &AdminState, listeners: Vec<StdListener>) -> io::Result<Self> {
        let stop = CancellationToken::new();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (watched, stopping) = (watched.clone(), stop.clone());
        let thread = std::thread::Builder::new()
            .name("entail-admin".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    let mut serving = JoinSet::new();
                    for listener in listeners {
                        serving.spawn(serve(watched.clone(), listener, stopping.clone()));
                    }
                    let all = async { while serving.join_next().await.is_some() {} };
                    let end = async {
                        stopping.cancelled().await;
                        tokio::time::sleep(SHUTDOWN_TIMEOUT).await;
                    };
                    tokio::select! {
                        () = all => {}
                        () = end => {}
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

async fn serve(watched: AdminState, listener: StdListener, stop: CancellationToken) {
    let stopped = stop.cancelled_owned();
    let open = Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(|| async { "ok\n" }));
    match listener {
        StdListener::Tcp(listener) => {
            let app = open.route("/readyz", get(ready)).with_state(watched);
            answer(TcpListener::from_std(listener), app, stopped).await;
        }
        StdListener::Unix(listener, _file) => {
            let app = open
                .route("/readyz", get(ready_in_detail))
                .route("/log", get(log_filter).put(set_log_filter))
                .with_state(watched);
            answer(UnixListener::from_std(listener), app, stopped).await;
        }
    }
}

/// Answers on a listener until it is told to stop.
async fn answer<L>(
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
        tracing::error!(%error, "the admin server ended");
    }
}

/// Reading them may wait for the writer: not on the thread that answers probes.
async fn metrics(State(watched): State<AdminState>) -> Response {
    let read = tokio::task::spawn_blocking(move || watched.metrics.text());
    match read.await {
        Ok(text) => ([(header::CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// For whoever may connect: no names of objects.
async fn ready(State(watched): State<AdminState>) -> Response {
    let told = (watched.ready)();
    reply(told.is_ready, &told.lines)
}

/// For whoever may open the Unix socket.
async fn ready_in_detail(State(watched): State<AdminState>) -> Response {
    let told = (watched.ready)();
    reply(told.is_ready, &[told.lines, told.problems].concat())
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

async fn log_filter(State(watched): State<AdminState>) -> Response {
    match &watched.log {
        Some(log) => format!("{}\n", log.filter()).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn set_log_filter(State(watched): State<AdminState>, filter: String) -> Response {
    let Some(log) = &watched.log else {
        return StatusCode::NOT_FOUND.into_response();
    };
    match log.set(filter.trim()) {
        Ok(()) => {
            tracing::info!(filter = log.filter(), "the log's filter is changed");
            StatusCode::NO_CONTENT.into_response()
        }
        Err(message) => (StatusCode::BAD_REQUEST, format!("{message}\n")).into_response(),
    }
}

//! An API server for tests, over loopback and HTTP/1: a function answers the requests, and can fail in many ways.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use http::{Request, Response};
use http_body_util::StreamBody;
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout};

use super::{
    ApiTimeouts, Cluster, ClusterConfig, ClusterUpdate, DesiredKinds, KnownObjects, WatchFilter,
};
use entail_core::model::{GroupKind, ObjectKey, SourceState};

/// The URL path of the kind that the server serves.
pub const WIDGETS: &str = "/apis/example.com/v1/widgets";

/// An answer to a request.
pub enum Answer {
    Json(u16, Value),
    /// The request is never answered.
    Swallow,
    /// The lines of a watch, which then stays open without a word.
    Watch(Vec<Value>),
    /// The lines of a watch, which then ends.
    Cut(Vec<Value>),
}

type Answers = Arc<Mutex<Box<dyn FnMut(&str) -> Answer + Send>>>;

pub struct FakeApiServer {
    pub cluster: Cluster,
    answers: Answers,
    /// Ends all connections when it changes.
    generation: watch::Sender<u64>,
}

/// What a client of [`watch`](super::watch) sees.
pub struct Follower {
    pub updates: mpsc::Receiver<ClusterUpdate>,
    /// Every state of the kind, in order.
    pub states: Vec<SourceState>,
    /// The current objects.
    pub objects: BTreeSet<ObjectKey>,
    pub problems: Vec<String>,
    pub is_complete: bool,
    pub is_loading: bool,
    pub synced_at: Option<Instant>,
    pub desired: watch::Sender<DesiredKinds>,
}

pub fn widget() -> GroupKind {
    GroupKind::new("example.com", "Widget")
}

/// The answer of a server that is well, without objects.
pub fn healthy(request: &str) -> Answer {
    let verbs = ["get", "list", "watch"];
    let groups = |items| json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items});
    match request.split('?').next().unwrap() {
        "/readyz" => Answer::Json(200, json!("ok")),
        "/api" => Answer::Json(200, groups(json!([]))),
        "/apis" => Answer::Json(
            200,
            groups(
                json!([{"metadata": {"name": "example.com"}, "versions": [{"version": "v1", "resources": [{
                    "resource": "widgets", "singularResource": "widget", "scope": "Namespaced", "verbs": verbs,
                    "responseKind": {"group": "example.com", "version": "v1", "kind": "Widget"},
                }]}]}]),
            ),
        ),
        WIDGETS if is_list(request) => Answer::Watch(vec![added("one"), end_of_list()]),
        WIDGETS if request.contains("watch=true") => Answer::Watch(Vec::new()),
        WIDGETS => list_at("7"),
        _ => status(404),
    }
}

/// The answer of a server whose authorizer knows no rights yet, or of one where a right is missing.
pub fn denies(request: &str, is_ready: bool) -> Answer {
    match request.split('?').next().unwrap() {
        "/readyz" if !is_ready => status(500),
        "/readyz" | "/api" | "/apis" => healthy(request),
        path if path.ends_with("/selfsubjectaccessreviews") => {
            Answer::Json(201, json!({"spec": {}, "status": {"allowed": false}}))
        }
        _ => status(403),
    }
}

pub fn is_list(request: &str) -> bool {
    request.contains("sendInitialEvents=true")
}

pub fn status(code: u16) -> Answer {
    Answer::Json(
        code,
        json!({"kind": "Status", "status": "Failure", "code": code, "message": format!("a {code}"), "reason": "Test"}),
    )
}

pub fn added(name: &str) -> Value {
    json!({"type": "ADDED", "object": object(name)})
}

pub fn object(name: &str) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name, "namespace": "ns", "resourceVersion": "5"}})
}

/// A page of a list of a version, which is not streamed.
pub fn list_at(version: &str) -> Answer {
    Answer::Json(
        200,
        json!({"kind": "WidgetList", "apiVersion": "example.com/v1", "metadata": {"resourceVersion": version}, "items": []}),
    )
}

pub fn end_of_list() -> Value {
    end_of_list_at("7")
}

pub fn end_of_list_at(version: &str) -> Value {
    json!({"type": "BOOKMARK", "object": {"kind": "Widget", "apiVersion": "example.com/v1", "metadata": {
        "resourceVersion": version, "annotations": {"k8s.io/initial-events-end": "true"}}}})
}

impl FakeApiServer {
    pub async fn start(
        timeouts: ApiTimeouts,
        answer: impl FnMut(&str) -> Answer + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let answers: Answers = Arc::new(Mutex::new(Box::new(answer)));
        let (generation, current) = watch::channel(0);
        tokio::spawn(accept(listener, Arc::clone(&answers), current));
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        let text = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": format!("http://{address}")}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "users": [{"name": "test", "user": {}}],
        });
        std::fs::write(&kubeconfig, text.to_string()).unwrap();
        let config = ClusterConfig {
            kubeconfig: Some(kubeconfig),
            timeouts,
            context: None,
            filter: WatchFilter::default(),
        };
        Self {
            cluster: Cluster::connect(&config).await.unwrap(),
            answers,
            generation,
        }
    }

    /// Replaces the function that answers.
    pub fn answer(&self, answer: impl FnMut(&str) -> Answer + Send + 'static) {
        *self.answers.lock().unwrap() = Box::new(answer);
    }

    /// Replaces the function that answers, and ends all connections.
    pub fn restart(&self, answer: impl FnMut(&str) -> Answer + Send + 'static) {
        self.answer(answer);
        self.generation.send_modify(|generation| *generation += 1);
    }

    /// Watches the kind of the server.
    pub fn follow(&self, known: KnownObjects) -> Follower {
        let desired = DesiredKinds {
            kinds: [widget()].into(),
            after: u64::MAX,
            ..DesiredKinds::default()
        };
        let (desired, receiver) = watch::channel(desired);
        let (sender, updates) = mpsc::channel(16);
        tokio::spawn(super::watch(self.cluster.clone(), receiver, known, sender));
        Follower {
            updates,
            states: Vec::new(),
            objects: BTreeSet::new(),
            problems: Vec::new(),
            is_complete: false,
            is_loading: true,
            synced_at: None,
            desired,
        }
    }
}

impl Follower {
    /// Reads updates until a condition holds; panics after a while.
    pub async fn until(&mut self, what: &str, condition: impl Fn(&Self) -> bool) {
        let end = Instant::now() + Duration::from_secs(10);
        while !condition(self) {
            assert!(
                Instant::now() < end,
                "{what}: {:?} {:?}",
                self.states,
                self.problems
            );
            self.run(Duration::from_millis(20)).await;
        }
    }

    pub async fn until_state(&mut self, state: SourceState) {
        self.until(&format!("{state:?}"), |seen| {
            seen.states.last() == Some(&state)
        })
        .await;
    }

    /// Reads updates for a time.
    pub async fn run(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while let Ok(Some(update)) = timeout(end - Instant::now(), self.updates.recv()).await {
            for key in &update.change.deletes {
                self.objects.remove(key);
            }
            let upserts = update.change.upserts.iter();
            self.objects
                .extend(upserts.map(|object| object.key.clone()));
            self.states
                .extend(update.change.states.iter().map(|new| new.state));
            self.problems = update.problems.into_iter().map(|(_, text)| text).collect();
            self.is_complete = update.is_complete;
            self.is_loading = update.is_loading;
            self.synced_at = update.synced_at;
        }
    }
}

async fn accept(listener: TcpListener, answers: Answers, generation: watch::Receiver<u64>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (answers, mut generation) = (Arc::clone(&answers), generation.clone());
        generation.mark_unchanged();
        tokio::spawn(async move {
            let service = service_fn(|request| reply(Arc::clone(&answers), request));
            let connection = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service);
            tokio::select! {
                _ = connection => {}
                _ = generation.changed() => {}
            }
        });
    }
}

async fn reply(
    answers: Answers,
    request: Request<Incoming>,
) -> Result<Response<StreamBody<BoxStream<'static, Result<Frame<Bytes>, Infallible>>>>, Infallible>
{
    let uri = request.uri().to_string();
    let answer = (answers.lock().unwrap())(&uri);
    let line = |value: Value| Ok(Frame::data(Bytes::from(format!("{value}\n"))));
    let (code, body) = match answer {
        Answer::Swallow => std::future::pending().await,
        Answer::Json(code, value) => (code, stream::iter([line(value)]).boxed()),
        Answer::Cut(lines) => (200, stream::iter(lines.into_iter().map(line)).boxed()),
        Answer::Watch(lines) => {
            let lines = stream::iter(lines.into_iter().map(line));
            (200, lines.chain(stream::pending()).boxed())
        }
    };
    let response = Response::builder()
        .status(code)
        .header("content-type", "application/json");
    Ok(response.body(StreamBody::new(body)).unwrap())
}

//! A server of a small fixed world in this process, and a client that sends it bytes: for the targets
//! `requests`, `frames`, `http1` and `admission`.

#![allow(dead_code, reason = "each target uses a part of it")]

use std::future;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use entail::insight::SourceProblems;
use entail::server::{
    Address, BoundListener, CallerLoad, EnvoyDialect, EnvoyDocument, EnvoySettings, Health, Limits,
    ListenerSet, Security, Server, ServiceContext,
};
use entail::snapshot::{Snapshot, Version};
use entail::source::manifests::read_objects;
use entail::subscription::SubscriptionHub;
use entail_core::effective::World;
use entail_core::model::Change;
use entail_core::store::{ProfileSources, Store};
use http::Request;
use serde_json::{from_value, json};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tonic::Status;

/// A path with policies.
pub const PATH: &str = "gateways/shop/gw/listeners/http/routes/HTTPRoute/shop/r/rules/#0";
/// The method of look-ups.
pub const GET: &str = "/entail.v1.EffectivePolicyService/GetEffectivePolicies";

/// Names the threads of the server, so that their panics are counted.
const THREAD: &str = "fuzz-server";
/// When the server counts as hanging. Nothing else depends on it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Gateways, Routes of each protocol, a mesh Service, policies with conflicts and losses, and objects
/// with findings.
const WORLD: &str = include_str!("world.yaml");

/// The number of panics on threads of servers.
static PANICS: AtomicUsize = AtomicUsize::new(0);

/// A running server.
pub struct FuzzServer {
    pub runtime: Runtime,
    pub snapshot: Arc<Snapshot>,
    pub subscriptions: Arc<SubscriptionHub>,
    pub load: CallerLoad,
    address: SocketAddr,
    console: SocketAddr,
    /// A connection of a well-behaved client.
    requests: Mutex<Option<Requests>>,
    _source_problems: watch::Sender<Arc<SourceProblems>>,
}

/// A reply of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The number of the gRPC code.
    pub code: i32,
    /// The message of the status.
    pub message: String,
    /// The gRPC frames.
    pub body: Vec<u8>,
}

/// The rest of an input. After its end it yields zeros.
pub struct Input<'i>(pub &'i [u8]);

type Requests = h2::client::SendRequest<Bytes>;

impl FuzzServer {
    /// Starts a server on a free port. It runs until the process ends.
    pub fn start(limits: Limits) -> Self {
        count_panics();
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name(THREAD)
            .enable_all()
            .build()
            .unwrap();
        // The main function of Rust ignores SIGPIPE, but libFuzzer has its own. A handler stays for good.
        let handler = runtime.block_on(async { signal(SignalKind::pipe()) });
        drop(handler.unwrap());
        let snapshot = Arc::new(snapshot());
        let subscriptions = Arc::new(SubscriptionHub::default());
        subscriptions.publish(Arc::clone(&snapshot));
        let (source_problems, receiver) = watch::channel(Arc::default());
        let answers = ServiceContext {
            subscriptions: Arc::clone(&subscriptions),
            source_problems: receiver,
            change: entail::app::change_world,
        };
        let (server, listeners) = runtime.block_on(async {
            let health = Health::new().await;
            health.ready().await;
            let server = Server::new(answers, health, limits, Security::default());
            let wanted: Address = "127.0.0.1:0".parse().unwrap();
            let listeners = [(); 2].map(|()| BoundListener::bind(&wanted));
            let [all, console] = listeners;
            let listeners = [all.await.unwrap(), console.await.unwrap()];
            (server.with_envoy(Some(envoy_settings())), listeners)
        });
        let load = server.load();
        let [address, console] = listeners.each_ref().map(|listener| {
            let Address::Tcp(address) = listener.address().clone() else {
                panic!("a TCP address was bound");
            };
            address
        });
        let [all, of_console] = listeners;
        let listeners = ListenerSet {
            console: Some(of_console),
            ..all.into()
        };
        runtime.spawn(server.run(listeners, Duration::ZERO, future::pending()));
        Self {
            runtime,
            snapshot,
            subscriptions,
            console,
            load,
            address,
            requests: Mutex::default(),
            _source_problems: source_problems,
        }
    }

    /// Connects without a word.
    pub async fn connect(&self) -> TcpStream {
        Self::connect_to(self.address).await
    }

    /// Opens a connection to the console.
    pub async fn connect_to_console(&self) -> TcpStream {
        Self::connect_to(self.console).await
    }

    async fn connect_to(address: SocketAddr) -> TcpStream {
        let socket = TcpStream::connect(address).await.unwrap();
        socket.set_nodelay(true).unwrap();
        // Otherwise thousands of closed connections keep their ports for a minute.
        socket.set_zero_linger().unwrap();
        socket
    }

    /// Sends a request of gRPC with its body in these chunks, each in a DATA frame of its own, and
    /// returns the reply.
    pub fn call(&self, method: &str, chunks: &[&[u8]]) -> Reply {
        let reply = self.runtime.block_on(async {
            let known = self.lock().clone();
            let mut requests = match known {
                Some(requests) => requests,
                None => self.client().await,
            };
            *self.lock() = Some(requests.clone());
            tokio::time::timeout(PATIENCE, exchange(&mut requests, method, chunks)).await
        });
        let reply = reply.unwrap_or_else(|_| panic!("no reply to {method}"));
        self.check_panics();
        reply.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Returns the reply to a request on a connection of its own.
    pub async fn call_anew(&self, method: &str, body: &[u8]) -> Reply {
        let exchange = async {
            let mut requests = self.client().await;
            exchange(&mut requests, method, &[body]).await
        };
        let reply = tokio::time::timeout(PATIENCE, exchange).await;
        let reply = reply.expect("the server does not answer");
        reply.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Waits until nobody is connected, and the server holds nothing for anybody.
    pub async fn until_idle(&self) {
        let counts = || {
            let requests = self.load.concurrency.requests().map(|(_, count)| count);
            let others = [
                self.load.connections.count() + self.load.browsers.count(),
                self.load.concurrency.watches(),
                self.load.held_bytes.held(),
            ];
            (requests, others)
        };
        let idle = async {
            while counts() != ([0; 2], [0; 3]) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let idle = tokio::time::timeout(PATIENCE, idle).await;
        assert!(
            idle.is_ok(),
            "[look-ups, insight], [connections, watches, bytes] are still held: {:?}",
            counts()
        );
    }

    /// Fails if a thread of a server has panicked.
    pub fn check_panics(&self) {
        assert_eq!(PANICS.load(Ordering::SeqCst), 0, "the server panicked");
    }

    async fn client(&self) -> Requests {
        let socket = self.connect().await;
        let (requests, connection) = h2::client::handshake(socket).await.unwrap();
        self.runtime.spawn(connection);
        requests
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Requests>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Input<'_> {
    pub fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    /// At most as many bytes as the next one says.
    pub fn some(&mut self) -> Vec<u8> {
        let length = usize::from(self.byte()).min(self.0.len());
        let (bytes, rest) = self.0.split_at(length);
        self.0 = rest;
        bytes.to_vec()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A message in an uncompressed frame of gRPC.
pub fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap();
    [&[0], &length.to_be_bytes()[..], message].concat()
}

async fn exchange(
    requests: &mut Requests,
    method: &str,
    chunks: &[&[u8]],
) -> Result<Reply, h2::Error> {
    let request = Request::post(format!("http://entail{method}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers");
    let mut ready = requests.clone().ready().await?;
    let (reply, mut body) = ready.send_request(request.body(()).unwrap(), chunks.is_empty())?;
    for (index, chunk) in chunks.iter().enumerate() {
        // Yield so that consecutive chunks are not combined into one frame.
        tokio::task::yield_now().await;
        body.send_data(Bytes::copy_from_slice(chunk), index + 1 == chunks.len())?;
    }
    let (head, mut body) = reply.await?.into_parts();
    let mut bytes = Vec::new();
    while let Some(data) = body.data().await {
        let data = data?;
        body.flow_control().release_capacity(data.len())?;
        bytes.extend_from_slice(&data);
    }
    let trailers = body.trailers().await?;
    let status = trailers.as_ref().and_then(Status::from_header_map);
    let status = status.or_else(|| Status::from_header_map(&head.headers));
    let status = status.expect("a reply has a status");
    Ok(Reply {
        code: status.code() as i32,
        message: status.message().to_owned(),
        body: bytes,
    })
}

/// The snapshot of the fixed world. Its page tokens begin with `fuzz:1:`.
fn snapshot() -> Snapshot {
    let parsed = read_objects(WORLD, "world.yaml");
    assert!(parsed.problems.is_empty(), "{:?}", parsed.problems);
    let objects = parsed.objects.into_iter();
    let mut store = Store::default();
    store.apply(Change {
        upserts: objects.map(|read| Arc::new(read.object)).collect(),
        ..Change::default()
    });
    let version = Version {
        epoch: "fuzz".into(),
        generation: 1,
        synced_at: Default::default(),
    };
    Snapshot::build(
        World::from_store(store, &ProfileSources::shipped()),
        version,
    )
}

fn envoy_settings() -> EnvoySettings {
    let dialect = json!({
        "name": "envoy-gateway",
        "metadata": {"namespace": "envoy-gateway", "field": "resources"},
        "routeName": "(?<kind>[a-z]+)/(?<namespace>[^/]+)/(?<name>[^/]+)/rule/(?<index>[0-9]+)/.*",
    });
    let dialect: EnvoyDialect = from_value(dialect).unwrap();
    let document: EnvoyDocument = from_value(json!({
        "match": true,
        "headers": [{"name": "x-marker", "kind": "Patched.f.example", "value": "a"}],
        "deny": [
            {"name": "closed", "when": "policies[\"Patched.f.example\"].closed"},
            {"name": "asked", "when": "request.headers[\"x-deny\"] == \"yes\" && path.startsWith(\"gateways/\")"},
        ],
        "failOpen": ["Unidentified", "RuleError"],
    }))
    .unwrap();
    document.check(&[dialect]).unwrap()
}

/// Counts panics on threads of servers, whose runtime otherwise only ends the task.
fn count_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if std::thread::current().name() == Some(THREAD) {
                PANICS.fetch_add(1, Ordering::SeqCst);
            }
            previous(info);
        }));
    });
}

//! The load generator: a fixed number of requests over a few connections.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use entail::api::v1;
use prost::Message;
use tokio::task::{JoinError, JoinSet};
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response, Status, client::Grpc};

use crate::bench_world;
use crate::process::cpu_seconds;
use crate::raw::{METHOD, Raw};

/// Number of connections, and of concurrent requests on each.
const CONNECTIONS: usize = 4;
const STREAMS: usize = 8;

/// Requests for random paths.
pub struct Load {
    requests: Arc<Vec<Bytes>>,
    many: usize,
    /// Number of requests that were sent at a fixed rate.
    next: AtomicUsize,
    runtime: tokio::runtime::Runtime,
}

/// Result of a run.
pub struct Run {
    /// CPU time of the server per request.
    pub cpu_micros: f64,
    pub per_second: f64,
    pub p50_micros: f64,
    pub p99_micros: f64,
    pub p999_micros: f64,
}

/// Latencies at a fixed rate of requests.
#[derive(Default)]
pub struct Latencies {
    pub micros: Vec<u64>,
    /// Number of requests that failed, and the error of the first one.
    pub failed: usize,
    pub first_failure: Option<Status>,
}

impl Run {
    pub fn of(mut times: Vec<u64>, cpu_seconds: f64, elapsed: Duration) -> Self {
        times.sort_unstable();
        let at = |per_mille: usize| times[(times.len() - 1) * per_mille / 1_000] as f64;
        Self {
            cpu_micros: cpu_seconds * 1e6 / times.len() as f64,
            per_second: times.len() as f64 / elapsed.as_secs_f64(),
            p50_micros: at(500),
            p99_micros: at(990),
            p999_micros: at(999),
        }
    }
}

impl Latencies {
    /// Adds those of another run.
    pub fn extend(&mut self, other: Self) {
        self.micros.extend(other.micros);
        self.failed += other.failed;
        self.first_failure = self.first_failure.take().or(other.first_failure);
    }

    fn add(&mut self, reply: Result<Result<u64, Status>, JoinError>) {
        match reply.unwrap() {
            Ok(micros) => self.micros.push(micros),
            Err(status) => {
                self.failed += 1;
                self.first_failure.get_or_insert(status);
            }
        }
    }
}

impl Load {
    pub fn new(names: &[String], many: usize) -> Self {
        let requests = names
            .iter()
            .map(|name| bench_world::request(name).encode_to_vec());
        Self {
            requests: Arc::new(requests.map(Bytes::from).collect()),
            many,
            next: AtomicUsize::new(0),
            runtime: tokio::runtime::Builder::new_multi_thread()
                .enable_all()
                .build()
                .unwrap(),
        }
    }

    /// Returns the mean size of a reply.
    pub fn mean_size(&self, address: &str) -> usize {
        let many = 2_000;
        let sizes = AtomicUsize::new(0);
        let sizes = Arc::new(sizes);
        self.runtime
            .block_on(self.send_all(address, many, Arc::clone(&sizes)));
        sizes.load(Ordering::Relaxed) / many
    }

    /// Measures one run against a server as fast as possible.
    pub fn run(&self, address: &str, server: u32) -> Run {
        self.measured(server, self.send_all(address, self.many, Arc::default()))
    }

    fn measured(&self, server: u32, load: impl Future<Output = Vec<u64>>) -> Run {
        let before = cpu_seconds(server);
        let began = Instant::now();
        let times = self.runtime.block_on(load);
        let elapsed = began.elapsed();
        Run::of(times, cpu_seconds(server) - before, elapsed)
    }

    /// Measures a fixed rate of requests, sent whether or not the previous ones are answered. Panics
    /// if one fails.
    pub fn at_rate(&self, address: &str, server: u32, per_second: usize, seconds: usize) -> Run {
        let load = async {
            let sent = self.send_at_rate(address, per_second, seconds).await;
            assert!(sent.failed == 0, "{:?}", sent.first_failure);
            sent.micros
        };
        self.measured(server, load)
    }

    /// Sends a fixed rate of requests, of which any may fail.
    pub fn latencies(&self, address: &str, per_second: usize, seconds: usize) -> Latencies {
        self.runtime
            .block_on(self.send_at_rate(address, per_second, seconds))
    }

    /// Returns the generation of the current snapshot of a server.
    pub fn generation(&self, address: &str) -> u64 {
        let request = self.requests[0].clone();
        let reply = self
            .runtime
            .block_on(async { send(connect(address).await, request).await });
        let reply = v1::GetEffectivePoliciesResponse::decode(reply).unwrap();
        reply.version.unwrap().generation
    }

    /// Reports whether the server of a port file answers requests.
    pub fn is_answered(&self, port: &Path) -> bool {
        let Ok(address) = std::fs::read_to_string(port) else {
            return false;
        };
        let request = self.requests[0].clone();
        self.runtime
            .block_on(async { try_send(connect(address.trim()).await, request).await })
            .is_ok()
    }

    async fn send_at_rate(&self, address: &str, per_second: usize, seconds: usize) -> Latencies {
        // Several requests per tick, because the resolution of the timer is limited.
        let per_tick = per_second.div_ceil(500);
        let mut tick =
            tokio::time::interval(Duration::from_secs(1) * per_tick as u32 / per_second as u32);
        let mut channels = Vec::new();
        for _ in 0..CONNECTIONS {
            channels.push(connect(address).await);
        }
        let mut tasks = JoinSet::new();
        let (mut sent, mut latencies) = (0, Latencies::default());
        while sent < per_second * seconds {
            tick.tick().await;
            for _ in 0..per_tick {
                let channel = channels[sent % CONNECTIONS].clone();
                let at = self.next.fetch_add(1, Ordering::Relaxed);
                let request = self.requests[at % self.requests.len()].clone();
                let began = Instant::now();
                tasks.spawn(async move {
                    let reply = try_send(channel, request).await;
                    reply.map(|_| began.elapsed().as_micros() as u64)
                });
                sent += 1;
            }
            while let Some(reply) = tasks.try_join_next() {
                latencies.add(reply);
            }
        }
        while let Some(reply) = tasks.join_next().await {
            latencies.add(reply);
        }
        latencies
    }

    /// Sends `many` requests; returns their latencies in microseconds.
    async fn send_all(&self, address: &str, many: usize, sizes: Arc<AtomicUsize>) -> Vec<u64> {
        let next = Arc::new(AtomicUsize::new(0));
        let mut tasks = Vec::new();
        for _ in 0..CONNECTIONS {
            let channel = connect(address).await;
            for _ in 0..STREAMS {
                let (requests, next) = (Arc::clone(&self.requests), Arc::clone(&next));
                let (channel, sizes) = (channel.clone(), Arc::clone(&sizes));
                tasks.push(tokio::spawn(async move {
                    let mut times = Vec::new();
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= many {
                            return times;
                        }
                        let request = requests[number % requests.len()].clone();
                        let began = Instant::now();
                        let size = send(channel.clone(), request).await.len();
                        times.push(began.elapsed().as_micros() as u64);
                        sizes.fetch_add(size, Ordering::Relaxed);
                    }
                }));
            }
        }
        let mut times = Vec::with_capacity(many);
        for task in tasks {
            times.extend(task.await.unwrap());
        }
        times
    }
}

async fn connect(address: &str) -> Channel {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    endpoint.connect().await.unwrap()
}

/// Sends one request.
async fn try_send(channel: Channel, request: Bytes) -> Result<Bytes, Status> {
    let mut client = Grpc::new(channel);
    let ready = client.ready().await;
    ready.map_err(|error| Status::unavailable(error.to_string()))?;
    let path = PathAndQuery::from_static(METHOD);
    let reply = client.unary(Request::new(request), path, Raw).await;
    reply.map(Response::into_inner)
}

/// Sends one request; panics if it fails.
async fn send(channel: Channel, request: Bytes) -> Bytes {
    try_send(channel, request).await.unwrap()
}

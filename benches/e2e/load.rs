//! The load: bounded in number, over a few connections, always the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use bytes::Bytes;
use entail::wire::v1;
use prost::Message;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, client::Grpc};

use crate::raw::{METHOD, Raw};

/// Connections, and requests under way on each.
const CONNECTIONS: usize = 4;
const STREAMS: usize = 8;
/// Clock ticks a second, as /proc counts CPU time.
const TICKS: f64 = 100.0;

/// Requests for paths at random.
pub struct Load {
    requests: Arc<Vec<Bytes>>,
    many: usize,
    runtime: tokio::runtime::Runtime,
}

/// What a run came to.
pub struct Run {
    /// CPU time of the server.
    pub cpu_micros: f64,
    pub per_second: f64,
    pub p50_micros: f64,
    pub p99_micros: f64,
}

impl Load {
    pub fn new(names: Vec<String>, many: usize) -> Self {
        let request = |path: String| v1::GetEffectivePoliciesRequest {
            target: Some(v1::get_effective_policies_request::Target::Path(path)),
            ..Default::default()
        };
        let requests = names.into_iter().map(|name| request(name).encode_to_vec());
        Self {
            requests: Arc::new(requests.map(Bytes::from).collect()),
            many,
            runtime: tokio::runtime::Builder::new_multi_thread()
                .enable_all()
                .build()
                .unwrap(),
        }
    }

    /// The mean size of a reply.
    pub fn mean_size(&self, address: &str) -> usize {
        let many = 2_000;
        let sizes = AtomicUsize::new(0);
        let sizes = Arc::new(sizes);
        self.runtime
            .block_on(self.ask(address, many, Arc::clone(&sizes)));
        sizes.load(Ordering::Relaxed) / many
    }

    /// One run against a server.
    pub fn run(&self, address: &str, server: u32) -> Run {
        let before = cpu_seconds(server);
        let began = Instant::now();
        let mut times = self
            .runtime
            .block_on(self.ask(address, self.many, Arc::default()));
        let elapsed = began.elapsed().as_secs_f64();
        let cpu = cpu_seconds(server) - before;
        times.sort_unstable();
        let at = |share: usize| times[(times.len() - 1) * share / 100] as f64;
        Run {
            cpu_micros: cpu * 1e6 / self.many as f64,
            per_second: self.many as f64 / elapsed,
            p50_micros: at(50),
            p99_micros: at(99),
        }
    }

    /// Asks so often; returns how many microseconds each took.
    async fn ask(&self, address: &str, many: usize, sizes: Arc<AtomicUsize>) -> Vec<u64> {
        let next = Arc::new(AtomicUsize::new(0));
        let mut tasks = Vec::new();
        for _ in 0..CONNECTIONS {
            let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
            let channel = endpoint.connect().await.unwrap();
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
                        let size = one(channel.clone(), request).await;
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

/// Asks once; returns how many bytes came.
async fn one(channel: Channel, request: Bytes) -> usize {
    let mut client = Grpc::new(channel);
    client.ready().await.unwrap();
    let path = PathAndQuery::from_static(METHOD);
    let reply = client.unary(Request::new(request), path, Raw).await;
    reply.unwrap().into_inner().len()
}

/// The CPU time of a process so far.
fn cpu_seconds(process: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    // The name, in brackets, may hold anything; what follows does not.
    let fields: Vec<&str> = text
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    let ticks = |at: usize| fields[at].parse::<f64>().unwrap();
    (ticks(11) + ticks(12)) / TICKS
}

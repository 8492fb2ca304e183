//! Load shedding under ten times the admitted load: `ENTAIL=path/to/entail cargo bench --profile dist --bench shed`.
//!
//! The server admits `ADMITTED` concurrent look-ups. One thread sends as many, alternately alone
//! (quiet) and while another thread sends `TIMES` as many (flood), in two patterns: in bursts at a
//! fixed rate, and repeated as soon as each is answered, which leaves no core idle. Permits are free
//! again within microseconds, so 40 times as many callers result in about ten times as many look-ups
//! as are admitted. Prints the latency of the answered look-ups of the first thread, the share of
//! rejected look-ups, and the ratio of the two p99.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a benchmark fails by panicking"
)]

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use bytes::Bytes;
use entail::api::v1;
use h2::client::SendRequest;
use http::Request;
use prost::Message;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

const WORLD: &str = "examples/bakery";
const PATH: &str =
    "gateways/platform/storefront/listeners/https/routes/HTTPRoute/baker/bread/rules/order";
const METHOD: &str = "http://entail/entail.v1.EffectivePolicyService/GetEffectivePolicies";
/// Connections per thread.
const CONNECTIONS: usize = 2;
/// Time between two bursts.
const PERIOD: Duration = Duration::from_millis(10);
/// Number of pairs of runs, and the duration of a run.
const PAIRS: usize = 9;
const RUN: Duration = Duration::from_secs(2);

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// When callers send the next request.
#[derive(Clone, Copy)]
enum CallPattern {
    Bursts,
    Repeat,
}

/// Result of a run.
#[derive(Default)]
struct Run {
    /// Latencies of the answered look-ups.
    micros: Vec<u128>,
    /// Number of rejected look-ups.
    shed: usize,
}

impl Run {
    fn take(&mut self, other: Self) {
        self.micros.extend(other.micros);
        self.shed += other.shed;
    }

    fn per_mille(&mut self, at: usize) -> f64 {
        self.micros.sort_unstable();
        self.micros[(self.micros.len() - 1) * at / 1_000] as f64
    }
}

/// Sends one request; returns its latency, or `None` if it was rejected.
async fn send(requests: &SendRequest<Bytes>, message: &Bytes) -> Option<Duration> {
    let began = Instant::now();
    let head = Request::post(METHOD)
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())
        .unwrap();
    let mut requests = requests.clone().ready().await.unwrap();
    let (reply, mut body) = requests.send_request(head, false).unwrap();
    body.send_data(message.clone(), true).unwrap();
    let (head, mut body) = reply.await.unwrap().into_parts();
    if let Some(status) = head.headers.get("grpc-status") {
        assert_eq!(status, "8", "RESOURCE_EXHAUSTED");
        return None;
    }
    while let Some(data) = body.data().await {
        let length = data.unwrap().len();
        body.flow_control().release_capacity(length).unwrap();
    }
    assert_eq!(body.trailers().await.unwrap().unwrap()["grpc-status"], "0");
    Some(began.elapsed())
}

/// Sends requests one after the other until a time, or one request.
async fn call(requests: SendRequest<Bytes>, message: Bytes, until: Option<Instant>) -> Run {
    let mut run = Run::default();
    loop {
        match send(&requests, &message).await {
            Some(latency) => run.micros.push(latency.as_micros()),
            None => run.shed += 1,
        }
        if until.is_none_or(|until| Instant::now() >= until) {
            return run;
        }
    }
}

/// Callers on one thread with their own connections.
struct Callers {
    runtime: Runtime,
    connections: Vec<SendRequest<Bytes>>,
    count: usize,
}

impl Callers {
    fn connect(address: &str, count: usize) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let connections = runtime.block_on(async {
            let mut connections = Vec::new();
            for _ in 0..CONNECTIONS {
                let socket = TcpStream::connect(address).await.unwrap();
                socket.set_nodelay(true).unwrap();
                // Large enough for a thousand unread replies.
                let (requests, connection) = h2::client::Builder::new()
                    .initial_connection_window_size(16 * 1024 * 1024)
                    .handshake(socket)
                    .await
                    .unwrap();
                tokio::spawn(connection);
                connections.push(requests);
            }
            connections
        });
        Self {
            runtime,
            connections,
            count,
        }
    }

    fn begin(&self, tasks: &mut JoinSet<Run>, message: &Bytes, until: Option<Instant>) {
        for at in 0..self.count {
            let requests = self.connections[at % CONNECTIONS].clone();
            tasks.spawn(call(requests, message.clone(), until));
        }
    }

    fn run(&self, message: &Bytes, pattern: CallPattern) -> Run {
        let until = Instant::now() + RUN;
        self.runtime.block_on(async {
            let mut tasks = JoinSet::new();
            match pattern {
                CallPattern::Repeat => self.begin(&mut tasks, message, Some(until)),
                CallPattern::Bursts => {
                    let mut ticks = tokio::time::interval(PERIOD);
                    while Instant::now() < until {
                        ticks.tick().await;
                        self.begin(&mut tasks, message, None);
                    }
                }
            }
            let mut all = Run::default();
            while let Some(one) = tasks.join_next().await {
                all.take(one.expect("a connection ended"));
            }
            all
        })
    }
}

fn look_up() -> Bytes {
    let mut message = vec![0; 5];
    let request = v1::GetEffectivePoliciesRequest {
        target: Some(v1::get_effective_policies_request::Target::Path(
            PATH.to_owned(),
        )),
        ..Default::default()
    };
    request.encode(&mut message).unwrap();
    message[4] = u8::try_from(message.len() - 5).unwrap();
    message.into()
}

fn measure(own: &Callers, flood: &Callers, pattern: CallPattern) {
    let message = look_up();
    let (mut quiet, mut flooded, mut ratios) = (Run::default(), Run::default(), Vec::new());
    let (mut sent, mut shed) = (0, 0);
    for _ in 0..PAIRS {
        let mut alone = own.run(&message, pattern);
        let (mut beside, rest) = std::thread::scope(|scope| {
            // A current-thread runtime runs on the thread that blocks on it.
            let rest = scope.spawn(|| flood.run(&message, pattern));
            (own.run(&message, pattern), rest.join().unwrap())
        });
        ratios.push(beside.per_mille(990) / alone.per_mille(990));
        shed += beside.shed + rest.shed;
        sent += beside.shed + rest.shed + beside.micros.len() + rest.micros.len();
        quiet.take(alone);
        flooded.take(beside);
    }
    ratios.sort_by(f64::total_cmp);
    let pattern = match pattern {
        CallPattern::Bursts => "bursts every 10 ms",
        CallPattern::Repeat => "repeated at once",
    };
    for (name, run) in [("quiet", &mut quiet), ("flood", &mut flooded)] {
        println!(
            "{pattern}, {name}: {} answered, p50 {:.0} us, p99 {:.0} us",
            run.micros.len(),
            run.per_mille(500),
            run.per_mille(990)
        );
    }
    println!(
        "{pattern}: {:.0} requests/s, {:.1} % of them rejected; p99 of flood to quiet, median of \
         {PAIRS} pairs: {:.2}",
        sent as f64 / (PAIRS as f64 * RUN.as_secs_f64()),
        100.0 * shed as f64 / sent as f64,
        ratios[PAIRS / 2]
    );
}

fn serve(folder: &std::path::Path, admitted: usize) -> (Server, String) {
    let port = folder.join("port");
    let binary = std::env::var("ENTAIL").unwrap_or_else(|_| "target/release/entail".to_owned());
    let most = admitted.to_string();
    let server = Server(
        Command::new(binary)
            .args(["serve", "--manifests", WORLD, "--log", "warn"])
            .args(["--listen", "127.0.0.1:0"])
            .args(["--max-concurrency", &most, "--port-file"])
            .arg(&port)
            .spawn()
            .expect("the binary of ENTAIL, or target/release/entail"),
    );
    let began = Instant::now();
    let address = loop {
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "the server does not start"
        );
        match std::fs::read_to_string(&port) {
            Ok(address) if !address.is_empty() => break address.trim().to_owned(),
            _ => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    std::thread::sleep(Duration::from_millis(500));
    (server, address)
}

fn main() {
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let setting = |name, default| {
        let value: Option<usize> = std::env::var(name).ok().map(|text| text.parse().unwrap());
        value.unwrap_or(default)
    };
    let (admitted, times) = (setting("ADMITTED", 8), setting("TIMES", 40));
    let folder = tempfile::tempdir().unwrap();
    let (_server, address) = serve(folder.path(), admitted);
    let own = Callers::connect(&address, admitted);
    let flood = Callers::connect(&address, times * admitted);
    for pattern in [CallPattern::Bursts, CallPattern::Repeat] {
        measure(&own, &flood, pattern);
    }
}

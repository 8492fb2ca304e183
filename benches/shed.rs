//! Ten times as many look-ups as are let in: `ENTAIL=path/to/entail cargo bench --bench shed`.
//!
//! A server lets in `ADMITTED` look-ups at once. One thread asks as many as that, by turns alone
//! (quiet) and beside a thread that asks `TIMES` as many (flood), in two ways: in bursts at a fixed
//! rate, and each again as soon as it is answered, which leaves no core idle. Places are free again
//! within microseconds, so that 40 times as many callers come to ten times as many look-ups as are
//! answered. What is told is the time of those look-ups of the first thread that were answered, how
//! many of all were turned away, and the ratio of the two p99.

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
/// Of each thread.
const CONNECTIONS: usize = 2;
/// Between two bursts.
const PERIOD: Duration = Duration::from_millis(10);
/// Pairs of runs, and how long a run takes.
const PAIRS: usize = 9;
const RUN: Duration = Duration::from_secs(2);

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How callers ask.
#[derive(Clone, Copy)]
enum CallPattern {
    Bursts,
    Repeat,
}

/// What a run came to.
#[derive(Default)]
struct Run {
    /// Of look-ups that were answered.
    micros: Vec<u128>,
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

/// Asks once; the time that it took if it was answered.
async fn ask(requests: &SendRequest<Bytes>, message: &Bytes) -> Option<Duration> {
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

/// One caller who asks again as soon as it is answered, or once.
async fn call(requests: SendRequest<Bytes>, message: Bytes, until: Option<Instant>) -> Run {
    let mut run = Run::default();
    loop {
        match ask(&requests, &message).await {
            Some(took) => run.micros.push(took.as_micros()),
            None => run.shed += 1,
        }
        if until.is_none_or(|until| Instant::now() >= until) {
            return run;
        }
    }
}

/// Callers of one thread, over connections of their own.
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
                // A thousand replies may wait to be read.
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

    fn run(&self, message: &Bytes, way: CallPattern) -> Run {
        let until = Instant::now() + RUN;
        self.runtime.block_on(async {
            let mut tasks = JoinSet::new();
            match way {
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
    let asked = v1::GetEffectivePoliciesRequest {
        target: Some(v1::get_effective_policies_request::Target::Path(
            PATH.to_owned(),
        )),
        ..Default::default()
    };
    asked.encode(&mut message).unwrap();
    message[4] = u8::try_from(message.len() - 5).unwrap();
    message.into()
}

fn measure(own: &Callers, flood: &Callers, way: CallPattern) {
    let message = look_up();
    let (mut quiet, mut flooded, mut ratios) = (Run::default(), Run::default(), Vec::new());
    let (mut asked, mut shed) = (0, 0);
    for _ in 0..PAIRS {
        let mut alone = own.run(&message, way);
        let (mut beside, rest) = std::thread::scope(|scope| {
            // A runtime of one thread runs on whichever thread waits for it.
            let rest = scope.spawn(|| flood.run(&message, way));
            (own.run(&message, way), rest.join().unwrap())
        });
        ratios.push(beside.per_mille(990) / alone.per_mille(990));
        shed += beside.shed + rest.shed;
        asked += beside.shed + rest.shed + beside.micros.len() + rest.micros.len();
        quiet.take(alone);
        flooded.take(beside);
    }
    ratios.sort_by(f64::total_cmp);
    let way = match way {
        CallPattern::Bursts => "bursts every 10 ms",
        CallPattern::Repeat => "each again at once",
    };
    for (name, run) in [("quiet", &mut quiet), ("flood", &mut flooded)] {
        println!(
            "{way}, {name}: {} answered, p50 {:.0} us, p99 {:.0} us",
            run.micros.len(),
            run.per_mille(500),
            run.per_mille(990)
        );
    }
    println!(
        "{way}: {:.0} asked a second, {:.1} % of them turned away; p99 of flood to quiet, median of \
         {PAIRS} pairs: {:.2}",
        asked as f64 / (PAIRS as f64 * RUN.as_secs_f64()),
        100.0 * shed as f64 / asked as f64,
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
            "it does not start"
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
    let set = |name, default| {
        let set: Option<usize> = std::env::var(name).ok().map(|text| text.parse().unwrap());
        set.unwrap_or(default)
    };
    let (admitted, times) = (set("ADMITTED", 8), set("TIMES", 40));
    let folder = tempfile::tempdir().unwrap();
    let (_server, address) = serve(folder.path(), admitted);
    let own = Callers::connect(&address, admitted);
    let flood = Callers::connect(&address, times * admitted);
    for way in [CallPattern::Bursts, CallPattern::Repeat] {
        measure(&own, &flood, way);
    }
}

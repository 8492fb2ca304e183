//! The neighbour: 500 look-ups a second on a connection of its own, and now and then a newcomer on each
//! listener. It runs on a thread of its own, so that attacks do not delay it inside this process.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use crate::http1::Endpoint;
use crate::reviews;
use crate::server::{Addresses, Server, http_get};
use crate::target::look_up;
use crate::wire::{self, Requests};
use crate::world;

/// The time between two look-ups.
const PAUSE: Duration = Duration::from_millis(2);
/// The time between two newcomers.
const NEWCOMERS: Duration = Duration::from_millis(500);
/// A look-up that takes longer is an error.
const LIMIT: Duration = Duration::from_secs(5);
/// A newcomer that waits longer is an error. Probes of a kubelet wait for a second by default.
const NEWCOMER_LIMIT: Duration = Duration::from_secs(2);
/// Look-ups in progress. More are not begun, so that the neighbour stays below its own share.
const IN_FLIGHT: usize = 256;

/// What the neighbour saw.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// Latencies of answered look-ups, in microseconds from when they were due.
    pub latencies: Vec<u64>,
    /// Look-ups without the right answer, by reason.
    pub errors: BTreeMap<String, usize>,
    /// Newcomers without an answer, by listener and reason.
    pub rejected: BTreeMap<String, usize>,
}

struct Shared {
    addresses: Addresses,
    webhook: Endpoint,
    console: Endpoint,
    record: Mutex<Record>,
    in_flight: AtomicUsize,
    is_stopped: AtomicBool,
}

/// The thread of the neighbour.
pub struct Neighbour {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Record {
    /// A quantile of the latencies in milliseconds.
    pub fn quantile(&self, share: f64) -> f64 {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "an index within the list"
        )]
        let at = (sorted.len() as f64 * share) as usize;
        let micros = sorted.get(at.min(sorted.len().saturating_sub(1)));
        #[allow(clippy::cast_precision_loss, reason = "microseconds of a few seconds")]
        micros.map_or(0.0, |&micros| micros as f64 / 1_000.0)
    }
}

impl Neighbour {
    /// Begins to call a server.
    pub fn start(server: &Server) -> Self {
        let shared = Arc::new(Shared {
            addresses: server.addresses,
            webhook: server.webhook.clone(),
            console: server.console.clone(),
            record: Mutex::default(),
            in_flight: AtomicUsize::new(0),
            is_stopped: AtomicBool::new(false),
        });
        let own = |work: fn(Arc<Shared>)| {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || work(shared))
        };
        let threads = vec![
            own(|shared| runtime().block_on(look_up_always(shared))),
            own(|shared| runtime().block_on(come_anew(shared))),
        ];
        Self { shared, threads }
    }

    /// Returns what was seen since the last call.
    pub fn take(&self) -> Record {
        std::mem::take(&mut self.shared.record.lock().unwrap())
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ended = thread.join();
        }
    }
}

impl Shared {
    fn error(&self, reason: String) {
        *self
            .record
            .lock()
            .unwrap()
            .errors
            .entry(reason)
            .or_default() += 1;
    }

    fn goes_on(&self) -> bool {
        !self.is_stopped.load(Ordering::Relaxed)
    }
}

fn runtime() -> tokio::runtime::Runtime {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap()
}

/// Sends look-ups at a fixed rate, and connects again when the connection ends.
async fn look_up_always(shared: Arc<Shared>) {
    let bodies: Vec<Bytes> = (0..world::ROUTES)
        .map(|route| look_up(&world::path(route, route % 2)))
        .collect();
    while shared.goes_on() {
        let requests = match wire::connect(shared.addresses.data).await {
            Ok(requests) => requests,
            Err(error) => {
                shared.error(format!("connect: {error}"));
                sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let mut ticks = interval(PAUSE);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let is_broken = Arc::new(AtomicBool::new(false));
        let mut count = 0_usize;
        while shared.goes_on() && !is_broken.load(Ordering::Relaxed) {
            let due = ticks.tick().await;
            if shared.in_flight.load(Ordering::Relaxed) >= IN_FLIGHT {
                continue;
            }
            count += 1;
            let body = bodies[(count * 7919) % bodies.len()].clone();
            shared.in_flight.fetch_add(1, Ordering::Relaxed);
            let (shared, is_broken) = (Arc::clone(&shared), Arc::clone(&is_broken));
            let requests = requests.clone();
            tokio::spawn(async move {
                let outcome = one(&requests, body).await;
                shared.in_flight.fetch_sub(1, Ordering::Relaxed);
                match outcome {
                    Ok(()) => {
                        let micros = due.elapsed().as_micros().try_into().unwrap();
                        shared.record.lock().unwrap().latencies.push(micros);
                    }
                    Err(error) => {
                        is_broken.store(error.is_broken, Ordering::Relaxed);
                        shared.error(error.reason);
                    }
                }
            });
        }
    }
}

struct Failed {
    reason: String,
    is_broken: bool,
}

async fn one(requests: &Requests, body: Bytes) -> Result<(), Failed> {
    let reply = wire::call(requests, wire::GET, body, LIMIT).await;
    let reply = reply.map_err(|reason| Failed {
        is_broken: !reason.starts_with("no reply"),
        reason,
    })?;
    // The answer has the policy of the route and that of the Gateway.
    if reply.grpc.as_deref() == Some("0") && reply.body.len() > 200 {
        return Ok(());
    }
    Err(Failed {
        reason: reply.outcome(),
        is_broken: false,
    })
}

/// Connects to each listener again and again, as new callers and probes do.
async fn come_anew(shared: Arc<Shared>) {
    let mut ticks = interval(NEWCOMERS);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let body = look_up(&world::path(1, 0));
    while shared.goes_on() {
        ticks.tick().await;
        let addresses = shared.addresses;
        let admin = tokio::task::spawn_blocking(move || http_get(addresses.admin, "/readyz"));
        let (data, health, webhook, console, admin) = tokio::join!(
            newcomer(addresses.data, wire::GET, body.clone()),
            // Of an empty message: the whole server.
            newcomer(addresses.health, wire::HEALTH, wire::bytes_of(&[])),
            in_time(reviews::is_answered(&shared.webhook)),
            in_time(reviews::look_up_by_grpc_web(&shared.console)),
            admin,
        );
        let admin = admin.unwrap().map_err(|error| error.to_string());
        let admin = admin.and_then(|reply| {
            if reply.contains(" 200 ") {
                Ok(())
            } else {
                Err(reply.lines().next().unwrap_or("empty reply").to_owned())
            }
        });
        let mut record = shared.record.lock().unwrap();
        for (name, outcome) in [
            ("data", data),
            ("health", health),
            ("webhook", webhook),
            ("console", console),
            ("admin", admin),
        ] {
            if let Err(reason) = outcome {
                *record
                    .rejected
                    .entry(format!("{name}: {reason}"))
                    .or_default() += 1;
            }
        }
    }
}

async fn newcomer(address: std::net::SocketAddr, method: &str, body: Bytes) -> Result<(), String> {
    let begin = Instant::now();
    let connected = tokio::time::timeout(NEWCOMER_LIMIT, wire::connect(address)).await;
    let requests = connected.map_err(|_| "no connection in time".to_owned())??;
    let rest = NEWCOMER_LIMIT.saturating_sub(begin.elapsed());
    let reply = wire::call(&requests, method, body, rest).await;
    let reply = reply.map_err(|error| {
        if error.starts_with("no reply") {
            format!("no reply within {} s", NEWCOMER_LIMIT.as_secs())
        } else {
            error
        }
    })?;
    if method == wire::HEALTH && reply.body != [0, 0, 0, 0, 2, 8, 1] {
        return Err(format!("not SERVING: {}", reply.outcome()));
    }
    match reply.grpc.as_deref() {
        Some("0") => Ok(()),
        _ => Err(reply.outcome()),
    }
}

async fn in_time(asked: impl Future<Output = Result<(), String>>) -> Result<(), String> {
    let answer = tokio::time::timeout(NEWCOMER_LIMIT, asked).await;
    answer.unwrap_or_else(|_| Err(format!("no reply within {} s", NEWCOMER_LIMIT.as_secs())))
}

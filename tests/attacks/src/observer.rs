//! Memory, CPU and metrics of the server during an attack.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, sleep};
use std::time::Duration;

use crate::server::{Server, http_get};

/// A server that uses more is killed, so that the machine survives the attack.
const MOST: u64 = 6 << 30;

/// Metrics that change with every request and every edit.
const ORDINARY: &[&str] = &[
    // The newcomers' reviews have no warnings.
    "entail_admission_review_duration_seconds",
    "entail_admission_reviews_total{outcome=\"silent\"}",
    "entail_answers",
    "entail_assertion_check",
    "entail_build_seconds",
    "entail_bytes_encoded",
    "entail_changes",
    "entail_full_rebuilds",
    "entail_objects",
    "entail_paths",
    "entail_policies",
    "entail_publish_seconds",
    "entail_request_duration_seconds",
    "entail_requests_under_way",
    "entail_snapshot",
    "entail_kind_state",
];

/// Samples of `/metrics` by name and labels.
pub type Metrics = BTreeMap<String, f64>;

/// What was seen during an attack.
#[derive(Clone, Debug)]
pub struct Observation {
    /// The largest resident memory, in bytes.
    pub peak: u64,
    /// The largest value of each metric.
    pub metrics: Metrics,
    /// Whether the server was killed because of its memory.
    pub is_killed: bool,
}

/// Observes a server until it is asked for the result.
pub struct Observer {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    peak: AtomicU64,
    metrics: Mutex<Metrics>,
    is_killed: AtomicBool,
    is_stopped: AtomicBool,
}

/// The resident memory of a process in bytes, 0 if it has ended.
pub fn resident(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// The CPU time of a process, in hundredths of a second.
pub fn cpu(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name of the program, in parentheses, may contain spaces.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let mut fields = fields.split_whitespace().skip(11);
    let mut next = || fields.next().and_then(|field| field.parse::<u64>().ok());
    next().unwrap_or(0) + next().unwrap_or(0)
}

/// The processor time that the host of this virtual machine gave to others since it started, in hundredths of a second.
pub fn stolen() -> u64 {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let all = stat.lines().next().unwrap_or_default();
    let field = all.split_whitespace().nth(8);
    field.and_then(|field| field.parse().ok()).unwrap_or(0)
}

/// Reads `/metrics`; empty if there is no reply.
pub fn metrics(server: &Server) -> Metrics {
    let reply = http_get(server.addresses.admin, "/metrics").unwrap_or_default();
    let lines = reply.lines().filter(|line| line.starts_with("entail_"));
    let samples = lines.filter_map(|line| {
        let (name, value) = line.rsplit_once(' ')?;
        Some((name.to_owned(), value.parse().ok()?))
    });
    samples.collect()
}

/// The metrics that tell of an attack: those that grew, without those that grow on quiet days.
pub fn told(before: &Metrics, during: &Metrics) -> Vec<String> {
    let mut told = Vec::new();
    for (name, &value) in during {
        let from = before.get(name).copied().unwrap_or(0.0);
        let is_ordinary = ORDINARY.iter().any(|prefix| name.starts_with(prefix))
            || (name.starts_with("entail_requests_total") && name.contains("\"OK\""));
        if value > from && !is_ordinary {
            let name = name.trim_start_matches("entail_").replace('"', "");
            told.push(format!("{name} +{}", value - from));
        }
    }
    told
}

impl Observer {
    /// Begins to observe.
    pub fn start(server: &Arc<Server>) -> Self {
        let shared = Arc::new(Shared {
            peak: AtomicU64::new(resident(server.pid)),
            metrics: Mutex::default(),
            is_killed: AtomicBool::new(false),
            is_stopped: AtomicBool::new(false),
        });
        let own = |work: fn(&Shared, &Server), pause: u64| {
            let (shared, server) = (Arc::clone(&shared), Arc::clone(server));
            std::thread::spawn(move || {
                while !shared.is_stopped.load(Ordering::Relaxed) {
                    work(&shared, &server);
                    sleep(Duration::from_millis(pause));
                }
            })
        };
        let threads = vec![own(watch_memory, 20), own(watch_metrics, 400)];
        Self { shared, threads }
    }

    /// Stops and returns what was seen.
    pub fn stop(self, server: &Server) -> Observation {
        self.shared.is_stopped.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().unwrap();
        }
        watch_metrics(&self.shared, server);
        Observation {
            peak: self.shared.peak.load(Ordering::Relaxed),
            metrics: self.shared.metrics.lock().unwrap().clone(),
            is_killed: self.shared.is_killed.load(Ordering::Relaxed),
        }
    }
}

fn watch_memory(shared: &Shared, server: &Server) {
    let resident = resident(server.pid);
    shared.peak.fetch_max(resident, Ordering::Relaxed);
    if resident > MOST {
        shared.is_killed.store(true, Ordering::Relaxed);
        server.kill();
    }
}

fn watch_metrics(shared: &Shared, server: &Server) {
    let current = metrics(server);
    let mut all = shared.metrics.lock().unwrap();
    for (name, value) in current {
        let most = all.entry(name).or_insert(value);
        *most = most.max(value);
    }
}

//! Runs attacks one after the other against one server.

use std::path::Path;
use std::pin::Pin;
use std::process::Command;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::setpriority_process;
use rustix::thread::gettid;
use tokio::runtime::{Builder, Runtime};

use crate::observer::{self, Observer};
use crate::report::{Quiet, Row, print_head};
use crate::reviews;
use crate::server::Server;
use crate::target::Target;

/// No attack takes longer.
const LONGEST: Duration = Duration::from_secs(20);
/// How long the server may take to return to its memory and to its state after an attack. Its allocator gives back what
/// has been free for a second.
const RECOVERY: Duration = Duration::from_secs(15);

/// How often an attack is tried when the machine disturbs it. What the server does happens each time.
const TRIES: usize = 3;

/// How long the neighbour is measured before each attack.
const QUIET_BEFORE: Duration = Duration::from_secs(3);

/// What an attack reports: what it did, or what it found to be wrong.
pub type Outcome = Result<String, String>;
/// An attack in progress.
pub type Running = Pin<Box<dyn Future<Output = Outcome> + Send>>;
/// An attack: its name, and how to begin it.
pub type Attack = (&'static str, fn(Arc<Target>) -> Running);

/// The niceness of the threads that attack. Attackers have processors of their own: what counts is what the server does
/// to others, and not who takes the processors of this machine.
const NICENESS: i32 = 19;

/// The runtime that attacks.
fn attackers() -> Runtime {
    let mut runtime = Builder::new_multi_thread();
    runtime.on_thread_start(lower_priority);
    runtime.enable_all().build().unwrap()
}

/// Makes the kernel run this thread only on processors that nothing else uses.
fn lower_priority() {
    setpriority_process(None, NICENESS).unwrap();
    let thread = gettid().as_raw_nonzero().to_string();
    let mut idle = Command::new("chrt");
    let idle = idle.args(["--idle", "--pid", "0", &thread]).output();
    if !idle.is_ok_and(|idle| idle.status.success()) {
        eprintln!(
            "chrt (util-linux) is missing: attackers disturb others more than the server does"
        );
    }
}

/// Runs attacks and prints the table. Returns whether all went well.
pub fn run(binary: &Path, attacks: &[Attack], is_strict: bool) -> bool {
    let runtime = attackers();
    let (mut target, quiet) = begin(binary, is_strict);
    print_head(&quiet);
    let mut failed = Vec::new();
    for attack in attacks {
        let mut row = runtime.block_on(one(attack, &target, &quiet));
        row.print(&quiet);
        for _ in 1..TRIES {
            if !row.is_disturbed(&quiet) {
                break;
            }
            println!("    (again: the host took processors away meanwhile)");
            row = runtime.block_on(one(attack, &target, &quiet));
            row.print(&quiet);
        }
        if !row.verdict(&quiet).is_empty() {
            failed.push(row.name);
        }
        // The others begin with a server that works, whatever is left of this one.
        let is_usable = target.server.is_running()
            && observer::resident(target.server.pid) <= quiet.most()
            && runtime.block_on(target.edit_arrives()).is_ok();
        if !is_usable {
            println!("    (a new server is started)");
            target = begin(binary, is_strict).0;
        }
        let _between_attacks = target.neighbour.take();
    }
    println!(
        "{} passed, {} failed",
        attacks.len() - failed.len(),
        failed.len()
    );
    if !failed.is_empty() {
        println!("failed: {}", failed.join(" "));
    }
    failed.is_empty()
}

/// Starts a server and measures it while nobody attacks.
fn begin(binary: &Path, is_strict: bool) -> (Arc<Target>, Quiet) {
    let target = Target::new(Server::start(binary));
    sleep(Duration::from_secs(1));
    let _warm_up = target.neighbour.take();
    target.be_quiet();
    let quiet = Quiet {
        resident: observer::resident(target.server.pid),
        p99: target.neighbour.take().quantile(0.99),
        is_strict,
    };
    (Arc::new(target), quiet)
}

async fn one(attack: &Attack, target: &Arc<Target>, quiet: &Quiet) -> Row {
    let server = &target.server;
    // Metrics may be a quarter of a second old.
    tokio::time::sleep(Duration::from_millis(400)).await;
    let (before, metrics) = (observer::resident(server.pid), observer::metrics(server));
    let _before = target.neighbour.take();
    // The machine may be slower than it was at the start; a server that an attack left slow must not pass for quiet.
    let quiet_p99 = if quiet.is_strict {
        tokio::time::sleep(QUIET_BEFORE).await;
        let now = target.neighbour.take().quantile(0.99);
        now.clamp(quiet.p99, 2.0 * quiet.p99)
    } else {
        quiet.p99
    };
    let (cpu, stolen, begin) = (
        observer::cpu(server.pid),
        observer::stolen(),
        Instant::now(),
    );
    let observer = Observer::start(server);
    let (note, mut failures) = outcome_of(attack, target).await;
    // Includes what the server still does about it.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let neighbour = target.neighbour.take();
    let used = observer::cpu(server.pid).saturating_sub(cpu);
    let stolen = observer::stolen() - stolen;
    let seconds = begin.elapsed().as_secs_f64();
    if server.is_running() {
        server.remove_foreign_files();
        if let Err(error) = target.edit_arrives().await {
            failures.push(format!("afterwards, {error}"));
        }
        for error in reviews::still_served(server).await {
            failures.push(format!("afterwards, {error}"));
        }
    } else {
        failures.push(format!("the server ended:\n{}", server.log_end()));
    }
    let after = settled(server, quiet).await;
    // Last, because it guards the machine, too.
    let observation = observer.stop(server);
    if observation.is_killed {
        failures.push("killed because of its memory".to_owned());
    }
    Row {
        name: attack.0,
        resident: [before, observation.peak, after],
        cpu: (used, seconds),
        stolen,
        neighbour,
        quiet_p99,
        told: observer::told(&metrics, &observation.metrics),
        note,
        failures,
    }
}

/// Runs an attack to its end, or to the end of its time.
async fn outcome_of(attack: &Attack, target: &Arc<Target>) -> (String, Vec<String>) {
    let mut task = tokio::spawn(attack.1(Arc::clone(target)));
    match tokio::time::timeout(LONGEST, &mut task).await {
        Ok(Ok(Ok(note))) => (note, Vec::new()),
        Ok(Ok(Err(failure))) => (String::new(), vec![failure]),
        Ok(Err(panic)) => (
            String::new(),
            vec![format!("the attack broke off: {panic}")],
        ),
        Err(_) => {
            task.abort();
            let _aborted = task.await;
            let note = format!("stopped after {} s", LONGEST.as_secs());
            (note, Vec::new())
        }
    }
}

/// Returns the memory of the server once it is allowed, or after a while.
async fn settled(server: &Server, quiet: &Quiet) -> u64 {
    let begin = Instant::now();
    loop {
        let resident = observer::resident(server.pid);
        if resident <= quiet.most() || begin.elapsed() > RECOVERY {
            return resident;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

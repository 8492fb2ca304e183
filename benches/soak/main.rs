//! A soak test: 2 000 look-ups a second at random paths of the world of teams, while 20 routes and 100 policies are
//! edited a second. `cargo bench --profile dist --bench soak [-- SECONDS] [--routes N] [--quiet SECONDS]`; 600 seconds
//! without an argument, after 30 quiet ones.
//!
//! Each route is in a file with its policies, which is replaced atomically, as in volumes. Look-ups are for paths
//! that exist during the whole run. Fails if a look-up fails, if at the end the server has more than 1.25 times the
//! memory of the first minute, or if its answers then differ from those that `entail get` computes from the same files.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a bench stops by panicking"
)]

mod answers;
#[path = "../promises/bench_world.rs"]
#[allow(dead_code, reason = "the other benches use the rest")]
mod bench_world;
mod edits;
#[path = "../e2e/load.rs"]
#[allow(dead_code, reason = "the other benches use the rest")]
mod load;
#[path = "../e2e/process.rs"]
mod process;
#[path = "../e2e/raw.rs"]
mod raw;
#[path = "../world/mod.rs"]
mod world;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use edits::Editor;
use load::{Latencies, Load, Run};
use process::{ServerProcess, cpu_seconds, resident_mb};
use world::Teams;

/// Look-ups per second.
const LOOK_UPS: usize = 2_000;
/// Edits of routes and of policies per second.
const ROUTE_EDITS: usize = 20;
const POLICY_EDITS: usize = 100;
/// Number of paths that are looked up in turn.
const PATHS: usize = 100_000;
/// Number of paths whose answers are compared at the end.
const COMPARED: usize = 200;
/// Maximum number of seconds between two lines about a run.
const WINDOW: usize = 30;
/// Seconds until the server has the memory to which the end is compared.
const WARM_UP: usize = 60;
/// Maximum growth of the memory after that time.
const MAX_GROWTH: f64 = 1.25;
/// Target for the p99 while the world changes, as a multiple of the quiet p99.
const MAX_RATIO: f64 = 2.0;

struct Options {
    seconds: usize,
    quiet: usize,
    routes: usize,
}

/// A server over the files of the world.
struct Server {
    process: ServerProcess,
    address: String,
    manifests: PathBuf,
    _folder: tempfile::TempDir,
}

/// What was measured in some windows.
#[derive(Default)]
struct Measured {
    latencies: Latencies,
    seconds: usize,
    cpu_seconds: f64,
    /// Resident memory in MB at the end of each window, with the seconds since the start.
    resident: Vec<(usize, f64)>,
}

impl Options {
    fn read() -> Self {
        let mut options = Self {
            seconds: 600,
            quiet: 30,
            routes: Teams::default().routes,
        };
        let mut arguments = std::env::args().skip(1).filter(|text| text != "--bench");
        while let Some(argument) = arguments.next() {
            let mut number = || arguments.next().and_then(|text| text.parse().ok());
            let (option, value) = match argument.as_str() {
                "--routes" => (&mut options.routes, number()),
                "--quiet" => (&mut options.quiet, number()),
                seconds => (&mut options.seconds, seconds.parse().ok()),
            };
            *option = value
                .filter(|number| *number > 0)
                .unwrap_or_else(|| panic!("`{argument}` needs a positive number"));
        }
        options
    }
}

impl Measured {
    /// Loads the server for some seconds, and prints a line for each window.
    fn of(server: &Server, load: &Load, seconds: usize) -> Self {
        let mut all = Self::default();
        while all.seconds < seconds {
            // A short run has several windows, too.
            let window = WINDOW.min(seconds.div_ceil(4)).min(seconds - all.seconds);
            let before = cpu_seconds(server.process.id());
            let found = load.latencies(&server.address, LOOK_UPS, window);
            let cpu = cpu_seconds(server.process.id()) - before;
            let resident = resident_mb(server.process.id());
            all.seconds += window;
            all.cpu_seconds += cpu;
            all.resident.push((all.seconds, resident));
            let (sent, failed) = (found.micros.len() + found.failed, found.failed);
            let p99 = percentiles(&found).p99_micros;
            println!(
                "{:>6} s: {sent} look-ups, {failed} failed, p99 {p99:.0} us, {:.0} % CPU, {resident:.0} MB",
                all.seconds,
                100.0 * cpu / window as f64
            );
            all.latencies.extend(found);
        }
        all
    }

    fn print(&self, name: &str) -> Run {
        let run = percentiles(&self.latencies);
        let failed = self.latencies.failed;
        println!(
            "{name}: {} look-ups, {failed} failed; p50 {:.0} us, p99 {:.0} us, p99.9 {:.0} us; {:.0} % CPU",
            self.latencies.micros.len() + failed,
            run.p50_micros,
            run.p99_micros,
            run.p999_micros,
            100.0 * self.cpu_seconds / self.seconds as f64
        );
        run
    }
}

fn percentiles(latencies: &Latencies) -> Run {
    Run::of(latencies.micros.clone(), 0.0, Duration::from_secs(1))
}

/// Writes the world and starts a server over it.
fn start(teams: &Teams) -> (Server, Editor) {
    let folder = tempfile::tempdir().unwrap();
    let manifests = folder.path().join("manifests");
    std::fs::create_dir(&manifests).unwrap();
    let editor = Editor::write(teams, &manifests);
    let port = folder.path().join("port");
    let process = process::serve(&manifests, None, &port);
    let server = Server {
        process,
        address: process::ready(&port),
        manifests,
        _folder: folder,
    };
    (server, editor)
}

fn main() -> ExitCode {
    let options = Options::read();
    let teams = Teams {
        routes: options.routes,
        ..Teams::default()
    };
    teams.check().unwrap();
    println!("{teams}");
    let (server, editor) = start(&teams);
    let load = Load::new(&edits::kept_paths(&teams, PATHS), 0);
    // Connections and caches.
    load.latencies(&server.address, LOOK_UPS, 2);
    println!("quiet");
    let quiet = Measured::of(&server, &load, options.quiet);
    println!("{ROUTE_EDITS} routes and {POLICY_EDITS} policies are edited a second");
    let before = load.generation(&server.address);
    let editing = editor.start(ROUTE_EDITS, POLICY_EDITS);
    let busy = Measured::of(&server, &load, options.seconds);
    let (editor, edited) = editing.end();
    wait_for_the_last_edit(&server, &load);
    let published = load.generation(&server.address) - before;
    println!(
        "{} edits of routes and {} of policies in {} files; {published} snapshots",
        edited.routes,
        edited.policies,
        edited.files.len()
    );
    let has_passed = report(&quiet, &busy);
    let paths = editor.rule_paths(&edited.files, COMPARED);
    let is_true = answers::compare(&server.address, &server.manifests, &paths);
    match has_passed && is_true {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Prints the result; reports whether no look-up failed and the memory did not grow.
fn report(quiet: &Measured, busy: &Measured) -> bool {
    let before = quiet.print("quiet");
    let while_editing = busy.print("while editing");
    let ratio = while_editing.p99_micros / before.p99_micros;
    let verdict = |has_passed: bool| if has_passed { "pass" } else { "MISS" };
    println!(
        "p99 against quiet: {ratio:.2} x (<= {MAX_RATIO} x)  {}",
        verdict(ratio <= MAX_RATIO)
    );
    let failed = quiet.latencies.failed + busy.latencies.failed;
    let failures = [&quiet.latencies, &busy.latencies];
    let failures = failures.map(|latencies| latencies.first_failure.as_ref());
    println!("failed look-ups: {failed}  {}", verdict(failed == 0));
    for failure in failures.into_iter().flatten() {
        println!("  the first: {failure}");
    }
    let warm = busy.resident.iter().find(|(at, _)| *at >= WARM_UP);
    let (at, first) = *warm.unwrap_or(&busy.resident[0]);
    let (end, last) = busy.resident[busy.resident.len() - 1];
    let growth = last / first;
    println!(
        "memory after {end} s against {at} s: {growth:.2} x (<= {MAX_GROWTH} x): {last:.0} against {first:.0} MB  {}",
        verdict(growth <= MAX_GROWTH)
    );
    failed == 0 && growth <= MAX_GROWTH
}

/// Waits until the server has published no snapshot for two seconds.
fn wait_for_the_last_edit(server: &Server, load: &Load) {
    for _ in 0..30 {
        let before = load.generation(&server.address);
        std::thread::sleep(Duration::from_secs(2));
        if load.generation(&server.address) == before {
            return;
        }
    }
    panic!("the server still publishes snapshots a minute after the last edit");
}

//! The cost of a look-up, compared with the minimal cost of a gRPC request: `entail serve` with a
//! large world and random paths, and a plain tonic server that returns constant bytes of the same
//! size, with the same transport settings. Both servers run at the same time and are loaded
//! alternately (A B A B), so that other load of the machine affects both. The target is the ratio of
//! the CPU times per request, which does not depend on the load generator.
//!
//! Then a fixed rate of look-ups while policies change, compared with the same rate without changes.
//!
//! `cargo bench --profile dist --bench e2e`; `E2E_PAIRS`, `E2E_REQUESTS` and `E2E_QUIET_PAIRS` set the number of runs
//! and requests.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a bench stops by panicking"
)]

#[path = "../promises/bench_world.rs"]
#[allow(dead_code, reason = "the other benches use the rest")]
mod bench_world;
mod constant;
mod edit;
#[allow(dead_code, reason = "the other benches use the rest")]
mod load;
#[allow(dead_code, reason = "the other benches use the rest")]
mod process;
mod raw;
mod servers;
mod table;
mod tools;
#[path = "../world/mod.rs"]
mod world;

use std::time::Duration;

use load::Load;
use servers::{Constant, Entail, first_answer};
use table::Table;
use tools::{ghz, h2load};

/// The fixed rate in requests per second.
const RATE: usize = 2_000;

/// Reads a number from an environment variable.
fn setting(name: &str, default: usize) -> usize {
    let set = std::env::var(name).ok();
    set.map_or(default, |text| text.parse().unwrap())
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, bytes] = arguments.as_slice()
        && flag == constant::FLAG
    {
        constant::serve(bytes.parse().unwrap());
        return;
    }
    let mut table = Table::begin();
    let (time, what) = first_answer("start");
    table.timed(&what, Some(Duration::from_millis(300)), time);
    let (time, what) = first_answer("start-dense");
    table.timed(&what, None, time);
    let entail = Entail::start("100k", "HTTPRoute");
    against_constant(&mut table, &entail);
    while_changing(
        &mut table,
        entail,
        Duration::from_millis(100),
        "10 edits of the policy of a route per second",
        None,
    );
    let wide = Entail::start("wide", "Gateway");
    while_changing(
        &mut table,
        wide,
        Duration::from_secs(1),
        "1 edit of the policy of a Gateway per second",
        Some(2.0),
    );
    table.end();
}

/// Loads both servers alternately, as fast as possible; also with h2load and ghz.
fn against_constant(table: &mut Table, entail: &Entail) {
    let pairs = setting("E2E_PAIRS", 11);
    let requests = setting("E2E_REQUESTS", 40_000);
    let load = Load::new(&entail.names, requests);
    let size = load.mean_size(&entail.address);
    let constant = Constant::start(size);
    // Warm-up.
    load.run(&entail.address, entail.process.id());
    load.run(&constant.address, constant.process.id());
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let mut limits = (Vec::new(), Vec::new());
    for _ in 0..pairs {
        ours.push(load.run(&entail.address, entail.process.id()));
        theirs.push(load.run(&constant.address, constant.process.id()));
        limits
            .0
            .extend(h2load(&entail.address, &entail.names[0], requests));
        limits
            .1
            .extend(h2load(&constant.address, &entail.names[0], requests));
    }
    let of = format!("{pairs} pairs of {requests} requests at random, {size} bytes a reply");
    table.info("Get against constant bytes", of);
    table.compared("CPU a request", Some(1.03), &ours, &theirs, "us", |run| {
        run.cpu_micros
    });
    table.compared("requests a second", None, &ours, &theirs, "", |run| {
        run.per_second
    });
    table.compared("p50", None, &ours, &theirs, "us", |run| run.p50_micros);
    table.compared("p99", None, &ours, &theirs, "us", |run| run.p99_micros);
    table.compared("p99.9", None, &ours, &theirs, "us", |run| run.p999_micros);
    if limits.0.is_empty() {
        table.info(
            "requests a second by h2load",
            "h2load is not installed".to_owned(),
        );
    } else {
        table.compared(
            "requests a second by h2load, one path",
            None,
            &limits.0,
            &limits.1,
            "",
            |rate| *rate,
        );
    }
    let paths = entail.names.iter().take(1_000).cloned().collect::<Vec<_>>();
    table.info(
        &format!("ghz, {RATE} requests a second"),
        ghz(&entail.address, &paths, RATE, 5).map_or("ghz is not installed".to_owned(), |ghz| {
            format!(
                "{}; {:.0} a second, p50 {:.0} us, p99 {:.0} us",
                ghz.statuses, ghz.per_second, ghz.p50_micros, ghz.p99_micros
            )
        }),
    );
}

/// Loads the server at a fixed rate, alternately without changes and while a policy changes.
fn while_changing(
    table: &mut Table,
    mut entail: Entail,
    pause: Duration,
    what: &str,
    most: Option<f64>,
) {
    let pairs = setting("E2E_QUIET_PAIRS", 5);
    let load = Load::new(&entail.names, 0);
    let run = |entail: &Entail| load.at_rate(&entail.address, entail.process.id(), RATE, 5);
    run(&entail);
    let (mut quiet, mut busy) = (Vec::new(), Vec::new());
    let (mut edits, mut published) = (0, 0);
    for _ in 0..pairs {
        quiet.push(run(&entail));
        let before = load.generation(&entail.address);
        let editing = entail.edited.take().unwrap().every(pause);
        busy.push(run(&entail));
        let (edited, many) = editing.end();
        // Waits until the last edit is published.
        std::thread::sleep(Duration::from_millis(500));
        edits += many;
        published += load.generation(&entail.address) - before;
        entail.edited = Some(edited);
    }
    table.info(
        &format!("{RATE} requests a second, {what}"),
        format!("{edits} edits, {published} snapshots"),
    );
    table.compared("p50 against quiet", None, &busy, &quiet, "us", |run| {
        run.p50_micros
    });
    table.compared("p99 against quiet", most, &busy, &quiet, "us", |run| {
        run.p99_micros
    });
    table.compared("p99.9 against quiet", None, &busy, &quiet, "us", |run| {
        run.p999_micros
    });
}

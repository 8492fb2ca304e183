//! What a look-up costs a server, against a server that costs nothing else: `entail serve` with a
//! large world, asked at random paths, and a plain tonic server that returns constant bytes of the
//! same size, with the same settings of the transport. Both run at once and are loaded in turn
//! (A B A B), so that what the machine does meanwhile hits both. The gate is the ratio of the
//! servers' CPU time a request, which does not depend on the load generator.
//!
//! `cargo bench --bench e2e [-- SHAPE]`; `E2E_PAIRS` and `E2E_REQUESTS` set how long it takes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a bench stops by panicking"
)]

mod constant;
mod load;
#[path = "../promises/made.rs"]
#[allow(dead_code, reason = "the other bench uses the rest")]
mod made;
mod raw;
mod servers;
#[path = "../world/mod.rs"]
mod world;

use load::{Load, Run};
use servers::{Constant, Entail};

/// Pairs of runs, and requests a run.
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
    let shape = arguments.iter().find(|a| !a.starts_with('-'));
    let shape: &'static str = shape.map_or("100k", |shape| shape.clone().leak());
    let pairs = setting("E2E_PAIRS", 9);
    let requests = setting("E2E_REQUESTS", 20_000);
    let entail = Entail::start(shape);
    let load = Load::new(entail.names.clone(), requests);
    let size = load.mean_size(&entail.address);
    let constant = Constant::start(size);
    println!(
        "{shape}: {} names, replies of {size} bytes on average; {pairs} pairs of {requests} requests",
        entail.names.len()
    );
    // Both are warm before anything is measured.
    load.run(&entail.address, entail.process.id());
    load.run(&constant.address, constant.process.id());
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..pairs {
        ours.push(load.run(&entail.address, entail.process.id()));
        theirs.push(load.run(&constant.address, constant.process.id()));
    }
    report(&ours, &theirs);
}

fn report(ours: &[Run], theirs: &[Run]) {
    let told = |name: &str, runs: &[Run]| {
        let of = |value: fn(&Run) -> f64| spread(runs.iter().map(value).collect());
        println!(
            "{name:<10} CPU {} us a request, {} requests/s, p50 {} us, p99 {} us",
            of(|r| r.cpu_micros),
            of(|r| r.per_second),
            of(|r| r.p50_micros),
            of(|r| r.p99_micros)
        );
    };
    told("entail", ours);
    told("constant", theirs);
    let pairs = ours.iter().zip(theirs);
    let ratios: Vec<f64> = pairs.map(|(a, b)| a.cpu_micros / b.cpu_micros).collect();
    let middle = median(ratios.clone());
    let verdict = if middle <= 1.03 { "pass" } else { "MISS" };
    println!(
        "ratio of CPU a request: {} (target <= 1.03)  {verdict}",
        spread(ratios)
    );
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The median, and the least and the largest.
fn spread(values: Vec<f64>) -> String {
    let least = values.iter().copied().fold(f64::MAX, f64::min);
    let most = values.iter().copied().fold(f64::MIN, f64::max);
    let digits = if most < 10.0 { 3 } else { 0 };
    let middle = median(values);
    format!("{middle:.digits$} ({least:.digits$}-{most:.digits$})")
}

//! The rows of the table.

use std::hint::black_box;
use std::time::{Duration, Instant};

use entail::snapshot::SnapshotBuilder;
use entail_core::effective::World as Entail;

use crate::assertions::assertions;
use crate::bench_world::{BenchWorld, generate, look_up, names, version};
use crate::memory;
use crate::questions::{batches, explained};
use crate::reviews::reviews;
use crate::served::served;
use crate::teams::teams;

/// A row of the table.
pub struct Row {
    pub promise: String,
    pub target: String,
    pub figure: String,
    /// `None` for a figure without a target.
    pub met: Option<bool>,
}

/// A measurement.
type Run = fn() -> Vec<Row>;

/// The rows by name.
pub const ROWS: [(&str, Run); 12] = [
    ("look-up", look_ups),
    ("cold", cold),
    ("fan-out", fan_out),
    ("batch", batches),
    ("explain", explained),
    ("one-policy", one_policy),
    ("gateway-wide", gateway_wide),
    ("teams", teams),
    ("served", served),
    ("review", reviews),
    ("memory", memory_held),
    ("assertions", assertions),
];

pub fn row(promise: &str, target: &str, figure: String, met: impl Into<Option<bool>>) -> Row {
    Row {
        promise: promise.to_owned(),
        target: target.to_owned(),
        figure,
        met: met.into(),
    }
}

/// Returns the minimum time of several runs.
pub fn least(runs: usize, mut run: impl FnMut() -> Duration) -> Duration {
    (0..runs).map(|_| run()).min().unwrap_or_default()
}

/// Returns the median of some times.
pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

pub fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

fn look_ups() -> Vec<Row> {
    let per_look_up = |shape: &'static str| {
        let snapshot = generate(shape).snapshot_builder().snapshot(version());
        let names = names(&snapshot, 100_000);
        let time = least(15, || {
            let began = Instant::now();
            black_box(look_up(&snapshot, &names));
            began.elapsed()
        });
        let nanoseconds = time.as_nanos() as f64 / names.len() as f64;
        (nanoseconds, snapshot.paths())
    };
    let (small, few) = per_look_up("1k");
    let (large, many) = per_look_up("1m");
    let ratio = large / small;
    let promise = format!("look-up, {few} to {many} paths");
    vec![row(
        &promise,
        "<= 2 x",
        format!("{ratio:.2} x ({small:.0} to {large:.0} ns)"),
        ratio <= 2.0,
    )]
}

/// Reads, computes and encodes everything.
fn compute(world: &BenchWorld) -> (Duration, SnapshotBuilder) {
    let began = Instant::now();
    let snapshot_builder = world.snapshot_builder();
    (began.elapsed(), snapshot_builder)
}

fn cold() -> Vec<Row> {
    let small = generate("10k");
    let mut first = small.snapshot_builder();
    let (snapshot, work) = (first.snapshot(version()), first.stats());
    let read = least(5, || {
        let began = Instant::now();
        black_box(Entail::from_store(small.store.clone(), &small.profiles));
        began.elapsed()
    });
    let time = least(5, || compute(&small).0);
    let light = generate("10k-small");
    let lightly = least(5, || compute(&light).0);
    let light = light.snapshot_builder().stats();
    let large = generate("100k-dense");
    let (tenfold, mut snapshot_builder) = compute(&large);
    let many = snapshot_builder.snapshot(version());
    let growth = tenfold.as_secs_f64() / time.as_secs_f64();
    let of = |s: &entail::snapshot::Snapshot| {
        format!("{} paths, {} answers", s.paths(), s.distinct_answers())
    };
    let encoded = work.encoded as f64 / 1e6;
    vec![
        row(
            "cold compute: work",
            "-",
            format!("{} merged, {encoded:.0} MB", work.merged),
            None,
        ),
        row(
            &format!("cold compute, {}", of(&snapshot)),
            "<= 100 ms",
            format!("{:.1} ms ({:.1} read)", millis(time), millis(read)),
            millis(time) <= 100.0,
        ),
        row(
            "the same with rules of 512 bytes",
            "-",
            format!(
                "{:.0} ms ({:.0} MB)",
                millis(lightly),
                light.encoded as f64 / 1e6
            ),
            None,
        ),
        row(
            &format!("growth in time to {}", of(&many)),
            "-",
            format!("{growth:.1} x ({:.0} ms)", millis(tenfold)),
            // `benches/counts` has a target for it, in instructions.
            None,
        ),
    ]
}

fn fan_out() -> Vec<Row> {
    let world = generate("fanout");
    let mut paths = (0, 0);
    let time = least(3, || {
        let (time, mut snapshot_builder) = compute(&world);
        let snapshot = snapshot_builder.snapshot(version());
        paths = (snapshot.paths(), snapshot.distinct_answers());
        time
    });
    let (bytes, ..) = memory::of(world.name);
    let megabytes = bytes as f64 / 1e6;
    let promise = format!("fan-out, {} paths, {} answers", paths.0, paths.1);
    vec![
        row(
            &promise,
            "<= 1 s",
            format!("{:.0} ms", millis(time)),
            millis(time) <= 1_000.0,
        ),
        row(
            &promise,
            "<= 300 MB",
            format!("{megabytes:.0} MB"),
            megabytes <= 300.0,
        ),
    ]
}

/// Measures the time from an edit to the published snapshot, and counts the work.
fn edit(shape: &'static str, target: &str, runs: usize) -> (Duration, u64, u64, String) {
    let mut world = generate(shape);
    let mut snapshot_builder = world.snapshot_builder();
    let first = snapshot_builder.snapshot(version());
    let of = format!(
        "{} paths, {} answers",
        first.paths(),
        first.distinct_answers()
    );
    drop(first);
    let mut done = (0, 0);
    let mut number = 0;
    let time = least(runs, || {
        number += 1;
        let (object, _) = world.edited(target, number);
        let before = snapshot_builder.stats();
        let began = Instant::now();
        let changed = world.apply(object);
        snapshot_builder.update(world.store.clone(), &changed);
        let snapshot = black_box(snapshot_builder.snapshot(version()));
        let time = began.elapsed();
        let after = snapshot_builder.stats();
        done = (
            after.merged - before.merged,
            after.replaced - before.replaced,
        );
        drop(snapshot);
        time
    });
    (time, done.0, done.1, of)
}

fn one_policy() -> Vec<Row> {
    let (time, merged, replaced, of) = edit("100k", "HTTPRoute", 20);
    vec![row(
        &format!("one policy, {of}"),
        "<= 1 ms",
        format!(
            "{:.3} ms ({merged} merged, {replaced} replaced)",
            millis(time)
        ),
        millis(time) <= 1.0,
    )]
}

fn gateway_wide() -> Vec<Row> {
    let (time, merged, replaced, of) = edit("wide", "Gateway", 9);
    vec![row(
        &format!("gateway-wide, {of}"),
        "<= 150 ms",
        format!(
            "{:.1} ms ({merged} merged, {replaced} replaced)",
            millis(time)
        ),
        millis(time) <= 150.0,
    )]
}

fn memory_held() -> Vec<Row> {
    let (bytes, paths, answers) = memory::of("100k");
    let megabytes = bytes as f64 / 1e6;
    let mut rows = vec![row(
        &format!("memory, {paths} paths, {answers} answers"),
        "<= 100 MB",
        format!("{megabytes:.0} MB"),
        megabytes <= 100.0,
    )];
    let (bytes, paths, answers) = memory::of("10k");
    rows.push(row(
        &format!("memory, unshared: {paths} paths, {answers} answers"),
        "-",
        format!("{} bytes an answer", bytes / answers),
        None,
    ));
    rows
}

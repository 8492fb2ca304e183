//! Counts the instructions of parts of entail with callgrind and compares them with the budgets in
//! `budgets.txt`. Unlike times, instruction counts do not depend on the load of the machine.
//!
//! `scripts/test-long counts` fails if a part exceeds its budget by more
//! than 5 %; `-- --record` writes the current counts as budgets. `-- NAME` counts only some parts.
//! `COUNTS_OUT` is a directory for the output files of callgrind, for `callgrind_annotate`.
//!
//! A part runs several times in one process, and not at all in a second process with the same
//! preparation. The difference is the count of the part, so the binary needs no markers or symbols.

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
#[path = "../promises/changing_world.rs"]
#[allow(dead_code, reason = "the other benches use the rest")]
mod changing_world;
mod objects;
mod parts;
#[path = "../world/mod.rs"]
mod world;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use parts::{PARTS, Part};

const BUDGETS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/counts/budgets.txt");
/// Share by which a part may exceed its budget.
const TOLERANCE: f64 = 0.05;
/// Two parts that differ in the size of their world, by a factor of ten, and the maximum ratio of their instructions.
const GROWTHS: [(&str, &str, &str, f64); 2] = [
    (
        "growth to ten times as many paths",
        parts::SMALL,
        parts::LARGE,
        13.0,
    ),
    (
        "growth to ten times as many routes",
        parts::ROUTE,
        parts::ROUTE_OF_MANY,
        1.5,
    ),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, part, objects, times] = arguments.as_slice()
        && flag == "--run"
    {
        parts::run(part, Path::new(objects), times.parse().unwrap());
        return ExitCode::SUCCESS;
    }
    let wanted: Vec<&String> = arguments.iter().filter(|a| !a.starts_with('-')).collect();
    let is_wanted = |part: &&Part| {
        wanted.is_empty() || wanted.iter().any(|name| part.name.contains(name.as_str()))
    };
    let parts = PARTS.iter().filter(is_wanted);
    let counts: Vec<_> = parts.map(|part| (part.name, count(part))).collect();
    if arguments.iter().any(|argument| argument == "--record") {
        record(&counts);
    }
    report(&counts)
}

/// Returns the instructions of one operation of a part.
fn count(part: &Part) -> u64 {
    let name = format!("entail-counts-{}.json", std::process::id());
    let file = std::env::temp_dir().join(name);
    objects::write(part.shape, &file);
    let all = under_callgrind(part.name, &file, part.times);
    let prepared = under_callgrind(part.name, &file, 0);
    std::fs::remove_file(&file).unwrap();
    all.saturating_sub(prepared) / part.times as u64 / part.each
}

/// Returns the instructions of a process that runs a part `times` times.
fn under_callgrind(part: &str, objects: &Path, times: usize) -> u64 {
    let out = match std::env::var("COUNTS_OUT") {
        Ok(folder) => format!("{folder}/{}.{times}.out", part.replace(' ', "-")),
        Err(_) => "/dev/null".to_owned(),
    };
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", &format!("--callgrind-out-file={out}")])
        .arg(std::env::current_exe().unwrap())
        .args(["--run", part])
        .arg(objects)
        .arg(times.to_string())
        .output()
        .expect("valgrind is required");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let collected = stderr.lines().find_map(|line| {
        let (_, count) = line.split_once("Collected : ")?;
        count.trim().parse().ok()
    });
    collected.unwrap_or_else(|| panic!("no count in:\n{stderr}"))
}

fn budgets() -> BTreeMap<String, u64> {
    let text = std::fs::read_to_string(BUDGETS).unwrap_or_default();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let read = lines.filter_map(|line| {
        let (name, count) = line.rsplit_once(' ')?;
        Some((name.trim().to_owned(), count.parse().ok()?))
    });
    read.collect()
}

fn record(counts: &[(&str, u64)]) {
    let mut text =
        "# Instructions, by callgrind; `cargo run --profile dist --features counts --bin counts -- --record` writes them.\n"
            .to_owned();
    let mut all = budgets();
    all.extend(
        counts
            .iter()
            .map(|(name, count)| ((*name).to_owned(), *count)),
    );
    for (name, count) in all {
        writeln!(text, "{name} {count}").unwrap();
    }
    std::fs::write(BUDGETS, text).unwrap();
}

fn report(counts: &[(&str, u64)]) -> ExitCode {
    let budgets = budgets();
    let mut missed = 0;
    let mut print_row = |name: &str, target: String, figure: String, met: bool| {
        missed += usize::from(!met);
        let verdict = if met { "pass" } else { "MISS" };
        println!("{name:<44} {target:>24} {figure:>30}  {verdict}");
    };
    println!("{:<44} {:>24} {:>30}", "instructions of", "budget", "count");
    for (name, count) in counts {
        let budget = budgets.get(*name).copied();
        let share = budget.map(|budget| *count as f64 / budget as f64 - 1.0);
        print_row(
            name,
            budget.map_or("none recorded".to_owned(), |budget| budget.to_string()),
            share.map_or(count.to_string(), |share| {
                format!("{count} ({:+.1} %)", share * 100.0)
            }),
            share.is_some_and(|share| share <= TOLERANCE),
        );
    }
    let of = |wanted: &str| counts.iter().find(|(name, _)| *name == wanted);
    for (name, small, large, most) in GROWTHS {
        if let (Some((_, small)), Some((_, large))) = (of(small), of(large)) {
            let growth = *large as f64 / *small as f64;
            print_row(
                name,
                format!("<= {most} x"),
                format!("{growth:.1} x"),
                growth <= most,
            );
        }
    }
    if missed > 0 {
        println!("{missed} missed: optimize, or accept the counts with `-- --record`");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

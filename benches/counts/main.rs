//! Instructions that the parts take, counted by callgrind: figures that do not depend on what else
//! the machine does, held against budgets in `budgets.txt`.
//! `cargo run --release --features counts --bin counts` fails if one takes 5 % more than its budget;
//! `-- --record` writes what it takes now. `-- look-up` counts some alone, and `COUNTS_OUT` names a folder for callgrind's own files, to be read with
//! `callgrind_annotate`.
//!
//! A part is run some times in one process and not at all in another that prepares the same; the
//! difference is what it takes. So nothing has to be marked, and a stripped binary will do.

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
/// What a part may take more than its budget.
const TOLERANCE: f64 = 0.05;
/// What ten times as much may take (DESIGN §3).
const GROWTH: f64 = 13.0;

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

/// Instructions of one run of a part.
fn count(part: &Part) -> u64 {
    let name = format!("entail-counts-{}.json", std::process::id());
    let file = std::env::temp_dir().join(name);
    objects::write(part.shape, &file);
    let all = under_callgrind(part.name, &file, part.times);
    let prepared = under_callgrind(part.name, &file, 0);
    std::fs::remove_file(&file).unwrap();
    all.saturating_sub(prepared) / part.times as u64 / part.each
}

/// Instructions of a process that runs a part so many times.
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
        .expect("valgrind counts: install it");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let collected = told.lines().find_map(|line| {
        let (_, count) = line.split_once("Collected : ")?;
        count.trim().parse().ok()
    });
    collected.unwrap_or_else(|| panic!("no count in:\n{told}"))
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
        "# Instructions, by callgrind; `cargo run --release --features counts --bin counts -- --record` writes them.\n"
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
    let mut tell = |name: &str, target: String, figure: String, met: bool| {
        missed += usize::from(!met);
        let verdict = if met { "pass" } else { "MISS" };
        println!("{name:<44} {target:>24} {figure:>30}  {verdict}");
    };
    println!("{:<44} {:>24} {:>30}", "instructions of", "budget", "count");
    for (name, count) in counts {
        let budget = budgets.get(*name).copied();
        let share = budget.map(|budget| *count as f64 / budget as f64 - 1.0);
        tell(
            name,
            budget.map_or("none recorded".to_owned(), |budget| budget.to_string()),
            share.map_or(count.to_string(), |share| {
                format!("{count} ({:+.1} %)", share * 100.0)
            }),
            share.is_some_and(|share| share <= TOLERANCE),
        );
    }
    let of = |wanted: &str| counts.iter().find(|(name, _)| *name == wanted);
    if let (Some((_, small)), Some((_, large))) = (of(parts::SMALL), of(parts::LARGE)) {
        let growth = *large as f64 / *small as f64;
        tell(
            "growth to ten times as many paths",
            format!("<= {GROWTH} x"),
            format!("{growth:.1} x"),
            growth <= GROWTH,
        );
    }
    if missed > 0 {
        println!("{missed} missed: make it cheaper, or record what it is worth with `-- --record`");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

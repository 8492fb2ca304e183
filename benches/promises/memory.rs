//! Measures the memory of a world in a separate process.

use std::process::Command;

use crate::bench_world::{generate, version};

/// Argument that starts a measurement instead of the benchmark.
pub const FLAG: &str = "--memory-of";

/// Returns the resident bytes of this process.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1));
    kilobytes.unwrap().parse::<usize>().unwrap() * 1_024
}

/// Prints the bytes, paths and distinct answers of a snapshot with its engine.
pub fn measure(shape: &str) {
    let shape: &'static str = shape.to_owned().leak();
    let world = generate(shape);
    let before = resident();
    let mut snapshot_builder = world.snapshot_builder();
    let snapshot = snapshot_builder.snapshot(version());
    let after = resident();
    println!(
        "{} {} {}",
        after.saturating_sub(before),
        snapshot.paths(),
        snapshot.distinct_answers()
    );
}

/// Measures the bytes, paths and distinct answers of a world.
pub fn of(shape: &str) -> (usize, u64, usize) {
    let exe = std::env::current_exe().unwrap();
    let output = Command::new(exe).args([FLAG, shape]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut fields = text.split_whitespace();
    let mut next = || fields.next().unwrap().parse::<u64>().unwrap();
    let (bytes, paths, answers) = (next(), next(), next());
    (bytes as usize, paths, answers as usize)
}

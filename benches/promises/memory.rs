//! What a world holds in memory, measured in a process of its own.

use std::process::Command;

use crate::bench_world::{made, version};

/// Asks for a measurement instead of the table.
pub const FLAG: &str = "--memory-of";

/// Resident bytes of this process.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1));
    kilobytes.unwrap().parse::<usize>().unwrap() * 1_024
}

/// Prints what a snapshot and its engine hold: bytes, paths, different answers.
pub fn measure(shape: &str) {
    let shape: &'static str = shape.to_owned().leak();
    let made = made(shape);
    let before = resident();
    let mut snapshot_builder = made.snapshot_builder();
    let snapshot = snapshot_builder.snapshot(version());
    let after = resident();
    println!(
        "{} {} {}",
        after.saturating_sub(before),
        snapshot.paths(),
        snapshot.distinct_answers()
    );
}

/// Bytes, paths and different answers of a world.
pub fn of(shape: &str) -> (usize, u64, usize) {
    let exe = std::env::current_exe().unwrap();
    let output = Command::new(exe).args([FLAG, shape]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut fields = text.split_whitespace();
    let mut next = || fields.next().unwrap().parse::<u64>().unwrap();
    let (bytes, paths, answers) = (next(), next(), next());
    (bytes as usize, paths, answers as usize)
}

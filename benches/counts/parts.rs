//! The parts that are counted.

use std::hint::black_box;
use std::path::Path;

use entail_core::effective::World as Entail;

use crate::bench_world::{BenchWorld, look_up, names, version};
use crate::objects;

/// A part, on the world of a shape.
pub struct Part {
    pub name: &'static str,
    pub shape: &'static str,
    /// So many runs are counted.
    pub times: usize,
    /// What one run does so often.
    pub each: u64,
    /// Prepares what is needed and does it so many times.
    run: fn(BenchWorld, usize),
}

/// Computing worlds of which one has ten times as many paths.
pub const SMALL: &str = "cold compute, 1 000 paths";
pub const LARGE: &str = "cold compute, 10 000 paths";

const NAMES: usize = 20_000;
const EDITS: usize = 50;
const WIDE_EDITS: usize = 3;
/// Runs of the parts that edit.
const TIMES: usize = 2;

const fn part(
    name: &'static str,
    (shape, times, each): (&'static str, usize, usize),
    run: fn(BenchWorld, usize),
) -> Part {
    Part {
        name,
        shape,
        times,
        each: each as u64,
        run,
    }
}

pub const PARTS: [Part; 6] = [
    part("look-up", ("1k", 4, NAMES), look_ups),
    part("reading a world, 10 000 paths", ("even-10k", 1, 1), reading),
    part(SMALL, ("even-1k", 2, 1), cold),
    part(LARGE, ("even-10k", 1, 1), cold),
    part(
        "step: a route's policy",
        ("1k", TIMES, EDITS),
        |made, times| edits(made, "HTTPRoute", times, EDITS),
    ),
    part(
        "step: a Gateway's policy",
        ("1k", TIMES, WIDE_EDITS),
        |made, times| edits(made, "Gateway", times, WIDE_EDITS),
    ),
];

/// Prepares what a part needs and runs it so many times.
pub fn run(name: &str, file: &Path, times: usize) {
    let part = PARTS.iter().find(|part| part.name == name).unwrap();
    (part.run)(objects::read(part.shape, file), times);
}

fn look_ups(made: BenchWorld, times: usize) {
    let snapshot = made.snapshot_builder().snapshot(version());
    let names = names(&snapshot, NAMES);
    for _ in 0..times {
        black_box(look_up(&snapshot, &names));
    }
}

fn reading(made: BenchWorld, times: usize) {
    for _ in 0..times {
        drop(black_box(Entail::from_store(
            made.store.clone(),
            &made.profiles,
        )));
    }
}

fn cold(made: BenchWorld, times: usize) {
    for _ in 0..times {
        drop(black_box(made.snapshot_builder()));
    }
}

/// From an edited policy to the published snapshot. The edits are made before, be they used or not.
fn edits(mut made: BenchWorld, target: &str, times: usize, each: usize) {
    let mut snapshot_builder = made.snapshot_builder();
    let all: Vec<_> = (0..TIMES * each)
        .map(|number| made.edited(target, number).0)
        .collect();
    for object in all.into_iter().take(times * each) {
        let changed = made.apply(object);
        snapshot_builder.update(made.store.clone(), &changed);
        black_box(snapshot_builder.snapshot(version()));
    }
}

//! The parts that are counted.

use std::hint::black_box;
use std::path::Path;

use entail_core::effective::World as Entail;
use entail_core::store::Store;

use crate::bench_world::{BenchWorld, look_up, names, version};
use crate::changing_world::ChangingWorld;
use crate::objects;

/// A part of entail that is counted, with its world.
pub struct Part {
    pub name: &'static str,
    pub shape: &'static str,
    /// Number of counted runs.
    pub times: usize,
    /// Number of operations per run.
    pub each: u64,
    /// Prepares the world and runs the part a number of times.
    run: fn(BenchWorld, usize),
}

/// Computing worlds of which one has ten times as many paths.
pub const SMALL: &str = "cold compute, 1 000 paths";
pub const LARGE: &str = "cold compute, 10 000 paths";

/// A changed route in two worlds, of which one has ten times as many routes.
pub const ROUTE: &str = "step: one of 1 000 routes";
pub const ROUTE_OF_MANY: &str = "step: one of 10 000 routes";

const NAMES: usize = 20_000;
const EDITS: usize = 50;
const WIDE_EDITS: usize = 3;
/// Number of runs of the parts that edit.
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

pub const PARTS: [Part; 8] = [
    part("look-up", ("1k", 4, NAMES), look_ups),
    part("reading a world, 10 000 paths", ("even-10k", 1, 1), reading),
    part(SMALL, ("even-1k", 2, 1), cold),
    part(LARGE, ("even-10k", 1, 1), cold),
    part(
        "step: a route's policy",
        ("1k", TIMES, EDITS),
        |world, times| edits(world, "HTTPRoute", times, EDITS),
    ),
    part(
        "step: a Gateway's policy",
        ("1k", TIMES, WIDE_EDITS),
        |world, times| edits(world, "Gateway", times, WIDE_EDITS),
    ),
    part(ROUTE, ("teams-1k", TIMES, EDITS), routes),
    part(ROUTE_OF_MANY, ("teams-10k", TIMES, EDITS), routes),
];

/// Prepares a part and runs it `times` times.
pub fn run(name: &str, file: &Path, times: usize) {
    let part = PARTS.iter().find(|part| part.name == name).unwrap();
    let world = objects::read(part.shape, file);
    // A process resolves the profiles that are built in once, with the first world: that is a part of no count.
    drop(Entail::from_store(Store::default(), &world.profiles));
    (part.run)(world, times);
}

fn look_ups(world: BenchWorld, times: usize) {
    let snapshot = world.snapshot_builder().snapshot(version());
    let names = names(&snapshot, NAMES);
    for _ in 0..times {
        black_box(look_up(&snapshot, &names));
    }
}

fn reading(world: BenchWorld, times: usize) {
    for _ in 0..times {
        drop(black_box(Entail::from_store(
            world.store.clone(),
            &world.profiles,
        )));
    }
}

fn cold(world: BenchWorld, times: usize) {
    for _ in 0..times {
        drop(black_box(world.snapshot_builder()));
    }
}

/// From an edited policy to the published snapshot. All edits are prepared in both processes, so that
/// their preparation is not counted.
fn edits(mut world: BenchWorld, target: &str, times: usize, each: usize) {
    let mut snapshot_builder = world.snapshot_builder();
    let all: Vec<_> = (0..TIMES * each)
        .map(|number| world.edited(target, number).0)
        .collect();
    for object in all.into_iter().take(times * each) {
        let changed = world.apply(object);
        snapshot_builder.update(world.store.clone(), &changed);
        black_box(snapshot_builder.snapshot(version()));
    }
}

/// From a route without its last rule to the published snapshot.
fn routes(world: BenchWorld, times: usize) {
    let mut world = ChangingWorld::new(world);
    let all: Vec<_> = (0..TIMES * EDITS)
        .map(|_| world.route_without_a_rule())
        .collect();
    for route in all.into_iter().take(times * EDITS) {
        world.upsert(route);
    }
}

//! Prints the bytes that each step from manifests to a snapshot leaves allocated, in the world of teams.
//! `cargo bench --bench memory [-- --routes N] [--edits N] [--heap-profile FILE]`.
//!
//! Bytes are those that were requested from the allocator, so they do not depend on the machine or on the profile of the
//! build. The size of a process is a tenth to a third more. With `--heap-profile`, DHAT's file of allocation sites is
//! written at the end (open it with `dh_view.html` of valgrind).

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
#[path = "../world/mod.rs"]
mod world;

use std::sync::Arc;

use entail::snapshot::{Snapshot, SnapshotBuilder};
use entail_core::effective::World as Entail;
use entail_core::engine::Engine;
use entail_core::model::{Change, Object};
use entail_core::store::{ProfileSources, Store};

use bench_world::{read, version};
use world::Teams;

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

/// Number of routes without `--routes`: the profiler makes each allocation slow.
const ROUTES: usize = 1_000;
/// Number of edits of routes after the start, without `--edits`: each of another route.
const EDITS: usize = 8;

/// Prints the growth of the heap, step by step.
struct Steps {
    before: usize,
    policies: usize,
    answers: usize,
    paths: usize,
}

impl Steps {
    fn print_title(&self) {
        println!(
            "{:<34} {:>12} {:>10} {:>10} {:>10}",
            "step", "bytes", "a policy", "an answer", "a path"
        );
    }

    /// Prints the growth since the last step.
    fn step(&mut self, name: &str) {
        let now = dhat::HeapStats::get().curr_bytes;
        self.print(name, now as i64 - self.before as i64);
        self.before = now;
    }

    fn print(&self, name: &str, bytes: i64) {
        let per = |count: usize| bytes / count as i64;
        println!(
            "{name:<34} {bytes:>12} {:>10} {:>10} {:>10}",
            per(self.policies),
            per(self.answers),
            per(self.paths)
        );
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let option = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).cloned()
    };
    let teams = Teams {
        routes: option("--routes").map_or(ROUTES, |routes| routes.parse().unwrap()),
        ..Teams::default()
    };
    print!("{teams}");
    let builder = dhat::Profiler::builder();
    let profiler = match option("--heap-profile") {
        Some(file) => builder.file_name(file).trim_backtraces(Some(40)).build(),
        None => builder.testing().build(),
    };
    let edits = option("--edits").map_or(EDITS, |edits| edits.parse().unwrap());
    measure(&teams, edits, profiler);
}

/// Loads the world and edits some of its routes; prints the growth of each step. The profiler ends while all is in
/// memory.
fn measure(teams: &Teams, edits: usize, profiler: dhat::Profiler) {
    let files = teams.manifests();
    let start = dhat::HeapStats::get().curr_bytes;
    let mut steps = Steps {
        before: start,
        policies: teams.policies(),
        answers: teams.answers(),
        paths: teams.rule_paths(),
    };
    steps.print_title();
    let objects = files.iter().flat_map(|file| read(&file.text, &file.name));
    let objects: Vec<Arc<Object>> = objects.map(Arc::new).collect();
    let routes = objects.iter();
    let routes = routes.filter(|object| &*object.key.kind.kind == "HTTPRoute");
    let edited: Vec<Arc<Object>> = routes.take(edits).cloned().collect();
    steps.step("objects");
    let mut store = Store::default();
    store.apply(Change {
        upserts: objects,
        ..Change::default()
    });
    steps.step("store, projections");
    let world = Entail::from_store(store.clone(), &ProfileSources::shipped());
    steps.step("topology, policies");
    let engine = Engine::new(world.clone());
    steps.step("paths, automaton (dropped)");
    drop(engine);
    steps.before = dhat::HeapStats::get().curr_bytes;
    let mut builder = SnapshotBuilder::new(world);
    steps.step("paths, automaton, answers");
    let snapshot = builder.snapshot(version());
    assert_eq!(snapshot.distinct_answers(), teams.answers());
    steps.step("snapshot");
    drop(snapshot.statuses());
    steps.step("statuses");
    let started = dhat::HeapStats::get().curr_bytes;
    steps.print("all", started as i64 - start as i64);
    let snapshot = edit(&edited, &mut store, &mut builder, snapshot);
    let stats = dhat::HeapStats::get();
    println!(
        "after {edits} edits of routes: {:+.1} %, {} bytes at most",
        (stats.curr_bytes as f64 - started as f64) / (started - start) as f64 * 100.0,
        stats.max_bytes - start
    );
    drop(profiler);
    drop((snapshot, builder, store));
}

/// Edits routes one by one, each with a snapshot that replaces the one before.
fn edit(
    routes: &[Arc<Object>],
    store: &mut Store,
    builder: &mut SnapshotBuilder,
    mut snapshot: Snapshot,
) -> Snapshot {
    for route in routes {
        let mut route = Object::clone(route);
        bench_world::move_route(&mut route);
        let changed = store.apply(Change {
            upserts: vec![Arc::new(route)],
            ..Change::default()
        });
        assert_eq!(changed.len(), 1);
        builder.update(store.clone(), &changed);
        snapshot = builder.snapshot(version());
    }
    snapshot
}

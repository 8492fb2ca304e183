//! Benchmarks of single parts with criterion, for optimizing one of them. The performance targets are
//! in `benches/promises`. `cargo bench --profile dist --bench parts [-- FILTER]`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a bench stops by panicking"
)]

#[path = "promises/bench_world.rs"]
#[allow(dead_code, reason = "the other benches use the rest")]
mod bench_world;
#[path = "world/mod.rs"]
mod world;

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use entail::api::path_only_request;
use entail::snapshot::SnapshotBuilder;
use entail::source::manifests::read_objects;
use entail_core::effective::World as Entail;
use entail_core::expr::Expression;
use entail_core::model::PathName;
use serde_json::json;

use bench_world::{framed, generate, names, shape, version};
use world::World;

/// The steps of a look-up, from the frame of the request to the frame of the reply.
fn look_up(c: &mut Criterion) {
    let snapshot = generate("10k").snapshot_builder().snapshot(version());
    let names = names(&snapshot, 10_000);
    let frames: Vec<Vec<u8>> = names.iter().map(|name| framed(name)).collect();
    let mut group = c.benchmark_group("look-up");
    let mut next = 0;
    let mut next_index = || {
        next = (next + 1) % names.len();
        next
    };
    group.bench_function("path of a request", |b| {
        b.iter(|| {
            black_box(path_only_request(&frames[next_index()]))
                .unwrap()
                .len()
        });
    });
    group.bench_function("name", |b| {
        b.iter(|| PathName::parse(black_box(&names[next_index()])).is_ok());
    });
    group.bench_function("answer", |b| {
        b.iter_batched_ref(
            || PathName::parse(&names[next_index()]).unwrap(),
            |path| snapshot.look_up(path).map(|body| body.etag().len()),
            BatchSize::SmallInput,
        );
    });
    group.bench_function("reply", |b| {
        let body = snapshot.look_up(&PathName::parse(&names[0]).unwrap());
        let body = body.unwrap();
        b.iter(|| snapshot.reply(black_box(body)).to_frame(usize::MAX));
    });
    group.finish();
}

/// The steps of a cold start.
fn cold(c: &mut Criterion) {
    let text = World::generate(&shape("1k")).unwrap().manifests();
    let text = text.iter().find(|file| file.name.starts_with("policies"));
    let text = &text.unwrap().text;
    let world = generate("1k");
    let mut group = c.benchmark_group("cold");
    group.sample_size(20);
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("manifests", |b| {
        b.iter(|| read_objects(black_box(text), "file").objects.len());
    });
    group.throughput(Throughput::Elements(1));
    group.bench_function("world", |b| {
        b.iter(|| Entail::from_store(world.store.clone(), &world.profiles));
    });
    group.bench_function("answers", |b| {
        b.iter_batched(
            || Entail::from_store(world.store.clone(), &world.profiles),
            SnapshotBuilder::new,
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

fn conditions(c: &mut Criterion) {
    let value = json!({"a": {"b": [1, 2, 3]}, "name": "x"});
    let source = "self.a.b.exists(n, n == 3) && self.name.startsWith('x')";
    let compiled = Expression::compile(source).unwrap();
    let mut group = c.benchmark_group("cel");
    group.bench_function("compile", |b| {
        b.iter(|| Expression::compile(black_box(source)).is_ok());
    });
    group.bench_function("evaluate", |b| {
        b.iter(|| compiled.is_true(&[("self", black_box(&value))]));
    });
    group.finish();
}

criterion_group!(parts, look_up, cold, conditions);
criterion_main!(parts);

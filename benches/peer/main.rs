//! Compares entail with the library policy-machinery (the Go program in this directory): both compute
//! the same worlds, the answers of all paths must be equal, and the times are printed.
//! `cargo bench --profile dist --bench peer`; requires Go.

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

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use bench_world::{BenchWorld, version};
use entail::api::v1;
use entail::snapshot::Snapshot;
use entail_core::model::PathName;
use prost::Message;
use serde_json::Value;

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peer");
/// Numbers of routes, with four rules each, and of policies.
const SIZES: [(usize, usize); 3] = [(25, 40), (75, 120), (250, 400)];
/// How the library enumerates paths: as its authors do, or by one walk from each class.
const WAYS: [(&str, &[&str]); 2] = [
    ("as its authors use it", &[]),
    (
        "by one walk",
        &["-walk", "-services=false", "-loop-check=false"],
    ),
];

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let peer = folder.path().join("peer");
    let built = Command::new("go")
        .args(["build", "-o"])
        .arg(&peer)
        .arg(".")
        .current_dir(SOURCES)
        .env("GOTOOLCHAIN", "local")
        .status();
    assert!(built.is_ok_and(|status| status.success()), "Go is required");
    println!(
        "{:<28} {:<24} {:>12} {:>12} {:>10}",
        "world", "the library", "its time", "entail", "ratio"
    );
    for (routes, policies) in SIZES {
        for (way, flags) in WAYS {
            let at = folder.path().join(format!("{routes}-{}", flags.len()));
            let theirs = theirs(&peer, &at, routes, policies, flags);
            let (millis, snapshot) = ours(&at);
            let paths = compare(&snapshot, &at.join("answers"));
            let took = theirs["total_ms"].as_f64().unwrap();
            println!(
                "{:<28} {way:<24} {took:>9.1} ms {millis:>9.2} ms {:>8.0} x",
                format!("{paths} paths, {policies} policies"),
                took / millis
            );
        }
    }
    println!("all answers are equal; entail's time includes encoding them with their origins");
}

/// Runs the library three times; returns the report of the fastest run.
fn theirs(peer: &Path, at: &Path, routes: usize, policies: usize, flags: &[&str]) -> Value {
    std::fs::create_dir_all(at.join("manifests")).unwrap();
    let run = || {
        let output = Command::new(peer)
            .args([
                "-routes",
                &routes.to_string(),
                "-policies",
                &policies.to_string(),
            ])
            .arg("-manifests")
            .arg(at.join("manifests"))
            .arg("-answers")
            .arg(at.join("answers"))
            .args(flags)
            // The library computes on one thread; its times vary less with one processor.
            .env("GOMAXPROCS", "1")
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let all = [run(), run(), run()];
    let least = |a: &&Value, b: &&Value| {
        let time = |v: &Value| v["total_ms"].as_f64().unwrap();
        time(a).total_cmp(&time(b))
    };
    all.iter().min_by(least).unwrap().clone()
}

/// Returns the minimum time from objects to encoded answers, and the answers.
fn ours(at: &Path) -> (f64, Snapshot) {
    let profiles = std::fs::read_to_string(at.join("profile.yaml")).unwrap();
    let files = std::fs::read_dir(at.join("manifests")).unwrap();
    let objects = files.flat_map(|entry| {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        bench_world::read(&text, "manifests")
    });
    let world = BenchWorld::with("peer", &profiles, objects);
    let mut least = f64::MAX;
    let mut last = None;
    for _ in 0..9 {
        let began = Instant::now();
        let mut snapshot_builder = black_box(world.snapshot_builder());
        least = least.min(began.elapsed().as_secs_f64() * 1_000.0);
        last = Some(snapshot_builder.snapshot(version()));
    }
    (least, last.unwrap())
}

/// Compares the answers of all rules; returns the number of rules.
fn compare(snapshot: &Snapshot, file: &Path) -> usize {
    let text = std::fs::read_to_string(file).unwrap();
    let theirs: BTreeMap<&str, Value> = text
        .lines()
        .map(|line| {
            let (path, rules) = line.split_once('\t').unwrap();
            (path, serde_json::from_str(rules).unwrap())
        })
        .collect();
    for (name, rules) in &theirs {
        let path = PathName::parse(name).unwrap();
        let body = snapshot
            .look_up(&path)
            .unwrap_or_else(|| panic!("no path {name}"));
        let reply = v1::GetEffectivePoliciesResponse::decode(snapshot.reply(body).result).unwrap();
        let policies = reply.result.unwrap().policies;
        let own = policies.first().and_then(|policy| policy.spec_json.clone());
        let own = own.map(|spec| serde_json::from_str::<Value>(&spec).unwrap()["rules"].take());
        assert_eq!(
            &own.unwrap_or_else(|| serde_json::json!({})),
            rules,
            "{name}"
        );
    }
    theirs.len()
}

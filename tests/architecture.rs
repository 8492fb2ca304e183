//! Who may know whom. The library is divided into rooms, the top-level modules of `src/`, and a room imports only
//! what its row in `TABLE` names. The sources are read as text, so a breach is told by file and line even while
//! other parts of the crate do not compile.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test fails by panicking"
)]

#[path = "architecture/modules.rs"]
mod modules;
#[path = "architecture/proof.rs"]
mod proof;
#[path = "architecture/rooms.rs"]
mod rooms;
#[path = "architecture/source.rs"]
mod source;

use std::path::{Path, PathBuf};
use std::{fs, io};

use modules::{Tree, unreached};
use rooms::{check_rooms, dependencies, too_long};

/// One room: what of ours and which crates it may name.
struct Room {
    name: &'static str,
    rooms: &'static [&'static str],
    crates: &'static [&'static str],
    /// Synchronous and deterministic: no I/O, no clock, no threads, no knowledge of gRPC or Kubernetes clients.
    pure: bool,
}

const fn pure(
    name: &'static str,
    rooms: &'static [&'static str],
    crates: &'static [&'static str],
) -> Room {
    Room {
        name,
        rooms,
        crates,
        pure: true,
    }
}

const fn outer(
    name: &'static str,
    rooms: &'static [&'static str],
    crates: &'static [&'static str],
) -> Room {
    Room {
        name,
        rooms,
        crates,
        pure: false,
    }
}

/// Stands for everything, but for what `GUARDED` keeps to itself.
const ALL: &[&str] = &["*"];

/// The rooms from the inside out. To let a room know more is a change of the design: change the row, and
/// docs/architecture.md with it.
const TABLE: &[Room] = &[
    // Words only: everything else is written in them, so they can depend on nothing.
    pure("model", &[], &[]),
    // CEL comes from tenants; it is guarded in one place.
    pure("expr", &["model"], &["cel"]),
    // What a policy kind is, read from YAML. The only room that names policy kinds.
    pure("profile", &["model", "expr"], &["serde_saphyr"]),
    // Current objects, projected by what the profiles say is worth keeping.
    pure("store", &["model", "profile"], &["rpds"]),
    // Joins routes to listeners and matches requests; does not know that policies exist.
    pure(
        "topology",
        &["model", "store"],
        &["hashbrown", "rustc_hash", "regex"],
    ),
    // From references to nodes.
    pure(
        "attach",
        &["model", "profile", "store", "topology"],
        &["hashbrown", "rustc_hash"],
    ),
    // Folds an ordered stack; knows neither objects nor the topology.
    pure("merge", &["model", "profile", "expr"], &[]),
    // The specification and the engine: where the inner rooms meet.
    pure(
        "resolve",
        &[
            "model", "expr", "profile", "store", "topology", "attach", "merge",
        ],
        &["hashbrown", "rustc_hash"],
    ),
    // Protobuf and back; the hash is the etag of what it encodes.
    outer(
        "wire",
        &["model"],
        &["prost", "prost_types", "bytes", "sha2"],
    ),
    // What readers see; holds the world that insight asks, of the same generation.
    outer(
        "snapshot",
        &["model", "wire", "store", "resolve", "topology"],
        &[
            "prost_types",
            "arc_swap",
            "bytes",
            "hashbrown",
            "rustc_hash",
            "sha2",
            // A watch channel for each view: who follows is woken.
            "tokio",
        ],
    ),
    // Questions that people ask, answered from one snapshot for `serve` and `cli` alike.
    outer(
        "insight",
        &[
            "model", "profile", "store", "topology", "attach", "merge", "resolve", "wire",
            "snapshot",
        ],
        &["prost", "prost_types", "bytes", "hashbrown"],
    ),
    // Yields changes and interprets nothing: which kinds to watch comes in by a channel.
    outer(
        "source",
        &["model"],
        &[
            "kube",
            "http",
            "http_body",
            "sha2",
            "tower",
            "k8s_openapi",
            "serde_saphyr",
            "notify",
            "tokio",
            "tokio_stream",
            "tokio_util",
            "tracing",
        ],
    ),
    // Answers from snapshots; cannot reach the engine, so it cannot make it work.
    outer(
        "serve",
        // Rules over what Envoy asks about are CEL.
        &["model", "expr", "wire", "snapshot", "insight"],
        &[
            "hashbrown",
            "regex",
            "tonic",
            "tonic_health",
            "tonic_prost",
            "tonic_reflection",
            "tonic_types",
            "prost",
            "prost_types",
            "tower",
            "http",
            "http_body",
            "hyper",
            "hyper_util",
            "bytes",
            "rustls",
            "tokio_rustls",
            "webpki",
            "arc_swap",
            "futures_util",
            "tokio",
            "tokio_stream",
            "tokio_util",
            "tracing",
        ],
    ),
    // Asks a server what a command or a user of the library wants to know, and mirrors it.
    outer(
        "client",
        &["model", "insight", "wire"],
        &[
            "arc_swap",
            "hashbrown",
            "tonic",
            "tonic_health",
            "tonic_prost",
            "tonic_types",
            "http",
            "tokio",
        ],
    ),
    // Prints what insight says; asks a running server through the same messages.
    outer(
        "cli",
        &[
            "model", "insight", "wire", "snapshot", "profile", "app", "config", "client",
        ],
        &[
            "clap",
            "clap_complete",
            "anyhow",
            "serde_saphyr",
            "tonic",
            "tonic_health",
            "tonic_types",
            "prost",
            "prost_types",
            "http",
            "hyper_util",
            "tower",
            "tokio",
            "tokio_stream",
        ],
    ),
    // Counts and traces anything.
    outer("telemetry", ALL, ALL),
    // Settings for everything.
    outer("config", ALL, ALL),
    // The wiring: the writer task, and who talks to whom.
    outer("app", ALL, ALL),
    outer("main", ALL, ALL),
    outer("lib", ALL, ALL),
];

/// Plain data and errors: they bring no behaviour that a room has to be kept from.
const COMMON: &[&str] = &["serde", "serde_json", "thiserror"];

/// Rooms that only the named ones may import, whatever their row says. With a source in reach, a room would be
/// tempted to ask the cluster instead of the snapshot.
const GUARDED: &[(&str, &[&str])] = &[("source", &["app"])];

/// Paths that a pure room never names, beside the crates that its row leaves out.
const IMPURE: &[&[&str]] = &[
    &["std", "fs"],
    &["std", "net"],
    &["std", "thread"],
    &["std", "env"],
    &["std", "time", "Instant"],
    &["std", "time", "SystemTime"],
];

/// What a pure room may name all the same. The parser of CEL recurses deeply: it runs on a thread with a big stack
/// that is waited for, so the room stays synchronous.
const EXCUSED: &[(&str, &[&str])] = &[("expr", &["std", "thread"])];

/// Crates that are looked for even while Cargo.toml does not have them.
const WATCHED: &[&str] = &["tokio", "tonic", "kube", "prost"];

const MAX_LINES: usize = 400;

fn read_tree() -> io::Result<Tree> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut tree = Tree::new();
    let mut folders: Vec<PathBuf> = ["src", "tests", "benches", "examples"]
        .iter()
        .map(PathBuf::from)
        .collect();
    while let Some(folder) = folders.pop() {
        if !root.join(&folder).is_dir() {
            continue;
        }
        for entry in fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let source = fs::read_to_string(entry.path())?;
                tree.insert(path, source);
            }
        }
    }
    Ok(tree)
}

#[track_caller]
fn assert_none(breaches: &[String]) {
    assert!(breaches.is_empty(), "\n{}\n", breaches.join("\n"));
}

#[test]
fn rooms_import_only_what_their_rows_name() -> io::Result<()> {
    let manifest = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"))?;
    let dependencies = dependencies(&manifest);
    assert!(
        dependencies.iter().any(|name| name == "serde_json"),
        "no dependencies found: {dependencies:?}"
    );
    assert_none(&check_rooms(&read_tree()?, &dependencies));
    Ok(())
}

#[test]
fn every_file_is_compiled() -> io::Result<()> {
    assert_none(&unreached(&read_tree()?));
    Ok(())
}

#[test]
fn files_stay_short() -> io::Result<()> {
    assert_none(&too_long(&read_tree()?));
    Ok(())
}

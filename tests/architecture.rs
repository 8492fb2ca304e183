//! The order of the modules inside each package, and that every file is compiled.
//!
//! What a package may use at all is in its `Cargo.toml`; that `entail-core` has no clock, I/O or
//! threads is in `crates/core/clippy.toml`. This test checks what the compiler does not: inside a
//! package, a module imports only the modules in its row. `docs/architecture.md` has the same table.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A module and the modules of its package that it may import.
type Row = (&'static str, &'static [&'static str]);

const CORE: &[Row] = &[
    ("model", &[]),
    ("expr", &["model"]),
    ("profile", &["model", "expr"]),
    ("store", &["model", "profile"]),
    ("topology", &["model", "store"]),
    ("routing", &["model", "profile", "store", "topology"]),
    ("attach", &["model", "profile", "store", "topology"]),
    ("merge", &["model", "profile", "expr"]),
    (
        "effective",
        &[
            "model", "expr", "profile", "store", "topology", "routing", "attach", "merge",
        ],
    ),
    (
        "engine",
        &[
            "model",
            "profile",
            "store",
            "topology",
            "attach",
            "effective",
        ],
    ),
];

/// Only `app` may import `source`: every other module reads the snapshot.
const SERVER: &[Row] = &[
    ("api", &[]),
    ("snapshot", &["api", "cores"]),
    ("insight", &["api", "snapshot", "background"]),
    ("subscription", &["api", "snapshot", "insight"]),
    ("background", &["cores"]),
    ("bounded_value", &[]),
    ("cores", &[]),
    ("printable", &[]),
    ("source", &["background", "bounded_value", "cores"]),
    (
        "server",
        &[
            "api",
            "snapshot",
            "insight",
            "subscription",
            "background",
            "bounded_value",
        ],
    ),
    ("telemetry", &["snapshot", "server", "printable"]),
    ("config", &["snapshot", "insight", "server", "telemetry"]),
    (
        "app",
        &[
            "api",
            "snapshot",
            "insight",
            "subscription",
            "server",
            "background",
            "source",
            "telemetry",
            "config",
        ],
    ),
    ("verify", &["api"]),
    (
        "cli",
        &[
            "api",
            "snapshot",
            "insight",
            "verify",
            "app",
            "config",
            "printable",
        ],
    ),
];

const PACKAGES: &[(&str, &[Row])] = &[("crates/core/src", CORE), ("src", SERVER)];

/// Returns the Rust files of a module: all below its folder, or its own.
fn files_of(module: &Path) -> BTreeSet<PathBuf> {
    match module.is_dir() {
        true => sources(module),
        false => [module.with_extension("rs")].into(),
    }
}

/// Returns all Rust files below a folder.
fn sources(folder: &Path) -> BTreeSet<PathBuf> {
    let mut files = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.insert(path);
        }
    }
    files
}

/// Reads a source file without its line comments.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let lines = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or(line));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the modules after `crate::` in a source file, each once.
fn imports(code: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (_, rest) in code
        .match_indices("crate::")
        .map(|(at, text)| code.split_at(at + text.len()))
    {
        let group = rest
            .strip_prefix('{')
            .map(|rest| rest.split('}').next().unwrap_or(rest));
        let names =
            group
                .unwrap_or(rest)
                .split(',')
                .take(if group.is_some() { usize::MAX } else { 1 });
        for name in names {
            let name = name
                .trim_start()
                .split(|c: char| c != '_' && !c.is_alphanumeric());
            found.extend(name.take(1).map(str::to_owned));
        }
    }
    found
}

#[test]
fn modules_import_only_the_modules_in_their_row() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut breaches = Vec::new();
    for (folder, rows) in PACKAGES {
        for (module, allowed) in *rows {
            for file in files_of(&root.join(folder).join(module)) {
                // Tests in files of their own may use whatever they need.
                if file
                    .file_stem()
                    .is_some_and(|stem| stem.to_string_lossy().ends_with("tests"))
                {
                    continue;
                }
                for name in imports(&code(&file)) {
                    let known = rows.iter().any(|(other, _)| *other == name);
                    if known && name != *module && !allowed.contains(&&*name) {
                        breaches.push(format!(
                            "{}: `{module}` may not import `{name}`",
                            file.display()
                        ));
                    }
                }
            }
        }
        for entry in fs::read_dir(root.join(folder))
            .unwrap()
            .flatten()
            .filter(|e| e.path().is_dir())
        {
            let name = entry.file_name();
            if !rows.iter().any(|(module, _)| name == *module) {
                breaches.push(format!(
                    "{folder}/{}: the module has no row",
                    name.display()
                ));
            }
        }
    }
    assert!(breaches.is_empty(), "\n{}\n", breaches.join("\n"));
}

#[test]
fn every_file_is_declared_by_a_module() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for folder in [
        "src",
        "crates/core/src",
        "crates/client/src",
        "examples/proxy/src",
    ] {
        for file in sources(&root.join(folder)) {
            let stem = file.file_stem().unwrap().to_string_lossy().into_owned();
            // Generated files are declared or included by the `mod.rs` beside them.
            let is_generated = file
                .parent()
                .is_some_and(|parent| parent.ends_with("generated"));
            if is_generated || ["lib", "main"].contains(&&*stem) {
                continue;
            }
            let (parent, name) = match &*stem {
                "mod" => (
                    file.parent().unwrap().parent().unwrap(),
                    file.parent().unwrap().file_name().unwrap(),
                ),
                _ => (file.parent().unwrap(), file.file_stem().unwrap()),
            };
            let declaration = format!("mod {};", name.display());
            let with_path = format!("[path = \"{}\"]", file.file_name().unwrap().display());
            let beside = fs::read_dir(parent)
                .unwrap()
                .flatten()
                .map(|entry| entry.path());
            let above = parent.with_extension("rs");
            let declared = beside
                .chain([above])
                .filter(|path| {
                    path.extension().is_some_and(|extension| extension == "rs") && path.exists()
                })
                .map(|path| code(&path))
                .any(|code| code.contains(&declaration) || code.contains(&with_path));
            assert!(
                declared,
                "{}: no `{declaration}` beside or above it",
                file.display()
            );
        }
    }
}

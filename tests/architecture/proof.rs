//! That the rules would fail: small sources with a breach, and their likes without one.

use std::path::{Path, PathBuf};

use crate::modules::{Tree, unreached};
use crate::rooms::{check_file, check_rooms, dependencies, too_long};
use crate::{MAX_LINES, assert_none};

fn breaches(file: &str, source: &str) -> Vec<String> {
    check_file(
        Path::new(file),
        source,
        &[
            "tonic".to_owned(),
            "bytes".to_owned(),
            "serde_json".to_owned(),
        ],
    )
}

#[track_caller]
fn assert_breach(file: &str, source: &str, at: &str) {
    let found = breaches(file, source);
    assert!(
        found.iter().any(|breach| breach.starts_with(at)),
        "{at} not in {found:?}"
    );
}

fn tree(files: &[(&str, &str)]) -> Tree {
    files
        .iter()
        .map(|(file, source)| (PathBuf::from(file), (*source).to_owned()))
        .collect()
}

#[test]
fn a_forbidden_room_is_found_in_every_dress() {
    for source in [
        "use crate::store::World;",
        "use crate::{model::Key, store};",
        "use crate::{model::{Key, Node}, store::{self as s}};",
        "pub(in crate::model) use crate::store as s;",
        "fn f() -> crate::store::World { todo!() }",
        "use super::store::World;",
        "use entail::store::World;",
        "fn f() { let x = 'a'; let y: &'static str = r#\"\"#; crate::store::g(x, y) }",
        "#[cfg(test)] mod tests; use crate::store::World;",
    ] {
        assert_breach(
            "src/merge.rs",
            source,
            "src/merge.rs:1: `merge` may not import `store`",
        );
    }
}

#[test]
fn the_whole_crate_at_once_is_too_much() {
    assert_breach(
        "src/merge.rs",
        "use crate::*;",
        "src/merge.rs:1: `merge` imports the whole crate",
    );
}

#[test]
fn lines_and_deep_files_are_told() {
    assert_breach(
        "src/merge/fold.rs",
        "//! a\n\nuse crate::{\n    model::A,\n    topology::B,\n};",
        "src/merge/fold.rs:5: ",
    );
    assert_breach(
        "src/merge/fold.rs",
        "use super::super::store::A;",
        "src/merge/fold.rs:1: ",
    );
    assert_breach(
        "src/merge/mod.rs",
        "use super::store::A;",
        "src/merge/mod.rs:1: ",
    );
    assert_breach(
        "src/rooms/mod.rs",
        "",
        "src/rooms/mod.rs: `rooms` is no room",
    );
}

#[test]
fn crates_clocks_and_files_are_found() {
    let pure = "src/model.rs:1: `model` may not name";
    for source in [
        "use std::time::Instant;",
        "use std::time;",
        "use std::time::*;",
        "use std::{fs, io};",
        "use std::{collections::BTreeMap, time::{Duration, SystemTime}};",
        "fn f() { std::thread::spawn(|| ()); }",
        "fn f() { let _ = ::std::env::var(\"X\"); }",
    ] {
        assert_breach("src/model.rs", source, pure);
    }
    let foreign = "src/model.rs:1: `model` may not use the crate `";
    for source in [
        "use kube::Api;",
        "use tonic;",
        "use {tonic::Code};",
        "#[tokio::main] fn f() {}",
        "type A = bytes::Bytes;",
    ] {
        assert_breach("src/model.rs", source, foreign);
    }
    assert_breach(
        "src/snapshot.rs",
        "use tonic::Code;",
        "src/snapshot.rs:1: `snapshot` may not use the crate `tonic`",
    );
}

#[test]
fn only_the_wiring_reaches_a_source() {
    for file in [
        "src/serve.rs",
        "src/cli.rs",
        "src/config.rs",
        "src/telemetry.rs",
        "src/main.rs",
    ] {
        assert!(
            !breaches(file, "use crate::source::Manifests;").is_empty(),
            "{file}"
        );
    }
    assert_none(&breaches("src/app.rs", "use crate::source::Manifests;"));
}

#[test]
fn what_is_allowed_passes() {
    assert_none(&breaches(
        "src/merge/fold.rs",
        r##"
        //! See crate::store::World and std::fs.
        /* use tonic::A; /* nested */ use kube::B; */
        use crate::{expr, model::{self, Key}, profile::Profile};
        use std::{collections::BTreeMap, time::Duration};
        use serde_json::Value;
        use super::stack::Stack;
        mod bytes;
        const S: &str = "use crate::store::World; \" std::fs"; const R: &str = r#"tonic::"Code"#; const Q: char = '"';
        fn f(tonic: u8, x: bytes::Own) -> u8 { x.kube::<u8>(); tonic }
        #[cfg(test)]
        #[allow(clippy::all)]
        mod tests { use crate::store::World; use tokio::fs; }
        "##,
    ));
}

#[test]
fn a_test_module_in_its_own_file_may_reach_for_anything() {
    let sources = tree(&[
        ("src/lib.rs", "mod model;"),
        (
            "src/model.rs",
            "#[cfg(test)]\nmod fixtures;\nmod tests;\nmod key;",
        ),
        ("src/model/fixtures.rs", "use crate::store::A;"),
        ("src/model/tests.rs", "use crate::store::A;"),
        ("src/model/key.rs", "use crate::store::A;"),
    ]);
    let found = check_rooms(&sources, &[]);
    assert!(
        matches!(found.as_slice(), [one] if one.starts_with("src/model/key.rs:1: ")),
        "{found:?}"
    );
}

#[test]
fn a_file_that_nothing_declares_is_found() {
    let sources = tree(&[
        (
            "src/lib.rs",
            "mod a; mod b { mod c; } // mod lost;\n#[path = \"x/../odd.rs\"] mod d; const S: &str = \"mod lost;\";",
        ),
        ("src/main.rs", "fn main() {}"),
        ("src/a.rs", "#[cfg(test)] mod tests; mod deep;"),
        ("src/a/tests.rs", ""),
        ("src/a/deep/mod.rs", "include!(\"part.rs\");"),
        ("src/a/deep/part.rs", ""),
        ("src/b/c.rs", ""),
        ("src/odd.rs", ""),
        ("src/lost.rs", ""),
        ("src/a/deep.rs.rs", ""),
        ("tests/one.rs", "mod common;"),
        ("tests/common/mod.rs", ""),
        ("tests/helpers/mod.rs", ""),
    ]);
    let lost: Vec<String> = unreached(&sources)
        .iter()
        .filter_map(|told| told.split(':').next().map(str::to_owned))
        .collect();
    assert_eq!(
        lost,
        ["src/a/deep.rs.rs", "src/lost.rs", "tests/helpers/mod.rs"]
    );
}

#[test]
fn a_long_file_is_found() {
    let (fits, long) = ("\n".repeat(MAX_LINES), "\n".repeat(MAX_LINES + 1));
    assert_none(&too_long(&tree(&[
        ("src/a.rs", &fits),
        ("tests/a.rs", &long),
    ])));
    assert_eq!(too_long(&tree(&[("src/a.rs", &long)])).len(), 1);
}

#[test]
fn dependencies_are_read_as_rust_names_them() {
    let manifest = "[package]\nname = \"x\"\n[dependencies]\nserde-saphyr = \"2\"\nkube = { version = \"5\" }\n\
                    [dependencies.arc-swap]\nversion = \"1\"\n[target.'cfg(unix)'.dependencies]\nlibc = \"0\"\n[dev-dependencies]\nproptest = \"1\"";
    assert_eq!(
        dependencies(manifest),
        ["serde_saphyr", "kube", "arc_swap", "libc"]
    );
}

//! Tests of the manifest source: reading, problems, last good versions, and changes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test fails by panicking"
)]

#[cfg(unix)]
#[path = "manifests/mount.rs"]
mod mount;

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use entail::source::manifests::{KindScopes, Manifests, Problem, ProblemKind, Scan, read_objects};
use entail_core::model::GroupKind;
use tempfile::TempDir;

fn service(name: &str, value: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\nspec: {{v: {value}}}\n"
    )
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn manifests(paths: &[&Path]) -> Manifests {
    let paths = paths.iter().map(|path| path.to_path_buf()).collect();
    Manifests::new(paths, KindScopes::default())
}

/// The changes of a scan: `+key=v` for new and changed objects, `-key` for deleted ones.
fn changes(scan: &Scan) -> Vec<String> {
    let upserts = scan.change.upserts.iter().map(|object| {
        let value = object
            .body
            .pointer("/spec/v")
            .unwrap_or_default()
            .to_string();
        format!("+{}={value}", object.key)
    });
    let deletes = scan.change.deletes.iter().map(|key| format!("-{key}"));
    upserts.chain(deletes).collect()
}

fn kinds(scan: &Scan) -> Vec<(ProblemKind, bool)> {
    scan.problems
        .iter()
        .map(|problem| (problem.kind, problem.kept_last_good))
        .collect()
}

#[track_caller]
fn only(problems: &[Problem]) -> &Problem {
    assert_eq!(problems.len(), 1, "{problems:?}");
    &problems[0]
}

#[test]
fn the_first_scan_yields_everything_and_the_next_only_differences() {
    let dir = folder();
    fs::write(
        dir.path().join("a.yaml"),
        service("a", "1") + &service("b", "1"),
    )
    .unwrap();
    fs::create_dir(dir.path().join("sub")).unwrap();
    fs::write(
        dir.path().join("sub/c.json"),
        r#"{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "c", "namespace": "x"}}"#,
    )
    .unwrap();
    for ignored in ["notes.txt", ".hidden.yaml"] {
        fs::write(dir.path().join(ignored), "a: [").unwrap();
    }
    let mut manifests = manifests(&[dir.path()]);
    let scan = manifests.scan();
    assert_eq!(
        changes(&scan),
        [
            "+Service/default/a=1",
            "+Service/default/b=1",
            "+Service/x/c=null"
        ]
    );
    assert_eq!(
        (scan.files, scan.problems.len(), scan.is_partial()),
        (2, 0, false)
    );
    assert!(manifests.scan().change.is_empty());
    // A change within the same second and of the same length is detected. Moved objects do not
    // count as changed.
    fs::write(
        dir.path().join("a.yaml"),
        service("b", "2") + &service("a", "1"),
    )
    .unwrap();
    assert_eq!(changes(&manifests.scan()), ["+Service/default/b=2"]);
    fs::write(dir.path().join("a.yaml"), service("a", "1")).unwrap();
    assert_eq!(changes(&manifests.scan()), ["-Service/default/b"]);
    fs::remove_dir_all(dir.path().join("sub")).unwrap();
    assert_eq!(changes(&manifests.scan()), ["-Service/x/c"]);
}

#[test]
fn an_old_file_that_changes_is_read_again() {
    let dir = folder();
    let path = dir.path().join("a.yaml");
    let old = SystemTime::now() - Duration::from_secs(3600);
    let mut manifests = manifests(&[&path]);
    for value in ["1", "2", "3"] {
        fs::write(&path, service("a", value)).unwrap();
        fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(old)
            .unwrap();
        assert_eq!(
            changes(&manifests.scan()),
            [format!("+Service/default/a={value}")]
        );
    }
}

#[test]
fn a_broken_file_keeps_its_last_good_version() {
    let dir = folder();
    let path = dir.path().join("a.yaml");
    fs::write(&path, service("a", "1")).unwrap();
    let mut manifests = manifests(&[dir.path()]);
    manifests.scan();
    fs::write(&path, service("a", "[")).unwrap();
    fs::write(dir.path().join("b.yaml"), [0x61, 0x0a, 0xff]).unwrap();
    for _ in 0..2 {
        let scan = manifests.scan();
        assert!(scan.change.is_empty());
        assert_eq!(
            kinds(&scan),
            [(ProblemKind::Broken, true), (ProblemKind::Broken, false)]
        );
        assert!(scan.is_partial());
        let problems: Vec<_> = scan.problems.iter().map(Problem::to_string).collect();
        assert!(
            problems[0].contains("a.yaml:5: not valid YAML"),
            "{problems:?}"
        );
        assert!(problems[0].contains("last good version"), "{problems:?}");
        assert!(problems[1].contains("b.yaml:2: not UTF-8"), "{problems:?}");
    }
    fs::write(&path, service("a", "2")).unwrap();
    fs::remove_file(dir.path().join("b.yaml")).unwrap();
    let scan = manifests.scan();
    assert_eq!(changes(&scan), ["+Service/default/a=2"]);
    assert_eq!(scan.problems, []);
}

#[test]
fn duplicates_are_reported_and_the_later_one_wins() {
    let dir = folder();
    fs::write(dir.path().join("a.yaml"), service("x", "1")).unwrap();
    let twice =
        service("x", "2") + &service("x", "3").replace("name: x", "name: x, namespace: default");
    fs::write(dir.path().join("b.yaml"), twice).unwrap();
    let mut manifests = manifests(&[dir.path()]);
    let scan = manifests.scan();
    assert_eq!(changes(&scan), ["+Service/default/x=3"]);
    assert_eq!(kinds(&scan), [(ProblemKind::Duplicate, false); 2]);
    let problems: Vec<_> = scan.problems.iter().map(Problem::to_string).collect();
    assert!(
        problems[0].contains("b.yaml:2: Service/default/x is also at"),
        "{problems:?}"
    );
    assert!(
        problems[1].contains("b.yaml:2: this one is used"),
        "{problems:?}"
    );
    assert!(!scan.is_partial());
    fs::remove_file(dir.path().join("b.yaml")).unwrap();
    let scan = manifests.scan();
    assert_eq!(
        (changes(&scan), scan.problems),
        (vec!["+Service/default/x=1".to_owned()], vec![])
    );
}

#[test]
fn files_are_in_byte_order_of_their_paths() {
    let dir = folder();
    fs::create_dir(dir.path().join("a")).unwrap();
    for (file, value) in [("a/x.yaml", "3"), ("a-b.yaml", "1"), ("a.yaml", "2")] {
        fs::write(dir.path().join(file), service("x", value)).unwrap();
    }
    assert_eq!(
        changes(&manifests(&[dir.path()]).scan()),
        ["+Service/default/x=3"]
    );
    let one = dir.path().join("a-b.yaml");
    assert_eq!(
        changes(&manifests(&[&dir.path().join("a"), &one]).scan()),
        ["+Service/default/x=1"]
    );
}

#[test]
fn scopes_come_from_crds_profiles_and_well_known_kinds() {
    let dir = folder();
    let crd = dir.path().join("z.yaml");
    let objects = "
{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: a, namespace: n}}
---
{apiVersion: p.io/v1, kind: P, metadata: {name: b}}
---
{apiVersion: q.io/v1, kind: Q, metadata: {name: c, namespace: n}}
";
    fs::write(dir.path().join("a.yaml"), objects).unwrap();
    fs::write(&crd, "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: qs.q.io}, spec: {group: q.io, names: {kind: Q}, scope: Cluster}}").unwrap();
    let scopes = KindScopes::new([GroupKind::parse("P.p.io")].into());
    let mut manifests = Manifests::new(vec![dir.path().to_owned()], scopes);
    let crd_key = "CustomResourceDefinition.apiextensions.k8s.io/qs.q.io";
    let expected = [
        "+GatewayClass/a=null".to_owned(),
        "+P.p.io/b=null".into(),
        "+Q.q.io/c=null".into(),
    ];
    let scan = manifests.scan();
    let mut all = changes(&scan);
    all.retain(|change| !change.contains(crd_key));
    all.sort();
    assert_eq!(all, expected);
    // Without its CRD the kind is namespaced again, and the namespace in the manifest applies.
    fs::remove_file(crd).unwrap();
    let mut all = changes(&manifests.scan());
    all.sort();
    assert_eq!(
        all,
        [
            "+Q.q.io/n/c=null".to_owned(),
            format!("-{crd_key}"),
            "-Q.q.io/c".into()
        ]
    );
}

#[test]
fn objects_follow_the_defaults_of_their_crd() {
    let dir = folder();
    let (crd, policies) = (
        dir.path().join("crd.yaml"),
        dir.path().join("policies.yaml"),
    );
    let write_crd = |default: &str| {
        let schema =
            format!("{{properties: {{spec: {{default: {{}}, properties: {{v: {default}}}}}}}}}");
        let text = format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n\
             metadata: {{name: ps.p.io}}\nspec:\n  group: p.io\n  names: {{kind: P, plural: ps}}\n  \
             scope: Namespaced\n  versions:\n  - {{name: v1, storage: true, schema: \
             {{openAPIV3Schema: {schema}}}}}\n"
        );
        fs::write(&crd, text).unwrap();
    };
    let policy = |name: &str, spec: &str| {
        format!("---\napiVersion: p.io/v1\nkind: P\nmetadata: {{name: {name}}}\n{spec}\n")
    };
    let without_crd = policy("a", "") + &policy("b", "spec: {v: 5}");
    fs::write(&policies, &without_crd).unwrap();
    let mut manifests = manifests(&[dir.path()]);
    let a = "P.p.io/default/a";
    let only_a = |scan: &Scan| {
        let changes = changes(scan);
        changes
            .into_iter()
            .filter(|change| !change.contains("CustomResource"))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        changes(&manifests.scan()),
        [format!("+{a}=null"), "+P.p.io/default/b=5".to_owned()]
    );
    write_crd("{default: 1}");
    assert_eq!(only_a(&manifests.scan()), [format!("+{a}=1")]);
    // A changed default replaces the old one: files have no memory of it.
    write_crd("{default: 22}");
    assert_eq!(only_a(&manifests.scan()), [format!("+{a}=22")]);
    assert!(changes(&manifests.scan()).is_empty());
    // Another change of the files does not repeat the object.
    fs::write(dir.path().join("more.yaml"), service("s", "1")).unwrap();
    assert_eq!(changes(&manifests.scan()), ["+Service/default/s=1"]);
    fs::remove_file(&crd).unwrap();
    assert_eq!(only_a(&manifests.scan()), [format!("+{a}=null")]);
    // Defaults that an API server could not store are a problem of their object alone.
    let list = format!("{{items: {{default: {}}}}}", "x".repeat(100_000));
    write_crd(&list);
    let nulls = vec!["null"; 20].join(", ");
    fs::write(
        &policies,
        policy("c", &format!("spec: {{v: [{nulls}]}}")) + &without_crd,
    )
    .unwrap();
    let scan = manifests.scan();
    assert_eq!(kinds(&scan), [(ProblemKind::Malformed, false)]);
    let message = &only(&scan.problems).message;
    assert!(
        message.starts_with("P.p.io/default/c: the defaults of its CRD are not applied"),
        "{message}"
    );
}

#[test]
fn standard_input_is_read_once() {
    let text = service("a", "1")
        + "---\n{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {k: c2VjcmV0}}\n";
    let mut manifests = manifests(&[Path::new("-"), Path::new("-")])
        .with_stdin(Box::new(std::io::Cursor::new(text)));
    let scan = manifests.scan();
    // Of a Secret, the name alone is kept.
    assert_eq!(
        changes(&scan),
        ["+Secret/default/s=null", "+Service/default/a=1"]
    );
    assert!(!format!("{:?}", scan.change.upserts[0]).contains("c2VjcmV0"));
    let location = scan.change.upserts[1].location.as_ref();
    assert_eq!(location.unwrap().to_string(), "<stdin>:2");
    let again = manifests.scan();
    assert!(again.change.is_empty() && again.files == 1);
}

#[test]
fn numbers_are_kept_as_api_servers_keep_them() {
    for number in [
        "18446744073709551615",
        "-9223372036854775808",
        "1.2345678901234568e+29",
    ] {
        let parsed = read_objects(&service("a", number), "a");
        assert_eq!(
            parsed.objects[0].object.body.value()["spec"]["v"].to_string(),
            number
        );
    }
    let parsed = read_objects(&service("a", ".inf"), "a.yaml");
    let problem = parsed.problems[0].to_string();
    assert!(
        problem.starts_with("a.yaml:5: infinity and not-a-number"),
        "{problem}"
    );
}

#[test]
fn a_malicious_file_does_not_affect_others() {
    let dir = folder();
    fs::write(dir.path().join("deep.yaml"), "[".repeat(100_000)).unwrap();
    let mut laughs = "a: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for i in 1..30 {
        laughs += &format!("b{i}: &a{i} [{}]\n", format!("*a{}, ", i - 1).repeat(9));
    }
    fs::write(dir.path().join("laughs.yaml"), laughs).unwrap();
    fs::write(dir.path().join("twice.yaml"), "a: 1\na: 1\n").unwrap();
    fs::write(dir.path().join("x.yaml"), service("x", "1")).unwrap();
    let large = fs::File::create(dir.path().join("large.yaml")).unwrap();
    large.set_len(65 * 1024 * 1024).unwrap();
    let scan = manifests(&[dir.path()]).scan();
    assert_eq!(changes(&scan), ["+Service/default/x=1"]);
    assert_eq!(kinds(&scan), [(ProblemKind::Broken, false); 4]);
}

#[cfg(unix)]
mod unix {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    use super::mount::publish;
    use super::*;

    #[test]
    fn a_mounted_config_map_is_read_through_its_links() {
        let mount = folder();
        let first = [
            ("a.yaml", service("a", "1")),
            ("sub/b.yaml", service("b", "1")),
        ];
        publish(mount.path(), "..2024_1", &first);
        let mut manifests = manifests(&[mount.path()]);
        let scan = manifests.scan();
        assert_eq!(
            changes(&scan),
            ["+Service/default/a=1", "+Service/default/b=1"]
        );
        assert_eq!((scan.files, scan.problems.len()), (2, 0));
        publish(mount.path(), "..2024_2", &[("a.yaml", service("a", "2"))]);
        let scan = manifests.scan();
        assert_eq!(
            changes(&scan),
            ["+Service/default/a=2", "-Service/default/b"]
        );
    }

    #[test]
    fn cyclic_links_are_followed_once() {
        let dir = folder();
        fs::create_dir(dir.path().join("sub")).unwrap();
        fs::write(dir.path().join("sub/a.yaml"), service("a", "1")).unwrap();
        symlink(dir.path(), dir.path().join("sub/up")).unwrap();
        symlink("sub", dir.path().join("again")).unwrap();
        symlink("self.yaml", dir.path().join("self.yaml")).unwrap();
        symlink("nowhere", dir.path().join("lost.yaml")).unwrap();
        let scan = manifests(&[dir.path()]).scan();
        assert_eq!((changes(&scan).len(), scan.files), (1, 1));
        assert_eq!(kinds(&scan), [(ProblemKind::Unreadable, false); 2]);
    }

    #[test]
    fn file_names_that_are_not_unicode_are_reported_lossily() {
        let dir = folder();
        fs::write(
            dir.path().join(OsStr::from_bytes(b"\xff.yaml")),
            service("a", "1"),
        )
        .unwrap();
        fs::write(dir.path().join(OsStr::from_bytes(b"\xfe.yaml")), "a: [").unwrap();
        fs::create_dir(dir.path().join(OsStr::from_bytes(b"\xfd"))).unwrap();
        let scan = manifests(&[dir.path()]).scan();
        assert_eq!(changes(&scan), ["+Service/default/a=1"]);
        assert!(only(&scan.problems).path.ends_with("\u{fffd}.yaml"));
    }

    #[test]
    fn a_missing_root_keeps_its_last_good_version() {
        let dir = folder();
        let (root, file) = (dir.path().join("root"), dir.path().join("f.yaml"));
        fs::create_dir(&root).unwrap();
        fs::write(root.join("a.yaml"), service("a", "1")).unwrap();
        fs::write(&file, service("f", "1")).unwrap();
        let mut manifests = manifests(&[&root, &file]);
        manifests.scan();
        fs::rename(&root, dir.path().join("away")).unwrap();
        let scan = manifests.scan();
        assert!(scan.change.is_empty());
        assert_eq!(kinds(&scan), [(ProblemKind::Unreadable, true)]);
        // A missing file is reported, and its objects are deleted.
        fs::remove_file(&file).unwrap();
        let scan = manifests.scan();
        assert_eq!(changes(&scan), ["-Service/default/f"]);
        assert_eq!(
            kinds(&scan),
            [
                (ProblemKind::Unreadable, false),
                (ProblemKind::Unreadable, true)
            ]
        );
    }
}

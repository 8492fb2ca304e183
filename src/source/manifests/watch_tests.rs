#[cfg(unix)]
#[path = "../../../tests/manifests/mount.rs"]
mod mount;

use std::fs;
use std::path::PathBuf;

use super::super::{KindScopes, ProblemKind};
use super::*;

fn service(name: &str, value: &str) -> String {
    format!("apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\nspec: {{v: {value}}}\n")
}

/// Formats a change: `+key=v` for a new or changed object, `-key` for a deleted one.
fn changes(scan: &Scan) -> Vec<String> {
    let upserts = scan.change.upserts.iter().map(|object| {
        let value = object.body.pointer("/spec/v").unwrap_or_default();
        format!("+{}={value}", object.key)
    });
    let deletes = scan.change.deletes.iter().map(|key| format!("-{key}"));
    upserts.chain(deletes).collect()
}

fn kinds(scan: &Scan) -> Vec<(ProblemKind, bool)> {
    let problems = scan.problems.iter();
    problems
        .map(|problem| (problem.kind, problem.kept_last_good))
        .collect()
}

/// Returns the next scan of a watch; `None` if there is none within two seconds.
async fn next(scans: &mut mpsc::Receiver<Scan>) -> Option<Scan> {
    tokio::time::timeout(Duration::from_secs(2), scans.recv())
        .await
        .ok()
        .flatten()
}

/// Watches the paths, with an interval of polling that is too long to be observed.
async fn follow(paths: Vec<PathBuf>) -> mpsc::Receiver<Scan> {
    let (tx, mut scans) = mpsc::channel(1);
    let manifests = Manifests::new(paths, KindScopes::default());
    tokio::spawn(watch(manifests, tx, Duration::from_secs(3600)));
    next(&mut scans).await.unwrap();
    // Directories are watched only after they are read.
    tokio::time::sleep(Duration::from_millis(300)).await;
    scans
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_sends_changes_after_events() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.yaml");
    let mut scans = follow(vec![dir.path().to_owned()]).await;
    fs::write(&path, service("a", "1")).unwrap();
    assert_eq!(
        changes(&next(&mut scans).await.unwrap()),
        ["+Service/default/a=1"]
    );
    fs::write(&path, "a: [").unwrap();
    assert_eq!(
        kinds(&next(&mut scans).await.unwrap()),
        [(ProblemKind::Broken, true)]
    );
    fs::write(dir.path().join("new"), service("a", "2")).unwrap();
    fs::rename(dir.path().join("new"), &path).unwrap();
    assert_eq!(
        changes(&next(&mut scans).await.unwrap()),
        ["+Service/default/a=2"]
    );
    fs::create_dir_all(dir.path().join("sub/deep")).unwrap();
    fs::write(dir.path().join("sub/deep/b.yaml"), service("b", "1")).unwrap();
    assert_eq!(
        changes(&next(&mut scans).await.unwrap()),
        ["+Service/default/b=1"]
    );
    fs::write(dir.path().join("sub/deep/b.yaml"), service("b", "2")).unwrap();
    assert_eq!(
        changes(&next(&mut scans).await.unwrap()),
        ["+Service/default/b=2"]
    );
    fs::remove_dir_all(dir.path().join("sub")).unwrap();
    assert_eq!(
        changes(&next(&mut scans).await.unwrap()),
        ["-Service/default/b"]
    );
    fs::create_dir_all(dir.path().join("sub/deep")).unwrap();
    fs::write(dir.path().join("sub/deep/b.yaml"), service("b", "3")).unwrap();
    assert_eq!(
        changes(&next(&mut scans).await.unwrap()),
        ["+Service/default/b=3"]
    );
    // Reading causes no event, so no further scan is sent.
    assert!(
        tokio::time::timeout(Duration::from_millis(500), scans.recv())
            .await
            .is_err()
    );
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_watch_follows_config_maps_and_single_files() {
    let mount = tempfile::tempdir().unwrap();
    mount::publish(
        mount.path(),
        "..1",
        &[("a.yaml", service("a", "1")), ("b.yaml", service("b", "1"))],
    );
    let single = tempfile::tempdir().unwrap();
    let file = single.path().join("f.yaml");
    fs::write(&file, service("f", "1")).unwrap();
    let mut scans = follow(vec![mount.path().to_owned(), file.clone()]).await;
    mount::publish(
        mount.path(),
        "..2",
        &[("a.yaml", service("a", "2")), ("b.yaml", service("b", "1"))],
    );
    assert_eq!(
        changes(&next(&mut scans).await.unwrap()),
        ["+Service/default/a=2"]
    );
    fs::remove_file(&file).unwrap();
    assert_eq!(
        changes(&next(&mut scans).await.unwrap()),
        ["-Service/default/f"]
    );
    fs::write(&file, service("f", "2")).unwrap();
    assert_eq!(
        changes(&next(&mut scans).await.unwrap()),
        ["+Service/default/f=2"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_polls_and_returns_when_the_receiver_is_closed() {
    let dir = tempfile::tempdir().unwrap();
    // Neither the path nor its parent directory exists, so nothing can be watched yet.
    let path = dir.path().join("not/yet");
    let (tx, mut scans) = mpsc::channel(1);
    let manifests = Manifests::new(vec![path.clone()], KindScopes::default());
    let task = tokio::spawn(watch(manifests, tx, Duration::from_secs(2)));
    assert!(next(&mut scans).await.unwrap().is_partial());
    fs::create_dir_all(&path).unwrap();
    fs::write(path.join("a.yaml"), service("a", "1")).unwrap();
    let mut actual = Vec::new();
    while actual.is_empty() {
        actual = changes(&next(&mut scans).await.unwrap());
    }
    assert_eq!(actual, ["+Service/default/a=1"]);
    drop(scans);
    tokio::time::timeout(Duration::from_secs(2), task)
        .await
        .unwrap()
        .unwrap();
}

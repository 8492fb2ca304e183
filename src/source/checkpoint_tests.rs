use super::*;
use crate::source::manifests::read_objects;

fn example() -> Checkpoint {
    let text = "{apiVersion: p.io/v1, kind: P, metadata: {name: a, namespace: x}, \
                spec: {big: 12345678901234567890.5}}";
    let read = read_objects(text, "a.yaml").objects;
    Checkpoint {
        source: source(Some("one"), "https://cluster", ""),
        synced_at: SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_123),
        states: BTreeMap::from([
            (GroupKind::new("p.io", "P"), SourceState::Complete),
            (GroupKind::new("", "Service"), SourceState::Forbidden),
        ]),
        objects: read.into_iter().map(|read| Arc::new(read.object)).collect(),
    }
}

fn source(cluster_uid: Option<&str>, url: &str, filter: &str) -> CheckpointSource {
    CheckpointSource {
        cluster_uid: cluster_uid.map(str::to_owned),
        url: url.to_owned(),
        filter: filter.to_owned(),
    }
}

/// Reads a checkpoint that may be used for a source.
fn read_for(
    path: &Path,
    expected: &CheckpointSource,
) -> Result<Option<Checkpoint>, CheckpointError> {
    let read = Checkpoint::read(path)?;
    let checked = read.as_ref().map(|read| read.source.check(expected));
    checked.transpose()?;
    Ok(read)
}

fn written() -> (tempfile::TempDir, PathBuf, Checkpoint) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint.yaml");
    let checkpoint = example();
    checkpoint.write(&path).unwrap();
    (folder, path, checkpoint)
}

#[test]
fn a_written_checkpoint_is_read_back() {
    let (folder, path, checkpoint) = written();
    let read = read_for(&path, &checkpoint.source).unwrap().unwrap();
    assert_eq!(read.objects[0].body, checkpoint.objects[0].body);
    assert_eq!(read.objects[0].key, checkpoint.objects[0].key);
    assert_eq!(read.states, checkpoint.states);
    assert_eq!(read.synced_at, checkpoint.synced_at);
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    // A checkpoint is also a valid manifest.
    let text = fs::read_to_string(&path).unwrap();
    let parsed = read_objects(&text, "checkpoint.yaml");
    assert_eq!(parsed.objects.len(), 1);
}

#[test]
fn a_second_checkpoint_replaces_the_first() {
    let (_folder, path, mut checkpoint) = written();
    // A temporary file that an earlier process left behind is overwritten.
    fs::write(temporary_path(&path), "half").unwrap();
    checkpoint.objects.clear();
    checkpoint.write(&path).unwrap();
    let read = read_for(&path, &checkpoint.source).unwrap().unwrap();
    assert!(read.objects.is_empty());
}

#[test]
fn truncated_and_changed_files_are_rejected() {
    let (_folder, path, checkpoint) = written();
    let whole = fs::read(&path).unwrap();
    for end in 0..whole.len() {
        fs::write(&path, &whole[..end]).unwrap();
        let read = read_for(&path, &checkpoint.source);
        assert!(
            matches!(read, Err(CheckpointError::Corrupt)),
            "{end} of {}",
            whole.len()
        );
    }
    for at in (0..whole.len()).step_by(7) {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        fs::write(&path, &changed).unwrap();
        assert!(read_for(&path, &checkpoint.source).is_err(), "{at}");
    }
}

#[test]
fn a_checkpoint_of_another_source_is_rejected_and_a_missing_file_is_none() {
    let (_folder, path, checkpoint) = written();
    // The UID decides. The URL does only while the UID is not known.
    for (uid, url, filter, is_used) in [
        (Some("one"), "https://cluster", "", true),
        (Some("one"), "https://other", "", true),
        (Some("two"), "https://cluster", "", false),
        (None, "https://cluster", "", true),
        (None, "https://other", "", false),
        (Some("one"), "https://cluster", "namespace a", false),
    ] {
        let read = read_for(&path, &source(uid, url, filter));
        match read {
            Ok(Some(_)) => assert!(is_used, "{uid:?} {url} {filter}"),
            Err(CheckpointError::OtherSource(_)) => assert!(!is_used, "{uid:?} {url} {filter}"),
            other => panic!("{other:?}"),
        }
    }
    fs::remove_file(&path).unwrap();
    assert!(read_for(&path, &checkpoint.source).unwrap().is_none());
}

#[test]
fn a_checkpoint_without_a_cluster_is_not_used_for_a_known_one() {
    let (_folder, path, mut checkpoint) = written();
    checkpoint.source.cluster_uid = None;
    checkpoint.write(&path).unwrap();
    let read = read_for(&path, &source(Some("one"), "https://cluster", ""));
    assert!(
        matches!(read, Err(CheckpointError::OtherSource(_))),
        "{read:?}"
    );
}

#[test]
fn links_and_pipes_are_not_followed() {
    let (folder, path, mut checkpoint) = written();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let pipe = folder.path().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    for other in [&link, &pipe, &folder.path().to_owned()] {
        let read = read_for(other, &checkpoint.source);
        assert!(matches!(read, Err(CheckpointError::NotRegular)), "{read:?}");
    }
    // Writing replaces a link, and not the file that it names. Neither is a link at the temporary path followed.
    let victim = folder.path().join("victim");
    fs::write(&victim, "as it was").unwrap();
    std::os::unix::fs::symlink(&victim, temporary_path(&link)).unwrap();
    checkpoint.objects.clear();
    checkpoint.write(&link).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_file());
    assert_eq!(fs::read_to_string(&victim).unwrap(), "as it was");
    let kept = read_for(&path, &checkpoint.source).unwrap().unwrap();
    assert_eq!(kept.objects.len(), 1);
}

#[test]
fn a_checkpoint_of_another_format_is_named_as_such() {
    let (_folder, path, checkpoint) = written();
    let whole = fs::read_to_string(&path).unwrap();
    fs::write(&path, whole.replace("checkpoint 2 sha", "checkpoint 1 sha")).unwrap();
    let error = read_for(&path, &checkpoint.source).unwrap_err();
    assert!(
        error.to_string().contains("version 1, expected 2"),
        "{error}"
    );
}

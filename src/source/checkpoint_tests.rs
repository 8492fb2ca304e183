use super::*;
use crate::source::manifests::read_objects;

fn example() -> Checkpoint {
    let text = "{apiVersion: p.io/v1, kind: P, metadata: {name: a, namespace: x}, \
                spec: {big: 12345678901234567890.5}}";
    let read = read_objects(text, "a.yaml").objects;
    Checkpoint {
        source: "https://cluster".to_owned(),
        synced_at: SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_123),
        states: BTreeMap::from([
            (GroupKind::new("p.io", "P"), SourceState::Complete),
            (GroupKind::new("", "Service"), SourceState::Forbidden),
        ]),
        objects: read.into_iter().map(|read| Arc::new(read.object)).collect(),
    }
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
    let read = Checkpoint::read(&path, &checkpoint.source)
        .unwrap()
        .unwrap();
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
    let read = Checkpoint::read(&path, &checkpoint.source)
        .unwrap()
        .unwrap();
    assert!(read.objects.is_empty());
}

#[test]
fn truncated_and_changed_files_are_rejected() {
    let (_folder, path, checkpoint) = written();
    let whole = fs::read(&path).unwrap();
    for end in 0..whole.len() {
        fs::write(&path, &whole[..end]).unwrap();
        let read = Checkpoint::read(&path, &checkpoint.source);
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
        assert!(Checkpoint::read(&path, &checkpoint.source).is_err(), "{at}");
    }
}

#[test]
fn a_checkpoint_of_another_source_is_rejected_and_a_missing_file_is_none() {
    let (_folder, path, checkpoint) = written();
    let read = Checkpoint::read(&path, "https://other");
    assert!(
        matches!(read, Err(CheckpointError::OtherSource(_))),
        "{read:?}"
    );
    fs::remove_file(&path).unwrap();
    assert!(
        Checkpoint::read(&path, &checkpoint.source)
            .unwrap()
            .is_none()
    );
}

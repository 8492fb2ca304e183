//! What stands in a file, and in which state it was read.

use std::fs::{File, Metadata};
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::limits::Limits;

/// A file that was changed so shortly before it was read may change again without a new time:
/// some file systems count in steps of two seconds.
const TIME_STEP: Duration = Duration::from_secs(2);

/// What tells one state of a file from another without reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileFingerprint {
    length: u64,
    modified: Option<SystemTime>,
    /// Device, inode and time of the last change of either; zeros where there are none.
    node: (u64, u64, i64, i64),
}

/// What a file holds.
pub(super) struct FileContent {
    /// Its text, or why there is none.
    pub text: Result<Vec<u8>, String>,
    pub state: FileState,
}

/// In which state a file was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileState {
    /// `None` for streams.
    pub fingerprint: Option<FileFingerprint>,
    /// Whether the stamp is old enough to tell a later change.
    pub stable: bool,
    /// Of the content.
    pub hash: u64,
}

/// Why nothing could be read.
pub(super) enum ReadError {
    /// The file is gone.
    Gone,
    /// It cannot be read.
    Unreadable(String),
}

impl FileFingerprint {
    /// Of a file now.
    pub fn of(metadata: &Metadata) -> Self {
        Self {
            length: metadata.len(),
            modified: metadata.modified().ok(),
            node: node_of(metadata),
        }
    }

    /// Whether a change after this moment would show.
    fn is_stable(&self, now: SystemTime) -> bool {
        let (_, _, seconds, _) = self.node;
        let changed = u64::try_from(seconds).unwrap_or(0);
        let changed = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(changed));
        let stable = |time: Option<SystemTime>| {
            let age = time.and_then(|time| now.duration_since(time).ok());
            age.is_some_and(|age| age > TIME_STEP)
        };
        stable(self.modified) && stable(changed)
    }
}

#[cfg(unix)]
fn node_of(metadata: &Metadata) -> (u64, u64, i64, i64) {
    use std::os::unix::fs::MetadataExt;
    (
        metadata.dev(),
        metadata.ino(),
        metadata.ctime(),
        metadata.ctime_nsec(),
    )
}

#[cfg(not(unix))]
fn node_of(_: &Metadata) -> (u64, u64, i64, i64) {
    (0, 0, 0, 0)
}

/// Reads a regular file.
///
/// # Errors
/// It is gone or cannot be read.
pub(super) fn read_file(path: &Path, limits: Limits) -> Result<FileContent, ReadError> {
    let now = SystemTime::now();
    let open = File::open(path).and_then(|file| file.metadata().map(|metadata| (file, metadata)));
    let (file, metadata) = open.map_err(|error| io_error(&error))?;
    if !metadata.is_file() {
        // It has become something else since it was listed; the next look will tell.
        return Err(ReadError::Gone);
    }
    let fingerprint = FileFingerprint::of(&metadata);
    let stable = fingerprint.is_stable(now);
    read_content(file, Some(fingerprint), stable, limits)
}

/// Reads a stream to its end.
///
/// # Errors
/// It cannot be read.
pub(super) fn read_stream(stream: impl Read, limits: Limits) -> Result<FileContent, ReadError> {
    read_content(stream, None, true, limits)
}

/// Reads a pipe given as a path.
///
/// # Errors
/// It is gone or cannot be read.
pub(super) fn read_pipe(path: &Path, limits: Limits) -> Result<FileContent, ReadError> {
    read_stream(File::open(path).map_err(|error| io_error(&error))?, limits)
}

fn io_error(error: &io::Error) -> ReadError {
    if error.kind() == io::ErrorKind::NotFound {
        ReadError::Gone
    } else {
        ReadError::Unreadable(format!("cannot be read: {error}: correct its permissions"))
    }
}

fn read_content(
    from: impl Read,
    fingerprint: Option<FileFingerprint>,
    stable: bool,
    limits: Limits,
) -> Result<FileContent, ReadError> {
    let mut bytes = Vec::new();
    let most = limits.bytes();
    let one_more = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    from.take(one_more)
        .read_to_end(&mut bytes)
        .map_err(|error| io_error(&error))?;
    let mut hasher = DefaultHasher::new();
    hasher.write(&bytes);
    let hash = hasher.finish();
    let text = if bytes.len() > most {
        Err(limits.too_long())
    } else {
        Ok(bytes)
    };
    let state = FileState {
        fingerprint,
        stable,
        hash,
    };
    Ok(FileContent { text, state })
}

//! Reads files and records fingerprints by which changes are detected.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::limits::Limits;
use super::read::hash_of;

/// Resolution of timestamps on coarse file systems. A file that changed within this time before it
/// was read may change again without a new timestamp.
const TIME_STEP: Duration = Duration::from_secs(2);

/// Metadata that changes whenever a file changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileFingerprint {
    length: u64,
    modified: Option<SystemTime>,
    /// Device, inode and time of the last status change; zeros on systems without them.
    node: (u64, u64, i64, i64),
}

/// The content of a file and the state that it was read in.
pub(super) struct FileContent {
    /// The text, or why it is not used.
    pub text: Result<Vec<u8>, String>,
    pub state: FileState,
}

/// The state of a file when it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileState {
    /// The fingerprint; `None` for streams.
    pub fingerprint: Option<FileFingerprint>,
    /// Whether any later change alters the fingerprint.
    pub stable: bool,
    /// The hash of the content.
    pub hash: u64,
}

/// Why a file could not be read.
pub(super) enum ReadError {
    /// The file does not exist any more.
    Gone,
    /// The file cannot be read; with the message.
    Unreadable(String),
}

impl FileFingerprint {
    /// Creates the fingerprint of a file from its metadata.
    pub fn of(metadata: &Metadata) -> Self {
        Self {
            length: metadata.len(),
            modified: metadata.modified().ok(),
            node: node_of(metadata),
        }
    }

    /// Returns whether a change after `now` alters the fingerprint.
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
/// The file does not exist any more or cannot be read.
pub(super) fn read_file(path: &Path, limits: Limits) -> Result<FileContent, ReadError> {
    let now = SystemTime::now();
    let open = File::open(path).and_then(|file| file.metadata().map(|metadata| (file, metadata)));
    let (file, metadata) = open.map_err(|error| io_error(&error))?;
    if !metadata.is_file() {
        // The path was replaced after it was listed; the next scan reads it.
        return Err(ReadError::Gone);
    }
    let fingerprint = FileFingerprint::of(&metadata);
    let stable = fingerprint.is_stable(now);
    read_content(file, Some(fingerprint), stable, limits)
}

/// Reads a stream to its end.
///
/// # Errors
/// The stream cannot be read.
pub(super) fn read_stream(stream: impl Read, limits: Limits) -> Result<FileContent, ReadError> {
    read_content(stream, None, true, limits)
}

/// Reads a pipe given as a path.
///
/// # Errors
/// The file does not exist any more or cannot be read.
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
    let most = limits.bytes();
    let length = fingerprint.as_ref().map_or(0, |known| known.length);
    // One byte more, so that the end is found without more room.
    let length = usize::try_from(length).map_or(most, |length| length.min(most));
    let mut bytes = Vec::new();
    // Without so much memory, reading fails.
    let _ = bytes.try_reserve_exact(length.saturating_add(1));
    let one_more = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    from.take(one_more)
        .read_to_end(&mut bytes)
        .map_err(|error| io_error(&error))?;
    let hash = hash_of(&bytes);
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

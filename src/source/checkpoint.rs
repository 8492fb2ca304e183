//! Checkpoints of a source on disk, from which a restarted server answers at once.
//!
//! A checkpoint is a manifest of `kind: List` with the objects, and the [`SourceState`] of each kind.
//! The last line is a YAML comment with the checksum of everything before it; a file without a valid
//! checksum is not used. A checkpoint is written to a temporary file in the same directory, synced,
//! and renamed. Only the owner can read it.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::object::parse_object;
use entail_core::model::{GroupKind, Object, SourceState};

/// Prefix of the checksum line, with the version of the format.
const CHECKSUM_PREFIX: &str = "# entail checkpoint 1 sha256:";
/// File mode: the specs of objects may be confidential.
const MODE: u32 = 0o600;

/// The objects and states of a source at a point in time.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// Identity of the source; a checkpoint of another source is not used.
    pub source: String,
    /// When the source was last in sync.
    pub synced_at: SystemTime,
    /// State of each kind.
    pub states: BTreeMap<GroupKind, SourceState>,
    /// All objects.
    pub objects: Vec<Arc<Object>>,
}

/// Why a checkpoint cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The file cannot be read or written.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The file is truncated or was changed.
    #[error("the checksum does not match the content")]
    Corrupt,
    /// The checksum is valid, but the content is not a checkpoint of this version.
    #[error("unsupported or malformed checkpoint: {0}")]
    InvalidFormat(String),
    /// The checkpoint belongs to another source.
    #[error("checkpoint of another source: `{0}`")]
    OtherSource(String),
}

/// A writer that hashes what it writes.
struct HashingWriter<W> {
    out: W,
    hash: Sha256,
}

impl<W: Write> Write for HashingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hash.update(bytes.get(..written).unwrap_or_default());
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Checkpoint {
    /// Writes the checkpoint atomically: a reader finds the previous checkpoint or this one.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written, synced or renamed.
    pub fn write(&self, path: &Path) -> Result<(), CheckpointError> {
        let temporary = temporary_path(path);
        match fs::remove_file(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let mut options = OpenOptions::new();
        let file = options
            .write(true)
            .create_new(true)
            .mode(MODE)
            .open(&temporary)?;
        // The umask may have removed bits.
        file.set_permissions(Permissions::from_mode(MODE))?;
        let mut hashing = HashingWriter {
            out: BufWriter::new(&file),
            hash: Sha256::new(),
        };
        self.content(&mut hashing)?;
        let HashingWriter { mut out, hash } = hashing;
        writeln!(out, "{CHECKSUM_PREFIX}{}", hex(&hash.finalize()))?;
        out.flush()?;
        drop(out);
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        // The rename is durable once the directory is synced.
        let directory = path
            .parent()
            .filter(|directory| !directory.as_os_str().is_empty());
        File::open(directory.unwrap_or(Path::new(".")))?.sync_all()?;
        Ok(())
    }

    /// Writes everything before the checksum, one object per line.
    fn content(&self, out: &mut impl Write) -> Result<(), CheckpointError> {
        let to_io_error = |error: serde_json::Error| CheckpointError::Io(error.into());
        let since = self.synced_at.duration_since(SystemTime::UNIX_EPOCH);
        let millis = since.unwrap_or_default().as_millis();
        let states = self.states.iter();
        let states: BTreeMap<String, &str> = states
            .map(|(kind, state)| (kind.to_string(), state.name()))
            .collect();
        // What stands for objects that could not be read must not pass for whole ones.
        let unreadable = self.objects.iter().enumerate();
        let unreadable: BTreeMap<String, &str> = unreadable
            .filter_map(|(number, object)| {
                Some((number.to_string(), &**object.unreadable.as_ref()?))
            })
            .collect();
        let head = json!({
            "of": self.source,
            "syncedAtMillis": u64::try_from(millis).unwrap_or(u64::MAX),
            "states": states,
            "unreadable": unreadable,
        });
        write!(
            out,
            "{{\"apiVersion\":\"v1\",\"kind\":\"List\",\"metadata\":{{}},\"entail\":"
        )?;
        serde_json::to_writer(&mut *out, &head).map_err(to_io_error)?;
        write!(out, ",\"items\":[")?;
        for (number, object) in self.objects.iter().enumerate() {
            out.write_all(if number == 0 { b"\n" } else { b",\n" })?;
            serde_json::to_writer(&mut *out, &object.body).map_err(to_io_error)?;
        }
        out.write_all(b"\n]}\n")?;
        Ok(())
    }

    /// Reads the checkpoint of a source; returns `None` if the file does not exist.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, is corrupt or malformed, or belongs to another
    /// source.
    pub fn read(path: &Path, expected_source: &str) -> Result<Option<Self>, CheckpointError> {
        let bytes = match fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read?,
        };
        let mut list: Value = serde_json::from_slice(verify_checksum(&bytes)?)
            .map_err(|error| CheckpointError::InvalidFormat(error.to_string()))?;
        let head = list.get("entail").cloned().unwrap_or_default();
        let source = head.get("of").and_then(Value::as_str).unwrap_or_default();
        if source != expected_source {
            return Err(CheckpointError::OtherSource(source.to_owned()));
        }
        let source = source.to_owned();
        let malformed = |problem: &str| CheckpointError::InvalidFormat(problem.to_owned());
        let millis = head.get("syncedAtMillis").and_then(Value::as_u64);
        let since = millis.map(Duration::from_millis);
        let synced_at = since.and_then(|since| SystemTime::UNIX_EPOCH.checked_add(since));
        let states = head.get("states").and_then(Value::as_object);
        let states = states.ok_or_else(|| malformed("`states` is missing"))?;
        let states = states.iter().map(|(kind, state)| {
            let state = state.as_str().and_then(SourceState::parse);
            let state = state.ok_or_else(|| malformed("unknown state"))?;
            Ok((GroupKind::parse(kind), state))
        });
        let states: Result<_, CheckpointError> = states.collect();
        let items = list.get_mut("items").and_then(Value::as_array_mut);
        let items = items.ok_or_else(|| malformed("`items` is missing"))?;
        let mut objects = Vec::with_capacity(items.len());
        let unreadable = head.get("unreadable").and_then(Value::as_object);
        for (number, item) in items.drain(..).enumerate() {
            let object = parse_object(item, None)
                .map_err(|invalid| CheckpointError::InvalidFormat(invalid.message))?;
            let reason = unreadable.and_then(|all| all.get(&number.to_string())?.as_str());
            let object = object.map(|object| Object {
                unreadable: reason.map(Into::into),
                ..object
            });
            objects.extend(object.map(Arc::new));
        }
        Ok(Some(Self {
            source,
            synced_at: synced_at.ok_or_else(|| malformed("`syncedAtMillis` is missing"))?,
            states: states?,
            objects,
        }))
    }
}

/// Verifies the checksum line and returns the content before it.
fn verify_checksum(bytes: &[u8]) -> Result<&[u8], CheckpointError> {
    let body = bytes.strip_suffix(b"\n").ok_or(CheckpointError::Corrupt)?;
    let end = body.iter().rposition(|byte| *byte == b'\n');
    let (content, checksum) = end
        .and_then(|end| body.split_at_checked(end + 1))
        .ok_or(CheckpointError::Corrupt)?;
    let checksum = checksum
        .strip_prefix(CHECKSUM_PREFIX.as_bytes())
        .ok_or(CheckpointError::Corrupt)?;
    if hex(&Sha256::digest(content)).as_bytes() == checksum {
        Ok(content)
    } else {
        Err(CheckpointError::Corrupt)
    }
}

/// Path of the file that is written before it is renamed to `path`.
fn temporary_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
#[path = "checkpoint_tests.rs"]
mod tests;

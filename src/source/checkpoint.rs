//! What was known last, on a disk: the objects as a manifest of `kind: List`, and how much was known
//! of each kind. A server that starts answers from it at once.
//!
//! The last line is a YAML comment with a checksum of all before it: a file without it is torn. A
//! file is written beside its place, synced, and renamed; only its owner may read it.

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

/// Before the checksum. Another number stands for another form.
const CHECKSUM_PREFIX: &str = "# entail checkpoint 1 sha256:";
/// Who may read it: specs are nobody else's business.
const MODE: u32 = 0o600;

/// What was known.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// Of which source: one that follows another takes it for foreign.
    pub source: String,
    /// When all was in step.
    pub synced_at: SystemTime,
    /// The kinds, and how much was known of each.
    pub states: BTreeMap<GroupKind, SourceState>,
    /// The objects.
    pub objects: Vec<Arc<Object>>,
}

/// Why a checkpoint is not used.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// It cannot be read or written.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It ends early, or was changed.
    #[error("it is torn or was changed: its checksum is not that of its content")]
    Corrupt,
    /// It is whole and says something else than it should.
    #[error("it is no checkpoint of this version: {0}")]
    InvalidFormat(String),
    /// It is of another source.
    #[error("it is foreign: it is of `{0}`")]
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
    /// Writes it: whoever reads the path finds the one before or this one, whole.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn write(&self, path: &Path) -> Result<(), CheckpointError> {
        let beside = temporary_path(path);
        match fs::remove_file(&beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let mut options = OpenOptions::new();
        let file = options
            .write(true)
            .create_new(true)
            .mode(MODE)
            .open(&beside)?;
        // Whatever the umask takes away.
        file.set_permissions(Permissions::from_mode(MODE))?;
        let mut sealed = HashingWriter {
            out: BufWriter::new(&file),
            hash: Sha256::new(),
        };
        self.content(&mut sealed)?;
        let HashingWriter { mut out, hash } = sealed;
        writeln!(out, "{CHECKSUM_PREFIX}{}", hex(&hash.finalize()))?;
        out.flush()?;
        drop(out);
        file.sync_all()?;
        fs::rename(&beside, path)?;
        // The name is on the disk with its folder.
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
        Ok(())
    }

    /// A manifest, an object a line.
    fn content(&self, out: &mut impl Write) -> Result<(), CheckpointError> {
        let told = |error: serde_json::Error| CheckpointError::Io(error.into());
        let since = self.synced_at.duration_since(SystemTime::UNIX_EPOCH);
        let millis = since.unwrap_or_default().as_millis();
        let states = self.states.iter();
        let states: BTreeMap<String, &str> = states
            .map(|(kind, state)| (kind.to_string(), state.name()))
            .collect();
        let head = json!({
            "of": self.source,
            "syncedAtMillis": u64::try_from(millis).unwrap_or(u64::MAX),
            "states": states,
        });
        write!(
            out,
            "{{\"apiVersion\":\"v1\",\"kind\":\"List\",\"metadata\":{{}},\"entail\":"
        )?;
        serde_json::to_writer(&mut *out, &head).map_err(told)?;
        write!(out, ",\"items\":[")?;
        for (number, object) in self.objects.iter().enumerate() {
            out.write_all(if number == 0 { b"\n" } else { b",\n" })?;
            serde_json::to_writer(&mut *out, &object.body).map_err(told)?;
        }
        out.write_all(b"\n]}\n")?;
        Ok(())
    }

    /// Reads one of a source; `None` if there is none.
    ///
    /// # Errors
    /// It cannot be read, is torn, or is of another source.
    pub fn read(path: &Path, of: &str) -> Result<Option<Self>, CheckpointError> {
        let bytes = match fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read?,
        };
        let mut whole: Value = serde_json::from_slice(verify_checksum(&bytes)?)
            .map_err(|error| CheckpointError::InvalidFormat(error.to_string()))?;
        let head = whole.get("entail").cloned().unwrap_or_default();
        let found = head.get("of").and_then(Value::as_str).unwrap_or_default();
        if found != of {
            return Err(CheckpointError::OtherSource(found.to_owned()));
        }
        let unreadable = |what: &str| CheckpointError::InvalidFormat(what.to_owned());
        let millis = head.get("syncedAtMillis").and_then(Value::as_u64);
        let since = millis.map(Duration::from_millis);
        let synced_at = since.and_then(|since| SystemTime::UNIX_EPOCH.checked_add(since));
        let states = head.get("states").and_then(Value::as_object);
        let states = states.ok_or_else(|| unreadable("`states` is missing"))?;
        let states = states.iter().map(|(kind, state)| {
            let state = state.as_str().and_then(SourceState::parse);
            let state = state.ok_or_else(|| unreadable("a state has no such name"))?;
            Ok((GroupKind::parse(kind), state))
        });
        let states: Result<_, CheckpointError> = states.collect();
        let items = whole.get_mut("items").and_then(Value::as_array_mut);
        let items = items.ok_or_else(|| unreadable("`items` is missing"))?;
        let mut objects = Vec::with_capacity(items.len());
        for item in items.drain(..) {
            let read = parse_object(item, None);
            let read = read.map_err(|defect| CheckpointError::InvalidFormat(defect.message))?;
            objects.extend(read.map(Arc::new));
        }
        Ok(Some(Self {
            source: found.to_owned(),
            synced_at: synced_at.ok_or_else(|| unreadable("`syncedAtMillis` is missing"))?,
            states: states?,
            objects,
        }))
    }
}

/// What a file holds, without its seal.
fn verify_checksum(bytes: &[u8]) -> Result<&[u8], CheckpointError> {
    let body = bytes.strip_suffix(b"\n").ok_or(CheckpointError::Corrupt)?;
    let end = body.iter().rposition(|byte| *byte == b'\n');
    let (content, seal) = end
        .and_then(|end| body.split_at_checked(end + 1))
        .ok_or(CheckpointError::Corrupt)?;
    let seal = seal
        .strip_prefix(CHECKSUM_PREFIX.as_bytes())
        .ok_or(CheckpointError::Corrupt)?;
    if hex(&Sha256::digest(content)).as_bytes() == seal {
        Ok(content)
    } else {
        Err(CheckpointError::Corrupt)
    }
}

/// Where it is written before it takes its place.
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

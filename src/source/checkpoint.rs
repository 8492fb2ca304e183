//! Checkpoints of a source on disk, from which a restarted server answers at once.
//!
//! A checkpoint is a manifest of `kind: List` with the objects, and the [`SourceState`] of each kind.
//! The last line is a YAML comment with the checksum of everything before it; a file without a valid
//! checksum is not used. The checksum finds torn files. It proves nothing about who wrote the file:
//! that is up to the permissions of the directory. A checkpoint is written to a temporary file in the
//! same directory, synced, and renamed. Only the owner can read it. Symbolic links are not followed.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::object::parse_object;
use entail_core::model::{GroupKind, Object, SourceState, TARGETS_ONLY};

/// Prefix of the checksum line.
const CHECKSUM_PREFIX: &str = "# entail checkpoint ";
/// Version of the format.
const FORMAT_VERSION: &str = "2";
/// File mode: the specs of objects may be confidential.
const MODE: u32 = 0o600;

/// The objects and states of a source at a point in time.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// The source; a checkpoint of another source is not used.
    pub source: CheckpointSource,
    /// When the source was last in sync.
    pub synced_at: SystemTime,
    /// State of each kind.
    pub states: BTreeMap<GroupKind, SourceState>,
    /// All objects.
    pub objects: Vec<Arc<Object>>,
}

/// The cluster that a checkpoint was read from, and which of its objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointSource {
    /// UID of the Namespace `kube-system`, which identifies a cluster: the URL of the API server is the same in the
    /// pods of many clusters. `None` if it is not known.
    pub cluster_uid: Option<String>,
    /// URL of the API server.
    pub url: String,
    /// Which objects are read.
    pub filter: String,
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
    #[error("checkpoint of another source: {0}")]
    OtherSource(String),
    /// It is not known which cluster this is.
    #[error("the cluster cannot be identified: {0}")]
    UnknownCluster(String),
    /// The file is a symbolic link, a device or the like.
    #[error("not a regular file: symbolic links are not followed")]
    NotRegular,
}

impl CheckpointSource {
    /// Checks whether a checkpoint of this source may be used for `expected`. As long as it is not known which cluster
    /// that is, because the API server does not respond, the URL decides.
    ///
    /// # Errors
    /// Returns [`CheckpointError::OtherSource`] with what differs.
    pub fn check(&self, expected: &Self) -> Result<(), CheckpointError> {
        let differs = |what: &str, own: &str, expected: &str| {
            let message = format!("{what} `{own}`, expected `{expected}`");
            Err(CheckpointError::OtherSource(message))
        };
        if self.filter != expected.filter {
            return differs("filter", &self.filter, &expected.filter);
        }
        match (&self.cluster_uid, &expected.cluster_uid) {
            (own, Some(expected)) if own.as_ref() != Some(expected) => {
                differs("cluster", own.as_deref().unwrap_or_default(), expected)
            }
            (_, None) if self.url != expected.url => differs("URL", &self.url, &expected.url),
            _ => Ok(()),
        }
    }
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
        let checksum = hex(&hash.finalize());
        writeln!(out, "{CHECKSUM_PREFIX}{FORMAT_VERSION} sha256:{checksum}")?;
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
            "clusterUid": self.source.cluster_uid,
            "url": self.source.url,
            "filter": self.source.filter,
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

    /// Reads a checkpoint; returns `None` if the file does not exist. [`CheckpointSource::check`] says whether it may be
    /// used.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, is not a regular file, or is corrupt or malformed.
    pub fn read(path: &Path) -> Result<Option<Self>, CheckpointError> {
        let Some(bytes) = read_regular(path)? else {
            return Ok(None);
        };
        let mut list: Value = serde_json::from_slice(verify_checksum(&bytes)?)
            .map_err(|error| CheckpointError::InvalidFormat(error.to_string()))?;
        let head = list.get("entail").cloned().unwrap_or_default();
        let text = |name: &str| head.get(name).and_then(Value::as_str).map(str::to_owned);
        let source = CheckpointSource {
            cluster_uid: text("clusterUid"),
            url: text("url").unwrap_or_default(),
            filter: text("filter").unwrap_or_default(),
        };
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
            let is_reduced = item.get(TARGETS_ONLY).is_some();
            let object = parse_object(item, None)
                .map_err(|invalid| CheckpointError::InvalidFormat(invalid.message))?;
            let reason = unreadable.and_then(|all| all.get(&number.to_string())?.as_str());
            let object = object.map(|object| Object {
                unreadable: reason.map(Into::into),
                ..match is_reduced {
                    true => object.targets_only(),
                    false => object,
                }
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

/// Reads a regular file without following a symbolic link; returns `None` if it does not exist. A pipe or device is
/// opened without waiting for it, and not read.
fn read_regular(path: &Path) -> Result<Option<Vec<u8>>, CheckpointError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(opened) => File::from(opened),
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(CheckpointError::NotRegular),
        Err(error) => return Err(CheckpointError::Io(error.into())),
    };
    if !file.metadata()?.is_file() {
        return Err(CheckpointError::NotRegular);
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Verifies the checksum line and returns the content before it.
fn verify_checksum(bytes: &[u8]) -> Result<&[u8], CheckpointError> {
    let body = bytes.strip_suffix(b"\n").ok_or(CheckpointError::Corrupt)?;
    let end = body.iter().rposition(|byte| *byte == b'\n');
    let (content, checksum) = end
        .and_then(|end| body.split_at_checked(end + 1))
        .ok_or(CheckpointError::Corrupt)?;
    let checksum = std::str::from_utf8(checksum).ok();
    let checksum = checksum.and_then(|line| line.strip_prefix(CHECKSUM_PREFIX));
    let (version, checksum) = checksum
        .and_then(|line| line.split_once(" sha256:"))
        .ok_or(CheckpointError::Corrupt)?;
    if version != FORMAT_VERSION {
        let message = format!("version {version}, expected {FORMAT_VERSION}");
        return Err(CheckpointError::InvalidFormat(message));
    }
    if hex(&Sha256::digest(content)) == checksum {
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

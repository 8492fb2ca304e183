//! An in-process copy of effective policies, updated from a watch stream.

mod decoder;
mod path_map;
mod reflector;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwapOption;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::{ClientTls, ConnectError};
use crate::v1;
use path_map::PathMap;
use reflector::Reflector;

/// A copy of the effective policies of some paths, updated by a watch stream of a server.
///
/// Look-ups read the copy: they do no I/O and never block. Clones share the copy; the stream ends
/// when the last clone is dropped.
///
/// Each distinct answer is converted once, when it arrives, to the value that look-ups return: by
/// default the answer itself, with [`Mirror::compiled`] any type.
///
/// While the server is unreachable, the last copy stays in use and the mirror reconnects with
/// exponential backoff. [`Mirror::freshness`] reports the age of the copy.
pub struct Mirror<T = EffectivePolicies> {
    shared: Arc<Shared<T>>,
    _task: Arc<MirrorTask>,
}

/// Which server a [`Mirror`] connects to, and which paths and kinds it copies.
#[derive(Clone, Debug)]
pub struct MirrorSettings {
    /// Address of the server: `host:port`, `http://host:port`, `https://host:port` or `unix:PATH`.
    pub server: String,
    /// Certificates for an `https://` address.
    pub tls: ClientTls,
    /// Only paths that begin with one of these path names; all paths if empty.
    pub prefixes: Vec<String>,
    /// Only paths that end at one of these levels, such as `RouteRule`; all levels if empty.
    pub levels: Vec<String>,
    /// Only these policy kinds, as `Kind.group`; all kinds if empty.
    pub kinds: Vec<String>,
    /// Timeout of connecting, and of the interval between two messages. It must exceed the 10
    /// seconds after which a server sends a message even if nothing changes.
    pub timeout: Duration,
    /// Maximum delay between attempts to connect; the first delay is a hundredth of it.
    pub max_backoff: Duration,
}

/// The effective policies of a path: the answer of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct EffectivePolicies {
    /// One entry per kind, sorted by group, then kind.
    pub policies: Vec<v1::EffectivePolicy>,
    /// Hash of the answer; equal answers have equal etags on every replica.
    pub etag: String,
}

/// State of the connection of a [`Mirror`] and of its last complete update.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Freshness {
    /// Whether the watch stream is open and has delivered a complete update.
    pub connected: bool,
    /// Version of the last complete update; `None` before the first.
    pub version: Option<v1::Version>,
    /// When the sources of the server were last in sync.
    pub synced_at: Option<SystemTime>,
    /// The kinds whose state is not COMPLETE.
    pub kinds: Vec<v1::KindState>,
    /// The last error, if the mirror is not connected.
    pub error: Option<String>,
}

/// The part of an update that applies to all of its answers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SnapshotInfo {
    /// Version of the update.
    pub version: Option<v1::Version>,
    /// When the sources of the server were last in sync.
    pub synced_at: Option<SystemTime>,
    /// The kinds whose state is not COMPLETE. For a FORBIDDEN or UNKNOWN kind, an answer without a
    /// policy does not mean that there is no policy.
    pub kinds: Vec<v1::KindState>,
}

/// Why a look-up in a [`Mirror`] has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    /// No complete update has been received since the start.
    #[error("no update has been received yet")]
    NotReady,
    /// The path is outside the prefixes or levels of the mirror.
    #[error("the path is outside the prefixes or levels of the mirror")]
    NotSubscribed,
    /// The path does not exist.
    #[error("path not found")]
    NotFound,
}

/// State that the clones of a mirror share with its task.
struct Shared<T> {
    current: ArcSwapOption<CurrentCopy<T>>,
    freshness: watch::Sender<Freshness>,
}

/// A copy with the [`SnapshotInfo`] of the same update.
struct CurrentCopy<T> {
    copy: Arc<PathMap<T>>,
    info: SnapshotInfo,
}

/// The task that updates the copy. It is aborted when the last clone of the mirror is dropped.
struct MirrorTask(JoinHandle<()>);

impl Default for MirrorSettings {
    fn default() -> Self {
        Self {
            server: "127.0.0.1:50051".to_owned(),
            tls: ClientTls::default(),
            prefixes: Vec::new(),
            levels: Vec::new(),
            kinds: Vec::new(),
            timeout: Duration::from_secs(30),
            max_backoff: Duration::from_secs(5),
        }
    }
}

impl Mirror {
    /// Creates a mirror of a server and starts to watch it, on a task of the current Tokio runtime.
    /// The server need not be reachable yet.
    ///
    /// # Errors
    /// Returns an error if the address, a certificate, a prefix or a level is invalid.
    ///
    /// # Panics
    /// Panics if called outside of a Tokio runtime.
    pub fn follow(settings: MirrorSettings) -> Result<Self, ConnectError> {
        Self::compiled(settings, EffectivePolicies::clone)
    }
}

impl<T: Send + Sync + 'static> Mirror<T> {
    /// Creates a mirror as [`Mirror::follow`] does, whose look-ups return the result of `compile`
    /// for an answer. `compile` is called once for each distinct answer, when it arrives.
    ///
    /// # Errors
    /// Returns an error if the address, a certificate, a prefix or a level is invalid.
    ///
    /// # Panics
    /// Panics if called outside of a Tokio runtime.
    pub fn compiled(
        settings: MirrorSettings,
        compile: impl Fn(&EffectivePolicies) -> T + Send + Sync + 'static,
    ) -> Result<Self, ConnectError> {
        let shared = Arc::new(Shared {
            current: ArcSwapOption::empty(),
            freshness: watch::Sender::default(),
        });
        let reflector = Reflector::new(settings, Box::new(compile), Arc::clone(&shared))?;
        let task = MirrorTask(tokio::spawn(reflector.run()));
        Ok(Self {
            shared,
            _task: Arc::new(task),
        })
    }

    /// Returns the answer of a path.
    ///
    /// To fail closed if the state of a kind is not known, use [`Mirror::look_up`].
    ///
    /// # Errors
    /// See [`LookupError`].
    pub fn get(&self, path: &str) -> Result<Arc<T>, LookupError> {
        self.with(path, Arc::clone)
    }

    /// Calls `read` with the answer of a path, without incrementing its reference count.
    ///
    /// # Errors
    /// See [`LookupError`].
    pub fn with<R>(&self, path: &str, read: impl FnOnce(&Arc<T>) -> R) -> Result<R, LookupError> {
        self.look_up(path, |answer, _| read(answer))
    }

    /// Calls `read` with the answer of a path and the [`SnapshotInfo`] of the same update. Use it to
    /// fail closed if the state of a kind is not known.
    ///
    /// # Errors
    /// See [`LookupError`].
    pub fn look_up<R>(
        &self,
        path: &str,
        read: impl FnOnce(&Arc<T>, &SnapshotInfo) -> R,
    ) -> Result<R, LookupError> {
        let current = self.shared.current.load();
        let current = current.as_deref().ok_or(LookupError::NotReady)?;
        let answer = current.copy.get(path)?;
        Ok(read(answer, &current.info))
    }

    /// Returns the names and answers of all paths, from one update.
    pub fn all(&self) -> Vec<(String, Arc<T>)> {
        let current = self.shared.current.load_full();
        let all = current.iter().flat_map(|current| current.copy.all());
        all.map(|(name, answer)| (name.to_owned(), Arc::clone(answer)))
            .collect()
    }

    /// Returns the number of paths in the copy.
    pub fn len(&self) -> usize {
        let current = self.shared.current.load();
        current.as_deref().map_or(0, |current| current.copy.len())
    }

    /// Reports whether the copy has no paths.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reports whether the mirror is connected; cheaper than [`Mirror::freshness`].
    pub fn is_connected(&self) -> bool {
        self.shared.freshness.borrow().connected
    }

    /// Returns the state of the connection and of the last complete update.
    pub fn freshness(&self) -> Freshness {
        self.shared.freshness.borrow().clone()
    }

    /// Waits for the first complete update.
    pub async fn ready(&self) {
        self.wait_for(|freshness| freshness.version.is_some()).await;
    }

    /// Waits until `is_enough` returns true for the current [`Freshness`], and returns it.
    pub async fn wait_for(&self, is_enough: impl FnMut(&Freshness) -> bool) -> Freshness {
        let mut receiver = self.shared.freshness.subscribe();
        let freshness = receiver.wait_for(is_enough).await.map(|now| now.clone());
        // Fails only if the sender is dropped, which `self` owns.
        freshness.unwrap_or_default()
    }
}

impl<T> Clone for Mirror<T> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            _task: Arc::clone(&self._task),
        }
    }
}

impl<T> fmt::Debug for Mirror<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let freshness = &*self.shared.freshness.borrow();
        f.debug_struct("Mirror")
            .field("freshness", freshness)
            .finish_non_exhaustive()
    }
}

impl Drop for MirrorTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

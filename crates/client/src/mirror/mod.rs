//! A copy of what a server knows of some paths, kept by following it: look-ups ask nobody.

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

/// The effective policies of some paths in this process, as a server knows them. Clones share them.
///
/// What a look-up returns is made once for each distinct answer, when it comes: by default the
/// answer itself, with [`Mirror::compiled`] whatever a data plane works with.
///
/// While the server is out of reach the last copy stays, [`Mirror::freshness`] tells how old it is,
/// and the mirror goes on trying.
pub struct Mirror<T = EffectivePolicies> {
    shared: Arc<Shared<T>>,
    _task: Arc<MirrorTask>,
}

/// Which server to follow, and what of it.
#[derive(Clone, Debug)]
pub struct MirrorSettings {
    /// `host:port`, `http://host:port`, `https://host:port` or `unix:PATH`.
    pub server: String,
    /// Certificates, for `https://`.
    pub tls: ClientTls,
    /// The paths that begin with one of these path names; all if empty.
    pub prefixes: Vec<String>,
    /// Only paths that end at one of these levels, such as `RouteRule`; all if empty.
    pub levels: Vec<String>,
    /// Only these kinds, as `Kind.group`; all if empty.
    pub kinds: Vec<String>,
    /// How long the server may take to connect, and how long it may be silent, which it never is
    /// for more than 10 seconds unless it was told otherwise.
    pub timeout: Duration,
    /// The longest pause before the next attempt; the first one is a hundredth of it.
    pub max_backoff: Duration,
}

/// The effective policies of a path.
#[derive(Clone, Debug, PartialEq)]
pub struct EffectivePolicies {
    /// Sorted by group, then kind.
    pub policies: Vec<v1::EffectivePolicy>,
    /// Equal for equal answers, on every replica.
    pub etag: String,
}

/// How fresh a mirror is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Freshness {
    /// Whether the server is followed at present.
    pub connected: bool,
    /// Of the last complete update; none before the first.
    pub version: Option<v1::Version>,
    /// When the server's sources were last known to be in step.
    pub synced_at: Option<SystemTime>,
    /// The kinds of which the server does not know everything.
    pub kinds: Vec<v1::KindState>,
    /// Why the server is not followed, if so.
    pub error: Option<String>,
}

/// What is known of all answers of a version.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SnapshotInfo {
    /// The version.
    pub version: Option<v1::Version>,
    /// When the server's sources were last known to be in step.
    pub synced_at: Option<SystemTime>,
    /// The kinds of which the server does not know everything: no policy of such a kind is not the
    /// same as no policy.
    pub kinds: Vec<v1::KindState>,
}

/// Why a look-up has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    /// Nothing has been heard of the server yet.
    #[error("the mirror has no copy yet")]
    NotReady,
    /// The path is not among those that are followed.
    #[error("the path is not followed: its prefix or its level is none of the mirror's")]
    NotSubscribed,
    /// It is no path.
    #[error("there is no such path")]
    NotFound,
}

struct Shared<T> {
    current: ArcSwapOption<CurrentCopy<T>>,
    freshness: watch::Sender<Freshness>,
}

/// A copy and what is known of it: whoever reads one reads the other of the same version.
struct CurrentCopy<T> {
    copy: Arc<PathMap<T>>,
    known: SnapshotInfo,
}

/// The task that follows; it ends with the last mirror.
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
    /// Begins to follow a server; a task of the current runtime does. It need not be there yet.
    ///
    /// # Errors
    /// The address, a certificate, a prefix or a level is none.
    pub fn follow(settings: MirrorSettings) -> Result<Self, ConnectError> {
        Self::compiled(settings, EffectivePolicies::clone)
    }
}

impl<T: Send + Sync + 'static> Mirror<T> {
    /// The same, of what `compile` makes of each distinct answer.
    ///
    /// # Errors
    /// The address, a certificate, a prefix or a level is none.
    pub fn compiled(
        settings: MirrorSettings,
        compile: impl Fn(&EffectivePolicies) -> T + Send + Sync + 'static,
    ) -> Result<Self, ConnectError> {
        let shared = Arc::new(Shared {
            current: ArcSwapOption::empty(),
            freshness: watch::Sender::default(),
        });
        let follower = Reflector::new(settings, Box::new(compile), Arc::clone(&shared))?;
        let following = MirrorTask(tokio::spawn(follower.run()));
        Ok(Self {
            shared,
            _task: Arc::new(following),
        })
    }

    /// What holds on a path.
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn get(&self, path: &str) -> Result<Arc<T>, LookupError> {
        self.with(path, Arc::clone)
    }

    /// Reads what holds on a path, without counting a reference to it.
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn with<R>(&self, path: &str, read: impl FnOnce(&Arc<T>) -> R) -> Result<R, LookupError> {
        self.look_up(path, |answer, _| read(answer))
    }

    /// The same, with what is known of all answers of that version: who fails closed where not
    /// everything is known of a kind needs both of one moment.
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn look_up<R>(
        &self,
        path: &str,
        read: impl FnOnce(&Arc<T>, &SnapshotInfo) -> R,
    ) -> Result<R, LookupError> {
        let held = self.shared.current.load();
        let held = held.as_deref().ok_or(LookupError::NotReady)?;
        held.copy.get(path).map(|answer| read(answer, &held.known))
    }

    /// The names of all paths and what holds there, all of one version.
    pub fn all(&self) -> Vec<(String, Arc<T>)> {
        let held = self.shared.current.load_full();
        let all = held.iter().flat_map(|held| held.copy.all());
        all.map(|(name, answer)| (name.to_owned(), Arc::clone(answer)))
            .collect()
    }

    /// How many paths are followed.
    pub fn len(&self) -> usize {
        let held = self.shared.current.load();
        held.as_deref().map_or(0, |held| held.copy.len())
    }

    /// Whether no path is followed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the server is followed at present.
    pub fn is_connected(&self) -> bool {
        self.shared.freshness.borrow().connected
    }

    /// How fresh the copy is.
    pub fn freshness(&self) -> Freshness {
        self.shared.freshness.borrow().clone()
    }

    /// Waits until there is a copy.
    pub async fn ready(&self) {
        self.wait_for(|freshness| freshness.version.is_some()).await;
    }

    /// Waits until the copy is as fresh as `is_enough` wants it.
    pub async fn wait_for(&self, is_enough: impl FnMut(&Freshness) -> bool) -> Freshness {
        let mut told = self.shared.freshness.subscribe();
        let found = told.wait_for(is_enough).await.map(|told| told.clone());
        // The sender lives as long as `self` does.
        found.unwrap_or_default()
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

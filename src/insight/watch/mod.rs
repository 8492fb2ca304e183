//! Paths that a data plane follows: what it asked for, what it has been told, and what it has to be
//! told next.

mod stream_state;
mod update;

pub use stream_state::StreamState;
pub use update::StreamUpdate;

use super::lookup::incomplete_kinds;
use super::{AccessScope, Failure};
use crate::api::{etag, v1};
use crate::snapshot::{PathSelector, Snapshot};
use entail_core::model::{GroupKind, Level, PathPrefix};

/// Most prefixes of one request, their bytes, and most kinds.
const MAX_PREFIXES: usize = 1_000;
const MAX_BYTES: usize = 256 * 1024;
const MAX_KINDS: usize = 100;

/// What a caller follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// The paths.
    pub selector: PathSelector,
    /// The kinds; all if empty.
    pub kinds: Vec<GroupKind>,
    /// Those that it named, and what it may see.
    requested_kinds: Vec<GroupKind>,
    scope: AccessScope,
    /// Tells it from others in tokens.
    tag: String,
    /// The version that the caller says to hold.
    resume_version: Option<String>,
}

impl Subscription {
    /// Reads a request of a caller who may see some paths and kinds.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(
        request: &v1::WatchEffectivePoliciesRequest,
        scope: &AccessScope,
    ) -> Result<Self, Failure> {
        let words = request.prefixes.iter().chain(&request.kinds);
        let bytes = words.map(String::len).sum::<usize>();
        let counts = [
            ("prefixes", request.prefixes.len(), MAX_PREFIXES),
            ("levels", request.levels.len(), MAX_KINDS),
            ("kinds", request.kinds.len(), MAX_KINDS),
            ("bytes of prefixes and kinds", bytes, MAX_BYTES),
        ];
        if let Some((what, count, most)) = counts.iter().find(|(_, count, most)| count > most) {
            let message = format!("{count} {what} in one request; at most {most} are followed");
            return Err(Failure::invalid("TooMany", message));
        }
        let prefixes = request.prefixes.iter().map(|text| {
            let prefix = PathPrefix::parse(text);
            prefix.map_err(|error| Failure::syntax(text, &error))
        });
        let levels = request.levels.iter().map(|word| level(word));
        let mut requested_kinds: Vec<_> =
            request.kinds.iter().map(|k| GroupKind::parse(k)).collect();
        requested_kinds.sort();
        requested_kinds.dedup();
        let kinds = scope.narrow(&requested_kinds).into_owned();
        let prefixes = scope.below(prefixes.collect::<Result<_, _>>()?);
        let selector = PathSelector::new(prefixes, levels.collect::<Result<_, _>>()?);
        let mut tag = etag(format!("{selector:?} {kinds:?}").as_bytes());
        tag.truncate(16);
        let resume_version = request.resume_token.strip_suffix(&tag);
        let resume_version = resume_version.and_then(|version| version.strip_suffix(':'));
        Ok(Self {
            resume_version: resume_version.map(str::to_owned),
            selector,
            kinds,
            requested_kinds,
            scope: scope.clone(),
            tag,
        })
    }

    /// Whether the caller holds what a snapshot says.
    pub fn is_resumed_at(&self, snapshot: &Snapshot) -> bool {
        self.resume_version.as_deref() == Some(&*version_token(snapshot))
    }

    /// The kinds of which not everything is known.
    fn incomplete(&self, snapshot: &Snapshot) -> Vec<v1::KindState> {
        incomplete_kinds(snapshot, &self.requested_kinds, &self.scope)
    }

    /// The token of those who hold what a snapshot says.
    fn token(&self, snapshot: &Snapshot) -> String {
        format!("{}:{}", version_token(snapshot), self.tag)
    }
}

/// The version of a snapshot, for tokens.
fn version_token(snapshot: &Snapshot) -> String {
    let version = snapshot.version();
    format!("{}:{}", version.epoch, version.generation)
}

fn level(word: &str) -> Result<Level, Failure> {
    let known = Level::parse(word).filter(|level| *level != Level::Root);
    known.ok_or_else(|| {
        let words = Level::ALL.iter().skip(1).map(|level| level.as_str());
        let words: Vec<_> = words.collect();
        let message = format!("`{word}` is no level: write one of {}", words.join(", "));
        Failure::invalid("NotALevel", message)
    })
}

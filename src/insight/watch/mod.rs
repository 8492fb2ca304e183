//! Paths that a data plane follows: what it asked for, what it has been told, and what it has to be
//! told next.

mod ledger;
mod update;

pub use ledger::Ledger;
pub use update::Update;

use super::look_up::incomplete_kinds;
use super::{Failure, Scope};
use crate::api::{etag, v1};
use crate::snapshot::{Followed, Snapshot};
use entail_core::model::{GroupKind, Level, PathPrefix};

/// Most prefixes of one request, their bytes, and most kinds.
const MAX_PREFIXES: usize = 1_000;
const MAX_BYTES: usize = 256 * 1024;
const MAX_KINDS: usize = 100;

/// What a caller follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// The paths.
    pub followed: Followed,
    /// The kinds; all if empty.
    pub kinds: Vec<GroupKind>,
    /// Those that it named, and what it may see.
    asked: Vec<GroupKind>,
    scope: Scope,
    /// Tells it from others in tokens.
    tag: String,
    /// The version that the caller says to hold.
    resumed: Option<String>,
}

impl Subscription {
    /// Reads a request of a caller who may see some paths and kinds.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(
        request: &v1::WatchEffectivePoliciesRequest,
        scope: &Scope,
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
        let mut asked: Vec<_> = request.kinds.iter().map(|k| GroupKind::parse(k)).collect();
        asked.sort();
        asked.dedup();
        let kinds = scope.narrow(&asked).into_owned();
        let prefixes = scope.below(prefixes.collect::<Result<_, _>>()?);
        let followed = Followed::new(prefixes, levels.collect::<Result<_, _>>()?);
        let mut tag = etag(format!("{followed:?} {kinds:?}").as_bytes());
        tag.truncate(16);
        let resumed = request.resume_token.strip_suffix(&tag);
        let resumed = resumed.and_then(|version| version.strip_suffix(':'));
        Ok(Self {
            resumed: resumed.map(str::to_owned),
            followed,
            kinds,
            asked,
            scope: scope.clone(),
            tag,
        })
    }

    /// Whether the caller holds what a snapshot says.
    pub fn is_resumed_at(&self, snapshot: &Snapshot) -> bool {
        self.resumed.as_deref() == Some(&*held(snapshot))
    }

    /// The kinds of which not everything is known.
    fn incomplete(&self, snapshot: &Snapshot) -> Vec<v1::KindState> {
        incomplete_kinds(snapshot, &self.asked, &self.scope)
    }

    /// The token of those who hold what a snapshot says.
    fn token(&self, snapshot: &Snapshot) -> String {
        format!("{}:{}", held(snapshot), self.tag)
    }
}

/// The version of a snapshot, for tokens.
fn held(snapshot: &Snapshot) -> String {
    let version = snapshot.version();
    format!("{}:{}", version.epoch, version.generation)
}

fn level(word: &str) -> Result<Level, Failure> {
    let known = Level::of_word(word).filter(|level| *level != Level::Root);
    known.ok_or_else(|| {
        let words = Level::ALL.iter().skip(1).map(|level| level.as_str());
        let words: Vec<_> = words.collect();
        let message = format!("`{word}` is no level: write one of {}", words.join(", "));
        Failure::invalid("NotALevel", message)
    })
}

//! Resume tokens, and the positions that streams can resume from.
//!
//! A token contains a digest of the paths and answers that its stream has sent. It therefore stays valid for as long as
//! the content is the same: across generations, restarts and replicas. If the content differs, the difference can be
//! computed as long as the [`ResumeHistory`] has the position with that digest.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;

use super::ledger::Holding;
use super::stream_state::Position;

/// An etag, as a number.
pub(super) type EtagBits = u128;

/// Memory for the positions that are kept, in bytes for each path of the snapshot: enough for two dozen positions of
/// all paths. It limits how far back a stream can resume once its content has changed, and does not depend on the number
/// of publications without changes. A caller that follows many selections fills it, so that it is a part of what a server
/// keeps after an attack.
const BYTES_OF_PATH: usize = 2 * 1024;

/// Memory for the positions of small snapshots, in bytes.
const MIN_BYTES: usize = 2 * 1024 * 1024;

/// Memory for the positions of large snapshots, in bytes.
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// What a resume token says that its caller has.
#[derive(Clone, Debug)]
pub(super) struct ResumePoint {
    /// The digest of the content.
    pub content: EtagBits,
    /// The position with that content, if it is known.
    pub position: Option<Arc<Position>>,
}

/// The positions that streams have reached, the latest ones within a bound of memory.
#[derive(Debug)]
pub(super) struct ResumeHistory {
    positions: Mutex<Positions>,
}

/// Identifies a position: the tag of its paths and kinds, and the digest of its content.
type PositionKey = (EtagBits, EtagBits);

#[derive(Debug, Default)]
struct Positions {
    by_key: HashMap<PositionKey, Remembered>,
    /// The positions by their last use.
    by_use: BTreeMap<u64, PositionKey>,
    last_use: u64,
    bytes: usize,
    max_bytes: usize,
    /// The number of positions with a list of paths, by the identifier of the list.
    lists: HashMap<u64, usize>,
}

#[derive(Debug)]
struct Remembered {
    position: Arc<Position>,
    used: u64,
}

impl Default for ResumeHistory {
    fn default() -> Self {
        Self::with_bound(MIN_BYTES)
    }
}

impl ResumeHistory {
    fn with_bound(max_bytes: usize) -> Self {
        let positions = Positions {
            max_bytes,
            ..Positions::default()
        };
        Self {
            positions: Mutex::new(positions),
        }
    }

    /// Sets the bound for a snapshot with a number of paths, and forgets what exceeds it.
    pub fn fit(&self, paths: u64) {
        let bytes =
            usize::try_from(paths).map_or(MAX_BYTES, |paths| paths.saturating_mul(BYTES_OF_PATH));
        let mut positions = self.positions();
        positions.max_bytes = bytes.clamp(MIN_BYTES, MAX_BYTES);
        let dropped = positions.forget_excess();
        drop(positions);
        drop(dropped);
    }

    /// Keeps a position, or marks it as used. Forgets those whose last use is longest ago if all exceed the bound. A
    /// position that exceeds it alone is not kept, so that it does not cost the others.
    pub fn remember(&self, tag: EtagBits, position: &Arc<Position>) {
        let list = position.list_holding().map_or(0, |list| list.bytes());
        let mut positions = self.positions();
        if position.holding().bytes().saturating_add(list) > positions.max_bytes {
            return;
        }
        let key = (tag, position.content());
        // The later one has the list of paths that other streams have now.
        let same = positions.remove(&key);
        positions.add(key, position);
        let dropped = positions.forget_excess();
        // Freeing a list of paths takes time.
        drop(positions);
        drop((same, dropped));
    }

    /// Returns the position with a content, if it is kept.
    pub fn find(&self, tag: EtagBits, content: EtagBits) -> Option<Arc<Position>> {
        let positions = self.positions();
        let found = positions.by_key.get(&(tag, content));
        found.map(|remembered| Arc::clone(&remembered.position))
    }

    fn positions(&self) -> MutexGuard<'_, Positions> {
        self.positions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Positions {
    fn add(&mut self, key: PositionKey, position: &Arc<Position>) {
        self.last_use += 1;
        let used = self.last_use;
        self.bytes += position.holding().bytes();
        if let Some(list) = position.list_holding() {
            let uses = self.lists.entry(list.id()).or_default();
            *uses += 1;
            self.bytes += if *uses == 1 { list.bytes() } else { 0 };
        }
        let position = Arc::clone(position);
        self.by_key.insert(key, Remembered { position, used });
        self.by_use.insert(used, key);
    }

    /// The position whose last use is longest ago.
    fn first(&self) -> Option<PositionKey> {
        self.by_use.values().next().copied()
    }

    /// Forgets the positions whose last use is longest ago until the others are within the bound. The caller frees them.
    fn forget_excess(&mut self) -> Vec<Arc<Position>> {
        let mut forgotten = Vec::new();
        while self.bytes > self.max_bytes
            && let Some(key) = self.first()
        {
            forgotten.extend(self.remove(&key));
        }
        forgotten
    }

    fn remove(&mut self, key: &PositionKey) -> Option<Arc<Position>> {
        let Remembered { position, used } = self.by_key.remove(key)?;
        self.by_use.remove(&used);
        let mut freed = position.holding().bytes();
        if let Some(list) = position.list_holding()
            && let Some(uses) = self.lists.get_mut(&list.id())
        {
            *uses -= 1;
            if *uses == 0 {
                self.lists.remove(&list.id());
                freed += list.bytes();
            }
        }
        self.bytes = self.bytes.saturating_sub(freed);
        Some(position)
    }
}

impl ResumePoint {
    /// What the caller holds in memory of the position.
    pub fn holdings(&self) -> impl Iterator<Item = Holding> {
        let position = self.position.iter();
        position.flat_map(|position| {
            std::iter::once(position.holding().clone()).chain(position.list_holding())
        })
    }
}

/// Reads the digest of the content and the tag of a token; `None` if it is no token of this form.
pub(super) fn parse_token<'t>(token: &'t str, tag: &str) -> Option<EtagBits> {
    let content: &'t str = token.strip_suffix(tag)?.strip_suffix(':')?;
    let is_digest = content.len() == 32 && content.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_digest
        .then(|| EtagBits::from_str_radix(content, 16).ok())
        .flatten()
}

/// The token of callers that have a content.
pub(super) fn token(content: EtagBits, tag: &str) -> String {
    format!("{content:032x}:{tag}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_read_as_they_are_written() {
        assert_eq!(parse_token(&token(7, "tag"), "tag"), Some(7));
        assert_eq!(parse_token(&token(7, "tag"), "other"), None);
        for malformed in [
            "",
            ":tag",
            "epoch:1:tag",
            "+0000000000000000000000000000007:tag",
        ] {
            assert_eq!(parse_token(malformed, "tag"), None, "{malformed}");
        }
    }

    #[test]
    fn the_memory_of_positions_is_bounded() {
        let position = |content| Arc::new(Position::with_content(content, 1_000));
        let history = ResumeHistory::with_bound(3_500);
        for content in 0..3 {
            history.remember(1, &position(content));
        }
        // To remember a position again adds no memory and makes it the latest one.
        for _ in 0..1_000 {
            history.remember(1, &position(0));
        }
        history.remember(1, &position(3));
        let found = |content| history.find(1, content).is_some();
        assert_eq!([0, 1, 2, 3].map(found), [true, false, true, true]);
        assert!(history.find(2, 0).is_none(), "a tag has its own positions");
        let positions = history.positions();
        assert_eq!((positions.bytes, positions.by_use.len()), (3_000, 3));
        drop(positions);
        history.remember(1, &Arc::new(Position::with_content(4, 3_501)));
        assert_eq!([0, 2, 3, 4].map(found), [true, true, true, false]);
    }

    #[test]
    fn the_memory_of_positions_is_in_proportion_to_the_paths() {
        let history = ResumeHistory::default();
        let kept = |paths| {
            history.fit(paths);
            for content in 0..100 {
                history.remember(1, &Arc::new(Position::with_content(content, 1 << 20)));
            }
            history.positions().by_key.len()
        };
        assert_eq!([0, 2_000, 4_096, 1_000_000].map(kept), [2, 3, 8, 32]);
        history.fit(4_096);
        assert_eq!(
            history.positions().by_key.len(),
            8,
            "what exceeds it is forgotten at once"
        );
        assert!(history.find(1, 99).is_some(), "the latest ones are kept");
    }
}

//! Changes: the transactions of objects that sources deliver.

use std::sync::Arc;

use super::{GroupKind, Object, ObjectKey};

/// A transaction: one complete step of a source from one state to the next. A relist is one change.
#[derive(Clone, Debug, Default)]
pub struct Change {
    /// Objects that are new or different.
    pub upserts: Vec<Arc<Object>>,
    /// Objects that are gone.
    pub deletes: Vec<ObjectKey>,
    /// The new state of kinds that the source reads.
    pub states: Vec<KindState>,
}

/// How complete a source's knowledge of a kind is (specification 2.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SourceState {
    /// All objects of the kind are known.
    Complete,
    /// The source does not answer; the last good state is in use.
    Stale,
    /// Access to the source is denied.
    Forbidden,
    /// No object is known: the kind has no profile or no source.
    Unknown,
}

impl SourceState {
    /// Every state.
    pub const ALL: [Self; 4] = [Self::Complete, Self::Stale, Self::Forbidden, Self::Unknown];

    /// Returns the name that messages use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Complete => "COMPLETE",
            Self::Stale => "STALE",
            Self::Forbidden => "FORBIDDEN",
            Self::Unknown => "UNKNOWN",
        }
    }

    /// Returns the state with a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

/// The state of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindState {
    /// The kind.
    pub kind: GroupKind,
    /// Its state.
    pub state: SourceState,
}

impl Change {
    /// Reports whether the change is empty.
    pub fn is_empty(&self) -> bool {
        self.upserts.is_empty() && self.deletes.is_empty() && self.states.is_empty()
    }
}

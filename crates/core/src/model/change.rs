//! What sources deliver: transactions of objects.

use std::sync::Arc;

use super::object::{GroupKind, Object, ObjectKey};

/// A transaction: a source's whole step from one state to the next. A relist is one change.
#[derive(Clone, Debug, Default)]
pub struct Change {
    /// Objects that are new or different.
    pub upserts: Vec<Arc<Object>>,
    /// Objects that are gone.
    pub deletes: Vec<ObjectKey>,
    /// What the source now says of kinds it reads.
    pub states: Vec<KindState>,
}

/// How complete a source's knowledge of a kind is (specification 2.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SourceState {
    /// All objects of the kind are known.
    Complete,
    /// What is known is the last good state; the source does not answer.
    Stale,
    /// The source may not be read.
    Forbidden,
    /// Nothing is known: no profile, or no source.
    Unknown,
}

impl SourceState {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Complete, Self::Stale, Self::Forbidden, Self::Unknown];

    /// The name, as messages tell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Complete => "COMPLETE",
            Self::Stale => "STALE",
            Self::Forbidden => "FORBIDDEN",
            Self::Unknown => "UNKNOWN",
        }
    }

    /// The state of a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

/// A kind and what is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindState {
    /// The kind.
    pub kind: GroupKind,
    /// Its state.
    pub state: SourceState,
}

impl Change {
    /// Whether the change says nothing.
    pub fn is_empty(&self) -> bool {
        self.upserts.is_empty() && self.deletes.is_empty() && self.states.is_empty()
    }
}

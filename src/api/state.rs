//! States of kinds that are not complete, with their reasons (specification 2.5).

use super::v1;
use entail_client::EnumName;
use entail_core::model::{GroupKind, SourceState};
use entail_core::store::Projection;
use v1::kind_state::State;

/// Why the data of a kind is not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateReason {
    /// No profile describes the kind.
    NoProfile,
    /// The profile of the kind is refused.
    ProfileRefused,
    /// An internal error concerns the kind.
    InternalError,
    /// The objects of the kind have not been read yet.
    NotRead,
    /// The server is not permitted to read the kind.
    Forbidden,
    /// The source does not respond.
    SourceUnavailable,
    /// Some input cannot be read, and no earlier version of it is in use.
    InputUnreadable,
}

/// The name in the place of a kind for all kinds: any of them may lack objects.
pub const ALL_KINDS: &str = "*";

impl StateReason {
    /// The reason of a state that a source reports; `None` for a complete one.
    pub fn of(state: SourceState) -> Option<Self> {
        match state {
            SourceState::Complete => None,
            SourceState::Stale => Some(StateReason::SourceUnavailable),
            SourceState::Forbidden => Some(StateReason::Forbidden),
            SourceState::Unknown => Some(StateReason::NotRead),
        }
    }

    /// The state of a kind with this reason.
    pub fn state(self) -> v1::kind_state::State {
        match self {
            StateReason::SourceUnavailable | StateReason::InputUnreadable => {
                v1::kind_state::State::Stale
            }
            StateReason::Forbidden => v1::kind_state::State::Forbidden,
            _ => v1::kind_state::State::Unknown,
        }
    }

    /// Creates the state of a kind, given as `Kind.group`.
    pub fn kind_state(self, kind: String) -> v1::KindState {
        let message = match self {
            StateReason::Forbidden if Projection::may_affect_topology(&GroupKind::parse(&kind)) => {
                "the server is not allowed to read it; what it read before stays in use"
            }
            _ => self.message(),
        };
        v1::KindState {
            kind,
            state: self.state().into(),
            reason: self.as_str().to_owned(),
            message: message.to_owned(),
        }
    }

    /// Creates the state of a kind, given as `Kind.group`, that has no profile in a snapshot with these incomplete kinds.
    /// If the objects that define profiles could not be read, the profile may be among them.
    pub fn without_profile(kind: String, incomplete: &[v1::KindState]) -> v1::KindState {
        let mut incomplete = incomplete.iter();
        let unread = incomplete.find(|other| {
            let is_unread = matches!(other.state(), State::Unknown | State::Forbidden);
            is_unread && GroupKind::parse(&other.kind).defines_kinds()
        });
        let Some(unread) = unread else {
            return StateReason::NoProfile.kind_state(kind);
        };
        let (name, state) = (&unread.kind, unread.state().name());
        v1::KindState {
            message: format!("its profile is not known: {name} is {state}, and may define it"),
            ..StateReason::NotRead.kind_state(kind)
        }
    }

    /// Creates the state of a kind that cannot be more complete than another, which has this reason (specification 2.10).
    pub fn of_dependent(self, kind: String, other: &GroupKind) -> v1::KindState {
        let own = self.kind_state(kind);
        let name = own.state().name();
        v1::KindState {
            message: format!(
                "{other} is {name}, and may take the place of what enforces its policies"
            ),
            ..own
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            StateReason::NoProfile => "NoProfile",
            StateReason::ProfileRefused => "ProfileRefused",
            StateReason::InternalError => "InternalError",
            StateReason::NotRead => "NotRead",
            StateReason::Forbidden => "Forbidden",
            StateReason::SourceUnavailable => "SourceUnavailable",
            StateReason::InputUnreadable => "InputUnreadable",
        }
    }

    fn message(self) -> &'static str {
        match self {
            StateReason::NoProfile => "it has no profile, so its policies are not evaluated",
            StateReason::ProfileRefused => {
                "its profile is refused, so its policies are not evaluated"
            }
            StateReason::InternalError => {
                "an internal error occurred, so its policies are not evaluated; please report it"
            }
            StateReason::NotRead => "its objects have not been read yet",
            StateReason::Forbidden => {
                "the server is not allowed to read it, so answers contain nothing of it"
            }
            StateReason::SourceUnavailable => {
                "its source is not available; this is the last known state"
            }
            StateReason::InputUnreadable => {
                "some input cannot be read, so answers contain nothing of it; `entail lint` names it"
            }
        }
    }
}

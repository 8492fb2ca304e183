//! Which state of a kind a list may show, by resource versions.

use kube::api::VersionMatch;
use kube::core::Status;

/// Reason of the error of a server whose state is older than the version that a list asks for.
const TOO_LARGE_VERSION: &str = "ResourceVersionTooLarge";

/// Which states of a kind a list may show. Servers behind one address may lag behind each other, and what was read once
/// must not be taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ListedState {
    /// Any that the server has at hand.
    Any,
    /// None before a version.
    NotOlderThan(String),
    /// The newest, which the server asks its storage for. Its version may be lower than what was read before: a storage
    /// that was restored from a backup counts anew.
    Newest,
}

impl ListedState {
    /// The parameter `resourceVersion` of a list.
    pub fn version(&self) -> &str {
        match self {
            Self::Any => "0",
            Self::NotOlderThan(version) => version,
            Self::Newest => "",
        }
    }

    /// The parameter `resourceVersionMatch` of a list.
    pub fn version_match(&self) -> Option<VersionMatch> {
        (*self != Self::Newest).then_some(VersionMatch::NotOlderThan)
    }

    /// Whether a list of a version is acceptable.
    pub fn accepts(&self, version: &str) -> bool {
        match self {
            Self::NotOlderThan(known) => !is_older(version, known),
            Self::Any | Self::Newest => true,
        }
    }
}

/// Whether a server says that it is not as new as the version that was asked for.
pub(super) fn is_ahead(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes
        .into_iter()
        .any(|cause| cause.reason == TOO_LARGE_VERSION)
}

/// Whether a version is older than another one. Versions are numbers that grow with each change (Kubernetes 1.35); others
/// cannot be compared.
pub(super) fn is_older(version: &str, than: &str) -> bool {
    match (version.parse::<u64>(), than.parse::<u64>()) {
        (Ok(version), Ok(than)) => version < than,
        _ => false,
    }
}

//! Reads requests to watch paths.

use std::sync::Arc;

use super::hub::SubscriptionHub;
use super::ledger::{Cost, Holding};
use super::watch_group::{PathSelector, WatchGroup};
use crate::api::{etag, v1};
use crate::insight::{AccessScope, Failure, MAX_NAMED, incomplete_kinds, shortened};
use crate::snapshot::{PathAnswer, Snapshot};
use entail_core::model::{GroupKind, Level, PathPrefix};

/// Maximum number of prefixes of one request.
const MAX_PREFIXES: usize = 1_000;
/// Maximum number of bytes of the prefixes and kinds of one request.
const MAX_BYTES: usize = 256 * 1024;

/// An etag, as a number.
pub(super) type EtagBits = u128;

/// What a stream follows: paths and kinds, restricted to the scope of the caller.
#[derive(Clone, Debug)]
pub struct Subscription {
    group: Arc<WatchGroup>,
    /// The kinds; empty for all kinds.
    pub kinds: Vec<GroupKind>,
    /// The kinds that the request names, in scope or not.
    requested_kinds: Vec<GroupKind>,
    scope: AccessScope,
    /// Identifies the paths and kinds in resume tokens.
    tag: String,
    /// Identifies everything that updates depend on besides the snapshot: streams with the same
    /// selection share them.
    pub(super) selection: EtagBits,
    /// The version in the resume token, if the token belongs to the same paths and kinds.
    resume_version: Option<String>,
    /// What the stream alone holds of the request.
    holding: Holding,
}

impl Subscription {
    /// Reads a request of a caller with a scope. Subscriptions to the same paths share their group.
    ///
    /// # Errors
    /// The request has too many elements, a malformed prefix or an unknown level.
    pub fn read(
        request: &v1::WatchEffectivePoliciesRequest,
        scope: &AccessScope,
        hub: &SubscriptionHub,
    ) -> Result<Self, Failure> {
        check_size(request)?;
        let prefixes = request.prefixes.iter().map(|text| {
            let prefix = PathPrefix::parse(text);
            prefix.map_err(|error| Failure::syntax(text, &error))
        });
        let levels = request.levels.iter().map(|text| parse_level(text));
        let mut requested_kinds: Vec<_> =
            request.kinds.iter().map(|k| GroupKind::parse(k)).collect();
        requested_kinds.sort();
        requested_kinds.dedup();
        let kinds = scope.narrow(&requested_kinds).into_owned();
        let prefixes = scope.below(prefixes.collect::<Result<_, _>>()?);
        let selector = PathSelector::new(prefixes, levels.collect::<Result<_, _>>()?);
        let selection = format!("{selector:?} {kinds:?} {requested_kinds:?} {scope:?}");
        let mut tag = etag(format!("{selector:?} {kinds:?}").as_bytes());
        tag.truncate(16);
        let resume_version = request.resume_token.strip_suffix(&tag);
        let resume_version = resume_version.and_then(|version| version.strip_suffix(':'));
        let names = kinds.iter().chain(&requested_kinds);
        let bytes = names.map(|k| size_of::<GroupKind>() + k.group.len() + k.kind.len());
        let bytes = request.resume_token.len() + bytes.sum::<usize>();
        Ok(Self {
            resume_version: resume_version.map(str::to_owned),
            group: hub.watch_group(selector),
            holding: Holding::new(Cost { bytes, paths: 0 }),
            kinds,
            requested_kinds,
            scope: scope.clone(),
            tag,
            selection: bits(&etag(selection.as_bytes())),
        })
    }

    /// The group of the streams that follow the same paths.
    pub fn group(&self) -> &Arc<WatchGroup> {
        &self.group
    }

    /// What a stream holds of its request.
    pub(super) fn holdings(&self) -> [Holding; 2] {
        [self.group.holding.clone(), self.holding.clone()]
    }

    /// Whether the caller already has the answers of a snapshot, according to its resume token.
    pub fn is_resumed_at(&self, snapshot: &Snapshot) -> bool {
        self.resume_version.as_deref() == Some(&*version_token(snapshot))
    }

    /// The followed kinds whose state is not complete.
    pub(super) fn incomplete(&self, snapshot: &Snapshot) -> Vec<v1::KindState> {
        incomplete_kinds(snapshot, &self.requested_kinds, &self.scope)
    }

    /// The etag of the followed kinds of an answer.
    pub(super) fn etag(&self, answer: &PathAnswer) -> EtagBits {
        bits(&answer.etag_of(&self.kinds))
    }

    /// The resume token of callers that have the answers of a snapshot.
    pub(super) fn token(&self, snapshot: &Snapshot) -> String {
        format!("{}:{}", version_token(snapshot), self.tag)
    }
}

/// Etags are 128 bits in hexadecimal; the only other one is that of an internal error.
fn bits(etag: &str) -> EtagBits {
    EtagBits::from_str_radix(etag, 16).unwrap_or_default()
}

/// Returns an error if a request has too many elements or bytes.
fn check_size(request: &v1::WatchEffectivePoliciesRequest) -> Result<(), Failure> {
    let texts = request.prefixes.iter().chain(&request.kinds);
    let bytes = texts.map(String::len).sum::<usize>();
    Failure::check_count("prefixes", request.prefixes.len(), MAX_PREFIXES)?;
    Failure::check_count("levels", request.levels.len(), MAX_NAMED)?;
    Failure::check_count("kinds", request.kinds.len(), MAX_NAMED)?;
    Failure::check_count("bytes of prefixes and kinds", bytes, MAX_BYTES)
}

/// The version of a snapshot as resume tokens contain it.
fn version_token(snapshot: &Snapshot) -> String {
    let version = snapshot.version();
    format!("{}:{}", version.epoch, version.generation)
}

fn parse_level(text: &str) -> Result<Level, Failure> {
    let level = Level::parse(text).filter(|level| *level != Level::Root);
    level.ok_or_else(|| {
        let levels = Level::ALL.iter().skip(1).map(|level| level.as_str());
        let levels: Vec<_> = levels.collect();
        let message = format!(
            "`{}` is not a level: use one of {}",
            shortened(text),
            levels.join(", ")
        );
        Failure::invalid("NotALevel", message)
    })
}

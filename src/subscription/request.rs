//! Reads requests to watch paths.

use std::sync::Arc;

use super::hub::SubscriptionHub;
use super::ledger::{Cost, Holding};
use super::resume::{self, EtagBits, ResumeHistory, ResumePoint};
use super::stream_state::Position;
use super::watch_group::{PathSelector, WatchGroup};
use crate::api::{etag, v1};
use crate::insight::{AccessScope, Failure, MAX_NAMED, incomplete_kinds, parse_level};
use crate::snapshot::{PathAnswer, Snapshot};
use entail_core::model::{GroupKind, PathPrefix};

/// Maximum number of prefixes of one request.
const MAX_PREFIXES: usize = 1_000;
/// Maximum number of bytes of the prefixes and kinds of one request.
const MAX_BYTES: usize = 256 * 1024;

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
    /// What the caller has according to its resume token, if the token belongs to the same paths and kinds.
    resume_point: Option<ResumePoint>,
    history: Arc<ResumeHistory>,
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
        let history = Arc::clone(hub.resume_history());
        let content = resume::parse_token(&request.resume_token, &tag);
        let resume_point = content.map(|content| ResumePoint {
            content,
            position: history.find(bits(&tag), content),
        });
        let names = kinds.iter().chain(&requested_kinds);
        let bytes = names.map(|k| size_of::<GroupKind>() + k.group.len() + k.kind.len());
        let bytes = bytes.sum::<usize>();
        Ok(Self {
            resume_point,
            history,
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
    pub(super) fn holdings(&self) -> impl Iterator<Item = Holding> {
        let own = [self.group.holding.clone(), self.holding.clone()];
        let resumed = self.resume_point.iter().flat_map(ResumePoint::holdings);
        own.into_iter().chain(resumed)
    }

    /// What the caller has according to its resume token.
    pub(super) fn resume_point(&self) -> Option<&ResumePoint> {
        self.resume_point.as_ref()
    }

    /// Records that a stream has sent the content of a position, so that later streams can resume from it. The resume
    /// token of the request is not needed any longer.
    pub(super) fn reached(&mut self, position: &Arc<Position>) {
        self.resume_point = None;
        self.history.remember(bits(&self.tag), position);
    }

    /// The followed kinds whose state is not complete.
    pub(super) fn incomplete(&self, snapshot: &Snapshot) -> Vec<v1::KindState> {
        incomplete_kinds(snapshot, &self.requested_kinds, &self.scope)
    }

    /// The etag of the followed kinds of an answer.
    pub(super) fn etag(&self, answer: &PathAnswer) -> EtagBits {
        bits(&answer.etag_of(&self.kinds))
    }

    /// The resume token of callers that have a content.
    pub(super) fn token(&self, content: EtagBits) -> String {
        resume::token(content, &self.tag)
    }
}

/// Etags are 128 bits in hexadecimal; the only other one is that of an internal error.
pub(super) fn bits(etag: &str) -> EtagBits {
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

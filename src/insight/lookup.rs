//! Look-ups of effective policies: from a request to the bytes of the reply.

use std::collections::BTreeSet;

use bytes::{Bytes, BytesMut};
use hashbrown::HashMap;
use prost::Message;

use super::visible::visible_entries;
use super::{AccessScope, Failure, MAX_NAMED, Visibility};
use crate::api::{
    ALL_KINDS, EncodedBatchGetEffectivePoliciesResponse, EncodedGetEffectivePoliciesResponse,
    StateReason, batch_tail, field, field_header, get_tail, not_modified_field, result_field, v1,
};
use crate::snapshot::{PathAnswer, Snapshot};
use entail_core::engine::StateId;
use entail_core::model::{GroupKind, PathName};
use v1::get_effective_policies_request::Target;

/// Maximum number of paths of one batch.
pub const MAX_BATCH: usize = 10_000;

/// Answers a look-up of all kinds by the name of a path. Returns `None` if the name is malformed or
/// not a path. Does not allocate.
pub fn get_stored(snapshot: &Snapshot, text: &str) -> Option<EncodedGetEffectivePoliciesResponse> {
    let path = PathName::parse(text).ok()?;
    let body = snapshot.look_up(&path)?;
    Some(snapshot.reply(body))
}

/// Answers a look-up.
///
/// # Errors
/// The name is malformed, the path does not exist, or the request names too many kinds.
pub fn get(
    snapshot: &Snapshot,
    request: &v1::GetEffectivePoliciesRequest,
    scope: &AccessScope,
) -> Result<EncodedGetEffectivePoliciesResponse, Failure> {
    let text = requested_path(request)?;
    let body = find(snapshot, &text, scope)?;
    if request.kinds.is_empty() && scope.has_all_kinds() {
        return Ok(if not_modified(&request.if_none_match, body.etag()) {
            EncodedGetEffectivePoliciesResponse {
                result: not_modified_field(body.etag()).into(),
                tail: snapshot.get_tail().clone(),
            }
        } else {
            snapshot.reply(body)
        });
    }
    let requested = requested_kinds(&request.kinds)?;
    let in_scope = scope.narrow(&requested);
    let policies = selected(body, &in_scope);
    let tag = body.etag_of(&in_scope);
    let result = if not_modified(&request.if_none_match, &tag) {
        not_modified_field(&tag)
    } else {
        result_field(std::iter::once(policies.as_ref()), &tag)
    };
    let version = snapshot.version();
    let kinds = incomplete_kinds(snapshot, &requested, scope);
    Ok(EncodedGetEffectivePoliciesResponse {
        result: result.into(),
        tail: get_tail(version.message(), version.synced_at, &kinds).into(),
    })
}

/// Answers a batch from one snapshot. Each path has its own status; equal answers are sent once.
///
/// # Errors
/// More than [`MAX_BATCH`] paths, or too many kinds.
pub fn batch(
    snapshot: &Snapshot,
    request: &v1::BatchGetEffectivePoliciesRequest,
    scope: &AccessScope,
) -> Result<EncodedBatchGetEffectivePoliciesResponse, Failure> {
    if request.requests.len() > MAX_BATCH {
        return Err(Failure::invalid(
            "TooManyPaths",
            format!(
                "{} paths in one batch, maximum {MAX_BATCH}: split it",
                request.requests.len()
            ),
        ));
    }
    let requested = requested_kinds(&request.kinds)?;
    let in_scope = scope.narrow(&requested);
    let mut table = AnswerTable::default();
    let mut results = BytesMut::new();
    for one in &request.requests {
        let result = match requested_path(one).and_then(|text| find(snapshot, &text, scope)) {
            Err(failure) => v1::PathPolicies {
                error: Some(failure.path_error()),
                ..v1::PathPolicies::default()
            },
            Ok(body) => table.point(body, &in_scope, &one.if_none_match),
        };
        results.extend_from_slice(&field(1, &result.encode_to_vec()));
    }
    let version = snapshot.version();
    let kinds = incomplete_kinds(snapshot, &requested, scope);
    Ok(EncodedBatchGetEffectivePoliciesResponse {
        results: results.freeze(),
        bodies: table.bodies,
        tail: batch_tail(version.message(), version.synced_at, &kinds).into(),
    })
}

/// The distinct answers of a batch.
#[derive(Default)]
struct AnswerTable {
    /// By address of the answer in the snapshot: its etag, and its index in `bodies` once added.
    entries: HashMap<usize, (String, Option<u32>)>,
    bodies: Vec<(Bytes, Bytes)>,
}

impl AnswerTable {
    fn point(
        &mut self,
        body: &PathAnswer,
        in_scope: &[GroupKind],
        if_none_match: &str,
    ) -> v1::PathPolicies {
        let bodies = &mut self.bodies;
        let address = std::ptr::from_ref(body) as usize;
        let (tag, index) = self
            .entries
            .entry(address)
            .or_insert_with(|| (body.etag_of(in_scope), None));
        let unmodified = not_modified(if_none_match, tag);
        if !unmodified && index.is_none() {
            *index = u32::try_from(bodies.len()).ok();
            let policies = selected(body, in_scope);
            bodies.push((field_header(2, policies.len()).into(), policies));
        }
        v1::PathPolicies {
            etag: tag.clone(),
            not_modified: unmodified,
            body: index.filter(|_| !unmodified),
            ..v1::PathPolicies::default()
        }
    }
}

/// The path name of a request.
///
/// # Errors
/// The request sets neither `path` nor `ref`.
pub fn requested_path(request: &v1::GetEffectivePoliciesRequest) -> Result<String, Failure> {
    match &request.target {
        Some(Target::Path(path)) => Ok(path.clone()),
        Some(Target::Ref(reference)) => Ok(name_of(reference)),
        None => Err(Failure::invalid("NoTarget", "set `path` or `ref`")),
    }
}

/// Builds a path name from its parts. Errors are found when the name is parsed.
fn name_of(reference: &v1::PathRef) -> String {
    let mut name = if reference.service.is_empty() {
        format!("gateways/{}", reference.gateway)
    } else {
        let client = match reference.client_namespace.as_str() {
            "" => "*",
            client => client,
        };
        format!("mesh/{client}/services/{}", reference.service)
    };
    let service_port = reference.service_port.to_string();
    let port = reference.backend_port.to_string();
    let above = [
        ("ports", service_port.as_str(), "0"),
        ("listenersets", reference.listener_set.as_str(), ""),
        ("listeners", reference.listener.as_str(), ""),
    ];
    let delegating = reference.delegating_rules.iter().flat_map(|rule| {
        let (route, rule) = rule.rsplit_once('/').unwrap_or((rule, ""));
        [("routes", route, ""), ("rules", rule, "")]
    });
    let below = [
        ("routes", reference.route.as_str(), ""),
        ("rules", reference.rule.as_str(), ""),
        ("backends", reference.backend.as_str(), ""),
        ("ports", port.as_str(), "0"),
    ];
    for (word, value, unset) in above.into_iter().chain(delegating).chain(below) {
        if value != unset {
            name.push('/');
            name.push_str(word);
            name.push('/');
            name.push_str(value);
        }
    }
    name
}

pub(super) fn find<'s>(
    snapshot: &'s Snapshot,
    text: &str,
    scope: &AccessScope,
) -> Result<&'s PathAnswer, Failure> {
    let path = PathName::parse(text).map_err(|error| Failure::syntax(text, &error))?;
    if !scope.has_path(text) {
        return Err(Failure::hidden(text, &path));
    }
    if let Some(body) = snapshot.look_up(&path) {
        return Ok(body);
    }
    let reason = snapshot.path_reason(&path);
    Err(Failure::not_found(snapshot, text, reason, scope))
}

/// Whether a request for some kinds, or for all if empty, includes a kind. The name of a resource kind includes its
/// sections (specification 2.14).
pub(super) fn is_requested(requested: &[GroupKind], kind: &GroupKind) -> bool {
    requested.is_empty() || requested.iter().any(|one| one.names(kind))
}

/// Parses the kinds of a request.
///
/// # Errors
/// The request names too many kinds.
pub(super) fn requested_kinds(kinds: &[String]) -> Result<Vec<GroupKind>, Failure> {
    Failure::check_count("kinds", kinds.len(), MAX_NAMED)?;
    Ok(kinds.iter().map(|text| GroupKind::parse(text)).collect())
}

fn selected(body: &PathAnswer, in_scope: &[GroupKind]) -> Bytes {
    let mut policies = BytesMut::new();
    for part in body.policies(in_scope) {
        policies.extend_from_slice(&part);
    }
    policies.freeze()
}

/// Returns the visible kinds whose state is not complete, and the requested kinds without a profile
/// (specification 2.5).
pub fn incomplete_kinds(
    snapshot: &Snapshot,
    requested: &[GroupKind],
    visibility: &dyn Visibility,
) -> Vec<v1::KindState> {
    let mut kinds = snapshot.kinds().to_vec();
    let failed = snapshot.world().kinds().iter();
    for kind in failed.filter(|kind| kind.fault().is_some()) {
        let kind = kind.profile().policy.to_string();
        kinds.retain(|state| state.kind != kind);
        kinds.push(StateReason::InternalError.kind_state(kind));
        kinds.sort_by(|a, b| a.kind.cmp(&b.kind));
    }
    if !visibility.is_unrestricted() {
        kinds.retain(|state| {
            state.kind == ALL_KINDS || visibility.includes_kind(&GroupKind::parse(&state.kind))
        });
    }
    kinds.extend(unknown(snapshot, requested, visibility));
    kinds
}

/// Returns the kinds of [`incomplete_kinds`], and the requested kinds that are unknown on some visible path,
/// for replies about many paths.
pub fn unknown_kinds(
    snapshot: &Snapshot,
    requested: &[GroupKind],
    visibility: &dyn Visibility,
) -> Vec<v1::KindState> {
    let mut kinds = incomplete_kinds(snapshot, requested, visibility);
    let is_requested = |kind: &GroupKind| is_requested(requested, kind);
    if visibility.is_unrestricted() {
        let unknown = snapshot.unknown_kinds().iter().map(|kind| &kind.state);
        let unknown = unknown.filter(|state| is_requested(&GroupKind::parse(&state.kind)));
        kinds.extend(unknown.cloned());
        return kinds;
    }
    if snapshot.unknown_kinds().is_empty() {
        return kinds;
    }
    let engine = snapshot.engine();
    let entries = visible_entries(engine, visibility).unwrap_or_else(|error| {
        engine.fail(error);
        Vec::new()
    });
    let states: BTreeSet<StateId> = entries.iter().map(|entry| entry.state).collect();
    let unknown = snapshot.unknown_kinds_at(states, |kind| {
        is_requested(kind) && visibility.includes_kind(kind)
    });
    kinds.extend(unknown.into_iter().map(|kind| kind.state));
    kinds
}

/// Returns requested kinds without a profile, which differ from kinds without a policy (specification
/// 2.3). Kinds that the caller may not see are indistinguishable from them.
fn unknown(
    snapshot: &Snapshot,
    requested: &[GroupKind],
    visibility: &dyn Visibility,
) -> Vec<v1::KindState> {
    let is_incomplete =
        |kind: &GroupKind| snapshot.kinds().iter().any(|k| k.kind == kind.to_string());
    let is_known = |kind: &GroupKind| snapshot.has_profile(kind) || is_incomplete(kind);
    requested
        .iter()
        .filter(|kind| !is_known(kind) || !visibility.includes_kind(kind))
        .map(|kind| StateReason::without_profile(kind.to_string(), snapshot.kinds()))
        .collect()
}

fn not_modified(if_none_match: &str, etag: &str) -> bool {
    !if_none_match.is_empty() && if_none_match == etag
}

//! Look-ups: from a request to reply bytes.

use bytes::{Bytes, BytesMut};
use hashbrown::HashMap;
use prost::Message;

use super::{AccessScope, Failure, Visibility};
use crate::api::{
    EncodedBatchGetEffectivePoliciesResponse, EncodedGetEffectivePoliciesResponse, batch_tail,
    field, field_header, get_tail, not_modified_field, result_field, v1,
};
use crate::snapshot::{PathAnswer, Snapshot};
use entail_core::model::{GroupKind, PathName};
use v1::get_effective_policies_request::Target;

/// Most paths of one batch.
pub const MAX_BATCH: usize = 10_000;

/// Answers a look-up of all kinds by a path's name; `None` for what needs more than stored bytes.
/// From the name to the reply's bytes nothing is allocated.
pub fn get_stored(snapshot: &Snapshot, text: &str) -> Option<EncodedGetEffectivePoliciesResponse> {
    let path = PathName::parse(text).ok()?;
    let body = snapshot.look_up(&path)?;
    Some(snapshot.reply(body))
}

/// Answers a look-up.
///
/// # Errors
/// What is wrong with the name, or the first step that is none.
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
    let asked = requested_kinds(&request.kinds);
    let wanted = scope.narrow(&asked);
    let policies = selected(body, &wanted);
    let tag = body.etag_of(&wanted);
    let result = if not_modified(&request.if_none_match, &tag) {
        not_modified_field(&tag)
    } else {
        result_field(std::iter::once(policies.as_ref()), &tag)
    };
    let version = snapshot.version();
    let kinds = incomplete_kinds(snapshot, &asked, scope);
    Ok(EncodedGetEffectivePoliciesResponse {
        result: result.into(),
        tail: get_tail(version.message(), version.synced_at, &kinds).into(),
    })
}

/// Answers a batch from one snapshot: a status for each path, equal answers once.
///
/// # Errors
/// More than [`MAX_BATCH`] paths.
pub fn batch(
    snapshot: &Snapshot,
    request: &v1::BatchGetEffectivePoliciesRequest,
    scope: &AccessScope,
) -> Result<EncodedBatchGetEffectivePoliciesResponse, Failure> {
    if request.requests.len() > MAX_BATCH {
        return Err(Failure::invalid(
            "TooManyPaths",
            format!(
                "{} paths in one batch; at most {MAX_BATCH} are answered: split it",
                request.requests.len()
            ),
        ));
    }
    let asked = requested_kinds(&request.kinds);
    let wanted = scope.narrow(&asked);
    let mut table = AnswerTable::default();
    let mut results = BytesMut::new();
    for one in &request.requests {
        let result = match requested_path(one).and_then(|text| find(snapshot, &text, scope)) {
            Err(failure) => v1::PathPolicies {
                error: Some(failure.path_error()),
                ..v1::PathPolicies::default()
            },
            Ok(body) => table.point(body, &wanted, &one.if_none_match),
        };
        results.extend_from_slice(&field(1, &result.encode_to_vec()));
    }
    let version = snapshot.version();
    let kinds = incomplete_kinds(snapshot, &asked, scope);
    Ok(EncodedBatchGetEffectivePoliciesResponse {
        results: results.freeze(),
        bodies: table.bodies,
        tail: batch_tail(version.message(), version.synced_at, &kinds).into(),
    })
}

/// The distinct bodies of a batch.
#[derive(Default)]
struct AnswerTable {
    /// By address of the snapshot's body: its etag, and its place once it is told.
    known: HashMap<usize, (String, Option<u32>)>,
    bodies: Vec<(Bytes, Bytes)>,
}

impl AnswerTable {
    fn point(
        &mut self,
        body: &PathAnswer,
        wanted: &[GroupKind],
        if_none_match: &str,
    ) -> v1::PathPolicies {
        let bodies = &mut self.bodies;
        let address = std::ptr::from_ref(body) as usize;
        let (tag, place) = self
            .known
            .entry(address)
            .or_insert_with(|| (body.etag_of(wanted), None));
        let unmodified = not_modified(if_none_match, tag);
        if !unmodified && place.is_none() {
            *place = u32::try_from(bodies.len()).ok();
            let policies = selected(body, wanted);
            bodies.push((field_header(2, policies.len()).into(), policies));
        }
        v1::PathPolicies {
            etag: tag.clone(),
            not_modified: unmodified,
            body: place.filter(|_| !unmodified),
            ..v1::PathPolicies::default()
        }
    }
}

/// The name that a request asks for.
///
/// # Errors
/// The request names nothing, or its reference skips levels.
pub fn requested_path(request: &v1::GetEffectivePoliciesRequest) -> Result<String, Failure> {
    match &request.target {
        Some(Target::Path(path)) => Ok(path.clone()),
        Some(Target::Ref(reference)) => Ok(name_of(reference)),
        None => Err(Failure::invalid(
            "NoTarget",
            "the request names no path: set `path` or `ref`",
        )),
    }
}

/// The name of a path given in parts; what is wrong with it shows when the name is read.
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
    for (word, value, unset) in [
        ("ports", service_port.as_str(), "0"),
        ("listenersets", reference.listener_set.as_str(), ""),
        ("listeners", reference.listener.as_str(), ""),
        ("routes", reference.route.as_str(), ""),
        ("rules", reference.rule.as_str(), ""),
        ("backends", reference.backend.as_str(), ""),
        ("ports", port.as_str(), "0"),
    ] {
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

/// The kinds that a request names.
pub(super) fn requested_kinds(kinds: &[String]) -> Vec<GroupKind> {
    kinds.iter().map(|text| GroupKind::parse(text)).collect()
}

fn selected(body: &PathAnswer, wanted: &[GroupKind]) -> Bytes {
    let mut policies = BytesMut::new();
    for part in body.policies(wanted) {
        policies.extend_from_slice(part);
    }
    policies.freeze()
}

/// The kinds in scope of which not everything is known, those that were asked for and have no
/// profile among them (specification 2.5).
pub fn incomplete_kinds(
    snapshot: &Snapshot,
    asked: &[GroupKind],
    visibility: &dyn Visibility,
) -> Vec<v1::KindState> {
    let mut kinds = snapshot.kinds().to_vec();
    let failed = snapshot.world().kinds().iter();
    for kind in failed.filter(|kind| kind.fault().is_some()) {
        let kind = kind.profile().policy.to_string();
        kinds.retain(|told| told.kind != kind);
        kinds.push(v1::KindState {
            kind,
            state: v1::kind_state::State::Unknown.into(),
        });
        kinds.sort_by(|a, b| a.kind.cmp(&b.kind));
    }
    if !visibility.is_unrestricted() {
        kinds.retain(|told| visibility.includes_kind(&GroupKind::parse(&told.kind)));
    }
    kinds.extend(unknown(snapshot, asked, visibility));
    kinds
}

/// Kinds that were asked for and have no profile: not the same as no policy (specification 2.3). Those
/// that may not be seen are told alike.
fn unknown(
    snapshot: &Snapshot,
    asked: &[GroupKind],
    visibility: &dyn Visibility,
) -> Vec<v1::KindState> {
    let told = |kind: &GroupKind| snapshot.kinds().iter().any(|k| k.kind == kind.to_string());
    let is_known = |kind: &GroupKind| snapshot.has_profile(kind) || told(kind);
    asked
        .iter()
        .filter(|kind| !is_known(kind) || !visibility.includes_kind(kind))
        .map(|kind| v1::KindState {
            kind: kind.to_string(),
            state: v1::kind_state::State::Unknown.into(),
        })
        .collect()
}

fn not_modified(if_none_match: &str, etag: &str) -> bool {
    !if_none_match.is_empty() && if_none_match == etag
}

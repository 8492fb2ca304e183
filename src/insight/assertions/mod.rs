//! Assertions: what the effective policies of all paths of some kind must be like.
//!
//! An assertion is an object (`EffectivePolicyAssertion`, `ClusterEffectivePolicyAssertion`). A path that is not known to be
//! as expected is not as expected: it is reported as not known.

mod checker;
mod document;
mod effect;
mod expectation;
mod filter;
mod findings;
mod result;
mod tree;
mod verdict;
mod walk;

pub use checker::AssertionChecker;
pub use effect::{BrokenAssertion, broken_by, enforced_in};
pub use findings::{assertion_findings, is_of_result};
pub use result::NOT_CHECKED;

use std::sync::Arc;

use jiff::civil::Date;
use jiff::{Timestamp, tz::TimeZone};
use prost::Message;

use self::checker::{CheckedAssertion, DEFAULT_SAMPLES, assertions_of, within_limits};
use super::failure::{MAX_NAMED, shortened};
use super::lookup::incomplete_kinds;
use super::paths::{page, token};
use super::{Failure, PreviewFn, QuerySubject, Visibility};
use crate::api::{StateReason, etag, v1};
use crate::snapshot::{AssertionResults, Snapshot};
use entail_core::model::{GroupKind, Object, ObjectKey, nearest};

/// Maximum number of paths that a result names.
pub const MAX_SAMPLES: i32 = 1_000;

/// Returns the results of all assertions that a caller sees, on the paths that the caller sees, today.
pub(super) fn current_results(
    snapshot: &Snapshot,
    visibility: &dyn Visibility,
) -> Result<Vec<(ObjectKey, v1::AssertionResult)>, Failure> {
    let assertions = assertions_of(snapshot, visibility);
    let keys: Vec<ObjectKey> = assertions.iter().map(|o| o.key.clone()).collect();
    let results = all_results(snapshot, assertions, visibility)?;
    Ok(keys.into_iter().zip(results.iter().cloned()).collect())
}

/// Returns the results of all assertions that a caller sees, today. For those who see everything they are made once.
fn all_results(
    snapshot: &Snapshot,
    assertions: Vec<Arc<Object>>,
    visibility: &dyn Visibility,
) -> Result<AssertionResults, Failure> {
    let today = today();
    let make = || {
        let budget = visibility.budget();
        let results = within_limits(assertions).map(|assertion| {
            budget.check()?;
            Ok(checked(
                snapshot,
                assertion,
                (today, DEFAULT_SAMPLES),
                visibility,
            ))
        });
        let results: Vec<_> = results.collect::<Result<_, Failure>>()?;
        // The last of them may be incomplete.
        budget.check()?;
        Ok(results)
    };
    match visibility.is_unrestricted() {
        true => {
            let memo = snapshot.assertion_memo();
            memo.get_or_make(today, || visibility.budget().check(), make)
        }
        false => make().map(Into::into),
    }
}

/// Checks one of the assertions of a snapshot.
fn checked(
    snapshot: &Snapshot,
    (is_within, object): (bool, Arc<Object>),
    day: (Date, usize),
    visibility: &dyn Visibility,
) -> v1::AssertionResult {
    if !is_within {
        return result::not_checked(&object);
    }
    let mut assertion = CheckedAssertion::new(object, snapshot, visibility);
    assertion.check(snapshot, day, visibility)
}

/// Checks the assertions that a caller sees on the paths that the caller sees.
///
/// # Errors
/// A name is malformed or of no assertion, the date is malformed, the page token is invalid or belongs to another
/// snapshot, or the caller is gone.
pub fn check_assertions(
    snapshot: &Snapshot,
    request: &v1::CheckAssertionsRequest,
    change: PreviewFn,
    visibility: &dyn Visibility,
) -> Result<v1::CheckAssertionsResponse, Failure> {
    Failure::check_count("names", request.names.len(), MAX_NAMED)?;
    let range = page(snapshot, request.page_size, &request.page_token)?;
    let on = date(&request.date)?;
    let samples = samples(request.max_paths)?;
    let (changed, problems) = match request.manifests.is_empty() {
        true => (None, Vec::new()),
        false => {
            let (changed, problems) = applied(snapshot, &request.manifests, change, visibility)?;
            (Some(changed), problems)
        }
    };
    let world = changed.as_ref().unwrap_or(snapshot);
    let budget = visibility.budget();
    let assertions = selected(world, &request.names, visibility)?;
    let count = assertions.len();
    let are_usual = request.names.is_empty() && (on, samples) == (today(), DEFAULT_SAMPLES);
    let known = match are_usual && visibility.is_unrestricted() {
        true => Some(all_results(world, assertions.clone(), visibility)?),
        false => None,
    };
    let assertions = within_limits(assertions).enumerate();
    let mut room = range.room();
    let mut results: Vec<v1::AssertionResult> = Vec::new();
    for (number, assertion) in assertions.skip(range.first) {
        budget.check()?;
        let known = known.as_ref().and_then(|known| known.get(number));
        let result = match known {
            Some(known) => known.clone(),
            None => checked(world, assertion, (on, samples), visibility),
        };
        budget.check()?;
        if !room.take(result.encoded_len()) {
            break;
        }
        results.push(result);
    }
    let next = range.first.saturating_add(results.len());
    let encoded: Vec<Vec<u8>> = results.iter().map(Message::encode_to_vec).collect();
    let etag = etag(&encoded.concat());
    let not_modified = etag == request.if_none_match;
    if not_modified {
        results.clear();
    }
    let mut kinds = incomplete_kinds(world, &[], visibility);
    kinds.extend(unread_assertions(world));
    let version = snapshot.version();
    Ok(v1::CheckAssertionsResponse {
        results,
        problems,
        next_page_token: token(snapshot, next, count),
        version: Some(version.message()),
        synced_at: Some(version.synced_at),
        kinds,
        truncated: visibility.is_truncated(),
        etag,
        not_modified,
    })
}

/// The kinds of assertions of which not all are known. Look-ups do not report them: no answer depends on them.
pub fn unread_assertions(snapshot: &Snapshot) -> impl Iterator<Item = v1::KindState> {
    GroupKind::assertions().into_iter().filter_map(|kind| {
        let state = snapshot.world().store().state(&kind)?;
        Some(StateReason::of(state)?.kind_state(kind.to_string()))
    })
}

/// Returns the snapshot after manifests are applied, with their problems.
fn applied(
    snapshot: &Snapshot,
    manifests: &str,
    change: PreviewFn,
    visibility: &dyn Visibility,
) -> Result<(Snapshot, Vec<v1::Problem>), Failure> {
    visibility.budget().check()?;
    let may = |key: &ObjectKey| visibility.includes_object(key);
    let (world, problems) = change(snapshot.world(), manifests, &[], &may);
    visibility.budget().check()?;
    let problems = problems.into_iter().map(|(location, message)| v1::Problem {
        location,
        message,
        code: String::new(),
    });
    let snapshot = Snapshot::build(world, snapshot.version().clone());
    Ok((snapshot, problems.collect()))
}

/// The assertions that have one of some names; all if there are no names.
fn selected(
    snapshot: &Snapshot,
    names: &[String],
    visibility: &dyn Visibility,
) -> Result<Vec<Arc<Object>>, Failure> {
    let all = assertions_of(snapshot, visibility);
    if names.is_empty() {
        return Ok(all);
    }
    let mut found = Vec::with_capacity(names.len());
    for name in names {
        let subject = QuerySubject::read(name, snapshot.world(), visibility)?;
        let QuerySubject::Object(key, None) = subject else {
            return Err(Failure::invalid(
                "NotAnObject",
                format!(
                    "malformed name of an assertion `{}`: use `kind/namespace/name`",
                    shortened(name)
                ),
            ));
        };
        let object = all.iter().find(|object| object.key == key);
        let object = object.ok_or_else(|| {
            let names = all.iter().map(|object| object.key.to_string());
            let near = nearest(&key.to_string(), names.collect());
            let near = near.map(|near| format!(": did you mean `{near}`?"));
            let name = shortened(name);
            Failure::no_such_object(format!(
                "assertion `{name}` not found{}",
                near.unwrap_or_default()
            ))
        })?;
        found.push(Arc::clone(object));
    }
    Ok(found)
}

/// The day of a request; today in UTC if it is empty.
fn date(text: &str) -> Result<Date, Failure> {
    if text.is_empty() {
        return Ok(today());
    }
    text.parse().map_err(|_| {
        let text = shortened(text);
        Failure::invalid(
            "NotADate",
            format!("`{text}` is not a date: use `YYYY-MM-DD`"),
        )
    })
}

/// The number of paths that a result names, as a request says.
fn samples(most: i32) -> Result<usize, Failure> {
    match usize::try_from(most.min(MAX_SAMPLES)) {
        Ok(0) => Ok(DEFAULT_SAMPLES),
        Ok(most) => Ok(most),
        Err(_) => Err(Failure::invalid("PageSize", "max_paths is negative")),
    }
}

/// The date of today in UTC.
pub fn today() -> Date {
    Timestamp::now().to_zoned(TimeZone::UTC).date()
}

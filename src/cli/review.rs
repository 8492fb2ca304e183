//! What a change of manifests means for those who review it: values that are lost, routes that move away from policies, new
//! paths without the policies that all others have, and new findings.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::levels::kind_name;
use super::policies::short_kind;
use super::render::changes::{is_lost, path_end};
use super::render::findings::{FileLocation, about_input, file_location_in, of_inputs};
use super::session::is_selected;
use crate::api::v1;
use crate::insight::{
    Code, MAX_SAMPLES, PAGE_SIZE, QueryBackend, QueryError, assertion_findings, is_of_result,
};
use entail_core::model::{Level, PathName, Root};
use v1::assertion_result::Outcome;
use v1::finding::Severity;
use v1::get_effective_policies_request::Target;

/// Maximum number of paths of a Gateway that a new path is compared with.
const MAX_SIBLINGS: usize = 200;

/// A change of manifests.
#[derive(Debug, Default)]
pub(in crate::cli) struct Review {
    /// The changed answers of paths that both sides have, and the paths that one side has.
    pub(in crate::cli) changes: v1::PreviewChangeResponse,
    /// The rules and backends whose paths all go another way.
    pub(in crate::cli) moves: Vec<Move>,
    /// The new rules and backends without a kind that all others of the Gateway have.
    pub(in crate::cli) bare: Vec<BarePath>,
    /// The results of the assertions that hold on fewer paths than before, or not any more.
    pub(in crate::cli) broken: Vec<v1::AssertionResult>,
    /// The assertions that are gone, and their new exceptions.
    pub(in crate::cli) weakened: Vec<String>,
    /// The findings that only the later side has, besides those of assertions.
    pub(in crate::cli) new_findings: Vec<v1::Finding>,
    /// The number of findings that only the earlier side has.
    pub(in crate::cli) resolved_findings: usize,
}

/// A rule or backend whose paths go another way.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::cli) struct Move {
    /// `Kind/namespace/name[#section]`.
    pub(in crate::cli) object: String,
    /// The first path before.
    pub(in crate::cli) from: String,
    /// The first path after.
    pub(in crate::cli) to: String,
    /// The kinds that were in effect on every path before, and are not on one after.
    pub(in crate::cli) lost: Vec<String>,
    /// The other kinds whose values differ: kind, field, value before and after.
    pub(in crate::cli) changed: Vec<MovedValue>,
}

impl Move {
    /// Whether a kind or a value is lost on the way.
    pub(in crate::cli) fn has_losses(&self) -> bool {
        !self.lost.is_empty() || self.changed.iter().any(MovedValue::is_lost)
    }
}

/// A value that differs after a move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) struct MovedValue {
    /// The kind, without its group.
    pub(in crate::cli) kind: String,
    /// Dotted path of the field.
    pub(in crate::cli) field: String,
    /// The value before, as JSON; `None` if there was none.
    pub(in crate::cli) before: Option<String>,
    /// The value after, as JSON; `None` if there is none.
    pub(in crate::cli) after: Option<String>,
}

impl MovedValue {
    /// Whether there is no value after the move.
    fn is_lost(&self) -> bool {
        self.before.is_some() && self.after.is_none()
    }
}

/// A new rule or backend without a kind that all others of the Gateway have.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::cli) struct BarePath {
    /// The kind, without its group.
    pub(in crate::cli) kind: String,
    /// The name of the path.
    pub(in crate::cli) path: String,
    /// `namespace/name` of the Gateway.
    pub(in crate::cli) gateway: String,
    /// The number of other paths, all of which have the kind.
    pub(in crate::cli) others: usize,
    /// Whether it is not known what is in effect on the new path.
    pub(in crate::cli) is_unknown: bool,
}

/// The kinds in effect on a path, by their full names.
type InEffect = BTreeMap<String, v1::EffectivePolicy>;

impl Review {
    /// Reviews the changes between two backends, of some kinds, or of all if `kinds` is empty.
    ///
    /// # Errors
    /// A query fails.
    pub(in crate::cli) fn of(
        changes: v1::PreviewChangeResponse,
        before: &mut dyn QueryBackend,
        after: &mut dyn QueryBackend,
        kinds: &[String],
    ) -> Result<Self, QueryError> {
        let findings = |backend: &mut dyn QueryBackend| -> Result<Vec<v1::Finding>, QueryError> {
            let mut findings = all_findings(backend)?;
            findings.extend(of_inputs(&backend.server_status()?.problems));
            findings.retain(|f| is_of_kinds(f, kinds) && !is_of_result(f));
            Ok(findings)
        };
        let (old, new) = (findings(before)?, findings(after)?);
        let mut review = Self {
            resolved_findings: without(&old, &new).count(),
            new_findings: without(&new, &old).cloned().collect(),
            changes,
            ..Self::default()
        };
        review.new_findings.sort_by(|a, b| {
            let key = |one: &v1::Finding| (one.severity, one.object.clone(), one.message.clone());
            key(a).cmp(&key(b))
        });
        let (old, new) = (results(before)?, results(after)?);
        review.broken = broken(&old, &new);
        review.weakened = weakened(&old, &new);
        review.moves = review.moves(before, after, kinds)?;
        review.bare = review.bare(after, kinds)?;
        Ok(review)
    }

    /// Whether nothing changes.
    pub(in crate::cli) fn is_empty(&self) -> bool {
        let changes = &self.changes;
        changes.changes.is_empty()
            && changes.paths_added.is_empty()
            && changes.paths_removed.is_empty()
            && self.broken.is_empty()
            && self.weakened.is_empty()
            && self.new_findings.is_empty()
            && self.resolved_findings == 0
    }

    /// Whether something is lost: a value, a path that does not go another way, a kind on the way, or the correctness of an
    /// object.
    pub(in crate::cli) fn has_losses(&self) -> bool {
        let is_error = |finding: &v1::Finding| finding.severity() == v1::finding::Severity::Error;
        self.changes.loses_values
            || !self.broken.is_empty()
            || !self.removed().is_empty()
            || self.moves.iter().any(Move::has_losses)
            || !self.bare.is_empty()
            || self.new_findings.iter().any(is_error)
    }

    /// What the change takes away, as findings: for tools that show those on a change.
    pub(in crate::cli) fn findings(&self) -> Vec<v1::Finding> {
        let broken = self.broken.iter().flat_map(assertion_errors);
        let removed = self.removed().into_iter().map(|path| {
            let message = format!("`{path}` is removed");
            lost(Code::PathRemoved, path_end(path), message)
        });
        let moves = self.moves.iter().filter(|one| one.has_losses()).map(|one| {
            let values = one.changed.iter().filter(|value| value.is_lost());
            let values = values.map(|value| format!("`{}` of {}", value.field, value.kind));
            let all: Vec<String> = one.lost.iter().cloned().chain(values).collect();
            let (from, to, all) = (&one.from, &one.to, all.join(", "));
            let message = format!("{all} is in effect on {from} and not on {to}");
            lost(Code::LostOnTheWay, one.object.clone(), message)
        });
        let bare = self.bare.iter().map(|one| {
            let (kind, others, gateway) = (&one.kind, one.others, &one.gateway);
            let message =
                format!("no {kind} is in effect, as on all {others} other paths of `{gateway}`");
            lost(Code::NewPathWithoutPolicy, one.path.clone(), message)
        });
        let values = self.lost_values().into_iter();
        let values = values.map(|((object, kind, field), value)| {
            let message = format!("`{field}` of {kind} was {value} and is not set any more");
            lost(Code::ValueLost, object, message)
        });
        let all = broken.chain(values).chain(moves).chain(removed).chain(bare);
        all.collect()
    }

    /// The values that are lost on paths that both sides have, by object, kind and field.
    fn lost_values(&self) -> BTreeMap<(String, String, String), String> {
        let mut found = BTreeMap::new();
        for change in &self.changes.changes {
            for unit in change.units.iter().filter(|unit| is_lost(unit)) {
                let value = unit.before_json.clone().unwrap_or_default();
                for path in &change.paths {
                    let kind = short_kind(&change.kind).to_owned();
                    let key = (path_end(path), kind, unit.unit.clone());
                    found.entry(key).or_insert_with(|| value.clone());
                }
            }
        }
        found
    }

    /// The removed paths whose rule or backend has no path any more.
    pub(in crate::cli) fn removed(&self) -> Vec<&String> {
        // Rules and backends that have other paths are compared there; their routes have no more to lose.
        let added = self.changes.paths_added.iter();
        let ends: BTreeSet<String> = added.map(|path| path_end(path)).collect();
        let removed = self.changes.paths_removed.iter();
        let gone = removed.filter(|path| !ends.contains(&path_end(path)));
        // A path stands for those below it.
        let gone: BTreeSet<&String> = gone.collect();
        let names: BTreeSet<&str> = gone.iter().map(|path| path.as_str()).collect();
        let is_first = |path: &&String| !above(path).any(|above| names.contains(above));
        gone.into_iter().filter(is_first).collect()
    }

    /// Finds the rules and backends that have other paths than before.
    fn moves(
        &self,
        before: &mut dyn QueryBackend,
        after: &mut dyn QueryBackend,
        kinds: &[String],
    ) -> Result<Vec<Move>, QueryError> {
        let (removed, added) = (
            by_end(&self.changes.paths_removed),
            by_end(&self.changes.paths_added),
        );
        let mut moves = Vec::new();
        for (object, from) in &removed {
            let Some(to) = added.get(object) else {
                continue;
            };
            let old = in_effect_on(before, from, kinds)?;
            let new = in_effect_on(after, to, kinds)?;
            let everywhere = |answers: &[InEffect], kind: &String| {
                !answers.is_empty() && answers.iter().all(|answer| answer.contains_key(kind))
            };
            let all: BTreeSet<&String> = old.iter().flat_map(BTreeMap::keys).collect();
            let lost = all
                .into_iter()
                .filter(|kind| everywhere(&old, kind) && !everywhere(&new, kind));
            let lost: Vec<String> = lost.map(|kind| short_kind(kind).to_owned()).collect();
            let mut changed = Vec::new();
            // Each with the first of the other side: all pairs would be too many.
            let with_first_new = old.iter().zip(new.first().into_iter().cycle());
            let with_first_old = old.first().into_iter().cycle().zip(&new);
            for (old, new) in with_first_new.chain(with_first_old) {
                for value in differences(old, new) {
                    if !changed.contains(&value) && changed.len() < MAX_SIBLINGS {
                        changed.push(value);
                    }
                }
            }
            // What a backend has of its rule is told of the rule.
            let of_rule = moves.iter().filter(|other: &&Move| {
                let first = from.first();
                first.is_some_and(|path| is_below(path, &other.from))
            });
            let (mut lost, mut changed) = (lost, changed);
            for other in of_rule {
                lost.retain(|kind| !other.lost.contains(kind));
                changed.retain(|value| !other.changed.contains(value));
            }
            moves.push(Move {
                object: object.clone(),
                from: from.first().cloned().unwrap_or_default(),
                to: to.first().cloned().unwrap_or_default(),
                lost,
                changed,
            });
        }
        Ok(moves)
    }

    /// Finds the new rules and backends without a kind that all others of the Gateway have.
    fn bare(
        &self,
        after: &mut dyn QueryBackend,
        kinds: &[String],
    ) -> Result<Vec<BarePath>, QueryError> {
        let added: BTreeSet<&String> = self.changes.paths_added.iter().collect();
        let mut of_gateways: BTreeMap<(String, Level), Vec<&String>> = BTreeMap::new();
        for path in &added {
            if let Some(group) = group_of(path) {
                of_gateways.entry(group).or_default().push(path);
            }
        }
        let mut bare = Vec::new();
        for ((gateway, level), paths) in of_gateways {
            let siblings = paths_below(after, &gateway, level)?;
            let others: Vec<String> = siblings
                .into_iter()
                .filter(|path| !added.contains(path))
                .collect();
            let answers = in_effect_on(after, &others, kinds)?;
            let Some((first, rest)) = answers.split_first() else {
                continue;
            };
            let common = first
                .keys()
                .filter(|kind| rest.iter().all(|answer| answer.contains_key(*kind)));
            let common: Vec<&String> = common.collect();
            for path in paths {
                let all = policies_of(after, path)?;
                for kind in &common {
                    let of_kind = all.iter().find(|policy| kind_name(policy) == **kind);
                    if of_kind.is_some_and(is_in_effect) {
                        continue;
                    }
                    bare.push(BarePath {
                        kind: short_kind(kind).to_owned(),
                        path: path.clone(),
                        gateway: gateway.clone(),
                        others: answers.len(),
                        is_unknown: of_kind.is_some_and(|policy| policy.unknown.is_some()),
                    });
                }
            }
        }
        // A path stands for those below it.
        let of_rules: BTreeSet<(String, String)> = bare
            .iter()
            .map(|one| (one.kind.clone(), one.path.clone()))
            .collect();
        bare.retain(|one| {
            let is_told = |path: &str| of_rules.contains(&(one.kind.clone(), path.to_owned()));
            !above(&one.path).any(is_told)
        });
        bare.sort();
        Ok(bare)
    }
}

/// The names of what is above a path, from the nearest: paths, and what is between their steps.
fn above(path: &str) -> impl Iterator<Item = &str> {
    let ends = path.rmatch_indices('/');
    ends.filter_map(|(end, _)| path.get(..end))
}

/// Whether a path is below another one.
fn is_below(path: &str, above: &str) -> bool {
    let rest = path.strip_prefix(above);
    rest.is_some_and(|rest| rest.starts_with('/'))
}

fn all_findings(backend: &mut dyn QueryBackend) -> Result<Vec<v1::Finding>, QueryError> {
    // The message of the first place says what is wrong.
    Ok(backend.all_findings(Vec::new(), 1)?.findings)
}

/// Whether a finding is about an object of one of the kinds, or about any if `kinds` is empty.
fn is_of_kinds(finding: &v1::Finding, kinds: &[String]) -> bool {
    let kind = finding.object.split('/').next().unwrap_or_default();
    kinds.is_empty()
        || kinds
            .iter()
            .any(|one| one == kind || short_kind(one) == short_kind(kind))
}

/// The findings that others do not have: of another reason or object, or at more places. Messages name other objects, and
/// change with them. Findings without an object are compared by the name of their file.
fn without<'f>(
    findings: &'f [v1::Finding],
    others: &[v1::Finding],
) -> impl Iterator<Item = &'f v1::Finding> {
    let key = |finding: &v1::Finding| {
        let about = match file_location_in(&finding.location) {
            // The name of a file is the same in both sets of manifests.
            Some(FileLocation { file, .. }) if finding.object.is_empty() => {
                file.rsplit('/').next().unwrap_or_default()
            }
            _ => &finding.object,
        };
        (finding.reason.clone(), about.to_owned())
    };
    let mut places: BTreeMap<_, u64> = BTreeMap::new();
    for other in others {
        *places.entry(key(other)).or_default() += other.count.max(1);
    }
    findings.iter().filter(move |finding| {
        let count = finding.count.max(1);
        let before = places.entry(key(finding)).or_default();
        let is_new = count > *before;
        *before = before.saturating_sub(count);
        is_new
    })
}

/// Paths of rules and backends by their ends.
fn by_end(paths: &[String]) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in paths.iter().filter(|path| ends_low(path)) {
        found.entry(path_end(path)).or_default().push(path.clone());
    }
    found
}

/// Whether a path ends at a rule or backend.
fn ends_low(path: &str) -> bool {
    let level = PathName::parse(path).map(|path| path.level());
    level.is_ok_and(|level| {
        matches!(
            level,
            Level::RouteRule | Level::Backend | Level::BackendPort
        )
    })
}

/// The Gateway of a path that ends at a rule or backend, and the level.
fn group_of(path: &str) -> Option<(String, Level)> {
    let Ok(PathName::Traffic(traffic)) = PathName::parse(path) else {
        return None;
    };
    let Root::Gateway { namespace, name } = traffic.root else {
        return None;
    };
    let level = PathName::Traffic(traffic).level();
    ends_low(path).then(|| (format!("{namespace}/{name}"), level))
}

/// A finding about something that a change takes away.
fn lost(code: Code, object: String, message: String) -> v1::Finding {
    v1::Finding {
        object,
        ..about_input(code, String::new(), message)
    }
}

/// The findings of a result that does not hold.
fn assertion_errors(result: &v1::AssertionResult) -> impl Iterator<Item = v1::Finding> {
    let found = assertion_findings(result).into_iter();
    let errors = found.filter(|(code, _)| code.severity() == Severity::Error);
    let (object, location) = (result.object.clone(), result.location.clone());
    errors.map(move |(code, message)| v1::Finding {
        location: location.clone(),
        ..lost(code, object.clone(), message)
    })
}

fn results(backend: &mut dyn QueryBackend) -> Result<Vec<v1::AssertionResult>, QueryError> {
    let reply = backend.all_assertions(v1::CheckAssertionsRequest {
        max_paths: MAX_SAMPLES,
        ..v1::CheckAssertionsRequest::default()
    })?;
    Ok(reply.results)
}

/// The results after a change that do not hold, in another way than before.
fn broken(
    before: &[v1::AssertionResult],
    after: &[v1::AssertionResult],
) -> Vec<v1::AssertionResult> {
    let was_like_that = |now: &&v1::AssertionResult| {
        let Some(before) = result_of(before, &now.object) else {
            return false;
        };
        let known: BTreeSet<&str> = before.failures.iter().map(|f| f.path.as_str()).collect();
        let mut failures = now.failures.iter();
        before.outcome() == now.outcome()
            && before.failed >= now.failed
            && before.unknown >= now.unknown
            && failures.all(|failure| known.contains(failure.path.as_str()))
    };
    let failing = after.iter().filter(|now| now.outcome() != Outcome::Passed);
    failing.filter(|now| !was_like_that(now)).cloned().collect()
}

/// The assertions that are gone after a change, and the exceptions that are new, with their reasons.
fn weakened(before: &[v1::AssertionResult], after: &[v1::AssertionResult]) -> Vec<String> {
    let mut found = Vec::new();
    for old in before {
        let object = &old.object;
        let Some(new) = result_of(after, object) else {
            found.push(format!("{object} is removed"));
            continue;
        };
        let known: BTreeSet<&str> = old.exceptions.iter().map(|e| e.object.as_str()).collect();
        let all = new.exceptions.iter();
        let added = all.filter(|one| !known.contains(one.object.as_str()));
        found.extend(added.map(|one| {
            let (excepted, reason) = (&one.object, &one.reason);
            format!("{object} excepts {excepted}: {reason}")
        }));
    }
    found
}

fn result_of<'r>(
    results: &'r [v1::AssertionResult],
    object: &str,
) -> Option<&'r v1::AssertionResult> {
    results.iter().find(|result| result.object == object)
}

/// The first paths of a Gateway that end at a level.
fn paths_below(
    backend: &mut dyn QueryBackend,
    gateway: &str,
    level: Level,
) -> Result<Vec<String>, QueryError> {
    let reply = backend.list_paths(v1::ListPathsRequest {
        name: format!("gateways/{gateway}"),
        levels: vec![level.as_str().to_owned()],
        page_size: PAGE_SIZE,
        page_token: String::new(),
    })?;
    Ok(reply.paths)
}

/// The kinds in effect on each of the first paths.
fn in_effect_on(
    backend: &mut dyn QueryBackend,
    paths: &[String],
    kinds: &[String],
) -> Result<Vec<InEffect>, QueryError> {
    let mut answers = Vec::new();
    for path in paths.iter().take(MAX_SIBLINGS) {
        let policies = policies_of(backend, path)?.into_iter();
        let named = policies.map(|policy| (kind_name(&policy), policy));
        let effective =
            named.filter(|(kind, policy)| is_in_effect(policy) && is_selected(kinds, kind));
        answers.push(effective.collect());
    }
    Ok(answers)
}

fn policies_of(
    backend: &mut dyn QueryBackend,
    path: &str,
) -> Result<Vec<v1::EffectivePolicy>, QueryError> {
    let reply = backend.get(v1::GetEffectivePoliciesRequest {
        target: Some(Target::Path(path.to_owned())),
        ..Default::default()
    })?;
    Ok(reply.result.unwrap_or_default().policies)
}

/// Whether a kind takes effect on a path, and that is known.
fn is_in_effect(policy: &v1::EffectivePolicy) -> bool {
    let has_value = policy.spec_json.is_some() || !policy.listed.is_empty();
    has_value && !policy.inherited_only && policy.unknown.is_none()
}

/// The values that differ between two answers, of the kinds that both have.
fn differences(before: &InEffect, after: &InEffect) -> Vec<MovedValue> {
    let mut found = Vec::new();
    for (kind, old) in before {
        let Some(new) = after.get(kind) else { continue };
        let (old, new) = (fields(old), fields(new));
        let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        let differing = names
            .into_iter()
            .filter(|name| old.get(*name) != new.get(*name));
        found.extend(differing.map(|name| MovedValue {
            kind: short_kind(kind).to_owned(),
            field: name.clone(),
            before: old.get(name).cloned(),
            after: new.get(name).cloned(),
        }));
    }
    found
}

/// The values of an answer by dotted path. A list is one value.
fn fields(policy: &v1::EffectivePolicy) -> BTreeMap<String, String> {
    let spec = policy.spec_json.as_deref().unwrap_or("null");
    let spec = serde_json::from_str(spec).unwrap_or_else(|_| Value::from(spec));
    let mut found = BTreeMap::new();
    add_fields(String::new(), &spec, &mut found);
    found
}

fn add_fields(name: String, value: &Value, found: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                let name = match &*name {
                    "" => key.clone(),
                    name => format!("{name}.{key}"),
                };
                add_fields(name, value, found);
            }
        }
        value => {
            found.insert(name, value.to_string());
        }
    }
}

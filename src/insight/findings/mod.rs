//! Findings of `entail lint`: invalid policies, missing targets, policies without effect, silent
//! losses and conflicts (specification 1.4, 3.3, 9.2).

mod missing_crds;
mod missing_namespaces;
mod page;
mod patterns;
mod replaced;
mod routes;
mod suggestion;
mod unprofiled;

pub use missing_crds::missing_crds;
pub use missing_namespaces::missing_namespaces;
pub use page::MAX_PLACES;
pub(super) use suggestion::hint as missing_target_hint;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use self::page::{FindingPage, ScopedFinding};
use super::assertions::{assertion_findings, current_results};
use super::lookup::{is_requested, requested_kinds, unknown_kinds};
use super::policies::{statuses, unknown_message, unknown_reason};
use super::visible::visible_entries;
use super::waypoints::idle_references;
use super::{Budget, Failure, Visibility};
use crate::api::v1;
use crate::insight::Code;
use crate::snapshot::Snapshot;
use entail_core::effective::{AttachmentChain, PolicyKind, PolicyStatus, Statuses, World};
use entail_core::engine::{
    ChainId, ChainKey, ChainTable, PathCount, PathEngine, PathGroup, StateId, SurveyEntry,
};
use entail_core::merge::value_at;
use entail_core::model::{
    Enforcement, GroupKind, InternalError, ObjectKey, Outcome, OverriddenPolicy, PolicyRef, Unit,
    groups,
};
use entail_core::profile::{PolicyClass, PolicyLabel, Profile, ProfileOrigin};

/// Maximum number of paths in the message of a finding.
const MAX_NAMED_PATHS: usize = 3;

/// Lists the findings about visible objects, the most severe first.
///
/// # Errors
/// The page token is invalid or belongs to another snapshot, or the caller is gone.
pub fn list_findings(
    snapshot: &Snapshot,
    request: &v1::ListFindingsRequest,
    visibility: &dyn Visibility,
) -> Result<v1::ListFindingsResponse, Failure> {
    let world = snapshot.world();
    let requested = requested_kinds(&request.kinds)?;
    let mut findings = FindingPage::of(snapshot, request, visibility)?;
    let budget = visibility.budget();
    let engine = snapshot.engine();
    let scopes = Scopes::of(engine, visibility);
    let scopes = scopes.map_err(|error| engine.fail(error)).ok();
    let statuses = statuses(snapshot, visibility)?;
    for (number, kind) in world.kinds().iter().enumerate() {
        budget.check()?;
        if kind.is_unprofiled() {
            continue;
        }
        if !is_requested(&requested, &kind.profile().policy) {
            continue;
        }
        policies(world, &statuses, (number, kind), &mut findings);
        if let Some(scopes) = &scopes
            && let Err(error) = paths(scopes, (number, kind), &mut findings)
        {
            kind.fail(error);
        }
    }
    if requested.is_empty() {
        budget.check()?;
        profiles(world, visibility, &mut findings);
        patterns::unmatched_patterns(world, visibility, &mut findings);
        routes::conflicts(world, &mut findings);
        unprofiled::policies(world, &mut findings);
        unprofiled::parameters(world, &mut findings);
        unprofiled::unlisted_controllers(world, &mut findings);
        assertions(snapshot, &mut findings)?;
    }
    replaced::replacing_policies(world, &requested, &mut findings);
    missing_crds::find(world, &requested, &mut findings);
    budget.check()?;
    let (findings, next_page_token) = findings.finish(snapshot);
    let version = snapshot.version();
    Ok(v1::ListFindingsResponse {
        findings,
        next_page_token,
        version: Some(version.message()),
        synced_at: Some(version.synced_at),
        kinds: unknown_kinds(snapshot, &requested, visibility),
        truncated: visibility.is_truncated(),
    })
}

/// Adds the findings of assertions.
fn assertions(snapshot: &Snapshot, findings: &mut FindingPage<'_>) -> Result<(), Failure> {
    for (key, result) in current_results(snapshot, findings.visibility())? {
        for (code, message) in assertion_findings(&result) {
            findings.push(finding(snapshot.world(), code, &key, message));
        }
    }
    Ok(())
}

/// Creates a finding about an object. A policy of a section is named by its kind (specification 2.14).
fn finding(world: &World, code: Code, key: &ObjectKey, message: String) -> ScopedFinding {
    let object = ObjectKey {
        kind: key.kind.resource(),
        ..key.clone()
    };
    let entry = world.store().get(&object);
    let location = entry.and_then(|entry| entry.object.location.clone());
    ScopedFinding {
        visible_with: Some(object),
        location: location.map(|w| w.to_string()).unwrap_or_default(),
        object: key.to_string(),
        ..ScopedFinding::new(code, message)
    }
}

/// Adds the findings about single policies: errors, and policies that are not in effect.
fn policies(
    world: &World,
    statuses: &Statuses,
    (number, kind): (usize, &PolicyKind),
    findings: &mut FindingPage<'_>,
) {
    let visibility = findings.visibility();
    for (index, policy) in kind.policies() {
        if !visibility.budget().step() {
            return;
        }
        if !findings.sees(&policy.key) {
            continue;
        }
        let named = ObjectKey {
            kind: kind.profile().policy.clone(),
            ..policy.key.clone()
        };
        if let Some(why) = &policy.invalid {
            findings.push(finding(world, Code::Invalid, &named, why.to_string()));
            continue;
        }
        if let Some(missing) = &policy.missing {
            let message = missing.message.clone();
            findings.push(ScopedFinding {
                // The profile chooses the reason.
                reason: missing.reason.to_string(),
                ..finding(world, Code::MissingReference, &named, message)
            });
        }
        let mut add = |code: Code, message: String| {
            findings.push(finding(world, code, &named, message));
        };
        if let Some(reason) = &policy.untrusted {
            let message = format!("the controller does not accept the policy: {reason}");
            add(Code::NotTrusted, message);
        }
        for reference in kind.attached(index).into_iter().flat_map(|a| &a.references) {
            let Some(code) = code_of(reference.outcome) else {
                continue;
            };
            let near = suggestion::hint(world, policy, reference, visibility);
            add(
                code,
                format!("{}: {}{near}", reference.field, reference.message),
            );
        }
        for warning in &policy.warnings {
            add(Code::UnusualValue, warning.clone());
        }
        let idle = idle_references(world, kind, index);
        let is_idle = !idle.is_empty();
        for message in idle {
            add(Code::NoWaypoint, message);
        }
        let Some(status) = statuses.of(number, index) else {
            continue;
        };
        if let Some(why) = &status.refused {
            add(Code::Invalid, format!("not in effect: {why}"));
        }
        let effect = without_effect(status, visibility);
        if let Some((code, message)) = effect.filter(|(code, _)| *code != Code::NoScope || !is_idle)
        {
            add(code, message);
        }
    }
}

/// Why a policy is not in effect, or not known to be: the code and the message of its finding.
fn without_effect(status: &PolicyStatus, visibility: &dyn Visibility) -> Option<(Code, String)> {
    match status.in_force? {
        Enforcement::None => {
            let by: Vec<String> = status
                .overridden_by
                .iter()
                .map(ToString::to_string)
                .collect();
            let by = match by.is_empty() {
                true => "other fields".to_owned(),
                false => by.join(", "),
            };
            let paths = status.paths;
            let message = format!("not in effect: overridden on all {paths} paths by {by}");
            Some((Code::Overridden, message))
        }
        Enforcement::NoScope => {
            let message = match visibility.is_unrestricted() {
                true => "not in effect: its kind acts on no path of its targets",
                false => "not in effect: its kind acts on no path of its targets that you may see",
            };
            Some((Code::NoScope, message.to_owned()))
        }
        Enforcement::Unknown => {
            let reason = unknown_reason(status);
            let message = format!("not known to be in effect: {}", unknown_message(reason));
            Some((reason.into(), message))
        }
        _ => None,
    }
}

/// The code of a reference that does not attach. Of a policy that its controller does not accept, that is reported once.
fn code_of(outcome: Outcome) -> Option<Code> {
    match outcome {
        Outcome::Accepted | Outcome::Untrusted => None,
        Outcome::Invalid => Some(Code::Invalid),
        Outcome::RefNotPermitted => Some(Code::RefNotPermitted),
        Outcome::TargetNotFound => Some(Code::TargetNotFound),
        Outcome::Conflicted => Some(Code::Conflicted),
        Outcome::SelectorNotEvaluated => Some(Code::SelectorNotEvaluated),
        Outcome::BackendFilterNotEvaluated => Some(Code::BackendFilterNotEvaluated),
        Outcome::NoProfile => Some(Code::NoProfile),
    }
}

/// The visible paths that are scopes of a kind, grouped by their attachment chains.
struct Scopes<'e> {
    engine: &'e PathEngine,
    budget: &'e Budget,
    entries: Vec<SurveyEntry<StateId>>,
    groups: Vec<PathGroup<'e>>,
}

/// The problems of an attachment chain.
#[derive(Default)]
struct ChainProblems {
    /// Units that less specific policies offer and the result lacks, with these policies.
    lost_units: Vec<(PolicyRef, String)>,
    /// Whether merging top-down would give another result.
    depends_on_order: bool,
}

impl<'e> Scopes<'e> {
    fn of(engine: &'e PathEngine, visibility: &'e dyn Visibility) -> Result<Self, InternalError> {
        let entries = visible_entries(engine, visibility)?;
        Ok(Self {
            groups: engine.groups(&entries, false)?,
            entries,
            engine,
            budget: visibility.budget(),
        })
    }

    /// Returns the chains of a kind that have problems, with their paths, sorted by path names.
    fn problems(
        &self,
        number: usize,
        kind: &PolicyKind,
    ) -> Result<Vec<PathsWithProblems>, InternalError> {
        let world = self.engine.world();
        let mut chains = ChainTable::new(self.engine, number, kind);
        let mut paths_by_chain: BTreeMap<ChainKey, PathCount> = BTreeMap::new();
        let by_node = match kind.reads_own_fields() {
            true => self.engine.groups(&self.entries, true)?,
            false => Vec::new(),
        };
        let groups = match kind.reads_own_fields() {
            true => &by_node,
            false => &self.groups,
        };
        for group in groups {
            if let Some(chain) = chains.at_scope(group.state, group.object)? {
                let paths = paths_by_chain.entry((chain, group.node)).or_default();
                paths.join(&group.paths);
            }
        }
        let mut by_chain: BTreeMap<ChainId, Rc<ChainProblems>> = BTreeMap::new();
        let mut all = Vec::new();
        for ((chain, _), paths) in paths_by_chain {
            if !self.budget.step() {
                return Ok(Vec::new());
            }
            let problems = match by_chain.get(&chain) {
                Some(problems) => Rc::clone(problems),
                None => Rc::new(chain_problems(world, kind, chains.chain(chain)?)),
            };
            by_chain.insert(chain, Rc::clone(&problems));
            if problems.depends_on_order || !problems.lost_units.is_empty() {
                all.push((self.engine.names(&paths)?, paths.count, problems));
            }
        }
        all.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(all)
    }
}

/// The first names of the paths of a chain, the number of its paths, and its problems.
type PathsWithProblems = (Vec<String>, u64, Rc<ChainProblems>);

/// Returns the problems of a chain.
fn chain_problems(world: &World, kind: &PolicyKind, chain: &AttachmentChain) -> ChainProblems {
    let mut problems = ChainProblems {
        depends_on_order: world.top_down_differs(kind, chain),
        ..ChainProblems::default()
    };
    let losses = world.losses(kind, chain);
    if losses.is_empty() {
        return problems;
    }
    let explained = world.explain(kind, chain);
    for unit in &losses {
        let overridden = explained.units.iter().flat_map(|u| &u.overridden);
        let owners: BTreeSet<&PolicyRef> = overridden
            .filter(|overridden| offers(overridden, unit))
            .map(|b| &b.policy)
            .collect();
        let lost = owners.into_iter();
        problems
            .lost_units
            .extend(lost.map(|owner| (owner.clone(), unit.to_string())));
    }
    problems
}

/// Whether what a policy offered and lost contains a unit, or is below it. A larger unit can be without it.
fn offers(overridden: &OverriddenPolicy, unit: &Unit) -> bool {
    let below = unit.0.strip_prefix(overridden.unit.0.as_slice());
    unit.covers(&overridden.unit)
        || below.is_some_and(|below| value_at(&overridden.value, below).is_some())
}

/// The paths in a finding: their number, and the first names.
#[derive(Default)]
struct PathSample {
    count: u64,
    names: Vec<String>,
}

impl PathSample {
    fn add(&mut self, count: u64, names: &[String]) {
        self.count += count;
        let left = MAX_NAMED_PATHS.saturating_sub(self.names.len());
        self.names.extend(names.iter().take(left).cloned());
    }
}

/// Adds the findings about paths: silent losses, and merge orders that give different results.
fn paths(
    scopes: &Scopes<'_>,
    (number, kind): (usize, &PolicyKind),
    findings: &mut FindingPage<'_>,
) -> Result<(), InternalError> {
    let mut lost_units: BTreeMap<(PolicyRef, String), PathSample> = BTreeMap::new();
    let mut order_dependent = PathSample::default();
    for (names, count, problems) in scopes.problems(number, kind)? {
        for policy_and_unit in &problems.lost_units {
            let sample = lost_units.entry(policy_and_unit.clone()).or_default();
            sample.add(count, &names);
        }
        if problems.depends_on_order {
            order_dependent.add(count, &names);
        }
    }
    let world = scopes.engine.world();
    let policy_kind = &kind.profile().policy;
    for ((policy, unit), sample) in lost_units {
        let key = ObjectKey::new(policy_kind.clone(), policy.namespace, policy.name);
        let message = format!("`{unit}` is lost on {}", describe_paths(&sample));
        findings.push(finding(world, Code::SilentLoss, &key, message));
    }
    if order_dependent.count > 0 {
        let message = format!(
            "merging top-down, as GEP-713 draws it, would give another result on {}",
            describe_paths(&order_dependent)
        );
        findings.push(ScopedFinding {
            object: policy_kind.to_string(),
            ..ScopedFinding::new(Code::FoldOrder, message)
        });
    }
    Ok(())
}

/// Formats the number of paths and the first names.
fn describe_paths(sample: &PathSample) -> String {
    let most = u64::try_from(MAX_NAMED_PATHS).unwrap_or(u64::MAX);
    let more = if sample.count > most { ", ..." } else { "" };
    let paths = if sample.count == 1 { "path" } else { "paths" };
    format!(
        "{} {paths}: {}{more}",
        sample.count,
        sample.names.join(", ")
    )
}

/// Adds the findings about profiles: rejected profiles, and CRD labels that contradict a profile.
fn profiles(world: &World, visibility: &dyn Visibility, findings: &mut FindingPage<'_>) {
    for problem in world.problems() {
        findings.push(ScopedFinding {
            location: problem.location.clone(),
            ..ScopedFinding::new(Code::ProfileRefused, problem.reason.clone())
        });
    }
    for (_, entry) in world.store().of_kind(&GroupKind::crd()) {
        let Some(label) = PolicyLabel::read(&entry.object.labels) else {
            continue;
        };
        let defined = entry.object.defined_kind();
        let defined = defined.filter(|kind| visibility.includes_kind(kind));
        let label_class = match label {
            PolicyLabel::Direct => PolicyClass::Direct,
            PolicyLabel::Inherited => PolicyClass::Inherited,
        };
        let kinds = defined.iter().flat_map(|kind| world.kinds_of(kind));
        for profile in kinds.map(PolicyKind::profile) {
            if profile.origin != ProfileOrigin::Derived && profile.class != label_class {
                let name = match is_named(world, profile, visibility) {
                    true => format!("profile `{}`", profile.name),
                    false => "its profile".to_owned(),
                };
                let message = format!(
                    "label {} contradicts {name} ({}); the profile applies",
                    label_class.name(),
                    profile.class.name()
                );
                let key = &entry.object.key;
                findings.push(finding(world, Code::LabelContradicts, key, message));
            }
        }
    }
}

/// Whether the caller may know the name of a profile: it is built in or from the configuration, or the caller sees it.
fn is_named(world: &World, profile: &Profile, visibility: &dyn Visibility) -> bool {
    let kind = GroupKind::new(groups::ENTAIL, "PolicyProfile");
    let key = ObjectKey::new(kind, "", profile.name.clone());
    world.store().get(&key).is_none() || visibility.includes_object(&key)
}

//! What is worth a look: invalid policies, dangling targets, policies without effect, silent
//! losses, traps (specification 1.4, 3.3, 9.2).

mod routes;
mod suggestion;

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;

use super::Visibility;
use super::lookup::incomplete_kinds;
use crate::api::v1;
use crate::snapshot::Snapshot;
use entail_core::effective::{AttachmentChain, PolicyKind, World};
use entail_core::model::{Enforcement, GroupKind, ObjectKey, Outcome, PolicyRef};
use entail_core::profile::{PolicyClass, PolicyLabel, ProfileOrigin};
use v1::finding::Severity;

/// Most paths that a finding names.
const MAX_NAMED_PATHS: usize = 3;

/// Lists what is worth a look.
pub fn list_findings(
    snapshot: &Snapshot,
    request: &v1::ListFindingsRequest,
    visibility: &dyn Visibility,
) -> v1::ListFindingsResponse {
    let world = snapshot.world();
    let wanted: Vec<GroupKind> = request.kinds.iter().map(|k| GroupKind::parse(k)).collect();
    let mut findings = Vec::new();
    for (number, kind) in world.kinds().iter().enumerate() {
        if !wanted.is_empty() && !wanted.contains(&kind.profile().policy) {
            continue;
        }
        policies(snapshot, number, kind, &mut findings);
        paths(world, kind, visibility, &mut findings);
    }
    if wanted.is_empty() {
        profiles(world, visibility, &mut findings);
        routes::conflicts(world, &mut findings);
        unknown_kinds(world, &mut findings);
    }
    // What is about no object is about all of them.
    findings.retain(|found| match &found.object {
        Some(key) => visibility.includes_object(key),
        None => visibility.is_unrestricted(),
    });
    let mut findings: Vec<v1::Finding> = findings.into_iter().map(|found| found.finding).collect();
    findings.sort_by(|a, b| {
        (a.severity, &a.place, &a.object, &a.reason, &a.message)
            .cmp(&(b.severity, &b.place, &b.object, &b.reason, &b.message))
    });
    findings.dedup();
    let version = snapshot.version();
    v1::ListFindingsResponse {
        findings,
        version: Some(version.message()),
        synced_at: Some(version.synced_at),
        kinds: incomplete_kinds(snapshot, &[], visibility),
    }
}

/// What is worth a look.
struct ScopedFinding {
    /// The object that it is about, if it is about one.
    object: Option<ObjectKey>,
    finding: v1::Finding,
}

/// A finding about an object.
fn finding(
    world: &World,
    severity: Severity,
    reason: &str,
    key: &ObjectKey,
    message: String,
) -> ScopedFinding {
    let location = world
        .store()
        .get(key)
        .and_then(|e| e.object.location.clone());
    let finding = v1::Finding {
        severity: severity.into(),
        reason: reason.to_owned(),
        place: location.map(|w| w.to_string()).unwrap_or_default(),
        object: key.to_string(),
        message,
    };
    ScopedFinding {
        object: Some(key.clone()),
        finding,
    }
}

/// What is wrong with single policies, and which do nothing.
fn policies(
    snapshot: &Snapshot,
    number: usize,
    kind: &PolicyKind,
    findings: &mut Vec<ScopedFinding>,
) {
    let world = snapshot.world();
    let statuses = snapshot.statuses();
    for (index, policy) in kind.policies().iter().enumerate() {
        let mut tell = |severity, reason: &str, message: String| {
            findings.push(finding(world, severity, reason, &policy.key, message));
        };
        if let Some(why) = &policy.invalid {
            tell(Severity::Error, "Invalid", why.clone());
            continue;
        }
        if let Some(reason) = &policy.untrusted {
            let message = format!("its controller does not accept it: {reason}");
            tell(Severity::Error, "NotTrusted", message);
        }
        for reference in kind.attached(index).into_iter().flat_map(|a| &a.references) {
            let Some((severity, reason)) = severity_of(reference.outcome) else {
                continue;
            };
            let near = suggestion::hint(world, policy, reference);
            tell(
                severity,
                reason,
                format!("{}: {}{near}", reference.place, reference.message),
            );
        }
        for warning in &policy.warnings {
            tell(Severity::Note, "Odd", warning.clone());
        }
        let Some(status) = statuses.of(number, index) else {
            continue;
        };
        match status.in_force {
            Some(Enforcement::None) => {
                let by: Vec<String> = status
                    .overridden_by
                    .iter()
                    .map(ToString::to_string)
                    .collect();
                let by = if by.is_empty() {
                    "other fields".to_owned()
                } else {
                    by.join(", ")
                };
                let message = format!(
                    "it does nothing: on all {} paths it loses to {by}",
                    status.scopes
                );
                tell(Severity::Warning, "Overridden", message);
            }
            Some(Enforcement::NoScope) => {
                let message = "it does nothing: what it is attached to is on no path".to_owned();
                tell(Severity::Warning, "NoScope", message);
            }
            _ => {}
        }
    }
}

fn severity_of(outcome: Outcome) -> Option<(Severity, &'static str)> {
    match outcome {
        Outcome::Accepted | Outcome::Untrusted => None,
        Outcome::Conflicted => Some((Severity::Warning, outcome.as_str())),
        Outcome::SelectorNotEvaluated => Some((Severity::Note, outcome.as_str())),
        _ => Some((Severity::Error, outcome.as_str())),
    }
}

/// Silent losses, and where the two folds differ.
fn paths(
    world: &World,
    kind: &PolicyKind,
    visibility: &dyn Visibility,
    findings: &mut Vec<ScopedFinding>,
) {
    let mut known: HashMap<AttachmentChain, Vec<String>> = HashMap::new();
    world.topology().visit(&mut |name, resolved| {
        if !visibility.includes_path(name) {
            return;
        }
        let chain = world.attachment_chain(kind, resolved);
        if let Some(chain) = chain.filter(|_| world.is_scope(kind, resolved)) {
            known.entry(chain).or_default().push(name.to_owned());
        }
    });
    let mut scopes: Vec<(AttachmentChain, Vec<String>)> = known.into_iter().collect();
    scopes.sort_by(|a, b| a.1.cmp(&b.1));
    let mut lost: BTreeMap<(PolicyRef, String), Vec<String>> = BTreeMap::new();
    let mut traps: Vec<String> = Vec::new();
    for (chain, names) in &scopes {
        let losses = world.losses(kind, chain);
        if !losses.is_empty() {
            let explained = world.explain(kind, chain);
            for unit in &losses {
                let beaten = explained.units.iter().flat_map(|u| &u.beaten);
                let owners: BTreeSet<&PolicyRef> = beaten
                    .filter(|b| b.unit.covers(unit) || unit.covers(&b.unit))
                    .map(|b| &b.policy)
                    .collect();
                for owner in owners {
                    let entry = lost.entry((owner.clone(), unit.to_string())).or_default();
                    entry.extend(names.iter().cloned());
                }
            }
        }
        if world.top_down_differs(kind, chain) {
            traps.extend(names.iter().cloned());
        }
    }
    let policy_kind = &kind.profile().policy;
    for ((policy, unit), names) in lost {
        let key = ObjectKey::new(policy_kind.clone(), policy.namespace, policy.name);
        let message = format!("`{unit}` gets lost on {}", describe_paths(&names));
        findings.push(finding(
            world,
            Severity::Warning,
            "SilentLoss",
            &key,
            message,
        ));
    }
    if !traps.is_empty() {
        let finding = v1::Finding {
            severity: Severity::Note.into(),
            reason: "FoldOrder".to_owned(),
            place: String::new(),
            object: policy_kind.to_string(),
            message: format!(
                "folding from the top, as GEP-713 draws it, would give another answer on {}",
                describe_paths(&traps)
            ),
        };
        findings.push(ScopedFinding {
            object: None,
            finding,
        });
    }
}

/// How many paths, and some of them.
fn describe_paths(names: &[String]) -> String {
    let some: Vec<&str> = names
        .iter()
        .take(MAX_NAMED_PATHS)
        .map(String::as_str)
        .collect();
    let more = if names.len() > MAX_NAMED_PATHS {
        ", ..."
    } else {
        ""
    };
    let paths = if names.len() == 1 { "path" } else { "paths" };
    format!("{} {paths}: {}{more}", names.len(), some.join(", "))
}

/// Profiles that are refused, and labels that contradict them.
fn profiles(world: &World, visibility: &dyn Visibility, findings: &mut Vec<ScopedFinding>) {
    for problem in world.problems() {
        let finding = v1::Finding {
            severity: Severity::Error.into(),
            reason: "ProfileRefused".to_owned(),
            place: problem.place.clone(),
            object: String::new(),
            message: problem.reason.clone(),
        };
        findings.push(ScopedFinding {
            object: None,
            finding,
        });
    }
    for (_, entry) in world.store().of_kind(&GroupKind::crd()) {
        let Some(label) = PolicyLabel::read(&entry.object.labels) else {
            continue;
        };
        let defined = entry.object.defined_kind();
        let defined = defined.filter(|kind| visibility.includes_kind(kind));
        let Some(kind) = defined.and_then(|kind| world.kind(&kind)) else {
            continue;
        };
        let profile = kind.profile();
        let says = match label {
            PolicyLabel::Direct => PolicyClass::Direct,
            PolicyLabel::Inherited => PolicyClass::Inherited,
        };
        if profile.origin != ProfileOrigin::Derived && profile.class != says {
            let message = format!(
                "its label says {says:?}, the profile `{}` says {:?}: the profile counts",
                profile.name, profile.class
            );
            let key = &entry.object.key;
            findings.push(finding(
                world,
                Severity::Note,
                "LabelContradicts",
                key,
                message,
            ));
        }
    }
}

/// Objects that look like policies, of kinds that nobody described.
fn unknown_kinds(world: &World, findings: &mut Vec<ScopedFinding>) {
    let kinds: Vec<GroupKind> = world.store().kinds().cloned().collect();
    for kind in kinds.iter().filter(|kind| world.kind(kind).is_none()) {
        for (_, entry) in world.store().of_kind(kind) {
            let spec = entry.object.body.get("spec");
            let field = |name: &str| spec.and_then(|s| s.get(name)).is_some();
            if ["targetRef", "targetRefs", "targetSelectors"]
                .into_iter()
                .any(field)
            {
                let message = format!(
                    "it looks like a policy, and `{kind}` has no profile: write one, or label its CRD"
                );
                let key = &entry.object.key;
                findings.push(finding(
                    world,
                    Severity::Warning,
                    "UnknownKind",
                    key,
                    message,
                ));
            }
        }
    }
}

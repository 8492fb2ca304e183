//! What is worth a look: invalid policies, dangling targets, policies without effect, silent
//! losses, traps (SEMANTICS §1.4, §3.3, §9.2).

mod near;
mod routes;

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;

use super::Sight;
use super::look_up::incomplete_kinds;
use crate::api::v1;
use crate::snapshot::Snapshot;
use entail_core::effective::{Frames, Kind, World};
use entail_core::model::{GroupKind, InForce, ObjectKey, Outcome, PolicyRef};
use entail_core::profile::{Class, PolicyLabel, ProfileOrigin};
use v1::finding::Severity;

/// Most paths that a finding names.
const PATHS_TOLD: usize = 3;

/// Lists what is worth a look.
pub fn list_findings(
    snapshot: &Snapshot,
    request: &v1::ListFindingsRequest,
    sight: &dyn Sight,
) -> v1::ListFindingsResponse {
    let world = snapshot.world();
    let wanted: Vec<GroupKind> = request.kinds.iter().map(|k| GroupKind::parse(k)).collect();
    let mut findings = Vec::new();
    for (number, kind) in world.kinds().iter().enumerate() {
        if !wanted.is_empty() && !wanted.contains(&kind.profile().policy) {
            continue;
        }
        policies(snapshot, number, kind, &mut findings);
        paths(world, kind, sight, &mut findings);
    }
    if wanted.is_empty() {
        profiles(world, sight, &mut findings);
        routes::conflicts(world, &mut findings);
        unknown_kinds(world, &mut findings);
    }
    // What is about no object is about all of them.
    findings.retain(|found| match &found.about {
        Some(key) => sight.object(key),
        None => sight.is_all(),
    });
    let mut findings: Vec<v1::Finding> = findings.into_iter().map(|found| found.told).collect();
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
        kinds: incomplete_kinds(snapshot, &[], sight),
    }
}

/// What is worth a look.
struct Found {
    /// The object that it is about, if it is about one.
    about: Option<ObjectKey>,
    told: v1::Finding,
}

/// A finding about an object.
fn finding(
    world: &World,
    severity: Severity,
    reason: &str,
    key: &ObjectKey,
    message: String,
) -> Found {
    let whence = world.store().get(key).and_then(|e| e.object.whence.clone());
    let told = v1::Finding {
        severity: severity.into(),
        reason: reason.to_owned(),
        place: whence.map(|w| w.to_string()).unwrap_or_default(),
        object: key.to_string(),
        message,
    };
    Found {
        about: Some(key.clone()),
        told,
    }
}

/// What is wrong with single policies, and which do nothing.
fn policies(snapshot: &Snapshot, number: usize, kind: &Kind, findings: &mut Vec<Found>) {
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
            let near = near::hint(world, policy, reference);
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
            Some(InForce::None) => {
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
            Some(InForce::NoScope) => {
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
fn paths(world: &World, kind: &Kind, sight: &dyn Sight, findings: &mut Vec<Found>) {
    let mut known: HashMap<Frames, Vec<String>> = HashMap::new();
    world.topology().visit(&mut |name, trail| {
        if !sight.path(name) {
            return;
        }
        let frames = world.frames(kind, trail);
        if let Some(frames) = frames.filter(|_| world.is_scope(kind, trail)) {
            known.entry(frames).or_default().push(name.to_owned());
        }
    });
    let mut scopes: Vec<(Frames, Vec<String>)> = known.into_iter().collect();
    scopes.sort_by(|a, b| a.1.cmp(&b.1));
    let mut lost: BTreeMap<(PolicyRef, String), Vec<String>> = BTreeMap::new();
    let mut traps: Vec<String> = Vec::new();
    for (frames, names) in &scopes {
        let losses = world.losses(kind, frames);
        if !losses.is_empty() {
            let explained = world.explain(kind, frames);
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
        if world.top_down_differs(kind, frames) {
            traps.extend(names.iter().cloned());
        }
    }
    let policy_kind = &kind.profile().policy;
    for ((policy, unit), names) in lost {
        let key = ObjectKey::new(policy_kind.clone(), policy.namespace, policy.name);
        let message = format!("`{unit}` gets lost on {}", told(&names));
        findings.push(finding(
            world,
            Severity::Warning,
            "SilentLoss",
            &key,
            message,
        ));
    }
    if !traps.is_empty() {
        let told = v1::Finding {
            severity: Severity::Note.into(),
            reason: "FoldOrder".to_owned(),
            place: String::new(),
            object: policy_kind.to_string(),
            message: format!(
                "folding from the top, as GEP-713 draws it, would give another answer on {}",
                told(&traps)
            ),
        };
        findings.push(Found { about: None, told });
    }
}

/// How many paths, and some of them.
fn told(names: &[String]) -> String {
    let some: Vec<&str> = names.iter().take(PATHS_TOLD).map(String::as_str).collect();
    let more = if names.len() > PATHS_TOLD {
        ", ..."
    } else {
        ""
    };
    let paths = if names.len() == 1 { "path" } else { "paths" };
    format!("{} {paths}: {}{more}", names.len(), some.join(", "))
}

/// Profiles that are refused, and labels that contradict them.
fn profiles(world: &World, sight: &dyn Sight, findings: &mut Vec<Found>) {
    for problem in world.problems() {
        let told = v1::Finding {
            severity: Severity::Error.into(),
            reason: "ProfileRefused".to_owned(),
            place: problem.place.clone(),
            object: String::new(),
            message: problem.reason.clone(),
        };
        findings.push(Found { about: None, told });
    }
    for (_, entry) in world.store().of_kind(&GroupKind::crd()) {
        let Some(label) = PolicyLabel::read(&entry.object.labels) else {
            continue;
        };
        let defined = entry.object.defined_kind();
        let defined = defined.filter(|kind| sight.kind(kind));
        let Some(kind) = defined.and_then(|kind| world.kind(&kind)) else {
            continue;
        };
        let profile = kind.profile();
        let says = match label {
            PolicyLabel::Direct => Class::Direct,
            PolicyLabel::Inherited => Class::Inherited,
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
fn unknown_kinds(world: &World, findings: &mut Vec<Found>) {
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

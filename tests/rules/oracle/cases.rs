//! The conformance cases through the second evaluator: what it expects has to be what the cases expect.

use std::collections::{BTreeMap, BTreeSet};

use entail::cli::test::{Case, OneOrMany};
use entail_core::model::PathName;
use entail_core::topology::ResolvedPath;
use serde_json::{Value, json};

use super::affects::affected;
use super::compare::{all_rejected, effective, paths};
use super::force::{Scenes, statuses};
use super::judge::{Judge, scenes};
use super::leaf::{Leaf, is_tombstone, written};
use super::losses::losses;
use super::place::AttachedKind;
use super::support::entail_of;
use super::unmerged;

/// How many expectations of a case were checked, and those that differ.
#[derive(Default)]
pub struct Checked {
    pub count: usize,
    pub wrong: Vec<String>,
}

impl Checked {
    fn equal(&mut self, about: &str, expected: &Value, found: &Value) {
        self.count += 1;
        if expected != found {
            self.wrong.push(format!(
                "{about}: expected {expected}, the evaluator has {found}"
            ));
        }
    }
}

/// Checks a case; `None` if it is about profiles that are refused, about documents that are not objects, or
/// about the defaults of CRDs.
pub fn check(case: &Case) -> Option<Checked> {
    // The defaults of CRDs are filled in where files are read (11.48), before what the evaluator computes.
    if case.sections.iter().any(|section| section == "11.48") {
        return None;
    }
    let documents = case.inputs();
    if documents
        .iter()
        .any(|d| !d["metadata"]["name"].is_string() || d["kind"].is_null())
    {
        return None;
    }
    let entail = entail_of(&documents);
    if !entail.refused().is_empty() || !entail.problems().is_empty() {
        return None;
    }
    let judge = Judge::new(&documents);
    let paths = paths(&entail);
    let mut checked = Checked::default();
    let kinds: BTreeMap<String, (AttachedKind, Scenes)> = judge
        .kinds()
        .into_iter()
        .map(|placed| {
            let scenes = scenes(&placed, &paths);
            (placed.kind.long(), (placed, scenes))
        })
        .collect();
    answers(case, &kinds, &entail, &mut checked);
    conditions(case, &kinds, &mut checked);
    reports(case, &kinds, &entail, &mut checked);
    Some(checked)
}

/// The name under which an existing path is listed: rules by their names, clients that nothing sets apart as `*`.
fn listed_name(entail: &entail_core::effective::World, path: &str) -> Option<String> {
    let asked = entail.locate(&PathName::parse(path).ok()?).ok()?;
    let nodes = |path: &ResolvedPath| path.steps.iter().map(|step| step.node).collect::<Vec<_>>();
    let mut found: Option<(bool, String)> = None;
    entail.topology().visit(&mut |name, resolved| {
        let same = nodes(resolved) == nodes(&asked) && resolved.root == asked.root;
        let exact = name == path || resolved.client == asked.client;
        if same && (exact || (found.is_none() && name.starts_with("mesh/*/"))) {
            found = Some((exact, name.to_owned()));
        }
    });
    found.map(|(_, name)| name)
}

#[allow(
    clippy::too_many_lines,
    reason = "one step after another, each of a few lines"
)]
fn answers(
    case: &Case,
    kinds: &BTreeMap<String, (AttachedKind, Scenes)>,
    entail: &entail_core::effective::World,
    checked: &mut Checked,
) {
    for expected in &case.expect.effective {
        let path = listed_name(entail, &expected.path)
            .unwrap_or_else(|| panic!("{}: {}", case.name, expected.path));
        let scene = |kind: &String| {
            let (placed, _) = kinds.get(kind)?;
            Some((placed, placed.scene(&path)))
        };
        for (kind, spec) in &expected.policies {
            let about = format!("{} {path} {kind}", case.name);
            let found = scene(kind).and_then(|(placed, scene)| effective(placed, &scene).spec());
            checked.equal(&about, spec, &found.unwrap_or_default());
        }
        for (kind, origins) in &expected.origins {
            let about = format!("{} {path} {kind} origins", case.name);
            let folded = scene(kind)
                .map(|(placed, scene)| effective(placed, &scene))
                .unwrap_or_default();
            let lines = folded.lines().iter().filter(|line| !is_tombstone(line));
            // Units that a case does not name are not checked.
            let lines: Vec<&Leaf> = lines
                .filter(|line| !nearest(origins, &written(&line.path)).is_empty())
                .collect();
            let found: BTreeMap<String, Vec<String>> = lines
                .iter()
                .map(|line| {
                    (
                        written(&line.path),
                        line.by
                            .iter()
                            .map(|by| by.trim_start_matches('=').to_owned())
                            .collect(),
                    )
                })
                .collect();
            let wanted: BTreeMap<String, Vec<String>> = lines
                .iter()
                .map(|line| (written(&line.path), nearest(origins, &written(&line.path))))
                .collect();
            checked.equal(&about, &json!(wanted), &json!(found));
        }
        for (kind, names) in &expected.listed {
            let about = format!("{} {path} {kind} listed", case.name);
            let found = scene(kind).map(|(placed, scene)| unmerged::listed(placed, &scene));
            checked.equal(&about, &json!(names), &json!(found.unwrap_or_default()));
        }
        for (kind, rejected) in &expected.rejected {
            let about = format!("{} {path} {kind} rejected", case.name);
            let wanted: BTreeMap<_, _> = rejected
                .iter()
                .map(|r| (r.policy.clone(), r.reason.clone()))
                .collect();
            let found = scene(kind)
                .map(|(placed, scene)| all_rejected(&scene, &effective(placed, &scene)))
                .unwrap_or_default();
            checked.equal(&about, &json!(wanted), &json!(found));
        }
        let asked = expected
            .policies
            .keys()
            .chain(&expected.unknown)
            .collect::<BTreeSet<_>>();
        for kind in asked {
            let Some((_, scene)) = scene(kind) else {
                continue;
            };
            let about = format!("{} {path} {kind} unknown", case.name);
            checked.equal(
                &about,
                &json!(expected.unknown.contains(kind)),
                &json!(scene.unknown),
            );
        }
    }
}

/// The origin that is nearest above a unit.
fn nearest(origins: &BTreeMap<String, OneOrMany>, unit: &str) -> Vec<String> {
    let covers = |name: &str| {
        let rest = unit.strip_prefix(name);
        name == "*" || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    let length = |name: &str| if name == "*" { 0 } else { name.len() };
    let mut covering: Vec<_> = origins.iter().filter(|(name, _)| covers(name)).collect();
    covering.sort_by_key(|(name, _)| length(name));
    covering
        .last()
        .map(|(_, names)| names.sorted())
        .unwrap_or_default()
}

fn conditions(
    case: &Case,
    kinds: &BTreeMap<String, (AttachedKind, Scenes)>,
    checked: &mut Checked,
) {
    let all: BTreeMap<&String, _> = kinds
        .iter()
        .map(|(kind, (placed, scenes))| (kind, statuses(placed, scenes)))
        .collect();
    for expected in &case.expect.status {
        let (kind, name) = expected.policy.split_once('/').unwrap();
        let accepted = expected.accepted.as_ref();
        // Kinds without a profile are not judged here (2.7).
        if accepted.is_some_and(|accepted| accepted.reason == "NoProfile") {
            continue;
        }
        let Some((placed, _)) = kinds.get(kind) else {
            checked.wrong.push(format!("{}: no kind {kind}", case.name));
            continue;
        };
        let attached = placed.policies.iter().find(|p| p.policy.name == name);
        let attached = attached.unwrap_or_else(|| panic!("{}: {name}", case.name));
        let status = &all[&kind.to_owned()][name];
        let about = |what: &str| format!("{} {} {what}", case.name, expected.policy);
        if let Some(accepted) = &expected.accepted {
            let (status, reason) = match status.refused {
                true => ("False", "Invalid".to_owned()),
                false => placed.accepted(attached),
            };
            let wanted = json!([accepted.status, accepted.reason]);
            checked.equal(&about("accepted"), &wanted, &json!([status, reason]));
        }
        if let Some(in_force) = &expected.in_force {
            checked.equal(
                &about("in force"),
                &json!(in_force),
                &json!(status.in_force.unwrap_or_default()),
            );
        }
        if let Some(by) = &expected.overridden_by {
            let wanted: BTreeSet<&String> = by.iter().collect();
            checked.equal(
                &about("overridden by"),
                &json!(wanted),
                &json!(status.overridden_by),
            );
        }
        if let Some(ancestors) = &expected.ancestors {
            let wanted: BTreeSet<&String> = ancestors.iter().collect();
            checked.equal(
                &about("ancestors"),
                &json!(wanted),
                &json!(status.ancestors),
            );
        }
    }
}

fn reports(
    case: &Case,
    kinds: &BTreeMap<String, (AttachedKind, Scenes)>,
    entail: &entail_core::effective::World,
    checked: &mut Checked,
) {
    let mut affecting: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    if !case.expect.affected.is_empty() {
        for (kind, (placed, scenes)) in kinds {
            for (key, names) in affected(placed, scenes) {
                let names = names.into_iter().map(|name| format!("{kind}/{name}"));
                affecting.entry(key).or_default().extend(names);
            }
        }
    }
    for (object, names) in &case.expect.affected {
        let wanted: BTreeSet<&String> = names.iter().collect();
        let found = affecting.get(object).cloned().unwrap_or_default();
        checked.equal(
            &format!("{} {object} affected", case.name),
            &json!(wanted),
            &json!(found),
        );
    }
    for (path, expected) in &case.expect.losses {
        let path = listed_name(entail, path).unwrap();
        for (kind, units) in expected {
            let wanted: BTreeSet<&String> = units.iter().collect();
            let found = kinds
                .get(kind)
                .map(|(placed, _)| losses(placed, &placed.scene(&path)));
            checked.equal(
                &format!("{} {path} {kind} losses", case.name),
                &json!(wanted),
                &json!(found.unwrap_or_default()),
            );
        }
    }
}

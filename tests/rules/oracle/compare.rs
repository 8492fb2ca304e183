//! Answers against the second evaluator's, against another order of arrival, against Explain.

use std::collections::{BTreeMap, BTreeSet};

use entail_core::effective::World as Entail;
use entail_core::model::{EffectivePolicy, GroupKind, PathName, Unit, UnknownReason};
use serde_json::{Value, json};

use super::fold::{Folded, fold};
use super::judge::Judge;
use super::leaf::{Leaf, is_tombstone, written};
use super::losses;
use super::place::{AttachedKind, PathView};
use super::rng::Rng;
use super::settings::{Class, Settings};
use super::support::{case, entail_of, expect_answer};
use super::unmerged;
use super::worlds::World;

/// Every path that there is.
pub fn paths(entail: &Entail) -> Vec<String> {
    let mut paths = Vec::new();
    entail
        .topology()
        .visit(&mut |name, _| paths.push(name.to_owned()));
    paths
}

/// entail's view of a kind on a path.
pub struct Said {
    pub answer: EffectivePolicy,
    pub losses: BTreeSet<String>,
}

/// The number of a kind of entail's.
pub fn number_of(entail: &Entail, kind: &Settings) -> usize {
    let same = |k: &GroupKind| *k.kind == *kind.name() && *k.group == *kind.group;
    let mut kinds = entail.kinds().iter();
    kinds.position(|k| same(&k.profile().policy)).unwrap()
}

/// entail's answer on a path; an absent one is the empty one.
pub fn answer(entail: &Entail, kind: &Settings, path: &str) -> Said {
    let trail = entail.locate(&PathName::parse(path).unwrap()).unwrap();
    let kind = &entail.kinds()[number_of(entail, kind)];
    match entail.attachment_chain(kind, &trail) {
        None => Said {
            answer: EffectivePolicy::default(),
            losses: BTreeSet::new(),
        },
        Some(chain) => Said {
            answer: entail.answer(kind, &chain),
            losses: entail
                .losses(kind, &chain)
                .iter()
                .map(ToString::to_string)
                .collect(),
        },
    }
}

/// (a) The answers, origins, lists, rejected policies and losses of every path.
pub fn answers(world: &World) -> Vec<String> {
    let documents = world.documents();
    let entail = entail_of(&documents);
    let judge = Judge::new(&documents);
    let paths = paths(&entail);
    let mut wrong = Vec::new();
    for placed in judge.kinds() {
        for path in &paths {
            let told = difference(
                &placed,
                &placed.scene(path),
                &answer(&entail, &placed.kind, path),
                path,
            );
            if let Some((oracle, entail)) = told {
                wrong.push(case(world, &placed.kind.name(), &oracle, &entail));
            }
        }
    }
    wrong.sort_by_key(String::len);
    wrong
}

/// The policies whose references were not checked.
fn unchecked(said: &EffectivePolicy) -> BTreeSet<String> {
    let unknown = said.unknown.iter();
    let unchecked = unknown.filter(|u| u.reason == UnknownReason::ReferenceNotChecked);
    let policies = unchecked.flat_map(|u| &u.policies);
    policies.map(ToString::to_string).collect()
}

/// What is to be told beside an answer and what is, if they differ: the policies whose references were not checked, and
/// those that filters of backendRefs name. Others may be told with them.
fn told_beside(
    (not_checked, of_backends): (&BTreeSet<String>, &BTreeSet<String>),
    said: &EffectivePolicy,
    (kind, path): (&str, &str),
) -> Option<(Value, Value)> {
    let named_by_filter = said.unknown.iter().filter(|unknown| {
        let named = "a filter of a backendRef references";
        unknown.message.contains(named)
    });
    let named = named_by_filter.flat_map(|unknown| &unknown.policies);
    let named = named.map(ToString::to_string).collect();
    let compared = [(not_checked, unchecked(said)), (of_backends, named)];
    let mut wrong = compared.into_iter().filter(|(expected, told)| {
        !expected.is_subset(told) || expected.is_empty() != told.is_empty()
    });
    let (expected, _) = wrong.next()?;
    let expect = json!({"effective": [{"path": path, "undecided": {kind: expected}}]});
    Some((expect, json!(format!("{:?}", said.unknown))))
}

/// What the evaluator expects on a path and what entail says, if they differ.
fn difference(
    placed: &AttachedKind,
    scene: &PathView,
    said: &Said,
    path: &str,
) -> Option<(Value, Value)> {
    let folded = effective(placed, scene);
    let (kind, said, lost) = (placed.kind.long(), &said.answer, &said.losses);
    // Without an effective level a Direct kind has no "above" (specification 7.2).
    let level =
        placed.kind.by_target || said.spec.is_none() || said.inherited_only == scene.inherited_only;
    if folded.spec() != said.spec || !origins_agree(&folded, said) || !level {
        let origins = json!(oracle_origins(&folded));
        let told = json!({
            "spec": said.spec, "origins": entail_origins(said),
            "inherited_only": said.inherited_only,
        });
        return Some((expect_answer(&kind, path, &folded.spec(), &origins), told));
    }
    let other = |field: &str, expected: Value, told: Value| {
        let expect = json!({"effective": [{"path": path, field: {kind.as_str(): expected}}]});
        (expected != told).then_some((expect, told))
    };
    let listed: Vec<String> = said.listed.iter().map(|l| l.policy.to_string()).collect();
    let rejected: BTreeMap<String, String> = said
        .rejected
        .iter()
        .map(|r| (r.policy.to_string(), r.reason.clone()))
        .collect();
    // Other reasons for not knowing are beside the answer, and not judged here.
    let told = said.unknown.as_ref();
    let judged = [
        UnknownReason::ControllerUnknown,
        UnknownReason::DelegationNotFollowed,
    ];
    let told = told.is_some_and(|u| judged.contains(&u.reason));
    let unknown = (scene.unknown, told);
    if unknown.0 != unknown.1 {
        let kinds: Vec<&String> = [&kind].into_iter().filter(|_| unknown.0).collect();
        let expect = json!({"effective": [{"path": path, "unknown": kinds}]});
        return Some((expect, json!(format!("{:?}", said.unknown))));
    }
    if let Some(wrong) = told_beside((&folded.unchecked, &scene.of_backends), said, (&kind, path)) {
        return Some(wrong);
    }
    other(
        "listed",
        json!(unmerged::listed(placed, scene)),
        json!(listed),
    )
    .or_else(|| {
        other(
            "rejected",
            json!(all_rejected(scene, &folded)),
            json!(rejected),
        )
    })
    .or_else(|| {
        let expected = losses::losses(placed, scene);
        let expect = json!({"losses": {path: {kind.as_str(): expected}}});
        (expected != *lost).then(|| (expect, json!(lost)))
    })
}

/// Those that are not accepted, with those that are merged to fields that exclude each other (5.12). Of several
/// reasons the last one counts here.
pub fn all_rejected(scene: &PathView, folded: &Folded) -> BTreeMap<String, String> {
    let mut rejected = scene.rejected.clone();
    if scene.acts && !scene.inherited_only {
        for name in &folded.refused {
            let reason = rejected.entry(name.clone()).or_default();
            *reason = reason.clone().max("Invalid".to_owned());
        }
    }
    rejected
}

/// What a path comes to.
pub fn effective(placed: &AttachedKind, scene: &PathView) -> Folded {
    match placed.kind.class {
        _ if !scene.acts => Folded::default(),
        Class::Direct => unmerged::direct(placed, scene),
        Class::Inherited => fold(&placed.kind, &scene.nodes, &scene.own, &scene.replacements),
        Class::Listed => Folded::default(),
    }
}

/// Leaf to those who say it.
fn oracle_origins(folded: &Folded) -> BTreeMap<String, Vec<String>> {
    let said = folded.lines().iter().filter(|leaf| !is_tombstone(leaf));
    said.map(|leaf| (written(&leaf.path), leaf.by.iter().cloned().collect()))
        .collect()
}

/// Unit to those who say it, as entail tells it.
fn entail_origins(said: &EffectivePolicy) -> Value {
    let origins = said.origins.iter();
    origins
        .map(|o| (o.unit.to_string(), json!([names(o), how(o)])))
        .collect()
}

fn how(origin: &entail_core::model::Origin) -> String {
    format!("{:?} {:?}", origin.block, origin.strategy)
}

fn names(origin: &entail_core::model::Origin) -> BTreeSet<String> {
    let policies = origin.policies.iter().map(ToString::to_string);
    policies
        .chain(origin.object.iter().map(|object| format!("={object}")))
        .collect()
}

/// Who says a unit: the origin that is nearest above it.
pub fn origin_of(said: &EffectivePolicy, unit: &Unit) -> BTreeSet<String> {
    let covering = said
        .origins
        .iter()
        .filter(|origin| origin.unit.covers(unit));
    covering
        .max_by_key(|origin| origin.unit.0.len())
        .map(names)
        .unwrap_or_default()
}

/// The unit of a leaf.
pub fn unit(leaf: &Leaf) -> Unit {
    Unit::parse(&written(&leaf.path)).unwrap()
}

fn origins_agree(folded: &Folded, said: &EffectivePolicy) -> bool {
    let lines: Vec<_> = folded.lines().iter().filter(|l| !is_tombstone(l)).collect();
    let each = lines
        .iter()
        .all(|leaf| origin_of(said, &unit(leaf)) == leaf.by);
    // No origin for what is not there. The parents of a tombstone stay.
    let used = said.origins.iter().all(|origin| {
        let covers = |leaf: &Leaf| origin.unit.covers(&unit(leaf));
        let parent = |leaf: &Leaf| covers(leaf) && origin.unit.0.len() < leaf.path.len();
        origin.unit.0.is_empty()
            || folded.replaced.iter().any(|(path, object)| {
                origin.unit.to_string() == written(path)
                    && names(origin) == BTreeSet::from([format!("={object}")])
            })
            || lines.iter().any(|leaf| covers(leaf))
            || folded.lines().iter().any(parent)
    });
    let replaced = folded.replaced.iter().all(|(path, object)| {
        let unit = Unit::parse(&written(path)).unwrap();
        origin_of(said, &unit) == BTreeSet::from([format!("={object}")])
    });
    each && used && replaced
}

/// (b) Another order of arrival gives the same answers.
pub fn arrival(world: &World) -> Vec<String> {
    let mut documents = world.documents();
    let straight = entail_of(&documents);
    Rng::new(world.seed ^ 0xA5A5).shuffle(&mut documents);
    let mixed = entail_of(&documents);
    let mut wrong = Vec::new();
    if paths(&straight) != paths(&mixed) {
        wrong.push(format!("seed {}: other paths", world.seed));
        return wrong;
    }
    for path in paths(&straight) {
        for profile in &world.profiles {
            let settings = Settings::read(profile, None);
            let kind = settings.long();
            let (a, b) = (
                answer(&straight, &settings, &path),
                answer(&mixed, &settings, &path),
            );
            let (a, b) = (a.answer, b.answer);
            if a != b {
                let text =
                    |e: &EffectivePolicy| expect_answer(&kind, &path, &e.spec, &entail_origins(e));
                wrong.push(case(world, &settings.kind, &text(&a), &text(&b)));
            }
        }
    }
    wrong
}

/// (d) Every loss has somebody who is told to have lost it, and Explain's answer is the answer.
pub fn losses(world: &World) -> Vec<String> {
    let entail = entail_of(&world.documents());
    let mut wrong = Vec::new();
    entail.topology().visit(&mut |path, trail| {
        for kind in entail.kinds() {
            let Some(chain) = entail.attachment_chain(kind, trail) else {
                continue;
            };
            let name = &kind.profile().policy.kind;
            let explained = entail.explain(kind, &chain);
            let answer = entail.answer(kind, &chain);
            let folded = entail.fold_chain(kind, &chain);
            let (_, written) = folded.into_answer(chain.inherited_only());
            if written != answer.spec.as_ref().map(ToString::to_string) {
                wrong.push(format!(
                    "seed {}: {path}: {name} is written otherwise",
                    world.seed
                ));
            }
            if explained.effective != answer {
                wrong.push(format!(
                    "seed {}: {path}: {name} is explained otherwise",
                    world.seed
                ));
            }
            let overridden: Vec<_> = explained.units.iter().flat_map(|u| &u.overridden).collect();
            for lost in entail.losses(kind, &chain) {
                if !overridden
                    .iter()
                    .any(|b| b.unit.covers(&lost) || lost.covers(&b.unit))
                {
                    wrong.push(format!(
                        "seed {}: {path}: {name}: nobody lost {lost}",
                        world.seed
                    ));
                }
                if answer.spec.as_ref().is_some_and(|spec| has(spec, &lost)) {
                    wrong.push(format!(
                        "seed {}: {path}: {name}: {lost} is there",
                        world.seed
                    ));
                }
            }
        }
    });
    wrong
}

/// Whether rules have a value at a unit made of fields alone.
fn has(rules: &Value, unit: &Unit) -> bool {
    let mut at = Some(rules);
    for segment in &unit.0 {
        at = match segment {
            entail_core::model::Segment::Field(name) => at.and_then(|value| value.get(&**name)),
            entail_core::model::Segment::Item(_) => return false,
        };
    }
    at.is_some() && !unit.0.is_empty()
}

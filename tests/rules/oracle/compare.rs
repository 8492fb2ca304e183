//! Answers against the second evaluator's, against another order of arrival, against Explain.

use std::collections::{BTreeMap, BTreeSet};

use entail_core::effective::World as Entail;
use entail_core::model::{EffectivePolicy, PathName, Unit};
use serde_json::{Value, json};

use super::fold::{Folded, fold};
use super::leaf::{Leaf, is_tombstone, written};
use super::place::{AttachedKind, PathView};
use super::rng::Rng;
use super::settings::{Class, Settings};
use super::support::{case, entail_of, expect_answer};
use super::unmerged;
use super::worlds::World;

/// The kinds of a world with their policies in place.
pub fn placed(world: &World) -> Vec<AttachedKind<'_>> {
    let read = |profile| Settings::read(profile).with_definition(&world.objects);
    let settings = world.profiles.iter().map(read);
    settings
        .map(|kind| AttachedKind::new(kind, &world.objects, &world.invalid))
        .collect()
}

/// Every path that there is.
pub fn paths(entail: &Entail) -> Vec<String> {
    let mut paths = Vec::new();
    entail
        .topology()
        .visit(&mut |name, _| paths.push(name.to_owned()));
    paths
}

/// entail's answer on a path; an absent one is the empty one.
pub fn answer(entail: &Entail, kind: &str, path: &str) -> EffectivePolicy {
    let trail = entail.locate(&PathName::parse(path).unwrap()).unwrap();
    let kinds = entail.kinds().iter();
    let kind = kinds
        .into_iter()
        .find(|k| &*k.profile().policy.kind == kind)
        .unwrap();
    let chain = entail.attachment_chain(kind, &trail);
    chain
        .map(|chain| entail.answer(kind, &chain))
        .unwrap_or_default()
}

/// (a) The answers and origins of every path.
pub fn answers(world: &World) -> Vec<String> {
    let entail = entail_of(&world.documents());
    let paths = paths(&entail);
    let mut wrong = Vec::new();
    for placed in placed(world) {
        for path in &paths {
            let scene = placed.scene(path);
            let folded = effective(&placed, &scene);
            let said = answer(&entail, &placed.kind.kind, path);
            // Without an effective level a Direct kind has no "above" (specification 7.2).
            let level = placed.kind.by_target
                || said.spec.is_none()
                || said.inherited_only == scene.inherited_only;
            let listed = said.listed.iter().map(|l| l.policy.to_string());
            if listed.ne(unmerged::listed(&placed, &scene)) {
                wrong.push(format!("seed {}: {path}: another list", world.seed));
            }
            if folded.spec() == said.spec && origins_agree(&folded, &said) && level {
                continue;
            }
            let origins = json!(oracle_origins(&folded));
            let kind = &placed.kind.kind;
            let oracle = expect_answer(kind, path, &folded.spec(), &origins);
            let told = json!({
                "spec": said.spec, "origins": entail_origins(&said),
                "inherited_only": said.inherited_only,
            });
            wrong.push(case(world, kind, &oracle, &told));
        }
    }
    wrong.sort_by_key(String::len);
    wrong
}

/// What a path comes to.
pub fn effective(placed: &AttachedKind<'_>, scene: &PathView) -> Folded {
    match placed.kind.class {
        _ if !scene.acts => Folded::default(),
        Class::Direct => unmerged::direct(placed, scene),
        Class::Inherited => fold(&placed.kind, &scene.nodes, &scene.own),
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

fn unit(leaf: &Leaf) -> Unit {
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
            || lines.iter().any(|leaf| covers(leaf))
            || folded.lines().iter().any(parent)
    });
    each && used
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
            let kind = profile["spec"]["policy"]["kind"].as_str().unwrap();
            let (a, b) = (answer(&straight, kind, &path), answer(&mixed, kind, &path));
            if a != b {
                let text =
                    |e: &EffectivePolicy| expect_answer(kind, &path, &e.spec, &entail_origins(e));
                wrong.push(case(world, kind, &text(&a), &text(&b)));
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
            let (_, written) = entail.answer_json(kind, &chain);
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

//! Compares what `entail lint` and `entail reach` say with the second evaluator, by content.

use entail::api::v1;
use entail::insight::{AccessScope, MAX_PLACES, list_findings};
use entail::snapshot::Snapshot;
use serde_json::{Value, json};

use super::compare::paths;
use super::follow::version;
use super::judge::{Judge, scenes};
use super::leaf::Leaf;
use super::lint;
use super::place::{AttachedKind, PathView};
use super::policy::{Block, Policy};
use super::reach::reach;
use super::support::{case, entail_of};
use super::worlds::World;

/// The differences of a world.
pub fn compared(world: &World) -> Vec<String> {
    let documents = world.documents();
    let entail = entail_of(&documents);
    let paths = paths(&entail);
    let snapshot = Snapshot::build(entail, version());
    let judge = Judge::new(&documents);
    let request = v1::ListFindingsRequest {
        max_places: MAX_PLACES,
        ..v1::ListFindingsRequest::default()
    };
    let found = list_findings(&snapshot, &request, &AccessScope::default())
        .unwrap()
        .findings;
    let found: Vec<v1::Finding> = found.into_iter().flat_map(one_per_place).collect();
    let mut wrong = Vec::new();
    for placed in judge.kinds() {
        let scenes = scenes(&placed, &paths);
        let mut differ = Differences::default();
        lint::compare(&placed, &scenes, &found, &mut differ);
        reach(&placed, &scenes, &snapshot, &mut differ);
        let kind = &placed.kind.name();
        let differ = differ.0.into_iter();
        wrong.extend(differ.map(|(expected, told)| case(world, kind, &expected, &told)));
    }
    wrong
}

/// A finding for each place of one.
fn one_per_place(finding: v1::Finding) -> Vec<v1::Finding> {
    if finding.places.is_empty() {
        assert_eq!(finding.count, 1, "{finding:?}");
        return vec![finding];
    }
    assert_eq!(finding.count, finding.places.len() as u64, "{finding:?}");
    let places = finding.places.iter();
    let alone = places.map(|message| v1::Finding {
        message: message.clone(),
        count: 1,
        places: Vec::new(),
        ..finding.clone()
    });
    alone.collect()
}

/// What is expected, and what entail says instead.
#[derive(Default)]
pub struct Differences(Vec<(Value, Value)>);

impl Differences {
    /// Two values are to be equal.
    pub fn equal(&mut self, about: &str, expected: &Value, told: &Value) {
        if expected != told {
            self.0
                .push((json!({about: expected}), json!({about: told})));
        }
    }

    /// Something is to hold of what entail says.
    pub fn holds(&mut self, about: &str, is: bool, told: &Value) {
        if !is {
            self.0.push((json!(about), told.clone()));
        }
    }
}

/// The name of a policy with its kind.
pub fn full_name(placed: &AttachedKind, policy: &str) -> String {
    format!("{}/{policy}", placed.kind.long())
}

/// The blocks of a policy on a path that count, at each of its places: limits may leave something else of them at each
/// (2.10).
pub fn blocks<'s>(scene: &'s PathView, policy: &'s Policy) -> impl Iterator<Item = &'s Block> {
    let places = scene.nodes.iter().flat_map(|node| &node.policies);
    let places = places.filter(|place| place.name == policy.name);
    let blocks = places.flat_map(|place| &place.blocks);
    blocks.filter(|block| block.counts)
}

/// The lines of these blocks.
pub fn lines<'s>(scene: &'s PathView, policy: &'s Policy) -> impl Iterator<Item = &'s Leaf> {
    blocks(scene, policy).flat_map(|block| &block.lines)
}

//! A second opinion: random worlds, and an evaluator that was written from `docs/specification.md`
//! alone, without a look at the crate's own merge. `ORACLE_WORLDS` says how many worlds,
//! `ORACLE_SEED` picks one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test fails by panicking"
)]

#[path = "oracle/compare.rs"]
mod compare;
#[path = "oracle/fold.rs"]
mod fold;
#[path = "oracle/follow.rs"]
mod follow;
#[path = "oracle/force.rs"]
mod force;
#[path = "oracle/join.rs"]
mod join;
#[path = "oracle/leaf.rs"]
mod leaf;
#[path = "oracle/mirror.rs"]
mod mirror;
#[path = "oracle/paths.rs"]
mod paths;
#[path = "oracle/place.rs"]
mod place;
#[path = "oracle/policies.rs"]
mod policies;
#[path = "oracle/policy.rs"]
mod policy;
#[path = "oracle/profiles.rs"]
mod profiles;
#[path = "oracle/rng.rs"]
mod rng;
mod served;
#[path = "oracle/settings.rs"]
mod settings;
#[path = "oracle/support.rs"]
mod support;
#[path = "oracle/trail.rs"]
mod trail;
#[path = "oracle/unmerged.rs"]
mod unmerged;
#[path = "oracle/worlds.rs"]
mod worlds;

use worlds::World;

/// The seeds to try; `ORACLE_WORLDS` says how many, else there are as many as given.
fn seeds(many: u64) -> Vec<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    match number("ORACLE_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("ORACLE_WORLDS").unwrap_or(many)).collect(),
    }
}

/// Tries a thousand worlds.
fn all_agree(check: impl FnMut(&World) -> Vec<String>) {
    agree(1_000, check);
}

/// Tries every seed and tells the first disagreements, and how many there are.
fn agree(many: u64, mut check: impl FnMut(&World) -> Vec<String>) {
    let seeds = seeds(many);
    let mut told = Vec::new();
    let mut wrong = Vec::new();
    for seed in &seeds {
        let found = check(&World::new(*seed));
        if !found.is_empty() {
            wrong.push((*seed, found.len()));
            told.extend(found.into_iter().take(1));
        }
    }
    told.sort_by_key(String::len);
    let text = told
        .iter()
        .take(3)
        .cloned()
        .collect::<Vec<_>>()
        .join("\n----\n");
    let many = seeds.len();
    assert!(
        wrong.is_empty(),
        "{} of {many} worlds: {wrong:?}\n{text}",
        wrong.len()
    );
}

#[test]
fn profiles_of_random_worlds_are_valid() {
    all_agree(support::refused_profiles);
}

#[test]
fn answers_and_origins_are_those_of_the_second_evaluator() {
    all_agree(compare::answers);
}

#[test]
fn order_of_arrival_does_not_change_an_answer() {
    all_agree(compare::arrival);
}

#[test]
fn statuses_agree_with_what_stands_on_the_paths() {
    all_agree(force::statuses);
}

#[test]
fn an_engine_that_follows_changes_answers_like_a_full_read() {
    // Each is read from scratch a dozen times.
    agree(300, follow::engine);
}

#[test]
fn questions_walk_the_paths_that_a_walk_of_whole_paths_finds() {
    agree(300, paths::judged);
}

#[test]
fn mirrors_answer_like_the_server_that_they_follow() {
    let mut followed = mirror::MirroredServer::new();
    agree(60, |world| followed.check(world));
}

#[test]
fn every_loss_is_explained() {
    all_agree(compare::losses);
}

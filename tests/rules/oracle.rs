//! A second opinion: random worlds, and an evaluator that was written from `docs/specification.md`
//! alone, without a look at the crate's own merge.
//!
//! `cargo test` tries few worlds, always the same. For the long tier `ENTAIL_TEST_TIMES` multiplies
//! their number and `ENTAIL_FIRST_SEED` picks others; `ENTAIL_SEED` tries one alone.

mod compare;
mod fold;
mod follow;
mod force;
mod join;
mod leaf;
mod mirror;
mod paths;
mod place;
mod policies;
mod policy;
mod profiles;
mod rng;
mod settings;
mod support;
mod trail;
mod unmerged;
mod worlds;

use super::served;
pub use rng::Rng;
use worlds::World;

/// The seeds to try: as many as given, or a multiple of that in the long tier.
pub fn seeds(many: u64) -> Vec<u64> {
    let number = |name: &str| {
        let text = std::env::var(name).ok()?;
        Some(
            text.parse()
                .unwrap_or_else(|_| panic!("{name}={text} is not a number")),
        )
    };
    if let Some(seed) = number("ENTAIL_SEED") {
        return vec![seed];
    }
    let first: u64 = number("ENTAIL_FIRST_SEED").unwrap_or(0);
    let times = number("ENTAIL_TEST_TIMES").unwrap_or(1);
    (first..first + many * times).collect()
}

/// Tries worlds that are cheap to check.
fn all_agree(check: impl FnMut(&World) -> Vec<String>) {
    agree(200, check);
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
    agree(60, follow::engine);
}

#[test]
fn questions_walk_the_paths_that_a_walk_of_whole_paths_finds() {
    agree(300, paths::judged);
}

#[test]
fn mirrors_answer_like_the_server_that_they_follow() {
    let mut followed = mirror::MirroredServer::new();
    agree(20, |world| followed.check(world));
}

#[test]
fn every_loss_is_explained() {
    all_agree(compare::losses);
}

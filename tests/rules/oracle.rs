//! A second opinion: random worlds, and an evaluator that was written from `docs/specification.md`
//! alone, without a look at the crate's own merge.
//!
//! `cargo test` tries few worlds, always the same. For the long tier `ENTAIL_TEST_TIMES` multiplies
//! their number and `ENTAIL_FIRST_SEED` picks others; `ENTAIL_SEED` tries one alone. `ENTAIL_TOLD` is how many
//! differences are printed.

mod affects;
mod assertions;
mod cases;
mod compare;
mod declared;
mod delegation;
mod edits;
mod existing;
mod filters;
mod fold;
mod follow;
mod force;
mod gateways;
mod join;
mod judge;
mod leaf;
mod limits;
mod lint;
mod losses;
mod mirror;
mod namespaces;
mod narrowed;
mod noninterference;
mod objects;
mod paths;
mod place;
mod policies;
mod policy;
mod presets;
mod profiles;
mod questions;
mod reach;
mod reduce;
mod refused;
mod rng;
mod schema;
mod sections;
mod settings;
mod statuses;
mod support;
mod targets;
mod trail;
mod unmerged;
mod vocabulary;
mod waypoints;
mod worlds;

use super::{corpus, served};
pub use rng::Rng;
use worlds::World;

/// A number from the environment.
fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

/// The seeds to try: as many as given, or a multiple of that in the long tier.
pub fn seeds(many: u64) -> Vec<u64> {
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
        .take(number("ENTAIL_TOLD").unwrap_or(3) as usize)
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
fn a_chosen_gateway_has_the_answers_of_the_whole_world() {
    all_agree(narrowed::compared);
}

#[test]
fn routes_of_a_declared_kind_have_the_answers_of_those_that_they_generate() {
    all_agree(declared::compared);
}

/// Cases that the second evaluator covers, and the expectations that it checks there: never less than today.
const COVERED_CASES: usize = 902;
const COVERED_EXPECTATIONS: usize = 4_154;

#[test]
fn cases_pass_through_the_second_evaluator() {
    let (mut covered, mut checks, mut wrong) = (0, 0, Vec::new());
    // Cases from elsewhere, while both are changed together.
    let more = std::env::var("ENTAIL_CASES").ok();
    let more =
        more.map(|file| entail::cli::test::read_cases(&[std::path::PathBuf::from(file)]).unwrap());
    let more: Vec<_> = more.into_iter().flatten().map(|(_, case)| case).collect();
    for case in corpus::cases().iter().chain(&more) {
        let Some(checked) = cases::check(case).filter(|checked| checked.count > 0) else {
            continue;
        };
        covered += 1;
        checks += checked.count;
        wrong.extend(checked.wrong);
    }
    assert!(
        wrong.is_empty(),
        "{} of {checks}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    let counts = (covered, checks);
    assert!(
        covered >= COVERED_CASES && checks >= COVERED_EXPECTATIONS,
        "{counts:?}"
    );
}

#[test]
fn filters_without_a_profile_are_unknown_below_their_rule_or_backend() {
    all_agree(filters::unknown);
}

#[test]
fn order_of_arrival_does_not_change_an_answer() {
    all_agree(compare::arrival);
}

#[test]
fn statuses_agree_with_what_stands_on_the_paths() {
    all_agree(statuses::compared);
}

#[test]
fn findings_and_what_policies_affect_are_those_of_the_second_evaluator() {
    all_agree(questions::compared);
}

#[test]
fn an_engine_that_follows_changes_answers_like_a_full_read() {
    // Each is read from scratch a dozen times.
    agree(60, follow::engine);
}

#[test]
fn a_world_whose_rules_delegate_no_more_is_followed() {
    // The profile of a rule that only delegates goes: the rule takes requests itself.
    let wrong = follow::engine(&World::new(300_484));
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// Follows random changes of some worlds; at most so many of a hundred may rebuild them. Otherwise nothing is tested.
fn follow_changes(worlds: u64, follow: fn(&World) -> (Vec<String>, u64, u64), most_rebuilds: u64) {
    let (mut updates, mut rebuilds) = (0, 0);
    agree(worlds, |world| {
        let (wrong, followed, rebuilt) = follow(world);
        updates += followed;
        rebuilds += rebuilt;
        wrong
    });
    println!("{updates} updates, {rebuilds} of them rebuilds");
    assert!(
        rebuilds * 100 < updates * most_rebuilds,
        "{rebuilds} of {updates} updates are rebuilds"
    );
}

#[test]
fn an_engine_that_follows_routes_and_services_answers_like_a_full_read() {
    follow_changes(60, follow::routes, 66);
}

#[test]
fn an_engine_that_follows_gateways_answers_like_a_full_read() {
    follow_changes(60, follow::gateways, 50);
}

#[test]
fn an_engine_that_follows_namespaces_answers_like_a_full_read() {
    follow_changes(60, follow::namespaces, 50);
}

#[test]
fn an_engine_that_follows_all_kinds_of_objects_answers_like_a_full_read() {
    follow_changes(10, follow::all_kinds, 50);
}

#[test]
fn assertions_that_follow_changes_say_what_a_walk_of_all_paths_says() {
    let mut failing = 0;
    agree(60, |world| {
        let (wrong, found) = assertions::followed(world);
        failing += found;
        wrong
    });
    // Otherwise nothing is tested here.
    assert!(failing > 60, "{failing} results have paths that fail");
}

#[test]
fn effects_that_are_computed_in_place_are_those_of_a_full_read() {
    let mut compared = (0, 0);
    agree(60, |world| {
        let (wrong, changes, in_place) = follow::effects(world);
        compared = (compared.0 + changes, compared.1 + in_place);
        wrong
    });
    // Otherwise nothing is tested here.
    let (changes, in_place) = compared;
    assert!(
        in_place * 3 > changes,
        "{in_place} of {changes} effects are computed in place"
    );
}

#[test]
fn questions_walk_the_paths_that_a_walk_of_whole_paths_finds() {
    agree(300, paths::judged);
}

#[test]
fn hidden_objects_are_answered_as_if_they_did_not_exist() {
    // Each asks all questions of two callers in five worlds.
    agree(10, noninterference::compared);
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

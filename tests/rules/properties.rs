//! Property tests: invariants for arbitrary inputs, and for all conformance cases.

use entail::snapshot::{Snapshot, Version};
use entail_core::effective::World;
use entail_core::model::PathName;
use proptest::prelude::*;

use super::corpus;
use super::oracle::seeds;

/// Returns every path with the bytes of its answer, in the order of the topology.
fn answers(world: World) -> Vec<(String, Vec<u8>)> {
    let version = Version {
        epoch: "test".into(),
        generation: 1,
        synced_at: Default::default(),
    };
    let snapshot = Snapshot::build(world, version);
    let mut answers = Vec::new();
    snapshot.world().topology().visit(&mut |name, _| {
        let path = PathName::parse(name).unwrap();
        let body = snapshot.look_up(&path).unwrap();
        answers.push((name.to_owned(), snapshot.reply(body).result.to_vec()));
    });
    answers
}

/// Returns a permutation that depends only on the seed.
fn shuffled<T: Clone>(items: &[T], seed: u64) -> Vec<T> {
    let mut keyed: Vec<(u64, &T)> = (1_u64..)
        .zip(items)
        .map(|(at, item)| {
            let mut x = seed ^ at.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            x ^= x >> 29;
            (x.wrapping_mul(0xBF58_476D_1CE4_E5B9), item)
        })
        .collect();
    keyed.sort_by_key(|(key, _)| *key);
    keyed.into_iter().map(|(_, item)| item.clone()).collect()
}

#[test]
fn answers_do_not_depend_on_the_order_of_objects() {
    for case in corpus::cases() {
        let inputs = case.inputs();
        let expected = answers(entail::app::world_of(&inputs));
        for seed in seeds(1) {
            let actual = answers(entail::app::world_of(&shuffled(&inputs, seed)));
            assert_eq!(expected, actual, "{} with seed {seed}", case.name);
        }
    }
}

#[test]
fn visited_and_located_paths_have_the_same_steps_and_chains() {
    for case in corpus::cases() {
        let world = entail::app::world_of(&case.inputs());
        world.topology().visit(&mut |name, trail| {
            let path = PathName::parse(name).unwrap();
            assert_eq!(path.to_string(), name);
            let located = world.locate(&path).unwrap();
            assert_eq!(located.steps, trail.steps, "{}: {name}", case.name);
            assert_eq!(located.end(), trail.end(), "{}: {name}", case.name);
            let last = trail.steps.last().map(|step| step.level);
            assert_eq!(last, Some(path.level()), "{}: {name}", case.name);
            for kind in world.kinds() {
                assert_eq!(
                    world.attachment_chain(kind, &located),
                    world.attachment_chain(kind, trail)
                );
            }
        });
    }
}

#[test]
fn explanations_agree_with_answers() {
    for case in corpus::cases() {
        let world = entail::app::world_of(&case.inputs());
        world.topology().visit(&mut |name, trail| {
            for kind in world.kinds() {
                let Some(chain) = world.attachment_chain(kind, trail) else {
                    continue;
                };
                let answer = world.answer(kind, &chain);
                let explained = world.explain(kind, &chain);
                assert_eq!(answer, explained.effective, "{}: {name}", case.name);
                // Every unit has an origin or an overridden policy.
                for unit in &explained.units {
                    let is_explained = unit.origin.is_some() || !unit.overridden.is_empty();
                    assert!(is_explained, "{}: {name}: {}", case.name, unit.unit);
                }
                // Every loss is explained: some unit that overlaps it has an overridden policy.
                for lost in world.losses(kind, &chain) {
                    let overridden = explained.units.iter().flat_map(|u| &u.overridden);
                    let overlaps = |b: &entail_core::model::OverriddenPolicy| {
                        b.unit.covers(&lost) || lost.covers(&b.unit)
                    };
                    assert!(
                        overridden.clone().any(overlaps),
                        "{}: {name}: no overridden policy explains the loss of {lost}",
                        case.name
                    );
                }
            }
        });
    }
}

fn part() -> impl Strategy<Value = String> {
    "[a-z0-9]([a-z0-9.-]{0,10}[a-z0-9])?"
}

fn kind() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("HTTPRoute".to_owned()),
        Just("Service".to_owned()),
        Just("Backend.gateway.example.com".to_owned()),
    ]
}

/// Generates path names of all levels.
fn name() -> impl Strategy<Value = String> {
    let rule = prop_oneof![part(), (0_u32..99).prop_map(|i| format!("#{i}"))];
    let root = prop_oneof![
        (
            part(),
            part(),
            proptest::option::of((part(), part())),
            part()
        )
            .prop_map(|(ns, gw, set, listener)| {
                let set = set.map_or(String::new(), |(a, b)| format!("/listenersets/{a}/{b}"));
                format!("gateways/{ns}/{gw}{set}/listeners/{listener}")
            }),
        (
            prop_oneof![Just("*".to_owned()), part()],
            part(),
            part(),
            0_u16..9
        )
            .prop_map(|(client, ns, service, port)| {
                let port = if port > 0 {
                    format!("/ports/{port}")
                } else {
                    String::new()
                };
                format!("mesh/{client}/services/{ns}/{service}{port}")
            }),
    ];
    (
        root,
        kind(),
        part(),
        part(),
        rule,
        kind(),
        part(),
        part(),
        1_u16..,
        0_usize..5,
    )
        .prop_map(|(root, rk, rns, rn, rule, bk, bns, bn, port, depth)| {
            let parts = [
                root,
                format!("/routes/{rk}/{rns}/{rn}"),
                format!("/rules/{rule}"),
                format!("/backends/{bk}/{bns}/{bn}"),
                format!("/ports/{port}"),
            ];
            parts[..=depth].concat()
        })
}

proptest! {
    #[test]
    fn a_parsed_name_prints_as_the_original(name in name()) {
        let path = PathName::parse(&name);
        prop_assert_eq!(path.map(|p| p.to_string()), Ok(name));
    }

    #[test]
    fn any_text_is_parsed_or_rejected_at_an_offset_inside_it(text in "\\PC{0,200}|(gateways|mesh|/|listeners|rules|#|0){0,40}") {
        match PathName::parse(&text) {
            Ok(path) => prop_assert_eq!(path.to_string(), text),
            Err(error) => prop_assert!(error.offset <= text.len()),
        }
    }

    #[test]
    fn arbitrary_conditions_are_rejected_or_evaluated(
        parts in proptest::collection::vec(token(), 0..60),
        depth in 0_usize..40,
    ) {
        let text = "(".repeat(depth) + &parts.concat() + &")".repeat(depth);
        if let Ok(condition) = entail_core::expr::Expression::compile(&text) {
            prop_assert!(depth <= 16, "{}", text);
            // The result does not matter: evaluation must terminate without a panic.
            let _ = condition.is_true(&[("self", &serde_json::json!({"a": [1, {"b": "x"}], "n": null}))]);
        }
    }
}

/// Generates tokens of conditions.
fn token() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(vec![
        "self",
        ".a",
        ".b",
        "[0]",
        "[",
        "]",
        "(",
        ")",
        "{",
        "}",
        "!",
        "-",
        "+",
        "*",
        "/",
        "%",
        " ? ",
        " : ",
        " && ",
        " || ",
        " == ",
        " in ",
        ", ",
        "\"",
        "'",
        "\\",
        "1",
        "1.5",
        "1u",
        "null",
        "true",
        "has(",
        "size(",
        ".all(x, ",
        ".map(x, ",
        ".exists(x, ",
        "x",
        "b'",
        "r\"",
        "\"\"\"",
        "0x1f",
        "9223372036854775808",
        "1e999",
        "é",
    ])
}

//! The corpus through every door: the library, the command over files, and the gRPC answer.

use std::process::Command;
use std::time::Duration;

use entail::app::load_values;
use entail::cli::RemoteBackend;
use entail::cli::test::{Case, check};
use entail::insight::QueryBackend;
use entail::server::Limits;
use entail_client::ClientTls;

use super::{corpus, served};

/// Checks one case and collects what differs.
fn hold(case: &Case, ask: &mut dyn QueryBackend, failures: &mut Vec<String>) {
    for mismatch in check(case, ask) {
        failures.push(format!("{}\n{mismatch}", case.name));
    }
}

#[test]
fn through_the_command() {
    let output = Command::new(env!("CARGO_BIN_EXE_entail"))
        .arg("test")
        .args(corpus::files())
        .args(corpus::lists())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    let last = text.lines().last().unwrap();
    assert_eq!(last, format!("{} passed, 0 failed", corpus::cases().len()));
}

#[test]
fn through_the_library_and_the_service() {
    let served = served::serve(Limits::default());
    let mut remote = RemoteBackend::connect(
        &served.address,
        &ClientTls::default(),
        Duration::from_secs(30),
    )
    .unwrap();
    let mut failures = Vec::new();
    for case in corpus::cases() {
        let mut local = load_values(&case.inputs(), &[]).unwrap();
        hold(case, &mut local, &mut failures);
        // One server for all: each case is its next snapshot.
        served.snapshots.publish(local.snapshot);
        hold(case, &mut remote, &mut failures);
    }
    assert!(failures.is_empty(), "{}", failures.concat());
}

#[test]
fn a_wrong_expectation_is_found() {
    // The check itself can fail: each kind of expectation, wrong once.
    let right = corpus::cases()
        .iter()
        .find(|case| case.name == "semantics/10-part")
        .unwrap();
    let mut local = load_values(&right.inputs(), &[]).unwrap();
    assert_eq!(check(right, &mut local), []);
    let mut wrong = right.clone();
    wrong.expect.status[0].in_force = Some("All".to_owned());
    wrong.expect.paths.valid.push("gateways/ns/nope".to_owned());
    wrong
        .expect
        .affected
        .insert("Gateway/ns/gw".to_owned(), Vec::new());
    let found = check(&wrong, &mut local);
    assert_eq!(found.len(), 3, "{found:?}");
}

#[test]
fn every_built_in_profile_has_a_case() {
    let cases = corpus::cases();
    let of = |object: &serde_json::Value| {
        let version = object["apiVersion"].as_str().unwrap_or_default();
        let group = version.split_once('/').map_or("", |(group, _)| group);
        format!("{}.{group}", object["kind"].as_str().unwrap_or_default())
    };
    let known: std::collections::BTreeSet<String> = cases
        .iter()
        .flat_map(|case| &case.objects)
        .map(of)
        .collect();
    let missing: Vec<String> = entail_core::profile::built_in()
        .iter()
        .flatten()
        .map(|(_, document)| document.policy().to_string())
        .filter(|kind| !known.contains(kind))
        .collect();
    assert!(missing.is_empty(), "no case for {missing:?}");
    // A case that names a built-in profile relies on one that there is.
    let names: Vec<&str> = entail_core::profile::built_in()
        .iter()
        .flatten()
        .map(|(_, document)| document.name())
        .collect();
    for case in cases {
        for name in case.built_in() {
            assert!(
                names.contains(&name),
                "{}: no built-in profile `{name}`",
                case.name
            );
        }
    }
}

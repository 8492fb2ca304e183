//! Runs the conformance cases through the library, through `entail test`, and through a gRPC server.

use std::process::Command;
use std::time::Duration;

use entail::app::load_values;
use entail::cli::RemoteBackend;
use entail::cli::test::{Case, check};
use entail::insight::QueryBackend;
use entail::server::Limits;
use entail_client::ClientTls;

use super::{corpus, served};

/// Checks one case and collects its mismatches.
fn check_case(case: &Case, backend: &mut dyn QueryBackend, failures: &mut Vec<String>) {
    for mismatch in check(case, backend) {
        failures.push(format!("{}\n{mismatch}", case.name));
    }
}

#[test]
fn cases_pass_through_the_command() {
    let output = Command::new(env!("CARGO_BIN_EXE_entail"))
        .arg("test")
        .args(corpus::files())
        .args(corpus::others())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    let last = text.lines().last().unwrap();
    assert_eq!(last, format!("{} passed, 0 failed", corpus::cases().len()));
}

#[test]
fn cases_pass_through_the_library_and_a_server() {
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
        check_case(case, &mut local, &mut failures);
        // One server serves all cases: each case is published as the next snapshot.
        served.subscriptions.publish(local.snapshot);
        check_case(case, &mut remote, &mut failures);
    }
    assert!(failures.is_empty(), "{}", failures.concat());
}

#[test]
fn wrong_expectations_are_detected() {
    // One wrong expectation for a status, one for a path, and one for the affecting policies.
    let correct = corpus::cases()
        .iter()
        .find(|case| case.name == "semantics/10-part")
        .unwrap();
    let mut local = load_values(&correct.inputs(), &[]).unwrap();
    assert_eq!(check(correct, &mut local), []);
    let mut wrong = correct.clone();
    wrong.expect.status[0].in_force = Some("All".to_owned());
    wrong.expect.paths.valid.push("gateways/ns/nope".to_owned());
    wrong
        .expect
        .affected
        .insert("Gateway/ns/gw".to_owned(), Vec::new());
    let mismatches = check(&wrong, &mut local);
    assert_eq!(mismatches.len(), 3, "{mismatches:?}");
}

#[test]
fn every_built_in_profile_has_a_case() {
    let cases = corpus::cases();
    let kind_of = |object: &serde_json::Value| {
        let version = object["apiVersion"].as_str().unwrap_or_default();
        let group = version.split_once('/').map_or("", |(group, _)| group);
        format!("{}.{group}", object["kind"].as_str().unwrap_or_default())
    };
    let covered: std::collections::BTreeSet<String> = cases
        .iter()
        .flat_map(|case| &case.objects)
        .map(kind_of)
        .collect();
    let named: Vec<&str> = cases.iter().flat_map(|case| case.built_in()).collect();
    let missing: Vec<String> = entail_core::profile::built_in()
        .iter()
        .flatten()
        .filter(|(_, document)| {
            let (kind, resource) = (document.policy(), document.policy().resource());
            // A case of a section names its profile.
            let is_named = kind == resource || named.contains(&document.name());
            !(covered.contains(&resource.to_string()) && is_named)
        })
        .map(|(_, document)| document.policy().to_string())
        .collect();
    assert!(missing.is_empty(), "no case for {missing:?}");
    // The built-in profiles that cases name exist.
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

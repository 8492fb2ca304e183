//! Tests of `entail test`: cases that assert nothing, and cases that name what does not exist, are
//! refused with exit code 3.

use std::path::Path;
use std::process::{Command, Output};

/// A case without its expectations.
const WORLD: &str = r#"
profiles:
- apiVersion: entail.dev/v1alpha1
  kind: PolicyProfile
  metadata: {name: retrypolicies.policies.bakery.example}
  spec:
    policy: {group: policies.bakery.example, kind: RetryPolicy}
    class: Inherited
    effectiveTarget: Route
    strategies: [PatchDefaults]
    rules: {defaults: [], overrides: []}
objects:
- apiVersion: gateway.networking.k8s.io/v1
  kind: GatewayClass
  metadata: {name: bakery}
  spec: {controllerName: bakery.example/gateway}
- apiVersion: gateway.networking.k8s.io/v1
  kind: Gateway
  metadata: {name: storefront, namespace: shop}
  spec:
    gatewayClassName: bakery
    listeners: [{name: http, port: 80, protocol: HTTP}]
- apiVersion: gateway.networking.k8s.io/v1
  kind: HTTPRoute
  metadata: {name: browse, namespace: shop}
  spec:
    parentRefs: [{name: storefront}]
    rules: [{name: all}]
- apiVersion: policies.bakery.example/v1
  kind: RetryPolicy
  metadata: {name: patient, namespace: shop}
  spec:
    targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: browse}]
    attempts: 3
"#;
const PATH: &str = "gateways/shop/storefront/listeners/http/routes/HTTPRoute/shop/browse";
const KIND: &str = "RetryPolicy.policies.bakery.example";

fn case(name: &str, expect: &str) -> String {
    let expect = expect.replace("PATH", PATH).replace("KIND", KIND);
    format!("name: {name}{WORLD}expect: {expect}\n")
}

fn test_in(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output: Output = Command::new(env!("CARGO_BIN_EXE_entail"))
        .arg("test")
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

/// Runs cases of one file.
fn run(cases: &[String]) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("cases.yaml"), cases.join("---\n")).unwrap();
    test_in(folder.path(), &["cases.yaml"])
}

/// Checks that a case with these expectations is refused, and that the next case still runs.
#[track_caller]
fn assert_refused(expect: &str, messages: &[&str]) {
    let good = case(
        "good",
        "{effective: [{path: PATH, policies: {KIND: {attempts: 3}}}]}",
    );
    let (code, printed, errors) = run(&[case("bad", expect), good]);
    assert_eq!(code, Some(3), "{expect}\n{printed}{errors}");
    assert_eq!(
        printed, "1 passed, 0 failed, 1 refused\n",
        "{expect}\n{errors}"
    );
    assert!(
        errors.contains("cases.yaml:1: invalid test case `bad`: "),
        "{errors}"
    );
    for message in messages {
        let message = message.replace("PATH", PATH).replace("KIND", KIND);
        assert!(
            errors.contains(&message),
            "{expect}: no `{message}` in {errors}"
        );
    }
}

#[test]
fn expectations_that_assert_nothing_are_refused() {
    for (expect, message) in [
        ("{}", "expect: asserts nothing"),
        ("{effective: []}", "expect.effective: asserts nothing"),
        ("{paths: {}}", "expect.paths: asserts nothing"),
        (
            "{paths: {valid: []}}",
            "expect.paths.valid: asserts nothing",
        ),
        (
            "{effective: [{path: PATH}]}",
            "expect.effective[0]: asserts nothing",
        ),
        (
            "{effective: [{path: PATH, policies: {}}]}",
            "expect.effective[0]: asserts nothing",
        ),
        (
            "{effective: [{path: PATH, policies: {KIND: {attempts: 3}}, origins: {KIND: {}}}]}",
            "expect.effective[0].origins.KIND: asserts nothing",
        ),
        (
            "{status: [{policy: KIND/shop/patient}]}",
            "expect.status[0]: asserts nothing",
        ),
        (
            "{status: [{policy: KIND/shop/patient, inForce: null}]}",
            "expect.status[0]: asserts nothing",
        ),
        (
            "{losses: {PATH: {}}}",
            "expect.losses.PATH: asserts nothing",
        ),
    ] {
        assert_refused(expect, &[message]);
    }
}

#[test]
fn misspelt_kinds_are_refused_with_the_nearest_name() {
    let near = "did you mean `RetryPolicy.policies.bakery.example`?";
    for (expect, field) in [
        (
            "{effective: [{path: PATH, policies: {RetryPolcy.policies.bakery.example: null}}]}",
            "expect.effective[0].policies: ",
        ),
        (
            "{effective: [{path: PATH, unknown: [RetryPolicy.policies.bakery.exmaple]}]}",
            "expect.effective[0].unknown: ",
        ),
        (
            "{effective: [{path: PATH, listed: {RetryPolicy.policies.bakery.exampl: []}}]}",
            "expect.effective[0].listed: ",
        ),
        (
            "{losses: {PATH: {RetryPolice.policies.bakery.example: []}}}",
            "expect.losses.PATH: ",
        ),
    ] {
        assert_refused(expect, &[field, near]);
    }
}

#[test]
fn names_of_objects_that_are_not_in_the_case_are_refused() {
    for (expect, messages) in [
        (
            "{status: [{policy: KIND/shop/patiend, inForce: All}]}",
            [
                "expect.status[0].policy: ",
                "did you mean `KIND/shop/patient`?",
            ],
        ),
        (
            "{affected: {Gateway/shop/storefornt: []}}",
            [
                "expect.affected: ",
                "did you mean `Gateway/shop/storefront`?",
            ],
        ),
        (
            "{affected: {'Gateway/shop/storefront#https': []}}",
            ["expect.affected: ", "`Gateway/shop/storefront#https`"],
        ),
        (
            "{effective: [{path: PATH, origins: {KIND: {attempts: shop/pateint}}}]}",
            [
                "expect.effective[0].origins.KIND.attempts: ",
                "did you mean `shop/patient`?",
            ],
        ),
        (
            "{effective: [{path: PATH, rejected: {KIND: [{policy: shop/patien, reason: Conflicted}]}}]}",
            [
                "expect.effective[0].rejected.KIND[0]: ",
                "did you mean `shop/patient`?",
            ],
        ),
        (
            "{effective: [{path: PATH, listed: {KIND: [shop/patients]}}]}",
            [
                "expect.effective[0].listed.KIND[0]: ",
                "did you mean `shop/patient`?",
            ],
        ),
        (
            "{losses: {gateways/shop/storefornt: {KIND: []}}}",
            ["expect.losses: ", "`gateways/shop/storefornt`"],
        ),
    ] {
        assert_refused(expect, &messages);
    }
}

#[test]
fn an_unknown_field_refuses_only_its_case() {
    assert_refused("{efective: []}", &["unknown field `efective`"]);
}

#[test]
fn an_invalid_path_without_a_reason_is_a_warning() {
    let expect = "{paths: {invalid: [{path: gateways/shop/backdoor}]}}";
    let (code, printed, errors) = run(&[case("no reason", expect)]);
    assert_eq!(
        (code, printed.as_str()),
        (Some(0), "1 passed, 0 failed\n"),
        "{errors}"
    );
    assert!(
        errors.contains("warning: cases.yaml:1: case `no reason`: expect.paths.invalid[0]: "),
        "{errors}"
    );
    let expect = "{paths: {invalid: [{path: gateways/shop/backdoor, reason: GatewayNotFound}]}}";
    let (code, _, errors) = run(&[case("reason", expect)]);
    assert_eq!((code, errors.as_str()), (Some(0), ""));
}

#[test]
fn refused_profiles_are_refused_inputs() {
    let expect = "{effective: [{path: PATH, policies: {KIND: {attempts: 3}}}]}";
    let text = case("profile", expect);
    let wrong = text.replace("strategies: [PatchDefaults]", "strategies: [PatchDefalts]");
    let (code, printed, errors) = run(&[wrong]);
    assert_eq!(code, Some(3), "{printed}{errors}");
    assert!(errors.contains("profiles: profile refused: "), "{errors}");
    assert!(errors.contains("PatchDefalts"), "{errors}");
    // A case may expect that its profile is refused.
    let unknown = case("profile", "{effective: [{path: PATH, unknown: [KIND]}]}");
    let unknown = unknown.replace("strategies: [PatchDefaults]", "strategies: [PatchDefalts]");
    let (code, printed, errors) = run(&[unknown]);
    assert_eq!(code, Some(0), "{printed}{errors}");
}

#[test]
fn names_of_built_in_profiles_are_checked() {
    let expect = "{effective: [{path: PATH, policies: {KIND: {attempts: 3}}}]}";
    let text = case("built-in", expect);
    for (name, near) in [
        (
            "authpolicys.kuadrant.io",
            "did you mean `authpolicies.kuadrant.io`?",
        ),
        ("nothing", "one of --profiles has the name `nothing`"),
        ("7", "profiles[0]: `7` is neither"),
        ("{kind: PolicyProfil}", "profiles[0]: "),
    ] {
        let wrong = text.replacen("profiles:\n", &format!("profiles:\n- {name}\n"), 1);
        let (code, printed, errors) = run(&[wrong]);
        assert_eq!(code, Some(3), "{name}: {printed}{errors}");
        assert!(errors.contains("profiles[0]: "), "{name}: {errors}");
        assert!(errors.contains(near), "{name}: {errors}");
    }
    let right = text.replacen("profiles:\n", "profiles:\n- authpolicies.kuadrant.io\n", 1);
    assert_eq!(run(&[right]).0, Some(0));
}

#[test]
fn a_case_can_name_a_profile_of_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let text = "name: a\nprofiles: [trialpolicies.example.com]\nobjects: []\n\
        expect: {paths: {invalid: [{path: gateways/a/b}]}}\n";
    std::fs::write(folder.path().join("cases.yaml"), text).unwrap();
    let profile = "apiVersion: entail.dev/v1alpha1\nkind: PolicyProfile\n\
        metadata: {name: trialpolicies.example.com}\n\
        spec: {policy: {group: example.com, kind: TrialPolicy}}\n";
    std::fs::write(folder.path().join("profile.yaml"), profile).unwrap();
    let (code, _, errors) = test_in(folder.path(), &["cases.yaml"]);
    assert_eq!(code, Some(3), "{errors}");
    let refusal =
        "neither a built-in profile nor one of --profiles has the name `trialpolicies.example.com`";
    assert!(errors.replace('\n', " ").contains(refusal), "{errors}");
    let (code, _, errors) = test_in(folder.path(), &["--profiles", "profile.yaml", "cases.yaml"]);
    assert_eq!(code, Some(0), "{errors}");
}

#[test]
fn a_refused_profile_file_is_a_refused_input() {
    let folder = tempfile::tempdir().unwrap();
    let expect = "{effective: [{path: PATH, policies: {KIND: {attempts: 3}}}]}";
    std::fs::write(folder.path().join("cases.yaml"), case("a", expect)).unwrap();
    let profile = "apiVersion: entail.dev/v1alpha1\nkind: PolicyProfile\nmetadata: {name: x}\n\
        spec: {policy: {group: g, kind: P}, strategies: [Nope]}\n";
    std::fs::write(folder.path().join("profile.yaml"), profile).unwrap();
    let (code, printed, errors) =
        test_in(folder.path(), &["--profiles", "profile.yaml", "cases.yaml"]);
    assert_eq!((code, printed.as_str()), (Some(3), ""), "{errors}");
    assert!(errors.contains("profile.yaml:1: "), "{errors}");
}

//! `entail admission`: the configuration of the admission webhook.

use std::process::{Command, Output};

use serde_json::Value;

fn admission(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_entail"))
        .arg("admission")
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap()
}

fn printed(arguments: &[&str]) -> String {
    let output = admission(arguments);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), errors.as_str()), (Some(0), ""));
    String::from_utf8(output.stdout).unwrap()
}

fn parsed(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}

#[test]
fn the_component_has_the_configuration_that_the_command_prints() {
    let name = "entail-system/entail-admission";
    let expected = printed(&["--service", name, "--inject-ca-from", name]);
    let file = include_str!("../../deploy/components/admission/webhook.yaml");
    let lines = file.lines().skip_while(|line| line.starts_with('#'));
    let text: String = lines.flat_map(|line| [line, "\n"]).collect();
    assert_eq!(text, expected, "print it again");
}

#[test]
fn the_rules_are_those_of_profiles_and_routes() {
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.crt");
    std::fs::write(&ca, "-----BEGIN CERTIFICATE-----\n").unwrap();
    let url = "https://127.0.0.1:8443/admit";
    let all = parsed(&printed(&[
        "--url",
        url,
        "--ca-file",
        ca.to_str().unwrap(),
        "--manifests",
        "examples/bakery",
    ]));
    let webhook = &all["webhooks"][0];
    assert_eq!(webhook["clientConfig"]["url"], url);
    let bundle = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==";
    assert_eq!(webhook["clientConfig"]["caBundle"], bundle);
    assert_eq!(webhook["failurePolicy"], "Ignore");
    assert_eq!(webhook["sideEffects"], "None");
    let rules = webhook["rules"].as_array().unwrap();
    let of_group = |group: &str| {
        let mut rules = rules.iter();
        let rule = rules.find(|rule| rule["apiGroups"][0] == group).unwrap();
        assert_eq!(
            rule["operations"],
            serde_json::json!(["CREATE", "UPDATE", "DELETE"])
        );
        rule["resources"].clone()
    };
    let bakery = [
        "authpolicies",
        "cachepolicies",
        "retrypolicies",
        "timeoutpolicies",
    ];
    assert_eq!(
        of_group("policies.bakery.example"),
        serde_json::json!(bakery)
    );
    let gateway_api = of_group("gateway.networking.k8s.io");
    let gateway_api = gateway_api.as_array().unwrap();
    for resource in [
        "httproutes",
        "grpcroutes",
        "gateways",
        "referencegrants",
        "backendtlspolicies",
    ] {
        assert!(
            gateway_api.iter().any(|other| other == resource),
            "{resource}"
        );
    }
    let excluded = &webhook["namespaceSelector"]["matchExpressions"][0]["values"];
    assert_eq!(*excluded, serde_json::json!(["kube-system"]));
    let help = printed(&["--help"]);
    assert!(help.contains("Examples:") && help.lines().all(|line| line.chars().count() <= 100));
}

#[test]
fn wrong_arguments_are_refused() {
    for arguments in [
        &[][..],
        &["--service", "entail"],
        &["--url", "http://127.0.0.1/admit"],
        &["--service", "a/b", "--url", "https://x/admit"],
        &[
            "--service",
            "a/b",
            "--ca-file",
            "x",
            "--inject-ca-from",
            "a/b",
        ],
    ] {
        assert_eq!(admission(arguments).status.code(), Some(2), "{arguments:?}");
    }
    let missing = admission(&["--service", "a/b", "--ca-file", "/nowhere/ca.crt"]);
    assert_eq!(missing.status.code(), Some(3));
}

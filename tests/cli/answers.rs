//! Tests of the binary with the manifests of `examples/bakery`.

use std::collections::BTreeSet;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const BAKERY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/bakery");
const LOAVES: &str = "gateways/platform/storefront/listeners/https/routes/HTTPRoute/baker/bread/\
                      rules/menu/backends/Service/baker/loaves";

fn entail(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_entail"))
        .args(arguments)
        .env_remove("NO_COLOR")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn bakery(arguments: &[&str]) -> Output {
    let mut all = arguments.to_vec();
    all.extend(["--manifests", BAKERY]);
    entail(&all)
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[track_caller]
fn success(output: &Output) -> String {
    assert_eq!(code(output), 0, "{}{}", stdout(output), stderr(output));
    stdout(output)
}

fn json(arguments: &[&str]) -> Value {
    let text = success(&bakery(arguments));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn fields(value: &Value) -> BTreeSet<&str> {
    value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

fn list<'v>(value: &'v Value, name: &str) -> &'v Vec<Value> {
    value[name].as_array().unwrap()
}

/// The paths of an answer with the kinds printed at each.
fn kinds_by_path(answer: &Value) -> Vec<(String, Vec<String>)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    list(answer, "paths")
        .iter()
        .map(|path| {
            let kinds = list(path, "policies").iter().map(|p| text(&p["kind"]));
            (text(&path["path"]), kinds.collect())
        })
        .collect()
}

#[test]
fn get_prints_every_field() {
    let answer = json(&["get", "-o", "json"]);
    assert_eq!(fields(&answer), ["version", "kinds", "paths"].into());
    assert_eq!(fields(&answer["version"]), ["epoch", "generation"].into());
    assert!(answer["version"]["generation"].is_string());
    assert_eq!(answer["kinds"], serde_json::json!([]));
    let mut origins = 0;
    for path in list(&answer, "paths") {
        assert_eq!(fields(path), ["path", "policies"].into());
        for policy in list(path, "policies") {
            assert_eq!(
                fields(policy),
                [
                    "group",
                    "kind",
                    "spec",
                    "etag",
                    "origins",
                    "listed",
                    "rejected",
                    "inheritedOnly",
                    "notComputed",
                    "unknown"
                ]
                .into()
            );
            assert_eq!(policy["inheritedOnly"], false);
            for origin in list(policy, "origins") {
                origins += 1;
                assert_eq!(
                    fields(origin),
                    ["unit", "policies", "object", "block"].into()
                );
                assert_eq!(fields(&origin["policies"][0]), ["namespace", "name"].into());
            }
        }
    }
    assert!(origins > 10, "{origins}");
}

#[test]
fn each_kind_is_printed_at_its_effective_level() {
    for (path, kinds) in kinds_by_path(&json(&["get", "-o", "json"])) {
        let is_backend = path.contains("/backends/");
        assert!(path.contains("/rules/"), "{path}");
        let is_retry = |kind: &String| kind == "RetryPolicy";
        assert!(
            kinds.iter().all(|kind| is_retry(kind) == is_backend),
            "{path} {kinds:?}"
        );
    }
    let all = kinds_by_path(&json(&["get", "-o", "json", "--all-levels"]));
    assert!(
        all.iter()
            .any(|(path, _)| path == "gateways/platform/storefront")
    );
    assert!(
        all.iter()
            .any(|(path, kinds)| !path.contains("/routes/") && !kinds.is_empty())
    );
}

#[test]
fn a_single_path_is_printed_with_every_kind() {
    let answer = json(&["get", LOAVES, "-o", "json"]);
    let found = kinds_by_path(&answer);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].0, LOAVES);
    let policies = list(&answer["paths"][0], "policies");
    let retry = policies
        .iter()
        .find(|p| p["kind"] == "RetryPolicy")
        .unwrap();
    assert_eq!(
        retry["spec"],
        serde_json::json!({"attempts": 5, "backoff": "250ms"})
    );
    let inherited = json(&["get", "gateways/platform/storefront", "-o", "json"]);
    let policies = list(&inherited["paths"][0], "policies");
    assert!(
        policies
            .iter()
            .any(|policy| policy["inheritedOnly"] == true),
        "{inherited}"
    );
}

#[test]
fn an_object_selects_the_paths_through_it() {
    // NAME before and after `--manifests`, which takes several values.
    let object = "httproute/baker/cakes";
    let before = json(&["get", object, "-o", "json"]);
    let after = success(&entail(&[
        "get",
        "-o",
        "json",
        "--manifests",
        BAKERY,
        object,
    ]));
    let answer = serde_json::from_str(&after).unwrap();
    assert_eq!(kinds_by_path(&before), kinds_by_path(&answer));
    let found = kinds_by_path(&before);
    assert!(found.len() >= 4 && found.iter().all(|(path, _)| path.contains("baker/cakes")));
    // A kind whose levels are above the object is printed at the path that ends there.
    let service = kinds_by_path(&json(&[
        "get",
        "service/shop/till",
        "-o",
        "json",
        "--kind",
        "CachePolicy",
    ]));
    assert!(!service.is_empty());
    for (path, kinds) in service {
        assert!(
            path.ends_with("Service/shop/till") && kinds == ["CachePolicy"],
            "{path}"
        );
    }
}

#[test]
fn yaml_and_json_are_equal() {
    for arguments in [
        &["get"][..],
        &["get", LOAVES],
        &["explain", "httproute/shop/shop"],
    ] {
        let mut with_yaml = arguments.to_vec();
        with_yaml.extend(["-o", "yaml"]);
        let mut with_json = arguments.to_vec();
        with_json.extend(["-o", "json"]);
        let mut yaml: Value = serde_saphyr::from_str(&success(&bakery(&with_yaml))).unwrap();
        let mut json = json(&with_json);
        // The epoch differs between processes.
        yaml["version"]["epoch"] = Value::Null;
        json["version"]["epoch"] = Value::Null;
        assert_eq!(yaml, json);
    }
}

#[test]
fn explain_names_the_policy_that_sets_retries() {
    let text = success(&bakery(&["explain", "httproute/baker/bread"]));
    let retries = text
        .split("RetryPolicy.policies.bakery.example")
        .nth(1)
        .unwrap();
    assert!(retries.contains("attempts = 5"), "{text}");
    assert!(
        retries.contains("<- baker/be-patient (defaults, PatchDefaults)"),
        "{text}"
    );
    assert!(
        text.contains("RetryPolicy: both values come from baker/be-patient on Namespace/baker"),
        "{text}"
    );
    let cakes = success(&bakery(&[
        "explain",
        "httproute/baker/cakes",
        "--kind",
        "RetryPolicy",
    ]));
    assert!(
        cakes.contains("overrides baker/be-patient: 250ms (more specific default)"),
        "{cakes}"
    );
    assert!(!cakes.contains("CachePolicy"), "{cakes}");
}

#[test]
fn text_fits_and_has_no_colours_in_a_pipe() {
    for arguments in [
        &["get"][..],
        &["explain", "httproute/shop/shop"],
        &["get", LOAVES],
    ] {
        let text = success(&bakery(arguments));
        assert!(!text.contains('\u{1b}'));
        let paths = ["gateways/", "mesh/", "  on gateways/", "     gateways/"];
        for line in text.lines() {
            let is_path = paths.iter().any(|start| line.starts_with(start));
            assert!(is_path || line.chars().count() <= 100, "{line}");
        }
    }
}

#[test]
fn an_unknown_name_is_reported_with_the_nearest_path() {
    let wrong = LOAVES.replace("/rules/menu/", "/rules/menus/");
    for command in ["get", "explain"] {
        let output = bakery(&[command, &wrong]);
        assert_eq!(code(&output), 1, "{}", stderr(&output));
        let nearest = "nearest path is `gateways/platform/storefront/listeners/https/routes/\
                       HTTPRoute/baker/bread`";
        assert!(stderr(&output).contains(nearest), "{}", stderr(&output));
        assert_eq!(stdout(&output), "");
        let output = bakery(&[command, "httproute/baker/croissants"]);
        assert_eq!(code(&output), 1, "{}", stderr(&output));
    }
}

#[test]
fn exit_codes_distinguish_usage_and_input_errors() {
    let output = entail(&["get"]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("--manifests") && stderr(&output).contains("--server"));
    assert_eq!(code(&entail(&["explain", "--manifests", BAKERY])), 2);
    assert_eq!(code(&bakery(&["get", "gateways//x"])), 2);
    assert_eq!(code(&bakery(&["get", "no-name"])), 2);
    assert_eq!(code(&bakery(&["get", "--server", "127.0.0.1:1"])), 2);
    assert_eq!(code(&entail(&["nonsense"])), 2);
    assert_eq!(code(&entail(&["get", "--manifests", "/no/such/folder"])), 3);
    assert_eq!(code(&entail(&["get", "--server", "127.0.0.1:1"])), 3);
    let health = ["health", "--server", "127.0.0.1:1", "--timeout", "1"];
    assert_eq!(code(&entail(&health)), 3);
}

/// Manifests of which the second document cannot be read.
const TORN: &str = "\
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: good, namespace: ns}
spec: {gatewayClassName: example, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: torn, namespace: ns}
spec: {gatewayClassName: example, gatewayClassName: example}
";

#[test]
fn a_document_that_cannot_be_read_costs_no_other_and_ends_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateways.yaml");
    std::fs::write(&file, TORN).unwrap();
    let ask = |more: &[&str]| entail(&[more, &["--manifests", file.to_str().unwrap()]].concat());
    let place = "gateways.yaml:9: document 2: this key is in its mapping twice: keep one of them";
    for command in ["get", "explain"] {
        let good = ask(&[command, "gateways/ns/good/listeners/http"]);
        assert_eq!(code(&good), 3, "{}", stderr(&good));
        assert!(stderr(&good).contains(place), "{}", stderr(&good));
        assert!(stdout(&good).contains("gateways/ns/good/listeners/http"));
        for name in ["gateways/ns/torn", "gateway/ns/torn"] {
            let torn = ask(&[command, name]);
            assert_eq!(code(&torn), 3, "{}", stderr(&torn));
            assert!(stderr(&torn).contains(place), "{}", stderr(&torn));
            assert!(
                stderr(&torn).contains("correct what the warnings name"),
                "{}",
                stderr(&torn)
            );
        }
    }
    // Whoever takes what there is gets an answer from that.
    let torn = ask(&["get", "gateway/ns/torn", "--allow-partial"]);
    assert_eq!(code(&torn), 1, "{}", stderr(&torn));
}

#[test]
fn the_flag_that_a_message_names_raises_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.yaml");
    let long = format!("data: {}\n", "x".repeat(1024 * 1024));
    std::fs::write(&file, long + "---\n" + TORN.split("---").next().unwrap()).unwrap();
    let ask = |most| {
        let path = file.to_str().unwrap();
        entail(&["get", "--manifests", path, "--max-manifest-size", most])
    };
    let small = ask("1");
    assert_eq!(code(&small), 3);
    let told = stderr(&small);
    assert!(told.contains("a.yaml: longer than 1 MiB"), "{told}");
    assert!(told.contains("raise `--max-manifest-size`"), "{told}");
    assert!(
        stderr(&ask("2")).contains("a.yaml:1: "),
        "{}",
        stderr(&ask("2"))
    );
    assert!(!stderr(&ask("2")).contains("longer than"));
    assert_eq!(code(&ask("0")), 2);
}

#[test]
fn an_unknown_kind_is_reported_as_unknown() {
    for output in ["table", "json", "yaml"] {
        let output = bakery(&[
            "get",
            LOAVES,
            "--kind",
            "FooPolicy.example.com",
            "-o",
            output,
        ]);
        assert_eq!(code(&output), 3, "{}", stderr(&output));
        assert!(stdout(&output).contains("FooPolicy.example.com"));
        assert!(stdout(&output).contains("UNKNOWN"));
    }
    let output = bakery(&["explain", LOAVES, "--kind", "FooPolicy.example.com"]);
    assert_eq!(code(&output), 3);
    let text = stdout(&output);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("it has no profile, so its policies are not evaluated"),
        "{text}"
    );
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_entail"))
        .args(["get", "--all-levels", "-o", "yaml", "--manifests", BAKERY])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
}

#[test]
fn descriptors_contain_the_services() {
    let output = entail(&["descriptors"]);
    assert_eq!(code(&output), 0);
    let set: prost_types::FileDescriptorSet = prost::Message::decode(&*output.stdout).unwrap();
    let services: Vec<&str> = set
        .file
        .iter()
        .flat_map(|file| &file.service)
        .map(|service| service.name())
        .collect();
    assert_eq!(services, ["EffectivePolicyService", "PolicyInsightService"]);
}

#[test]
fn completion_version_and_profiles_print_their_output() {
    let completion = success(&entail(&["completion", "bash"]));
    assert!(completion.contains("entail") && completion.contains("--manifests"));
    assert_eq!(
        success(&entail(&["version"])),
        format!("entail {}\n", env!("CARGO_PKG_VERSION"))
    );
    let table = success(&entail(&["profiles"]));
    assert!(
        table
            .lines()
            .any(|line| line.starts_with("BackendTrafficPolicy.gateway.envoyproxy.io"))
    );
    let yaml = success(&entail(&["profiles", "BackendTrafficPolicy", "-o", "yaml"]));
    assert!(
        yaml.contains("backendtrafficpolicies.gateway.envoyproxy.io"),
        "{yaml}"
    );
    assert!(!yaml.contains("clienttrafficpolicies"), "{yaml}");
    let json: Value = serde_json::from_str(&success(&entail(&["profiles", "-o", "json"]))).unwrap();
    assert!(list(&json, "profiles").len() > 20);
    assert_eq!(code(&entail(&["profiles", "NoSuchPolicy"])), 1);
}

#[test]
fn help_has_examples() {
    for command in [
        "serve",
        "get",
        "explain",
        "test",
        "profiles",
        "health",
        "completion",
    ] {
        let help = success(&entail(&[command, "--help"]));
        assert!(help.contains("Examples:"), "{command}");
    }
}

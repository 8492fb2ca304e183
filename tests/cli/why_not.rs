//! `explain --why-not` and `resolve --why-not`: the first condition that fails, and what would have to change.

use std::process::{Command, Output};

use serde_json::Value;

const BAKERY: &str = "examples/bakery";
const SHOP: &str = "shop.bakery.example";

fn entail(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_entail"));
    command
        .args(args)
        .args(["--manifests", BAKERY])
        .output()
        .unwrap()
}

/// The exit code and the answer about a policy at a name.
fn of_policy(name: &str, policy: &str) -> (Option<i32>, Value) {
    let output = entail(&["explain", name, "--why-not", policy, "-o", "json"]);
    (
        output.status.code(),
        serde_json::from_slice(&output.stdout).unwrap(),
    )
}

/// The exit code, and the reason and details of each answer about a rule, without those of another Gateway.
fn of_rule(rule: &str, request: &[&str]) -> (Option<i32>, Vec<(String, String)>) {
    let args = ["resolve", "--why-not", rule, "-o", "json", "--host", SHOP];
    let output = entail(&args.iter().chain(request).copied().collect::<Vec<_>>());
    let reply: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let misses = reply["whyNot"].as_array().cloned().unwrap_or_default();
    let at_storefront = misses
        .iter()
        .filter(|miss| miss["path"].as_str().unwrap().contains("storefront"));
    let told = at_storefront.map(|miss| {
        let details: Vec<&str> = miss["details"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one.as_str().unwrap())
            .collect();
        (
            miss["reason"].as_str().unwrap().to_owned(),
            details.join("; "),
        )
    });
    (output.status.code(), told.collect())
}

#[test]
fn a_policy_that_is_overridden_names_its_winners() {
    let (code, told) = of_policy("httproute/shop/shop", "cachepolicy/platform/fresh-daily");
    assert_eq!((code, &told["condition"]), (Some(1), &"Overridden".into()));
    assert_eq!(
        told["details"][0],
        "staleFor = \"1h\": overridden by shop/window-display (more specific default)"
    );
    assert!(
        told["changes"][0]
            .as_str()
            .unwrap()
            .starts_with("remove the field from shop/window-display")
    );

    let (code, told) = of_policy("httproute/shop/shop", "timeoutpolicy/shop/take-your-time");
    assert_eq!((code, &told["condition"]), (Some(0), &"InEffect".into()));
    assert_eq!(
        told["details"][0],
        "client.request = \"60s\": overridden by platform/nobody-waits (less specific override)"
    );
}

#[test]
fn a_policy_on_another_object_names_what_the_paths_go_through() {
    let (code, told) = of_policy("httproute/shop/shop", "retrypolicy/baker/let-them-cool");
    assert_eq!(
        (code, &told["condition"]),
        (Some(1), &"NotAttachedOnPath".into())
    );
    let finding = told["finding"].as_str().unwrap();
    assert!(
        finding.contains("attached to HTTPRoute/baker/cakes"),
        "{finding}"
    );
    assert!(
        told["details"][0]
            .as_str()
            .unwrap()
            .contains("HTTPRoute/shop/shop"),
        "{told}"
    );
    // A section of the route is not the route.
    let (_, told) = of_policy(
        "httproute/shop/shop#browse",
        "retrypolicy/shop/never-charge-twice",
    );
    assert_eq!(told["condition"], "NotAttachedOnPath");
}

#[test]
fn a_policy_that_is_in_effect_says_so() {
    let (code, told) = of_policy("httproute/shop/shop", "timeoutpolicy/platform/nobody-waits");
    assert_eq!((code, &told["inEffect"]), (Some(0), &true.into()));
    assert_eq!(told["finding"], "it is in effect: it sets client.request");
}

#[test]
fn a_policy_without_its_target_says_what_to_create() {
    let folder = tempfile::tempdir().unwrap();
    let policy = "apiVersion: policies.bakery.example/v1\nkind: RetryPolicy\nmetadata: {name: typo, namespace: shop}\n\
                  spec:\n  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: shopp}]\n  defaults: {attempts: 9}\n";
    let file = folder.path().join("typo.yaml");
    std::fs::write(&file, policy).unwrap();
    let args = [
        "explain",
        "httproute/shop/shop",
        "--why-not",
        "retrypolicy/shop/typo",
        "--manifests",
        file.to_str().unwrap(),
    ];
    let output = entail(&args);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("it is not accepted (TargetNotFound), so it is in effect nowhere"),
        "{text}"
    );
    assert!(
        text.contains("create the target, or correct its kind, namespace, name or section"),
        "{text}"
    );
}

#[test]
fn a_policy_that_does_not_exist_has_suggestions() {
    let output = entail(&[
        "explain",
        "httproute/shop/shop",
        "--why-not",
        "retrypolicy/shop/one-more",
    ]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(error.contains("`retrypolicy/shop/one-more-try`"), "{error}");
}

#[test]
fn a_rule_names_the_conditions_that_a_request_does_not_meet() {
    let checkout = "httproute/shop/shop#checkout";
    let unmet = |details: &str| vec![("UnmetCondition".to_owned(), details.to_owned())];
    assert_eq!(
        of_rule("rule/checkout", &["--path", "/cart"]),
        (Some(1), unmet("path prefix `/checkout`; method POST"))
    );
    assert_eq!(
        of_rule(checkout, &["--path", "/checkout"]),
        (Some(1), unmet("method POST"))
    );
    let taken = (Some(0), vec![("TakesRequest".to_owned(), String::new())]);
    assert_eq!(
        of_rule(checkout, &["--path", "/checkout", "--method", "POST"]),
        taken
    );
}

#[test]
fn a_rule_that_matches_names_the_match_that_comes_first() {
    let (code, told) = of_rule(
        "httproute/shop/shop#browse",
        &["--path", "/checkout", "--method", "POST"],
    );
    assert_eq!((code, &*told[0].0), (Some(1), "OtherMatchFirst"));
    assert!(
        told[0]
            .1
            .contains("HTTPRoute/shop/shop, rule 1, comes first: path prefix `/checkout`"),
        "{told:?}"
    );
    assert!(
        told[0].1.contains("its path condition is more specific"),
        "{told:?}"
    );
}

#[test]
fn a_rule_says_that_its_route_or_listener_does_not_serve_the_host() {
    let reason = |host: &str| {
        let output = entail(&[
            "resolve",
            "--why-not",
            "httproute/baker/bread#menu",
            "-o",
            "json",
            "--host",
            host,
        ]);
        let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
        reply["whyNot"][0]["reason"].as_str().unwrap().to_owned()
    };
    assert_eq!(reason("other.bakery.example"), "RouteHostname");
    assert_eq!(reason("bakery.invalid"), "ListenerHostname");
    assert_eq!(
        of_rule("rule/checkout", &["--port", "81"]).1[0].0,
        "NotAddressed"
    );
    assert_eq!(of_rule("rule/nothing", &[]).0, Some(1));
}

/// Routes of two listeners of one port, one with a regular expression.
const COMPETING: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: g, namespace: a}
spec:
  gatewayClassName: c
  listeners:
  - {name: any, port: 80, protocol: HTTP}
  - {name: shop, port: 80, protocol: HTTP, hostname: shop.test}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: onany, namespace: a}
spec: {parentRefs: [{name: g, sectionName: any}], rules: [{name: r1}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: onshop, namespace: a}
spec:
  parentRefs: [{name: g, sectionName: shop}]
  rules:
  - {name: exact, matches: [{path: {type: Exact, value: /a}}]}
  - {name: pattern, matches: [{path: {type: RegularExpression, value: /(a|b)}}]}
";

/// Why-not answers agree with what the request takes, also where several listeners and regular expressions compete.
#[test]
fn answers_agree_with_the_rule_that_a_request_takes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("world.yaml");
    std::fs::write(&file, COMPETING).unwrap();
    let reason = |args: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_entail"));
        command.args([
            "resolve",
            "--host",
            "shop.test",
            "-o",
            "json",
            "--manifests",
        ]);
        let output = command.arg(&file).args(args.split(' ')).output().unwrap();
        let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
        (
            output.status.code(),
            reply["whyNot"][0]["reason"].as_str().unwrap().to_owned(),
        )
    };
    let is = |code, reason: &str| (Some(code), reason.to_owned());
    assert_eq!(
        reason("--path /a --why-not rule/r1"),
        is(1, "ListenerHostname")
    );
    assert_eq!(
        reason("--path /a --why-not rule/r1 --disable-listener-isolation"),
        is(1, "OtherMatchFirst")
    );
    assert_eq!(
        reason("--path /a --why-not rule/r1 --at gateways/a/g/listeners/any"),
        is(0, "TakesRequest")
    );
    assert_eq!(
        reason("--path /a --why-not rule/pattern"),
        is(1, "OtherMatchFirst")
    );
    assert_eq!(
        reason("--why-not rule/pattern --path /b"),
        is(0, "TakesRequest")
    );
}

#[test]
fn a_path_is_asked_about_alone_and_what_is_not_read_is_not_success() {
    let (_, told) = of_policy(
        "gateways/platform/storefront",
        "authpolicy/shop/members-only",
    );
    assert_eq!(told["condition"], "NotAttachedOnPath");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("broken.yaml");
    std::fs::write(&file, "a: [").unwrap();
    let args = [
        "explain",
        "httproute/shop/shop",
        "--why-not",
        "timeoutpolicy/platform/nobody-waits",
        "--manifests",
    ];
    let output = entail(&[&args[..], &[file.to_str().unwrap()]].concat());
    assert_eq!(output.status.code(), Some(3), "{output:?}");
}

#[test]
fn resolve_ends_at_the_backends() {
    let output = entail(&[
        "resolve",
        "--host",
        "cakes.bakery.example",
        "--at",
        "gateways/platform/storefront/listeners/https",
    ]);
    let text = String::from_utf8(output.stdout).unwrap();
    let end = "  backend Service/baker/cakes#8080\n    RetryPolicy.policies.bakery.example\n      attempts: 5  # from \
               baker/be-patient (defaults)\n      backoff: 2s  # from baker/let-them-cool (defaults)\n";
    assert!(text.ends_with(end), "{text}");
    assert_eq!(text.matches("RetryPolicy").count(), 1, "{text}");
}

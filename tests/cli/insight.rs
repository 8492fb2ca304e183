//! Tests of `status`, `reach`, `lint`, `diff`, `preview`, `resolve` and `topology` with the manifests
//! of `examples/bakery`.

mod change;
mod resolve;
mod topology;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const BAKERY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/bakery");
const PATIENT: &str = "retrypolicy/baker/be-patient";

fn entail(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_entail"))
        .args(arguments)
        .env_remove("NO_COLOR")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn bakery(arguments: &[&str]) -> Output {
    entail(&[arguments, &["--manifests", BAKERY]].concat())
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A text with single spaces in place of line breaks and indentation.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn ends(output: &Output, code: i32) -> String {
    let printed = format!("{}{}", stdout(output), stderr(output));
    assert_eq!(output.status.code(), Some(code), "{printed}");
    stdout(output)
}

#[track_caller]
fn json(output: &Output, code: i32) -> Value {
    let text = ends(output, code);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn fields(value: &Value) -> BTreeSet<&str> {
    let map = value.as_object().unwrap_or_else(|| panic!("{value}"));
    map.keys().map(String::as_str).collect()
}

fn list<'v>(value: &'v Value, name: &str) -> &'v Vec<Value> {
    value[name].as_array().unwrap()
}

/// Returns the first line that contains all parts.
#[track_caller]
fn line<'t>(text: &'t str, parts: &[&str]) -> &'t str {
    let mut lines = text.lines();
    lines
        .find(|line| parts.iter().all(|part| line.contains(part)))
        .unwrap_or_else(|| panic!("no line has {parts:?}:\n{text}"))
}

/// A policy that changes a value and removes none.
const LONGER: &str = "\
apiVersion: policies.bakery.example/v1
kind: RetryPolicy
metadata: {name: be-patient, namespace: baker}
spec:
  targetRefs:
  - {group: \"\", kind: Namespace, name: baker}
  defaults: {strategy: merge, attempts: 7, backoff: 250ms}
";

/// A copy of the bakery for tests that change it.
fn copy() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    copy_into(Path::new(BAKERY), folder.path());
    folder
}

fn copy_into(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_into(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn edit(folder: &Path, file: &str, change: impl Fn(&str) -> String) {
    let path = folder.join(file);
    let text = change(&std::fs::read_to_string(&path).unwrap());
    std::fs::write(path, text).unwrap();
}

#[test]
fn status_shows_how_far_policies_are_in_force() {
    let text = ends(&bakery(&["status"]), 0);
    line(
        &text,
        &[
            "platform/fresh-daily",
            "Accepted  Programmed=False/Overridden  None",
        ],
    );
    line(
        &text,
        &[
            "platform/nobody-waits",
            "Accepted  Programmed  AllWithAdditions",
        ],
    );
    line(
        &text,
        &["overridden by baker/keeps-for-days, baker/still-warm, shop/window-display"],
    );
    let last = text.lines().last().unwrap();
    assert_eq!(
        last,
        "15 policies: 9 in force, 5 in part, 1 not at all, 0 not accepted"
    );
    let kinds: Vec<&str> = text
        .lines()
        .filter(|l| l.contains(".bakery.example"))
        .collect();
    assert_eq!(kinds.len(), 4, "{text}");
    assert!(kinds.is_sorted());
    let some = ends(&bakery(&["status", "--kind", "RetryPolicy"]), 0);
    assert!(
        some.contains("be-patient") && !some.contains("fresh-daily"),
        "{some}"
    );
}

#[test]
fn status_of_one_policy_shows_its_references() {
    let name = "cachepolicy/platform/fresh-daily";
    let text = ends(&bakery(&["status", name]), 0);
    assert!(
        words(&text).contains("references spec.targetRefs[0]: Accepted"),
        "{text}"
    );
    assert!(
        words(&text).contains("ancestors Gateway/platform/storefront"),
        "{text}"
    );
    assert!(!text.contains("be-patient"), "{text}");
    // POLICY after `--manifests`, which takes several values.
    let after = entail(&["status", "--manifests", BAKERY, name]);
    assert_eq!(ends(&after, 0), text);
}

#[test]
fn status_as_json_has_every_field() {
    let answer = json(&bakery(&["status", "-o", "json"]), 0);
    let expected = ["version", "kinds", "policies", "unreadParameters"];
    assert_eq!(fields(&answer), expected.into());
    assert_eq!(list(&answer, "policies").len(), 15);
    for policy in list(&answer, "policies") {
        assert_eq!(
            fields(policy),
            [
                "kind",
                "policy",
                "conditions",
                "inForce",
                "overriddenBy",
                "ancestors",
                "references",
                "paths",
                "overriddenPaths",
                "overriddenUnits",
                "warnings"
            ]
            .into()
        );
        assert!(policy["paths"].is_string());
        assert_eq!(
            fields(&policy["references"][0]),
            ["field", "outcome", "message", "nodes"].into()
        );
        assert_eq!(
            fields(&policy["conditions"][0]),
            ["type", "status", "reason", "message"].into()
        );
    }
}

#[test]
fn reach_shows_affected_objects_and_paths() {
    let text = ends(&bakery(&["reach", PATIENT]), 0);
    let sentence = "RetryPolicy baker/be-patient is partly in force: it applies to 6 paths and is \
                    overridden in part on 2 of them by baker/let-them-cool affected objects";
    assert!(words(&text).starts_with(sentence), "{text}");
    line(&text, &["  Service/baker/loaves"]);
    // Paths with the same result form one group: one sets all units, one is overridden in one.
    assert_eq!(text.matches("sets attempts, backoff").count(), 1, "{text}");
    assert_eq!(
        text.matches("is overridden in backoff").count(),
        1,
        "{text}"
    );
    let other = line(
        &text,
        &["HTTPRoute/shop/shop/rules/#2/backends/Service/baker/loaves"],
    );
    assert!(other.contains("gateways/"), "{other}");
    let unit = ends(&bakery(&["reach", PATIENT, "--unit", "backoff"]), 0);
    assert!(!unit.contains("sets attempts"), "{unit}");
    assert!(
        words(&unit).contains("It sets `backoff` on 4 paths and is overridden on 2 paths"),
        "{unit}"
    );
}

#[test]
fn reach_as_json_has_every_field() {
    let answer = json(&bakery(&["reach", PATIENT, "-o", "json"]), 0);
    assert_eq!(
        fields(&answer),
        [
            "version",
            "kinds",
            "truncated",
            "status",
            "objects",
            "paths"
        ]
        .into()
    );
    assert_eq!(answer["status"]["inForce"], "PartWithAdditions");
    assert_eq!(list(&answer, "paths").len(), 6);
    assert_eq!(
        fields(&answer["paths"][0]),
        ["path", "effectiveUnits", "overriddenUnits"].into()
    );
}

#[test]
fn an_unknown_policy_is_reported_with_those_of_its_namespace() {
    for command in ["reach", "status"] {
        let output = bakery(&[command, "retrypolicy/baker/be-pateint"]);
        assert_eq!(ends(&output, 1), "");
        let error = stderr(&output);
        assert!(
            error.contains("policies in `baker`: `retrypolicy/baker/be-patient`"),
            "{error}"
        );
        assert!(!error.contains("platform/"), "{error}");
        let output = bakery(&[command, PATIENT, "--kind", "CachePolicy"]);
        assert_eq!(ends(&output, 1), "");
    }
    ends(&bakery(&["reach"]), 2);
    ends(&bakery(&["reach", PATIENT, "--unit", "a[["]), 2);
    ends(&entail(&["reach", PATIENT]), 2);
}

#[test]
fn lint_prints_what_and_where() {
    let text = ends(&bakery(&["lint"]), 0);
    let found = line(
        &text,
        &["E030 note: not in effect: overridden on all 7 paths"],
    );
    assert!(text.starts_with(found), "{text}");
    line(&text, &["[Overridden]"]);
    line(&text, &["  --> ", "policies/cache.yaml:4"]);
    line(&text, &["0 errors, 0 warnings, 1 note"]);
    let clean = ends(&bakery(&["lint", "--kind", "RetryPolicy"]), 0);
    assert_eq!(clean, "0 errors, 0 warnings, 0 notes\n");
    let answer = json(&bakery(&["lint", "-o", "json"]), 0);
    let expected = ["version", "kinds", "findings", "ignored"];
    assert_eq!(fields(&answer), expected.into());
    let expected = [
        "code", "severity", "reason", "location", "object", "message", "count", "places",
    ];
    assert_eq!(fields(&answer["findings"][0]), expected.into());
    assert_eq!(answer["findings"][0]["severity"], "NOTE");
}

#[test]
fn lint_reports_missing_targets() {
    let folder = copy();
    edit(folder.path(), "policies/cache.yaml", |text| {
        text.replace("name: bread}", "name: braed}")
    });
    let output = entail(&["lint", "--manifests", folder.path().to_str().unwrap()]);
    let text = ends(&output, 1);
    assert!(
        text.starts_with("E021 error: "),
        "errors come first: {text}"
    );
    let found = words(text.split("  --> ").next().unwrap());
    assert!(
        found.contains("did you mean `bread`? [TargetNotFound]"),
        "{found}"
    );
    line(&text, &["still-warm"]);
    line(&text, &["1 error, "]);
}

#[test]
fn an_unknown_kind_takes_precedence_over_findings() {
    let kind = ["--kind", "FooPolicy.example.com"];
    for command in [
        &["lint"][..],
        &["status"],
        &["preview", "--delete", PATIENT],
    ] {
        let output = bakery(&[command, &kind].concat());
        let text = ends(&output, 3);
        assert!(text.contains("FooPolicy.example.com is UNKNOWN"), "{text}");
    }
    let output = entail(&[&["diff", BAKERY, BAKERY][..], &kind].concat());
    assert!(ends(&output, 3).contains("UNKNOWN"));
    let output = bakery(&[&["topology", "-o", "dot"][..], &kind].concat());
    assert!(
        ends(&output, 3).starts_with("digraph"),
        "the output is a graph"
    );
    assert!(stderr(&output).contains("UNKNOWN"));
}

#[test]
fn yaml_and_json_are_equal() {
    for arguments in [
        &["status"][..],
        &["reach", PATIENT],
        &["lint"],
        &["preview", "--delete", PATIENT],
    ] {
        let yaml = bakery(&[arguments, &["-o", "yaml"]].concat());
        let mut yaml: Value = serde_saphyr::from_str(&stdout(&yaml)).unwrap();
        let json = bakery(&[arguments, &["-o", "json"]].concat());
        let mut json: Value = serde_json::from_str(&stdout(&json)).unwrap();
        // The epoch differs between processes.
        yaml["version"]["epoch"] = Value::Null;
        json["version"]["epoch"] = Value::Null;
        assert_eq!(yaml, json);
    }
}

#[test]
fn text_fits_and_has_no_colours_in_a_pipe() {
    for arguments in [
        &["status"][..],
        &["status", "retrypolicy/shop/one-more-try"],
        &["reach", PATIENT],
        &["preview", "--delete", PATIENT],
        &["topology"],
    ] {
        let text = stdout(&bakery(arguments));
        assert!(!text.contains('\u{1b}'));
        for line in text.lines() {
            // Path names are never broken.
            let is_path = line
                .split_whitespace()
                .any(|word| word.starts_with("gateways/"));
            assert!(is_path || line.chars().count() <= 100, "{line}");
        }
    }
}

#[test]
fn help_has_examples() {
    for command in ["status", "reach", "lint", "diff", "preview", "topology"] {
        let help = ends(&entail(&[command, "--help"]), 0);
        assert!(
            help.contains("Examples:") && help.contains("bakery"),
            "{command}"
        );
        assert!(
            help.lines().all(|line| line.chars().count() <= 100),
            "{help}"
        );
    }
}

/// A kind of which an annotation of the target chooses the strategy.
const BY_ANNOTATION: &str = "
apiVersion: entail.dev/v1alpha1
kind: PolicyProfile
metadata: {name: ps.example.org}
spec:
  policy: {group: example.org, kind: P}
  class: Inherited
  strategies: [AtomicDefaults, AtomicOverrides]
  strategy: {annotation: example.org/wins, values: {gateway: AtomicOverrides}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: c}
spec: {controllerName: example.org/c}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: ns, annotations: {example.org/wins: gateway}}
spec: {gatewayClassName: c, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: r, namespace: ns}
spec: {parentRefs: [{name: gw}], rules: [{name: one}]}
---
apiVersion: example.org/v1
kind: P
metadata: {name: p, namespace: ns}
spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: gw}], n: 1}
---
apiVersion: example.org/v1
kind: P
metadata: {name: q, namespace: ns}
spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: r}], n: 2}
";

#[test]
fn strategies_that_annotations_choose_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("world.yaml");
    std::fs::write(&file, BY_ANNOTATION).unwrap();
    let manifests = file.to_str().unwrap();
    let output = entail(&["explain", "httproute/ns/r", "--manifests", manifests]);
    let printed = words(&ends(&output, 0));
    for expected in [
        "ns/p rules: AtomicOverrides",
        "ns/q rules: AtomicDefaults",
        "(the whole) = <- ns/p (rules, AtomicOverrides)",
    ] {
        assert!(printed.contains(expected), "{expected} {printed}");
    }
}

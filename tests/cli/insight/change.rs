//! Tests of `preview` and `diff`.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json as value};

use super::{
    BAKERY, LONGER, PATIENT, bakery, copy, edit, ends, entail, fields, json, line, list, stderr,
};

#[test]
fn preview_lists_changed_and_lost_values() {
    let text = ends(&bakery(&["preview", "--delete", PATIENT]), 1);
    let cakes = "  Service/baker/cakes loses attempts of RetryPolicy on 2 paths";
    let loaves = "  Service/baker/loaves loses attempts, backoff of RetryPolicy on 4 paths";
    line(&text, &[cakes]);
    line(&text, &[loaves]);
    line(
        &text,
        &["attempts: 5 (baker/be-patient) -> 1 (shop/one-more-try)"],
    );
    line(
        &text,
        &["backoff: 250ms (baker/be-patient) -> (none)  lost"],
    );
    let last = text.lines().last().unwrap();
    assert_eq!(
        last,
        "3 effective policies change on 6 paths, 4 values are lost"
    );
    let other = ends(
        &bakery(&["preview", "--delete", PATIENT, "--kind", "CachePolicy"]),
        0,
    );
    assert_eq!(
        other,
        "0 effective policies change on 0 paths, 0 values are lost\n"
    );
}

#[test]
fn preview_as_json_has_every_field() {
    let answer = json(&bakery(&["preview", "--delete", PATIENT, "-o", "json"]), 1);
    assert_eq!(
        fields(&answer),
        [
            "version",
            "kinds",
            "truncated",
            "losesValues",
            "changes",
            "pathsAdded",
            "pathsRemoved",
            "problems",
            "warnings"
        ]
        .into()
    );
    assert_eq!(answer["losesValues"], true);
    for change in list(&answer, "changes") {
        assert_eq!(
            fields(change),
            ["kind", "paths", "units", "newlyRejected"].into()
        );
        for unit in list(change, "units") {
            assert_eq!(
                fields(unit),
                ["unit", "before", "after", "beforeOrigin", "afterOrigin"].into()
            );
        }
    }
    let lost = &answer["changes"][1]["units"][0];
    assert_eq!(
        (&lost["before"], &lost["after"], &lost["afterOrigin"]),
        (&value!(5), &Value::Null, &Value::Null)
    );
}

#[test]
fn preview_reads_manifests() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("longer.yaml");
    std::fs::write(&file, LONGER).unwrap();
    let file = file.to_str().unwrap();
    let text = ends(&bakery(&["preview", "-f", file]), 0);
    line(
        &text,
        &["attempts: 5 (baker/be-patient) -> 7 (baker/be-patient)"],
    );
    assert!(text.ends_with(" on 6 paths, 0 values are lost\n"), "{text}");
    let all = ends(
        &bakery(&["preview", "-f", folder.path().to_str().unwrap()]),
        0,
    );
    assert_eq!(all, text);

    let mut child = Command::new(env!("CARGO_BIN_EXE_entail"))
        .args(["preview", "-f", "-", "--manifests", BAKERY])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(LONGER.as_bytes()).unwrap();
    drop(stdin);
    assert_eq!(ends(&child.wait_with_output().unwrap(), 0), text);
}

#[test]
fn preview_reports_unreadable_manifests() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("broken.yaml");
    std::fs::write(&file, "a: 1\nb: [").unwrap();
    let output = bakery(&["preview", "-f", file.to_str().unwrap()]);
    assert_eq!(ends(&output, 3), "");
    assert!(
        stderr(&output).contains("broken.yaml:2"),
        "{}",
        stderr(&output)
    );
    // Valid YAML, but not an object: it is skipped, and the answer is incomplete.
    std::fs::write(&file, "apiVersion: v1\nkind: Service\n").unwrap();
    let output = bakery(&["preview", "-f", file.to_str().unwrap()]);
    assert!(ends(&output, 3).ends_with("0 values are lost\n"));
    assert!(stderr(&output).contains("warning: "), "{}", stderr(&output));
    ends(&bakery(&["preview"]), 2);
    ends(
        &bakery(&["preview", "--delete", "retrypolicy/baker/gone"]),
        1,
    );
    ends(&bakery(&["preview", "--delete", "nonsense"]), 2);
    for (name, hint) in [
        (
            "retrypolicy/baker/be-patien",
            "did you mean `retrypolicy/baker/be-patient`?",
        ),
        (
            "retrypolici/baker/be-patient",
            "did you mean `retrypolicy`?",
        ),
    ] {
        let output = bakery(&["preview", "--delete", name]);
        ends(&output, 1);
        assert!(stderr(&output).contains(hint), "{}", stderr(&output));
    }
}

#[test]
fn with_a_namespace_all_objects_in_it_are_deleted() {
    // Whether or not the Namespace itself is among the manifests.
    for name in ["namespace/baker", "ns/kitchen"] {
        let text = ends(&bakery(&["preview", "--delete", name]), 1);
        let namespace = name.split('/').nth(1).unwrap();
        line(&text, &[&format!("/{namespace}/"), "gateways/"]);
        assert!(text.contains("paths removed"), "{text}");
    }
}

#[test]
fn diff_compares_effective_policies() {
    let folder = copy();
    edit(folder.path(), "policies/timeouts.yaml", |text| {
        text.replace("request: 10s", "request: 20s")
    });
    edit(folder.path(), "policies/retries.yaml", |text| {
        format!("# Another comment.\n{text}")
    });
    let other = folder.path().to_str().unwrap();
    let text = ends(&entail(&["diff", BAKERY, other]), 0);
    line(
        &text,
        &["client.request: 10s (platform/nobody-waits) -> 20s (platform/nobody-waits)"],
    );
    assert!(!text.contains("RetryPolicy"), "{text}");
    // One change for all paths, although the overridden policies differ; four paths are counted.
    line(&text, &["     and 4 more"]);
    assert!(
        text.ends_with("1 effective policy changes on 7 paths, 0 values are lost\n"),
        "{text}"
    );
    let same = ends(&entail(&["diff", BAKERY, BAKERY]), 0);
    assert_eq!(
        same,
        "0 effective policies change on 0 paths, 0 values are lost\n"
    );
    let answer = json(&entail(&["diff", BAKERY, other, "-o", "json"]), 0);
    assert_eq!(answer["version"], Value::Null);
    assert_eq!(answer["losesValues"], false);
    assert_eq!(list(&answer, "changes").len(), 1);
}

#[test]
fn diff_lists_lost_values_and_removed_paths() {
    let folder = copy();
    std::fs::remove_file(folder.path().join("policies/cache.yaml")).unwrap();
    let other = folder.path().to_str().unwrap();
    let text = ends(&entail(&["diff", BAKERY, other]), 1);
    line(
        &text,
        &["HTTPRoute/baker/bread#menu loses staleFor, ttl of CachePolicy on 1 path"],
    );
    let back = ends(&entail(&["diff", other, BAKERY]), 0);
    line(&back, &["ttl: (none) -> 1h (baker/still-warm)"]);
    // A removed path counts as lost, with or without policies.
    edit(folder.path(), "routes.yaml", |text| {
        text.replace("name: order\n", "name: orders\n")
    });
    let kind = ["--kind", "RetryPolicy"];
    let gone = ends(&entail(&[&["diff", BAKERY, other][..], &kind].concat()), 1);
    assert!(
        gone.contains("paths removed") && gone.contains("/rules/order\n"),
        "{gone}"
    );
    assert!(
        gone.contains("paths added") && gone.contains("/rules/orders\n"),
        "{gone}"
    );
    ends(&entail(&["diff", BAKERY, "/no/such/folder"]), 3);
    ends(&entail(&["diff", BAKERY]), 2);
}

//! Tests of `resolve`.

use serde_json::Value;

use super::{bakery, ends, stderr, words};

fn resolve(arguments: &[&str]) -> std::process::Output {
    bakery(&[&["resolve"], arguments].concat())
}

#[test]
fn a_request_resolves_to_its_rule_and_effective_policies() {
    let order = [
        "--host",
        "Bread.bakery.example:443",
        "--path",
        "/order?x=1",
        "--method",
        "POST",
    ];
    let text = ends(&resolve(&order), 0);
    let rule =
        "gateways/platform/storefront/listeners/https/routes/HTTPRoute/baker/bread/rules/order";
    assert!(text.starts_with(rule), "{text}");
    let printed = words(&text);
    for part in [
        "TimeoutPolicy.policies.bakery.example",
        "matched by path prefix `/order`, method POST (match 0 of the rule)",
        "port 443",
        "backend Service/baker/loaves#8080",
    ] {
        assert!(printed.contains(part), "{part}: {text}");
    }

    let json = ends(&resolve(&[&order[..], &["-o", "json"]].concat()), 0);
    let reply: Value = serde_json::from_str(&json).unwrap();
    let resolved = &reply["resolved"][0];
    assert_eq!(resolved["path"], rule);
    assert_eq!(
        (&resolved["ruleIndex"], &resolved["matchIndex"]),
        (&1.into(), &0.into())
    );
    assert_eq!(
        resolved["backends"][0]["path"],
        format!("{rule}/backends/Service/baker/loaves/ports/8080")
    );
    assert!(resolved["policies"].as_array().unwrap().len() > 1);
    let yaml = ends(
        &resolve(&[&order[..], &["-o", "yaml", "--kind", "CachePolicy"]].concat()),
        0,
    );
    assert!(!yaml.contains("TimeoutPolicy"), "{yaml}");
}

#[test]
fn a_request_without_a_rule_is_reported_with_the_nearest_rules() {
    let text = ends(
        &resolve(&[
            "--host",
            "bread.bakery.example",
            "--path",
            "/order",
            "--method",
            "PUT",
        ]),
        1,
    );
    let printed = words(&text);
    assert!(printed.starts_with("no rule matches the request"), "{text}");
    assert!(
        printed.contains("HTTPRoute/baker/bread rule 1 requires method POST"),
        "{text}"
    );
    let text = ends(
        &resolve(&[
            "--host",
            "nobody.example",
            "--at",
            "gateways/platform/storefront",
        ]),
        1,
    );
    assert_eq!(
        text.matches("no listener accepts the host").count(),
        1,
        "{text}"
    );
    let text = ends(&resolve(&["--at", "mesh/shop/services/baker/loaves"]), 1);
    assert!(text.contains("no route references the Service"), "{text}");
}

#[test]
fn invalid_requests_are_usage_errors() {
    for (arguments, message) in [
        (&["--host", "a/b"][..], "not a valid host"),
        (&["--path", "/a//b"], "double slashes"),
        (&["--path", "x"], "begins with `/`"),
        (&["--header", "x"], "name: value"),
        (&["--at", "gateways/platform"], "gateways/ns/name"),
        (
            &["--at", "namespaces/baker"],
            "requests do not enter at this path",
        ),
        (&["--grpc", "a/b", "--path", "/x"], "cannot be used with"),
        (&["--port", "99999"], "99999"),
    ] {
        let output = resolve(arguments);
        ends(&output, 2);
        assert!(
            stderr(&output).contains(message),
            "{arguments:?}: {}",
            stderr(&output)
        );
    }
}

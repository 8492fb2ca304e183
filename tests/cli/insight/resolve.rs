//! `resolve`: which rule a request takes.

use serde_json::Value;

use super::{bakery, ends, stderr, words};

fn resolve(arguments: &[&str]) -> std::process::Output {
    bakery(&[&["resolve"], arguments].concat())
}

#[test]
fn a_request_is_told_its_rule_and_what_holds_there() {
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
    let told = words(&text);
    for part in [
        "TimeoutPolicy.policies.bakery.example",
        "matched by path prefix `/order`, method POST (match 0 of the rule)",
        "comes in by port 443",
        "goes to Service/baker/loaves#8080",
    ] {
        assert!(told.contains(part), "{part}: {text}");
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
fn a_request_that_no_rule_takes_is_told_what_it_lacks() {
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
    let told = words(&text);
    assert!(told.starts_with("no rule takes the request"), "{text}");
    assert!(
        told.contains("HTTPRoute/baker/bread rule 1 asks for method POST"),
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
        text.matches("no listener takes the host").count(),
        1,
        "{text}"
    );
    let text = ends(&resolve(&["--at", "mesh/shop/services/baker/loaves"]), 1);
    assert!(text.contains("no route names the Service"), "{text}");
}

#[test]
fn what_is_no_request_is_said() {
    for (arguments, told) in [
        (&["--host", "a/b"][..], "no host"),
        (&["--path", "/a//b"], "double slashes"),
        (&["--path", "x"], "begins with `/`"),
        (&["--header", "x"], "name: value"),
        (&["--at", "gateways/platform"], "gateways/ns/name"),
        (&["--at", "namespaces/baker"], "nothing comes in there"),
        (&["--grpc", "a/b", "--path", "/x"], "cannot be used with"),
        (&["--port", "99999"], "99999"),
    ] {
        let output = resolve(arguments);
        ends(&output, 2);
        assert!(
            stderr(&output).contains(told),
            "{arguments:?}: {}",
            stderr(&output)
        );
    }
}

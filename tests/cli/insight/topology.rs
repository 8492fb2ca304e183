//! Tests of `topology`.

use std::collections::BTreeSet;

use super::{LONGER, bakery, copy, ends, entail, fields, json, line, list};

#[test]
fn a_tree_prints_each_object_in_full_once() {
    let text = ends(&bakery(&["topology"]), 0);
    assert!(
        text.starts_with("GatewayClass/bakery\n  Gateway/platform/backdoor\n"),
        "{text}"
    );
    line(&text, &["    * AuthPolicy platform/front-door"]);
    line(&text, &["Service/baker/loaves ... (above)"]);
    for name in [
        "  Service/baker/loaves",
        "  HTTPRoute/shop/shop",
        "  HTTPRoute/baker/cakes",
    ] {
        let whole = text.lines().filter(|line| line.ends_with(name)).count();
        assert_eq!(whole, 1, "{name}: {text}");
    }
    assert_eq!(text.matches("RetryPolicy baker/be-patient").count(), 1);
    assert!(
        !text.contains("Namespace/kitchen"),
        "a Namespace without policies: {text}"
    );
    assert_eq!(ends(&bakery(&["topology"]), 0), text);
    let some = ends(&bakery(&["topology", "--kind", "CachePolicy"]), 0);
    assert!(
        some.contains("fresh-daily") && !some.contains("be-patient"),
        "{some}"
    );
}

#[test]
fn policies_that_are_not_accepted_are_marked() {
    let folder = copy();
    let invalid = LONGER
        .replace("be-patient", "invalid")
        .replace("strategy: merge", "strategy: x");
    std::fs::write(folder.path().join("policies/more.yaml"), invalid).unwrap();
    let folder = folder.path().to_str().unwrap();
    for (shape, marked) in [
        ("tree", "  * RetryPolicy baker/invalid (not accepted)"),
        (
            "dot",
            "[label=\"RetryPolicy baker/invalid (not accepted)\", shape=note, color=red];",
        ),
        (
            "mermaid",
            "([\"RetryPolicy baker/invalid (not accepted)\"]):::refused",
        ),
    ] {
        let text = ends(
            &entail(&["topology", "-o", shape, "--manifests", folder]),
            0,
        );
        line(&text, &[marked]);
    }
    let status = ends(&entail(&["status", "--manifests", folder]), 0);
    line(&status, &["baker/invalid", "Accepted=False/Invalid"]);
    let reach = ends(
        &entail(&["reach", "retrypolicy/baker/invalid", "--manifests", folder]),
        0,
    );
    assert!(
        reach.starts_with("RetryPolicy baker/invalid is not accepted: "),
        "{reach}"
    );
}

/// Parses a graph: the declared nodes, and the edges with whether they are dashed.
fn graph(text: &str, arrows: [&str; 2]) -> (BTreeSet<String>, Vec<(String, String, bool)>) {
    let id = |text: &str| {
        let end = text.find(|c: char| !c.is_ascii_alphanumeric());
        text[..end.unwrap_or(text.len())].to_owned()
    };
    let (mut nodes, mut edges) = (BTreeSet::new(), Vec::new());
    for line in text.lines().map(str::trim) {
        if !line.starts_with(['n', 'p']) || line.starts_with("node [") {
            continue;
        }
        let arrow = arrows.iter().find(|arrow| line.contains(**arrow));
        match arrow.filter(|_| !line.contains('"')) {
            Some(arrow) => {
                let (from, to) = line.split_once(arrow).unwrap();
                let dashed = line.contains("dashed") || arrow.contains('.');
                edges.push((id(from), id(to), dashed));
            }
            None => assert!(nodes.insert(id(line)), "declared twice: {line}"),
        }
    }
    (nodes, edges)
}

#[test]
fn graphs_are_well_formed() {
    let dot = ends(&bakery(&["topology", "-o", "dot"]), 0);
    assert!(
        dot.starts_with("digraph entail {\n") && dot.ends_with("\n}\n"),
        "{dot}"
    );
    let mermaid = ends(&bakery(&["topology", "-o", "mermaid"]), 0);
    assert!(mermaid.starts_with("flowchart LR\n"), "{mermaid}");
    let mut sizes = Vec::new();
    for (text, arrows) in [(&dot, [" -> ", " -> "]), (&mermaid, [" --> ", " -.-> "])] {
        for line in text.lines() {
            assert!(line.matches('"').count() % 2 == 0, "{line}");
            for (open, close) in [('[', ']'), ('(', ')'), ('{', '}')] {
                let alone = matches!(line, "digraph entail {" | "}");
                assert!(
                    alone || line.matches(open).count() == line.matches(close).count(),
                    "{line}"
                );
            }
        }
        let (nodes, edges) = graph(text, arrows);
        for (from, to, dashed) in &edges {
            assert!(
                nodes.contains(from) && nodes.contains(to),
                "{from} {to}: {text}"
            );
            assert_eq!(from.starts_with('p'), *dashed, "{from} {to}");
        }
        sizes.push((nodes.len(), edges.len()));
    }
    assert_eq!(sizes[0], sizes[1]);
    assert!(
        dot.contains("[label=\"Gateway/platform/storefront#https\"];"),
        "{dot}"
    );
    assert!(
        mermaid.contains("[\"Gateway/platform/storefront#35;https\"]"),
        "{mermaid}"
    );
}

#[test]
fn topology_as_json_has_every_field() {
    let answer = json(&bakery(&["topology", "-o", "json"]), 0);
    assert_eq!(
        fields(&answer),
        ["version", "kinds", "nodes", "edges"].into()
    );
    let ids: BTreeSet<u64> = list(&answer, "nodes")
        .iter()
        .map(|node| {
            assert_eq!(fields(node), ["id", "name", "level", "policies"].into());
            for policy in list(node, "policies") {
                assert_eq!(fields(policy), ["kind", "policy", "accepted"].into());
            }
            node["id"].as_u64().unwrap()
        })
        .collect();
    for edge in list(&answer, "edges") {
        assert_eq!(fields(edge), ["from", "to"].into());
        assert!(ids.contains(&edge["from"].as_u64().unwrap()));
        assert!(ids.contains(&edge["to"].as_u64().unwrap()));
    }
}

//! The topology as a graph in DOT or Mermaid. Policies are nodes of the graph, with dashed edges.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use super::text::printable;
use super::topology::{node_label, policy_label};
use crate::api::v1;

/// The policies of a topology, numbered, and the nodes to which they are attached.
struct Policies<'t> {
    /// The label of each policy, and whether it is accepted.
    labels: Vec<(String, bool)>,
    /// The number of a policy, and a node to which it is attached.
    attached: Vec<(usize, &'t v1::TopologyNode)>,
}

impl<'t> Policies<'t> {
    /// Collects and numbers the policies in the order of their first node.
    fn of(topology: &'t v1::GetTopologyResponse) -> Self {
        let mut numbers: BTreeMap<(&str, &str, &str), usize> = BTreeMap::new();
        let mut policies = Policies {
            labels: Vec::new(),
            attached: Vec::new(),
        };
        for node in &topology.nodes {
            for policy in &node.policies {
                let name = policy.policy.as_ref();
                let key = (
                    policy.kind.as_str(),
                    name.map_or("", |name| name.namespace.as_str()),
                    name.map_or("", |name| name.name.as_str()),
                );
                let next = numbers.len();
                let number = *numbers.entry(key).or_insert(next);
                if number == next {
                    policies
                        .labels
                        .push((policy_label(policy), policy.accepted));
                }
                policies.attached.push((number, node));
            }
        }
        policies
    }
}

/// Writes the topology in DOT, the language of Graphviz.
pub(in crate::cli) fn dot(
    out: &mut dyn Write,
    topology: &v1::GetTopologyResponse,
) -> io::Result<()> {
    let policies = Policies::of(topology);
    writeln!(out, "digraph entail {{")?;
    writeln!(out, "  rankdir=LR;")?;
    writeln!(out, "  node [shape=box];")?;
    for node in &topology.nodes {
        let label = dot_text(&node_label(node));
        writeln!(out, "  n{} [label={label}];", node.id)?;
    }
    for (number, (label, accepted)) in policies.labels.iter().enumerate() {
        let colour = if *accepted { "" } else { ", color=red" };
        let label = dot_text(label);
        writeln!(out, "  p{number} [label={label}, shape=note{colour}];")?;
    }
    for edge in &topology.edges {
        writeln!(out, "  n{} -> n{};", edge.from, edge.to)?;
    }
    for (number, node) in &policies.attached {
        writeln!(out, "  p{number} -> n{} [style=dashed];", node.id)?;
    }
    writeln!(out, "}}")
}

/// Writes the topology as a Mermaid flowchart.
pub(in crate::cli) fn mermaid(
    out: &mut dyn Write,
    topology: &v1::GetTopologyResponse,
) -> io::Result<()> {
    let policies = Policies::of(topology);
    writeln!(out, "flowchart LR")?;
    for node in &topology.nodes {
        let label = mermaid_text(&node_label(node));
        writeln!(out, "  n{}[{label}]", node.id)?;
    }
    for (number, (label, accepted)) in policies.labels.iter().enumerate() {
        let class = if *accepted { "" } else { ":::refused" };
        writeln!(out, "  p{number}([{}]){class}", mermaid_text(label))?;
    }
    for edge in &topology.edges {
        writeln!(out, "  n{} --> n{}", edge.from, edge.to)?;
    }
    for (number, node) in &policies.attached {
        writeln!(out, "  p{number} -.-> n{}", node.id)?;
    }
    if policies.labels.iter().any(|(_, accepted)| !accepted) {
        writeln!(out, "  classDef refused stroke:#c00")?;
    }
    Ok(())
}

/// Quotes a DOT string. Backslashes are escaped: `\N` would stand for the name of the node.
fn dot_text(text: &str) -> String {
    let text = single_line(text).replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{text}\"")
}

/// Quotes a Mermaid string. Characters with a meaning in Mermaid are written as numeric entities.
fn mermaid_text(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in single_line(text).chars() {
        let is_plain = c.is_alphanumeric() || matches!(c, '/' | '-' | '.' | ' ' | '_' | '(' | ')');
        if is_plain {
            quoted.push(c);
        } else {
            // Writes to a String do not fail.
            let _ = write!(quoted, "#{};", u32::from(c));
        }
    }
    quoted.push('"');
    quoted
}

/// Escapes control characters and line breaks.
fn single_line(text: &str) -> String {
    printable(text).replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::commands::topology::fixtures::diamond;

    fn written(write: fn(&mut dyn Write, &v1::GetTopologyResponse) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        let mut topology = diamond();
        topology.edges.retain(|edge| edge.to != 99);
        write(&mut out, &topology).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn dot_is_escaped() {
        let text = written(dot);
        assert!(
            text.contains("n3 [label=\"Service/a/\\\"b\\\\\\\\u001b\"];"),
            "{text}"
        );
        assert!(text.contains("p1 [label=\"K a/refused (not accepted)\", shape=note, color=red];"));
        // A policy that is attached to two nodes is one node of the graph.
        assert_eq!(text.matches("label=\"K a/p\"").count(), 1);
        assert_eq!(text.matches("p0 -> ").count(), 2);
        assert_eq!(text.matches("style=dashed").count(), 4);
    }

    #[test]
    fn mermaid_is_escaped() {
        let text = written(mermaid);
        assert!(
            text.contains("n3[\"Service/a/#34;b#92;#92;u001b\"]"),
            "{text}"
        );
        assert!(text.contains("p1([\"K a/refused (not accepted)\"]):::refused"));
        assert!(text.contains("  n1 --> n3\n") && text.contains("  p0 -.-> n2\n"));
    }

    #[test]
    fn the_output_is_deterministic() {
        assert_eq!(written(dot), written(dot));
        assert_eq!(written(mermaid), written(mermaid));
    }
}

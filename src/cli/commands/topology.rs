//! `entail topology`: the objects of all paths, with the policies attached to them.

use std::collections::BTreeSet;
use std::io::{self, Write};

use clap::{Args, ValueEnum};

use super::document::Document;
use super::report::{self, Report};
use super::session::{Session, is_selected};
use super::spec::policy_name;
use super::text::Style;
use super::{
    CliError, ExitStatus, Format, QueryArgs, SourceArgs, insight_json, topology_graph,
    topology_tree,
};
use crate::api::v1;

/// Output format of a topology.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TopologyFormat {
    /// Indented tree.
    #[default]
    Tree,
    /// Graphviz DOT.
    Dot,
    /// Mermaid flowchart.
    Mermaid,
    /// JSON.
    Json,
}

/// Arguments of `entail topology`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
An object with several parents is printed in full once, then as `... (above)`.

Examples:
  entail topology --manifests examples/bakery
  entail topology --kind RetryPolicy --manifests examples/bakery
  entail topology --manifests examples/bakery -o dot | dot -Tsvg > bakery.svg
  entail topology --server 127.0.0.1:50051 -o mermaid")]
pub struct TopologyArgs {
    /// The source of answers.
    #[command(flatten)]
    pub source: SourceArgs,
    /// Only this policy kind, as `Kind.group`, or as `Kind` if it is unambiguous. May be repeated.
    #[arg(long = "kind", value_name = "KIND")]
    pub kinds: Vec<String>,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = TopologyFormat::Tree)]
    pub output: TopologyFormat,
}

/// A topology, and the format to print it in.
struct TopologyReport {
    reply: v1::GetTopologyResponse,
    format: TopologyFormat,
}

impl Report for TopologyReport {
    fn document(&self, states: &[v1::KindState]) -> Document {
        insight_json::topology(&self.reply, states)
    }

    fn table(&self, out: &mut dyn Write, style: Style) -> io::Result<()> {
        match self.format {
            TopologyFormat::Tree => topology_tree::write(out, &self.reply, style),
            TopologyFormat::Dot => topology_graph::dot(out, &self.reply),
            TopologyFormat::Mermaid => topology_graph::mermaid(out, &self.reply),
            // JSON is printed from the document.
            TopologyFormat::Json => Ok(()),
        }
    }
}

/// Runs the command.
pub(in crate::cli) fn run(args: TopologyArgs) -> Result<ExitStatus, CliError> {
    let query = QueryArgs {
        source: args.source,
        kinds: args.kinds,
        ..QueryArgs::default()
    };
    let mut session = Session::open(&query)?;
    let mut reply = session.backend.whole_topology()?;
    keep_kinds(&mut reply, &session.kinds);
    if args.output != TopologyFormat::Json {
        drop_empty_namespaces(&mut reply);
    }
    let states = session.incomplete(&reply.kinds);
    let topology = TopologyReport {
        reply,
        format: args.output,
    };
    match args.output {
        TopologyFormat::Tree => report::print(&topology, Format::Table, &states)?,
        TopologyFormat::Json => report::print(&topology, Format::Json, &states)?,
        TopologyFormat::Dot | TopologyFormat::Mermaid => {
            // The output is a graph: warnings go to standard error.
            report::warn_incomplete(&states);
            report::print(&topology, Format::Table, &[])?;
        }
    }
    Ok(session.exit(&states))
}

/// Removes the policies of other kinds.
fn keep_kinds(reply: &mut v1::GetTopologyResponse, kinds: &[String]) {
    if kinds.is_empty() {
        return;
    }
    for node in &mut reply.nodes {
        node.policies
            .retain(|policy| is_selected(kinds, &policy.kind));
    }
}

/// Removes Namespaces without policies: the names of their objects already contain them.
fn drop_empty_namespaces(reply: &mut v1::GetTopologyResponse) {
    reply
        .nodes
        .retain(|node| node.level != "Namespace" || !node.policies.is_empty());
    let remaining: BTreeSet<u32> = reply.nodes.iter().map(|node| node.id).collect();
    reply
        .edges
        .retain(|edge| remaining.contains(&edge.from) && remaining.contains(&edge.to));
}

/// The label of a policy: its kind without the group, its name, and whether it is not accepted.
pub(in crate::cli) fn policy_label(policy: &v1::TopologyPolicy) -> String {
    let kind = super::policies::short_kind(&policy.kind);
    let name = policy.policy.as_ref().map(policy_name).unwrap_or_default();
    let suffix = if policy.accepted {
        ""
    } else {
        " (not accepted)"
    };
    format!("{kind} {name}{suffix}")
}

/// The label of a node. A Service that is the parent of routes gets the suffix `(mesh)`: the same
/// Service can also be a backend, which is another node.
pub(in crate::cli) fn node_label(node: &v1::TopologyNode) -> String {
    let is_service = node.name.starts_with("Service/");
    let is_mesh = is_service && matches!(node.level.as_str(), "Gateway" | "Listener");
    let role = if is_mesh { " (mesh)" } else { "" };
    format!("{}{role}", node.name)
}

#[cfg(test)]
pub(in crate::cli) mod fixtures {
    use super::*;

    fn node(id: u32, name: &str, level: &str, policies: &[&str]) -> v1::TopologyNode {
        v1::TopologyNode {
            id,
            name: name.to_owned(),
            level: level.to_owned(),
            policies: policies
                .iter()
                .map(|name| v1::TopologyPolicy {
                    kind: "K.g".to_owned(),
                    policy: Some(v1::PolicyRef {
                        namespace: "a".to_owned(),
                        name: (*name).to_owned(),
                    }),
                    accepted: *name != "refused",
                })
                .collect(),
        }
    }

    /// Two routes to one Service, and the Namespace above it.
    pub(in crate::cli) fn diamond() -> v1::GetTopologyResponse {
        let edge = |(from, to)| v1::TopologyEdge { from, to };
        v1::GetTopologyResponse {
            nodes: vec![
                node(0, "Gateway/a/g", "Gateway", &["p"]),
                node(1, "HTTPRoute/a/r", "Route", &[]),
                node(2, "HTTPRoute/a/s", "Route", &["p", "refused"]),
                node(3, "Service/a/\"b\\\u{1b}", "Backend", &[]),
                node(4, "Namespace/a", "Namespace", &["q"]),
                node(5, "Service/a/m", "Gateway", &[]),
            ],
            edges: [(0, 1), (0, 2), (1, 3), (2, 3), (4, 3), (4, 99)]
                .map(edge)
                .into(),
            ..v1::GetTopologyResponse::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_without_policies_are_removed() {
        let mut reply = fixtures::diamond();
        keep_kinds(&mut reply, &[]);
        drop_empty_namespaces(&mut reply);
        // An edge to a missing node is removed in any case.
        assert_eq!((reply.nodes.len(), reply.edges.len()), (6, 5));
        keep_kinds(&mut reply, &["Other.g".to_owned()]);
        assert!(reply.nodes.iter().all(|node| node.policies.is_empty()));
        drop_empty_namespaces(&mut reply);
        assert_eq!((reply.nodes.len(), reply.edges.len()), (5, 4));
    }
}

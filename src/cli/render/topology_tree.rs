//! The topology as an indented tree.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use super::text::{Style, printable};
use super::topology::{node_label, policy_label};
use crate::api::v1;

/// Writes each root with all nodes below it. A node with several parents is written in full once,
/// and then as its name with `... (above)`.
pub(in crate::cli) fn write(
    out: &mut dyn Write,
    topology: &v1::GetTopologyResponse,
    style: Style,
) -> io::Result<()> {
    let nodes: BTreeMap<u32, &v1::TopologyNode> =
        topology.nodes.iter().map(|node| (node.id, node)).collect();
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let mut has_parent = BTreeSet::new();
    for edge in &topology.edges {
        children.entry(edge.from).or_default().push(edge.to);
        has_parent.insert(edge.to);
    }
    if nodes.is_empty() {
        return writeln!(out, "no Gateways and no mesh Services");
    }
    let mut written = BTreeSet::new();
    // An explicit stack instead of recursion: the depth of the topology is input. The next node is
    // the last of the stack.
    let roots = nodes.keys().rev().filter(|id| !has_parent.contains(*id));
    let mut stack: Vec<(u32, usize)> = roots.map(|id| (*id, 0)).collect();
    while let Some((id, depth)) = stack.pop() {
        let Some(node) = nodes.get(&id) else {
            continue;
        };
        let indent = depth * 2;
        let label = printable(&node_label(node));
        if !written.insert(id) {
            writeln!(out, "{:indent$}{label} {}", "", style.dim("... (above)"))?;
            continue;
        }
        writeln!(out, "{:indent$}{}", "", style.bold(&label))?;
        for policy in &node.policies {
            let label = printable(&policy_label(policy));
            let label = match policy.accepted {
                true => style.cyan(&label),
                false => style.alert(&label),
            };
            writeln!(out, "{:indent$}  * {label}", "")?;
        }
        let children = children.get(&id).map_or(&[][..], Vec::as_slice);
        stack.extend(children.iter().rev().map(|child| (*child, depth + 1)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::commands::topology::fixtures::diamond;

    #[test]
    fn a_node_with_several_parents_is_written_once() {
        let mut out = Vec::new();
        write(&mut out, &diamond(), Style::new(false)).unwrap();
        let expected = "\
Gateway/a/g
  * K a/p
  HTTPRoute/a/r
    Service/a/\"b\\\\u001b
  HTTPRoute/a/s
    * K a/p
    * K a/refused (not accepted)
    Service/a/\"b\\\\u001b ... (above)
Namespace/a
  * K a/q
  Service/a/\"b\\\\u001b ... (above)
Service/a/m (mesh)
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn a_long_chain_does_not_overflow_the_stack() {
        let mut long = v1::GetTopologyResponse::default();
        for id in 0..2_000 {
            long.nodes.push(v1::TopologyNode {
                id,
                ..v1::TopologyNode::default()
            });
            long.edges.push(v1::TopologyEdge {
                from: id,
                to: id + 1,
            });
        }
        write(&mut io::sink(), &long, Style::new(false)).unwrap();
        // A cycle has no root.
        long.edges.push(v1::TopologyEdge { from: 1_999, to: 0 });
        write(&mut io::sink(), &long, Style::new(false)).unwrap();
    }
}

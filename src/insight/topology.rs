//! The topology as messages: objects and sections, what is below what, and the policies on them.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;

use super::Visibility;
use super::lookup::incomplete_kinds;
use crate::api::{policy_ref, v1};
use crate::snapshot::Snapshot;
use entail_core::effective::World;
use entail_core::model::{Level, NodeKey, Outcome, PolicyRef};
use entail_core::topology::NodeId;

/// A node in a role: a Service stands as mesh root and as backend (specification 1.3).
type Role = (NodeId, Level);

/// The topology with the policies attached to it.
pub fn get_topology(snapshot: &Snapshot, visibility: &dyn Visibility) -> v1::GetTopologyResponse {
    let world = snapshot.world();
    let attached = attached(world, visibility);
    let mut graph = Graph::default();
    world.topology().visit(&mut |name, resolved| {
        if !visibility.includes_path(name) {
            return;
        }
        let mut above = None;
        for step in &resolved.steps {
            let node = graph.node(world, (step.node, step.level), &attached);
            if let Some(above) = above {
                graph.edges.insert((above, node));
            }
            above = Some(node);
        }
    });
    graph.add_namespaces(world, &attached);
    let version = snapshot.version();
    v1::GetTopologyResponse {
        nodes: graph.nodes,
        edges: graph
            .edges
            .into_iter()
            .map(|(from, to)| v1::TopologyEdge { from, to })
            .collect(),
        version: Some(version.message()),
        synced_at: Some(version.synced_at),
        kinds: incomplete_kinds(snapshot, &[], visibility),
    }
}

/// Nodes and edges, numbered as they are met.
#[derive(Default)]
struct Graph {
    nodes: Vec<v1::TopologyNode>,
    numbers: HashMap<Role, u32>,
    edges: BTreeSet<(u32, u32)>,
}

type AttachedTo = BTreeMap<NodeId, Vec<v1::TopologyPolicy>>;

impl Graph {
    fn node(&mut self, world: &World, role: Role, attached: &AttachedTo) -> u32 {
        if let Some(&number) = self.numbers.get(&role) {
            return number;
        }
        let number = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        self.numbers.insert(role, number);
        self.nodes.push(v1::TopologyNode {
            id: number,
            name: world.topology().describe(role.0),
            level: role.1.to_string(),
            policies: attached.get(&role.0).cloned().unwrap_or_default(),
        });
        number
    }

    /// Namespaces that hold policies stand above the objects that live in them.
    fn add_namespaces(&mut self, world: &World, attached: &AttachedTo) {
        let mut roles: Vec<(u32, Role)> = self.numbers.iter().map(|(r, n)| (*n, *r)).collect();
        roles.sort_unstable();
        for (number, role) in roles {
            let key = world.topology().key(role.0);
            let lives = matches!(
                role.1,
                Level::Gateway | Level::ListenerSet | Level::Route | Level::Backend
            );
            let namespace = world.topology().namespace(&key.object.namespace);
            let Some(namespace) = namespace.filter(|n| lives && attached.contains_key(n)) else {
                continue;
            };
            let above = self.node(world, (namespace, Level::Namespace), attached);
            self.edges.insert((above, number));
        }
    }
}

/// The policies of each node, by kind and name.
fn attached(world: &World, visibility: &dyn Visibility) -> AttachedTo {
    let mut found = AttachedTo::new();
    let kinds = world.kinds().iter();
    for kind in kinds.filter(|kind| visibility.includes_kind(&kind.profile().policy)) {
        for (index, policy) in kind.policies().iter().enumerate() {
            let accepted = kind.outcome(index).0 == Outcome::Accepted;
            let nodes: BTreeSet<&NodeKey> = kind
                .attached(index)
                .into_iter()
                .flat_map(|a| &a.references)
                .flat_map(|r| &r.nodes)
                .map(|(key, _)| key)
                .collect();
            for key in nodes {
                let Some(node) = world.topology().node(key) else {
                    continue;
                };
                found.entry(node).or_default().push(v1::TopologyPolicy {
                    kind: kind.profile().policy.to_string(),
                    policy: Some(policy_ref(&PolicyRef::of(&policy.key))),
                    accepted,
                });
            }
        }
    }
    found
}

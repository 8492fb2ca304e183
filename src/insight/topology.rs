//! The topology as a graph: objects and sections, the edges between them, and attached policies.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use hashbrown::{HashMap, HashSet};
use prost::Message;

use super::lookup::incomplete_kinds;
use super::paths::{Page, page, token};
use super::visible::{Visible, prepare};
use super::{Failure, Visibility};
use crate::api::{policy_ref, v1};
use crate::snapshot::Snapshot;
use entail_core::effective::World;
use entail_core::engine::PathEngine;
use entail_core::model::{Level, NodeKey, Outcome, PolicyRef};
use entail_core::topology::{ListedPath, NodeId, PathVisitor, TrieNodeId, WalkControl};

/// A node at a level. A Service can be a mesh root and a backend (specification 1.3).
type Role = (NodeId, Level);

/// Returns a page of the visible topology with the policies attached to it.
///
/// # Errors
/// The caller is gone, or the page token is invalid or belongs to another snapshot.
pub fn get_topology(
    snapshot: &Snapshot,
    request: &v1::GetTopologyRequest,
    visibility: &dyn Visibility,
) -> Result<v1::GetTopologyResponse, Failure> {
    let page = page(snapshot, request.page_size, &request.page_token)?;
    let engine = snapshot.engine();
    let world = engine.world();
    if !visibility.is_unrestricted() {
        prepare(engine, visibility);
    }
    let attached = attached(world, visibility);
    let mut graph = Graph::of_page(&page);
    let mut drawer = Drawer {
        engine,
        visible: Visible::new(engine, visibility),
        drawn: HashSet::new(),
        above: Vec::new(),
        graph: &mut graph,
    };
    if let Err(error) = engine.visit(None, (), |(), _| Ok(()), &mut drawer) {
        engine.fail(error);
    }
    graph.add_namespaces(world, &attached);
    visibility.budget().check()?;
    let count = graph.roles.len();
    let (nodes, edges) = graph.page(&page, world, &attached);
    let version = snapshot.version();
    Ok(v1::GetTopologyResponse {
        next_page_token: token(snapshot, page.first.saturating_add(nodes.len()), count),
        nodes,
        edges,
        version: Some(version.message()),
        synced_at: Some(version.synced_at),
        kinds: incomplete_kinds(snapshot, &[], visibility),
        truncated: visibility.is_truncated(),
    })
}

/// The nodes, numbered in the order of the walk, and the edges of one page. What a page shows is written for its nodes
/// alone, because the walk passes all nodes for each page.
struct Graph {
    /// The nodes by their numbers.
    roles: Vec<Role>,
    numbers: HashMap<Role, u32>,
    /// The edges whose later node may be on the page.
    edges: BTreeSet<(u32, u32)>,
    on_page: Range<usize>,
}

/// Builds the graph during a walk. A shared subtree is added once.
struct Drawer<'e> {
    engine: &'e PathEngine,
    visible: Visible<'e>,
    /// Trie nodes whose subtrees have been added.
    drawn: HashSet<TrieNodeId>,
    /// The trie nodes above the current one.
    above: Vec<TrieNodeId>,
    graph: &'e mut Graph,
}

impl Drawer<'_> {
    /// Adds the nodes and edges of a path.
    fn draw(&mut self, resolved: &[TrieNodeId]) {
        let trie = self.engine.trie();
        let root = resolved.first().and_then(|&root| trie.root(root));
        let class = root.and_then(|root| root.class);
        let class = class.map(|class| (class, Level::GatewayClass));
        let nodes: Result<Vec<_>, _> = resolved.iter().map(|&id| trie.node(id)).collect();
        let nodes = match nodes {
            Ok(nodes) => nodes.into_iter(),
            Err(error) => return self.engine.fail(error),
        };
        let mut above = None;
        for role in class
            .into_iter()
            .chain(nodes.map(|node| (node.node, node.level)))
        {
            let node = self.graph.node(role);
            if let Some(above) = above {
                self.graph.add_edge(above, node);
            }
            above = Some(node);
        }
    }
}

impl PathVisitor<()> for Drawer<'_> {
    fn passes_over(&mut self, node: TrieNodeId, (): (), depth: usize) -> bool {
        self.above.truncate(depth);
        let is_drawn = self.visible.is_covered(depth) && self.drawn.contains(&node);
        self.above.push(node);
        if is_drawn {
            // The subtree is in the graph; only the edge to it may be new.
            let resolved = std::mem::take(&mut self.above);
            self.draw(&resolved);
            self.above = resolved;
        }
        is_drawn
    }

    fn visit(&mut self, path: &ListedPath<'_, ()>) -> WalkControl {
        if self.visible.is_over() {
            return WalkControl::Stop;
        }
        let depth = path.resolved.len().saturating_sub(1);
        let (visible, below) = self.visible.look(path.name, depth);
        if visible {
            self.draw(path.resolved);
        }
        if self.visible.is_covered(depth + 1) {
            self.drawn.extend(path.resolved.last());
        }
        match below {
            true => WalkControl::Descend,
            false => WalkControl::SkipChildren,
        }
    }
}

/// The policies of each node: the numbers of a kind and of a policy of this kind, by kind and name.
type AttachedTo = BTreeMap<NodeId, Vec<(usize, usize)>>;

impl Graph {
    fn of_page(page: &Page) -> Self {
        Self {
            roles: Vec::new(),
            numbers: HashMap::new(),
            edges: BTreeSet::new(),
            on_page: page.first..page.first.saturating_add(page.size),
        }
    }

    /// Returns the nodes of a page, and their edges among themselves and to those of earlier pages.
    fn page(
        self,
        page: &Page,
        world: &World,
        attached: &AttachedTo,
    ) -> (Vec<v1::TopologyNode>, Vec<v1::TopologyEdge>) {
        let mut edges: BTreeMap<u32, Vec<v1::TopologyEdge>> = BTreeMap::new();
        for (from, to) in self.edges {
            let later = edges.entry(from.max(to)).or_default();
            later.push(v1::TopologyEdge { from, to });
        }
        let mut taken = (Vec::new(), Vec::new());
        let mut room = page.room();
        for (id, &(node, level)) in (0..).zip(&self.roles).skip(page.first) {
            let edges = edges.remove(&id).unwrap_or_default();
            let bytes: usize = edges.iter().map(Message::encoded_len).sum();
            let node = v1::TopologyNode {
                id,
                name: world.topology().describe(node),
                level: level.to_string(),
                policies: policies(world, attached.get(&node).map_or(&[], Vec::as_slice)),
            };
            if !room.take(node.encoded_len() + bytes) {
                break;
            }
            taken.0.push(node);
            taken.1.extend(edges);
        }
        taken
    }

    /// Returns the number of a node, which is the next one if it is new.
    fn node(&mut self, role: Role) -> u32 {
        let next = u32::try_from(self.roles.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(role).or_insert(next);
        if number == next {
            self.roles.push(role);
        }
        number
    }

    fn add_edge(&mut self, from: u32, to: u32) {
        if self.on_page.contains(&(from.max(to) as usize)) {
            self.edges.insert((from, to));
        }
    }

    /// Adds edges from namespaces with policies to the objects in them.
    fn add_namespaces(&mut self, world: &World, attached: &AttachedTo) {
        for (number, role) in (0..).zip(self.roles.clone()) {
            let key = world.topology().key(role.0);
            let is_namespaced = matches!(
                role.1,
                Level::Gateway | Level::ListenerSet | Level::Route | Level::Backend
            );
            let namespace = world.topology().namespace(&key.object.namespace);
            let Some(namespace) = namespace.filter(|n| is_namespaced && attached.contains_key(n))
            else {
                continue;
            };
            let above = self.node((namespace, Level::Namespace));
            self.add_edge(above, number);
        }
    }
}

/// The policies of each node.
fn attached(world: &World, visibility: &dyn Visibility) -> AttachedTo {
    let mut attached = AttachedTo::new();
    for (number, kind) in world.kinds().iter().enumerate() {
        if !visibility.includes_kind(&kind.profile().policy) {
            continue;
        }
        for (index, _) in kind.policies() {
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
                attached.entry(node).or_default().push((number, index));
            }
        }
    }
    attached
}

/// Describes the policies of a node.
fn policies(world: &World, attached: &[(usize, usize)]) -> Vec<v1::TopologyPolicy> {
    let described = attached.iter().filter_map(|&(kind, index)| {
        let kind = world.kinds().get(kind)?;
        let policy = kind.policy_at(index)?;
        Some(v1::TopologyPolicy {
            kind: kind.profile().policy.to_string(),
            policy: Some(policy_ref(&PolicyRef::of(&policy.key))),
            accepted: kind.outcome(index).0 == Outcome::Accepted,
        })
    });
    described.collect()
}

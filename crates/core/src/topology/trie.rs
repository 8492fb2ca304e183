//! The trie of all paths. A look-up by name takes one probe for each step and does not allocate.
//!
//! Subtrees are shared: the rules and backends of a route are the same below each listener that the route
//! is attached to, so they are stored once. The size of the trie grows with the number of objects and
//! attachments, not with the number of paths, which is their product.
//!
//! The edges of a node and their labels are stored next to each other, so that a step reads few cache
//! lines.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::edge_label::{self, EdgeLabel, labels};
use super::{NodeId, RootController, RootKind};
use crate::model::{Id, IndexVec, InternalError, Level, OrInternal, PathName, Str};

/// All paths of a topology, with shared subtrees.
#[derive(Debug, Default)]
pub struct PathTrie {
    nodes: IndexVec<TrieNodeId, TrieNode>,
    edges: Vec<Edge>,
    /// The encoded labels of the edges, concatenated.
    text: Vec<u8>,
    /// The edges to roots, and of trie nodes with more than [`MAX_INLINE_EDGES`]: parent and edge number.
    edge_table: HashTable<(TrieNodeId, u32)>,
    roots: Vec<(TrieNodeId, TrieRoot)>,
    /// The trie nodes of backends whose backendRefs have filters, ascending, with the nodes of these
    /// backendRefs.
    references: Vec<(TrieNodeId, NodeId)>,
    /// The numbers of the edges to the roots.
    root_edges: Vec<u32>,
    /// The trie nodes of rules that delegate, ascending, below Gateways whose controllers follow that (specification
    /// 1.8).
    delegating: Vec<TrieNodeId>,
    /// The number of paths that end at each trie node or below it.
    sizes: IndexVec<TrieNodeId, u64>,
    hasher: DefaultHashBuilder,
}

/// The number of a trie node, dense from 0. Children have lower numbers than their parents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TrieNodeId(u32);

/// A node of the trie: the end of some prefix of a path.
#[derive(Clone, Copy, Debug)]
pub struct TrieNode {
    /// The node of the topology.
    pub node: NodeId,
    /// The level of the node on these paths. A Service can have several levels on different paths.
    pub level: Level,
    first: u32,
    count: u32,
}

/// The root of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TrieRoot {
    /// The kind of root.
    pub kind: RootKind,
    /// The GatewayClass of a Gateway, if it exists.
    pub class: Option<NodeId>,
    /// The controller of the root.
    pub controller: RootController,
    /// The client namespace (specification 1.3, 4.6).
    pub client: Str,
}

/// A labelled edge from a trie node to one of its children.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    hash: u32,
    node: TrieNodeId,
    text: u32,
    length: u32,
}

/// The parent of all roots.
const ROOT_PARENT: TrieNodeId = TrieNodeId(u32::MAX);
/// A trie node with more edges than this has them in the hash table.
const MAX_INLINE_EDGES: usize = 12;

impl Edge {
    /// The child that the edge leads to.
    pub(super) fn node(&self) -> TrieNodeId {
        self.node
    }
}

impl TrieNodeId {
    /// The number as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl Id for TrieNodeId {
    const ENTRY: &'static str = "a trie node";

    fn at(index: u32) -> Self {
        Self(index)
    }

    fn index(self) -> usize {
        self.0 as usize
    }
}

impl PathTrie {
    /// Looks up a path by name and calls `visit` for each trie node from the root to its end. Returns
    /// whether the path exists. Does not allocate.
    ///
    /// # Errors
    /// The trie refers to a node or edge that is missing.
    pub fn walk(
        &self,
        path: &PathName<'_>,
        mut visit: impl FnMut(TrieNodeId),
    ) -> Result<bool, InternalError> {
        let mut at = ROOT_PARENT;
        for label in labels(path) {
            let found = match (self.child(at, label)?, label) {
                // A client without paths of its own takes those of `*` (specification 1.3).
                (None, EdgeLabel::Service(namespace, name, _)) => {
                    self.child(at, EdgeLabel::Service(namespace, name, "*"))?
                }
                (found, _) => found,
            };
            let Some(found) = found else {
                return Ok(false);
            };
            at = found;
            visit(at);
        }
        Ok(at != ROOT_PARENT)
    }

    /// The roots of all paths.
    pub fn roots(&self) -> impl Iterator<Item = &(TrieNodeId, TrieRoot)> {
        self.roots.iter()
    }

    /// The edges to the roots.
    pub(super) fn root_edges(&self) -> impl Iterator<Item = &Edge> {
        let edges = self.root_edges.iter();
        edges.filter_map(|&edge| self.edges.get(edge as usize))
    }

    /// The edges to the children of a trie node. A rule that has a name has two edges in sequence: its
    /// index and its name.
    pub(super) fn edges_below(&self, node: &TrieNode) -> &[Edge] {
        let first = node.first as usize;
        let edges = self.edges.get(first..first + node.count as usize);
        // Missing edges are recorded as an internal error; the walk ends here.
        let edges = edges.or_internal("the edges of a node");
        edges.unwrap_or_default()
    }

    /// The index of the rule in the label of an edge, if the label is an index.
    pub(super) fn rule_index(&self, edge: &Edge) -> Option<u32> {
        let (tag, rest) = self.text_of(edge)?.split_first()?;
        (*tag == b'i').then_some(u32::from_le_bytes(*rest.first_chunk()?))
    }

    /// Appends the step of an edge to the name of a path.
    pub(super) fn write_label(&self, edge: &Edge, name: &mut String) {
        if let Some(text) = self.text_of(edge) {
            edge_label::write_step(text, name);
        }
    }

    pub(super) fn text_of(&self, edge: &Edge) -> Option<&[u8]> {
        let from = edge.text as usize;
        self.text.get(from..from + edge.length as usize)
    }

    /// The children of a trie node, each once.
    pub fn below(&self, node: &TrieNode) -> impl Iterator<Item = TrieNodeId> {
        let mut last = None;
        // A rule with a name has two edges.
        let nodes = self.edges_below(node).iter().map(|edge| edge.node);
        nodes.filter(move |node| last.replace(*node) != Some(*node))
    }

    /// The trie node with a number.
    ///
    /// # Errors
    /// There is no such trie node.
    pub fn node(&self, id: TrieNodeId) -> Result<&TrieNode, InternalError> {
        self.nodes.get(id)
    }

    /// Whether rules delegate (specification 1.8): only there a path may have several nodes of one level.
    pub fn has_delegating_rules(&self) -> bool {
        !self.delegating.is_empty()
    }

    /// Whether a trie node is a rule that delegates, below a Gateway whose controller follows that (specification 1.8).
    pub fn is_delegating(&self, id: TrieNodeId) -> bool {
        self.delegating.binary_search(&id).is_ok()
    }

    /// The trie nodes of rules that delegate.
    pub fn delegating_rules(&self) -> impl Iterator<Item = TrieNodeId> {
        self.delegating.iter().copied()
    }

    /// All trie nodes, children before their parents.
    pub fn nodes(&self) -> impl Iterator<Item = &TrieNode> {
        self.nodes.iter()
    }

    /// The number of trie nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are no trie nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The number of all paths.
    pub fn paths(&self) -> u64 {
        let roots = self.roots.iter();
        roots.fold(0, |sum, (id, _)| sum.saturating_add(self.size(*id)))
    }

    /// The number of paths that end at a trie node or below it, for one path to the trie node.
    pub fn size(&self, id: TrieNodeId) -> u64 {
        self.sizes.get(id).copied().unwrap_or_default()
    }

    /// The root at a trie node; `None` if the trie node is not a root.
    pub fn root(&self, id: TrieNodeId) -> Option<&TrieRoot> {
        // Roots are added in ascending order.
        let at = self.roots.binary_search_by_key(&id, |(root, _)| *root);
        self.roots.get(at.ok()?).map(|(_, root)| root)
    }

    /// The node of the backendRefs between a rule and the backend at a trie node, if they have filters
    /// (specification 2.7).
    pub fn reference(&self, id: TrieNodeId) -> Option<NodeId> {
        // References are added in ascending order.
        let at = self.references.binary_search_by_key(&id, |(node, _)| *node);
        self.references
            .get(at.ok()?)
            .map(|(_, reference)| *reference)
    }

    /// The trie nodes of backends whose backendRefs have filters, with the nodes of these backendRefs.
    pub fn references(&self) -> impl Iterator<Item = (TrieNodeId, NodeId)> {
        self.references.iter().copied()
    }

    /// The numbers of all trie nodes, children before their parents.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = TrieNodeId> + use<> {
        (0..u32::try_from(self.nodes.len()).unwrap_or(u32::MAX)).map(TrieNodeId)
    }

    fn child(
        &self,
        parent: TrieNodeId,
        label: EdgeLabel<'_>,
    ) -> Result<Option<TrieNodeId>, InternalError> {
        let hash = self.hash(label);
        let same = |edge: &&Edge| edge.hash == hash && self.is_named(edge, label);
        if parent != ROOT_PARENT {
            let node = self.nodes.get(parent)?;
            if node.count as usize <= MAX_INLINE_EDGES {
                let mut edges = self.edges_below(node).iter();
                return Ok(edges.find(same).map(|edge| edge.node));
            }
        }
        let is_child = |&(above, at): &(TrieNodeId, u32)| {
            above == parent && self.edges.get(at as usize).is_some_and(|edge| same(&edge))
        };
        let Some((_, found)) = self.edge_table.find(mix(hash, parent), is_child) else {
            return Ok(None);
        };
        let edge = self.edges.get(*found as usize).or_internal("an edge")?;
        Ok(Some(edge.node))
    }

    fn is_named(&self, edge: &Edge, label: EdgeLabel<'_>) -> bool {
        self.text_of(edge).is_some_and(|name| label.matches(name))
    }

    fn hash(&self, label: EdgeLabel<'_>) -> u32 {
        (self.hasher.hash_one(label) >> 32) as u32
    }

    /// Adds an edge and returns its number.
    fn edge(&mut self, label: EdgeLabel<'_>, node: TrieNodeId) -> u32 {
        let text = self.text.len();
        label.write(&mut self.text);
        let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        self.edges.push(Edge {
            hash: self.hash(label),
            node,
            // 4 billion edges, and as many bytes of names, do not fit into memory.
            text: number(text),
            length: number(self.text.len() - text),
        });
        number(self.edges.len() - 1)
    }

    /// Adds an edge to the hash table.
    fn add_to_table(&mut self, parent: TrieNodeId, edge: u32) {
        let edges = &self.edges;
        let hash = |&(above, at): &(TrieNodeId, u32)| {
            let edge = edges.get(at as usize);
            mix(edge.map_or(0, |edge| edge.hash), above)
        };
        let entry = (parent, edge);
        self.edge_table.insert_unique(hash(&entry), entry, hash);
    }

    /// Adds a trie node above its children, which must have been added before.
    pub(super) fn add(
        &mut self,
        (node, level): (NodeId, Level),
        below: &[(EdgeLabel<'_>, TrieNodeId)],
    ) -> TrieNodeId {
        let id = TrieNodeId::at(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
        let first = u32::try_from(self.edges.len()).unwrap_or(u32::MAX);
        for &(label, child) in below {
            let edge = self.edge(label, child);
            if below.len() > MAX_INLINE_EDGES {
                self.add_to_table(id, edge);
            }
        }
        self.nodes.push(TrieNode {
            node,
            level,
            first,
            count: u32::try_from(below.len()).unwrap_or(u32::MAX),
        });
        id
    }

    /// Records the backendRefs that lead to the trie node of a backend. The trie node must be the last one.
    pub(super) fn add_reference(&mut self, id: TrieNodeId, reference: NodeId) {
        self.references.push((id, reference));
    }

    /// Records a rule that delegates. The trie node must be the last one.
    pub(super) fn add_delegating(&mut self, id: TrieNodeId) {
        self.delegating.push(id);
    }

    /// Makes a trie node a root.
    pub(super) fn add_root(&mut self, label: EdgeLabel<'_>, id: TrieNodeId, root: TrieRoot) {
        let edge = self.edge(label, id);
        self.add_to_table(ROOT_PARENT, edge);
        self.root_edges.push(edge);
        self.roots.push((id, root));
    }

    /// Counts the paths and releases unused memory.
    pub(super) fn finish(&mut self) {
        let mut sizes: IndexVec<TrieNodeId, u64> = IndexVec::with_capacity(self.nodes.len());
        for node in self.nodes.iter() {
            let below = self.below(node);
            let counted = below.filter_map(|id| sizes.get(id).ok());
            sizes.push(counted.fold(1, |sum, more| sum.saturating_add(*more)));
        }
        self.sizes = sizes;
        self.nodes.shrink_to_fit();
        self.edges.shrink_to_fit();
        self.text.shrink_to_fit();
    }
}

/// The hash of an edge: that of its label combined with its parent.
fn mix(hash: u32, parent: TrieNodeId) -> u64 {
    let both = u64::from(hash) << 32 | u64::from(parent.0);
    let mixed = both.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^ (mixed >> 29)
}

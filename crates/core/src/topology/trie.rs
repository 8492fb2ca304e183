//! The trie of all paths. A look-up by name takes one probe for each step and does not allocate.
//!
//! Subtrees are shared: the rules and backends of a route are the same below each listener that the route
//! is attached to, so they are stored once, and so is a backend of several rules of a route. The size of the trie grows
//! with the number of objects and attachments, not with the number of paths, which is their product.
//!
//! The edges of a node are stored next to each other, and an edge says where those of its child are, so that a step reads
//! few cache lines. Nodes with many edges have a list of their own, and their edges are in a hash table.
//!
//! A trie does not change. A later one shares all that is equal: it adds the nodes of changed routes and Gateways,
//! and a copy of each node above them. The nodes that these replace stay, but no path leads to them.

use std::cmp::Ordering;
use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashSet};
use rpds::RedBlackTreeMapSync;

use super::edge_label::{self, EdgeLabel, each_label};
use super::label_text::LabelText;
use super::{ClassNode, GatewayNode, NodeId, RootController, RootKind};
use crate::model::{
    ChunkedList, ChunkedListIter, ChunkedVec, Id, InternalError, Level, OrInternal, PagedTable,
    PagedVec, PathName, Str,
};
use crate::store::NamespacedName;

/// All paths of a topology, with shared subtrees.
#[derive(Clone, Debug, Default)]
pub struct PathTrie {
    nodes: PagedVec<TrieNode>,
    edges: PagedVec<Edge>,
    text: LabelText,
    /// The edges to roots, and those of wide nodes: the number of their list, and the edge number.
    edge_table: PagedTable<(u32, u32)>,
    /// The numbers of the edges of wide nodes, in order.
    lists: ChunkedVec<Arc<ChunkedList<u32>>>,
    /// The roots, each with the number of the edge to it.
    roots: RedBlackTreeMapSync<TrieNodeId, (u32, Arc<TrieRoot>)>,
    /// The trie nodes of backends whose backendRefs have filters, ascending, with the nodes of these
    /// backendRefs.
    references: Arc<Vec<(TrieNodeId, NodeId)>>,
    /// The numbers of the edges to the roots, in the order of paths.
    root_edges: ChunkedList<u32>,
    /// The trie nodes of rules that delegate, ascending, below Gateways whose controllers follow that (specification
    /// 1.8).
    delegating: Arc<Vec<TrieNodeId>>,
    /// The number of paths that end at each trie node or below it.
    sizes: PagedVec<u64>,
    /// The number of trie nodes that no path leads to.
    unreachable: usize,
    hasher: DefaultHashBuilder,
}

/// The number of a trie node, dense from 0. Children have lower numbers than their parents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TrieNodeId(u32);

/// A node of the trie: the end of some prefix of a path.
#[derive(Clone, Copy, Debug, Default)]
pub struct TrieNode {
    /// The node of the topology.
    pub node: NodeId,
    /// The level of the node on these paths. A Service can have several levels on different paths.
    pub level: Level,
    /// As [`Below::first`].
    first: u32,
    /// As [`Below::count`].
    count: u8,
}

/// Where the edges of a trie node are.
#[derive(Clone, Copy, Debug)]
struct Below {
    /// The number of the first edge; of a wide node, the number of its list.
    first: u32,
    /// The number of edges, or [`WIDE`].
    count: u8,
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
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Edge {
    hash: u32,
    node: TrieNodeId,
    /// As [`Below::first`] of the child.
    first: u32,
    text: u32,
    /// The length of the text in the lower 24 bits, above them [`Below::count`] of the child.
    length_and_count: u32,
}

/// The edges of a trie node in order.
#[derive(Clone, Debug)]
pub(super) enum EdgeIter<'t> {
    /// Next to each other.
    Run(std::slice::Iter<'t, Edge>),
    /// Those of a wide node.
    List(&'t PagedVec<Edge>, ChunkedListIter<'t, u32>),
}

/// A change of the edges of a trie node, by the index of the edge.
#[derive(Clone, Copy, Debug)]
pub(super) enum EdgeChange<'l> {
    /// A new edge at an index.
    Insert(usize, EdgeLabel<'l>, TrieNodeId),
    /// The edge leads to another child.
    Replace(usize, TrieNodeId),
    Remove(usize),
}

/// The list of the edges to roots in the hash table.
const ROOT_LIST: u32 = u32::MAX;
/// The count of edges of a trie node that has them in a list and in the hash table.
const WIDE: u8 = u8::MAX;
/// The bits of [`Edge::length_and_count`] that are the length. Objects with longer names do not exist.
const LENGTH_BITS: u32 = 24;
/// A trie node with more edges than this is wide.
const MAX_INLINE_EDGES: usize = 12;

impl Edge {
    /// The child that the edge leads to.
    pub(super) fn node(&self) -> TrieNodeId {
        self.node
    }

    /// Where the edges of the child are.
    fn below(&self) -> Below {
        Below {
            first: self.first,
            // The upper byte.
            count: self.length_and_count.to_be_bytes()[0],
        }
    }

    /// The position and the length of the text.
    fn text(&self) -> (u32, u32) {
        let length = self.length_and_count & ((1 << LENGTH_BITS) - 1);
        (self.text, length)
    }

    /// The same edge to a child with a number.
    fn leading_to(self, node: TrieNodeId, below: Below) -> Self {
        let (_, length) = self.text();
        Self {
            node,
            first: below.first,
            length_and_count: length | u32::from(below.count) << LENGTH_BITS,
            ..self
        }
    }
}

impl TrieRoot {
    /// The root of the path of a GatewayClass.
    pub(super) fn of_class(class: &ClassNode) -> Self {
        Self {
            kind: RootKind::GatewayClass,
            class: None,
            controller: RootController::Named(class.controller.clone()),
            client: Str::default(),
        }
    }

    /// The root of the paths of the Gateway with a name, and with its class if that exists.
    pub(super) fn of_gateway(
        gateway: &GatewayNode,
        class: Option<&ClassNode>,
        (namespace, _): &NamespacedName,
    ) -> Self {
        Self {
            kind: RootKind::Gateway,
            class: class.map(|class| class.node),
            controller: gateway.controller(class),
            client: namespace.clone(),
        }
    }

    /// The root of the path of a namespace.
    pub(super) fn of_namespace() -> Self {
        Self {
            kind: RootKind::Namespace,
            class: None,
            controller: RootController::None,
            client: Str::default(),
        }
    }
}

impl TrieNode {
    fn below(&self) -> Below {
        Below {
            first: self.first,
            count: self.count,
        }
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

impl<'t> Iterator for EdgeIter<'t> {
    type Item = &'t Edge;

    fn next(&mut self) -> Option<&'t Edge> {
        match self {
            Self::Run(edges) => edges.next(),
            Self::List(edges, numbers) => edges.get(*numbers.next()? as usize),
        }
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
        let mut above = None;
        each_label(path, &mut |label| {
            let mut found = self.edge_below(above, label)?;
            if found.is_none()
                && let EdgeLabel::Service(namespace, name, _) = *label
            {
                // A client without paths of its own takes those of `*` (specification 1.3).
                found = self.edge_below(above, &EdgeLabel::Service(namespace, name, "*"))?;
            }
            let Some(edge) = found else { return Ok(false) };
            visit(edge.node);
            above = Some(edge.below());
            Ok(true)
        })
    }

    /// The roots of all paths, in their order.
    pub fn roots(&self) -> impl Iterator<Item = (TrieNodeId, &TrieRoot)> {
        let nodes = self.root_edges().map(Edge::node);
        nodes.filter_map(|node| Some((node, self.root(node)?)))
    }

    /// The edges to the roots.
    pub(super) fn root_edges(&self) -> impl Iterator<Item = &Edge> {
        let edges = self.root_edges.iter();
        edges.filter_map(|&edge| self.edges.get(edge as usize))
    }

    /// The edges to the children of a trie node. A rule that has a name has two edges in sequence: its
    /// index and its name.
    pub(super) fn edges_below(&self, node: &TrieNode) -> EdgeIter<'_> {
        if node.count == WIDE {
            let list = self.lists.get(node.first as usize);
            if let Ok(list) = list.or_internal("the edges of a node") {
                return EdgeIter::List(&self.edges, list.iter());
            }
            return EdgeIter::Run([].iter());
        }
        // Missing edges are recorded as an internal error; the walk ends here.
        let edges = self.run(node.below()).or_internal("the edges of a node");
        EdgeIter::Run(edges.unwrap_or_default().iter())
    }

    fn run(&self, below: Below) -> Option<&[Edge]> {
        self.edges.run(below.first as usize, below.count.into())
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
        self.text.get(edge.text())
    }

    /// The children of a trie node, each once.
    pub fn below(&self, node: &TrieNode) -> impl Iterator<Item = TrieNodeId> {
        let mut last = None;
        // A rule with a name has two edges.
        let nodes = self.edges_below(node).map(|edge| edge.node);
        nodes.filter(move |node| last.replace(*node) != Some(*node))
    }

    /// The trie node with a number.
    ///
    /// # Errors
    /// There is no such trie node.
    pub fn node(&self, id: TrieNodeId) -> Result<&TrieNode, InternalError> {
        self.nodes.get(id.index()).or_internal("a trie node")
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

    /// All trie nodes, children before their parents. To some of them no path leads any more.
    pub fn nodes(&self) -> impl Iterator<Item = &TrieNode> {
        self.nodes.iter()
    }

    /// The number of trie nodes, with those that no path leads to.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The number of trie nodes that no path leads to: changed routes and Gateways have left them behind.
    pub fn unreachable(&self) -> usize {
        self.unreachable
    }

    /// Whether there are no trie nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The number of all paths.
    pub fn paths(&self) -> u64 {
        let roots = self.roots.keys();
        roots.fold(0, |sum, id| sum.saturating_add(self.size(*id)))
    }

    /// The number of paths that end at a trie node or below it, for one path to the trie node.
    pub fn size(&self, id: TrieNodeId) -> u64 {
        self.sizes.get(id.index()).copied().unwrap_or_default()
    }

    /// The root at a trie node; `None` if the trie node is not a root.
    pub fn root(&self, id: TrieNodeId) -> Option<&TrieRoot> {
        self.roots.get(&id).map(|(_, root)| &**root)
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

    /// The numbers of all trie nodes, children before their parents. To some of them no path leads any more.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = TrieNodeId> + use<> {
        (0..u32::try_from(self.nodes.len()).unwrap_or(u32::MAX)).map(TrieNodeId)
    }

    /// The child of a trie node, or the root, to which an edge with a label leads.
    pub(super) fn child(
        &self,
        parent: Option<TrieNodeId>,
        label: &EdgeLabel<'_>,
    ) -> Result<Option<TrieNodeId>, InternalError> {
        let above = parent.map(|parent| self.node(parent)).transpose()?;
        let edge = self.edge_below(above.map(TrieNode::below), label)?;
        Ok(edge.map(Edge::node))
    }

    /// The edge with a label among those of a trie node or, with `None`, among those to roots.
    fn edge_below(
        &self,
        above: Option<Below>,
        label: &EdgeLabel<'_>,
    ) -> Result<Option<&Edge>, InternalError> {
        let hash = self.hash(label);
        let same = |edge: &&Edge| edge.hash == hash && self.is_named(edge, label);
        let list = match above {
            Some(above) if above.count != WIDE => {
                let edges = self.run(above).or_internal("the edges of a node")?;
                return Ok(edges.iter().find(same));
            }
            Some(above) => above.first,
            None => ROOT_LIST,
        };
        let mut found = None;
        let is_found = |&(above, at): &(u32, u32)| {
            let edge = self.edges.get(at as usize).filter(|_| above == list);
            found = edge.filter(same);
            found.is_some()
        };
        self.edge_table.find(mix(hash, list), is_found);
        Ok(found)
    }

    /// Whether an edge has a label. Not a part of the loop over edges, nearly all of which have another hash.
    #[inline(never)]
    fn is_named(&self, edge: &Edge, label: &EdgeLabel<'_>) -> bool {
        self.text_of(edge).is_some_and(|name| label.matches(name))
    }

    fn hash(&self, label: &EdgeLabel<'_>) -> u32 {
        (self.hasher.hash_one(label) >> 32) as u32
    }

    /// A new edge.
    fn edge(&mut self, label: EdgeLabel<'_>, node: TrieNodeId) -> Edge {
        let hash = self.hash(&label);
        let (text, length) = self.text.add(label, hash);
        let edge = Edge {
            hash,
            text,
            length_and_count: length.min((1 << LENGTH_BITS) - 1),
            ..Edge::default()
        };
        self.lead(edge, node)
    }

    /// The same edge to another child, which exists.
    fn lead(&self, edge: Edge, node: TrieNodeId) -> Edge {
        let child = self.nodes.get(node.index()).copied().unwrap_or_default();
        edge.leading_to(node, child.below())
    }

    /// Adds an edge of a list and returns its number.
    fn add_listed(&mut self, list: u32, edge: Edge) -> u32 {
        let number = number(self.edges.push(edge));
        let edges = &self.edges;
        let hash = |&(list, at): &(u32, u32)| {
            let edge = edges.get(at as usize);
            mix(edge.map_or(0, |edge| edge.hash), list)
        };
        self.edge_table
            .insert((list, number), mix(edge.hash, list), hash);
        number
    }

    /// Adds a trie node with edges, of which children have been added before, and returns its number.
    fn add_node(&mut self, (node, level): (NodeId, Level), edges: &[Edge]) -> TrieNodeId {
        let (first, count) = match edges.len() > MAX_INLINE_EDGES {
            false => (self.edges.push_run(edges), narrow(edges.len())),
            true => {
                let list = self.lists.len();
                let numbers = edges.iter();
                let numbers = numbers.map(|&edge| self.add_listed(number(list), edge));
                let numbers = numbers.collect();
                self.lists.push(Arc::new(numbers));
                (list, WIDE)
            }
        };
        let mut last = None;
        let children = edges.iter().map(|edge| edge.node);
        let children = children.filter(|node| last.replace(*node) != Some(*node));
        let size = children.fold(1_u64, |sum, id| sum.saturating_add(self.size(id)));
        self.sizes.push(size);
        let first = number(first);
        TrieNodeId(number(self.nodes.push(TrieNode {
            node,
            level,
            first,
            count,
        })))
    }

    /// Adds a trie node above its children, which must have been added before.
    pub(super) fn add(
        &mut self,
        node: (NodeId, Level),
        below: &[(EdgeLabel<'_>, TrieNodeId)],
    ) -> TrieNodeId {
        let edges = below.iter().map(|&(label, child)| self.edge(label, child));
        let edges: Vec<Edge> = edges.collect();
        self.add_node(node, &edges)
    }

    /// Records the backendRefs that lead to the trie node of a backend. The trie node must be the last one.
    pub(super) fn add_reference(&mut self, id: TrieNodeId, reference: NodeId) {
        Arc::make_mut(&mut self.references).push((id, reference));
    }

    /// Records a rule that delegates. The trie node must be the last one.
    pub(super) fn add_delegating(&mut self, id: TrieNodeId) {
        Arc::make_mut(&mut self.delegating).push(id);
    }

    /// Makes a trie node a root, the last one.
    pub(super) fn add_root(&mut self, label: EdgeLabel<'_>, id: TrieNodeId, root: TrieRoot) {
        self.put_root(self.root_edges.len(), label, id, root);
    }

    fn put_root(&mut self, at: usize, label: EdgeLabel<'_>, id: TrieNodeId, root: TrieRoot) {
        let edge = self.edge(label, id);
        let edge = self.add_listed(ROOT_LIST, edge);
        self.root_edges.insert(at, edge);
        self.roots.insert_mut(id, (edge, Arc::new(root)));
    }

    /// Releases unused memory.
    pub(super) fn finish(&mut self) {
        let edges = &self.edges;
        self.edge_table.settle(|&(list, at)| {
            let edge = edges.get(at as usize);
            mix(edge.map_or(0, |edge| edge.hash), list)
        });
        self.text.shrink();
    }
}

/// Later tries.
impl PathTrie {
    /// Adds a copy of a trie node with other edges, which takes its place. The edges of a node that changes this way lead
    /// to different children.
    ///
    /// Returns `None` if there are too many paths to count, or no such edge.
    pub(super) fn replace_node(
        &mut self,
        id: TrieNodeId,
        changes: &[EdgeChange<'_>],
    ) -> Option<TrieNodeId> {
        let node = *self.nodes.get(id.index())?;
        self.unreachable += 1;
        if node.count != WIDE {
            let mut edges = self.run(node.below())?.to_vec();
            for change in changes {
                match *change {
                    EdgeChange::Insert(at, label, child) if at <= edges.len() => {
                        let edge = self.edge(label, child);
                        edges.insert(at, edge);
                    }
                    EdgeChange::Replace(at, child) => {
                        let edge = edges.get_mut(at)?;
                        *edge = self.lead(*edge, child);
                    }
                    EdgeChange::Remove(at) if at < edges.len() => {
                        edges.remove(at);
                    }
                    _ => return None,
                }
            }
            return Some(self.add_node((node.node, node.level), &edges));
        }
        let mut list = ChunkedList::clone(self.lists.get(node.first as usize)?);
        let mut size = self.size(id);
        for change in changes {
            // Where paths are too many to count, sizes have no differences.
            if size == u64::MAX {
                return None;
            }
            size = self.change_list((node.first, &mut list), change, size)?;
        }
        self.lists.set(node.first as usize, Arc::new(list));
        // The list belongs to the copy now: the children of the node that it replaces would come after it.
        let (first, count) = (0, 0);
        let left = TrieNode {
            first,
            count,
            ..node
        };
        self.nodes.set(id.index(), left);
        self.sizes.push(size);
        Some(TrieNodeId(number(self.nodes.push(node))))
    }

    /// Changes the list of a wide node that has a size; returns the new size.
    fn change_list(
        &mut self,
        (number, list): (u32, &mut ChunkedList<u32>),
        change: &EdgeChange<'_>,
        size: u64,
    ) -> Option<u64> {
        let (at, before) = match *change {
            EdgeChange::Insert(at, label, child) => {
                let edge = self.edge(label, child);
                let edge = self.add_listed(number, edge);
                list.insert(at, edge);
                return size.checked_add(self.size(child));
            }
            EdgeChange::Replace(at, _) | EdgeChange::Remove(at) => (at, *list.get(at)?),
        };
        let edge = *self.edges.get(before as usize)?;
        let is_before = |entry: &(u32, u32)| *entry == (number, before);
        let hash = mix(edge.hash, number);
        let size = size.checked_sub(self.size(edge.node))?;
        let EdgeChange::Replace(_, child) = *change else {
            list.remove(at);
            let found = self.edge_table.replace(hash, is_before, None);
            return found.then_some(size);
        };
        let next = self.edges.push(self.lead(edge, child));
        let next = u32::try_from(next).ok()?;
        list.set(at, next);
        let entry = Some((number, next));
        let found = self.edge_table.replace(hash, is_before, entry);
        found.then_some(size.checked_add(self.size(child))?)
    }

    /// Makes a trie node the root in the place of another, which `order` finds.
    pub(super) fn replace_root(
        &mut self,
        order: impl FnMut(&TrieNode, &TrieRoot) -> Ordering,
        before: TrieNodeId,
        id: TrieNodeId,
    ) -> Option<()> {
        let place = self.search_roots(order).ok()?;
        let (number_before, root) = self.roots.get(&before)?.clone();
        let edge = *self.edges.get(number_before as usize)?;
        let next = number(self.edges.push(self.lead(edge, id)));
        self.exchange_root_edge((place, number_before), Some(next))?;
        self.root_edges.set(place, next);
        self.roots.remove_mut(&before);
        self.roots.insert_mut(id, (next, root));
        Some(())
    }

    /// Makes a trie node a root at its place among the others, with which `order` compares it.
    pub(super) fn insert_root(
        &mut self,
        order: impl FnMut(&TrieNode, &TrieRoot) -> Ordering,
        label: EdgeLabel<'_>,
        (id, root): (TrieNodeId, TrieRoot),
    ) -> Option<()> {
        let place = self.search_roots(order).err()?;
        self.put_root(place, label, id, root);
        Some(())
    }

    /// The place of a root among the others, or where it belongs.
    fn search_roots(
        &self,
        mut order: impl FnMut(&TrieNode, &TrieRoot) -> Ordering,
    ) -> Result<usize, usize> {
        self.root_edges.search(|edge: &u32| {
            let id = self.edges.get(*edge as usize).map(Edge::node);
            let known = id.and_then(|id| Some((self.node(id).ok()?, self.root(id)?)));
            known.map_or(Ordering::Less, |(node, root)| order(node, root))
        })
    }

    /// Makes a root, which `order` finds, a trie node that no path leads to. What is below it is not counted.
    pub(super) fn remove_root(
        &mut self,
        order: impl FnMut(&TrieNode, &TrieRoot) -> Ordering,
        id: TrieNodeId,
    ) -> Option<()> {
        let place = self.search_roots(order).ok()?;
        let (edge, _) = *self.roots.get(&id)?;
        self.exchange_root_edge((place, edge), None)?;
        self.root_edges.remove(place);
        self.roots.remove_mut(&id);
        self.leave(1);
        Some(())
    }

    /// Puts another edge to a root in the place of one, or none, where edges are found by their labels.
    fn exchange_root_edge(
        &mut self,
        (place, before): (usize, u32),
        now: Option<u32>,
    ) -> Option<()> {
        let hash = mix(self.edges.get(before as usize)?.hash, ROOT_LIST);
        let is_before = |entry: &(u32, u32)| *entry == (ROOT_LIST, before);
        let now = now.map(|now| (ROOT_LIST, now));
        let is_there = self.root_edges.get(place) == Some(&before);
        (is_there && self.edge_table.replace(hash, is_before, now)).then_some(())
    }

    /// The child at an index among the edges of a trie node.
    pub(super) fn child_at(&self, id: TrieNodeId, index: usize) -> Option<TrieNodeId> {
        let node = self.nodes.get(id.index())?;
        if node.count != WIDE {
            return self.run(node.below())?.get(index).map(|edge| edge.node);
        }
        let list = self.lists.get(node.first as usize)?;
        let edge = self.edges.get(*list.get(index)? as usize)?;
        Some(edge.node)
    }

    /// The number of trie nodes at a trie node and below it, each once.
    pub(super) fn count_below(&self, id: TrieNodeId) -> usize {
        let mut found: HashSet<TrieNodeId> = HashSet::from_iter([id]);
        let mut next = vec![id];
        while let Some(id) = next.pop() {
            let node = self.nodes.get(id.index());
            let below = node.into_iter().flat_map(|node| self.below(node));
            next.extend(below.filter(|id| found.insert(*id)));
        }
        found.len()
    }

    /// Records that no path leads to some trie nodes any more.
    pub(super) fn leave(&mut self, nodes: usize) {
        self.unreachable += nodes;
    }
}

/// 4 billion entries do not fit into memory; the last number would be shared.
fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// The number of edges of a node that is not wide.
fn narrow(count: usize) -> u8 {
    u8::try_from(count).unwrap_or_default()
}

/// The hash of an edge: that of its label combined with its list.
fn mix(hash: u32, list: u32) -> u64 {
    let both = u64::from(hash) << 32 | u64::from(list);
    let mixed = both.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^ (mixed >> 29)
}

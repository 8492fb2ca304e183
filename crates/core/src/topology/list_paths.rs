//! Lists paths with their names, in a fixed order, from the roots or from a trie node down.

use super::RootKind;
use super::trie::{Edge, PathTrie, TrieNode, TrieNodeId};
use crate::model::{InternalError, PathName};

/// A path in a list.
#[derive(Clone, Copy, Debug)]
pub struct ListedPath<'n, S> {
    /// The name of the path. A rule that has a name is written by name.
    pub name: &'n str,
    /// The index of each rule on the path that is written by name, from the root down. The path with an index
    /// instead of the name is the same path.
    pub rule_indexes: &'n [u32],
    /// The trie node at the end of the path.
    pub node: &'n TrieNode,
    /// The trie nodes from the root to the end.
    pub resolved: &'n [TrieNodeId],
    /// The state at the end of the path.
    pub state: S,
}

/// How a walk continues after a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkControl {
    /// Visit the paths below, then continue.
    Descend,
    /// Continue without the paths below.
    SkipChildren,
    /// End the walk.
    Stop,
}

/// Receives the paths of a walk in order.
pub trait PathVisitor<S> {
    /// Returns whether the walk skips a trie node and all nodes below it. The names of skipped paths are not
    /// written. `depth` is the number of trie nodes above.
    fn passes_over(&mut self, node: TrieNodeId, state: S, depth: usize) -> bool {
        let _ = (node, state, depth);
        false
    }

    /// Visits a path.
    fn visit(&mut self, path: &ListedPath<'_, S>) -> WalkControl;
}

/// A path from which a walk starts.
#[derive(Clone, Debug)]
pub struct PathStart {
    /// The name of the path.
    pub name: String,
    /// The trie nodes from the root to the end.
    pub resolved: Vec<TrieNodeId>,
    rule_indexes: Vec<u32>,
}

/// A step from a trie node to one of its children, as in the names of listed paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedStep<'p> {
    /// The child.
    pub node: TrieNodeId,
    text: &'p [u8],
}

/// Adapts a function to a [`PathVisitor`].
struct FnVisitor<'v, S>(&'v mut dyn FnMut(&ListedPath<'_, S>) -> WalkControl);

/// A walk in progress, with the current path.
struct PathLister<'p, 'v, S, F> {
    trie: &'p PathTrie,
    step: F,
    name: String,
    rule_indexes: Vec<u32>,
    resolved: Vec<TrieNodeId>,
    visitor: &'v mut dyn PathVisitor<S>,
}

impl PathStart {
    /// A start at a single trie node, with the name of a path that leads to it.
    pub fn at(name: String, node: TrieNodeId) -> Self {
        Self {
            name,
            resolved: vec![node],
            rule_indexes: Vec::new(),
        }
    }
}

impl<'p> NamedStep<'p> {
    /// The encoded label of the step. Equal steps have equal labels.
    pub fn text(&self) -> &'p [u8] {
        self.text
    }

    /// Appends the step to the name of a path.
    pub fn write(&self, name: &mut String) {
        super::edge_label::write_step(self.text, name);
    }
}

impl<S> PathVisitor<S> for FnVisitor<'_, S> {
    fn visit(&mut self, path: &ListedPath<'_, S>) -> WalkControl {
        (self.0)(path)
    }
}

impl PathTrie {
    /// Visits the path with a name and all paths below it, or all paths, each once. `visit` returns how the
    /// walk continues. `step` returns the state after one more trie node, or `None` to skip it.
    ///
    /// Visits nothing if `prefix` is not a path. The names of the visited paths begin with `prefix` as it is
    /// given, even if it names a client that takes the paths of `*` (specification 1.3).
    pub fn list<S: Copy>(
        &self,
        prefix: Option<&PathName<'_>>,
        begin: S,
        step: impl Fn(S, TrieNodeId) -> Option<S>,
        visit: &mut dyn FnMut(&ListedPath<'_, S>) -> WalkControl,
    ) {
        let Some(path) = prefix else {
            self.visit(None, begin, step, &mut FnVisitor(visit));
            return;
        };
        let mut resolved = Vec::with_capacity(8);
        if self.walk(path, |node| resolved.push(node)) == Ok(true) {
            let start = PathStart {
                name: path.to_string(),
                resolved,
                rule_indexes: Vec::new(),
            };
            self.visit(Some(&start), begin, step, &mut FnVisitor(visit));
        }
    }

    /// Visits a path and all paths below it, or all paths, in order, each once, until the visitor ends the
    /// walk. `step` returns the state after one more trie node, or `None` to skip it and all nodes below.
    pub fn visit<S: Copy>(
        &self,
        start: Option<&PathStart>,
        begin: S,
        step: impl Fn(S, TrieNodeId) -> Option<S>,
        visitor: &mut dyn PathVisitor<S>,
    ) {
        let mut lister = PathLister {
            trie: self,
            step,
            name: String::new(),
            rule_indexes: Vec::new(),
            resolved: Vec::with_capacity(8),
            visitor,
        };
        match start {
            None => lister.visit_all(begin),
            Some(start) => lister.visit_from(start, begin),
        };
    }

    /// The steps from a trie node to its children, or to the roots, in the order of paths. A rule that has a
    /// name is written by name.
    pub fn steps_below(&self, node: Option<TrieNodeId>) -> Vec<NamedStep<'_>> {
        let mut found: Vec<NamedStep<'_>> = Vec::new();
        let mut add = |edge: &Edge| {
            let step = NamedStep {
                node: edge.node(),
                text: self.text_of(edge).unwrap_or_default(),
            };
            match found.last_mut() {
                // A rule with a name has two edges: first its index, then its name.
                Some(last) if last.node == step.node => *last = step,
                _ => found.push(step),
            }
        };
        match node {
            None => self.root_edges().for_each(&mut add),
            Some(node) => {
                let node = self.node(node).ok();
                let edges = node.into_iter().flat_map(|node| self.edges_below(node));
                edges.for_each(add);
            }
        }
        found
    }

    /// The paths that are listed with a name: one, or several if listeners or rules of an object have the
    /// same name.
    pub fn starts(&self, name: &str) -> Vec<PathStart> {
        let mut found = Vec::new();
        let mut visit = |listed: &ListedPath<'_, ()>| {
            match name.strip_prefix(listed.name) {
                Some("") => found.push(PathStart {
                    name: name.to_owned(),
                    resolved: listed.resolved.to_vec(),
                    rule_indexes: listed.rule_indexes.to_vec(),
                }),
                Some(rest) if rest.starts_with('/') => return WalkControl::Descend,
                _ => {}
            }
            WalkControl::SkipChildren
        };
        self.list(None, (), |(), _| Some(()), &mut visit);
        found
    }

    /// The name of the path with a number in the order of all paths, counted from 0.
    ///
    /// # Errors
    /// There are not that many paths.
    pub fn name_at(&self, number: u64) -> Result<String, InternalError> {
        let mut remaining = number;
        let mut name = String::new();
        let mut edge = self.edge_to(self.root_edges(), &mut remaining)?;
        loop {
            self.write_label(edge, &mut name);
            let Some(below) = remaining.checked_sub(1) else {
                return Ok(name);
            };
            remaining = below;
            let node = self.node(edge.node())?;
            edge = self.edge_to(self.edges_below(node), &mut remaining)?;
        }
    }

    /// Finds the edge that leads to the path with number `remaining` among the paths below `edges`.
    /// `remaining` becomes its number among the paths below that edge.
    fn edge_to<'p>(
        &self,
        edges: impl Iterator<Item = &'p Edge>,
        remaining: &mut u64,
    ) -> Result<&'p Edge, InternalError> {
        let mut edges = edges.peekable();
        while let Some(mut edge) = edges.next() {
            // A rule with a name has two edges: first its index, then its name.
            if let Some(named) = edges.next_if(|named| named.node() == edge.node()) {
                edge = named;
            }
            let size = self.size(edge.node());
            if *remaining < size {
                return Ok(edge);
            }
            *remaining -= size;
        }
        Err(InternalError::missing("a path by its number"))
    }
}

impl PathTrie {
    /// The names of mesh roots for clients of one namespace that have paths of their own, sorted
    /// (specification 1.3).
    pub fn client_roots(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (edge, (_, root)) in self.root_edges().zip(self.roots()) {
            if root.kind == RootKind::Mesh && *root.client != *"*" {
                let mut name = String::new();
                self.write_label(edge, &mut name);
                found.push(name);
            }
        }
        found.sort_unstable();
        found
    }
}

impl<S: Copy, F: Fn(S, TrieNodeId) -> Option<S>> PathLister<'_, '_, S, F> {
    fn visit_all(&mut self, begin: S) -> bool {
        let trie = self.trie;
        trie.root_edges()
            .all(|edge| self.descend(edge, None, begin))
    }

    fn visit_from(&mut self, start: &PathStart, begin: S) -> bool {
        let mut state = Some(begin);
        for &node in &start.resolved {
            state = state.and_then(|state| (self.step)(state, node));
        }
        let (Some(&end), Some(state)) = (start.resolved.last(), state) else {
            return true;
        };
        self.name.clone_from(&start.name);
        self.rule_indexes.clone_from(&start.rule_indexes);
        self.resolved.clone_from(&start.resolved);
        if self
            .visitor
            .passes_over(end, state, start.resolved.len() - 1)
        {
            return true;
        }
        self.visit_node(end, state)
    }

    /// Visits the child of an edge and all paths below it. `index` is the index of a rule that is written by
    /// name. Returns false to end the walk.
    fn descend(&mut self, edge: &Edge, index: Option<u32>, above: S) -> bool {
        let Some(state) = (self.step)(above, edge.node()) else {
            return true;
        };
        if self
            .visitor
            .passes_over(edge.node(), state, self.resolved.len())
        {
            return true;
        }
        let length = self.name.len();
        let named_rules = self.rule_indexes.len();
        self.trie.write_label(edge, &mut self.name);
        self.rule_indexes.extend(index);
        self.resolved.push(edge.node());
        let control = self.visit_node(edge.node(), state);
        self.resolved.pop();
        self.rule_indexes.truncate(named_rules);
        self.name.truncate(length);
        control
    }

    fn visit_node(&mut self, id: TrieNodeId, state: S) -> bool {
        let trie = self.trie;
        // `node` has recorded the internal error.
        let Ok(node) = trie.node(id) else {
            return true;
        };
        let listed = ListedPath {
            name: &self.name,
            rule_indexes: &self.rule_indexes,
            node,
            resolved: &self.resolved,
            state,
        };
        match self.visitor.visit(&listed) {
            WalkControl::Descend => {}
            WalkControl::SkipChildren => return true,
            WalkControl::Stop => return false,
        }
        let mut edges = trie.edges_below(node).peekable();
        while let Some(edge) = edges.next() {
            // A rule with a name has two edges: first its index, then its name.
            let named = edges.next_if(|next| next.node() == edge.node());
            let index = named.and_then(|_| trie.rule_index(edge));
            if !self.descend(named.unwrap_or(edge), index, state) {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::model::{Change, GroupKind, Object, ObjectKey, groups};
    use crate::store::Store;
    use crate::topology::{RoutingTraits, Topology};

    fn object(kind: &str, namespace: &str, name: &str, spec: Value) -> Arc<Object> {
        let group = if kind == "Service" {
            groups::CORE
        } else {
            groups::GATEWAY
        };
        let key = ObjectKey::new(GroupKind::new(group, kind), namespace, name);
        Arc::new(Object::new(key, json!({ "spec": spec })))
    }

    fn topology() -> Topology {
        let backend = json!([{"name": "s", "port": 80}]);
        let rules = json!([{"name": "pay", "backendRefs": backend}, {"backendRefs": backend}]);
        let parents = json!([{"name": "gw"}, {"group": "", "kind": "Service", "name": "s"}]);
        let listeners = json!([{"name": "http", "port": 80, "protocol": "HTTP"}]);
        let mut store = Store::default();
        store.apply(Change {
            upserts: vec![
                object("GatewayClass", "", "c", json!({"controllerName": "x"})),
                object(
                    "Gateway",
                    "a",
                    "gw",
                    json!({"gatewayClassName": "c", "listeners": listeners}),
                ),
                object(
                    "HTTPRoute",
                    "a",
                    "r",
                    json!({"parentRefs": parents, "rules": rules}),
                ),
                object("Service", "a", "s", json!({"ports": [{"port": 80}]})),
            ],
            ..Change::default()
        });
        Topology::build(&store, &|_| RoutingTraits::default())
    }

    fn listed(trie: &PathTrie, prefix: Option<&str>) -> BTreeSet<(String, Vec<u32>)> {
        let mut found = BTreeSet::new();
        let path = prefix.map(|text| PathName::parse(text).unwrap());
        let mut visit = |listed: &ListedPath<'_, ()>| {
            let new = found.insert((listed.name.to_owned(), listed.rule_indexes.to_vec()));
            assert!(new, "{} is listed twice", listed.name);
            WalkControl::Descend
        };
        trie.list(path.as_ref(), (), |(), _| Some(()), &mut visit);
        found
    }

    #[test]
    fn the_list_has_the_same_names_as_the_topology_walk() {
        let topology = topology();
        let mut visited = BTreeSet::new();
        topology.visit(&mut |name, _| {
            visited.insert(name.to_owned());
        });
        let trie = topology.trie();
        let found: BTreeSet<String> = listed(&trie, None).into_iter().map(|(n, _)| n).collect();
        assert_eq!(found, visited);
        assert!(found.len() > 12, "{found:?}");
        let mut number = 0;
        let mut visit = |listed: &ListedPath<'_, ()>| {
            assert_eq!(trie.name_at(number).unwrap(), listed.name);
            assert_eq!(trie.starts(listed.name).len(), 1);
            number += 1;
            WalkControl::Descend
        };
        trie.list(None, (), |(), _| Some(()), &mut visit);
        assert_eq!(number, trie.paths());
    }

    #[test]
    fn all_paths_below_a_named_rule_have_its_index() {
        let trie = topology().trie();
        for (name, indexes) in listed(&trie, None) {
            let has_name = name.contains("/rules/pay");
            assert_eq!(
                indexes,
                if has_name { vec![0] } else { Vec::new() },
                "{name}"
            );
            let Some(index) = indexes.first() else {
                continue;
            };
            let other = name.replace("/rules/pay", &format!("/rules/#{index}"));
            let end = |name: &str| {
                let mut last = None;
                let path = PathName::parse(name).unwrap();
                assert_eq!(trie.walk(&path, |node| last = Some(node)), Ok(true));
                last
            };
            assert_eq!(end(&name), end(&other));
        }
    }

    #[test]
    fn a_list_starts_at_a_prefix_and_ends_when_the_visitor_stops() {
        let trie = topology().trie();
        let rule = "gateways/a/gw/listeners/http/routes/HTTPRoute/a/r/rules/#0";
        let found: Vec<_> = listed(&trie, Some(rule)).into_iter().collect();
        let backend = format!("{rule}/backends/Service/a/s");
        let names = [
            rule.to_owned(),
            backend.clone(),
            format!("{backend}/ports/80"),
        ];
        assert_eq!(found.len(), 3);
        assert!(
            found
                .iter()
                .zip(names)
                .all(|((n, i), m)| *n == m && i.is_empty())
        );
        assert!(listed(&trie, Some("gateways/a/other")).is_empty());
        // A client without paths of its own takes those of `*`, listed with its own name.
        let mesh = "mesh/client/services/a/s";
        let found = listed(&trie, Some(mesh));
        assert!(found.len() > 3 && found.iter().all(|(name, _)| name.starts_with(mesh)));
        let mut count = 0;
        let mut visit = |_: &ListedPath<'_, ()>| {
            count += 1;
            if count < 3 {
                WalkControl::Descend
            } else {
                WalkControl::Stop
            }
        };
        trie.list(None, (), |(), _| Some(()), &mut visit);
        assert_eq!(count, 3);
        let mut roots = 0;
        let mut visit = |listed: &ListedPath<'_, ()>| {
            roots += 1;
            assert!(!listed.name.contains("/listeners/"), "{}", listed.name);
            WalkControl::SkipChildren
        };
        trie.list(None, (), |(), _| Some(()), &mut visit);
        assert_eq!(roots, 4, "a class, a Gateway, a mesh root, a namespace");
    }
}

//! The names of paths, from a node downwards: what a look-up walks by name is walked here to list
//! names.

use std::fmt::Write;

use super::RootKind;
use super::trie::{Edge, PathTrie, TrieNode, TrieNodeId};
use crate::model::PathName;

/// A path as it is listed.
#[derive(Clone, Copy, Debug)]
pub struct ListedPath<'n, S> {
    /// Its name; a rule that has a name is named by it.
    pub name: &'n str,
    /// The index of the rule that the name names by name, by which the path is known as well.
    pub rule_index: Option<u32>,
    /// Where it ends.
    pub node: &'n TrieNode,
    /// What the steps came to.
    pub state: S,
}

/// Where a walk goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkControl {
    /// Below the path, then beside it.
    Descend,
    /// Beside the path.
    SkipChildren,
    /// Nowhere: it is enough.
    Stop,
}

/// Called for each path; tells where to go on.
type Visit<'v, S> = dyn FnMut(&ListedPath<'_, S>) -> WalkControl + 'v;

/// A walk in progress.
struct PathLister<'p, 'v, S, F> {
    trie: &'p PathTrie,
    step: F,
    name: String,
    rule_index: Option<u32>,
    visit: &'v mut Visit<'v, S>,
}

impl PathTrie {
    /// Visits the path with a name and all below it, or all paths, each once, until `visit` says
    /// that it is enough. `step` tells what a state comes to after one more node.
    ///
    /// A prefix that is no path has nothing below it. The name of the prefix stays as it is given:
    /// a client that nothing sets apart keeps its name (specification 1.3).
    pub fn list<'v, S: Copy>(
        &self,
        prefix: Option<&PathName<'_>>,
        begin: S,
        step: impl Fn(S, TrieNodeId) -> Option<S>,
        visit: &'v mut Visit<'v, S>,
    ) {
        let mut lister = PathLister {
            trie: self,
            step,
            name: String::new(),
            rule_index: None,
            visit,
        };
        match prefix {
            None => lister.all(begin),
            Some(path) => lister.below_path(path, begin),
        };
    }
}

impl PathTrie {
    /// The names of mesh roots whose clients are set apart, sorted (specification 1.3).
    pub fn clients_apart(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (edge, (_, root)) in self.top().zip(self.roots()) {
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
    fn all(&mut self, begin: S) -> bool {
        let trie = self.trie;
        trie.top().all(|edge| self.down(edge, None, begin))
    }

    fn below_path(&mut self, path: &PathName<'_>, begin: S) -> bool {
        let mut reached = None;
        let mut state = Some(begin);
        let step = &self.step;
        let walked = self.trie.walk(path, |node| {
            state = state.and_then(|state| step(state, node));
            reached = Some(node);
        });
        let (Some(()), Some(node), Some(state)) = (walked, reached, state) else {
            return true;
        };
        // Writing to a String does not fail.
        let _ = write!(self.name, "{path}");
        self.at(node, state)
    }

    /// Goes down an edge, and all below it. `index` is that of a rule with a name.
    fn down(&mut self, edge: &Edge, index: Option<u32>, above: S) -> bool {
        let Some(state) = (self.step)(above, edge.node()) else {
            return true;
        };
        let length = self.name.len();
        let known = self.rule_index;
        self.trie.write_label(edge, &mut self.name);
        self.rule_index = known.or(index);
        let control = self.at(edge.node(), state);
        self.rule_index = known;
        self.name.truncate(length);
        control
    }

    fn at(&mut self, id: TrieNodeId, state: S) -> bool {
        let trie = self.trie;
        let Some(node) = trie.node(id) else {
            return true;
        };
        let here = ListedPath {
            name: &self.name,
            rule_index: self.rule_index,
            node,
            state,
        };
        match (self.visit)(&here) {
            WalkControl::Descend => {}
            WalkControl::SkipChildren => return true,
            WalkControl::Stop => return false,
        }
        let mut edges = trie.edges_below(node).iter().peekable();
        while let Some(edge) = edges.next() {
            // A rule with a name is found by its index, and by its name.
            let named = edges.next_if(|next| next.node() == edge.node());
            let index = named.and_then(|_| trie.rule_index(edge));
            if !self.down(named.unwrap_or(edge), index, state) {
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
    use crate::topology::Topology;

    fn object(kind: &str, namespace: &str, name: &str, spec: Value) -> Arc<Object> {
        let group = if kind == "Service" {
            groups::CORE
        } else {
            groups::GATEWAY
        };
        Arc::new(Object {
            key: ObjectKey::new(GroupKind::new(group, kind), namespace, name),
            labels: Default::default(),
            annotations: Default::default(),
            created: None,
            generation: None,
            body: json!({ "spec": spec }),
            location: None,
        })
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
        Topology::build(&store)
    }

    fn listed(trie: &PathTrie, prefix: Option<&str>) -> BTreeSet<(String, Option<u32>)> {
        let mut found = BTreeSet::new();
        let path = prefix.map(|text| PathName::parse(text).unwrap());
        let mut visit = |listed: &ListedPath<'_, ()>| {
            let new = found.insert((listed.name.to_owned(), listed.rule_index));
            assert!(new, "{} is listed twice", listed.name);
            WalkControl::Descend
        };
        trie.list(path.as_ref(), (), |(), _| Some(()), &mut visit);
        found
    }

    #[test]
    fn the_same_names_as_the_topology_visits() {
        let topology = topology();
        let mut visited = BTreeSet::new();
        topology.visit(&mut |name, _| {
            visited.insert(name.to_owned());
        });
        let trie = topology.trie();
        let found: BTreeSet<String> = listed(&trie, None).into_iter().map(|(n, _)| n).collect();
        assert_eq!(found, visited);
        assert!(found.len() > 12, "{found:?}");
    }

    #[test]
    fn a_named_rule_tells_its_index_to_all_below_it() {
        let trie = topology().trie();
        for (name, index) in listed(&trie, None) {
            assert_eq!(index, name.contains("/rules/pay").then_some(0), "{name}");
            let Some(index) = index else { continue };
            let other = name.replace("/rules/pay", &format!("/rules/#{index}"));
            let end = |name: &str| {
                let mut last = None;
                let path = PathName::parse(name).unwrap();
                trie.walk(&path, |node| last = Some(node)).unwrap();
                last
            };
            assert_eq!(end(&name), end(&other));
        }
    }

    #[test]
    fn below_a_prefix_and_no_further_than_wanted() {
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
                .all(|((n, i), m)| *n == m && i.is_none())
        );
        assert!(listed(&trie, Some("gateways/a/other")).is_empty());
        // A client that nothing sets apart is one of `*`, by its own name.
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

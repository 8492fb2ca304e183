//! Finds circles in a directed graph: its strongly connected components, by Tarjan's algorithm without recursion.

use std::collections::BTreeMap;

use hashbrown::HashMap;

/// The state of a search.
#[derive(Default)]
struct Search {
    /// The order in which nodes were found.
    order: HashMap<usize, usize>,
    /// The first node of the stack that a node leads back to, by its order.
    low: HashMap<usize, usize>,
    /// The nodes that were found and are in no component yet.
    stack: Vec<usize>,
    /// The component of each node, named by one of its nodes.
    component: HashMap<usize, usize>,
}

/// The circle of each node that is on one: nodes that lead to each other have the same number. Nodes that lead only to
/// themselves are on none.
pub(super) fn find(edges: &BTreeMap<usize, Vec<usize>>) -> HashMap<usize, usize> {
    let mut search = Search::default();
    for &root in edges.keys() {
        if search.order.contains_key(&root) {
            continue;
        }
        // The nodes on the way, each with the number of its edges that were followed.
        let mut way: Vec<(usize, usize)> = vec![(root, 0)];
        search.enter(root);
        while let Some((node, followed)) = way.last_mut() {
            let node = *node;
            let next = edges.get(&node).and_then(|edges| edges.get(*followed));
            *followed += 1;
            match next {
                Some(next) if search.order.contains_key(next) => search.lead_back(node, *next),
                Some(&next) => {
                    search.enter(next);
                    way.push((next, 0));
                }
                None => {
                    search.leave(node);
                    way.pop();
                    if let Some(&(above, _)) = way.last() {
                        search.lead_back(above, node);
                    }
                }
            }
        }
    }
    let mut sizes: HashMap<usize, usize> = HashMap::new();
    for component in search.component.values() {
        *sizes.entry(*component).or_default() += 1;
    }
    let found = search.component.into_iter();
    found
        .filter(|(_, component)| sizes.get(component).is_some_and(|size| *size > 1))
        .collect()
}

impl Search {
    fn enter(&mut self, node: usize) {
        let order = self.order.len();
        self.order.insert(node, order);
        self.low.insert(node, order);
        self.stack.push(node);
    }

    /// Records an edge to a node that was found before, if that is not in a component yet.
    fn lead_back(&mut self, node: usize, other: usize) {
        if self.component.contains_key(&other) {
            return;
        }
        let low = self.low.get(&other).copied().unwrap_or(usize::MAX);
        if let Some(own) = self.low.get_mut(&node) {
            *own = (*own).min(low);
        }
    }

    /// Ends the search below a node: if it leads back to no other one, it and all above it on the stack are a component.
    fn leave(&mut self, node: usize) {
        if self.low.get(&node) != self.order.get(&node) {
            return;
        }
        while let Some(top) = self.stack.pop() {
            self.component.insert(top, node);
            if top == node {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles(edges: &[(usize, &[usize])]) -> Vec<Vec<usize>> {
        let edges = edges.iter().map(|(node, next)| (*node, next.to_vec()));
        let mut found: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (node, circle) in find(&edges.collect()) {
            found.entry(circle).or_default().push(node);
        }
        let mut found: Vec<Vec<usize>> = found.into_values().collect();
        found.iter_mut().for_each(|circle| circle.sort_unstable());
        found.sort();
        found
    }

    #[test]
    fn nodes_that_lead_to_each_other_are_on_a_circle() {
        assert!(circles(&[(0, &[1, 2]), (1, &[2]), (2, &[])]).is_empty());
        assert!(circles(&[(0, &[0, 1]), (1, &[1])]).is_empty());
        assert_eq!(circles(&[(0, &[1]), (1, &[2]), (2, &[1, 3])]), [[1, 2]]);
        // Two circles, one behind the other.
        let two: &[(usize, &[usize])] = &[(0, &[1]), (1, &[0, 2]), (2, &[3]), (3, &[4]), (4, &[2])];
        assert_eq!(circles(two), [vec![0, 1], vec![2, 3, 4]]);
    }

    #[test]
    fn long_ways_need_no_recursion() {
        let edges = (0..100_000).map(|node| (node, vec![(node + 1) % 100_000]));
        assert_eq!(find(&edges.collect()).len(), 100_000);
    }
}

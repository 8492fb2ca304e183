//! Where paths lead on from rules to child Routes (specification 1.8).

mod circles;

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;

use super::delegation::{Children, RouteIndex};
use super::{NodeId, RouteNode, Topology};
use crate::model::{GroupKind, MAX_DELEGATIONS, ObjectKey, PathErrorReason, groups};
use crate::store::Store;

/// The number of ways from a rule down to child Routes. A rule with more is not followed.
const MAX_CHILD_ROUTES: usize = 1_000;

/// The rules that delegate, by node: the child Routes that paths lead to, or why the rule is not followed.
pub(super) type Followed = HashMap<NodeId, Result<Vec<usize>, NotFollowed>>;

/// Why paths do not lead on from a rule that delegates (specification 1.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotFollowed {
    /// The rule, or a Route that it names, is not of an HTTPRoute.
    OtherKind,
    /// A child Route delegates back.
    Circle,
    /// Too many rules delegate on a path, or too many child Routes are below the rule.
    TooMany,
}

impl NotFollowed {
    /// Describes the reason.
    pub fn message(self) -> &'static str {
        match self {
            NotFollowed::OtherKind => "only HTTPRoutes delegate, and only to HTTPRoutes",
            NotFollowed::Circle => "a child Route delegates back",
            NotFollowed::TooMany => {
                "more than 8 rules delegate on a path, or more than 1000 child Routes are below the rule"
            }
        }
    }
}

/// What is below a route.
#[derive(Clone, Copy, Debug, Default)]
struct Extent {
    /// The number of delegations on the longest way down.
    depth: usize,
    /// The number of ways down to child Routes.
    ways: usize,
}

/// A rule that delegates to HTTPRoutes.
#[derive(Debug)]
struct DelegatingRule {
    node: NodeId,
    /// The indexes of the child Routes that have paths below the rule, sorted; not all if there are too many.
    children: Vec<usize>,
}

impl Extent {
    /// What is below a rule.
    fn of_rule(rule: &DelegatingRule, of_routes: &HashMap<usize, Extent>) -> Self {
        let mut all = Self::default();
        for child in &rule.children {
            let child = of_routes.get(child).copied().unwrap_or_default();
            all.depth = all.depth.max(child.depth.saturating_add(1));
            all.ways = all.ways.saturating_add(child.ways).saturating_add(1);
        }
        all
    }

    fn is_bounded(self) -> bool {
        self.depth <= MAX_DELEGATIONS && self.ways <= MAX_CHILD_ROUTES
    }
}

impl Topology {
    /// Decides where paths lead on to child Routes.
    pub(super) fn follow(
        &self,
        store: &Store,
        routes: &[RouteNode],
        named: &[Vec<BTreeSet<Children>>],
        index: &RouteIndex<'_>,
    ) -> Followed {
        let mut followed = Followed::default();
        let mut rules: BTreeMap<usize, Vec<DelegatingRule>> = BTreeMap::new();
        for (number, (route, named)) in routes.iter().zip(named).enumerate() {
            let all = route.rules.iter().zip(named);
            let delegating = all.filter(|(_, named)| !named.is_empty());
            followed.extend(delegating.map(|(rule, _)| (rule.node, Err(NotFollowed::OtherKind))));
            let found = self.delegating_rules(store, routes, (number, route, named), index);
            if !found.is_empty() {
                rules.insert(number, found);
            }
        }
        for rule in drop_circles(&mut rules) {
            followed.insert(rule, Err(NotFollowed::Circle));
        }
        // Each route is visited after its child Routes.
        let mut parents: HashMap<usize, Vec<usize>> = HashMap::new();
        let mut waiting: BTreeMap<usize, usize> = BTreeMap::new();
        for (&parent, found) in &rules {
            let children = found.iter().flat_map(|rule| &rule.children);
            let delegating = children.filter(|child| rules.contains_key(child));
            let mut count = 0;
            for &child in delegating {
                parents.entry(child).or_default().push(parent);
                count += 1;
            }
            waiting.insert(parent, count);
        }
        let ready = waiting.iter().filter(|(_, count)| **count == 0);
        let mut ready: Vec<usize> = ready.map(|(&route, _)| route).collect();
        let mut extents: HashMap<usize, Extent> = HashMap::new();
        while let Some(route) = ready.pop() {
            let mut extent = Extent::default();
            for rule in rules.remove(&route).into_iter().flatten() {
                let of_rule = Extent::of_rule(&rule, &extents);
                extent.depth = extent.depth.max(of_rule.depth);
                extent.ways = extent.ways.saturating_add(of_rule.ways);
                let children = match of_rule.is_bounded() {
                    true => Ok(rule.children),
                    false => Err(NotFollowed::TooMany),
                };
                followed.insert(rule.node, children);
            }
            extents.insert(route, extent);
            for parent in parents.remove(&route).into_iter().flatten() {
                if let Some(count) = waiting.get_mut(&parent) {
                    *count = count.saturating_sub(1);
                    ready.extend((*count == 0).then_some(parent));
                }
            }
        }
        followed
    }

    /// The rules of a route that delegate to HTTPRoutes.
    fn delegating_rules(
        &self,
        store: &Store,
        routes: &[RouteNode],
        (number, route, named): (usize, &RouteNode, &[BTreeSet<Children>]),
        index: &RouteIndex<'_>,
    ) -> Vec<DelegatingRule> {
        if !is_http_route(&route.key.kind) {
            return Vec::new();
        }
        let rules = route.rules.iter().zip(named);
        let rules = rules
            .filter(|(_, named)| !named.is_empty() && named.iter().all(Children::are_http_routes));
        let rules = rules.map(|(rule, named)| {
            let named = named.iter();
            let children: BTreeSet<usize> = named
                .flat_map(|one| self.routes_named(routes, one, index))
                .filter(|&child| {
                    // A Route is no child of its own.
                    let key = routes.get(child).map(|child| &child.key);
                    let key = key.filter(|_| child != number);
                    key.is_some_and(|key| child_refusal(store, &route.key, key).is_none())
                })
                .collect();
            DelegatingRule {
                node: rule.node,
                children: children.into_iter().take(MAX_CHILD_ROUTES + 1).collect(),
            }
        });
        rules.collect()
    }

    /// The Routes that the backendRefs of a rule name one by one and that have no path below it, each with the
    /// reason. Empty if the rule is not followed.
    pub fn refused_children(
        &self,
        store: &Store,
        parent: &ObjectKey,
        rule: usize,
    ) -> Vec<(ObjectKey, PathErrorReason)> {
        let node = self.rule_node(parent, rule);
        let rule = store.route(parent).and_then(|route| route.rules.get(rule));
        let named = rule.map(Children::of_rule).filter(|_| {
            let node = node.map(|rule| rule.node);
            node.is_some_and(|node| self.delegations.is_followed(node))
        });
        let named = named.into_iter().flatten().filter_map(|one| match one {
            Children::Named(key) => Some(key),
            Children::All(..) | Children::Labelled { .. } => None,
        });
        let refused = named.filter_map(|child| {
            let reason = match store.get(&child) {
                None => PathErrorReason::RouteNotFound,
                Some(_) if child == *parent => PathErrorReason::NotAPath,
                Some(_) => child_refusal(store, parent, &child)?,
            };
            Some((child, reason))
        });
        refused.collect()
    }

    /// The reason why a Route has no path below a rule; `None` if it has one.
    pub(super) fn delegation_refusal(
        &self,
        store: &Store,
        (parent, rule): (&RouteNode, usize),
        child: usize,
    ) -> Option<PathErrorReason> {
        let rule_node = parent.rules.get(rule)?;
        if rule_node.children.binary_search(&child).is_ok() {
            return None;
        }
        let child = &self.routes.get(child)?.key;
        Some(match self.names_child(store, &parent.key, rule, child) {
            false => PathErrorReason::NotAPath,
            true if self.delegations.is_followed(rule_node.node) => {
                let refusal = child_refusal(store, &parent.key, child);
                refusal.unwrap_or(PathErrorReason::NotAPath)
            }
            true => PathErrorReason::DelegationNotFollowed,
        })
    }

    /// The reason why a parentRef to a Route gives no path; `None` if a rule of that Route delegates here.
    pub(super) fn parent_route_refusal(
        &self,
        store: &Store,
        parent: &ObjectKey,
        child: usize,
    ) -> Option<PathErrorReason> {
        let routes = (self.routes.with_key(parent), self.routes.get(child));
        let (Some(parent), Some(child)) = routes else {
            return Some(PathErrorReason::RouteNotFound);
        };
        let delegations = &self.delegations;
        if delegations.leads(parent.node, child.node) {
            return None;
        }
        let has_hostnames = || {
            let route = store.route(&child.key);
            route.is_some_and(|route| !route.hostnames.is_empty())
        };
        Some(match delegations.has_node(child.node) {
            true if delegations.has_unfollowed_route(child.node) => {
                PathErrorReason::DelegationNotFollowed
            }
            true if has_hostnames() => PathErrorReason::ChildRouteHasHostnames,
            _ => PathErrorReason::NoMatchingParent,
        })
    }

    /// Whether a backendRef of a rule names a Route.
    fn names_child(
        &self,
        store: &Store,
        parent: &ObjectKey,
        rule: usize,
        child: &ObjectKey,
    ) -> bool {
        let rule = store.route(parent).and_then(|route| route.rules.get(rule));
        let labels = store.get(child).map(|entry| &entry.object.labels);
        rule.is_some_and(|rule| {
            let named = Children::of_rule(rule);
            named.iter().any(|one| one.includes(child, labels))
        })
    }
}

/// Removes the rules that lead to a Route that delegates back, directly or through others, and returns them.
fn drop_circles(rules: &mut BTreeMap<usize, Vec<DelegatingRule>>) -> Vec<NodeId> {
    let mut dropped = Vec::new();
    let edges = rules.iter().map(|(&route, rules)| {
        let children = rules.iter().flat_map(|rule| rule.children.iter().copied());
        (route, children.collect())
    });
    let circles = circles::find(&edges.collect());
    for (route, rules) in rules.iter_mut() {
        let Some(circle) = circles.get(route) else {
            continue;
        };
        rules.retain(|rule| {
            let mut children = rule.children.iter();
            let leads_back = children.any(|child| circles.get(child) == Some(circle));
            dropped.extend(leads_back.then_some(rule.node));
            !leads_back
        });
    }
    dropped
}

fn is_http_route(kind: &GroupKind) -> bool {
    kind.is(groups::GATEWAY, "HTTPRoute")
}

/// The reason why a Route that a rule names has no path below it: it takes the hostnames of the parent, so it must
/// have none, and its parentRefs, if it has any, must name the parent.
fn child_refusal(store: &Store, parent: &ObjectKey, child: &ObjectKey) -> Option<PathErrorReason> {
    let Some(route) = store.route(child).filter(|_| is_http_route(&child.kind)) else {
        return Some(PathErrorReason::NotAPath);
    };
    let mut parents = route.parents.iter();
    let names_parent = route.parents.is_empty()
        || parents.any(|named| {
            named.kind == parent.kind
                && named.namespace == parent.namespace
                && named.name == parent.name
        });
    if !names_parent {
        return Some(PathErrorReason::NoMatchingParent);
    }
    (!route.hostnames.is_empty()).then_some(PathErrorReason::ChildRouteHasHostnames)
}

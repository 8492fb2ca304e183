//! Kinds that are not merged: one policy whole (specification 7), or all of them in a list (specification 8).

use super::existing::{with_unchecked, withdraw};
use super::fold::{Folded, Node, numbered};
use super::place::{AttachedKind, PathView};
use super::policy::Policy;
use super::settings::Class;

/// Specification 7: the policy of the deepest object of a target kind, the nearest section first.
pub fn direct(placed: &AttachedKind<'_>, scene: &PathView) -> Folded {
    let winner = winner(placed, scene).filter(|policy| policy.left);
    let alone = winner.map(|policy| Node {
        key: String::new(),
        level: String::new(),
        policies: vec![policy.clone()],
        weak: false,
    });
    let alone = &numbered(alone.as_slice());
    let mut policies = alone.iter().flat_map(|node| &node.policies);
    let folded = Folded {
        rules: policies
            .next()
            .map(|policy| policy.blocks[0].sheet(&policy.name)),
        ..Folded::default()
    };
    with_unchecked(alone, withdraw(&placed.kind, alone, folded))
}

/// The policy that counts in the scene.
pub fn winner<'s>(placed: &AttachedKind<'_>, scene: &'s PathView) -> Option<&'s Policy> {
    let layer = layer(placed, scene);
    // A policy that is rejected for its port keeps others out (7.6).
    if layer.iter().any(|node| placed.closed.contains(&node.key)) {
        return None;
    }
    layer.into_iter().find_map(only)
}

/// Specification 7.1: acceptance leaves one.
fn only(node: &Node) -> Option<&Policy> {
    assert!(node.policies.len() <= 1, "two accepted on {}", node.key);
    node.policies.first()
}

/// The nodes of the deepest object of a target kind, the section before the whole (specification 7.3, 7.4), and
/// what reaches a ListenerSet from its Gateway (7.5).
pub fn layer<'s>(placed: &AttachedKind<'_>, scene: &'s PathView) -> Vec<&'s Node> {
    let object = |node: &Node| node.key.split('#').next().unwrap().to_owned();
    let target = |node: &&Node| placed.is_target(&node.key);
    let strong = || scene.nodes.iter().rev().filter(|node| !node.weak);
    let Some(deepest) = strong().find(target) else {
        return Vec::new();
    };
    let same = |node: &&Node| object(node) == object(deepest);
    let joins = placed.joins_gateway(&object(deepest));
    let gateway = strong().filter(|node| joins && node.level == "Gateway");
    let weak = scene.nodes.iter().filter(|node| node.weak);
    strong()
        .skip_while(|node| !same(node))
        .take_while(same)
        .chain(gateway)
        .chain(weak.filter(same))
        .collect()
}

/// Specification 8: by the profile's keys, then from the least to the most specific; each once, at its most
/// specific place (11.30).
pub fn listed(placed: &AttachedKind<'_>, scene: &PathView) -> Vec<String> {
    let mut all: Vec<(&Policy, usize)> = Vec::new();
    if placed.kind.class == Class::Listed && scene.acts {
        for (place, node) in scene.nodes.iter().enumerate() {
            for policy in &node.policies {
                all.retain(|(known, _)| known.name != policy.name);
                all.push((policy, place));
            }
        }
    }
    all.sort_by(|(a, x), (b, y)| (&a.age.0, x, &a.age).cmp(&(&b.age.0, y, &b.age)));
    all.into_iter()
        .map(|(policy, _)| policy.name.clone())
        .collect()
}

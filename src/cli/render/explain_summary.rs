//! The summary of an explanation: one sentence per kind that names the main origin of its values.

use super::spec::origin_name;
use super::text::count;
use crate::api::v1;

/// Returns one sentence: the policy that sets most values of a kind, and how many others there are.
pub(in crate::cli) fn summary(name: &str, explanations: &[&v1::KindExplanation]) -> String {
    let short = name.split('.').next().unwrap_or(name);
    let mut origins: Vec<(String, usize)> = Vec::new();
    let mut values = 0;
    for unit in explanations.iter().flat_map(|kind| &kind.units) {
        let Some(origin) = unit.origin.as_ref().filter(|_| unit.value_json.is_some()) else {
            continue;
        };
        values += 1;
        let name = attached_name(origin, explanations);
        match origins.iter_mut().find(|(other, _)| *other == name) {
            Some((_, number)) => *number += 1,
            None => origins.push((name, 1)),
        }
    }
    // Of several with the same number, take the first: equal answers have equal summaries.
    let most = origins.iter().rev().max_by_key(|(_, number)| *number);
    match most {
        None => format!("{short}: {}", without_values(explanations)),
        Some((main, 1)) if values == 1 => format!("{short}: its one value comes from {main}"),
        Some((main, 2)) if values == 2 => format!("{short}: both values come from {main}"),
        Some((main, number)) if *number == values => {
            format!("{short}: all {values} values come from {main}")
        }
        Some((main, number)) => {
            let verb = if *number == 1 { "comes" } else { "come" };
            let others: Vec<&str> = origins
                .iter()
                .filter(|(name, _)| name != main)
                .map(|(name, _)| name.as_str())
                .collect();
            let others = match others.as_slice() {
                [other] => (*other).to_owned(),
                several => count(several.len(), "other"),
            };
            format!(
                "{short}: {number} of {values} values {verb} from {main}, the rest from {others}"
            )
        }
    }
}

/// The second part of the sentence if no policy sets a value.
fn without_values(explanations: &[&v1::KindExplanation]) -> String {
    let policies = || explanations.iter().filter_map(|kind| kind.policy.as_ref());
    let listed: usize = policies().map(|policy| policy.listed.len()).sum();
    let rejected: usize = policies().map(|policy| policy.rejected.len()).sum();
    if policies().any(|policy| policy.unknown.is_some()) {
        return "it is not known which policies are in effect".to_owned();
    }
    if policies().any(|policy| !policy.not_computed.is_empty()) {
        return "policies are attached, but their effective policy is not computed".to_owned();
    }
    match (listed, rejected) {
        (0, 0) => "policies are attached, but none sets a value".to_owned(),
        (0, rejected) => format!("no policy is in effect; rejected: {rejected}"),
        (listed, _) => format!("{} listed, not merged", count(listed, "policy")),
    }
}

/// The name of an origin, with the node to which the policy is attached.
fn attached_name(origin: &v1::Origin, explanations: &[&v1::KindExplanation]) -> String {
    let name = origin_name(origin);
    let [policy] = origin.policies.as_slice() else {
        return name;
    };
    let nodes = explanations.iter().flat_map(|kind| &kind.nodes);
    let mut nodes_of_policy: Vec<&str> = nodes
        .filter(|node| {
            node.policies
                .iter()
                .any(|attached| attached.policy.as_ref() == Some(policy))
        })
        .map(|node| node.node.as_str())
        .collect();
    nodes_of_policy.sort_unstable();
    nodes_of_policy.dedup();
    match nodes_of_policy.as_slice() {
        [] => name,
        [node] => format!("{name} on {node}"),
        [node, rest @ ..] => format!("{name} on {node} and {}", count(rest.len(), "other")),
    }
}

#[cfg(test)]
pub(in crate::cli) mod fixtures {
    use super::*;

    pub(in crate::cli) fn reference(name: &str) -> v1::PolicyRef {
        v1::PolicyRef {
            namespace: "baker".to_owned(),
            name: name.to_owned(),
        }
    }

    pub(in crate::cli) fn unit(
        name: &str,
        value: Option<&str>,
        policy: Option<&str>,
    ) -> v1::UnitExplanation {
        v1::UnitExplanation {
            unit: name.to_owned(),
            value_json: value.map(str::to_owned),
            origin: policy.map(|policy| v1::Origin {
                unit: name.to_owned(),
                policies: vec![reference(policy)],
                block: v1::Block::Defaults.into(),
                ..v1::Origin::default()
            }),
            strategy: policy
                .map(|_| "PatchDefaults".to_owned())
                .unwrap_or_default(),
            overridden: Vec::new(),
        }
    }

    pub(in crate::cli) fn overridden(
        name: &str,
        unit: &str,
        value: &str,
        reason: &str,
    ) -> v1::OverriddenPolicy {
        v1::OverriddenPolicy {
            policy: Some(reference(name)),
            block: v1::Block::Defaults.into(),
            unit: unit.to_owned(),
            value_json: value.to_owned(),
            reason: reason.to_owned(),
        }
    }

    pub(in crate::cli) fn cakes() -> v1::KindExplanation {
        let node = |node: &str, level: &str, policy: &str| v1::AttachedNode {
            node: node.to_owned(),
            precedes_child_routes: false,
            level: level.to_owned(),
            policies: vec![v1::AttachedPolicy {
                policy: Some(reference(policy)),
                blocks: vec!["defaults: PatchDefaults".to_owned()],
                created: None,
            }],
        };
        let mut backoff = unit("backoff", Some("\"2s\""), Some("let-them-cool"));
        backoff.overridden = vec![overridden(
            "be-patient",
            "backoff",
            "\"250ms\"",
            "more specific default",
        )];
        v1::KindExplanation {
            policy: Some(v1::EffectivePolicy {
                group: "policies.bakery.example".to_owned(),
                kind: "RetryPolicy".to_owned(),
                ..v1::EffectivePolicy::default()
            }),
            nodes: vec![
                node("Namespace/baker", "Namespace", "be-patient"),
                node("HTTPRoute/baker/cakes", "Route", "let-them-cool"),
            ],
            units: vec![unit("attempts", Some("5"), Some("be-patient")), backoff],
            lost_units: vec!["timeout".to_owned()],
            warnings: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fixtures::cakes;
    use super::*;

    #[test]
    fn the_summary_names_the_main_origin() {
        let mut explained = cakes();
        assert_eq!(
            summary("RetryPolicy.x", &[&explained]),
            "RetryPolicy: 1 of 2 values comes from baker/be-patient on Namespace/baker, the rest \
             from baker/let-them-cool on HTTPRoute/baker/cakes"
        );
        explained.units.truncate(1);
        assert_eq!(
            summary("RetryPolicy.x", &[&explained]),
            "RetryPolicy: its one value comes from baker/be-patient on Namespace/baker"
        );
        explained.units.clear();
        assert_eq!(
            summary("RetryPolicy.x", &[&explained]),
            "RetryPolicy: policies are attached, but none sets a value"
        );
    }
}

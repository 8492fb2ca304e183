//! One sentence for each kind: what to remember of its explanation.

use super::spec::origin_name;
use super::text::count;
use crate::api::v1;

/// One sentence: who says most of what a kind comes to.
pub(in crate::cli) fn summary(name: &str, explanations: &[&v1::KindExplanation]) -> String {
    let short = name.split('.').next().unwrap_or(name);
    let mut origins: Vec<(String, usize)> = Vec::new();
    let mut values = 0;
    for unit in explanations.iter().flat_map(|kind| &kind.units) {
        let Some(origin) = unit.origin.as_ref().filter(|_| unit.value_json.is_some()) else {
            continue;
        };
        values += 1;
        let who = placed(origin, explanations);
        match origins.iter_mut().find(|(known, _)| *known == who) {
            Some((_, number)) => *number += 1,
            None => origins.push((who, 1)),
        }
    }
    // The first of those that say most, so that equal answers read equal.
    let most = origins.iter().rev().max_by_key(|(_, number)| *number);
    match most {
        None => format!("{short}: {}", without_values(explanations)),
        Some((who, 1)) if values == 1 => format!("{short}: its one value comes from {who}"),
        Some((who, 2)) if values == 2 => format!("{short}: both values come from {who}"),
        Some((who, number)) if *number == values => {
            format!("{short}: all {values} values come from {who}")
        }
        Some((who, number)) => {
            let verb = if *number == 1 { "comes" } else { "come" };
            let others: Vec<&str> = origins
                .iter()
                .filter(|(known, _)| known != who)
                .map(|(known, _)| known.as_str())
                .collect();
            let others = match others.as_slice() {
                [other] => (*other).to_owned(),
                several => count(several.len(), "other"),
            };
            format!(
                "{short}: {number} of {values} values {verb} from {who}, the rest from {others}"
            )
        }
    }
}

/// What there is to say where no policy gives a value.
fn without_values(explanations: &[&v1::KindExplanation]) -> String {
    let policies = || explanations.iter().filter_map(|kind| kind.policy.as_ref());
    let listed: usize = policies().map(|policy| policy.listed.len()).sum();
    let refused: usize = policies().map(|policy| policy.rejected.len()).sum();
    if policies().any(|policy| !policy.not_computed.is_empty()) {
        return "policies are attached, and what they come to is not computed".to_owned();
    }
    match (listed, refused) {
        (0, 0) => "policies are attached, and none gives a value".to_owned(),
        (0, refused) => format!("no policy is in effect; rejected: {refused}"),
        (listed, _) => format!("{} listed, not merged", count(listed, "policy")),
    }
}

/// Who says a unit, and where that policy stands.
fn placed(origin: &v1::Origin, explanations: &[&v1::KindExplanation]) -> String {
    let who = origin_name(origin);
    let [policy] = origin.policies.as_slice() else {
        return who;
    };
    let nodes = explanations.iter().flat_map(|kind| &kind.nodes);
    let mut places: Vec<&str> = nodes
        .filter(|node| {
            node.policies
                .iter()
                .any(|here| here.policy.as_ref() == Some(policy))
        })
        .map(|node| node.node.as_str())
        .collect();
    places.sort_unstable();
    places.dedup();
    match places.as_slice() {
        [] => who,
        [place] => format!("{who} on {place}"),
        [place, rest @ ..] => format!("{who} on {place} and {}", count(rest.len(), "other")),
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
        who: Option<&str>,
    ) -> v1::UnitExplanation {
        v1::UnitExplanation {
            unit: name.to_owned(),
            value_json: value.map(str::to_owned),
            origin: who.map(|who| v1::Origin {
                unit: name.to_owned(),
                policies: vec![reference(who)],
                block: v1::Block::Defaults.into(),
                ..v1::Origin::default()
            }),
            strategy: who.map(|_| "PatchDefaults".to_owned()).unwrap_or_default(),
            beaten: Vec::new(),
        }
    }

    pub(in crate::cli) fn beaten(
        name: &str,
        unit: &str,
        value: &str,
        reason: &str,
    ) -> v1::BeatenPolicy {
        v1::BeatenPolicy {
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
            level: level.to_owned(),
            policies: vec![v1::AttachedPolicy {
                policy: Some(reference(policy)),
                blocks: vec!["defaults: PatchDefaults".to_owned()],
                created: None,
            }],
        };
        let mut backoff = unit("backoff", Some("\"2s\""), Some("let-them-cool"));
        backoff.beaten = vec![beaten(
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
            losses: vec!["timeout".to_owned()],
            warnings: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fixtures::cakes;
    use super::*;

    #[test]
    fn the_summary_names_who_says_most() {
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
            "RetryPolicy: policies are attached, and none gives a value"
        );
    }
}

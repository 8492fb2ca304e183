//! An answer of entail as a policy that gives it back to the controller.

use std::collections::{BTreeMap, BTreeSet};

use entail_core::model::UnknownReason;
use serde_json::{Map, Value, json};

use super::answers::{Effective, ListenerPlace, RulePlace};
use super::{parts, references};

/// What a replayed policy of a rule targets: the rule; a route with a single rule, whose kind has no
/// rules as targets; or the listener, for SecurityPolicies of such routes, which can target at most
/// TCPRoutes, and then with fewer fields.
pub fn target(kind: &str, rule: &RulePlace, listener: &ListenerPlace) -> Value {
    let group = "gateway.networking.k8s.io";
    match (kind, rule.kind.as_str()) {
        ("SecurityPolicy", "TLSRoute" | "TCPRoute" | "UDPRoute") => json!({
            "group": group, "kind": listener.owner, "name": listener.owner_name,
            "sectionName": listener.section,
        }),
        (_, "TLSRoute" | "TCPRoute" | "UDPRoute") => {
            json!({"group": group, "kind": rule.kind, "name": rule.name})
        }
        _ => {
            json!({"group": group, "kind": rule.kind, "name": rule.name, "sectionName": rule.section})
        }
    }
}

/// `none`, `unknown`, `fails closed`, or the strategy with `alone` or `merged`.
pub fn answer_text(effective: &Effective) -> String {
    let Effective::Rules(policy, rules) = effective else {
        let text = match effective {
            Effective::None => "none",
            Effective::FailsClosed => "fails closed",
            _ => "unknown",
        };
        return text.to_owned();
    };
    let names: BTreeSet<(&str, &str)> = (policy.origins.iter())
        .flat_map(|origin| &origin.policies)
        .map(|policy| (policy.namespace.as_str(), policy.name.as_str()))
        .collect();
    let shared = if names.len() > 1 { "merged" } else { "alone" };
    let empty = if rules.as_object().is_some_and(Map::is_empty) {
        " empty"
    } else {
        ""
    };
    format!("{} {shared}{empty}", policy.strategy)
}

/// Whether requests pass where a field of an answer cannot be applied.
pub fn fails_open(effective: &Effective, unit: &[String]) -> bool {
    let Effective::Rules(_, rules) = effective else {
        return false;
    };
    let field = unit.first().and_then(|name| rules.get(name));
    field.is_some_and(|field| field.to_string().contains("\"failOpen\":true"))
}

/// Whether entail says of an answer that it is not known whether the objects exist that it references.
pub fn is_unchecked(effective: &Effective) -> bool {
    let Effective::Rules(policy, _) = effective else {
        return false;
    };
    let unknown = policy.unknown.as_ref();
    unknown.is_some_and(|unknown| unknown.reason == UnknownReason::ReferenceNotChecked.as_str())
}

/// Whether two rules have the same values, whoever they come from.
pub fn same_rules(
    one: &BTreeMap<&'static str, Effective>,
    other: &BTreeMap<&'static str, Effective>,
) -> bool {
    let rules = |effective: &Effective| match effective {
        Effective::Rules(policy, rules) => Some((rules.clone(), policy.origins.clone())),
        _ => None,
    };
    one.len() == other.len()
        && one
            .iter()
            .zip(other)
            .all(|((a, first), (b, second))| a == b && rules(first) == rules(second))
}

/// The fields of an answer that are left out one by one: those at the top, and each timeout.
pub fn units(effective: &Effective) -> Vec<Vec<String>> {
    let Effective::Rules(_, rules) = effective else {
        return Vec::new();
    };
    let mut units = Vec::new();
    for (field, value) in rules.as_object().into_iter().flatten() {
        if field != "timeout" {
            units.push(vec![field.clone()]);
            continue;
        }
        for (protocol, timeouts) in value.as_object().into_iter().flatten() {
            for name in timeouts
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, _)| name)
            {
                units.push(vec![field.clone(), protocol.clone(), name.clone()]);
            }
        }
    }
    units
}

/// The policy that gives an answer back, if there is one.
pub fn policy(
    kind: &str,
    effective: &Effective,
    left_out: Option<usize>,
    namespace: &str,
    number: usize,
    target: Value,
    grants: &mut references::Needed,
) -> Option<Value> {
    let Effective::Rules(origins, rules) = effective else {
        return None;
    };
    let mut spec = rules.clone();
    references::fill(&mut spec, kind, namespace, &origins.origins, grants);
    if let Some(unit) = left_out.and_then(|index| units(effective).into_iter().nth(index))
        && let Some(spec) = spec.as_object_mut()
    {
        parts::remove(spec, &unit);
    }
    spec["targetRefs"] = json!([target]);
    Some(json!({
        "apiVersion": "gateway.envoyproxy.io/v1alpha1", "kind": kind,
        "metadata": {"name": format!("replay-{number}"), "namespace": namespace}, "spec": spec,
    }))
}

/// The beginning of the values of a field, for examples.
pub fn short(values: Option<&Vec<Value>>) -> String {
    let text = values.map_or_else(|| "nothing".to_owned(), |values| json!(values).to_string());
    text.chars().take(400).collect()
}

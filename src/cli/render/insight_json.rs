//! Converts messages of PolicyInsightService to documents, by the rules of
//! [`proto_json`](super::proto_json).

use super::document::Document;
use super::parameters_text;
use super::proto_json::{exact, kinds, origin, policy, reference, rejected, version};
use crate::api::v1;
use entail_client::EnumName;

/// Converts policy statuses, for `status`.
pub(in crate::cli) fn statuses(
    snapshot: Option<&v1::Version>,
    states: &[v1::KindState],
    policies: &[v1::PolicyStatus],
    parameters: &[v1::UnreadParameters],
) -> Document {
    with_header(
        snapshot,
        states,
        [
            ("unreadParameters", parameters_text::document(parameters)),
            ("policies", Document::list(policies, status)),
        ],
    )
}

/// Converts the paths and objects that a policy affects, for `reach`.
pub(in crate::cli) fn reach(
    reply: &v1::ListAffectedResponse,
    states: &[v1::KindState],
) -> Document {
    with_header(
        reply.version.as_ref(),
        states,
        [
            ("truncated", Document::Bool(reply.truncated)),
            ("status", Document::optional(reply.status.as_ref(), status)),
            ("objects", Document::texts(&reply.objects)),
            (
                "paths",
                Document::list(&reply.paths, |path| {
                    Document::map([
                        ("path", Document::text(&path.path)),
                        ("effectiveUnits", Document::texts(&path.effective_units)),
                        ("overriddenUnits", Document::texts(&path.overridden_units)),
                    ])
                }),
            ),
        ],
    )
}

/// Converts the routing result of a request, for `resolve`.
pub(in crate::cli) fn resolved(
    reply: &v1::ResolveRequestResponse,
    states: &[v1::KindState],
) -> Document {
    let backend = |backend: &v1::ResolvedBackend| {
        Document::map([
            ("path", Document::text(&backend.path)),
            ("backend", Document::text(&backend.backend)),
            ("weight", number(backend.weight)),
            ("reason", Document::text(&backend.reason)),
            ("policies", Document::list(&backend.policies, policy)),
        ])
    };
    let resolved = |resolved: &v1::ResolvedRequest| {
        let policies = resolved.policies.as_ref();
        let policies = policies.map_or(&[][..], |policies| &policies.policies);
        Document::map([
            ("path", Document::text(&resolved.path)),
            ("port", number(resolved.port)),
            ("ruleIndex", number(resolved.rule_index)),
            (
                "matchIndex",
                Document::optional(resolved.match_index, number),
            ),
            ("matched", Document::text(&resolved.matched)),
            ("policies", Document::list(policies, policy)),
            ("backends", Document::list(&resolved.backends, backend)),
            ("dialect", Document::text(&resolved.dialect)),
            ("refusal", Document::text(&resolved.refusal)),
        ])
    };
    let near = |near: &v1::NearMiss| {
        Document::map([
            ("route", Document::text(&near.route)),
            ("ruleIndex", number(near.rule_index)),
            ("missing", Document::texts(&near.missing)),
        ])
    };
    let unresolved = |unresolved: &v1::UnresolvedRequest| {
        Document::map([
            ("path", Document::text(&unresolved.path)),
            ("reason", Document::text(&unresolved.reason)),
            ("message", Document::text(&unresolved.message)),
            ("nearMisses", Document::list(&unresolved.near_misses, near)),
            ("dialect", Document::text(&unresolved.dialect)),
            ("refusal", Document::text(&unresolved.refusal)),
        ])
    };
    with_header(
        reply.version.as_ref(),
        states,
        [
            (
                "unreadParameters",
                parameters_text::document(&reply.unread_parameters),
            ),
            ("resolved", Document::list(&reply.resolved, resolved)),
            ("unresolved", Document::list(&reply.unresolved, unresolved)),
            ("whyNot", Document::list(&reply.why_not, rule_miss)),
        ],
    )
}

fn rule_miss(miss: &v1::RuleMiss) -> Document {
    Document::map([
        ("route", Document::text(&miss.route)),
        ("ruleIndex", number(miss.rule_index)),
        ("ruleName", Document::text(&miss.rule_name)),
        ("path", Document::text(&miss.path)),
        ("reason", Document::text(&miss.reason)),
        ("details", Document::texts(&miss.details)),
    ])
}

/// Converts findings, and the number of those that were left out, for `lint`.
pub(in crate::cli) fn findings(
    snapshot: Option<&v1::Version>,
    findings: &[&v1::Finding],
    ignored: usize,
    states: &[v1::KindState],
) -> Document {
    let finding = |finding: &&v1::Finding| {
        Document::map([
            ("code", Document::text(&finding.code)),
            ("severity", Document::text(finding.severity().name())),
            ("reason", Document::text(&finding.reason)),
            ("location", Document::text(&finding.location)),
            ("object", Document::text(&finding.object)),
            ("message", Document::text(&finding.message)),
            ("count", long_number(finding.count)),
            ("places", Document::texts(&finding.places)),
        ])
    };
    let ignored = u32::try_from(ignored).unwrap_or(u32::MAX);
    with_header(
        snapshot,
        states,
        [
            ("findings", Document::list(findings, finding)),
            ("ignored", number(ignored)),
        ],
    )
}

/// Converts the effect of a change, for `diff` and `preview`. The version is null for `diff`, which
/// has two snapshots.
pub(in crate::cli) fn changes(
    reply: &v1::PreviewChangeResponse,
    states: &[v1::KindState],
) -> Document {
    with_header(
        reply.version.as_ref(),
        states,
        [
            ("truncated", Document::Bool(reply.truncated)),
            ("losesValues", Document::Bool(reply.loses_values)),
            ("changes", Document::list(&reply.changes, change)),
            ("pathsAdded", Document::texts(&reply.paths_added)),
            ("pathsRemoved", Document::texts(&reply.paths_removed)),
            (
                "problems",
                Document::list(&reply.problems, |problem| {
                    Document::text_fields([
                        ("location", &problem.location),
                        ("message", &problem.message),
                    ])
                }),
            ),
            ("warnings", Document::texts(&reply.warnings)),
        ],
    )
}

/// Converts the topology, for `topology`.
pub(in crate::cli) fn topology(
    reply: &v1::GetTopologyResponse,
    states: &[v1::KindState],
) -> Document {
    let policy = |policy: &v1::TopologyPolicy| {
        Document::map([
            ("kind", Document::text(&policy.kind)),
            ("policy", reference(policy.policy.as_ref())),
            ("accepted", Document::Bool(policy.accepted)),
        ])
    };
    let nodes = Document::list(&reply.nodes, |node| {
        Document::map([
            ("id", number(node.id)),
            ("name", Document::text(&node.name)),
            ("level", Document::text(&node.level)),
            ("policies", Document::list(&node.policies, policy)),
        ])
    });
    let edges = Document::list(&reply.edges, |edge| {
        Document::map([("from", number(edge.from)), ("to", number(edge.to))])
    });
    with_header(
        reply.version.as_ref(),
        states,
        [("nodes", nodes), ("edges", edges)],
    )
}

/// Puts the version and the incomplete kinds before the fields of an answer.
pub(in crate::cli) fn with_header<const N: usize>(
    snapshot: Option<&v1::Version>,
    states: &[v1::KindState],
    fields: [(&'static str, Document); N],
) -> Document {
    let head = [
        ("version", Document::optional(snapshot, version)),
        ("kinds", kinds(states)),
    ];
    let all = head.into_iter().chain(fields);
    Document::Map(all.map(|(name, value)| (name.into(), value)).collect())
}

fn status(status: &v1::PolicyStatus) -> Document {
    Document::map([
        ("kind", Document::text(&status.kind)),
        ("policy", reference(status.policy.as_ref())),
        (
            "conditions",
            Document::list(&status.conditions, |condition| {
                Document::text_fields([
                    ("type", &condition.r#type),
                    ("status", &condition.status),
                    ("reason", &condition.reason),
                    ("message", &condition.message),
                ])
            }),
        ),
        ("inForce", Document::text(&status.in_force)),
        (
            "overriddenBy",
            Document::list(&status.overridden_by, |policy| reference(Some(policy))),
        ),
        ("ancestors", Document::texts(&status.ancestors)),
        (
            "references",
            Document::list(&status.references, |outcome| {
                Document::map([
                    ("field", Document::text(&outcome.field)),
                    ("outcome", Document::text(&outcome.outcome)),
                    ("message", Document::text(&outcome.message)),
                    ("nodes", Document::texts(&outcome.nodes)),
                ])
            }),
        ),
        ("paths", long_number(status.paths)),
        ("overriddenPaths", long_number(status.overridden_paths)),
        ("overriddenUnits", Document::texts(&status.overridden_units)),
        ("warnings", Document::texts(&status.warnings)),
    ])
}

fn change(change: &v1::ChangedAnswer) -> Document {
    let origin_of = |source: &Option<v1::Origin>| Document::optional(source.as_ref(), origin);
    Document::map([
        ("kind", Document::text(&change.kind)),
        ("paths", Document::texts(&change.paths)),
        (
            "units",
            Document::list(&change.units, |unit| {
                Document::map([
                    ("unit", Document::text(&unit.unit)),
                    ("before", exact(unit.before_json.as_deref())),
                    ("after", exact(unit.after_json.as_deref())),
                    ("beforeOrigin", origin_of(&unit.before_origin)),
                    ("afterOrigin", origin_of(&unit.after_origin)),
                ])
            }),
        ),
        (
            "newlyRejected",
            Document::list(&change.newly_rejected, rejected),
        ),
    ])
}

fn number(number: u32) -> Document {
    number.into()
}

/// Converts a 64-bit number, which is a string in protobuf JSON.
pub(in crate::cli) fn long_number(number: u64) -> Document {
    Document::Text(number.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::json::compact;
    use super::*;

    #[test]
    fn an_empty_answer_has_every_field() {
        assert_eq!(
            compact(&changes(&v1::PreviewChangeResponse::default(), &[])),
            "{\"version\": null, \"kinds\": [], \"truncated\": false, \"losesValues\": false, \
             \"changes\": [], \"pathsAdded\": [], \"pathsRemoved\": [], \"problems\": [], \
             \"warnings\": []}"
        );
        assert_eq!(
            compact(&status(&v1::PolicyStatus::default())),
            "{\"kind\": \"\", \"policy\": null, \"conditions\": [], \"inForce\": \"\", \
             \"overriddenBy\": [], \"ancestors\": [], \"references\": [], \"paths\": \"0\", \
             \"overriddenPaths\": \"0\", \"overriddenUnits\": [], \"warnings\": []}"
        );
        let unit = change(&v1::ChangedAnswer {
            units: vec![v1::ChangedUnit {
                before_json: Some("1.50".to_owned()),
                ..v1::ChangedUnit::default()
            }],
            ..v1::ChangedAnswer::default()
        });
        assert!(compact(&unit).contains(
            "{\"unit\": \"\", \"before\": 1.50, \"after\": null, \"beforeOrigin\": null, \
             \"afterOrigin\": null}"
        ));
    }
}

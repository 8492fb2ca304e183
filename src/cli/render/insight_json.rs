//! From messages to documents, for `status`, `reach`, `lint`, `diff`, `preview` and `topology`.
//! As in [`proto_json`]: names of protobuf JSON, all fields, exact JSON.

use super::document::Document;
use super::proto_json::{exact, kinds, origin, policy, reference, rejected, version};
use crate::api::v1;

/// Policies with their statuses.
pub(in crate::cli) fn statuses(
    known: Option<&v1::Version>,
    states: &[v1::KindState],
    policies: &[v1::PolicyStatus],
) -> Document {
    with_header(
        known,
        states,
        [("policies", Document::list(policies, status))],
    )
}

/// Where a policy reaches.
pub(in crate::cli) fn reach(
    reply: &v1::ListAffectedResponse,
    states: &[v1::KindState],
) -> Document {
    with_header(
        reply.version.as_ref(),
        states,
        [
            ("truncated", Document::Bool(reply.truncated)),
            (
                "status",
                reply.status.as_ref().map_or(Document::Null, status),
            ),
            ("objects", texts(&reply.objects)),
            (
                "paths",
                Document::list(&reply.paths, |path| {
                    Document::map([
                        ("path", Document::text(&path.path)),
                        ("won", texts(&path.won)),
                        ("lost", texts(&path.lost)),
                    ])
                }),
            ),
        ],
    )
}

/// What became of a request.
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
        ])
    };
    let taken = |taken: &v1::ResolvedRequest| {
        let policies = taken
            .policies
            .as_ref()
            .map(|policies| &policies.policies[..]);
        Document::map([
            ("path", Document::text(&taken.path)),
            ("port", number(taken.port)),
            ("ruleIndex", number(taken.rule_index)),
            (
                "matchIndex",
                taken.match_index.map_or(Document::Null, number),
            ),
            ("matched", Document::text(&taken.matched)),
            (
                "policies",
                Document::list(policies.unwrap_or_default(), policy),
            ),
            ("backends", Document::list(&taken.backends, backend)),
        ])
    };
    let near = |near: &v1::NearMiss| {
        Document::map([
            ("route", Document::text(&near.route)),
            ("ruleIndex", number(near.rule_index)),
            ("lacks", texts(&near.lacks)),
        ])
    };
    let not_taken = |not: &v1::UnresolvedRequest| {
        Document::map([
            ("path", Document::text(&not.path)),
            ("reason", Document::text(&not.reason)),
            ("message", Document::text(&not.message)),
            ("nearest", Document::list(&not.nearest, near)),
        ])
    };
    with_header(
        reply.version.as_ref(),
        states,
        [
            ("resolved", Document::list(&reply.resolved, taken)),
            ("unresolved", Document::list(&reply.unresolved, not_taken)),
        ],
    )
}

/// What is worth a look.
pub(in crate::cli) fn findings(
    reply: &v1::ListFindingsResponse,
    states: &[v1::KindState],
) -> Document {
    let finding = |finding: &v1::Finding| {
        Document::map([
            ("severity", Document::text(finding.severity().as_str_name())),
            ("reason", Document::text(&finding.reason)),
            ("place", Document::text(&finding.place)),
            ("object", Document::text(&finding.object)),
            ("message", Document::text(&finding.message)),
        ])
    };
    with_header(
        reply.version.as_ref(),
        states,
        [("findings", Document::list(&reply.findings, finding))],
    )
}

/// What changes. Two sets of files have no version in common: then it is null.
pub(in crate::cli) fn changes(
    reply: &v1::PreviewChangeResponse,
    states: &[v1::KindState],
) -> Document {
    with_header(
        reply.version.as_ref(),
        states,
        [
            ("truncated", Document::Bool(reply.truncated)),
            ("loses", Document::Bool(reply.loses)),
            ("changes", Document::list(&reply.changes, change)),
            ("pathsAdded", texts(&reply.paths_added)),
            ("pathsRemoved", texts(&reply.paths_removed)),
            (
                "problems",
                Document::list(&reply.problems, |problem| {
                    Document::map([
                        ("place", Document::text(&problem.place)),
                        ("message", Document::text(&problem.message)),
                    ])
                }),
            ),
        ],
    )
}

/// The topology.
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

/// An answer behind its version and what is not known.
fn with_header<const N: usize>(
    known: Option<&v1::Version>,
    states: &[v1::KindState],
    fields: [(&str, Document); N],
) -> Document {
    let head = [
        ("version", known.map_or(Document::Null, version)),
        ("kinds", kinds(states)),
    ];
    let all = head.into_iter().chain(fields);
    Document::Map(all.map(|(name, value)| (name.to_owned(), value)).collect())
}

fn status(status: &v1::PolicyStatus) -> Document {
    Document::map([
        ("kind", Document::text(&status.kind)),
        ("policy", reference(status.policy.as_ref())),
        (
            "conditions",
            Document::list(&status.conditions, |condition| {
                Document::map([
                    ("type", Document::text(&condition.r#type)),
                    ("status", Document::text(&condition.status)),
                    ("reason", Document::text(&condition.reason)),
                    ("message", Document::text(&condition.message)),
                ])
            }),
        ),
        ("inForce", Document::text(&status.in_force)),
        (
            "overriddenBy",
            Document::list(&status.overridden_by, |policy| reference(Some(policy))),
        ),
        ("ancestors", texts(&status.ancestors)),
        (
            "references",
            Document::list(&status.references, |outcome| {
                Document::map([
                    ("place", Document::text(&outcome.place)),
                    ("outcome", Document::text(&outcome.outcome)),
                    ("message", Document::text(&outcome.message)),
                    ("nodes", texts(&outcome.nodes)),
                ])
            }),
        ),
        // 64-bit numbers are strings in protobuf JSON.
        ("scopes", Document::Text(status.scopes.to_string())),
        ("scopesLost", Document::Text(status.scopes_lost.to_string())),
        ("lostUnits", texts(&status.lost_units)),
        ("warnings", texts(&status.warnings)),
    ])
}

fn change(change: &v1::ChangedAnswer) -> Document {
    let said = |who: Option<&v1::Origin>| who.map_or(Document::Null, origin);
    Document::map([
        ("kind", Document::text(&change.kind)),
        ("paths", texts(&change.paths)),
        (
            "units",
            Document::list(&change.units, |unit| {
                Document::map([
                    ("unit", Document::text(&unit.unit)),
                    ("before", exact(unit.before_json.as_deref())),
                    ("after", exact(unit.after_json.as_deref())),
                    ("beforeOrigin", said(unit.before_origin.as_ref())),
                    ("afterOrigin", said(unit.after_origin.as_ref())),
                ])
            }),
        ),
        (
            "newlyRejected",
            Document::list(&change.newly_rejected, rejected),
        ),
    ])
}

fn texts(texts: &[String]) -> Document {
    Document::list(texts, |text| Document::text(text))
}

fn number(number: u32) -> Document {
    number.into()
}

#[cfg(test)]
mod tests {
    use super::super::json::compact;
    use super::*;

    #[test]
    fn an_empty_answer_has_all_its_fields() {
        assert_eq!(
            compact(&changes(&v1::PreviewChangeResponse::default(), &[])),
            "{\"version\": null, \"kinds\": [], \"truncated\": false, \"loses\": false, \
             \"changes\": [], \"pathsAdded\": [], \"pathsRemoved\": [], \"problems\": []}"
        );
        assert_eq!(
            compact(&status(&v1::PolicyStatus::default())),
            "{\"kind\": \"\", \"policy\": null, \"conditions\": [], \"inForce\": \"\", \
             \"overriddenBy\": [], \"ancestors\": [], \"references\": [], \"scopes\": \"0\", \
             \"scopesLost\": \"0\", \"lostUnits\": [], \"warnings\": []}"
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

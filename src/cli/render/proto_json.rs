//! Converts messages to documents: the JSON that `docs/api.md` describes.
//!
//! Field names are those of protobuf JSON. All fields are always present. Fields that contain JSON
//! text are embedded as JSON, with every digit of their numbers.

use super::document::Document;
use super::parameters_text;
use crate::api::v1;
use entail_client::EnumName;

/// Converts a version. Generations are strings, as 64-bit numbers are in protobuf JSON.
pub(in crate::cli) fn version(version: &v1::Version) -> Document {
    Document::map([
        ("epoch", Document::text(&version.epoch)),
        ("generation", Document::Text(version.generation.to_string())),
    ])
}

/// Converts the states of the kinds that are incomplete.
pub(in crate::cli) fn kinds(kinds: &[v1::KindState]) -> Document {
    Document::list(kinds, |kind| {
        Document::text_fields([
            ("kind", kind.kind.as_str()),
            ("state", kind.state().name()),
            ("reason", &kind.reason),
            ("message", &kind.message),
        ])
    })
}

/// Converts a path with its effective policies.
pub(in crate::cli) fn path(path: &str, policies: &[v1::EffectivePolicy]) -> Document {
    Document::map([
        ("path", Document::text(path)),
        ("policies", Document::list(policies, policy)),
    ])
}

/// Converts an effective policy.
pub(in crate::cli) fn policy(policy: &v1::EffectivePolicy) -> Document {
    Document::map([
        ("group", Document::text(&policy.group)),
        ("kind", Document::text(&policy.kind)),
        ("spec", exact(policy.spec_json.as_deref())),
        ("etag", Document::text(&policy.etag)),
        ("origins", Document::list(&policy.origins, origin)),
        ("listed", Document::list(&policy.listed, listed)),
        ("rejected", Document::list(&policy.rejected, rejected)),
        ("inheritedOnly", Document::Bool(policy.inherited_only)),
        ("notComputed", Document::text(&policy.not_computed)),
        (
            "unknown",
            policy.unknown.as_ref().map_or(Document::Null, unknown),
        ),
    ])
}

/// Converts what a policy does not know.
fn unknown(unknown: &v1::Unknown) -> Document {
    Document::map([
        ("reason", Document::text(&unknown.reason)),
        ("message", Document::text(&unknown.message)),
        (
            "policies",
            Document::list(&unknown.policies, |policy| reference(Some(policy))),
        ),
    ])
}

/// Converts an explanation.
pub(in crate::cli) fn explanation(
    response: &v1::ExplainResponse,
    states: &[v1::KindState],
) -> Document {
    let response_version = response.version.clone().unwrap_or_default();
    Document::map([
        ("version", version(&response_version)),
        ("kinds", kinds(states)),
        ("truncated", Document::Bool(response.truncated)),
        (
            "unreadParameters",
            parameters_text::document(&response.unread_parameters),
        ),
        (
            "paths",
            Document::list(&response.paths, |path| {
                Document::map([
                    ("paths", Document::texts(&path.paths)),
                    ("kinds", Document::list(&path.kinds, kind)),
                ])
            }),
        ),
    ])
}

fn kind(kind: &v1::KindExplanation) -> Document {
    Document::map([
        ("policy", Document::optional(kind.policy.as_ref(), policy)),
        ("nodes", Document::list(&kind.nodes, node)),
        ("units", Document::list(&kind.units, unit)),
        ("lostUnits", Document::texts(&kind.lost_units)),
    ])
}

fn node(node: &v1::AttachedNode) -> Document {
    Document::map([
        ("node", Document::text(&node.node)),
        ("level", Document::text(&node.level)),
        (
            "precedesChildRoutes",
            Document::Bool(node.precedes_child_routes),
        ),
        (
            "policies",
            Document::list(&node.policies, |attached| {
                let created = attached.created.as_ref();
                let created = Document::optional(created, |t| Document::Text(t.to_string()));
                Document::map([
                    ("policy", reference(attached.policy.as_ref())),
                    ("blocks", Document::texts(&attached.blocks)),
                    ("created", created),
                ])
            }),
        ),
    ])
}

fn unit(unit: &v1::UnitExplanation) -> Document {
    Document::map([
        ("unit", Document::text(&unit.unit)),
        ("value", exact(unit.value_json.as_deref())),
        ("origin", Document::optional(unit.origin.as_ref(), origin)),
        ("strategy", Document::text(&unit.strategy)),
        (
            "overridden",
            Document::list(&unit.overridden, |overridden| {
                Document::map([
                    ("policy", reference(overridden.policy.as_ref())),
                    ("block", Document::text(overridden.block().name())),
                    ("unit", Document::text(&overridden.unit)),
                    ("value", Document::exact(&overridden.value_json)),
                    ("reason", Document::text(&overridden.reason)),
                ])
            }),
        ),
    ])
}

/// Converts the origin of a unit.
pub(in crate::cli) fn origin(origin: &v1::Origin) -> Document {
    Document::map([
        ("unit", Document::text(&origin.unit)),
        (
            "policies",
            Document::list(&origin.policies, |policy| reference(Some(policy))),
        ),
        ("object", Document::text(&origin.object)),
        ("block", Document::text(origin.block().name())),
    ])
}

fn listed(listed: &v1::ListedPolicy) -> Document {
    Document::map([
        ("policy", reference(listed.policy.as_ref())),
        ("node", Document::text(&listed.node)),
        ("spec", Document::exact(&listed.spec_json)),
    ])
}

/// Converts a policy that is attached but not accepted.
pub(in crate::cli) fn rejected(rejected: &v1::RejectedPolicy) -> Document {
    Document::map([
        ("policy", reference(rejected.policy.as_ref())),
        ("reason", Document::text(&rejected.reason)),
        ("message", Document::text(&rejected.message)),
    ])
}

/// Converts the name of a policy; null if there is none.
pub(in crate::cli) fn reference(policy: Option<&v1::PolicyRef>) -> Document {
    Document::optional(policy, |policy| {
        Document::text_fields([("namespace", &policy.namespace), ("name", &policy.name)])
    })
}

/// Embeds JSON text without changing it; null if there is none.
pub(in crate::cli) fn exact(json: Option<&str>) -> Document {
    Document::optional(json, Document::exact)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn every_field_is_present() {
        let message = v1::EffectivePolicy {
            group: "g".to_owned(),
            kind: "K".to_owned(),
            spec_json: Some("{\"n\":1.10}".to_owned()),
            origins: vec![v1::Origin {
                unit: "n".to_owned(),
                policies: vec![v1::PolicyRef {
                    namespace: "a".to_owned(),
                    name: "b".to_owned(),
                }],
                block: v1::Block::Defaults.into(),
                ..v1::Origin::default()
            }],
            ..v1::EffectivePolicy::default()
        };
        let mut out = Vec::new();
        super::super::json::write(&mut out, &path("gateways/a/b", &[message]), 0).unwrap();
        let text = String::from_utf8(out).unwrap();
        // The number keeps its digits.
        assert!(text.contains("{\"n\":1.10}"), "{text}");
        assert_eq!(
            serde_json::from_str::<Value>(&text.replace("1.10", "1")).unwrap(),
            json!({"path": "gateways/a/b", "policies": [{
                "group": "g", "kind": "K", "spec": {"n": 1}, "etag": "",
                "origins": [{
                    "unit": "n", "policies": [{"namespace": "a", "name": "b"}],
                    "object": "", "block": "DEFAULTS",
                }],
                "listed": [], "rejected": [], "inheritedOnly": false, "notComputed": "",
                "unknown": null,
            }]})
        );
        let empty = policy(&v1::EffectivePolicy::default());
        assert!(matches!(empty, Document::Map(fields) if fields.len() == 10));
    }

    #[test]
    fn versions_and_states_are_written_as_in_protobuf_json() {
        let found = version(&v1::Version {
            epoch: "e".to_owned(),
            generation: u64::MAX,
        });
        assert_eq!(
            super::super::json::compact(&found),
            "{\"epoch\": \"e\", \"generation\": \"18446744073709551615\"}"
        );
        let states = kinds(&[v1::KindState {
            kind: "K.g".to_owned(),
            state: v1::kind_state::State::Unknown.into(),
            reason: "NoProfile".to_owned(),
            message: "m".to_owned(),
        }]);
        assert_eq!(
            super::super::json::compact(&states),
            "[{\"kind\": \"K.g\", \"state\": \"UNKNOWN\", \"reason\": \"NoProfile\", \"message\": \"m\"}]"
        );
    }
}

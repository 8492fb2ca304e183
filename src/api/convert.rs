//! Conversions from model types to protobuf messages.

use prost::Message;

use super::etag::etag;
use super::v1;
use entail_core::model::{
    BlockName, EffectivePolicy, GroupKind, Origin, PolicyRef, Timestamp, Unknown,
};

/// Converts an effective policy, and computes its etags. Fields are in a fixed order and there are
/// no maps, so equal policies have equal bytes.
pub fn effective_policy(kind: &GroupKind, effective: &EffectivePolicy) -> v1::EffectivePolicy {
    let spec_json = effective.spec.as_ref().map(ToString::to_string);
    let mut message = effective_policy_without_etag(kind, effective, spec_json);
    message.etag = etag(&message.encode_to_vec());
    message
}

/// Converts an effective policy whose spec is serialized already: compact JSON with sorted keys. Its etag, which is the
/// hash of the returned message, is empty.
pub fn effective_policy_without_etag(
    kind: &GroupKind,
    effective: &EffectivePolicy,
    spec_json: Option<String>,
) -> v1::EffectivePolicy {
    v1::EffectivePolicy {
        group: kind.group.to_string(),
        kind: kind.kind.to_string(),
        spec_etag: spec_json
            .as_deref()
            .map(|s| etag(s.as_bytes()))
            .unwrap_or_default(),
        spec_json,
        etag: String::new(),
        origins: effective.origins.iter().map(origin).collect(),
        strategy: effective
            .strategy
            .map(|s| s.to_string())
            .unwrap_or_default(),
        listed: effective
            .listed
            .iter()
            .map(|listed| v1::ListedPolicy {
                policy: Some(policy_ref(&listed.policy)),
                node: listed.node.clone(),
                spec_json: listed.spec.to_string(),
            })
            .collect(),
        rejected: effective
            .rejected
            .iter()
            .map(|rejected| v1::RejectedPolicy {
                policy: Some(policy_ref(&rejected.policy)),
                reason: rejected.reason.clone(),
                message: rejected.message.clone(),
            })
            .collect(),
        inherited_only: effective.inherited_only,
        not_computed: effective.not_computed.clone().unwrap_or_default(),
        unknown: effective.unknown.as_ref().map(unknown),
    }
}

/// Converts what an effective policy does not know.
fn unknown(unknown: &Unknown) -> v1::Unknown {
    v1::Unknown {
        reason: unknown.reason.as_str().to_owned(),
        message: unknown.message.clone(),
        policies: unknown.policies.iter().map(policy_ref).collect(),
    }
}

/// Creates the state of a kind, given as `Kind.group`, that is unknown on some path for a reason.
pub fn unknown_state(kind: String, reason: &str, message: &str) -> v1::KindState {
    v1::KindState {
        kind,
        state: v1::kind_state::State::Unknown.into(),
        reason: reason.to_owned(),
        message: message.to_owned(),
    }
}

/// Converts the origin of a unit.
pub fn origin(origin: &Origin) -> v1::Origin {
    v1::Origin {
        unit: origin.unit.text(),
        policies: origin.policies.iter().map(policy_ref).collect(),
        object: origin
            .object
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        block: block(origin.block).into(),
    }
}

/// Converts a reference to a policy.
pub fn policy_ref(policy: &PolicyRef) -> v1::PolicyRef {
    v1::PolicyRef {
        namespace: policy.namespace.to_string(),
        name: policy.name.to_string(),
    }
}

/// Converts the name of a block.
pub fn block(block: BlockName) -> v1::Block {
    match block {
        BlockName::Bare => v1::Block::ImplicitDefaults,
        BlockName::Defaults => v1::Block::Defaults,
        BlockName::Overrides => v1::Block::Overrides,
        BlockName::OwnFields => v1::Block::OwnFields,
    }
}

/// Converts a time in whole seconds.
pub fn timestamp(time: Timestamp) -> prost_types::Timestamp {
    prost_types::Timestamp {
        seconds: time.seconds(),
        nanos: 0,
    }
}

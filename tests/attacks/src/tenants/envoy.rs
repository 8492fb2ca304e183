//! A large policy behind Envoy's checks, each of which carries it as metadata.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::{GATEWAY, limit_policy, route, write};
use crate::run::{Attack, Outcome};
use crate::target::Target;
use crate::wire;

/// The attacks of this family.
pub const ATTACKS: &[Attack] = &[("m-envoy-large-policy", |target| {
    Box::pin(large_policy(target))
})];

/// The part of `envoy.service.auth.v3.CheckRequest` that is needed.
#[derive(Clone, PartialEq, prost::Message)]
struct CheckRequest {
    #[prost(message, optional, tag = "1")]
    attributes: Option<Attributes>,
}

/// The part of `AttributeContext` that is needed.
#[derive(Clone, PartialEq, prost::Message)]
struct Attributes {
    #[prost(btree_map = "string, string", tag = "10")]
    context_extensions: BTreeMap<String, String>,
}

async fn large_policy(target: Arc<Target>) -> Outcome {
    let values = "{a: 1},".repeat(300_000 / 7);
    let block = format!("defaults: {{strategy: merge, limits: {{l: {{values: [{values}]}}}}}}");
    let text = [
        GATEWAY.to_owned(),
        route("large", "[{}]"),
        limit_policy("large", "HTTPRoute", "large", &block),
    ];
    let note = write(&target, "large.yaml", &text.concat()).await?;
    let path = "gateways/hostile/own/listeners/http/routes/HTTPRoute/hostile/large/rules/#0";
    let request = CheckRequest {
        attributes: Some(Attributes {
            context_extensions: [("entail.path".to_owned(), path.to_owned())].into(),
        }),
    };
    let body = wire::message(&request);
    let checks = target
        .call_often(wire::CHECK, body, 200, Duration::from_secs(8))
        .await;
    Ok(format!("{note}; 200 checks: {checks}"))
}

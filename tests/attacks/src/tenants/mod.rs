//! Attacks by tenants: what one object may cost. Each attack writes a file of its own, and then an
//! ordinary policy is edited, whose new answer must arrive.

mod conditions;
mod envoy;
mod large;
mod preview;
mod routes;
mod unreadable;

use std::time::Duration;

use bytes::Bytes;

use crate::run::Attack;
use crate::target::Target;

/// All attacks of tenants.
pub const ATTACKS: &[&[Attack]] = &[
    unreadable::ATTACKS,
    routes::ATTACKS,
    conditions::ATTACKS,
    large::ATTACKS,
    envoy::ATTACKS,
    preview::ATTACKS,
];

/// How long one question may take before the caller gives up.
const QUESTION: Duration = Duration::from_secs(4);

/// Writes a file and edits the ordinary policy. Returns how the edit went, for the report.
///
/// # Errors
/// The new answer did not arrive.
async fn write(target: &Target, name: &str, text: &str) -> Result<String, String> {
    target.server.write(name, text);
    let arrival = target.edit_arrives_within(Duration::from_secs(10)).await?;
    Ok(format!(
        "{} KiB, the ordinary edit arrives after {arrival:.1?}",
        text.len() >> 10
    ))
}

/// Asks questions one after the other. Returns the outcome of each.
async fn ask(target: &Target, questions: &[(String, Bytes)]) -> String {
    let mut outcomes = Vec::new();
    for (method, body) in questions {
        let begin = tokio::time::Instant::now();
        let reply = target.call(method, body.clone(), QUESTION).await;
        let outcome = reply.map_or_else(|error| error, |reply| reply.outcome());
        let name = method.rsplit('/').next().unwrap_or_default();
        outcomes.push(format!("{name} {outcome} in {:.1?}", begin.elapsed()));
    }
    outcomes.join(", ")
}

/// A Gateway of the tenant with one HTTP listener, in the namespace `hostile`.
const GATEWAY: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: own, namespace: hostile}
spec:
  gatewayClassName: quiet
  listeners: [{name: http, port: 80, protocol: HTTP}]
";

/// A route of the tenant below its own Gateway.
fn route(name: &str, rules: &str) -> String {
    format!(
        "---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {{name: {name}, namespace: \
         hostile}}\nspec:\n  parentRefs: [{{name: own}}]\n  hostnames: [hostile.example]\n  rules: {rules}\n"
    )
}

/// A LimitPolicy of the tenant.
fn limit_policy(name: &str, kind: &str, target: &str, block: &str) -> String {
    format!(
        "---\napiVersion: quiet.example/v1\nkind: LimitPolicy\nmetadata: {{name: {name}, namespace: hostile}}\n\
         spec:\n  targetRef: {{group: gateway.networking.k8s.io, kind: {kind}, name: {target}}}\n  {block}\n"
    )
}

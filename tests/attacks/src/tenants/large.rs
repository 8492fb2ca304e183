//! Policies with very many rules, and questions about them.

use std::fmt::Write;
use std::sync::Arc;

use entail_client::v1;
use entail_client::v1::list_affected_request::Subject;

use super::{GATEWAY, ask, limit_policy, route, write};
use crate::run::{Attack, Outcome};
use crate::target::Target;
use crate::wire;

/// The attacks of this family.
pub const ATTACKS: &[Attack] = &[("k-many-limits", |target| Box::pin(many_limits(target)))];

/// The number of limits of a policy.
const LIMITS: usize = 20_000;

fn limits(letter: char) -> String {
    let mut text = String::from("defaults: {strategy: merge, limits: {");
    for number in 0..LIMITS {
        write!(text, "l{number}: {{{letter}: {number}}},").unwrap();
    }
    text + "}}"
}

async fn many_limits(target: Arc<Target>) -> Outcome {
    let text = [
        GATEWAY.to_owned(),
        route("many", "[{}, {matches: [{path: {value: /b}}]}]"),
        limit_policy("one", "HTTPRoute", "many", &limits('a')),
        limit_policy("two", "HTTPRoute", "many", &limits('b')),
        limit_policy("up", "Gateway", "own", &limits('c')),
    ];
    let note = write(&target, "limits.yaml", &text.concat()).await?;
    let explain = v1::ExplainRequest {
        name: "gateways/hostile/own/listeners/http/routes/HTTPRoute/hostile/many/rules/#0"
            .to_owned(),
        ..Default::default()
    };
    let affected = v1::ListAffectedRequest {
        subject: Some(Subject::Policy(
            "LimitPolicy.quiet.example/hostile/one".to_owned(),
        )),
        unit: String::new(),
        ..v1::ListAffectedRequest::default()
    };
    let questions = [
        (wire::insight("ListPolicies"), wire::bytes_of(&[])),
        (wire::insight("Explain"), wire::message(&explain)),
        (wire::insight("ListFindings"), wire::bytes_of(&[])),
        (wire::insight("ListAffected"), wire::message(&affected)),
    ];
    Ok(format!("{note}; {}", ask(&target, &questions).await))
}

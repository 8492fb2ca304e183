//! Routes that are costly: regular expressions, and very many paths.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use entail_client::v1;

use super::{GATEWAY, ask, route, write};
use crate::run::{Attack, Outcome};
use crate::target::Target;
use crate::wire;

/// The attacks of this family.
pub const ATTACKS: &[Attack] = &[
    ("i-regex-bombs", |target| {
        Box::pin(expressions(target, bomb))
    }),
    ("i-regex-medium", |target| {
        Box::pin(expressions(target, medium))
    }),
    ("l-tcp-routes", |target| Box::pin(tcp_routes(target))),
];

/// The bytes of a route.
const BYTES: usize = 320_000;

fn bomb(number: usize) -> String {
    format!("/{number}(a{{1,200}}){{1,100}}")
}

fn medium(number: usize) -> String {
    format!("/{number}/([a-z0-9-]{{1,40}}/){{1,8}}[a-z]+")
}

async fn expressions(target: Arc<Target>, expression: fn(usize) -> String) -> Outcome {
    let (mut rules, mut count) = (String::from("["), 0);
    while rules.len() < BYTES {
        rules.push_str("{matches: [");
        for _ in 0..64 {
            let value = expression(count);
            write!(
                rules,
                "{{path: {{type: RegularExpression, value: '{value}'}}}},"
            )
            .unwrap();
            count += 1;
        }
        rules.push_str("]},");
    }
    rules.push(']');
    let text = format!("{GATEWAY}{}", route("regular", &rules));
    let note = write(&target, "regular.yaml", &text).await?;
    let request = v1::ResolveRequestRequest {
        host: "hostile.example".to_owned(),
        path: format!("/1{}", "a".repeat(4_000)),
        ..Default::default()
    };
    let body = wire::message(&request);
    let first = ask(&target, &[(wire::RESOLVE.to_owned(), body.clone())]).await;
    let more = target
        .call_often(wire::RESOLVE, body, 20, Duration::from_secs(6))
        .await;
    Ok(format!(
        "{count} expressions, {note}; {first}; 20 at once: {more}"
    ))
}

async fn tcp_routes(target: Arc<Target>) -> Outcome {
    let mut text = String::from(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: tcp, namespace: hostile}\nspec:\n  \
         gatewayClassName: quiet\n  listeners:\n",
    );
    for listener in 0..64 {
        writeln!(
            text,
            "  - {{name: l{listener}, port: {}, protocol: TCP}}",
            1_000 + listener
        )
        .unwrap();
    }
    for number in 0..600 {
        write!(
            text,
            "---\napiVersion: gateway.networking.k8s.io/v1alpha2\nkind: TCPRoute\nmetadata: {{name: t{number}, \
             namespace: hostile}}\nspec: {{parentRefs: [{{name: tcp}}], rules: [{{backendRefs: [{{name: s, port: 80}}]}}]}}\n"
        )
        .unwrap();
    }
    let note = write(&target, "tcp.yaml", &text).await?;
    let findings = (wire::insight("ListFindings"), wire::bytes_of(&[]));
    Ok(format!("{note}; {}", ask(&target, &[findings]).await))
}

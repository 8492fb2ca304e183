//! Ordinary questions to the webhook and to the console, and reviews of any object.

use std::time::Duration;

use bytes::Bytes;
use entail_client::v1;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::http1::{Endpoint, HOME, Response, exchange, post};
use crate::server::Server;
use crate::target::look_up;
use crate::wire;
use crate::world;

/// How long the webhook and the console may take to serve again after an attack.
const AGAIN: Duration = Duration::from_secs(5);

/// A request with a review.
pub fn posted(operation: &str, object: &Value) -> Bytes {
    let review = review("705", operation, object).to_string();
    posted_text(review.as_bytes())
}

/// A request with the text of a review, whatever it is. API servers add their time limit like this.
pub fn posted_text(text: &[u8]) -> Bytes {
    post(
        "/admit?timeout=2s",
        "content-type: application/json\r\n",
        text,
    )
    .into()
}

/// A review of a change.
pub fn review(uid: &str, operation: &str, object: &Value) -> Value {
    let api_version = object["apiVersion"].as_str().unwrap();
    let (group, version) = api_version.split_once('/').unwrap();
    let metadata = &object["metadata"];
    let namespace = metadata["namespace"].as_str().unwrap_or_default();
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": uid, "kind": {"group": group, "version": version, "kind": object["kind"]},
        "operation": operation, "namespace": namespace, "name": metadata["name"],
        "object": object,
    }})
}

/// The policy of a route, with another value of its own: a change without a warning.
pub fn ordinary_change() -> Value {
    json!({
        "apiVersion": "quiet.example/v1", "kind": "RetryPolicy",
        "metadata": {"name": "p1", "namespace": "quiet"},
        "spec": {
            "targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "r1"}],
            "defaults": {"strategy": "merge", "attempts": 2, "codes": [500, 502, 503], "note": "n".repeat(200)},
        },
    })
}

/// The response to a review, in a few words.
pub fn outcome(response: &Response) -> String {
    let text = String::from_utf8_lossy(&response.body);
    if response.status != 200 {
        let text: String = text.trim().chars().take(60).collect();
        return format!("HTTP {} {text}", response.status);
    }
    for (part, name) in [
        ("not computed in time", "not computed in time"),
        ("not known", "effect not known"),
        ("warnings", "warned"),
    ] {
        if text.contains(part) {
            return name.to_owned();
        }
    }
    "no warning".to_owned()
}

/// Asks the webhook about an ordinary change; it need not compute the effect.
pub async fn is_answered(webhook: &Endpoint) -> Result<(), String> {
    let response = webhook
        .ask(HOME, &posted("UPDATE", &ordinary_change()))
        .await?;
    match response.status {
        200 => Ok(()),
        _ => Err(outcome(&response)),
    }
}

/// Calls a method by gRPC-web.
pub async fn grpc_web(
    console: &Endpoint,
    from: u8,
    method: &str,
    message: &[u8],
) -> Result<Response, String> {
    let headers = "content-type: application/grpc-web+proto\r\n";
    console.ask(from, &post(method, headers, message)).await
}

/// Looks up a path at the console.
pub async fn look_up_by_grpc_web(console: &Endpoint) -> Result<(), String> {
    let body = look_up(&world::path(1, 0));
    is_ok(&grpc_web(console, HOME, wire::GET, &body).await?)
}

fn is_ok(response: &Response) -> Result<(), String> {
    let trailers = String::from_utf8_lossy(&response.body);
    let is_ok = trailers.contains("grpc-status:0") && response.status == 200;
    match is_ok {
        true => Ok(()),
        false => Err(status(response)),
    }
}

/// The status of a response by gRPC-web, in a few words.
pub fn status(response: &Response) -> String {
    let body = String::from_utf8_lossy(&response.body);
    let code = [&*response.head, &*body].into_iter().find_map(|text| {
        let code = text.split("grpc-status:").nth(1)?.trim_start();
        code.split(|c: char| !c.is_ascii_digit())
            .next()
            .map(str::to_owned)
    });
    match code {
        Some(code) => format!("status {code}"),
        None => format!("HTTP {}", response.status),
    }
}

/// Returns what does not serve within a while: the effect of an ordinary change is computed, and an ordinary question is
/// answered.
pub async fn still_served(server: &Server) -> Vec<String> {
    let effect = async || {
        let request = posted("UPDATE", &ordinary_change());
        let mut stream = server.webhook.connect(HOME).await?;
        match outcome(&exchange(&mut stream, &request).await?) {
            outcome if outcome == "no warning" => Ok(()),
            outcome => Err(outcome),
        }
    };
    let question = async || {
        let explain = wire::message(&v1::ExplainRequest {
            name: world::path(1, 0),
            ..Default::default()
        });
        let method = wire::insight("Explain");
        is_ok(&grpc_web(&server.console, HOME, &method, &explain).await?)
    };
    let (effect, question) = tokio::join!(again("webhook", effect), again("console", question));
    [effect, question]
        .into_iter()
        .filter_map(Result::err)
        .collect()
}

async fn again(name: &str, ask: impl AsyncFn() -> Result<(), String>) -> Result<(), String> {
    let begin = Instant::now();
    loop {
        let answer = timeout(AGAIN, ask()).await;
        let answer = answer.unwrap_or_else(|_| Err("no reply".to_owned()));
        match answer {
            Ok(()) => return Ok(()),
            Err(error) if begin.elapsed() > AGAIN => return Err(format!("the {name}: {error}")),
            Err(_) => sleep(Duration::from_millis(50)).await,
        }
    }
}

//! Attacks on the admission webhook by whoever reaches its address, and by tenants whose objects are reviewed.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use super::http1::{self, Drip};
use crate::reviews::{self, ordinary_change, posted, posted_text, review};
use crate::run::{Attack, Outcome};
use crate::target::Target;

/// The attacks of this family.
pub const ATTACKS: &[Attack] = &[
    ("o-silent", |target| {
        Box::pin(http1::silent(target.server.webhook.clone(), 3_000))
    }),
    ("o-slow-headers", |target| {
        let head = "POST /admit HTTP/1.1\r\nhost: localhost\r\nx-slow: ";
        Box::pin(drip(target, 300, head.to_owned()))
    }),
    ("o-slow-bodies", |target| {
        Box::pin(drip(target, 300, head(100 * 1024)))
    }),
    ("o-slow-large-bodies", |target| {
        Box::pin(drip(target, 16, head(8 << 20)))
    }),
    ("o-nearly-whole-bodies", |target| {
        Box::pin(nearly_whole(target))
    }),
    ("o-huge-headers", |target| {
        let first = "POST /admit HTTP/1.1\r\nhost: localhost\r\nx-large: ";
        Box::pin(endless(target, first.to_owned(), "v".repeat(16_000)))
    }),
    ("o-endless-chunks", |target| {
        let first = "POST /admit HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n";
        let part = format!("4000\r\n{}\r\n", " ".repeat(0x4000));
        Box::pin(endless(target, first.to_owned(), part))
    }),
    ("o-huge-bodies", |target| {
        Box::pin(endless(target, head(1 << 40), " ".repeat(1 << 16)))
    }),
    ("o-pipelined", |target| {
        let request = posted("UPDATE", &ordinary_change()).repeat(20);
        let webhook = target.server.webhook.clone();
        Box::pin(http1::pipelined(webhook, 16, request.into(), true))
    }),
    ("o-unread", |target| {
        let request = posted("UPDATE", &ordinary_change()).repeat(20);
        let webhook = target.server.webhook.clone();
        Box::pin(http1::pipelined(webhook, 200, request.into(), false))
    }),
    ("o-unread-large", |target| Box::pin(unread_large(target))),
    ("o-large-objects", |target| {
        Box::pin(flood(target, 16, large_objects()))
    }),
    ("o-deep-objects", |target| {
        Box::pin(flood(target, 16, deep_objects()))
    }),
    ("o-many-rules", |target| {
        Box::pin(flood(target, 16, many_rules()))
    }),
    ("o-hard-expressions", |target| {
        Box::pin(flood(target, 16, hard_expressions()))
    }),
    ("o-policy-of-all-paths", |target| {
        Box::pin(flood(target, 8, all_paths()))
    }),
    ("o-gateways", |target| {
        Box::pin(flood(target, 16, gateways()))
    }),
];

/// The headers of a review of some length.
fn head(length: u64) -> String {
    format!(
        "POST /admit?timeout=2s HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n"
    )
}

async fn drip(target: Arc<Target>, count: usize, first: String) -> Outcome {
    let drip = Drip {
        first: first.into(),
        next: Bytes::from_static(b" "),
        pause: Duration::from_secs(1),
    };
    http1::drip(target.server.webhook.clone(), count, drip).await
}

/// Sends all but the last bytes of reviews just below the size from which only a few are read at once.
async fn nearly_whole(target: Arc<Target>) -> Outcome {
    let first = head(128 * 1024) + &" ".repeat(127 * 1024);
    drip(target, 250, first).await
}

async fn endless(target: Arc<Target>, first: String, part: String) -> Outcome {
    let webhook = target.server.webhook.clone();
    http1::endless(webhook, 8, (first.into(), part.into())).await
}

async fn flood(target: Arc<Target>, connections: usize, requests: Vec<Bytes>) -> Outcome {
    let webhook = target.server.webhook.clone();
    http1::flood(webhook, connections, requests, reviews::outcome).await
}

/// Reviews whose answers would repeat megabytes of them, and that nobody reads.
async fn unread_large(target: Arc<Target>) -> Outcome {
    let text = "u".repeat(7 << 20);
    let long_uid = review(&text, "UPDATE", &ordinary_change());
    let mut wrong_kind = review("705", "UPDATE", &ordinary_change());
    wrong_kind["request"]["kind"] = json!(text);
    let requests = [long_uid, wrong_kind].map(|review| posted_text(review.to_string().as_bytes()));
    http1::unread(target.server.webhook.clone(), 200, requests.into()).await
}

fn policy(spec: &Value) -> Value {
    json!({
        "apiVersion": "quiet.example/v1", "kind": "RetryPolicy",
        "metadata": {"name": "new", "namespace": "hostile"}, "spec": spec,
    })
}

fn route(rules: &Value) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
        "metadata": {"name": "r1", "namespace": "quiet"},
        "spec": {"parentRefs": [{"name": "web"}], "hostnames": ["h1.quiet.example"], "rules": rules},
    })
}

fn web() -> Value {
    json!({"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "web"})
}

/// Objects as large as an API server accepts: one long text, and many small values.
fn large_objects() -> Vec<Bytes> {
    let refs = json!([{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "r1"}]);
    let long = policy(&json!({"targetRefs": refs, "defaults": {"note": "n".repeat(3 << 20)}}));
    let fields = (0..200_000).map(|at| (format!("f{at}"), json!(at)));
    let fields: serde_json::Map<String, Value> = fields.collect();
    let wide = policy(&json!({"targetRefs": refs, "defaults": fields}));
    let list = policy(&json!({"targetRefs": refs, "defaults": {"list": vec![json!([]); 900_000]}}));
    let many = vec![refs[0].clone(); 30_000];
    let targets = policy(&json!({"targetRefs": many, "defaults": {"attempts": 1}}));
    [long, wide, list, targets]
        .map(|object| posted("CREATE", &object))
        .into()
}

/// Objects with more levels than are read, and than a JSON parser reads by itself.
fn deep_objects() -> Vec<Bytes> {
    let nested = |levels: usize, open: &str, close: &str| {
        let spec = format!("{}1{}", open.repeat(levels), close.repeat(levels));
        let mut object = policy(&json!({"targetRefs": [web()]}));
        object["spec"]["defaults"] = json!("DEEP");
        let text = review("705", "CREATE", &object).to_string();
        posted_text(text.replace("\"DEEP\"", &spec).as_bytes())
    };
    let mut requests = Vec::new();
    for levels in [90, 110, 130, 10_000, 60_000, 1_000_000] {
        requests.push(nested(levels, "{\"a\":", "}"));
        requests.push(nested(levels, "[", "]"));
    }
    requests
}

/// Routes and Gateways with very many rules and listeners.
fn many_rules() -> Vec<Bytes> {
    let rule = |at: usize| json!({"matches": [{"path": {"value": format!("/{at}")}}], "backendRefs": [{"name": "s", "port": 80}]});
    let rules: Vec<Value> = (0..20_000).map(rule).collect();
    let listener = |at: usize| {
        json!({
            "name": format!("l{at}"), "port": 80, "protocol": "HTTP", "hostname": format!("h{at}.quiet.example"),
            "allowedRoutes": {"namespaces": {"from": "All"}},
        })
    };
    let listeners: Vec<Value> = (0..20_000).map(listener).collect();
    let matches: Vec<Value> = (0..20_000)
        .map(|at| json!({"path": {"value": format!("/{at}")}}))
        .collect();
    let parents = vec![json!({"name": "web"}); 20_000];
    let mut attached = route(&json!([]));
    attached["spec"]["parentRefs"] = json!(parents);
    [
        route(&json!(rules)),
        gateway(&json!(listeners)),
        route(&json!([{"matches": matches, "backendRefs": [{"name": "s", "port": 80}]}])),
        attached,
    ]
    .map(|object| posted("UPDATE", &object))
    .into()
}

fn gateway(listeners: &Value) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
        "metadata": {"name": "web", "namespace": "quiet"},
        "spec": {"gatewayClassName": "quiet", "listeners": listeners},
    })
}

/// Routes with regular expressions, and profiles and policies with CEL, which take long to compile or to evaluate.
fn hard_expressions() -> Vec<Bytes> {
    let regexes = [
        "(a{0,1000}){0,1000}".to_owned(),
        "(a*)*b".repeat(500),
        "[[:word:]]{900}".to_owned(),
        "(x+x+)+y".repeat(400),
        "\\p{L}{1,200}".repeat(100),
    ];
    let matched = |text: &String| json!({"path": {"type": "RegularExpression", "value": text}});
    let matches: Vec<Value> = regexes.iter().cycle().take(1_000).map(matched).collect();
    let rules = json!([{"matches": matches, "backendRefs": [{"name": "s", "port": 80}]}]);
    let conditions = [
        "self.a.all(x, x.all(y, y == x))",
        "self.a.map(x, self.a.map(y, self.a)).size() > 0",
        "self.text.matches('(a*)*b')",
        "[1,2,3,4,5,6,7,8,9].map(x, [1,2,3].map(y, x * y)).size() > 0",
    ];
    let mut requests = vec![posted("UPDATE", &route(&rules))];
    for condition in conditions {
        let values: Vec<Value> = (0..5_000).map(|at| json!(at)).collect();
        let block = json!({"strategy": "merge", "when": [{"predicate": condition}], "limits": {"x": {"when": condition}}});
        let spec = json!({"targetRefs": [web()], "defaults": block, "a": values, "text": "a".repeat(10_000)});
        let mut limits = policy(&spec);
        limits["kind"] = json!("LimitPolicy");
        requests.push(posted("CREATE", &limits));
        let profile = json!({
            "apiVersion": "entail.dev/v1alpha1", "kind": "PolicyProfile",
            "metadata": {"name": "retrypolicies.quiet.example"},
            "spec": {
                "preset": "gep713", "policy": {"group": "quiet.example", "kind": "RetryPolicy"},
                "targets": [{"group": "gateway.networking.k8s.io", "kind": "Gateway"}],
                "effectiveTarget": "RouteRule", "merge": {"when": condition, "rules": [{"cel": condition}]},
            },
        });
        requests.push(posted("UPDATE", &profile));
    }
    requests
}

/// Changes of the policy of the Gateway: the answers of all paths change, by another field each time.
fn all_paths() -> Vec<Bytes> {
    let change = |at: usize| {
        let mut block = json!({"strategy": "merge", "attempts": 1, "note": "x"});
        block[format!("field{at}")] = json!(at);
        let spec = json!({"targetRefs": [web()], "overrides": block});
        let mut policy = policy(&spec);
        policy["metadata"] = json!({"name": "ordinary", "namespace": "quiet"});
        posted("UPDATE", &policy)
    };
    (0..50).map(change).collect()
}

/// Changes of the Gateway, on which all routes depend.
fn gateways() -> Vec<Bytes> {
    let change = |at: usize| {
        let hostname = format!("*.h{at}.example");
        let listener =
            json!({"name": "http", "port": 80, "protocol": "HTTP", "hostname": hostname});
        posted("UPDATE", &gateway(&json!([listener])))
    };
    (0..50).map(change).collect()
}

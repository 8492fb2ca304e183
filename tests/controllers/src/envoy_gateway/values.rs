//! Fields of policies, each with values that the CRD accepts and that change the translation.

use serde_json::{Value, json};

use crate::rng::Rng;

/// A field of a policy with one of its values.
pub type Field = (&'static str, Value);

/// The namespaced policy kinds whose values are compared.
pub const KINDS: [&str; 4] = [
    "BackendTrafficPolicy",
    "SecurityPolicy",
    "EnvoyExtensionPolicy",
    "ClientTrafficPolicy",
];

/// One to three fields for a policy of a kind.
pub fn fields(rng: &mut Rng, kind: &str, missing: bool) -> Vec<Field> {
    let number = rng.next() % 1000;
    let mut all = match kind {
        "BackendTrafficPolicy" => backend_traffic(rng, number),
        "SecurityPolicy" => security(rng, number, missing),
        "EnvoyExtensionPolicy" => extension(rng, number, missing),
        _ => client_traffic(rng, number),
    };
    rng.shuffle(&mut all);
    if rng.percent(25) {
        // So that two policies of one path often have lists to merge.
        all.sort_by_key(|(name, _)| *name != "compressor" && *name != "httpUpgrade");
    }
    all.truncate(rng.within(1, 3));
    all
}

fn backend_traffic(rng: &mut Rng, number: u64) -> Vec<Field> {
    let seconds = format!("{}s", number + 1);
    let header = format!("x-{}", number % 3);
    let rate_limit = rate_limit(rng, number);
    let timeout = rng.choose(&[
        json!({"http": {"requestTimeout": seconds}}),
        json!({"tcp": {"connectTimeout": seconds}}),
        json!({"http": {"requestTimeout": seconds, "maxConnectionDuration": "9s"}, "tcp": {"connectTimeout": "2s"}}),
    ]);
    let balancer = rng.choose(&[
        json!({"type": "Random"}),
        json!({"type": "RoundRobin", "slowStart": {"window": seconds}}),
        json!({"type": "ConsistentHash", "consistentHash": {"type": "SourceIP"}}),
        json!({"type": "ConsistentHash", "consistentHash": {"type": "Header", "header": {"name": header}}}),
    ]);
    // The order of merged lists decides (specification 5.2).
    let compressors = some_of(
        rng,
        &[
            json!({"type": "Gzip", "gzip": {}}),
            json!({"type": "Brotli", "brotli": {}}),
            json!({"type": "Zstd", "zstd": {}}),
        ],
    );
    let upgrades = ["websocket", "spdy/3.1", "other"].map(|name| json!({"type": name}));
    let upgrades = some_of(rng, &upgrades);
    let mut fields = vec![
        (
            "retry",
            json!({"numRetries": number % 9 + 1, "retryOn": {"triggers": ["5xx"]}}),
        ),
        ("timeout", timeout),
        ("rateLimit", rate_limit.clone()),
        ("rateLimit", rate_limit),
        (
            "circuitBreaker",
            rng.choose(&[
                json!({"maxConnections": number + 1}),
                json!({"maxPendingRequests": number + 1}),
                json!({"maxConnections": 7, "maxParallelRequests": number + 1}),
            ]),
        ),
        ("loadBalancer", balancer),
        (
            "healthCheck",
            json!({"passive": {"consecutive5XxErrors": number + 1}}),
        ),
        ("compressor", compressors),
        ("httpUpgrade", upgrades),
    ];
    fields.extend(other_traffic(rng, number));
    fields
}

/// A list with some items, in any order.
fn some_of(rng: &mut Rng, items: &[Value]) -> Value {
    let mut items = items.to_vec();
    rng.shuffle(&mut items);
    items.truncate(rng.within(1, 3));
    Value::Array(items)
}

/// More fields of a BackendTrafficPolicy.
fn other_traffic(rng: &mut Rng, number: u64) -> Vec<Field> {
    let seconds = format!("{}s", number + 1);
    let mut fields = vec![
        (
            "faultInjection",
            json!({"abort": {"httpStatus": 400 + number % 100, "percentage": 10}}),
        ),
        (
            "connection",
            json!({"bufferLimit": format!("{}Ki", number + 1)}),
        ),
        ("dns", json!({"dnsRefreshRate": seconds})),
        ("tcpKeepalive", json!({"probes": number + 1})),
        ("proxyProtocol", json!({"version": rng.pick(&["V1", "V2"])})),
        (
            "http2",
            json!({"initialStreamWindowSize": format!("{}Ki", 64 + number)}),
        ),
        ("useClientProtocol", json!(true)),
        (
            "requestBuffer",
            json!({"limit": format!("{}Ki", number + 1)}),
        ),
        ("responseOverride", response_override(number)),
    ];
    // Few policies set it: Envoy Gateway looks it up apart from the other fields.
    if number.is_multiple_of(6) {
        fields.push(("routingType", json!("Service")));
    }
    fields
}

fn rate_limit(rng: &mut Rng, number: u64) -> Value {
    let header = format!("x-{}", number % 3);
    let unit = rng.pick(&["Second", "Minute"]);
    let limit = json!({"requests": number + 1, "unit": unit});
    let rules = json!([{"clientSelectors": [{"headers": [{"name": header, "type": "Distinct"}]}], "limit": limit}]);
    let local = json!([{"clientSelectors": [{"headers": [{"name": header, "value": "a"}]}], "limit": limit}]);
    match number % 4 {
        0 => json!({"local": {"rules": [{"limit": limit}]}}),
        1 => json!({"local": {"rules": local}}),
        2 => json!({"global": {"rules": rules}}),
        _ => json!({"type": "Global", "global": {"rules": [{"limit": limit}]}}),
    }
}

fn response_override(number: u64) -> Value {
    json!([{
        "match": {"statusCodes": [{"type": "Value", "value": 400 + number % 100}]},
        "response": {"contentType": "text/plain", "body": {"type": "Inline", "inline": format!("{number}")}},
    }])
}

fn security(rng: &mut Rng, number: u64, missing: bool) -> Vec<Field> {
    let secret = |name: &str| {
        if missing {
            "missing".to_owned()
        } else {
            name.to_owned()
        }
    };
    let service = json!([{"name": if missing { "missing" } else { "auth" }, "port": 9000}]);
    let open = number.is_multiple_of(2);
    let ext_auth = match number % 3 {
        0 => json!({"failOpen": open, "grpc": {"backendRefs": service}}),
        1 => {
            json!({"failOpen": open, "http": {"backendRefs": service, "path": format!("/{number}")}})
        }
        _ => json!({"headersToExtAuth": [format!("x-{number}")], "http": {"backendRefs": service}}),
    };
    let authorization = authorization(rng, number);
    let uri = format!("https://{number}.test/jwks");
    vec![
        (
            "cors",
            json!({"allowOrigins": [format!("https://{number}.test")], "allowMethods": ["GET"]}),
        ),
        (
            "cors",
            json!({"allowOrigins": ["*"], "maxAge": format!("{}s", number + 1)}),
        ),
        ("basicAuth", json!({"users": {"name": secret("users")}})),
        (
            "apiKeyAuth",
            json!({
                "credentialRefs": [{"name": secret("keys")}],
                "extractFrom": [{"headers": [format!("x-{}", number % 3)]}],
            }),
        ),
        (
            "jwt",
            json!({"providers": [{
                "name": format!("p{}", number % 2), "issuer": format!("https://{number}.test"), "remoteJWKS": {"uri": uri},
            }]}),
        ),
        (
            "oidc",
            json!({
                "provider": {
                    "issuer": format!("https://{number}.test"),
                    "authorizationEndpoint": format!("https://{number}.test/auth"),
                    "tokenEndpoint": format!("https://{number}.test/token"),
                },
                "clientID": format!("client-{number}"), "clientSecret": {"name": secret("client")},
            }),
        ),
        ("extAuth", ext_auth.clone()),
        ("extAuth", ext_auth),
        ("authorization", authorization.clone()),
        ("authorization", authorization),
    ]
}

fn authorization(rng: &mut Rng, number: u64) -> Value {
    let rule = json!({
        "name": format!("r{}", number % 2), "action": rng.pick(&["Allow", "Deny"]),
        "principal": {"clientCIDRs": [format!("10.0.{}.0/24", number % 250)]},
    });
    let mut authorization = json!({"rules": [rule]});
    if rng.percent(50) {
        authorization["defaultAction"] = json!(rng.pick(&["Allow", "Deny"]));
    }
    authorization
}

fn extension(rng: &mut Rng, number: u64, missing: bool) -> Vec<Field> {
    let backend = if missing { "missing" } else { "auth" };
    let mode = rng.choose(&[json!({}), json!({"request": {}})]);
    vec![
        (
            "lua",
            json!([{"type": "Inline", "inline": format!("function envoy_on_request(h) h:logInfo(\"{number}\") end")}]),
        ),
        (
            "wasm",
            json!([{
                "name": format!("w{}", number % 3), "rootID": format!("r{number}"),
                "code": {"type": "HTTP", "http": {"url": format!("https://{number}.test/w.wasm")}},
            }]),
        ),
        (
            "extProc",
            json!([{
                "backendRefs": [{"name": backend, "port": 9000}], "messageTimeout": format!("{}s", number + 1),
                "processingMode": mode,
            }]),
        ),
    ]
}

fn client_traffic(rng: &mut Rng, number: u64) -> Vec<Field> {
    let seconds = format!("{}s", number + 1);
    vec![
        ("tcpKeepalive", json!({"probes": number + 1})),
        (
            "timeout",
            json!({"http": {"requestReceivedTimeout": seconds}}),
        ),
        (
            "connection",
            json!({"bufferLimit": format!("{}Ki", number + 1)}),
        ),
        ("headers", json!({"enableEnvoyHeaders": true})),
        (
            "path",
            json!({"escapedSlashesAction": rng.pick(&["KeepUnchanged", "RejectRequest"])}),
        ),
        ("http1", json!({"enableTrailers": true})),
        ("http2", json!({"maxConcurrentStreams": number + 1})),
        (
            "proxyProtocol",
            json!({"optional": number.is_multiple_of(2)}),
        ),
        (
            "clientIPDetection",
            json!({"xForwardedFor": {"numTrustedHops": number % 9 + 1}}),
        ),
        ("healthCheck", json!({"path": format!("/{number}")})),
    ]
}

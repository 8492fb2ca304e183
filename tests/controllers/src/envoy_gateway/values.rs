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
    all.truncate(rng.within(1, 3));
    all
}

fn backend_traffic(rng: &mut Rng, number: u64) -> Vec<Field> {
    let seconds = format!("{}s", number + 1);
    let unit = rng.pick(&["Second", "Minute"]);
    let header = format!("x-{}", number % 3);
    let limit = json!({"requests": number + 1, "unit": unit});
    let rules = json!([{"clientSelectors": [{"headers": [{"name": header, "type": "Distinct"}]}], "limit": limit}]);
    let local = json!([{"clientSelectors": [{"headers": [{"name": header, "value": "a"}]}], "limit": limit}]);
    let rate_limit = match number % 4 {
        0 => json!({"local": {"rules": [{"limit": limit}]}}),
        1 => json!({"local": {"rules": local}}),
        2 => json!({"global": {"rules": rules}}),
        _ => json!({"type": "Global", "global": {"rules": [{"limit": limit}]}}),
    };
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
    let compressors = rng.choose(&[
        json!([{"type": "Gzip"}]),
        json!([{"type": "Brotli"}]),
        json!([{"type": "Brotli"}, {"type": "Gzip"}]),
        json!([{"type": "Zstd"}]),
    ]);
    let upgrades = rng.choose(&[
        json!([{"type": "websocket"}]),
        json!([{"type": "spdy/3.1"}]),
    ]);
    vec![
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
        ("routingType", json!("Service")),
    ]
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
    let open = number % 2 == 0;
    let ext_auth = match number % 3 {
        0 => json!({"failOpen": open, "grpc": {"backendRefs": service}}),
        1 => {
            json!({"failOpen": open, "http": {"backendRefs": service, "path": format!("/{number}")}})
        }
        _ => json!({"headersToExtAuth": [format!("x-{number}")], "http": {"backendRefs": service}}),
    };
    let rule = json!({
        "name": format!("r{}", number % 2), "action": rng.pick(&["Allow", "Deny"]),
        "principal": {"clientCIDRs": [format!("10.0.{}.0/24", number % 250)]},
    });
    let mut authorization = json!({"rules": [rule]});
    if rng.percent(50) {
        authorization["defaultAction"] = json!(rng.pick(&["Allow", "Deny"]));
    }
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
        ("proxyProtocol", json!({"optional": number % 2 == 0})),
        (
            "clientIPDetection",
            json!({"xForwardedFor": {"numTrustedHops": number % 9 + 1}}),
        ),
        ("healthCheck", json!({"path": format!("/{number}")})),
    ]
}

//! `entail verify` with dumps in the shape that Envoy Gateway and Envoy give them.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

const MANIFESTS: &str = r#"
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: eg}
spec: {controllerName: gateway.envoyproxy.io/gatewayclass-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: web, namespace: infra}
spec:
  gatewayClassName: eg
  listeners:
  - {name: http, protocol: HTTP, port: 80, allowedRoutes: {namespaces: {from: All}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: cart, namespace: shop}
spec:
  parentRefs: [{name: web, namespace: infra}]
  rules:
  - backendRefs: [{name: cart, port: 80}]
  - name: pay
    matches: [{path: {value: /pay}}, {path: {value: /checkout}}]
    backendRefs: [{name: cart, port: 80}]
---
apiVersion: v1
kind: Service
metadata: {name: cart, namespace: shop}
spec: {ports: [{port: 80}]}
---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: BackendTrafficPolicy
metadata: {name: traffic, namespace: infra}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: web}]
  retry: {numRetries: 3, perRetry: {timeout: 250ms}}
  timeout: {http: {requestTimeout: 1m30s, connectionIdleTimeout: 1h}}
  circuitBreaker: {maxConnections: 100}
  loadBalancer: {type: RoundRobin}
  rateLimit: {local: {rules: [{limit: {requests: 10, unit: Minute}}]}}
---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: SecurityPolicy
metadata: {name: security, namespace: shop}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: cart}]
  cors: {allowOrigins: ["https://*.shop.test"], allowMethods: [GET, POST], maxAge: 10m}
  jwt: {providers: [{name: login, remoteJWKS: {uri: "https://login.test/keys"}}]}
  extAuth: {http: {backendRefs: [{name: cart, port: 80}]}}
---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: ClientTrafficPolicy
metadata: {name: client, namespace: infra}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: web}]
  timeout: {http: {requestReceivedTimeout: 5s}}
"#;

const RULE: &str = "gateways/infra/web/listeners/http/routes/HTTPRoute/shop/cart/rules/#0";
const PAY: &str = "gateways/infra/web/listeners/http/routes/HTTPRoute/shop/cart/rules/pay";

fn route(rule: u32, part: u32, section: Option<&str>) -> Value {
    let mut owner = json!({"kind": "HTTPRoute", "namespace": "shop", "name": "cart"});
    if let Some(section) = section {
        owner["sectionName"] = json!(section);
    }
    json!({
        "match": {"path_separated_prefix": "/pay"},
        "metadata": {"filter_metadata": {"envoy-gateway": {
            "resources": [owner],
            "policies": [{"kind": "BackendTrafficPolicy", "namespace": "infra", "name": "traffic"}],
        }}},
        "name": format!("httproute/shop/cart/rule/{rule}/match/{part}/*"),
        "route": {
            "cluster": format!("httproute/shop/cart/rule/{rule}"),
            "timeout": "90s",
            "idle_timeout": "3600s",
            "retry_policy": {
                "retry_on": "connect-failure,refused-stream,unavailable,cancelled,retriable-status-codes",
                "num_retries": 3,
                "per_try_timeout": "0.250s",
                "retriable_status_codes": [503],
                "host_selection_retry_max_attempts": "5",
            },
            "upgrade_configs": [{"upgrade_type": "websocket"}],
        },
        "typed_per_filter_config": {
            "envoy.filters.http.cors": {
                "@type": "type.googleapis.com/envoy.extensions.filters.http.cors.v3.CorsPolicy",
                "allow_methods": "GET, POST",
                "max_age": "600",
                "allow_credentials": false,
                "allow_origin_string_match": [{"safe_regex": {"regex": "https://.*\\.shop\\.test"}}],
                "forward_not_matching_preflights": false,
            },
            "envoy.filters.http.jwt_authn": {"requirement_name": "login_1"},
            "envoy.filters.http.ext_authz/securitypolicy/shop/security": {"check_settings": {}},
            "envoy.filters.http.local_ratelimit": {
                "token_bucket": {"max_tokens": 10, "tokens_per_fill": 10, "fill_interval": "60s"},
            },
        },
    })
}

fn cluster(name: &str) -> Value {
    json!({"version_info": "1", "cluster": {
        "@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster",
        "name": name,
        "connect_timeout": "10s",
        "per_connection_buffer_limit_bytes": 32768,
        "circuit_breakers": {"thresholds": [{"max_connections": 100, "max_retries": 1024}]},
        "load_balancing_policy": {"policies": [{"typed_extension_config": {
            "name": "envoy.load_balancing_policies.round_robin",
            "typed_config": {"locality_lb_config": {}},
        }}]},
        "typed_extension_protocol_options": {"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
            "common_http_protocol_options": {"idle_timeout": "3600s"},
        }},
    }})
}

/// The dump of a proxy that has what the manifests say.
fn dump() -> Value {
    json!({"configs": [
        {"@type": "type.googleapis.com/envoy.admin.v3.BootstrapConfigDump", "bootstrap": {"node": {"id": "x"}}},
        {
            "@type": "type.googleapis.com/envoy.admin.v3.ClustersConfigDump",
            "static_clusters": [{"cluster": {"name": "xds_cluster"}}],
            "dynamic_active_clusters": [cluster("httproute/shop/cart/rule/0"), cluster("httproute/shop/cart/rule/1")],
        },
        {
            "@type": "type.googleapis.com/envoy.admin.v3.ListenersConfigDump",
            "dynamic_listeners": [{"name": "infra/web/http", "active_state": {"listener": {
                "name": "infra/web/http",
                "max_connections_to_accept_per_socket_event": 1,
                "per_connection_buffer_limit_bytes": 32768,
                "default_filter_chain": {"name": "infra/web/http", "filters": [{
                    "name": "envoy.filters.network.http_connection_manager",
                    "typed_config": {
                        "rds": {"route_config_name": "infra/web/http"},
                        "request_timeout": "5s",
                        "merge_slashes": true,
                        "path_with_escaped_slashes_action": "UNESCAPE_AND_REDIRECT",
                        "common_http_protocol_options": {"headers_with_underscores_action": "REJECT_REQUEST"},
                        "http2_protocol_options": {"max_concurrent_streams": 100},
                    },
                }]},
            }}}],
        },
        {
            "@type": "type.googleapis.com/envoy.admin.v3.RoutesConfigDump",
            "static_route_configs": [{"route_config": {"name": "ready", "virtual_hosts": [
                {"name": "ready", "routes": [{"name": "ready", "direct_response": {"status": 200}}]},
            ]}}],
            "dynamic_route_configs": [{"version_info": "1", "route_config": {
                "name": "infra/web/http",
                "virtual_hosts": [{
                    "name": "infra/web/http/*",
                    "domains": ["*"],
                    "routes": [route(1, 0, Some("pay")), route(1, 1, Some("pay")), route(0, 0, None)],
                    "metadata": {"filter_metadata": {"envoy-gateway": {"resources": [
                        {"kind": "Gateway", "namespace": "infra", "name": "web", "sectionName": "http"},
                    ]}}},
                }],
            }}],
        },
        {"@type": "type.googleapis.com/envoy.admin.v3.SecretsConfigDump"},
    ]})
}

/// The Envoy route of the rule `#0`.
const ROUTE: &str = "/configs/3/dynamic_route_configs/0/route_config/virtual_hosts/0/routes/2";
const FILTERS: &str = "/configs/3/dynamic_route_configs/0/route_config/virtual_hosts/0/routes/2/typed_per_filter_config";
const CLUSTER: &str = "/configs/1/dynamic_active_clusters/0/cluster";

/// A folder with manifests and a dump.
struct World {
    folder: TempDir,
}

impl World {
    fn new(edit: impl FnOnce(&mut Value)) -> Self {
        Self::with(MANIFESTS, edit)
    }

    fn with(manifests: &str, edit: impl FnOnce(&mut Value)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut content = dump();
        edit(&mut content);
        fs::write(folder.path().join("world.yaml"), manifests).unwrap();
        fs::write(folder.path().join("dump.json"), content.to_string()).unwrap();
        Self { folder }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let dump = self.file("dump.json");
        let mut all = vec!["--config-dump", dump.to_str().unwrap()];
        all.extend(arguments);
        verify(&all, &self.file("world.yaml"))
    }

    fn findings(&self, arguments: &[&str]) -> Vec<Value> {
        let mut all = vec!["-o", "json"];
        all.extend(arguments);
        let output = self.run(&all);
        let value: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}{}", stdout(&output), stderr(&output)));
        value["findings"].as_array().unwrap().clone()
    }

    /// The only finding, as (verdict, kind, field, expected, actual).
    #[track_caller]
    fn only(&self) -> (String, String, String, Value, Value) {
        let findings = self.findings(&[]);
        let [finding] = findings.as_slice() else {
            panic!("{findings:#?}");
        };
        let text = |name: &str| finding[name].as_str().unwrap().to_owned();
        let kind = text("kind");
        let kind = kind.split('.').next().unwrap().to_owned();
        (
            text("verdict"),
            kind,
            text("field"),
            finding["expected"].clone(),
            finding["actual"].clone(),
        )
    }
}

fn verify(arguments: &[&str], manifests: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_entail"))
        .arg("verify")
        .args(arguments)
        .arg("--manifests")
        .arg(manifests)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[track_caller]
fn expect(output: &Output, code: i32) -> String {
    assert_eq!(
        output.status.code(),
        Some(code),
        "{}{}",
        stdout(output),
        stderr(output)
    );
    stdout(output)
}

fn set(dump: &mut Value, pointer: &str, value: Value) {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    dump.pointer_mut(parent).unwrap()[name.replace("~1", "/")] = value;
}

fn remove(dump: &mut Value, pointer: &str, name: &str) {
    let parent = dump.pointer_mut(pointer).unwrap();
    parent.as_object_mut().unwrap().remove(name).unwrap();
}

fn is(
    verdict: &str,
    kind: &str,
    field: &str,
    expected: Value,
    actual: Value,
) -> (String, String, String, Value, Value) {
    (
        verdict.to_owned(),
        kind.to_owned(),
        field.to_owned(),
        expected,
        actual,
    )
}

#[test]
fn a_proxy_with_the_effective_policies_has_no_findings() {
    let world = World::new(|_| {});
    let text = expect(&world.run(&[]), 0);
    assert!(
        text.starts_with("No differences in 2 rules and 1 listener\n"),
        "{text}"
    );
    assert!(
        text.contains("0 differs, 0 missing, 0 extra, 0 cannot tell, "),
        "{text}"
    );
    assert_eq!(world.findings(&[]), Vec::<Value>::new());
    let json = expect(&world.run(&["-o", "json"]), 0);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["summary"]["rules"], 2);
    assert!(json["summary"]["same"].as_u64().unwrap() > 20, "{json}");
    assert!(
        json["summary"]["sameInPart"].as_u64().unwrap() >= 4,
        "{json}"
    );
}

#[test]
fn another_value_differs_and_names_the_policy_that_set_ours() {
    let world = World::new(|dump| {
        set(
            dump,
            &format!("{ROUTE}/route/retry_policy/num_retries"),
            json!(5),
        )
    });
    assert_eq!(
        world.only(),
        is(
            "differs",
            "BackendTrafficPolicy",
            "retry.numRetries",
            json!("3"),
            json!("5")
        )
    );
    let findings = world.findings(&[]);
    assert_eq!(findings[0]["origins"], json!(["infra/traffic"]));
    assert_eq!(
        findings[0]["places"],
        json!([{"path": RULE, "proxy": "httproute/shop/cart/rule/0/match/0/*"}])
    );
    let text = expect(&world.run(&[]), 1);
    assert!(
        text.starts_with("1 of 2 rules and 1 listener differ\n"),
        "{text}"
    );
    assert!(
        text.contains("expected: 3 (set by infra/traffic)\n  proxy: 5\n"),
        "{text}"
    );
    assert!(
        text.lines()
            .all(|line| line.len() <= 80 || line.contains("gateways/")),
        "{text}"
    );
    expect(&world.run(&["--fail-on", "missing,extra"]), 0);
    expect(&world.run(&["--kind", "SecurityPolicy"]), 0);
    expect(&world.run(&["--kind", "BackendTrafficPolicy"]), 1);
}

#[test]
fn fields_of_clusters_and_listeners_are_compared() {
    let world = World::new(|dump| {
        set(
            dump,
            &format!("{CLUSTER}/circuit_breakers/thresholds/0/max_connections"),
            json!(99),
        );
    });
    assert_eq!(
        world.only(),
        is(
            "differs",
            "BackendTrafficPolicy",
            "circuitBreaker.maxConnections",
            json!("100"),
            json!("99")
        )
    );
    let world = World::new(|dump| {
        let manager = "/configs/2/dynamic_listeners/0/active_state/listener/default_filter_chain/filters/0/typed_config";
        remove(dump, manager, "request_timeout");
    });
    assert_eq!(
        world.only(),
        is(
            "missing",
            "ClientTrafficPolicy",
            "timeout.http.requestReceivedTimeout",
            json!("5s"),
            Value::Null
        )
    );
}

#[test]
fn a_filter_that_is_not_there_is_missing() {
    let world = World::new(|dump| remove(dump, FILTERS, "envoy.filters.http.jwt_authn"));
    let (verdict, kind, field, _, actual) = world.only();
    assert_eq!(
        (&*verdict, &*kind, &*field),
        ("missing", "SecurityPolicy", "jwt")
    );
    assert_eq!(actual, Value::Null);
    expect(&world.run(&[]), 1);
    // A block that is missing is one finding, and not one for each of its fields.
    let world = World::new(|dump| remove(dump, &format!("{ROUTE}/route"), "retry_policy"));
    let (verdict, _, field, ..) = world.only();
    assert_eq!((&*verdict, &*field), ("missing", "retry"));
}

#[test]
fn a_filter_of_another_policy_differs() {
    let world = World::new(|dump| {
        remove(
            dump,
            FILTERS,
            "envoy.filters.http.ext_authz/securitypolicy/shop/security",
        );
        set(
            dump,
            &format!("{FILTERS}/envoy.filters.http.ext_authz~1securitypolicy~1shop~1other"),
            json!({}),
        );
    });
    assert_eq!(
        world.only(),
        is(
            "differs",
            "SecurityPolicy",
            "extAuth",
            json!("of shop/security"),
            json!("of shop/other")
        )
    );
    let world = World::new(|dump| {
        let policies = format!("{ROUTE}/metadata/filter_metadata/envoy-gateway/policies/0/name");
        set(dump, &policies, json!("old"));
    });
    let (verdict, kind, field, _, actual) = world.only();
    assert_eq!(
        (&*verdict, &*kind, &*field),
        ("differs", "BackendTrafficPolicy", "")
    );
    assert_eq!(actual, "infra/old");
}

#[test]
fn what_only_the_proxy_has_is_extra() {
    let world = World::new(|dump| {
        set(
            dump,
            &format!("{FILTERS}/envoy.filters.http.fault"),
            json!({}),
        )
    });
    let (verdict, _, field, expected, _) = world.only();
    assert_eq!(
        (&*verdict, &*field, expected),
        ("extra", "faultInjection", Value::Null)
    );
    expect(&world.run(&[]), 0);
    expect(&world.run(&["--fail-on", "extra"]), 1);
}

#[test]
fn a_field_that_is_not_known_is_never_the_same() {
    let manifests = MANIFESTS.replace(
        "  loadBalancer:",
        "  dns: {respectDnsTtl: false}\n  loadBalancer:",
    );
    let world = World::with(&manifests, |_| {});
    let (verdict, _, field, ..) = world.only();
    assert_eq!((&*verdict, &*field), ("cannot-tell", "dns"));
    let places = world.findings(&[])[0]["places"].as_array().unwrap().len();
    assert_eq!(places, 2);
    expect(&world.run(&[]), 0);
    expect(&world.run(&["--fail-on", "cannot-tell"]), 1);
    // What the proxy answers itself is not forwarded, so that no retry shows.
    let world = World::new(|dump| {
        remove(dump, ROUTE, "route");
        set(
            dump,
            &format!("{ROUTE}/direct_response"),
            json!({"status": 500}),
        );
    });
    let findings = world.findings(&[]);
    assert_eq!(findings.len(), 1, "{findings:#?}");
    assert_eq!(findings[0]["verdict"], "cannot-tell");
    let reason = findings[0]["reason"].as_str().unwrap();
    for part in [
        "status 500",
        "retry.numRetries",
        "circuitBreaker.maxConnections",
    ] {
        assert!(reason.contains(part), "{reason}");
    }
}

#[test]
fn rules_of_one_side_alone_are_findings() {
    let world = World::new(|dump| {
        let (parent, _) = ROUTE.rsplit_once('/').unwrap();
        dump.pointer_mut(parent)
            .unwrap()
            .as_array_mut()
            .unwrap()
            .pop();
    });
    let findings = world.findings(&[]);
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0]["verdict"], "missing");
    assert_eq!(findings[0]["places"][0]["path"], RULE);
    let world = World::new(|dump| {
        set(
            dump,
            &format!("{ROUTE}/name"),
            json!("httproute/shop/old/rule/0/match/0/*"),
        )
    });
    let verdicts: Vec<Value> = world
        .findings(&[])
        .iter()
        .map(|one| one["verdict"].clone())
        .collect();
    assert_eq!(verdicts, ["missing", "extra"]);
    // With a name, other rules are not looked for.
    let world = World::new(|dump| {
        set(
            dump,
            &format!("{ROUTE}/name"),
            json!("httproute/shop/old/rule/0/match/0/*"),
        )
    });
    assert_eq!(world.findings(&[PAY]), Vec::<Value>::new());
}

#[test]
fn dumps_that_cannot_be_compared_are_refused() {
    let world = World::new(|_| {});
    let whole = fs::read_to_string(world.file("dump.json")).unwrap();
    let refused = |content: &str, part: &str| {
        fs::write(world.file("dump.json"), content).unwrap();
        let output = world.run(&[]);
        expect(&output, 3);
        assert!(stderr(&output).contains(part), "{}", stderr(&output));
        assert!(stdout(&output).is_empty());
    };
    refused(&whole[..whole.len() / 2], "truncated");
    refused("", "truncated");
    refused("<html>", "not a dump");
    refused(r#"{"kind": "List"}"#, "no list `configs`");
    refused(r#"{"configs": []}"#, "no route configurations");
    refused(
        &whole
            .replace("httproute/", "route-")
            .replace("infra/web/http", "x"),
        "another control plane",
    );
    refused(
        &whole
            .replace("infra/web", "infra/other")
            .replace("\"web\"", "\"other\""),
        "nothing to compare",
    );
    let output = verify(
        &["--config-dump", "/nowhere/dump.json"],
        &world.file("world.yaml"),
    );
    expect(&output, 3);
    expect(&verify(&[], &world.file("world.yaml")), 2);
    expect(
        &verify(
            &["--admin", "https://localhost:1"],
            &world.file("world.yaml"),
        ),
        2,
    );
    let output = verify(
        &["--admin", "http://127.0.0.1:1"],
        &world.file("world.yaml"),
    );
    expect(&output, 3);
    assert!(
        stderr(&output).contains("not reachable"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn updates_that_are_not_in_place_are_warnings() {
    let world = World::new(|dump| {
        let listener = "/configs/2/dynamic_listeners/0";
        set(
            dump,
            &format!("{listener}/error_state"),
            json!({"details": "no such filter"}),
        );
    });
    let output = world.run(&[]);
    expect(&output, 0);
    assert!(
        stderr(&output).contains("refused an update: no such filter"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn the_admin_interface_is_read() {
    let world = World::new(|_| {});
    let content = fs::read(world.file("dump.json")).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 1024];
        let size = stream.read(&mut request).unwrap();
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
            .unwrap();
        for part in content.chunks(1000) {
            write!(stream, "{:x}\r\n", part.len()).unwrap();
            stream.write_all(part).unwrap();
            stream.write_all(b"\r\n").unwrap();
        }
        stream.write_all(b"0\r\n\r\n").unwrap();
        String::from_utf8_lossy(&request[..size]).into_owned()
    });
    let text = expect(
        &verify(&["--admin", &address], &world.file("world.yaml")),
        0,
    );
    assert!(text.starts_with("No differences"), "{text}");
    assert!(
        server
            .join()
            .unwrap()
            .starts_with("GET /config_dump HTTP/1.1\r\n")
    );
}

#[test]
fn dump_and_manifests_cannot_both_be_standard_input() {
    let output = verify(&["--config-dump", "-"], Path::new("-"));
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let message = stderr(&output);
    assert!(message.contains("both read standard input"), "{message}");
}

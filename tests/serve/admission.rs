//! The admission webhook: AdmissionReviews over HTTPS, against the bakery.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use entail::app::{BoundAddresses, read_values, serve};
use entail::config::{AdmissionSettings, ServeSettings, TlsFiles};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::tls::{Ca, Pair};

/// Maximum time until changed files are loaded.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server with the webhook.
struct WebhookServer {
    folder: TempDir,
    address: SocketAddr,
    admin: String,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

fn bakery() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples/bakery")
}

impl WebhookServer {
    async fn start(ca: &Ca, adjust: impl FnOnce(&mut ServeSettings)) -> Self {
        let server = Self::listen(ca, adjust).await;
        server.until_ready().await;
        server
    }

    /// Starts a server that may have no snapshot yet.
    async fn listen(ca: &Ca, adjust: impl FnOnce(&mut ServeSettings)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        let pair = ca.sign(&["localhost"]);
        std::fs::write(file("tls.crt"), &pair.cert).unwrap();
        std::fs::write(file("tls.key"), &pair.key).unwrap();
        let mut settings = ServeSettings {
            listen: vec!["127.0.0.1:0".to_owned()],
            admin_listen: Some("127.0.0.1:0".to_owned()),
            admission: Some(AdmissionSettings {
                listen: "127.0.0.1:0".to_owned(),
                tls: TlsFiles {
                    cert: file("tls.crt"),
                    key: file("tls.key"),
                    client_ca: None,
                },
                any_client: false,
                full_names: false,
            }),
            ..ServeSettings::default()
        };
        settings.inputs.manifests = vec![bakery()];
        adjust(&mut settings);
        let (sender, bound) = oneshot::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let bound = |addresses: &BoundAddresses| sender.send(addresses.clone()).unwrap();
            let stopped = async move { drop(stopped.await) };
            serve(settings, bound, stopped).await.unwrap();
        });
        let bound = bound.await.unwrap();
        Self {
            folder,
            address: bound.admission.unwrap().to_string().parse().unwrap(),
            admin: bound.admin[0].to_string(),
            stop,
            task,
        }
    }

    async fn until_ready(&self) {
        let end = Instant::now() + PATIENCE;
        while !self.admin("/readyz").await.contains("200 OK") {
            assert!(Instant::now() < end);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// The reply of the admin server.
    async fn admin(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.admin).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        reply
    }

    async fn connect(&self, ca: &Ca, own: Option<&Pair>) -> std::io::Result<TlsStream<TcpStream>> {
        // As API servers do for webhooks.
        let config = ca.client_config(own, "http/1.1");
        let stream = TcpStream::connect(self.address).await?;
        let connector = TlsConnector::from(Arc::new(config));
        connector
            .connect("localhost".try_into().unwrap(), stream)
            .await
    }

    /// Sends a request over a new connection; returns the status and the body of the reply.
    async fn send(
        &self,
        ca: &Ca,
        own: Option<&Pair>,
        text: &str,
    ) -> std::io::Result<(u16, String)> {
        let mut stream = self.connect(ca, own).await?;
        stream.write_all(text.as_bytes()).await?;
        let mut reply = Vec::new();
        // A server that closes the connection need not end TLS.
        let _ = stream.read_to_end(&mut reply).await;
        let reply = String::from_utf8(reply).unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap_or_default();
        let status = head.split(' ').nth(1).unwrap_or("0").parse().unwrap();
        Ok((status, body.to_owned()))
    }

    /// What a change is answered with.
    async fn response(&self, ca: &Ca, operation: &str, object: &Value) -> Value {
        let (status, body) = self
            .send(ca, None, &posted(&review(operation, object)))
            .await
            .unwrap();
        assert_eq!(status, 200, "{body}");
        let answer: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(answer["kind"], "AdmissionReview");
        answer["response"].clone()
    }

    /// The warnings about a change.
    async fn warnings(&self, ca: &Ca, operation: &str, object: &Value) -> Vec<String> {
        let response = self.response(ca, operation, object).await;
        assert_eq!(
            (&response["uid"], &response["allowed"]),
            (&json!("705"), &json!(true))
        );
        let warnings = response["warnings"].as_array().cloned().unwrap_or_default();
        let warnings: Vec<String> = warnings
            .iter()
            .map(|warning| warning.as_str().unwrap().to_owned())
            .collect();
        for warning in &warnings {
            assert!(warning.len() <= 256 && warning.is_ascii(), "{warning}");
        }
        warnings
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        self.task.await.unwrap();
    }
}

fn review(operation: &str, object: &Value) -> String {
    let (group, version) = object["apiVersion"]
        .as_str()
        .unwrap()
        .split_once('/')
        .unwrap();
    let metadata = &object["metadata"];
    let mut request = json!({
        "uid": "705",
        "kind": {"group": group, "version": version, "kind": object["kind"]},
        "operation": operation, "namespace": metadata["namespace"], "name": metadata["name"],
        "userInfo": {"username": "baker"}, "dryRun": false,
    });
    let field = if operation == "DELETE" {
        "oldObject"
    } else {
        "object"
    };
    request[field] = object.clone();
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
        .to_string()
}

fn posted(body: &str) -> String {
    format!(
        "POST /admit?timeout=2s HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn retries(name: &str, target: &Value, spec: &Value) -> Value {
    let mut policy = json!({
        "apiVersion": "policies.bakery.example/v1", "kind": "RetryPolicy",
        "metadata": {"name": name, "namespace": "baker"},
        "spec": {"targetRefs": [target]},
    });
    for (field, value) in spec.as_object().unwrap() {
        policy["spec"][field] = value.clone();
    }
    policy
}

fn route(name: &str) -> Value {
    json!({"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": name})
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_policy_takes_away_is_said() {
    let places = "3 routes: HTTPRoute/baker/bread, HTTPRoute/baker/cakes and 1 in other namespaces";
    let namespace = json!({"group": "", "kind": "Namespace", "name": "baker"});
    let patient = json!({"defaults": {"attempts": 5}});
    let cooler = json!({"defaults": {"strategy": "merge", "backoff": "3s"}});
    let mut staff = object("policies/auth.yaml", "AuthPolicy", "staff-only");
    staff["spec"]["overrides"]["strategy"] = json!("atomic");
    let cases = [
        (
            "CREATE",
            retries("new", &namespace, &once()),
            format!("overrides \"attempts\" of RetryPolicy/baker/be-patient on 6 paths ({places})"),
        ),
        (
            "DELETE",
            retries("be-patient", &namespace, &patient),
            format!("removes \"attempts\", \"backoff\" from 6 paths ({places})"),
        ),
        // Another value of its own is no loss.
        (
            "UPDATE",
            retries("let-them-cool", &route("cakes"), &cooler),
            String::new(),
        ),
        (
            "UPDATE",
            staff,
            "removes \"rules.loyalty\" of an AuthPolicy in another namespace from 3 paths \
             (1 route in other namespaces)"
                .to_owned(),
        ),
    ];
    assert_warnings(&cases).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_without_an_effect_is_said() {
    let cases = [
        (
            "CREATE",
            retries("new", &route("bred"), &once()),
            "is not accepted: TargetNotFound: spec.targetRefs[0]: `HTTPRoute/baker/bred` does not \
             exist; did you mean `bread`?"
                .to_owned(),
        ),
        (
            "CREATE",
            retries("new", &route("bread"), &json!({"defaults": {}})),
            "has no effect: it is overridden everywhere, or its targets are on no path".to_owned(),
        ),
    ];
    assert_warnings(&cases).await;
}

/// Overrides the attempts of less specific policies.
fn once() -> Value {
    json!({"overrides": {"strategy": "merge", "attempts": 1}})
}

/// Checks the warning about each change, after its subject; none if the text is empty.
async fn assert_warnings(cases: &[(&str, Value, String)]) {
    let ca = Ca::new();
    let server = WebhookServer::start(&ca, |_| {}).await;
    for (operation, object, expected) in cases {
        let kind = object["kind"].as_str().unwrap();
        let subject = match *operation {
            "DELETE" => format!("deleting this {kind}"),
            _ => format!("this {kind}"),
        };
        let expected: Vec<String> = match expected.is_empty() {
            true => Vec::new(),
            false => vec![format!("entail: {subject} {expected}")],
        };
        // No review changes what is served.
        for _ in 0..2 {
            let found = server.warnings(&ca, operation, object).await;
            assert_eq!(found, expected, "{operation} {object}");
        }
    }
    server.stop().await;
}

/// An object of the bakery.
fn object(file: &str, kind: &str, name: &str) -> Value {
    let found = read_values(&bakery().join(file)).unwrap().into_iter();
    let mut found = found.map(|(_, value)| value);
    found
        .find(|value| value["kind"] == kind && value["metadata"]["name"] == name)
        .unwrap()
}

/// A server of the bakery whose route `bread` has a label, with enforced assertions about what paths read.
async fn with_enforced_assertions(ca: &Ca, folder: &TempDir) -> WebhookServer {
    let assertion = |name: &str, paths: &str, condition: &str| {
        format!(
            "---\napiVersion: entail.dev/v1alpha1\nkind: ClusterEffectivePolicyAssertion\nmetadata: {{name: {name}}}\n\
             spec: {{enforce: true, policies: {{retry: RetryPolicy}}, paths: {{{paths}}}, expect: {{cel: \"{condition}\"}}}}\n"
        )
    };
    let named = "route.name != 'bread' || (has(route.labels) && has(route.labels.owner))";
    let texts = [
        assertion("owners", "kinds: [HTTPRoute]", named),
        assertion("no-filters", "", "!has(rule.filters)"),
        assertion("no-secret", "hostnames: [secret.bakery.example]", "false"),
        assertion(
            "none-is-odd",
            "gateways: {matchLabels: {odd: 'yes'}}",
            "false",
        ),
    ];
    let file = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let routes = std::fs::read_to_string(bakery().join("routes.yaml")).unwrap();
    let labelled = "  name: bread\n  labels: {owner: ana}\n";
    file(
        "routes.yaml",
        &routes.replacen("  name: bread\n", labelled, 1),
    );
    file("assertions.yaml", &texts.concat());
    let own = folder.path().to_owned();
    WebhookServer::start(ca, |settings| {
        let shared = [
            "00-namespaces.yaml",
            "crds",
            "gateways.yaml",
            "policies",
            "profiles.yaml",
            "services.yaml",
        ];
        settings.inputs.manifests = shared.map(|name| bakery().join(name)).into();
        settings.inputs.manifests.push(own);
    })
    .await
}

/// Before, only paths whose answers change were checked, and an object that is nested deep got around all assertions.
#[tokio::test(flavor = "multi_thread")]
async fn an_enforced_assertion_denies_changes_of_what_it_reads() {
    let (ca, folder) = (Ca::new(), tempfile::tempdir().unwrap());
    let server = with_enforced_assertions(&ca, &folder).await;
    let mut bread = object("routes.yaml", "HTTPRoute", "bread");
    bread["metadata"]["labels"] = json!({"owner": "ana"});
    let gateway = object("gateways.yaml", "Gateway", "storefront");
    let changed = |object: &Value, at: &str, value: Value| {
        let mut object = object.clone();
        let (parent, field) = at.rsplit_once('/').unwrap();
        object.pointer_mut(parent).unwrap()[field] = value;
        object
    };
    let nested = (0..120).fold(json!(1), |inner, _| json!({ "a": inner }));
    for (name, object) in [
        ("owners", changed(&bread, "/metadata/labels", json!({}))),
        (
            "no-filters",
            changed(&bread, "/spec/rules/0/filters", json!([])),
        ),
        (
            "no-secret",
            changed(&bread, "/spec/hostnames", json!(["secret.bakery.example"])),
        ),
        (
            "none-is-odd",
            changed(&gateway, "/metadata/labels", json!({"odd": "yes"})),
        ),
        ("cannot be checked", changed(&bread, "/spec/nested", nested)),
    ] {
        let response = server.response(&ca, "UPDATE", &object).await;
        let message = response["status"]["message"].to_string();
        assert_eq!(response["allowed"], json!(false), "{name}: {response}");
        assert!(message.contains(name), "{name}: {message}");
    }
    // What none of them reads is allowed.
    let other = changed(
        &bread,
        "/metadata/labels",
        json!({"owner": "ben", "more": "1"}),
    );
    let response = server.response(&ca, "UPDATE", &other).await;
    assert_eq!(response["allowed"], json!(true), "{response}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_that_go_are_counted_and_others_are_named_only_where_that_is_allowed() {
    let ca = Ca::new();
    let server = WebhookServer::start(&ca, |_| {}).await;
    let shop = object("routes.yaml", "HTTPRoute", "shop");
    let found = server.warnings(&ca, "DELETE", &shop).await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].starts_with("entail: deleting this HTTPRoute removes"),
        "{found:?}"
    );
    assert!(
        found[0].ends_with("paths (1 route: HTTPRoute/shop/shop)"),
        "{found:?}"
    );

    // The policy of the Gateway is in another namespace than its routes.
    let mut waits = object("policies/timeouts.yaml", "TimeoutPolicy", "nobody-waits");
    waits["spec"]["overrides"]["client"]["idle"] = json!("1s");
    let hidden = server.warnings(&ca, "UPDATE", &waits).await;
    let named = "RouteTimeout";
    assert!(!hidden.iter().any(|warning| warning.contains(named)));
    let expected = "entail: this TimeoutPolicy overrides \"client.idle\" of a TimeoutPolicy in another namespace on";
    assert!(hidden[0].starts_with(expected), "{hidden:?}");
    assert!(
        hidden[0].ends_with("(1 route in other namespaces)"),
        "{hidden:?}"
    );
    server.stop().await;

    let server = WebhookServer::start(&ca, |settings| {
        settings.admission.as_mut().unwrap().full_names = true;
    })
    .await;
    let shown = server.warnings(&ca, "UPDATE", &waits).await;
    let expected = "entail: this TimeoutPolicy overrides \"client.idle\" of TimeoutPolicy/shop/take-your-time on";
    assert!(shown[0].starts_with(expected), "{shown:?}");
    assert!(
        shown[0].ends_with("(1 route: HTTPRoute/shop/shop)"),
        "{shown:?}"
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_roots_is_computed_from_scratch_and_what_affects_nothing_is_silent() {
    let ca = Ca::new();
    let server = WebhookServer::start(&ca, |_| {}).await;
    let mut storefront = object("gateways.yaml", "Gateway", "storefront");
    let listeners = storefront["spec"]["listeners"].as_array_mut().unwrap();
    listeners.retain(|listener| listener["name"] != "https");
    let found = server.warnings(&ca, "UPDATE", &storefront).await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].starts_with("entail: this Gateway removes"),
        "{found:?}"
    );
    assert!(
        found[0].contains("3 routes in other namespaces"),
        "{found:?}"
    );
    let silent = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "oven", "namespace": "kitchen"}, "spec": {},
    });
    assert!(server.warnings(&ca, "CREATE", &silent).await.is_empty());
    // An object without a change, and one without a name and a namespace.
    let unchanged = object("gateways.yaml", "Gateway", "storefront");
    assert!(server.warnings(&ca, "UPDATE", &unchanged).await.is_empty());
    let mut generated = retries("x", &route("bread"), &once());
    generated["metadata"] = json!({"generateName": "new-"});
    let body =
        review("CREATE", &generated).replace("\"namespace\":null", "\"namespace\":\"baker\"");
    let (status, body) = server.send(&ca, None, &posted(&body)).await.unwrap();
    assert_eq!(status, 200);
    assert!(
        body.contains("of RetryPolicy/baker/be-patient on 2 paths"),
        "{body}"
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_known_is_said_of_kinds_that_are_followed() {
    let ca = Ca::new();
    // Without a manifest that can be read there is no snapshot.
    let server = WebhookServer::listen(&ca, |settings| {
        settings.inputs.manifests = vec![PathBuf::from("/nowhere/bakery")];
    })
    .await;
    let storefront = object("gateways.yaml", "Gateway", "storefront");
    let unknown =
        "entail: the effect of this change is not known: no effective policies are known yet";
    assert_eq!(server.warnings(&ca, "UPDATE", &storefront).await, [unknown]);
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "oven", "namespace": "kitchen"},
    });
    assert!(server.warnings(&ca, "CREATE", &deployment).await.is_empty());
    let metrics = server.admin("/metrics").await;
    let counted = "entail_admission_reviews_total{outcome=\"not_computed\"} 1";
    assert!(metrics.lines().any(|line| line == counted), "{metrics}");
    server.stop().await;

    // A policy without a profile is followed for its targets alone.
    let folder = tempfile::tempdir().unwrap();
    let policy = retries("a", &route("bread"), &json!({"attempts": 1}));
    let crd = std::fs::read_to_string(bakery().join("crds/retrypolicies.yaml")).unwrap();
    let crd = crd.replace("gateway.networking.k8s.io/policy", "bakery.example/policy");
    std::fs::write(
        folder.path().join("world.yaml"),
        format!("{crd}\n---\n{policy}\n"),
    )
    .unwrap();
    let manifests = folder.path().to_owned();
    let server =
        WebhookServer::start(&ca, |settings| settings.inputs.manifests = vec![manifests]).await;
    let found = server.warnings(&ca, "DELETE", &policy).await;
    let unknown =
        "entail: the effect of this change is not known: RetryPolicy is UNKNOWN (NoProfile)";
    assert_eq!(found, [unknown]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_review_is_refused_and_counted() {
    let ca = Ca::new();
    let server = WebhookServer::start(&ca, |_| {}).await;
    let oversized = "POST /admit HTTP/1.1\r\nhost: x\r\ncontent-length: 9000000\r\n\r\n".to_owned();
    let unknown = "POST /admit HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n0\r\n\r\n";
    for (request, expected) in [
        (posted("{}"), 400),
        (posted("{"), 400),
        (posted("{}").replace("/admit", "/other"), 404),
        (posted("").replace("POST", "GET"), 405),
        (unknown.to_owned(), 411),
        (oversized, 413),
        ("nonsense\r\n\r\n".to_owned(), 400),
    ] {
        let (status, _) = server.send(&ca, None, &request).await.unwrap();
        assert_eq!(status, expected, "{request}");
    }
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "oven", "namespace": "kitchen"},
    });
    server.warnings(&ca, "CREATE", &deployment).await;
    let namespace = json!({"group": "", "kind": "Namespace", "name": "baker"});
    server
        .warnings(
            &ca,
            "DELETE",
            &retries("be-patient", &namespace, &json!({})),
        )
        .await;
    let metrics = server.admin("/metrics").await;
    for line in [
        "entail_admission_reviews_total{outcome=\"warned\"} 1",
        "entail_admission_reviews_total{outcome=\"silent\"} 1",
        "entail_admission_reviews_total{outcome=\"not_computed\"} 0",
        "entail_admission_reviews_total{outcome=\"malformed\"} 6",
        "entail_admission_review_duration_seconds_count{} 2",
    ] {
        assert!(
            metrics.lines().any(|other| other == line),
            "{line}\n{metrics}"
        );
    }
    let expiry = "entail_certificate_expiry_timestamp_seconds{certificate=\"admission_server\"}";
    assert!(metrics.contains(expiry), "{metrics}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_sent_is_bounded_in_the_answer() {
    let ca = Ca::new();
    let server = WebhookServer::start(&ca, |_| {}).await;
    let policy = retries("new", &route("bread"), &once());
    let long = "x".repeat(100_000);
    for (field, value) in [("uid", &long), ("kind", &long)] {
        let mut review: Value = serde_json::from_str(&review("CREATE", &policy)).unwrap();
        review["request"][field] = json!(value);
        let request = posted(&review.to_string());
        let (status, body) = server.send(&ca, None, &request).await.unwrap();
        assert_eq!((status, body.len() < 500), (400, true), "{field}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_reviews_at_once_are_answered() {
    let ca = Ca::new();
    let server = WebhookServer::start(&ca, |_| {}).await;
    let request = posted(&review("CREATE", &retries("new", &route("bread"), &once())));
    // More than those whose effects are computed or wait for it. They are sent at once, after all handshakes.
    let mut open = Vec::new();
    for _ in 0..120 {
        open.push(server.connect(&ca, None).await.unwrap());
    }
    let (last, request) = request.as_bytes().split_last().unwrap();
    for stream in &mut open {
        stream.write_all(request).await.unwrap();
        stream.flush().await.unwrap();
    }
    for stream in &mut open {
        stream.write_all(&[*last]).await.unwrap();
        stream.flush().await.unwrap();
    }
    for mut stream in open {
        let mut reply = Vec::new();
        let _ = stream.read_to_end(&mut reply).await;
        let reply = String::from_utf8(reply).unwrap();
        assert!(reply.starts_with("HTTP/1.1 200 "), "{reply}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn late_reviews_large_headers_and_silent_connections_are_counted() {
    let ca = Ca::new();
    let server = WebhookServer::start(&ca, |settings| {
        settings.limits.request_arrival = Duration::from_millis(200);
        settings.limits.connection_setup = Duration::from_secs(1);
    })
    .await;
    let mut silent = server.connect(&ca, None).await.unwrap();
    let late = "POST /admit HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 9\r\n\r\n{";
    let (status, _) = server.send(&ca, None, late).await.unwrap();
    assert_eq!(status, 408);
    let _ = silent.read_to_end(&mut Vec::new()).await;
    let large = "x".repeat(20_000);
    let large = format!("POST /admit HTTP/1.1\r\nhost: x\r\ncookie: {large}\r\n\r\n");
    let (status, _) = server.send(&ca, None, &large).await.unwrap();
    assert_eq!(status, 431);
    let metrics = server.admin("/metrics").await;
    for bound in ["request_arrival", "connection_setup", "request_headers"] {
        let line = format!("entail_bounds_exceeded_total{{bound=\"{bound}\"}} 1");
        assert!(
            metrics.lines().any(|other| other == line),
            "{line}\n{metrics}"
        );
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_reloaded_and_clients_need_one_of_their_ca() {
    let (ca, next) = (Ca::new(), Ca::new());
    let (clients, others) = (Ca::new(), Ca::new());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.crt");
    std::fs::write(&file, clients.pem()).unwrap();
    let server = WebhookServer::start(&ca, |settings| {
        settings.admission.as_mut().unwrap().tls.client_ca = Some(file.clone());
    })
    .await;
    let api_server = clients.sign(&["kube-apiserver"]);
    let request = posted("{}");
    let answered = async |ca: &Ca, own: Option<&Pair>| {
        let sent = server.send(ca, own, &request).await;
        sent.is_ok_and(|(status, _)| status == 400)
    };
    assert!(answered(&ca, Some(&api_server)).await);
    assert!(!answered(&ca, None).await);
    assert!(!answered(&ca, Some(&others.sign(&["kube-apiserver"]))).await);
    let pair = next.sign(&["localhost"]);
    std::fs::write(server.folder.path().join("tls.crt"), &pair.cert).unwrap();
    std::fs::write(server.folder.path().join("tls.key"), &pair.key).unwrap();
    let end = Instant::now() + PATIENCE;
    while !answered(&next, Some(&api_server)).await {
        assert!(Instant::now() < end);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(!answered(&ca, Some(&api_server)).await);
    server.stop().await;
}

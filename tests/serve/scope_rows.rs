//! Access rules: which rule applies, which services it permits, its limit for concurrent requests,
//! and invalid rules.

use std::future::Future;

use entail::api::v1;
use entail::app::{AppError, serve};
use entail::config::{ServeSettings, TlsFiles};
use tokio::sync::oneshot;
use tokio_stream::StreamExt;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Response, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_prost::ProstCodec;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;

use super::envoy::{check_at, check_request_of_path};
use super::scope::{A, FAR, RulesServer, insight_of, look_up, policies_of, with_kinds};
use super::server::{PATH, batch_of, by_path, world};
use super::tls::Ca;

async fn code<T>(call: impl Future<Output = Result<Response<T>, Status>>) -> Code {
    call.await.map_or_else(|status| status.code(), |_| Code::Ok)
}

/// The codes of all calls of `EffectivePolicyService`.
async fn policies_codes(channel: &Channel) -> Vec<Code> {
    let mut client = policies_of(channel);
    vec![
        code(client.get_effective_policies(by_path(PATH))).await,
        code(client.get_effective_policies(by_path("gateways/default/none/x"))).await,
        code(client.get_effective_policies(with_kinds(PATH, &[A]))).await,
        code(client.batch_get_effective_policies(batch_of([PATH]))).await,
        code(client.watch_effective_policies(v1::WatchEffectivePoliciesRequest::default())).await,
        code(client.resolve_request(v1::ResolveRequestRequest::default())).await,
    ]
}

/// The codes of all calls of `PolicyInsightService`.
async fn insight_codes(channel: &Channel) -> Vec<Code> {
    let mut client = insight_of(channel);
    let explain = v1::ExplainRequest {
        name: PATH.to_owned(),
        ..Default::default()
    };
    vec![
        code(client.explain(explain)).await,
        code(client.list_policies(v1::ListPoliciesRequest::default())).await,
        code(client.list_affected(v1::ListAffectedRequest::default())).await,
        code(client.preview_change(v1::PreviewChangeRequest::default())).await,
        code(client.list_findings(v1::ListFindingsRequest::default())).await,
        code(client.get_topology(v1::GetTopologyRequest::default())).await,
        code(client.list_paths(v1::ListPathsRequest::default())).await,
        code(client.get_server_status(v1::GetServerStatusRequest {})).await,
    ]
}

/// Whether a caller may call the services `policies`, `envoy` and `insight`. Asserts that it may
/// call health and reflection.
async fn permitted_services(channel: &Channel) -> [bool; 3] {
    let envoy = check_at(channel.clone(), check_request_of_path(PATH), &[]).await;
    let envoy = envoy.map_or_else(|status| status.code(), |_| Code::Ok);
    let of = [
        policies_codes(channel).await,
        vec![envoy],
        insight_codes(channel).await,
    ];
    let mut health = HealthClient::new(channel.clone());
    assert_eq!(
        code(health.check(HealthCheckRequest::default())).await,
        Code::Ok
    );
    let list = super::list_services();
    let mut reflection = ServerReflectionClient::new(channel.clone());
    let actual = reflection
        .server_reflection_info(tokio_stream::iter([list]))
        .await;
    assert!(
        actual
            .unwrap()
            .into_inner()
            .message()
            .await
            .unwrap()
            .is_some()
    );
    of.map(|codes| {
        let denied = codes.iter().filter(|code| **code == Code::PermissionDenied);
        let denied = denied.count();
        assert!(denied == 0 || denied == codes.len(), "{codes:?}");
        denied == 0
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_rule_with_a_name_of_the_caller_selects_its_services() {
    let settings = tempfile::NamedTempFile::new().unwrap();
    let file = settings.path().to_owned();
    let rules = "
- {names: ['spiffe://cluster.local/ns/shop/sa/*', proxy.shop.svc], services: [policies, envoy]}
- {names: ['*.ops.example'], services: [insight]}
- {names: ['*.shop.svc', both.example], services: [policies, insight]}
- {names: [proxy.shop.svc, envoy.example], services: [envoy]}
";
    let server = RulesServer::start(rules, |settings| settings.envoy = Some(file)).await;
    let (policies, insight, both) = (
        [true, true, false],
        [false, false, true],
        [true, false, true],
    );
    let none = [false; 3];
    let cases: [(&[&str], [bool; 3]); 15] = [
        (&["spiffe://cluster.local/ns/shop/sa/cart"], policies),
        (&["spiffe://cluster.local/ns/shop/sa/cart/of/it"], policies),
        (&["spiffe://cluster.local/ns/shop2/sa/cart"], none),
        (&["spiffe://cluster.local/ns/shop/sax/cart"], none),
        (&["spiffe://other.local/ns/shop/sa/cart"], none),
        (&["proxy.shop.svc"], policies),
        (&["other.shop.svc"], both),
        (&["a.ops.example"], insight),
        (&["a.b.ops.example"], none),
        (&["ops.example"], none),
        (&["a.ops.example.evil"], none),
        (&["nobody.example"], none),
        // The order of the rules counts, not the order of the names.
        (&["both.example", "a.ops.example"], insight),
        (&["nobody.example", "envoy.example"], [false, true, false]),
        (&["all.test"], [true; 3]),
    ];
    for (names, expected) in cases {
        let channel = server.named(names).await;
        assert_eq!(permitted_services(&channel).await, expected, "{names:?}");
    }
    server.tls.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_rule_with_a_name_of_the_caller_selects_its_scope() {
    let rules = "
- {names: ['*.shop.svc'], services: [policies], prefixes: [gateways/default/gw], kinds: [APolicy.p.example]}
- {names: [proxy.shop.svc], services: [policies]}
";
    let server = RulesServer::start(rules, |_| {}).await;
    let (own, all) = server.beside_all("proxy.shop.svc").await;
    let refused = look_up(&own, by_path(FAR)).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    let actual = look_up(&own, by_path(PATH)).await.unwrap();
    let expected = look_up(&all, with_kinds(PATH, &[A])).await.unwrap();
    assert_eq!(actual, expected);
    server.tls.stop().await;
}

/// A batch whose message the server has received, and its end when `finish` is called.
struct OpenRequest {
    end_stream: oneshot::Sender<()>,
    reply: tokio::task::JoinHandle<Code>,
}

/// Starts a batch that holds permits.
async fn begin_batch(channel: &Channel) -> OpenRequest {
    let (end_stream, wait) = oneshot::channel::<()>();
    let mut wait = Some(wait);
    // The message is so large that the request holds permits before its end.
    let large = std::iter::once(batch_of([PATH; 2_000]));
    let message = tokio_stream::iter(large).chain(
        tokio_stream::once(())
            .then(move |()| {
                let wait = wait.take().unwrap();
                async move { drop(wait.await) }
            })
            .filter_map(|()| None),
    );
    let mut client = tonic::client::Grpc::new(channel.clone());
    let reply = tokio::spawn(async move {
        client.ready().await.unwrap();
        let path = "/entail.v1.EffectivePolicyService/BatchGetEffectivePolicies";
        let path = http::uri::PathAndQuery::from_static(path);
        let codec: ProstCodec<_, v1::BatchGetEffectivePoliciesResponse> = ProstCodec::default();
        code(client.client_streaming(Request::new(message), path, codec)).await
    });
    // Wait until the request holds permits. Another request could make the server reject it.
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    let mut health = HealthClient::new(channel.clone());
    health.check(HealthCheckRequest::default()).await.unwrap();
    OpenRequest { end_stream, reply }
}

impl OpenRequest {
    async fn finish(self) -> Code {
        self.end_stream.send(()).unwrap();
        self.reply.await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_of_a_rule_share_its_limit() {
    let rules = "
- {names: ['*.busy.test'], services: [policies, insight], maxConcurrency: 2}
- {names: [calm.test], services: [policies], maxConcurrency: 2}
";
    let server = RulesServer::start(rules, |_| {}).await;
    let [one, two, three] = ["one.busy.test", "two.busy.test", "three.busy.test"];
    let (one, two) = (server.caller(one).await, server.caller(two).await);
    let (three, all) = server.beside_all(three).await;
    let calm = server.caller("calm.test").await;
    let look_up_code = async |channel: &Channel| {
        code(policies_of(channel).get_effective_policies(by_path(PATH))).await
    };
    let first = begin_batch(&one).await;
    let second = begin_batch(&two).await;
    for channel in [&one, &two, &three] {
        assert_eq!(look_up_code(channel).await, Code::ResourceExhausted);
        let mut actual = policies_codes(channel).await;
        assert_eq!(actual.remove(4), Code::Ok, "streams have separate permits");
        assert!(
            actual.iter().all(|code| *code == Code::ResourceExhausted),
            "{actual:?}"
        );
        // Callers of other rules are not affected.
        assert_eq!(
            (look_up_code(&all).await, look_up_code(&calm).await),
            (Code::Ok, Code::Ok)
        );
    }
    assert_eq!(first.finish().await, Code::Ok);
    let mut actual = look_up_code(&three).await;
    for _ in 0..500 {
        if actual == Code::Ok {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        actual = look_up_code(&three).await;
    }
    assert_eq!(actual, Code::Ok, "the permit is never returned");
    assert_eq!(second.finish().await, Code::Ok);
    server.tls.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn insight_requests_use_the_permits_of_the_rule() {
    let rules = "- {names: [busy.test], services: [policies, insight], maxConcurrency: 1}\n";
    let server = RulesServer::start(rules, |_| {}).await;
    let busy = server.caller("busy.test").await;
    let first = begin_batch(&busy).await;
    let actual = insight_codes(&busy).await;
    assert!(
        actual.iter().all(|code| *code == Code::ResourceExhausted),
        "{actual:?}"
    );
    assert_eq!(first.finish().await, Code::Ok);
    server.tls.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn access_rules_do_not_apply_to_unix_sockets() {
    let folder = tempfile::tempdir().unwrap();
    let socket = format!("unix:{}", folder.path().join("entail.sock").display());
    let listen = socket.clone();
    let settings = tempfile::NamedTempFile::new().unwrap();
    let file = settings.path().to_owned();
    let rule = "- {names: ['*.test'], services: [policies], prefixes: [gateways/default/gw]}\n";
    let server = RulesServer::start(rule, move |settings| {
        settings.listen.push(listen);
        settings.envoy = Some(file);
    });
    let server = server.await;
    let own = server.caller("any.test").await;
    assert_eq!(permitted_services(&own).await, [true, false, false]);
    let channel = Endpoint::from_shared(socket)
        .unwrap()
        .connect()
        .await
        .unwrap();
    assert_eq!(permitted_services(&channel).await, [true; 3]);
    let actual = look_up(&channel, by_path(FAR))
        .await
        .unwrap()
        .result
        .unwrap();
    assert_eq!(actual.policies.len(), 2);
    let refused = look_up(&own, by_path(FAR)).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    server.tls.stop().await;
}

/// Starts a server with invalid settings; returns the error.
async fn start_error(rules: Option<&str>, adjust: impl FnOnce(&mut ServeSettings)) -> AppError {
    let folder = world();
    let at = |name: &str| folder.path().join(name);
    let ca = Ca::new();
    let pair = ca.sign(&["localhost"]);
    for (name, text) in [
        ("tls.crt", &pair.cert),
        ("tls.key", &pair.key),
        ("ca.crt", &ca.pem()),
    ] {
        std::fs::write(at(name), text).unwrap();
    }
    if let Some(rules) = rules {
        std::fs::write(at("callers.yaml"), rules).unwrap();
    }
    let mut settings = ServeSettings {
        listen: vec!["127.0.0.1:0".to_owned()],
        callers: Some(at("callers.yaml")),
        tls: Some(TlsFiles {
            cert: at("tls.crt"),
            key: at("tls.key"),
            client_ca: Some(at("ca.crt")),
        }),
        ..ServeSettings::default()
    };
    settings.inputs.manifests = vec![folder.path().to_owned()];
    adjust(&mut settings);
    let ended = serve(settings, |_| {}, std::future::pending());
    let ended = tokio::time::timeout(std::time::Duration::from_secs(20), ended).await;
    ended
        .expect("the server started")
        .expect_err("the server stopped without an error")
}

#[tokio::test(flavor = "multi_thread")]
async fn access_rules_need_client_certificates() {
    let rules = Some("callers:\n- {names: [a.test], services: [policies]}\n");
    let error = start_error(rules, |settings| settings.tls = None).await;
    assert!(matches!(error, AppError::Usage(_)), "{error:?}");
    let error = start_error(rules, |settings| {
        settings.tls.as_mut().unwrap().client_ca = None
    })
    .await;
    assert!(matches!(error, AppError::Usage(_)), "{error:?}");
    assert!(error.to_string().contains("callers"), "{error}");
}

/// Returns the invalid rules for which the error does not contain the file and `place`.
async fn without_place(rules: &[&str], place: &str) -> Vec<(String, String)> {
    let mut missing = Vec::new();
    for rule in rules {
        let text = format!("callers:\n- {{names: [a.test], services: [policies]}}\n- {rule}\n");
        let error = start_error(Some(&text), |_| {}).await;
        let is_input = matches!(error, AppError::Input(_));
        let message = error.to_string();
        if !is_input || !message.contains("/callers.yaml") || !message.contains(place) {
            missing.push(((*rule).to_owned(), message));
        }
    }
    missing
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_with_invalid_values_are_reported_with_their_place() {
    let missing = without_place(
        &[
            "{names: [], services: [policies]}",
            "{names: [''], services: [policies]}",
            "{names: [b.test], services: []}",
            "{names: [b.test], services: [policies], prefixes: [gateways/default/gw/listners/x]}",
            "{names: [b.test], services: [policies], prefixes: ['']}",
            "{names: [b.test], services: [policies], kinds: ['']}",
            "{names: [b.test], services: [policies], prefixes: []}",
            "{names: [b.test], services: [policies], kinds: []}",
            "{names: [b.test], services: [policies], maxConcurrency: 0}",
        ],
        "callers[1]",
    );
    assert_eq!(missing.await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_rules_are_reported_with_their_place() {
    let missing = without_place(
        &[
            "7",
            "{services: [policies]}",
            "{names: [b.test]}",
            "{names: [b.test], services: [polices]}",
            "{names: [b.test], services: policies}",
            "{names: [b.test], services: [policies], prefix: [gateways/default/gw]}",
            "{names: [b.test], services: [policies], maxConcurrency: -1}",
            "{names: [b.test], services: [policies], maxConcurrency: many}",
        ],
        ": line 3 column",
    );
    assert_eq!(missing.await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_file_is_an_error_at_the_start() {
    let broken = ["callers: [", "caller: []", "callers: 7"];
    for text in broken.into_iter().map(Some).chain([None]) {
        let error = start_error(text, |_| {}).await;
        assert!(matches!(error, AppError::Input(_)), "{text:?}: {error:?}");
        assert!(
            error.to_string().contains("/callers.yaml"),
            "{text:?}: {error}"
        );
    }
}

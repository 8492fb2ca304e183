//! Rows of callers: whose row counts, which services it opens, how much it may ask at once, and rows that are wrong.

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

use super::envoy::{check_at, named};
use super::scope::{A, FAR, Rows, insight_of, look_up, policies_of, with_kinds};
use super::server::{PATH, batch_of, by_path, world};
use super::tls::Ca;

async fn code<T>(call: impl Future<Output = Result<Response<T>, Status>>) -> Code {
    call.await.map_or_else(|status| status.code(), |_| Code::Ok)
}

/// Codes of all that data planes ask.
async fn as_data_plane(channel: &Channel) -> Vec<Code> {
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

/// Codes of what people ask.
async fn as_people(channel: &Channel) -> Vec<Code> {
    let mut client = insight_of(channel);
    let explain = v1::ExplainRequest {
        name: PATH.to_owned(),
        kinds: Vec::new(),
    };
    vec![
        code(client.explain(explain)).await,
        code(client.list_policies(v1::ListPoliciesRequest::default())).await,
        code(client.list_affected(v1::ListAffectedRequest::default())).await,
        code(client.preview_change(v1::PreviewChangeRequest::default())).await,
        code(client.list_findings(v1::ListFindingsRequest::default())).await,
        code(client.get_topology(v1::GetTopologyRequest {})).await,
        code(client.list_paths(v1::ListPathsRequest::default())).await,
        code(client.get_server_status(v1::GetServerStatusRequest {})).await,
    ]
}

/// Which services a caller may ask: policies, envoy, insight. Health and reflection are everybody's.
async fn services(channel: &Channel) -> [bool; 3] {
    let envoy = check_at(channel.clone(), named(PATH), &[]).await;
    let envoy = envoy.map_or_else(|status| status.code(), |_| Code::Ok);
    let of = [
        as_data_plane(channel).await,
        vec![envoy],
        as_people(channel).await,
    ];
    let mut health = HealthClient::new(channel.clone());
    assert_eq!(
        code(health.check(HealthCheckRequest::default())).await,
        Code::Ok
    );
    let list = super::list_services();
    let mut reflection = ServerReflectionClient::new(channel.clone());
    let told = reflection
        .server_reflection_info(tokio_stream::iter([list]))
        .await;
    assert!(
        told.unwrap()
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
async fn the_first_row_with_a_name_of_the_caller_says_what_it_may_ask() {
    let settings = tempfile::NamedTempFile::new().unwrap();
    let file = settings.path().to_owned();
    let rows = "
- {names: ['spiffe://cluster.local/ns/shop/sa/*', proxy.shop.svc], services: [policies, envoy]}
- {names: ['*.ops.example'], services: [insight]}
- {names: ['*.shop.svc', both.example], services: [policies, insight]}
- {names: [proxy.shop.svc, envoy.example], services: [envoy]}
";
    let rows = Rows::start(rows, |settings| settings.envoy = Some(file)).await;
    let (planes, people, both) = (
        [true, true, false],
        [false, false, true],
        [true, false, true],
    );
    let none = [false; 3];
    let cases: [(&[&str], [bool; 3]); 15] = [
        (&["spiffe://cluster.local/ns/shop/sa/cart"], planes),
        (&["spiffe://cluster.local/ns/shop/sa/cart/of/it"], planes),
        (&["spiffe://cluster.local/ns/shop2/sa/cart"], none),
        (&["spiffe://cluster.local/ns/shop/sax/cart"], none),
        (&["spiffe://other.local/ns/shop/sa/cart"], none),
        (&["proxy.shop.svc"], planes),
        (&["other.shop.svc"], both),
        (&["a.ops.example"], people),
        (&["a.b.ops.example"], none),
        (&["ops.example"], none),
        (&["a.ops.example.evil"], none),
        (&["nobody.example"], none),
        // The order of the rows counts, and not that of the names.
        (&["both.example", "a.ops.example"], people),
        (&["nobody.example", "envoy.example"], [false, true, false]),
        (&["all.test"], [true; 3]),
    ];
    for (names, expected) in cases {
        let channel = rows.named(names).await;
        assert_eq!(services(&channel).await, expected, "{names:?}");
    }
    rows.secured.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_row_says_the_scope_as_well() {
    let rows = "
- {names: ['*.shop.svc'], services: [policies], prefixes: [gateways/default/gw], kinds: [APolicy.p.example]}
- {names: [proxy.shop.svc], services: [policies]}
";
    let rows = Rows::start(rows, |_| {}).await;
    let (own, all) = rows.beside_all("proxy.shop.svc").await;
    let refused = look_up(&own, by_path(FAR)).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    let told = look_up(&own, by_path(PATH)).await.unwrap();
    let expected = look_up(&all, with_kinds(PATH, &[A])).await.unwrap();
    assert_eq!(told, expected);
    rows.secured.stop().await;
}

/// A batch of which the server has the message, and the end when it is told to.
struct OpenRequest {
    go: oneshot::Sender<()>,
    reply: tokio::task::JoinHandle<Code>,
}

async fn held(channel: &Channel) -> OpenRequest {
    let (go, wait) = oneshot::channel::<()>();
    let mut wait = Some(wait);
    // So large that it has a place before its end.
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
    // Nobody asks until it has its place: it would be turned away otherwise.
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    let mut health = HealthClient::new(channel.clone());
    health.check(HealthCheckRequest::default()).await.unwrap();
    OpenRequest { go, reply }
}

impl OpenRequest {
    async fn end(self) -> Code {
        self.go.send(()).unwrap();
        self.reply.await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_of_a_row_share_what_it_may_ask_at_once() {
    let rows = "
- {names: ['*.busy.test'], services: [policies, insight], maxConcurrency: 2}
- {names: [calm.test], services: [policies], maxConcurrency: 2}
";
    let rows = Rows::start(rows, |_| {}).await;
    let [one, two, three] = ["one.busy.test", "two.busy.test", "three.busy.test"];
    let (one, two) = (rows.caller(one).await, rows.caller(two).await);
    let (three, all) = rows.beside_all(three).await;
    let calm = rows.caller("calm.test").await;
    let ask = async |channel: &Channel| {
        code(policies_of(channel).get_effective_policies(by_path(PATH))).await
    };
    let first = held(&one).await;
    let second = held(&two).await;
    for channel in [&one, &two, &three] {
        assert_eq!(ask(channel).await, Code::ResourceExhausted);
        let mut told = as_data_plane(channel).await;
        assert_eq!(told.remove(4), Code::Ok, "streams have places of their own");
        assert!(
            told.iter().all(|code| *code == Code::ResourceExhausted),
            "{told:?}"
        );
        // Others have places of their own.
        assert_eq!((ask(&all).await, ask(&calm).await), (Code::Ok, Code::Ok));
    }
    assert_eq!(first.end().await, Code::Ok);
    let mut told = ask(&three).await;
    for _ in 0..500 {
        if told == Code::Ok {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        told = ask(&three).await;
    }
    assert_eq!(told, Code::Ok, "the place is never free again");
    assert_eq!(second.end().await, Code::Ok);
    rows.secured.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_of_people_take_places_of_their_row() {
    let rows = "- {names: [busy.test], services: [policies, insight], maxConcurrency: 1}\n";
    let rows = Rows::start(rows, |_| {}).await;
    let busy = rows.caller("busy.test").await;
    let first = held(&busy).await;
    let told = as_people(&busy).await;
    assert!(
        told.iter().all(|code| *code == Code::ResourceExhausted),
        "{told:?}"
    );
    assert_eq!(first.end().await, Code::Ok);
    rows.secured.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_a_unix_socket_there_is_no_row() {
    let folder = tempfile::tempdir().unwrap();
    let socket = format!("unix:{}", folder.path().join("entail.sock").display());
    let listen = socket.clone();
    let settings = tempfile::NamedTempFile::new().unwrap();
    let file = settings.path().to_owned();
    let row = "- {names: ['*.test'], services: [policies], prefixes: [gateways/default/gw]}\n";
    let rows = Rows::start(row, move |settings| {
        settings.listen.push(listen);
        settings.envoy = Some(file);
    });
    let rows = rows.await;
    let own = rows.caller("any.test").await;
    assert_eq!(services(&own).await, [true, false, false]);
    let channel = Endpoint::from_shared(socket)
        .unwrap()
        .connect()
        .await
        .unwrap();
    assert_eq!(services(&channel).await, [true; 3]);
    let told = look_up(&channel, by_path(FAR))
        .await
        .unwrap()
        .result
        .unwrap();
    assert_eq!(told.policies.len(), 2);
    let refused = look_up(&own, by_path(FAR)).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    rows.secured.stop().await;
}

/// Starts a server that is not to start.
async fn refused(rows: Option<&str>, adjust: impl FnOnce(&mut ServeSettings)) -> AppError {
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
    if let Some(rows) = rows {
        std::fs::write(at("rows"), rows).unwrap();
    }
    let mut settings = ServeSettings {
        listen: vec!["127.0.0.1:0".to_owned()],
        callers: Some(at("rows")),
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
    ended.expect("it started").expect_err("it ended")
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_need_certificates_of_callers() {
    let rows = Some("callers:\n- {names: [a.test], services: [policies]}\n");
    let told = refused(rows, |settings| settings.tls = None).await;
    assert!(matches!(told, AppError::Usage(_)), "{told:?}");
    let told = refused(rows, |settings| {
        settings.tls.as_mut().unwrap().client_ca = None
    })
    .await;
    assert!(matches!(told, AppError::Usage(_)), "{told:?}");
    assert!(told.to_string().contains("callers"), "{told}");
}

/// Rows of which the second is wrong are refused with its place; those that are not.
async fn not_told_by_place(rows: &[&str], place: &str) -> Vec<(String, String)> {
    let mut wrong = Vec::new();
    for row in rows {
        let text = format!("callers:\n- {{names: [a.test], services: [policies]}}\n- {row}\n");
        let told = refused(Some(&text), |_| {}).await;
        let is_input = matches!(told, AppError::Input(_));
        let told = told.to_string();
        if !is_input || !told.contains("/rows") || !told.contains(place) {
            wrong.push(((*row).to_owned(), told));
        }
    }
    wrong
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_with_wrong_values_are_told_by_their_place() {
    let wrong = not_told_by_place(
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
    assert_eq!(wrong.await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_the_wrong_shape_are_told_by_their_place() {
    let wrong = not_told_by_place(
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
    assert_eq!(wrong.await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_none_is_told_at_the_start() {
    let broken = ["callers: [", "caller: []", "callers: 7"];
    for text in broken.into_iter().map(Some).chain([None]) {
        let told = refused(text, |_| {}).await;
        assert!(matches!(told, AppError::Input(_)), "{text:?}: {told:?}");
        assert!(told.to_string().contains("/rows"), "{text:?}: {told}");
    }
}

//! Tests of the server over gRPC. Each starts a server in this process on a directory of manifests.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test fails by panicking"
)]

mod admin;
mod admission;
mod assertions;
mod callers;
mod console;
mod drain;
mod envoy;
mod follow;
mod frames;
mod hostile;
mod load;
mod scope;
mod scope_envoy;
mod scope_insight;
mod scope_kinds;
mod scope_preview;
mod scope_rows;
mod scope_streams;
mod server;
mod stalled;
mod tls;
mod unknown;
mod watch;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use entail::api::v1;
use entail::app::{Inputs, load};
use entail::cli::RemoteBackend;
use entail::insight::{FailureCode, QueryBackend, QueryError};
use entail_client::ClientTls;
use prost::Message;
use server::{PATH, Running, batch_of, by_path, start};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Code;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1::{ServerReflectionRequest, ServerReflectionResponse};
use tonic_types::StatusExt;

const PATIENCE: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread")]
async fn a_server_answers_as_the_local_backend() {
    let running = start(|_| {}).await;
    let served = running.get(by_path(PATH)).await.unwrap();
    let inputs = Inputs {
        manifests: vec![running.manifests()],
        ..Inputs::default()
    };
    let mut local = load(&inputs).unwrap().local;
    let own = local.get(by_path(PATH)).unwrap();
    assert_eq!(served.result, own.result);
    let policies = served.result.unwrap().policies;
    assert_eq!(policies.len(), 2);
    assert_eq!(policies[0].spec_json.as_deref(), Some(r#"{"marker":1}"#));
    let version = served.version.unwrap();
    assert_eq!((version.generation, version.epoch.len()), (1, 16));
    assert!(served.synced_at.unwrap().seconds > 1_700_000_000);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_requests_get_statuses_with_details() {
    let running = start(|_| {}).await;
    let missing = running
        .get(by_path("gateways/default/gw/listeners/none"))
        .await
        .unwrap_err();
    assert_eq!(missing.code(), Code::NotFound);
    let info = missing.get_details_error_info().unwrap();
    assert_eq!(info.domain, "entail.dev");
    assert_eq!(info.reason, "ListenerNotFound");
    assert_eq!(info.metadata["nearest"], "gateways/default/gw");

    let broken = running
        .get(by_path("gateways/default/gw/listners/x"))
        .await
        .unwrap_err();
    assert_eq!(broken.code(), Code::InvalidArgument);
    assert!(
        broken.message().chars().any(|c| c.is_ascii_digit()),
        "{}",
        broken.message()
    );
    let nothing = running
        .get(v1::GetEffectivePoliciesRequest::default())
        .await
        .unwrap_err();
    assert_eq!(nothing.code(), Code::InvalidArgument);
    let mut insight = running.insight();
    let unknown = insight.explain(v1::ExplainRequest {
        name: "gateway/default/none".to_owned(),
        ..Default::default()
    });
    assert_eq!(unknown.await.unwrap_err().code(), Code::NotFound);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_is_not_utf8_gets_a_status_and_the_connection_stays_usable() {
    let running = start(|_| {}).await;
    let path = b"gateways/\xff\xfe/gw".to_vec();
    let status = running
        .get_raw(server::RawLookUp { path })
        .await
        .unwrap_err();
    assert!(status.message().contains("UTF-8"), "{status}");
    let path = server::PATH.as_bytes().to_vec();
    assert!(running.get_raw(server::RawLookUp { path }).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_share_bodies_and_have_a_maximum_size() {
    let running = start(|_| {}).await;
    let mut client = running.policies();
    let several = client.batch_get_effective_policies(batch_of([PATH, "gateways/x/y", PATH, "?"]));
    let several = several.await.unwrap().into_inner();
    assert_eq!(several.bodies.len(), 1);
    assert_eq!(several.bodies[0].policies.len(), 2);
    let codes = several
        .results
        .iter()
        .map(|r| r.error.as_ref().map(|e| e.code));
    assert_eq!(codes.collect::<Vec<_>>(), [None, Some(5), None, Some(3)]);
    assert_eq!(several.results[0].body, Some(0));
    assert_eq!(several.results[2].body, Some(0));

    let most = client
        .batch_get_effective_policies(batch_of([PATH; 10_000]))
        .await
        .unwrap();
    let most = most.into_inner();
    assert_eq!((most.results.len(), most.bodies.len()), (10_000, 1));
    let over = client
        .batch_get_effective_policies(batch_of([PATH; 10_001]))
        .await
        .unwrap_err();
    assert_eq!(over.code(), Code::InvalidArgument);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_and_etags_reduce_the_reply() {
    let running = start(|_| {}).await;
    let narrow = v1::GetEffectivePoliciesRequest {
        kinds: vec!["APolicy.p.example".to_owned(), "Nope.example".to_owned()],
        ..by_path(PATH)
    };
    let reply = running.get(narrow).await.unwrap();
    let result = reply.result.unwrap();
    assert_eq!(result.policies.len(), 1);
    assert_eq!(reply.kinds.len(), 1);
    assert_eq!(reply.kinds[0].kind, "Nope.example");
    assert_eq!(reply.kinds[0].state(), v1::kind_state::State::Unknown);

    let etag = running
        .get(by_path(PATH))
        .await
        .unwrap()
        .result
        .unwrap()
        .etag;
    let known = v1::GetEffectivePoliciesRequest {
        if_none_match: etag.clone(),
        ..by_path(PATH)
    };
    let result = running.get(known).await.unwrap().result.unwrap();
    assert!(result.not_modified && result.policies.is_empty());
    assert_eq!(result.etag, etag);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_over_a_limit_get_a_status_and_the_connection_stays_usable() {
    let running = start(|settings| settings.limits.reply_bytes = 60_000).await;
    let huge = running
        .get(by_path(&"x".repeat(5 * 1024 * 1024)))
        .await
        .unwrap_err();
    let codes = [Code::OutOfRange, Code::ResourceExhausted];
    assert!(codes.contains(&huge.code()), "{huge:?}");
    let long = running
        .get(by_path(&"x".repeat(256 * 1024)))
        .await
        .unwrap_err();
    assert_eq!(long.code(), Code::InvalidArgument);
    assert!(long.message().len() < 1_000);
    let request = batch_of([PATH; 10_000]);
    let reply = running
        .policies()
        .batch_get_effective_policies(request)
        .await
        .unwrap_err();
    assert_eq!(reply.code(), Code::ResourceExhausted);
    running.get(by_path(PATH)).await.unwrap();
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn health_follows_the_first_snapshot() {
    let running = start(|settings| {
        std::fs::write(settings.inputs.manifests[0].join("z.yaml"), "a: [").unwrap();
        settings.health_listen = Some("127.0.0.1:0".to_owned());
    });
    let running = running.await_bound().await;
    let services = [
        "",
        "entail.v1.EffectivePolicyService",
        "entail.v1.PolicyInsightService",
    ];
    for address in [&running.address, running.health_address.as_ref().unwrap()] {
        for service in services {
            assert!(!running.health(address, service).await, "{service}");
        }
        assert!(running.health(address, "liveness").await);
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let early = running.get(by_path(PATH)).await.unwrap_err();
    assert_eq!(early.code(), Code::Unavailable);
    assert!(early.message().contains("z.yaml:1"), "{}", early.message());

    std::fs::remove_file(running.manifests().join("z.yaml")).unwrap();
    running.until_serving().await;
    for address in [&running.address, running.health_address.as_ref().unwrap()] {
        for service in services {
            assert!(running.health(address, service).await, "{service}");
        }
    }
    running.get(by_path(PATH)).await.unwrap();
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn partial_manifests_can_be_allowed() {
    let running = start(|settings| {
        std::fs::write(settings.inputs.manifests[0].join("z.yaml"), "a: [").unwrap();
        settings.inputs.allow_partial = true;
    });
    let running = running.await;
    let mut insight = running.insight();
    let status = insight.get_server_status(v1::GetServerStatusRequest {});
    let status = status.await.unwrap().into_inner();
    assert_eq!(status.problems.len(), 1);
    assert!(
        status.problems[0].location.ends_with("z.yaml:1"),
        "{status:?}"
    );
    assert_eq!(status.problems[0].code, "E001");
    let kinds = running.get(by_path(PATH)).await.unwrap().kinds;
    assert_eq!(kinds[0].reason, "InputUnreadable", "{kinds:?}");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_do_not_exist_are_errors_and_not_empty_answers() {
    use v1::list_affected_request::Subject;
    let running = start(|_| {}).await;
    let mut insight = running.insight();
    let mut list = async |name: &str, level: &str| {
        let request = v1::ListPathsRequest {
            name: name.to_owned(),
            levels: vec![level.to_owned()],
            ..v1::ListPathsRequest::default()
        };
        let reply = insight.list_paths(request).await;
        reply
            .map(|reply| reply.into_inner().paths.len())
            .map_err(|status| status.code())
    };
    assert_eq!(list("", "Nope").await, Err(Code::InvalidArgument));
    assert_eq!(list(PATH, "GatewayClass").await, Ok(0));
    assert_eq!(
        list("gateway/nowhere/none", "Gateway").await,
        Err(Code::NotFound)
    );
    for object in [
        "httproute/default/nope",
        "nope/default/nope",
        "gateway/default/gw#nope",
    ] {
        let request = v1::ListAffectedRequest {
            subject: Some(Subject::Object(object.to_owned())),
            ..v1::ListAffectedRequest::default()
        };
        let refused = insight.list_affected(request).await.unwrap_err();
        assert_eq!(refused.code(), Code::NotFound, "{object}");
    }
    let request = v1::ListPoliciesRequest {
        kinds: vec!["Nope.example.com".to_owned()],
        ..v1::ListPoliciesRequest::default()
    };
    let reply = insight.list_policies(request).await.unwrap().into_inner();
    assert_eq!(reply.kinds[0].reason, "NoProfile", "{reply:?}");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_number_of_places_of_a_finding_is_checked() {
    let running = start(|_| {}).await;
    let mut insight = running.insight();
    for (max_places, expected) in [
        (0, None),
        (100_000, None),
        (-1, Some(Code::InvalidArgument)),
    ] {
        let request = v1::ListFindingsRequest {
            max_places,
            ..v1::ListFindingsRequest::default()
        };
        let refused = insight.list_findings(request).await.err();
        assert_eq!(
            refused.map(|status| status.code()),
            expected,
            "{max_places}"
        );
    }
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reflection_lists_the_services() {
    let running = start(|_| {}).await;
    let symbol = "entail.v1.EffectivePolicyService".to_owned();
    let requests = tokio_stream::iter([
        list_services(),
        reflection_request(MessageRequest::FileContainingSymbol(symbol)),
    ]);
    let mut client = ServerReflectionClient::new(running.channel().await);
    let replies = client
        .server_reflection_info(requests)
        .await
        .unwrap()
        .into_inner();
    let replies: Vec<ServerReflectionResponse> = replies.map(Result::unwrap).collect().await;
    let Some(MessageResponse::ListServicesResponse(list)) = &replies[0].message_response else {
        panic!("{replies:?}");
    };
    let names: BTreeSet<&str> = list.service.iter().map(|s| s.name.as_str()).collect();
    for name in [
        "entail.v1.EffectivePolicyService",
        "entail.v1.PolicyInsightService",
        "grpc.health.v1.Health",
    ] {
        assert!(names.contains(name), "{names:?}");
    }
    // The service for Envoy is not enabled.
    assert!(!names.contains("envoy.service.auth.v3.Authorization"));
    let Some(MessageResponse::FileDescriptorResponse(file)) = &replies[1].message_response else {
        panic!("{replies:?}");
    };
    assert!(!file.file_descriptor_proto.is_empty());
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unix_socket_serves_and_is_removed_at_shutdown() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("entail.sock");
    let address = format!("unix:{}", socket.display());
    let listen = address.clone();
    let running = start(move |settings| settings.listen.push(listen)).await;
    let answer = tokio::task::spawn_blocking(move || {
        let healthy = entail::cli::health(&address, &ClientTls::default(), "", PATIENCE);
        assert_eq!(healthy, Ok(true));
        RemoteBackend::connect(&address, &ClientTls::default(), PATIENCE)
            .unwrap()
            .get(by_path(PATH))
            .unwrap()
    });
    let over_tcp = running.get(by_path(PATH)).await.unwrap();
    assert_eq!(
        answer.await.unwrap().encode_to_vec(),
        over_tcp.encode_to_vec()
    );
    running.stop().await;
    assert!(!socket.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_remote_backend_answers_as_the_local_one() {
    let running = start(|_| {}).await;
    let inputs = Inputs {
        manifests: vec![running.manifests()],
        ..Inputs::default()
    };
    let address = running.address.clone();
    let compared = tokio::task::spawn_blocking(move || {
        let mut local = load(&inputs).unwrap().local;
        let mut remote = RemoteBackend::connect(&address, &ClientTls::default(), PATIENCE).unwrap();
        let paths = v1::ListPathsRequest::default();
        let paths = [local.list_paths(paths.clone()), remote.list_paths(paths)];
        let paths = paths.map(|reply| reply.unwrap().paths);
        assert_eq!(paths[0], paths[1]);
        assert!(paths[0].iter().any(|path| path == PATH), "{:?}", paths[0]);
        let explain = || v1::ExplainRequest {
            name: PATH.to_owned(),
            ..Default::default()
        };
        let explained = [local.explain(explain()), remote.explain(explain())];
        let explained = explained.map(|reply| reply.unwrap().paths);
        assert_eq!(explained[0], explained[1]);
        let missing = by_path("gateways/default/none");
        let failures = [local.get(missing.clone()), remote.get(missing)].map(Result::unwrap_err);
        assert_eq!(failures[0], failures[1]);
        assert!(matches!(&failures[1], QueryError::Failure(f) if f.code == FailureCode::NotFound));
        let health = entail::cli::health(
            &address,
            &ClientTls::default(),
            "nope",
            Duration::from_secs(5),
        );
        assert!(matches!(health, Err(QueryError::Failure(_))), "{health:?}");
        assert_eq!(
            remote.server_status().unwrap().paths,
            local.server_status().unwrap().paths
        );
    });
    compared.await.unwrap();
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_settings_are_errors_at_the_start() {
    let exit_code = |adjust: fn(&mut entail::app::ServeSettings)| async move {
        start(adjust).error().await.exit_code()
    };
    assert_eq!(
        exit_code(|s| s.listen = vec!["0.0.0.0:0".to_owned()]).await,
        2
    );
    assert_eq!(
        exit_code(|s| s.inputs.profiles.push("/nowhere.yaml".into())).await,
        3
    );
    assert_eq!(
        exit_code(|s| s.listen.push("unix:/nowhere/x.sock".to_owned())).await,
        3
    );
    assert_eq!(
        exit_code(|s| s.port_file = Some("/nowhere/port".into())).await,
        3
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopping_server_ends_health_streams_and_waits_for_requests() {
    use tonic_health::pb::health_check_response::ServingStatus;
    let folder = tempfile::tempdir().unwrap();
    let port_file = folder.path().join("port");
    let setting = port_file.clone();
    let running = start(move |settings| settings.port_file = Some(setting)).await;
    assert_eq!(
        std::fs::read_to_string(&port_file).unwrap().trim(),
        running.address
    );

    let channel = running.channel().await;
    let mut health = tonic_health::pb::health_client::HealthClient::new(channel.clone());
    let request = tonic_health::pb::HealthCheckRequest::default();
    let mut watched = health.watch(request).await.unwrap().into_inner();
    let first = watched.message().await.unwrap().unwrap();
    assert_eq!(first.status(), ServingStatus::Serving);
    // A stream whose first reply has arrived is certainly in progress.
    let (requests, receiver) = tokio::sync::mpsc::channel(1);
    let mut reflection = ServerReflectionClient::new(channel);
    requests.send(list_services()).await.unwrap();
    let replies = reflection
        .server_reflection_info(ReceiverStream::new(receiver))
        .await
        .unwrap();
    let mut replies = replies.into_inner();
    assert!(replies.message().await.unwrap().is_some());

    let Running {
        stop,
        mut task,
        address,
        ..
    } = running;
    stop.send(()).unwrap();
    let last = watched.message().await.unwrap().unwrap();
    assert_eq!(last.status(), ServingStatus::NotServing);
    assert!(watched.message().await.unwrap().is_none());
    // The server accepts no new connections and waits for the open stream.
    while tokio::net::TcpStream::connect(&address).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let early = tokio::time::timeout(Duration::from_millis(300), &mut task).await;
    assert!(early.is_err(), "the server did not wait: {early:?}");
    requests.send(list_services()).await.unwrap();
    assert!(replies.message().await.unwrap().is_some());
    drop(requests);
    assert!(replies.message().await.unwrap().is_none());
    let ended = tokio::time::timeout(Duration::from_secs(5), task).await;
    ended.unwrap().unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn open_streams_are_closed_after_the_drain_timeout() {
    let drain = Duration::from_millis(400);
    let running = start(move |settings| settings.drain_timeout = drain).await;
    let (requests, receiver) = tokio::sync::mpsc::channel(1);
    let mut reflection = ServerReflectionClient::new(running.channel().await);
    requests.send(list_services()).await.unwrap();
    let replies = reflection
        .server_reflection_info(ReceiverStream::new(receiver))
        .await
        .unwrap();
    assert!(replies.into_inner().message().await.unwrap().is_some());
    let started = Instant::now();
    running.stop().await;
    let elapsed = started.elapsed();
    // The server stopped, and not before the timeout.
    assert!(elapsed >= drain, "{elapsed:?}");
    drop(requests);
}

fn list_services() -> ServerReflectionRequest {
    reflection_request(MessageRequest::ListServices(String::new()))
}

fn reflection_request(message: MessageRequest) -> ServerReflectionRequest {
    ServerReflectionRequest {
        host: String::new(),
        message_request: Some(message),
    }
}

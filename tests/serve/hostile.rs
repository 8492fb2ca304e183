//! Misbehaving clients. The server rejects them and keeps answering other clients.

use std::time::Duration;

use bytes::Bytes;
use entail::api::v1;
use entail::insight::MAX_REQUEST_BYTES;
use http::Request;
use prost::Message;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tonic::{Code, Status};

use super::admin::until_metric;
use super::server::{PATH, Running, by_path, start};

const SERVICE: &str = "entail.v1.EffectivePolicyService";

pub type Requests = h2::client::SendRequest<Bytes>;

pub async fn connection(running: &Running) -> Requests {
    let socket = TcpStream::connect(&running.address).await.unwrap();
    let (requests, connection) = h2::client::handshake(socket).await.unwrap();
    tokio::spawn(connection);
    requests
}

pub fn request(method: &str) -> Request<()> {
    let request = Request::post(format!("http://entail/{SERVICE}/{method}"));
    let request = request.header("content-type", "application/grpc");
    request.header("te", "trailers").body(()).unwrap()
}

pub fn frame(message: &[u8]) -> Bytes {
    let length = u32::try_from(message.len()).unwrap();
    [&[0], &length.to_be_bytes()[..], message].concat().into()
}

/// Sends bytes as the body of a request. Returns the gRPC status, or `None` if the stream was
/// reset.
pub async fn status(requests: &Requests, method: &str, bytes: Bytes) -> Option<String> {
    let mut requests = requests.clone().ready().await.ok()?;
    let (reply, mut body) = requests.send_request(request(method), false).ok()?;
    body.send_data(bytes, true).ok()?;
    let (parts, mut body) = reply.await.ok()?.into_parts();
    if let Some(status) = parts.headers.get("grpc-status") {
        return Some(status.to_str().unwrap().to_owned());
    }
    while let Some(data) = body.data().await {
        let length = data.ok()?.len();
        body.flow_control().release_capacity(length).ok()?;
    }
    let trailers = body.trailers().await.ok()??;
    Some(trailers["grpc-status"].to_str().unwrap().to_owned())
}

async fn still_answers(running: &Running) {
    let call = running.get(by_path(PATH));
    let reply = tokio::time::timeout(Duration::from_secs(5), call).await;
    assert!(reply.expect("the server no longer answers").is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_messages_get_a_status() {
    let running = start(|_| {}).await;
    let requests = connection(&running).await;
    let mut longer = frame(b"x").to_vec();
    longer[4] += 9;
    for method in [
        "WatchEffectivePolicies",
        "ResolveRequest",
        "BatchGetEffectivePolicies",
    ] {
        for bytes in [
            frame(b"\xff\xff\xff"),
            longer.clone().into(),
            Bytes::from_static(&[9; 40]),
            Bytes::new(),
        ] {
            let status = status(&requests, method, bytes.clone()).await;
            assert!(
                status.is_some_and(|status| status != "0"),
                "{method}: {bytes:?}"
            );
        }
    }
    still_answers(&running).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn oversized_headers_are_rejected() {
    let running = start(|_| {}).await;
    let requests = connection(&running).await;
    let mut requests = requests.ready().await.unwrap();
    let mut large = request("GetEffectivePolicies");
    for at in 0..64 {
        let name = format!("x-{at}").parse::<http::HeaderName>().unwrap();
        large
            .headers_mut()
            .insert(name, "v".repeat(1_024).parse().unwrap());
    }
    let (reply, _) = requests.send_request(large, true).unwrap();
    let is_rejected = match reply.await {
        Ok(reply) => reply.status() == 431,
        Err(_) => true,
    };
    assert!(is_rejected);
    still_answers(&running).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_very_many_elements_are_rejected_before_they_are_decoded() {
    let running = start(|_| {}).await;
    let requests = connection(&running).await;
    // Empty elements of two bytes, which would have hundreds in memory: requests of a batch, and headers.
    for (method, tag, count, expected) in [
        ("BatchGetEffectivePolicies", 0x0A, 2_000_000, "8"),
        ("BatchGetEffectivePolicies", 0x0A, 100_000, "8"),
        // More than a batch may have, but not too many to be told so.
        ("BatchGetEffectivePolicies", 0x0A, 20_000, "3"),
        ("BatchGetEffectivePolicies", 0x12, 200_000, "8"),
        ("GetEffectivePolicies", 0x1A, 200_000, "8"),
        ("WatchEffectivePolicies", 0x0A, 200_000, "8"),
        // Too long for what it asks.
        ("GetEffectivePolicies", 0x1A, 300_000, "11"),
    ] {
        let message = [tag, 0].repeat(count);
        let found = status(&requests, method, frame(&message)).await;
        assert_eq!(found.as_deref(), Some(expected), "{method} {count}");
    }
    // All of them are given back.
    for _ in 0..20 {
        let message = [0x0A, 0].repeat(20_000);
        let found = status(&requests, "BatchGetEffectivePolicies", frame(&message)).await;
        assert_eq!(found.as_deref(), Some("3"));
    }
    still_answers(&running).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_sends_without_a_pause_has_a_low_priority() {
    let sockets = tempfile::tempdir().unwrap();
    let admin = sockets.path().join("admin.sock");
    let socket = admin.clone();
    let running = start(|settings| settings.admin_socket = Some(socket)).await;
    let counted = async |times: u64| {
        let line = format!("entail_bounds_exceeded_total{{bound=\"sustained_reads\"}} {times}");
        until_metric(&admin, &line).await;
    };
    let requests = connection(&running).await;
    let look_up = frame(&by_path(PATH).encode_to_vec());
    let get = "GetEffectivePolicies";
    for _ in 0..200 {
        let found = status(&requests, get, look_up.clone()).await;
        assert_eq!(found.as_deref(), Some("0"));
    }
    counted(0).await;
    // Frames of an unknown type, which are ignored: HTTP/2 has no limit for them.
    let mut socket = TcpStream::connect(&running.address).await.unwrap();
    let start = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    socket.write_all(start).await.unwrap();
    let unknown = [&b"\0\x40\0\xEE\0\0\0\0\0"[..], &[0; 0x4000]].concat();
    let many = unknown.repeat(16 * 64);
    socket.write_all(&many).await.unwrap();
    counted(1).await;
    for _ in 0..200 {
        let found = status(&requests, get, look_up.clone()).await;
        assert_eq!(found.as_deref(), Some("0"));
    }
    drop(socket);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_small_headers_are_rejected() {
    let running = start(|_| {}).await;
    let requests = connection(&running).await;
    for (count, expected) in [(100, Some("3")), (200, Some("8"))] {
        let mut requests = requests.clone().ready().await.unwrap();
        let mut many = request("GetEffectivePolicies");
        for at in 0..count {
            let name = format!("x-{at}").parse::<http::HeaderName>().unwrap();
            many.headers_mut().insert(name, "v".parse().unwrap());
        }
        let (reply, mut body) = requests.send_request(many, false).unwrap();
        body.send_data(frame(&[]), true).unwrap();
        let reply = reply.await.unwrap();
        let status = reply.headers().get("grpc-status");
        let status = status.map(|status| status.to_str().unwrap());
        assert_eq!(status, expected, "{count}");
    }
    still_answers(&running).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_without_a_message_do_not_block_other_callers() {
    let running = start(|_| {}).await;
    let requests = connection(&running).await;
    let mut open = Vec::new();
    for at in 0..1_000 {
        let method = [
            "GetEffectivePolicies",
            "WatchEffectivePolicies",
            "ResolveRequest",
        ][at % 3];
        let mut requests = requests.clone().ready().await.unwrap();
        let (reply, mut body) = requests.send_request(request(method), false).unwrap();
        // Half of the prefix of a frame, and then nothing.
        body.send_data(Bytes::from_static(&[0, 0]), false).unwrap();
        open.push((reply, body));
    }
    still_answers(&running).await;
    drop(open);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_number_of_streams_per_connection_is_limited() {
    let running = start(|settings| settings.limits.watches_per_connection = 100).await;
    let requests = connection(&running).await;
    let message = frame(&v1::WatchEffectivePoliciesRequest::default().encode_to_vec());
    let mut kept = Vec::new();
    let mut refused = 0;
    for _ in 0..10_000 {
        let mut requests = requests.clone().ready().await.unwrap();
        let (reply, mut body) = requests
            .send_request(request("WatchEffectivePolicies"), false)
            .unwrap();
        body.send_data(message.clone(), true).unwrap();
        let reply = reply.await.unwrap();
        match reply.headers().get("grpc-status") {
            None => kept.push(reply),
            Some(status) => {
                assert_eq!(status, "8", "RESOURCE_EXHAUSTED");
                refused += 1;
            }
        }
    }
    assert_eq!((kept.len(), refused), (100, 9_900));
    still_answers(&running).await;
    drop(kept);
    running.stop().await;
}

async fn resolve(running: &Running, request: v1::ResolveRequestRequest) -> Result<usize, Status> {
    let reply = running.policies().resolve_request(request).await?;
    Ok(reply.into_inner().resolved.len())
}

#[tokio::test(flavor = "multi_thread")]
async fn ambiguous_requests_to_resolve_are_rejected() {
    let running = start(|_| {}).await;
    let request_to = |host: &str, path: &str| v1::ResolveRequestRequest {
        host: host.to_owned(),
        path: path.to_owned(),
        ..Default::default()
    };
    for (host, path) in [
        ("example.com:8080", "/"),
        ("EXAMPLE.com", ""),
        ("example.com.", "/?a=b"),
        ("[::1]:80", "/caf%C3%A9"),
        ("", "/a"),
    ] {
        assert_eq!(
            resolve(&running, request_to(host, path)).await.unwrap(),
            1,
            "{host} {path}"
        );
    }
    for (host, path) in [
        ("a", "/a%2Fb"),
        ("a", "/a/../b"),
        ("a", "/.."),
        ("a", "//"),
        ("a", "/a\\b"),
        ("a", "*"),
        ("a/b", "/"),
        ("a:b", "/"),
        ("a..b", "/"),
    ] {
        let error = resolve(&running, request_to(host, path)).await.unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{host} {path}");
    }
    let mut large = request_to("a", "/");
    let header = |name: String| v1::RequestHeader {
        name,
        value: "v".to_owned(),
    };
    large.headers = vec![header("n".repeat(8_192)), header(String::new())];
    large
        .headers
        .extend((0..5_000).map(|at| header(format!("x-{at}"))));
    assert_eq!(resolve(&running, large).await.unwrap(), 1);
    let port = v1::ResolveRequestRequest {
        port: 70_000,
        ..Default::default()
    };
    assert_eq!(
        resolve(&running, port).await.unwrap_err().code(),
        Code::InvalidArgument
    );
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn large_requests_to_resolve_are_refused_and_those_below_are_resolved() {
    let running = start(|_| {}).await;
    // The path and the method count, too, and each header has 32 bytes beside its text.
    let with_header = |bytes: usize| v1::ResolveRequestRequest {
        path: "/".to_owned(),
        method: "GET".to_owned(),
        headers: vec![v1::RequestHeader {
            name: "x-large".to_owned(),
            value: "a".repeat(bytes - "/".len() - "GET".len() - "x-large".len() - 32),
        }],
        ..Default::default()
    };
    let small = resolve(&running, with_header(100)).await.unwrap();
    let largest = resolve(&running, with_header(MAX_REQUEST_BYTES)).await;
    assert_eq!(largest.unwrap(), small);
    let refused = resolve(&running, with_header(MAX_REQUEST_BYTES + 1)).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().contains("have 262145 bytes"), "{refused}");
    running.stop().await;
}

/// The errors of requests with a name, by what has the name.
async fn errors_of_name(running: &Running, name: &str) -> Vec<(&'static str, Status)> {
    let mut errors = insight_errors(running, name.to_owned()).await;
    let mut policies = running.policies();
    let watch = v1::WatchEffectivePoliciesRequest {
        levels: vec![name.to_owned()],
        ..Default::default()
    };
    let watch = policies.watch_effective_policies(watch).await.err();
    errors.push(("level", watch));
    let dialect = v1::ResolveRequestRequest {
        dialect: name.to_owned(),
        ..Default::default()
    };
    let gateway = v1::ResolveRequestRequest {
        gateway: name.to_owned(),
        ..Default::default()
    };
    for (about, request) in [("dialect", dialect), ("gateway", gateway)] {
        errors.push((about, policies.resolve_request(request).await.err()));
    }
    let errors = errors.into_iter();
    errors
        .filter_map(|(about, error)| Some((about, error?)))
        .collect()
}

async fn insight_errors(running: &Running, name: String) -> Vec<(&'static str, Option<Status>)> {
    use v1::list_affected_request::Subject;
    let mut insight = running.insight();
    let explain = v1::ExplainRequest {
        name: name.clone(),
        ..Default::default()
    };
    let paths = v1::ListPathsRequest {
        name: name.clone(),
        ..Default::default()
    };
    let preview = v1::PreviewChangeRequest {
        deletes: vec![name.clone()],
        ..Default::default()
    };
    let mut errors = vec![
        ("explain", insight.explain(explain).await.err()),
        ("paths", insight.list_paths(paths).await.err()),
        ("preview", insight.preview_change(preview).await.err()),
    ];
    let policy = Subject::Policy("APolicy/default/p".to_owned());
    for (about, subject, unit) in [
        ("object", Subject::Object(name.clone()), ""),
        ("policy", Subject::Policy(name.clone()), ""),
        ("unit", policy, &*name),
    ] {
        let request = v1::ListAffectedRequest {
            subject: Some(subject),
            unit: unit.to_owned(),
            ..Default::default()
        };
        errors.push((about, insight.list_affected(request).await.err()));
    }
    errors
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_repeat_long_names_only_in_part() {
    let running = start(|_| {}).await;
    for (name, at_least) in [
        ("é".repeat(100_000), 8),
        (format!("a/{}", "x".repeat(100_000)), 6),
    ] {
        let errors = errors_of_name(&running, &name).await;
        assert!(errors.len() >= at_least, "{errors:?}");
        for (about, error) in errors {
            let is_told = [Code::InvalidArgument, Code::NotFound].contains(&error.code());
            assert!(
                is_told && error.message().len() < 1_000,
                "{about}: {error:?}"
            );
        }
    }
    still_answers(&running).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_with_many_sections_is_not_a_kind() {
    let running = start(|_| {}).await;
    let name = format!("a{}/x", ":s.b".repeat(50_000));
    let errors = errors_of_name(&running, &name).await;
    assert!(
        errors.iter().any(|(about, _)| *about == "explain"),
        "{errors:?}"
    );
    still_answers(&running).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_name_a_bounded_number_of_kinds_and_levels() {
    let running = start(|_| {}).await;
    let several = |count: usize| vec!["a".to_owned(); count];
    let mut policies = running.policies();
    let mut insight = running.insight();
    for (count, expected) in [
        (100, Code::Ok),
        (101, Code::InvalidArgument),
        (10_000, Code::InvalidArgument),
    ] {
        let kinds = || several(count);
        let get = v1::GetEffectivePoliciesRequest {
            kinds: kinds(),
            ..by_path(PATH)
        };
        let batch = v1::BatchGetEffectivePoliciesRequest {
            kinds: kinds(),
            ..Default::default()
        };
        let resolve = v1::ResolveRequestRequest {
            path: "/".to_owned(),
            kinds: kinds(),
            ..Default::default()
        };
        let explain = v1::ExplainRequest {
            name: PATH.to_owned(),
            kinds: kinds(),
            ..Default::default()
        };
        let list = v1::ListPoliciesRequest {
            kinds: kinds(),
            ..Default::default()
        };
        let findings = v1::ListFindingsRequest {
            kinds: kinds(),
            ..Default::default()
        };
        let paths = v1::ListPathsRequest {
            levels: vec!["RouteRule".to_owned(); count],
            ..Default::default()
        };
        let codes = [
            policies.get_effective_policies(get).await.err(),
            policies.batch_get_effective_policies(batch).await.err(),
            policies.resolve_request(resolve).await.err(),
            insight.explain(explain).await.err(),
            insight.list_policies(list).await.err(),
            insight.list_findings(findings).await.err(),
            insight.list_paths(paths).await.err(),
        ];
        let codes = codes.map(|error| error.map_or(Code::Ok, |error| error.code()));
        assert_eq!(codes, [expected; 7], "{count}");
    }
    running.stop().await;
}

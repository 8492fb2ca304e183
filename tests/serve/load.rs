//! Admission: limits for concurrent requests, deadlines and connection age.

use std::time::Duration;

use bytes::Bytes;
use entail::api::v1;
use http::Response;
use prost::Message;
use tonic::Code;

use super::hostile::{Requests, connection, frame, request};
use super::server::{PATH, Running, batch_of, by_path, start};

type Replies = h2::client::ResponseFuture;

/// Number of bytes of a request after which it holds permits, although its message is incomplete.
const PREFIX: usize = 80 * 1024;

/// Starts a look-up: sends its headers.
async fn begin_lookup(
    requests: &Requests,
    timeout: Option<&str>,
) -> (Replies, h2::SendStream<Bytes>) {
    let mut head = request("GetEffectivePolicies");
    if let Some(timeout) = timeout {
        head.headers_mut()
            .insert("grpc-timeout", timeout.parse().unwrap());
    }
    let mut requests = requests.clone().ready().await.unwrap();
    let (reply, body) = requests.send_request(head, false).unwrap();
    (reply, body)
}

/// A request that holds permits, and the part of its message that has not been sent.
struct OpenRequest {
    reply: Replies,
    body: h2::SendStream<Bytes>,
    rest: Bytes,
}

/// Starts a call and sends enough of its message that it holds permits if the server has any left.
async fn begin_request(
    requests: &Requests,
    url: &str,
    message: &Bytes,
    timeout: &str,
) -> OpenRequest {
    let mut head = request("BatchGetEffectivePolicies");
    *head.uri_mut() = format!("http://entail/{url}").parse().unwrap();
    let timeout = timeout.parse().unwrap();
    head.headers_mut().insert("grpc-timeout", timeout);
    let mut requests = requests.clone().ready().await.unwrap();
    let (reply, mut body) = requests.send_request(head, false).unwrap();
    body.send_data(message.slice(..PREFIX), false).unwrap();
    OpenRequest {
        reply,
        body,
        rest: message.slice(PREFIX..),
    }
}

/// Starts a batch that holds permits on each of the connections. No other request may run
/// meanwhile: it could hold the last permit, and a batch would be rejected.
async fn begin_batches(
    running: &Running,
    connections: &[&Requests],
    timeout: &str,
) -> Vec<OpenRequest> {
    let message = frame(&batch_of([PATH; 2_000]).encode_to_vec());
    let url = "entail.v1.EffectivePolicyService/BatchGetEffectivePolicies";
    for _ in 0..100 {
        let mut all = Vec::new();
        for requests in connections {
            all.push(begin_request(requests, url, &message, timeout).await);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        let probe = finish_lookup(begin_lookup(connections[0], None).await).await;
        let mut are_all_open = probe == Code::ResourceExhausted;
        for request in &mut all {
            are_all_open &= request.is_open().await;
        }
        if are_all_open {
            return all;
        }
    }
    panic!(
        "{} requests do not hold permits at {}",
        connections.len(),
        running.address
    );
}

impl OpenRequest {
    async fn is_open(&mut self) -> bool {
        let reply = tokio::time::timeout(Duration::ZERO, &mut self.reply).await;
        reply.is_err()
    }

    async fn finish(mut self) -> Code {
        self.body.send_data(self.rest, true).unwrap();
        code(self.reply.await.unwrap()).await
    }
}

fn message() -> Bytes {
    frame(&by_path(PATH).encode_to_vec())
}

/// The gRPC code of a reply, from its headers or trailers.
async fn code(reply: Response<h2::RecvStream>) -> Code {
    let (parts, mut body) = reply.into_parts();
    if let Some(status) = parts.headers.get("grpc-status") {
        return Code::from_bytes(status.as_bytes());
    }
    while let Some(data) = body.data().await {
        let length = data.unwrap().len();
        body.flow_control().release_capacity(length).unwrap();
    }
    let trailers = body.trailers().await.unwrap().unwrap();
    Code::from_bytes(trailers["grpc-status"].as_bytes())
}

/// Sends the message of a look-up; returns the code of the reply.
async fn finish_lookup(lookup: (Replies, h2::SendStream<Bytes>)) -> Code {
    let (reply, mut body) = lookup;
    body.send_data(message(), true).unwrap();
    code(reply.await.unwrap()).await
}

/// Calls health, which responds under any load. Frames of a connection keep their order, so the
/// reply shows that the server has received everything sent before.
async fn check_health(requests: &Requests) {
    let mut head = request("Check");
    *head.uri_mut() = "http://entail/grpc.health.v1.Health/Check".parse().unwrap();
    let mut requests = requests.clone().ready().await.unwrap();
    let (reply, mut body) = requests.send_request(head, false).unwrap();
    body.send_data(frame(b""), true).unwrap();
    assert_eq!(code(reply.await.unwrap()).await, Code::Ok);
}

/// Starts a server with limits for all requests and for the requests of one connection.
async fn start_with_limits(total: usize, per_connection: usize) -> Running {
    start(move |settings| {
        settings.limits.requests = total;
        settings.limits.requests_per_connection = per_connection;
        // Requests stay open as long as a test needs them.
        settings.limits.request_arrival = Duration::from_secs(3600);
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_over_the_limit_of_the_server_are_rejected() {
    let running = start_with_limits(2, 10).await;
    let (one, other) = (connection(&running).await, connection(&running).await);
    let open = begin_batches(&running, &[&one, &other], "1H").await;
    let (reply, mut body) = begin_lookup(&other, None).await;
    body.send_data(message(), true).unwrap();
    let reply = reply.await.unwrap();
    assert_eq!(reply.headers()["grpc-retry-pushback-ms"], "100");
    assert_eq!(code(reply).await, Code::ResourceExhausted);
    // Admitted requests, PolicyInsightService and health are not affected.
    let explained = running.explain(PATH).await;
    assert!(explained.is_ok(), "{explained:?}");
    check_health(&one).await;
    for request in open {
        assert_eq!(request.finish().await, Code::Ok);
    }
    assert_eq!(
        finish_lookup(begin_lookup(&one, None).await).await,
        Code::Ok
    );
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_with_many_rejected_requests_stays_usable() {
    let running = start_with_limits(1, 1).await;
    let requests = connection(&running).await;
    let open = begin_batches(&running, &[&requests], "1H").await;
    for _ in 0..5_000 {
        let code = finish_lookup(begin_lookup(&requests, None).await).await;
        assert_eq!(code, Code::ResourceExhausted);
    }
    for request in open {
        assert_eq!(request.finish().await, Code::Ok);
    }
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_without_a_message_hold_no_permits() {
    let running = start_with_limits(2, 100).await;
    let (idle, other) = (connection(&running).await, connection(&running).await);
    let mut open = Vec::new();
    for method in [
        "GetEffectivePolicies",
        "ResolveRequest",
        "BatchGetEffectivePolicies",
    ] {
        for _ in 0..20 {
            let mut requests = idle.clone().ready().await.unwrap();
            let (reply, mut body) = requests.send_request(request(method), false).unwrap();
            body.send_data(Bytes::from_static(&[0, 0]), false).unwrap();
            open.push((reply, body));
        }
    }
    check_health(&idle).await;
    // Each request holds permits only until the server finds no message.
    let mut last = Code::ResourceExhausted;
    while last == Code::ResourceExhausted {
        last = finish_lookup(begin_lookup(&other, None).await).await;
    }
    for _ in 0..50 {
        assert_eq!(
            finish_lookup(begin_lookup(&other, None).await).await,
            Code::Ok
        );
    }
    drop(open);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_do_not_use_the_permits_of_lookups() {
    let running = start_with_limits(1, 1).await;
    let requests = connection(&running).await;
    let message = frame(&v1::WatchEffectivePoliciesRequest::default().encode_to_vec());
    let mut streams = Vec::new();
    for _ in 0..20 {
        let mut requests = requests.clone().ready().await.unwrap();
        let head = request("WatchEffectivePolicies");
        let (reply, mut body) = requests.send_request(head, false).unwrap();
        body.send_data(message.clone(), true).unwrap();
        streams.push(reply);
    }
    assert_eq!(
        finish_lookup(begin_lookup(&requests, None).await).await,
        Code::Ok
    );
    for reply in streams {
        let reply = reply.await.unwrap();
        assert!(reply.headers().get("grpc-status").is_none(), "{reply:?}");
    }
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_requests_of_one_connection_are_limited() {
    let running = start_with_limits(100, 3).await;
    let (greedy, other) = (connection(&running).await, connection(&running).await);
    let all = begin_batches(&running, &[&greedy; 3], "1H").await;
    for _ in 0..20 {
        assert_eq!(
            finish_lookup(begin_lookup(&greedy, None).await).await,
            Code::ResourceExhausted
        );
        assert_eq!(
            finish_lookup(begin_lookup(&other, None).await).await,
            Code::Ok
        );
    }
    // Cancelled requests return their permits.
    drop(all);
    let mut last = Code::ResourceExhausted;
    while last == Code::ResourceExhausted {
        last = finish_lookup(begin_lookup(&greedy, None).await).await;
    }
    assert_eq!(last, Code::Ok);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_ends_at_its_deadline() {
    let running = start_with_limits(1, 1).await;
    let requests = connection(&running).await;
    let mut open = begin_batches(&running, &[&requests], "2S").await;
    let late = open.pop().unwrap().reply;
    assert_eq!(code(late.await.unwrap()).await, Code::DeadlineExceeded);
    // Its permits are free again, once its reply is written.
    let mut in_time = Code::ResourceExhausted;
    while in_time == Code::ResourceExhausted {
        in_time = finish_lookup(begin_lookup(&requests, Some("9H")).await).await;
    }
    assert_eq!(in_time, Code::Ok);
    // No work is started for a request whose timeout has expired.
    let late = finish_lookup(begin_lookup(&requests, Some("0n")).await).await;
    assert_eq!(late, Code::DeadlineExceeded);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_a_timeout_has_that_of_the_server() {
    let running = start(|settings| {
        settings.limits.request_timeout = Duration::from_millis(20);
    })
    .await;
    let requests = connection(&running).await;
    let (reply, _body) = begin_lookup(&requests, None).await;
    assert_eq!(code(reply.await.unwrap()).await, Code::DeadlineExceeded);
    running.stop().await;
}

/// A connection that reaches its maximum age gets GOAWAY, and its requests complete. The server of
/// tonic would close it at once.
#[tokio::test(flavor = "multi_thread")]
async fn an_old_connection_is_closed_after_its_requests() {
    let running = start(|settings| {
        settings.limits.connection_age = Duration::from_millis(100);
    })
    .await;
    let requests = connection(&running).await;
    let lookup = begin_lookup(&requests, None).await;
    // After GOAWAY the client sends no further request on the connection.
    let mut sender = requests.clone();
    while let Ok(ready) = sender.clone().ready().await {
        sender = ready;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(finish_lookup(lookup).await, Code::Ok);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn insight_requests_do_not_use_the_permits_of_lookups() {
    let running = start(|settings| {
        settings.limits.insight_concurrency = 1;
        settings.limits.insight_queue = 1;
    })
    .await;
    let requests = connection(&running).await;
    // The start of a message that never ends.
    let large = Bytes::from([&[0, 0, 4, 0, 0][..], &vec![0; PREFIX]].concat());
    let url = "entail.v1.PolicyInsightService/Explain";
    let mut explained = running.explain(PATH).await;
    let mut open = Vec::new();
    for _ in 0..100 {
        if explained.is_err() {
            break;
        }
        open = vec![
            begin_request(&requests, url, &large, "1H").await,
            begin_request(&requests, url, &large, "1H").await,
        ];
        tokio::time::sleep(Duration::from_millis(50)).await;
        explained = running.explain(PATH).await;
    }
    assert_eq!(
        finish_lookup(begin_lookup(&requests, None).await).await,
        Code::Ok
    );
    assert_eq!(explained.unwrap_err().code(), Code::ResourceExhausted);
    let reply = running.get(by_path(PATH)).await;
    assert!(reply.is_ok(), "{reply:?}");
    drop(open);
    running.stop().await;
}

impl Running {
    async fn explain(&self, name: &str) -> Result<v1::ExplainResponse, tonic::Status> {
        let request = v1::ExplainRequest {
            name: name.to_owned(),
            ..Default::default()
        };
        let reply = self.insight().explain(request).await;
        Ok(reply?.into_inner())
    }
}

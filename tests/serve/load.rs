//! Callers that ask more than is answered.

use std::time::Duration;

use bytes::Bytes;
use entail::api::v1;
use http::Response;
use prost::Message;
use tonic::Code;

use super::hostile::{Requests, connection, frame, request};
use super::server::{PATH, Running, batch_of, by_path, start};

type Replies = h2::client::ResponseFuture;

/// Bytes of a request after which it has a place, though it has not ended.
const HELD: usize = 80 * 1024;

/// A look-up, its frame still to come.
async fn begun(requests: &Requests, timeout: Option<&str>) -> (Replies, h2::SendStream<Bytes>) {
    let mut head = request("GetEffectivePolicies");
    if let Some(timeout) = timeout {
        head.headers_mut()
            .insert("grpc-timeout", timeout.parse().unwrap());
    }
    let mut requests = requests.clone().ready().await.unwrap();
    let (reply, body) = requests.send_request(head, false).unwrap();
    (reply, body)
}

/// A batch of which so much has come that it has a place, and what is still to come of it.
struct OpenRequest {
    reply: Replies,
    body: h2::SendStream<Bytes>,
    rest: Bytes,
}

/// Begins a call with so much of its message that it has a place, if one is free.
async fn hold(requests: &Requests, url: &str, message: &Bytes, timeout: &str) -> OpenRequest {
    let mut head = request("BatchGetEffectivePolicies");
    *head.uri_mut() = format!("http://entail/{url}").parse().unwrap();
    let timeout = timeout.parse().unwrap();
    head.headers_mut().insert("grpc-timeout", timeout);
    let mut requests = requests.clone().ready().await.unwrap();
    let (reply, mut body) = requests.send_request(head, false).unwrap();
    body.send_data(message.slice(..HELD), false).unwrap();
    OpenRequest {
        reply,
        body,
        rest: message.slice(HELD..),
    }
}

/// Batches on these connections that have places. Nobody may ask meanwhile: one who does might have
/// the last place just then, and a batch would be turned away.
async fn held(running: &Running, connections: &[&Requests], timeout: &str) -> Vec<OpenRequest> {
    let message = frame(&batch_of([PATH; 2_000]).encode_to_vec());
    let url = "entail.v1.EffectivePolicyService/BatchGetEffectivePolicies";
    for _ in 0..100 {
        let mut all = Vec::new();
        for requests in connections {
            all.push(hold(requests, url, &message, timeout).await);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        let probe = answered(begun(connections[0], None).await).await;
        let mut is_held = probe == Code::ResourceExhausted;
        for held in &mut all {
            is_held &= held.is_open().await;
        }
        if is_held {
            return all;
        }
    }
    panic!(
        "{} have no places at {}",
        connections.len(),
        running.address
    );
}

impl OpenRequest {
    async fn is_open(&mut self) -> bool {
        let reply = tokio::time::timeout(Duration::ZERO, &mut self.reply).await;
        reply.is_err()
    }

    async fn end(mut self) -> Code {
        self.body.send_data(self.rest, true).unwrap();
        code(self.reply.await.unwrap()).await
    }
}

fn message() -> Bytes {
    frame(&by_path(PATH).encode_to_vec())
}

/// The code of a reply; that of a good one stands in its trailers.
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

async fn answered(begun: (Replies, h2::SendStream<Bytes>)) -> Code {
    let (reply, mut body) = begun;
    body.send_data(message(), true).unwrap();
    code(reply.await.unwrap()).await
}

/// Health is told under any load. Frames of a connection keep their order: what was sent before is
/// with the server when this is answered.
async fn is_serving(requests: &Requests) {
    let mut head = request("Check");
    *head.uri_mut() = "http://entail/grpc.health.v1.Health/Check".parse().unwrap();
    let mut requests = requests.clone().ready().await.unwrap();
    let (reply, mut body) = requests.send_request(head, false).unwrap();
    body.send_data(frame(b""), true).unwrap();
    assert_eq!(code(reply.await.unwrap()).await, Code::Ok);
}

async fn limited(all: usize, own: usize) -> Running {
    start(move |settings| {
        settings.limits.requests = all;
        settings.limits.requests_per_connection = own;
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_more_than_all_may_ask_at_once_is_turned_away() {
    let running = limited(2, 10).await;
    let (one, other) = (connection(&running).await, connection(&running).await);
    let held = held(&running, &[&one, &other], "1H").await;
    let (reply, mut body) = begun(&other, None).await;
    body.send_data(message(), true).unwrap();
    let reply = reply.await.unwrap();
    assert_eq!(reply.headers()["grpc-retry-pushback-ms"], "100");
    assert_eq!(code(reply).await, Code::ResourceExhausted);
    // Nothing is taken from those that were let in, nor from questions of people and health.
    let told = running.explain(PATH).await;
    assert!(told.is_ok(), "{told:?}");
    is_serving(&one).await;
    for held in held {
        assert_eq!(held.end().await, Code::Ok);
    }
    assert_eq!(answered(begun(&one, None).await).await, Code::Ok);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_that_are_turned_away_cost_no_connection() {
    let running = limited(1, 1).await;
    let requests = connection(&running).await;
    let held = held(&running, &[&requests], "1H").await;
    for _ in 0..5_000 {
        let refused = answered(begun(&requests, None).await).await;
        assert_eq!(refused, Code::ResourceExhausted);
    }
    for held in held {
        assert_eq!(held.end().await, Code::Ok);
    }
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_never_sends_a_message_takes_no_place() {
    let running = limited(2, 100).await;
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
    is_serving(&idle).await;
    // Each was let in for as long as it took to see that there is no message.
    let mut last = Code::ResourceExhausted;
    while last == Code::ResourceExhausted {
        last = answered(begun(&other, None).await).await;
    }
    for _ in 0..50 {
        assert_eq!(answered(begun(&other, None).await).await, Code::Ok);
    }
    drop(open);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_take_no_places_of_look_ups() {
    let running = limited(1, 1).await;
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
    assert_eq!(answered(begun(&requests, None).await).await, Code::Ok);
    for reply in streams {
        let reply = reply.await.unwrap();
        assert!(reply.headers().get("grpc-status").is_none(), "{reply:?}");
    }
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_has_its_share_and_no_more() {
    let running = limited(100, 3).await;
    let (greedy, other) = (connection(&running).await, connection(&running).await);
    let all = held(&running, &[&greedy; 3], "1H").await;
    for _ in 0..20 {
        assert_eq!(
            answered(begun(&greedy, None).await).await,
            Code::ResourceExhausted
        );
        assert_eq!(answered(begun(&other, None).await).await, Code::Ok);
    }
    // Who gives up gives its places back.
    drop(all);
    let mut last = Code::ResourceExhausted;
    while last == Code::ResourceExhausted {
        last = answered(begun(&greedy, None).await).await;
    }
    assert_eq!(last, Code::Ok);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_ends_what_it_is_for() {
    let running = limited(1, 1).await;
    let requests = connection(&running).await;
    let mut held = held(&running, &[&requests], "2S").await;
    let late = held.pop().unwrap().reply;
    assert_eq!(code(late.await.unwrap()).await, Code::DeadlineExceeded);
    // Its place is free again.
    let whole = answered(begun(&requests, Some("9H")).await).await;
    assert_eq!(whole, Code::Ok);
    // No work is begun for one whose caller has stopped to wait.
    let late = answered(begun(&requests, Some("0n")).await).await;
    assert_eq!(late, Code::DeadlineExceeded);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_a_deadline_has_that_of_the_server() {
    let running = start(|settings| {
        settings.limits.request_timeout = Duration::from_millis(20);
    })
    .await;
    let requests = connection(&running).await;
    let (reply, _body) = begun(&requests, None).await;
    assert_eq!(code(reply.await.unwrap()).await, Code::DeadlineExceeded);
    running.stop().await;
}

/// tonic's own server cuts such a connection off; a caller that is told to go loses nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_too_old_ends_in_peace() {
    let running = start(|settings| {
        settings.limits.connection_age = Duration::from_millis(100);
    })
    .await;
    let requests = connection(&running).await;
    let held = begun(&requests, None).await;
    // It is told to go: after that no request is sent on it any more.
    let mut gone = requests.clone();
    while let Ok(ready) = gone.clone().ready().await {
        gone = ready;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(answered(held).await, Code::Ok);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_of_people_take_nothing_from_look_ups() {
    let running = start(|settings| {
        settings.limits.insight_concurrency = 1;
        settings.limits.insight_queue = 1;
    })
    .await;
    let requests = connection(&running).await;
    // Of a message that never ends.
    let large = Bytes::from([&[0, 0, 4, 0, 0][..], &vec![0; HELD]].concat());
    let url = "entail.v1.PolicyInsightService/Explain";
    let mut refused = running.explain(PATH).await;
    let mut held = Vec::new();
    for _ in 0..100 {
        if refused.is_err() {
            break;
        }
        held = vec![
            hold(&requests, url, &large, "1H").await,
            hold(&requests, url, &large, "1H").await,
        ];
        tokio::time::sleep(Duration::from_millis(50)).await;
        refused = running.explain(PATH).await;
    }
    assert_eq!(answered(begun(&requests, None).await).await, Code::Ok);
    assert_eq!(refused.unwrap_err().code(), Code::ResourceExhausted);
    let reply = running.get(by_path(PATH)).await;
    assert!(reply.is_ok(), "{reply:?}");
    drop(held);
    running.stop().await;
}

impl Running {
    async fn explain(&self, name: &str) -> Result<v1::ExplainResponse, tonic::Status> {
        let asked = v1::ExplainRequest {
            name: name.to_owned(),
            ..Default::default()
        };
        let reply = self.insight().explain(asked).await;
        Ok(reply?.into_inner())
    }
}

//! Get by hand-made frames: however a request comes in, the reply is the same. A frame that holds a
//! path alone takes a shorter way through the server than the others.

use bytes::Bytes;
use entail::api::v1;
use h2::RecvStream;
use http::{HeaderMap, Request};
use prost::Message;
use tokio::net::TcpStream;

use super::server::{PATH, Running, by_path, start};

const GET: &str = "/entail.v1.EffectivePolicyService/GetEffectivePolicies";

/// What came back.
#[derive(Debug, PartialEq)]
struct Reply {
    headers: HeaderMap,
    frames: Vec<u8>,
    trailers: Option<HeaderMap>,
}

/// A connection that sends what it is told.
struct Caller {
    requests: h2::client::SendRequest<Bytes>,
    task: tokio::task::JoinHandle<()>,
}

impl Caller {
    async fn to(running: &Running) -> Self {
        let socket = TcpStream::connect(&running.address).await.unwrap();
        let (requests, connection) = h2::client::handshake(socket).await.unwrap();
        let task = tokio::spawn(async move { connection.await.unwrap() });
        Self { requests, task }
    }

    /// Sends pieces as frames of their own; ends the stream with the last one or after it.
    async fn ask(&self, pieces: &[&[u8]], end_after: bool) -> Reply {
        let mut requests = self.requests.clone().ready().await.unwrap();
        let request = Request::post(format!("http://entail{GET}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        let (reply, mut body) = requests
            .send_request(request.body(()).unwrap(), false)
            .unwrap();
        for (at, piece) in pieces.iter().enumerate() {
            // Each is on its way before the next, so that none are put together.
            tokio::task::yield_now().await;
            let last = at + 1 == pieces.len() && !end_after;
            body.send_data(Bytes::copy_from_slice(piece), last).unwrap();
        }
        if end_after {
            body.send_trailers(HeaderMap::new()).unwrap();
        }
        let (parts, body) = reply.await.unwrap().into_parts();
        let (frames, trailers) = received(body).await;
        let mut headers = parts.headers;
        headers.remove("date");
        Reply {
            headers,
            frames,
            trailers,
        }
    }
}

async fn received(mut body: RecvStream) -> (Vec<u8>, Option<HeaderMap>) {
    let mut frames = Vec::new();
    while let Some(data) = body.data().await {
        let data = data.unwrap();
        body.flow_control().release_capacity(data.len()).unwrap();
        frames.extend_from_slice(&data);
    }
    (frames, body.trailers().await.unwrap())
}

fn frame(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap();
    [&[0], &length.to_be_bytes()[..], message].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_way_to_ask_gets_the_same_reply() {
    let running = start(|_| {}).await;
    let caller = Caller::to(&running).await;
    let short = by_path(PATH).encode_to_vec();
    // Another field, so the codec reads it; it says nothing that would change the reply.
    let long = v1::GetEffectivePoliciesRequest {
        if_none_match: "held by nobody".to_owned(),
        ..by_path(PATH)
    };
    let expected = caller.ask(&[&frame(&long.encode_to_vec())], false).await;
    assert_eq!(expected.trailers.as_ref().unwrap()["grpc-status"], "0");
    let message = &expected.frames[5..];
    assert_eq!(frame(message), expected.frames);
    let reply = v1::GetEffectivePoliciesResponse::decode(message).unwrap();
    assert_eq!(reply.result.unwrap().policies.len(), 2);

    let whole = frame(&short);
    for end_after in [false, true] {
        assert_eq!(caller.ask(&[&whole], end_after).await, expected);
        assert_eq!(caller.ask(&[&[], &whole, &[]], end_after).await, expected);
        for cut in 1..whole.len() {
            let (head, rest) = whole.split_at(cut);
            let told = caller.ask(&[head, rest], end_after).await;
            assert_eq!(told, expected, "cut at {cut}");
        }
        let three = [&whole[..2], &whole[2..9], &whole[9..]];
        assert_eq!(caller.ask(&three, end_after).await, expected);
    }
    drop(caller.requests);
    caller.task.await.unwrap();
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_frames_get_a_status_and_cost_only_themselves() {
    let running = start(|_| {}).await;
    let caller = Caller::to(&running).await;
    let whole = frame(&by_path(PATH).encode_to_vec());
    let mut compressed = whole.clone();
    compressed[0] = 1;
    let mut longer = whole.clone();
    longer[4] += 1;
    let mut inner = whole.clone();
    inner[6] += 1;
    let twice = [whole.clone(), whole.clone()].concat();
    let wrong: [&[u8]; 6] = [&compressed, &longer, &inner, &twice, &whole[..3], &[]];
    for bytes in wrong {
        let told = caller.ask(&[bytes], false).await;
        let status = told.trailers.as_ref().unwrap_or(&told.headers)["grpc-status"].clone();
        // What follows a message of a unary call is not read; a client that sends it gets its reply.
        assert_eq!(status == "0", bytes == twice, "{bytes:?}: {told:?}");
    }
    assert_eq!(caller.ask(&[&whole], false).await.frames[0], 0);
    drop(caller.requests);
    caller.task.await.unwrap();
    running.stop().await;
}

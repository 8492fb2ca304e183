//! `GetEffectivePolicies` over hand-written frames. The reply is the same for the fast path, which
//! answers a frame with only a path, and for the services behind it.

use bytes::Bytes;
use entail::api::v1;
use h2::RecvStream;
use http::{HeaderMap, Request};
use prost::Message;
use tokio::net::TcpStream;

use super::server::{PATH, Running, by_path, start};

const GET: &str = "/entail.v1.EffectivePolicyService/GetEffectivePolicies";

/// A reply.
#[derive(Debug, PartialEq)]
struct Reply {
    headers: HeaderMap,
    frames: Vec<u8>,
    trailers: Option<HeaderMap>,
}

/// A client connection that sends given bytes.
struct Caller {
    requests: h2::client::SendRequest<Bytes>,
    task: tokio::task::JoinHandle<()>,
}

impl Caller {
    async fn connect(running: &Running) -> Self {
        let socket = TcpStream::connect(&running.address).await.unwrap();
        let (requests, connection) = h2::client::handshake(socket).await.unwrap();
        let task = tokio::spawn(async move { connection.await.unwrap() });
        Self { requests, task }
    }

    /// Sends chunks, each in a DATA frame. Ends the stream with the last chunk, or with trailers.
    async fn call(&self, chunks: &[&[u8]], with_trailers: bool) -> Reply {
        let mut requests = self.requests.clone().ready().await.unwrap();
        let request = Request::post(format!("http://entail{GET}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        let (reply, mut body) = requests
            .send_request(request.body(()).unwrap(), false)
            .unwrap();
        for (index, chunk) in chunks.iter().enumerate() {
            // Yield so that consecutive chunks are not combined into one frame.
            tokio::task::yield_now().await;
            let is_end = index + 1 == chunks.len() && !with_trailers;
            body.send_data(Bytes::copy_from_slice(chunk), is_end)
                .unwrap();
        }
        if with_trailers {
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
async fn the_reply_does_not_depend_on_how_the_request_is_framed() {
    let running = start(|_| {}).await;
    let caller = Caller::connect(&running).await;
    let short = by_path(PATH).encode_to_vec();
    // Another field disables the fast path without changing the reply.
    let long = v1::GetEffectivePoliciesRequest {
        if_none_match: "unknown".to_owned(),
        ..by_path(PATH)
    };
    let expected = caller.call(&[&frame(&long.encode_to_vec())], false).await;
    assert_eq!(expected.trailers.as_ref().unwrap()["grpc-status"], "0");
    let message = &expected.frames[5..];
    assert_eq!(frame(message), expected.frames);
    let reply = v1::GetEffectivePoliciesResponse::decode(message).unwrap();
    assert_eq!(reply.result.unwrap().policies.len(), 2);

    let whole = frame(&short);
    for with_trailers in [false, true] {
        assert_eq!(caller.call(&[&whole], with_trailers).await, expected);
        assert_eq!(
            caller.call(&[&[], &whole, &[]], with_trailers).await,
            expected
        );
        for cut in 1..whole.len() {
            let (head, rest) = whole.split_at(cut);
            let reply = caller.call(&[head, rest], with_trailers).await;
            assert_eq!(reply, expected, "cut at {cut}");
        }
        let three = [&whole[..2], &whole[2..9], &whole[9..]];
        assert_eq!(caller.call(&three, with_trailers).await, expected);
    }
    drop(caller.requests);
    caller.task.await.unwrap();
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_frames_get_a_status_and_the_connection_stays_usable() {
    let running = start(|_| {}).await;
    let caller = Caller::connect(&running).await;
    let whole = frame(&by_path(PATH).encode_to_vec());
    let mut compressed = whole.clone();
    compressed[0] = 1;
    let mut longer = whole.clone();
    longer[4] += 1;
    let mut inner = whole.clone();
    inner[6] += 1;
    let twice = [whole.clone(), whole.clone()].concat();
    let frames: [&[u8]; 6] = [&compressed, &longer, &inner, &twice, &whole[..3], &[]];
    for bytes in frames {
        let reply = caller.call(&[bytes], false).await;
        let status = reply.trailers.as_ref().unwrap_or(&reply.headers)["grpc-status"].clone();
        // The server does not read beyond the message of a unary call.
        assert_eq!(status == "0", bytes == twice, "{bytes:?}: {reply:?}");
    }
    assert_eq!(caller.call(&[&whole], false).await.frames[0], 0);
    drop(caller.requests);
    caller.task.await.unwrap();
    running.stop().await;
}

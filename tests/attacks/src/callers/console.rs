//! Attacks on the console by processes of its machine, and by pages of other sites.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use entail_client::v1;
use tokio::time::timeout;

use super::http1::{self, Drip, listed};
use crate::http1::{AWAY, post};
use crate::reviews;
use crate::run::{Attack, Outcome};
use crate::target::{Target, look_up};
use crate::wire;
use crate::world;

/// The attacks of this family.
pub const ATTACKS: &[Attack] = &[
    ("p-silent", |target| {
        Box::pin(http1::silent(target.server.console.clone(), 3_000))
    }),
    ("p-slow-headers", |target| {
        let head = format!("POST {} HTTP/1.1\r\nhost: localhost\r\nx-slow: ", wire::GET);
        Box::pin(drip(target, 300, head))
    }),
    ("p-slow-bodies", |target| {
        let head = head(wire::GET, BINARY, "content-length: 4000000");
        Box::pin(drip(target, 300, head))
    }),
    ("p-huge-headers", |target| {
        let first = "GET / HTTP/1.1\r\nhost: localhost\r\nx-large: ";
        Box::pin(endless(target, first.to_owned(), "v".repeat(16_000)))
    }),
    ("p-endless-chunks", |target| {
        let first = head(
            &wire::insight("PreviewChange"),
            BINARY,
            "transfer-encoding: chunked",
        );
        let part = format!("4000\r\n{}\r\n", "\0".repeat(0x4000));
        Box::pin(endless(target, first, part))
    }),
    ("p-endless-text", |target| {
        let first = head(
            &wire::insight("PreviewChange"),
            TEXT,
            "transfer-encoding: chunked",
        );
        let part = format!("4000\r\n{}\r\n", "A".repeat(0x4000));
        Box::pin(endless(target, first, part))
    }),
    ("p-huge-messages", |target| {
        // The largest message that may be sent, without its last byte.
        let first = head(
            &wire::insight("PreviewChange"),
            BINARY,
            "content-length: 4194309",
        );
        let message = "\0\0\x40\0\0".to_owned() + &"\n".repeat((4 << 20) - 1);
        Box::pin(drip(target, 64, first + &message))
    }),
    ("p-pipelined", |target| {
        let headers = format!("content-type: {BINARY}\r\n");
        let request = post(wire::GET, &headers, &look_up(&world::path(1, 0))).repeat(20);
        let console = target.server.console.clone();
        Box::pin(http1::pipelined(console, 16, request.into(), true))
    }),
    ("p-wrong-frames", |target| Box::pin(wrong_frames(target))),
    ("p-foreign-sites", |target| Box::pin(foreign_sites(target))),
    ("p-questions", |target| {
        let console = target.server.console.clone();
        let requests = questions(BINARY);
        Box::pin(http1::flood(console, 32, requests, reviews::status))
    }),
    ("p-unread", |target| {
        let console = target.server.console.clone();
        let requests = questions(BINARY).concat().repeat(5);
        Box::pin(http1::pipelined(console, 64, requests.into(), false))
    }),
    ("p-unread-text", |target| {
        let console = target.server.console.clone();
        let requests = questions(TEXT).concat().repeat(5);
        Box::pin(http1::pipelined(console, 64, requests.into(), false))
    }),
    ("p-cut", |target| {
        let console = target.server.console.clone();
        Box::pin(http1::cut(console, 32, questions(BINARY)))
    }),
];

/// Content types of gRPC-web.
const BINARY: &str = "application/grpc-web+proto";
/// See [`BINARY`].
const TEXT: &str = "application/grpc-web-text";

/// The headers of a call, and one more.
fn head(method: &str, content_type: &str, header: &str) -> String {
    format!(
        "POST {method} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {content_type}\r\n{header}\r\n\r\n"
    )
}

async fn drip(target: Arc<Target>, count: usize, first: String) -> Outcome {
    let drip = Drip {
        first: first.into(),
        next: Bytes::from_static(b"\0"),
        pause: Duration::from_secs(1),
    };
    http1::drip(target.server.console.clone(), count, drip).await
}

async fn endless(target: Arc<Target>, first: String, part: String) -> Outcome {
    let console = target.server.console.clone();
    http1::endless(console, 8, (first.into(), part.into())).await
}

/// Questions with large replies or much work.
fn questions(content_type: &str) -> Vec<Bytes> {
    let policies = v1::ListPoliciesRequest {
        page_size: 10_000,
        ..Default::default()
    };
    let paths = v1::ListPathsRequest {
        page_size: 10_000,
        ..Default::default()
    };
    let preview = v1::PreviewChangeRequest {
        manifests: world::ordinary(77_777).replace("defaults", "overrides"),
        ..Default::default()
    };
    let headers = format!("content-type: {content_type}\r\n");
    let question = |method: &str, message: &[u8]| {
        let message = match content_type {
            TEXT => base64(message).into_bytes(),
            _ => message.to_vec(),
        };
        post(&wire::insight(method), &headers, &message).into()
    };
    vec![
        question("GetTopology", &wire::bytes_of(&[])),
        question("ListFindings", &wire::bytes_of(&[])),
        question("ListPolicies", &wire::message(&policies)),
        question("PreviewChange", &wire::message(&preview)),
        question("ListPaths", &wire::message(&paths)),
    ]
}

/// The text of bytes in base64.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let mut whole = [0; 4];
        whole[1..=three.len()].copy_from_slice(three);
        let bits = u32::from_be_bytes(whole);
        for at in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * at)) as usize & 63];
            text.push(if at <= three.len() { digit.into() } else { '=' });
        }
    }
    text
}

/// Malformed bodies: incomplete frames, frames with a wrong length, trailers, and invalid base64.
fn bad_frames() -> Vec<Vec<u8>> {
    let message = look_up(&world::path(1, 0));
    let (mut longer, mut shorter, mut trailers) =
        (message.to_vec(), message.to_vec(), message.to_vec());
    longer[4] += 1;
    shorter[4] -= 1;
    trailers[0] = 0x80;
    let trailer = b"\x80\0\0\0\x10grpc-status: 0\r\n".to_vec();
    let both = [&message[..], &trailer].concat();
    vec![
        Vec::new(),
        vec![0],
        vec![0; 4],
        vec![0xff; 5],
        vec![0, 0xff, 0xff, 0xff, 0xff],
        vec![1, 0, 0, 0, 0],
        vec![0x81, 0, 0, 0, 0],
        longer,
        shorter,
        trailers,
        trailer.repeat(1_000),
        both,
        message.repeat(2),
        message.repeat(1_000),
        b"AAAA=AAA====".to_vec(),
        b"=".repeat(100_000),
        base64(&message).into_bytes(),
        [0xc3, 0x28].repeat(1_000),
    ]
}

/// Calls with such frames, of all content types.
async fn wrong_frames(target: Arc<Target>) -> Outcome {
    let methods = [
        wire::GET,
        wire::WATCH,
        wire::BATCH,
        &wire::insight("Explain"),
    ]
    .map(str::to_owned);
    let content_types = [
        BINARY,
        TEXT,
        "application/grpc",
        "application/grpc-web+json",
        "",
    ];
    let mut outcomes = BTreeMap::<String, usize>::new();
    for frame in &bad_frames() {
        for content_type in content_types {
            for method in &methods {
                let outcome = wrong_frame(&target, (method, content_type), frame).await?;
                *outcomes.entry(outcome).or_default() += 1;
            }
        }
    }
    Ok(listed(&outcomes))
}

async fn wrong_frame(
    target: &Target,
    (method, content_type): (&str, &str),
    frame: &[u8],
) -> Outcome {
    let headers = format!("content-type: {content_type}\r\nconnection: close\r\n");
    let request = post(method, &headers, frame);
    // A stream of answers has no end.
    let is_stream = method == wire::WATCH;
    let limit = Duration::from_millis(if is_stream { 100 } else { 5_000 });
    match timeout(limit, target.server.console.ask(AWAY, &request)).await {
        Ok(Ok(response)) => Ok(reviews::status(&response)),
        Ok(Err(error)) => Ok(error),
        Err(_) if is_stream => Ok("a stream".to_owned()),
        Err(_) => Err(format!("{method} {frame:?}: no reply")),
    }
}

/// Requests that the browser sends for another site, or by another name of this machine, and that look like it.
async fn foreign_sites(target: Arc<Target>) -> Outcome {
    let own = target.server.console.address.to_string();
    let foreign = [
        ("evil.example", String::new()),
        ("localhost.evil.example", String::new()),
        ("127.0.0.1.evil.example", String::new()),
        ("127.0.0.1@evil.example", String::new()),
        ("localhost\t.evil.example", String::new()),
        ("[::1].evil.example", String::new()),
        ("0.0.0.0", String::new()),
        ("", String::new()),
        (&own, "origin: http://evil.example\r\n".to_owned()),
        (&own, "origin: null\r\n".to_owned()),
        (&own, format!("origin: https://{own}\r\n")),
        (&own, format!("origin: http://{own}.evil.example\r\n")),
        (&own, format!("origin: http://{own}/\r\n")),
        (&own, "origin: http://localhost:1\r\n".to_owned()),
        (&own, "origin: \u{e9}\r\n".to_owned()),
        (&own, "sec-fetch-site: cross-site\r\n".to_owned()),
        (&own, "sec-fetch-site: same-site\r\n".to_owned()),
        (&own, "sec-fetch-site: SAME-ORIGIN\r\n".to_owned()),
        (
            &own,
            format!("host: evil.example\r\norigin: http://evil.example\r\nx: {own}\r\n"),
        ),
        (
            &own,
            format!("origin: http://{own}\r\norigin: http://evil.example\r\n"),
        ),
    ];
    let message = look_up(&world::path(1, 0));
    let mut outcomes = BTreeMap::<String, usize>::new();
    for (host, headers) in &foreign {
        let head = format!(
            "POST {} HTTP/1.1\r\nhost: {host}\r\ncontent-type: {BINARY}\r\ncontent-length: {}\r\n{headers}\r\n",
            wire::GET,
            message.len()
        );
        let request = [head.as_bytes(), &message].concat();
        let answer = timeout(
            Duration::from_secs(5),
            target.server.console.ask(AWAY, &request),
        )
        .await;
        let status = match answer {
            Ok(Ok(response)) => response.status,
            Ok(Err(_)) => 0,
            Err(_) => return Err(format!("{host} {headers:?}: no reply")),
        };
        // Bytes that are no header are refused before they are read.
        if ![403, 400, 0].contains(&status) {
            return Err(format!("{host} {headers:?}: HTTP {status}"));
        }
        *outcomes.entry(format!("HTTP {status}")).or_default() += 1;
    }
    Ok(listed(&outcomes))
}

//! The same request with other headers. A look-up that takes the fast path is answered as one that
//! does not.

use std::sync::Arc;
use std::time::Duration;

use entail_client::v1;
use http::Request;

use crate::run::{Attack, Outcome};
use crate::target::{Target, by_path};
use crate::wire::{self, Reply};
use crate::world;

/// The attacks of this family.
pub const ATTACKS: &[Attack] = &[("f-header-variants", |target| Box::pin(variants(target)))];

const LIMIT: Duration = Duration::from_secs(3);

/// A variant: a name, the method of HTTP, the headers, and what is done to the frame.
type Variant = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
    Frame,
);

/// What is done to the frame of the message.
#[derive(Clone, Copy)]
enum Frame {
    Plain,
    /// The flag says that the message is compressed, and it is not.
    MarkedCompressed,
    /// The flag has an undefined value.
    UndefinedFlag,
    /// There is no message.
    Missing,
}

const GRPC: (&str, &str) = ("content-type", "application/grpc");
const TE: (&str, &str) = ("te", "trailers");

const VARIANTS: &[Variant] = &[
    ("plain", "POST", &[GRPC, TE], Frame::Plain),
    (
        "grpc+proto",
        "POST",
        &[("content-type", "application/grpc+proto"), TE],
        Frame::Plain,
    ),
    (
        "grpc+json",
        "POST",
        &[("content-type", "application/grpc+json"), TE],
        Frame::Plain,
    ),
    (
        "grpc;charset",
        "POST",
        &[("content-type", "application/grpc; charset=utf-8"), TE],
        Frame::Plain,
    ),
    (
        "upper case",
        "POST",
        &[("content-type", "APPLICATION/GRPC"), TE],
        Frame::Plain,
    ),
    (
        "grpc-web",
        "POST",
        &[("content-type", "application/grpc-web"), TE],
        Frame::Plain,
    ),
    (
        "grpcx",
        "POST",
        &[("content-type", "application/grpcx"), TE],
        Frame::Plain,
    ),
    (
        "json",
        "POST",
        &[("content-type", "application/json"), TE],
        Frame::Plain,
    ),
    (
        "empty type",
        "POST",
        &[("content-type", ""), TE],
        Frame::Plain,
    ),
    ("no type", "POST", &[TE], Frame::Plain),
    (
        "two types",
        "POST",
        &[GRPC, ("content-type", "text/html"), TE],
        Frame::Plain,
    ),
    (
        "two types, html first",
        "POST",
        &[("content-type", "text/html"), GRPC, TE],
        Frame::Plain,
    ),
    ("no te", "POST", &[GRPC], Frame::Plain),
    ("GET", "GET", &[GRPC, TE], Frame::Plain),
    ("PUT", "PUT", &[GRPC, TE], Frame::Plain),
    ("OPTIONS", "OPTIONS", &[GRPC, TE], Frame::Plain),
    (
        "identity",
        "POST",
        &[GRPC, TE, ("grpc-encoding", "identity")],
        Frame::Plain,
    ),
    (
        "gzip, not compressed",
        "POST",
        &[GRPC, TE, ("grpc-encoding", "gzip")],
        Frame::Plain,
    ),
    (
        "gzip, marked",
        "POST",
        &[GRPC, TE, ("grpc-encoding", "gzip")],
        Frame::MarkedCompressed,
    ),
    (
        "deflate",
        "POST",
        &[GRPC, TE, ("grpc-encoding", "deflate")],
        Frame::Plain,
    ),
    (
        "unknown encoding",
        "POST",
        &[GRPC, TE, ("grpc-encoding", "x")],
        Frame::Plain,
    ),
    (
        "unknown encoding, marked",
        "POST",
        &[GRPC, TE, ("grpc-encoding", "x")],
        Frame::MarkedCompressed,
    ),
    (
        "marked without encoding",
        "POST",
        &[GRPC, TE],
        Frame::MarkedCompressed,
    ),
    (
        "identity, marked",
        "POST",
        &[GRPC, TE, ("grpc-encoding", "identity")],
        Frame::MarkedCompressed,
    ),
    (
        "two encodings",
        "POST",
        &[
            GRPC,
            TE,
            ("grpc-encoding", "identity"),
            ("grpc-encoding", "gzip"),
        ],
        Frame::Plain,
    ),
    ("undefined flag", "POST", &[GRPC, TE], Frame::UndefinedFlag),
    (
        "accepts gzip",
        "POST",
        &[GRPC, TE, ("grpc-accept-encoding", "gzip")],
        Frame::Plain,
    ),
    (
        "accepts nothing",
        "POST",
        &[GRPC, TE, ("grpc-accept-encoding", "")],
        Frame::Plain,
    ),
    (
        "timeout 0",
        "POST",
        &[GRPC, TE, ("grpc-timeout", "0S")],
        Frame::Plain,
    ),
    (
        "timeout 0n",
        "POST",
        &[GRPC, TE, ("grpc-timeout", "0n")],
        Frame::Plain,
    ),
    (
        "timeout malformed",
        "POST",
        &[GRPC, TE, ("grpc-timeout", "soon")],
        Frame::Plain,
    ),
    (
        "timeout too long",
        "POST",
        &[GRPC, TE, ("grpc-timeout", "999999999H")],
        Frame::Plain,
    ),
    (
        "two timeouts",
        "POST",
        &[GRPC, TE, ("grpc-timeout", "1H"), ("grpc-timeout", "0n")],
        Frame::Plain,
    ),
    ("no message", "POST", &[GRPC, TE], Frame::Missing),
];

fn request((_, method, headers, _): &Variant) -> Request<()> {
    let mut request = Request::builder()
        .method(*method)
        .uri(format!("http://entail{}", wire::GET));
    for (name, value) in *headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap()
}

/// What two replies must have in common.
fn common(reply: &Result<Reply, String>) -> String {
    match reply {
        Ok(reply) => {
            let header = |name: &str| {
                let values = reply.headers.get_all(name).iter();
                let values =
                    values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
                values.collect::<Vec<_>>().join(",")
            };
            format!(
                "HTTP {} status {} {} type {} accepts {} {} bytes",
                reply.http,
                reply.grpc.as_deref().unwrap_or("-"),
                reply.message,
                header("content-type"),
                header("grpc-accept-encoding"),
                reply.body.len()
            )
        }
        Err(error) => format!("error {error}"),
    }
}

async fn variants(target: Arc<Target>) -> Outcome {
    let short = by_path(&world::path(0, 0));
    // Another field has no effect on the answer, but the fast path does not know it.
    let long = v1::GetEffectivePoliciesRequest {
        if_none_match: "unknown".to_owned(),
        ..short.clone()
    };
    let mut different = Vec::new();
    for variant in VARIANTS {
        let mut outcomes = Vec::new();
        for message in [&short, &long] {
            let mut frame = wire::message(message).to_vec();
            match variant.3 {
                Frame::Plain => {}
                Frame::MarkedCompressed => frame[0] = 1,
                Frame::UndefinedFlag => frame[0] = 2,
                Frame::Missing => frame.clear(),
            }
            let requests = target.connect().await;
            let reply = wire::send(&requests, request(variant), frame.into(), LIMIT).await;
            outcomes.push(common(&reply));
        }
        if outcomes[0] != outcomes[1] {
            different.push(format!("{}: {} / {}", variant.0, outcomes[0], outcomes[1]));
        }
    }
    if different.is_empty() {
        Ok(format!("{} variants are answered alike", VARIANTS.len()))
    } else {
        Err(format!(
            "{} of {} differ: {}",
            different.len(),
            VARIANTS.len(),
            different.join("; ")
        ))
    }
}

//! Sends bytes of HTTP/1.1 to the console of a server: an input is a script of request lines, headers, bodies and frames of
//! gRPC-web, with any names, lengths and chunks.
//!
//! Whatever a connection sends, no thread of the server panics, another connection gets the correct answer, and the server
//! holds nothing afterwards.

use std::sync::LazyLock;
use std::time::Duration;

use entail::api::v1;
use entail::insight::get_stored;
use entail::server::Limits;
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use v1::get_effective_policies_request::Target;

use super::server::{FuzzServer, GET, Input, PATH, framed};

static SERVER: LazyLock<FuzzServer> = LazyLock::new(|| FuzzServer::start(limits()));

/// The paths that a script asks for.
const PATHS: [&str; 16] = [
    GET,
    GET,
    GET,
    "/",
    "/assets/app.js",
    "/entail.v1.EffectivePolicyService/BatchGetEffectivePolicies",
    "/entail.v1.EffectivePolicyService/WatchEffectivePolicies",
    "/entail.v1.EffectivePolicyService/ResolveRequest",
    "/entail.v1.PolicyInsightService/ListPaths",
    "/entail.v1.PolicyInsightService/GetTopology",
    "/entail.v1.PolicyInsightService/Explain",
    "/entail.v1.PolicyInsightService/PreviewChange",
    "/grpc.health.v1.Health/Check",
    "http://localhost/",
    "*",
    "/../%00?x#y",
];
const METHODS: [&str; 8] = [
    "POST", "POST", "POST", "GET", "HEAD", "OPTIONS", "CONNECT", "PRI",
];
/// Lines of headers; an empty one ends them.
const HEADERS: [&str; 28] = [
    "host: localhost",
    "host: 127.0.0.1:1",
    "host: [::1]",
    "host: evil.example",
    "host:",
    "content-type: application/grpc-web+proto",
    "content-type: application/grpc-web",
    "content-type: application/grpc-web-text",
    "content-type: application/grpc-web-text+proto",
    "content-type: application/grpc",
    "content-length: 0",
    "content-length: 5",
    "content-length: 4000000",
    "content-length: -1",
    "content-length: 18446744073709551616",
    "transfer-encoding: chunked",
    "transfer-encoding: gzip, chunked",
    "connection: close",
    "connection: upgrade",
    "upgrade: h2c",
    "expect: 100-continue",
    "grpc-timeout: 1m",
    "grpc-encoding: gzip",
    "te: trailers",
    "origin: http://localhost",
    "sec-fetch-site: cross-site",
    "authorization: Bearer x",
    " folded: line",
];
/// Sizes of chunks, as they are written.
const SIZES: [&str; 8] = [
    "0",
    "1",
    "5",
    "ffff",
    "ffffffffffffffff",
    "10000000000000000",
    "-1",
    "5;extension=\"x\"",
];
/// Maximum number of bytes of a script.
const MAX_BYTES: usize = 256 * 1024;
/// Time for the server to answer what it can.
const PATIENCE: Duration = Duration::from_millis(20);
/// Time for the server to read all of a script: it may stop reading, and then the script ends.
const WRITING: Duration = Duration::from_secs(2);

/// Writes the bytes of a script.
struct Script<'i> {
    input: Input<'i>,
    /// The bytes to write; each part is flushed.
    parts: Vec<Vec<u8>>,
    bytes: usize,
}

/// Small limits, so that a script reaches them.
fn limits() -> Limits {
    Limits {
        requests_per_connection: 8,
        watches_per_connection: 3,
        request_bytes: 64 * 1024,
        held_bytes_per_connection: 64 * 1024,
        // A caller that is gone is found at the next write, if it has sent more than the request of its stream.
        watch_heartbeat: Duration::from_millis(100),
        ..Limits::default()
    }
}

/// Checks one input.
pub fn check(input: &[u8]) {
    let mut input = Input(input);
    let manners = input.byte();
    let parts = Script::read(input);
    SERVER.runtime.block_on(async {
        send(&parts, manners).await;
        // While the server still cleans up.
        look_up().await;
        SERVER.until_idle().await;
    });
    SERVER.check_panics();
}

/// Sends a script on a connection of its own, and closes it. The first bit says whether it reads, the next ones how it ends.
async fn send(parts: &[Vec<u8>], manners: u8) {
    let (mut reader, mut writer) = SERVER.connect_to_console().await.into_split();
    let reads = manners & 1 == 0;
    let mut reading = tokio::spawn(async move {
        if !reads {
            std::future::pending::<()>().await;
        }
        let mut reply = Vec::new();
        reader.read_to_end(&mut reply).await
    });
    let write = async {
        for part in parts {
            writer.write_all(part).await?;
            tokio::task::yield_now().await;
        }
        match manners >> 1 & 3 {
            // The server answers what it can.
            0 | 1 => drop(tokio::time::timeout(PATIENCE, &mut reading).await),
            // It reads all, and finds the end.
            2 => {
                writer.shutdown().await?;
                drop(tokio::time::timeout(PATIENCE, &mut reading).await);
            }
            // What it has not read is lost.
            _ => {}
        }
        std::io::Result::Ok(())
    };
    // The server may close the connection first, or stop reading.
    let _written = tokio::time::timeout(WRITING, write).await;
    reading.abort();
}

/// Looks up a path by gRPC-web on a connection of its own.
async fn look_up() {
    let request = v1::GetEffectivePoliciesRequest {
        target: Some(Target::Path(PATH.to_owned())),
        ..Default::default()
    };
    let body = framed(&request.encode_to_vec());
    let head = format!(
        "POST {GET} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-type: application/grpc-web+proto\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut reply = Vec::new();
    let exchange = async {
        let mut socket = SERVER.connect_to_console().await;
        socket
            .write_all(&[head.as_bytes(), &body].concat())
            .await
            .unwrap();
        socket.read_to_end(&mut reply).await.unwrap();
    };
    let answered = tokio::time::timeout(Duration::from_secs(60), exchange).await;
    assert!(answered.is_ok(), "the console does not answer");
    let has = |part: &[u8]| reply.windows(part.len()).any(|bytes| bytes == part);
    let stored = get_stored(&SERVER.snapshot, PATH).unwrap().encode_to_vec();
    assert!(reply.starts_with(b"HTTP/1.1 200 OK\r\n"), "{reply:?}");
    assert!(has(&framed(&stored)) && has(b"grpc-status:0"), "{reply:?}");
}

impl<'i> Script<'i> {
    /// Reads a script to its end.
    fn read(input: Input<'i>) -> Vec<Vec<u8>> {
        let mut script = Self {
            input,
            parts: vec![Vec::new()],
            bytes: 0,
        };
        while !script.input.is_empty() && script.bytes < MAX_BYTES {
            script.step();
        }
        script.parts
    }

    fn step(&mut self) {
        let bytes = match self.input.byte() % 12 {
            0 => self.request_line(),
            1 | 2 => [self.pick(&HEADERS), "\r\n"].concat().into_bytes(),
            3 => b"\r\n".to_vec(),
            4 => self.whole_request(false),
            5 => self.whole_request(true),
            6 => self.message(),
            7 => self.chunk(),
            8 => self.input.some(),
            9 => self.long_header(),
            10 => {
                let byte = self.input.byte();
                vec![byte; usize::from(self.input.byte()) * 256]
            }
            _ => {
                self.parts.push(Vec::new());
                return;
            }
        };
        let left = MAX_BYTES.saturating_sub(self.bytes);
        let bytes = &bytes[..bytes.len().min(left)];
        self.bytes += bytes.len();
        if let Some(part) = self.parts.last_mut() {
            part.extend_from_slice(bytes);
        }
    }

    fn pick(&mut self, texts: &[&'static str]) -> &'static str {
        texts[usize::from(self.input.byte()) % texts.len()]
    }

    fn request_line(&mut self) -> Vec<u8> {
        let (method, path) = (self.pick(&METHODS), self.pick(&PATHS));
        let version = self.pick(&["1.1", "1.1", "1.1", "1.0", "2.0", "9"]);
        format!("{method} {path} HTTP/{version}\r\n").into_bytes()
    }

    /// A request with a correct frame of HTTP.
    fn whole_request(&mut self, is_text: bool) -> Vec<u8> {
        let path = self.pick(&PATHS);
        let content_type = match is_text {
            true => "application/grpc-web-text",
            false => "application/grpc-web+proto",
        };
        let body = self.message();
        let header = self.pick(&HEADERS);
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {content_type}\r\n\
             content-length: {}\r\n{header}\r\n\r\n",
            body.len()
        );
        [head.as_bytes(), &body].concat()
    }

    /// A frame of gRPC-web: a message or trailers, maybe of another length, or bytes of the input.
    fn message(&mut self) -> Vec<u8> {
        let message = match self.input.byte() % 6 {
            0 | 1 => [&[0x0a, PATH.len() as u8], PATH.as_bytes()].concat(),
            2 => Vec::new(),
            3 => b"grpc-status: 0\r\n".to_vec(),
            // In base64: an empty message.
            4 => return b"AAAAAAA=".to_vec(),
            _ => self.input.some(),
        };
        let mut bytes = framed(&message);
        let [flags, length, cut] = [(); 3].map(|()| self.input.byte());
        bytes[0] = flags;
        bytes[4] = bytes[4].wrapping_add(length);
        bytes.truncate(bytes.len().saturating_sub(cut.into()));
        bytes
    }

    /// A chunk of a body, whose size may be another one.
    fn chunk(&mut self) -> Vec<u8> {
        let bytes = self.message();
        let size = match self.input.byte() {
            byte @ 0..32 => SIZES[usize::from(byte) % SIZES.len()].to_owned(),
            _ => format!("{:x}", bytes.len()),
        };
        [size.as_bytes(), b"\r\n", &bytes, b"\r\n"].concat()
    }

    fn long_header(&mut self) -> Vec<u8> {
        let value = "v".repeat(usize::from(self.input.byte()) * 256);
        format!("x-long: {value}\r\n").into_bytes()
    }
}

//! The console as a browser sees it: its files, gRPC-web, and what it refuses.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use entail::api::v1;
use entail::app::ServeSettings;
use prost::Message;

use super::admin::http_request;
use super::server::{PATH, Running, by_path, start};

/// A response: status, head in lower case, body.
struct Response(u16, String, Vec<u8>);

/// A server with a console at a free port.
struct Console {
    address: String,
    running: Running,
}

impl Console {
    async fn start(adjust: impl FnOnce(&mut ServeSettings)) -> Self {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap().to_string();
        drop(free);
        let listen = address.clone();
        let running = start(|settings| {
            settings.console_listen = Some(listen);
            adjust(settings);
        })
        .await;
        Self { address, running }
    }

    /// Sends a request with more headers, one a line.
    fn send(&self, request: &str, headers: &str, body: &[u8]) -> Response {
        self.send_to(&self.address, request, headers, body)
    }

    /// Sends a request with another name of the host.
    fn send_to(&self, host: &str, request: &str, headers: &str, body: &[u8]) -> Response {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let length = body.len();
        let head = format!(
            "{request} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).unwrap();
        let end = reply
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .unwrap();
        let head = String::from_utf8(reply[..end].to_vec())
            .unwrap()
            .to_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let body = reply[end + 4..].to_vec();
        let body = match head.contains("transfer-encoding: chunked") {
            true => whole(&body),
            false => body,
        };
        Response(status, head, body)
    }

    /// Calls a method by gRPC-web. Returns the messages, and the trailers.
    fn call(&self, method: &str, message: &impl Message, headers: &str) -> (Vec<Vec<u8>>, String) {
        let headers =
            format!("content-type: application/grpc-web+proto\r\nx-grpc-web: 1\r\n{headers}");
        let Response(status, head, body) =
            self.send(&format!("POST /{method}"), &headers, &frame(message));
        assert_eq!(status, 200, "{head}");
        let mut messages = Vec::new();
        let mut trailers = head;
        let mut rest = &body[..];
        while let [flags, a, b, c, d, after @ ..] = rest {
            let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
            match flags & 0x80 {
                0 => messages.push(after[..length].to_vec()),
                _ => trailers.push_str(std::str::from_utf8(&after[..length]).unwrap()),
            }
            rest = &after[length..];
        }
        (messages, trailers)
    }

    async fn stop(self) {
        self.running.stop.send(()).unwrap();
        self.running.task.await.unwrap().unwrap();
    }
}

fn frame(message: &impl Message) -> Vec<u8> {
    let length = u32::try_from(message.encoded_len()).unwrap();
    [&[0][..], &length.to_be_bytes(), &message.encode_to_vec()].concat()
}

/// The body of chunks.
fn whole(mut chunks: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let end = chunks.windows(2).position(|two| two == b"\r\n").unwrap();
        let length =
            usize::from_str_radix(std::str::from_utf8(&chunks[..end]).unwrap(), 16).unwrap();
        if length == 0 {
            return body;
        }
        let from = end + 2;
        body.extend_from_slice(&chunks[from..from + length]);
        chunks = &chunks[from + length + 2..];
    }
}

const EXPLAIN: &str = "entail.v1.PolicyInsightService/Explain";

fn explain_request() -> v1::ExplainRequest {
    v1::ExplainRequest {
        name: PATH.to_owned(),
        ..Default::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_and_its_files_are_served() {
    let console = Console::start(|_| {}).await;
    for (path, content_type) in [
        ("/", "text/html; charset=utf-8"),
        ("/assets/app.js", "text/javascript; charset=utf-8"),
        ("/assets/app.css", "text/css; charset=utf-8"),
    ] {
        let Response(status, head, body) = console.send(&format!("GET {path}"), "", &[]);
        assert_eq!(status, 200, "{path}: {head}");
        assert!(
            head.contains(&format!("content-type: {content_type}")),
            "{head}"
        );
        assert!(head.contains("content-encoding: gzip"), "{head}");
        assert!(
            head.contains("content-security-policy: default-src 'none'"),
            "{head}"
        );
        assert!(head.contains("frame-ancestors 'none'"), "{head}");
        assert!(body.starts_with(&[0x1f, 0x8b]), "{path}");
        let etag = head
            .lines()
            .find_map(|line| line.strip_prefix("etag: "))
            .unwrap();
        let known = format!("if-none-match: {etag}\r\n");
        let Response(status, _, body) = console.send(&format!("GET {path}"), &known, &[]);
        assert_eq!((status, body.len()), (304, 0), "{path}");
    }
    for (request, expected) in [
        ("GET /assets/other.js", 404),
        ("GET /../Cargo.toml", 404),
        ("POST /", 405),
        ("GET /metrics", 404),
        ("POST /grpc.health.v1.Health/Check", 404),
        ("POST /envoy.service.auth.v3.Authorization/Check", 404),
    ] {
        assert_eq!(console.send(request, "", &[]).0, expected, "{request}");
    }
    console.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_services_answer_by_grpc_web() {
    let console = Console::start(|_| {}).await;
    let (messages, trailers) = console.call(EXPLAIN, &explain_request(), "");
    assert!(trailers.contains("grpc-status:0"), "{trailers}");
    let reply = v1::ExplainResponse::decode(&*messages[0]).unwrap();
    let kinds = reply.paths.iter().flat_map(|path| &path.kinds);
    assert_eq!(kinds.count(), 2);
    // The same bytes as over HTTP/2.
    let get = "entail.v1.EffectivePolicyService/GetEffectivePolicies";
    let (messages, _) = console.call(get, &by_path(PATH), "");
    let reply = v1::GetEffectivePoliciesResponse::decode(&*messages[0]).unwrap();
    let other = console.running.get(by_path(PATH)).await.unwrap();
    assert_eq!(reply.result, other.result);
    // Errors have their code and message.
    let missing = v1::ExplainRequest {
        name: "gateways/default/none".to_owned(),
        ..Default::default()
    };
    let (messages, trailers) = console.call(EXPLAIN, &missing, "");
    assert!(
        messages.is_empty() && trailers.contains("grpc-status: 5"),
        "{trailers}"
    );
    // Other content types are not translated.
    let plain = "content-type: application/grpc\r\n";
    let Response(status, ..) = console.send(&format!("POST /{EXPLAIN}"), plain, &[0; 5]);
    assert_eq!(status, 400);
    console.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_other_sites_are_refused_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let admin = folder.path().join("admin.sock");
    let console = Console::start(|settings| settings.admin_socket = Some(admin.clone())).await;
    let own = format!(
        "origin: http://{}\r\nsec-fetch-site: same-origin\r\n",
        console.address
    );
    assert_eq!(console.call(EXPLAIN, &explain_request(), &own).0.len(), 1);
    let grpc_web = "content-type: application/grpc-web+proto\r\n";
    for headers in [
        "origin: http://example.com\r\n",
        "origin: http://localhost:1\r\n",
        "origin: null\r\n",
        "sec-fetch-site: cross-site\r\n",
    ] {
        let headers = format!("{grpc_web}{headers}");
        let request = format!("POST /{EXPLAIN}");
        let Response(status, _, body) =
            console.send(&request, &headers, &frame(&explain_request()));
        assert_eq!(status, 403, "{headers}");
        assert_eq!(body, b"the request is of another site", "{headers}");
        // Links to the page may be followed.
        assert_eq!(console.send("GET /", &headers, &[]).0, 200, "{headers}");
    }
    // Two values of which one is the own.
    let own = format!("{grpc_web}origin: http://{}\r\n", console.address);
    for more in ["origin: http://example.com\r\n", "host: example.com\r\n"] {
        let headers = format!("{own}{more}");
        let request = format!("POST /{EXPLAIN}");
        let Response(status, ..) = console.send(&request, &headers, &frame(&explain_request()));
        assert_eq!(status, 403, "{more}");
    }
    // A name of somebody else that leads to this machine.
    let Response(status, _, body) = console.send_to("example.com", "GET /", "", &[]);
    assert_eq!(status, 403);
    assert_eq!(body, b"open the console as localhost or 127.0.0.1");
    assert_eq!(console.send_to("localhost", "GET /", "", &[]).0, 200);
    // Nobody is told that other sites may ask.
    let preflight = "origin: http://example.com\r\naccess-control-request-method: POST\r\n";
    let Response(status, head, _) = console.send(&format!("OPTIONS /{EXPLAIN}"), preflight, &[]);
    assert_eq!(status, 403);
    assert!(!head.contains("access-control-allow"), "{head}");
    let metrics = tokio::task::spawn_blocking(move || {
        http_request(UnixStream::connect(admin).unwrap(), "GET", "/metrics", "").1
    });
    let metrics = metrics.await.unwrap();
    let line = "entail_bounds_exceeded_total{bound=\"foreign_site\"} 8";
    assert!(metrics.lines().any(|other| other == line), "{metrics}");
    console.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_browsers_do_not_take_the_places_of_others() {
    let console = Console::start(|_| {}).await;
    let silent: Vec<TcpStream> = (0..200)
        .map(|_| TcpStream::connect(&console.address).unwrap())
        .collect();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(console.send("GET /", "", &[]).0, 200);
    console.running.get(by_path(PATH)).await.unwrap();
    drop(silent);
    console.stop().await;
}

//! What one caller can make the server hold: replies that it does not read, requests that do not
//! arrive, silent connections, and messages in other encodings. In each test a neighbour calls as
//! usual, and none of its calls fails.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Request;
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::admin::http_request;
use super::hostile::{Requests, connection, frame, request, status};
use super::server::{PATH, Running, by_path, start};
use entail::api::v1;
use entail::app::ServeSettings;

const GET: &str = "entail.v1.EffectivePolicyService/GetEffectivePolicies";
const CHECK: &str = "grpc.health.v1.Health/Check";

/// A server with an admin socket.
struct Server {
    running: Running,
    socket: PathBuf,
    _folder: tempfile::TempDir,
}

impl Server {
    async fn start(adjust: impl FnOnce(&mut ServeSettings)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("admin.sock");
        let admin = socket.clone();
        let running = start(|settings| {
            settings.admin_socket = Some(admin);
            adjust(settings);
        })
        .await;
        Self {
            running,
            socket,
            _folder: folder,
        }
    }

    /// Returns the value of a metric.
    async fn metric(&self, name: &str) -> f64 {
        let socket = self.socket.clone();
        // The text is kept for a moment.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let text = tokio::task::spawn_blocking(move || {
            http_request(UnixStream::connect(socket).unwrap(), "GET", "/metrics", "").1
        });
        let text = text.await.unwrap();
        let value = text.lines().find_map(|line| line.strip_prefix(name));
        value
            .unwrap_or_else(|| panic!("{name}\n{text}"))
            .trim()
            .parse()
            .unwrap()
    }

    async fn exceeded(&self, bound: &str) -> f64 {
        self.metric(&format!(
            "entail_bounds_exceeded_total{{bound=\"{bound}\"}}"
        ))
        .await
    }

    /// Calls as a well-behaved neighbour, on its own connection.
    async fn neighbour_calls(&self) {
        for _ in 0..20 {
            self.running.get(by_path(PATH)).await.unwrap();
        }
    }
}

/// Connects with a window of one byte for each reply.
async fn reluctant(address: &str) -> Requests {
    let socket = TcpStream::connect(address).await.unwrap();
    let mut client = h2::client::Builder::new();
    client.initial_window_size(1);
    let (requests, connection) = client.handshake(socket).await.unwrap();
    tokio::spawn(connection);
    requests
}

fn look_up() -> Bytes {
    frame(&by_path(PATH).encode_to_vec())
}

/// A look-up with another field, which the fast path does not answer.
fn long_look_up() -> Bytes {
    let request = v1::GetEffectivePoliciesRequest {
        if_none_match: "unknown".to_owned(),
        ..by_path(PATH)
    };
    frame(&request.encode_to_vec())
}

fn to(url: &str) -> Request<()> {
    let mut head = request("GetEffectivePolicies");
    *head.uri_mut() = format!("http://entail/{url}").parse().unwrap();
    head
}

/// Asks without reading the reply; returns it if it has a message.
async fn ask(
    requests: &Requests,
    message: Bytes,
) -> Result<http::Response<h2::RecvStream>, String> {
    let mut requests = requests.clone().ready().await.unwrap();
    let (reply, mut body) = requests.send_request(to(GET), false).unwrap();
    body.send_data(message, true).unwrap();
    let reply = reply.await.unwrap();
    match reply.headers().get("grpc-status") {
        None => Ok(reply),
        Some(status) => Err(status.to_str().unwrap().to_owned()),
    }
}

/// Before, all replies were kept in memory until the connection ended.
#[tokio::test(flavor = "multi_thread")]
async fn replies_that_are_not_read_cost_their_caller() {
    const LIMIT: f64 = 10_000.0;
    let server = Server::start(|settings| {
        settings.limits.held_bytes_per_connection = 10_000;
        settings.limits.reply_progress = Duration::from_secs(4);
    })
    .await;
    for message in [look_up(), long_look_up()] {
        let greedy = reluctant(&server.running.address).await;
        let mut kept = Vec::new();
        let mut refused = 0;
        for _ in 0..300 {
            match ask(&greedy, message.clone()).await {
                Ok(reply) => kept.push(reply),
                Err(status) => {
                    assert_eq!(status, "8", "RESOURCE_EXHAUSTED");
                    refused += 1;
                }
            }
        }
        assert!(refused > 200 && kept.len() > 5, "{refused} refused");
        let held = server.metric("entail_held_bytes{}").await;
        assert!(held > LIMIT / 2.0 && held <= LIMIT, "{held}");
        server.neighbour_calls().await;
        // A caller that never reads loses its connection, and the bytes are returned.
        let mut requests = greedy;
        while let Ok(ready) = requests.clone().ready().await {
            requests = ready;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        drop(kept);
        while server.metric("entail_held_bytes{}").await > 0.0 {}
        server.neighbour_calls().await;
    }
    assert!((server.exceeded("reply_unread").await - 2.0).abs() < 0.1);
    assert!(server.exceeded("bytes_of_connection").await > 400.0);
    server.running.stop().await;
}

/// Before, permits were returned when the reply was ready.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_holds_its_permit_until_its_reply_is_written() {
    let server = Server::start(|settings| settings.limits.requests_per_connection = 3).await;
    for message in [look_up(), long_look_up()] {
        let greedy = reluctant(&server.running.address).await;
        let mut kept = Vec::new();
        let mut refused = 0;
        for _ in 0..10 {
            match ask(&greedy, message.clone()).await {
                Ok(reply) => kept.push(reply),
                Err(_) => refused += 1,
            }
        }
        assert_eq!((kept.len(), refused), (3, 7));
        server.neighbour_calls().await;
        // A reply that is cancelled returns its permit.
        kept.pop();
        while ask(&greedy, message.clone()).await.is_err() {}
    }
    server.running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_that_do_not_read_do_not_shut_out_others() {
    let server = Server::start(|settings| settings.limits.held_bytes = 20_000).await;
    let mut kept = Vec::new();
    for _ in 0..40 {
        let greedy = reluctant(&server.running.address).await;
        for _ in 0..10 {
            kept.extend(ask(&greedy, look_up()).await);
        }
        kept.extend(ask(&greedy, look_up()).await);
    }
    server.neighbour_calls().await;
    drop(kept);
    server.running.stop().await;
}

/// Before, only the timeout of the whole request bounded its arrival, and nothing that of health.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_must_arrive_in_time() {
    let server =
        Server::start(|settings| settings.limits.request_arrival = Duration::from_millis(200))
            .await;
    let slow = connection(&server.running).await;
    let urls = [
        GET,
        "entail.v1.EffectivePolicyService/BatchGetEffectivePolicies",
        "entail.v1.EffectivePolicyService/ResolveRequest",
        "entail.v1.EffectivePolicyService/WatchEffectivePolicies",
        "entail.v1.PolicyInsightService/Explain",
        CHECK,
        "grpc.health.v1.Health/Watch",
    ];
    // Nothing, a part, and enough that a permit is taken; the last one is too large for health.
    for length in [0, 4, 20_000] {
        for url in urls {
            if length > 4_000 && url.starts_with("grpc.health") {
                continue;
            }
            let mut requests = slow.clone().ready().await.unwrap();
            let (reply, mut body) = requests.send_request(to(url), false).unwrap();
            let message = [&[0, 0, 1, 0, 0][..], &vec![0; 20_000]].concat();
            body.send_data(Bytes::from(message).slice(..length), false)
                .unwrap();
            let reply = reply.await.unwrap();
            assert_eq!(reply.headers()["grpc-status"], "4", "{url} {length}");
        }
        server.neighbour_calls().await;
    }
    assert!(server.exceeded("request_arrival").await >= 19.0);
    server.running.stop().await;
}

/// Before, the health listener took messages of 4 MiB, on any number of streams.
#[tokio::test(flavor = "multi_thread")]
async fn requests_for_health_are_small_and_few() {
    let server = Server::start(|settings| {
        settings.health_listen = Some("127.0.0.1:0".to_owned());
    })
    .await;
    let health = server.running.health_address.clone().unwrap();
    for address in [&health, &server.running.address] {
        let socket = TcpStream::connect(address).await.unwrap();
        let (requests, driver) = h2::client::handshake(socket).await.unwrap();
        tokio::spawn(driver);
        let message = |length: usize| {
            let name = "x".repeat(length);
            frame(&tonic_health::pb::HealthCheckRequest { service: name }.encode_to_vec())
        };
        let mut codes = Vec::new();
        for length in [100, 5_000, 60_000] {
            let mut requests = requests.clone().ready().await.unwrap();
            let (reply, mut body) = requests.send_request(to(CHECK), false).unwrap();
            body.send_data(message(length), true).unwrap();
            let reply = reply.await.unwrap();
            codes.push(reply.headers()["grpc-status"].to_str().unwrap().to_owned());
        }
        assert_eq!(codes, ["5", "11", "11"]);
        let mut open = Vec::new();
        let mut refused = 0;
        for _ in 0..100 {
            let mut requests = requests.clone().ready().await.unwrap();
            let url = "grpc.health.v1.Health/Watch";
            let (reply, mut body) = requests.send_request(to(url), false).unwrap();
            body.send_data(frame(b""), true).unwrap();
            let reply = reply.await.unwrap();
            match reply.headers().get("grpc-status") {
                None => open.push(reply),
                Some(_) => refused += 1,
            }
        }
        assert_eq!((open.len(), refused), (64, 36));
        assert!(server.running.health(address, "").await);
    }
    server.neighbour_calls().await;
    server.running.stop().await;
}

/// Before, connections that sent nothing filled the limit, and new ones waited for an hour.
#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_do_not_lock_out_callers() {
    const SILENT: usize = 300;
    let server = Server::start(|settings| {
        settings.limits.connections = 50;
        settings.limits.connections_per_client = 50;
        settings.limits.health_connections = 20;
        settings.health_listen = Some("127.0.0.1:0".to_owned());
    })
    .await;
    let health = server.running.health_address.clone().unwrap();
    let own = server.running.address.clone();
    let mut silent = Vec::new();
    for _ in 0..SILENT {
        silent.push(TcpStream::connect(&own).await.unwrap());
        silent.push(TcpStream::connect(&health).await.unwrap());
    }
    // Existing callers, new callers and probes are answered.
    server.neighbour_calls().await;
    for _ in 0..10 {
        let new = connection(&server.running).await;
        assert_eq!(
            status(&new, "GetEffectivePolicies", look_up())
                .await
                .as_deref(),
            Some("0")
        );
        assert!(server.running.health(&health, "").await);
        assert!(server.running.health(&own, "").await);
    }
    assert!(server.metric("entail_connections{}").await <= 50.0);
    assert!(server.exceeded("connection_evicted").await >= 500.0);
    server.neighbour_calls().await;
    server.running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_connection_ends() {
    let server =
        Server::start(|settings| settings.limits.connection_setup = Duration::from_secs(2)).await;
    // Only who has sent something gets the settings of the server.
    for (sent, is_answered, ended) in [(&b""[..], false, 1.0), (b"PRI * HTTP", true, 2.0)] {
        let mut silent = TcpStream::connect(&server.running.address).await.unwrap();
        silent.write_all(sent).await.unwrap();
        let read = tokio::time::timeout(Duration::from_secs(20), async {
            let mut bytes = Vec::new();
            let _end = silent.read_to_end(&mut bytes).await;
            bytes
        });
        let bytes = read.await.expect("the connection does not end");
        assert_eq!(!bytes.is_empty(), is_answered, "{sent:?}");
        assert!((server.exceeded("connection_setup").await - ended).abs() < 0.1);
    }
    server.neighbour_calls().await;
    server.running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_that_their_caller_closes_are_gone() {
    let server =
        Server::start(|settings| settings.limits.connection_setup = Duration::from_secs(600)).await;
    server.neighbour_calls().await;
    let before = server.metric("entail_connections{}").await;
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(TcpStream::connect(&server.running.address).await.unwrap());
    }
    let end = Instant::now() + Duration::from_secs(20);
    let until = async |is_reached: fn(f64) -> bool| {
        while !is_reached(server.metric("entail_connections{}").await - before) {
            assert!(Instant::now() < end, "the connections do not come or go");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    until(|more| more > 19.5).await;
    // They wait for the first byte, and those that are quiet for a second for their turn after it.
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    drop(silent);
    until(|more| more < 0.5).await;
    assert!(server.exceeded("connection_setup").await < 0.1);
    server.running.stop().await;
}

/// Sends a request with headers; returns the HTTP status, the gRPC status and what the server
/// accepts.
async fn with_headers(
    requests: &Requests,
    (url, message): (&str, Bytes),
    (content_type, encoding): (Option<&str>, Option<&str>),
) -> (u16, String, Option<String>) {
    let mut head = to(url);
    head.headers_mut().remove("content-type");
    for (name, value) in [("content-type", content_type), ("grpc-encoding", encoding)] {
        if let Some(value) = value {
            head.headers_mut().insert(name, value.parse().unwrap());
        }
    }
    let mut requests = requests.clone().ready().await.unwrap();
    let (reply, mut body) = requests.send_request(head, false).unwrap();
    body.send_data(message, true).unwrap();
    let (parts, mut body) = reply.await.unwrap().into_parts();
    let text = |name: &str| Some(parts.headers.get(name)?.to_str().unwrap().to_owned());
    let mut status = text("grpc-status");
    while let Some(data) = body.data().await {
        let length = data.unwrap().len();
        body.flow_control().release_capacity(length).unwrap();
    }
    if let Some(trailers) = body.trailers().await.unwrap() {
        status = Some(trailers["grpc-status"].to_str().unwrap().to_owned());
    }
    (
        parts.status.as_u16(),
        status.unwrap_or_default(),
        text("grpc-accept-encoding"),
    )
}

/// Before, the fast path took any content type and any compression.
#[tokio::test(flavor = "multi_thread")]
async fn encodings_are_checked_alike_for_all_services() {
    let server = Server::start(|_| {}).await;
    let requests = connection(&server.running).await;
    let ok = (200, "0", None);
    let media = (415, "3", None);
    let unimplemented = (200, "12", Some("identity"));
    let grpc = Some("application/grpc");
    let cases = [
        ((grpc, None), ok),
        ((Some("application/grpc+proto"), None), ok),
        ((Some("Application/GRPC+Proto; charset=utf-8"), None), ok),
        ((Some("application/grpc;a=b"), Some("identity")), ok),
        ((None, None), media),
        ((Some(""), None), media),
        ((Some("application/json"), None), media),
        ((Some("application/grpc+json"), None), media),
        ((Some("application/grpc+protobuf"), None), media),
        ((Some("application/grpc-web"), None), media),
        ((Some("application/grpc-web+proto"), None), media),
        ((Some("text/plain; application/grpc"), None), media),
        ((grpc, Some("gzip")), unimplemented),
        ((grpc, Some("deflate")), unimplemented),
        ((grpc, Some("IDENTITY")), unimplemented),
        ((grpc, Some("")), unimplemented),
        ((grpc, Some("identity,gzip")), unimplemented),
    ];
    let ways = [(GET, look_up()), (GET, long_look_up()), (CHECK, frame(b""))];
    for (headers, (http, grpc, accepted)) in cases {
        for way in ways.clone() {
            let url = way.0;
            let reply = with_headers(&requests, way, headers).await;
            let expected = (http, grpc.to_owned(), accepted.map(str::to_owned));
            assert_eq!(reply, expected, "{url} {headers:?}");
        }
    }
    server.neighbour_calls().await;
    server.running.stop().await;
}

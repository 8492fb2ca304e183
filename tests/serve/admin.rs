//! Metrics, readiness and the log's filter over HTTP.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use entail::app::serve;
use entail::config::ServeSettings;
use tokio::sync::oneshot;

use super::server::{PATH, by_path, start, world};

/// Asks over a connection of its own; returns the status and the body.
fn ask(mut stream: impl Read + Write, method: &str, path: &str, body: &str) -> (u16, String) {
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    let (head, body) = reply.split_once("\r\n\r\n").unwrap();
    (
        head.split(' ').nth(1).unwrap().parse().unwrap(),
        body.to_owned(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_and_readiness_are_told() {
    let sockets = tempfile::tempdir().unwrap();
    let socket = sockets.path().join("admin.sock");
    let unix = socket.clone();
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let running = start(|settings| {
        settings.admin_socket = Some(unix);
        settings.admin_listen = Some(port.to_string());
    })
    .await;
    running.get(by_path(PATH)).await.unwrap();
    running.get(by_path("gateways/no/such")).await.unwrap_err();
    let told = tokio::task::spawn_blocking(move || {
        let over_tcp =
            |method, path, body| ask(TcpStream::connect(port).unwrap(), method, path, body);
        let over_unix =
            |method, path, body| ask(UnixStream::connect(&socket).unwrap(), method, path, body);
        let (code, metrics) = over_tcp("GET", "/metrics", "");
        assert_eq!(code, 200);
        assert_eq!(over_tcp("GET", "/healthz", ""), (200, "ok\n".to_owned()));
        let (code, ready) = over_tcp("GET", "/readyz", "");
        assert_eq!(code, 200, "{ready}");
        assert!(ready.contains("generation 1\n"), "{ready}");
        // Who can reach a port may not change the log.
        assert_eq!(over_tcp("GET", "/log", "").0, 404);
        assert_eq!(over_tcp("PUT", "/log", "debug").0, 404);
        assert_eq!(over_unix("GET", "/readyz", "").0, 200);
        assert_eq!(over_unix("GET", "/nonsense", "").0, 404);
        metrics
    });
    let metrics = told.await.unwrap();
    for line in [
        "entail_requests_total{service=\"policies\",code=\"OK\"} 1",
        "entail_requests_total{service=\"policies\",code=\"NOT_FOUND\"} 1",
        "entail_snapshot_generation{} 1.0",
        "entail_objects{kind=\"APolicy.p.example\"} 1.0",
        "entail_policies{kind=\"APolicy.p.example\",outcome=\"Accepted\"} 1.0",
        "entail_kind_state{kind=\"APolicy.p.example\",state=\"COMPLETE\"} 1.0",
        "# EOF",
    ] {
        assert!(
            metrics.lines().any(|found| found == line),
            "{line}\n{metrics}"
        );
    }
    // Objects have no names here.
    assert!(
        !metrics.contains("default") && !metrics.contains("\"gw\""),
        "{metrics}"
    );
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_not_ready_before_the_first_snapshot() {
    let folder = world();
    std::fs::write(folder.path().join("broken.yaml"), "a: [").unwrap();
    let socket = folder.path().join("admin.sock");
    let mut settings = ServeSettings {
        listen: vec!["127.0.0.1:0".to_owned()],
        admin_socket: Some(socket.clone()),
        ..ServeSettings::default()
    };
    settings.inputs.manifests = vec![folder.path().join("broken.yaml")];
    let (tell, bound) = oneshot::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(async move {
        let stopped = async move { drop(stopped.await) };
        serve(settings, |_| tell.send(()).unwrap(), stopped).await
    });
    bound.await.unwrap();
    let asked = tokio::task::spawn_blocking(move || {
        let end = Instant::now() + Duration::from_secs(10);
        loop {
            let (code, told) = ask(UnixStream::connect(&socket).unwrap(), "GET", "/readyz", "");
            assert_eq!(code, 503, "{told}");
            assert!(told.starts_with("not ready\nno snapshot yet\n"), "{told}");
            // The socket tells what is wrong.
            if told.contains("broken.yaml:1: ") {
                return;
            }
            assert!(Instant::now() < end, "{told}");
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    asked.await.unwrap();
    stop.send(()).unwrap();
    task.await.unwrap().unwrap();
}

//! The admin server: metrics, readiness and the log filter over HTTP. Also the latency histograms
//! and the tracing spans of requests.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use entail::api::v1;
use entail::app::serve;
use entail::config::ServeSettings;
use entail_client::stubs::effective_policy_service_client::EffectivePolicyServiceClient;
use entail_client::stubs::policy_insight_service_client::PolicyInsightServiceClient;
use tokio::sync::oneshot;
use tonic::transport::Endpoint;
use tonic::{Code, Request};
use tonic_prost::ProstCodec;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;

use super::envoy::{check_at, check_request_of_path};
use super::follow::put;
use super::scope::with_kinds;
use super::server::{PATH, Running, batch_of, by_path, start, world};

/// Sends one HTTP request over a connection; returns the status code and the body.
pub fn http_request(
    mut stream: impl Read + Write,
    method: &str,
    path: &str,
    body: &str,
) -> (u16, String) {
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
async fn metrics_and_readiness_are_served() {
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
    let metrics = tokio::task::spawn_blocking(move || {
        let over_tcp = |method, path, body| {
            http_request(TcpStream::connect(port).unwrap(), method, path, body)
        };
        let over_unix = |method, path, body| {
            http_request(UnixStream::connect(&socket).unwrap(), method, path, body)
        };
        let (code, metrics) = over_tcp("GET", "/metrics", "");
        assert_eq!(code, 200);
        assert_eq!(over_tcp("GET", "/healthz", ""), (200, "ok\n".to_owned()));
        let (code, ready) = over_tcp("GET", "/readyz", "");
        assert_eq!(code, 200, "{ready}");
        assert!(ready.contains("generation 1\n"), "{ready}");
        // The log filter can be changed only over the Unix socket.
        assert_eq!(over_tcp("GET", "/log", "").0, 404);
        assert_eq!(over_tcp("PUT", "/log", "debug").0, 404);
        assert_eq!(over_unix("GET", "/readyz", "").0, 200);
        assert_eq!(over_unix("GET", "/nonsense", "").0, 404);
        metrics
    });
    let metrics = metrics.await.unwrap();
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
            metrics.lines().any(|candidate| candidate == line),
            "{line}\n{metrics}"
        );
    }
    every_metric_is_described(&metrics);
    // Labels contain no names of objects.
    assert!(
        !metrics.contains("default") && !metrics.contains("\"gw\""),
        "{metrics}"
    );
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_metric_of_states_tells_of_input_that_is_not_read() {
    let socket = tempfile::tempdir().unwrap();
    let socket = socket.path().join("admin.sock");
    let path = socket.clone();
    let running = start(|settings| settings.admin_socket = Some(path)).await;
    let states = async || {
        let stream = UnixStream::connect(&socket).unwrap();
        let reply =
            tokio::task::spawn_blocking(|| http_request(stream, "GET", "/metrics", "").1).await;
        let reply = reply.unwrap();
        let all = reply.lines().filter(|line| line.contains("kind=\"*\""));
        all.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(states().await, [""; 0]);
    put(&running, "broken.yaml", "metadata: {name: a, namespace: b");
    let started = Instant::now();
    while states().await.is_empty() {
        assert!(started.elapsed() < Duration::from_secs(5), "no state of *");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let state = "entail_kind_state{kind=\"*\",state=\"STALE\"} 1.0";
    assert_eq!(states().await, [state]);
    running.stop().await;
}

/// Checks that docs/operations.md has a row for each metric of a server.
fn every_metric_is_described(metrics: &str) {
    let docs = include_str!("../../docs/operations.md");
    for family in metrics
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
    {
        let (name, kind) = family.split_once(' ').unwrap();
        let end = if kind == "counter" { "_total" } else { "" };
        let row = format!("| `{name}{end}` |");
        assert!(
            docs.contains(&row),
            "{row} is missing in docs/operations.md"
        );
    }
    for name in [
        "process_open_fds",
        "process_cpu_seconds",
        "entail_build_seconds",
    ] {
        assert!(
            metrics.contains(&format!("# TYPE {name} ")),
            "{name}\n{metrics}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_is_not_ready_before_the_first_snapshot() {
    let folder = world();
    std::fs::write(folder.path().join("broken.yaml"), "a: [").unwrap();
    let socket = folder.path().join("admin.sock");
    let mut settings = ServeSettings {
        listen: vec!["127.0.0.1:0".to_owned()],
        admin_socket: Some(socket.clone()),
        ..ServeSettings::default()
    };
    settings.inputs.manifests = vec![folder.path().join("broken.yaml")];
    let (sender, bound) = oneshot::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(async move {
        let stopped = async move { drop(stopped.await) };
        serve(settings, |_| sender.send(()).unwrap(), stopped).await
    });
    bound.await.unwrap();
    let waiting = tokio::task::spawn_blocking(move || {
        let end = Instant::now() + Duration::from_secs(10);
        loop {
            let socket = UnixStream::connect(&socket).unwrap();
            let (code, body) = http_request(socket, "GET", "/readyz", "");
            assert_eq!(code, 503, "{body}");
            assert!(body.starts_with("not ready\nno snapshot yet\n"), "{body}");
            // The Unix socket also reports the problems.
            if body.contains("broken.yaml:1: ") {
                return;
            }
            assert!(Instant::now() < end, "{body}");
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    waiting.await.unwrap();
    stop.send(()).unwrap();
    task.await.unwrap().unwrap();
}

/// Calls each method of the API once, except health.
async fn call_every_method(running: &Running) {
    let mut policies = running.policies();
    policies
        .batch_get_effective_policies(batch_of([PATH]))
        .await
        .unwrap();
    let watch = v1::WatchEffectivePoliciesRequest::default();
    policies.watch_effective_policies(watch).await.unwrap();
    let resolve = v1::ResolveRequestRequest::default();
    policies.resolve_request(resolve).await.unwrap();
    call_every_insight_method(running).await;
    let channel = running.channel().await;
    check_at(channel.clone(), check_request_of_path(PATH), &[])
        .await
        .unwrap();
    let list = tokio_stream::iter([super::list_services()]);
    let mut reflection = ServerReflectionClient::new(channel.clone());
    reflection.server_reflection_info(list).await.unwrap();
    let mut client = tonic::client::Grpc::new(channel);
    client.ready().await.unwrap();
    let path = http::uri::PathAndQuery::from_static("/entail.v1.EffectivePolicyService/Nope");
    let codec = ProstCodec::<v1::GetTopologyRequest, v1::GetTopologyRequest>::default();
    let unknown = client.unary(Request::new(v1::GetTopologyRequest::default()), path, codec);
    assert_eq!(unknown.await.unwrap_err().code(), Code::Unimplemented);
}

/// Calls each method of PolicyInsightService once.
async fn call_every_insight_method(running: &Running) {
    let mut insight = running.insight();
    let explain = v1::ExplainRequest {
        name: PATH.to_owned(),
        ..Default::default()
    };
    insight.explain(explain).await.unwrap();
    insight
        .list_policies(v1::ListPoliciesRequest::default())
        .await
        .unwrap();
    insight
        .list_affected(v1::ListAffectedRequest::default())
        .await
        .unwrap_err();
    insight
        .preview_change(v1::PreviewChangeRequest::default())
        .await
        .unwrap();
    insight
        .list_findings(v1::ListFindingsRequest::default())
        .await
        .unwrap();
    insight
        .check_assertions(v1::CheckAssertionsRequest::default())
        .await
        .unwrap();
    insight
        .get_topology(v1::GetTopologyRequest::default())
        .await
        .unwrap();
    insight
        .list_paths(v1::ListPathsRequest::default())
        .await
        .unwrap();
    insight
        .get_server_status(v1::GetServerStatusRequest {})
        .await
        .unwrap();
}

/// The values of a metric by its labels, without the label `drop`, which are added up.
fn sums(metrics: &str, name: &str, drop: &str) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for line in metrics.lines() {
        let Some((labels, value)) = line
            .strip_prefix(name)
            .and_then(|rest| rest.strip_prefix('{')?.split_once("} "))
        else {
            continue;
        };
        let kept = labels.split(',').filter(|label| !label.starts_with(drop));
        let kept: Vec<&str> = kept.collect();
        *sums.entry(kept.join(",")).or_default() += value.parse::<u64>().unwrap();
    }
    sums
}

pub async fn metrics_of(socket: &Path) -> String {
    let socket = socket.to_owned();
    let reply = tokio::task::spawn_blocking(move || {
        http_request(UnixStream::connect(socket).unwrap(), "GET", "/metrics", "")
    });
    reply.await.unwrap().1
}

/// Waits until a line is among the metrics.
pub async fn until_metric(socket: &Path, line: &str) {
    for _ in 0..200 {
        if metrics_of(socket).await.lines().any(|other| other == line) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("no `{line}` in {}", metrics_of(socket).await);
}

/// What `call_every_method` calls, by service and method.
const CALLED_ONCE: [(&str, &str); 15] = [
    ("policies", "BatchGetEffectivePolicies"),
    ("policies", "WatchEffectivePolicies"),
    ("policies", "ResolveRequest"),
    ("policies", "other"),
    ("insight", "Explain"),
    ("insight", "ListPolicies"),
    ("insight", "ListAffected"),
    ("insight", "PreviewChange"),
    ("insight", "ListFindings"),
    ("insight", "CheckAssertions"),
    ("insight", "GetTopology"),
    ("insight", "ListPaths"),
    ("insight", "GetServerStatus"),
    ("envoy", "Check"),
    ("other", "other"),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_request_is_counted_in_the_histogram_of_its_method() {
    let folder = tempfile::tempdir().unwrap();
    let (socket, envoy) = (
        folder.path().join("admin.sock"),
        folder.path().join("envoy"),
    );
    std::fs::write(&envoy, "").unwrap();
    let admin = socket.clone();
    let running = start(|settings| {
        settings.admin_socket = Some(admin);
        settings.envoy = Some(envoy);
    })
    .await;
    // On the fast path, by the services, and an error.
    running.get(by_path(PATH)).await.unwrap();
    running
        .get(with_kinds(PATH, &["APolicy.p.example"]))
        .await
        .unwrap();
    running.get(by_path("gateways/no/such")).await.unwrap_err();
    call_every_method(&running).await;
    let metrics = metrics_of(&socket).await;

    let name = "entail_request_duration_seconds_count";
    let counts = sums(&metrics, name, "nothing");
    let mut expected = BTreeMap::from([(
        "service=\"policies\",method=\"GetEffectivePolicies\"".to_owned(),
        3,
    )]);
    for (service, method) in CALLED_ONCE {
        expected.insert(format!("service=\"{service}\",method=\"{method}\""), 1);
    }
    let is_health = |labels: &String| labels.contains("health");
    let others: BTreeMap<_, _> = counts
        .clone()
        .into_iter()
        .filter(|(l, _)| !is_health(l))
        .collect();
    assert_eq!(others, expected, "{metrics}");
    // How often `start` asks for health is not known; the counters have the same number.
    let by_service = sums(&metrics, name, "method");
    assert_eq!(by_service, sums(&metrics, "entail_requests_total", "code"));
    assert!(by_service["service=\"health\""] > 0);
    // The last bucket has all requests.
    let last = "entail_request_duration_seconds_bucket";
    for (labels, count) in &counts {
        let bucket = format!("{last}{{le=\"+Inf\",{labels}}} {count}");
        assert!(
            metrics.lines().any(|line| line == bucket),
            "{bucket}\n{metrics}"
        );
    }
    running.stop().await;
}

/// A process, which ends with its test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// In a process of its own, because requests run on several threads, and no other test may decide what is logged.
#[tokio::test]
async fn a_request_has_a_span_with_its_method_its_peer_and_its_code() {
    let (manifests, folder) = (world(), tempfile::tempdir().unwrap());
    let [port_file, log] = ["address", "log"].map(|name| folder.path().join(name));
    let server = Command::new(env!("CARGO_BIN_EXE_entail"))
        .args(["serve", "--listen", "127.0.0.1:0", "--log", "debug"])
        .arg("--manifests")
        .arg(manifests.path())
        .arg("--port-file")
        .arg(&port_file)
        .stdout(Stdio::null())
        .stderr(fs::File::create(&log).unwrap())
        .spawn();
    let _process = Process(server.unwrap());
    let pause = || tokio::time::sleep(Duration::from_millis(10));
    while !port_file.exists() {
        pause().await;
    }
    let address = fs::read_to_string(&port_file).unwrap();
    let channel = Endpoint::from_shared(format!("http://{}", address.trim())).unwrap();
    let channel = channel.connect().await.unwrap();
    let mut policies = EffectivePolicyServiceClient::new(channel.clone());
    // Until there is a snapshot, it is UNAVAILABLE.
    while policies
        .get_effective_policies(by_path(PATH))
        .await
        .is_err()
    {
        pause().await;
    }
    let unknown = by_path("gateways/no/such");
    policies.get_effective_policies(unknown).await.unwrap_err();
    PolicyInsightServiceClient::new(channel)
        .get_topology(v1::GetTopologyRequest::default())
        .await
        .unwrap();
    let expected = [
        ("policies", "GetEffectivePolicies", "OK"),
        ("policies", "GetEffectivePolicies", "NOT_FOUND"),
        ("insight", "GetTopology", "OK"),
    ]
    .map(|(service, method, code)| {
        format!("service=\"{service}\" method=\"{method}\" peer=\"tcp\" code=\"{code}\"")
    });
    let finished = |text: &str| {
        expected.clone().map(|span| {
            let lines = text.lines();
            lines
                .filter(|line| line.ends_with(&span) && line.contains("request finished"))
                .count()
        })
    };
    let text = || fs::read_to_string(&log).unwrap();
    // A request is finished after its client has the reply.
    for _ in 0..500 {
        if finished(&text()) == [1; 3] {
            break;
        }
        pause().await;
    }
    assert_eq!(finished(&text()), [1; 3], "{}", text());
}

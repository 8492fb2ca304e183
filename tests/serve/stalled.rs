//! Watch streams that hold much: their callers do not read, or follow many paths. What they hold is
//! shared and bounded, and the bounds are those of one caller.

use std::net::{IpAddr, TcpListener, TcpStream};
use std::time::Duration;

use entail::api::v1;
use entail::app::ServeSettings;
use entail_client::stubs::effective_policy_service_client::EffectivePolicyServiceClient;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use super::admin::http_request;
use super::follow::put;
use super::server::{PATH, Running, policies, start};
use super::watch::{Messages, bodies, names, update};

/// Size of the large field of a policy. Each answer has two policies.
const FILLER: usize = 150_000;

/// A server with a policy of many bytes, and its admin address.
pub async fn start_large(adjust: impl FnOnce(&mut ServeSettings)) -> (Running, String) {
    let admin = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
    let admin = admin.unwrap().to_string();
    let address = admin.clone();
    let running = start(move |settings| {
        settings.admin_listen = Some(address);
        adjust(settings);
        std::fs::write(settings.inputs.manifests[0].join("policies.yaml"), large(1)).unwrap();
    });
    (running.await, admin)
}

pub fn large(marker: u64) -> String {
    sized(marker, FILLER)
}

/// Two policies with a field of many bytes.
pub fn sized(marker: u64, bytes: usize) -> String {
    let filler = "x".repeat(bytes);
    policies(marker).replace("defaults: {", &format!("defaults: {{filler: {filler}, "))
}

/// The value of a metric.
pub async fn metric(admin: &str, name: &'static str) -> f64 {
    // Metrics are cached for a quarter of a second.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let admin = admin.to_owned();
    let text = tokio::task::spawn_blocking(move || {
        http_request(TcpStream::connect(admin).unwrap(), "GET", "/metrics", "").1
    });
    let text = text.await.unwrap();
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    value.map_or(0.0, |value| value.trim().parse().unwrap())
}

/// A connection from an address, whose streams stall after 64 KiB that are not read.
async fn client(running: &Running, from: [u8; 4]) -> EffectivePolicyServiceClient<Channel> {
    let endpoint = Endpoint::from_shared(format!("http://{}", running.address)).unwrap();
    let endpoint = endpoint
        .local_address(Some(IpAddr::from(from)))
        .initial_stream_window_size(65_535)
        .initial_connection_window_size(1 << 28);
    EffectivePolicyServiceClient::new(endpoint.connect().await.unwrap())
        .max_decoding_message_size(usize::MAX)
}

async fn open(
    client: &EffectivePolicyServiceClient<Channel>,
    prefix: &str,
    resume_token: &str,
) -> Result<Messages, Status> {
    let request = v1::WatchEffectivePoliciesRequest {
        prefixes: vec![prefix.to_owned()],
        resume_token: resume_token.to_owned(),
        ..Default::default()
    };
    let mut client = client.clone();
    let reply = client.watch_effective_policies(request).await?;
    Ok(reply.into_inner())
}

/// Reads until an update with a marker in the large policy.
async fn until(messages: &mut Messages, marker: u64) {
    let marker = format!("\"marker\":{marker}}}");
    loop {
        let update = update(messages).await;
        let bodies = bodies(&update);
        let policies = bodies.iter().flat_map(|body| &body.policies);
        if policies
            .into_iter()
            .any(|p| p.spec_json().ends_with(&marker))
        {
            return;
        }
    }
}

/// The error with which a stream ends.
async fn end(messages: &mut Messages) -> Status {
    loop {
        let next = tokio::time::timeout(Duration::from_secs(10), messages.message());
        match next.await.expect("the stream neither goes on nor ends") {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the stream ended without a status"),
            Err(status) => return status,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stalled_streams_share_what_they_have_not_sent() {
    const STREAMS: usize = 300;
    let (running, admin) = start_large(|_| {}).await;
    let stalled = client(&running, [127, 0, 0, 1]).await;
    let mut streams = Vec::new();
    for _ in 0..STREAMS {
        streams.push(open(&stalled, PATH, "").await.unwrap());
    }
    let reading = client(&running, [127, 0, 0, 1]).await;
    let mut reader = open(&reading, PATH, "").await.unwrap();
    until(&mut reader, 1).await;
    for marker in 2..8 {
        put(&running, "policies.yaml", &large(marker));
        until(&mut reader, marker).await;
    }
    // All stalled streams are sending the first update: one plan and one message of 300 KB each.
    let held = metric(&admin, "entail_watch_bytes{}").await;
    let answer = (2 * FILLER) as f64;
    assert!(held >= 2.0 * answer, "{held}");
    assert!(held < 5.0 * answer, "{held} bytes for {STREAMS} streams");
    // A stream that reads on gets the rest of that, and then the last state.
    until(streams.last_mut().unwrap(), 7).await;
    assert_eq!(metric(&admin, "entail_watches{}").await, 301.0);
    drop((streams, reader));
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_slowest_stream_of_a_caller_that_holds_too_much_ends() {
    // Room for the updates of seven streams.
    const LIMIT: usize = 30 * FILLER;
    let (running, admin) = start_large(|settings| {
        settings.limits.watch_bytes.per_caller = LIMIT;
    })
    .await;
    let stalled = client(&running, [127, 0, 0, 1]).await;
    let reading = client(&running, [127, 0, 0, 1]).await;
    let mut reader = open(&reading, PATH, "").await.unwrap();
    until(&mut reader, 1).await;
    // Each stream stalls in the update to another state, so that they share nothing.
    let mut streams = Vec::new();
    for marker in 1..12 {
        let mut messages = open(&stalled, PATH, "").await.unwrap();
        let first = update(&mut messages).await;
        streams.push((messages, first.last().unwrap().resume_token.clone()));
        put(&running, "policies.yaml", &large(marker + 1));
        until(&mut reader, marker + 1).await;
    }
    let held = metric(&admin, "entail_watch_bytes{}").await;
    assert!(held <= LIMIT as f64, "{held}");
    let ended = "entail_watches_ended_total{reason=\"bytes_of_client\"}";
    let (slowest, token) = &mut streams[0];
    let status = end(slowest).await;
    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
    let reason = format!("the streams of this client hold more than {LIMIT} bytes");
    assert!(status.message().starts_with(&reason), "{status}");
    assert!(metric(&admin, ended).await >= 1.0);
    // The stream can be resumed, and the last ones have not ended.
    let mut resumed = open(&stalled, PATH, token).await.unwrap();
    until(&mut resumed, 12).await;
    until(&mut streams[10].0, 12).await;
    drop((streams, resumed, reader));
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_caller_uses_up_the_paths_of_others() {
    // `PATH` is 3 paths: the rule, its backend and the port.
    let (running, admin) = start_large(|settings| {
        settings.limits.watch_paths.per_caller = 5;
        settings.limits.watch_paths.total = 6;
    })
    .await;
    let greedy = client(&running, [127, 0, 0, 1]).await;
    let other = client(&running, [127, 0, 0, 2]).await;
    let backend = format!("{PATH}/backends/Service/default/s");
    let mut first = open(&greedy, PATH, "").await.unwrap();
    update(&mut first).await;
    let mut newest = open(&greedy, &backend, "").await.unwrap();
    update(&mut newest).await;
    // Its share is used up.
    let port = format!("{backend}/ports/80");
    let refused = open(&greedy, &port, "").await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    let message = refused.message();
    assert!(
        message.contains("this client follow more than 5 paths"),
        "{message}"
    );
    // Another caller takes the room of the one that has most.
    let levels = v1::WatchEffectivePoliciesRequest {
        prefixes: vec![PATH.to_owned()],
        levels: vec!["RouteRule".to_owned()],
        ..Default::default()
    };
    let mut levels_client = other.clone();
    let one = levels_client.watch_effective_policies(levels).await;
    let mut one = one.unwrap().into_inner();
    assert_eq!(names(&update(&mut one).await).len(), 1);
    let mut two = open(&other, &port, "").await.unwrap();
    assert_eq!(names(&update(&mut two).await).len(), 1);
    assert!(metric(&admin, "entail_watched_paths{}").await <= 6.0);
    // Streams of the other caller go on, as does the first of the greedy one.
    put(&running, "policies.yaml", &large(2));
    for messages in [&mut one, &mut two, &mut first] {
        until(messages, 2).await;
    }
    let status = end(&mut newest).await;
    assert!(
        status
            .message()
            .starts_with("all streams follow more than 6 paths"),
        "{status}"
    );
    running.stop().await;
}

//! Many watch streams while policies change: `ENTAIL=path/to/entail cargo bench --profile dist --bench watch`.
//!
//! Starts a server with manifests, and `STREAMS` streams that each watch one route. For `SECONDS`
//! seconds, policies are edited `RATE` times per second. At the end every stream must have received
//! the last state. Then measures look-ups in a mirror of all paths.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a benchmark fails by panicking"
)]

#[path = "e2e/process.rs"]
#[allow(dead_code, reason = "the other benches use the rest")]
mod process;

use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use entail::api::v1;
use entail_client::stubs::effective_policy_service_client::EffectivePolicyServiceClient;
use entail_client::{Mirror, MirrorSettings};
use tonic::transport::{Channel, Endpoint};

/// Number of routes, each with its own policy.
const ROUTES: usize = 100;
/// Streams per connection.
const STREAMS_PER_CONNECTION: usize = 500;
const KIND: &str = "Marker.bench.example";

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The last state that a stream received.
#[derive(Default)]
struct ClientStream {
    marker: AtomicU64,
    messages: AtomicUsize,
}

fn number(name: &str, default: usize) -> usize {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

fn world(folder: &Path) {
    let mut text = String::from(
        "apiVersion: entail.dev/v1alpha1\nkind: PolicyProfile\nmetadata: {name: marker}\nspec:\n  policy: {group: \
         bench.example, kind: Marker}\n  effectiveTarget: RouteRule\n  strategies: [PatchDefaults]\n---\napiVersion: \
         gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: gw}\nspec: {gatewayClassName: any, listeners: \
         [{name: http, port: 80, protocol: HTTP}]}\n",
    );
    for route in 0..ROUTES {
        text.push_str(&format!(
            "---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {{name: r{route}}}\nspec: \
             {{parentRefs: [{{name: gw}}], rules: [{{name: a}}, {{name: b}}, {{name: c}}]}}\n"
        ));
        edit(folder, route, 1);
    }
    std::fs::write(folder.join("world.yaml"), text).unwrap();
}

/// Writes a policy; the file is replaced atomically.
fn edit(folder: &Path, route: usize, marker: u64) {
    let text = format!(
        "apiVersion: bench.example/v1\nkind: Marker\nmetadata: {{name: p{route}}}\nspec:\n  targetRefs: [{{group: \
         gateway.networking.k8s.io, kind: HTTPRoute, name: r{route}}}]\n  defaults: {{marker: {marker}, text: \
         {}}}\n",
        "x".repeat(500)
    );
    let temporary = folder.join(".temporary");
    std::fs::write(&temporary, text).unwrap();
    std::fs::rename(temporary, folder.join(format!("policy-{route}.yaml"))).unwrap();
}

fn path(route: usize) -> String {
    format!("gateways/default/gw/listeners/http/routes/HTTPRoute/default/r{route}")
}

fn marker(policies: &[v1::EffectivePolicy]) -> u64 {
    let spec: serde_json::Value = serde_json::from_str(policies[0].spec_json()).unwrap();
    spec["marker"].as_u64().unwrap()
}

async fn follow(channel: Channel, route: usize, state: Arc<ClientStream>) {
    let request = v1::WatchEffectivePoliciesRequest {
        prefixes: vec![path(route)],
        levels: vec!["RouteRule".to_owned()],
        kinds: vec![KIND.to_owned()],
        ..Default::default()
    };
    let mut client = EffectivePolicyServiceClient::new(channel);
    let stream = client.watch_effective_policies(request).await;
    let mut stream = stream.unwrap().into_inner();
    // At the end the server is killed while the streams are open.
    while let Ok(Some(message)) = stream.message().await {
        state.messages.fetch_add(1, Ordering::Relaxed);
        if let Some(body) = message.bodies.last() {
            state
                .marker
                .store(marker(&body.policies), Ordering::Relaxed);
        }
    }
}

/// Returns the resident megabytes and CPU seconds of a process.
fn cost(process: u32) -> (f64, f64) {
    (process::resident_mb(process), process::cpu_seconds(process))
}

async fn until(what: &str, mut done: impl FnMut() -> bool) -> Duration {
    let began = Instant::now();
    while !done() {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "{what}: not within a minute"
        );
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    began.elapsed()
}

/// Starts a server over a folder; returns it with its address.
async fn serve(folder: &Path, manifests: &Path) -> (Server, String) {
    let port = folder.join("port");
    let binary = std::env::var("ENTAIL").unwrap_or_else(|_| "target/release/entail".to_owned());
    let server = Server(
        Command::new(binary)
            .args([
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--log",
                "warn",
                "--manifests",
            ])
            .arg(manifests)
            .arg("--port-file")
            .arg(&port)
            .spawn()
            .unwrap(),
    );
    until("the server listens", || port.exists()).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let address = std::fs::read_to_string(&port).unwrap().trim().to_owned();
    (server, address)
}

#[tokio::main]
async fn main() {
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let manifests = folder.path().join("manifests");
    std::fs::create_dir(&manifests).unwrap();
    world(&manifests);
    let (server, address) = serve(folder.path(), &manifests).await;
    streams(&server, &address, &manifests).await;
    mirror(address).await;
}

/// Opens the streams and edits policies.
async fn streams(server: &Server, address: &str, manifests: &Path) {
    let (streams, seconds) = (number("STREAMS", 5_000), number("SECONDS", 60));
    let rate = number("RATE", 100);
    let (empty, _) = cost(server.0.id());

    let state: Vec<Arc<ClientStream>> = (0..streams).map(|_| Arc::default()).collect();
    let mut channel = None;
    for (at, state) in state.iter().enumerate() {
        if at % STREAMS_PER_CONNECTION == 0 {
            let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
            channel = Some(endpoint.connect().await.unwrap());
        }
        let channel = channel.clone().unwrap();
        tokio::spawn(follow(channel, at % ROUTES, Arc::clone(state)));
    }
    let all_hold = |marker: &dyn Fn(usize) -> u64| {
        let mut all = state.iter().enumerate();
        all.all(|(at, state)| state.marker.load(Ordering::Relaxed) == marker(at % ROUTES))
    };
    let began = until("all streams started", || all_hold(&|_| 1)).await;
    let (before, cpu_before) = cost(server.0.id());
    println!(
        "{streams} streams started in {began:.1?}: {empty:.0} MB before, {before:.0} MB after"
    );

    let mut last = vec![1_u64; ROUTES];
    let mut most = before;
    let start = Instant::now();
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / u32::try_from(rate).unwrap());
    for change in 0..rate * seconds {
        ticks.tick().await;
        last[change % ROUTES] = 2 + change as u64;
        edit(manifests, change % ROUTES, last[change % ROUTES]);
        if change % rate == 0 {
            most = most.max(cost(server.0.id()).0);
        }
    }
    let took = start.elapsed();
    let late = until("all streams have the last state", || {
        all_hold(&|route| last[route])
    })
    .await;
    let (after, cpu) = cost(server.0.id());
    let messages: usize = state
        .iter()
        .map(|state| state.messages.load(Ordering::Relaxed))
        .sum();
    println!(
        "{} changes in {took:.1?}: all {streams} streams have the last state {late:.0?} after the last one; \
         {messages} messages; {most:.0} MB at most, {after:.0} MB after; {:.1} s CPU",
        rate * seconds,
        cpu - cpu_before
    );
}

/// Measures look-ups in a mirror.
async fn mirror(address: String) {
    let settings = MirrorSettings {
        server: address,
        ..MirrorSettings::default()
    };
    let mirror = Mirror::follow(settings).unwrap();
    mirror.ready().await;
    let names: Vec<String> = (0..ROUTES)
        .map(|route| format!("{}/rules/a", path(route)))
        .collect();
    let look_ups = 3_000_000;
    let began = Instant::now();
    let mut policies = 0;
    for at in 0..look_ups {
        policies += mirror
            .with(&names[at % ROUTES], |answer| answer.policies.len())
            .unwrap();
    }
    let each = began.elapsed().as_nanos() / look_ups as u128;
    assert_eq!(policies, look_ups);
    println!("a look-up in a mirror of {} paths: {each} ns", mirror.len());
}

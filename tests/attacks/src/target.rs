//! What an attack may use: the server's listeners and its directory of manifests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use entail_client::v1;
use entail_client::v1::get_effective_policies_request::Target as ByName;
use tokio::time::{Instant, sleep, timeout};

use crate::neighbour::Neighbour;
use crate::server::{Addresses, Server};
use crate::wire::{self, Reply, Requests};
use crate::world;

/// How long a new answer of the ordinary policy may take while an attack goes on.
const ARRIVAL: Duration = Duration::from_secs(15);
/// How long a server is observed before it is attacked.
const QUIET: Duration = Duration::from_secs(4);

/// A server under attack.
pub struct Target {
    /// The server.
    pub server: Arc<Server>,
    /// The caller that must not notice.
    pub neighbour: Neighbour,
    markers: AtomicU64,
}

impl Target {
    /// Returns the server as a target, with a neighbour that calls it.
    pub fn new(server: Server) -> Self {
        Self {
            neighbour: Neighbour::start(&server),
            server: Arc::new(server),
            markers: AtomicU64::new(1),
        }
    }

    /// The listeners.
    pub fn addresses(&self) -> Addresses {
        self.server.addresses
    }

    /// Connects to all services.
    pub async fn connect(&self) -> Requests {
        wire::connect(self.addresses().data).await.unwrap()
    }

    /// Lets time pass without an attack, so that its latencies can be compared.
    pub fn be_quiet(&self) {
        std::thread::sleep(QUIET);
    }

    /// Edits the ordinary policy and returns its marker.
    pub fn edit(&self) -> u64 {
        let marker = self.markers.fetch_add(1, Ordering::Relaxed);
        self.server.write(world::ORDINARY, &world::ordinary(marker));
        marker
    }

    /// Edits the ordinary policy and waits until answers have its marker.
    ///
    /// # Errors
    /// The answer did not arrive in time.
    pub async fn edit_arrives(&self) -> Result<Duration, String> {
        self.edit_arrives_within(ARRIVAL).await
    }

    /// Like [`Target::edit_arrives`] with another limit.
    pub async fn edit_arrives_within(&self, limit: Duration) -> Result<Duration, String> {
        let begin = Instant::now();
        let marker = self.edit();
        let expected = format!("\"marker\":{marker}");
        let arrives = async {
            loop {
                if self.has_answer(&expected).await {
                    return;
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        match timeout(limit, arrives).await {
            Ok(()) => Ok(begin.elapsed()),
            Err(_) => Err(format!(
                "an edit of the ordinary policy did not arrive within {} s",
                limit.as_secs()
            )),
        }
    }

    async fn has_answer(&self, expected: &str) -> bool {
        let Ok(requests) = wire::connect(self.addresses().data).await else {
            return false;
        };
        let body = look_up(&world::path(0, 0));
        let limit = Duration::from_secs(5);
        let reply = wire::call(&requests, wire::GET, body, limit).await;
        let reply = reply.and_then(|reply| reply.decode::<v1::GetEffectivePoliciesResponse>());
        reply.is_ok_and(|reply| {
            let policies = reply.result.unwrap_or_default().policies;
            let mut specs = policies
                .iter()
                .filter_map(|policy| policy.spec_json.as_ref());
            specs.any(|spec| spec.contains(expected))
        })
    }

    /// Calls a method on a new connection.
    ///
    /// # Errors
    /// No reply in time, or a broken stream.
    pub async fn call(&self, method: &str, body: Bytes, limit: Duration) -> Result<Reply, String> {
        let requests = wire::connect(self.addresses().data).await?;
        wire::call(&requests, method, body, limit).await
    }

    /// Calls a method many times at once on one connection. Returns the outcomes and how often each
    /// occurred.
    pub async fn call_often(
        &self,
        method: &str,
        body: Bytes,
        times: usize,
        limit: Duration,
    ) -> String {
        let requests = self.connect().await;
        let mut calls = tokio::task::JoinSet::new();
        for _ in 0..times {
            let (requests, method, body) = (requests.clone(), method.to_owned(), body.clone());
            calls.spawn(async move {
                let reply = wire::call(&requests, &method, body, limit).await;
                reply.map_or_else(|error| error, |reply| reply.outcome())
            });
        }
        let mut outcomes = std::collections::BTreeMap::<String, usize>::new();
        while let Some(outcome) = calls.join_next().await {
            *outcomes.entry(outcome.unwrap()).or_default() += 1;
        }
        let outcomes = outcomes
            .iter()
            .map(|(text, count)| format!("{count} x {text}"));
        outcomes.collect::<Vec<_>>().join(", ")
    }
}

/// A look-up of a path.
pub fn look_up(path: &str) -> Bytes {
    wire::message(&by_path(path))
}

/// The message of a look-up.
pub fn by_path(path: &str) -> v1::GetEffectivePoliciesRequest {
    v1::GetEffectivePoliciesRequest {
        target: Some(ByName::Path(path.to_owned())),
        ..Default::default()
    }
}

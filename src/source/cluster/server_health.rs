//! Whether the API server is ready, and what the account of entail may do.
//!
//! A starting API server denies requests with 403 until the caches of its authorizer are filled. `/readyz` is green only
//! after that, and is allowed for every account.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::Request;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::core::ApiResource;
use kube::{Api, Client, Error};
use tokio::sync::{Mutex, Notify, watch};
use tokio::time::{Instant, sleep, timeout};

use super::backoff::random_up_to;

/// Timeout of one request to `/readyz`.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// Timeout of one SelfSubjectAccessReview.
const REVIEW_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the result of a probe is shared by all kinds.
const PROBE_TTL: Duration = Duration::from_millis(400);
/// Time between probes while the server is not ready: half of it, and up to as much again.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// An account that was allowed to read `/readyz` and is denied for this long is no longer allowed to.
const MAX_DENIED_PROBES: Duration = Duration::from_secs(120);
/// Kinds that wait for the server retry within this time after it has become ready.
const RECOVERY_JITTER: Duration = Duration::from_millis(500);

/// Readiness of the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Readiness {
    /// `/readyz` is green.
    Ready,
    /// The server does not answer, or says that it is not ready.
    NotReady,
    /// The server does not say whether it is ready: access to `/readyz` is denied.
    Unknown,
}

/// How a pause ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PauseEnd {
    /// The delay is over.
    Elapsed,
    /// The API server has become ready after it was not.
    Recovered,
}

/// Asks the API server for its readiness. Clones share the results.
#[derive(Clone)]
pub(super) struct ServerHealth {
    inner: Arc<Inner>,
}

struct Inner {
    client: Client,
    last: Mutex<Option<(Instant, Readiness)>>,
    /// Notified when a request failed in a way that a server which is down would explain.
    suspected: Notify,
    /// Whether `/readyz` was green before: if it is denied then, the server is starting.
    was_ready: AtomicBool,
    /// Whether the server was seen not ready since the last recovery.
    was_down: AtomicBool,
    /// How often the server has become ready again.
    recoveries: watch::Sender<u64>,
}

impl ServerHealth {
    pub fn new(client: Client) -> Self {
        Self {
            inner: Arc::new(Inner {
                client,
                last: Mutex::new(None),
                suspected: Notify::new(),
                was_ready: AtomicBool::new(false),
                was_down: AtomicBool::new(false),
                recoveries: watch::channel(0).0,
            }),
        }
    }

    /// Returns the readiness of the server, at most [`PROBE_TTL`] old. Concurrent calls share one request.
    pub async fn probe(&self) -> Readiness {
        let mut last = self.inner.last.lock().await;
        if let Some((at, readiness)) = *last
            && at.elapsed() < PROBE_TTL
        {
            return readiness;
        }
        let readiness = self.ask().await;
        if readiness == Readiness::Ready {
            self.inner.was_ready.store(true, Ordering::Relaxed);
        } else if self.is_down(readiness) {
            self.inner.was_down.store(true, Ordering::Relaxed);
        }
        *last = Some((Instant::now(), readiness));
        readiness
    }

    /// Reports whether kinds have to wait for a server with this readiness. One that starts denies `/readyz`, too.
    fn is_down(&self, readiness: Readiness) -> bool {
        match readiness {
            Readiness::Ready => false,
            Readiness::NotReady => true,
            Readiness::Unknown => self.inner.was_ready.load(Ordering::Relaxed),
        }
    }

    async fn ask(&self) -> Readiness {
        let Ok(request) = Request::get("/readyz").body(Vec::new()) else {
            return Readiness::Unknown;
        };
        match timeout(PROBE_TIMEOUT, self.inner.client.request_text(request)).await {
            Ok(Ok(_)) => Readiness::Ready,
            Ok(Err(Error::Api(status))) if matches!(status.code, 401 | 403 | 404) => {
                Readiness::Unknown
            }
            Ok(Err(_)) | Err(_) => Readiness::NotReady,
        }
    }

    /// Asks the server whether this account may use a verb on a resource in all namespaces; `None` if the review fails.
    pub async fn is_allowed(&self, resource: &ApiResource, verb: &str) -> Option<bool> {
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(ResourceAttributes {
                    verb: Some(verb.to_owned()),
                    group: Some(resource.group.clone()),
                    version: Some(resource.version.clone()),
                    resource: Some(resource.plural.clone()),
                    ..ResourceAttributes::default()
                }),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        };
        let api: Api<SelfSubjectAccessReview> = Api::all(self.inner.client.clone());
        let params = PostParams::default();
        let reviewed = timeout(REVIEW_TIMEOUT, api.create(&params, &review)).await;
        let status = reviewed.ok()?.ok()?.status?;
        // A denial with an evaluation error, such as a missing role, may be temporary.
        let is_final = status.evaluation_error.is_none_or(|error| error.is_empty());
        (status.allowed || is_final).then_some(status.allowed)
    }

    /// Reports a failure that a server which is down or starting would explain: the server is probed until it is ready.
    pub fn suspect(&self) {
        self.inner.suspected.notify_one();
    }

    /// Waits for `delay`, or until the server has become ready after it was not.
    pub async fn pause(&self, delay: Duration) -> PauseEnd {
        let mut recoveries = self.inner.recoveries.subscribe();
        match timeout(delay, recoveries.changed()).await {
            Ok(Ok(())) => {
                sleep(random_up_to(RECOVERY_JITTER)).await;
                PauseEnd::Recovered
            }
            Ok(Err(_)) => {
                sleep(delay).await;
                PauseEnd::Elapsed
            }
            Err(_) => PauseEnd::Elapsed,
        }
    }

    /// Returns a channel whose value changes when the server has become ready after it was not.
    pub fn recoveries(&self) -> watch::Receiver<u64> {
        self.inner.recoveries.subscribe()
    }

    /// Probes a suspected server until it is ready, and then wakes the kinds that wait for it: one request a second in
    /// place of those of all kinds. Runs until it is aborted.
    pub async fn run(self) {
        // So that it is known whether the account may read `/readyz`.
        self.probe().await;
        loop {
            self.inner.suspected.notified().await;
            self.wait_until_ready().await;
            if self.inner.was_down.swap(false, Ordering::Relaxed) {
                self.inner.recoveries.send_modify(|count| *count += 1);
            }
        }
    }

    async fn wait_until_ready(&self) {
        let mut denied_since = None;
        loop {
            sleep(PROBE_INTERVAL / 2 + random_up_to(PROBE_INTERVAL)).await;
            let readiness = self.probe().await;
            if !self.is_down(readiness) {
                return;
            }
            match readiness {
                Readiness::Unknown => {
                    let since = *denied_since.get_or_insert_with(Instant::now);
                    if since.elapsed() >= MAX_DENIED_PROBES {
                        self.inner.was_ready.store(false, Ordering::Relaxed);
                    }
                }
                Readiness::Ready | Readiness::NotReady => denied_since = None,
            }
        }
    }
}

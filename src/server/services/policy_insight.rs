//! `PolicyInsightService`: explanations, listings and previews for people and tools, on a bounded
//! pool of their own.

use std::sync::Arc;
use std::time::Duration;

use prost::Message;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};
use tonic::{Request, Response, Status};

use crate::api::server_stubs::policy_insight_service_server::PolicyInsightService;
use crate::api::v1;
use crate::insight::{
    Failure, Visibility, VisibleParts, check_assertions, explain, get_topology, list_affected,
    list_findings, list_paths, list_policies, preview_change, server_status,
};
use crate::server::access::peer::{AccessError, peer_of};
use crate::server::access::review::{CallerVisibility, TokenAuthenticator};
use crate::server::admission::blocking_pool::BlockingPool;
use crate::server::services::status::{status_of, within};
use crate::server::transport::request_counters::RpcService;
use crate::server::{Limits, ServiceContext};
use crate::snapshot::Snapshot;

/// Maximum time that a request waits for other results, and at most half of the time that a request may take.
const MAX_WAIT: Duration = Duration::from_secs(30);
/// Maximum number of requests that wait for other results.
const MAX_WAITING: usize = 16;
/// Minimum time between two checks of a request that waits.
const MIN_PAUSE: Duration = Duration::from_secs(1);

/// Implementation of `PolicyInsightService`.
#[derive(Clone, Debug)]
pub(in crate::server) struct PolicyInsightHandler {
    answers: ServiceContext,
    pool: Arc<BlockingPool>,
    reply_bytes: usize,
    /// Authenticates tokens for access reviews; without it, no token is required.
    reviews: Option<Arc<dyn TokenAuthenticator>>,
    parts: Arc<VisibleParts>,
    /// How long a request may wait for other results.
    max_wait: Duration,
    /// The requests that wait for other results. They keep their permits meanwhile, so they are few of all.
    waiting: Arc<Semaphore>,
}

/// What a query is answered from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// The whole snapshot, whose paths the query checks one by one.
    Whole,
    /// The part of it that the caller may see.
    Part,
}

impl PolicyInsightHandler {
    /// Creates the service with a pool of threads.
    pub fn new(
        answers: ServiceContext,
        reviews: Option<Arc<dyn TokenAuthenticator>>,
        limits: &Limits,
    ) -> Self {
        let pool = BlockingPool::new(
            limits.insight_concurrency,
            limits.insight_queue,
            limits.insight_timeout,
        );
        Self {
            answers,
            pool: Arc::new(pool),
            reply_bytes: limits.reply_bytes,
            reviews,
            parts: Arc::default(),
            max_wait: MAX_WAIT.min(limits.request_timeout / 2),
            waiting: Arc::new(Semaphore::new(MAX_WAITING)),
        }
    }

    /// Runs a query on the pool, over the snapshot that is current when the query starts,
    /// restricted to what the caller may see. The query stops when the caller is gone.
    async fn answer<R, M>(
        &self,
        request: Request<R>,
        source: Source,
        query: impl FnOnce(&Snapshot, &R, &dyn Visibility) -> Result<M, Failure> + Send + 'static,
    ) -> Result<Response<M>, Status>
    where
        R: Send + 'static,
        M: Message + 'static,
    {
        let peer = peer_of(&request)?;
        let visibility =
            CallerVisibility::of_request(self.reviews.as_ref(), peer, request.metadata()).await?;
        let request = request.into_inner();
        let answers = self.answers.clone();
        let max_bytes = self.reply_bytes;
        let parts = Arc::clone(&self.parts);
        let budget = visibility.shared_budget();
        let work = move || {
            let Some(snapshot) = answers.subscriptions.snapshots().load() else {
                return Err(answers.not_ready(&visibility));
            };
            let seen = match source {
                Source::Whole => Ok(snapshot),
                Source::Part => parts.of(&snapshot, &visibility),
            };
            let answer = seen.and_then(|seen| query(&seen, &request, &visibility));
            visibility.check()?;
            within(answer.map_err(status_of)?, max_bytes)
        };
        Ok(Response::new(self.pool.run_within(budget, work).await?))
    }
}

#[tonic::async_trait]
impl PolicyInsightService for PolicyInsightHandler {
    async fn explain(
        &self,
        request: Request<v1::ExplainRequest>,
    ) -> Result<Response<v1::ExplainResponse>, Status> {
        self.answer(request, Source::Whole, explain).await
    }

    async fn list_paths(
        &self,
        request: Request<v1::ListPathsRequest>,
    ) -> Result<Response<v1::ListPathsResponse>, Status> {
        self.answer(request, Source::Whole, list_paths).await
    }

    async fn list_policies(
        &self,
        request: Request<v1::ListPoliciesRequest>,
    ) -> Result<Response<v1::ListPoliciesResponse>, Status> {
        self.answer(request, Source::Part, list_policies).await
    }

    async fn list_affected(
        &self,
        request: Request<v1::ListAffectedRequest>,
    ) -> Result<Response<v1::ListAffectedResponse>, Status> {
        self.answer(request, Source::Part, list_affected).await
    }

    async fn preview_change(
        &self,
        request: Request<v1::PreviewChangeRequest>,
    ) -> Result<Response<v1::PreviewChangeResponse>, Status> {
        let change = self.answers.change;
        self.answer(
            request,
            Source::Part,
            move |snapshot, request, visibility| {
                preview_change(snapshot, request, change, visibility)
            },
        )
        .await
    }

    async fn list_findings(
        &self,
        request: Request<v1::ListFindingsRequest>,
    ) -> Result<Response<v1::ListFindingsResponse>, Status> {
        self.answer(request, Source::Part, list_findings).await
    }

    async fn check_assertions(
        &self,
        request: Request<v1::CheckAssertionsRequest>,
    ) -> Result<Response<v1::CheckAssertionsResponse>, Status> {
        let change = self.answers.change;
        let mut generation = self.answers.subscriptions.generation();
        let wait = request.get_ref().wait_seconds;
        if wait > 0 && !request.get_ref().manifests.is_empty() {
            return Err(Status::invalid_argument(
                "`wait_seconds` and `manifests` exclude each other: what would be after a change is computed once",
            ));
        }
        let wait = Duration::from_secs(u64::try_from(wait).unwrap_or(0)).min(self.max_wait);
        // One above the limit is answered without a wait.
        let waiting = self.waiting.try_acquire().ok().filter(|_| !wait.is_zero());
        let end = Instant::now() + waiting.as_ref().map_or(Duration::ZERO, |_| wait);
        let (metadata, extensions, message) = request.into_parts();
        loop {
            generation.mark_unchanged();
            // Each time with the rights that the caller has then.
            let again = Request::from_parts(metadata.clone(), extensions.clone(), message.clone());
            let peer = peer_of(&again)?;
            peer.authorize(RpcService::Insight)
                .map_err(AccessError::status)?;
            let query = move |snapshot: &Snapshot, request: &_, visibility: &dyn Visibility| {
                check_assertions(snapshot, request, change, visibility)
            };
            let reply = self.answer(again, Source::Part, query).await?;
            let left = end.saturating_duration_since(Instant::now());
            if !reply.get_ref().not_modified || left.is_zero() {
                return Ok(reply);
            }
            // A timeout is a last check.
            let _ = timeout(left, generation.changed()).await;
            // Meanwhile the server checks the assertions itself, once for all who wait.
            sleep(MIN_PAUSE.min(end.saturating_duration_since(Instant::now()))).await;
        }
    }

    async fn get_topology(
        &self,
        request: Request<v1::GetTopologyRequest>,
    ) -> Result<Response<v1::GetTopologyResponse>, Status> {
        self.answer(request, Source::Whole, get_topology).await
    }

    async fn get_server_status(
        &self,
        request: Request<v1::GetServerStatusRequest>,
    ) -> Result<Response<v1::GetServerStatusResponse>, Status> {
        let source_problems = self.answers.source_problems.clone();
        self.answer(request, Source::Whole, move |snapshot, _, visibility| {
            let source_problems = Arc::clone(&source_problems.borrow());
            Ok(server_status(snapshot, &source_problems, visibility))
        })
        .await
    }
}

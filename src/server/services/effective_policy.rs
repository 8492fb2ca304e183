//! Look-ups for data planes.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use crate::api::{
    EncodedBatchGetEffectivePoliciesResponse, EncodedGetEffectivePoliciesResponse, v1,
};
use crate::insight::{batch, get, resolve_request, try_resolve_request};
use crate::server::access::peer::peer_of;
use crate::server::admission::blocking_pool::BlockingPool;
use crate::server::admission::concurrency::ConcurrencyLimiter;
use crate::server::generated::effective_policy_service_server::EffectivePolicyService;
use crate::server::services::status::{status_of, within};
use crate::server::services::watch::{WatchHandler, WatchMessages};
use crate::server::{Limits, ServiceContext};

/// Batches up to this many paths are answered in place; others would hold up a worker.
const SMALL_BATCH: usize = 200;

/// The service that data planes ask.
#[derive(Clone, Debug)]
pub(in crate::server) struct EffectivePolicyHandler {
    answers: ServiceContext,
    batches: Arc<BlockingPool>,
    reply_bytes: usize,
    watches: WatchHandler,
}

impl EffectivePolicyHandler {
    /// Answers until `stop`, which ends the streams.
    pub fn new(
        answers: ServiceContext,
        concurrency: Arc<ConcurrencyLimiter>,
        limits: &Limits,
        stop: CancellationToken,
    ) -> Self {
        let batches = BlockingPool::new(
            limits.batch_concurrency,
            limits.batch_queue,
            limits.insight_timeout,
        );
        Self {
            watches: WatchHandler::new(answers.clone(), concurrency, limits, stop),
            answers,
            batches: Arc::new(batches),
            reply_bytes: limits.reply_bytes,
        }
    }
}

#[tonic::async_trait]
impl EffectivePolicyService for EffectivePolicyHandler {
    async fn get_effective_policies(
        &self,
        request: Request<v1::GetEffectivePoliciesRequest>,
    ) -> Result<Response<EncodedGetEffectivePoliciesResponse>, Status> {
        let scope = peer_of(&request)?.scope();
        let snapshots = &self.answers.snapshots;
        let found = snapshots.with(|snapshot| get(snapshot, request.get_ref(), &scope));
        match found {
            None => Err(self.answers.not_ready(&*scope)),
            Some(Err(failure)) => Err(status_of(failure)),
            Some(Ok(reply)) => Ok(Response::new(within(reply, self.reply_bytes)?)),
        }
    }

    async fn batch_get_effective_policies(
        &self,
        request: Request<v1::BatchGetEffectivePoliciesRequest>,
    ) -> Result<Response<EncodedBatchGetEffectivePoliciesResponse>, Status> {
        let scope = peer_of(&request)?.scope();
        let request = request.into_inner();
        let Some(snapshot) = self.answers.snapshots.load() else {
            return Err(self.answers.not_ready(&*scope));
        };
        let most = self.reply_bytes;
        let small = request.requests.len() <= SMALL_BATCH;
        let answer = move || {
            let reply = batch(&snapshot, &request, &scope);
            within(reply.map_err(status_of)?, most)
        };
        let reply = if small {
            answer()
        } else {
            self.batches.run(answer).await
        };
        Ok(Response::new(reply?))
    }

    async fn resolve_request(
        &self,
        request: Request<v1::ResolveRequestRequest>,
    ) -> Result<Response<v1::ResolveRequestResponse>, Status> {
        let scope = peer_of(&request)?.scope();
        let request = request.into_inner();
        let Some(snapshot) = self.answers.snapshots.load() else {
            return Err(self.answers.not_ready(&*scope));
        };
        let most = self.reply_bytes;
        if let Some(reply) = try_resolve_request(&snapshot, &request, &scope).map_err(status_of)? {
            return Ok(Response::new(within(reply, most)?));
        }
        // The first request at a listener makes its index, which would hold up a worker.
        let answer = move || {
            let reply = resolve_request(&snapshot, &request, &scope);
            within(reply.map_err(status_of)?, most)
        };
        Ok(Response::new(self.batches.run(answer).await?))
    }

    type WatchEffectivePoliciesStream = WatchMessages;

    async fn watch_effective_policies(
        &self,
        request: Request<v1::WatchEffectivePoliciesRequest>,
    ) -> Result<Response<WatchMessages>, Status> {
        let peer = peer_of(&request)?;
        let messages = self.watches.follow(request.get_ref(), peer).await?;
        Ok(Response::new(messages))
    }
}

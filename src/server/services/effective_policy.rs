//! `EffectivePolicyService`: look-ups, batches, streams and request resolution for data planes.

use std::sync::Arc;

use tokio_stream::Empty;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use crate::api::server_stubs::effective_policy_service_server::EffectivePolicyService;
use crate::api::{
    EncodedBatchGetEffectivePoliciesResponse, EncodedGetEffectivePoliciesResponse,
    EncodedWatchEffectivePoliciesResponse, v1,
};
use crate::insight::{batch, get, resolve_request, try_resolve_request};
use crate::server::access::peer::peer_of;
use crate::server::admission::blocking_pool::BlockingPool;
use crate::server::admission::concurrency::ConcurrencyLimiter;
use crate::server::services::status::{status_of, within};
use crate::server::services::watch::WatchHandler;
use crate::server::{Limits, ServiceContext};

/// Maximum number of paths of a batch that is answered on the async worker. Larger batches run on
/// the blocking pool because they would block the worker.
const SMALL_BATCH: usize = 200;

/// An item of the stream that tonic would encode.
type EncodedWatch = Result<EncodedWatchEffectivePoliciesResponse, Status>;

/// Implementation of `EffectivePolicyService`.
#[derive(Clone, Debug)]
pub(in crate::server) struct EffectivePolicyHandler {
    answers: ServiceContext,
    batches: Arc<BlockingPool>,
    reply_bytes: usize,
    watches: WatchHandler,
}

impl EffectivePolicyHandler {
    /// Creates the service. Cancelling `stop` ends its streams.
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
        let snapshots = self.answers.subscriptions.snapshots();
        let reply = snapshots.with(|snapshot| get(snapshot, request.get_ref(), &scope));
        match reply {
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
        let Some(snapshot) = self.answers.subscriptions.snapshots().load() else {
            return Err(self.answers.not_ready(&*scope));
        };
        let max_bytes = self.reply_bytes;
        let is_small = request.requests.len() <= SMALL_BATCH;
        let answer = move || {
            let reply = batch(&snapshot, &request, &scope);
            within(reply.map_err(status_of)?, max_bytes)
        };
        let reply = if is_small {
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
        let Some(snapshot) = self.answers.subscriptions.snapshots().load() else {
            return Err(self.answers.not_ready(&*scope));
        };
        let max_bytes = self.reply_bytes;
        if let Some(reply) = try_resolve_request(&snapshot, &request, &scope).map_err(status_of)? {
            return Ok(Response::new(within(reply, max_bytes)?));
        }
        // Would block the worker: the first request at a listener builds its route index, and a large request takes long.
        let answer = move || {
            let reply = resolve_request(&snapshot, &request, &scope);
            within(reply.map_err(status_of)?, max_bytes)
        };
        Ok(Response::new(self.batches.run(answer).await?))
    }

    /// Without messages: the body in the extensions of the response replaces it.
    type WatchEffectivePoliciesStream = Empty<EncodedWatch>;

    async fn watch_effective_policies(
        &self,
        request: Request<v1::WatchEffectivePoliciesRequest>,
    ) -> Result<Response<Self::WatchEffectivePoliciesStream>, Status> {
        let peer = peer_of(&request)?.clone();
        let body = self.watches.follow(request.into_inner(), &peer).await?;
        let mut response = Response::new(tokio_stream::empty());
        response.extensions_mut().insert(body);
        Ok(response)
    }
}

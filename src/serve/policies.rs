//! Look-ups for data planes.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use super::generated::effective_policy_service_server::EffectivePolicyService;
use super::load::Load;
use super::peer::peer_of;
use super::pool::Pool;
use super::status::{status_of, within};
use super::watches::{Messages, Watches};
use super::{Answers, Limits};
use crate::api::{
    EncodedBatchGetEffectivePoliciesResponse, EncodedGetEffectivePoliciesResponse, v1,
};
use crate::insight::{batch, get, resolve_in_haste, resolve_request};

/// Batches up to this many paths are answered in place; others would hold up a worker.
const SMALL_BATCH: usize = 200;

/// The service that data planes ask.
#[derive(Clone, Debug)]
pub(super) struct Policies {
    answers: Answers,
    batches: Arc<Pool>,
    reply_bytes: usize,
    watches: Watches,
}

impl Policies {
    /// Answers until `stop`, which ends the streams.
    pub fn new(
        answers: Answers,
        load: Arc<Load>,
        limits: &Limits,
        stop: CancellationToken,
    ) -> Self {
        let batches = Pool::new(
            limits.batches_at_once,
            limits.batches_waiting,
            limits.insight_timeout,
        );
        Self {
            watches: Watches::new(answers.clone(), load, limits, stop),
            answers,
            batches: Arc::new(batches),
            reply_bytes: limits.reply_bytes,
        }
    }
}

#[tonic::async_trait]
impl EffectivePolicyService for Policies {
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
        if let Some(reply) = resolve_in_haste(&snapshot, &request, &scope).map_err(status_of)? {
            return Ok(Response::new(within(reply, most)?));
        }
        // The first request at a listener makes its index, which would hold up a worker.
        let answer = move || {
            let reply = resolve_request(&snapshot, &request, &scope);
            within(reply.map_err(status_of)?, most)
        };
        Ok(Response::new(self.batches.run(answer).await?))
    }

    type WatchEffectivePoliciesStream = Messages;

    async fn watch_effective_policies(
        &self,
        request: Request<v1::WatchEffectivePoliciesRequest>,
    ) -> Result<Response<Messages>, Status> {
        let peer = peer_of(&request)?;
        let messages = self.watches.follow(request.get_ref(), peer).await?;
        Ok(Response::new(messages))
    }
}

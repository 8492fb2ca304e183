//! Questions of people and tools, on a bounded pool of their own.

use std::sync::Arc;

use prost::Message;
use tonic::{Request, Response, Status};

use super::generated::policy_insight_service_server::PolicyInsightService;
use super::pool::Pool;
use super::status::{status_of, within};
use super::{Answers, Limits};
use crate::insight::{
    Failure, explain, get_topology, list_affected, list_findings, list_paths, list_policies,
    preview_change, server_status,
};
use crate::snapshot::Snapshot;
use crate::wire::v1;

/// The service that people and tools ask.
#[derive(Clone, Debug)]
pub(super) struct Insights {
    answers: Answers,
    pool: Arc<Pool>,
    reply_bytes: usize,
}

impl Insights {
    pub fn new(answers: Answers, limits: &Limits) -> Self {
        let pool = Pool::new(
            limits.insight_at_once,
            limits.insight_waiting,
            limits.insight_timeout,
        );
        Self {
            answers,
            pool: Arc::new(pool),
            reply_bytes: limits.reply_bytes,
        }
    }

    /// Answers from the snapshot that is current when the work begins.
    async fn answer<M: Message + 'static>(
        &self,
        ask: impl FnOnce(&Snapshot) -> Result<M, Failure> + Send + 'static,
    ) -> Result<Response<M>, Status> {
        let answers = self.answers.clone();
        let most = self.reply_bytes;
        let work = move || {
            let Some(snapshot) = answers.snapshots.load() else {
                return Err(answers.not_ready());
            };
            within(ask(&snapshot).map_err(status_of)?, most)
        };
        Ok(Response::new(self.pool.run(work).await?))
    }
}

#[tonic::async_trait]
impl PolicyInsightService for Insights {
    async fn explain(
        &self,
        request: Request<v1::ExplainRequest>,
    ) -> Result<Response<v1::ExplainResponse>, Status> {
        let request = request.into_inner();
        self.answer(move |snapshot| explain(snapshot, &request))
            .await
    }

    async fn list_paths(
        &self,
        request: Request<v1::ListPathsRequest>,
    ) -> Result<Response<v1::ListPathsResponse>, Status> {
        let request = request.into_inner();
        self.answer(move |snapshot| list_paths(snapshot, &request))
            .await
    }

    async fn list_policies(
        &self,
        request: Request<v1::ListPoliciesRequest>,
    ) -> Result<Response<v1::ListPoliciesResponse>, Status> {
        let request = request.into_inner();
        self.answer(move |snapshot| list_policies(snapshot, &request))
            .await
    }

    async fn list_affected(
        &self,
        request: Request<v1::ListAffectedRequest>,
    ) -> Result<Response<v1::ListAffectedResponse>, Status> {
        let request = request.into_inner();
        self.answer(move |snapshot| list_affected(snapshot, &request))
            .await
    }

    async fn preview_change(
        &self,
        request: Request<v1::PreviewChangeRequest>,
    ) -> Result<Response<v1::PreviewChangeResponse>, Status> {
        let request = request.into_inner();
        let change = self.answers.change;
        self.answer(move |snapshot| preview_change(snapshot, &request, change))
            .await
    }

    async fn list_findings(
        &self,
        request: Request<v1::ListFindingsRequest>,
    ) -> Result<Response<v1::ListFindingsResponse>, Status> {
        let request = request.into_inner();
        self.answer(move |snapshot| Ok(list_findings(snapshot, &request)))
            .await
    }

    async fn get_topology(
        &self,
        _request: Request<v1::GetTopologyRequest>,
    ) -> Result<Response<v1::GetTopologyResponse>, Status> {
        self.answer(|snapshot| Ok(get_topology(snapshot))).await
    }

    async fn get_server_status(
        &self,
        _request: Request<v1::GetServerStatusRequest>,
    ) -> Result<Response<v1::GetServerStatusResponse>, Status> {
        let notes = self.answers.notes.clone();
        self.answer(move |snapshot| {
            let notes = Arc::clone(&notes.borrow());
            Ok(server_status(snapshot, &notes))
        })
        .await
    }
}

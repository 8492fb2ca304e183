//! One interface for commands, whoever answers: a snapshot in this process or a server.

use std::sync::Arc;

use prost::Message;

use super::{
    AccessScope, Failure, PreviewFn, SourceProblems, explain, get, get_topology, list_affected,
    list_findings, list_paths, list_policies, preview_change, resolve_request, server_status,
};
use crate::api::v1;
use crate::snapshot::Snapshot;

/// Answers questions.
pub trait QueryBackend {
    /// The effective policies of a path.
    ///
    /// # Errors
    /// Why there is no answer.
    fn get(
        &mut self,
        request: v1::GetEffectivePoliciesRequest,
    ) -> Result<v1::GetEffectivePoliciesResponse, QueryError>;

    /// The rule that a request takes.
    ///
    /// # Errors
    /// Why there is no answer.
    fn resolve(
        &mut self,
        request: v1::ResolveRequestRequest,
    ) -> Result<v1::ResolveRequestResponse, QueryError>;

    /// For each unit who said it, what it beat and why.
    ///
    /// # Errors
    /// Why there is no answer.
    fn explain(&mut self, request: v1::ExplainRequest) -> Result<v1::ExplainResponse, QueryError>;

    /// A page of policies with their statuses.
    ///
    /// # Errors
    /// Why there is no answer.
    fn list_policies(
        &mut self,
        request: v1::ListPoliciesRequest,
    ) -> Result<v1::ListPoliciesResponse, QueryError>;

    /// The policies that affect an object.
    ///
    /// # Errors
    /// Why there is no answer.
    fn list_affected(
        &mut self,
        request: v1::ListAffectedRequest,
    ) -> Result<v1::ListAffectedResponse, QueryError>;

    /// A page of paths.
    ///
    /// # Errors
    /// Why there is no answer.
    fn list_paths(
        &mut self,
        request: v1::ListPathsRequest,
    ) -> Result<v1::ListPathsResponse, QueryError>;

    /// What a change would do.
    ///
    /// # Errors
    /// Why there is no answer.
    fn preview_change(
        &mut self,
        request: v1::PreviewChangeRequest,
    ) -> Result<v1::PreviewChangeResponse, QueryError>;

    /// What is worth a look.
    ///
    /// # Errors
    /// Why there is no answer.
    fn list_findings(
        &mut self,
        request: v1::ListFindingsRequest,
    ) -> Result<v1::ListFindingsResponse, QueryError>;

    /// The topology with the policies attached to it.
    ///
    /// # Errors
    /// Why there is no answer.
    fn get_topology(&mut self) -> Result<v1::GetTopologyResponse, QueryError>;

    /// What is known and what is wrong.
    ///
    /// # Errors
    /// Why there is no answer.
    fn server_status(&mut self) -> Result<v1::GetServerStatusResponse, QueryError>;
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryError {
    /// The question has none.
    Failure(Failure),
    /// Nobody answers: why, and what to do.
    Unreachable(String),
}

/// Answers from a snapshot in this process.
#[derive(Debug)]
pub struct LocalBackend {
    /// The snapshot.
    pub snapshot: Arc<Snapshot>,
    /// What is wrong in its sources.
    pub source_problems: SourceProblems,
    /// How it would be after a change.
    pub change: PreviewFn,
}

impl QueryBackend for LocalBackend {
    fn get(
        &mut self,
        request: v1::GetEffectivePoliciesRequest,
    ) -> Result<v1::GetEffectivePoliciesResponse, QueryError> {
        let encoded = get(&self.snapshot, &request, &AccessScope::default())?;
        // The bytes that a server would send, read back: one code for both.
        v1::GetEffectivePoliciesResponse::decode(encoded.encode_to_vec().as_slice())
            .map_err(|e| QueryError::Unreachable(format!("the reply does not decode: {e}")))
    }

    fn resolve(
        &mut self,
        request: v1::ResolveRequestRequest,
    ) -> Result<v1::ResolveRequestResponse, QueryError> {
        Ok(resolve_request(
            &self.snapshot,
            &request,
            &AccessScope::default(),
        )?)
    }

    fn explain(&mut self, request: v1::ExplainRequest) -> Result<v1::ExplainResponse, QueryError> {
        Ok(explain(&self.snapshot, &request, &AccessScope::default())?)
    }

    fn list_policies(
        &mut self,
        request: v1::ListPoliciesRequest,
    ) -> Result<v1::ListPoliciesResponse, QueryError> {
        Ok(list_policies(
            &self.snapshot,
            &request,
            &AccessScope::default(),
        )?)
    }

    fn list_affected(
        &mut self,
        request: v1::ListAffectedRequest,
    ) -> Result<v1::ListAffectedResponse, QueryError> {
        Ok(list_affected(
            &self.snapshot,
            &request,
            &AccessScope::default(),
        )?)
    }

    fn list_paths(
        &mut self,
        request: v1::ListPathsRequest,
    ) -> Result<v1::ListPathsResponse, QueryError> {
        Ok(list_paths(
            &self.snapshot,
            &request,
            &AccessScope::default(),
        )?)
    }

    fn preview_change(
        &mut self,
        request: v1::PreviewChangeRequest,
    ) -> Result<v1::PreviewChangeResponse, QueryError> {
        Ok(preview_change(
            &self.snapshot,
            &request,
            self.change,
            &AccessScope::default(),
        )?)
    }

    fn list_findings(
        &mut self,
        request: v1::ListFindingsRequest,
    ) -> Result<v1::ListFindingsResponse, QueryError> {
        Ok(list_findings(
            &self.snapshot,
            &request,
            &AccessScope::default(),
        ))
    }

    fn get_topology(&mut self) -> Result<v1::GetTopologyResponse, QueryError> {
        Ok(get_topology(&self.snapshot, &AccessScope::default()))
    }

    fn server_status(&mut self) -> Result<v1::GetServerStatusResponse, QueryError> {
        Ok(server_status(
            &self.snapshot,
            &self.source_problems,
            &AccessScope::default(),
        ))
    }
}

impl From<Failure> for QueryError {
    fn from(failure: Failure) -> Self {
        QueryError::Failure(failure)
    }
}

impl std::fmt::Display for QueryError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            QueryError::Failure(failure) => failure.fmt(f),
            QueryError::Unreachable(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for QueryError {}

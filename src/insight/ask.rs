//! One interface for commands, whoever answers: a snapshot in this process or a server.

use std::sync::Arc;

use prost::Message;

use super::{
    ChangeWorld, Failure, Notes, Scope, explain, get, get_topology, list_affected, list_findings,
    list_paths, list_policies, preview_change, resolve_request, server_status,
};
use crate::api::v1;
use crate::snapshot::Snapshot;

/// Answers questions.
pub trait Ask {
    /// The effective policies of a path.
    ///
    /// # Errors
    /// Why there is no answer.
    fn get(
        &mut self,
        request: v1::GetEffectivePoliciesRequest,
    ) -> Result<v1::GetEffectivePoliciesResponse, AskError>;

    /// The rule that a request takes.
    ///
    /// # Errors
    /// Why there is no answer.
    fn resolve(
        &mut self,
        request: v1::ResolveRequestRequest,
    ) -> Result<v1::ResolveRequestResponse, AskError>;

    /// For each unit who said it, what it beat and why.
    ///
    /// # Errors
    /// Why there is no answer.
    fn explain(&mut self, request: v1::ExplainRequest) -> Result<v1::ExplainResponse, AskError>;

    /// A page of policies with their statuses.
    ///
    /// # Errors
    /// Why there is no answer.
    fn list_policies(
        &mut self,
        request: v1::ListPoliciesRequest,
    ) -> Result<v1::ListPoliciesResponse, AskError>;

    /// The policies that affect an object.
    ///
    /// # Errors
    /// Why there is no answer.
    fn list_affected(
        &mut self,
        request: v1::ListAffectedRequest,
    ) -> Result<v1::ListAffectedResponse, AskError>;

    /// A page of paths.
    ///
    /// # Errors
    /// Why there is no answer.
    fn list_paths(
        &mut self,
        request: v1::ListPathsRequest,
    ) -> Result<v1::ListPathsResponse, AskError>;

    /// What a change would do.
    ///
    /// # Errors
    /// Why there is no answer.
    fn preview_change(
        &mut self,
        request: v1::PreviewChangeRequest,
    ) -> Result<v1::PreviewChangeResponse, AskError>;

    /// What is worth a look.
    ///
    /// # Errors
    /// Why there is no answer.
    fn list_findings(
        &mut self,
        request: v1::ListFindingsRequest,
    ) -> Result<v1::ListFindingsResponse, AskError>;

    /// The topology with the policies attached to it.
    ///
    /// # Errors
    /// Why there is no answer.
    fn get_topology(&mut self) -> Result<v1::GetTopologyResponse, AskError>;

    /// What is known and what is wrong.
    ///
    /// # Errors
    /// Why there is no answer.
    fn server_status(&mut self) -> Result<v1::GetServerStatusResponse, AskError>;
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskError {
    /// The question has none.
    Failure(Failure),
    /// Nobody answers: why, and what to do.
    Unreachable(String),
}

/// Answers from a snapshot in this process.
#[derive(Debug)]
pub struct Local {
    /// The snapshot.
    pub snapshot: Arc<Snapshot>,
    /// What is wrong in its sources.
    pub notes: Notes,
    /// How it would be after a change.
    pub change: ChangeWorld,
}

impl Ask for Local {
    fn get(
        &mut self,
        request: v1::GetEffectivePoliciesRequest,
    ) -> Result<v1::GetEffectivePoliciesResponse, AskError> {
        let encoded = get(&self.snapshot, &request, &Scope::default())?;
        // The bytes that a server would send, read back: one code for both.
        v1::GetEffectivePoliciesResponse::decode(encoded.encode_to_vec().as_slice())
            .map_err(|e| AskError::Unreachable(format!("the reply does not decode: {e}")))
    }

    fn resolve(
        &mut self,
        request: v1::ResolveRequestRequest,
    ) -> Result<v1::ResolveRequestResponse, AskError> {
        Ok(resolve_request(
            &self.snapshot,
            &request,
            &Scope::default(),
        )?)
    }

    fn explain(&mut self, request: v1::ExplainRequest) -> Result<v1::ExplainResponse, AskError> {
        Ok(explain(&self.snapshot, &request, &Scope::default())?)
    }

    fn list_policies(
        &mut self,
        request: v1::ListPoliciesRequest,
    ) -> Result<v1::ListPoliciesResponse, AskError> {
        Ok(list_policies(&self.snapshot, &request, &Scope::default())?)
    }

    fn list_affected(
        &mut self,
        request: v1::ListAffectedRequest,
    ) -> Result<v1::ListAffectedResponse, AskError> {
        Ok(list_affected(&self.snapshot, &request, &Scope::default())?)
    }

    fn list_paths(
        &mut self,
        request: v1::ListPathsRequest,
    ) -> Result<v1::ListPathsResponse, AskError> {
        Ok(list_paths(&self.snapshot, &request, &Scope::default())?)
    }

    fn preview_change(
        &mut self,
        request: v1::PreviewChangeRequest,
    ) -> Result<v1::PreviewChangeResponse, AskError> {
        Ok(preview_change(
            &self.snapshot,
            &request,
            self.change,
            &Scope::default(),
        )?)
    }

    fn list_findings(
        &mut self,
        request: v1::ListFindingsRequest,
    ) -> Result<v1::ListFindingsResponse, AskError> {
        Ok(list_findings(&self.snapshot, &request, &Scope::default()))
    }

    fn get_topology(&mut self) -> Result<v1::GetTopologyResponse, AskError> {
        Ok(get_topology(&self.snapshot, &Scope::default()))
    }

    fn server_status(&mut self) -> Result<v1::GetServerStatusResponse, AskError> {
        Ok(server_status(
            &self.snapshot,
            &self.notes,
            &Scope::default(),
        ))
    }
}

impl From<Failure> for AskError {
    fn from(failure: Failure) -> Self {
        AskError::Failure(failure)
    }
}

impl std::fmt::Display for AskError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            AskError::Failure(failure) => failure.fmt(f),
            AskError::Unreachable(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for AskError {}

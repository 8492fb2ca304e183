//! The queries of the commands, answered by a snapshot in this process or by a server.

use std::sync::Arc;

use prost::Message;

use super::{
    AccessScope, Failure, PreviewFn, SourceProblems, explain, get, get_topology, list_affected,
    list_findings, list_paths, list_policies, preview_change, resolve_request, server_status,
};
use crate::api::v1;
use crate::snapshot::Snapshot;

/// Number of entries that commands ask for at once: the most that a page has.
pub const PAGE_SIZE: i32 = 10_000;

/// Answers the queries of commands.
pub trait QueryBackend {
    /// Returns the effective policies of a path.
    ///
    /// # Errors
    /// The query failed, or the server is not reachable.
    fn get(
        &mut self,
        request: v1::GetEffectivePoliciesRequest,
    ) -> Result<v1::GetEffectivePoliciesResponse, QueryError>;

    /// Returns the rule that matches a request.
    ///
    /// # Errors
    /// The query failed, or the server is not reachable.
    fn resolve(
        &mut self,
        request: v1::ResolveRequestRequest,
    ) -> Result<v1::ResolveRequestResponse, QueryError>;

    /// Explains each unit: the policy that set it, the policies that it overrides, and the reason.
    ///
    /// # Errors
    /// The query failed, or the server is not reachable.
    fn explain(&mut self, request: v1::ExplainRequest) -> Result<v1::ExplainResponse, QueryError>;

    /// Returns a page of policies with their statuses.
    ///
    /// # Errors
    /// The query failed, or the server is not reachable.
    fn list_policies(
        &mut self,
        request: v1::ListPoliciesRequest,
    ) -> Result<v1::ListPoliciesResponse, QueryError>;

    /// Returns the policies that affect an object, or what a policy affects.
    ///
    /// # Errors
    /// The query failed, or the server is not reachable.
    fn list_affected(
        &mut self,
        request: v1::ListAffectedRequest,
    ) -> Result<v1::ListAffectedResponse, QueryError>;

    /// Returns a page of paths.
    ///
    /// # Errors
    /// The query failed, or the server is not reachable.
    fn list_paths(
        &mut self,
        request: v1::ListPathsRequest,
    ) -> Result<v1::ListPathsResponse, QueryError>;

    /// Returns the effect of a change.
    ///
    /// # Errors
    /// The query failed, or the server is not reachable.
    fn preview_change(
        &mut self,
        request: v1::PreviewChangeRequest,
    ) -> Result<v1::PreviewChangeResponse, QueryError>;

    /// Returns the findings.
    ///
    /// # Errors
    /// The query failed, or the server is not reachable.
    fn list_findings(
        &mut self,
        request: v1::ListFindingsRequest,
    ) -> Result<v1::ListFindingsResponse, QueryError>;

    /// Returns all pages of findings as one.
    ///
    /// # Errors
    /// The query failed, or the server is not reachable, or the snapshot changed between two pages.
    fn all_findings(&mut self, kinds: Vec<String>) -> Result<v1::ListFindingsResponse, QueryError> {
        let mut request = v1::ListFindingsRequest {
            kinds,
            page_size: PAGE_SIZE,
            page_token: String::new(),
        };
        let mut all = self.list_findings(request.clone())?;
        while !all.next_page_token.is_empty() {
            request.page_token = std::mem::take(&mut all.next_page_token);
            let page = self.list_findings(request.clone())?;
            all.findings.extend(page.findings);
            all.next_page_token = page.next_page_token;
            all.truncated |= page.truncated;
        }
        Ok(all)
    }

    /// Returns all pages of the policies that affect an object, or of what a policy affects, as one.
    ///
    /// # Errors
    /// The query failed, or the server is not reachable, or the snapshot changed between two pages.
    fn all_affected(
        &mut self,
        mut request: v1::ListAffectedRequest,
    ) -> Result<v1::ListAffectedResponse, QueryError> {
        request.page_size = PAGE_SIZE;
        let mut all = self.list_affected(request.clone())?;
        while !all.next_page_token.is_empty() {
            request.page_token = std::mem::take(&mut all.next_page_token);
            let page = self.list_affected(request.clone())?;
            all.policies.extend(page.policies);
            all.paths.extend(page.paths);
            all.objects.extend(page.objects);
            all.next_page_token = page.next_page_token;
            all.truncated |= page.truncated;
        }
        Ok(all)
    }

    /// Returns the topology with the policies attached to it.
    ///
    /// # Errors
    /// The query failed, or the server is not reachable.
    fn get_topology(&mut self) -> Result<v1::GetTopologyResponse, QueryError>;

    /// Returns the status of the server.
    ///
    /// # Errors
    /// The query failed, or the server is not reachable.
    fn server_status(&mut self) -> Result<v1::GetServerStatusResponse, QueryError>;
}

/// The error of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryError {
    /// The query failed.
    Failure(Failure),
    /// The server did not answer; the text is the reason and what to do.
    Unreachable(String),
}

/// Answers from a snapshot in this process.
#[derive(Debug)]
pub struct LocalBackend {
    /// The snapshot.
    pub snapshot: Arc<Snapshot>,
    /// The problems of its sources.
    pub source_problems: SourceProblems,
    /// Computes the world after a change.
    pub change: PreviewFn,
}

impl QueryBackend for LocalBackend {
    fn get(
        &mut self,
        request: v1::GetEffectivePoliciesRequest,
    ) -> Result<v1::GetEffectivePoliciesResponse, QueryError> {
        let encoded = get(&self.snapshot, &request, &AccessScope::default())?;
        // Decodes the bytes that a server would send, so that both backends run the same code.
        v1::GetEffectivePoliciesResponse::decode(encoded.encode_to_vec().as_slice())
            .map_err(|e| QueryError::Unreachable(format!("failed to decode the reply: {e}")))
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
        )?)
    }

    fn get_topology(&mut self) -> Result<v1::GetTopologyResponse, QueryError> {
        Ok(get_topology(&self.snapshot, &AccessScope::default())?)
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

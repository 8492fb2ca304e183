//! The queries of the commands, answered by a snapshot in this process or by a server.

use std::sync::Arc;

use prost::Message;

use super::{
    AccessScope, Failure, PreviewFn, SourceProblems, check_assertions, explain, get, get_topology,
    list_affected, list_findings, list_paths, list_policies, preview_change, resolve_request,
    server_status,
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

    /// Returns all pages of policies as one.
    ///
    /// # Errors
    /// The query failed, or the server is not reachable, or the snapshot changed between two pages.
    fn all_policies(&mut self, kinds: Vec<String>) -> Result<v1::ListPoliciesResponse, QueryError> {
        let ask = |page_token| {
            self.list_policies(v1::ListPoliciesRequest {
                kinds: kinds.clone(),
                page_size: PAGE_SIZE,
                page_token,
            })
        };
        all_pages(ask)
    }

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

    /// Returns all pages of findings as one, each finding with up to `max_places` places.
    ///
    /// # Errors
    /// The query failed, or the server is not reachable, or the snapshot changed between two pages.
    fn all_findings(
        &mut self,
        kinds: Vec<String>,
        max_places: i32,
    ) -> Result<v1::ListFindingsResponse, QueryError> {
        let ask = |page_token| {
            self.list_findings(v1::ListFindingsRequest {
                kinds: kinds.clone(),
                page_size: PAGE_SIZE,
                page_token,
                max_places,
            })
        };
        all_pages(ask)
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
        let ask = |page_token| {
            request.page_token = page_token;
            self.list_affected(request.clone())
        };
        all_pages(ask)
    }

    /// Returns all pages of an explanation as one.
    ///
    /// # Errors
    /// The query failed, or the server is not reachable, or the snapshot changed between two pages.
    fn all_explained(
        &mut self,
        mut request: v1::ExplainRequest,
    ) -> Result<v1::ExplainResponse, QueryError> {
        request.page_size = PAGE_SIZE;
        let ask = |page_token| {
            request.page_token = page_token;
            self.explain(request.clone())
        };
        all_pages(ask)
    }

    /// Checks assertions.
    ///
    /// # Errors
    /// The query failed, or the server is not reachable.
    fn check_assertions(
        &mut self,
        request: v1::CheckAssertionsRequest,
    ) -> Result<v1::CheckAssertionsResponse, QueryError>;

    /// Returns all pages of the results of assertions as one.
    ///
    /// # Errors
    /// The query failed, or the server is not reachable, or the snapshot changed between two pages.
    fn all_assertions(
        &mut self,
        mut request: v1::CheckAssertionsRequest,
    ) -> Result<v1::CheckAssertionsResponse, QueryError> {
        request.page_size = PAGE_SIZE;
        let ask = |page_token| {
            request.page_token = page_token;
            self.check_assertions(request.clone())
        };
        all_pages(ask)
    }

    /// Returns a page of the topology with the policies attached to it.
    ///
    /// # Errors
    /// The query failed, or the server is not reachable.
    fn get_topology(
        &mut self,
        request: v1::GetTopologyRequest,
    ) -> Result<v1::GetTopologyResponse, QueryError>;

    /// Returns all pages of the topology as one.
    ///
    /// # Errors
    /// The query failed, or the server is not reachable, or the snapshot changed between two pages.
    fn whole_topology(&mut self) -> Result<v1::GetTopologyResponse, QueryError> {
        let ask = |page_token| {
            self.get_topology(v1::GetTopologyRequest {
                page_size: PAGE_SIZE,
                page_token,
            })
        };
        all_pages(ask)
    }

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

    fn check_assertions(
        &mut self,
        request: v1::CheckAssertionsRequest,
    ) -> Result<v1::CheckAssertionsResponse, QueryError> {
        Ok(check_assertions(
            &self.snapshot,
            &request,
            self.change,
            &AccessScope::default(),
        )?)
    }

    fn get_topology(
        &mut self,
        request: v1::GetTopologyRequest,
    ) -> Result<v1::GetTopologyResponse, QueryError> {
        Ok(get_topology(
            &self.snapshot,
            &request,
            &AccessScope::default(),
        )?)
    }

    fn server_status(&mut self) -> Result<v1::GetServerStatusResponse, QueryError> {
        Ok(server_status(
            &self.snapshot,
            &self.source_problems,
            &AccessScope::default(),
        ))
    }
}

/// A reply that is one page of several.
trait Paged {
    /// The token of the next page; empty on the last one.
    fn next(&mut self) -> &mut String;

    /// Adds the entries of the page after this one.
    fn add(&mut self, page: Self);
}

/// Implements [`Paged`] by the fields with entries.
macro_rules! paged {
    ($reply:ident, $($field:ident),+) => {
        impl Paged for v1::$reply {
            fn next(&mut self) -> &mut String {
                &mut self.next_page_token
            }

            fn add(&mut self, page: Self) {
                $(self.$field.extend(page.$field);)+
                self.truncated |= page.truncated;
            }
        }
    };
}

paged!(ListFindingsResponse, findings);
paged!(ListPoliciesResponse, policies, unread_parameters);
paged!(ListAffectedResponse, policies, paths, objects);
paged!(GetTopologyResponse, nodes, edges);
paged!(CheckAssertionsResponse, results);

impl Paged for v1::ExplainResponse {
    fn next(&mut self) -> &mut String {
        &mut self.next_page_token
    }

    fn add(&mut self, page: Self) {
        self.paths.extend(page.paths);
        // Each page has those of its own paths.
        for unread in page.unread_parameters {
            if !self.unread_parameters.contains(&unread) {
                self.unread_parameters.push(unread);
            }
        }
        self.truncated |= page.truncated;
    }
}

/// Asks for all pages by their tokens, and joins them.
fn all_pages<P: Paged>(
    mut ask: impl FnMut(String) -> Result<P, QueryError>,
) -> Result<P, QueryError> {
    let mut all = ask(String::new())?;
    loop {
        let next = std::mem::take(all.next());
        if next.is_empty() {
            return Ok(all);
        }
        let mut page = ask(next)?;
        *all.next() = std::mem::take(page.next());
        all.add(page);
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

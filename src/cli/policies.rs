//! Policies with their statuses, one by name or all page by page.

use super::CliError;
use super::render::spec::policy_name;
use super::session::Session;
use crate::api::v1;
use crate::insight::{FailureCode, QueryError};
use v1::list_affected_request::Subject;

/// Policies asked for at a time.
const PAGE: i32 = 10_000;

/// Most policies that are offered in place of one that is not there.
const MOST_OFFERED: usize = 5;

/// A policy that was asked for by name.
pub(super) struct NamedPolicy {
    /// Its status.
    pub(super) status: v1::PolicyStatus,
    /// All that was told of it.
    pub(super) reply: v1::ListAffectedResponse,
}

/// All policies of the kinds that are wanted.
pub(super) struct PolicyList {
    /// In the order of the reply.
    pub(super) policies: Vec<v1::PolicyStatus>,
    /// What is known of which kind.
    pub(super) kinds: Vec<v1::KindState>,
}

/// Asks for a policy by its name, and where it, or one unit of it, reaches.
pub(super) fn get_policy(
    session: &mut Session,
    name: &str,
    unit: &str,
) -> Result<NamedPolicy, CliError> {
    let asked = session.ask.list_affected(v1::ListAffectedRequest {
        subject: Some(Subject::Policy(name.to_owned())),
        unit: unit.to_owned(),
    });
    let reply = match asked {
        Ok(reply) => reply,
        Err(QueryError::Failure(failure)) if failure.code == FailureCode::NotFound => {
            let near = suggestions_in_namespace(session, name);
            return Err(session.not_found(format!("{}{near}", failure.message)));
        }
        Err(error) => return Err(error.into()),
    };
    let Some(status) = reply.status.clone() else {
        return Err(CliError::Unreadable(format!(
            "the server tells no status of `{name}`: it is older than this program"
        )));
    };
    if !session.kinds.is_empty() && !session.kinds.contains(&status.kind) {
        return Err(session.not_found(format!(
            "`{name}` is a {}, which `--kind` leaves out",
            status.kind
        )));
    }
    Ok(NamedPolicy { status, reply })
}

/// Asks for all policies, page by page.
pub(super) fn list_policies(session: &mut Session) -> Result<PolicyList, CliError> {
    let mut request = v1::ListPoliciesRequest {
        kinds: session.kinds.clone(),
        page_size: PAGE,
        page_token: String::new(),
    };
    let mut all = PolicyList {
        policies: Vec::new(),
        kinds: Vec::new(),
    };
    loop {
        let page = session.ask.list_policies(request.clone());
        let page = page.map_err(|error| session.failure(error))?;
        session.check_version(page.version.as_ref())?;
        all.policies.extend(page.policies);
        all.kinds = page.kinds;
        if page.next_page_token.is_empty() {
            return Ok(all);
        }
        request.page_token = page.next_page_token;
    }
}

/// `kind/namespace/name` of a policy, as it is asked for.
pub(super) fn query_name(status: &v1::PolicyStatus) -> String {
    let kind = short_kind(&status.kind).to_lowercase();
    let name = status.policy.as_ref().map(policy_name).unwrap_or_default();
    format!("{kind}/{name}")
}

/// A kind without its group.
pub(super) fn short_kind(kind: &str) -> &str {
    kind.split_once('.').map_or(kind, |(short, _)| short)
}

/// The policies in the namespace of a name, for one who has mistyped it. Those of other namespaces
/// are nobody's business.
fn suggestions_in_namespace(session: &mut Session, name: &str) -> String {
    let parts: Vec<&str> = name.split('/').collect();
    let [kind, namespace, _] = parts.as_slice() else {
        return String::new();
    };
    // Without this help the failure itself is still told.
    let Ok(all) = list_policies(session) else {
        return String::new();
    };
    let here = |status: &&v1::PolicyStatus| {
        let policy = status.policy.as_ref();
        policy.is_some_and(|policy| policy.namespace == *namespace)
    };
    let mut found: Vec<(bool, String)> = all
        .policies
        .iter()
        .filter(here)
        .map(|status| {
            let other = !short_kind(&status.kind).eq_ignore_ascii_case(short_kind(kind));
            (other, query_name(status))
        })
        .collect();
    // Those of the same kind first.
    found.sort();
    let named: Vec<String> = found
        .iter()
        .take(MOST_OFFERED)
        .map(|(_, name)| format!("`{name}`"))
        .collect();
    match found.len().saturating_sub(MOST_OFFERED) {
        _ if named.is_empty() => String::new(),
        0 => format!("; in `{namespace}` there is {}", named.join(", ")),
        more => format!(
            "; in `{namespace}` there is {} and {more} more",
            named.join(", ")
        ),
    }
}

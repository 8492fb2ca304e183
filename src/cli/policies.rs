//! Queries for policy statuses: one by name, or all page by page.

use super::CliError;
use super::render::spec::policy_name;
use super::session::{Session, is_selected};
use crate::api::v1;
use crate::insight::{FailureCode, QueryError};
use v1::list_affected_request::Subject;

/// Maximum number of suggestions for a name that is not found.
const MAX_SUGGESTIONS: usize = 5;

/// A policy that was queried by name.
pub(super) struct NamedPolicy {
    /// Its status.
    pub(super) status: v1::PolicyStatus,
    /// The complete reply.
    pub(super) reply: v1::ListAffectedResponse,
}

/// A policy that is attached to a Namespace.
pub(super) struct NamespacePolicy {
    /// `kind/namespace/name`, the form that commands accept.
    pub(super) name: String,
    /// How far it is in force, or why it is not.
    pub(super) in_force: String,
    /// The number of paths at its effective level that it reaches.
    pub(super) paths: u64,
}

/// The policies of a Namespace.
#[derive(Default)]
pub(super) struct NamespacePolicies {
    /// Those that are attached to the Namespace itself.
    pub(super) attached: Vec<NamespacePolicy>,
    /// The names of those in the namespace that are attached to other objects, or to none.
    pub(super) others: Vec<String>,
}

/// All policies of the selected kinds.
pub(super) struct PolicyList {
    /// In the order of the reply.
    pub(super) policies: Vec<v1::PolicyStatus>,
    /// The states of the kinds.
    pub(super) kinds: Vec<v1::KindState>,
    /// The parameters of Gateways that are not read.
    pub(super) parameters: Vec<v1::UnreadParameters>,
}

/// Queries a policy by name, with the paths that it, or one of its units, affects.
///
/// # Errors
/// [`CliError::NotFound`] with suggestions if there is no such policy, or if `--kind` excludes it.
pub(super) fn get_policy(
    session: &mut Session,
    name: &str,
    unit: &str,
) -> Result<NamedPolicy, CliError> {
    let result = session.backend.all_affected(v1::ListAffectedRequest {
        subject: Some(Subject::Policy(name.to_owned())),
        unit: unit.to_owned(),
        ..v1::ListAffectedRequest::default()
    });
    let reply = match result {
        Ok(reply) => reply,
        Err(QueryError::Failure(failure)) if failure.code == FailureCode::NotFound => {
            if exists(session, name) {
                return Err(CliError::NotFound(format!(
                    "`{name}` exists, but is no policy of a kind that has a profile, so what it does is not evaluated: \
                     `entail profiles` lists the kinds, and `entail get` shows what is in effect on an object"
                )));
            }
            let suggestions = suggestions_in_namespace(session, name);
            let message = format!("{}{suggestions}", failure.message);
            return Err(session.not_found(message));
        }
        Err(error) => return Err(error.into()),
    };
    let Some(status) = reply.status.clone() else {
        return Err(CliError::Unreadable(format!(
            "the server returned no status for `{name}`: it is older than this program"
        )));
    };
    if !is_selected(&session.kinds, &status.kind) {
        return Err(session.not_found(format!(
            "`{name}` is a {}, which `--kind` excludes",
            status.kind
        )));
    }
    Ok(NamedPolicy { status, reply })
}

/// Whether an object that is no policy exists.
fn exists(session: &mut Session, name: &str) -> bool {
    let paths = session.backend.list_paths(v1::ListPathsRequest {
        name: name.to_owned(),
        page_size: 1,
        ..v1::ListPathsRequest::default()
    });
    match paths {
        Ok(_) => true,
        Err(QueryError::Failure(failure)) => failure.reason == "NotOnAPath",
        Err(_) => false,
    }
}

/// Queries the policies of a Namespace, with what those that are attached to it reach.
pub(super) fn attached_to_namespace(
    session: &mut Session,
    namespace: &str,
) -> Result<NamespacePolicies, CliError> {
    let node = format!("Namespace/{namespace}");
    let all = list_policies(session)?.policies.into_iter();
    let is_attached = |status: &v1::PolicyStatus| {
        let mut nodes = status
            .references
            .iter()
            .flat_map(|reference| &reference.nodes);
        nodes.any(|other| *other == node)
    };
    let is_inside = |status: &v1::PolicyStatus| {
        let policy = status.policy.as_ref();
        policy.is_some_and(|policy| policy.namespace == namespace)
    };
    let mut found = NamespacePolicies::default();
    for status in all {
        let name = query_name(&status);
        if is_attached(&status) {
            found.attached.push(NamespacePolicy {
                name,
                in_force: in_force(&status),
                paths: status.paths,
            });
        } else if is_inside(&status) {
            found.others.push(name);
        }
    }
    Ok(found)
}

/// How far a policy is in force, in words.
fn in_force(status: &v1::PolicyStatus) -> String {
    let refused = status
        .conditions
        .iter()
        .find(|condition| condition.status != "True");
    match &*status.in_force {
        "All" | "AllWithAdditions" => "in force".to_owned(),
        "Part" | "PartWithAdditions" => "in force in part".to_owned(),
        "None" => "overridden everywhere".to_owned(),
        "NoScope" => "in force nowhere".to_owned(),
        _ => match refused {
            Some(condition) => format!("{}: {}", condition.reason, condition.message),
            None => "listed".to_owned(),
        },
    }
}

/// Queries all policies.
pub(super) fn list_policies(session: &mut Session) -> Result<PolicyList, CliError> {
    let all = session.backend.all_policies(session.kinds.clone());
    let all = all.map_err(|error| session.failure(error))?;
    session.check_version(all.version.as_ref())?;
    Ok(PolicyList {
        policies: all.policies,
        kinds: all.kinds,
        parameters: all.unread_parameters,
    })
}

/// `kind/namespace/name` of a policy, the form that commands accept.
pub(super) fn query_name(status: &v1::PolicyStatus) -> String {
    let kind = short_kind(&status.kind).to_lowercase();
    let name = status.policy.as_ref().map(policy_name).unwrap_or_default();
    format!("{kind}/{name}")
}

/// A kind without its group.
pub(super) fn short_kind(kind: &str) -> &str {
    kind.split_once('.').map_or(kind, |(short, _)| short)
}

/// Suggests policies for a name that is not found: those of the same namespace, those of the same
/// kind first. Empty if there are none.
fn suggestions_in_namespace(session: &mut Session, name: &str) -> String {
    let parts: Vec<&str> = name.split('/').collect();
    let [kind, namespace, _] = parts.as_slice() else {
        return String::new();
    };
    // Suggestions are optional: the caller reports its own failure.
    let Ok(all) = list_policies(session) else {
        return String::new();
    };
    let in_namespace = |status: &&v1::PolicyStatus| {
        let policy = status.policy.as_ref();
        policy.is_some_and(|policy| policy.namespace == *namespace)
    };
    let mut candidates: Vec<(bool, String)> = all
        .policies
        .iter()
        .filter(in_namespace)
        .map(|status| {
            let is_other_kind = !short_kind(&status.kind).eq_ignore_ascii_case(short_kind(kind));
            (is_other_kind, query_name(status))
        })
        .collect();
    // `false` sorts first: policies of the same kind.
    candidates.sort();
    let names: Vec<String> = candidates
        .iter()
        .take(MAX_SUGGESTIONS)
        .map(|(_, name)| format!("`{name}`"))
        .collect();
    match candidates.len().saturating_sub(MAX_SUGGESTIONS) {
        _ if names.is_empty() => String::new(),
        0 => format!("; policies in `{namespace}`: {}", names.join(", ")),
        more => format!(
            "; policies in `{namespace}`: {} and {more} more",
            names.join(", ")
        ),
    }
}

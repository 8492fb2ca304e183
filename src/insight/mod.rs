//! Queries and responses as protobuf messages, for the services and the commands.

mod abridged;
mod absent;
mod assertions;
mod backend;
mod budget;
mod codes;
mod compare;
mod explain;
mod failure;
mod findings;
mod kind_names;
mod lookup;
mod parameters;
mod part;
mod paths;
mod policies;
mod reach;
mod resolve;
mod reviewed_kinds;
mod rule_ref;
mod status;
mod subject;
mod topology;
mod visibility;
mod visible;
mod warnings;
mod waypoints;

pub(crate) use abridged::abridged;
pub use assertions::{
    AssertionChecker, BrokenAssertion, MAX_SAMPLES, NOT_CHECKED, assertion_findings, broken_by,
    check_assertions, enforced_in, is_of_result, today, unread_assertions,
};
pub use backend::{LocalBackend, PAGE_SIZE, QueryBackend, QueryError};
pub use budget::Budget;
pub use codes::Code;
pub use compare::{
    ChangeEffect, ChangeFilter, PreviewFn, change_warnings, compare, preview_change,
};
pub use explain::explain;
pub use failure::{Failure, FailureCode};
pub(crate) use failure::{MAX_NAMED, shortened};
pub use findings::{MAX_PLACES, list_findings, missing_crds, missing_namespaces};
pub(crate) use kind_names::is_name_of;
pub use lookup::{MAX_BATCH, batch, get, get_stored, incomplete_kinds, requested_path};
pub use part::{VisibleParts, visible_part};
pub use paths::{list_paths, parse_level};
pub use policies::list_policies;
pub use reach::list_affected;
pub use resolve::{
    MAX_REQUEST_BYTES, matching_rule_paths, path_ref, resolve_request, try_resolve_request,
};
pub use reviewed_kinds::reviewed_resources;
pub use rule_ref::{RuleName, RuleRef, rule_paths};
pub use status::{SourceProblem, SourceProblems, server_status};
pub use subject::QuerySubject;
pub use topology::get_topology;
pub use visibility::{AccessScope, Coverage, ObjectVisibility, Visibility};
pub use warnings::{
    ChangedObject, MAX_WARNINGS, NameScope, ObjectChange, broken_warning, line as warning_line,
    warnings,
};

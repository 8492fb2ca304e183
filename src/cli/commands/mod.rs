//! The commands: one module per command, with its arguments and its `run` function.

pub(super) mod admission;
pub(super) mod check;
pub(super) mod completion;
pub(super) mod descriptors;
pub(super) mod diff;
pub(super) mod explain;
pub(super) mod explain_code;
pub(super) mod get;
pub(super) mod health;
pub(super) mod lint;
pub(super) mod man;
pub(super) mod mcp;
pub(super) mod preview;
pub(super) mod profiles;
pub(super) mod reach;
pub(super) mod report_objects;
pub(super) mod resolve;
pub(super) mod serve;
pub(super) mod status;
pub mod test;
pub(super) mod topology;
pub(super) mod verify;
pub(super) mod version;

use super::render::{
    assertions, changes, console, document, explain_summary, explain_text, findings, get_text,
    insight_json, json, namespace_text, page_text, parameters_text, proto_json, report,
    review_markdown, spec, status_text, text, topology_graph, topology_tree, verify_text, yaml,
};
use super::{
    CliError, ExitStatus, Format, QueryArgs, SourceArgs, TestArgs, args, connect, envoy_admin,
    levels, names, policies, review, session, why_not,
};

//! Output of the commands: human-readable text, JSON and YAML.

pub(super) mod assertions;
pub(super) mod changes;
pub(super) mod console;
pub(super) mod document;
pub(super) mod explain_summary;
pub(super) mod explain_text;
pub(super) mod findings;
pub(super) mod get_text;
pub(super) mod insight_json;
pub(super) mod json;
pub(super) mod namespace_text;
pub(super) mod page_text;
pub(super) mod parameters_text;
pub(super) mod proto_json;
pub(super) mod report;
pub(super) mod review_markdown;
pub(super) mod short_path;
pub(super) mod spec;
pub(super) mod status_text;
pub(super) mod text;
pub(super) mod topology_graph;
pub(super) mod topology_tree;
pub(super) mod verify_text;
pub(super) mod yaml;

use super::commands::topology;
use super::{CliError, ExitStatus, Format, levels, policies, review, session};

//! Messages for documents that cannot be parsed. They never contain values, which may be secrets.

use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::granit_parser::ErrorKind;
use serde_saphyr::{Error, ExternalMessageSource};

use super::document::DocumentError;
use super::limits::Limits;
use crate::bounded_value::too_deep;

pub(super) const NOT_TEXT: &str = "a mapping key must be text: quote it";
pub(super) const TWICE: &str = "this key is in its mapping twice: keep one of them";
pub(super) const NOT_MERGED: &str = "a merge key `<<` takes a mapping or a list of mappings";
pub(super) const NOT_FINITE: &str =
    "infinity and not-a-number cannot be written as JSON: quote the value if it is text";
const WRONG_TAG: &str = "a value does not fit its tag: correct one of them";

/// Converts an error of the YAML library.
pub(super) fn refusal(error: &Error, limits: Limits) -> DocumentError {
    let location = error.location();
    let line = location.map_or(1, |at| u32::try_from(at.line()).unwrap_or(u32::MAX));
    let column = location.map_or(1, |at| at.column());
    DocumentError {
        line: line.max(1),
        message: message(error, column, limits),
    }
}

fn message(error: &Error, column: u64, limits: Limits) -> String {
    match error.without_snippet() {
        Error::DuplicateMappingKey { .. } => TWICE.to_owned(),
        Error::AliasError { error, .. } => message(error, column, limits),
        Error::AliasReplayLimitExceeded { .. } | Error::AliasReplayStackDepthExceeded { .. } => {
            limits.too_many_copies()
        }
        Error::RecursiveReferencesRequireWeakTypes { .. } => {
            "an alias stands inside of what it names: write it out".to_owned()
        }
        Error::UnknownAnchor { .. } => {
            format!(
                "not valid YAML: an alias names an anchor that the document does not have (column {column})"
            )
        }
        Error::InvalidScalar { .. }
        | Error::TaggedScalarCannotDeserializeIntoString { .. }
        | Error::InvalidBooleanStrict { .. }
        | Error::InvalidBinaryBase64 { .. } => WRONG_TAG.to_owned(),
        Error::Budget { breach, .. } => match breach {
            BudgetBreach::Depth { .. } => too_deep(),
            _ => limits.too_much(),
        },
        Error::ExternalMessage { source, .. } => match source.as_ref() {
            ExternalMessageSource::Parser(error)
                if matches!(error.kind(), ErrorKind::RecursionLimitExceeded) =>
            {
                too_deep()
            }
            ExternalMessageSource::Parser(error) => {
                format!("not valid YAML: {} (column {column})", error.kind())
            }
            _ => format!("not valid YAML (column {column})"),
        },
        // Messages of the library may contain values.
        _ => format!("not valid YAML (column {column})"),
    }
}

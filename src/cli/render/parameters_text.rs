//! Notes about the parameters of Gateways that are not read.

use std::io::{self, Write};

use super::document::Document;
use super::report::write_wrapped;
use super::text::printable;
use crate::api::v1;

/// Writes a note for each Gateway and GatewayClass with parameters that are not read, after an empty line.
pub(in crate::cli) fn notes(
    out: &mut dyn Write,
    parameters: &[v1::UnreadParameters],
) -> io::Result<()> {
    if !parameters.is_empty() {
        writeln!(out)?;
    }
    for unread in parameters {
        let name = match unread.namespace.as_str() {
            "" => unread.name.clone(),
            namespace => format!("{namespace}/{}", unread.name),
        };
        let text = format!(
            "note: {} is configured by {} {name}, which is not read and may change what its requests get",
            unread.object, unread.kind
        );
        write_wrapped(out, &printable(&text), 0, str::to_owned)?;
    }
    Ok(())
}

/// Converts parameters that are not read.
pub(in crate::cli) fn document(parameters: &[v1::UnreadParameters]) -> Document {
    Document::list(parameters, |unread| {
        Document::text_fields([
            ("object", unread.object.as_str()),
            ("kind", &unread.kind),
            ("namespace", &unread.namespace),
            ("name", &unread.name),
        ])
    })
}

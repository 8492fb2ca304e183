//! Splits a text into documents before they are parsed, so that a document that is not valid YAML
//! does not affect the others.

use serde::de::IgnoredAny;

/// The text of one document.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece<'t> {
    /// The line on which the document begins, from 1.
    pub line: u32,
    /// The text of the document.
    pub text: &'t [u8],
}

/// Splits before each line that begins with the marker `---`, as kubectl does, and after each line
/// `...`. Directives and comments belong to the document that follows them. Consecutive JSON
/// objects are separate documents.
pub(super) fn split(text: &[u8]) -> Vec<Piece<'_>> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut pieces = Vec::new();
    let (mut begin, mut begin_line) = (0, 1);
    let (mut at, mut line) = (0_usize, 1_u32);
    let (mut has_content, mut has_ended) = (false, false);
    for row in text.split_inclusive(|byte| *byte == b'\n') {
        let is_start = is_marker(row, b"---");
        if has_content && (is_start || has_ended) {
            push(&mut pieces, text.get(begin..at), begin_line);
            (begin, begin_line, has_content) = (at, line, false);
        }
        has_content |= is_start || !matches!(row.trim_ascii().first(), None | Some(b'#' | b'%'));
        has_ended = is_marker(row, b"...");
        at = at.saturating_add(row.len());
        line = line.saturating_add(1);
    }
    push(&mut pieces, text.get(begin..), begin_line);
    pieces
}

fn is_marker(row: &[u8], marker: &[u8]) -> bool {
    let rest = row.strip_prefix(marker);
    rest.is_some_and(|rest| rest.first().is_none_or(u8::is_ascii_whitespace))
}

/// Adds a document, or one document for each of several JSON objects.
fn push<'t>(pieces: &mut Vec<Piece<'t>>, text: Option<&'t [u8]>, mut line: u32) {
    let mut rest = text.unwrap_or_default();
    if rest.trim_ascii_start().starts_with(b"{") {
        let mut ends = Vec::new();
        let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<IgnoredAny>();
        while let Some(Ok(IgnoredAny)) = values.next() {
            ends.push(values.byte_offset());
        }
        // Text after the last object belongs to it.
        ends.pop();
        let mut before = 0_usize;
        for end in ends {
            let Some((text, after)) = rest.split_at_checked(end.saturating_sub(before)) else {
                break;
            };
            pieces.push(Piece { line, text });
            let rows = text.iter().filter(|byte| **byte == b'\n').count();
            line = line.saturating_add(u32::try_from(rows).unwrap_or(u32::MAX));
            (before, rest) = (end, after);
        }
    }
    pieces.push(Piece { line, text: rest });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(text: &str) -> Vec<(u32, &str)> {
        let pieces = split(text.as_bytes()).into_iter();
        pieces
            .map(|piece| (piece.line, std::str::from_utf8(piece.text).unwrap()))
            .collect()
    }

    #[test]
    fn markers_begin_documents() {
        assert_eq!(pieces("a: 1\n---\nb: 1"), [(1, "a: 1\n"), (2, "---\nb: 1")]);
        assert_eq!(
            pieces("---\r\na\r\n--- # c\r\nb"),
            [(1, "---\r\na\r\n"), (3, "--- # c\r\nb")]
        );
        assert_eq!(pieces("a: |\n ---\n----\n"), [(1, "a: |\n ---\n----\n")]);
        assert_eq!(pieces("a\n...\nb"), [(1, "a\n...\n"), (3, "b")]);
        assert_eq!(pieces(""), [(1, "")]);
    }

    #[test]
    fn directives_and_comments_stay_with_their_document() {
        let text = "# c\n%YAML 1.2\n---\na\n...\n%YAML 1.2\n---\nb";
        let expected = [
            (1, "# c\n%YAML 1.2\n---\na\n...\n"),
            (6, "%YAML 1.2\n---\nb"),
        ];
        assert_eq!(pieces(text), expected);
        assert_eq!(pieces("\u{feff}---\na"), [(1, "---\na")]);
    }

    #[test]
    fn json_objects_are_documents() {
        assert_eq!(
            pieces("{\"a\":\n1}{}\n{} # c\n"),
            [(1, "{\"a\":\n1}"), (2, "{}"), (2, "\n{} # c\n")]
        );
        assert_eq!(pieces("{a: 1}\n"), [(1, "{a: 1}\n")]);
    }
}

//! Texts of others without hidden characters: names and values are untrusted, and a terminal or a reader of a log would
//! take what is in them for more lines, or for commands.

use std::fmt::Write as _;

/// Escapes hidden characters, except line breaks.
pub(crate) fn printable(text: &str) -> String {
    escape(text, |c| is_hidden(c) && c != '\n')
}

/// Whether a character is invisible: a control character, a line separator, or a mark that changes
/// the direction of text.
pub(crate) fn is_hidden(c: char) -> bool {
    let directs =
        matches!(c, '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || directs || matches!(c, '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// Whether a text has a hidden character.
pub(crate) fn has_hidden(text: &str) -> bool {
    // Most texts are visible ASCII, of which no character has to be decoded.
    !text.bytes().all(|byte| matches!(byte, b' '..=b'~')) && text.contains(is_hidden)
}

/// Escapes some characters.
pub(crate) fn escape(text: &str, is_escaped: impl Fn(char) -> bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if is_escaped(c) {
            // Writes to a String do not fail.
            let _ = write!(escaped, "\\u{:04x}", u32::from(c));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

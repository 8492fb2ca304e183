//! Text output: colours, columns, wrapping, and escaping of control characters.

use std::fmt::Write;
use std::sync::OnceLock;

use terminal_size::{Width, terminal_size_of};

/// The width of text output in columns: that of the terminal, within limits, and the upper limit where the output is
/// not a terminal. Names of paths and objects may exceed it: they are never cut or broken, because users copy them
/// into other commands.
pub(in crate::cli) fn text_width() -> usize {
    const LEAST: usize = 72;
    const MOST: usize = 100;
    static COLUMNS: OnceLock<usize> = OnceLock::new();
    // Tests print the same in every terminal.
    if cfg!(test) {
        return MOST;
    }
    *COLUMNS.get_or_init(|| {
        let terminal = terminal_size_of(std::io::stdout());
        terminal.map_or(MOST, |(Width(columns), _)| {
            usize::from(columns).clamp(LEAST, MOST)
        })
    })
}

/// Applies terminal colours, if they are enabled.
#[derive(Clone, Copy, Debug)]
pub(in crate::cli) struct Style {
    on: bool,
}

impl Style {
    /// Returns a style with colours enabled or not.
    pub(in crate::cli) fn new(on: bool) -> Self {
        Self { on }
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.on {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }

    /// The style of headings.
    pub(in crate::cli) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// The style of secondary text.
    pub(in crate::cli) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    /// The style of policy kinds.
    pub(in crate::cli) fn cyan(self, text: &str) -> String {
        self.paint("36", text)
    }

    /// The style of findings that are less severe than errors.
    pub(in crate::cli) fn warning(self, text: &str) -> String {
        self.paint("33", text)
    }

    /// The style of errors and losses.
    pub(in crate::cli) fn alert(self, text: &str) -> String {
        self.paint("1;31", text)
    }
}

/// Escapes control characters, except line breaks: values and names are untrusted input.
pub(in crate::cli) fn printable(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) && c != '\n' {
            // Writes to a String do not fail.
            let _ = write!(escaped, "\\u{:04x}", u32::from(c));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// Whether a character is invisible: a control character, a line separator, or a mark that changes
/// the direction of text.
pub(in crate::cli) fn is_hidden(c: char) -> bool {
    let directs =
        matches!(c, '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || directs || matches!(c, '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// The width of a text in columns, counting one column per character.
pub(in crate::cli) fn width(text: &str) -> usize {
    text.chars().count()
}

/// Shortens a text to `most` columns. A shortened text ends with `...`.
pub(in crate::cli) fn shortened(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(3)).collect();
    format!("{kept}...")
}

/// Wraps a text at spaces into lines that fit between column `indent` and [`text_width`].
pub(in crate::cli) fn wrapped(text: &str, indent: usize) -> Vec<String> {
    wrapped_to(text, text_width(), indent)
}

/// Wraps a text at spaces into lines that fit between the columns `indent` and `columns`.
pub(in crate::cli) fn wrapped_to(text: &str, columns: usize, indent: usize) -> Vec<String> {
    let room = columns.saturating_sub(indent).max(20);
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(word) <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Returns where a right column begins: after the widest of the left texts that are at most `most`
/// wide.
pub(in crate::cli) fn column<'t>(lefts: impl Iterator<Item = &'t str>, most: usize) -> usize {
    let widths = lefts.map(width).filter(|left| *left <= most);
    widths.max().unwrap_or(0) + 2
}

/// Puts `right` at column `at` beside `left`, or on a second line if both do not fit on one.
pub(in crate::cli) fn beside(left: &str, right: &str, at: usize, style: Style) -> String {
    if right.is_empty() {
        return shortened(left, text_width());
    }
    let left = shortened(left, text_width());
    let gap = at.saturating_sub(width(&left));
    if gap >= 2 && at + width(right) <= text_width() {
        return format!("{left}{}{}", " ".repeat(gap), style.dim(right));
    }
    if width(&left) + 2 + width(right) <= text_width() {
        return format!("{left}  {}", style.dim(right));
    }
    let right = shortened(right, text_width());
    let indent = at.min(text_width().saturating_sub(width(&right)));
    format!("{left}\n{}{}", " ".repeat(indent), style.dim(&right))
}

/// Formats a number with its noun, such as `1 path` or `2 paths`.
pub(in crate::cli) fn count(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ if noun.ends_with('y') => {
            format!("{number} {}ies", noun.strip_suffix('y').unwrap_or(noun))
        }
        _ => format!("{number} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_fit() {
        let plain = Style::new(false);
        let long = "x".repeat(150);
        for left in ["a", "a: b", &"x".repeat(70), &long] {
            for right in ["", "# from a/b (defaults)", &"y".repeat(90), &long] {
                for at in [0, 10, 60, 98] {
                    for line in beside(left, right, at, plain).lines() {
                        assert!(width(line) <= text_width(), "{line}");
                    }
                }
            }
        }
        assert_eq!(beside("a", "b", 4, plain), "a   b");
        assert_eq!(beside(&"x".repeat(99), "b", 4, plain).lines().count(), 2);
    }

    #[test]
    fn columns_count_characters_and_not_bytes() {
        assert_eq!(shortened("äöüäöü", 5), "äö...");
        assert_eq!(shortened("äöü", 3), "äöü");
        assert_eq!(column(["äö", "a"].into_iter(), 10), 4);
        assert_eq!(column(["xxxxxxxxxxxx", "a"].into_iter(), 10), 3);
    }

    #[test]
    fn lines_wrap_at_spaces() {
        let lines = wrapped(&"word ".repeat(60), 10);
        assert!(lines.len() > 1 && lines.iter().all(|line| width(line) <= 90));
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(printable("a\u{1b}[2Jb\u{202e}"), "a\\u001b[2Jb\\u202e");
        assert_eq!(printable("ä\n"), "ä\n");
    }

    #[test]
    fn colours_are_optional() {
        assert_eq!(Style::new(false).alert("x"), "x");
        assert_eq!(Style::new(true).alert("x"), "\u{1b}[1;31mx\u{1b}[0m");
    }

    #[test]
    fn nouns_follow_their_number() {
        assert_eq!(count(1, "path"), "1 path");
        assert_eq!(count(2, "path"), "2 paths");
        assert_eq!(count(2, "policy"), "2 policies");
    }
}

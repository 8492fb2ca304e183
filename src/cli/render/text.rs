//! Text output: colours, columns, wrapping, and escaping of control characters.

use std::sync::OnceLock;

use terminal_size::{Width, terminal_size_of};

use super::short_path::short_path;
pub(in crate::cli) use crate::printable::{is_hidden, printable};

/// The width of text output in columns: that of the terminal, from 60 to 200, and 100 where the output is not a
/// terminal. Names of paths and objects may exceed it: they are never cut or broken, because users copy them
/// into other commands.
pub(in crate::cli) fn text_width() -> usize {
    const LEAST: usize = 60;
    const MOST: usize = 200;
    /// Where the output is not a terminal.
    const USUAL: usize = 100;
    static COLUMNS: OnceLock<usize> = OnceLock::new();
    // Tests print the same in every terminal.
    if cfg!(test) {
        return USUAL;
    }
    *COLUMNS.get_or_init(|| {
        let terminal = terminal_size_of(std::io::stdout());
        terminal.map_or(USUAL, |(Width(columns), _)| {
            usize::from(columns).clamp(LEAST, MOST)
        })
    })
}

/// How text output looks: its colours, the form of path names, and the length of lists.
#[derive(Clone, Copy, Debug)]
pub(in crate::cli) struct Style {
    colours: bool,
    /// Whether path names are shortened to what tells them apart.
    shortens: bool,
    /// Whether lists are printed to their end.
    lists_all: bool,
}

impl Style {
    /// Returns a style with colours enabled or not, with full path names, and lists that are cut.
    pub(in crate::cli) fn new(colours: bool) -> Self {
        Self {
            colours,
            shortens: false,
            lists_all: false,
        }
    }

    /// Shortens path names.
    #[must_use]
    pub(in crate::cli) fn with_short_names(self) -> Self {
        Self {
            shortens: true,
            ..self
        }
    }

    /// Prints path names in full, if `full`.
    #[must_use]
    pub(in crate::cli) fn with_full_names(self, full: bool) -> Self {
        Self {
            shortens: self.shortens && !full,
            ..self
        }
    }

    /// Prints lists to their end, if `all`.
    #[must_use]
    pub(in crate::cli) fn listing_all(self, all: bool) -> Self {
        Self {
            lists_all: all,
            ..self
        }
    }

    /// The number of entries of a list to print: `most`, or all.
    pub(in crate::cli) fn most(self, most: usize) -> usize {
        match self.lists_all {
            true => usize::MAX,
            false => most,
        }
    }

    /// The name of a path, printable, in full or short.
    pub(in crate::cli) fn path(self, name: &str) -> String {
        match self.shortens {
            true => printable(&short_path(name)),
            false => printable(name),
        }
    }

    /// A sentence with its path names in full or short, to be wrapped: lines do not break inside of a name.
    pub(in crate::cli) fn sentence(self, text: &str) -> String {
        if !self.shortens {
            return text.to_owned();
        }
        let words = text.split(' ').map(|word| {
            let name = word.trim_end_matches([',', '.', ':', ';']);
            let end = word.strip_prefix(name).unwrap_or_default();
            match name.starts_with("gateways/") || name.starts_with("mesh/") {
                true => format!("{}{end}", short_path(name).replace(' ', KEPT_SPACE)),
                false => word.to_owned(),
            }
        });
        words.collect::<Vec<_>>().join(" ")
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colours {
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

    /// The style of origins of values.
    pub(in crate::cli) fn origin(self, text: &str) -> String {
        self.paint("32", text)
    }

    /// The style of values that are not in effect.
    pub(in crate::cli) fn loss(self, text: &str) -> String {
        self.paint("33", text)
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

/// As [`printable`], on one line: names of files may contain line breaks.
pub(in crate::cli) fn printable_line(text: &str) -> String {
    printable(text).replace('\n', "\\n")
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

/// A space at which lines are not wrapped.
const KEPT_SPACE: &str = "\u{a0}";

/// Wraps a text at spaces into lines that fit between the columns `indent` and `columns`.
pub(in crate::cli) fn wrapped_to(text: &str, columns: usize, indent: usize) -> Vec<String> {
    let room = columns.saturating_sub(indent).max(20);
    let mut lines: Vec<String> = Vec::new();
    let words = text.split_ascii_whitespace().flat_map(|word| {
        // What does not fit on any line may break anywhere.
        let parts: Vec<String> = match width(word) <= room {
            true => vec![word.replace(KEPT_SPACE, " ")],
            false => word.split(KEPT_SPACE).map(str::to_owned).collect(),
        };
        parts
    });
    for word in words {
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(&word) <= room => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
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
        return format!("{left}{}{}", " ".repeat(gap), style.origin(right));
    }
    if width(&left) + 2 + width(right) <= text_width() {
        return format!("{left}  {}", style.origin(right));
    }
    let right = shortened(right, text_width());
    let indent = at.min(text_width().saturating_sub(width(&right)));
    format!("{left}\n{}{}", " ".repeat(indent), style.origin(&right))
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
        assert_eq!(printable_line("ä\n\u{7}"), "ä\\n\\u0007");
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

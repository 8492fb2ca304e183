//! Text for people: colours, columns, and nothing that a terminal could mistake for an order.

use std::fmt::Write;

/// Columns that every line fits into. Names of paths and objects are never cut or broken, since
/// they are copied from one command into the next.
pub(in crate::cli) const WIDTH: usize = 100;

/// Colours, or none.
#[derive(Clone, Copy, Debug)]
pub(in crate::cli) struct Style {
    on: bool,
}

impl Style {
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

    /// For headings.
    pub(in crate::cli) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// For what explains.
    pub(in crate::cli) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    /// For kinds.
    pub(in crate::cli) fn cyan(self, text: &str) -> String {
        self.paint("36", text)
    }

    /// For what must not be overlooked.
    pub(in crate::cli) fn alert(self, text: &str) -> String {
        self.paint("1;31", text)
    }
}

/// The text with control characters written out: values and names come from strangers.
pub(in crate::cli) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) && c != '\n' {
            // Writing to a String does not fail.
            let _ = write!(shown, "\\u{:04x}", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Whether a terminal acts on a character, or changes the direction of text, instead of showing
/// it.
pub(in crate::cli) fn is_hidden(c: char) -> bool {
    let directs =
        matches!(c, '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || directs || matches!(c, '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// Columns that a text takes, one a character.
pub(in crate::cli) fn width(text: &str) -> usize {
    text.chars().count()
}

/// The text cut to some columns, with `...` where it was cut.
pub(in crate::cli) fn shortened(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(3)).collect();
    format!("{kept}...")
}

/// Lines of words that fit between `indent` and the last column.
pub(in crate::cli) fn wrapped(text: &str, indent: usize) -> Vec<String> {
    let room = WIDTH.saturating_sub(indent).max(20);
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

/// Where a right column begins beside these left ones: behind the widest that leaves enough room.
pub(in crate::cli) fn column<'t>(lefts: impl Iterator<Item = &'t str>, most: usize) -> usize {
    let widths = lefts.map(width).filter(|left| *left <= most);
    widths.max().unwrap_or(0) + 2
}

/// A line with a right column, or two lines if they do not fit beside each other.
pub(in crate::cli) fn beside(left: &str, right: &str, at: usize, style: Style) -> String {
    if right.is_empty() {
        return shortened(left, WIDTH);
    }
    let left = shortened(left, WIDTH);
    let gap = at.saturating_sub(width(&left));
    if gap >= 2 && at + width(right) <= WIDTH {
        return format!("{left}{}{}", " ".repeat(gap), style.dim(right));
    }
    if width(&left) + 2 + width(right) <= WIDTH {
        return format!("{left}  {}", style.dim(right));
    }
    let right = shortened(right, WIDTH);
    let indent = at.min(WIDTH.saturating_sub(width(&right)));
    format!("{left}\n{}{}", " ".repeat(indent), style.dim(&right))
}

/// `1 path`, `2 paths`.
pub(in crate::cli) fn count(number: usize, thing: &str) -> String {
    match number {
        1 => format!("1 {thing}"),
        _ if thing.ends_with('y') => {
            format!("{number} {}ies", thing.strip_suffix('y').unwrap_or(thing))
        }
        _ => format!("{number} {thing}s"),
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
                        assert!(width(line) <= WIDTH, "{line}");
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
    fn words_wrap() {
        let lines = wrapped(&"word ".repeat(60), 10);
        assert!(lines.len() > 1 && lines.iter().all(|line| width(line) <= 90));
    }

    #[test]
    fn a_terminal_gets_no_orders() {
        assert_eq!(printable("a\u{1b}[2Jb\u{202e}"), "a\\u001b[2Jb\\u202e");
        assert_eq!(printable("ä\n"), "ä\n");
    }

    #[test]
    fn colours_only_if_wanted() {
        assert_eq!(Style::new(false).alert("x"), "x");
        assert_eq!(Style::new(true).alert("x"), "\u{1b}[1;31mx\u{1b}[0m");
    }

    #[test]
    fn things_are_counted() {
        assert_eq!(count(1, "path"), "1 path");
        assert_eq!(count(2, "path"), "2 paths");
        assert_eq!(count(2, "policy"), "2 policies");
    }
}

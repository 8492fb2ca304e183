//! The text of warnings.

use crate::api::v1;
use entail_client::EnumName;
use entail_core::model::GroupKind;

/// Maximum number of bytes of a warning; API servers cut longer ones.
pub(super) const MAX_BYTES: usize = 256;

/// A warning: ASCII, in one line, and short enough.
pub fn line(text: &str) -> String {
    let printable = |c: char| match c {
        ' '..='~' => c,
        _ => '?',
    };
    let mut line: String = "entail: "
        .chars()
        .chain(text.chars().map(printable))
        .collect();
    if line.len() > MAX_BYTES {
        line.truncate(MAX_BYTES - 3);
        line.push_str("...");
    }
    line
}

/// The longest of several texts, given from the longest to the shortest, that a warning has room for; the last one if
/// none is short enough.
pub(super) fn longest(texts: impl Iterator<Item = String>) -> String {
    let mut last = String::new();
    for text in texts {
        last = text;
        if last.len() + "entail: ".len() <= MAX_BYTES {
            break;
        }
    }
    line(&last)
}

/// A number of things: `1 path`, `2 paths`.
pub(super) fn count(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{number} {noun}s"),
    }
}

/// A kind without its group.
pub(super) fn short(kind: &str) -> &str {
    kind.split('.').next().unwrap_or(kind)
}

/// A kind by its name.
pub(super) fn parsed(kind: &str) -> GroupKind {
    GroupKind::parse(kind)
}

/// What is not known of a kind. The message is left out: it can name other objects.
pub(super) fn state(kind: &v1::KindState) -> String {
    let state = kind.state().name();
    match kind.reason.is_empty() {
        true => state.to_owned(),
        false => format!("{state} ({})", kind.reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_a_short_line_of_ascii() {
        assert_eq!(line("a\nb \u{e9}"), "entail: a?b ?");
        let long = line(&"x".repeat(300));
        assert_eq!(long.len(), MAX_BYTES);
        assert!(long.ends_with("..."));
        assert_eq!(line(&"x".repeat(MAX_BYTES - 8)).len(), MAX_BYTES);
    }

    #[test]
    fn the_longest_text_that_fits_is_taken() {
        let texts = |lengths: &[usize]| -> Vec<String> {
            lengths.iter().map(|length| "x".repeat(*length)).collect()
        };
        assert_eq!(longest(texts(&[400, 20, 10]).into_iter()).len(), 28);
        assert_eq!(longest(texts(&[400, 300]).into_iter()).len(), MAX_BYTES);
    }

    #[test]
    fn lists_are_cut_and_counted() {
        let items: Vec<String> = ["a", "b", "c"].map(str::to_owned).to_vec();
        assert_eq!(crate::insight::abridged(&items, 3), "a, b, c");
        assert_eq!(crate::insight::abridged(&items, 2), "a, b and 1 more");
        assert_eq!(
            (count(1, "path"), count(0, "path")),
            ("1 path".into(), "0 paths".into())
        );
    }
}

//! Pages in Markdown as plain text: headings, paragraphs, lists and blocks of code.

use std::io::{self, Write};

use super::text::{Style, wrapped_to};

/// Writes a page with lines of up to `width` columns. Lines of code are not broken.
pub(in crate::cli) fn write_page(
    out: &mut dyn Write,
    page: &str,
    width: usize,
    style: Style,
) -> io::Result<()> {
    let mut paragraph = String::new();
    let mut is_code = false;
    for line in page.lines() {
        let is_fence = line.starts_with("```");
        let is_item = line.starts_with("- ");
        if is_code && !is_fence {
            write_line(out, &format!("    {line}"))?;
        } else if is_fence || is_item || line.trim().is_empty() || line.starts_with('#') {
            write_paragraph(out, &paragraph, width)?;
            paragraph.clear();
            if is_fence {
                is_code = !is_code;
            } else if is_item {
                paragraph.push_str(line);
            } else {
                let heading = line.trim_start_matches('#').trim();
                for line in wrapped_to(heading, width, 0) {
                    writeln!(out, "{}", style.bold(&line))?;
                }
                if heading.is_empty() {
                    writeln!(out)?;
                }
            }
        } else {
            paragraph.push(' ');
            paragraph.push_str(line.trim());
        }
    }
    write_paragraph(out, &paragraph, width)
}

fn write_line(out: &mut dyn Write, line: &str) -> io::Result<()> {
    writeln!(out, "{}", line.trim_end())
}

/// Writes a paragraph or an item of a list, whose further lines are indented.
fn write_paragraph(out: &mut dyn Write, paragraph: &str, width: usize) -> io::Result<()> {
    let (mark, rest, text) = match paragraph.strip_prefix("- ") {
        Some(text) => ("- ", "  ", text),
        None => ("", "", paragraph),
    };
    for (at, line) in wrapped_to(&without_links(text), width, mark.len())
        .iter()
        .enumerate()
    {
        let mark = if at == 0 { mark } else { rest };
        write_line(out, &format!("{mark}{line}"))?;
    }
    Ok(())
}

/// Replaces `[text](target)` by the text: a terminal cannot follow a link to a file of the repository.
fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('[') {
        plain.push_str(before);
        match after.split_once("](").and_then(|(label, tail)| {
            let (_, tail) = tail.split_once(')')?;
            (!label.contains(['[', ']'])).then_some((label, tail))
        }) {
            Some((label, tail)) => {
                plain.push_str(label);
                rest = tail;
            }
            None => {
                plain.push('[');
                rest = after;
            }
        }
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_plain_text_that_fits() {
        let page = "# E1 T: title\n\nSee [the rule](x.md#a) of\n`spec.targetRefs[0]`.\n\n\
                    - one\n  two three four\n- five\n\n```yaml\na: [1,  2]\n```\n";
        let mut out = Vec::new();
        write_page(&mut out, page, 26, Style::new(false)).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "E1 T: title\n\nSee the rule of\n`spec.targetRefs[0]`.\n\n- one two three four\n\
             - five\n\n    a: [1,  2]\n"
        );
    }

    #[test]
    fn brackets_that_are_no_links_stay() {
        assert_eq!(without_links("a[0] and [b](c) [d"), "a[0] and b [d");
    }
}

//! Differences between texts, line by line.

/// A line of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum DiffLine<'t> {
    /// On both sides.
    Same(&'t str),
    /// Expected, and not found.
    Expected(&'t str),
    /// Found, and not expected.
    Found(&'t str),
}

/// The difference of two texts by their longest common lines.
pub(in crate::cli) fn lines<'t>(expected: &'t str, found: &'t str) -> Vec<DiffLine<'t>> {
    let a: Vec<&str> = expected.lines().collect();
    let b: Vec<&str> = found.lines().collect();
    let common = common(&a, &b);
    let at = |i: usize, j: usize| common.get(i * (b.len() + 1) + j).copied().unwrap_or(0);
    let (mut i, mut j) = (0, 0);
    let mut out = Vec::with_capacity(a.len() + b.len());
    loop {
        match (a.get(i), b.get(j)) {
            (Some(left), Some(right)) if left == right => {
                out.push(DiffLine::Same(left));
                i += 1;
                j += 1;
            }
            (Some(left), right) if right.is_none() || at(i + 1, j) >= at(i, j + 1) => {
                out.push(DiffLine::Expected(left));
                i += 1;
            }
            (_, Some(right)) => {
                out.push(DiffLine::Found(right));
                j += 1;
            }
            _ => return out,
        }
    }
}

/// Lengths of the longest common sequences of all ends of both, row by row.
fn common(a: &[&str], b: &[&str]) -> Vec<usize> {
    let width = b.len() + 1;
    let mut lengths = vec![0; (a.len() + 1) * width];
    for (i, left) in a.iter().enumerate().rev() {
        for (j, right) in b.iter().enumerate().rev() {
            let get = |i: usize, j: usize| lengths.get(i * width + j).copied().unwrap_or(0);
            let length = if left == right {
                get(i + 1, j + 1) + 1
            } else {
                get(i + 1, j).max(get(i, j + 1))
            };
            if let Some(cell) = lengths.get_mut(i * width + j) {
                *cell = length;
            }
        }
    }
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_lines_stay() {
        use DiffLine::{Expected, Found, Same};
        assert_eq!(
            lines("a\nb\nc", "a\nx\nc"),
            [Same("a"), Expected("b"), Found("x"), Same("c")]
        );
        assert_eq!(lines("", "a"), [Found("a")]);
        assert_eq!(lines("a", ""), [Expected("a")]);
    }
}

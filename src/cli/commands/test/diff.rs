//! A line-by-line difference of two texts.

/// A line of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum DiffLine<'t> {
    /// In both texts.
    Same(&'t str),
    /// Only in the expected text.
    Expected(&'t str),
    /// Only in the found text.
    Found(&'t str),
}

/// Returns the difference of two texts, by their longest common subsequence of lines. Takes time and
/// memory proportional to the product of the line counts.
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

/// Returns the lengths of the longest common subsequences of all suffixes of `a` and `b`, row by row.
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
    fn common_lines_are_kept() {
        use DiffLine::{Expected, Found, Same};
        assert_eq!(
            lines("a\nb\nc", "a\nx\nc"),
            [Same("a"), Expected("b"), Found("x"), Same("c")]
        );
        assert_eq!(lines("", "a"), [Found("a")]);
        assert_eq!(lines("a", ""), [Expected("a")]);
    }
}

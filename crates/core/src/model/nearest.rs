//! Finds the name that a misspelt one probably means.

/// The longest name that is compared, in characters.
const MAX_LENGTH: usize = 253;

/// Returns the name with the smallest edit distance, up to a third of the length.
pub fn nearest(misspelled: &str, names: Vec<String>) -> Option<String> {
    let length = misspelled.chars().count();
    // No object of Kubernetes has a longer name, and a comparison takes the product of both lengths.
    if length > MAX_LENGTH {
        return None;
    }
    let most = length.div_ceil(3).max(1);
    names
        .into_iter()
        .filter(|name| name.chars().count().abs_diff(length) <= most)
        .map(|name| (distance(misspelled, &name), name))
        .filter(|(edits, _)| *edits <= most)
        .min()
        .map(|(_, name)| name)
}

/// The end of a message about a misspelt name that asks for the nearest one; empty if none is near.
pub fn did_you_mean(misspelled: &str, names: Vec<String>) -> String {
    let near = nearest(misspelled, names);
    near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}

/// The Levenshtein distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (at, left) in a.chars().enumerate() {
        let mut diagonal = at;
        let mut last = at + 1;
        if let Some(first) = row.first_mut() {
            *first = last;
        }
        for (right, cell) in b.iter().zip(row.iter_mut().skip(1)) {
            let changed = diagonal + usize::from(left != *right);
            diagonal = *cell;
            last = changed.min(last + 1).min(*cell + 1);
            *cell = last;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", "abc"), 0);
        let names = || vec!["storefront".to_owned(), "backdoor".to_owned()];
        assert_eq!(
            nearest("storefornt", names()),
            Some("storefront".to_owned())
        );
        assert_eq!(nearest("nothing", names()), None);
    }
}

//! Lists of names in messages.

/// The first items of a list, and how many there are besides.
pub fn abridged(items: &[impl AsRef<str>], most: usize) -> String {
    let first: Vec<&str> = items.iter().take(most).map(AsRef::as_ref).collect();
    match items.len().saturating_sub(most) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

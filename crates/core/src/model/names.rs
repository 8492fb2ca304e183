//! Copies of names that many objects have.

use std::cell::RefCell;

use hashbrown::HashSet;

use super::Str;

/// The number of names that a thread remembers. Beyond it, the cache is cleared, so that later objects share new copies.
const MAX_NAMES: usize = 4_096;
/// The length of names that are remembered, in bytes: as many as Kubernetes allows.
const MAX_LENGTH: usize = 253;

/// Returns a name, of which objects that are read on this thread share a copy.
pub fn shared_name(name: &str) -> Str {
    thread_local! {
        static NAMES: RefCell<HashSet<Str>> = RefCell::default();
    }
    if name.len() > MAX_LENGTH {
        return Str::from(name);
    }
    NAMES.with_borrow_mut(|names| {
        if let Some(known) = names.get(name) {
            return known.clone();
        }
        if names.len() >= MAX_NAMES {
            names.clear();
        }
        let new = Str::from(name);
        names.insert(new.clone());
        new
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_are_one_copy_among_a_bounded_number() {
        let first = shared_name("a");
        assert!(Str::ptr_eq(&first, &shared_name("a")));
        for number in 0..=MAX_NAMES {
            assert_eq!(*shared_name(&number.to_string()), *number.to_string());
        }
        let later = shared_name("a");
        assert!(!Str::ptr_eq(&first, &later));
        assert_eq!(first, later);
        let long = "a".repeat(MAX_LENGTH + 1);
        assert!(!Str::ptr_eq(&shared_name(&long), &shared_name(&long)));
    }
}

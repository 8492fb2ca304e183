//! Path names come from every client: each is read, or refused with an offset inside it, and what is
//! read is printed as it was.

use entail_core::model::PathName;

/// Checks one input.
pub fn check(text: &str) {
    match PathName::parse(text) {
        Ok(path) => {
            let printed = path.to_string();
            let again = PathName::parse(&printed);
            assert_eq!(again.as_ref(), Ok(&path), "{text:?} printed as {printed:?}");
        }
        Err(error) => assert!(error.offset <= text.len(), "{text:?}: {error:?}"),
    }
}

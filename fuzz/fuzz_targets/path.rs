//! Parses arbitrary path names: each is parsed, or rejected with an offset inside it, and a parsed
//! name prints as a name that parses to the same path.

#![no_main]

use entail_core::model::PathName;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match PathName::parse(text) {
        Ok(path) => {
            let printed = path.to_string();
            let reparsed = PathName::parse(&printed);
            assert_eq!(
                reparsed.as_ref(),
                Ok(&path),
                "{text:?} printed as {printed:?}"
            );
        }
        Err(error) => assert!(error.offset <= text.len(), "{text:?}: {error:?}"),
    }
});

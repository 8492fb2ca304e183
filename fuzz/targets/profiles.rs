//! Profiles come from files and from whoever may write PolicyProfiles: each document is refused with a
//! place and a reason, or resolves in the same way each time.

use entail_core::profile::{Profile, ProfileOrigin, parse_documents};

/// Checks one input.
pub fn check(text: &str) {
    for parsed in parse_documents(text, "fuzz") {
        match parsed {
            Ok((location, document)) => {
                let resolve = || {
                    let origin = ProfileOrigin::Configured;
                    Profile::resolve(&document, origin, None, &location)
                };
                let (once, again) = (resolve(), resolve());
                assert_eq!(format!("{once:?}"), format!("{again:?}"));
                if let Err(error) = once {
                    assert!(error.to_string().starts_with("fuzz:"), "{error}");
                }
            }
            Err(error) => assert!(error.to_string().starts_with("fuzz:"), "{error}"),
        }
    }
}

//! Names of enum values for people.

use crate::v1;

/// The names of enum values without the prefix that protobuf requires: `STALE` of `STATE_STALE`.
pub trait EnumName {
    /// The name of the value.
    fn name(self) -> &'static str;
}

macro_rules! enum_names {
    ($($enumeration:ty: $prefix:literal),* $(,)?) => {
        $(impl EnumName for $enumeration {
            fn name(self) -> &'static str {
                let name = self.as_str_name();
                name.strip_prefix($prefix).unwrap_or(name)
            }
        })*
    };
}

enum_names! {
    v1::Block: "BLOCK_",
    v1::kind_state::State: "STATE_",
    v1::finding::Severity: "SEVERITY_",
    v1::assertion_result::Outcome: "OUTCOME_",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_no_prefix() {
        assert_eq!(v1::kind_state::State::Stale.name(), "STALE");
        assert_eq!(v1::Block::ImplicitDefaults.name(), "IMPLICIT_DEFAULTS");
        assert_eq!(v1::finding::Severity::Note.name(), "NOTE");
        assert_eq!(v1::assertion_result::Outcome::Unknown.name(), "UNKNOWN");
    }
}

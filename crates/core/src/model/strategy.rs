//! Merge strategies: a granularity and a direction (specification 5.2).

use std::fmt;

/// Which of two policies wins a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// The more specific policy wins.
    Defaults,
    /// The less specific policy wins.
    Overrides,
}

/// The size of a unit, ordered from coarse to fine (specification 9.2, 11.13).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Granularity {
    /// The whole block.
    Atomic,
    /// Each top-level field.
    Field,
    /// Each entry of the rule maps, and each other field on the paths to them.
    Rule,
    /// Units follow the schema of the CRD.
    Structural,
    /// JSON Merge Patch (RFC 7386): objects recurse; lists and scalars are units.
    Patch,
    /// Like `Patch`, with reducers.
    Custom,
}

/// A merge strategy that a kind can offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Strategy {
    /// No merging: one policy wins as a whole (specification 7).
    None,
    /// Merging unit by unit, in a direction.
    Merge(Granularity, Direction),
}

impl Granularity {
    /// Every granularity, coarse to fine.
    pub const ALL: [Granularity; 6] = [
        Granularity::Atomic,
        Granularity::Field,
        Granularity::Rule,
        Granularity::Structural,
        Granularity::Patch,
        Granularity::Custom,
    ];

    /// Returns the name that profiles use.
    pub fn as_str(self) -> &'static str {
        match self {
            Granularity::Atomic => "Atomic",
            Granularity::Rule => "Rule",
            Granularity::Field => "Field",
            Granularity::Structural => "Structural",
            Granularity::Patch => "Patch",
            Granularity::Custom => "Custom",
        }
    }

    /// Parses a granularity. Case, spaces, `-` and `_` do not matter (specification 5.3).
    pub fn parse(text: &str) -> Option<Self> {
        let normalized = normalize(text);
        Self::ALL
            .into_iter()
            .find(|g| g.as_str().to_ascii_lowercase() == normalized)
    }
}

impl Direction {
    /// Returns the name that profiles use.
    pub fn as_str(self) -> &'static str {
        match self {
            Direction::Defaults => "Defaults",
            Direction::Overrides => "Overrides",
        }
    }
}

impl Strategy {
    /// Parses a full strategy name such as `PatchOverrides`. Case, spaces, `-` and `_` do not matter.
    pub fn parse(text: &str) -> Option<Self> {
        let normalized = normalize(text);
        if normalized == "none" {
            return Some(Strategy::None);
        }
        [Direction::Defaults, Direction::Overrides]
            .into_iter()
            .find_map(|direction| {
                let suffix = direction.as_str().to_ascii_lowercase();
                let granularity = Granularity::parse(normalized.strip_suffix(&suffix)?)?;
                Some(Strategy::Merge(granularity, direction))
            })
    }

    /// Returns the direction of a merge strategy.
    pub fn direction(self) -> Option<Direction> {
        match self {
            Strategy::None => None,
            Strategy::Merge(_, direction) => Some(direction),
        }
    }

    /// Returns the granularity of a merge strategy.
    pub fn granularity(self) -> Option<Granularity> {
        match self {
            Strategy::None => None,
            Strategy::Merge(granularity, _) => Some(granularity),
        }
    }
}

/// Normalizes a name: lower case, without spaces, `-` and `_`.
fn normalize(text: &str) -> String {
    text.chars()
        .filter(|c| !matches!(c, ' ' | '-' | '_'))
        .flat_map(char::to_lowercase)
        .collect()
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Strategy::None => f.write_str("None"),
            Strategy::Merge(granularity, direction) => {
                f.write_str(granularity.as_str())?;
                f.write_str(direction.as_str())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_compare_without_case_spaces_and_hyphens() {
        let patch = Strategy::Merge(Granularity::Patch, Direction::Overrides);
        assert_eq!(Strategy::parse("patch-OVER_rides"), Some(patch));
        assert_eq!(Strategy::parse("Patch Overrides"), Some(patch));
        assert_eq!(Strategy::parse("None"), Some(Strategy::None));
        assert_eq!(Strategy::parse("Merge"), None);
        assert_eq!(Granularity::parse("at-om ic"), Some(Granularity::Atomic));
        assert_eq!(patch.to_string(), "PatchOverrides");
    }
}

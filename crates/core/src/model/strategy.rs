//! Merge strategies: direction times granularity (specification 5.2).

use std::fmt;

/// Which side of a pair wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// The more specific policy wins.
    Defaults,
    /// The less specific policy wins.
    Overrides,
}

/// What one unit is. The order is from coarse to fine (specification 9.2, 11.13).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Granularity {
    /// The whole block.
    Atomic,
    /// Each top-level field.
    Field,
    /// Entries of the rule maps, and every other field met on the way to them.
    Rule,
    /// By the CRD's schema.
    Structural,
    /// RFC 7386: objects recurse, lists and scalars are units.
    Patch,
    /// Patch with reducers.
    Custom,
}

/// A strategy that a kind can offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Strategy {
    /// No merging: one policy wins whole (specification 7).
    None,
    /// Merging in a direction, unit by unit.
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

    /// The word of the granularity in profiles.
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

    /// Reads a granularity, compared without case, spaces, `-` and `_` (specification 5.3).
    pub fn parse(text: &str) -> Option<Self> {
        let wanted = fold(text);
        Self::ALL
            .into_iter()
            .find(|g| g.as_str().to_ascii_lowercase() == wanted)
    }
}

impl Direction {
    /// The word of the direction in profiles.
    pub fn as_str(self) -> &'static str {
        match self {
            Direction::Defaults => "Defaults",
            Direction::Overrides => "Overrides",
        }
    }
}

impl Strategy {
    /// Reads a full strategy name such as `PatchOverrides`, compared without case, spaces, `-`
    /// and `_`.
    pub fn parse(text: &str) -> Option<Self> {
        let wanted = fold(text);
        if wanted == "none" {
            return Some(Strategy::None);
        }
        [Direction::Defaults, Direction::Overrides]
            .into_iter()
            .find_map(|direction| {
                let suffix = direction.as_str().to_ascii_lowercase();
                let granularity = Granularity::parse(wanted.strip_suffix(&suffix)?)?;
                Some(Strategy::Merge(granularity, direction))
            })
    }

    /// The direction, if it merges.
    pub fn direction(self) -> Option<Direction> {
        match self {
            Strategy::None => None,
            Strategy::Merge(_, direction) => Some(direction),
        }
    }

    /// The granularity, if it merges.
    pub fn granularity(self) -> Option<Granularity> {
        match self {
            Strategy::None => None,
            Strategy::Merge(granularity, _) => Some(granularity),
        }
    }
}

/// Names compare without case, spaces, `-` and `_`.
fn fold(text: &str) -> String {
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
                write!(f, "{}{}", granularity.as_str(), direction.as_str())
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

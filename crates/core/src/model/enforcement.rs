//! How far a policy is in force (specification 10).

/// How far a policy is in force, over all scopes that its attachments reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Enforcement {
    /// Every unit wins in every scope.
    All,
    /// The same, and another policy holds a unit that it did not offer where it wins one.
    AllWithAdditions,
    /// Some units, or all units in some scopes, lost.
    Part,
    /// The same, with additions.
    PartWithAdditions,
    /// Every unit lost everywhere.
    None,
    /// Accepted, but on no path.
    NoScope,
}

impl Enforcement {
    /// The word of the state.
    pub fn as_str(self) -> &'static str {
        match self {
            Enforcement::All => "All",
            Enforcement::AllWithAdditions => "AllWithAdditions",
            Enforcement::Part => "Part",
            Enforcement::PartWithAdditions => "PartWithAdditions",
            Enforcement::None => "None",
            Enforcement::NoScope => "NoScope",
        }
    }
}

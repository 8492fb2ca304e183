//! The degree to which a policy is in force (specification 10).

/// The degree to which a policy is in force, over all scopes that its attachments reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Enforcement {
    /// Every unit of the policy wins in every scope.
    All,
    /// Like `All`, and another policy adds units in a scope where this policy wins one.
    AllWithAdditions,
    /// Some units lose, or all units lose in some scopes.
    Part,
    /// Like `Part`, with additions of other policies.
    PartWithAdditions,
    /// Every unit loses in every scope.
    None,
    /// The policy is accepted but is on no path.
    NoScope,
    /// The policy has no scope, and is on a path where its kind is unknown (specification 2.6).
    Unknown,
}

impl Enforcement {
    /// Returns the name of the state.
    pub fn as_str(self) -> &'static str {
        match self {
            Enforcement::All => "All",
            Enforcement::AllWithAdditions => "AllWithAdditions",
            Enforcement::Part => "Part",
            Enforcement::PartWithAdditions => "PartWithAdditions",
            Enforcement::None => "None",
            Enforcement::NoScope => "NoScope",
            Enforcement::Unknown => "Unknown",
        }
    }
}

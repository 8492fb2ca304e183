//! The result of a comparison.

use std::collections::{BTreeMap, BTreeSet};

/// The result of comparing one field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verdict {
    /// The proxy has another value.
    Differs,
    /// The proxy does not have what should be in effect.
    Missing,
    /// The proxy has what should not be in effect.
    Extra,
    /// The values cannot be compared.
    CannotTell,
    /// The proxy has the value.
    Same,
}

impl Verdict {
    /// The verdicts that a report lists, the worst first.
    pub const LISTED: [Verdict; 4] = [
        Verdict::Differs,
        Verdict::Missing,
        Verdict::Extra,
        Verdict::CannotTell,
    ];

    /// The name in output and in options.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Differs => "differs",
            Verdict::Missing => "missing",
            Verdict::Extra => "extra",
            Verdict::CannotTell => "cannot-tell",
            Verdict::Same => "same",
        }
    }
}

/// A field that is not the same, or cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Finding {
    /// The result.
    pub verdict: Verdict,
    /// The policy kind, as `Kind.group`; empty for a rule as a whole.
    pub kind: String,
    /// The field, as a dotted path from the root of the policy's rules; empty for the kind as a whole.
    pub field: String,
    /// The value that should be in effect; `None` if the effective policy does not set the field.
    pub expected: Option<String>,
    /// The value that the proxy has; `None` if the proxy does not have the field.
    pub actual: Option<String>,
    /// The policies that set the expected value, as `namespace/name`.
    pub origins: Vec<String>,
    /// Why the values cannot be compared, or what the difference may come from; may be empty.
    pub reason: String,
}

/// A finding with the places where it occurs.
#[derive(Clone, Debug)]
pub struct Group {
    /// The finding.
    pub finding: Finding,
    /// The paths, each with the name of the Envoy route, cluster or route configuration; it may be empty.
    pub places: Vec<(String, String)>,
}

/// How much was compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The route rules that were compared.
    pub rules: usize,
    /// The listeners that were compared.
    pub listeners: usize,
    /// The rules and listeners with a difference.
    pub differing: usize,
    /// The fields that are the same.
    pub same: usize,
    /// Of these, the fields that were compared in part: presence, or some of their contents.
    pub same_in_part: usize,
}

/// The result of a comparison.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How much was compared.
    pub summary: Summary,
    /// What is not the same, the worst first.
    pub groups: Vec<Group>,
    /// Gateways of the input that the proxy does not serve, as `gateways/NAMESPACE/NAME`: not compared.
    pub other_gateways: Vec<String>,
}

impl Report {
    /// The number of fields with a verdict; each path counts.
    pub fn count(&self, verdict: Verdict) -> usize {
        let groups = self
            .groups
            .iter()
            .filter(|group| group.finding.verdict == verdict);
        groups.map(|group| group.places.len()).sum()
    }
}

/// Collects findings.
#[derive(Debug, Default)]
pub(super) struct Collector {
    pub(super) summary: Summary,
    places: BTreeMap<Finding, Vec<(String, String)>>,
    differing: BTreeSet<String>,
}

impl Collector {
    pub(super) fn add(&mut self, finding: Finding, path: &str, proxy_name: &str) {
        // A rule that only the proxy has is none of those that were compared.
        let is_extra_rule = finding.verdict == Verdict::Extra && finding.kind.is_empty();
        let differs = finding.verdict != Verdict::CannotTell && !is_extra_rule;
        if differs && !self.differing.contains(path) {
            self.differing.insert(path.to_owned());
        }
        let places = self.places.entry(finding).or_default();
        places.push((path.to_owned(), proxy_name.to_owned()));
    }

    pub(super) fn finish(mut self, other_gateways: BTreeSet<String>) -> Report {
        self.summary.differing = self.differing.len();
        let groups: Vec<Group> = self
            .places
            .into_iter()
            .map(|(finding, places)| Group { finding, places })
            .collect();
        Report {
            summary: self.summary,
            groups,
            other_gateways: other_gateways.into_iter().collect(),
        }
    }
}

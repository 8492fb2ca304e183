//! Where the fields of policies are in Envoy's configuration.

use super::convert::Convert;
use super::envoy_gateway;

/// A field of a policy, and its place in Envoy's configuration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    /// The field, as a dotted path from the root of the policy's rules.
    pub(super) field: &'static str,
    /// Which part of Envoy's configuration has the field.
    pub(super) part: ConfigPart,
    /// The path of the field there, in snake case; numbers for items of lists.
    pub(super) at: &'static [&'static str],
    /// How values are compared.
    pub(super) convert: Convert,
    /// What the proxy may have if the policy does not set the field.
    pub(super) unset: Unset,
    /// What a value that only the proxy has may come from.
    pub(super) hint: &'static str,
    /// What is not compared although the field is; empty if everything is.
    pub(super) partly: &'static str,
}

/// A part of Envoy's configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConfigPart {
    /// The routes of a rule.
    Route,
    /// The clusters that these routes forward to.
    Cluster,
    /// The HTTP connection managers of a listener.
    Manager,
    /// The Envoy listeners of these managers.
    Listener,
}

/// What the proxy may have if the policy does not set a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unset {
    /// Nothing, or one of these values (as JSON): defaults of the controller or of the CRD.
    Nothing(&'static [&'static str]),
    /// Anything: the controller derives the value from other fields.
    Anything,
}

impl Row {
    /// A field of which the proxy has nothing if the policy does not set it.
    pub(super) const fn new(
        field: &'static str,
        part: ConfigPart,
        at: &'static [&'static str],
        convert: Convert,
    ) -> Self {
        Self {
            field,
            part,
            at,
            convert,
            unset: Unset::Nothing(&[]),
            hint: "",
            partly: "",
        }
    }

    /// Sets what else the proxy may have if the policy does not set the field.
    pub(super) const fn or(mut self, defaults: &'static [&'static str]) -> Self {
        self.unset = Unset::Nothing(defaults);
        self
    }

    /// The proxy may have anything if the policy does not set the field.
    pub(super) const fn or_anything(mut self) -> Self {
        self.unset = Unset::Anything;
        self
    }

    /// Sets what a difference may come from.
    pub(super) const fn hint(mut self, hint: &'static str) -> Self {
        self.hint = hint;
        self
    }

    /// Sets what is not compared.
    pub(super) const fn partly(mut self, partly: &'static str) -> Self {
        self.partly = partly;
        self
    }
}

/// A policy kind and its rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct KindRows {
    /// The group of the kind.
    pub(super) group: &'static str,
    /// The kind.
    pub(super) kind: &'static str,
    /// Whether the kind is compared at listeners, and not at rules.
    pub(super) at_listener: bool,
    /// Fields that only select one of others, which have rows.
    pub(super) implied: &'static [&'static str],
    /// The rows; a block comes before its fields.
    pub(super) rows: &'static [Row],
}

/// The policy kinds that can be compared.
pub(super) const KINDS: &[KindRows] = envoy_gateway::KINDS;

/// All rows.
pub(super) fn all_rows() -> impl Iterator<Item = &'static Row> {
    KINDS.iter().flat_map(|kind| kind.rows)
}

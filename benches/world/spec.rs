//! The five policy kinds: their profiles and specs.

use super::{Rng, Shape};
use std::fmt::Write as _;

/// The policy kinds, all of the group `bench.example`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Patch granularity, in blocks.
    Retry,
    /// Rule granularity, in blocks.
    Auth,
    /// Field granularity, in blocks.
    Timeout,
    /// Atomic granularity, in blocks.
    Cors,
    /// Bare rules: FieldDefaults, or Direct.
    Limit,
}

/// The blocks of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blocks {
    /// No blocks: the rules are fields of the spec.
    Bare,
    /// `defaults`.
    Defaults,
    /// `overrides`.
    Overrides,
    /// `defaults` and `overrides`, of about equal size.
    Both,
}

/// Minimum and maximum size of a unit in bytes; the last unit of a block fills the remaining bytes.
const UNIT: (usize, usize) = (96, 208);

/// Number of names of units, which are unique in a block: few enough that the policies of a path
/// overlap, and enough that they also have different units.
const NAMES: usize = 48;

/// Minimum size in bytes of Auth rules in both rule maps.
const TWO_MAPS: usize = 640;

impl Kind {
    /// All kinds, in the order of their policies.
    pub const ALL: [Kind; 5] = [
        Kind::Retry,
        Kind::Auth,
        Kind::Timeout,
        Kind::Cors,
        Kind::Limit,
    ];

    /// Returns the Kubernetes kind.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Retry => "Retry",
            Kind::Auth => "Auth",
            Kind::Timeout => "Timeout",
            Kind::Cors => "Cors",
            Kind::Limit => "Limit",
        }
    }

    /// Returns the kind in lower case, the prefix of the names of its policies.
    pub fn stem(self) -> &'static str {
        match self {
            Kind::Retry => "retry",
            Kind::Auth => "auth",
            Kind::Timeout => "timeout",
            Kind::Cors => "cors",
            Kind::Limit => "limit",
        }
    }

    /// Returns the resource name, the prefix of the name of the profile.
    pub fn plural(self) -> &'static str {
        match self {
            Kind::Retry => "retries",
            Kind::Auth => "auths",
            Kind::Timeout => "timeouts",
            Kind::Cors => "cors",
            Kind::Limit => "limits",
        }
    }

    /// Reports whether the kind is Direct in a world of this shape.
    pub fn is_direct(self, shape: &Shape) -> bool {
        self == Kind::Limit && shape.direct
    }

    /// Returns the PolicyProfile of the kind, as a YAML document without `---`.
    pub fn profile(self, shape: &Shape) -> String {
        let name = self.name();
        let plural = self.plural();
        let meaning = match self {
            Kind::Retry => IN_BLOCKS.replace("{granularity}", "Patch"),
            Kind::Auth => IN_BLOCKS.replace("{granularity}", "Rule") + RULE_MAPS,
            Kind::Timeout => IN_BLOCKS.replace("{granularity}", "Field"),
            Kind::Cors => IN_BLOCKS.replace("{granularity}", "Atomic"),
            Kind::Limit if shape.direct => BARE_DIRECT.into(),
            Kind::Limit => BARE.into(),
        };
        format!(
            "apiVersion: entail.dev/v1alpha1\n\
             kind: PolicyProfile\n\
             metadata: {{name: {plural}.bench.example}}\n\
             spec:\n  policy: {{group: bench.example, kind: {name}}}\n{TARGETS}{meaning}"
        )
    }
}

const TARGETS: &str = r#"  targets:
  - {group: "", kind: Namespace, sections: false}
  - {group: gateway.networking.k8s.io, kind: Gateway, sections: true}
  - {group: gateway.networking.k8s.io, kind: HTTPRoute, sections: true}
  - {group: "", kind: Service, sections: true}
"#;

const IN_BLOCKS: &str = "  class: Inherited
  effectiveTarget: Every
  rules: {path: spec, defaults: [defaults], overrides: [overrides], bothBlocks: true}
  strategies: [{granularity}Defaults, {granularity}Overrides]
  sameTarget: Established
";

const RULE_MAPS: &str = "  ruleMaps: [rules.authentication, rules.authorization]\n";

const BARE: &str = "  class: Inherited
  effectiveTarget: Every
  rules: {path: spec, defaults: [], overrides: []}
  strategies: [FieldDefaults]
  sameTarget: Established
";

const BARE_DIRECT: &str = "  class: Direct
  rules: {path: spec, defaults: [], overrides: []}
  strategies: [None]
  sameTarget: RejectNewer
";

/// Writes a spec of exactly `bytes` bytes (at least 512); `reference` is its targetRef.
pub(super) fn text(
    kind: Kind,
    reference: &str,
    blocks: Blocks,
    bytes: usize,
    rng: &mut Rng,
) -> String {
    let mut out = String::with_capacity(bytes);
    let _ = write!(out, r#"{{"targetRefs":[{reference}],"#);
    let left = bytes - out.len() - 1;
    match blocks {
        Blocks::Bare => rules(&mut out, kind, left, rng),
        Blocks::Defaults => block(&mut out, "defaults", kind, left, rng),
        Blocks::Overrides => block(&mut out, "overrides", kind, left, rng),
        Blocks::Both => {
            block(&mut out, "defaults", kind, left / 2, rng);
            out.push(',');
            block(&mut out, "overrides", kind, left - left / 2 - 1, rng);
        }
    }
    out.push('}');
    out
}

/// Appends a block of exactly `bytes` bytes, including its name.
fn block(out: &mut String, name: &str, kind: Kind, bytes: usize, rng: &mut Rng) {
    wrapped(out, &format!(r#""{name}":{{"#), "}", bytes, |out, left| {
        rules(out, kind, left, rng)
    });
}

/// Appends rules of exactly `bytes` bytes, without braces.
fn rules(out: &mut String, kind: Kind, bytes: usize, rng: &mut Rng) {
    if kind != Kind::Auth {
        return units(out, kind, bytes, rng);
    }
    wrapped(out, r#""rules":{"#, "}", bytes, |out, left| {
        let second = if left < TWO_MAPS { 0 } else { left / 2 };
        let first = left - second - usize::from(second > 0);
        rule_map(out, "authentication", first, rng);
        if second > 0 {
            out.push(',');
            rule_map(out, "authorization", second, rng);
        }
    });
}

/// Appends a rule map of exactly `bytes` bytes, including its name.
fn rule_map(out: &mut String, name: &str, bytes: usize, rng: &mut Rng) {
    let open = format!(r#""{name}":{{"#);
    wrapped(out, &open, "}", bytes, |out, left| {
        units(out, Kind::Auth, left, rng)
    });
}

/// Appends `open`, the output of `inner` for the remaining bytes, and `close`.
fn wrapped(
    out: &mut String,
    open: &str,
    close: &str,
    bytes: usize,
    inner: impl FnOnce(&mut String, usize),
) {
    out.push_str(open);
    inner(out, bytes - open.len() - close.len());
    out.push_str(close);
}

/// Appends units with different names, exactly `bytes` bytes including commas.
fn units(out: &mut String, kind: Kind, bytes: usize, rng: &mut Rng) {
    let mut names: Vec<usize> = (0..NAMES).collect();
    rng.shuffle(&mut names);
    let end = out.len() + bytes;
    for (used, name) in names.into_iter().enumerate() {
        let left = end - out.len();
        if left < 2 * UNIT.1 || used + 1 == NAMES {
            return unit(out, kind, name, left, rng);
        }
        unit(out, kind, name, rng.between(UNIT.0, UNIT.1), rng);
        out.push(',');
    }
}

/// Appends one unit of exactly `bytes` bytes: scalars, a list and an object, so that each granularity
/// treats it differently.
fn unit(out: &mut String, kind: Kind, name: usize, bytes: usize, rng: &mut Rng) {
    let end = out.len() + bytes;
    let (stem, weight, code) = (kind.stem(), rng.below(1000), rng.between(500, 599));
    let mode = ["off", "soft", "hard"][rng.below(3)];
    let _ = write!(
        out,
        r#""{stem}-{name:02}":{{"weight":{weight},"codes":[429,{code}],"on":{{"mode":"{mode}"}},"text":""#
    );
    while out.len() + 2 < end {
        out.push(char::from(b'a' + rng.below(26) as u8));
    }
    out.push_str(r#""}"#);
}

//! The paths of a rule that is known by its route, as data planes know rules.

use crate::snapshot::Snapshot;
use entail_core::model::PathName;
use entail_core::store::ROUTE_KINDS;

/// Gateways that are looked through for a rule of which the Gateway is not known.
const MAX_GATEWAYS: usize = 16;

/// A rule, as a data plane knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleRef {
    /// The route's kind, in whatever case; HTTPRoute or GRPCRoute if it is not known.
    pub kind: Option<String>,
    /// The route's namespace.
    pub namespace: String,
    /// The route's name.
    pub name: String,
    /// The rule; the only one if it is not known.
    pub rule: Option<RuleName>,
    /// Namespace and name of the Gateway, if it is known.
    pub gateway: Option<(String, String)>,
    /// The name of the listener, if it is known.
    pub listener: Option<String>,
}

/// How a rule is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleName {
    /// By its name.
    Name(String),
    /// By its index.
    Index(u32),
}

/// The paths of a rule, sorted as listeners stand; none if there are more Gateways than are looked
/// through and none is known.
pub fn rule_paths(snapshot: &Snapshot, rule: &RuleRef) -> Option<Vec<String>> {
    let gateway = rule.gateway.as_ref();
    let gateway = gateway.map(|(namespace, name)| (&**namespace, &**name));
    let listeners = snapshot.listener_paths(gateway, MAX_GATEWAYS)?;
    let is_meant = |path: &String| {
        let listener = rule.listener.as_ref();
        listener.is_none_or(|name| path.ends_with(&format!("/listeners/{name}")))
    };
    let kinds = ROUTE_KINDS.iter().map(|row| row.kind);
    let kinds: Vec<&str> = kinds
        .filter(|kind| match &rule.kind {
            Some(told) => told.eq_ignore_ascii_case(kind),
            None => matches!(*kind, "HTTPRoute" | "GRPCRoute"),
        })
        .collect();
    let mut found = Vec::new();
    for listener in listeners.iter().filter(|path| is_meant(path)) {
        for kind in &kinds {
            let RuleRef {
                namespace, name, ..
            } = rule;
            let rules = format!("{listener}/routes/{kind}/{namespace}/{name}/rules/");
            found.extend(path_of(snapshot, &rules, rule.rule.as_ref()));
        }
    }
    Some(found)
}

fn path_of(snapshot: &Snapshot, rules: &str, rule: Option<&RuleName>) -> Option<String> {
    let is_path = |path: &String| {
        let parsed = PathName::parse(path);
        parsed.is_ok_and(|path| snapshot.look_up(&path).is_some())
    };
    let path = match rule {
        Some(RuleName::Name(name)) => format!("{rules}{name}"),
        Some(RuleName::Index(index)) => format!("{rules}#{index}"),
        None if is_path(&format!("{rules}#1")) => return None,
        None => format!("{rules}#0"),
    };
    is_path(&path).then_some(path)
}

//! Finds the paths of a route rule from the names that a data plane has for it.

use crate::snapshot::Snapshot;
use entail_core::model::PathName;
use entail_core::store::ROUTE_KINDS;

/// Maximum number of Gateways that are searched for a rule without a Gateway name.
const MAX_GATEWAYS: usize = 16;

/// The names of a route rule that a data plane has. Fields without a name are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleRef {
    /// The kind of the route, case-insensitive; `None` for HTTPRoute or GRPCRoute.
    pub kind: Option<String>,
    /// The namespace of the route.
    pub namespace: String,
    /// The name of the route.
    pub name: String,
    /// The rule; `None` for the only rule of the route.
    pub rule: Option<RuleName>,
    /// Namespace and name of the Gateway.
    pub gateway: Option<(String, String)>,
    /// The name of the listener.
    pub listener: Option<String>,
}

/// The name or the index of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleName {
    /// The name.
    Name(String),
    /// The index, from 0.
    Index(u32),
}

/// Returns the paths of a rule, in the order of the listeners. Returns `None` if the Gateway is not
/// named and there are too many Gateways to search.
pub fn rule_paths(snapshot: &Snapshot, rule: &RuleRef) -> Option<Vec<String>> {
    let gateway = rule.gateway.as_ref();
    let gateway = gateway.map(|(namespace, name)| (&**namespace, &**name));
    let listeners = snapshot.listener_paths(gateway, MAX_GATEWAYS)?;
    let is_selected = |path: &String| {
        let listener = rule.listener.as_ref();
        listener.is_none_or(|name| path.ends_with(&format!("/listeners/{name}")))
    };
    let kinds = ROUTE_KINDS.iter().map(|row| row.kind);
    let kinds: Vec<&str> = kinds
        .filter(|kind| match &rule.kind {
            Some(name) => name.eq_ignore_ascii_case(kind),
            None => matches!(*kind, "HTTPRoute" | "GRPCRoute"),
        })
        .collect();
    let mut paths = Vec::new();
    for listener in listeners.iter().filter(|path| is_selected(path)) {
        for kind in &kinds {
            let RuleRef {
                namespace, name, ..
            } = rule;
            let rules = format!("{listener}/routes/{kind}/{namespace}/{name}/rules/");
            paths.extend(path_of(snapshot, &rules, rule.rule.as_ref()));
        }
    }
    Some(paths)
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

//! The levels at which each policy kind is printed: its effective levels (specification 2.3).
//!
//! A kind that takes effect on route rules is thus not repeated for every backend below them.

use crate::api::v1;
use entail_core::model::{BackendStep, Level, PathName, Root, RuleStep, TrafficPath};

/// The effective levels of policy kinds.
#[derive(Debug, Default)]
pub(super) struct EffectiveLevels {
    kinds: Vec<KindLevels>,
}

#[derive(Debug)]
struct KindLevels {
    kind: String,
    levels: Vec<Level>,
    has_policies: bool,
}

impl EffectiveLevels {
    /// Reads the levels of the `selected` kinds; of all kinds if `selected` is empty.
    pub(super) fn read(kinds: &[v1::KindStatus], selected: &[String]) -> Self {
        let kinds = kinds
            .iter()
            .filter(|kind| selected.is_empty() || selected.contains(&kind.kind))
            .map(|kind| KindLevels {
                kind: kind.kind.clone(),
                levels: kind
                    .scope_levels
                    .iter()
                    .filter_map(|name| Level::parse(name))
                    .collect(),
                has_policies: kind.policies > 0,
            })
            .collect();
        Self { kinds }
    }

    /// The names of the levels at which any kind with policies is printed. Empty means all levels.
    pub(super) fn names(&self) -> Vec<String> {
        let has_policies = |kind: &&KindLevels| kind.has_policies;
        let in_use = |level: &&Level| {
            let mut kinds = self.kinds.iter().filter(has_policies);
            kinds.any(|kind| kind.levels.contains(*level))
        };
        let levels = Level::ALL.iter().filter(in_use);
        levels.map(|level| level.as_str().to_owned()).collect()
    }

    /// Whether a policy is printed at a path, one of several through an object. If all levels of its
    /// kind are above the object, it is printed at the path that ends at the object.
    pub(super) fn is_shown(&self, policy: &v1::EffectivePolicy, path: &PathEnd) -> bool {
        let name = kind_name(policy);
        let Some(kind) = self.kinds.iter().find(|kind| kind.kind == name) else {
            // Its levels are unknown. Repeating it is better than omitting it.
            return true;
        };
        kind.levels.contains(&path.level)
            || path.at_object && kind.levels.iter().all(|level| *level < path.level)
    }

    /// Whether any kind can be printed at a path.
    pub(super) fn any_shown(&self, path: &PathEnd) -> bool {
        self.kinds.iter().any(|kind| {
            kind.has_policies
                && (kind.levels.contains(&path.level)
                    || path.at_object && kind.levels.iter().all(|level| *level < path.level))
        })
    }
}

/// The end of a path: its level, and whether it is the queried object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PathEnd {
    /// The level of the last step.
    pub(super) level: Level,
    /// Whether the last step is the queried object.
    pub(super) at_object: bool,
}

impl PathEnd {
    /// Parses a path name; `None` if it is malformed. `object` is the name of the queried object, or
    /// empty.
    pub(super) fn read(path: &str, object: &str) -> Option<Self> {
        let path = PathName::parse(path).ok()?;
        Some(Self {
            level: path.level(),
            at_object: ends_at(&path, object),
        })
    }
}

/// `Kind.group`, or `Kind` of the core group.
pub(super) fn kind_name(policy: &v1::EffectivePolicy) -> String {
    if policy.group.is_empty() {
        policy.kind.clone()
    } else {
        format!("{}.{}", policy.kind, policy.group)
    }
}

/// Whether a path ends at an object, `kind/namespace/name[#section]`. Kinds are compared without
/// group and case.
fn ends_at(path: &PathName<'_>, object: &str) -> bool {
    let (object, section) = match object.split_once('#') {
        Some((object, section)) => (object, Some(section)),
        None => (object, None),
    };
    let same = |kind: &str, namespace: &str, name: &str, path_section: Option<&str>| {
        let mut parts = object.split('/');
        let base = |kind: &'_ str| kind.split('.').next().unwrap_or_default().to_lowercase();
        let is_kind = parts.next().map(base) == Some(base(kind));
        let is_namespace = namespace.is_empty() || parts.next() == Some(namespace);
        is_kind
            && is_namespace
            && parts.next() == Some(name)
            && parts.next().is_none()
            && path_section == section
    };
    match path {
        PathName::GatewayClass(name) => same("GatewayClass", "", name, None),
        PathName::Namespace(name) => same("Namespace", "", name, None),
        PathName::Traffic(traffic) => traffic_path_ends_at(traffic, same),
    }
}

fn traffic_path_ends_at(
    traffic: &TrafficPath<'_>,
    same: impl Fn(&str, &str, &str, Option<&str>) -> bool,
) -> bool {
    if let Some(BackendStep {
        kind,
        namespace,
        name,
    }) = traffic.backend
    {
        let port = traffic.port.map(|port| port.to_string());
        return same(kind, namespace, name, port.as_deref());
    }
    if let Some(route) = traffic.route {
        let rule = traffic.rule.map(|rule| match rule {
            RuleStep::Index(index) => format!("#{index}"),
            RuleStep::Name(name) => name.to_owned(),
        });
        return same(route.kind, route.namespace, route.name, rule.as_deref());
    }
    if let Some(set) = traffic.listener_set {
        return same("ListenerSet", set.namespace, set.name, traffic.listener);
    }
    match traffic.root {
        Root::Gateway { namespace, name } => same("Gateway", namespace, name, traffic.listener),
        Root::Mesh {
            namespace,
            name,
            port,
            ..
        } => {
            let port = port.map(|port| port.to_string());
            same("Service", namespace, name, port.as_deref())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: &str = "gateways/p/g/listeners/http/routes/HTTPRoute/s/r/rules/#0";

    fn at(path: &str, object: &str) -> bool {
        PathEnd::read(path, object).unwrap().at_object
    }

    #[test]
    fn paths_end_at_objects_and_their_sections() {
        assert!(at("gatewayclasses/x", "gatewayclass/x"));
        assert!(at("namespaces/x", "Namespace/x"));
        assert!(at("gateways/p/g", "gateway/p/g"));
        assert!(!at("gateways/p/g/listeners/http", "gateway/p/g"));
        assert!(at("gateways/p/g/listeners/http", "gateway/p/g#http"));
        assert!(at(RULE, "httproute.gateway.networking.k8s.io/s/r##0"));
        assert!(!at(RULE, "httproute/s/r"));
        assert!(!at(RULE, "httproute/x/r##0"));
        let backend = format!("{RULE}/backends/Service/s/b");
        assert!(at(&backend, "service/s/b") && !at(&backend, ""));
        assert!(at(&format!("{backend}/ports/80"), "service/s/b#80"));
        assert!(at("mesh/*/services/s/b/ports/80", "service/s/b#80"));
        assert_eq!(
            PathEnd::read("mesh/*/services/s/b", "").unwrap().level,
            Level::Gateway
        );
        assert_eq!(
            PathEnd::read("mesh/*/services/s/b/ports/1", "")
                .unwrap()
                .level,
            Level::Listener
        );
        assert_eq!(PathEnd::read("nothing", ""), None);
    }

    #[test]
    fn kinds_are_printed_at_their_effective_levels() {
        let status = |kind: &str, level: &str, policies| v1::KindStatus {
            kind: kind.to_owned(),
            scope_levels: vec![level.to_owned()],
            policies,
            ..v1::KindStatus::default()
        };
        let kinds = [status("A.x", "RouteRule", 1), status("B.x", "Backend", 0)];
        let levels = EffectiveLevels::read(&kinds, &[]);
        assert_eq!(levels.names(), ["RouteRule"]);
        let policy = |kind: &str| v1::EffectivePolicy {
            group: "x".to_owned(),
            kind: kind.to_owned(),
            ..v1::EffectivePolicy::default()
        };
        let rule = PathEnd::read(RULE, "").unwrap();
        assert!(levels.is_shown(&policy("A"), &rule) && !levels.is_shown(&policy("B"), &rule));
        let backend = format!("{RULE}/backends/Service/s/b");
        let (all, object) = (
            PathEnd::read(&backend, ""),
            PathEnd::read(&backend, "service/s/b"),
        );
        assert!(!levels.is_shown(&policy("A"), &all.unwrap()));
        assert!(levels.is_shown(&policy("A"), &object.unwrap()));
        assert!(levels.any_shown(&object.unwrap()) && !levels.any_shown(&all.unwrap()));
    }
}

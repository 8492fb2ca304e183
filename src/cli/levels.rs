//! Which kinds are told at which paths: each at its effective levels (specification 2.3), so that a
//! kind that acts on rules is not told again for every backend.

use crate::api::v1;
use entail_core::model::{BackendStep, Level, PathName, Root, RuleStep, TrafficPath};

/// The effective levels of the kinds.
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
    /// The levels of the kinds that are wanted.
    pub(super) fn read(kinds: &[v1::KindStatus], wanted: &[String]) -> Self {
        let kinds = kinds
            .iter()
            .filter(|kind| wanted.is_empty() || wanted.contains(&kind.kind))
            .map(|kind| KindLevels {
                kind: kind.kind.clone(),
                levels: kind
                    .scope_levels
                    .iter()
                    .filter_map(|word| level(word))
                    .collect(),
                has_policies: kind.policies > 0,
            })
            .collect();
        Self { kinds }
    }

    /// The words of the levels at which some kind that has policies is told; none means all.
    pub(super) fn names(&self) -> Vec<String> {
        let used = |kind: &&KindLevels| kind.has_policies;
        let in_use = |level: &&Level| {
            let mut kinds = self.kinds.iter().filter(used);
            kinds.any(|kind| kind.levels.contains(*level))
        };
        let levels = Level::ALL.iter().filter(in_use);
        levels.map(|level| level.as_str().to_owned()).collect()
    }

    /// Whether a kind is told at a path, of all that go through an object. Where the kind's levels
    /// are all above the object, the path that ends at the object answers for it.
    pub(super) fn is_shown(&self, policy: &v1::EffectivePolicy, path: &PathEnd) -> bool {
        let name = kind_name(policy);
        let Some(kind) = self.kinds.iter().find(|kind| kind.kind == name) else {
            // Nothing is known of its levels: better told too often.
            return true;
        };
        kind.levels.contains(&path.level)
            || path.at_object && kind.levels.iter().all(|level| *level < path.level)
    }

    /// Whether anything can be told at a path.
    pub(super) fn any_shown(&self, path: &PathEnd) -> bool {
        self.kinds.iter().any(|kind| {
            kind.has_policies
                && (kind.levels.contains(&path.level)
                    || path.at_object && kind.levels.iter().all(|level| *level < path.level))
        })
    }
}

/// Where a path ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PathEnd {
    /// At which level.
    pub(super) level: Level,
    /// At the object that was asked for.
    pub(super) at_object: bool,
}

impl PathEnd {
    /// Reads where a path ends; `None` for what is no path. `object` is empty, or the name of an
    /// object.
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

fn level(word: &str) -> Option<Level> {
    Level::parse(word)
}

/// Whether a path ends at an object, `kind/namespace/name[#section]`. Kinds are compared without
/// group and case, as people write them.
fn ends_at(path: &PathName<'_>, object: &str) -> bool {
    let (object, section) = match object.split_once('#') {
        Some((object, section)) => (object, Some(section)),
        None => (object, None),
    };
    let same = |kind: &str, namespace: &str, name: &str, here: Option<&str>| {
        let mut parts = object.split('/');
        let base = |kind: &'_ str| kind.split('.').next().unwrap_or_default().to_lowercase();
        let is_kind = parts.next().map(base) == Some(base(kind));
        let is_namespace = namespace.is_empty() || parts.next() == Some(namespace);
        is_kind
            && is_namespace
            && parts.next() == Some(name)
            && parts.next().is_none()
            && here == section
    };
    match path {
        PathName::GatewayClass(name) => same("GatewayClass", "", name, None),
        PathName::Namespace(name) => same("Namespace", "", name, None),
        PathName::Traffic(walk) => walk_ends_at(walk, same),
    }
}

fn walk_ends_at(
    walk: &TrafficPath<'_>,
    same: impl Fn(&str, &str, &str, Option<&str>) -> bool,
) -> bool {
    if let Some(BackendStep {
        kind,
        namespace,
        name,
    }) = walk.backend
    {
        let port = walk.port.map(|port| port.to_string());
        return same(kind, namespace, name, port.as_deref());
    }
    if let Some(route) = walk.route {
        let rule = walk.rule.map(|rule| match rule {
            RuleStep::Index(index) => format!("#{index}"),
            RuleStep::Name(name) => name.to_owned(),
        });
        return same(route.kind, route.namespace, route.name, rule.as_deref());
    }
    if let Some(set) = walk.listener_set {
        return same("ListenerSet", set.namespace, set.name, walk.listener);
    }
    match walk.root {
        Root::Gateway { namespace, name } => same("Gateway", namespace, name, walk.listener),
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
    fn kinds_are_told_at_their_levels() {
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

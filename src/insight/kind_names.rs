//! Kinds by the names that kubectl takes: the kind, its plural, singular and short names, with or without a group.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use hashbrown::HashSet;

use super::Visibility;
use entail_core::effective::World;
use entail_core::model::{GroupKind, groups, nearest};
use entail_core::store::required_kinds;
use serde_json::Value;

/// The short names of kinds whose definitions are often not in the input, by group and kind.
const SHORT_NAMES: [(&str, &str, &str); 12] = [
    (groups::CORE, "Service", "svc"),
    (groups::CORE, "Namespace", "ns"),
    (groups::CORE, "ConfigMap", "cm"),
    (groups::CORE, "ServiceAccount", "sa"),
    (groups::GATEWAY, "Gateway", "gtw"),
    (groups::GATEWAY, "GatewayClass", "gc"),
    (groups::GATEWAY, "ListenerSet", "lset"),
    (groups::GATEWAY, "ReferenceGrant", "refgrant"),
    (groups::GATEWAY, "BackendTLSPolicy", "btlspolicy"),
    (groups::APIEXTENSIONS, "CustomResourceDefinition", "crd"),
    (groups::ENTAIL, "EffectivePolicyAssertion", "epa"),
    (groups::ENTAIL, "ClusterEffectivePolicyAssertion", "cepa"),
];

/// Returns the kinds that a name means. Names are compared without case; a group may follow a dot, after a version or not.
/// Those with objects come first for callers that see everything; for others those that are known without objects, so that
/// objects that they may not see change nothing.
pub(super) fn kinds_named(
    text: &str,
    world: &World,
    visibility: &dyn Visibility,
) -> Vec<GroupKind> {
    let (name, group) = parts(text);
    let is_meant =
        |kind: &GroupKind| group.is_none_or(|group| is_group(kind, group)) && is_named(kind, &name);
    let mut found: Vec<GroupKind> = known_kinds(world).filter(is_meant).collect();
    let with_objects: Vec<GroupKind> = with_objects(world).filter(is_meant).collect();
    match visibility.is_unrestricted() {
        true => drop(found.splice(0..0, with_objects)),
        false => found.extend(with_objects),
    }
    // XListenerSet is another name of ListenerSet.
    let mut found: Vec<GroupKind> = found.into_iter().map(GroupKind::canonical).collect();
    let mut seen: HashSet<GroupKind> = HashSet::new();
    found.retain(|kind| seen.insert(kind.clone()));
    if found.is_empty() {
        found = defined_as(&name, world);
        found.retain(|kind| group.is_none_or(|group| is_group(kind, group)));
    }
    found
}

/// Whether a name means a kind that has some other names besides the usual ones.
pub(crate) fn is_name_of(text: &str, kind: &GroupKind, others: &[String]) -> bool {
    let (name, group) = parts(text);
    let is_other = || others.contains(&name);
    group.is_none_or(|group| is_group(kind, group)) && (is_named(kind, &name) || is_other())
}

/// The name in lower case, and the group, if there is one.
fn parts(text: &str) -> (String, Option<&str>) {
    let (name, group) = match text.split_once('.') {
        Some((name, group)) => (name, Some(group)),
        None => (text, None),
    };
    (name.to_ascii_lowercase(), group)
}

/// Whether a name means a kind. Kinds that only objects tell of count for callers that see everything.
pub(super) fn is_kind(text: &str, world: &World, visibility: &dyn Visibility) -> bool {
    let mut kinds = kinds_named(text, world, visibility).into_iter();
    match visibility.is_unrestricted() {
        true => kinds.next().is_some(),
        false => kinds.any(|kind| {
            let mut known = known_kinds(world);
            known.any(|known| known == kind && visibility.includes_kind(&kind))
        }),
    }
}

/// Returns the name of a kind that a misspelt one probably means. `visibility` bounds the kinds that it may name.
pub(super) fn nearest_kind(
    text: &str,
    world: &World,
    visibility: &dyn Visibility,
) -> Option<String> {
    let name = text.split(['.', ':']).next().unwrap_or_default();
    let known = known_kinds(world).filter(|kind| visibility.includes_kind(kind));
    let mut kinds: Vec<GroupKind> = known.collect();
    if visibility.is_unrestricted() {
        kinds.extend(with_objects(world));
    }
    let names = kinds.iter().map(|kind| kind.kind.to_ascii_lowercase());
    nearest(&name.to_ascii_lowercase(), names.collect())
}

/// The kinds with objects.
fn with_objects(world: &World) -> impl Iterator<Item = GroupKind> {
    world.store().kinds().cloned()
}

/// The kinds that are known without any object: of the topology, of profiles, and of assertions.
fn known_kinds(world: &World) -> impl Iterator<Item = GroupKind> {
    let profiles = world.kinds().iter();
    let policies = profiles.map(|kind| kind.profile().policy.resource());
    required_kinds()
        .chain(policies)
        .chain(GroupKind::assertions())
}

/// Whether `text` is the group of a kind, perhaps after a version as in `v1.gateway.networking.k8s.io`.
fn is_group(kind: &GroupKind, text: &str) -> bool {
    let rest = text.split_once('.');
    let rest = rest.filter(|(version, _)| {
        let mut characters = version.chars();
        characters.next() == Some('v') && characters.next().is_some_and(|c| c.is_ascii_digit())
    });
    let same = |group: &str| kind.group.eq_ignore_ascii_case(group);
    same(text) || rest.is_some_and(|(_, group)| same(group))
}

/// Whether `name`, in lower case, is a kind, its usual plural, or its short name.
fn is_named(kind: &GroupKind, name: &str) -> bool {
    let singular = kind.kind.to_ascii_lowercase();
    let short = SHORT_NAMES.iter();
    let mut short = short.filter(|(group, other, _)| kind.is(group, other));
    name == singular || name == plural(&singular) || short.any(|(.., short)| *short == name)
}

/// The usual plural of a kind without a definition.
fn plural(singular: &str) -> String {
    let stem = singular.strip_suffix('y');
    match stem.filter(|stem| !stem.ends_with(['a', 'e', 'i', 'o', 'u'])) {
        Some(stem) => format!("{stem}ies"),
        None if singular.ends_with('s') => format!("{singular}es"),
        None => format!("{singular}s"),
    }
}

/// The plural of a kind: that of its CustomResourceDefinition, or the usual one.
pub(super) fn plural_in(world: &World, kind: &GroupKind) -> String {
    let mut definitions = world.store().of_kind(crd()).map(|(_, entry)| &entry.object);
    let definition = definitions.find(|crd| crd.defined_kind().as_ref() == Some(kind));
    let defined = definition.and_then(|crd| crd.body.pointer("/spec/names/plural"));
    let defined = defined.and_then(|name| Some(name.as_str()?.to_owned()));
    defined.unwrap_or_else(|| plural(&kind.kind.to_ascii_lowercase()))
}

/// The kinds whose CustomResourceDefinitions list a name.
fn defined_as(name: &str, world: &World) -> Vec<GroupKind> {
    let definitions = definitions(world);
    let named = definitions.filter(|(_, names)| names.iter().any(|one| one == name));
    named.map(|(kind, _)| kind).collect()
}

/// The names of kinds that CustomResourceDefinitions list, by `Kind.group`.
pub(super) fn defined_names(world: &World) -> BTreeMap<String, Vec<String>> {
    let definitions = definitions(world);
    definitions
        .map(|(kind, names)| (kind.to_string(), names))
        .collect()
}

/// The kinds that CustomResourceDefinitions define, with their plural, singular and short names.
fn definitions(world: &World) -> impl Iterator<Item = (GroupKind, Vec<String>)> {
    let definitions = world.store().of_kind(crd());
    definitions.filter_map(|(_, entry)| {
        let kind = entry.object.defined_kind()?;
        let names = entry.object.body.pointer("/spec/names");
        let field = |name: &str| names.as_ref().and_then(|names| names.get(name));
        let one = ["plural", "singular"].into_iter().filter_map(field);
        let short = field("shortNames").and_then(Value::as_array);
        let all = one.chain(short.into_iter().flatten());
        let texts = all.filter_map(|value| Some(value.as_str()?.to_owned()));
        Some((kind, texts.collect()))
    })
}

fn crd() -> &'static GroupKind {
    static CRD: LazyLock<GroupKind> = LazyLock::new(GroupKind::crd);
    &CRD
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_the_names_of_kubectl() {
        let route = GroupKind::new(groups::GATEWAY, "HTTPRoute");
        assert!(is_named(&route, "httproute") && is_named(&route, "httproutes"));
        assert!(!is_named(&route, "httproutess") && !is_named(&route, "svc"));
        assert!(is_named(&GroupKind::service(), "svc"));
        let gateway = GroupKind::gateway();
        assert!(is_named(&gateway, "gtw") && is_named(&gateway, "gateways"));
        let class = GroupKind::new(groups::GATEWAY, "GatewayClass");
        assert!(is_named(&class, "gatewayclasses") && is_named(&class, "gc"));
        let policy = GroupKind::new("x.io", "RetryPolicy");
        assert!(is_named(&policy, "retrypolicies"));
        for group in ["x.io", "v1.x.io", "v1alpha1.x.io", "X.IO"] {
            assert!(is_group(&policy, group), "{group}");
        }
        assert!(!is_group(&policy, "io") && !is_group(&policy, "vx.x.io"));
    }
}

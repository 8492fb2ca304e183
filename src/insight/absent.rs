//! Why no path goes through an object: its kind is not known, it does not exist, or what keeps it off all paths.

use super::failure::shortened;
use super::kind_names::{is_kind, nearest_kind};
use super::subject::is_section;
use super::{Failure, FailureCode, Visibility};
use crate::snapshot::Snapshot;
use entail_core::effective::World;
use entail_core::model::{GroupKind, NodeKey, ObjectKey, PathErrorReason, groups, nearest};
use entail_core::store::{ParentRef, Projection, Route};

/// Maximum number of names that an error suggests.
const MAX_NAMES: usize = 3;

/// Returns the error of an object, or a section of it, that is on no path. What a caller may not see does not exist for it:
/// it learns why an object is on no path only if it sees everything, because the reasons tell of other objects.
pub(super) fn object_failure(
    snapshot: &Snapshot,
    text: &str,
    (key, section): (&ObjectKey, Option<&str>),
    visibility: &dyn Visibility,
) -> Failure {
    let world = snapshot.world();
    if let Some(failure) = absence(world, text, key, visibility) {
        return failure;
    }
    let shown = shortened(text);
    // Which ports of a Service are nodes depends on Routes, which the caller may not see.
    let is_certain = visibility.is_unrestricted() || *key.kind.kind != *"Service";
    if let Some(section) = section
        && is_certain
        && !has_section(world, key, section)
    {
        let message = format!(
            "`{key}` has no section `{}`{}",
            shortened(section),
            sections(world, key)
        );
        return not_found("SectionNotFound", message);
    }
    let why = match visibility.is_unrestricted() {
        true => why_off_paths(world, key),
        false => "no path goes through it".to_owned(),
    };
    not_found("NotOnAPath", format!("`{shown}` exists, but {why}"))
}

/// Returns the error of an object that does not exist, or whose kind is not known, to the caller.
pub(super) fn absence(
    world: &World,
    text: &str,
    key: &ObjectKey,
    visibility: &dyn Visibility,
) -> Option<Failure> {
    let shown = shortened(text);
    let kind = text.split(['/', ':']).next().unwrap_or_default();
    if world.store().get(key).is_some() && visibility.includes_object(key) {
        return None;
    }
    if !is_kind(kind, world, visibility) {
        let hint =
            nearest_kind(kind, world, visibility).map(|near| format!(": did you mean `{near}`?"));
        let hint = hint.unwrap_or_default();
        return Some(not_found(
            "KindNotFound",
            format!(
                "`{shown}`: no kind has the name `{}`{hint}",
                shortened(kind)
            ),
        ));
    }
    let near = near_names(world, key, visibility);
    let message = match is_named_by_routes(world, key) && visibility.is_unrestricted() {
        true => format!("`{shown}` does not exist, although Routes name it as a backend{near}"),
        false => format!("`{shown}` does not exist{near}"),
    };
    Some(not_found("ObjectNotFound", message))
}

fn not_found(reason: &str, message: String) -> Failure {
    Failure {
        code: FailureCode::NotFound,
        reason: reason.to_owned(),
        message,
        nearest: String::new(),
    }
}

/// The visible objects that a name which does not exist may mean: the same name elsewhere, or a similar one.
fn near_names(world: &World, key: &ObjectKey, visibility: &dyn Visibility) -> String {
    // Each object may be a question to the API server: of other namespaces none is asked.
    let is_all = visibility.is_unrestricted();
    let of_kind = world.store().of_kind(&key.kind);
    let of_kind = of_kind.filter(|((namespace, _), _)| is_all || **namespace == key.namespace);
    let mut of_kind: Vec<ObjectKey> = of_kind
        .map(|((namespace, name), _)| {
            ObjectKey::new(key.kind.clone(), namespace.clone(), name.clone())
        })
        .collect();
    visibility.prepare(&of_kind);
    of_kind.retain(|other| visibility.includes_object(other));
    let same_name = of_kind.iter().filter(|other| other.name == key.name);
    let mut names: Vec<String> = same_name.map(query_name).collect();
    if names.is_empty() {
        let is_near =
            |other: &&ObjectKey| key.namespace.is_empty() || other.namespace == key.namespace;
        let siblings = of_kind.iter().filter(is_near);
        let near = nearest(
            &key.name,
            siblings.map(|other| other.name.to_string()).collect(),
        );
        let named = |other: &&ObjectKey| is_near(other) && near.as_deref() == Some(&*other.name);
        names = of_kind.iter().filter(named).map(query_name).collect();
    }
    if names.is_empty() {
        let namespaces = of_kind.iter().map(|other| other.namespace.to_string());
        let near = nearest(&key.namespace, namespaces.collect());
        let is_near = |other: &&ObjectKey| {
            near.as_deref() == Some(&*other.namespace)
                && nearest(&key.name, vec![other.name.to_string()]).is_some()
        };
        names = of_kind.iter().filter(is_near).map(query_name).collect();
    }
    suggestion(&names)
}

/// `kind/namespace/name`, as commands take it.
pub(super) fn query_name(key: &ObjectKey) -> String {
    format!(
        "{}/{}",
        key.kind.kind.to_ascii_lowercase(),
        key.qualified_name()
    )
}

fn suggestion(names: &[String]) -> String {
    let shown: Vec<String> = names
        .iter()
        .take(MAX_NAMES)
        .map(|name| format!("`{name}`"))
        .collect();
    match names.len().saturating_sub(MAX_NAMES) {
        _ if shown.is_empty() => String::new(),
        0 => format!(": did you mean {}?", shown.join(" or ")),
        more => format!(
            ": did you mean {} or one of {more} others?",
            shown.join(", ")
        ),
    }
}

/// Whether rules name the object as a backend.
fn is_named_by_routes(world: &World, key: &ObjectKey) -> bool {
    let is_route = world.store().route_kind(&key.kind).is_some();
    !is_route
        && world
            .topology()
            .node(&NodeKey::whole(key.clone()))
            .is_some()
}

fn has_section(world: &World, key: &ObjectKey, section: &str) -> bool {
    let topology = world.topology();
    let whole = topology.node(&NodeKey::whole(key.clone()));
    let mut sections = whole.into_iter().flat_map(|whole| topology.sections(whole));
    sections.any(|node| is_section(world, node, section))
        || ports(world, key).iter().any(|port| port == section)
}

/// The ports of a Service, by number, also those that no rule names.
fn ports(world: &World, key: &ObjectKey) -> Vec<String> {
    match world.store().get(key).map(|entry| &entry.projection) {
        Some(Projection::Service(ports)) => {
            ports.0.iter().map(|(_, port)| port.to_string()).collect()
        }
        _ => Vec::new(),
    }
}

/// The sections that an object has, for the error of another one.
fn sections(world: &World, key: &ObjectKey) -> String {
    let topology = world.topology();
    let whole = topology.node(&NodeKey::whole(key.clone()));
    let mut sections = whole.map_or_else(Vec::new, |whole| topology.sections(whole));
    // Not by the numbers of nodes, which depend on what came first.
    sections.sort_by_key(|node| topology.key(*node));
    let mut names: Vec<String> = sections
        .into_iter()
        .filter_map(|node| Some(format!("`{}`", topology.describe(node).split_once('#')?.1)))
        .collect();
    for port in ports(world, key)
        .into_iter()
        .map(|port| format!("`{port}`"))
    {
        if !names.contains(&port) {
            names.push(port);
        }
    }
    match names.as_slice() {
        [] => "; it has none".to_owned(),
        few if few.len() <= 8 => format!("; it has {}", few.join(", ")),
        many => format!("; it has {} of them", many.len()),
    }
}

/// What keeps an existing object off all paths.
fn why_off_paths(world: &World, key: &ObjectKey) -> String {
    let topology = world.topology();
    if topology.is_delegated(key) {
        return "rules delegate to it or to a Route that names it, and these are not followed (`entail lint` says why)"
            .to_owned();
    }
    if let Some(route) = world.store().route(key) {
        return why_not_attached(world, key, route);
    }
    let kinds = world.kinds().iter();
    let mut policies = kinds.map(|kind| &kind.profile().policy);
    if policies.any(|policy| policy.resource() == key.kind) {
        let name = query_name(key);
        return format!(
            "it is a policy, which paths do not go through: `entail status {name}` shows what it is attached to, `entail \
             reach {name}` what it affects"
        );
    }
    if key.kind.is(groups::GATEWAY, "ListenerSet") {
        return why_not_admitted(world, key);
    }
    let named_by = routes_that_name(world, key);
    if !named_by.is_empty() {
        return format!("no path leads to it: {}", named_by.join("; "));
    }
    match key.kind == GroupKind::service() {
        true => "no rule of a Route names it as a backend, and no Route as its parent".to_owned(),
        false => format!(
            "paths go through Gateways, listeners, Routes and backends, and no rule names this {} as a backend",
            key.kind.kind
        ),
    }
}

/// Why no parent takes a Route.
fn why_not_attached(world: &World, key: &ObjectKey, route: &Route) -> String {
    let refused = world.topology().rejected_parents(key).iter();
    let refused = refused.filter_map(|&(at, reason)| {
        let parent = route.parents.get(at)?;
        Some(format!(
            "parentRefs[{at}] ({}): {} ({reason})",
            parent_name(parent),
            of_parent(parent, reason)
        ))
    });
    let reasons: Vec<String> = refused.collect();
    match reasons.is_empty() {
        true => "it is attached to nothing: it has no parentRefs".to_owned(),
        false => format!("none of its parents takes it: {}", reasons.join("; ")),
    }
}

/// Why a parent that a Route names does not take it.
fn of_parent(parent: &ParentRef, reason: PathErrorReason) -> &'static str {
    match reason {
        PathErrorReason::NoMatchingParent => why_no_match(&parent.kind),
        other => other.explain(),
    }
}

/// Why a parent that is no Route does not match a parentRef that names it.
pub(super) fn why_no_match(parent: &GroupKind) -> &'static str {
    let mut listening = ["Gateway", "ListenerSet"].into_iter();
    if listening.any(|kind| parent.is(groups::GATEWAY, kind)) {
        return "it has no listener with this sectionName and port";
    }
    match parent.is(groups::CORE, "Service") {
        true => "it has no port with this sectionName and port",
        false => {
            "entail does not follow parents of this kind: paths below it, and what is in effect there, are not known"
        }
    }
}

fn parent_name(parent: &ParentRef) -> String {
    let ParentRef {
        kind,
        namespace,
        name,
        section,
        port,
    } = parent;
    let mut text = format!("{} {namespace}/{name}", kind.kind);
    if let Some(section) = section {
        text.push_str(&format!(", sectionName {section}"));
    }
    if let Some(port) = port {
        text.push_str(&format!(", port {port}"));
    }
    text
}

fn why_not_admitted(world: &World, key: &ObjectKey) -> String {
    let set = world.store().get(key).map(|entry| &entry.projection);
    let gateway = match set {
        Some(Projection::ListenerSet(set)) => set.gateway.clone(),
        _ => None,
    };
    let Some((namespace, name)) = gateway else {
        return "its parentRef names no Gateway".to_owned();
    };
    let gateway = ObjectKey::new(GroupKind::gateway(), namespace, name);
    let reason = match world.store().get(&gateway) {
        Some(_) => PathErrorReason::ListenerSetNotAllowed,
        None => PathErrorReason::GatewayNotFound,
    };
    format!(
        "its Gateway {} does not take it: {} ({reason})",
        gateway.qualified_name(),
        reason.explain()
    )
}

/// The first rules that name an object as a backend, each with why no path leads from it to the object.
fn routes_that_name(world: &World, key: &ObjectKey) -> Vec<String> {
    let store = world.store();
    let is_named = |route: &Route| {
        let backends = route.rules.iter().flat_map(|rule| &*rule.backends);
        let mut backends =
            backends.map(|backend| (&backend.kind, &backend.namespace, &backend.name));
        backends.any(|named| named == (&key.kind, &key.namespace, &key.name))
    };
    let naming = store.routes().filter(|(_, route)| is_named(route));
    let described = naming.map(|(of, route)| {
        let permitted =
            of.namespace == key.namespace || store.permits(&of.kind, &of.namespace, key);
        let rejected = world.topology().rejected_parents(&of);
        if !permitted {
            let reason = PathErrorReason::RefNotPermitted;
            return format!("{of} names it, but {} ({reason})", reason.explain());
        }
        match rejected.len() >= route.parents.len() {
            true => format!("{of} names it, and {}", why_not_attached(world, &of, route)),
            false => format!("{of} names it"),
        }
    });
    described.take(MAX_NAMES).collect()
}

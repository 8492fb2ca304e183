//! Parses the references of policies: `targetRef`, `targetRefs` and `targetSelectors` (specification
//! 3.1).

use serde_json::Value;

use super::policy::{Reference, ReferenceTarget, SelectorNamespaces};
use super::{Profile, TargetKinds};
use crate::model::{Encoded, GroupKind, LabelSelector, groups, shared_name};

/// The kinds of the Gateway API that policies can target.
pub(super) const TARGET_KINDS: [&str; 8] = [
    "GatewayClass",
    "Gateway",
    "ListenerSet",
    "HTTPRoute",
    "GRPCRoute",
    "TLSRoute",
    "TCPRoute",
    "UDPRoute",
];

/// Returns the references of a policy, and the reason if they make the policy Invalid (specification
/// 3.4).
pub(super) fn read(
    profile: &Profile,
    spec: Encoded<'_>,
    warnings: &mut Vec<String>,
) -> (Vec<Reference>, Option<String>) {
    let mut references = Vec::new();
    let invalid = collect(profile, spec, &mut references, warnings).err();
    (references, invalid)
}

/// Collects all well-formed references even if the policy is Invalid, because rejected policies are
/// reported where they are attached (specification 9.4).
fn collect(
    profile: &Profile,
    spec: Encoded<'_>,
    references: &mut Vec<Reference>,
    warnings: &mut Vec<String>,
) -> Result<(), String> {
    let single = spec.get("targetRef").filter(|v| !v.is_null());
    let single = single.map(Encoded::value);
    let many = list(spec, "targetRefs")?;
    let selectors = list(spec, "targetSelectors")?;
    if let Some(value) = &single {
        let field = "spec.targetRef".to_owned();
        references.push(reference(profile, value, field, false, warnings));
    }
    for (index, value) in many.iter().enumerate() {
        let field = format!("spec.targetRefs[{index}]");
        references.push(reference(profile, value, field, false, warnings));
    }
    for (index, value) in selectors.iter().enumerate() {
        let field = format!("spec.targetSelectors[{index}]");
        references.push(reference(profile, value, field, true, warnings));
    }
    if single.is_some() && spec.get("targetRefs").is_some_and(|v| !v.is_null()) {
        return Err("both targetRef and targetRefs are set: keep one".to_owned());
    }
    if references.len() > profile.max_targets {
        return Err(format!(
            "the policy has {} references: the kind allows {}",
            references.len(),
            profile.max_targets
        ));
    }
    if references.is_empty() && !profile.attach.filter && !profile.attach.namespace {
        return Err("the policy has no reference: the kind needs targetRefs".to_owned());
    }
    Ok(())
}

fn list(spec: Encoded<'_>, field: &str) -> Result<Vec<Value>, String> {
    match spec.get(field) {
        Some(value) if !value.is_null() => match value.is_list() {
            true => Ok(value.items().map(Encoded::value).collect()),
            false => Err(format!("spec.{field} is not a list")),
        },
        _ => Ok(Vec::new()),
    }
}

fn reference(
    profile: &Profile,
    value: &Value,
    field: String,
    is_selector: bool,
    warnings: &mut Vec<String>,
) -> Reference {
    let text = |field: &str| value.get(field).and_then(Value::as_str);
    let mut invalid = None;
    let mut fail = |reason: String| {
        invalid.get_or_insert(reason);
    };
    if !value.is_object() {
        fail("the reference is not an object".to_owned());
    }
    let kind = kind_of(profile, text("group"), text("kind"), &field, warnings);
    if kind.is_none() {
        fail("`kind` is missing".to_owned());
    }
    let selector = if is_selector {
        Some(value)
    } else {
        value.get("selector").filter(|v| !v.is_null())
    };
    let target = match (text("name"), selector) {
        (_, Some(selector)) => {
            let selector = LabelSelector::read(selector).map_err(&mut fail);
            ReferenceTarget::Selector(Box::new(selector.unwrap_or_default()))
        }
        (Some(name), None) => ReferenceTarget::Name(shared_name(name)),
        (None, None) => {
            fail("`name` is missing".to_owned());
            ReferenceTarget::Name("".into())
        }
    };
    if text("name").is_some() && selector.is_some() {
        fail("the reference has both a name and a selector".to_owned());
    }
    let section = text("sectionName").filter(|s| !s.is_empty());
    if section.is_some() && selector.is_some() {
        fail("the reference has both a sectionName and a selector".to_owned());
    }
    let is_whole = section.is_none() && selector.is_none();
    let names_ports = kind
        .as_ref()
        .is_some_and(|kind| profile.names_ports_of(kind));
    let port = value
        .get("port")
        .filter(|port| names_ports && !port.is_null());
    let port = port.and_then(|port| port_of(port, is_whole).map_err(&mut fail).ok());
    let namespaces = namespaces_of(value.get("namespaces")).unwrap_or_else(|e| {
        fail(e);
        SelectorNamespaces::Same
    });
    let namespace = text("namespace").filter(|s| !s.is_empty()).map(Into::into);
    Reference {
        kind: kind.unwrap_or_else(|| GroupKind::new("", "")),
        target,
        section: section.map(Into::into),
        port,
        namespace,
        namespaces,
        invalid: invalid.map(Into::into),
        // Nearly all policies have the same fields.
        field: shared_name(&field),
    }
}

/// The port that a reference names (specification 3.6).
fn port_of(value: &Value, is_whole: bool) -> Result<u16, String> {
    let port = value.as_u64().and_then(|port| u16::try_from(port).ok());
    match port {
        None => Err("`port` is not a port number".to_owned()),
        Some(_) if !is_whole => {
            Err("the reference has a `port` beside a sectionName or a selector".to_owned())
        }
        Some(port) => Ok(port),
    }
}

/// Returns the kind of a reference and fills missing parts (specification 3.1).
fn kind_of(
    profile: &Profile,
    group: Option<&str>,
    kind: Option<&str>,
    field: &str,
    warnings: &mut Vec<String>,
) -> Option<GroupKind> {
    let listed = match &profile.targets {
        TargetKinds::Listed(list) => list.as_slice(),
        TargetKinds::Any { .. } => &[],
    };
    let kind = match (kind.filter(|k| !k.is_empty()), listed) {
        (Some(kind), _) => kind,
        // The kind is optional if the profile allows only one.
        (None, [only]) => &only.kind.kind,
        (None, _) => return None,
    };
    let group = match group {
        Some(group) => match group.split_once('/') {
            Some((group, version)) => {
                warnings.push(format!("{field}: group contains a version, `{version}`"));
                group
            }
            None => group,
        },
        None => match kind {
            kind if TARGET_KINDS.contains(&kind) => groups::GATEWAY,
            "XListenerSet" => groups::GATEWAY_X,
            "Service" | "Namespace" => groups::CORE,
            _ => listed
                .iter()
                .map(|t| &t.kind)
                .chain(&profile.virtual_targets)
                .find(|k| &*k.kind == kind)
                .map_or(groups::CORE, |k| &k.group),
        },
    };
    let mut known = listed.iter().map(|target| &target.kind);
    let shared = known.find(|known| known.is(group, kind));
    Some(shared.map_or_else(
        || super::read::normalize_kind(group, kind),
        |shared| shared.clone().canonical(),
    ))
}

/// Parses the namespaces that a selector covers.
fn namespaces_of(value: Option<&Value>) -> Result<SelectorNamespaces, String> {
    let Some(value) = value.filter(|v| !v.is_null()) else {
        return Ok(SelectorNamespaces::Same);
    };
    match value.get("from").and_then(Value::as_str) {
        None | Some("Same") => Ok(SelectorNamespaces::Same),
        Some("All") => Ok(SelectorNamespaces::All),
        Some("Selector") => {
            let selector = value
                .get("selector")
                .ok_or("namespaces: `selector` is missing")?;
            let selector = LabelSelector::read(selector).map(Box::new);
            selector.map(SelectorNamespaces::Selector)
        }
        Some(other) => Err(format!(
            "namespaces.from is `{other}`, expected Same, All or Selector"
        )),
    }
}

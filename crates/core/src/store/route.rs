//! The projection of routes of all kinds, and a table of the differences between kinds.

use std::sync::Arc;

use serde_json::{Map, Value};
use thin_vec::ThinVec;

use super::projection::{is_name, port, text};
use crate::model::{Body, Encoded, GroupKind, MetadataMap, Object, Str, groups, shared_name};

/// The properties of a route kind.
#[derive(Debug, PartialEq)]
pub struct RouteKind {
    /// The kind, in the group of the Gateway API.
    pub kind: &'static str,
    /// Whether routes of the kind have hostnames.
    pub hostnames: bool,
    /// Whether a route without `rules` has one unnamed rule (specification 1.4).
    pub default_rule: bool,
    /// The protocols of listeners that admit the kind. `Some(true)` requires TLS mode Passthrough,
    /// `Some(false)` Terminate.
    pub protocols: &'static [(&'static str, Option<bool>)],
}

/// The route kinds of the Gateway API.
pub static ROUTE_KINDS: [RouteKind; 5] = [
    RouteKind {
        kind: "HTTPRoute",
        hostnames: true,
        default_rule: true,
        protocols: &[("HTTP", None), ("HTTPS", None)],
    },
    RouteKind {
        kind: "GRPCRoute",
        hostnames: true,
        default_rule: false,
        protocols: &[("HTTP", None), ("HTTPS", None)],
    },
    RouteKind {
        kind: "TLSRoute",
        hostnames: true,
        default_rule: false,
        protocols: &[("TLS", None)],
    },
    RouteKind {
        kind: "TCPRoute",
        hostnames: false,
        default_rule: false,
        protocols: &[("TCP", None), ("TLS", Some(false))],
    },
    RouteKind {
        kind: "UDPRoute",
        hostnames: false,
        default_rule: false,
        protocols: &[("UDP", None)],
    },
];

/// Returns the properties of a route kind; `None` for any other kind.
pub fn route_kind(kind: &GroupKind) -> Option<&'static RouteKind> {
    (&*kind.group == groups::GATEWAY)
        .then(|| ROUTE_KINDS.iter().find(|row| *row.kind == *kind.kind))
        .flatten()
}

/// A route.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// Hostnames in lower case; an empty list matches all hosts.
    pub hostnames: Box<[Str]>,
    /// The parentRefs, in order.
    pub parents: Box<[ParentRef]>,
    /// The rules, in order.
    pub rules: Box<[Rule]>,
}

/// A parentRef.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParentRef {
    /// The kind: Gateway, ListenerSet or Service.
    pub kind: GroupKind,
    /// Namespace; defaults to the namespace of the route.
    pub namespace: Str,
    /// Name.
    pub name: Str,
    /// `sectionName`: the name of a listener or of a Service port.
    pub section: Option<Str>,
    /// `port`.
    pub port: Option<u16>,
}

/// A rule.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rule {
    /// The name; `None` if the rule has none or an earlier rule has the same name.
    pub name: Option<Str>,
    /// The backendRefs, in order; rules with the same that follow each other share them.
    pub backends: Arc<[BackendRef]>,
    /// The ExtensionRef filters, in order.
    pub extensions: ThinVec<ExtensionRef>,
}

/// A backendRef.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendRef {
    /// Kind; defaults to Service.
    pub kind: GroupKind,
    /// Namespace; defaults to the namespace of the route.
    pub namespace: Str,
    /// Name.
    pub name: Str,
    /// `port`.
    pub port: Option<u16>,
    /// The ExtensionRef filters, in order.
    pub extensions: ThinVec<ExtensionRef>,
}

/// An ExtensionRef filter, which references an object in the namespace of the route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtensionRef {
    /// Kind.
    pub kind: GroupKind,
    /// Name.
    pub name: Str,
}

impl RouteKind {
    /// Reports whether a listener protocol admits the kind. A non-standard protocol admits every kind, and one that is
    /// standard but for its case none (specification 1.4).
    pub fn supports_protocol(&self, protocol: &str, passthrough: bool) -> bool {
        let standard = ROUTE_KINDS
            .iter()
            .flat_map(|row| row.protocols)
            .any(|(name, _)| name.eq_ignore_ascii_case(protocol));
        !standard
            || self
                .protocols
                .iter()
                .any(|(name, only)| *name == protocol && only.is_none_or(|p| p == passthrough))
    }
}

impl Route {
    /// Reads the spec of a route. `backend` is the kind of backendRefs that name none.
    pub(super) fn read(
        row: &RouteKind,
        spec: Encoded<'_>,
        namespace: &Str,
        backend: &GroupKind,
    ) -> Self {
        let has_rules = spec.get("rules").is_some_and(|rules| !rules.is_null());
        let rules = match row.default_rule && !has_rules {
            true => Box::from([Rule::default()]),
            false => rules(spec.items_of("rules"), namespace, backend),
        };
        let hostnames = if row.hostnames {
            spec.items_of("hostnames")
                .filter_map(Encoded::text)
                .map(|h| shared_name(&h.to_ascii_lowercase()))
                .collect()
        } else {
            Box::default()
        };
        Self {
            hostnames,
            parents: spec
                .items_of("parentRefs")
                .filter_map(|p| parent(p, namespace))
                .collect(),
            rules,
        }
    }

    /// Returns the index of the rule with a name.
    pub fn rule_named(&self, name: &str) -> Option<usize> {
        self.rules
            .iter()
            .position(|rule| rule.name.as_deref() == Some(name))
    }
}

impl BackendRef {
    /// Reads a backendRef of a route in `namespace`. Returns `None` if it has no valid name.
    /// `default` is the kind if it names none.
    pub fn read(value: Encoded<'_>, namespace: &Str, default: &GroupKind) -> Option<Self> {
        let group = value.text_of("group");
        let (group, kind) = match (group, text(value, "kind")) {
            (None | Some(""), None) => (&*default.group, &*default.kind),
            (group, kind) => (group.unwrap_or_default(), kind.unwrap_or("Service")),
        };
        let namespace = namespace_of(value, namespace);
        let name = text(value, "name").filter(|n| is_name(n))?;
        (is_name(&namespace) && is_name(kind)).then(|| Self {
            kind: match default.is(group, kind) {
                true => default.clone(),
                false => GroupKind::new(group, kind),
            },
            namespace,
            name: shared_name(name),
            port: port(value),
            extensions: extensions(value),
        })
    }

    /// Whether both reference the same object.
    fn is_to_object_of(&self, other: &Self) -> bool {
        self.name == other.name && self.namespace == other.namespace && self.kind == other.kind
    }
}

impl Rule {
    /// The index of the first backendRef that names the same object as the one at an index.
    pub fn first_reference(&self, index: usize) -> Option<usize> {
        let reference = self.backends.get(index)?;
        let mut references = self.backends.iter();
        references.position(|other| other.is_to_object_of(reference))
    }

    /// Whether the backends are those of the rule before, with which it shares the backendRefs. Those with filters have
    /// nodes of their own.
    pub(crate) fn has_backends_of(&self, before: &Self) -> bool {
        let mut backends = self.backends.iter();
        Arc::ptr_eq(&self.backends, &before.backends)
            && backends.all(|backend| backend.extensions.is_empty())
    }

    /// The ExtensionRef filters of the rule and of its backendRefs.
    pub fn all_extensions(&self) -> impl Iterator<Item = &ExtensionRef> {
        let of_backends = self.backends.iter().flat_map(|backend| &backend.extensions);
        self.extensions.iter().chain(of_backends)
    }
}

/// Reduces a Route that is on no path, because none of its parents is read: what remains is what `Route::read` reads, so
/// that policies and other Routes that name it mean the same as before. Its matches, which only requests need, and
/// other fields that only answers on its paths need are dropped.
///
/// Returns the object as it is if `is_read` is true for one of its parents, if it names none, or if it is no Route.
#[must_use]
pub fn reduce_detached_route(object: Object, is_read: impl Fn(&ParentRef) -> bool) -> Object {
    if route_kind(&object.key.kind).is_none() {
        return object;
    }
    let parents = || object.body.spec().items_of("parentRefs");
    let is_detached = parents().next().is_some()
        && parents().all(|value| {
            let parent = parent(value, &object.key.namespace);
            parent.is_some_and(|parent| !is_read(&parent))
        });
    if !is_detached {
        return object;
    }
    let body = object.body.value();
    let metadata = [
        "name",
        "namespace",
        "labels",
        "creationTimestamp",
        "generation",
        "deletionTimestamp",
    ];
    let mut reduced = picked(&body, &["apiVersion", "kind"]);
    if let Value::Object(fields) = &mut reduced {
        let all = body.get("metadata").unwrap_or(&Value::Null);
        fields.insert("metadata".to_owned(), picked(all, &metadata));
        let spec = body.get("spec").unwrap_or(&Value::Null);
        fields.insert("spec".to_owned(), reduced_spec(spec));
    }
    Object {
        body: reduced.into(),
        annotations: MetadataMap::default(),
        ..object
    }
}

/// The fields of a Route's spec that are read as such.
fn reduced_spec(spec: &Value) -> Value {
    let backend = |value: &Value| {
        with_extensions(
            value,
            picked(value, &["group", "kind", "namespace", "name", "port"]),
        )
    };
    let rule = |value: &Value| {
        let mut rule = with_extensions(value, picked(value, &["name"]));
        let backends = list(value, "backendRefs");
        if let Some(fields) = rule.as_object_mut().filter(|_| !backends.is_empty()) {
            let backends = backends.iter().map(backend).collect();
            fields.insert("backendRefs".to_owned(), backends);
        }
        rule
    };
    let mut reduced = picked(spec, &["hostnames", "parentRefs", "rules"]);
    if let Some(Value::Array(rules)) = reduced.get_mut("rules") {
        rules.iter_mut().for_each(|value| *value = rule(value));
    }
    reduced
}

/// Adds the ExtensionRef filters of a rule or of a backendRef to what is kept of it.
fn with_extensions(value: &Value, mut kept: Value) -> Value {
    let filters = list(value, "filters").iter();
    let filters: Vec<Value> = filters
        .filter(|f| extension(Body::new(f).encoded()).is_some())
        .cloned()
        .collect();
    if let Some(fields) = kept.as_object_mut().filter(|_| !filters.is_empty()) {
        fields.insert("filters".to_owned(), Value::Array(filters));
    }
    kept
}

/// The items of a field that is a list.
fn list<'v>(value: &'v Value, field: &str) -> &'v [Value] {
    let list = value.get(field).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

/// Some fields of a value, or the value itself if it is no object.
fn picked(value: &Value, names: &[&str]) -> Value {
    let Value::Object(fields) = value else {
        return value.clone();
    };
    let kept = names.iter().filter_map(|name| fields.get_key_value(*name));
    let kept: Map<String, Value> = kept.map(|(name, v)| (name.clone(), v.clone())).collect();
    Value::Object(kept)
}

fn parent(value: Encoded<'_>, namespace: &Str) -> Option<ParentRef> {
    let group = value.text_of("group");
    let kind = text(value, "kind").unwrap_or("Gateway");
    let group = group.unwrap_or(groups::GATEWAY);
    Some(ParentRef {
        kind: match (group, kind) {
            (groups::GATEWAY, "Gateway") => GroupKind::gateway(),
            _ => GroupKind::new(group, kind).canonical(),
        },
        namespace: namespace_of(value, namespace),
        name: shared_name(text(value, "name")?),
        section: text(value, "sectionName").map(shared_name),
        port: port(value),
    })
}

/// The namespace of a reference: that of the route if it names none. The names of equal ones are shared.
fn namespace_of(reference: Encoded<'_>, of_route: &Str) -> Str {
    match text(reference, "namespace") {
        Some(other) if *other != **of_route => shared_name(other),
        _ => of_route.clone(),
    }
}

/// Reads the rules of a route, in order. If rules repeat a name, only the first one keeps it.
fn rules<'v>(
    values: impl Iterator<Item = Encoded<'v>>,
    namespace: &Str,
    backend: &GroupKind,
) -> Box<[Rule]> {
    let mut rules: Vec<Rule> = Vec::new();
    for value in values {
        let name = text(value, "name")
            .filter(|n| is_name(n) && !n.starts_with('#'))
            .filter(|n| !rules.iter().any(|r| r.name.as_deref() == Some(*n)));
        let backends = value.items_of("backendRefs");
        let backends = backends.filter_map(|b| BackendRef::read(b, namespace, backend));
        let backends: Vec<BackendRef> = backends.collect();
        let known = rules.last().map(|before| &before.backends);
        let known = known.filter(|known| ***known == *backends).cloned();
        rules.push(Rule {
            name: name.map(shared_name),
            backends: known.unwrap_or_else(|| backends.into()),
            extensions: extensions(value),
        });
    }
    rules.into()
}

/// The ExtensionRef filters of a rule or of a backendRef.
fn extensions(value: Encoded<'_>) -> ThinVec<ExtensionRef> {
    value.items_of("filters").filter_map(extension).collect()
}

fn extension(value: Encoded<'_>) -> Option<ExtensionRef> {
    let reference = value
        .get("extensionRef")
        .filter(|_| text(value, "type") == Some("ExtensionRef"))?;
    let group = reference.text_of("group");
    let group = group.unwrap_or_default();
    Some(ExtensionRef {
        kind: GroupKind::new(group, text(reference, "kind")?),
        name: text(reference, "name")?.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ObjectKey;
    use serde_json::json;

    fn route(parents: Value) -> Object {
        let extension = |name: &str| json!({"type": "ExtensionRef", "extensionRef": {"group": "f.io", "kind": "F", "name": name}});
        let kind = GroupKind::new(groups::GATEWAY, "HTTPRoute");
        let body = json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
            "metadata": {"name": "r", "namespace": "ns", "labels": {"a": "b"}, "annotations": {"c": "d"}, "uid": "1"},
            "spec": {
                "parentRefs": parents, "hostnames": ["a.example"],
                "rules": [
                    {
                        "name": "one", "matches": [{"path": {"value": "/a"}}], "timeouts": {"request": "1s"},
                        "filters": [{"type": "RequestMirror"}, extension("x")],
                        "backendRefs": [
                            {"name": "s", "port": 80, "weight": 3, "filters": [extension("y")]},
                            {"kind": "T", "group": "t.io", "namespace": "other", "name": "t"},
                            "malformed",
                        ],
                    },
                    {"name": "one"}, null, {"backendRefs": null},
                ],
            },
            "status": {"parents": []},
        });
        Object::new(ObjectKey::new(kind, "ns", "r"), body)
    }

    fn read(object: &Object) -> Route {
        let service = GroupKind::new(groups::CORE, "Service");
        Route::read(&ROUTE_KINDS[0], object.body.spec(), &"ns".into(), &service)
    }

    #[test]
    fn a_reduced_route_is_read_as_before() {
        let is_read = |parent: &ParentRef| {
            &*parent.kind.kind != "Gateway" || (&*parent.namespace, &*parent.name) == ("ns", "gw")
        };
        let whole = route(json!([{"name": "other"}, {"name": "gw", "namespace": "elsewhere"}]));
        let reduced = reduce_detached_route(whole.clone(), is_read);
        assert_eq!(read(&reduced), read(&whole));
        assert_eq!((&reduced.key, &reduced.labels), (&whole.key, &whole.labels));
        let text = reduced.body.value().to_string();
        for dropped in [
            "matches",
            "timeouts",
            "RequestMirror",
            "weight",
            "status",
            "annotations",
            "uid",
        ] {
            assert!(!text.contains(dropped), "{dropped} in {text}");
        }
        assert_eq!(reduce_detached_route(reduced.clone(), is_read), reduced);
        // Those that may be on a path, or below a rule that delegates, stay whole.
        for parents in [
            json!([{"name": "other"}, {"name": "gw"}]),
            json!([{"name": "other", "kind": "ListenerSet"}]),
            json!([{"name": "s", "kind": "Service", "group": ""}]),
            json!([{"name": "other"}, {}]),
            json!([]),
            Value::Null,
        ] {
            let whole = route(parents);
            assert_eq!(reduce_detached_route(whole.clone(), is_read), whole);
        }
    }
}

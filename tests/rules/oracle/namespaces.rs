//! Random edits of Namespaces, of what makes them exist, the objects in them, and of ReferenceGrants.

use serde_json::{Value, json};

use super::edits;
use super::profiles::{EXTERNAL, GROUP};
use super::rng::Rng;

/// The namespaces of random worlds, and some more that may be empty.
const NAMESPACES: [&str; 6] = ["a-b", "a", "shop", "aa", "empty", "zz"];

/// Whether a document is a Namespace.
pub fn is_namespace(document: &Value) -> bool {
    document["kind"] == "Namespace"
}

/// The namespace that a document is in, if it is in one.
pub fn inside(document: &Value) -> Option<&str> {
    document["metadata"]["namespace"].as_str()
}

pub fn pick(rng: &mut Rng) -> &'static str {
    rng.pick(&NAMESPACES)
}

/// Makes worlds in which Gateways, listeners and policies go by the labels of namespaces, and namespaces exist without
/// an object of their own.
pub fn prepare(rng: &mut Rng, documents: &mut Vec<Value>) {
    edits::prepare(rng, documents);
    if rng.percent(10) {
        documents.iter_mut().for_each(super::declared::declare);
    }
    // Paths through namespaces that do not exist.
    for route in documents.iter_mut().filter(|d| edits::is_route(d)) {
        let rules = route["spec"]["rules"].as_array_mut();
        for rule in rules.into_iter().flatten() {
            if rng.percent(20) {
                let (group, kind) = rng.choose(&[EXTERNAL, ("", "Service")]);
                rule["backendRefs"] = json!([{
                    "group": group, "kind": kind, "name": "ext0",
                    "namespace": rng.pick(&["empty", "zz"]), "port": 443,
                }]);
            }
        }
    }
    let often = rng.choose(&[0, 50]);
    documents.retain(|document| !is_namespace(document) || !rng.percent(often));
    prepare_grants(rng, documents);
    for document in documents.iter_mut() {
        let spec = &mut document["spec"];
        for listener in spec["listeners"].as_array_mut().into_iter().flatten() {
            if rng.percent(60) {
                listener["allowedRoutes"] = json!({ "namespaces": labelled(rng) });
            }
        }
        if rng.percent(40) && spec.get("allowedListeners").is_some() {
            spec["allowedListeners"]["namespaces"] = labelled(rng);
        }
        let many = spec.get_mut("targetRefs").and_then(Value::as_array_mut);
        for target in many.into_iter().flatten() {
            let whole = target.get("sectionName").is_none() && target.get("name").is_some();
            match rng.below(10) {
                0 if whole => select(rng, target),
                1 => *target = json!({"group": "", "kind": "Namespace", "name": pick(rng)}),
                _ => {}
            }
        }
    }
}

/// Lets policies target objects of other namespaces, by ReferenceGrants.
fn prepare_grants(rng: &mut Rng, documents: &mut Vec<Value>) {
    let (mut kinds, by_grant) = (Vec::new(), rng.percent(50));
    for document in documents
        .iter_mut()
        .filter(|d| d["kind"] == "PolicyProfile")
    {
        let kind = &document["spec"]["policy"]["kind"];
        kinds.push(kind.as_str().unwrap().to_owned());
        if by_grant {
            document["spec"]["crossNamespace"] = json!("ReferenceGrant");
        }
    }
    for document in documents.iter_mut().filter(|d| is_policy(d)) {
        for target in document["spec"]["targetRefs"]
            .as_array_mut()
            .into_iter()
            .flatten()
        {
            if by_grant && rng.percent(60) {
                target["namespace"] = json!(pick(rng));
            }
        }
    }
    for namespace in NAMESPACES {
        if rng.percent(60) {
            documents.push(grant(rng, namespace, &kinds));
        }
    }
}

/// A ReferenceGrant for routes and policies.
fn grant(rng: &mut Rng, namespace: &str, kinds: &[String]) -> Value {
    let policies = kinds.iter().map(|kind| (GROUP, &**kind));
    let routes = ["HTTPRoute", "GRPCRoute", "TCPRoute"];
    let routes = routes.map(|kind| ("gateway.networking.k8s.io", kind));
    let sources: Vec<(&str, &str)> = routes.into_iter().chain(policies).collect();
    let from: Vec<Value> = (0..rng.within(1, 12))
        .map(|_| {
            let (group, kind) = rng.choose(&sources);
            json!({"group": group, "kind": kind, "namespace": pick(rng)})
        })
        .collect();
    let targets = [
        json!({"group": "", "kind": "Service"}),
        json!({"group": EXTERNAL.0, "kind": EXTERNAL.1}),
        json!({"group": "", "kind": "Namespace"}),
        json!({"group": "gateway.networking.k8s.io", "kind": "Gateway"}),
        json!({"group": "gateway.networking.k8s.io", "kind": "HTTPRoute"}),
    ];
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1beta1", "kind": "ReferenceGrant",
        "metadata": {"name": "some", "namespace": namespace},
        "spec": {"from": from, "to": rng.some(&targets, 60)},
    })
}

/// Whether a document is a ReferenceGrant.
pub fn is_grant(document: &Value) -> bool {
    document["kind"] == "ReferenceGrant"
}

/// Permits other references; returns what was done.
pub fn edit_grant(rng: &mut Rng, grant: &mut Value, others: &[Value]) -> &'static str {
    let found: Vec<&Value> = others.iter().filter(|other| is_grant(other)).collect();
    let field = rng.pick(&["from", "to"]);
    match rng.percent(50) {
        true => grant["spec"][field] = rng.choose(&found)["spec"][field].clone(),
        false => {
            let entries = grant["spec"][field].as_array_mut();
            entries.map(Vec::pop);
        }
    }
    "permissions of"
}

/// The namespaces with a label.
fn labelled(rng: &mut Rng) -> Value {
    let color = rng.pick(&["red", "blue"]);
    let selector = match rng.percent(70) {
        true => json!({"matchLabels": {"color": color}}),
        false => json!({"matchExpressions": [{"key": "color", "operator": "DoesNotExist"}]}),
    };
    json!({"from": "Selector", "selector": selector})
}

/// Lets a reference select its targets instead of naming one.
fn select(rng: &mut Rng, target: &mut Value) {
    let fields = target.as_object_mut().unwrap();
    fields.remove("name");
    fields.remove("namespace");
    if rng.percent(40) {
        (target["group"], target["kind"]) = (json!(""), json!("Namespace"));
    }
    let color = rng.pick(&["red", "blue"]);
    target["selector"] = json!({"matchLabels": {"color": color}});
    if rng.percent(50) {
        target["namespaces"] = labelled(rng);
    }
}

/// A Namespace with random labels.
pub fn namespace(rng: &mut Rng, name: &str) -> Value {
    let mut found = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {}},
    });
    edit(rng, &mut found);
    found
}

/// Edits a Namespace; returns what was done.
pub fn edit(rng: &mut Rng, namespace: &mut Value) -> &'static str {
    let labels = namespace["metadata"]["labels"].as_object_mut();
    let Some(labels) = labels else {
        namespace["metadata"]["labels"] = json!({"color": "red"});
        return "labels of";
    };
    match rng.below(5) {
        0 => {
            labels.remove("color");
            "labels of"
        }
        1 => {
            let count = rng.below(9).to_string();
            namespace["metadata"]["annotations"]["note"] = json!(count);
            "annotations of"
        }
        _ => {
            let color = rng.pick(&["red", "blue"]);
            labels.insert("color".to_owned(), json!(color));
            "labels of"
        }
    }
}

/// An object in a namespace: one that no rule reads, or another one moved there.
pub fn object(rng: &mut Rng, namespace: &str, others: &[Value]) -> Value {
    let movable: Vec<&Value> = others
        .iter()
        .filter(|other| edits::is_route(other) || edits::is_service(other) || is_policy(other))
        .collect();
    if movable.is_empty() || rng.percent(40) {
        let metadata = json!({"namespace": namespace, "name": "settings"});
        return json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
    }
    let mut moved = rng.choose(&movable).clone();
    moved["metadata"]["namespace"] = json!(namespace);
    moved
}

fn is_policy(document: &Value) -> bool {
    document["spec"].get("targetRefs").is_some()
}

//! Random policies on the objects of a world.

use serde_json::{Value, json};

use super::values;
use super::world::{Builder, NAMESPACES, Target};

pub use super::values::KINDS;

/// Adds policies of all kinds.
pub fn add(builder: &mut Builder) {
    let mut number = 0;
    for (kind, most) in [
        ("BackendTrafficPolicy", 6),
        ("SecurityPolicy", 6),
        ("EnvoyExtensionPolicy", 4),
        ("ClientTrafficPolicy", 4),
    ] {
        for _ in 0..builder.rng.within(0, most) {
            number += 1;
            policy(builder, kind, number);
        }
    }
    for _ in 0..builder.rng.within(0, 2) {
        number += 1;
        backend_tls(builder, number);
    }
}

fn policy(builder: &mut Builder, kind: &'static str, number: usize) {
    let allowed = |target: &&Target| match (kind, target.kind) {
        (_, "Gateway" | "ListenerSet") => true,
        ("ClientTrafficPolicy", _) => false,
        ("SecurityPolicy", other) => matches!(other, "HTTPRoute" | "GRPCRoute" | "TCPRoute"),
        _ => true,
    };
    let targets: Vec<Target> = builder.targets.iter().filter(allowed).cloned().collect();
    let Some(first) = targets.get(builder.rng.below(targets.len())).cloned() else {
        return;
    };
    let mut spec = json!({});
    let missing = builder.rng.percent(8);
    if !builder.rng.percent(6) {
        for (field, value) in values::fields(&mut builder.rng, kind, missing) {
            spec[field] = value;
        }
        // The CRD refuses both in one policy.
        if let Some(spec) = spec
            .as_object_mut()
            .filter(|spec| spec.contains_key("requestBuffer"))
        {
            spec.remove("httpUpgrade");
        }
    }
    if kind != "ClientTrafficPolicy" && builder.rng.percent(45) && first.kind.ends_with("Route") {
        spec["mergeType"] = json!(builder.rng.pick(&["StrategicMerge", "JSONMerge"]));
    }
    let mut namespace = first.namespace.clone();
    if builder.rng.percent(20) {
        namespace = builder.rng.pick(&NAMESPACES).to_owned();
        spec["targetSelectors"] = json!([selector(builder, &first)]);
    } else {
        let mut references = vec![reference(builder, &first)];
        if builder.rng.percent(15) {
            let same =
                |target: &&Target| target.namespace == first.namespace && target.kind == first.kind;
            let others: Vec<Target> = targets.iter().filter(same).cloned().collect();
            if let Some(second) = others.get(builder.rng.below(others.len())) {
                references.push(reference(builder, second));
            }
            // Envoy Gateway lets a policy that names an object twice conflict with itself: a few do.
            if !number.is_multiple_of(24) {
                references.dedup();
            }
        }
        if references.len() == 1 && builder.rng.percent(20) {
            spec["targetRef"] = references.remove(0);
        } else {
            spec["targetRefs"] = references.into();
        }
    }
    let metadata = builder.metadata(&namespace, &format!("p{number}"));
    builder.objects.push(json!({
        "apiVersion": "gateway.envoyproxy.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec,
    }));
}

fn reference(builder: &mut Builder, target: &Target) -> Value {
    let mut name = target.name.clone();
    if builder.rng.percent(4) {
        name = "missing".to_owned();
    }
    let mut reference =
        json!({"group": "gateway.networking.k8s.io", "kind": target.kind, "name": name});
    if builder.rng.percent(40) {
        let section = target
            .sections
            .get(builder.rng.below(target.sections.len()));
        if builder.rng.percent(6) {
            reference["sectionName"] = json!("missing");
        } else if let Some(section) = section {
            reference["sectionName"] = section.clone().into();
        }
    }
    reference
}

fn selector(builder: &mut Builder, target: &Target) -> Value {
    let mut selector = json!({"group": "gateway.networking.k8s.io", "kind": target.kind});
    selector["matchLabels"] = json!({"color": builder.rng.pick(&["red", "blue"])});
    match builder.rng.below(3) {
        0 => selector["namespaces"] = json!({"from": "All"}),
        1 => {
            let team = builder.rng.pick(&NAMESPACES);
            selector["namespaces"] =
                json!({"from": "Selector", "selector": {"matchLabels": {"team": team}}});
        }
        _ => {}
    }
    selector
}

fn backend_tls(builder: &mut Builder, number: usize) {
    let namespace = builder.rng.pick(&NAMESPACES);
    let mut reference = if builder.rng.percent(15) {
        json!({"group": "gateway.envoyproxy.io", "kind": "Backend", "name": "far"})
    } else {
        json!({"group": "", "kind": "Service", "name": builder.rng.pick(&["web", "api"])})
    };
    if reference["kind"] == "Service" && builder.rng.percent(50) {
        reference["sectionName"] = json!(builder.rng.pick(&["http", "alt"]));
    }
    let mut validation = json!({"hostname": format!("h{number}.test")});
    if builder.rng.percent(50) {
        validation["wellKnownCACertificates"] = json!("System");
    } else {
        let name = if builder.rng.percent(15) {
            "missing"
        } else {
            "ca"
        };
        validation["caCertificateRefs"] = json!([{"group": "", "kind": "ConfigMap", "name": name}]);
    }
    let metadata = builder.metadata(namespace, &format!("p{number}"));
    builder.objects.push(json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "BackendTLSPolicy", "metadata": metadata,
        "spec": {"targetRefs": [reference], "validation": validation},
    }));
}

//! Presets and defaults of profiles (PROFILES.md): what a profile leaves out.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::objects::group_of;

/// The settings of a profile document with everything that its preset, or the CRD's label, fills in.
pub fn filled(document: &Value, definition: Option<&Value>) -> Value {
    let mut spec = document["spec"].clone();
    if let Some(preset) = spec["preset"].as_str().map(preset_settings) {
        under(&mut spec, preset);
    }
    if spec.get("class").is_none_or(Value::is_null) {
        let label = definition.and_then(label_class).unwrap_or("Inherited");
        spec["class"] = json!(label);
    }
    let unmerged = spec["class"] != "Inherited";
    let general = json!({
        "controllers": [], "mesh": true,
        "namespaceReaches": ["Gateway", "ListenerSet", "Route", "Backend"],
        "virtualTargets": [], "attach": ["refs"], "crossNamespace": "Never", "maxTargets": 16,
        "rules": {
            "path": "spec", "exclude": [], "bothBlocks": true, "mixWithBare": false,
            "defaults": if unmerged { json!([]) } else { json!(["defaults", "default"]) },
            "overrides": if unmerged { json!([]) } else { json!(["overrides", "override"]) },
        },
        "strategies": if unmerged { json!([]) } else {
            json!(["AtomicDefaults", "PatchDefaults", "AtomicOverrides", "PatchOverrides"])
        },
        "strategy": {"owner": "Higher", "values": {}},
        "status": {"vocabulary": "Programmed", "ancestor": "Gateway"},
    });
    under(&mut spec, general);
    if spec["class"] == "Inherited" && spec["effectiveTarget"].is_null() {
        spec["effectiveTarget"] = json!("Every");
    }
    let choice = &mut spec["strategy"];
    if choice["field"].is_null() && choice["annotation"].is_null() {
        choice["field"] = json!("strategy");
        choice["usual"] = json!(true);
    }
    spec
}

fn preset_settings(name: &str) -> Value {
    let no_blocks = json!({"defaults": [], "overrides": []});
    let four = [
        "AtomicDefaults",
        "PatchDefaults",
        "AtomicOverrides",
        "PatchOverrides",
    ];
    let kuadrant = |both: bool| {
        let mut rules = json!({"bothBlocks": both});
        if both {
            rules["when"] = json!("when");
            rules["unset"] = json!("unset");
        }
        json!({
            "class": "Inherited", "rules": rules, "sameTarget": "Established",
            "strategies": ["AtomicDefaults", "AtomicOverrides", "RuleDefaults", "RuleOverrides"],
            "strategy": {"field": "strategy", "values": {"atomic": "Atomic", "merge": "Rule"}},
        })
    };
    match name {
        "direct" => json!({
            "class": "Direct", "strategies": ["None"], "sameTarget": "RejectNewer", "rules": no_blocks,
        }),
        "listed" => json!({"class": "Listed", "rules": no_blocks}),
        "gep713" => json!({
            "class": "Inherited", "strategies": four, "sameTarget": "Established",
            "strategy": {"field": ["strategy", "mergeType"]}, "rules": {"bothBlocks": false},
        }),
        "gep713-2023" => json!({
            "class": "Inherited", "strategies": ["StructuralDefaults", "StructuralOverrides"],
            "sameTarget": "OldestWins", "rules": {"bothBlocks": true},
            "status": {"vocabulary": "Enforced"},
        }),
        "kuadrant" => kuadrant(false),
        "kuadrant-rfc0009" => kuadrant(true),
        "most-specific-field" => json!({
            "class": "Inherited", "strategies": ["FieldDefaults"], "rules": no_blocks,
        }),
        "most-specific-whole" => json!({
            "class": "Inherited", "strategies": ["AtomicDefaults"], "rules": no_blocks,
            "empty": "Blocking",
        }),
        other => panic!("no preset {other}"),
    }
}

/// Fills what is missing or null; `rules`, `strategy` and `status` field by field.
fn under(spec: &mut Value, defaults: Value) {
    let (Some(spec), Value::Object(defaults)) = (spec.as_object_mut(), defaults) else {
        return;
    };
    for (name, value) in defaults {
        let open = ["rules", "strategy", "status"].contains(&name.as_str());
        let found = spec.entry(name).or_insert(Value::Null);
        if open && found.is_object() {
            under(found, value);
        } else if found.is_null() {
            *found = value;
        }
    }
}

fn label_class(definition: &Value) -> Option<&'static str> {
    let label = definition["metadata"]["labels"]["gateway.networking.k8s.io/policy"].as_str()?;
    match label.to_lowercase().as_str() {
        "direct" => Some("Direct"),
        "inherited" | "true" => Some("Inherited"),
        _ => None,
    }
}

/// The profile that a labelled CRD stands for (2.1).
pub fn derived(definition: &Value) -> Option<Value> {
    let class = label_class(definition)?;
    let spec = &definition["spec"];
    let cluster = spec["scope"] == "Cluster";
    let mut derived = json!({
        "policy": {"group": spec["group"], "kind": spec["names"]["kind"]},
        "preset": if class == "Direct" { "direct" } else { "gep713" },
        "derivedForClusterScope": cluster,
    });
    if class == "Inherited" {
        derived["rules"] = json!({"bothBlocks": true});
        derived["effectiveTarget"] = json!("Every");
    }
    Some(json!({"kind": "PolicyProfile", "spec": derived}))
}

/// The profiles of a world: configured ones, then built-in ones, then those of labelled CRDs (2.1). Each
/// with the CRD of its kind.
pub fn profiles<'d>(
    documents: &'d [Value],
    built_in: &'d [Value],
) -> Vec<(Value, Option<&'d Value>)> {
    let of = |kind: &'static str| documents.iter().filter(move |d| d["kind"] == kind);
    let definitions: Vec<&Value> = of("CustomResourceDefinition").collect();
    let derived: Vec<Value> = definitions.iter().filter_map(|d| derived(d)).collect();
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    let configured = of("PolicyProfile").filter(|d| group_of(d) == "entail.dev");
    let written: Vec<Value> = configured.chain(built_in).cloned().chain(derived).collect();
    for profile in &written {
        let policy = &profile["spec"]["policy"];
        let (group, kind) = (&policy["group"], &policy["kind"]);
        let section = policy["section"]["name"].as_str().unwrap_or_default();
        // Profiles of the whole kind and of its sections do not stand beside each other (2.14).
        let others = |seen: &BTreeSet<(String, String)>| {
            let mut same = seen
                .iter()
                .filter(|(kind_of, _)| *kind_of == format!("{kind}.{group}"));
            same.any(|(_, other)| other == section || other.is_empty() != section.is_empty())
        };
        if others(&seen) {
            continue;
        }
        seen.insert((format!("{kind}.{group}"), section.to_owned()));
        let same = |d: &&Value| d["spec"]["group"] == *group && d["spec"]["names"]["kind"] == *kind;
        all.push((profile.clone(), definitions.iter().position(same)));
    }
    let with = |(profile, at): (Value, Option<usize>)| (profile, at.map(|at| definitions[at]));
    all.into_iter().map(with).collect()
}

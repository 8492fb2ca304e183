//! Sections of a resource kind (specification 2.14), ports by number (3.6), instances of policies (5.11) and the order of
//! merged lists (5.13): random worlds in which some kinds have them.

use serde_json::{Value, json};

use super::rng::Rng;

/// Changes profiles and policies of a world.
pub fn add(seed: u64, profiles: &mut Vec<Value>, objects: &mut [Value]) {
    let mut rng = Rng::new(seed ^ 0x5EC7_1045);
    if rng.percent(40) {
        for profile in profiles.iter_mut() {
            ports(&mut rng, profile, objects);
        }
    }
    if rng.percent(30) {
        for profile in profiles.iter_mut() {
            instances(&mut rng, profile);
        }
    }
    for profile in profiles.iter_mut() {
        let offered = profile["spec"]["strategies"].to_string();
        if offered.contains("Structural") && rng.percent(30) {
            profile["spec"]["listOrder"] = json!("StrategicMergePatch");
        }
    }
    if rng.percent(30) {
        split(&mut rng, profiles);
    }
}

/// The policies of a kind name ports by number.
fn ports(rng: &mut Rng, profile: &mut Value, objects: &mut [Value]) {
    let kind = profile["spec"]["policy"]["kind"].clone();
    let Some(targets) = profile["spec"]["targets"].as_array_mut() else {
        return;
    };
    for target in targets {
        let kinds = ["Gateway", "Service", "ExternalService"];
        if kinds.iter().any(|kind| target["kind"] == *kind) {
            target["ports"] = json!(rng.percent(80));
        }
    }
    let policies = objects.iter_mut().filter(|object| object["kind"] == kind);
    for policy in policies {
        let spec = &mut policy["spec"];
        let mut name = |reference: &mut Value| {
            if !reference.is_object() || !rng.percent(60) {
                return;
            }
            match reference["kind"].as_str() {
                Some("Gateway") if rng.percent(85) => {
                    let port = rng.choose(&[
                        json!(8000),
                        json!(8000),
                        json!(8001),
                        json!(8002),
                        json!(9),
                        json!("80"),
                    ]);
                    reference["port"] = port;
                    if let Some(fields) = reference.as_object_mut().filter(|_| rng.percent(90)) {
                        fields.remove("sectionName");
                    }
                }
                Some("ExternalService") => {
                    reference["sectionName"] =
                        rng.choose(&[json!("443"), json!("443"), json!("444"), json!("x")]);
                }
                Some("Service") => {
                    reference["sectionName"] =
                        rng.choose(&[json!("80"), json!("90"), json!("080"), json!("9")]);
                }
                _ => {}
            }
        };
        name(&mut spec["targetRef"]);
        spec["targetRefs"]
            .as_array_mut()
            .into_iter()
            .flatten()
            .for_each(&mut name);
        if let Some(fields) = spec.as_object_mut() {
            // Indexing wrote a null.
            fields.retain(|field, value| !value.is_null() || !field.starts_with("targetRef"));
        }
    }
}

/// A field has an instance of each policy.
fn instances(rng: &mut Rng, profile: &mut Value) {
    let spec = &mut profile["spec"];
    let strategies = spec["strategies"].as_array();
    let has_rules = strategies.is_some_and(|all| {
        let mut names = all.iter().filter_map(Value::as_str);
        names.any(|name| name.starts_with("Rule"))
    });
    let bare = ["defaults", "overrides"]
        .iter()
        .all(|name| spec["rules"][name] == json!([]))
        && spec["rules"]["unset"].is_null();
    if !has_rules || !bare || !spec["instances"].is_null() {
        return;
    }
    let field = rng.pick(&["a", "b", "m", "x", "limits"]);
    spec["instances"] = json!([{"path": field}]);
}

/// A kind becomes two sections, by the names of its policies.
fn split(rng: &mut Rng, profiles: &mut Vec<Value>) {
    let Some(profile) = profiles.first_mut() else {
        return;
    };
    let spec = &mut profile["spec"];
    let attach = spec["attach"].as_array();
    if attach.is_some_and(|forms| forms.iter().any(|form| form == "filter")) {
        return;
    }
    let names = json!(["p0", "p3", "p4"]);
    let mut other = profile.clone();
    let all = rng.percent(50);
    let first = &mut profile["spec"]["policy"]["section"];
    *first = json!({"name": "one", "field": "metadata.name"});
    if !all {
        first["where"] = json!({"field": "metadata.name", "values": names});
    }
    let condition = json!({"field": "metadata.name", "not": names});
    other["spec"]["policy"]["section"] =
        json!({"name": "two", "field": "spec", "where": condition});
    let name = other["metadata"]["name"].as_str().unwrap_or_default();
    other["metadata"]["name"] = json!(format!("two.{name}"));
    profiles.push(other);
}

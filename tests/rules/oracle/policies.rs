//! Random policies of a kind: what they target, what they offer, and now and then a mistake.

use serde_json::{Map, Value, json};

use super::profiles::{EXTERNAL, GROUP};
use super::rng::Rng;
use super::settings::{Direction, Settings, granularity, strategy};
use super::vocabulary;
use super::worlds::TargetCandidate;

/// Adds the policies of a kind to a world.
pub fn policies(
    (rng, more): (&mut Rng, &mut Rng),
    profile: &Value,
    places: &[TargetCandidate],
    objects: &mut Vec<Value>,
) {
    let kind = Settings::read(profile, None);
    // All of one age in some worlds, so that names decide.
    let ages = if rng.percent(30) { 1 } else { 4 };
    for number in 0..rng.within(2, 8) {
        let mut spec = Map::new();
        let namespace = target(rng, more, &kind, places, &mut spec);
        offer(rng, &kind, &mut spec);
        for (field, key, _) in &kind.instances {
            if key.is_empty() {
                continue;
            }
            if more.percent(65) {
                let values = [
                    json!({"ref": {"name": "a"}, "v": 1}),
                    json!({"ref": {"name": "b"}}),
                    json!({"ref": {"name": "b", "namespace": "shop"}, "v": 2}),
                    json!({"ref": "a"}),
                    json!({"v": 3}),
                    json!({"off": {}}),
                    json!({"off": {"why": 1}, "ref": {"name": "a"}}),
                ];
                spec.insert(field.clone(), more.choose(&values));
            }
        }
        let name = format!("p{number}");
        if rng.percent(6) {
            spoil(rng, &kind, &mut spec);
        }
        let mut metadata = json!({"name": name});
        if !kind.cluster {
            metadata["namespace"] = json!(namespace);
        }
        if rng.percent(90) {
            let time = format!("2026-01-01T00:0{}:00Z", rng.below(ages));
            metadata["creationTimestamp"] = json!(time);
        }
        let mut object = json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": kind.kind,
            "metadata": metadata, "spec": spec,
        });
        vocabulary::policy(rng, &kind, places, &mut object);
        objects.push(object);
    }
    vocabulary::objects(rng, &kind, objects);
}

/// Writes the references; returns the namespace in which the policy has to live.
fn target(
    rng: &mut Rng,
    more: &mut Rng,
    kind: &Settings,
    places: &[TargetCandidate],
    spec: &mut Map<String, Value>,
) -> String {
    let is_virtual = |place: &TargetCandidate| {
        let mut all = kind.virtual_targets.iter();
        all.any(|(_, name)| name == place.kind)
    };
    let listed = |place: &&TargetCandidate| match &kind.targets {
        _ if is_virtual(place) => true,
        None => place.kind != "GatewayClass",
        Some(all) => all.iter().any(|t| t.kind == place.kind),
    };
    let usable: Vec<&TargetCandidate> = places.iter().filter(listed).collect();
    let first = rng.choose(&usable);
    let namespace = if first.namespace.is_empty() {
        rng.pick(&["a-b", "a", "shop"]).to_owned()
    } else {
        first.namespace.clone()
    };
    let mut refs = vec![reference(rng, more, kind, first)];
    // A second and a third one where the kind may: several targets of one policy.
    let neighbours: Vec<&TargetCandidate> = usable
        .iter()
        .filter(|p| p.namespace == namespace)
        .copied()
        .collect();
    while !neighbours.is_empty() && rng.percent(25) && refs.len() < 4 {
        let place = rng.choose(&neighbours);
        refs.push(reference(rng, more, kind, place));
    }
    if refs.len() == 1 && refs[0].get("selector").is_none() && rng.percent(20) {
        spec.insert("targetRef".to_owned(), refs[0].clone());
    } else {
        spec.insert("targetRefs".to_owned(), json!(refs));
    }
    namespace
}

fn reference(rng: &mut Rng, more: &mut Rng, kind: &Settings, place: &TargetCandidate) -> Value {
    let group = match place.kind {
        "Service" | "Namespace" => "",
        kind if kind == EXTERNAL.1 => EXTERNAL.0,
        _ => "gateway.networking.k8s.io",
    };
    let scoped = !matches!(place.kind, "GatewayClass" | "Namespace");
    if scoped && rng.percent(8) {
        let color = rng.pick(&["red", "blue"]);
        let mut reference = json!({
            "group": group, "kind": place.kind, "selector": {"matchLabels": {"color": color}},
        });
        if kind.cluster {
            reference["namespaces"] = json!({"from": rng.pick(&["All", "Same"])});
        }
        return reference;
    }
    let mut reference = json!({"group": group, "kind": place.kind, "name": place.name});
    if rng.percent(4) {
        reference["name"] = json!("missing");
    }
    if kind.cluster && scoped && rng.percent(90) {
        reference["namespace"] = json!(place.namespace);
    }
    if !place.sections.is_empty() && rng.percent(40) {
        reference["sectionName"] = json!(rng.choose(&place.sections));
    }
    if kind.gateway_sections && !place.others.is_empty() && more.percent(40) {
        reference["sectionName"] = json!(more.choose(&place.others));
    }
    reference
}

/// Writes what the policy offers: bare rules, or blocks.
fn offer(rng: &mut Rng, kind: &Settings, spec: &mut Map<String, Value>) {
    let mut blocks: Vec<(&str, Direction)> = Vec::new();
    for (names, direction) in [
        (&kind.defaults_names, Direction::Defaults),
        (&kind.overrides_names, Direction::Overrides),
    ] {
        // The plural mostly, where the kind has the singular, too; both of them are Invalid (3.4).
        let singular = rng.percent(30);
        let name = names.iter().rev().find(|_| singular).or(names.first());
        blocks.extend(name.map(|name| (name.as_str(), direction)));
    }
    let bare = blocks.is_empty() || rng.percent(25);
    let mixed = kind.mix_with_bare && rng.percent(50);
    if bare || mixed {
        let mut rules = rules(rng);
        vocabulary::name_objects(rng, kind, &mut rules);
        let direction = mixed.then_some(Direction::Defaults);
        let within = if mixed { direction } else { None };
        spec.extend(rules);
        dress(rng, kind, spec, within, false);
    }
    if bare && !mixed {
        return;
    }
    if !kind.both_blocks || rng.percent(40) {
        blocks = vec![rng.choose(&blocks)];
    }
    for (name, direction) in blocks {
        let mut block = rules(rng);
        vocabulary::name_objects(rng, kind, &mut block);
        dress(rng, kind, &mut block, Some(direction), true);
        spec.insert(name.to_owned(), Value::Object(block));
    }
}

/// Adds strategy, condition and `unset` where the kind has them.
fn dress(
    rng: &mut Rng,
    kind: &Settings,
    block: &mut Map<String, Value>,
    direction: Option<Direction>,
    named: bool,
) {
    if !kind.fields.is_empty() && rng.percent(60) {
        let field = rng.choose(&kind.fields);
        let suits = |s: &&super::settings::Strategy| direction.is_none_or(|d| d == s.direction);
        let offered: Vec<_> = kind.strategies.iter().filter(suits).collect();
        if !offered.is_empty() {
            let chosen = rng.choose(&offered);
            block.insert(field, json!(spelled(rng, kind, chosen, named)));
        }
    }
    if let Some(when) = kind.when.as_ref().filter(|_| named)
        && rng.percent(50)
    {
        let field = rng.pick(&["a", "m", "n", "flag"]);
        let condition = match rng.below(8) {
            5 => "self.n > 1 || has(self.flag)".to_owned(),
            6 => "self.tags.exists(t, t == 't1')".to_owned(),
            7 => "self.m.e1.v".to_owned(),
            0 => format!("has(self.{field})"),
            1 => format!("!has(self.{field})"),
            2 => "size(self) == 0".to_owned(),
            3 => "self.n == 2".to_owned(),
            _ => "self.a == 1".to_owned(),
        };
        block.insert(when.clone(), json!(condition));
    }
    if let Some(unset) = &kind.unset
        && rng.percent(35)
    {
        let names = rng.some(&["a", "a.x", "m", "m.e1", "n", "b", "m.e2.v"], 30);
        block.insert(unset.clone(), json!(names));
    }
}

/// The name of a strategy as a policy may write it.
fn spelled(
    rng: &mut Rng,
    kind: &Settings,
    chosen: &super::settings::Strategy,
    named: bool,
) -> String {
    let full = format!("{:?}{:?}", chosen.granularity, chosen.direction);
    // A granularity means its strategy of the block's direction; for bare rules that of defaults (5.3).
    let means = |value: &String| {
        let narrow = named || chosen.direction == Direction::Defaults;
        strategy(value) == Some(*chosen)
            || (narrow && granularity(value) == Some(chosen.granularity))
    };
    if let Some((raw, _)) = kind.values.iter().find(|(_, value)| means(value)) {
        return raw.clone();
    }
    if named && rng.percent(30) {
        return format!("{:?}", chosen.granularity);
    }
    if rng.percent(20) {
        full.to_lowercase()
    } else {
        full
    }
}

/// Rules over a few field names, so that policies meet.
fn rules(rng: &mut Rng) -> Map<String, Value> {
    let mut rules = Map::new();
    if rng.percent(8) {
        return rules;
    }
    for name in rng.some(&["a", "b", "m", "items", "n", "flag", "tags"], 45) {
        let value = match name {
            _ if rng.percent(5) => Value::Null,
            _ if rng.percent(4) => json!({}),
            _ if rng.percent(4) => json!(rng.below(3)),
            "a" => thing(rng, 2),
            "m" => entries(rng),
            "items" => items(rng),
            "n" => json!(rng.below(4)),
            "flag" => json!(rng.percent(50)),
            "tags" if rng.percent(12) => json!(["t1", "t2", "t1"]),
            "tags" => json!(rng.some(&["t1", "t2", "t3"], 60)),
            _ => json!(rng.pick(&["one", "two"])),
        };
        rules.insert(name.to_owned(), value);
    }
    rules
}

fn thing(rng: &mut Rng, depth: usize) -> Value {
    if depth == 0 || rng.percent(25) {
        return rng.choose(&[
            json!(1),
            json!(2),
            json!("s"),
            Value::Null,
            json!([1, null]),
            json!({}),
        ]);
    }
    let mut fields = Map::new();
    for name in rng.some(&["x", "y"], 60) {
        fields.insert(name.to_owned(), thing(rng, depth - 1));
    }
    if rng.percent(40) {
        fields.insert("m".to_owned(), entries(rng));
    }
    Value::Object(fields)
}

fn entries(rng: &mut Rng) -> Value {
    let mut map = Map::new();
    for name in rng.some(&["e1", "e2", "e3"], 50) {
        let value = match rng.below(12) {
            0 => Value::Null,
            1 => json!({}),
            2 => json!(3),
            3 => json!({"v": null, "w": 1}),
            4 => json!({"v": rng.below(4), "w": rng.below(3)}),
            _ => json!({"v": rng.below(4)}),
        };
        map.insert(name.to_owned(), value);
    }
    Value::Object(map)
}

fn items(rng: &mut Rng) -> Value {
    let mut names = rng.some(&["i1", "i2", "i3"], 55);
    rng.shuffle(&mut names);
    let mut items: Vec<Value> = Vec::new();
    let ports = rng.percent(70);
    for name in names {
        let mut item = json!({"name": name});
        // A second key of some lists.
        if ports {
            item["port"] = json!(80 + rng.below(2));
        }
        for field in rng.some(&["v", "alpha"], 60) {
            item[field] = rng.choose(&[json!(1), json!(2), json!({"z": 1}), json!([1])]);
        }
        items.push(item);
    }
    // Without the key, or with one twice, the list is a unit.
    match rng.below(12) {
        0 => items.push(json!({"v": 1})),
        1 => items.extend(items.first().cloned()),
        // Twice by the first of two keys.
        2 | 3 if !items.is_empty() => {
            let mut other = items[0].clone();
            other["port"] = json!(82);
            items.push(other);
        }
        _ => {}
    }
    json!(items)
}

/// Makes the policy invalid (specification 3.4).
fn spoil(rng: &mut Rng, kind: &Settings, spec: &mut Map<String, Value>) {
    match kind.fields.first() {
        Some(field) if rng.percent(50) => {
            let named = |name: &&String| spec.contains_key(name.as_str());
            let names = kind.defaults_names.iter().chain(&kind.overrides_names);
            let block = names.clone().find(named).cloned();
            let place = match block {
                Some(name) => spec.get_mut(&name).unwrap().as_object_mut().unwrap(),
                None => spec,
            };
            place.insert(field.clone(), json!("NoSuchStrategy"));
        }
        _ => {
            let both =
                json!({"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "gw0"});
            spec.entry("targetRef").or_insert(both.clone());
            spec.entry("targetRefs").or_insert(json!([both]));
        }
    }
}

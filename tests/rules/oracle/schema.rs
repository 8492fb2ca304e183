//! What a CRD's schema says of a block (specification 5.2, structural; 11.43).

use std::collections::BTreeMap;

use serde_json::Value;

/// How one block is taken apart: by the schema at its own place, and by the profile's list keys.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    schema: Option<Value>,
    keys: BTreeMap<String, String>,
}

/// What a place of a block is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Place {
    /// Everything below is one unit: an atomic map, or a map of scalars.
    pub closed: bool,
    /// A list that is united with others.
    pub set: bool,
    /// The keys of a keyed list.
    pub keys: Vec<String>,
}

impl Shape {
    /// The shape of the block at a dotted path of the object. `keys` are those of the profile.
    pub fn of(schema: Option<&Value>, path: &str, keys: &BTreeMap<String, String>) -> Self {
        Self {
            schema: schema_at(schema, path).cloned(),
            keys: keys.clone(),
        }
    }

    /// Whether a schema describes the block at a dotted path of the object.
    pub fn describes(schema: Option<&Value>, path: &str) -> bool {
        schema_at(schema, path).is_some()
    }

    /// What the place is that a path of fields names; items of keyed lists are no step (11.33).
    pub fn place(&self, fields: &[&str]) -> Place {
        let mut at = self.schema.as_ref();
        for name in fields {
            // The items of a keyed list, or the values of an open map.
            while let Some(items) = at.and_then(|schema| schema.get("items")) {
                at = Some(items);
            }
            at = at.and_then(|schema| {
                let named = schema["properties"].get(*name);
                named.or_else(|| Some(&schema["additionalProperties"]).filter(|s| s.is_object()))
            });
        }
        let mut place = Place::default();
        if let Some(key) = self.keys.get(&fields.join(".")) {
            place.keys.push(key.clone());
        }
        let Some(schema) = at else {
            return place;
        };
        let scalar = |schema: &Value| {
            let scalars = ["string", "integer", "number", "boolean"];
            schema["type"]
                .as_str()
                .is_some_and(|name| scalars.contains(&name))
                || schema["x-kubernetes-int-or-string"] == true
        };
        place.closed =
            schema["x-kubernetes-map-type"] == "atomic" || scalar(&schema["additionalProperties"]);
        match schema["x-kubernetes-list-type"].as_str() {
            Some("set") => place.set = place.keys.is_empty(),
            Some("map") if place.keys.is_empty() => {
                let keys = schema["x-kubernetes-list-map-keys"].as_array();
                let names = keys.into_iter().flatten().filter_map(Value::as_str);
                place.keys = names.map(str::to_owned).collect();
            }
            _ => {}
        }
        place
    }
}

/// The schema at a dotted path of the object, in which a step may have an index.
fn schema_at<'s>(schema: Option<&'s Value>, path: &str) -> Option<&'s Value> {
    let mut found = schema;
    for step in path.split('.') {
        let (name, index) = match step.split_once('[') {
            Some((name, _)) => (name, true),
            None => (step, false),
        };
        found = found.and_then(|schema| schema["properties"].get(name));
        if index {
            found = found.and_then(|schema| schema.get("items"));
        }
    }
    found
}

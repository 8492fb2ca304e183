//! Stores the objects of a world in a file that is cheap to read: parsing YAML would take more
//! instructions than the counted parts.

use std::collections::BTreeMap;
use std::path::Path;

use entail_core::model::{GroupKind, MetadataMap, Object, ObjectKey, Timestamp};
use serde_json::{Value, json};

use crate::bench_world::{BenchWorld, generate};

/// Writes the objects of a shape.
pub fn write(shape: &'static str, file: &Path) {
    let world = generate(shape);
    let mut all = Vec::new();
    for kind in world.store.kinds() {
        for (_, entry) in world.store.of_kind(kind) {
            let Object {
                key,
                labels,
                annotations,
                created,
                body,
                ..
            } = &*entry.object;
            all.push(json!({
                "kind": [key.kind.group, key.kind.kind],
                "name": [key.namespace, key.name],
                "labels": labels,
                "annotations": annotations,
                "created": created.map(Timestamp::seconds),
                "body": body.value(),
            }));
        }
    }
    std::fs::write(file, Value::from(all).to_string()).unwrap();
}

/// Reads the world of such a file.
pub fn read(shape: &'static str, file: &Path) -> BenchWorld {
    let text = std::fs::read_to_string(file).unwrap();
    let all: Vec<Value> = serde_json::from_str(&text).unwrap();
    let map = |value| {
        let map: BTreeMap<String, String> = serde_json::from_value(value).unwrap();
        MetadataMap::from(map)
    };
    let objects = all.into_iter().map(|mut value| {
        let mut take = |field: &str| value[field].take();
        let [group, kind]: [String; 2] = serde_json::from_value(take("kind")).unwrap();
        let [namespace, name]: [String; 2] = serde_json::from_value(take("name")).unwrap();
        Object {
            key: ObjectKey {
                kind: GroupKind::new(group, kind),
                namespace: namespace.into(),
                name: name.into(),
            },
            labels: map(take("labels")),
            annotations: map(take("annotations")),
            created: take("created").as_i64().map(Timestamp::from_seconds),
            generation: None,
            body: take("body").into(),
            location: None,
            unreadable: None,
        }
    });
    BenchWorld::of(shape, objects)
}

//! A world's objects in a file that is read with few instructions: YAML would take more than what
//! is counted.

use std::path::Path;

use entail_core::model::{GroupKind, Object, ObjectKey, Timestamp};
use serde_json::{Value, json};

use crate::bench_world::{BenchWorld, made};

/// Writes the objects of a shape.
pub fn write(shape: &'static str, file: &Path) {
    let made = made(shape);
    let mut all = Vec::new();
    for kind in made.store.kinds() {
        for (_, entry) in made.store.of_kind(kind) {
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
                "created": created.map(|at| at.0),
                "body": body,
            }));
        }
    }
    std::fs::write(file, Value::from(all).to_string()).unwrap();
}

/// The world of such a file.
pub fn read(shape: &'static str, file: &Path) -> BenchWorld {
    let text = std::fs::read_to_string(file).unwrap();
    let all: Vec<Value> = serde_json::from_str(&text).unwrap();
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
            labels: serde_json::from_value(take("labels")).unwrap(),
            annotations: serde_json::from_value(take("annotations")).unwrap(),
            created: take("created").as_i64().map(Timestamp),
            generation: None,
            body: take("body"),
            location: None,
        }
    });
    BenchWorld::of(shape, objects)
}

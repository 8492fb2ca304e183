//! Worlds of which only one Gateway is read: its paths and their answers are those of the whole world.

use std::collections::{BTreeMap, BTreeSet};

use entail::snapshot::Snapshot;
use entail::source::cluster::WatchFilter;
use entail_core::model::{Object, PathName};

use super::compare;
use super::follow::version;
use super::support::{scoped_objects, world_of};
use super::worlds::World;

/// The etags of the answers below a prefix.
fn answers(objects: Vec<Object>, prefix: &str) -> BTreeMap<String, String> {
    let world = world_of(objects);
    let mut paths = compare::paths(&world);
    paths.retain(|path| path.starts_with(prefix));
    let snapshot = Snapshot::build(world, version());
    let etag = |path: &String| {
        let answer = snapshot.look_up(&PathName::parse(path).unwrap());
        answer.map_or("none", |answer| answer.etag()).to_owned()
    };
    paths
        .iter()
        .map(|path| (path.clone(), etag(path)))
        .collect()
}

/// The differences between a world and what is read of it with `--gateway`, for each Gateway.
pub fn compared(world: &World) -> Vec<String> {
    let objects = scoped_objects(&world.documents());
    let gateways = objects
        .iter()
        .filter(|object| &*object.key.kind.kind == "Gateway");
    let mut wrong = Vec::new();
    for key in gateways.map(|gateway| &gateway.key) {
        let filter = WatchFilter {
            gateways: BTreeSet::from([(key.namespace.clone(), key.name.clone())]),
            ..WatchFilter::default()
        };
        let kept = objects
            .iter()
            .filter(|object| filter.matches(object))
            .cloned();
        let kept = kept.map(|object| filter.reduce(object)).collect();
        let prefix = format!("gateways/{}/{}", key.namespace, key.name);
        let (all, narrowed) = (answers(objects.clone(), &prefix), answers(kept, &prefix));
        if all != narrowed {
            let names = all.keys().chain(narrowed.keys());
            let other = names.filter(|name| all.get(*name) != narrowed.get(*name));
            let other: Vec<&String> = other.take(3).collect();
            wrong.push(format!(
                "seed {}, --gateway {prefix}: {other:?}",
                world.seed
            ));
        }
    }
    wrong
}

//! The parameters of Gateways and GatewayClasses that are not read (specification 2.9). Replies have them once
//! for each Gateway and class, because nearly every class has parameters.

use std::collections::BTreeSet;

use super::Visibility;
use crate::api::v1;
use crate::snapshot::Snapshot;
use entail_core::effective::World;
use entail_core::model::{GroupKind, ObjectKey, PathName, Root, TrafficPath, groups};
use entail_core::store::{ParametersRef, Projection};

/// Maximum number of entries in one reply.
const MAX_ENTRIES: usize = 16;

/// Returns the unread parameters of the Gateways and GatewayClasses of some paths, sorted by object.
pub(super) fn of_paths<'p>(
    snapshot: &Snapshot,
    paths: impl IntoIterator<Item = &'p String>,
    visibility: &dyn Visibility,
) -> Vec<v1::UnreadParameters> {
    let mut roots = BTreeSet::new();
    for path in paths {
        match PathName::parse(path) {
            Ok(PathName::GatewayClass(name)) => roots.insert(class_key(name)),
            Ok(PathName::Traffic(TrafficPath {
                root: Root::Gateway { namespace, name },
                ..
            })) => roots.insert(gateway_key(namespace, name)),
            _ => false,
        };
    }
    collect(snapshot.world(), roots, visibility)
}

/// Returns the unread parameters of all Gateways and of their GatewayClasses, sorted by object.
pub(super) fn of_all(
    snapshot: &Snapshot,
    visibility: &dyn Visibility,
) -> Vec<v1::UnreadParameters> {
    let world = snapshot.world();
    let gateway = kind("Gateway");
    let gateways = world.store().of_kind(&gateway);
    let roots = gateways.map(|((namespace, name), _)| gateway_key(namespace, name));
    collect(world, roots.collect(), visibility)
}

/// Returns the visible Gateways and GatewayClasses with unread parameters, also classes without Gateways.
pub(super) fn objects(world: &World) -> impl Iterator<Item = (ObjectKey, ParametersRef)> {
    let kinds = ["GatewayClass", "Gateway"].into_iter().map(kind);
    let keys = kinds.flat_map(|kind| {
        let objects = world.store().of_kind(&kind);
        let keys: Vec<ObjectKey> = objects.map(|(_, entry)| entry.object.key.clone()).collect();
        keys
    });
    keys.filter_map(|key| {
        let reference = world.unread_parameters(&key)?;
        Some((key, reference))
    })
}

fn collect(
    world: &World,
    mut roots: BTreeSet<ObjectKey>,
    visibility: &dyn Visibility,
) -> Vec<v1::UnreadParameters> {
    let classes: Vec<ObjectKey> = roots
        .iter()
        .filter_map(|key| class_of(world, key))
        .collect();
    roots.extend(classes);
    let visible = roots.into_iter().filter_map(|key| {
        let reference = world.unread_parameters(&key)?;
        visibility
            .includes_object(&key)
            .then(|| v1::UnreadParameters {
                object: key.to_string(),
                kind: reference.kind.to_string(),
                namespace: reference.namespace.to_string(),
                name: reference.name.to_string(),
            })
    });
    visible.take(MAX_ENTRIES).collect()
}

/// The GatewayClass of a Gateway.
fn class_of(world: &World, gateway: &ObjectKey) -> Option<ObjectKey> {
    match &world.store().get(gateway)?.projection {
        Projection::Gateway(gateway) => Some(class_key(&gateway.class)),
        _ => None,
    }
}

fn class_key(name: &str) -> ObjectKey {
    ObjectKey::new(kind("GatewayClass"), "", name)
}

fn gateway_key(namespace: &str, name: &str) -> ObjectKey {
    ObjectKey::new(kind("Gateway"), namespace, name)
}

fn kind(name: &str) -> GroupKind {
    GroupKind::new(groups::GATEWAY, name)
}

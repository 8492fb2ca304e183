//! Which kinds the server has, and under which names.

use std::collections::{BTreeMap, BTreeSet};

use kube::Discovery;
use kube::core::ApiResource;

use super::Cluster;
use entail_core::model::GroupKind;

/// The resources of the wanted kinds that are served and can be watched, each at the version that
/// the server recommends of those that have it.
///
/// # Errors
/// The server does not say.
pub(super) async fn served(
    cluster: &Cluster,
    wanted: &BTreeSet<GroupKind>,
) -> Result<BTreeMap<GroupKind, ApiResource>, kube::Error> {
    let groups: BTreeSet<&str> = wanted.iter().map(|kind| &*kind.group).collect();
    let groups: Vec<&str> = groups.into_iter().collect();
    let discovery = Discovery::new(cluster.client.clone()).filter(&groups);
    let found = discovery.run_aggregated().await?;
    let of_kind = |kind: &GroupKind| {
        let group = found.get(&kind.group)?;
        // A kind need not have the version that its group prefers: ReferenceGrant was v1beta1 beside
        // v1 routes for years. Of those that have it, the most stable one.
        let preferred = std::iter::once(group.preferred_version_or_latest());
        let mut resources = preferred
            .chain(group.versions())
            .flat_map(|version| group.versioned_resources(version));
        let (resource, _) = resources.find(|(resource, can)| {
            let is_watched = can.supports_operation("list") && can.supports_operation("watch");
            resource.kind == *kind.kind && is_watched
        })?;
        Some((kind.clone(), resource))
    };
    Ok(wanted.iter().filter_map(of_kind).collect())
}

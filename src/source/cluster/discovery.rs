//! API discovery: which kinds the API server serves, and as which resources.

use std::collections::{BTreeMap, BTreeSet};

use kube::Discovery;
use kube::core::ApiResource;

use super::Cluster;
use entail_core::model::GroupKind;

/// Returns the resources of those desired kinds that are served and can be listed and watched, each
/// at the version that the server prefers among the versions that have the kind.
///
/// # Errors
/// Returns an error if a discovery request fails.
pub(super) async fn served_resources(
    cluster: &Cluster,
    desired: &BTreeSet<GroupKind>,
) -> Result<BTreeMap<GroupKind, ApiResource>, kube::Error> {
    let groups: BTreeSet<&str> = desired.iter().map(|kind| &*kind.group).collect();
    let groups: Vec<&str> = groups.into_iter().collect();
    let discovery = Discovery::new(cluster.client.clone()).filter(&groups);
    let discovered = discovery.run_aggregated().await?;
    let resource_of = |kind: &GroupKind| {
        let group = discovered.get(&kind.group)?;
        // A kind may not exist at the preferred version of its group: for years, ReferenceGrant was
        // v1beta1 while routes were v1. `versions` begins with the most stable version.
        let preferred = std::iter::once(group.preferred_version_or_latest());
        let mut resources = preferred
            .chain(group.versions())
            .flat_map(|version| group.versioned_resources(version));
        let (resource, _) = resources.find(|(resource, capabilities)| {
            let can_watch =
                capabilities.supports_operation("list") && capabilities.supports_operation("watch");
            resource.kind == *kind.kind && can_watch
        })?;
        Some((kind.clone(), resource))
    };
    Ok(desired.iter().filter_map(resource_of).collect())
}

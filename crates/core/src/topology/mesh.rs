//! Mesh roots: Services that routes name as their parents (specification 1.3).

use std::collections::{BTreeMap, BTreeSet};

use super::{NodeId, Topology};
use crate::model::{GroupKind, NodeKey, ObjectKey, Str};
use crate::store::NamespacedName;

/// A Service that some route names as its parent, or that has a waypoint.
#[derive(Clone, Debug)]
pub(crate) struct MeshRoot {
    pub node: NodeId,
    /// The ports that parentRefs name, with their nodes.
    pub ports: BTreeMap<u16, NodeId>,
    /// Producer routes: routes in the Service's namespace, which apply to every client.
    pub producers: Vec<MeshRoute>,
    /// Consumer routes: routes in other namespaces, by namespace, which apply to the clients of that
    /// namespace only.
    pub consumers: BTreeMap<Str, Vec<MeshRoute>>,
    /// Namespaces that have paths of their own because of policies for their clients (specification 4.6).
    pub policy_clients: BTreeSet<Str>,
}

/// A route below a mesh root: its index, and the port if the parentRef names one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MeshRoute {
    pub port: Option<u16>,
    pub route: usize,
}

impl MeshRoot {
    /// A mesh root without routes.
    pub fn new(node: NodeId) -> Self {
        Self {
            node,
            ports: BTreeMap::new(),
            producers: Vec::new(),
            consumers: BTreeMap::new(),
            policy_clients: BTreeSet::new(),
        }
    }

    /// Whether a route names the Service as its parent.
    pub fn has_routes(&self) -> bool {
        !self.producers.is_empty() || !self.consumers.is_empty()
    }

    /// The routes for clients of a namespace, below the whole Service or below a port, as sorted indexes.
    ///
    /// A consumer route on the whole Service hides all producer routes from the clients of its namespace. A
    /// consumer route on a port hides the producer routes on that port.
    pub fn routes(&self, client: &str, port: Option<u16>) -> Vec<usize> {
        let consumers = self.consumers.get(client).map_or(&[][..], Vec::as_slice);
        let hidden = consumers.iter().any(|c| c.port.is_none())
            || port.is_some_and(|p| consumers.iter().any(|c| c.port == Some(p)));
        let visible = if hidden { consumers } else { &self.producers };
        // Consumer routes on a port do not hide producer routes on the whole Service.
        let mut indexes: Vec<usize> = visible
            .iter()
            .filter(|r| r.port == port)
            .map(|r| r.route)
            .collect();
        indexes.sort_unstable();
        indexes.dedup();
        indexes
    }

    /// The client namespaces that have paths of their own. All others take the paths of `*`.
    pub fn clients(&self) -> BTreeSet<Str> {
        self.consumers
            .keys()
            .chain(&self.policy_clients)
            .cloned()
            .collect()
    }
}

impl Topology {
    /// Makes a Service a mesh root, because it has a waypoint (specification 1.3, 2.12).
    pub(crate) fn add_mesh_root(&mut self, service: &NamespacedName) {
        let (namespace, name) = service.clone();
        let key = ObjectKey::new(GroupKind::service(), namespace, name);
        let node = self.intern(NodeKey::whole(key));
        let root = self.roots.entry(service.clone());
        root.or_insert_with(|| MeshRoot::new(node));
    }

    /// Gives a client namespace paths of its own below a Service, because a policy is for these clients only
    /// (specification 1.3, 4.6).
    pub fn add_policy_client(&mut self, service: &NamespacedName, client: Str) {
        if let Some(root) = self.roots.get_mut(service) {
            root.policy_clients.insert(client);
        }
    }
}

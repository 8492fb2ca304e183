//! Mesh roots: Services that routes name as parents (specification 1.3).

use std::collections::{BTreeMap, BTreeSet};

use super::{NodeId, Topology};
use crate::model::Str;
use crate::store::NamespacedName;

/// A Service that some route names as its parent.
#[derive(Debug)]
pub(crate) struct MeshRoot {
    pub node: NodeId,
    /// Ports that parentRefs name, with their nodes.
    pub ports: BTreeMap<u16, NodeId>,
    /// Routes in the Service's own namespace: they hold for every client.
    pub producers: Vec<MeshRoute>,
    /// Routes in other namespaces, by namespace: they hold for their own clients alone.
    pub consumers: BTreeMap<Str, Vec<MeshRoute>>,
    /// Namespaces set apart by policies for their own clients.
    pub policy_clients: BTreeSet<Str>,
}

/// A route below a mesh root: its index, and the port if the parentRef names one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MeshRoute {
    pub port: Option<u16>,
    pub route: usize,
}

impl MeshRoot {
    /// The routes that clients of a namespace take, below the whole Service or below a port.
    ///
    /// A consumer route on the whole Service hides all producer routes from its namespace, one on
    /// a port those of that port.
    pub fn routes(&self, client: &str, port: Option<u16>) -> Vec<usize> {
        let consumers = self.consumers.get(client).map_or(&[][..], Vec::as_slice);
        let hidden = consumers.iter().any(|c| c.port.is_none())
            || port.is_some_and(|p| consumers.iter().any(|c| c.port == Some(p)));
        let visible = if hidden { consumers } else { &self.producers };
        // Consumers of a port leave the whole Service to the producers.
        let mut indexes: Vec<usize> = visible
            .iter()
            .filter(|r| r.port == port)
            .map(|r| r.route)
            .collect();
        indexes.sort_unstable();
        indexes.dedup();
        indexes
    }

    /// The namespaces that are set apart; any other answers as `*`.
    pub fn clients(&self) -> BTreeSet<Str> {
        self.consumers
            .keys()
            .chain(&self.policy_clients)
            .cloned()
            .collect()
    }
}

impl Topology {
    /// Sets a namespace apart for a Service: it has a policy for its own clients there
    /// (specification 1.3, 4.6).
    pub fn add_policy_client(&mut self, service: &NamespacedName, client: Str) {
        if let Some(root) = self.roots.get_mut(service) {
            root.policy_clients.insert(client);
        }
    }
}

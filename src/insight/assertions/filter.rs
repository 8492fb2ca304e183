//! Which paths an assertion is about, decided one trie node after the other.

use super::document::{Assertion, Exception};
use super::expectation::ObjectVariable;
use crate::insight::Visibility;
use crate::insight::subject::is_section;
use entail_core::effective::World;
use entail_core::engine::PathEngine;
use entail_core::model::{
    GroupKind, InternalError, LabelSelector, Level, NodeKey, ObjectKey, OrInternal, Section, Str,
};
use entail_core::store::{Listener, Projection};
use entail_core::topology::{NodeId, RootKind, TrieNode, TrieNodeId, hostnames_overlap};
use hashbrown::{HashMap, HashSet};
use jiff::civil::Date;

/// The paths that an assertion is about.
#[derive(Clone, Debug)]
pub(super) struct PathFilter {
    /// The level at which the paths end.
    pub level: Level,
    /// The Gateways that paths begin at.
    pub gateways: Option<RootFilter>,
    /// The Services that paths of meshes begin at. Without both, all paths are included, and with one only its own.
    pub services: Option<RootFilter>,
    /// The paths of Gateways that serve one of these hosts; all if empty.
    pub hostnames: Vec<Str>,
    /// The labels of the namespace of the path.
    pub namespaces: Option<LabelSelector>,
    /// The namespace of the path; `None` for all.
    pub own_namespace: Option<Str>,
    /// The kinds of Routes; all if empty.
    pub kinds: Vec<GroupKind>,
}

/// The Gateways, or the Services, that paths begin at.
#[derive(Clone, Debug)]
pub(super) struct RootFilter {
    /// Namespaces and names; all if empty.
    pub names: Vec<(Str, Str)>,
    pub labels: LabelSelector,
}

impl RootFilter {
    /// Whether labels decide.
    pub fn has_labels(&self) -> bool {
        self.labels != LabelSelector::default()
    }
}

/// What a path above some trie node has to do with an assertion. Nothing is kept that the assertion does not read, so that
/// what is below a trie node is the same for many paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct PathContext {
    pub root: Option<NodeId>,
    pub listener: Option<NodeId>,
    pub route: Option<NodeId>,
    pub rule: Option<NodeId>,
    pub backend: Option<NodeId>,
    /// The exception that counts on the path, by its index.
    pub exception: Option<u16>,
    /// Whether the last Route is one that the assertion is about.
    is_about_route: bool,
}

/// Follows the paths of an assertion.
pub(super) struct PathScope<'a> {
    engine: &'a PathEngine,
    filter: &'a PathFilter,
    exceptions: HashMap<&'a ObjectKey, Vec<(u16, &'a Exception)>>,
    needs: Needs,
    /// What the caller sees; `None` if that is everything.
    visibility: Option<&'a dyn Visibility>,
}

/// The objects above Routes that an assertion reads.
#[derive(Clone, Copy, Debug, Default)]
struct Needs {
    gateway: bool,
    listener: bool,
    namespace: bool,
    backend: bool,
}

impl PathContext {
    /// The nodes of the objects that an expectation reads, without the rest.
    pub fn read_by(self, variables: &[ObjectVariable]) -> Self {
        let reads = |variable| variables.contains(&variable);
        let namespace = reads(ObjectVariable::Namespace);
        let keep = |node: Option<NodeId>, variable| node.filter(|_| namespace || reads(variable));
        Self {
            root: keep(self.root, ObjectVariable::Gateway),
            listener: keep(self.listener, ObjectVariable::Listener),
            route: keep(self.route, ObjectVariable::Route),
            rule: self.rule.filter(|_| reads(ObjectVariable::Rule)),
            backend: self.backend.filter(|_| reads(ObjectVariable::Backend)),
            ..Self::default()
        }
    }

    /// The nodes.
    pub fn nodes(self) -> impl Iterator<Item = NodeId> {
        let own = [
            self.root,
            self.listener,
            self.route,
            self.rule,
            self.backend,
        ];
        own.into_iter().flatten()
    }

    /// Whether one of the nodes is among some.
    pub fn has_any(self, nodes: &HashSet<NodeId>) -> bool {
        self.nodes().any(|node| nodes.contains(&node))
    }
}

impl<'a> PathScope<'a> {
    /// Follows the paths of a world on a day, which exceptions depend on, for a caller.
    pub fn new(
        engine: &'a PathEngine,
        assertion: &'a Assertion,
        today: Date,
        visibility: &'a dyn Visibility,
    ) -> Self {
        let mut exceptions: HashMap<_, Vec<_>> = HashMap::new();
        for (index, exception) in assertion.current_exceptions(today) {
            let index = u16::try_from(index).unwrap_or(u16::MAX);
            let of_object = exceptions.entry(&exception.object).or_default();
            of_object.push((index, exception));
        }
        Self {
            engine,
            filter: &assertion.filter,
            exceptions,
            needs: Needs {
                gateway: assertion.reads_gateways(),
                listener: assertion.reads_listeners(),
                namespace: assertion.reads_namespaces(),
                backend: assertion.expectation.reads(ObjectVariable::Backend),
            },
            visibility: (!visibility.is_unrestricted()).then_some(visibility),
        }
    }

    /// Why it cannot be decided whether the assertion is about a path, or whether the path is as expected: an object that
    /// decides it may not be seen by the caller, or is not known.
    pub fn not_decided(&self, context: PathContext) -> Option<String> {
        if let Some(hidden) = self.hidden(context) {
            return Some(format!("`{hidden}` may not be read"));
        }
        self.filter.namespaces.as_ref()?;
        let last = context.route.or(context.listener).or(context.root)?;
        let namespace = &self.world().topology().key(last).object.namespace;
        let is_missing = !self.knows_namespace(namespace);
        is_missing.then(|| format!("`Namespace/{namespace}` is not among the objects"))
    }

    /// Whether the labels of a namespace are known: those of one without an object decide nothing.
    fn knows_namespace(&self, namespace: &str) -> bool {
        let key = NodeKey::namespace(namespace).object;
        self.world().store().get(&key).is_some()
    }

    /// An object of a path that the assertion reads and that the caller may not see.
    fn hidden(&self, context: PathContext) -> Option<ObjectKey> {
        self.visibility?;
        let key = |node: Option<NodeId>| Some(&self.world().topology().key(node?).object);
        let of = |is_needed: bool, node| key(node).filter(|_| is_needed).cloned();
        let last = key(context.route.or(context.listener).or(context.root));
        let namespace = last.filter(|_| self.needs.namespace);
        let read = [
            of(self.needs.gateway, context.root),
            of(self.needs.listener, context.listener),
            namespace.map(|key| NodeKey::namespace(&*key.namespace).object),
            of(self.needs.backend, context.backend),
        ];
        let mut read = read.into_iter().flatten();
        read.find(|key| self.hides(key))
    }

    fn hides(&self, key: &ObjectKey) -> bool {
        let visibility = self.visibility;
        visibility.is_some_and(|visibility| !visibility.includes_object(key))
    }

    /// The world of the paths.
    pub fn world(&self) -> &'a World {
        self.engine.world()
    }

    /// The trie node with a number.
    pub fn node(&self, id: TrieNodeId) -> Result<&'a TrieNode, InternalError> {
        self.engine.trie().node(id)
    }

    /// Continues a path by one trie node. `None` if the assertion is about no path at this node or below it.
    pub fn step(
        &self,
        above: PathContext,
        id: TrieNodeId,
    ) -> Result<Option<PathContext>, InternalError> {
        let node = self.node(id)?;
        // Below a rule of a Route there may be other Routes.
        let leads_to_routes = node.level == Level::RouteRule
            && self.filter.level == Level::Route
            && self.engine.trie().has_delegating_rules();
        if node.level > self.filter.level && !leads_to_routes {
            return Ok(None);
        }
        let key = self.world().topology().key(node.node);
        let mut context = above;
        let is_included = match node.level {
            Level::Root | Level::GatewayClass | Level::Namespace => false,
            Level::Gateway => {
                let is_needed = self.needs.gateway || self.needs.namespace;
                context.root = is_needed.then_some(node.node);
                self.includes_root(id, key)?
            }
            Level::ListenerSet => true,
            Level::Listener => {
                let is_needed = self.needs.listener || self.needs.namespace;
                context.listener = is_needed.then_some(node.node);
                self.includes_listener(key)
            }
            Level::Route => {
                context.route = Some(node.node);
                context.is_about_route = self.includes_route(key, above.listener);
                // A rule of the Route may delegate to others.
                context.is_about_route || self.engine.trie().has_delegating_rules()
            }
            Level::RouteRule => {
                context.rule = Some(node.node);
                true
            }
            Level::Backend | Level::BackendPort => {
                if node.level == Level::Backend {
                    context.backend = Some(node.node);
                }
                true
            }
        };
        if !is_included {
            return Ok(None);
        }
        context.exception = self.exception(node.node, key).or(context.exception);
        Ok(Some(context))
    }

    /// Whether the assertion is about the path that ends at a trie node, with the context there.
    pub fn selects(&self, context: PathContext, id: TrieNodeId) -> Result<bool, InternalError> {
        let node = self.node(id)?;
        let trie = self.engine.trie();
        // A backend without ports is the end of its paths.
        let is_end = node.level == Level::Backend && trie.below(node).next().is_none();
        let is_selected =
            node.level == self.filter.level || self.filter.level == Level::BackendPort && is_end;
        if !is_selected {
            return Ok(false);
        }
        if node.level >= Level::Route {
            // Requests pass such a rule on the way to child Routes, whose rules count.
            let topology = self.world().topology();
            let passes = trie.is_delegating(id) && topology.delegates_only(node.node);
            return Ok(context.is_about_route && !passes);
        }
        let key = self.world().topology().key(node.node);
        Ok(self.includes_namespace(&key.object.namespace))
    }

    fn includes_root(&self, id: TrieNodeId, key: &NodeKey) -> Result<bool, InternalError> {
        let root = self.engine.trie().root(id).or_internal("a root")?;
        let is_gateway = root.kind == RootKind::Gateway;
        let (own, other) = match is_gateway {
            true => (&self.filter.gateways, &self.filter.services),
            false => (&self.filter.services, &self.filter.gateways),
        };
        // Services serve no hosts.
        let has_hosts = is_gateway || self.filter.hostnames.is_empty();
        let Some(filter) = own else {
            return Ok(has_hosts && other.is_none());
        };
        let object = &key.object;
        let is_named = filter.names.is_empty()
            || filter
                .names
                .iter()
                .any(|(namespace, name)| *namespace == object.namespace && *name == object.name);
        let entry = self.world().store().get(object);
        let has_labels = entry.is_some_and(|entry| filter.labels.matches(&entry.object.labels));
        // What a caller may not read decides nothing: it is not known then.
        Ok(has_hosts && is_named && (has_labels || self.hides(object)))
    }

    fn includes_listener(&self, key: &NodeKey) -> bool {
        let listener = self.listener(key);
        let hostname = listener.and_then(|listener| listener.hostname.as_deref());
        self.serves(hostname, &[]) || self.hides(&key.object)
    }

    fn includes_route(&self, key: &NodeKey, listener: Option<NodeId>) -> bool {
        let object = &key.object;
        let kinds = &self.filter.kinds;
        if !kinds.is_empty() && !kinds.contains(&object.kind) {
            return false;
        }
        if !self.includes_namespace(&object.namespace) {
            return false;
        }
        if self.filter.hostnames.is_empty() {
            return true;
        }
        let route = self.world().store().route(object);
        let hostnames = route.map_or(&[][..], |route| &route.hostnames);
        let listener = listener.map(|node| self.world().topology().key(node));
        let visible = listener.filter(|key| !self.hides(&key.object));
        let listener = visible.and_then(|key| self.listener(key));
        self.serves(listener.and_then(|l| l.hostname.as_deref()), hostnames)
    }

    /// Whether a listener with a hostname serves one of the hosts of the filter, for a Route with hostnames. Without a
    /// hostname, all hosts are served.
    fn serves(&self, listener: Option<&str>, route: &[Str]) -> bool {
        let hosts = &self.filter.hostnames;
        hosts.is_empty()
            || hosts
                .iter()
                .any(|host| hostnames_overlap(listener, route, host))
    }

    fn includes_namespace(&self, namespace: &Str) -> bool {
        let own = &self.filter.own_namespace;
        if own.as_ref().is_some_and(|own| own != namespace) {
            return false;
        }
        let Some(selector) = &self.filter.namespaces else {
            return true;
        };
        // What is not known, or may not be read, decides nothing.
        let is_hidden =
            || self.visibility.is_some() && self.hides(&NodeKey::namespace(&**namespace).object);
        let labels = self.world().topology().namespace_labels().get(namespace);
        let matches = labels.is_some_and(|labels| selector.matches(labels));
        matches || is_hidden() || !self.knows_namespace(namespace)
    }

    /// The listener of a node; `None` for ports of mesh roots.
    fn listener(&self, key: &NodeKey) -> Option<&'a Listener> {
        let Some(Section::Listener(name)) = &key.section else {
            return None;
        };
        let listeners = match &self.world().store().get(&key.object)?.projection {
            Projection::Gateway(gateway) => &gateway.listeners,
            Projection::ListenerSet(set) => &set.listeners,
            _ => return None,
        };
        listeners.iter().find(|listener| listener.name == *name)
    }

    /// The first exception for a node.
    fn exception(&self, node: NodeId, key: &NodeKey) -> Option<u16> {
        let of_object = self.exceptions.get(&key.object)?;
        let mut of_object = of_object.iter();
        let includes = |exception: &Exception| match &exception.section {
            None => true,
            // Of rules, exactly: one without a name is `#` and its index.
            Some(section) if matches!(key.section, Some(Section::Rule(_))) => {
                let described = self.world().topology().describe(node);
                described.split_once('#').map(|(_, own)| own) == Some(section)
            }
            Some(section) => is_section(self.world(), node, section),
        };
        let (index, _) = of_object.find(|(_, exception)| includes(exception))?;
        Some(*index)
    }
}

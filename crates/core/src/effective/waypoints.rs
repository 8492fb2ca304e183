//! Finds the waypoints of Services: the Gateways that serve their mesh paths (specification 2.12).

use std::collections::BTreeSet;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use super::{Activity, Controllers, PolicyKind, UnknownController, World};
use crate::model::{
    GroupKind, Level, MetadataMap, NodeKey, Object, ObjectKey, OrInternal, Str, groups,
};
use crate::profile::{
    MetConditions, Profile, RootTraits, WaypointLabel, WaypointNamespace, Waypoints,
};
use crate::store::{NamespacedName, Store};
use crate::topology::build::projected_gateway;
use crate::topology::{NodeId, PathStep, RootController, RootKind, Topology, TrieNode, TrieRoot};

/// The waypoint of a Service, as a kind considers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waypoint {
    /// There is none.
    Absent(NoWaypoint),
    /// A Gateway.
    Gateway(WaypointGateway),
    /// It is not known which Gateway it is, or which of several.
    Unknown {
        /// What is not known.
        why: UnknownController,
        /// The Gateways that are known to serve some requests.
        candidates: Vec<WaypointGateway>,
    },
}

/// A Gateway that is the waypoint of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaypointGateway {
    node: NodeId,
    class: Option<NodeId>,
    class_name: Str,
    /// `namespace/name`.
    name: Str,
    controller: RootController,
    namespace: WaypointNamespace,
}

/// Why a Service has no waypoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoWaypoint {
    /// Neither the Service nor its Namespace has the label.
    NotLabelled,
    /// The label has the value that means none.
    OptedOut,
    /// The Service belongs to a Gateway of the mesh itself.
    Excepted,
    /// The Gateway does not admit the namespace of the Service.
    NotAdmitted(Str),
    /// The Gateway is for other traffic.
    OtherTraffic(Str),
    /// The Gateway is of a controller whose Gateways are no waypoints.
    OtherController(Str),
}

/// The waypoints of all mesh roots.
#[derive(Debug, Default)]
pub(crate) struct WaypointTable(HashMap<NodeId, Waypoint>);

/// The attachments to Services that count on the paths of a root (specification 2.12).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum ServiceAttachments {
    /// All.
    #[default]
    All,
    /// Those to the root.
    RootOnly,
    /// None.
    None,
}

/// The root of a path.
#[derive(Clone, Copy, Debug)]
pub struct PathRoot<'r> {
    /// The kind of root.
    pub kind: RootKind,
    /// The node of the GatewayClass, Namespace, Gateway or Service.
    pub node: NodeId,
    /// The GatewayClass of a Gateway, if it exists.
    pub class: Option<NodeId>,
    /// The controller.
    pub controller: &'r RootController,
}

/// What waypoints are read from.
#[derive(Clone, Copy)]
struct Source<'s> {
    store: &'s Store,
    topology: &'s Topology,
    controllers: &'s Controllers,
    /// A GatewayClass that counts as missing.
    without_class: Option<&'s Str>,
}

/// What waypoints were read from before a change, and what they are read from now.
pub(crate) struct WaypointVersions<'w> {
    world: &'w World,
    before: &'w Store,
    /// With the namespaces of now.
    topology: Topology,
    settings: Vec<(&'w Profile, &'w Waypoints)>,
}

/// What the waypoint of a Service means for a kind, apart from the policies that are attached to the waypoint.
#[derive(PartialEq)]
struct WaypointEffect {
    /// Without controllers and classes.
    waypoint: Waypoint,
    activity: Option<Activity>,
    met: MetConditions,
}

impl ServiceAttachments {
    /// Whether attachments to an object at a level of a mesh path count.
    pub fn includes(self, level: Level) -> bool {
        match self {
            ServiceAttachments::All => true,
            ServiceAttachments::RootOnly => level < Level::Backend,
            ServiceAttachments::None => {
                level < Level::Backend && !matches!(level, Level::Gateway | Level::Listener)
            }
        }
    }
}

/// The Services that have a waypoint of some profile, or of which that is not known.
pub(super) fn services_behind_waypoints<'p>(
    profiles: impl Iterator<Item = &'p Arc<Profile>>,
    store: &Store,
    topology: &Topology,
    controllers: &Controllers,
) -> Vec<NamespacedName> {
    let source = Source {
        store,
        topology,
        controllers,
        without_class: None,
    };
    let settings = distinct_settings(profiles);
    let kind = GroupKind::service();
    let services = store.of_kind(&kind);
    let services = services.map(|((namespace, name), _)| (namespace.clone(), name.clone()));
    let is_behind = |service: &NamespacedName| {
        settings.iter().any(|(profile, waypoints)| {
            let found = source.waypoint(profile, waypoints, service);
            !matches!(found, Waypoint::Absent(_))
        })
    };
    match settings.is_empty() {
        true => Vec::new(),
        false => services.filter(is_behind).collect(),
    }
}

impl<'w> WaypointVersions<'w> {
    /// Those of a world with the topology before, of which some namespaces changed; `None` if no kind has waypoints.
    pub(crate) fn of(
        world: &'w World,
        before: &'w Store,
        namespaces: &BTreeSet<Str>,
    ) -> Option<Self> {
        let kinds = world.kinds().iter();
        let settings = distinct_settings(kinds.map(|kind| &kind.profile));
        if settings.is_empty() {
            return None;
        }
        let mut topology = world.topology.as_ref().clone();
        topology.change_namespaces(&world.store, namespaces);
        Some(Self {
            world,
            before,
            topology,
            settings,
        })
    }

    fn sources(&self) -> [Source<'_>; 2] {
        let source = self.world.waypoint_source(None);
        let (store, topology) = (self.before, &self.topology);
        [Source { store, ..source }, Source { topology, ..source }]
    }

    /// Whether a Service in some namespaces has another waypoint than before.
    pub(crate) fn differ_in(&self, namespaces: &BTreeSet<Str>) -> bool {
        let kind = GroupKind::service();
        namespaces.iter().any(|namespace| {
            let services = self.before.of_kind_in(&kind, namespace);
            let mut services = services.chain(self.world.store.of_kind_in(&kind, namespace));
            services.any(|(name, _)| {
                let service = (namespace.clone(), name.clone());
                self.settings.iter().any(|(profile, waypoints)| {
                    let [before, now] = self
                        .sources()
                        .map(|source| source.waypoint(profile, waypoints, &service));
                    before != now
                })
            })
        })
    }

    /// Whether labels name one of some Gateways as the waypoint of a Service or as its canary, before or now.
    pub(crate) fn name_any(&self, gateways: &BTreeSet<NamespacedName>) -> bool {
        let labels = self.settings.iter();
        let labels = labels.map(|(_, waypoints)| &*waypoints.label.name);
        let labels: BTreeSet<&str> = labels.collect();
        let mut sources = self.sources().into_iter();
        sources.any(|source| {
            let labelled = source.labelled_services(&labels);
            labelled.into_iter().any(|service| {
                let mut settings = self.settings.iter();
                settings.any(|(_, waypoints)| {
                    let named = source.named_gateways(waypoints, &service).into_iter();
                    let mut names =
                        named.flat_map(|(name, canary)| canary.into_iter().chain([name]));
                    names.any(|name| gateways.contains(&name))
                })
            })
        })
    }
}

impl World {
    /// Whether a Service has a waypoint of some kind, or it is not known if it has.
    pub(crate) fn has_waypoint(&self, service: &NamespacedName) -> bool {
        let source = self.waypoint_source(None);
        self.kinds().iter().any(|kind| {
            let waypoints = kind.profile.waypoints.as_ref();
            waypoints.is_some_and(|waypoints| {
                let found = source.waypoint(&kind.profile, waypoints, service);
                !matches!(found, Waypoint::Absent(_))
            })
        })
    }
}

/// The settings of profiles by which Services have other waypoints than by those of the others.
fn distinct_settings<'p>(
    profiles: impl Iterator<Item = &'p Arc<Profile>>,
) -> Vec<(&'p Profile, &'p Waypoints)> {
    let mut settings: Vec<(&Profile, &Waypoints)> = Vec::new();
    for profile in profiles {
        if let Some(waypoints) = &profile.waypoints
            && !settings
                .iter()
                .any(|(other, _)| has_same_waypoints(other, profile))
        {
            settings.push((profile, waypoints));
        }
    }
    settings
}

/// Whether every Service has the same waypoint for the kinds of two profiles.
fn has_same_waypoints(one: &Profile, other: &Profile) -> bool {
    one.waypoints == other.waypoints && one.controllers == other.controllers
}

impl WaypointTable {
    /// Finds the waypoints of all mesh roots for each of the kinds. Kinds with equal settings share a table.
    pub fn fill(
        kinds: &mut [PolicyKind],
        store: &Store,
        topology: &Topology,
        controllers: &Controllers,
    ) {
        let source = Source {
            store,
            topology,
            controllers,
            without_class: None,
        };
        let mut tables: Vec<(Arc<Profile>, Arc<WaypointTable>)> = Vec::new();
        for kind in kinds {
            let Some(waypoints) = &kind.profile.waypoints else {
                continue;
            };
            let mut tables_of_others = tables.iter();
            let existing =
                tables_of_others.find(|(profile, _)| has_same_waypoints(profile, &kind.profile));
            let table = match existing {
                Some((_, table)) => Arc::clone(table),
                None => {
                    let roots = topology.roots.iter();
                    let found = roots.map(|(service, root)| {
                        (
                            root.node,
                            source.waypoint(&kind.profile, waypoints, service),
                        )
                    });
                    let table = Arc::new(WaypointTable(found.collect()));
                    tables.push((Arc::clone(&kind.profile), Arc::clone(&table)));
                    table
                }
            };
            kind.waypoints = Some(table);
        }
    }
}

impl<'s> Source<'s> {
    /// The waypoint of a Service.
    fn waypoint(
        self,
        profile: &Profile,
        waypoints: &Waypoints,
        service: &NamespacedName,
    ) -> Waypoint {
        let (name, canary) = match self.named_gateways(waypoints, service) {
            Ok(named) => named,
            Err(why) => return Waypoint::Absent(why),
        };
        let found = self.gateway(profile, waypoints, &name, &service.0);
        let Waypoint::Gateway(gateway) = &found else {
            return found;
        };
        match canary.map(|canary| self.gateway(profile, waypoints, &canary, &service.0)) {
            Some(Waypoint::Gateway(canary)) => {
                let (waypoint, other) = (gateway.name.clone(), canary.name.clone());
                Waypoint::Unknown {
                    why: UnknownController::Divided(waypoint, other),
                    candidates: vec![gateway.clone(), canary],
                }
            }
            Some(Waypoint::Unknown { why, .. }) => Waypoint::Unknown {
                why,
                candidates: vec![gateway.clone()],
            },
            // Without a canary that serves Services, all requests go through the waypoint.
            Some(Waypoint::Absent(_)) | None => found,
        }
    }

    /// The Services that have one of some labels, or are in a Namespace with one.
    fn labelled_services(self, labels: &BTreeSet<&str>) -> Vec<NamespacedName> {
        let has_any = |values: &MetadataMap| labels.iter().any(|label| values.get(label).is_some());
        let namespaces = self.topology.labels.iter();
        let namespaces = namespaces.filter(|(_, values)| has_any(values));
        let namespaces: HashSet<&Str> = namespaces.map(|(name, _)| name).collect();
        let kind = GroupKind::service();
        let services = self.store.of_kind(&kind);
        let services = services.filter(|((namespace, _), entry)| {
            has_any(&entry.object.labels) || namespaces.contains(*namespace)
        });
        services
            .map(|((namespace, name), _)| (namespace.clone(), name.clone()))
            .collect()
    }

    /// The Gateway that labels name as the waypoint of a Service, and another one that takes a part of its requests;
    /// why they name none, if so.
    fn named_gateways(
        self,
        waypoints: &Waypoints,
        service: &NamespacedName,
    ) -> Result<(NamespacedName, Option<NamespacedName>), NoWaypoint> {
        let object = self.object("Service", groups::CORE, service);
        let label = |name: &str| object.and_then(|object| object.labels.get(name));
        let excepted = waypoints.except.as_ref().is_some_and(|except| {
            let value = label(&except.name);
            value.is_some_and(|value| except.has(value))
        });
        if excepted {
            return Err(NoWaypoint::Excepted);
        }
        let own = object.and_then(|object| named(&waypoints.label, &object.labels, &service.0));
        let inherits = own.is_none();
        let inherited = || {
            let labels = self.topology.labels.get(&service.0)?;
            named(&waypoints.label, labels, &service.0)
        };
        let name = own.or_else(inherited).ok_or(NoWaypoint::NotLabelled)?;
        if waypoints.opt_out.as_ref() == Some(&name.1) {
            return Err(NoWaypoint::OptedOut);
        }
        let canary = self.canary(waypoints, object, inherits, &service.0);
        let canary = canary.filter(|canary| *canary != name);
        Ok((name, canary))
    }

    /// The Gateway that takes a part of the requests to a Service, if a part above 0 % is given. The Namespace
    /// counts only if the Service `inherits` its waypoint.
    fn canary(
        self,
        waypoints: &Waypoints,
        service: Option<&Object>,
        inherits: bool,
        namespace: &Str,
    ) -> Option<NamespacedName> {
        let canary = waypoints.canary.as_ref()?;
        let key = ("".into(), namespace.clone());
        let above = self.object("Namespace", groups::CORE, &key);
        let objects = || [service, above.filter(|_| inherits)].into_iter().flatten();
        let name = objects().find_map(|object| named(&canary.label, &object.labels, namespace))?;
        let weight = objects().find_map(|object| object.annotations.get(&canary.weight))?;
        let counts = weight
            .parse()
            .is_ok_and(|part: u8| (1..=100).contains(&part));
        let is_name = !name.1.is_empty() && waypoints.opt_out.as_ref() != Some(&name.1);
        (counts && is_name).then_some(name)
    }

    /// What a Gateway with a name is to the Services of a namespace.
    fn gateway(
        self,
        profile: &Profile,
        waypoints: &Waypoints,
        name: &NamespacedName,
        namespace: &str,
    ) -> Waypoint {
        let text: Str = format!("{}/{}", name.0, name.1).into();
        let node = self.topology.gateways.get(name);
        let object = self.object("Gateway", groups::GATEWAY, name);
        let (Some(node), Some(object)) = (node, object) else {
            return Waypoint::Unknown {
                why: UnknownController::WaypointMissing(text),
                candidates: Vec::new(),
            };
        };
        let is_there = self.without_class != Some(&node.class);
        let class = self.topology.classes.get(&node.class);
        let class = class.filter(|_| is_there);
        if !self.admits(waypoints, name, namespace) {
            return Waypoint::Absent(NoWaypoint::NotAdmitted(text));
        }
        if !self.serves(waypoints, object, &node.class) {
            return Waypoint::Absent(NoWaypoint::OtherTraffic(text));
        }
        let controller = node.controller(class);
        let identities = self.controllers.identities(&controller);
        let is_of_kind = |name: &Str| profile.lists_controller(name);
        let is_waypoint = |name: &Str| profile.is_waypoint_controller(waypoints, name);
        if identities.iter().any(is_of_kind) && !identities.iter().any(is_waypoint) {
            return Waypoint::Absent(NoWaypoint::OtherController(text));
        }
        Waypoint::Gateway(WaypointGateway {
            node: node.node,
            class: class.map(|class| class.node),
            class_name: node.class.clone(),
            name: text,
            controller,
            namespace: match *name.0 == *namespace {
                true => WaypointNamespace::Same,
                false => WaypointNamespace::Other,
            },
        })
    }

    /// Whether a Gateway admits the Services of a namespace.
    fn admits(self, waypoints: &Waypoints, name: &NamespacedName, namespace: &str) -> bool {
        let Some((protocol, port)) = &waypoints.listener else {
            return true;
        };
        let gateway = projected_gateway(self.store, name);
        let mut listeners = gateway.iter().flat_map(|gateway| &gateway.listeners);
        let listener = listeners.find(|l| l.protocol == *protocol && l.port == *port);
        match listener {
            Some(listener) => {
                self.topology
                    .admits_namespace(&listener.namespaces, &name.0, namespace)
            }
            None => *name.0 == *namespace,
        }
    }

    /// Whether a Gateway is for requests to Services.
    fn serves(self, waypoints: &Waypoints, gateway: &Object, class: &Str) -> bool {
        let Some(traffic) = &waypoints.traffic else {
            return true;
        };
        let key = ("".into(), class.clone());
        let is_there = self.without_class != Some(class);
        let class = self.object("GatewayClass", groups::GATEWAY, &key);
        let objects = [Some(gateway), class.filter(|_| is_there)]
            .into_iter()
            .flatten();
        let mut values = objects.filter_map(|object| object.labels.get(&traffic.name));
        values.next().is_none_or(|value| traffic.has(value))
    }

    fn object(self, kind: &str, group: &str, name: &NamespacedName) -> Option<&'s Object> {
        let kind = GroupKind::new(group, kind);
        let key = ObjectKey::new(kind, name.0.clone(), name.1.clone());
        self.store.get(&key).map(|entry| &*entry.object)
    }
}

/// The Gateway that a label names.
fn named(label: &WaypointLabel, labels: &MetadataMap, namespace: &Str) -> Option<NamespacedName> {
    let name = labels.get(&label.name)?;
    let other = label.namespace.as_ref().and_then(|label| labels.get(label));
    let namespace = other.map_or_else(|| namespace.clone(), |other| other.into());
    Some((namespace, name.into()))
}

impl NoWaypoint {
    /// Describes why a Service has no waypoint.
    pub fn message(&self, waypoints: &Waypoints) -> String {
        let label = &waypoints.label.name;
        match self {
            NoWaypoint::NotLabelled => format!("neither it nor its Namespace has label `{label}`"),
            NoWaypoint::OptedOut => format!("label `{label}` excludes it"),
            NoWaypoint::Excepted => "it belongs to a Gateway of the mesh".to_owned(),
            NoWaypoint::NotAdmitted(name) => {
                format!("Gateway `{name}` does not admit Services of its namespace")
            }
            NoWaypoint::OtherTraffic(name) => {
                format!("Gateway `{name}` is not for requests to Services")
            }
            NoWaypoint::OtherController(name) => {
                format!("the controller of Gateway `{name}` does not serve waypoints")
            }
        }
    }
}

impl<'r> PathRoot<'r> {
    /// The root at a trie node.
    pub fn of(node: &TrieNode, root: &'r TrieRoot) -> Self {
        Self {
            kind: root.kind,
            node: node.node,
            class: root.class,
            controller: &root.controller,
        }
    }
}

impl PolicyKind {
    /// The nodes down to a mesh root that the kind considers because the root has a waypoint: the Gateway, with its
    /// GatewayClass and Namespace, and those of the root itself. Empty if the kind has no waypoints.
    pub(crate) fn waypoint_nodes(&self, topology: &Topology, service: NodeId) -> Vec<NodeId> {
        if self.waypoints.is_none() {
            return Vec::new();
        }
        let root = PathRoot {
            kind: RootKind::Mesh,
            node: service,
            class: None,
            controller: &RootController::None,
        };
        let steps = self.steps_to_root(topology, root, Level::Gateway);
        steps.into_iter().map(|step| step.node).collect()
    }

    /// The waypoint of a mesh root, if the kind has waypoints.
    fn waypoint(&self, root: PathRoot<'_>) -> Option<&Waypoint> {
        let table = self.waypoints.as_ref()?;
        if root.kind != RootKind::Mesh {
            return None;
        }
        let found = table
            .0
            .get(&root.node)
            .or_internal("the waypoint of a mesh root");
        found.map_err(|error| self.fail(error)).ok()
    }

    /// The Gateway that serves the paths of a mesh root.
    fn waypoint_gateway(&self, root: PathRoot<'_>) -> Option<&WaypointGateway> {
        match self.waypoint(root)? {
            Waypoint::Gateway(gateway) => Some(gateway),
            Waypoint::Absent(_) | Waypoint::Unknown { .. } => None,
        }
    }

    /// The attachments to Services that count on the paths of a root.
    pub(crate) fn service_attachments(&self, root: PathRoot<'_>) -> ServiceAttachments {
        match self.waypoint(root) {
            None => ServiceAttachments::All,
            Some(Waypoint::Absent(_)) => ServiceAttachments::None,
            Some(_) => ServiceAttachments::RootOnly,
        }
    }

    /// The nodes above the root of a path that the kind considers: the class of a Gateway, and a waypoint with its
    /// class.
    pub(crate) fn above_root(&self, root: PathRoot<'_>) -> Vec<PathStep> {
        let waypoints = match self.waypoint(root) {
            Some(Waypoint::Gateway(gateway)) => std::slice::from_ref(gateway),
            Some(Waypoint::Unknown { candidates, .. }) => candidates,
            Some(Waypoint::Absent(_)) | None => &[],
        };
        let of_waypoints = waypoints.iter().filter_map(|waypoint| waypoint.class);
        let mut classes: Vec<NodeId> = root.class.into_iter().chain(of_waypoints).collect();
        classes.dedup();
        let classes = classes.into_iter().map(|node| (node, Level::GatewayClass));
        let gateways = waypoints.iter().map(|w| (w.node, Level::Gateway));
        let steps = classes.chain(gateways);
        steps
            .map(|(node, level)| PathStep { node, level })
            .collect()
    }

    /// The nodes down to the root of a path that the kind considers, Namespaces among them (specification 1.2).
    pub(crate) fn steps_to_root(
        &self,
        topology: &Topology,
        root: PathRoot<'_>,
        level: Level,
    ) -> Vec<PathStep> {
        let top = topology.node(&NodeKey::root()).map(|node| PathStep {
            node,
            level: Level::Root,
        });
        let mut found = Vec::with_capacity(6);
        found.extend(top.filter(|_| self.sees(Level::Root)));
        let node = root.node;
        let steps = self.above_root(root).into_iter();
        let steps = steps.chain([PathStep { node, level }]);
        for step in steps.filter(|step| self.keeps(root.kind, step.level)) {
            let key = topology.key(step.node);
            let reached = key.section.is_none() && self.sees_namespace(step.level);
            let above = topology
                .namespace(&key.object.namespace)
                .map(|node| PathStep {
                    node,
                    level: Level::Namespace,
                });
            let above = above.filter(|above| reached && !found.contains(above));
            found.extend(above);
            found.push(step);
        }
        found
    }
}

impl World {
    /// Whether a kind acts on the paths of a root (specification 2.4, 2.6, 2.12).
    pub fn activity(&self, kind: &PolicyKind, root: PathRoot<'_>) -> Activity {
        let profile = &kind.profile;
        match kind.waypoint(root) {
            None | Some(Waypoint::Absent(_)) => {
                self.controllers
                    .activity(profile, root.kind, root.controller)
            }
            Some(Waypoint::Unknown { why, .. }) => Activity::Unknown(why.clone()),
            Some(Waypoint::Gateway(gateway)) => self.activity_at_waypoint(profile, gateway),
        }
    }

    /// Whether a kind acts on the paths that a waypoint serves.
    fn activity_at_waypoint(&self, profile: &Profile, gateway: &WaypointGateway) -> Activity {
        let controller = &gateway.controller;
        let activity = self
            .controllers
            .activity(profile, RootKind::Gateway, controller);
        match activity {
            Activity::Unknown(unknown) => Activity::Unknown(unknown.of_waypoint(&gateway.name)),
            known => known,
        }
    }

    fn waypoint_source<'s>(&'s self, without_class: Option<&'s Str>) -> Source<'s> {
        Source {
            store: &self.store,
            topology: &self.topology,
            controllers: &self.controllers,
            without_class,
        }
    }

    /// The GatewayClasses of the Gateways that labels name as the waypoint of a Service.
    pub(crate) fn waypoint_classes(&self, service: &NamespacedName) -> BTreeSet<Str> {
        let named = self.waypoints_named(service);
        let gateways = named
            .iter()
            .filter_map(|name| self.topology.gateways.get(name));
        gateways.map(|gateway| gateway.class.clone()).collect()
    }

    /// Whether a GatewayClass decides what the waypoint of a Service is to a kind, or whether the kind acts there. If
    /// not, the kind has the same answers without the class.
    pub(crate) fn decides_waypoint(
        &self,
        kind: &PolicyKind,
        service: &NamespacedName,
        class: &Str,
    ) -> bool {
        let Some(waypoints) = &kind.profile.waypoints else {
            return false;
        };
        let effect = |without| {
            let source = self.waypoint_source(without);
            self.waypoint_effect(
                &kind.profile,
                source.waypoint(&kind.profile, waypoints, service),
            )
        };
        effect(None) != effect(Some(class))
    }

    fn waypoint_effect(&self, profile: &Profile, mut waypoint: Waypoint) -> WaypointEffect {
        let mut activity = None;
        let mut met = MetConditions::default();
        let gateways = match &mut waypoint {
            Waypoint::Absent(_) => &mut [],
            Waypoint::Unknown { candidates, .. } => candidates.as_mut_slice(),
            Waypoint::Gateway(gateway) => {
                activity = Some(self.activity_at_waypoint(profile, gateway));
                let traits = RootTraits {
                    class: Some(&gateway.class_name),
                    controllers: self.controllers.identities(&gateway.controller),
                    mesh: true,
                    waypoint: Some(gateway.namespace),
                };
                // No policy takes the place of another on a mesh path.
                met = profile.limits.met_by_root(traits, |_| false);
                std::slice::from_mut(gateway)
            }
        };
        for gateway in gateways {
            gateway.class = None;
            gateway.controller = RootController::None;
        }
        WaypointEffect {
            waypoint,
            activity,
            met,
        }
    }

    /// The conditions of limits that the root of a path meets (specification 2.10).
    pub(crate) fn met_by_root(&self, kind: &PolicyKind, root: PathRoot<'_>) -> MetConditions {
        let limits = &kind.profile.limits;
        if limits.is_empty() {
            return MetConditions::default();
        }
        let waypoint = kind.waypoint_gateway(root);
        let name = |class: NodeId| &*self.topology.key(class).object.name;
        let class = match (root.kind, root.class, root.controller) {
            (RootKind::GatewayClass, ..) => Some(name(root.node)),
            (_, Some(class), _) => Some(name(class)),
            (_, None, RootController::ClassMissing(class)) => Some(&**class),
            _ => waypoint.map(|waypoint| &*waypoint.class_name),
        };
        let controller = waypoint.map_or(root.controller, |waypoint| &waypoint.controller);
        let traits = RootTraits {
            class,
            controllers: self.controllers.identities(controller),
            mesh: root.kind == RootKind::Mesh,
            waypoint: waypoint.map(|waypoint| waypoint.namespace),
        };
        limits.met_by_root(traits, |other| self.may_act_below(other, root))
    }

    /// The Gateways that labels name as the waypoint of a Service, for any kind.
    pub(crate) fn waypoints_named(&self, service: &NamespacedName) -> BTreeSet<NamespacedName> {
        let source = self.waypoint_source(None);
        let kinds = self.kinds.iter();
        let settings = kinds.filter_map(|kind| kind.profile.waypoints.as_ref());
        let named = settings.filter_map(|waypoints| source.named_gateways(waypoints, service).ok());
        named
            .flat_map(|(name, canary)| [Some(name), canary])
            .flatten()
            .collect()
    }

    /// Why a Service has no waypoint of a kind; `None` if it has one, or the kind has no waypoints.
    pub fn no_waypoint(&self, kind: &PolicyKind, service: &NamespacedName) -> Option<String> {
        let waypoints = kind.profile.waypoints.as_ref()?;
        let source = self.waypoint_source(None);
        match source.waypoint(&kind.profile, waypoints, service) {
            Waypoint::Absent(why) => Some(why.message(waypoints)),
            Waypoint::Gateway(_) | Waypoint::Unknown { .. } => None,
        }
    }
}

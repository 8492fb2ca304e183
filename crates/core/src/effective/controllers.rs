//! Decides for which roots a kind acts, by the controller of the Gateway's class (specification 2.4, 2.6).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::HashSet;

use super::{PolicyKind, World};
use crate::model::{GroupKind, Str, did_you_mean};
use crate::profile::{
    Profile, ProfileError, ProfileOrigin, built_in, is_routing_filter, matches_pattern,
    routing_filters,
};
use crate::routing::{Dialect, ListenerIsolation, StreamRoutes};
use crate::store::{ControllerAlias, ProfileRegistry, ProfileSources, Store};
use crate::topology::{RootController, RootKind, RoutingTraits, Topology};

/// Whether a kind acts on the paths of a root.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Activity {
    /// It acts.
    #[default]
    Active,
    /// It does not act.
    Inactive,
    /// It is not known whether it acts.
    Unknown(UnknownController),
}

/// Why it is not known which controller serves a Gateway.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum UnknownController {
    /// The GatewayClass with this name does not exist.
    ClassMissing(Str),
    /// No profile lists this `controllerName`.
    NotListed(Str),
    /// The Gateway that is the waypoint of a Service does not exist (specification 2.12).
    WaypointMissing(Str),
    /// The GatewayClass of a waypoint does not exist.
    WaypointClassMissing {
        /// The Gateway.
        waypoint: Str,
        /// The GatewayClass.
        class: Str,
    },
    /// No profile lists the `controllerName` of a waypoint.
    WaypointNotListed {
        /// The Gateway.
        waypoint: Str,
        /// The `controllerName`.
        controller: Str,
    },
    /// Two waypoints share the requests to a Service.
    Divided(Str, Str),
}

/// What is known about controllers.
#[derive(Clone, Debug, Default)]
pub struct Controllers {
    /// The `controllers` of all profiles, sorted.
    patterns: Arc<[Str]>,
    /// The API groups of the kinds of all profiles.
    groups: Arc<BTreeSet<Str>>,
    /// The `controllers` of the profiles of each API group that has routing filters.
    by_filter_group: Arc<BTreeMap<Str, BTreeSet<Str>>>,
    /// The configured aliases, by `controllerName`.
    aliases: Arc<BTreeMap<Str, Vec<Str>>>,
    /// The configured controllers of GatewayClasses that do not exist.
    assumed: Arc<BTreeMap<Str, Str>>,
}

impl Controllers {
    /// What is known of controllers by the profiles, the ControllerAlias objects of a store, and the configuration. Records
    /// aliases that are malformed or of no use as problems.
    pub(crate) fn read(
        registry: &mut ProfileRegistry,
        store: &Store,
        sources: &ProfileSources,
    ) -> Self {
        let configured = sources.aliases().iter().map(|alias| {
            let option = format!("--controller {}={}", alias.controller, alias.profiles);
            (alias.clone(), option)
        });
        let mut aliases = registry.aliases_of(store);
        aliases.extend(configured);
        let controllers = Self::of(
            registry.profiles.values(),
            aliases.iter().map(|(alias, _)| alias),
            sources.assumed_classes(),
        );
        for (alias, location) in aliases {
            let problem = controllers.problem_of_alias(&alias);
            let problem = problem.map(|reason| ProfileError::of_alias(location, reason));
            registry.problems.extend(problem);
        }
        controllers
    }

    /// Collects the controllers of profiles, of built-in profiles that others replace, and of the
    /// configuration.
    fn of<'p>(
        profiles: impl Iterator<Item = &'p Arc<Profile>>,
        aliases: impl Iterator<Item = &'p ControllerAlias>,
        assumed: &BTreeMap<Str, Str>,
    ) -> Self {
        let filters = routing_filters().iter().flatten();
        let mut by_filter_group: BTreeMap<Str, BTreeSet<Str>> = filters
            .map(|filter| (filter.kind.group.clone(), BTreeSet::new()))
            .collect();
        let mut patterns: BTreeSet<Str> = BTreeSet::new();
        let mut groups: BTreeSet<Str> = BTreeSet::new();
        let mut add = |kind: &GroupKind, pattern: Str| {
            if let Some(of_group) = by_filter_group.get_mut(&kind.group) {
                of_group.insert(pattern.clone());
            }
            patterns.insert(pattern);
        };
        for profile in profiles {
            groups.insert(profile.policy.group.clone());
            for pattern in &profile.controllers {
                add(&profile.policy, pattern.clone());
            }
        }
        for (_, document) in built_in().iter().flatten() {
            groups.insert(document.policy().group.clone());
            for pattern in document.controllers() {
                add(&document.policy(), pattern.into());
            }
        }
        let mut by_name: BTreeMap<Str, Vec<Str>> = BTreeMap::new();
        for alias in aliases {
            let entry = by_name.entry(alias.controller.clone()).or_default();
            entry.push(alias.profiles.clone());
        }
        Self {
            patterns: patterns.into_iter().collect(),
            groups: Arc::new(groups),
            by_filter_group: Arc::new(by_filter_group),
            aliases: Arc::new(by_name),
            assumed: Arc::new(assumed.clone()),
        }
    }

    /// What a controller is: its `controllerName`, or the API groups and `controllerName`s that aliases
    /// name instead; empty if it is not known.
    pub fn identities<'c>(&'c self, controller: &'c RootController) -> &'c [Str] {
        let name = match controller {
            RootController::None => return &[],
            RootController::Named(name) => name,
            RootController::ClassMissing(class) => match self.assumed.get(class) {
                Some(name) => name,
                None => return &[],
            },
        };
        match self.aliases.get(name) {
            Some(aliases) => aliases,
            None => std::slice::from_ref(name),
        }
    }

    /// Whether a kind acts on the paths of a root.
    pub fn activity(
        &self,
        profile: &Profile,
        root: RootKind,
        controller: &RootController,
    ) -> Activity {
        if profile.is_unprofiled() {
            let is_routing =
                root == RootKind::Gateway && self.routes_by(&profile.policy, controller);
            return match is_routing {
                true => Activity::Inactive,
                false => Activity::Active,
            };
        }
        match root {
            RootKind::Mesh if profile.mesh => return Activity::Active,
            RootKind::Mesh => return Activity::Inactive,
            _ if profile.controllers.is_empty() => return Activity::Active,
            // A kind that is limited to controllers has no Namespace as a scope (specification 11.2, 11.22).
            RootKind::Namespace => return Activity::Inactive,
            RootKind::Gateway | RootKind::GatewayClass => {}
        }
        let name = match (self.name_of(controller), controller) {
            (Some(name), _) => name,
            (None, RootController::ClassMissing(class)) => {
                return Activity::Unknown(UnknownController::ClassMissing(class.clone()));
            }
            (None, _) => return Activity::Inactive,
        };
        if let Some(aliases) = self.described_aliases(name) {
            return match aliases.iter().any(|alias| belongs_to(profile, alias)) {
                true => Activity::Active,
                false => Activity::Inactive,
            };
        }
        if profile.lists_controller(name) {
            return Activity::Active;
        }
        match self.is_listed(name) {
            true => Activity::Inactive,
            false => Activity::Unknown(UnknownController::NotListed(name.clone())),
        }
    }

    /// The aliases of a controller, if profiles describe what one of them names.
    fn described_aliases(&self, name: &Str) -> Option<&Vec<Str>> {
        let aliases = self.aliases.get(name);
        aliases.filter(|aliases| aliases.iter().any(|alias| self.describes(alias)))
    }

    /// Whether a profile lists a `controllerName`.
    fn is_listed(&self, name: &str) -> bool {
        let mut patterns = self.patterns.iter();
        patterns.any(|pattern| matches_pattern(pattern, name))
    }

    /// Whether some profile belongs to what an alias names: an API group or a `controllerName`. An alias without one does
    /// not tell what its controller does (specification 2.6).
    fn describes(&self, name: &str) -> bool {
        self.groups.contains(name) || self.is_listed(name)
    }

    /// Why an alias is of no use; `None` if profiles or the rules of routing describe what it names.
    fn problem_of_alias(&self, alias: &ControllerAlias) -> Option<String> {
        let name = &alias.profiles;
        let routes = Dialect::of_controller(std::slice::from_ref(name));
        if self.describes(name) || !std::ptr::eq(routes, Dialect::specification()) {
            return None;
        }
        let known = self.groups.iter().chain(self.patterns.iter());
        let meant = did_you_mean(name, known.map(ToString::to_string).collect());
        Some(format!(
            "no profile is for policies of the API group `{name}` or lists it as a controllerName, so it is still not \
             known what `{}` does{meant}",
            alias.controller
        ))
    }

    /// The `controllerName` of a root, from its GatewayClass or from the configuration.
    fn name_of<'c>(&'c self, controller: &'c RootController) -> Option<&'c Str> {
        match controller {
            RootController::None => None,
            RootController::Named(name) => Some(name),
            RootController::ClassMissing(class) => self.assumed.get(class),
        }
    }

    /// Whether filters of a kind are known to be a part of routing for a controller: the project of the kind
    /// documents them so, and the controller belongs to the project (specification 2.7).
    fn routes_by(&self, kind: &GroupKind, controller: &RootController) -> bool {
        let Some(patterns) = self.by_filter_group.get(&kind.group) else {
            return false;
        };
        let matches = |name: &str| {
            patterns
                .iter()
                .any(|pattern| matches_pattern(pattern, name))
        };
        is_routing_filter(kind)
            && self
                .name_of(controller)
                .is_some_and(|name| match self.aliases.get(name) {
                    Some(aliases) => aliases
                        .iter()
                        .any(|alias| *alias == kind.group || matches(alias)),
                    None => matches(name),
                })
    }

    /// What a controller does with routes that others do not.
    pub(super) fn routing_traits<'p>(
        &self,
        mut profiles: impl Iterator<Item = &'p Arc<Profile>>,
        controller: &RootController,
    ) -> RoutingTraits {
        let dialect = Dialect::of_controller(self.identities(controller));
        RoutingTraits {
            isolates_hostnames: dialect.listener_isolation == ListenerIsolation::EqualHostnames,
            serves_one_stream_route: dialect.stream_routes == StreamRoutes::OldestAlone,
            // Few profiles have delegation, and activity is found by the patterns of all.
            delegates: profiles.any(|profile| {
                let activity = || self.activity(profile, RootKind::Gateway, controller);
                profile.delegation.is_some() && activity().is_active()
            }),
        }
    }

    /// Whether a kind acts, or may act, on the paths of some root.
    pub(super) fn may_act(&self, profile: &Profile, topology: &Topology) -> bool {
        let mut roots = topology.root_controllers();
        roots.any(|(root, controller)| self.may_act_at(profile, root, &controller))
    }

    /// Whether a kind acts, or may act, on the paths of a root.
    pub(super) fn may_act_at(
        &self,
        profile: &Profile,
        root: RootKind,
        controller: &RootController,
    ) -> bool {
        self.activity(profile, root, controller) != Activity::Inactive
    }
}

impl World {
    /// What a controller does with routes that others do not.
    pub(crate) fn routing_traits(&self, controller: &RootController) -> RoutingTraits {
        let profiles = self.kinds.iter().map(|kind| &kind.profile);
        self.controllers.routing_traits(profiles, controller)
    }

    /// Whether another kind of filters is a part of routing at all roots of a later topology: it is no kind of the world
    /// (specification 2.7).
    pub(crate) fn has_other_routing_filters(&self, now: &Topology) -> bool {
        let roots = [&*self.topology, now].map(|topology| {
            let roots = topology.root_controllers();
            roots.collect::<HashSet<(RootKind, RootController)>>()
        });
        let acts = |kind: &GroupKind, roots: &HashSet<(RootKind, RootController)>| {
            let mut roots = roots.iter();
            roots.any(|(root, controller)| {
                *root != RootKind::Gateway || !self.controllers.routes_by(kind, controller)
            })
        };
        let [before, now] = &roots;
        let mut filters = routing_filters().iter().flatten();
        before != now && filters.any(|filter| acts(&filter.kind, before) != acts(&filter.kind, now))
    }

    /// The `controllerName` of a GatewayClass, if no profile lists it, no alias says what it is, and no configured profile
    /// is for policies of any controller (specification 2.6).
    pub fn unlisted_controller(&self, class: &str) -> Option<&Str> {
        let name = &self.topology.classes.get(class)?.controller;
        let is_of_any = |kind: &Arc<PolicyKind>| {
            let profile = &kind.profile;
            profile.origin == ProfileOrigin::Configured && profile.controllers.is_empty()
        };
        let controllers = &self.controllers;
        let is_known = controllers.is_listed(name) || controllers.described_aliases(name).is_some();
        (!is_known && !self.kinds.iter().any(is_of_any)).then_some(name)
    }
}

/// Whether an alias means a profile: by the API group of its kind, or by a controller that it lists.
fn belongs_to(profile: &Profile, alias: &str) -> bool {
    *profile.policy.group == *alias || profile.lists_controller(alias)
}

impl Activity {
    /// Why it is not known whether the kind acts.
    pub fn unknown(&self) -> Option<&UnknownController> {
        match self {
            Activity::Unknown(controller) => Some(controller),
            Activity::Active | Activity::Inactive => None,
        }
    }

    /// Whether the kind is known to act.
    pub fn is_active(&self) -> bool {
        *self == Activity::Active
    }
}

impl UnknownController {
    /// What is not known if the Gateway is a waypoint.
    pub(super) fn of_waypoint(self, waypoint: &Str) -> Self {
        let waypoint = waypoint.clone();
        match self {
            UnknownController::ClassMissing(class) => {
                UnknownController::WaypointClassMissing { waypoint, class }
            }
            UnknownController::NotListed(controller) => UnknownController::WaypointNotListed {
                waypoint,
                controller,
            },
            other => other,
        }
    }

    /// Describes what is not known.
    pub fn message(&self) -> String {
        match self {
            UnknownController::ClassMissing(class) => format!(
                "GatewayClass `{class}` does not exist, so it is not known which controller serves the Gateway"
            ),
            UnknownController::NotListed(name) => format!(
                "no profile lists controller `{name}`, so it is not known which policies it implements"
            ),
            UnknownController::WaypointMissing(waypoint) => format!(
                "Gateway `{waypoint}`, the waypoint of the Service, does not exist, so it is not known which \
                 policies apply to its requests"
            ),
            UnknownController::WaypointClassMissing { waypoint, class } => format!(
                "GatewayClass `{class}` of waypoint `{waypoint}` does not exist, so it is not known which \
                 controller serves the waypoint"
            ),
            UnknownController::WaypointNotListed {
                waypoint,
                controller,
            } => format!(
                "no profile lists controller `{controller}` of waypoint `{waypoint}`, so it is not known which \
                 policies it implements"
            ),
            UnknownController::Divided(waypoint, canary) => format!(
                "waypoints `{waypoint}` and `{canary}` share the requests, so it is not known which of them \
                 serves a request"
            ),
        }
    }
}

impl PolicyKind {
    /// Whether the kind acts below the Gateways of some controllers only (specification 2.4).
    pub(crate) fn has_controllers(&self) -> bool {
        !self.profile.controllers.is_empty()
    }

    /// Whether no profile describes the kind: its policies are attached but not interpreted.
    pub fn is_unprofiled(&self) -> bool {
        self.profile.is_unprofiled()
    }
}

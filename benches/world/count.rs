//! Counts of a world: objects, paths, policies and distinct stacks.

use super::{Join, Kind, Level, Route, Target, World};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Counts of a world, computed from its model and not by an engine.
///
/// A path is a prefix of a walk from the GatewayClass to a backend port. Aliases (a named rule by its
/// index) are not counted, and `namespaces/..` scopes are counted separately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts {
    /// Namespaces, `edge` included; as many `namespaces/..` scopes, which are not in `addressable`.
    pub namespaces: usize,
    /// Gateway objects, each also a path.
    pub gateways: usize,
    /// Listeners of all Gateways, each also a path.
    pub listeners: usize,
    /// HTTPRoute objects.
    pub routes: usize,
    /// Rules of all routes.
    pub rules: usize,
    /// Service objects.
    pub services: usize,
    /// Paths that end at a route: one for each listener that it attaches to.
    pub route_paths: usize,
    /// Paths that end at a rule.
    pub rule_paths: usize,
    /// Paths that end at a whole backend.
    pub backend_paths: usize,
    /// Paths that end at a backend port.
    pub leaf_paths: usize,
    /// All paths, from the one GatewayClass to the leaves.
    pub addressable: usize,
    /// Policies by kind (order of [`Kind::ALL`]) and level (order of [`Level::ALL`]).
    pub policies: [[usize; 7]; 5],
    /// Distinct stacks of policies on all paths and namespace scopes by kind, including the empty
    /// stack: the maximum number of results of the kind.
    pub stacks: [usize; 5],
}

/// Nodes with policies from the Gateway's namespace to a listener.
type Top = [Option<Target>; 3];

/// Nodes with policies from the route's namespace to a backend port.
type Bottom = [Option<Target>; 5];

/// Numbers for bottoms, because many pairs of them are stored.
#[derive(Default)]
struct Bottoms(BTreeMap<Bottom, usize>);

impl World {
    /// Counts the world.
    pub fn counts(&self) -> Counts {
        let shape = &self.shape;
        let mut policies = [[0; 7]; 5];
        for policy in &self.policies {
            policies[policy.kind as usize][policy.target.level() as usize] += 1;
        }
        let [route_paths, rule_paths, backend_paths, leaf_paths] = self.paths();
        let listeners = shape.gateways * shape.listeners;
        let above = 1 + shape.gateways + listeners;
        Counts {
            namespaces: shape.namespaces + 1,
            gateways: shape.gateways,
            listeners,
            routes: self.routes.len(),
            rules: self.routes.iter().map(|route| route.rules.len()).sum(),
            services: shape.services,
            route_paths,
            rule_paths,
            backend_paths,
            leaf_paths,
            addressable: above + route_paths + rule_paths + backend_paths + leaf_paths,
            policies,
            stacks: Kind::ALL.map(|kind| self.stacks(kind)),
        }
    }

    /// Paths that end at routes, rules, backends and ports.
    fn paths(&self) -> [usize; 4] {
        let joins = match self.shape.join {
            Join::One => 1,
            Join::All => self.shape.listeners,
        };
        let mut paths = [0; 4];
        for route in &self.routes {
            paths[0] += joins;
            for refs in &route.rules {
                let backends: BTreeSet<_> = refs.iter().map(|&(service, _)| service).collect();
                let ports: BTreeSet<_> = refs.iter().collect();
                paths[1] += joins;
                paths[2] += joins * backends.len();
                paths[3] += joins * ports.len();
            }
        }
        paths
    }

    /// Counts the distinct stacks of one kind. Equal bottoms are merged before they are combined with
    /// the listeners, so the work is proportional to distinct stacks and not to paths.
    fn stacks(&self, kind: Kind) -> usize {
        let policies = self.policies.iter().filter(|policy| policy.kind == kind);
        let targets: BTreeSet<Target> = policies.map(|policy| policy.target).collect();
        if kind.is_direct(&self.shape) {
            return targets.len() + 1; // the node alone decides
        }
        let on = |target: Target| targets.contains(&target).then_some(target);
        let mut bottoms = Bottoms::default();
        let empty = bottoms.number([None; 5]);
        // Grouped by the listeners that the routes attach to.
        let mut below: BTreeMap<(usize, Option<usize>), BTreeSet<usize>> = BTreeMap::new();
        for (number, route) in self.routes.iter().enumerate() {
            let found = below.entry((route.gateway, route.listener)).or_default();
            bottoms.of_route(number, route, &on, self.shape.named_rules(), found);
        }
        let edge = on(Target::Namespace(0));
        let mut stacks: BTreeSet<(Top, usize)> = BTreeSet::from([([None; 3], empty)]);
        for namespace in 0..=self.shape.namespaces {
            let alone = [on(Target::Namespace(namespace)), None, None, None, None];
            stacks.insert(match namespace {
                0 => ([edge, None, None], empty),
                _ => ([None; 3], bottoms.number(alone)),
            });
        }
        for gateway in 0..self.shape.gateways {
            let whole = on(Target::Gateway(gateway));
            stacks.insert(([edge, whole, None], empty));
            for listener in 0..self.shape.listeners {
                let top = [edge, whole, on(Target::Listener(gateway, listener))];
                stacks.insert((top, empty));
                for key in [(gateway, None), (gateway, Some(listener))] {
                    let found = below.get(&key).into_iter().flatten();
                    stacks.extend(found.map(|&bottom| (top, bottom)));
                }
            }
        }
        stacks.len()
    }
}

impl Bottoms {
    /// Returns the number of a bottom.
    fn number(&mut self, bottom: Bottom) -> usize {
        let next = self.0.len();
        *self.0.entry(bottom).or_insert(next)
    }

    /// Adds the bottoms of all paths through one route to `found`.
    fn of_route(
        &mut self,
        number: usize,
        route: &Route,
        on: &impl Fn(Target) -> Option<Target>,
        named: usize,
        found: &mut BTreeSet<usize>,
    ) {
        let space = on(Target::Namespace(route.namespace));
        let whole = on(Target::Route(number));
        found.insert(self.number([space, whole, None, None, None]));
        for (rule, refs) in route.rules.iter().enumerate() {
            let step = if rule < named {
                on(Target::Rule(number, rule))
            } else {
                None
            };
            found.insert(self.number([space, whole, step, None, None]));
            for &(service, port) in refs {
                let backend = on(Target::Service(service));
                found.insert(self.number([space, whole, step, backend, None]));
                let port = on(Target::Port(service, port));
                found.insert(self.number([space, whole, step, backend, port]));
            }
        }
    }
}

impl fmt::Display for Counts {
    /// Writes one `name value` pair per line, then a table of policies by kind and level.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = [
            ("namespaces", self.namespaces),
            ("gateways", self.gateways),
            ("listeners", self.listeners),
            ("routes", self.routes),
            ("rules", self.rules),
            ("services", self.services),
            ("route paths", self.route_paths),
            ("rule paths", self.rule_paths),
            ("backend paths", self.backend_paths),
            ("leaf paths", self.leaf_paths),
            ("addressable paths", self.addressable),
            ("policies", self.policies.iter().flatten().sum()),
            ("distinct stacks", self.stacks.iter().sum()),
        ];
        for (name, value) in lines {
            writeln!(f, "{name:<18}{value:>10}")?;
        }
        write!(f, "\n{:<8}", "kind")?;
        for level in Level::ALL {
            write!(f, "{:>10}", level.name())?;
        }
        writeln!(f, "{:>10}{:>10}", "policies", "stacks")?;
        for ((kind, levels), stacks) in Kind::ALL.into_iter().zip(&self.policies).zip(self.stacks) {
            write!(f, "{:<8}", kind.name())?;
            for count in levels {
                write!(f, "{count:>10}")?;
            }
            writeln!(f, "{:>10}{stacks:>10}", levels.iter().sum::<usize>())?;
        }
        Ok(())
    }
}

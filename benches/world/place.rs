//! Places policies: their targets, creation times and specs.

use super::spec::{self, Blocks, Kind};
use super::{Level, Rng, Route, Shape, emit};
use std::collections::BTreeSet;

/// A possible target of a policy; all numbers are zero-based.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// A Namespace; 0 is `edge`.
    Namespace(usize),
    /// A Gateway.
    Gateway(usize),
    /// A listener: Gateway, listener.
    Listener(usize, usize),
    /// An HTTPRoute.
    Route(usize),
    /// A named rule: route, rule.
    Rule(usize, usize),
    /// A Service.
    Service(usize),
    /// A port: Service, port.
    Port(usize, usize),
}

/// One policy.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Its kind.
    pub kind: Kind,
    /// Position among the policies of its kind, which is part of its name.
    pub number: usize,
    /// Number of the namespace of the policy and its target.
    pub namespace: usize,
    /// The target.
    pub target: Target,
    /// creationTimestamp in seconds since the Unix epoch, unique in a world.
    pub created: u64,
    /// The `spec` as compact JSON.
    pub spec: String,
}

/// The possible targets of a world, by level.
struct Nodes([Vec<Target>; 7]);

impl Target {
    /// Returns the level of the target.
    pub fn level(self) -> Level {
        match self {
            Target::Namespace(_) => Level::Namespace,
            Target::Gateway(_) => Level::Gateway,
            Target::Listener(..) => Level::Listener,
            Target::Route(_) => Level::Route,
            Target::Rule(..) => Level::Rule,
            Target::Service(_) => Level::Service,
            Target::Port(..) => Level::Port,
        }
    }
}

impl Nodes {
    /// Lists the nodes. Only Services and ports that a rule refers to are included: a policy on
    /// another one would be on no path.
    fn of(shape: &Shape, routes: &[Route]) -> Self {
        let listener = |slot| Target::Listener(slot / shape.listeners, slot % shape.listeners);
        let named = shape.named_rules();
        let refs = || routes.iter().flat_map(|route| route.rules.iter().flatten());
        let services: BTreeSet<_> = refs()
            .map(|&(service, _)| Target::Service(service))
            .collect();
        let ports: BTreeSet<_> = refs()
            .map(|&(service, port)| Target::Port(service, port))
            .collect();
        Nodes([
            (0..=shape.namespaces).map(Target::Namespace).collect(),
            (0..shape.gateways).map(Target::Gateway).collect(),
            (0..shape.gateways * shape.listeners)
                .map(listener)
                .collect(),
            (0..shape.routes).map(Target::Route).collect(),
            (0..shape.routes * named)
                .map(|at| Target::Rule(at / named, at % named))
                .collect(),
            services.into_iter().collect(),
            ports.into_iter().collect(),
        ])
    }

    /// Chooses the targets of the `count` policies of a kind, level by level.
    fn choose(&self, shape: &Shape, kind: Kind, count: usize) -> Result<Vec<Target>, String> {
        let mut quotas = quotas(count, &shape.shares);
        if kind.is_direct(shape) {
            self.spill(&mut quotas)?;
        }
        let mut rng = Rng::stream(shape.seed, &format!("place {}", kind.name()));
        let mut chosen = Vec::with_capacity(count);
        for (nodes, quota) in self.0.iter().zip(quotas) {
            let mut nodes = nodes.clone();
            rng.shuffle(&mut nodes);
            chosen.extend(nodes.into_iter().cycle().take(quota));
        }
        Ok(chosen)
    }

    /// Moves surplus policies to levels with free nodes, the most specific first: the second policy
    /// of a Direct kind on a node would be Conflicted.
    fn spill(&self, quotas: &mut [usize; 7]) -> Result<(), String> {
        let mut rest = 0;
        for (quota, nodes) in quotas.iter_mut().zip(&self.0) {
            rest += quota.saturating_sub(nodes.len());
            *quota = (*quota).min(nodes.len());
        }
        for (quota, nodes) in quotas.iter_mut().zip(&self.0).rev() {
            let moved = rest.min(nodes.len() - *quota);
            *quota += moved;
            rest -= moved;
        }
        match rest {
            0 => Ok(()),
            _ => Err(format!("{rest} more direct policies than nodes")),
        }
    }
}

/// Splits `count` by percentages, with the largest remainder method.
fn quotas(count: usize, shares: &[usize; 7]) -> [usize; 7] {
    let mut quotas = shares.map(|share| count * share / 100);
    let mut order: Vec<usize> = (0..shares.len()).collect();
    order.sort_by_key(|&level| std::cmp::Reverse(count * shares[level] % 100));
    let left = count - quotas.iter().sum::<usize>();
    for &level in order.iter().take(left) {
        quotas[level] += 1;
    }
    quotas
}

/// Places all policies of a world and writes their specs.
pub(super) fn policies(shape: &Shape, routes: &[Route]) -> Result<Vec<Policy>, String> {
    let nodes = Nodes::of(shape, routes);
    let mut ages: Vec<usize> = (0..shape.policies).collect();
    Rng::stream(shape.seed, "ages").shuffle(&mut ages);
    let mut policies = Vec::with_capacity(shape.policies);
    for (place, kind) in Kind::ALL.into_iter().enumerate() {
        let count = (shape.policies + Kind::ALL.len() - 1 - place) / Kind::ALL.len();
        let mut rng = Rng::stream(shape.seed, &format!("spec {}", kind.name()));
        for (number, target) in nodes.choose(shape, kind, count)?.into_iter().enumerate() {
            let blocks = blocks(kind, target.level(), &mut rng);
            let bytes = rng.between(shape.spec_bytes.0, shape.spec_bytes.1);
            let reference = emit::target_ref(target);
            policies.push(Policy {
                kind,
                number,
                namespace: namespace(shape, routes, target),
                target,
                created: emit::policy_created(shape, ages[policies.len()]),
                spec: spec::text(kind, &reference, blocks, bytes, &mut rng),
            });
        }
    }
    Ok(policies)
}

/// Returns the namespace of a target.
fn namespace(shape: &Shape, routes: &[Route], target: Target) -> usize {
    match target {
        Target::Namespace(namespace) => namespace,
        Target::Gateway(_) | Target::Listener(..) => 0,
        Target::Route(route) | Target::Rule(route, _) => routes[route].namespace,
        Target::Service(service) | Target::Port(service, _) => 1 + service % shape.namespaces,
    }
}

/// Draws the blocks of a policy; overrides are more frequent on Gateways and namespaces.
fn blocks(kind: Kind, level: Level, rng: &mut Rng) -> Blocks {
    if kind == Kind::Limit {
        return Blocks::Bare;
    }
    let upper = matches!(level, Level::Namespace | Level::Gateway | Level::Listener);
    match (upper, rng.below(8)) {
        (true, 0..4) | (false, 0..7) => Blocks::Defaults,
        (true, 4..6) | (false, _) => Blocks::Overrides,
        (true, _) => Blocks::Both,
    }
}

//! Worlds for benches and tests: valid manifests of any size from a shape and a seed.
//!
//! One GatewayClass; Gateways in the namespace `edge`; HTTPRoutes and their Services in the
//! namespaces `app-001`.. (so that no backend needs a grant and every route joins); policies of five
//! kinds of the group `bench.example`, each with one target in its own namespace:
//!
//! | Kind | Strategies | Rules |
//! |---|---|---|
//! | Retry | PatchDefaults, PatchOverrides | blocks |
//! | Auth | RuleDefaults, RuleOverrides | blocks, `rules.authentication`, `rules.authorization` |
//! | Timeout | FieldDefaults, FieldOverrides | blocks |
//! | Cors | AtomicDefaults, AtomicOverrides | blocks |
//! | Limit | FieldDefaults (Direct with None, by [`Shape::direct`]) | bare |
//!
//! Placement: [`Shape::shares`] gives the per cent of each kind's policies by level. Within a level
//! the nodes are shuffled, by kind, and taken in turn: no node has two policies of a kind before all
//! have one. From the listener up half of the policies hold defaults, a quarter overrides, a quarter
//! both; below, seven in eight defaults and the rest overrides. Age has nothing to do with level.
//!
//! Standard library only; use it with `#[path = "../benches/world/mod.rs"] mod world;`.
#![allow(
    dead_code,
    unused_imports,
    reason = "each bench and test uses a part of it"
)]
#![allow(
    clippy::indexing_slicing,
    reason = "indexes are places in lists made here; no input chooses them"
)]

mod count;
mod emit;
mod place;
mod rng;
mod shape;
mod spec;

pub use count::Counts;
pub use emit::File;
pub use place::{Policy, Target};
pub use rng::Rng;
pub use shape::{Join, Level, Shape};
pub use spec::Kind;

/// A generated world. Objects without state of their own follow from the shape.
#[derive(Debug, Clone)]
pub struct World {
    /// What it was made from.
    pub shape: Shape,
    /// The HTTPRoutes; a route's place is its number in names.
    pub routes: Vec<Route>,
    /// The policies, by kind and then by level.
    pub policies: Vec<Policy>,
}

/// One HTTPRoute.
#[derive(Debug, Clone)]
pub struct Route {
    /// Number of its namespace, from 1 (0 is `edge`).
    pub namespace: usize,
    /// Number of its Gateway.
    pub gateway: usize,
    /// Number of the listener that its parentRef names; none where it joins all.
    pub listener: Option<usize>,
    /// Its rules; of each the backendRefs as numbers of Service and port, without doubles.
    pub rules: Vec<Vec<(usize, usize)>>,
}

impl World {
    /// Makes the world of a shape, or says why there is none.
    pub fn generate(shape: &Shape) -> Result<World, String> {
        shape.check()?;
        let routes = routes(shape);
        let policies = place::policies(shape, &routes)?;
        Ok(World {
            shape: shape.clone(),
            routes,
            policies,
        })
    }
}

/// Deals the routes out over listeners and namespaces and gives their rules backends.
fn routes(shape: &Shape) -> Vec<Route> {
    let slots = shape.gateways * shape.listeners;
    let mut parents: Vec<usize> = (0..shape.routes).map(|route| route % slots).collect();
    Rng::stream(shape.seed, "parents").shuffle(&mut parents);
    let mut rng = Rng::stream(shape.seed, "backends");
    let mut made = Vec::with_capacity(shape.routes);
    for (number, slot) in parents.into_iter().enumerate() {
        let namespace = 1 + number % shape.namespaces;
        made.push(Route {
            namespace,
            gateway: slot % shape.gateways,
            listener: (shape.join == Join::One).then_some(slot / shape.gateways),
            rules: (0..shape.rules)
                .map(|_| backends(shape, namespace, &mut rng))
                .collect(),
        });
    }
    made
}

/// Draws the backendRefs of one rule from its namespace: neighbours in a ring of all Services at
/// their first port, then all at their second, and so on, hence no port twice.
fn backends(shape: &Shape, namespace: usize, rng: &mut Rng) -> Vec<(usize, usize)> {
    let first = namespace - 1;
    let services = (shape.services - first).div_ceil(shape.namespaces);
    let ring = services * shape.ports;
    let start = rng.below(ring);
    (start..start + shape.backends)
        .map(|place| place % ring)
        .map(|place| {
            (
                first + place % services * shape.namespaces,
                place / services,
            )
        })
        .collect()
}

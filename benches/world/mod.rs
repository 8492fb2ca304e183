//! Generates worlds for benchmarks and tests: valid manifests of any size from a shape and a seed.
//!
//! One GatewayClass; Gateways in the namespace `edge`; HTTPRoutes and their Services in the
//! namespaces `app-001`.. (so that no backend needs a ReferenceGrant and every route attaches);
//! policies of five kinds of the group `bench.example`, each with one target in its own namespace:
//!
//! | Kind | Strategies | Rules |
//! |---|---|---|
//! | Retry | PatchDefaults, PatchOverrides | blocks |
//! | Auth | RuleDefaults, RuleOverrides | blocks, `rules.authentication`, `rules.authorization` |
//! | Timeout | FieldDefaults, FieldOverrides | blocks |
//! | Cors | AtomicDefaults, AtomicOverrides | blocks |
//! | Limit | FieldDefaults (Direct with None, by [`Shape::direct`]) | bare |
//!
//! Placement: [`Shape::shares`] is the percentage of the policies of each kind by level. Within a
//! level the nodes are shuffled by kind and used in turn: no node has two policies of a kind before
//! all have one. On listeners and above, half of the policies have defaults, a quarter overrides, and
//! a quarter both; below, seven eighths have defaults and the others overrides. Age is independent of
//! level.
//!
//! [`Teams`] is another world, with the policies of a real controller.
//!
//! Standard library only; use it with `#[path = "../benches/world/mod.rs"] mod world;`.
#![allow(
    dead_code,
    unused_imports,
    reason = "each bench and test uses a part of it"
)]
#![allow(
    clippy::indexing_slicing,
    reason = "indexes are positions in lists of this module; no input determines them"
)]

mod count;
mod emit;
mod place;
mod rng;
mod shape;
mod spec;
mod teams;

pub use count::Counts;
pub use emit::File;
pub use place::{Policy, Target};
pub use rng::Rng;
pub use shape::{Join, Level, Shape};
pub use spec::Kind;
pub use teams::Teams;

/// A generated world. Only routes and policies are stored; the other objects follow from the shape.
#[derive(Debug, Clone)]
pub struct World {
    /// Parameters of the generator.
    pub shape: Shape,
    /// The HTTPRoutes; the position of a route is the number in its name.
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
    /// Number of the listener of its parentRef; `None` if it attaches to all listeners.
    pub listener: Option<usize>,
    /// The backendRefs of each rule, as numbers of Service and port without duplicates.
    pub rules: Vec<Vec<(usize, usize)>>,
}

impl World {
    /// Generates the world of a shape.
    ///
    /// # Errors
    /// Returns a message if the shape is invalid.
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

/// Distributes the routes over listeners and namespaces, and draws the backends of their rules.
fn routes(shape: &Shape) -> Vec<Route> {
    let slots = shape.gateways * shape.listeners;
    let mut parents: Vec<usize> = (0..shape.routes).map(|route| route % slots).collect();
    Rng::stream(shape.seed, "parents").shuffle(&mut parents);
    let mut rng = Rng::stream(shape.seed, "backends");
    let mut routes = Vec::with_capacity(shape.routes);
    for (number, slot) in parents.into_iter().enumerate() {
        let namespace = 1 + number % shape.namespaces;
        routes.push(Route {
            namespace,
            gateway: slot % shape.gateways,
            listener: (shape.join == Join::One).then_some(slot / shape.gateways),
            rules: (0..shape.rules)
                .map(|_| backends(shape, namespace, &mut rng))
                .collect(),
        });
    }
    routes
}

/// Draws the backendRefs of one rule from its namespace: neighbors in a ring of the first ports of all
/// Services, then the second ports, and so on, so that no port occurs twice.
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

//! Computes effective policies: policy attachment on Gateway API objects (GEP-713).
//!
//! This package reads Kubernetes objects and policy profiles, finds every path from a Gateway to a
//! backend, and merges the policies that are attached along it into one effective policy for each
//! policy kind. It records the origin of every value, and follows changes incrementally.
//!
//! ```
//! use std::sync::Arc;
//!
//! use entail_core::effective::World;
//! use entail_core::engine::PathEngine;
//! use entail_core::model::{Change, GroupKind, Object, ObjectKey, PathName};
//! use entail_core::profile::parse_documents;
//! use entail_core::store::{ProfileSources, Store};
//! use serde_json::{Value, json};
//!
//! let profile = "
//! apiVersion: entail.dev/v1alpha1
//! kind: PolicyProfile
//! metadata: {name: timeouts.example.com}
//! spec: {policy: {group: example.com, kind: Timeout}, strategies: [PatchDefaults]}";
//! let object = |kind: &str, name: &str, spec: Value| {
//!     let key = ObjectKey::new(GroupKind::parse_short(kind), "shop", name);
//!     Arc::new(Object::new(key, json!({"spec": spec})))
//! };
//! let listener = json!({"name": "http", "port": 80, "protocol": "HTTP"});
//! let on_gateway = json!({"targetRefs": [{"kind": "Gateway", "name": "web"}], "request": "10s", "idle": "60s"});
//! let on_route = json!({"targetRefs": [{"kind": "HTTPRoute", "name": "cart"}], "request": "2s"});
//! let upserts = vec![
//!     object("Gateway", "web", json!({"gatewayClassName": "example", "listeners": [listener]})),
//!     object("HTTPRoute", "cart", json!({"parentRefs": [{"name": "web"}]})),
//!     object("Timeout.example.com", "for-all", on_gateway),
//!     object("Timeout.example.com", "for-cart", on_route),
//! ];
//! let mut store = Store::default();
//! store.apply(Change { upserts, ..Change::default() });
//! let mut profiles = ProfileSources::default();
//! profiles.configure(parse_documents(profile, "timeouts.yaml").into_iter().flatten());
//!
//! let engine = PathEngine::new(World::from_store(store, &profiles));
//! let path = PathName::parse("gateways/shop/web/listeners/http/routes/HTTPRoute/shop/cart").unwrap();
//! let end = engine.locate(&path).unwrap().unwrap();
//! let chain = engine.chain(0, end.state).unwrap().unwrap();
//! let world = engine.world();
//! let effective = world.answer(&world.kinds()[0], &chain);
//! assert_eq!(effective.spec, Some(json!({"idle": "60s", "request": "2s"})));
//! assert_eq!(effective.origins[0].policies[0].to_string(), "shop/for-all");
//! assert_eq!(effective.origins[1].policies[0].to_string(), "shop/for-cart");
//! ```
//!
//! The package is pure: synchronous and deterministic, without a clock, I/O, a Kubernetes client or
//! gRPC. Malformed input never causes a panic: a policy that cannot be parsed has a status instead.
//!
//! The rules are in `docs/specification.md`; comments cite their numbers.
//!
//! Without the default feature `engine`, the package contains only [`model`].

#[cfg(feature = "engine")]
pub mod attach;
#[cfg(feature = "engine")]
pub mod effective;
#[cfg(feature = "engine")]
pub mod engine;
#[cfg(feature = "engine")]
pub mod expr;
#[cfg(feature = "engine")]
pub mod merge;
pub mod model;
#[cfg(feature = "engine")]
pub mod profile;
#[cfg(feature = "engine")]
pub mod routing;
#[cfg(feature = "engine")]
pub mod store;
#[cfg(feature = "engine")]
pub mod topology;

//! Request routing: finds the rule that a request takes (Gateway API, matching and precedence).
//!
//! A [`Dialect`] holds the choices that the Gateway API leaves to implementations, and the deviations of a
//! project. Each Gateway has the dialect of its controller.

mod child_routes;
mod conditions;
mod dialect;
mod hostnames;
mod index;
mod listeners;
mod patterns;
mod request;
mod result;
mod router;
mod search;
mod why_not;

pub(crate) use child_routes::reads_annotation;
pub use dialect::{Dialect, HostnamePrecedence, ListenerIsolation, Refusal, StreamRoutes};
pub use listeners::{ConflictingListener, ListenerConflict, ListenerProtocols, listener_conflicts};
pub use patterns::{PatternCache, PatternStats};
pub use request::{BadRequest, EntryPoint, Protocol, Request, RequestParts};
pub use result::{
    MatchFailure, MatchedRule, NearMiss, NoMatchReason, RoutingOptions, RoutingResult,
};
pub use router::RequestRouter;
pub use why_not::{RuleMiss, RuleMissReason, RuleTarget};

//! Request routing: finds the rule that a request takes (Gateway API, matching and precedence).
//!
//! Choices that the Gateway API leaves to implementations: regular expressions match the whole string
//! and come after prefixes; the values of a repeated header are joined; the first value of a repeated
//! query parameter counts; a path that proxies interpret differently is not matched at all.

mod conditions;
mod hostnames;
mod index;
mod listeners;
mod request;
mod result;
mod router;
mod search;

pub use request::{BadRequest, EntryPoint, Protocol, Request, RequestParts};
pub use result::{
    MatchFailure, MatchedRule, NearMiss, NoMatchReason, RoutingOptions, RoutingResult,
};
pub use router::RequestRouter;

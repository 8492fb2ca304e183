//! Which rule a request takes (Gateway API, matching and precedence).
//!
//! Where the Gateway API leaves it to implementations: regular expressions are for the whole of a
//! text and come after prefixes; values of a repeated header are one, of a repeated query parameter
//! the first counts; a path that proxies read in different ways is not matched at all.

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

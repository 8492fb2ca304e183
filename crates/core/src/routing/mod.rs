//! Which rule a request takes (Gateway API, matching and precedence).
//!
//! Where the Gateway API leaves it to implementations: regular expressions are for the whole of a
//! text and come after prefixes; values of a repeated header are one, of a repeated query parameter
//! the first counts; a path that proxies read in different ways is not matched at all.

mod conditions;
mod doors;
mod find;
mod found;
mod hosts;
mod index;
mod request;
mod search;

pub use find::Matcher;
pub use found::{Found, NearMiss, NoMatch, NotTaken, Rules, Taken};
pub use request::{BadRequest, Entrance, Parts, Protocol, Request};

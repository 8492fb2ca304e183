//! Questions and answers as messages: what the services and the commands both show.

mod ask;
mod compare;
mod explain;
mod failure;
mod findings;
mod identity;
mod look_up;
mod name;
mod paths;
mod policies;
mod reach;
mod resolve;
mod scope;
mod status;
mod topology;
mod watch;

pub use ask::{Ask, AskError, Local};
pub use compare::{ChangeWorld, MayChange, compare, preview_change};
pub use explain::explain;
pub use failure::{Failure, FailureCode};
pub use findings::list_findings;
pub use identity::{RuleName, RuleRef, rule_paths};
pub use look_up::{MAX_BATCH, batch, get, get_ready, incomplete_kinds, path_of};
pub use name::Subject;
pub use paths::list_paths;
pub use policies::list_policies;
pub use reach::list_affected;
pub use resolve::{path_ref, resolve_in_haste, resolve_request, rules_of_request};
pub use scope::{Scope, Sight};
pub use status::{Notes, server_status};
pub use topology::get_topology;
pub use watch::{Ledger, Subscription, Update};

//! Watch streams: which paths each stream follows, what it has received, and what it receives next.
//!
//! Streams with the same [`PathSelector`] share a [`WatchGroup`] and its [`PathList`]. The
//! [`SubscriptionHub`] publishes snapshots and wakes the groups that a snapshot affects. A
//! [`StreamState`] compares what one stream has received with the current snapshot. Streams that have
//! received the same, and have to receive the same, share both. The [`StreamLedger`] bounds what the
//! streams of a caller hold, and what all hold.

mod delivery;
mod hub;
mod ledger;
mod path_list;
mod request;
mod resume;
mod stream_state;
mod update;
mod watch_group;

pub use delivery::StreamDelivery;
pub use hub::{SnapshotPaths, SubscriptionHub};
pub use ledger::{ByteLimits, Cost, Exceeded, HoldingLimits, StreamLedger};
pub use path_list::{PathEntry, PathLimits, PathList, TooManyPaths};
pub use request::Subscription;
pub use stream_state::StreamState;
pub use update::{StreamUpdate, WatchMessage};
pub use watch_group::{PathSelector, WatchGroup};

//! Watch streams: which paths each stream follows, what it has received, and what it receives next.
//!
//! Streams with the same [`PathSelector`] share a [`WatchGroup`] and its [`PathList`]. The
//! [`SubscriptionHub`] publishes snapshots and wakes the groups that a snapshot affects. A
//! [`StreamState`] compares what one stream has received with the current snapshot.

mod hub;
mod path_list;
mod request;
mod stream_state;
mod update;
mod watch_group;

pub use hub::{SnapshotPaths, SubscriptionHub};
pub use path_list::{PathEntry, PathLimits, PathList, TooManyPaths};
pub use request::Subscription;
pub use stream_state::StreamState;
pub use update::StreamUpdate;
pub use watch_group::{PathSelector, WatchGroup};

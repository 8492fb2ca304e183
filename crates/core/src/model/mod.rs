//! Types that all other modules share: object keys, nodes, path names, units, conditions, changes
//! and effective policies.
//!
//! This module depends on no other module of the package.

mod body;
mod change;
mod chunked_list;
mod chunked_vec;
mod condition;
mod effective;
mod enforcement;
mod index_vec;
mod internal;
#[cfg(feature = "engine")]
mod json_text;
#[cfg(feature = "engine")]
mod layered_map;
mod level;
mod metadata_map;
#[cfg(feature = "engine")]
mod names;
mod nearest;
mod object;
mod paged_vec;
mod path;
mod selector;
mod strategy;
mod unit;
#[cfg(feature = "engine")]
mod unit_tree;
mod unknown;
mod value;
mod words;

pub use body::{Body, Encoded, Rules};
pub use change::{Change, KindState, SourceState};
pub use chunked_list::{ChunkedList, ChunkedListIter};
pub use chunked_vec::ChunkedVec;
pub use condition::{Outcome, PathErrorReason};
pub use effective::{
    BlockName, EffectivePolicy, Explanation, ListedPolicy, LossReason, Origin, OverriddenPolicy,
    PolicyRef, RejectedPolicy, UnitExplanation,
};
pub use enforcement::Enforcement;
pub use index_vec::{Id, IndexVec};
pub use internal::{InternalError, OrInternal};
#[cfg(feature = "engine")]
pub(crate) use json_text::write_text;
#[cfg(feature = "engine")]
pub(crate) use layered_map::LayeredMap;
pub use level::{Level, NodeKey, Section};
pub use metadata_map::MetadataMap;
#[cfg(feature = "engine")]
pub use names::shared_name;
pub use nearest::{did_you_mean, nearest};
pub use object::{
    GroupKind, KindNames, Location, Object, ObjectKey, Str, TARGETS_ONLY, Timestamp, groups,
};
pub use paged_vec::{PagedTable, PagedVec, TableEntry};
pub use path::{
    BackendStep, DelegatingRules, ListenerSetStep, MAX_DELEGATIONS, PathName, PathPrefix,
    PathSyntaxError, Root, RouteStep, RuleStep, TrafficPath,
};
pub use selector::LabelSelector;
pub use strategy::{Direction, Granularity, Strategy};
pub use unit::{Segment, Unit, item_value};
#[cfg(feature = "engine")]
pub(crate) use unit_tree::UnitTree;
pub use unknown::{Unknown, UnknownReason};
pub use value::{FieldStep, at_path, field_path_text, is_unset, parse_field_path};

//! Types that all other modules share: object keys, nodes, path names, units, conditions, changes
//! and effective policies.
//!
//! This module depends on no other module of the package.

mod body;
mod body_writer;
#[cfg(feature = "engine")]
mod change;
mod chunked_list;
mod chunked_vec;
mod condition;
mod effective;
mod enforcement;
#[cfg(feature = "engine")]
mod few_list;
mod index_vec;
mod internal;
#[cfg(feature = "engine")]
mod json_text;
#[cfg(feature = "engine")]
mod layered_map;
mod level;
#[cfg(feature = "engine")]
mod metadata_map;
#[cfg(feature = "engine")]
mod names;
mod nearest;
#[cfg(feature = "engine")]
mod object;
mod object_key;
mod paged_vec;
mod path;
#[cfg(feature = "engine")]
mod selector;
mod strategy;
mod unit;
#[cfg(feature = "engine")]
mod unit_tree;
mod unknown;
mod value;
mod words;

pub use body::{Body, Encoded, Rules};
pub use body_writer::{BodyWriter, OpenList, OpenMap};
#[cfg(feature = "engine")]
pub use change::{Change, KindState, SourceState};
pub use chunked_list::{ChunkedList, ChunkedListIter};
pub use chunked_vec::ChunkedVec;
pub use condition::{Outcome, PathErrorReason};
pub use effective::{
    BlockName, EffectivePolicy, Explanation, ListedPolicy, LossReason, Origin, OverriddenPolicy,
    PolicyRef, RejectedPolicy, UnitExplanation,
};
pub use enforcement::Enforcement;
#[cfg(feature = "engine")]
pub(crate) use few_list::FewList;
pub use index_vec::{Id, IndexVec};
pub use internal::{InternalError, OrInternal};
#[cfg(feature = "engine")]
pub(crate) use json_text::write_text;
#[cfg(feature = "engine")]
pub(crate) use layered_map::LayeredMap;
pub use level::{Level, NodeKey, Section};
#[cfg(feature = "engine")]
pub use metadata_map::MetadataMap;
#[cfg(feature = "engine")]
pub use names::shared_name;
pub use nearest::{did_you_mean, nearest};
#[cfg(feature = "engine")]
pub use object::{Location, Object, TARGETS_ONLY, Timestamp};
pub use object_key::{GroupKind, KindNames, ObjectKey, Str, groups};
pub use paged_vec::{PagedTable, PagedVec, TableEntry};
pub use path::{
    BackendStep, DelegatingRules, ListenerSetStep, MAX_DELEGATIONS, PathName, PathPrefix,
    PathSyntaxError, Root, RouteStep, RuleStep, TrafficPath,
};
#[cfg(feature = "engine")]
pub use selector::LabelSelector;
pub use strategy::{Direction, Granularity, Strategy};
pub use unit::{Segment, Unit, item_value};
#[cfg(feature = "engine")]
pub(crate) use unit_tree::UnitTree;
pub use unknown::{Unknown, UnknownReason};
pub use value::{FieldStep, at_path, field_path_text, is_unset, parse_field_path};

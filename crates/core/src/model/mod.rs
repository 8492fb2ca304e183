//! The words of the field, shared by every room: object keys, nodes, paths and their names,
//! units, conditions, changes and effective policies.
//!
//! This room knows no other room, no Kubernetes client and no transport.

mod change;
mod chunks;
mod condition;
mod effective;
mod force;
mod level;
mod object;
mod path;
mod selector;
mod strategy;
mod unit;
mod value;

pub use change::{Change, KindState, SourceState};
pub use chunks::Chunks;
pub use condition::{Outcome, PathReason};
pub use effective::{
    Beaten, BlockName, Effective, Explained, Listed, LossReason, Origin, PolicyRef, Rejected,
    UnitOutcome,
};
pub use force::InForce;
pub use level::{Level, NodeKey, Section};
pub use object::{GroupKind, Object, ObjectKey, Str, Timestamp, groups};
pub use path::{
    BackendStep, ListenerSetStep, PathName, PathPrefix, PathSyntaxError, Root, RouteStep, RuleStep,
    Walk,
};
pub use selector::LabelSelector;
pub use strategy::{Direction, Granularity, Strategy};
pub use unit::{Segment, Unit, item_value};
pub use value::{FieldStep, at_path, is_unset, parse_field_path};

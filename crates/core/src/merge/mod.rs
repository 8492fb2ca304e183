//! Merges an ordered stack of blocks into rules and records the origin of every value (specification
//! 5, 6, 9.1). Independent of Kubernetes objects: policies are numbers, nodes are groups of the stack.

mod fold;
mod instances;
mod join;
mod reduce;
mod removal;
mod schema;
mod shape;
mod trace;
mod tree;
mod unit_value;
mod units;
mod write;

pub use fold::{FilledUnit, FoldDetail, FoldResult, MergedUnit, fold};
pub use shape::Schemas;
pub use trace::Loss;
pub use unit_value::UnitValue;
pub use units::{joined_units_of, leaves_of, pruned, units_of, value_at};

use crate::model::{BlockName, Level, Strategy};
use crate::profile::Block;

/// An ordered stack of blocks.
#[derive(Clone, Debug, Default)]
pub struct Stack<'p> {
    /// The groups, from the least to the most specific.
    pub groups: Vec<StackGroup<'p>>,
    /// Whether the fold covers all levels, whatever the span of the kind (specification 2.10).
    pub all_levels: bool,
}

/// The policies of one node, or of one group of it (specification 4.3).
#[derive(Clone, Debug)]
pub struct StackGroup<'p> {
    /// The level of the node.
    pub level: Level,
    /// The policies, from the most to the least established.
    pub layers: Vec<Layer<'p>>,
}

/// One policy in a group of the stack.
#[derive(Clone, Debug)]
pub struct Layer<'p> {
    /// The caller's number of the policy; `None` for own fields (specification 6.4).
    pub policy: Option<usize>,
    /// The blocks with their strategies: bare rules first, then defaults, then overrides.
    pub blocks: Vec<(&'p Block, Strategy)>,
}

/// A block at its position in the stack. Origins and losses refer to it by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSource {
    /// The number of the policy; `None` for own fields.
    pub policy: Option<usize>,
    /// The block.
    pub block: BlockName,
    /// The strategy by which the block is merged.
    pub strategy: Strategy,
    /// Index of its group in the stack.
    pub group: usize,
    /// Position among the policies of the group; the most established is 0.
    pub rank: usize,
}

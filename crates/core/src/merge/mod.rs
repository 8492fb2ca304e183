//! Folds an ordered stack of blocks into rules and tells where every value came from
//! (specification 5, 6, 9.1). Knows no Kubernetes: policies are numbers, nodes are places.

mod fold;
mod join;
mod reduce;
mod schema;
mod shape;
mod trace;
mod tree;
mod units;
mod write;

pub use fold::{FoldDetail, FoldResult, MergedUnit, fold};
pub use shape::Schemas;
pub use trace::Loss;
pub use units::{joined_units_of, leaves_of, pruned, units_of, value_at};

use crate::model::{BlockName, Level, Strategy};
use crate::profile::Block;

/// An ordered stack: groups from least to most specific.
#[derive(Clone, Debug, Default)]
pub struct Stack<'p> {
    /// The groups.
    pub groups: Vec<StackGroup<'p>>,
}

/// The policies of one node, or of one group of it (specification 4.3).
#[derive(Clone, Debug)]
pub struct StackGroup<'p> {
    /// The level of the node.
    pub level: Level,
    /// The policies, from the most to the least established.
    pub layers: Vec<Layer<'p>>,
}

/// One policy at one place of the stack.
#[derive(Clone, Debug)]
pub struct Layer<'p> {
    /// The caller's number of the policy; own fields have none (specification 6.4).
    pub policy: Option<usize>,
    /// Its blocks, bare rules first, then defaults, then overrides, each with its strategy.
    pub blocks: Vec<(&'p Block, Strategy)>,
}

/// A block in its place: what origins and losses point to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSource {
    /// The policy's number; `None` for own fields.
    pub policy: Option<usize>,
    /// The block.
    pub block: BlockName,
    /// How it joined.
    pub strategy: Strategy,
    /// Index of its group in the stack.
    pub group: usize,
    /// Its place among the policies of the group, the most established first.
    pub rank: usize,
}

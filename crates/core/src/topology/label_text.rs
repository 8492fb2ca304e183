//! The encoded labels of edges, one after another in shared blocks.

use std::sync::Arc;

use super::edge_label::EdgeLabel;

const BLOCK_BITS: u32 = 14;
/// A block with as many bytes takes no more labels.
const BLOCK: usize = 1 << BLOCK_BITS;

/// The text of labels. A clone shares all blocks.
#[derive(Clone, Debug, Default)]
pub(super) struct LabelText {
    /// A label is in one block.
    blocks: Vec<Arc<Vec<u8>>>,
}

impl LabelText {
    /// Appends a label; returns its position and its length.
    pub(super) fn push(&mut self, label: EdgeLabel<'_>) -> (u32, u32) {
        if self.blocks.last().is_none_or(|last| last.len() >= BLOCK) {
            self.blocks.push(Arc::default());
        }
        let number = self.blocks.len() - 1;
        let Some(block) = self.blocks.last_mut().map(Arc::make_mut) else {
            return (0, 0);
        };
        let start = block.len();
        label.write(block);
        // 4 GiB of names do not fit into memory beside their objects.
        let position = number << BLOCK_BITS | start;
        let part = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        (part(position), part(block.len() - start))
    }

    /// A label by its position and length.
    pub(super) fn get(&self, (position, length): (u32, u32)) -> Option<&[u8]> {
        let block = self.blocks.get((position >> BLOCK_BITS) as usize)?;
        let start = position as usize % BLOCK;
        block.get(start..start + length as usize)
    }

    /// Releases unused memory.
    pub(super) fn shrink(&mut self) {
        for block in &mut self.blocks {
            Arc::make_mut(block).shrink_to_fit();
        }
    }
}

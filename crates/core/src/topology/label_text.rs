//! The encoded labels of edges, one after another in shared blocks.

use std::sync::Arc;

use super::edge_label::EdgeLabel;

const BLOCK_BITS: u32 = 14;
/// The number of bytes in a block, unless its only label is longer.
const BLOCK: usize = 1 << BLOCK_BITS;

/// Number of labels that are remembered, so that equal ones that follow are one text: names of rules, and the backend that
/// all rules of a route have. A look-up finds more of them in the caches, too.
const RECENT: usize = 256;

/// The text of labels. A clone shares all blocks.
#[derive(Clone, Debug)]
pub(super) struct LabelText {
    /// A label is in one block.
    blocks: Vec<Arc<Vec<u8>>>,
    /// The position and length of a label with each remainder of hashes; a length of 0 for none.
    recent: Box<[(u32, u32); RECENT]>,
}

impl Default for LabelText {
    fn default() -> Self {
        Self {
            blocks: Vec::new(),
            recent: Box::new([(0, 0); RECENT]),
        }
    }
}

impl LabelText {
    /// Returns the position and the length of a label with a hash, which is appended unless it is remembered.
    pub(super) fn add(&mut self, label: EdgeLabel<'_>, hash: u32) -> (u32, u32) {
        let place = hash as usize % RECENT;
        if let Some(&known) = self.recent.get(place)
            && self.get(known).is_some_and(|text| label.matches(text))
        {
            return known;
        }
        let new = self.push(label);
        if let Some(recent) = self.recent.get_mut(place) {
            *recent = new;
        }
        new
    }

    fn push(&mut self, label: EdgeLabel<'_>) -> (u32, u32) {
        let length = label.length();
        let has_room = |last: &Arc<Vec<u8>>| last.len() + length <= BLOCK;
        if !self.blocks.last().is_some_and(has_room) {
            self.blocks.push(Arc::default());
        }
        let number = self.blocks.len() - 1;
        let Some(block) = self.blocks.last_mut().map(Arc::make_mut) else {
            return (0, 0);
        };
        let start = block.len();
        if block.capacity() - start < length {
            block.reserve_exact(length.max(BLOCK - start));
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_full_and_a_long_label_has_its_own() {
        let mut text = LabelText::default();
        let long = "n".repeat(3 * BLOCK);
        let mut names: Vec<String> = (0..4_000).map(|number| format!("n{number:06}")).collect();
        names.insert(2_000, long);
        let place = |(name, hash): (&String, u32)| text.add(EdgeLabel::RuleName(name), hash);
        let places: Vec<_> = names.iter().zip(0..).map(place).collect();
        for (name, place) in names.iter().zip(places) {
            let label = text.get(place).unwrap();
            assert!(EdgeLabel::RuleName(name).matches(label), "{place:?}");
        }
        let sizes = text.blocks.iter().map(|block| block.capacity());
        let longer: Vec<usize> = sizes.filter(|size| *size != BLOCK).collect();
        assert_eq!(longer, [3 * BLOCK + 4]);
        // What is added to a copy leaves the block as it is, and has room for more.
        let mut copy = text.clone();
        copy.add(EdgeLabel::RuleName("other"), 0);
        let last = |text: &LabelText| text.blocks.last().map(|block| block.capacity());
        assert_eq!((last(&copy), last(&text)), (Some(BLOCK), Some(BLOCK)));
    }

    #[test]
    fn equal_labels_are_one_text_if_they_follow_soon() {
        let mut text = LabelText::default();
        let names: Vec<String> = (0..2_000).map(|number| format!("n{number}")).collect();
        let mut places = Vec::new();
        for (name, hash) in names.iter().zip(0_u32..) {
            let label = EdgeLabel::RuleName(name);
            let place = text.add(label, hash);
            assert_eq!(text.add(label, hash), place);
            // Another label with this hash.
            let other = text.add(EdgeLabel::Listener(name), hash);
            assert_ne!(other, place);
            assert_ne!(text.add(label, hash), place);
            places.push((place, other));
        }
        for (name, (place, other)) in names.iter().zip(places) {
            let matches = |place, label: EdgeLabel<'_>| label.matches(text.get(place).unwrap());
            assert!(matches(place, EdgeLabel::RuleName(name)));
            assert!(matches(other, EdgeLabel::Listener(name)));
        }
    }
}

//! The encoded answers of chain states, which are numbered densely: a list takes half of what a hash table takes.

use std::sync::Arc;

use super::PathAnswer;
use entail_core::engine::ChainStateId;
use entail_core::model::ChunkedVec;

/// Index of a kind, its chain state, and whether the path is above the effective level.
pub(super) type ChainStateKey = (usize, ChainStateId, bool);

/// The answers by kind and chain state: at the effective level, and above it.
#[derive(Debug, Default)]
pub(super) struct AnswerTable {
    kinds: Vec<ChunkedVec<[Option<Arc<PathAnswer>>; 2]>>,
    length: usize,
}

impl AnswerTable {
    /// The number of answers.
    pub fn len(&self) -> usize {
        self.length
    }

    /// The answer with a key.
    pub fn get(&self, key: &ChainStateKey) -> Option<&Arc<PathAnswer>> {
        let &(kind, chain_state, inherited_only) = key;
        let slots = self.kinds.get(kind)?.get(chain_state as usize)?;
        slots.get(usize::from(inherited_only))?.as_ref()
    }

    /// Puts an answer in its place.
    pub fn insert(&mut self, key: ChainStateKey, answer: Arc<PathAnswer>) {
        let (kind, chain_state, _) = key;
        if self.kinds.len() <= kind {
            self.kinds.resize_with(kind + 1, ChunkedVec::default);
        }
        if let Some(of_kind) = self.kinds.get_mut(kind) {
            while of_kind.len() <= chain_state as usize {
                of_kind.push([None, None]);
            }
        }
        if let Some(slot) = self.slot(&key) {
            let is_new = slot.replace(answer).is_none();
            self.length += usize::from(is_new);
        }
    }

    /// Takes the answer with a key out.
    pub fn remove(&mut self, key: &ChainStateKey) -> Option<Arc<PathAnswer>> {
        let answer = self.slot(key)?.take()?;
        self.length -= 1;
        Some(answer)
    }

    /// All answers and their keys.
    pub fn iter(&self) -> impl Iterator<Item = (ChainStateKey, &Arc<PathAnswer>)> {
        self.kinds.iter().enumerate().flat_map(|(kind, of_kind)| {
            let slots = (0..).zip(of_kind.iter()).flat_map(|(chain_state, slots)| {
                [false, true]
                    .into_iter()
                    .zip(slots)
                    .map(move |(above, slot)| (chain_state, above, slot))
            });
            slots.filter_map(move |(chain_state, above, slot)| {
                Some(((kind, chain_state, above), slot.as_ref()?))
            })
        })
    }

    fn slot(&mut self, key: &ChainStateKey) -> Option<&mut Option<Arc<PathAnswer>>> {
        let &(kind, chain_state, inherited_only) = key;
        let slots = self.kinds.get_mut(kind)?.get_mut(chain_state as usize)?;
        slots.get_mut(usize::from(inherited_only))
    }
}

//! The automaton that follows all paths at once.
//!
//! A [`StateId`] numbers a combination of chain states of all kinds. A symbol stands for all trie nodes that
//! have the same effect on the chain states. Transitions lead from a state and a symbol to the next state.
//! Paths that reach the same state continue alike, so the cost grows with the number of distinct
//! attachment chains and not with the number of paths.

use std::sync::Arc;

use super::chain_state::ChainState;
use crate::effective::chain::reaches_effective_level;
use crate::effective::{AttachmentChain, World};
use crate::model::{ChunkedVec, InternalError, Level, OrInternal, PagedTable, PagedVec, Str};
use crate::topology::{RootKind, TrieNodeId};

/// The number of a state; 0 is the start state.
pub type StateId = u32;
/// The number of a chain state of a kind.
pub type ChainStateId = u32;

/// The transitions of the automaton: all that look-ups need of it. Clones share what does not change.
#[derive(Clone, Debug, Default)]
pub struct Transitions {
    /// The symbol of each trie node.
    pub(super) symbols: PagedVec<u32>,
    /// State, symbol and next state.
    table: PagedTable<(StateId, u32, StateId)>,
}

/// The states of a world and the transitions between them. Clones share what does not change.
#[derive(Clone, Debug)]
pub struct Automaton {
    pub(super) transitions: Arc<Transitions>,
    pub(super) states: ChunkedVec<State>,
    /// The chain states by kind; `None` for a kind without attached policies.
    pub(super) chain_states: Vec<Option<ChainStates>>,
}

/// A combination of chain states.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    pub(super) root: RootKind,
    pub(super) end: Level,
    pub(super) client: Str,
    /// The chain state of each kind with attached policies, see [`ChainStates::place`].
    pub(super) chain_states: Box<[ChainStateId]>,
}

/// The chain states of a kind.
#[derive(Clone, Debug, Default)]
pub(super) struct ChainStates {
    /// The place of the kind in the lists of states.
    pub(super) place: usize,
    /// Each with the client namespace, if it is a part of the state.
    pub(super) by_id: ChunkedVec<Arc<(ChainState, Str)>>,
}

impl Transitions {
    /// The state after one more trie node. Does not allocate.
    ///
    /// # Errors
    /// There is no such state or trie node, or no path has this transition.
    pub fn after(&self, state: StateId, node: TrieNodeId) -> Result<StateId, InternalError> {
        let symbol = self.symbols.get(node.index());
        let after = symbol.and_then(|symbol| self.next(state, *symbol));
        after.or_internal("the state after a node")
    }

    /// The symbol of a trie node.
    ///
    /// # Errors
    /// There is no such trie node.
    pub(super) fn symbol(&self, node: TrieNodeId) -> Result<u32, InternalError> {
        let symbol = self.symbols.get(node.index());
        symbol.copied().or_internal("a trie node")
    }

    /// The state after a symbol, if it is known.
    pub(super) fn next(&self, state: StateId, symbol: u32) -> Option<StateId> {
        let is_from = |entry: &(StateId, u32, StateId)| (entry.0, entry.1) == (state, symbol);
        let found = self.table.find(hash(&(state, symbol, 0)), is_from);
        found.map(|(_, _, next)| *next)
    }

    /// Adds a transition.
    pub(super) fn add(&mut self, state: StateId, symbol: u32, next: StateId) {
        let transition = (state, symbol, next);
        self.table.insert(transition, hash(&transition), hash);
    }

    /// Releases unused memory.
    pub(super) fn settle(&mut self) {
        self.table.settle(hash);
    }
}

impl Automaton {
    /// The transitions between states.
    pub fn transitions(&self) -> &Arc<Transitions> {
        &self.transitions
    }

    /// The number of states.
    pub fn len(&self) -> usize {
        self.states.len()
    }

    /// Whether there are no states. Always false: the start state exists.
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// The kinds with their chain states at a state, and whether the state is above the kind's effective
    /// level.
    ///
    /// # Errors
    /// There is no such state, or it lacks a chain state.
    pub fn chain_states(
        &self,
        world: &World,
        state: StateId,
    ) -> Result<Vec<(usize, ChainStateId, bool)>, InternalError> {
        let state = self.states.get(state as usize).or_internal("a state")?;
        let mut found = Vec::with_capacity(self.chain_states.len());
        // No kind has a chain at the start state.
        if state.end == Level::Root {
            return Ok(found);
        }
        for (number, (chain_states, kind)) in
            self.chain_states.iter().zip(world.kinds()).enumerate()
        {
            let Some(chain_states) = chain_states else {
                continue;
            };
            let chain_state = *state
                .chain_states
                .get(chain_states.place)
                .or_internal("the chain state of a kind")?;
            let inherited_only = !reaches_effective_level(&kind.profile, state.root, state.end);
            found.push((number, chain_state, inherited_only));
        }
        Ok(found)
    }

    /// The kind of root of the paths that reach a state, and the level at which they end.
    ///
    /// # Errors
    /// There is no such state.
    pub fn end(&self, state: StateId) -> Result<(RootKind, Level), InternalError> {
        let state = self.states.get(state as usize).or_internal("a state")?;
        Ok((state.root, state.end))
    }

    /// The chain state of a kind at a state; `None` for a kind without attached policies.
    ///
    /// # Errors
    /// There is no such state or kind.
    pub fn chain_state(
        &self,
        kind: usize,
        state: StateId,
    ) -> Result<Option<ChainStateId>, InternalError> {
        let state = self.states.get(state as usize).or_internal("a state")?;
        let chain_states = self.chain_states.get(kind).or_internal("a kind")?;
        let Some(chain_states) = chain_states else {
            return Ok(None);
        };
        let chain_state = state
            .chain_states
            .get(chain_states.place)
            .or_internal("the chain state of a kind")?;
        Ok(Some(*chain_state))
    }

    /// The attachment chain of a chain state; `None` if it is empty.
    ///
    /// # Errors
    /// There is no such chain state.
    pub fn chain(
        &self,
        kind: usize,
        chain_state: ChainStateId,
        inherited_only: bool,
    ) -> Result<Option<AttachmentChain>, InternalError> {
        let chain_states = self.chain_states.get(kind).and_then(Option::as_ref);
        let existing =
            chain_states.and_then(|chain_states| chain_states.by_id.get(chain_state as usize));
        let (chain_state, client) = &**existing.or_internal("a chain state")?;
        Ok(chain_state.attachment_chain(inherited_only, client))
    }
}

/// The hash of a transition, by its state and its symbol.
fn hash(&(state, symbol, _): &(StateId, u32, StateId)) -> u64 {
    let both = u64::from(state) << 32 | u64::from(symbol);
    // The high bits count, and all bits have an effect on them.
    both.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

//! What is needed to add to an automaton: its states by their content, and which of them paths reach.
//!
//! A state stays when no path reaches it any more, until the automaton is built anew. Which states are reached is
//! counted: a route that is attached to a listener reaches states that depend only on the state of the listener and on
//! the class of the route, so that routes of one class count once for each state of listeners.

use std::hash::BuildHasher as _;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashMap};

use super::automaton::{Automaton, ChainStateId, ChainStates, State, StateId};
use super::chain_state::ChainState;
use super::explore::Symbol;
use crate::model::{
    ChunkedVec, FewList, InternalError, LayeredMap, Level, OrInternal, PagedTable, PagedVec, Str,
};
use crate::topology::{NodeId, TrieNodeId};

/// The number of a class of routes with the same symbols, and of which all subtrees have the same symbols.
pub(super) type RouteClass = u32;

/// The states of an automaton by their content, and how often they are reached. Clones share what does not change.
#[derive(Clone, Debug, Default)]
pub(super) struct StateIndex {
    hasher: DefaultHashBuilder,
    states: PagedTable<StateId>,
    kinds: Vec<ChainStateIndex>,
    symbols: HashMap<Arc<Symbol>, u32>,
    /// The symbols of nodes without effects.
    plain: HashMap<Level, u32>,
    next_symbol: u32,
    /// The class of each route, by its trie node.
    classes: LayeredMap<TrieNodeId, RouteClass>,
    /// The classes of routes by their symbols, while all states are explored.
    class_ids: HashMap<(u32, u32), RouteClass>,
    next_class: RouteClass,
    /// The number of routes of each class at listeners in each state.
    attached: LayeredMap<(StateId, RouteClass), u32>,
    /// How often each state is reached.
    reached: PagedVec<u32>,
    /// The number of states that are reached.
    live: usize,
    /// The states of which the count has changed, with whether they were reached before; while it is recorded.
    changed: Option<HashMap<StateId, bool>>,
}

/// The chain states of a kind by their content.
#[derive(Clone, Debug, Default)]
struct ChainStateIndex {
    ids: PagedTable<ChainStateId>,
    /// The states that contain each chain state.
    states: ChunkedVec<FewList<StateId>>,
    /// The chain states whose chain contains a node.
    by_node: LayeredMap<NodeId, FewList<ChainStateId>>,
}

/// How the states that paths reach have changed.
#[derive(Debug, Default)]
pub(super) struct ReachedStates {
    /// The states that are reached now.
    pub(super) added: Vec<StateId>,
    /// The states that are reached no more.
    pub(super) removed: Vec<StateId>,
}

impl StateIndex {
    /// An index without states for a number of kinds.
    pub(super) fn new(kinds: usize) -> Self {
        Self {
            kinds: (0..kinds).map(|_| ChainStateIndex::default()).collect(),
            ..Self::default()
        }
    }

    /// The number of a symbol.
    pub(super) fn symbol(&mut self, symbol: &Arc<Symbol>) -> u32 {
        let level = symbol.plain_level();
        let known = level.and_then(|level| self.plain.get(&level));
        if let Some(&known) = known.or_else(|| self.symbols.get(symbol)) {
            return known;
        }
        let number = self.next_symbol;
        self.next_symbol = number.saturating_add(1);
        match level {
            Some(level) => self.plain.insert(level, number),
            None => self.symbols.insert(Arc::clone(symbol), number),
        };
        number
    }

    /// The level of the nodes with a symbol, if it is that of nodes without effects.
    pub(super) fn plain_level(&self, symbol: u32) -> Option<Level> {
        let mut plain = self.plain.iter();
        plain.find_map(|(level, number)| (*number == symbol).then_some(*level))
    }

    /// Drops what only exploring all states needs. A symbol that comes again gets another number, which has the same
    /// effect.
    pub(super) fn forget_symbols(&mut self) {
        self.symbols = HashMap::new();
        self.class_ids = HashMap::new();
    }

    /// The class of a route, by its symbol and the class of its subtree.
    pub(super) fn class(&mut self, route: TrieNodeId, symbols: (u32, u32)) -> RouteClass {
        let next = self.next_class;
        let class = *self.class_ids.entry(symbols).or_insert(next);
        if class == next {
            self.next_class += 1;
        }
        self.classes.insert(route, class);
        class
    }

    /// A class of its own for a new route.
    pub(super) fn new_class(&mut self, route: TrieNodeId) -> RouteClass {
        let class = self.next_class;
        self.next_class += 1;
        self.classes.insert(route, class);
        class
    }

    /// The class of a route that has one.
    pub(super) fn class_of(&self, route: TrieNodeId) -> Option<RouteClass> {
        self.classes.get(&route).copied()
    }

    /// Forgets the class of a route that has left the trie.
    pub(super) fn forget_class(&mut self, route: TrieNodeId) {
        self.classes.remove(&route);
    }

    /// Counts a route at a listener. Returns whether it is the first of its class there.
    pub(super) fn attach(&mut self, attached: (StateId, RouteClass)) -> bool {
        self.attached.update(attached, |count| {
            *count += 1;
            *count == 1
        })
    }

    /// Counts a route less at a listener. Returns whether it was the last of its class there.
    ///
    /// # Errors
    /// There is no such route.
    pub(super) fn detach(
        &mut self,
        attached: (StateId, RouteClass),
    ) -> Result<bool, InternalError> {
        let count = self.attached.get_mut(&attached);
        let count = count.or_internal("the routes of a class")?;
        *count = count.saturating_sub(1);
        let is_last = *count == 0;
        if is_last {
            self.attached.remove(&attached);
        }
        Ok(is_last)
    }

    /// Counts a state that a root, a ListenerSet or a listener reaches once more.
    pub(super) fn pin(&mut self, state: StateId) {
        self.reach(vec![state], true);
    }

    /// Counts the states that a route reaches once more or once less, each once.
    pub(super) fn reach(&mut self, mut states: Vec<StateId>, more: bool) {
        states.sort_unstable();
        states.dedup();
        for state in states {
            let Some(&count) = self.reached.get(state as usize) else {
                continue;
            };
            let before = count > 0;
            let count = match more {
                true => count.saturating_add(1),
                false => count.saturating_sub(1),
            };
            self.reached.set(state as usize, count);
            self.live += usize::from(!before && count > 0);
            self.live -= usize::from(before && count == 0);
            if let Some(changed) = &mut self.changed {
                changed.entry(state).or_insert(before);
            }
        }
    }

    /// Begins to record which states are reached.
    pub(super) fn record(&mut self) {
        self.changed = Some(HashMap::new());
    }

    /// The states that are reached now and were not before, and the other way round.
    pub(super) fn recorded(&mut self) -> ReachedStates {
        let mut found = ReachedStates::default();
        for (state, before) in self.changed.take().into_iter().flatten() {
            match (before, self.is_reached(state)) {
                (false, true) => found.added.push(state),
                (true, false) => found.removed.push(state),
                _ => {}
            }
        }
        found.added.sort_unstable();
        found.removed.sort_unstable();
        found
    }

    /// Whether paths reach a state.
    pub(super) fn is_reached(&self, state: StateId) -> bool {
        let count = self.reached.get(state as usize);
        count.is_some_and(|count| *count > 0)
    }

    /// The number of states that paths reach, and of the others.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.live, self.reached.len().saturating_sub(self.live))
    }

    /// The chain states of a kind whose chain contains a node.
    pub(super) fn chain_states_on(&self, kind: usize, node: NodeId) -> &[ChainStateId] {
        let index = self.kinds.get(kind);
        let found = index.and_then(|index| index.by_node.get(&node));
        found.map_or(&[], FewList::as_slice)
    }

    /// The reached states that contain a chain state of a kind.
    ///
    /// # Errors
    /// There is no such chain state.
    pub(super) fn states_in(
        &self,
        kind: usize,
        chain_state: ChainStateId,
    ) -> Result<impl Iterator<Item = StateId>, InternalError> {
        let index = self.kinds.get(kind);
        let found = index.and_then(|index| index.states.get(chain_state as usize));
        let states = found.or_internal("the states with a chain state")?;
        let states = states.as_slice().iter();
        Ok(states.copied().filter(|state| self.is_reached(*state)))
    }

    /// The number of a state, which is added if it is new.
    ///
    /// # Errors
    /// There are too many states, or a chain state is missing.
    pub(super) fn add_state(
        &mut self,
        automaton: &mut Automaton,
        state: State,
    ) -> Result<StateId, InternalError> {
        let hash = self.hasher.hash_one(&state);
        let states = &automaton.states;
        let is_same = |id: &StateId| states.get(*id as usize) == Some(&state);
        if let Some(&known) = self.states.find(hash, is_same) {
            return Ok(known);
        }
        let id = u32::try_from(states.len()).ok();
        let id = id.or_internal("a free state number")?;
        let kinds = automaton.chain_states.iter().zip(&mut self.kinds);
        for (chain_states, index) in kinds {
            let Some(chain_states) = chain_states else {
                continue;
            };
            // The start state has no chain states.
            if let Some(chain_state) = state.chain_states.get(chain_states.place) {
                let states = index.states.get_mut(*chain_state as usize);
                states.or_internal("a chain state")?.push(id);
            }
        }
        automaton.states.push(state);
        self.reached.push(0);
        let (states, hasher) = (&automaton.states, &self.hasher);
        let hash_of = |id: &StateId| {
            let known = states.get(*id as usize);
            known.map_or(0, |known| hasher.hash_one(known))
        };
        self.states.insert(id, hash, hash_of);
        Ok(id)
    }

    /// The number of a chain state of a kind, which is added if it is new.
    ///
    /// # Errors
    /// There are too many chain states.
    pub(super) fn add_chain_state(
        &mut self,
        chain_states: &mut ChainStates,
        kind: usize,
        key: (ChainState, Str),
    ) -> Result<ChainStateId, InternalError> {
        let index = self
            .kinds
            .get_mut(kind)
            .or_internal("the index of a kind")?;
        let hash = self.hasher.hash_one(&key);
        let by_id = &chain_states.by_id;
        let is_same =
            |id: &ChainStateId| by_id.get(*id as usize).is_some_and(|known| **known == key);
        if let Some(&known) = index.ids.find(hash, is_same) {
            return Ok(known);
        }
        let id = u32::try_from(by_id.len()).ok();
        let id = id.or_internal("a free chain state number")?;
        for node in key.0.nodes() {
            index
                .by_node
                .update(node, |chain_states| chain_states.push(id));
        }
        chain_states.by_id.push(Arc::new(key));
        index.states.push(FewList::None);
        let (by_id, hasher) = (&chain_states.by_id, &self.hasher);
        let hash_of = |id: &ChainStateId| {
            let known = by_id.get(*id as usize);
            known.map_or(0, |known| hasher.hash_one(&**known))
        };
        index.ids.insert(id, hash, hash_of);
        Ok(id)
    }
}

//! Walks the paths of a world. Look-ups, explanations, statuses and lists all use this engine.

use std::cell::Cell;
use std::sync::Arc;

use hashbrown::HashMap;

use super::automaton::{Automaton, ChainStateId, StateId};
use super::state_index::StateIndex;
use crate::effective::{Activity, AttachmentChain, PathRoot, PolicyKind, World};
use crate::model::{GroupKind, InternalError, Level, OrInternal, PathName};
use crate::topology::{NodeId, PathStart, PathTrie, PathVisitor, RootKind, TrieNodeId, TrieRoot};

/// A world with the trie of its paths and the automaton over it. It is immutable; clones share all data.
#[derive(Clone, Debug)]
pub struct PathEngine {
    pub(super) world: World,
    pub(super) trie: Arc<PathTrie>,
    pub(super) automaton: Arc<Automaton>,
}

/// Where a path ends, in the trie and in the automaton.
#[derive(Clone, Debug)]
pub struct PathEnd {
    /// The trie nodes from the root to the end.
    pub resolved: Vec<TrieNodeId>,
    /// The state at the end.
    pub state: StateId,
}

/// Numbers the attachment chains of a kind. Equal chains of different states have the same number.
#[derive(Debug)]
pub struct ChainTable<'e> {
    engine: &'e PathEngine,
    number: usize,
    kind: &'e PolicyKind,
    by_state: HashMap<(ChainStateId, bool), Option<ChainId>>,
    ids: HashMap<AttachmentChain, ChainId>,
    chains: Vec<AttachmentChain>,
}

/// The number of an attachment chain in a [`ChainTable`].
pub type ChainId = usize;

/// An attachment chain together with the node whose own fields count.
pub type ChainKey = (ChainId, Option<NodeId>);

impl PathEngine {
    /// Finds all paths of a world and the states that they reach.
    pub fn new(world: World) -> Self {
        Self::with_index(world).0
    }

    /// Finds all paths of a world and the states that they reach, with what is needed to change single ones.
    pub(super) fn with_index(world: World) -> (Self, StateIndex) {
        let trie = Arc::new(world.topology().trie());
        let (automaton, index) = Self::build_automaton(&world, &trie);
        let paths = Self {
            world,
            trie,
            automaton: Arc::new(automaton),
        };
        (paths, index)
    }

    /// Builds the automaton of a world. If that fails, all kinds are UNKNOWN and no trie node has a
    /// state.
    pub(super) fn build_automaton(world: &World, trie: &PathTrie) -> (Automaton, StateIndex) {
        Automaton::new(world, trie).unwrap_or_else(|error| {
            world.kinds().iter().for_each(|kind| kind.fail(error));
            Automaton::without_paths(world)
        })
    }

    /// The world that the paths belong to.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// The trie of all paths.
    pub fn trie(&self) -> &Arc<PathTrie> {
        &self.trie
    }

    /// The automaton over the trie.
    pub fn automaton(&self) -> &Arc<Automaton> {
        &self.automaton
    }

    /// The state after one more trie node.
    ///
    /// # Errors
    /// There is no such transition.
    pub fn after(&self, state: StateId, node: TrieNodeId) -> Result<StateId, InternalError> {
        self.automaton.transitions().after(state, node)
    }

    /// Finds the end of a path by its name; `None` if there is no such path.
    ///
    /// # Errors
    /// A trie node has no state.
    pub fn locate(&self, path: &PathName<'_>) -> Result<Option<PathEnd>, InternalError> {
        let mut resolved = Vec::with_capacity(8);
        if !self.trie.walk(path, |node| resolved.push(node))? {
            return Ok(None);
        }
        let mut state = 0;
        for &node in &resolved {
            state = self.after(state, node)?;
        }
        Ok(Some(PathEnd { resolved, state }))
    }

    /// Visits a path and all paths below it, or all paths, in order. `step` returns the visitor's state after
    /// one more trie node.
    ///
    /// # Errors
    /// `step` fails.
    pub fn visit<S: Copy>(
        &self,
        start: Option<&PathStart>,
        begin: S,
        step: impl Fn(S, TrieNodeId) -> Result<S, InternalError>,
        visitor: &mut dyn PathVisitor<S>,
    ) -> Result<(), InternalError> {
        let failed = Cell::new(None);
        let step = |state, node| {
            let next = step(state, node);
            next.map_err(|error| failed.set(Some(error))).ok()
        };
        self.trie.visit(start, begin, step, visitor);
        failed.get().map_or(Ok(()), Err)
    }

    /// The kind of a trie node's object.
    ///
    /// # Errors
    /// There is no such trie node.
    pub fn object_kind(&self, node: TrieNodeId) -> Result<&GroupKind, InternalError> {
        let node = self.trie.node(node)?;
        Ok(&self.world.topology().key(node.node).object.kind)
    }

    /// The root of a path.
    ///
    /// # Errors
    /// The path is empty, or its first trie node is not a root.
    pub fn root_of(&self, resolved: &[TrieNodeId]) -> Result<&TrieRoot, InternalError> {
        let root = resolved.first().and_then(|&root| self.trie.root(root));
        root.or_internal("the root of a path")
    }

    /// The attachment chain of a kind at a state; `None` if no policy of the kind is attached.
    ///
    /// # Errors
    /// There is no such kind, state or chain state.
    pub fn chain(
        &self,
        number: usize,
        state: StateId,
    ) -> Result<Option<AttachmentChain>, InternalError> {
        let kind = self.world.kinds().get(number).or_internal("a kind")?;
        let Some(chain_state) = self.automaton.chain_state(number, state)? else {
            return Ok(None);
        };
        let (root, end) = self.automaton.end(state)?;
        self.chain_of(
            kind,
            (number, chain_state),
            !kind.reaches_effective_level(root, end),
        )
    }

    fn chain_of(
        &self,
        kind: &PolicyKind,
        (number, chain_state): (usize, ChainStateId),
        inherited_only: bool,
    ) -> Result<Option<AttachmentChain>, InternalError> {
        let chain = self.automaton.chain(number, chain_state, inherited_only)?;
        // After an update, a chain state may contain a node that has no policies any more.
        Ok(chain.and_then(|chain| kind.prune_chain(chain)))
    }

    /// The most specific node of a path that a kind considers, if the kind reads own fields.
    ///
    /// # Errors
    /// A trie node of the path is missing.
    pub fn own_node(
        &self,
        kind: &PolicyKind,
        resolved: &[TrieNodeId],
    ) -> Result<Option<NodeId>, InternalError> {
        if !kind.reads_own_fields() {
            return Ok(None);
        }
        let root = self.root_of(resolved)?;
        let mut last = root
            .class
            .filter(|_| kind.keeps(root.kind, Level::GatewayClass));
        for &node in resolved {
            let node = self.trie.node(node)?;
            if kind.keeps(root.kind, node.level) {
                last = Some(node.node);
            }
        }
        Ok(last)
    }

    /// Whether a kind acts on the paths of the root at a trie node (specification 2.4).
    ///
    /// # Errors
    /// There is no such trie node, or it is not a root.
    pub fn activity(&self, kind: &PolicyKind, id: TrieNodeId) -> Result<Activity, InternalError> {
        let root = self.trie.root(id).or_internal("a root")?;
        let root = PathRoot::of(self.trie.node(id)?, root);
        Ok(self.world.activity(kind, root))
    }

    /// Records an internal error that concerns the answers of all kinds: all become UNKNOWN.
    pub fn fail(&self, error: InternalError) {
        for kind in self.world.kinds() {
            kind.fail(error);
        }
    }
}

impl<'e> ChainTable<'e> {
    /// Creates an empty table for a kind.
    pub fn new(engine: &'e PathEngine, number: usize, kind: &'e PolicyKind) -> Self {
        Self {
            engine,
            number,
            kind,
            by_state: HashMap::new(),
            ids: HashMap::new(),
            chains: Vec::new(),
        }
    }

    /// The kind of the table.
    pub fn kind(&self) -> &'e PolicyKind {
        self.kind
    }

    /// The chain at a state; `None` if no policy of the kind is attached.
    ///
    /// # Errors
    /// There is no such state or chain state.
    pub fn at(&mut self, state: StateId) -> Result<Option<ChainId>, InternalError> {
        let (root, end) = self.engine.automaton.end(state)?;
        self.of(state, !self.kind.reaches_effective_level(root, end))
    }

    /// The chain at a state, if a path that ends there at an object of the given kind is a scope of this
    /// table's kind (specification 2.3, 2.6, 7.2).
    ///
    /// # Errors
    /// There is no such state or chain state.
    pub fn at_scope(
        &mut self,
        state: StateId,
        object: &GroupKind,
    ) -> Result<Option<ChainId>, InternalError> {
        let (root, end) = self.engine.automaton.end(state)?;
        if !self.kind.ends_at_scope(root, end, object) {
            return Ok(None);
        }
        let Some(id) = self.of(state, false)? else {
            return Ok(None);
        };
        Ok((!self.chain(id)?.is_unknown()).then_some(id))
    }

    fn of(
        &mut self,
        state: StateId,
        inherited_only: bool,
    ) -> Result<Option<ChainId>, InternalError> {
        let Some(chain_state) = self.engine.automaton.chain_state(self.number, state)? else {
            return Ok(None);
        };
        if let Some(&existing) = self.by_state.get(&(chain_state, inherited_only)) {
            return Ok(existing);
        }
        let chain = self
            .engine
            .chain_of(self.kind, (self.number, chain_state), inherited_only)?;
        let id = chain.map(|chain| match self.ids.get(&chain) {
            Some(&existing) => existing,
            None => {
                self.chains.push(chain.clone());
                self.ids.insert(chain, self.chains.len() - 1);
                self.chains.len() - 1
            }
        });
        self.by_state.insert((chain_state, inherited_only), id);
        Ok(id)
    }

    /// Whether a policy is attached to a node of a chain.
    ///
    /// # Errors
    /// There is no such chain.
    pub fn has(&self, id: ChainId, slot: usize) -> Result<bool, InternalError> {
        Ok(!self
            .kind
            .steps_with_policy(slot, self.chain(id)?)
            .is_empty())
    }

    /// A chain by its number.
    ///
    /// # Errors
    /// There is no such chain.
    pub fn chain(&self, id: ChainId) -> Result<&AttachmentChain, InternalError> {
        self.chains.get(id).or_internal("a chain by its number")
    }

    /// The number of chains in the table.
    pub fn len(&self) -> usize {
        self.chains.len()
    }

    /// Whether the table has no chains.
    pub fn is_empty(&self) -> bool {
        self.chains.is_empty()
    }
}

/// Whether paths of a root go through a Gateway or a mesh root.
pub(super) fn has_ancestor(root: RootKind) -> bool {
    matches!(root, RootKind::Gateway | RootKind::Mesh)
}

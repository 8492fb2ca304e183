//! Builds the automaton of a world: finds all states that paths reach, without walking every path.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;

use super::automaton::{Automaton, ChainStateId, ChainStates, State, StateId, Transitions};
use super::chain_state::{ChainEffect, ChainStart, ChainState, StepContext};
use super::state_index::{RouteClass, StateIndex};
use crate::attach::AttachmentGroup;
use crate::effective::delegation::DelegatedNodes;
use crate::effective::{NodePolicies, PathRoot, PolicyKind, World};
use crate::model::{ChunkedVec, IndexVec, InternalError, Level, NodeKey, OrInternal, Str};
use crate::profile::CrossNamespace;
use crate::topology::delegation::DelegationId;
use crate::topology::{
    ListenerPatch, NodeId, PathStep, PathTrie, RootKind, TrieNode, TrieNodeId, TrieRoot,
};

/// The effects of a trie node on all kinds. Nodes with equal symbols lead to the same next state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Symbol {
    root: Option<RootSymbol>,
    /// The effects of each step. The trie node of a Gateway has two: its GatewayClass and the Gateway; that
    /// of a backend whose backendRefs have filters as well: the backendRefs and the backend.
    steps: Vec<(Level, Vec<(usize, ChainEffect)>)>,
    /// Whether the node is a rule that only delegates: it counts as a part of its route (specification 1.8).
    delegates_only: bool,
}

impl Symbol {
    /// The symbol of a node without effects.
    fn plain(level: Level) -> Self {
        Self {
            root: None,
            steps: vec![(level, Vec::new())],
            delegates_only: false,
        }
    }

    /// The level of a node without effects; `None` for any other symbol.
    pub(super) fn plain_level(&self) -> Option<Level> {
        match (&self.root, &*self.steps) {
            (None, [(level, effects)]) if effects.is_empty() && !self.delegates_only => {
                Some(*level)
            }
            _ => None,
        }
    }
}

/// The properties of a root that concern all paths below it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct RootSymbol {
    kind: RootKind,
    client: Str,
    /// How the chain of each kind starts.
    starts: Vec<ChainStart>,
}

/// Builds an automaton, or adds to one.
pub(super) struct AutomatonBuilder<'w> {
    world: &'w World,
    root: Option<NodeId>,
    /// Whether some policy is for the clients of one namespace; otherwise states ignore the client.
    /// Only roots have clients: it is found out for the first one.
    has_clients: Option<bool>,
    /// The symbols that are new, by number.
    symbols: HashMap<u32, Arc<Symbol>, FxBuildHasher>,
    /// By node and level, and whether the node delegates.
    by_node: HashMap<(NodeId, Level, bool), u32>,
    /// The policies of each kind on the child Routes of a delegation.
    delegated: HashMap<(usize, DelegationId), DelegatedNodes>,
    /// The kinds with chain states.
    active: Arc<[usize]>,
    automaton: Automaton,
    transitions: Transitions,
    index: StateIndex,
}

impl Automaton {
    /// Builds the automaton of a world over the trie of its paths.
    ///
    /// # Errors
    /// The trie or the world refers to something that is missing.
    pub(super) fn new(world: &World, trie: &PathTrie) -> Result<(Self, StateIndex), InternalError> {
        let mut builder = AutomatonBuilder::new(world);
        for node in trie.nodes() {
            let symbol = builder.symbol(node, false);
            builder.transitions.symbols.push(symbol);
        }
        for id in trie.delegating_rules() {
            let symbol = builder.symbol(trie.node(id)?, true);
            builder.transitions.symbols.set(id.index(), symbol);
        }
        let references = trie.references().map(|(id, _)| id);
        for id in references.chain(trie.roots().map(|(id, _)| id)) {
            let symbol = builder.symbol_of(trie, id)?;
            builder.transitions.symbols.set(id.index(), symbol);
        }
        builder.explore(trie)?;
        builder.transitions.settle();
        builder.index.forget_symbols();
        Ok(builder.finish())
    }

    /// An automaton with the start state only, in which no trie node has a transition.
    pub(super) fn without_paths(world: &World) -> (Self, StateIndex) {
        AutomatonBuilder::new(world).finish()
    }
}

/// Classes of equivalent subtrees. Two trie nodes have the same class if the symbols below them are the
/// same on every way down. A class is a list of the symbols of the children, each with its own class.
#[derive(Debug, Default)]
struct SubtreeClasses {
    of: IndexVec<TrieNodeId, u32>,
    lists: Vec<Vec<(u32, u32)>>,
}

fn subtree_classes(
    trie: &PathTrie,
    transitions: &Transitions,
) -> Result<SubtreeClasses, InternalError> {
    let mut below = SubtreeClasses::default();
    let mut existing: HashMap<Vec<(u32, u32)>, u32> = HashMap::new();
    for node in trie.nodes() {
        let mut list: Vec<(u32, u32)> = trie
            .below(node)
            .map(|id| Ok((transitions.symbol(id)?, *below.of.get(id)?)))
            .collect::<Result<_, _>>()?;
        list.sort_unstable();
        list.dedup();
        let number = match existing.get(&list) {
            Some(&number) => number,
            None => {
                let number = u32::try_from(below.lists.len()).unwrap_or(u32::MAX);
                below.lists.push(list.clone());
                existing.insert(list, number);
                number
            }
        };
        below.of.push(number);
    }
    Ok(below)
}

impl State {
    /// The start state.
    fn start() -> Self {
        Self {
            root: RootKind::default(),
            end: Level::Root,
            client: Str::default(),
            chain_states: Box::default(),
        }
    }
}

impl<'w> AutomatonBuilder<'w> {
    fn new(world: &'w World) -> Self {
        let has_policies = |kind: &PolicyKind| !kind.nodes.is_empty();
        let mut places = 0..;
        let kinds = world.kinds().iter();
        let chain_states = kinds.map(|kind| {
            let place = has_policies(kind).then(|| places.next().unwrap_or_default());
            place.map(|place| ChainStates {
                place,
                ..ChainStates::default()
            })
        });
        let mut builder = Self::on(
            world,
            Automaton {
                transitions: Arc::default(),
                states: ChunkedVec::default(),
                chain_states: chain_states.collect(),
            },
            StateIndex::new(world.kinds().len()),
        );
        let start = State::start();
        // The start state is the first one and has no chain states, so nothing is missing.
        let _ = builder.index.add_state(&mut builder.automaton, start);
        builder
    }

    /// Adds to an automaton, of which the index is given.
    pub(super) fn on(world: &'w World, automaton: Automaton, index: StateIndex) -> Self {
        let kinds = automaton.chain_states.iter().enumerate();
        let active = kinds.filter(|(_, chain_states)| chain_states.is_some());
        Self {
            root: world.topology().node(&NodeKey::root()),
            has_clients: None,
            world,
            symbols: HashMap::default(),
            by_node: HashMap::new(),
            delegated: HashMap::new(),
            active: active.map(|(number, _)| number).collect(),
            transitions: Transitions::clone(&automaton.transitions),
            automaton,
            index,
        }
    }

    /// The automaton and its index.
    pub(super) fn finish(self) -> (Automaton, StateIndex) {
        let mut automaton = self.automaton;
        automaton.transitions = Arc::new(self.transitions);
        (automaton, self.index)
    }

    /// The symbol of a node; `delegates` for rules that delegate below Gateways whose controllers follow that.
    fn symbol(&mut self, node: &TrieNode, delegates: bool) -> u32 {
        let key = (node.node, node.level, delegates);
        if let Some(&existing) = self.by_node.get(&key) {
            return existing;
        }
        let mut effects = self.effects(node.node, node.level, RootKind::Gateway);
        if delegates {
            self.add_delegation(node, &mut effects);
        }
        let symbol = self.intern(Symbol {
            root: None,
            steps: vec![(node.level, effects)],
            delegates_only: delegates
                && self.world.topology().delegations.delegates_only(node.node),
        });
        self.by_node.insert(key, symbol);
        symbol
    }

    /// The symbol of a trie node that is no rule which delegates.
    pub(super) fn symbol_of(
        &mut self,
        trie: &PathTrie,
        id: TrieNodeId,
    ) -> Result<u32, InternalError> {
        if trie.reference(id).is_none() && trie.root(id).is_none() {
            return Ok(self.symbol(trie.node(id)?, false));
        }
        let content = self.content(trie, id)?;
        Ok(self.intern(content))
    }

    /// The effects of a trie node that is no rule which delegates.
    fn content(&mut self, trie: &PathTrie, id: TrieNodeId) -> Result<Symbol, InternalError> {
        let node = trie.node(id)?;
        if let Some(root) = trie.root(id) {
            return Ok(self.root_content(node, root));
        }
        let nodes = trie.reference(id).into_iter().chain([node.node]);
        let steps = nodes.map(|id| (node.level, self.effects(id, node.level, RootKind::Gateway)));
        Ok(Symbol {
            root: None,
            steps: steps.collect(),
            delegates_only: false,
        })
    }

    fn root_content(&mut self, node: &TrieNode, root: &TrieRoot) -> Symbol {
        let path_root = PathRoot::of(node, root);
        let mut steps = self.steps_above(path_root);
        let effects = self.effects(node.node, node.level, root.kind);
        steps.push((node.level, effects));
        let client = match self.has_clients() {
            true => root.client.clone(),
            false => Str::default(),
        };
        let kinds = self.active_kinds();
        Symbol {
            root: Some(RootSymbol {
                kind: root.kind,
                client,
                starts: kinds
                    .map(|(_, kind)| ChainStart {
                        activity: self.world.activity(kind, path_root),
                        met: self.world.met_by_root(kind, path_root),
                        services: kind.service_attachments(path_root),
                    })
                    .collect(),
            }),
            steps,
            delegates_only: false,
        }
    }

    /// Whether some policy is for the clients of one namespace.
    fn has_clients(&mut self) -> bool {
        let world = self.world;
        *self.has_clients.get_or_insert_with(|| {
            let kinds = world.kinds().iter();
            let mut kinds = kinds.filter(|k| k.profile.cross_namespace == CrossNamespace::Clients);
            kinds.any(|kind| {
                let mut groups = kind.nodes.values().flat_map(NodePolicies::all_groups);
                groups.any(|g| matches!(g, AttachmentGroup::Clients(_)))
            })
        })
    }

    /// The kinds with attached policies.
    fn active_kinds(&self) -> impl Iterator<Item = (usize, &'w PolicyKind)> + use<'w> {
        let world = self.world;
        let active = Arc::clone(&self.active);
        (0..active.len()).filter_map(move |at| {
            let number = *active.get(at)?;
            Some((number, &**world.kinds().get(number)?))
        })
    }

    /// The effects of the nodes above a root. They differ by kind, because waypoints do.
    fn steps_above(&self, root: PathRoot<'_>) -> Vec<(Level, Vec<(usize, ChainEffect)>)> {
        let mut steps: Vec<(Level, Vec<(usize, ChainEffect)>)> = Vec::new();
        for (number, kind) in self.active_kinds() {
            for PathStep { node, level } in kind.above_root(root) {
                let root = root.kind;
                let effect = self.world.effect(kind, StepContext { node, level, root });
                let Some(effect) = effect else { continue };
                match steps.iter_mut().find(|(other, _)| *other == level) {
                    Some((_, effects)) => effects.push((number, effect)),
                    None => steps.push((level, vec![(number, effect)])),
                }
            }
        }
        steps.sort_by_key(|(level, _)| *level);
        steps
    }

    fn effects(&mut self, node: NodeId, level: Level, root: RootKind) -> Vec<(usize, ChainEffect)> {
        let step = StepContext { node, level, root };
        let mut found = Vec::new();
        for (number, kind) in self.active_kinds() {
            let effect = self.world.effect(kind, step);
            found.extend(effect.map(|effect| (number, effect)));
        }
        found
    }

    /// Adds what follows from the delegation of a rule (specification 1.8).
    fn add_delegation(&mut self, node: &TrieNode, effects: &mut Vec<(usize, ChainEffect)>) {
        let (world, topology) = (self.world, self.world.topology());
        let (node, level) = (node.node, node.level);
        let step = PathStep { node, level };
        let mut known = std::mem::take(&mut self.delegated);
        for (number, kind) in self.active_kinds() {
            let preferred = world.preferred_at(kind, step);
            let delegated = world.delegation_at(kind, step).map(|id| {
                let of_children = known.entry((number, id));
                let nodes = of_children.or_insert_with(|| kind.delegated_nodes(topology, id));
                nodes.clone()
            });
            if preferred.is_empty() && delegated.is_none() {
                continue;
            }
            let existing = effects.iter().position(|(other, _)| *other == number);
            let at = existing.unwrap_or_else(|| {
                effects.push((number, ChainEffect::default()));
                effects.len() - 1
            });
            if let Some((_, effect)) = effects.get_mut(at) {
                (effect.preferred, effect.delegated) = (preferred, delegated);
            }
        }
        self.delegated = known;
    }

    fn intern(&mut self, symbol: Symbol) -> u32 {
        let symbol = Arc::new(symbol);
        let number = self.index.symbol(&symbol);
        self.symbols.entry(number).or_insert(symbol);
        number
    }

    /// Adds all states that paths reach.
    fn explore(&mut self, trie: &PathTrie) -> Result<(), InternalError> {
        let below = subtree_classes(trie, &self.transitions)?;
        let mut visited: HashSet<(StateId, u32)> = HashSet::new();
        let mut pending: Vec<(StateId, u32)> = Vec::new();
        // Where rules lead to child Routes, the routes of a listener have no subtrees of their own.
        let shares_subtrees = trie.has_delegating_rules();
        self.index.pin(0);
        for (root, info) in trie.roots() {
            let state = self.pin_root(root)?;
            match info.kind {
                // Nothing is below.
                RootKind::Namespace | RootKind::GatewayClass => {}
                RootKind::Gateway if !shares_subtrees => {
                    self.explore_gateway(trie, (root, state), &below)?;
                }
                _ => pending.push((state, *below.of.get(root)?)),
            }
        }
        while let Some((state, list)) = pending.pop() {
            if !visited.insert((state, list)) {
                continue;
            }
            self.index.pin(state);
            let next = below.lists.get(list as usize);
            for &(symbol, list) in next.or_internal("a list of symbols")? {
                pending.push((self.transition(state, symbol)?, list));
            }
        }
        Ok(())
    }

    /// The state at the end of a list of trie nodes from a root on.
    pub(super) fn state_after(
        &mut self,
        trie: &PathTrie,
        path: &[TrieNodeId],
    ) -> Result<StateId, InternalError> {
        let mut nodes = path.iter();
        nodes.try_fold(0, |state, &node| self.step(trie, state, node))
    }

    /// Follows a listener that changed: attaches the routes that it has now. Returns those to detach, each with the state
    /// of the listener before.
    pub(super) fn follow_listener(
        &mut self,
        trie: &PathTrie,
        listener: &ListenerPatch,
    ) -> Result<Vec<(StateId, TrieNodeId)>, InternalError> {
        let mut states = [None, None];
        for (state, path) in states.iter_mut().zip([&listener.before, &listener.now]) {
            *state = match path {
                Some(path) => Some(self.state_after(trie, path)?),
                None => None,
            };
        }
        let [before, now] = states;
        let mut attached: Vec<TrieNodeId> = listener.routes.iter().filter_map(|r| r.1).collect();
        let mut detached: Vec<TrieNodeId> = listener.routes.iter().filter_map(|r| r.0).collect();
        // In another state, all routes continue otherwise.
        if before != now
            && let Some(id) = listener.now.as_ref().and_then(|path| path.last())
        {
            let new: HashSet<TrieNodeId> = attached.iter().copied().collect();
            let all = trie.below(trie.node(*id)?);
            let stay: Vec<TrieNodeId> = all.filter(|route| !new.contains(route)).collect();
            attached.extend(&stay);
            detached.extend(stay);
        }
        if let Some(state) = now {
            for route in attached {
                let known = self.index.class_of(route);
                let class = known.unwrap_or_else(|| self.index.new_class(route));
                self.attach(trie, (state, class), route)?;
            }
        }
        // A new listener has no routes before.
        let before = before.map(|state| detached.into_iter().map(move |route| (state, route)));
        Ok(before.into_iter().flatten().collect())
    }

    /// Counts the state that paths have at a root, and returns it.
    fn pin_root(&mut self, root: TrieNodeId) -> Result<StateId, InternalError> {
        let state = self.transition(0, self.transitions.symbol(root)?)?;
        self.index.pin(state);
        Ok(state)
    }

    /// Adds the states that the paths of a Gateway reach.
    fn explore_gateway(
        &mut self,
        trie: &PathTrie,
        root: (TrieNodeId, StateId),
        below: &SubtreeClasses,
    ) -> Result<(), InternalError> {
        let mut pending = vec![root];
        while let Some((id, state)) = pending.pop() {
            for child in trie.below(trie.node(id)?) {
                let symbol = self.transitions.symbol(child)?;
                if trie.node(child)?.level == Level::Route {
                    let class = (symbol, *below.of.get(child)?);
                    let class = self.index.class(child, class);
                    self.attach(trie, (state, class), child)?;
                    continue;
                }
                let next = self.transition(state, symbol)?;
                self.index.pin(next);
                pending.push((child, next));
            }
        }
        Ok(())
    }

    /// Attaches a route to a listener in a state, and adds the states that its paths reach from there.
    fn attach(
        &mut self,
        trie: &PathTrie,
        attached: (StateId, RouteClass),
        route: TrieNodeId,
    ) -> Result<(), InternalError> {
        if !self.index.attach(attached) {
            return Ok(());
        }
        let mut found = Vec::new();
        let mut pending = vec![(attached.0, route)];
        while let Some((above, id)) = pending.pop() {
            let state = self.step(trie, above, id)?;
            found.push(state);
            let below = trie.below(trie.node(id)?);
            pending.extend(below.map(|child| (state, child)));
        }
        self.index.reach(found, true);
        Ok(())
    }

    /// Detaches a route from a listener in a state.
    pub(super) fn detach(
        &mut self,
        trie: &PathTrie,
        attached: (StateId, RouteClass),
        route: TrieNodeId,
    ) -> Result<(), InternalError> {
        if !self.index.detach(attached)? {
            return Ok(());
        }
        let mut found = Vec::new();
        let mut pending = vec![(attached.0, route)];
        while let Some((above, id)) = pending.pop() {
            let state = self.transitions.after(above, id)?;
            found.push(state);
            let below = trie.below(trie.node(id)?);
            pending.extend(below.map(|child| (state, child)));
        }
        self.index.reach(found, false);
        Ok(())
    }

    /// The transitions, to add those of new trie nodes.
    pub(super) fn transitions(&mut self) -> &mut Transitions {
        &mut self.transitions
    }

    /// The index of the states.
    pub(super) fn index(&mut self) -> &mut StateIndex {
        &mut self.index
    }

    /// The state after a trie node; added if it is new.
    fn step(
        &mut self,
        trie: &PathTrie,
        from: StateId,
        id: TrieNodeId,
    ) -> Result<StateId, InternalError> {
        let symbol = self.transitions.symbol(id)?;
        // Of symbols of earlier automata only the numbers are kept.
        if self.transitions.next(from, symbol).is_none() && !self.symbols.contains_key(&symbol) {
            let content = match self.index.plain_level(symbol) {
                Some(level) => Symbol::plain(level),
                None => self.content(trie, id)?,
            };
            self.symbols.insert(symbol, Arc::new(content));
        }
        self.transition(from, symbol)
    }

    /// The state after a symbol; added if it is new.
    fn transition(&mut self, from: StateId, symbol: u32) -> Result<StateId, InternalError> {
        if let Some(existing) = self.transitions.next(from, symbol) {
            return Ok(existing);
        }
        let state = self.successor(from, symbol)?;
        let to = self.index.add_state(&mut self.automaton, state)?;
        self.transitions.add(from, symbol, to);
        Ok(to)
    }

    fn successor(&mut self, from: StateId, symbol: u32) -> Result<State, InternalError> {
        let from = self.automaton.states.get(from as usize);
        let mut state = from.or_internal("a state")?.clone();
        let symbol = self.symbols.get(&symbol);
        let symbol = Symbol::clone(symbol.or_internal("a symbol")?);
        if let Some(root) = symbol.root {
            state = self.start_below(root)?;
        }
        for (level, effects) in symbol.steps {
            state.end = level;
            for (number, effect) in effects {
                self.apply_effect(&mut state, number, &effect, level)?;
            }
        }
        if symbol.delegates_only {
            state.end = Level::Route;
        }
        Ok(state)
    }

    /// The state at the beginning of the paths below a root.
    fn start_below(&mut self, root: RootSymbol) -> Result<State, InternalError> {
        let mut chain_states = Vec::with_capacity(self.active.len());
        for ((number, kind), start) in self.active_kinds().zip(root.starts) {
            let chain_state = ChainState::start(kind, start, self.root, &root.client);
            chain_states.push(self.chain_state(number, chain_state, &root.client)?);
        }
        Ok(State {
            root: root.kind,
            end: Level::Root,
            client: root.client,
            chain_states: chain_states.into(),
        })
    }

    fn apply_effect(
        &mut self,
        state: &mut State,
        number: usize,
        effect: &ChainEffect,
        level: Level,
    ) -> Result<(), InternalError> {
        let kind = self.world.kinds().get(number).or_internal("a kind")?;
        let chain_states = self.automaton.chain_states.get(number);
        let chain_states = chain_states.and_then(Option::as_ref);
        let chain_states = chain_states.or_internal("the chain states of a kind")?;
        let place = chain_states.place;
        let chain_state = state.chain_states.get(place);
        let chain_state = *chain_state.or_internal("the chain state of a kind")?;
        let existing = chain_states.by_id.get(chain_state as usize);
        let (from, _) = &**existing.or_internal("a chain state")?;
        let after = from.after(kind, effect, level, &state.client);
        let after = self.chain_state(number, after, &state.client)?;
        let chain_state = state.chain_states.get_mut(place);
        *chain_state.or_internal("the chain state of a kind")? = after;
        Ok(())
    }

    fn chain_state(
        &mut self,
        number: usize,
        chain_state: ChainState,
        client: &Str,
    ) -> Result<ChainStateId, InternalError> {
        let chain_states = self.automaton.chain_states.get_mut(number);
        let chain_states = chain_states.and_then(Option::as_mut);
        let chain_states = chain_states.or_internal("the chain states of a kind")?;
        // The client is part of the chain state only if a policy for its namespace is on the chain.
        let client = if chain_state.is_for_clients() {
            client.clone()
        } else {
            Str::default()
        };
        let key = (chain_state, client);
        self.index.add_chain_state(chain_states, number, key)
    }
}

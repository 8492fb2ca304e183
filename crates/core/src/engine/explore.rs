//! Builds the automaton of a world: finds all states that paths reach, without walking every path.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use super::automaton::{Automaton, ChainStateId, ChainStates, State, StateId, Transitions};
use super::chain_state::{ChainEffect, ChainStart, ChainState, StepContext};
use crate::attach::AttachmentGroup;
use crate::effective::delegation::DelegatedNodes;
use crate::effective::{NodePolicies, PathRoot, PolicyKind, World};
use crate::model::{IndexVec, InternalError, Level, NodeKey, OrInternal, Str};
use crate::topology::delegation::DelegationId;
use crate::topology::{NodeId, PathStep, PathTrie, RootKind, TrieNode, TrieNodeId, TrieRoot};

/// The effects of a trie node on all kinds. Nodes with equal symbols lead to the same next state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Symbol {
    root: Option<RootSymbol>,
    /// The effects of each step. The trie node of a Gateway has two: its GatewayClass and the Gateway; that
    /// of a backend whose backendRefs have filters as well: the backendRefs and the backend.
    steps: Vec<(Level, Vec<(usize, ChainEffect)>)>,
    /// Whether the node is a rule that only delegates: it counts as a part of its route (specification 1.8).
    delegates_only: bool,
}

/// The properties of a root that concern all paths below it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct RootSymbol {
    kind: RootKind,
    client: Str,
    /// How the chain of each kind starts.
    starts: Vec<ChainStart>,
}

/// Builds an automaton.
struct AutomatonBuilder<'w> {
    world: &'w World,
    root: Option<NodeId>,
    /// Whether some policy is for the clients of one namespace; otherwise states ignore the client.
    has_clients: bool,
    symbols: Vec<Symbol>,
    symbol_ids: HashMap<Symbol, u32>,
    /// By node and level, and whether the node delegates.
    by_node: HashMap<(NodeId, Level, bool), u32>,
    /// The policies of each kind on the child Routes of a delegation.
    delegated: HashMap<(usize, DelegationId), DelegatedNodes>,
    state_ids: HashMap<State, StateId>,
    automaton: Automaton,
}

impl Automaton {
    /// Builds the automaton of a world over the trie of its paths.
    ///
    /// # Errors
    /// The trie or the world refers to something that is missing.
    pub fn new(world: &World, trie: &PathTrie) -> Result<Self, InternalError> {
        let mut builder = AutomatonBuilder::new(world);
        let nodes = trie.nodes();
        let symbols: Vec<u32> = nodes.map(|node| builder.symbol(node, false)).collect();
        let mut symbols: IndexVec<TrieNodeId, u32> = symbols.into();
        for id in trie.delegating_rules() {
            *symbols.get_mut(id)? = builder.symbol(trie.node(id)?, true);
        }
        for (id, reference) in trie.references() {
            let symbol = builder.backend_symbol(trie.node(id)?, reference);
            *symbols.get_mut(id)? = symbol;
        }
        for (id, root) in trie.roots() {
            let symbol = builder.root_symbol(trie.node(*id)?, root);
            *symbols.get_mut(*id)? = symbol;
        }
        let below = subtree_classes(trie, &symbols)?;
        let mut transitions = Transitions {
            transitions: HashMap::default(),
            symbols,
        };
        builder.explore(trie, &below, &mut transitions)?;
        transitions.transitions.shrink_to_fit();
        let mut automaton = builder.automaton;
        automaton.transitions = Arc::new(transitions);
        automaton.compact();
        Ok(automaton)
    }

    /// Drops what only exploring needs: most kinds have no policies, and each state had a number for each kind.
    fn compact(&mut self) {
        for state in &mut self.states {
            let numbers = state.chain_states.iter().zip(&self.chain_states);
            let used = numbers.filter(|(_, chain_states)| chain_states.is_some());
            state.chain_states = used.map(|(number, _)| *number).collect();
        }
        self.states.shrink_to_fit();
        for (place, chain_states) in self.chain_states.iter_mut().flatten().enumerate() {
            chain_states.place = place;
            chain_states.ids = HashMap::new();
            chain_states.by_id.shrink_to_fit();
            chain_states.states.shrink_to_fit();
        }
    }

    /// An automaton with the start state only, in which no trie node has a transition.
    pub(super) fn without_paths(world: &World) -> Self {
        AutomatonBuilder::new(world).automaton
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
    symbols: &IndexVec<TrieNodeId, u32>,
) -> Result<SubtreeClasses, InternalError> {
    let mut below = SubtreeClasses::default();
    let mut existing: HashMap<Vec<(u32, u32)>, u32> = HashMap::new();
    for node in trie.nodes() {
        let mut list: Vec<(u32, u32)> = trie
            .below(node)
            .map(|id| Ok((*symbols.get(id)?, *below.of.get(id)?)))
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
        let clients = |kind: &PolicyKind| {
            let mut groups = kind.nodes.values().flat_map(NodePolicies::all_groups);
            groups.any(|g| matches!(g, AttachmentGroup::Clients(_)))
        };
        let chain_states: Vec<Option<ChainStates>> = world
            .kinds()
            .iter()
            .map(|kind| has_policies(kind).then(ChainStates::default))
            .collect();
        let start = State::start();
        Self {
            root: world.topology().node(&NodeKey::root()),
            has_clients: world.kinds().iter().any(|kind| clients(kind)),
            world,
            symbols: Vec::new(),
            symbol_ids: HashMap::new(),
            by_node: HashMap::new(),
            delegated: HashMap::new(),
            state_ids: HashMap::from_iter([(start.clone(), 0)]),
            automaton: Automaton {
                transitions: Arc::default(),
                states: vec![start],
                chain_states,
            },
        }
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

    /// The symbol of a backend whose backendRefs have filters.
    fn backend_symbol(&mut self, node: &TrieNode, reference: NodeId) -> u32 {
        let nodes = [reference, node.node].into_iter();
        let steps = nodes.map(|id| (node.level, self.effects(id, node.level, RootKind::Gateway)));
        let steps = steps.collect();
        self.intern(Symbol {
            root: None,
            steps,
            delegates_only: false,
        })
    }

    fn root_symbol(&mut self, node: &TrieNode, root: &TrieRoot) -> u32 {
        let path_root = PathRoot::of(node, root);
        let mut steps = self.steps_above(path_root);
        let effects = self.effects(node.node, node.level, root.kind);
        steps.push((node.level, effects));
        let kinds = self.active_kinds();
        let symbol = Symbol {
            root: Some(RootSymbol {
                kind: root.kind,
                client: if self.has_clients {
                    root.client.clone()
                } else {
                    Str::default()
                },
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
        };
        self.intern(symbol)
    }

    /// The kinds with attached policies.
    fn active_kinds(&self) -> impl Iterator<Item = (usize, &'w PolicyKind)> {
        let kinds = self.world.kinds().iter().map(|kind| &**kind).enumerate();
        kinds.filter(|(_, kind)| !kind.nodes.is_empty())
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
        if let Some(&existing) = self.symbol_ids.get(&symbol) {
            return existing;
        }
        let number = u32::try_from(self.symbols.len()).unwrap_or(u32::MAX);
        self.symbols.push(symbol.clone());
        self.symbol_ids.insert(symbol, number);
        number
    }

    /// Adds all states that paths reach.
    fn explore(
        &mut self,
        trie: &PathTrie,
        below: &SubtreeClasses,
        transitions: &mut Transitions,
    ) -> Result<(), InternalError> {
        let mut visited: HashSet<(StateId, u32)> = HashSet::new();
        let mut pending: Vec<(StateId, u32)> = Vec::new();
        for (root, _) in trie.roots() {
            let (symbol, list) = (*transitions.symbols.get(*root)?, *below.of.get(*root)?);
            pending.push((self.transition(0, symbol, transitions)?, list));
        }
        while let Some((state, list)) = pending.pop() {
            if !visited.insert((state, list)) {
                continue;
            }
            let next = below.lists.get(list as usize);
            for &(symbol, list) in next.or_internal("a list of symbols")? {
                pending.push((self.transition(state, symbol, transitions)?, list));
            }
        }
        Ok(())
    }

    /// The state after a symbol; added if it is new.
    fn transition(
        &mut self,
        from: StateId,
        symbol: u32,
        transitions: &mut Transitions,
    ) -> Result<StateId, InternalError> {
        if let Some(&existing) = transitions.transitions.get(&(from, symbol)) {
            return Ok(existing);
        }
        let state = self.successor(from, symbol)?;
        let to = match self.state_ids.get(&state) {
            Some(&existing) => existing,
            None => self.add(state)?,
        };
        transitions.transitions.insert((from, symbol), to);
        Ok(to)
    }

    fn successor(&mut self, from: StateId, symbol: u32) -> Result<State, InternalError> {
        let from = self.automaton.states.get(from as usize);
        let mut state = from.or_internal("a state")?.clone();
        let symbol = self.symbols.get(symbol as usize);
        let symbol = symbol.or_internal("a symbol")?.clone();
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
        let mut chain_states = vec![0; self.world.kinds().len()].into_boxed_slice();
        let active_kinds = self.active_kinds().collect::<Vec<_>>();
        for ((number, kind), start) in active_kinds.into_iter().zip(root.starts) {
            let chain_state = ChainState::start(kind, start, self.root, &root.client);
            let id = self.chain_state(number, chain_state, &root.client)?;
            *chain_states
                .get_mut(number)
                .or_internal("the chain state of a kind")? = id;
        }
        Ok(State {
            root: root.kind,
            end: Level::Root,
            client: root.client,
            chain_states,
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
        let chain_state = state.chain_states.get_mut(number);
        let chain_state = chain_state.or_internal("the chain state of a kind")?;
        let existing = self
            .automaton
            .chain_states
            .get(number)
            .and_then(Option::as_ref);
        let existing = existing.and_then(|t| t.by_id.get(*chain_state as usize));
        let (from, _) = existing.or_internal("a chain state")?;
        let after = from.after(kind, effect, level, &state.client);
        *chain_state = self.chain_state(number, after, &state.client)?;
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
        if let Some(&existing) = chain_states.ids.get(&key) {
            return Ok(existing);
        }
        let id = u32::try_from(chain_states.by_id.len()).ok();
        let id = id.or_internal("a free chain state number")?;
        for node in key.0.nodes() {
            chain_states.by_node.entry(node).or_default().push(id);
        }
        chain_states.by_id.push(key.clone());
        chain_states.states.push(Vec::new());
        chain_states.ids.insert(key, id);
        Ok(id)
    }

    fn add(&mut self, state: State) -> Result<StateId, InternalError> {
        let id = u32::try_from(self.automaton.states.len()).ok();
        let id = id.or_internal("a free state number")?;
        for (chain_state, chain_states) in state
            .chain_states
            .iter()
            .zip(&mut self.automaton.chain_states)
        {
            if let Some(chain_states) = chain_states {
                let states = chain_states.states.get_mut(*chain_state as usize);
                states.or_internal("a chain state")?.push(id);
            }
        }
        self.automaton.states.push(state.clone());
        self.state_ids.insert(state, id);
        Ok(id)
    }
}

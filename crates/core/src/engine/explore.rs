//! Makes the machine of a world: finds every state that some path reaches, without walking every
//! path.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use super::machine::{Machine, State, StateId, TrackId, Tracks, Ways};
use super::track::{Effect, Move, Track};
use crate::attach::Group;
use crate::effective::scope::acts;
use crate::effective::{Kind, NodePolicies, World};
use crate::model::{Level, NodeKey, Str};
use crate::topology::{NodeId, Place, Plan, RootPlace, TrailRoot};

/// How a place acts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Letter {
    root: Option<RootLetter>,
    /// A GatewayClass and its Gateway are two steps of one place.
    steps: Vec<(Level, Vec<(usize, Effect)>)>,
}

/// What a root decides for all paths below it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct RootLetter {
    kind: TrailRoot,
    client: Str,
    acts: Vec<bool>,
}

/// A machine in the making.
struct Maker<'w> {
    world: &'w World,
    root: Option<NodeId>,
    /// Whether some policy is for its own clients: else clients make no difference.
    has_clients: bool,
    letters: Vec<Letter>,
    letter_ids: HashMap<Letter, u32>,
    by_node: HashMap<(NodeId, Level), u32>,
    state_ids: HashMap<State, StateId>,
    machine: Machine,
}

impl Machine {
    /// The machine of a world whose paths are those of a plan.
    pub fn new(world: &World, plan: &Plan) -> Self {
        let mut maker = Maker::new(world);
        let places = plan.places();
        let mut letters: Vec<u32> = places.map(|place| maker.letter(place)).collect();
        for (id, root) in plan.roots() {
            let place = plan.place(*id);
            if let (Some(place), Some(letter)) = (place, letters.get_mut(id.index())) {
                *letter = maker.root_letter(place, root);
            }
        }
        let below = signatures(plan, &letters);
        let mut ways = Ways {
            moves: HashMap::default(),
            letters,
        };
        maker.explore(plan, &below, &mut ways);
        ways.moves.shrink_to_fit();
        let mut machine = maker.machine;
        machine.ways = Arc::new(ways);
        machine
    }
}

/// What is below each place, alike for places below which everything acts alike: numbers of lists
/// of letters, each with what is below it.
#[derive(Debug, Default)]
struct Below {
    of: Vec<u32>,
    lists: Vec<Vec<(u32, u32)>>,
}

fn signatures(plan: &Plan, letters: &[u32]) -> Below {
    let mut below = Below::default();
    let mut known: HashMap<Vec<(u32, u32)>, u32> = HashMap::new();
    for place in plan.places() {
        let mut list: Vec<(u32, u32)> = plan
            .below(place)
            .filter_map(|id| Some((*letters.get(id.index())?, *below.of.get(id.index())?)))
            .collect();
        list.sort_unstable();
        list.dedup();
        let number = match known.get(&list) {
            Some(&number) => number,
            None => {
                let number = u32::try_from(below.lists.len()).unwrap_or(u32::MAX);
                below.lists.push(list.clone());
                known.insert(list, number);
                number
            }
        };
        below.of.push(number);
    }
    below
}

impl State {
    /// The state before every path.
    fn start() -> Self {
        Self {
            root: TrailRoot::default(),
            end: Level::Root,
            client: Str::default(),
            tracks: Box::default(),
        }
    }
}

impl<'w> Maker<'w> {
    fn new(world: &'w World) -> Self {
        let stands = |kind: &Kind| !kind.nodes.is_empty();
        let clients = |kind: &Kind| {
            let mut groups = kind.nodes.values().flat_map(NodePolicies::all_groups);
            groups.any(|g| matches!(g, Group::Clients(_)))
        };
        let tracks: Vec<Option<Tracks>> = world
            .kinds()
            .iter()
            .map(|kind| stands(kind).then(Tracks::default))
            .collect();
        let start = State::start();
        Self {
            root: world.topology().node(&NodeKey::root()),
            has_clients: world.kinds().iter().any(clients),
            world,
            letters: Vec::new(),
            letter_ids: HashMap::new(),
            by_node: HashMap::new(),
            state_ids: HashMap::from_iter([(start.clone(), 0)]),
            machine: Machine {
                ways: Arc::default(),
                states: vec![start],
                tracks,
            },
        }
    }

    fn letter(&mut self, place: &Place) -> u32 {
        if let Some(&known) = self.by_node.get(&(place.node, place.level)) {
            return known;
        }
        let effects = self.effects(place.node, place.level, TrailRoot::Gateway);
        let letter = self.intern(Letter {
            root: None,
            steps: vec![(place.level, effects)],
        });
        self.by_node.insert((place.node, place.level), letter);
        letter
    }

    fn root_letter(&mut self, place: &Place, root: &RootPlace) -> u32 {
        let mut steps = Vec::new();
        if let Some(class) = root.class {
            let effects = self.effects(class, Level::GatewayClass, root.kind);
            steps.push((Level::GatewayClass, effects));
        }
        let effects = self.effects(place.node, place.level, root.kind);
        steps.push((place.level, effects));
        let kinds = self.standing();
        let letter = Letter {
            root: Some(RootLetter {
                kind: root.kind,
                client: if self.has_clients {
                    root.client.clone()
                } else {
                    Str::default()
                },
                acts: kinds
                    .map(|(_, kind)| acts(&kind.profile, root.kind, root.controller.as_deref()))
                    .collect(),
            }),
            steps,
        };
        self.intern(letter)
    }

    /// The kinds that stand somewhere.
    fn standing(&self) -> impl Iterator<Item = (usize, &'w Kind)> {
        let kinds = self.world.kinds().iter().enumerate();
        kinds.filter(|(_, kind)| !kind.nodes.is_empty())
    }

    fn effects(&self, node: NodeId, level: Level, root: TrailRoot) -> Vec<(usize, Effect)> {
        let step = Move { node, level, root };
        self.standing()
            .filter_map(|(number, kind)| Some((number, self.world.effect(kind, step)?)))
            .collect()
    }

    fn intern(&mut self, letter: Letter) -> u32 {
        if let Some(&known) = self.letter_ids.get(&letter) {
            return known;
        }
        let number = u32::try_from(self.letters.len()).unwrap_or(u32::MAX);
        self.letters.push(letter.clone());
        self.letter_ids.insert(letter, number);
        number
    }

    /// Makes every state that some path reaches.
    fn explore(&mut self, plan: &Plan, below: &Below, ways: &mut Ways) {
        let mut seen: HashSet<(StateId, u32)> = HashSet::new();
        let mut pending: Vec<(StateId, u32)> = Vec::new();
        for (root, _) in plan.roots() {
            let (letter, list) = (ways.letters.get(root.index()), below.of.get(root.index()));
            if let (Some(&letter), Some(&list)) = (letter, list) {
                pending.push((self.go(0, letter, ways), list));
            }
        }
        while let Some((state, list)) = pending.pop() {
            if !seen.insert((state, list)) {
                continue;
            }
            let next = below.lists.get(list as usize).map_or(&[][..], |l| l);
            for &(letter, list) in next {
                pending.push((self.go(state, letter, ways), list));
            }
        }
    }

    /// The state after a letter.
    fn go(&mut self, from: StateId, letter: u32, ways: &mut Ways) -> StateId {
        if let Some(&known) = ways.moves.get(&(from, letter)) {
            return known;
        }
        let state = self.next(from, letter);
        let to = match self.state_ids.get(&state) {
            Some(&known) => known,
            None => self.add(state),
        };
        ways.moves.insert((from, letter), to);
        to
    }

    fn next(&mut self, from: StateId, letter: u32) -> State {
        let from = self.machine.states.get(from as usize);
        let mut state = from.cloned().unwrap_or_else(State::start);
        let Some(letter) = self.letters.get(letter as usize).cloned() else {
            return state;
        };
        if let Some(root) = letter.root {
            state = self.begin(root);
        }
        for (level, effects) in letter.steps {
            state.end = level;
            for (number, effect) in effects {
                self.take(&mut state, number, &effect, level);
            }
        }
        state
    }

    /// The state at the beginning of the paths below a root.
    fn begin(&mut self, root: RootLetter) -> State {
        let mut tracks = vec![0; self.world.kinds().len()].into_boxed_slice();
        let standing = self.standing().collect::<Vec<_>>();
        for ((number, kind), acts) in standing.into_iter().zip(root.acts) {
            let track = Track::start(kind, acts, self.root, &root.client);
            let id = self.track(number, track, &root.client);
            if let Some(place) = tracks.get_mut(number) {
                *place = id;
            }
        }
        State {
            root: root.kind,
            end: Level::Root,
            client: root.client,
            tracks,
        }
    }

    fn take(&mut self, state: &mut State, number: usize, effect: &Effect, level: Level) {
        let Some(kind) = self.world.kinds().get(number) else {
            return;
        };
        let Some(track) = state.tracks.get_mut(number) else {
            return;
        };
        let known = self.machine.tracks.get(number).and_then(Option::as_ref);
        let Some((from, _)) = known.and_then(|t| t.known.get(*track as usize)) else {
            return;
        };
        let after = from.after(kind, effect, level, &state.client);
        *track = self.track(number, after, &state.client);
    }

    fn track(&mut self, number: usize, track: Track, client: &Str) -> TrackId {
        let Some(tracks) = self.machine.tracks.get_mut(number).and_then(Option::as_mut) else {
            return 0;
        };
        // The client counts where a policy is for its own ones.
        let client = if track.is_for_clients() {
            client.clone()
        } else {
            Str::default()
        };
        let key = (track, client);
        if let Some(&known) = tracks.ids.get(&key) {
            return known;
        }
        let id = u32::try_from(tracks.known.len()).unwrap_or(u32::MAX);
        for node in key.0.nodes() {
            tracks.by_node.entry(node).or_default().push(id);
        }
        tracks.known.push(key.clone());
        tracks.states.push(Vec::new());
        tracks.ids.insert(key, id);
        id
    }

    fn add(&mut self, state: State) -> StateId {
        let id = u32::try_from(self.machine.states.len()).unwrap_or(u32::MAX);
        for (track, tracks) in state.tracks.iter().zip(&mut self.machine.tracks) {
            let states = tracks
                .as_mut()
                .and_then(|t| t.states.get_mut(*track as usize));
            if let Some(states) = states {
                states.push(id);
            }
        }
        self.machine.states.push(state.clone());
        self.state_ids.insert(state, id);
        id
    }
}

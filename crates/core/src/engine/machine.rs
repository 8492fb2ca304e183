//! All paths at once: what a kind's stack is on a path depends on the places that do something to
//! it, and paths that went alike go on alike. So there are *states*, one for each combination of
//! tracks, *letters*, one for each way in which places act, and moves from state to state. Cost
//! follows distinct stacks, not paths.

use std::sync::Arc;

use hashbrown::HashMap;

use super::track::Track;
use crate::effective::scope::reaches;
use crate::effective::{Frames, World};
use crate::model::{Level, Str};
use crate::topology::{NodeId, PlaceId, TrailRoot};

/// A state's number; 0 is the one before every path.
pub type StateId = u32;
/// The number of a kind's track, 0 at the beginning.
pub type TrackId = u32;

/// From the places of a path to its state: what look-ups need.
#[derive(Debug, Default)]
pub struct Ways {
    /// The letter of each place.
    pub(super) letters: Vec<u32>,
    pub(super) moves: HashMap<(StateId, u32), StateId, rustc_hash::FxBuildHasher>,
}

/// All states of a world.
#[derive(Debug)]
pub struct Machine {
    pub(super) ways: Arc<Ways>,
    pub(super) states: Vec<State>,
    /// By kind; none for a kind that stands nowhere.
    pub(super) tracks: Vec<Option<Tracks>>,
}

/// A combination of tracks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    pub(super) root: TrailRoot,
    pub(super) end: Level,
    pub(super) client: Str,
    /// By kind; unused ones stay at 0.
    pub(super) tracks: Box<[TrackId]>,
}

/// The tracks of a kind.
#[derive(Debug, Default)]
pub(super) struct Tracks {
    pub(super) known: Vec<(Track, Str)>,
    pub(super) ids: HashMap<(Track, Str), TrackId>,
    /// The states that are on each.
    pub(super) states: Vec<Vec<StateId>>,
    /// The tracks that rest on a node.
    pub(super) by_node: HashMap<NodeId, Vec<TrackId>>,
}

impl Ways {
    /// The state after one more place. Allocates nothing.
    pub fn after(&self, state: StateId, place: PlaceId) -> Option<StateId> {
        let letter = *self.letters.get(place.index())?;
        self.moves.get(&(state, letter)).copied()
    }
}

impl Machine {
    /// What look-ups need of it.
    pub fn ways(&self) -> &Arc<Ways> {
        &self.ways
    }

    /// How many states there are.
    pub fn len(&self) -> usize {
        self.states.len()
    }

    /// Whether there are none; there never are.
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// The tracks of a state by kind, and whether it is above the kind's effective level.
    pub fn tracks<'m>(
        &'m self,
        world: &'m World,
        state: StateId,
    ) -> impl Iterator<Item = (usize, TrackId, bool)> + 'm {
        let state = self.states.get(state as usize);
        let kinds = self.tracks.iter().zip(world.kinds()).enumerate();
        kinds.filter_map(move |(number, (tracks, kind))| {
            tracks.as_ref()?;
            let state = state?;
            let track = *state.tracks.get(number)?;
            let inherited_only = !reaches(&kind.profile, state.root, state.end);
            Some((number, track, inherited_only))
        })
    }

    /// The frames of a kind's track; `None` if nothing of the kind stands on it.
    pub fn frames(&self, kind: usize, track: TrackId, inherited_only: bool) -> Option<Frames> {
        let tracks = self.tracks.get(kind)?.as_ref()?;
        let (track, client) = tracks.known.get(track as usize)?;
        track.frames(inherited_only, client)
    }

    /// The tracks of a kind that rest on a node.
    pub fn resting_on(&self, kind: usize, node: NodeId) -> &[TrackId] {
        let tracks = self.tracks.get(kind).and_then(Option::as_ref);
        let found = tracks.and_then(|tracks| tracks.by_node.get(&node));
        found.map_or(&[], Vec::as_slice)
    }

    /// The states that are on a track of a kind.
    pub fn states_on(&self, kind: usize, track: TrackId) -> &[StateId] {
        let tracks = self.tracks.get(kind).and_then(Option::as_ref);
        let found = tracks.and_then(|tracks| tracks.states.get(track as usize));
        found.map_or(&[], Vec::as_slice)
    }
}

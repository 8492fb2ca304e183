//! The engine: a world that follows its store, with work in proportion to what changed.
//!
//! A policy that changes is exchanged in its place: its references, the conflicts around it and the
//! tracks that rest on its nodes are worked out again, and nothing else. What moves paths themselves
//! (Gateways, routes, namespaces, grants, profiles) lets the world be read anew; answers whose
//! question is the same stay. [`World::full`] is the law: the tests hold each step against it.

mod book;
mod explore;
mod machine;
mod matters;
mod track;

pub use machine::{Machine, StateId, TrackId, Ways};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use self::book::Book;
use self::matters::Matter;
use crate::attach::{Group, attach_one};
use crate::effective::acceptance::{places, settle};
use crate::effective::{Kind, NodePolicies, World};
use crate::model::{GroupKind, NodeKey, ObjectKey, Outcome};
use crate::profile::{Policy, Profile, read_policy};
use crate::store::{Changed, Store};
use crate::topology::{NodeId, Plan};

/// A world with its paths, ready to follow changes.
#[derive(Debug)]
pub struct Engine {
    pub(super) world: World,
    plan: Arc<Plan>,
    machine: Machine,
    books: Vec<Book>,
    /// Kinds of objects that something depends on: nodes of paths, and what references name.
    pub(super) named: HashSet<GroupKind>,
    /// How often the world was read from scratch while it followed.
    readings: u64,
}

/// What came of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Update {
    /// Nothing that answers rest on.
    Nothing,
    /// The tracks of these kinds may come to something else.
    Tracks(Vec<(usize, TrackId)>),
    /// The states are others; answers to the same questions are the same.
    All,
}

/// What an exchange did.
#[derive(Debug, Default)]
struct Exchanged {
    /// Nodes on which policies are others now.
    touched: Vec<NodeId>,
    /// A node has policies that had none, or the other way round.
    moved: bool,
}

impl Engine {
    /// The engine of a world.
    pub fn new(world: World) -> Self {
        let plan = Arc::new(world.topology().plan());
        let machine = Machine::new(&world, &plan);
        let books = world.kinds().iter().map(|k| Book::of(k, world.store()));
        Self {
            books: books.collect(),
            named: named(&world),
            machine,
            plan,
            world,
            readings: 0,
        }
    }

    /// The world as it is now. Its policies stand in no order.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// The world, which then follows no more.
    pub fn into_world(self) -> World {
        self.world
    }

    /// Where paths lead.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// The states of all paths.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// How often the world was read from scratch while it followed.
    pub fn readings(&self) -> u64 {
        self.readings
    }

    /// How many policies of each kind there are, by outcome (SEMANTICS §3.3).
    pub fn outcomes(&self) -> BTreeMap<(GroupKind, Outcome), usize> {
        let mut found = BTreeMap::new();
        for (kind, book) in self.world.kinds.iter().zip(&self.books) {
            for slot in book.slots() {
                let (outcome, _) = kind.outcome(slot);
                let key = (kind.profile.policy.clone(), outcome);
                *found.entry(key).or_default() += 1;
            }
        }
        found
    }

    /// Follows a store in which some objects are others than before.
    pub fn follow(&mut self, store: Store, changed: &Changed) -> Update {
        let before = std::mem::replace(&mut self.world.store, store);
        let mut of_kinds: HashMap<usize, Vec<&ObjectKey>> = HashMap::new();
        for (key, difference) in changed {
            match self.matters(key, *difference, &before) {
                Some(Matter::Nothing) => {}
                Some(Matter::Policy(number)) => of_kinds.entry(number).or_default().push(key),
                None => return self.read_anew(),
            }
        }
        let mut numbers: Vec<usize> = of_kinds.keys().copied().collect();
        numbers.sort_unstable();
        let mut tracks = Vec::new();
        let mut moved = false;
        for number in numbers {
            let keys = of_kinds.get(&number).map_or(&[][..], Vec::as_slice);
            let Some(exchanged) = self.exchange(number, keys) else {
                return self.read_anew();
            };
            moved |= exchanged.moved;
            for node in exchanged.touched {
                let resting = self.machine.resting_on(number, node).iter();
                tracks.extend(resting.map(|&track| (number, track)));
            }
        }
        if moved {
            self.machine = Machine::new(&self.world, &self.plan);
            return Update::All;
        }
        tracks.sort_unstable();
        tracks.dedup();
        if tracks.is_empty() {
            Update::Nothing
        } else {
            Update::Tracks(tracks)
        }
    }

    /// Reads the world from scratch. Profiles that say the same stay the same.
    fn read_anew(&mut self) -> Update {
        let store = self.world.store.clone();
        let mut world = World::full(store, &self.world.profiles);
        for kind in &mut world.kinds {
            let known = self.world.kind(&kind.profile.policy);
            if let Some(known) = known.filter(|known| *known.profile == *kind.profile) {
                kind.profile = Arc::clone(&known.profile);
            }
        }
        let readings = self.readings + 1;
        *self = Self {
            readings,
            ..Self::new(world)
        };
        Update::All
    }

    /// Exchanges policies of a kind; `None` if they bear on the paths themselves.
    fn exchange(&mut self, number: usize, keys: &[&ObjectKey]) -> Option<Exchanged> {
        let kind = self.world.kinds.get_mut(number)?;
        let book = self.books.get_mut(number)?;
        let mut affected: BTreeSet<NodeKey> = BTreeSet::new();
        let mut slots: HashSet<usize> = HashSet::new();
        for key in keys {
            let entry = self.world.store.get(key);
            if let Some(&slot) = book.slots.get(*key) {
                affected.extend(book.take_off(kind, slot, entry.is_none())?);
                slots.insert(slot);
            }
            let Some(entry) = entry else { continue };
            let policy = read_policy(&kind.profile, &entry.object);
            self.named.extend(names(&kind.profile, &policy));
            let place = (&self.world.store, &*self.world.topology);
            let attached = attach_one(&kind.profile, &policy, place, &book.filters);
            let places = places(&attached);
            // Its clients may be set apart on a mesh root.
            if places.iter().any(|(_, g)| matches!(g, Group::Clients(_))) {
                return None;
            }
            let slot = book.slot(key, kind.policies.len());
            slots.insert(slot);
            for (node, _) in &places {
                affected.insert(node.clone());
                book.on.entry(node.clone()).or_default().push(slot);
            }
            put(&mut kind.policies, slot, policy);
            put(&mut kind.attached, slot, attached);
            put(&mut kind.places, slot, places);
        }
        let members = book.members(kind, &mut affected);
        let found = kind.settle_again(members, &affected);
        let mut exchanged = Exchanged::default();
        for (key, now) in found {
            if let Some(node) = self.world.topology.node(&key) {
                exchanged.take(kind, node, now, &slots);
            }
        }
        Some(exchanged)
    }
}

impl Exchanged {
    /// Puts what stands on a node now.
    fn take(&mut self, kind: &mut Kind, node: NodeId, now: NodePolicies, slots: &HashSet<usize>) {
        let stands = !now.groups.is_empty() || !now.rejected.is_empty();
        let before = kind.nodes.get(&node);
        // Tracks go on over a node that nothing stands on any more; new ones are needed where all
        // clients are to see what none or some did.
        self.moved |= now.is_for_all() && !before.is_some_and(NodePolicies::is_for_all);
        let bears = |here: &NodePolicies| {
            let accepted = here.groups.values().flatten().copied();
            let mut all = accepted.chain(here.rejected.iter().map(|r| r.policy));
            all.any(|policy| slots.contains(&policy))
        };
        let same = before.is_some_and(|before| *before == now && !bears(before));
        if !same && (stands || before.is_some()) {
            self.touched.push(node);
        }
        if stands {
            kind.nodes.insert(node, now);
        } else {
            kind.nodes.remove(&node);
        }
    }
}

impl Kind {
    /// Settles the conflicts between some policies; returns what stands on the affected nodes.
    fn settle_again(
        &self,
        members: Vec<usize>,
        affected: &BTreeSet<NodeKey>,
    ) -> Vec<(NodeKey, NodePolicies)> {
        let schemas = self.schemas.borrow();
        let settled = settle(
            &self.profile,
            schemas,
            &self.policies,
            &self.places,
            members,
        );
        let mut found = settled.by_node();
        let nodes = affected.iter();
        nodes
            .map(|node| (node.clone(), found.remove(node).unwrap_or_default()))
            .collect()
    }
}

/// Puts an entry in its slot, which may be the next one.
fn put<T>(list: &mut Vec<T>, slot: usize, entry: T) {
    match list.get_mut(slot) {
        Some(place) => *place = entry,
        None => list.push(entry),
    }
}

/// The kinds that a policy may name, and does.
fn names<'p>(profile: &'p Profile, policy: &'p Policy) -> impl Iterator<Item = GroupKind> + 'p {
    let references = policy.references.iter().filter(|r| r.invalid.is_none());
    let kinds = references.map(|reference| &reference.kind);
    let allowed = |kind: &&GroupKind| {
        profile.target(kind).is_some() || profile.virtual_targets.contains(kind)
    };
    kinds.filter(allowed).cloned()
}

/// Kinds of objects that something depends on.
fn named(world: &World) -> HashSet<GroupKind> {
    let mut named: HashSet<GroupKind> = HashSet::new();
    for kind in world.kinds() {
        let policies = kind.policies.iter();
        named.extend(policies.flat_map(|policy| names(&kind.profile, policy)));
    }
    for place in 0..world.topology().len() {
        let key = world.topology().key_at(place);
        named.extend(key.map(|key| key.object.kind.clone()));
    }
    named
}

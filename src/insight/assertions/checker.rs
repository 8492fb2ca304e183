//! Checks assertions, and follows the snapshots of a server.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashSet;
use jiff::civil::Date;

use super::document::Assertion;
use super::filter::PathScope;
use super::result::{NotKnown, kinds_not_known, message_of, result};
use super::tree::{CountTree, Counting, Counts};
use super::verdict::Verdicts;
use super::walk;
use crate::api::v1;
use crate::insight::{AccessScope, Visibility};
use crate::snapshot::Snapshot;
use entail_core::engine::StateId;
use entail_core::model::{GroupKind, InternalError, NodeKey, Object, ObjectKey, Section, Str};
use entail_core::store::{Projection, StoredObject};
use entail_core::topology::NodeId;

/// Maximum number of assertions that are checked, those of the whole cluster first. The others are reported as not known.
pub const MAX_ASSERTIONS: usize = 200;
/// Maximum number of assertions of a namespace that are checked.
pub const MAX_OF_NAMESPACE: usize = 20;
/// Number of verdicts of all assertions from which on an assertion forgets which answers it has checked.
const MAX_VERDICTS: usize = 2_000_000;
/// Number of paths that a result names, if the request does not say.
pub(super) const DEFAULT_SAMPLES: usize = 10;

/// An assertion with what is known of the paths that it is about.
#[derive(Debug)]
pub(super) struct CheckedAssertion {
    object: Arc<Object>,
    /// The assertion, or why it is invalid.
    compiled: Result<Assertion, String>,
    tree: CountTree,
    verdicts: Verdicts,
}

/// Checks the assertions of one snapshot after the other. The work is in proportion to what differs.
#[derive(Debug, Default)]
pub struct AssertionChecker {
    previous: Option<(Arc<Snapshot>, Date)>,
    checked: BTreeMap<ObjectKey, CheckedAssertion>,
}

/// What differs from the previous snapshot of the same lineage.
struct Differences {
    /// The states with other answers.
    states: HashSet<StateId>,
    /// The nodes of the objects that differ; `None` if they are not known.
    nodes: Option<HashSet<NodeId>>,
    /// Whether Namespaces may differ.
    namespaces: bool,
    /// Whether the labels, listeners or classes of Gateways may differ.
    gateways: bool,
}

impl CheckedAssertion {
    /// Compiles an assertion.
    pub fn new(object: Arc<Object>, snapshot: &Snapshot, visibility: &dyn Visibility) -> Self {
        Self {
            compiled: Assertion::read(&object, snapshot.world(), visibility),
            object,
            tree: CountTree::default(),
            verdicts: Verdicts::new(),
        }
    }

    /// Counts the visible paths, and makes the result with the names of up to `samples` of them.
    pub fn check(
        &mut self,
        snapshot: &Snapshot,
        (today, samples): (Date, usize),
        visibility: &dyn Visibility,
    ) -> v1::AssertionResult {
        let assertion = match &self.compiled {
            Ok(assertion) => assertion,
            Err(why) => return super::result::invalid(&self.object, why.clone()),
        };
        if self.verdicts.is_full() {
            self.verdicts = Verdicts::new();
            self.tree = CountTree::default();
        }
        let engine = snapshot.engine();
        let scope = PathScope::new(engine, assertion, today, visibility);
        self.verdicts.begin();
        let mut counting = Counting {
            snapshot,
            assertion,
            scope: &scope,
            verdicts: &mut self.verdicts,
            samples,
            budget: visibility.budget(),
        };
        let counted = match visibility.is_unrestricted() {
            true => count_all(&mut self.tree, &mut counting),
            false => walk::count(&mut counting, visibility),
        };
        let (counts, names, internal) = match counted {
            Ok((counts, names)) => (counts, names, None),
            Err(error) => {
                engine.fail(error);
                self.tree = CountTree::default();
                (
                    Counts::default(),
                    Vec::new(),
                    Some(NotKnown::Policies(error.to_string())),
                )
            }
        };
        // What could not be decided is tried again.
        if self.verdicts.is_exhausted() {
            self.tree = CountTree::default();
        }
        let ids = counts.samples.iter().map(|(_, id)| *id);
        let failures = names.into_iter().zip(ids);
        let failures = failures.map(|(name, id)| message_of(name, self.verdicts.get(id)));
        let failures = failures.collect();
        let not_known = internal.or_else(|| kinds_not_known(snapshot, assertion, visibility));
        result(
            (&self.object, assertion),
            counts,
            failures,
            not_known,
            today,
        )
    }
}

/// Counts all paths, and finds the names of the samples.
fn count_all(
    tree: &mut CountTree,
    counting: &mut Counting<'_>,
) -> Result<(Counts, Vec<String>), InternalError> {
    let counts = tree.count(counting)?;
    let trie = counting.snapshot.engine().trie();
    let names = counts.samples.iter();
    let names: Result<_, _> = names.map(|(number, _)| trie.name_at(*number)).collect();
    Ok((counts, names?))
}

impl AssertionChecker {
    /// Checks all assertions of a snapshot on a day. Returns the results, those of the whole cluster first, sorted by name;
    /// what unchanged assertions say of unchanged paths is known.
    pub fn follow(&mut self, snapshot: &Arc<Snapshot>, today: Date) -> Vec<v1::AssertionResult> {
        let all = AccessScope::default();
        let assertions = assertions_of(snapshot, &all);
        if assertions.is_empty() {
            *self = Self::default();
            return Vec::new();
        }
        let is_later = |(previous, day): &&(Arc<Snapshot>, Date)| {
            previous.is_of_lineage(snapshot) && *day == today
        };
        let differences = self
            .previous
            .as_ref()
            .filter(is_later)
            .map(|(previous, _)| Differences::between(previous, snapshot));
        if differences.is_none() {
            self.checked.clear();
        }
        let assertions: Vec<(bool, Arc<Object>)> = within_limits(assertions).collect();
        // One that is not checked now does not learn what differs, and begins anew when it is checked again.
        let within = assertions.iter().filter(|(is_within, _)| *is_within);
        let current: HashSet<ObjectKey> = within.map(|(_, object)| object.key.clone()).collect();
        self.checked.retain(|key, _| current.contains(key));
        let mut results = Vec::with_capacity(assertions.len());
        for (is_within, object) in assertions {
            results.push(match is_within {
                true => self.result(object, snapshot, differences.as_ref(), today),
                false => super::result::not_checked(&object),
            });
        }
        snapshot.assertion_memo().keep(today, &results);
        self.previous = Some((Arc::clone(snapshot), today));
        results
    }

    fn result(
        &mut self,
        object: Arc<Object>,
        snapshot: &Arc<Snapshot>,
        differences: Option<&Differences>,
        today: Date,
    ) -> v1::AssertionResult {
        let all = AccessScope::default();
        let known = self.checked.remove(&object.key);
        let known = known.filter(|known| *known.object == *object);
        let mut checked = match (known, differences) {
            (Some(mut known), Some(differences)) => {
                known.follow(differences);
                known
            }
            _ => CheckedAssertion::new(Arc::clone(&object), snapshot, &all),
        };
        let result = checked.check(snapshot, (today, DEFAULT_SAMPLES), &all);
        let others = self.checked.values();
        let known: usize = others.map(|other| other.verdicts.known()).sum();
        if known > MAX_VERDICTS {
            checked.verdicts.forget_answers();
        }
        self.checked.insert(object.key.clone(), checked);
        result
    }
}

impl CheckedAssertion {
    /// Marks what differs.
    fn follow(&mut self, differences: &Differences) {
        let Ok(assertion) = &self.compiled else {
            return;
        };
        // Paths do not name the namespaces of their objects, and routes stay what they are below another listener.
        let reads_gateways = assertion.reads_gateways() || assertion.reads_listeners();
        if differences.namespaces && assertion.reads_namespaces()
            || differences.gateways && reads_gateways
        {
            self.tree = CountTree::default();
            self.verdicts = Verdicts::new();
            return;
        }
        let none = HashSet::new();
        let nodes = match (assertion.expectation.objects(), &differences.nodes) {
            ([], _) => &none,
            (_, Some(nodes)) => nodes,
            (_, None) => {
                self.tree = CountTree::default();
                self.verdicts = Verdicts::new();
                return;
            }
        };
        if !nodes.is_empty() {
            self.verdicts.forget(nodes);
        }
        self.tree.mark(&differences.states, nodes);
    }
}

impl Differences {
    fn between(previous: &Arc<Snapshot>, snapshot: &Arc<Snapshot>) -> Self {
        let both = previous.answers().zip(snapshot.answers()).enumerate();
        let states = both.filter(|(_, (before, now))| !Arc::ptr_eq(before, now));
        let states = states.filter_map(|(state, _)| StateId::try_from(state).ok());
        let states = states.collect();
        let generations = [previous, snapshot].map(|snapshot| snapshot.version().generation);
        let changed = match generations {
            [before, now] if before == now => Some(&[][..]),
            [before, now] if before + 1 == now => Some(snapshot.changed()),
            // Snapshots between the two were not checked.
            _ => None,
        };
        let nodes = changed.map(|changed| {
            let nodes = changed.iter();
            let nodes = nodes.flat_map(|key| nodes_of([previous, snapshot], key));
            nodes.collect()
        });
        let is_any = |differs: &dyn Fn(&ObjectKey) -> bool| {
            changed.is_none_or(|changed| changed.iter().any(differs))
        };
        // What expectations read besides is known by its node.
        let is_other_gateway = |key: &ObjectKey| {
            let versions = [previous, snapshot].map(|snapshot| {
                let entry = snapshot.world().store().get(key)?;
                Some((&entry.object.labels, &entry.projection))
            });
            key.kind.is_above_routes() && versions[0] != versions[1]
        };
        Self {
            states,
            nodes,
            namespaces: is_any(&|key| key.kind.is_namespace()),
            gateways: is_any(&is_other_gateway),
        }
    }
}

/// The nodes of an object and of its sections, in two snapshots of one lineage.
fn nodes_of<'s>(
    snapshots: [&'s Arc<Snapshot>; 2],
    key: &'s ObjectKey,
) -> impl Iterator<Item = NodeId> + 's {
    snapshots.into_iter().flat_map(move |snapshot| {
        let world = snapshot.world();
        let sections = world.store().get(key).map(sections).unwrap_or_default();
        let sections = sections.into_iter().map(Some).chain([None]);
        sections.filter_map(move |section| {
            world.topology().node(&NodeKey {
                object: key.clone(),
                section,
            })
        })
    })
}

/// The sections of an object that expectations can read.
fn sections(entry: &StoredObject) -> Vec<Section> {
    let listeners = match &entry.projection {
        Projection::Route(route) => {
            let rules = u32::try_from(route.rules.len()).unwrap_or(u32::MAX);
            return (0..rules).map(Section::Rule).collect();
        }
        Projection::Gateway(gateway) => &gateway.listeners,
        Projection::ListenerSet(set) => &set.listeners,
        _ => return Vec::new(),
    };
    let names = listeners.iter().map(|listener| listener.name.clone());
    names.map(Section::Listener).collect()
}

/// The assertions with whether they are among those that are checked.
pub(super) fn within_limits(
    assertions: Vec<Arc<Object>>,
) -> impl Iterator<Item = (bool, Arc<Object>)> {
    let mut of_namespace: BTreeMap<Str, usize> = BTreeMap::new();
    let mut all = 0;
    assertions.into_iter().map(move |object| {
        let namespace = &object.key.namespace;
        let own = of_namespace.entry(namespace.clone()).or_default();
        let is_within = all < MAX_ASSERTIONS && (namespace.is_empty() || *own < MAX_OF_NAMESPACE);
        *own += 1;
        all += usize::from(is_within);
        (is_within, object)
    })
}

/// The assertions of a snapshot that a caller sees, those of the whole cluster first, sorted by name.
pub(super) fn assertions_of(snapshot: &Snapshot, visibility: &dyn Visibility) -> Vec<Arc<Object>> {
    let store = snapshot.world().store();
    let mut found = Vec::new();
    for kind in GroupKind::assertions() {
        let objects = store.of_kind(&kind).map(|(_, entry)| &entry.object);
        let visible = objects.filter(|object| visibility.includes_object(&object.key));
        found.extend(visible.cloned());
    }
    found
}

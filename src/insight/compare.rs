//! Compares the effective policies of two worlds.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::{HashMap, HashSet};

use super::lookup::incomplete_kinds;
use super::visible::Visible;
use super::{Failure, QuerySubject, Visibility};
use crate::api::{origin, policy_ref, v1};
use crate::snapshot::Snapshot;
use entail_core::effective::{Activity, World};
use entail_core::engine::{ChainKey, ChainTable, PathEngine, StateId};
use entail_core::model::{
    Explanation, GroupKind, InternalError, ObjectKey, OrInternal, RejectedPolicy,
    UnitExplanation,
};
use entail_core::topology::{
    RootController,
    ListedPath, NamedStep, PathStart, PathVisitor, RootKind, TrieNodeId, WalkControl,
};

/// Computes the world after manifests are applied and objects are deleted. Returns it with the
/// problems of the manifests: location and message. Objects that the filter rejects are skipped and
/// reported as problems.
pub type PreviewFn =
    fn(&World, &str, &[ObjectKey], &ChangeFilter<'_>) -> (World, Vec<(String, String)>);

/// Returns whether the caller may change an object.
pub type ChangeFilter<'m> = dyn Fn(&ObjectKey) -> bool + 'm;

/// Maximum number of paths in one response.
const MAX_PATHS: usize = 10_000;

/// Returns the effect of a change without applying it.
///
/// # Errors
/// The name of an object to delete is malformed, or the object does not exist.
pub fn preview_change(
    snapshot: &Snapshot,
    request: &v1::PreviewChangeRequest,
    change: PreviewFn,
    visibility: &dyn Visibility,
) -> Result<v1::PreviewChangeResponse, Failure> {
    let world = snapshot.world();
    let mut deletes = Vec::with_capacity(request.deletes.len());
    for name in &request.deletes {
        deletes.push(object_named(world, name, visibility)?);
    }
    let (after, problems) = change(world, &request.manifests, &deletes, &|key| {
        visibility.includes_object(key)
    });
    let version = snapshot.version();
    Ok(v1::PreviewChangeResponse {
        problems: problems
            .into_iter()
            .map(|(location, message)| v1::Problem { location, message })
            .collect(),
        version: Some(version.message()),
        synced_at: Some(version.synced_at),
        kinds: incomplete_kinds(snapshot, &[], visibility),
        ..compare(snapshot.engine(), &PathEngine::new(after), visibility)
    })
}

/// Finds the object with a name.
fn object_named(
    world: &World,
    name: &str,
    visibility: &dyn Visibility,
) -> Result<ObjectKey, Failure> {
    let QuerySubject::Object(key, None) = QuerySubject::read(name, world)? else {
        return Err(Failure::invalid(
            "NotAnObject",
            format!("malformed object name `{name}`: use `kind/namespace/name`"),
        ));
    };
    if world.store().get(&key).is_none() || !visibility.includes_object(&key) {
        return Err(Failure::no_such_object(format!(
            "`{name}` not found: nothing to delete"
        )));
    }
    Ok(key)
}

/// Returns the changes from one world to another. Equal changes form one entry with all their paths.
pub fn compare(
    before: &PathEngine,
    after: &PathEngine,
    visibility: &dyn Visibility,
) -> v1::PreviewChangeResponse {
    let mut comparison = Comparison::new(before, after, visibility);
    let compared = comparison.all();
    if let Err(error) = compared {
        before.fail(error);
    }
    let changes = merge_equal(comparison.changes.into_values());
    let lost = |unit: &v1::ChangedUnit| unit.before_json.is_some() && unit.after_json.is_none();
    v1::PreviewChangeResponse {
        loses_values: changes.iter().flat_map(|c| &c.units).any(lost),
        changes,
        paths_added: comparison.added.into_iter().collect(),
        paths_removed: comparison.removed.into_iter().collect(),
        truncated: comparison.truncated,
        ..v1::PreviewChangeResponse::default()
    }
}

/// Merges equal changes of a kind. Different explanations may lead to equal changes, because a change
/// contains only a part of them.
fn merge_equal(changes: impl Iterator<Item = v1::ChangedAnswer>) -> Vec<v1::ChangedAnswer> {
    let mut found: Vec<v1::ChangedAnswer> = Vec::new();
    for mut change in changes {
        let paths = std::mem::take(&mut change.paths);
        let same = found.iter_mut().find(|other| {
            other.kind == change.kind
                && other.units == change.units
                && other.newly_rejected == change.newly_rejected
        });
        match same {
            Some(other) => other.paths.extend(paths),
            None => found.push(v1::ChangedAnswer { paths, ..change }),
        }
    }
    for change in &mut found {
        change.paths.sort();
    }
    found
}

/// The explanations of a kind in one of the two worlds, computed on demand.
struct Side<'e> {
    /// The chains of the kind; `None` if the world does not have the kind.
    chains: Option<ChainTable<'e>>,
    numbers: HashMap<Option<ChainKey>, usize>,
    explained: Vec<Explanation>,
}

/// A kind in both worlds.
struct Pair<'e> {
    kind: GroupKind,
    before: Side<'e>,
    after: Side<'e>,
    known: HashMap<(usize, usize), bool>,
}

/// The end of a path in one of the two worlds.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct End {
    place: TrieNodeId,
    state: StateId,
    /// The number of the root kind and controller in `Comparison::roots`.
    root: usize,
}

struct Comparison<'e> {
    worlds: [&'e PathEngine; 2],
    visibility: &'e dyn Visibility,
    pairs: Vec<Pair<'e>>,
    roots: Vec<(RootKind, RootController)>,
    /// Whether something changes at two ends or below them; only where everything is visible.
    differs: HashMap<(End, End), bool>,
    /// By kind and the numbers of both explanations.
    changes: BTreeMap<(GroupKind, usize, usize), v1::ChangedAnswer>,
    added: BTreeSet<String>,
    removed: BTreeSet<String>,
    path_count: usize,
    truncated: bool,
}

impl<'e> Side<'e> {
    fn new(engine: &'e PathEngine, kind: &GroupKind) -> Self {
        let mut kinds = engine.world().kinds().iter().enumerate();
        let found = kinds.find(|(_, known)| known.profile().policy == *kind);
        Self {
            chains: found.map(|(number, kind)| ChainTable::new(engine, number, kind)),
            numbers: HashMap::new(),
            explained: Vec::new(),
        }
    }

    /// Returns the number of the explanation of the kind on a path.
    fn number(&mut self, engine: &PathEngine, end: End) -> Result<usize, InternalError> {
        let mut key = None;
        if let Some(chains) = &mut self.chains
            && let Some(chain) = chains.at(end.state)?
        {
            let place = engine.trie().node(end.place)?;
            let own = chains.kind().reads_own_fields().then_some(place.node);
            key = Some((chain, own));
        }
        if let Some(&number) = self.numbers.get(&key) {
            return Ok(number);
        }
        let explained = match (&self.chains, key) {
            (Some(chains), Some((chain, _))) => {
                let chain = chains.chain(chain)?;
                engine.world().explain(chains.kind(), chain)
            }
            _ => Explanation::default(),
        };
        let number = self.explained.len();
        self.explained.push(explained);
        self.numbers.insert(key, number);
        Ok(number)
    }

    /// Whether a path is a scope of the kind.
    fn is_scope(&self, engine: &PathEngine, end: End) -> Result<bool, InternalError> {
        let Some(chains) = &self.chains else {
            return Ok(false);
        };
        let (root, level) = engine.automaton().end(end.state)?;
        let object = engine.object_kind(end.place)?;
        Ok(chains.kind().ends_at_scope(root, level, object))
    }
}

impl<'e> Comparison<'e> {
    fn new(before: &'e PathEngine, after: &'e PathEngine, visibility: &'e dyn Visibility) -> Self {
        let kinds: BTreeSet<&GroupKind> = [before, after]
            .iter()
            .flat_map(|engine| engine.world().kinds())
            .filter(|kind| visibility.includes_kind(&kind.profile().policy))
            .filter(|kind| kind.policy_count() > 0)
            .map(|kind| &kind.profile().policy)
            .collect();
        let pairs = kinds.into_iter().map(|kind| Pair {
            kind: kind.clone(),
            before: Side::new(before, kind),
            after: Side::new(after, kind),
            known: HashMap::new(),
        });
        Self {
            worlds: [before, after],
            visibility,
            pairs: pairs.collect(),
            roots: Vec::new(),
            differs: HashMap::new(),
            changes: BTreeMap::new(),
            added: BTreeSet::new(),
            removed: BTreeSet::new(),
            path_count: 0,
            truncated: false,
        }
    }

    /// Compares all paths in two passes: the first finds the subtrees with changes, the second lists
    /// the changed paths.
    fn all(&mut self) -> Result<(), InternalError> {
        for with_names in [false, true] {
            let mut visible = Visible::new(self.visibility);
            let mut name = String::new();
            self.children(None, (&mut name, &mut visible, 0), with_names)?;
        }
        Ok(())
    }

    /// Compares the children of two trie nodes, or the roots. Returns whether something changes.
    fn children(
        &mut self,
        ends: Option<[End; 2]>,
        (name, visible, depth): (&mut String, &mut Visible<'_>, usize),
        with_names: bool,
    ) -> Result<bool, InternalError> {
        let [before, after] = self.worlds;
        let old = before.trie().steps_below(ends.map(|[end, _]| end.place));
        let new = after.trie().steps_below(ends.map(|[_, end]| end.place));
        let mut names: HashMap<&[u8], TrieNodeId> = HashMap::new();
        for step in &new {
            names.entry(step.text()).or_insert(step.node);
        }
        let mut differs = false;
        let mut common: HashSet<&[u8]> = HashSet::new();
        for step in &old {
            let Some(&other) = names.get(step.text()) else {
                differs = true;
                if with_names {
                    self.list(0, step, name)?;
                }
                continue;
            };
            common.insert(step.text());
            let length = name.len();
            step.write(name);
            let next = [
                self.next(0, ends.map(|[end, _]| end), step.node)?,
                self.next(1, ends.map(|[_, end]| end), other)?,
            ];
            differs |= self.path(next, (name, visible, depth), with_names)?;
            name.truncate(length);
        }
        for step in new.iter().filter(|step| !common.contains(step.text())) {
            differs = true;
            if with_names {
                self.list(1, step, name)?;
            }
        }
        Ok(differs)
    }

    /// Returns the end of a path after one more trie node.
    fn next(
        &mut self,
        world: usize,
        above: Option<End>,
        place: TrieNodeId,
    ) -> Result<End, InternalError> {
        let engine = self.worlds.get(world).or_internal("one of two worlds")?;
        let root = match above {
            Some(above) => above.root,
            None => {
                let root = engine.trie().root(place).or_internal("a root")?;
                let root = (root.kind, root.controller.clone());
                let known = self.roots.iter().position(|known| *known == root);
                if known.is_none() {
                    self.roots.push(root);
                }
                known.unwrap_or(self.roots.len() - 1)
            }
        };
        Ok(End {
            place,
            state: engine.after(above.map_or(0, |above| above.state), place)?,
            root,
        })
    }

    /// Records the names of all visible paths at and below a step that only one world has.
    fn list(
        &mut self,
        world: usize,
        step: &NamedStep<'_>,
        name: &str,
    ) -> Result<(), InternalError> {
        let mut name = name.to_owned();
        step.write(&mut name);
        let start = PathStart::at(name, step.node);
        let visibility = self.visibility;
        let found = match world {
            0 => &mut self.removed,
            _ => &mut self.added,
        };
        let mut visit = Names { visibility, found };
        let engine = self.worlds.get(world).or_internal("one of two worlds")?;
        engine.visit(Some(&start), (), |(), _| Ok(()), &mut visit)
    }

    /// Compares a path and all paths below it. Returns whether something changes.
    fn path(
        &mut self,
        ends: [End; 2],
        (name, visible, depth): (&mut String, &mut Visible<'_>, usize),
        with_names: bool,
    ) -> Result<bool, InternalError> {
        let (is_visible, below) = visible.look(name, depth);
        let is_covered = visible.is_covered(depth + 1);
        let key = (ends[0], ends[1]);
        if is_covered {
            match self.differs.get(&key) {
                Some(false) => return Ok(false),
                Some(true) if !with_names => return Ok(true),
                _ => {}
            }
        }
        let mut differs = false;
        if is_visible {
            for pair in 0..self.pairs.len() {
                differs |= self.answer(pair, ends, with_names.then_some(&**name))?;
            }
        }
        if below {
            differs |= self.children(Some(ends), (name, visible, depth + 1), with_names)?;
        }
        if is_covered {
            self.differs.insert(key, differs);
        }
        Ok(differs)
    }

    /// Compares the answers of a kind on one path, if the path is a scope of the kind.
    fn answer(
        &mut self,
        pair: usize,
        [old, new]: [End; 2],
        name: Option<&str>,
    ) -> Result<bool, InternalError> {
        let [before, after] = self.worlds;
        let acts = |engine: &PathEngine, side: &Side<'_>, end: End| {
            let root = self.roots.get(end.root);
            let kind = side.chains.as_ref().map(ChainTable::kind);
            root.zip(kind).is_some_and(|((root, controller), kind)| {
                engine.world().activity(kind, *root, controller) != Activity::Inactive
            })
        };
        let known = self.pairs.get(pair).or_internal("a kind")?;
        let is_scope = (acts(before, &known.before, old) && known.before.is_scope(before, old)?)
            || (acts(after, &known.after, new) && known.after.is_scope(after, new)?);
        if !is_scope {
            return Ok(false);
        }
        let pair = self.pairs.get_mut(pair).or_internal("a kind")?;
        let numbers = (
            pair.before.number(before, old)?,
            pair.after.number(after, new)?,
        );
        let key = (pair.kind.clone(), numbers.0, numbers.1);
        let changed = match pair.known.get(&numbers) {
            Some(&changed) => changed,
            None => {
                let change = compare_explanations(pair, numbers);
                let changed = change.is_some();
                pair.known.insert(numbers, changed);
                self.changes
                    .extend(change.map(|change| (key.clone(), change)));
                changed
            }
        };
        let Some(name) = name.filter(|_| changed) else {
            return Ok(changed);
        };
        if self.path_count >= MAX_PATHS {
            self.truncated = true;
            return Ok(true);
        }
        self.path_count += 1;
        let change = self.changes.get_mut(&key).or_internal("a change")?;
        change.paths.push(name.to_owned());
        Ok(true)
    }
}

/// Collects the names of visible paths.
struct Names<'n> {
    visibility: &'n dyn Visibility,
    found: &'n mut BTreeSet<String>,
}

impl PathVisitor<()> for Names<'_> {
    fn visit(&mut self, path: &ListedPath<'_, ()>) -> WalkControl {
        if self.visibility.includes_path(path.name) {
            self.found.insert(path.name.to_owned());
        }
        WalkControl::Descend
    }
}

/// Compares two explanations; returns `None` if they are equal.
fn compare_explanations(pair: &Pair<'_>, (old, new): (usize, usize)) -> Option<v1::ChangedAnswer> {
    let (old, new) = (
        pair.before.explained.get(old)?,
        pair.after.explained.get(new)?,
    );
    let change = v1::ChangedAnswer {
        kind: pair.kind.to_string(),
        paths: Vec::new(),
        units: units(&old.units, &new.units),
        newly_rejected: rejected(&old.effective.rejected, &new.effective.rejected),
    };
    let changed = !change.units.is_empty() || !change.newly_rejected.is_empty();
    changed.then_some(change)
}

/// The units whose value or origin changes.
fn units(old: &[UnitExplanation], new: &[UnitExplanation]) -> Vec<v1::ChangedUnit> {
    let with_values = |units: &[UnitExplanation]| -> BTreeMap<String, UnitExplanation> {
        units
            .iter()
            .filter(|unit| unit.value.is_some())
            .map(|unit| (unit.unit.to_string(), unit.clone()))
            .collect()
    };
    let (old, new) = (with_values(old), with_values(new));
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let mut found = Vec::new();
    for name in names {
        let (before, after) = (old.get(name), new.get(name));
        let value = |unit: Option<&UnitExplanation>| unit.and_then(|u| u.value.clone());
        let set_by = |unit: Option<&UnitExplanation>| {
            let origin = unit.and_then(|u| u.origin.as_ref());
            origin.map(|o| (o.policies.clone(), o.block))
        };
        if value(before) == value(after) && set_by(before) == set_by(after) {
            continue;
        }
        // Replaced by a unit above or below it, which is reported there: the value is not lost.
        if before.is_some_and(|unit| after.is_none() && overlaps(unit, new.values())) {
            continue;
        }
        let origin_of =
            |unit: Option<&UnitExplanation>| unit.and_then(|u| u.origin.as_ref()).map(origin);
        found.push(v1::ChangedUnit {
            unit: name.clone(),
            before_json: value(before).map(|v| v.to_string()),
            after_json: value(after).map(|v| v.to_string()),
            before_origin: origin_of(before),
            after_origin: origin_of(after),
        });
    }
    found
}

/// Whether one of the units is equal to a unit, above or below it.
fn overlaps<'u>(
    unit: &UnitExplanation,
    mut others: impl Iterator<Item = &'u UnitExplanation>,
) -> bool {
    others.any(|other| other.unit.covers(&unit.unit) || unit.unit.covers(&other.unit))
}

/// The policies that only the new answer rejects.
fn rejected(old: &[RejectedPolicy], new: &[RejectedPolicy]) -> Vec<v1::RejectedPolicy> {
    new.iter()
        .filter(|r| !old.contains(r))
        .map(|rejected| v1::RejectedPolicy {
            policy: Some(policy_ref(&rejected.policy)),
            reason: rejected.reason.clone(),
            message: rejected.message.clone(),
        })
        .collect()
}

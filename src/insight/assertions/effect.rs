//! The assertions that a change would break: only paths whose answers differ or that go through the changed object, and
//! those below them, are checked.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use jiff::civil::Date;

use super::checker::{assertions_of, within_limits};
use super::document::Assertion;
use super::filter::{PathContext, PathScope};
use super::verdict::{VerdictId, Verdicts};
use crate::insight::{AccessScope, Budget};
use crate::snapshot::Snapshot;
use entail_core::engine::{PathEngine, StateId};
use entail_core::model::{InternalError, NodeKey, Object, ObjectKey, OrInternal, PathName};
use entail_core::topology::{ListedPath, TrieNodeId, WalkControl};

/// An assertion that holds on some paths before a change and not after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenAssertion {
    /// The assertion.
    pub object: ObjectKey,
    /// Whether the change is to be denied.
    pub enforce: bool,
    /// Number of these paths.
    pub paths: u64,
    /// The name of the first one.
    pub first: String,
}

impl BrokenAssertion {
    /// Whether changes of objects in a namespace are denied because of it.
    pub fn denies_in(&self, namespace: &str) -> bool {
        self.enforce && may_deny(&self.object, namespace)
    }
}

/// Whether an assertion that is enforced denies changes in a namespace. One of a namespace denies changes there alone: its
/// owners own no others.
fn may_deny(assertion: &ObjectKey, namespace: &str) -> bool {
    assertion.namespace.is_empty() || *assertion.namespace == *namespace
}

/// An assertion in one of the two worlds.
struct Side<'a> {
    engine: &'a PathEngine,
    assertion: &'a Assertion,
    scope: PathScope<'a>,
    verdicts: Verdicts,
    known: HashMap<(StateId, PathContext), VerdictId>,
}

/// An assertion of a snapshot that may deny changes in a namespace, if there is one.
pub fn enforced_in(snapshot: &Snapshot, namespace: &str) -> Option<ObjectKey> {
    let all = AccessScope::default();
    let world = snapshot.engine().world();
    let found = checked(snapshot).find(|object| {
        may_deny(&object.key, namespace)
            && Assertion::read(object, world, &all).is_ok_and(|read| read.enforce)
    });
    found.map(|object| object.key.clone())
}

/// The assertions of a snapshot that are within the limits of their number.
fn checked(snapshot: &Snapshot) -> impl Iterator<Item = Arc<Object>> {
    let within = within_limits(assertions_of(snapshot, &AccessScope::default()));
    within.filter_map(|(is_within, object)| is_within.then_some(object))
}

/// Finds the paths that go through an object, or a Namespace.
struct PathsThrough<'e> {
    engine: &'e PathEngine,
    object: &'e ObjectKey,
    is_namespace: bool,
    /// The caller reports that it is exhausted.
    budget: &'e Budget,
    /// Whether paths from a trie node on do.
    reaches: RefCell<HashMap<TrieNodeId, bool>>,
}

impl PathsThrough<'_> {
    fn is_on_it(&self, id: TrieNodeId) -> Result<bool, InternalError> {
        let node = self.engine.trie().node(id)?;
        let own = &self.engine.world().topology().key(node.node).object;
        Ok(match self.is_namespace {
            true => own.namespace == self.object.name,
            false => own == self.object,
        })
    }

    /// Whether a path from a trie node on goes through the object. A path has few nodes, which bound the recursion.
    fn reaches(&self, id: TrieNodeId) -> Result<bool, InternalError> {
        if let Some(known) = self.reaches.borrow().get(&id) {
            return Ok(*known);
        }
        if !self.budget.step() {
            return Ok(false);
        }
        let trie = self.engine.trie();
        let mut found = self.is_on_it(id)?;
        for below in trie.below(trie.node(id)?) {
            // Each of them is looked at, so that none is looked at again.
            found |= self.reaches(below)?;
        }
        self.reaches.borrow_mut().insert(id, found);
        Ok(found)
    }
}

/// Returns the names of the paths that go through an object, or a Namespace, from where they do. An assertion may read the
/// object itself, so that it breaks where no answer differs. Empty for policies.
///
/// # Errors
/// A trie node is missing.
fn paths_through(
    engine: &PathEngine,
    object: &ObjectKey,
    budget: &Budget,
) -> Result<Vec<String>, InternalError> {
    let is_namespace = object.kind.is_namespace();
    let topology = engine.world().topology();
    if !is_namespace && topology.node(&NodeKey::whole(object.clone())).is_none() {
        return Ok(Vec::new());
    }
    let through = PathsThrough {
        engine,
        object,
        is_namespace,
        budget,
        reaches: RefCell::default(),
    };
    let (mut found, failed) = (Vec::new(), Cell::new(None));
    let is_true = |result: Result<bool, InternalError>| {
        result.unwrap_or_else(|error| {
            failed.set(Some(error));
            false
        })
    };
    let step = |(), id| is_true(through.reaches(id)).then_some(());
    let mut visit = |path: &ListedPath<'_, ()>| {
        if !budget.step() {
            return WalkControl::Stop;
        }
        let last = path.resolved.last();
        if !last.is_some_and(|id| is_true(through.is_on_it(*id))) {
            return WalkControl::Descend;
        }
        found.push(path.name.to_owned());
        WalkControl::SkipChildren
    };
    engine.trie().list(None, (), step, &mut visit);
    failed.into_inner().map_or(Ok(found), Err)
}

/// Returns the assertions of a snapshot that a change breaks, in the order of assertions. `after` is the world after the
/// change of some objects, and `changed` the names of the paths whose answers differ there or that are new. Besides, all
/// paths through the objects are checked.
///
/// # Errors
/// A trie node or a state is missing.
pub fn broken_by<'p>(
    snapshot: &Snapshot,
    (after, objects): (&PathEngine, &[ObjectKey]),
    changed: impl Iterator<Item = &'p str>,
    (today, budget): (Date, &Budget),
) -> Result<Vec<BrokenAssertion>, InternalError> {
    let all = AccessScope::default();
    let mut broken = Vec::new();
    let mut within = checked(snapshot).peekable();
    if within.peek().is_none() {
        return Ok(broken);
    }
    let mut through = Vec::new();
    for object in objects {
        through.extend(paths_through(after, object, budget)?);
    }
    let mut names: Vec<&str> = changed.collect();
    names.extend(through.iter().map(String::as_str));
    for object in within {
        // The caller reports that the budget is exhausted.
        if !budget.step() {
            break;
        }
        let compile = |engine: &PathEngine| Assertion::read(&object, engine.world(), &all);
        let (Ok(old), Ok(new)) = (compile(snapshot.engine()), compile(after)) else {
            continue;
        };
        let mut before = Side::new(snapshot.engine(), &old, today, &all);
        let mut now = Side::new(after, &new, today, &all);
        let mut found: Option<BrokenAssertion> = None;
        for name in now.failing(names.iter().copied(), budget)? {
            if !before.holds_on(&name)? {
                continue;
            }
            let found = found.get_or_insert_with(|| BrokenAssertion {
                object: object.key.clone(),
                enforce: new.enforce,
                paths: 0,
                first: name,
            });
            found.paths += 1;
        }
        broken.extend(found);
    }
    Ok(broken)
}

impl<'a> Side<'a> {
    fn new(
        engine: &'a PathEngine,
        assertion: &'a Assertion,
        today: Date,
        all: &'a AccessScope,
    ) -> Self {
        Self {
            engine,
            assertion,
            scope: PathScope::new(engine, assertion, today, all),
            verdicts: Verdicts::new(),
            known: HashMap::new(),
        }
    }

    /// The names of the paths, at and below some paths, on which the assertion does not hold, sorted.
    fn failing<'p>(
        &mut self,
        changed: impl Iterator<Item = &'p str>,
        budget: &Budget,
    ) -> Result<Vec<String>, InternalError> {
        let (mut seen, mut found) = (HashSet::new(), Vec::new());
        let (mut failed, trie) = (None, Arc::clone(self.engine.trie()));
        let mut visit = |path: &ListedPath<'_, ()>| {
            if !budget.step() || failed.is_some() {
                return WalkControl::Stop;
            }
            if !seen.insert(path.name.to_owned()) {
                return WalkControl::SkipChildren;
            }
            match self.verdict(path.resolved) {
                Ok(None | Some(Verdicts::PASSED)) => {}
                Ok(Some(_)) => found.push(path.name.to_owned()),
                Err(error) => failed = Some(error),
            }
            WalkControl::Descend
        };
        for name in changed {
            if !budget.step() {
                break;
            }
            if let Ok(path) = PathName::parse(name) {
                trie.list(Some(&path), (), |(), _| Some(()), &mut visit);
            }
        }
        match failed {
            Some(error) => Err(error),
            None => {
                found.sort_unstable();
                Ok(found)
            }
        }
    }

    /// The state and the context at the end of a path.
    fn end(
        &self,
        resolved: &[TrieNodeId],
    ) -> Result<(StateId, Option<PathContext>), InternalError> {
        let mut end = (0, Some(PathContext::default()));
        for &node in resolved {
            let context = match end.1 {
                Some(above) => self.scope.step(above, node)?,
                None => None,
            };
            end = (self.engine.after(end.0, node)?, context);
        }
        Ok(end)
    }

    /// The verdict about the path to some trie nodes; `None` if the assertion is not about it, or excepts it.
    fn verdict(&mut self, resolved: &[TrieNodeId]) -> Result<Option<VerdictId>, InternalError> {
        let node = *resolved.last().or_internal("the end of a path")?;
        let (state, Some(context)) = self.end(resolved)? else {
            return Ok(None);
        };
        if context.exception.is_some() || !self.scope.selects(context, node)? {
            return Ok(None);
        }
        if let Some(&known) = self.known.get(&(state, context)) {
            return Ok(Some(known));
        }
        let verdict = match self.scope.not_decided(context) {
            Some(what) => self.verdicts.not_known(what),
            None => {
                let at = (state, context);
                self.verdicts.of_engine(self.engine, self.assertion, at)?
            }
        };
        self.known.insert((state, context), verdict);
        Ok(Some(verdict))
    }

    /// Whether the assertion is not about a path, or the path is as expected.
    fn holds_on(&mut self, name: &str) -> Result<bool, InternalError> {
        let Some(end) = (match PathName::parse(name) {
            Ok(path) => self.engine.locate(&path)?,
            Err(_) => None,
        }) else {
            return Ok(true);
        };
        let verdict = self.verdict(&end.resolved)?;
        Ok(verdict.is_none_or(|verdict| verdict == Verdicts::PASSED))
    }
}

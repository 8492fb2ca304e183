//! Visibility of paths during a walk.

use hashbrown::HashSet;

use super::Visibility;
use super::visibility::Coverage;
use entail_core::engine::{PathEngine, PathSelection, StateId, SurveyEntry, SurveyStart};
use entail_core::model::{GroupKind, InternalError, ObjectKey, groups};
use entail_core::topology::{ListedPath, PathVisitor, TrieNodeId, WalkControl};

/// The visibility of paths during a walk. Below a path whose subtree is visible as a whole, no more
/// checks are made.
pub(super) struct Visible<'s> {
    visibility: &'s dyn Visibility,
    /// Whether Routes may stand below other Routes.
    delegates: bool,
    /// The depth of the trie node below which everything is visible.
    covered: Option<usize>,
}

impl<'s> Visible<'s> {
    pub(super) fn new(engine: &PathEngine, visibility: &'s dyn Visibility) -> Self {
        Self::among(&[engine], visibility)
    }

    /// The visibility of paths in several worlds.
    pub(super) fn among(engines: &[&PathEngine], visibility: &'s dyn Visibility) -> Self {
        let mut tries = engines.iter().map(|engine| engine.trie());
        Self {
            visibility,
            delegates: tries.any(|trie| trie.has_delegating_rules()),
            covered: None,
        }
    }

    /// Whether the walk has to stop because the caller is gone. Counts a step of the query.
    pub(super) fn is_over(&self) -> bool {
        !self.visibility.budget().step()
    }

    /// Whether everything is visible at a depth of the walk. The depth is the number of trie nodes
    /// above.
    pub(super) fn is_covered(&self, depth: usize) -> bool {
        self.covered.is_some_and(|at| depth > at)
    }

    /// Records that the walk reached a trie node that is not checked.
    pub(super) fn leave(&mut self, depth: usize) {
        self.covered = self.covered.filter(|at| depth > *at);
    }

    /// Checks a path; returns whether it is visible, and whether a path below it may be.
    pub(super) fn look(&mut self, name: &str, depth: usize) -> (bool, bool) {
        if self.is_covered(depth) {
            return (true, true);
        }
        self.covered = None;
        match self.visibility.coverage(name, self.delegates) {
            Coverage::All => {
                self.covered = Some(depth);
                (true, true)
            }
            Coverage::Part => (self.visibility.includes_path(name), true),
            Coverage::Nothing => (false, false),
        }
    }
}

/// Finds the subtrees that are visible as a whole, and the single visible paths above them.
struct Finder<'e> {
    engine: &'e PathEngine,
    visible: Visible<'e>,
    /// The number of the next path.
    next: u64,
    starts: Vec<SurveyStart<StateId>>,
    single: Vec<SurveyEntry<StateId>>,
    /// The trie nodes on visible paths, without those below `starts`.
    above: HashSet<TrieNodeId>,
}

impl PathVisitor<StateId> for Finder<'_> {
    fn visit(&mut self, path: &ListedPath<'_, StateId>) -> WalkControl {
        if self.visible.is_over() {
            return WalkControl::Stop;
        }
        let number = self.next;
        self.next += 1;
        let depth = path.resolved.len().saturating_sub(1);
        let Some(&node) = path.resolved.last() else {
            return WalkControl::SkipChildren;
        };
        let (visible, below) = self.visible.look(path.name, depth);
        if visible {
            self.above.extend(path.resolved);
        }
        if self.visible.is_covered(depth + 1) {
            self.starts.push(SurveyStart {
                node,
                state: path.state,
                number,
            });
        } else {
            if visible {
                let entry = SurveyEntry::one(node, path.state, number);
                self.single.push(entry);
            }
            if below {
                return WalkControl::Descend;
            }
        }
        self.next = number + self.engine.trie().size(node);
        WalkControl::SkipChildren
    }
}

impl<'e> Finder<'e> {
    fn find(engine: &'e PathEngine, visibility: &'e dyn Visibility) -> Result<Self, InternalError> {
        let mut finder = Finder {
            engine,
            visible: Visible::new(engine, visibility),
            next: 0,
            starts: Vec::new(),
            single: Vec::new(),
            above: HashSet::new(),
        };
        engine.visit(
            None,
            0,
            |state, node| engine.after(state, node),
            &mut finder,
        )?;
        Ok(finder)
    }
}

/// Returns the trie nodes at the ends of visible paths, with their states.
pub(super) fn visible_entries(
    engine: &PathEngine,
    visibility: &dyn Visibility,
) -> Result<Vec<SurveyEntry<StateId>>, InternalError> {
    if visibility.is_unrestricted() {
        return Ok(engine.survey()?.into_entries());
    }
    Ok(selection(engine, visibility)?.into_entries())
}

/// Returns the visible paths; `None` if that is all of them.
pub(super) fn visible_paths(
    engine: &PathEngine,
    visibility: &dyn Visibility,
) -> Result<Option<PathSelection>, InternalError> {
    match visibility.is_unrestricted() {
        true => Ok(None),
        false => selection(engine, visibility).map(Some),
    }
}

fn selection(
    engine: &PathEngine,
    visibility: &dyn Visibility,
) -> Result<PathSelection, InternalError> {
    let finder = Finder::find(engine, visibility)?;
    let survey = engine.survey_from(finder.starts.into_iter())?;
    let mut entries = survey.into_entries();
    entries.extend(finder.single);
    Ok(PathSelection::new(entries, finder.above))
}

/// Finds out all at once which objects of paths a caller sees.
pub(super) fn prepare(engine: &PathEngine, visibility: &dyn Visibility) {
    let store = engine.world().store();
    let mut objects: Vec<ObjectKey> = store.routes().map(|(key, _)| key).collect();
    for kind in ["GatewayClass", "Gateway", "ListenerSet"] {
        let kind = GroupKind::new(groups::GATEWAY, kind);
        let of_kind = store.of_kind(&kind);
        objects.extend(
            of_kind.map(|((ns, name), _)| ObjectKey::new(kind.clone(), ns.clone(), name.clone())),
        );
    }
    visibility.prepare(&objects);
}

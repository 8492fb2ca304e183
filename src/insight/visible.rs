//! Visibility of paths during a walk.

use super::Visibility;
use super::visibility::Coverage;
use entail_core::engine::{PathEngine, StateId, SurveyEntry, SurveyStart};
use entail_core::model::InternalError;
use entail_core::topology::{ListedPath, PathVisitor, WalkControl};

/// The visibility of paths during a walk. Below a path whose subtree is visible as a whole, no more
/// checks are made.
pub(super) struct Visible<'s> {
    visibility: &'s dyn Visibility,
    /// The depth of the trie node below which everything is visible.
    covered: Option<usize>,
}

impl<'s> Visible<'s> {
    pub(super) fn new(visibility: &'s dyn Visibility) -> Self {
        Self {
            visibility,
            covered: None,
        }
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
        match self.visibility.coverage(name) {
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
}

impl PathVisitor<StateId> for Finder<'_> {
    fn visit(&mut self, path: &ListedPath<'_, StateId>) -> WalkControl {
        let number = self.next;
        self.next += 1;
        let depth = path.resolved.len().saturating_sub(1);
        let Some(&node) = path.resolved.last() else {
            return WalkControl::SkipChildren;
        };
        let (visible, below) = self.visible.look(path.name, depth);
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

/// Returns the trie nodes at the ends of visible paths, with their states.
pub(super) fn visible_entries(
    engine: &PathEngine,
    visibility: &dyn Visibility,
) -> Result<Vec<SurveyEntry<StateId>>, InternalError> {
    if visibility.is_unrestricted() {
        return Ok(engine.survey()?.into_entries());
    }
    let mut finder = Finder {
        engine,
        visible: Visible::new(visibility),
        next: 0,
        starts: Vec::new(),
        single: Vec::new(),
    };
    engine.visit(
        None,
        0,
        |state, node| engine.after(state, node),
        &mut finder,
    )?;
    let survey = engine.survey_from(finder.starts.into_iter())?;
    let mut entries = survey.into_entries();
    entries.extend(finder.single);
    Ok(entries)
}

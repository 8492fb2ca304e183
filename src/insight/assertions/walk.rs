//! Counts the paths of an assertion that a caller may see, one path after the other.

use super::filter::PathContext;
use super::tree::{Counting, Counts};
use crate::insight::Visibility;
use crate::insight::visible::{Visible, prepare};
use entail_core::engine::StateId;
use entail_core::model::{InternalError, OrInternal};
use entail_core::topology::{ListedPath, PathVisitor, TrieNodeId, WalkControl};

/// The end of a path: its state, and what it has to do with the assertion; `None` where that is about no path.
type PathEnd = (StateId, Option<PathContext>);

/// Counts visible paths.
struct PathCounter<'w, 'c> {
    counting: &'w mut Counting<'c>,
    visible: Visible<'w>,
    counts: Counts,
    /// The names of the samples.
    names: Vec<String>,
    failed: Option<InternalError>,
}

/// Counts the visible paths. Returns the names of the samples with the counts.
///
/// # Errors
/// A trie node or a state is missing.
pub(super) fn count(
    counting: &mut Counting<'_>,
    visibility: &dyn Visibility,
) -> Result<(Counts, Vec<String>), InternalError> {
    let (engine, scope) = (counting.snapshot.engine(), counting.scope);
    prepare(engine, visibility);
    let step = |(state, above): PathEnd, node: TrieNodeId| {
        let context = match above {
            Some(above) => scope.step(above, node)?,
            None => None,
        };
        Ok((engine.after(state, node)?, context))
    };
    let mut counter = PathCounter {
        visible: Visible::new(engine, visibility),
        counting,
        counts: Counts::default(),
        names: Vec::new(),
        failed: None,
    };
    let begin = (0, Some(PathContext::default()));
    engine.visit(None, begin, step, &mut counter)?;
    match counter.failed {
        Some(error) => Err(error),
        None => Ok((counter.counts, counter.names)),
    }
}

impl PathCounter<'_, '_> {
    fn add(
        &mut self,
        path: &ListedPath<'_, PathEnd>,
        context: PathContext,
    ) -> Result<(), InternalError> {
        let node = *path.resolved.last().or_internal("the end of a path")?;
        let counting = &mut *self.counting;
        if !counting.scope.selects(context, node)? {
            return Ok(());
        }
        let at = (path.state.0, context);
        let id = counting.verdict(at);
        let (samples, number) = (self.counts.samples.len(), self.names.len() as u64);
        let verdict = (counting.verdicts.get(id), id);
        self.counts
            .add(verdict, context.exception, number, counting.samples);
        if self.counts.samples.len() > samples {
            self.names.push(path.name.to_owned());
        }
        Ok(())
    }
}

impl PathVisitor<PathEnd> for PathCounter<'_, '_> {
    fn passes_over(&mut self, _: TrieNodeId, (_, context): PathEnd, _: usize) -> bool {
        context.is_none()
    }

    fn visit(&mut self, path: &ListedPath<'_, PathEnd>) -> WalkControl {
        if self.visible.is_over() {
            return WalkControl::Stop;
        }
        let depth = path.resolved.len().saturating_sub(1);
        let (visible, below) = self.visible.look(path.name, depth);
        if let Some(context) = path.state.1.filter(|_| visible)
            && let Err(error) = self.add(path, context)
        {
            self.failed = Some(error);
            return WalkControl::Stop;
        }
        match below {
            true => WalkControl::Descend,
            false => WalkControl::SkipChildren,
        }
    }
}

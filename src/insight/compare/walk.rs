//! Walks the paths of two worlds side by side and lists the paths whose answers change.

use std::collections::BTreeSet;

use hashbrown::{HashMap, HashSet};

use super::answers::KindPair;
use crate::api::{StateReason, unknown_state, v1};
use crate::insight::Visibility;
use crate::insight::visible::Visible;
use entail_core::engine::{ChangedPaths, PathEngine, StateId};
use entail_core::model::{GroupKind, InternalError, OrInternal};
use entail_core::topology::{
    ListedPath, NamedStep, PathStart, PathVisitor, TrieNodeId, WalkControl,
};

/// Maximum number of paths in one response.
const MAX_PATHS: usize = 10_000;

/// Of each kind, whether it acts on the paths of a root.
type ActingKinds = Vec<bool>;

/// The name of a path, the visibility of the paths above it, and its depth in the trie.
type NamedPath<'n, 'v> = (&'n mut String, &'n mut Visible<'v>, usize);

/// The position of a path in one of the two worlds.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TriePosition {
    pub(super) node: TrieNodeId,
    pub(super) state: StateId,
    /// The number of the root in `Comparison::roots`.
    pub(super) root: usize,
}

/// A comparison of two worlds.
pub(super) struct Comparison<'e> {
    worlds: [&'e PathEngine; 2],
    /// Where the worlds may differ, if they are two versions of one.
    changed: Option<&'e ChangedPaths>,
    visibility: &'e dyn Visibility,
    pairs: Vec<KindPair<'e>>,
    roots: Vec<ActingKinds>,
    /// Whether something changes at two positions or below them; only where everything is visible.
    differs: HashMap<[TriePosition; 2], bool>,
    /// The names of the paths that only the later world has.
    pub(super) added: BTreeSet<String>,
    /// The names of the paths that only the earlier world has.
    pub(super) removed: BTreeSet<String>,
    path_count: usize,
    /// Whether more paths change than the response lists.
    pub(super) truncated: bool,
}

/// Collects the names of visible paths that only one world has, and what is not known on them.
struct OwnPaths<'n, 'e> {
    visibility: &'n dyn Visibility,
    names: &'n mut BTreeSet<String>,
    truncated: &'n mut bool,
    pairs: &'n mut [KindPair<'e>],
    acting: &'n [bool],
    world: usize,
    /// The number of the root.
    root: usize,
    failure: Option<InternalError>,
}

impl<'e> Comparison<'e> {
    pub(super) fn new(
        worlds: [&'e PathEngine; 2],
        changed: Option<&'e ChangedPaths>,
        visibility: &'e dyn Visibility,
    ) -> Self {
        let kinds: BTreeSet<&GroupKind> = worlds
            .iter()
            .flat_map(|engine| engine.world().kinds())
            .filter(|kind| visibility.includes_kind(&kind.profile().policy))
            .filter(|kind| kind.policy_count() > 0)
            .map(|kind| &kind.profile().policy)
            .collect();
        let pairs = kinds.into_iter().map(|kind| KindPair::new(kind, worlds));
        Self {
            worlds,
            changed,
            visibility,
            pairs: pairs.collect(),
            roots: Vec::new(),
            differs: HashMap::new(),
            added: BTreeSet::new(),
            removed: BTreeSet::new(),
            path_count: 0,
            truncated: false,
        }
    }

    /// Compares all paths in two passes: the first finds the subtrees with changes, the second lists
    /// the changed paths.
    pub(super) fn compare_all(&mut self) -> Result<(), InternalError> {
        for with_names in [false, true] {
            let mut visible = Visible::among(&self.worlds, self.visibility);
            let mut name = String::new();
            self.compare_children(None, (&mut name, &mut visible, 0), with_names)?;
        }
        Ok(())
    }

    /// Returns the kinds that are unknown on a compared path or on one that only one world has, once a reason, sorted.
    pub(super) fn unknown_kinds(&self) -> Vec<v1::KindState> {
        let unknown = self.pairs.iter().flat_map(KindPair::unknown);
        let mut states: Vec<v1::KindState> = unknown
            .map(|(kind, unknown)| {
                unknown_state(kind.to_string(), unknown.reason.as_str(), &unknown.message)
            })
            .collect();
        states.sort_by(|a, b| (&a.kind, &a.message).cmp(&(&b.kind, &b.message)));
        states.dedup();
        states
    }

    /// Counts an internal error, because of which nothing is known of the kinds.
    pub(super) fn failed_kinds(&self, error: InternalError) -> Vec<v1::KindState> {
        let [_, after] = self.worlds;
        after.fail(error);
        let kinds = self.pairs.iter().map(|pair| pair.kind().to_string());
        let state = |kind| StateReason::InternalError.kind_state(kind);
        kinds.map(state).collect()
    }

    /// Returns the changed answers with their paths, sorted by kind.
    pub(super) fn take_changes(&mut self) -> impl Iterator<Item = v1::ChangedAnswer> + use<'e> {
        let pairs = std::mem::take(&mut self.pairs);
        pairs.into_iter().flat_map(KindPair::into_changes)
    }

    /// Compares the children of two trie nodes, or the roots. Returns whether something changes.
    fn compare_children(
        &mut self,
        above: Option<[TriePosition; 2]>,
        (name, visible, depth): NamedPath<'_, '_>,
        with_names: bool,
    ) -> Result<bool, InternalError> {
        let [before, after] = self.worlds;
        let [above_before, above_after] = match above {
            Some(positions) => positions.map(Some),
            None => [None; 2],
        };
        let mut steps_before = before.trie().steps_below(above_before.map(|at| at.node));
        let mut steps_after = after.trie().steps_below(above_after.map(|at| at.node));
        self.drop_unchanged(
            [above_before, above_after],
            [&mut steps_before, &mut steps_after],
        )?;
        let mut nodes_after: HashMap<&[u8], TrieNodeId> = HashMap::new();
        for step in &steps_after {
            nodes_after.entry(step.text()).or_insert(step.node);
        }
        let mut differs = false;
        let mut common: HashSet<&[u8]> = HashSet::new();
        for step in &steps_before {
            let Some(&node_after) = nodes_after.get(step.text()) else {
                differs = true;
                if with_names {
                    self.list_paths(0, above_before, step, name)?;
                }
                continue;
            };
            common.insert(step.text());
            let length = name.len();
            step.write(name);
            let positions = [
                self.position(0, above_before, step.node)?,
                self.position(1, above_after, node_after)?,
            ];
            differs |= self.compare_path(positions, (name, visible, depth), with_names)?;
            name.truncate(length);
        }
        for step in steps_after
            .iter()
            .filter(|step| !common.contains(step.text()))
        {
            differs = true;
            if with_names {
                self.list_paths(1, above_after, step, name)?;
            }
        }
        Ok(differs)
    }

    /// Drops the steps that both worlds have and below which nothing changes.
    fn drop_unchanged(
        &self,
        [above_before, above_after]: [Option<TriePosition>; 2],
        [before, after]: [&mut Vec<NamedStep<'_>>; 2],
    ) -> Result<(), InternalError> {
        let Some(changed) = self.changed else {
            return Ok(());
        };
        let [state, state_after] =
            [above_before, above_after].map(|above| above.map_or(0, |above| above.state));
        if state != state_after {
            return Ok(());
        }
        let [engine, _] = self.worlds;
        let both: HashSet<TrieNodeId> = after.iter().map(|step| step.node).collect();
        let mut unchanged: HashSet<TrieNodeId> = HashSet::new();
        for step in before.iter().filter(|step| both.contains(&step.node)) {
            if !changed.may_differ(step.node, engine.after(state, step.node)?)? {
                unchanged.insert(step.node);
            }
        }
        for steps in [before, after] {
            steps.retain(|step| !unchanged.contains(&step.node));
        }
        Ok(())
    }

    /// Returns the position at a trie node, from the position above it.
    fn position(
        &mut self,
        world: usize,
        above: Option<TriePosition>,
        node: TrieNodeId,
    ) -> Result<TriePosition, InternalError> {
        let engine = self.worlds.get(world).or_internal("one of two worlds")?;
        let root = match above {
            Some(above) => above.root,
            None => {
                let pairs = self.pairs.iter();
                let root: Result<ActingKinds, _> =
                    pairs.map(|pair| pair.acts(world, node)).collect();
                let root = root?;
                let number = self.roots.iter().position(|other| *other == root);
                if number.is_none() {
                    self.roots.push(root);
                }
                number.unwrap_or(self.roots.len() - 1)
            }
        };
        Ok(TriePosition {
            node,
            state: engine.after(above.map_or(0, |above| above.state), node)?,
            root,
        })
    }

    /// Records the names of all visible paths at and below a step that only one world has, and what is not known there.
    fn list_paths(
        &mut self,
        world: usize,
        above: Option<TriePosition>,
        step: &NamedStep<'_>,
        name: &str,
    ) -> Result<(), InternalError> {
        let mut name = name.to_owned();
        step.write(&mut name);
        let start = PathStart::at(name, step.node);
        let TriePosition { root, .. } = self.position(world, above, step.node)?;
        let mut visitor = OwnPaths {
            visibility: self.visibility,
            names: match world {
                0 => &mut self.removed,
                _ => &mut self.added,
            },
            truncated: &mut self.truncated,
            pairs: &mut self.pairs,
            acting: self.roots.get(root).or_internal("a root")?,
            world,
            root,
            failure: None,
        };
        let engine = self.worlds.get(world).or_internal("one of two worlds")?;
        let begin = above.map_or(0, |above| above.state);
        let after = |state, node| engine.after(state, node);
        engine.visit(Some(&start), begin, after, &mut visitor)?;
        visitor.failure.map_or(Ok(()), Err)
    }

    /// Compares a path and all paths below it. Returns whether something changes.
    fn compare_path(
        &mut self,
        positions: [TriePosition; 2],
        (name, visible, depth): NamedPath<'_, '_>,
        with_names: bool,
    ) -> Result<bool, InternalError> {
        if visible.is_over() {
            return Ok(false);
        }
        let (is_visible, may_have_visible_below) = visible.look(name, depth);
        let is_covered = visible.is_covered(depth + 1);
        if is_covered {
            match self.differs.get(&positions) {
                Some(false) => return Ok(false),
                Some(true) if !with_names => return Ok(true),
                _ => {}
            }
        }
        let mut differs = false;
        if is_visible {
            for pair in 0..self.pairs.len() {
                differs |= self.compare_answers(pair, positions, with_names.then_some(&**name))?;
            }
        }
        if may_have_visible_below {
            let below = (name, visible, depth + 1);
            differs |= self.compare_children(Some(positions), below, with_names)?;
        }
        if is_covered {
            self.differs.insert(positions, differs);
        }
        Ok(differs)
    }

    /// Compares the answers of a kind on one path, if the path is a scope of the kind.
    fn compare_answers(
        &mut self,
        pair: usize,
        positions: [TriePosition; 2],
        name: Option<&str>,
    ) -> Result<bool, InternalError> {
        let [before, after] = positions.map(|at| {
            let root = self.roots.get(at.root).or_internal("a root")?;
            root.get(pair).copied().or_internal("a kind")
        });
        let pair = self.pairs.get_mut(pair).or_internal("a kind")?;
        if !pair.has_scope(positions, [before?, after?])? {
            return Ok(false);
        }
        let Some(change) = pair.change(positions)? else {
            return Ok(false);
        };
        if let Some(name) = name {
            if self.path_count < MAX_PATHS {
                self.path_count += 1;
                change.paths.push(name.to_owned());
            } else {
                self.truncated = true;
            }
        }
        Ok(true)
    }
}

impl OwnPaths<'_, '_> {
    /// Looks at the answers on a path.
    fn see(&mut self, node: TrieNodeId, state: StateId) -> Result<(), InternalError> {
        let position = TriePosition {
            node,
            state,
            root: self.root,
        };
        let acting = self.pairs.iter_mut().zip(self.acting);
        for (pair, _) in acting.filter(|(_, acts)| **acts) {
            pair.see(self.world, position)?;
        }
        Ok(())
    }
}

impl PathVisitor<StateId> for OwnPaths<'_, '_> {
    fn visit(&mut self, path: &ListedPath<'_, StateId>) -> WalkControl {
        if !self.visibility.budget().step() {
            return WalkControl::Stop;
        }
        if self.visibility.includes_path(path.name) {
            if self.names.len() >= MAX_PATHS {
                *self.truncated = true;
                return WalkControl::Stop;
            }
            self.names.insert(path.name.to_owned());
            let end = path
                .resolved
                .last()
                .copied()
                .or_internal("the end of a path");
            if let Err(error) = end.and_then(|end| self.see(end, path.state)) {
                self.failure = Some(error);
                return WalkControl::Stop;
            }
        }
        WalkControl::Descend
    }
}

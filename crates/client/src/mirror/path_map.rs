//! The copy of a mirror: answers by path name.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use super::LookupError;
use entail_core::model::{ChunkedVec, Level, PathName, PathPrefix, RuleStep};

/// The answers of one update. Successive maps share the answers that did not change.
#[derive(Debug)]
pub(super) struct PathMap<T> {
    paths: Arc<PathIndex>,
    answers: ChunkedVec<Arc<T>>,
}

/// The paths that a mirror subscribes to.
#[derive(Clone, Debug, Default)]
pub(super) struct PathSelector {
    /// Only paths that begin with one of these; all paths if empty.
    pub prefixes: Vec<PathPrefix>,
    /// Only paths that end at one of these; all levels if empty.
    pub levels: Vec<Level>,
}

/// The paths of a map and their positions in it.
#[derive(Debug, Default)]
struct PathIndex {
    selector: Arc<PathSelector>,
    /// Positions by path name. A path of a named rule is also found by the index of the rule.
    positions: HashMap<Arc<str>, usize>,
    names: Vec<PathEntry>,
    /// Mesh paths of client namespaces that differ from the paths of `*`.
    client_roots: HashSet<String>,
}

/// The name of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PathEntry {
    pub name: Arc<str>,
    /// Index of the rule, if the path name contains the name of the rule.
    pub rule_index: Option<u32>,
}

/// The changes of an update.
#[derive(Debug)]
pub(super) struct PathMapDelta<T> {
    pub changed: HashMap<Arc<str>, (Option<u32>, Arc<T>)>,
    pub removed_paths: HashSet<String>,
    pub client_roots: Option<Vec<String>>,
}

impl<T> Default for PathMapDelta<T> {
    fn default() -> Self {
        Self {
            changed: HashMap::new(),
            removed_paths: HashSet::new(),
            client_roots: None,
        }
    }
}

impl<T> PathMap<T> {
    /// Creates a map without paths.
    pub fn empty(selector: Arc<PathSelector>) -> Self {
        let paths = PathIndex {
            selector,
            ..PathIndex::default()
        };
        Self {
            paths: Arc::new(paths),
            answers: ChunkedVec::default(),
        }
    }

    /// Returns the answer of a path. Allocates only for mesh paths of a client namespace that are
    /// answered as those of `*`, and for failures.
    pub fn get(&self, path: &str) -> Result<&Arc<T>, LookupError> {
        let answer = |path: &str| self.answers.get(*self.paths.positions.get(path)?);
        if let Some(answer) = answer(path) {
            return Ok(answer);
        }
        let any_client = self.paths.as_any_client(path);
        any_client.as_deref().and_then(answer).ok_or_else(|| {
            let selector = &self.paths.selector;
            if selector.matches(path) || any_client.is_some_and(|path| selector.matches(&path)) {
                LookupError::NotFound
            } else {
                LookupError::NotSubscribed
            }
        })
    }

    /// Returns the number of paths.
    pub fn len(&self) -> usize {
        self.paths.names.len()
    }

    /// Returns the names of all paths with their answers.
    pub fn all(&self) -> impl Iterator<Item = (&str, &Arc<T>)> {
        let names = self.paths.names.iter().enumerate();
        names.filter_map(|(position, name)| Some((&*name.name, self.answers.get(position)?)))
    }

    /// Returns the map after an update. If only answers change, the paths are shared.
    #[must_use]
    pub fn with(&self, delta: PathMapDelta<T>) -> Self {
        let PathMapDelta {
            changed,
            removed_paths,
            client_roots,
        } = delta;
        let positions = &self.paths.positions;
        let is_same_path = |(name, (rule_index, _)): (&Arc<str>, &(Option<u32>, _))| {
            let entry = positions.get(name).and_then(|&at| self.paths.names.get(at));
            entry.is_some_and(|entry| entry.rule_index == *rule_index && entry.name == *name)
        };
        let same_paths =
            removed_paths.is_empty() && client_roots.is_none() && changed.iter().all(is_same_path);
        if !same_paths {
            return self.rebuilt(changed, &removed_paths, client_roots);
        }
        let mut answers = self.answers.clone();
        for (name, (_, answer)) in changed {
            if let Some(&position) = positions.get(&name) {
                answers.set(position, answer);
            }
        }
        Self {
            paths: Arc::clone(&self.paths),
            answers,
        }
    }

    /// Returns the map after an update that adds, removes or renames paths.
    fn rebuilt(
        &self,
        mut changed: HashMap<Arc<str>, (Option<u32>, Arc<T>)>,
        removed_paths: &HashSet<String>,
        client_roots: Option<Vec<String>>,
    ) -> Self {
        let mut names = Vec::with_capacity(self.len() + changed.len());
        let mut answers = Vec::with_capacity(names.capacity());
        for (position, name) in self.paths.names.iter().enumerate() {
            if removed_paths.contains(&*name.name) {
                continue;
            }
            let (rule_index, answer) = match changed.remove(&name.name) {
                Some((rule_index, answer)) => (rule_index, Some(answer)),
                None => (name.rule_index, self.answers.get(position).cloned()),
            };
            let Some(answer) = answer else { continue };
            names.push(PathEntry {
                name: Arc::clone(&name.name),
                rule_index,
            });
            answers.push(answer);
        }
        let mut new: Vec<_> = changed.into_iter().collect();
        new.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        for (name, (rule_index, answer)) in new {
            names.push(PathEntry { name, rule_index });
            answers.push(answer);
        }
        let client_roots = client_roots.map(|roots| roots.into_iter().collect());
        let paths = PathIndex {
            selector: Arc::clone(&self.paths.selector),
            positions: positions(&names),
            names,
            client_roots: client_roots.unwrap_or_else(|| self.paths.client_roots.clone()),
        };
        Self {
            paths: Arc::new(paths),
            answers: ChunkedVec::new(&answers),
        }
    }
}

impl PathIndex {
    /// Returns the path of `*` for a mesh path whose client namespace has no paths of its own
    /// (specification 1.3).
    fn as_any_client(&self, path: &str) -> Option<String> {
        let (client, below) = path.strip_prefix("mesh/")?.split_once('/')?;
        let mut steps = below.splitn(4, '/');
        let (_services, namespace, name) = (steps.next()?, steps.next()?, steps.next()?);
        let root = format!("mesh/{client}/services/{namespace}/{name}");
        (!self.client_roots.contains(&root)).then(|| format!("mesh/*/{below}"))
    }
}

impl PathSelector {
    /// Reports whether a path name is in the prefixes and levels.
    fn matches(&self, path: &str) -> bool {
        let covered = self.prefixes.is_empty() || self.prefixes.iter().any(|p| p.covers(path));
        let level = PathName::parse(path).map(|path| path.level());
        covered && (self.levels.is_empty() || level.is_ok_and(|l| self.levels.contains(&l)))
    }
}

/// Returns the positions by path name; a path of a named rule also by the index of the rule.
fn positions(names: &[PathEntry]) -> HashMap<Arc<str>, usize> {
    let mut positions = HashMap::with_capacity(names.len());
    for (position, PathEntry { name, rule_index }) in names.iter().enumerate() {
        positions.insert(Arc::clone(name), position);
        let by_index = rule_index.and_then(|index| with_rule_index(name, index));
        positions.extend(by_index.map(|indexed| (indexed, position)));
    }
    positions
}

/// Returns a path name with the index of the rule instead of its name.
fn with_rule_index(name: &str, index: u32) -> Option<Arc<str>> {
    let Ok(PathName::Traffic(mut path)) = PathName::parse(name) else {
        return None;
    };
    path.rule = Some(RuleStep::Index(index));
    Some(path.to_string().into())
}

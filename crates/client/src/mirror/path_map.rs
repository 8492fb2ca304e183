//! What a mirror holds: answers by the names of their paths.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use super::LookupError;
use entail_core::model::{ChunkedVec, Level, PathName, PathPrefix, RuleStep};

/// The answers of one version. A copy of which few answers differ shares the rest.
#[derive(Debug)]
pub(super) struct PathMap<T> {
    paths: Arc<PathIndex>,
    answers: ChunkedVec<Arc<T>>,
}

/// Which paths are followed.
#[derive(Clone, Debug, Default)]
pub(super) struct PathSelector {
    /// Those that begin with one of these; all if empty.
    pub prefixes: Vec<PathPrefix>,
    /// Only those that end at one of these; all if empty.
    pub levels: Vec<Level>,
}

/// The paths.
#[derive(Debug, Default)]
struct PathIndex {
    scope: Arc<PathSelector>,
    /// By name, and by the index of a rule in place of its name.
    positions: HashMap<Arc<str>, usize>,
    names: Vec<PathEntry>,
    /// The mesh roots whose clients are set apart.
    client_roots: HashSet<String>,
}

/// The names of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PathEntry {
    pub name: Arc<str>,
    /// The index of the rule that the name names by name.
    pub rule_index: Option<u32>,
}

/// How a version differs from the one before.
#[derive(Debug)]
pub(super) struct PathMapDelta<T> {
    pub changed: HashMap<Arc<str>, (Option<u32>, Arc<T>)>,
    pub removed: HashSet<String>,
    pub client_roots: Option<Vec<String>>,
}

impl<T> Default for PathMapDelta<T> {
    fn default() -> Self {
        Self {
            changed: HashMap::new(),
            removed: HashSet::new(),
            client_roots: None,
        }
    }
}

impl<T> PathMap<T> {
    /// Nothing at all.
    pub fn empty(scope: Arc<PathSelector>) -> Self {
        let paths = PathIndex {
            scope,
            ..PathIndex::default()
        };
        Self {
            paths: Arc::new(paths),
            answers: ChunkedVec::default(),
        }
    }

    /// The answer of a path. Allocates nothing, but for paths of mesh clients that nothing sets
    /// apart.
    pub fn get(&self, path: &str) -> Result<&Arc<T>, LookupError> {
        let answer = |path: &str| self.answers.get(*self.paths.positions.get(path)?);
        if let Some(answer) = answer(path) {
            return Ok(answer);
        }
        let any = self.paths.as_any_client(path);
        let found = any.as_deref().and_then(answer);
        found.ok_or_else(|| {
            let scope = &self.paths.scope;
            if scope.has(path) || any.is_some_and(|any| scope.has(&any)) {
                LookupError::NotFound
            } else {
                LookupError::NotSubscribed
            }
        })
    }

    /// How many paths there are.
    pub fn len(&self) -> usize {
        self.paths.names.len()
    }

    /// The names of all paths, with their answers.
    pub fn all(&self) -> impl Iterator<Item = (&str, &Arc<T>)> {
        let names = self.paths.names.iter().enumerate();
        names.filter_map(|(place, name)| Some((&*name.name, self.answers.get(place)?)))
    }

    /// The next version.
    #[must_use]
    pub fn with(&self, difference: PathMapDelta<T>) -> Self {
        let PathMapDelta {
            changed,
            removed,
            client_roots,
        } = difference;
        let positions = &self.paths.positions;
        let place_of = |(name, (rule_index, _)): (&Arc<str>, &(Option<u32>, _))| {
            let place = *positions.get(name)?;
            let known = self.paths.names.get(place)?;
            (known.rule_index == *rule_index && known.name == *name).then_some(place)
        };
        let stays = removed.is_empty()
            && client_roots.is_none()
            && changed.iter().all(|one| place_of(one).is_some());
        if !stays {
            return self.rebuilt(changed, &removed, client_roots);
        }
        let mut answers = self.answers.clone();
        for (name, (_, answer)) in changed {
            if let Some(&place) = positions.get(&name) {
                answers.set(place, answer);
            }
        }
        Self {
            paths: Arc::clone(&self.paths),
            answers,
        }
    }

    fn rebuilt(
        &self,
        mut changed: HashMap<Arc<str>, (Option<u32>, Arc<T>)>,
        removed: &HashSet<String>,
        client_roots: Option<Vec<String>>,
    ) -> Self {
        let mut names = Vec::with_capacity(self.len() + changed.len());
        let mut answers = Vec::with_capacity(names.capacity());
        for (place, name) in self.paths.names.iter().enumerate() {
            if removed.contains(&*name.name) {
                continue;
            }
            let (rule_index, answer) = match changed.remove(&name.name) {
                Some((rule_index, answer)) => (rule_index, Some(answer)),
                None => (name.rule_index, self.answers.get(place).cloned()),
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
            scope: Arc::clone(&self.paths.scope),
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
    /// A mesh path for a client that nothing sets apart, which is answered as that of `*`
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
    /// Whether a path is among those that are followed, if it is one.
    fn has(&self, path: &str) -> bool {
        let covered = self.prefixes.is_empty() || self.prefixes.iter().any(|p| p.covers(path));
        let level = PathName::parse(path).map(|path| path.level());
        covered && (self.levels.is_empty() || level.is_ok_and(|l| self.levels.contains(&l)))
    }
}

/// Where names stand. A rule with a name is found by its index as well.
fn positions(names: &[PathEntry]) -> HashMap<Arc<str>, usize> {
    let mut positions = HashMap::with_capacity(names.len());
    for (place, PathEntry { name, rule_index }) in names.iter().enumerate() {
        positions.insert(Arc::clone(name), place);
        let by_index = rule_index.and_then(|index| indexed(name, index));
        positions.extend(by_index.map(|other| (other, place)));
    }
    positions
}

/// A path's name, with the index of the rule in place of its name.
fn indexed(name: &str, index: u32) -> Option<Arc<str>> {
    let Ok(PathName::Traffic(mut walk)) = PathName::parse(name) else {
        return None;
    };
    walk.rule = Some(RuleStep::Index(index));
    Some(walk.to_string().into())
}

//! The copy of a mirror: answers by path name.

use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashMap, HashSet, HashTable};

use super::LookupError;
use entail_core::model::{
    ChunkedVec, DelegatingRules, Level, PathName, PathPrefix, RuleStep, TrafficPath,
};

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
    /// Positions by path name.
    positions: HashMap<Arc<str>, usize>,
    /// The positions of paths with named rules, by their names without these: such a path is also found by the
    /// indexes of the rules.
    of_named_rules: HashTable<usize>,
    hasher: DefaultHashBuilder,
    names: Vec<PathEntry>,
    /// Mesh paths of client namespaces that differ from the paths of `*`.
    client_roots: HashSet<String>,
}

/// The name of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PathEntry {
    pub name: Arc<str>,
    /// Index of each rule whose name the path name contains, from the root down.
    pub rule_indexes: Box<[u32]>,
}

/// The indexes of the rules whose names a path name contains, and the answer of the path.
pub(super) type ChangedPath<T> = (Box<[u32]>, Arc<T>);

/// The changes of an update.
#[derive(Debug)]
pub(super) struct PathMapDelta<T> {
    pub changed: HashMap<Arc<str>, ChangedPath<T>>,
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
        let answer = |path: &str| self.answers.get(self.paths.position(path)?);
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
        let is_same_path = |(name, (rule_indexes, _)): (&Arc<str>, &(Box<[u32]>, _))| {
            let entry = positions.get(name).and_then(|&at| self.paths.names.get(at));
            entry.is_some_and(|entry| entry.rule_indexes == *rule_indexes)
        };
        // A stream that resumes sends them again.
        let client_roots = client_roots.map(|roots| roots.into_iter().collect());
        let client_roots = client_roots.filter(|roots| *roots != self.paths.client_roots);
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
        mut changed: HashMap<Arc<str>, ChangedPath<T>>,
        removed_paths: &HashSet<String>,
        client_roots: Option<HashSet<String>>,
    ) -> Self {
        let mut names = Vec::with_capacity(self.len() + changed.len());
        let mut answers = Vec::with_capacity(names.capacity());
        for (position, name) in self.paths.names.iter().enumerate() {
            if removed_paths.contains(&*name.name) {
                continue;
            }
            let (rule_indexes, answer) = match changed.remove(&name.name) {
                Some((rule_indexes, answer)) => (rule_indexes, Some(answer)),
                None => {
                    let answer = self.answers.get(position).cloned();
                    (name.rule_indexes.clone(), answer)
                }
            };
            let Some(answer) = answer else { continue };
            names.push(PathEntry {
                name: Arc::clone(&name.name),
                rule_indexes,
            });
            answers.push(answer);
        }
        let mut new: Vec<_> = changed.into_iter().collect();
        new.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        for (name, (rule_indexes, answer)) in new {
            names.push(PathEntry { name, rule_indexes });
            answers.push(answer);
        }
        let client_roots = client_roots.unwrap_or_else(|| self.paths.client_roots.clone());
        let selector = Arc::clone(&self.paths.selector);
        let paths = PathIndex::new(selector, names, client_roots);
        Self {
            paths: Arc::new(paths),
            answers: ChunkedVec::new(&answers),
        }
    }
}

impl PathEntry {
    /// Reports whether a path name is that of this path, with the indexes of some rules instead of their names.
    /// Does not allocate.
    fn is_named(&self, path: &str) -> bool {
        let (Ok(PathName::Traffic(own)), Ok(PathName::Traffic(path))) =
            (PathName::parse(&self.name), PathName::parse(path))
        else {
            return false;
        };
        let mut indexes = self.rule_indexes.iter();
        let mut is_same_rule = |own: RuleStep<'_>, other: RuleStep<'_>| {
            let index = matches!(own, RuleStep::Name(_)).then(|| indexes.next());
            own == other
                || index
                    .flatten()
                    .is_some_and(|&index| other == RuleStep::Index(index))
        };
        let mut others = path.delegating.iter();
        let same_above = own.delegating.iter().all(|(route, rule)| {
            let other = others.next();
            other.is_some_and(|(other, of)| route == other && is_same_rule(rule, of))
        });
        let same_rule = match (own.rule, path.rule) {
            (Some(own), Some(other)) => is_same_rule(own, other),
            (own, other) => own == other,
        };
        same_above
            && others.next().is_none()
            && same_rule
            && without_rules(own) == without_rules(path)
    }
}

impl PathIndex {
    fn new(
        selector: Arc<PathSelector>,
        names: Vec<PathEntry>,
        client_roots: HashSet<String>,
    ) -> Self {
        let positions = names.iter().enumerate();
        let positions = positions.map(|(at, entry)| (Arc::clone(&entry.name), at));
        let mut paths = Self {
            selector,
            positions: positions.collect(),
            client_roots,
            ..Self::default()
        };
        for (at, entry) in names.iter().enumerate() {
            if entry.rule_indexes.is_empty() {
                continue;
            }
            let hash = |&at: &usize| {
                let name = names.get(at).map_or("", |entry| &entry.name);
                hash_without_rules(&paths.hasher, name)
            };
            paths.of_named_rules.insert_unique(hash(&at), at, hash);
        }
        paths.names = names;
        paths
    }

    /// Returns the position of a path, which may be named by the indexes of its rules. Does not allocate.
    fn position(&self, path: &str) -> Option<usize> {
        if let Some(&position) = self.positions.get(path) {
            return Some(position);
        }
        if self.of_named_rules.is_empty() || !path.contains("/rules/#") {
            return None;
        }
        let hash = hash_without_rules(&self.hasher, path);
        let is_named = |&at: &usize| {
            let entry = self.names.get(at);
            entry.is_some_and(|entry| entry.is_named(path))
        };
        self.of_named_rules.find(hash, is_named).copied()
    }

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

/// Returns a path without the steps of rules, and of the routes above the last one.
fn without_rules(path: TrafficPath<'_>) -> TrafficPath<'_> {
    TrafficPath {
        delegating: DelegatingRules::default(),
        rule: None,
        ..path
    }
}

/// Returns the hash of a path name without the parts that follow `rules`.
fn hash_without_rules(hasher: &DefaultHashBuilder, path: &str) -> u64 {
    let mut state = hasher.build_hasher();
    let mut last = "";
    for part in path.split('/') {
        if last != "rules" {
            part.hash(&mut state);
        }
        last = part;
    }
    state.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(rules: [&str; 3]) -> String {
        let [first, second, last] = rules;
        format!(
            "gateways/a/gw/listeners/l/routes/HTTPRoute/a/rules/rules/{first}/routes/HTTPRoute/a/r/rules/{second}/routes/HTTPRoute/a/s/rules/{last}"
        )
    }

    #[test]
    fn paths_are_found_by_the_indexes_of_any_of_their_named_rules() {
        let entry = PathEntry {
            name: name(["one", "#1", "two"]).into(),
            rule_indexes: [3, 0].into(),
        };
        let paths = PathIndex::new(Arc::default(), vec![entry], HashSet::new());
        for rules in [
            ["one", "#1", "two"],
            ["#3", "#1", "two"],
            ["one", "#1", "#0"],
            ["#3", "#1", "#0"],
        ] {
            assert_eq!(paths.position(&name(rules)), Some(0), "{rules:?}");
        }
        for rules in [
            ["#0", "#1", "two"],
            ["one", "#0", "two"],
            ["one", "#1", "#3"],
            ["two", "#1", "one"],
        ] {
            assert_eq!(paths.position(&name(rules)), None, "{rules:?}");
        }
        let below = format!("{}/backends/Service/a/s", name(["#3", "#1", "#0"]));
        assert_eq!(paths.position(&below), None);
    }

    #[test]
    fn roots_of_clients_that_are_sent_again_change_nothing() {
        let one = ["mesh/a".to_owned()];
        let paths = PathIndex::new(Arc::default(), Vec::new(), one.clone().into());
        let map = PathMap::<()> {
            paths: Arc::new(paths),
            answers: ChunkedVec::new(&[]),
        };
        let after = |client_roots: Vec<String>| {
            map.with(PathMapDelta {
                client_roots: Some(client_roots),
                ..PathMapDelta::default()
            })
        };
        let again = after(one.to_vec());
        assert!(Arc::ptr_eq(&again.paths, &map.paths));
        let others = after(vec!["mesh/a".to_owned(), "mesh/b".to_owned()]);
        assert_eq!(others.paths.client_roots.len(), 2);
    }
}

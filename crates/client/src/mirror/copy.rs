//! What a mirror holds: answers by the names of their paths.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use super::Miss;
use entail_core::model::{Chunks, Level, PathName, PathPrefix, RuleStep};

/// The answers of one version. A copy of which few answers differ shares the rest.
#[derive(Debug)]
pub(super) struct Copy<T> {
    paths: Arc<Paths>,
    answers: Chunks<Arc<T>>,
}

/// Which paths are followed.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    /// Those that begin with one of these; all if empty.
    pub prefixes: Vec<PathPrefix>,
    /// Only those that end at one of these; all if empty.
    pub levels: Vec<Level>,
}

/// The paths.
#[derive(Debug, Default)]
struct Paths {
    scope: Arc<Scope>,
    /// By name, and by the index of a rule in place of its name.
    places: HashMap<Arc<str>, usize>,
    names: Vec<Name>,
    /// The mesh roots whose clients are set apart.
    apart: HashSet<String>,
}

/// The names of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub name: Arc<str>,
    /// The index of the rule that the name names by name.
    pub rule_index: Option<u32>,
}

/// How a version differs from the one before.
#[derive(Debug)]
pub(super) struct Difference<T> {
    pub changed: HashMap<Arc<str>, (Option<u32>, Arc<T>)>,
    pub removed: HashSet<String>,
    pub apart: Option<Vec<String>>,
}

impl<T> Default for Difference<T> {
    fn default() -> Self {
        Self {
            changed: HashMap::new(),
            removed: HashSet::new(),
            apart: None,
        }
    }
}

impl<T> Copy<T> {
    /// Nothing at all.
    pub fn empty(scope: Arc<Scope>) -> Self {
        let paths = Paths {
            scope,
            ..Paths::default()
        };
        Self {
            paths: Arc::new(paths),
            answers: Chunks::default(),
        }
    }

    /// The answer of a path. Allocates nothing, but for paths of mesh clients that nothing sets
    /// apart.
    pub fn get(&self, path: &str) -> Result<&Arc<T>, Miss> {
        let answer = |path: &str| self.answers.get(*self.paths.places.get(path)?);
        if let Some(answer) = answer(path) {
            return Ok(answer);
        }
        let any = self.paths.as_any_client(path);
        let found = any.as_deref().and_then(answer);
        found.ok_or_else(|| {
            let scope = &self.paths.scope;
            if scope.has(path) || any.is_some_and(|any| scope.has(&any)) {
                Miss::NotFound
            } else {
                Miss::NotFollowed
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
    pub fn with(&self, difference: Difference<T>) -> Self {
        let Difference {
            changed,
            removed,
            apart,
        } = difference;
        let places = &self.paths.places;
        let place_of = |(name, (rule_index, _)): (&Arc<str>, &(Option<u32>, _))| {
            let place = *places.get(name)?;
            let known = self.paths.names.get(place)?;
            (known.rule_index == *rule_index && known.name == *name).then_some(place)
        };
        let stays = removed.is_empty()
            && apart.is_none()
            && changed.iter().all(|one| place_of(one).is_some());
        if !stays {
            return self.rebuilt(changed, &removed, apart);
        }
        let mut answers = self.answers.clone();
        for (name, (_, answer)) in changed {
            if let Some(&place) = places.get(&name) {
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
        apart: Option<Vec<String>>,
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
            names.push(Name {
                name: Arc::clone(&name.name),
                rule_index,
            });
            answers.push(answer);
        }
        let mut new: Vec<_> = changed.into_iter().collect();
        new.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        for (name, (rule_index, answer)) in new {
            names.push(Name { name, rule_index });
            answers.push(answer);
        }
        let apart = apart.map(|roots| roots.into_iter().collect());
        let paths = Paths {
            scope: Arc::clone(&self.paths.scope),
            places: places(&names),
            names,
            apart: apart.unwrap_or_else(|| self.paths.apart.clone()),
        };
        Self {
            paths: Arc::new(paths),
            answers: Chunks::new(&answers),
        }
    }
}

impl Paths {
    /// A mesh path for a client that nothing sets apart, which is answered as that of `*`
    /// (SEMANTICS §1.3).
    fn as_any_client(&self, path: &str) -> Option<String> {
        let (client, below) = path.strip_prefix("mesh/")?.split_once('/')?;
        let mut steps = below.splitn(4, '/');
        let (_services, namespace, name) = (steps.next()?, steps.next()?, steps.next()?);
        let root = format!("mesh/{client}/services/{namespace}/{name}");
        (!self.apart.contains(&root)).then(|| format!("mesh/*/{below}"))
    }
}

impl Scope {
    /// Whether a path is among those that are followed, if it is one.
    fn has(&self, path: &str) -> bool {
        let covered = self.prefixes.is_empty() || self.prefixes.iter().any(|p| p.covers(path));
        let level = PathName::parse(path).map(|path| path.level());
        covered && (self.levels.is_empty() || level.is_ok_and(|l| self.levels.contains(&l)))
    }
}

/// Where names stand. A rule with a name is found by its index as well.
fn places(names: &[Name]) -> HashMap<Arc<str>, usize> {
    let mut places = HashMap::with_capacity(names.len());
    for (place, Name { name, rule_index }) in names.iter().enumerate() {
        places.insert(Arc::clone(name), place);
        let by_index = rule_index.and_then(|index| indexed(name, index));
        places.extend(by_index.map(|other| (other, place)));
    }
    places
}

/// A path's name, with the index of the rule in place of its name.
fn indexed(name: &str, index: u32) -> Option<Arc<str>> {
    let Ok(PathName::Walk(mut walk)) = PathName::parse(name) else {
        return None;
    };
    walk.rule = Some(RuleStep::Index(index));
    Some(walk.to_string().into())
}

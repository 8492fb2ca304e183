//! Regular expressions of Routes: tenants write them, so what they cost is bounded (specification 12.8).
//!
//! The expressions of one version of a Route are compiled together, in their order, when the first of them is needed,
//! and are shared by all listeners. Memory is bounded for each expression, each Route and in total. An expression over
//! the bound of its Route is not decided: it is not known whether it matches. The bound of the total never changes an
//! answer: expressions that were not used for long are dropped, and compiled again when they are needed.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use hashbrown::HashMap;
use regex_automata::meta::{BuildError, Config, Regex};

use crate::model::{ObjectKey, Str};

/// Maximum length of an expression in bytes, as in the CRDs of routes.
const MAX_TEXT: usize = 4_096;
/// Maximum size of a compiled expression in bytes.
const MAX_COMPILED: usize = 256 * 1024;
/// Maximum size of all compiled expressions of a Route in bytes.
const MAX_OF_ROUTE: usize = 4 * 1024 * 1024;
/// Maximum size of all compiled expressions in bytes.
const MAX_IN_ALL: usize = 64 * 1024 * 1024;
/// What searching keeps for an expression, on all threads.
const SEARCH_MEMORY: usize = 32 * 1024;

/// Whether a text meets a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Met,
    Unmet,
    /// It is not known: the expressions of the Route are too large.
    NotDecided,
}

/// Which conditions are evaluated, and with what.
pub(super) struct Evaluation<'c> {
    pub patterns: &'c PatternCache,
    /// Whether expressions are compiled. Otherwise those that are not compiled are not decided.
    pub may_compile: bool,
    /// Set if an expression was needed that is not compiled.
    pub was_missing: &'c std::cell::Cell<bool>,
}

/// The expressions of the Routes of a world and of earlier ones.
#[derive(Debug, Default)]
pub struct PatternCache {
    /// By Route: its versions that are in use.
    routes: Mutex<HashMap<ObjectKey, Vec<Weak<RoutePatterns>>>>,
    memory: Mutex<Memory>,
    counters: Counters,
}

/// The compiled expressions, from the one that was compiled first.
#[derive(Debug, Default)]
struct Memory {
    bytes: usize,
    compiled: VecDeque<(Weak<RoutePatterns>, usize)>,
}

#[derive(Debug, Default)]
struct Counters {
    compiled: AtomicU64,
    dropped: AtomicU64,
    not_decided: AtomicU64,
}

/// Counts of regular expressions since the start, and what those that are compiled use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PatternStats {
    /// How often the expressions of a Route were compiled.
    pub compiled: u64,
    /// How often compiled expressions were dropped because of the bound of the total.
    pub dropped: u64,
    /// How many expressions were not compiled because of the bound of their Route.
    pub not_decided: u64,
    /// The size of those that are compiled, in bytes.
    pub bytes: usize,
}

/// The expressions of one version of a Route.
#[derive(Debug, Default)]
pub(super) struct RoutePatterns {
    texts: Vec<Str>,
    compiled: RwLock<Option<Arc<[Compiled]>>>,
    /// Held while they are compiled, so that readers never wait for that.
    compiling: Mutex<()>,
    /// Whether they were used since the last time that memory was short.
    is_used: AtomicBool,
}

/// An expression of a Route.
#[derive(Debug)]
enum Compiled {
    Regex(Regex),
    /// It matches nothing.
    Invalid,
    TooLarge,
}

/// Collects the expressions of a Route while its matches are read.
#[derive(Debug, Default)]
pub(super) struct PatternCollector {
    texts: Vec<Str>,
    numbers: HashMap<Str, usize>,
}

/// The number of an expression among those of its Route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PatternNumber(usize);

impl PatternCollector {
    /// Adds an expression.
    pub fn add(&mut self, text: &str) -> PatternNumber {
        if let Some(&number) = self.numbers.get(text) {
            return PatternNumber(number);
        }
        let (number, text) = (self.texts.len(), Str::from(text));
        self.texts.push(text.clone());
        self.numbers.insert(text, number);
        PatternNumber(number)
    }
}

impl Evaluation<'_> {
    /// Whether an expression matches a whole text. Takes time linear in the length of the text.
    pub fn matches(&self, of: &Arc<RoutePatterns>, number: PatternNumber, text: &str) -> Verdict {
        let compiled = of.current().or_else(|| {
            self.was_missing.set(true);
            self.may_compile.then(|| self.patterns.compile(of))
        });
        let found = compiled.as_ref().and_then(|all| all.get(number.0));
        match found {
            Some(Compiled::Regex(regex)) if regex.is_match(text) => Verdict::Met,
            Some(Compiled::Regex(_) | Compiled::Invalid) => Verdict::Unmet,
            Some(Compiled::TooLarge) | None => Verdict::NotDecided,
        }
    }
}

impl PatternCache {
    /// The expressions of a Route, shared with the same ones of another listener or an earlier world.
    pub(super) fn of_route(
        &self,
        route: &ObjectKey,
        found: PatternCollector,
    ) -> Arc<RoutePatterns> {
        let PatternCollector { texts, .. } = found;
        if texts.is_empty() {
            return Arc::default();
        }
        let mut routes = lock(&self.routes);
        if !routes.contains_key(route) && routes.len() == routes.capacity() {
            // Before the map grows, Routes that are gone leave it.
            routes.retain(|_, versions| versions.iter().any(|version| version.strong_count() > 0));
        }
        let versions = routes.entry_ref(route).or_default();
        versions.retain(|version| version.strong_count() > 0);
        let mut existing = versions.iter().filter_map(Weak::upgrade);
        if let Some(existing) = existing.find(|existing| existing.texts == texts) {
            return existing;
        }
        let new = Arc::new(RoutePatterns {
            texts,
            ..RoutePatterns::default()
        });
        versions.push(Arc::downgrade(&new));
        new
    }

    /// Counts since the start.
    pub fn stats(&self) -> PatternStats {
        PatternStats {
            compiled: self.counters.compiled.load(Ordering::Relaxed),
            dropped: self.counters.dropped.load(Ordering::Relaxed),
            not_decided: self.counters.not_decided.load(Ordering::Relaxed),
            bytes: lock(&self.memory).bytes,
        }
    }

    /// Compiles the expressions of a Route, unless another thread did meanwhile.
    fn compile(&self, of: &Arc<RoutePatterns>) -> Arc<[Compiled]> {
        let _compiling = lock(&of.compiling);
        if let Some(compiled) = of.current() {
            return compiled;
        }
        let mut bytes = 0_usize;
        let compiled: Arc<[Compiled]> = of
            .texts
            .iter()
            .map(|text| compile(text, MAX_OF_ROUTE.saturating_sub(bytes), &mut bytes))
            .collect();
        of.replace(Some(Arc::clone(&compiled)));
        let too_large = compiled
            .iter()
            .filter(|one| matches!(one, Compiled::TooLarge));
        let too_large = u64::try_from(too_large.count()).unwrap_or(u64::MAX);
        self.counters
            .not_decided
            .fetch_add(too_large, Ordering::Relaxed);
        self.counters.compiled.fetch_add(1, Ordering::Relaxed);
        self.charge(of, bytes);
        compiled
    }

    /// Accounts for compiled expressions, and drops others until all are within the bound.
    fn charge(&self, of: &Arc<RoutePatterns>, bytes: usize) {
        let mut memory = lock(&self.memory);
        memory.bytes = memory.bytes.saturating_add(bytes);
        memory.compiled.push_back((Arc::downgrade(of), bytes));
        // Each is looked at twice at most: those that were used since the last time are spared once.
        let mut left = memory.compiled.len().saturating_mul(2);
        while left > 0 {
            left -= 1;
            let is_over = memory.bytes > MAX_IN_ALL;
            let Some((first, _)) = memory.compiled.front() else {
                break;
            };
            let first = first.upgrade();
            let is_gone = first.is_none();
            if !is_over && !is_gone {
                break;
            }
            let Some((entry, bytes)) = memory.compiled.pop_front() else {
                break;
            };
            let is_own = first.as_ref().is_some_and(|first| Arc::ptr_eq(first, of));
            let is_spared =
                |first: &Arc<RoutePatterns>| first.is_used.swap(false, Ordering::Relaxed);
            if is_own || first.as_ref().is_some_and(is_spared) {
                memory.compiled.push_back((entry, bytes));
                continue;
            }
            memory.bytes = memory.bytes.saturating_sub(bytes);
            if let Some(first) = first {
                first.replace(None);
                self.counters.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl RoutePatterns {
    /// The text of an expression.
    pub fn text(&self, number: PatternNumber) -> &str {
        self.texts.get(number.0).map_or("", |text| text)
    }

    /// Why an expression that was compiled does not match, in words; empty if it is as it should be, or was not
    /// compiled.
    pub fn note(&self, number: PatternNumber) -> &'static str {
        let compiled = self.current();
        match compiled.as_ref().and_then(|all| all.get(number.0)) {
            Some(Compiled::Invalid) => " (an invalid regular expression)",
            Some(Compiled::TooLarge) => {
                " (not evaluated: the regular expressions of the route are too large)"
            }
            Some(Compiled::Regex(_)) => "",
            None => " (not evaluated)",
        }
    }

    fn replace(&self, compiled: Option<Arc<[Compiled]>>) {
        *self
            .compiled
            .write()
            .unwrap_or_else(PoisonError::into_inner) = compiled;
    }

    fn current(&self) -> Option<Arc<[Compiled]>> {
        let compiled = self.compiled.read().unwrap_or_else(PoisonError::into_inner);
        let compiled = compiled.as_ref().map(Arc::clone)?;
        self.is_used.store(true, Ordering::Relaxed);
        Some(compiled)
    }
}

/// Compiles an expression that must match whole texts, if `room` is left for its Route, and adds what it uses.
fn compile(text: &str, room: usize, bytes: &mut usize) -> Compiled {
    let limit = room.min(MAX_COMPILED);
    if text.len() > MAX_TEXT || limit == 0 {
        return Compiled::TooLarge;
    }
    let config = Config::new()
        .nfa_size_limit(Some(limit))
        .onepass_size_limit(Some(SEARCH_MEMORY))
        .hybrid_cache_capacity(SEARCH_MEMORY);
    // Groups around the expression keep alternatives and flags inside.
    let whole = format!("^(?:{text})$");
    let built = Regex::builder().configure(config).build(&whole);
    match built {
        Ok(regex) => {
            *bytes = bytes
                .saturating_add(regex.memory_usage())
                .saturating_add(SEARCH_MEMORY);
            Compiled::Regex(regex)
        }
        Err(error) => {
            // A failed attempt costs work, and counts as what it may have used.
            *bytes = bytes.saturating_add(if error.size_limit().is_some() {
                limit
            } else {
                text.len()
            });
            refused(&error)
        }
    }
}

fn refused(error: &BuildError) -> Compiled {
    match error.size_limit() {
        Some(_) => Compiled::TooLarge,
        None => Compiled::Invalid,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn route(name: &str) -> ObjectKey {
        ObjectKey::new(crate::model::GroupKind::new("g", "R"), "ns", name)
    }

    fn patterns(cache: &PatternCache, name: &str, texts: &[&str]) -> Arc<RoutePatterns> {
        let mut collector = PatternCollector::default();
        for text in texts {
            collector.add(text);
        }
        cache.of_route(&route(name), collector)
    }

    fn verdict(
        cache: &PatternCache,
        of: &Arc<RoutePatterns>,
        number: usize,
        text: &str,
    ) -> Verdict {
        let evaluation = Evaluation {
            patterns: cache,
            may_compile: true,
            was_missing: &Cell::new(false),
        };
        evaluation.matches(of, PatternNumber(number), text)
    }

    #[test]
    fn whole_texts_match_and_what_is_invalid_matches_nothing() {
        let cache = PatternCache::default();
        let of = patterns(&cache, "r", &["/a[0-9]+", "(", "a|b"]);
        for (number, text, expected) in [
            (0, "/a12", Verdict::Met),
            (0, "/a12/", Verdict::Unmet),
            (1, "(", Verdict::Unmet),
            (2, "ab", Verdict::Unmet),
        ] {
            assert_eq!(
                verdict(&cache, &of, number, text),
                expected,
                "{number} {text}"
            );
        }
        assert_eq!(
            of.note(PatternNumber(1)),
            " (an invalid regular expression)"
        );
    }

    #[test]
    fn an_expression_over_the_bound_is_not_decided_and_the_others_of_its_route_are() {
        let cache = PatternCache::default();
        let long = "a".repeat(MAX_TEXT + 1);
        let of = patterns(&cache, "r", &["(a{1,200}){1,200}", "/b", &long]);
        assert_eq!(verdict(&cache, &of, 0, "a"), Verdict::NotDecided);
        assert_eq!(verdict(&cache, &of, 1, "/b"), Verdict::Met);
        assert_eq!(verdict(&cache, &of, 2, "a"), Verdict::NotDecided);
        assert_eq!(cache.stats().not_decided, 2);
        assert_eq!(cache.stats().compiled, 1);
    }

    #[test]
    fn a_route_has_so_much_memory_and_the_order_of_its_expressions_decides() {
        let cache = PatternCache::default();
        let texts: Vec<String> = (0..300)
            .map(|n| format!("/{n}/\\w{{{}}}", 1 + n % 8))
            .collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let of = patterns(&cache, "r", &texts);
        let path = |n: usize| format!("/{n}/{}", "x".repeat(1 + n % 8));
        assert_eq!(verdict(&cache, &of, 0, &path(0)), Verdict::Met);
        assert_eq!(verdict(&cache, &of, 299, &path(299)), Verdict::NotDecided);
        assert!(
            cache.stats().bytes <= MAX_OF_ROUTE + MAX_COMPILED,
            "{:?}",
            cache.stats()
        );
        // The neighbour has its own.
        let other = patterns(&cache, "other", &texts[299..]);
        assert_eq!(verdict(&cache, &other, 0, &path(299)), Verdict::Met);
    }

    #[test]
    fn expressions_are_compiled_once_for_all_listeners_and_only_where_that_is_allowed() {
        let cache = PatternCache::default();
        let (one, two) = (
            patterns(&cache, "r", &["/a"]),
            patterns(&cache, "r", &["/a"]),
        );
        assert!(Arc::ptr_eq(&one, &two));
        let was_missing = Cell::new(false);
        let fast = Evaluation {
            patterns: &cache,
            may_compile: false,
            was_missing: &was_missing,
        };
        assert_eq!(
            fast.matches(&one, PatternNumber(0), "/a"),
            Verdict::NotDecided
        );
        assert!(was_missing.get());
        assert_eq!(one.note(PatternNumber(0)), " (not evaluated)");
        assert_eq!(verdict(&cache, &one, 0, "/a"), Verdict::Met);
        assert_eq!(fast.matches(&two, PatternNumber(0), "/a"), Verdict::Met);
        assert_eq!(cache.stats().compiled, 1);
    }

    #[test]
    fn memory_in_all_is_bounded_and_never_changes_an_answer() {
        let cache = PatternCache::default();
        let texts: Vec<String> = (0..20).map(|n| format!("/{n}/\\w{{2}}")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let all: Vec<_> = (0..60)
            .map(|n| patterns(&cache, &format!("r{n}"), &texts))
            .collect();
        for of in all.iter().chain(&all) {
            assert_eq!(verdict(&cache, of, 0, "/0/ab"), Verdict::Met);
            assert!(cache.stats().bytes <= MAX_IN_ALL, "{:?}", cache.stats());
        }
        assert!(cache.stats().dropped > 0);
        // What is gone is given back.
        drop(all);
        let last = patterns(&cache, "last", &["/a"]);
        assert_eq!(verdict(&cache, &last, 0, "/a"), Verdict::Met);
        assert!(cache.stats().bytes <= MAX_IN_ALL, "{:?}", cache.stats());
    }
}

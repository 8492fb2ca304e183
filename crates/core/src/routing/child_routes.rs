//! Requests that child Routes take: the rules of child Routes take the place of the rule that delegates to them
//! (specification 1.8, 12.14).

use std::sync::Arc;

use hashbrown::HashMap;
use serde_json::{Map, Value, json};

use super::conditions::MatchConditions;
use super::dialect::Dialect;
use super::index::{DelegatedMatch, DelegatingRule, RouteMatch, RouteRef, TrafficKind};
use super::patterns::{PatternCache, PatternCollector, RoutePatterns};
use crate::model::ObjectKey;

/// The number of matches of child Routes below one rule. A rule with more is not followed.
const MAX_MATCHES: usize = 10_000;
/// The end of the annotation of a child Route whose matches are relative to those of its parent.
const INHERITS: &str = "/inherit-parent-matcher";

/// The routes of an index: those of the listener, and then the child Routes, each once.
pub(super) struct ChildKeys<'r, 's> {
    routes: Vec<&'r RouteRef<'s>>,
    numbers: HashMap<&'s ObjectKey, usize>,
    /// The regular expressions of each route, as far as its matches were read.
    patterns: HashMap<usize, PatternCollector>,
    /// The matches of rules of child Routes: each is put below all matches of the rules above it.
    matches: HashMap<(usize, usize), Arc<[Value]>>,
}

/// The matches of the child Routes of one rule.
struct Expansion<'k, 'r, 's> {
    keys: &'k mut ChildKeys<'r, 's>,
    dialect: &'static Dialect,
    matches: Vec<RouteMatch>,
    above: Vec<(usize, u32)>,
}

/// There are too many matches, or they cannot be put together.
struct NotDecided;

impl<'r, 's> ChildKeys<'r, 's> {
    /// Collects the routes of a listener with all child Routes.
    pub fn new(routes: &'r [RouteRef<'s>]) -> Self {
        let mut keys = Self {
            routes: routes.iter().collect(),
            numbers: HashMap::new(),
            patterns: HashMap::new(),
            matches: HashMap::new(),
        };
        let numbers = routes.iter().zip(0..);
        keys.numbers = numbers.map(|(route_ref, at)| (route_ref.key, at)).collect();
        let mut pending: Vec<&'r DelegatingRule<'s>> =
            routes.iter().flat_map(|route| &route.delegating).collect();
        while let Some(rule) = pending.pop() {
            for child in &rule.children {
                keys.number(child);
                pending.extend(&child.delegating);
            }
        }
        keys
    }

    /// All routes, those of the listener first.
    pub fn into_routes(self) -> Vec<&'r RouteRef<'s>> {
        self.routes
    }

    /// All routes, those of the listener first, with their regular expressions.
    pub fn into_patterns(
        mut self,
        cache: &PatternCache,
    ) -> impl Iterator<Item = (&'r RouteRef<'s>, Arc<RoutePatterns>)> {
        self.routes
            .into_iter()
            .enumerate()
            .map(move |(number, route_ref)| {
                let found = self.patterns.remove(&number).unwrap_or_default();
                (route_ref, cache.of_route(route_ref.key, found))
            })
    }

    /// The regular expressions of a route.
    pub fn patterns(&mut self, number: usize) -> &mut PatternCollector {
        self.patterns.entry(number).or_default()
    }

    /// The matches of a rule of a route.
    fn matches(&mut self, route_ref: &'r RouteRef<'s>, rule: usize) -> Arc<[Value]> {
        let number = self.number(route_ref);
        let found = self.matches.entry((number, rule));
        Arc::clone(found.or_insert_with(|| matches_of(route_ref, rule).into()))
    }

    fn number(&mut self, route_ref: &'r RouteRef<'s>) -> usize {
        let next = self.routes.len();
        let number = *self.numbers.entry(route_ref.key).or_insert(next);
        if number == next {
            self.routes.push(route_ref);
        }
        number
    }
}

/// Puts the matches of child Routes in the place of those of the rules that delegate to them.
pub(super) fn expand<'r, 's>(
    matches: &mut Vec<RouteMatch>,
    route_ref: &'r RouteRef<'s>,
    keys: &mut ChildKeys<'r, 's>,
    dialect: &'static Dialect,
) {
    for rule in &route_ref.delegating {
        let index = u32::try_from(rule.rule).unwrap_or(u32::MAX);
        let mut expansion = Expansion {
            dialect,
            matches: Vec::new(),
            above: vec![(keys.number(route_ref), index)],
            keys,
        };
        let own = matches_of(route_ref, rule.rule);
        let expanded = own
            .iter()
            .try_for_each(|own| expansion.add_children(rule, own));
        let found = expansion.matches;
        let is_own = |one: &RouteMatch| one.rule == index && one.delegated.is_none();
        match expanded {
            Ok(()) => {
                matches.retain(|one| !rule.only || !is_own(one));
                matches.extend(found);
            }
            Err(NotDecided) => {
                let own = matches.iter_mut().filter(|one| is_own(one));
                own.for_each(|one| one.is_undecided = true);
            }
        }
    }
}

impl<'r, 's> Expansion<'_, 'r, 's> {
    /// Adds the matches of the child Routes of a rule, below one of its matches.
    fn add_children(
        &mut self,
        rule: &'r DelegatingRule<'s>,
        parent: &Value,
    ) -> Result<(), NotDecided> {
        if !rule.is_bounded {
            return Err(NotDecided);
        }
        for child in &rule.children {
            for index in 0..child.route.rules.len() {
                for (at, own) in (0..).zip(&*self.keys.matches(child, index)) {
                    if let Some(merged) = merged(child, parent, own)? {
                        self.add(child, index, at, &merged)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds a match of a child Route, or those of its own child Routes.
    fn add(
        &mut self,
        child: &'r RouteRef<'s>,
        rule: usize,
        at: u32,
        merged: &Value,
    ) -> Result<(), NotDecided> {
        let route = self.keys.number(child);
        let index = u32::try_from(rule).unwrap_or(u32::MAX);
        let mut delegating = child.delegating.iter();
        let delegating = delegating.find(|delegating| delegating.rule == rule);
        if delegating.is_none_or(|delegating| !delegating.only) {
            if self.matches.len() >= MAX_MATCHES {
                return Err(NotDecided);
            }
            self.matches.push(RouteMatch {
                route,
                rule: index,
                at: Some(at),
                delegated: Some(Arc::new(DelegatedMatch {
                    above: self.above.clone(),
                    number: u32::try_from(self.matches.len()).unwrap_or(u32::MAX),
                })),
                is_undecided: false,
                family: TrafficKind::Http,
                conditions: Arc::new(MatchConditions::http(
                    merged,
                    self.dialect,
                    self.keys.patterns(route),
                )),
            });
        }
        if let Some(delegating) = delegating {
            self.above.push((route, index));
            let added = self.add_children(delegating, merged);
            self.above.pop();
            added?;
        }
        Ok(())
    }
}

/// The matches of a rule; without any, one without conditions.
fn matches_of(route_ref: &RouteRef<'_>, rule: usize) -> Vec<Value> {
    let pointer = format!("/spec/rules/{rule}/matches");
    match route_ref.object.body.pointer(&pointer) {
        Some(Value::Array(list)) if !list.is_empty() => list,
        _ => vec![Value::Null],
    }
}

/// Reports whether an annotation of a Route says how it matches.
pub(crate) fn reads_annotation(name: &str) -> bool {
    name.starts_with("delegation.") && name.ends_with(INHERITS)
}

/// The match of a child Route below a match of its parent: its own, if it is within that of the parent, or one that
/// adds to it. `None` if no request takes it.
fn merged(child: &RouteRef<'_>, parent: &Value, own: &Value) -> Result<Option<Value>, NotDecided> {
    let mut annotations = child.object.annotations.iter();
    let inherits = annotations.any(|(name, value)| {
        let is_set = ["true", "yes", "enabled"].contains(&value.to_lowercase().as_str());
        reads_annotation(name) && is_set
    });
    if inherits {
        return join(parent, own).map(Some);
    }
    Ok(is_within(parent, own).then(|| own.clone()))
}

/// The type and the value of the path of a match.
fn path_of(of: &Value) -> (&str, &str) {
    let part = |name: &str| {
        let text = of.get("path").and_then(|path| path.get(name)?.as_str());
        text.filter(|text| !text.is_empty())
    };
    (
        part("type").unwrap_or("PathPrefix"),
        part("value").unwrap_or("/"),
    )
}

fn conditions<'v>(of: &'v Value, field: &str) -> &'v [Value] {
    let list = of.get(field).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

/// Name, type and value of a condition.
fn condition(of: &Value) -> [Option<&str>; 3] {
    let part = |name: &str| of.get(name).and_then(Value::as_str);
    [part("name"), part("type").or(Some("Exact")), part("value")]
}

/// Whether each request of a match is one of the parent's match, as controllers compare them: by the text of the path,
/// and by equal conditions.
fn is_within(parent: &Value, own: &Value) -> bool {
    let (parent_type, parent_path) = path_of(parent);
    let has_all = |field: &str| {
        let mut of_parent = conditions(parent, field).iter();
        of_parent.all(|one| {
            let mut own = conditions(own, field).iter();
            own.any(|other| condition(other) == condition(one))
        })
    };
    let method = |of: &Value| of.get("method").cloned().filter(|method| !method.is_null());
    parent_type == "PathPrefix"
        && path_of(own).1.starts_with(parent_path)
        && has_all("headers")
        && has_all("queryParams")
        && method(parent).is_none_or(|required| method(own) == Some(required))
}

/// The match of a child Route that is relative to that of its parent: the paths one after the other, and the conditions
/// of both, of which those of the parent take precedence.
fn join(parent: &Value, own: &Value) -> Result<Value, NotDecided> {
    let (parent_type, parent_path) = path_of(parent);
    let (own_type, own_path) = path_of(own);
    if parent_type == "RegularExpression" || own_type == "RegularExpression" {
        return Err(NotDecided);
    }
    let parts = parent_path.split('/').chain(own_path.split('/'));
    let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    let mut joined = Map::new();
    let path = json!({"type": own_type, "value": format!("/{}", parts.join("/"))});
    joined.insert("path".to_owned(), path);
    for field in ["headers", "queryParams"] {
        let of_parent = conditions(parent, field);
        let is_new = |one: &&Value| {
            let mut of_parent = of_parent.iter();
            !of_parent.any(|existing| existing.get("name") == one.get("name"))
        };
        let added = conditions(own, field).iter().filter(is_new);
        let all: Vec<Value> = of_parent.iter().chain(added).cloned().collect();
        joined.insert(field.to_owned(), Value::Array(all));
    }
    let method = [parent, own]
        .into_iter()
        .find_map(|of| of.get("method").filter(|m| !m.is_null()));
    joined.extend(method.map(|method| ("method".to_owned(), method.clone())));
    Ok(Value::Object(joined))
}

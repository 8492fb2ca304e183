//! Warnings about values, policies and paths that are lost.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::text::{count, line, longest, short};
use super::{ChangedObject, NameScope};
use crate::api::v1;
use crate::insight::abridged;
use crate::snapshot::Snapshot;
use entail_core::model::{PathName, Root};

/// Maximum number of units, policies or places that a warning names.
const MAX_NAMED: usize = 3;

/// Policies of a kind that lose values on some paths, and what has them then.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LossKey {
    kind: String,
    /// The policies that set the values before; without one, fields of objects did.
    from: Vec<(String, String)>,
    /// What sets the values after the change.
    to: Successor,
}

/// What sets a value that a policy has lost.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Successor {
    Nothing,
    /// The changed object.
    Changed,
    /// Other policies; without one, fields of objects.
    Others(Vec<(String, String)>),
}

/// What is lost on which paths.
#[derive(Debug, Default)]
struct Loss {
    units: BTreeSet<String>,
    paths: BTreeSet<String>,
}

/// The policies of the changed object.
struct OwnPolicies<'a> {
    object: ChangedObject<'a>,
    /// The kinds of policies that the object is read as.
    kinds: BTreeSet<String>,
}

/// Returns the warnings about what a change takes away, what most paths lose first.
pub(super) fn of(
    snapshot: &Snapshot,
    object: ChangedObject<'_>,
    differences: &v1::PreviewChangeResponse,
) -> Vec<String> {
    let own = OwnPolicies::of(snapshot, object);
    let mut losses: BTreeMap<LossKey, Loss> = BTreeMap::new();
    let mut rejections: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for change in &differences.changes {
        for unit in &change.units {
            if let Some(key) = own.loss(&change.kind, unit) {
                let loss = losses.entry(key).or_default();
                loss.units.insert(unit.unit.clone());
                loss.paths.extend(change.paths.iter().cloned());
            }
        }
        for rejected in &change.newly_rejected {
            let Some(policy) = &rejected.policy else {
                continue;
            };
            if !own.is(&change.kind, policy) {
                let name = policy_name(object.names, &change.kind, &key_of(policy));
                let paths = rejections.entry((name, rejected.reason.clone()));
                paths.or_default().extend(change.paths.iter().cloned());
            }
        }
    }
    let at_least = differences.truncated;
    let mut found: Vec<(usize, String)> = Vec::new();
    for (key, loss) in &losses {
        found.push((loss.paths.len(), loss_text(&own, key, loss, at_least)));
    }
    for ((policy, reason), paths) in &rejections {
        let head = format!("{} keeps {policy} out ({reason})", object.subject());
        found.push((
            paths.len(),
            with_paths(object.names, &head, "on", (paths, at_least)),
        ));
    }
    found.sort_by(|a, b| (Reverse(a.0), &a.1).cmp(&(Reverse(b.0), &b.1)));
    let mut found: Vec<String> = found.into_iter().map(|(_, text)| text).collect();
    let removed: BTreeSet<String> = differences.paths_removed.iter().cloned().collect();
    if !removed.is_empty() {
        let head = format!("{} removes", object.subject());
        found.push(with_paths(object.names, &head, "", (&removed, at_least)));
    }
    found
}

impl<'a> OwnPolicies<'a> {
    fn of(snapshot: &Snapshot, object: ChangedObject<'a>) -> Self {
        let profiles = snapshot.world().kinds().iter().map(|kind| kind.profile());
        let kinds = profiles.filter(|profile| *profile.resource() == object.key.kind);
        Self {
            object,
            kinds: kinds.map(|profile| profile.policy.to_string()).collect(),
        }
    }

    /// Whether a policy is the changed object.
    fn is(&self, kind: &str, policy: &v1::PolicyRef) -> bool {
        let key = self.object.key;
        self.kinds.contains(kind)
            && *key.namespace == *policy.namespace
            && *key.name == *policy.name
    }

    /// Whether the changed object alone loses something.
    fn is_alone_in(&self, key: &LossKey) -> bool {
        let own = self.object.key;
        self.kinds.contains(&key.kind)
            && matches!(&*key.from, [(namespace, name)] if **namespace == *own.namespace && **name == *own.name)
    }

    /// The loss in a change of a unit; `None` if nothing is lost. What the changed object sets otherwise than before is no
    /// loss.
    fn loss(&self, kind: &str, unit: &v1::ChangedUnit) -> Option<LossKey> {
        unit.before_json.as_ref()?;
        let (before, after) = (unit.before_origin.as_ref()?, unit.after_origin.as_ref());
        let policies = |origin: &v1::Origin| -> Vec<(String, String)> {
            origin.policies.iter().map(key_of).collect()
        };
        let from = policies(before);
        let is_lost = unit.after_json.is_none();
        let Some(after) = after.filter(|_| !is_lost) else {
            return Some(LossKey {
                kind: kind.to_owned(),
                from,
                to: Successor::Nothing,
            });
        };
        let to = policies(after);
        let mut losers: Vec<(String, String)> = from
            .into_iter()
            .zip(&before.policies)
            .filter(|(key, policy)| !to.contains(key) && !self.is(kind, policy))
            .map(|(key, _)| key)
            .collect();
        let is_of_fields = before.policies.is_empty() && !after.policies.is_empty();
        if losers.is_empty() && !is_of_fields {
            return None;
        }
        losers.sort();
        let winner = after.policies.iter().find(|policy| self.is(kind, policy));
        Some(LossKey {
            kind: kind.to_owned(),
            from: losers,
            to: match winner {
                Some(_) => Successor::Changed,
                None => Successor::Others(to),
            },
        })
    }
}

fn key_of(policy: &v1::PolicyRef) -> (String, String) {
    (policy.namespace.clone(), policy.name.clone())
}

/// The warning about a loss.
fn loss_text(own: &OwnPolicies<'_>, key: &LossKey, loss: &Loss, at_least: bool) -> String {
    let object = own.object;
    let subject = object.subject();
    let units: Vec<String> = loss
        .units
        .iter()
        .map(|unit| format!("\"{unit}\""))
        .collect();
    let units = abridged(&units, MAX_NAMED);
    let from = match own.is_alone_in(key) {
        true => String::new(),
        false => format!(" of {}", policies_text(object.names, &key.kind, &key.from)),
    };
    let (head, preposition) = match &key.to {
        Successor::Nothing => (format!("{subject} removes {units}{from}"), "from"),
        Successor::Changed => (format!("{subject} overrides {units}{from}"), "on"),
        Successor::Others(to) => {
            let to = policies_text(object.names, &key.kind, to);
            (format!("{subject} lets {to} override {units}{from}"), "on")
        }
    };
    with_paths(object.names, &head, preposition, (&loss.paths, at_least))
}

/// The names of policies; fields of objects if there are none.
fn policies_text(names: &NameScope, kind: &str, policies: &[(String, String)]) -> String {
    if policies.is_empty() {
        return "fields of objects".to_owned();
    }
    let (shown, hidden): (Vec<_>, Vec<_>) = policies
        .iter()
        .partition(|(namespace, _)| names.includes_policy(namespace));
    let mut parts: Vec<String> = shown
        .into_iter()
        .map(|policy| policy_name(names, kind, policy))
        .collect();
    parts.truncate(MAX_NAMED);
    let others = policies.len() - parts.len();
    match (others, parts.is_empty()) {
        (0, _) => {}
        (1, true) => parts.push(another_text(kind)),
        (_, true) => parts.push(format!(
            "{others} {} in other namespaces",
            plural(short(kind))
        )),
        (_, false) if hidden.is_empty() => parts.push(format!("{others} more")),
        (_, false) => parts.push(format!("{others} others")),
    }
    parts.join(" and ")
}

/// The name of a policy, if it may be named.
fn policy_name(names: &NameScope, kind: &str, (namespace, name): &(String, String)) -> String {
    match names.includes_policy(namespace) {
        true if namespace.is_empty() => format!("{}/{name}", short(kind)),
        true => format!("{}/{namespace}/{name}", short(kind)),
        false => another_text(kind),
    }
}

/// A sentence with the number of paths and, as far as they fit, the routes or roots that these go through.
fn with_paths(
    names: &NameScope,
    head: &str,
    preposition: &str,
    (paths, at_least): (&BTreeSet<String>, bool),
) -> String {
    let at_least = if at_least { "at least " } else { "" };
    let space = if preposition.is_empty() { "" } else { " " };
    let number = count(paths.len(), "path");
    let sentence = format!("{head} {preposition}{space}{at_least}{number}");
    let places = Places::of(names, paths);
    let texts = (0..=MAX_NAMED).rev().map(|most| places.text(most));
    let texts = texts.map(|places| format!("{sentence} ({places})"));
    match places.is_empty() {
        true => line(&sentence),
        false => longest(texts),
    }
}

/// The routes that paths go through, and the roots of those without one.
#[derive(Debug, Default)]
struct Places {
    routes: BTreeSet<String>,
    roots: BTreeSet<String>,
    hidden: BTreeSet<String>,
    hidden_roots: BTreeSet<String>,
}

impl Places {
    fn of(names: &NameScope, paths: &BTreeSet<String>) -> Self {
        let mut places = Self::default();
        for path in paths {
            let Ok(PathName::Traffic(path)) = PathName::parse(path) else {
                continue;
            };
            let (is_route, kind, namespace, name) = match (path.route, path.root) {
                (Some(route), _) => (true, route.kind, route.namespace, route.name),
                (None, Root::Gateway { namespace, name }) => (false, "Gateway", namespace, name),
                (
                    None,
                    Root::Mesh {
                        namespace, name, ..
                    },
                ) => (false, "Service", namespace, name),
            };
            let text = format!("{}/{namespace}/{name}", short(kind));
            let set = match (names.includes(kind, namespace, name), is_route) {
                (true, true) => &mut places.routes,
                (true, false) => &mut places.roots,
                (false, true) => &mut places.hidden,
                (false, false) => &mut places.hidden_roots,
            };
            set.insert(text);
        }
        // A path through a route is the better name of what ends above it, too.
        if !(places.routes.is_empty() && places.hidden.is_empty()) {
            places.roots.clear();
            places.hidden_roots.clear();
        }
        places
    }

    fn is_empty(&self) -> bool {
        let sets = [&self.routes, &self.roots, &self.hidden, &self.hidden_roots];
        sets.iter().all(|set| set.is_empty())
    }

    /// `3 routes: HTTPRoute/baker/bread, HTTPRoute/baker/cakes and 1 in other namespaces`, with the names of at most as
    /// many.
    fn text(&self, most: usize) -> String {
        let routes = (&self.routes, &self.hidden, "route");
        let roots = (&self.roots, &self.hidden_roots, "root");
        let sets = [routes, roots].into_iter();
        let sets = sets.filter(|(named, hidden, _)| named.len() + hidden.len() > 0);
        let texts: Vec<String> = sets
            .map(|(named, hidden, noun)| {
                let all = count(named.len() + hidden.len(), noun);
                match (named.len(), hidden.len()) {
                    (0, _) => format!("{all} in other namespaces"),
                    (_, hidden) => format!("{all}{}", names_text(named, hidden, most)),
                }
            })
            .collect();
        texts.join(", ")
    }
}

/// The first names of a set, and how many others there are: of the set, and hidden ones.
fn names_text(named: &BTreeSet<String>, hidden: usize, most: usize) -> String {
    let mut parts: Vec<String> = named.iter().take(most).cloned().collect();
    let more = named.len() - parts.len();
    if more > 0 && most > 0 {
        parts.push(format!("{more} more"));
    }
    if hidden > 0 {
        parts.push(format!("{hidden} in other namespaces"));
    }
    match parts.pop() {
        None => String::new(),
        Some(last) if parts.is_empty() => format!(": {last}"),
        Some(last) => format!(": {} and {last}", parts.join(", ")),
    }
}

/// A policy that may not be named.
fn another_text(kind: &str) -> String {
    let kind = short(kind);
    let article = match kind.starts_with(['A', 'E', 'I', 'O', 'U']) {
        true => "an",
        false => "a",
    };
    format!("{article} {kind} in another namespace")
}

fn plural(kind: &str) -> String {
    match kind.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{kind}s"),
    }
}

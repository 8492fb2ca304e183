//! Which policies stand where on a path (specification 1.2, 2.4, 2.6, 4.1, 4.3), read from the path's name and
//! the objects alone. Which paths there are is not asked here.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::delegation::{Delegating, Way, children, concerns, delegating, ends_above};
use super::fold::{Node, conflicted};
use super::leaf::{Leaf, Path, dotted, flatten};
use super::limits::{Limit, limited};
use super::objects::{Objects, at};
use super::policy::Policy;
use super::refused::{forbids, merge_target, refused};
use super::schema::Shape;
use super::settings::{Class, SameTarget, Settings};
use super::targets::{Outcome, Place, References, references};
use super::trail::{Step, Trail, trail};
use super::waypoints::{Waypoint, waypoint};

const LEVELS: [&str; 9] = [
    // A Namespace by itself stands above everything that has a level of its own.
    "Namespace",
    "GatewayClass",
    "Gateway",
    "ListenerSet",
    "Listener",
    "Route",
    "RouteRule",
    "Backend",
    "BackendPort",
];

/// A policy with what its references come to.
#[derive(Clone, Debug)]
pub struct Attached {
    pub policy: Policy,
    pub references: References,
    /// The reason of its own controller, if the kind trusts that (`trustStatus`).
    pub distrusted: Option<String>,
}

/// What the documents know about controllers (2.6).
#[derive(Clone, Debug, Default)]
pub struct KnownControllers {
    /// The entries of `controllers` of all loaded profiles.
    pub listed: Vec<String>,
    /// Each controllerName of a ControllerAlias, with what that names: an API group or a controllerName.
    pub aliases: Vec<(String, String)>,
    /// The API group and the entries of `controllers` of each kind that follows delegation (1.8).
    pub delegating: Vec<(String, Vec<String>)>,
}

impl KnownControllers {
    /// What a controllerName is: itself, or what aliases name instead (2.6).
    pub fn names(&self, name: Option<&str>) -> Vec<String> {
        let aliases = self
            .aliases
            .iter()
            .filter(|(alias, _)| Some(alias.as_str()) == name);
        let aliases: Vec<String> = aliases.map(|(_, profiles)| profiles.clone()).collect();
        match aliases.is_empty() {
            true => name.into_iter().map(str::to_owned).collect(),
            false => aliases,
        }
    }
}

/// A kind with its policies, placed.
pub struct AttachedKind<'w> {
    pub kind: Settings,
    pub policies: Vec<Attached>,
    pub objects: &'w Objects,
    known: &'w KnownControllers,
    /// The policies accepted at each place, the established one first.
    at: BTreeMap<Place, Vec<Policy>>,
    /// Policies that are attached and not accepted, with the reason (9.4).
    rejected: BTreeMap<Place, Vec<(String, String)>>,
    /// The listeners of each port that several share, if policies on them conflict (7.6).
    ports: Vec<Vec<String>>,
    /// Listeners that a policy keeps others out of, though it is rejected itself (7.6).
    pub closed: BTreeSet<String>,
}

/// The path as one kind sees it.
pub struct PathView {
    /// From the least specific.
    pub nodes: Vec<Node>,
    /// Their keys from the root down: another order where policies of Routes that delegate precede (1.8).
    pub downwards: Vec<String>,
    pub own: Vec<Leaf>,
    /// Where fields of the object take the place of values, with the object.
    pub replacements: Vec<(Path, String)>,
    /// The look-up is above the effective level.
    pub inherited_only: bool,
    /// The kind acts on the path (specification 2.4).
    pub acts: bool,
    /// Nobody knows whether the kind acts there (specification 2.6), or with which child Routes (1.8).
    pub unknown: bool,
    /// It is a scope: a path that ends at the effective level.
    pub scope: bool,
    /// Those that are attached and not accepted (9.4).
    pub rejected: BTreeMap<String, String>,
    /// Those among them that are refused for what they are merged to (2.13).
    pub refused: BTreeSet<String>,
    /// Those that filters of backendRefs of its rules name (2.8).
    pub of_backends: BTreeSet<String>,
    /// The Gateway or mesh root of the path.
    pub root: Option<String>,
    places: BTreeSet<Place>,
    /// Places where policies may count, and limits leave something of them (2.10).
    open: BTreeSet<Place>,
    /// The rule on the path delegates, and the controller is known (1.8).
    pub delegates: bool,
    /// Places of child Routes.
    children: BTreeSet<Place>,
}

fn rank(level: &str) -> usize {
    LEVELS.iter().position(|l| *l == level).unwrap()
}

/// Whether a kind in keys, `Kind` or `Kind.group`, has a name.
pub fn fits_kind(name: &str, key: &str) -> bool {
    key.split('.').next() == Some(name)
}

/// Whether a controllerName fits an entry, in which `*` stands for any characters (2.6).
pub fn fits_controller(entry: &str, name: &str) -> bool {
    let mut parts = entry.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

impl<'w> AttachedKind<'w> {
    /// Places the policies of a kind.
    pub fn new(kind: Settings, objects: &'w Objects, known: &'w KnownControllers) -> Self {
        let ours = objects
            .all()
            .filter(|o| o.group == kind.group && o.kind == kind.kind && kind.reads(&o.body));
        let mut policies: Vec<Attached> = ours
            .map(|found| {
                let references = references(&kind, objects, found);
                let mut policy = Policy::read(&kind, objects, found, None);
                policy.invalid |= references.malformed;
                Attached {
                    distrusted: distrusted(&kind, &found.body),
                    policy,
                    references,
                }
            })
            .collect();
        policies.sort_by(|a, b| a.policy.age.cmp(&b.policy.age));
        let mut placed = Self {
            kind,
            policies,
            objects,
            known,
            at: BTreeMap::new(),
            rejected: BTreeMap::new(),
            ports: Vec::new(),
            closed: BTreeSet::new(),
        };
        placed.attach();
        placed.accept();
        if placed.kind.by_port {
            placed.ports = objects.shared_ports();
            placed.accept_by_port();
        }
        placed.report_missing();
        placed
    }

    fn attach(&mut self) {
        for attached in &self.policies {
            let invalid = attached.policy.invalid;
            for place in attached.references.places() {
                let reason = match &attached.distrusted {
                    _ if attached.references.by_workload => continue,
                    _ if invalid => Some("Invalid".to_owned()),
                    reason => reason.clone(),
                };
                match reason {
                    Some(reason) => {
                        let rejected = self.rejected.entry(place).or_default();
                        rejected.push((attached.policy.name.clone(), reason));
                    }
                    None => {
                        let policy = self.as_attached_to(attached, &place);
                        self.at.entry(place).or_default().push(policy);
                    }
                }
            }
        }
    }

    /// An annotation of the target may choose the strategy (5.3).
    fn as_attached_to(&self, attached: &Attached, place: &Place) -> Policy {
        let Some(annotation) = &self.kind.annotation else {
            return attached.policy.clone();
        };
        let object = place.node.split('#').next().unwrap_or_default();
        let found = self.objects.get(object);
        let choice = found.and_then(|found| found.annotation(annotation));
        let policy = self.policy_object(&attached.policy);
        Policy::read(&self.kind, self.objects, policy, choice)
    }

    fn policy_object(&self, policy: &Policy) -> &super::objects::Found {
        let kind = &self.kind;
        let name = policy.name.rsplit('/').next().unwrap_or_default();
        let key = super::objects::key(&kind.group, &kind.kind, &policy.namespace, name);
        self.objects.get(&key).unwrap()
    }

    /// Specification 4.3, 4.7, 7.1.
    fn accept(&mut self) {
        let same_target = match (self.kind.class, self.kind.same_target) {
            (_, SameTarget::RejectAll) => SameTarget::RejectAll,
            (Class::Direct, _) => SameTarget::RejectNewer,
            (_, same_target) => same_target,
        };
        let nodes: Vec<_> = self.at.values().cloned().collect();
        let overlapping = match same_target {
            SameTarget::UnionOrReject => conflicted(&self.kind, &nodes),
            _ => BTreeSet::new(),
        };
        for (place, here) in &mut self.at {
            let mut kept = Vec::new();
            let all = same_target == SameTarget::RejectAll && here.len() > 1;
            for policy in std::mem::take(here) {
                let lost = all
                    || overlapping.contains(&policy.name)
                    || (same_target == SameTarget::RejectNewer && !kept.is_empty());
                if lost {
                    let rejected = self.rejected.entry(place.clone()).or_default();
                    rejected.push((policy.name, "Conflicted".to_owned()));
                } else {
                    kept.push(policy);
                }
            }
            *here = kept;
        }
    }

    /// Specification 5.7: those that reference missing objects are rejected, and hold their places all the same.
    fn report_missing(&mut self) {
        for (place, here) in &self.at {
            for policy in here {
                let reason = policy.missing.iter();
                let rejected = self.rejected.entry(place.clone()).or_default();
                rejected.extend(reason.map(|reason| (policy.name.clone(), reason.clone())));
            }
        }
    }

    /// Specification 7.6: nobody is accepted on one of several listeners of a port, and still keeps others out.
    fn accept_by_port(&mut self) {
        // Where all refuse each other it is as if none were attached (4.7).
        for (place, here) in self.at.iter_mut().filter(|(_, here)| !here.is_empty()) {
            let port = self.ports.iter().find(|nodes| nodes.contains(&place.node));
            let Some(port) = port else { continue };
            if !place.weak {
                self.closed.insert(place.node.clone());
                // The first listener of a port configures it.
                if port[0] == place.node {
                    self.closed.extend(port.iter().cloned());
                }
            }
            for policy in std::mem::take(here) {
                let rejected = self.rejected.entry(place.clone()).or_default();
                rejected.push((policy.name, "Conflicted".to_owned()));
            }
        }
    }

    /// The level that does not count on a path to this step (7.5, 7.6).
    fn dropped(&self, step: &Step) -> Option<&'static str> {
        let object = step.node.split('#').next().unwrap_or_default();
        let port = self.ports.iter().find(|nodes| nodes.contains(&step.node));
        let outside = |node: &String| node.split('#').next() != Some(object);
        match step.level {
            "ListenerSet" if !self.kind.from_gateway => Some("Gateway"),
            "Listener" if port.is_some_and(|nodes| nodes.iter().any(outside)) => {
                Some("ListenerSet")
            }
            _ => None,
        }
    }

    /// The waypoint of a Service (2.12).
    pub fn waypoint(&self, service: &str) -> Waypoint {
        waypoint(&self.kind, self.objects, self.known, service)
    }

    /// The nodes with an accepted policy of which something is true, before annotations of the node choose its strategy.
    pub fn nodes_with(&self, is_so: impl Fn(&Policy, &serde_json::Value) -> bool) -> Vec<String> {
        let mut found = Vec::new();
        for attached in &self.policies {
            let policy = &attached.policy;
            if is_so(policy, &self.policy_object(policy).body) {
                found.extend(self.held(&policy.name).into_iter().map(|place| place.node));
            }
        }
        found
    }

    /// The places that a policy holds.
    pub fn held(&self, policy: &str) -> BTreeSet<Place> {
        let held = self
            .at
            .iter()
            .filter(|(_, here)| here.iter().any(|p| p.name == policy));
        held.map(|(place, _)| place.clone()).collect()
    }

    /// The Accepted condition of a policy: its status and reason (specification 3.3, 10).
    pub fn accepted(&self, attached: &Attached) -> (&'static str, String) {
        let no = |reason: &str| ("False", reason.to_owned());
        if attached.policy.invalid {
            return no("Invalid");
        }
        if attached.references.by_workload {
            return ("Unknown", "SelectorNotEvaluated".to_owned());
        }
        if !self.held(&attached.policy.name).is_empty() {
            return match &attached.policy.missing {
                Some(reason) => no(reason),
                None => ("True", "Accepted".to_owned()),
            };
        }
        // A policy that has no reference left reports the outcome of its first.
        let first = attached.references.outcomes.first();
        let first = first.map(|(_, outcome)| outcome);
        match (first, &attached.distrusted) {
            (Some(Outcome::Found(_)), Some(reason)) => no(reason),
            (Some(Outcome::Found(_)), None) => no("Conflicted"),
            (Some(Outcome::Invalid), _) => no("Invalid"),
            (Some(Outcome::RefNotPermitted), _) => no("RefNotPermitted"),
            (Some(Outcome::TargetNotFound) | None, _) => no("TargetNotFound"),
            (Some(Outcome::NotEvaluated(_)), _) => {
                ("Unknown", "BackendFilterNotEvaluated".to_owned())
            }
        }
    }

    /// Whether no target of a policy that has places can have its own rules (2.13).
    pub fn refused_on_targets(&self, policy: &Policy) -> bool {
        self.held(&policy.name).iter().all(|place| {
            let object = place.node.split('/').next().unwrap_or_default();
            merge_target(&self.kind, object).is_some_and(|target| {
                let mut blocks = policy.blocks.iter();
                blocks.any(|block| forbids(target, &block.rules))
            })
        })
    }

    /// The policies that are rejected at places, and those that are refused after a merge, with the reason. Of
    /// several reasons the last one counts.
    fn rejections<'p>(
        &self,
        places: impl Iterator<Item = &'p (Place, String)>,
        refused: &BTreeSet<String>,
    ) -> BTreeMap<String, String> {
        let rejected = places.filter_map(|(place, _)| self.rejected.get(place));
        let by_merge = refused.iter().map(|n| (n.clone(), "Invalid".to_owned()));
        let all = rejected.flatten().cloned().chain(by_merge);
        BTreeSet::from_iter(all).into_iter().collect()
    }

    /// What stands on a path.
    pub fn scene(&self, path: &str) -> PathView {
        let mut all = trail(self.objects, path);
        let root = all.root();
        all.put_behind(&self.kind, self.objects, self.known);
        let delegating = self.delegating(&all);
        let ends_above = ends_above(&delegating, &all);
        let (steps, full) = self.to_effective_level(&all, path, ends_above);
        let above = path.starts_with("gatewayclasses/") || path.starts_with("namespaces/");
        let namespace = path.starts_with("namespaces/");
        let wide = matches!(self.kind.effective.as_deref(), None | Some("GatewayClass"))
            && (self.kind.controllers.is_empty() || !namespace);
        let ends = full && steps.len() == all.steps.len();
        let places = self.places(&steps, &all);
        let limits = self.kind.limits.iter();
        let holding: Vec<&Limit> = limits
            .filter(|limit| limit.holds((self.objects, self.known), &steps, &all))
            .collect();
        let closed = closed_places(&holding, &places);
        let open = open_places(&places, &closed, &all);
        let children = self.places_of_children(&all, &delegating);
        let (serves, by_controller) = self.acts(&all, namespace, &open);
        let delegates = children.is_some() && serves;
        let dropped: Vec<&str> = steps.iter().filter_map(|s| self.dropped(s)).collect();
        let counts = |level: &String| {
            !is_barred(&all, level) && (!serves || !dropped.contains(&level.as_str()))
        };
        let open_at = |(place, level): &(Place, String)| counts(level) && !closed.contains(place);
        let (mut nodes, refused) = self.nodes(&places, &holding, &open_at);
        nodes.sort_by_key(|node| !node.weak);
        let downwards = nodes.iter().map(|node| node.key.clone()).collect();
        self.put_preferred_last(&delegating, &mut nodes);
        let answering = self.answering(&places);
        let told = |(place, level): &&(Place, String)| answering.contains(place) && counts(level);
        let rejected = self.rejections(open.iter().filter(told), &refused);
        let hidden: Vec<(Place, String)> = children.into_iter().flatten().collect();
        let mut seen = open.clone();
        seen.retain(|at| !delegates || told(&at));
        let acts = serves && !delegates;
        let unknown = match delegates {
            true => self.has_attached(&seen) || self.has_attached(&hidden),
            false => by_controller || (!serves && self.acts(&all, namespace, &hidden).1),
        };
        let inherited_only = if above { !wide } else { !full };
        PathView {
            rejected: only_if(acts && !inherited_only, rejected),
            refused: only_if(acts, refused),
            of_backends: only_if(acts && !unknown, self.of_backends(&open)),
            acts,
            unknown,
            own: own_fields(&self.kind, self.objects, &steps),
            replacements: replacements(&self.kind, self.objects, &steps),
            inherited_only,
            scope: acts && if above { wide } else { ends },
            root,
            nodes,
            downwards,
            places: places.into_iter().map(|(place, _)| place).collect(),
            open: seen.iter().map(|(place, _)| place.clone()).collect(),
            delegates,
            children: hidden.into_iter().map(|(place, _)| place).collect(),
        }
    }

    /// The policies that are trusted and valid, and that filters of backendRefs of rules name.
    fn of_backends(&self, open: &[(Place, String)]) -> BTreeSet<String> {
        let is_open = |rule: &String| open.iter().any(|(place, _)| place.node == *rule);
        let valid = self.policies.iter();
        let valid = valid.filter(|a| !a.policy.invalid && a.distrusted.is_none());
        let named = valid.filter(|attached| {
            let mut outcomes = attached.references.outcomes.iter();
            outcomes.any(|(_, outcome)| match outcome {
                Outcome::NotEvaluated(rules) => rules.iter().any(is_open),
                _ => false,
            })
        });
        named.map(|attached| attached.policy.name.clone()).collect()
    }

    /// The policies that stand at the places of a path, and the names of those that are refused for what they are
    /// merged to. That is looked at with all of their rules, whatever the limits (2.13).
    fn nodes(
        &self,
        places: &[(Place, String)],
        holding: &[&Limit],
        open_at: &dyn Fn(&(Place, String)) -> bool,
    ) -> (Vec<Node>, BTreeSet<String>) {
        let node = |placed: &(Place, String), limits: Option<&[&Limit]>| {
            let here = self.at.get(&placed.0).into_iter().flatten();
            let here = here.filter(|_| open_at(placed));
            let stands = |policy: &Policy| match limits {
                Some(limits) => limited(&self.kind, policy, &concerning(limits, &placed.0)),
                None => Some(policy.clone()),
            };
            Node {
                key: placed.0.node.clone(),
                level: placed.1.clone(),
                policies: here.filter_map(stands).collect(),
                weak: placed.0.weak,
            }
        };
        let wholes: Vec<Node> = places.iter().map(|p| node(p, None)).collect();
        let refused = refused(&self.kind, &wholes);
        let limited = places.iter().map(|p| node(p, Some(holding)));
        let mut nodes: Vec<Node> = limited.collect();
        for (number, name) in &refused {
            nodes[*number].policies.retain(|p| p.name != *name);
        }
        (nodes, refused.into_iter().map(|(_, name)| name).collect())
    }

    /// The steps down to the effective level, and whether the path reaches it (2.3).
    fn to_effective_level(&self, all: &Trail, path: &str, ends_above: bool) -> (Vec<Step>, bool) {
        let mut steps = all.steps.clone();
        let Some(level) = &self.kind.effective else {
            return (steps, true);
        };
        let mesh_root = all.mesh && !path.contains("/routes/") && !path.contains("/ports/");
        let end = match ends_above {
            true => rank("Route"),
            false => all.steps.last().map_or(0, |s| rank(s.level)),
        };
        steps.retain(|step| rank(step.level) <= rank(level));
        let full = rank(level) <= end || (mesh_root && level == "Listener");
        (steps, full)
    }

    /// The places whose policies can answer: for a Direct kind, those of the deepest object of a target kind (7.4).
    fn answering(&self, places: &[(Place, String)]) -> BTreeSet<Place> {
        let object = |node: &str| node.split('#').next().unwrap_or_default().to_owned();
        let mut upwards = places.iter().rev().map(|(place, _)| object(&place.node));
        let deepest = upwards.find(|o| self.is_target(o));
        let joined = deepest
            .as_ref()
            .is_some_and(|deepest| self.joins_gateway(deepest));
        // A Service at the root of a path answers on its own, though it may be the backend as well.
        let is_deepest = |place: &Place| Some(object(&place.node)) == deepest;
        let last = places.iter().rposition(|(place, _)| is_deepest(place));
        let (before, _) = places.split_at(last.map_or(0, |at| at + 1));
        // So does a Route that is a backend of its own.
        let whole = before.iter().rev();
        let mut whole = whole.filter(|(place, _)| is_deepest(place) && !place.node.contains('#'));
        let level = whole.next().map(|(_, level)| level.clone());
        let others = before.iter().rposition(|(place, at)| {
            let above = !place.node.contains('#') && Some(at) != level.as_ref();
            !is_deepest(place) || above
        });
        let first = others.map_or(0, |at| at + 1);
        let answers = |(at, place): &(usize, &Place)| {
            self.kind.class != Class::Direct
                || (*at >= first && is_deepest(place))
                || (joined && place.node.starts_with("Gateway/") && !place.node.contains('#'))
        };
        let places = places.iter().map(|(place, _)| place).enumerate();
        let answering = places.filter(answers);
        answering.map(|(_, place)| place.clone()).collect()
    }

    /// Whether a policy that is not Invalid is attached to one of the places.
    fn has_attached(&self, places: &[(Place, String)]) -> bool {
        places.iter().any(|(place, _)| {
            let mut lost = self.rejected.get(place).into_iter().flatten();
            self.at.get(place).is_some_and(|here| !here.is_empty())
                || lost.any(|(_, reason)| reason != "Invalid")
        })
    }

    /// The rules on a path that delegate, if the controller of the Gateway follows that (1.8).
    fn delegating(&self, trail: &Trail) -> Vec<Delegating> {
        let gateway = trail.steps.iter().any(|step| step.level == "Gateway") && !trail.mesh;
        let mut kinds = self.known.delegating.iter();
        let follows = kinds.any(|(group, controllers)| {
            controllers.is_empty() || self.is_served_by(trail, group, controllers)
        });
        match gateway && follows {
            true => delegating(self.objects, trail),
            false => Vec::new(),
        }
    }

    /// Whether the class of the path's Gateway belongs to one of the controllers, or by an alias to the API group.
    fn is_served_by(&self, trail: &Trail, group: &str, controllers: &[String]) -> bool {
        let class = trail
            .class
            .as_ref()
            .and_then(|class| self.objects.get(&format!("GatewayClass/{class}")));
        let name = class.and_then(|class| class.body["spec"]["controllerName"].as_str());
        let mut names = self.known.names(name).into_iter();
        names.any(|name| name == group || controllers.iter().any(|e| fits_controller(e, &name)))
    }

    /// Policies that those of child Routes cannot override come last, those of the highest Route as the very last (1.8).
    fn put_preferred_last(&self, delegating: &[Delegating], nodes: &mut Vec<Node>) {
        for rule in delegating.iter().rev() {
            if !matches!(rule.way(&self.kind, self.objects), Way::Parent) {
                continue;
            }
            let of_rule = |node: &Node| node.key == rule.step.object || node.key == rule.step.node;
            let (last, rest): (Vec<Node>, Vec<Node>) = nodes.drain(..).partition(of_rule);
            nodes.extend(rest.into_iter().chain(last));
        }
    }

    /// The places of the child Routes of the first rule on a path whose policies are not known; `None` if there is no
    /// such rule, or the kind does not depend on Routes (1.8).
    fn places_of_children(
        &self,
        trail: &Trail,
        delegating: &[Delegating],
    ) -> Option<Vec<(Place, String)>> {
        let mut rules = delegating.iter();
        let is_hidden =
            |rule: &&Delegating| matches!(rule.way(&self.kind, self.objects), Way::Hidden);
        let rule = rules.find(is_hidden)?;
        if !concerns(&self.kind, &rank) {
            return None;
        }
        let mut steps = children(self.objects, &rule.step);
        if let Some(level) = &self.kind.effective {
            steps.retain(|step| rank(step.level) <= rank(level));
        }
        let mut places = self.places(&steps, trail);
        places.retain(|(place, _)| !place.node.is_empty() && place.client.is_none());
        Some(places)
    }

    /// Whether the kind acts on a path (2.4), and whether nobody knows (2.6).
    fn acts(&self, trail: &Trail, namespace: bool, places: &[(Place, String)]) -> (bool, bool) {
        let controllers = &self.kind.controllers;
        if trail.mesh && !trail.behind {
            return (self.kind.mesh, false);
        }
        let attached = self.has_attached(places);
        if trail.undecided {
            return (false, attached);
        }
        if controllers.is_empty() {
            return (true, false);
        }
        // With `controllers` a look-up at a Namespace is null (11.22).
        if namespace {
            return (false, false);
        }
        let class = trail
            .class
            .as_ref()
            .and_then(|class| self.objects.get(&format!("GatewayClass/{class}")));
        let name = class.and_then(|class| class.body["spec"]["controllerName"].as_str());
        let listed = |entries: &[String]| {
            name.is_some_and(|name| entries.iter().any(|e| fits_controller(e, name)))
        };
        let aliases = self.known.aliases.iter();
        let mut aliases = aliases
            .filter(|(alias, _)| name == Some(alias.as_str()))
            .map(|(_, profiles)| profiles)
            .peekable();
        if aliases.peek().is_some() {
            let describes = |profiles: &String| {
                self.kind.group == *profiles
                    || controllers.iter().any(|e| fits_controller(e, profiles))
            };
            return (aliases.any(describes), false);
        }
        let acts = listed(controllers);
        (acts, !acts && !listed(&self.known.listed) && attached)
    }

    /// The places in order with their levels, namespaces among them (specification 1.2).
    fn places(&self, steps: &[Step], trail: &Trail) -> Vec<(Place, String)> {
        let mut seen: BTreeSet<String> = BTreeSet::new();
        let mut places = Vec::new();
        let place = |node: &str| Place {
            node: node.to_owned(),
            client: None,
            filter: None,
            weak: false,
            port: false,
        };
        if self.kind.root_namespace.is_some() && !steps.is_empty() {
            places.push((place(""), "Namespace".to_owned()));
        }
        for step in steps {
            // The least specific node that lives there and that the kind's namespaces reach. A backend may be
            // named in a namespace that does not exist (1.2).
            if let Some(namespace) = &step.namespace
                && self.kind.reaches.iter().any(|level| level == step.level)
                && seen.insert(namespace.clone())
            {
                let node = format!("Namespace/{namespace}");
                if self.objects.exists(&node) {
                    places.push((place(&node), "Namespace".to_owned()));
                }
            }
            let level = || step.level.to_owned();
            let of_port = Place {
                port: true,
                ..place(&step.node)
            };
            // Below the policies of the listener itself (3.6).
            if self.at.contains_key(&of_port) || self.rejected.contains_key(&of_port) {
                places.push((of_port, level()));
            }
            places.push((place(&step.node), level()));
            // Own clients (4.6), and filters, the first the most specific (3.1): groups of their own (11.1).
            let beside = self
                .at
                .keys()
                .chain(self.rejected.keys())
                .filter(|p| p.node == step.node);
            let beside: BTreeSet<&Place> = beside.collect();
            for own in beside
                .iter()
                .filter(|p| p.client.is_some() && p.client == trail.client)
            {
                places.push(((*own).clone(), level()));
            }
            for weak in beside.iter().filter(|p| p.weak) {
                places.push(((*weak).clone(), level()));
            }
            for filter in beside.iter().rev().filter(|p| p.filter.is_some()) {
                places.push(((*filter).clone(), level()));
            }
        }
        places
    }

    /// Whether the policies on the Gateway count beside those of this object (7.5).
    pub fn joins_gateway(&self, object: &str) -> bool {
        self.kind.from_gateway && object.starts_with("ListenerSet/") && self.is_target("Gateway/")
    }

    /// Whether policies of the kind may name the object of a node.
    pub fn is_target(&self, node: &str) -> bool {
        let key = node.split('#').next().unwrap_or_default();
        let kind = key.split('/').next().unwrap_or_default();
        match &self.kind.targets {
            _ if node.is_empty() => false,
            None => kind != "GatewayClass" || self.kind.classes_too,
            Some(all) => all
                .iter()
                .any(|t| super::objects::short(&t.group, &t.kind) == kind),
        }
    }
}

impl PathView {
    /// Whether one of the places is on the path.
    pub fn has(&self, places: &BTreeSet<Place>) -> bool {
        !self.places.is_disjoint(places)
    }

    /// Whether the kind may act at one of the places on the path.
    pub fn has_open(&self, places: &BTreeSet<Place>) -> bool {
        !self.open.is_disjoint(places)
    }

    /// Whether one of the places belongs to a child Route of the rule on the path.
    pub fn has_child(&self, places: &BTreeSet<Place>) -> bool {
        !self.children.is_disjoint(places)
    }
}

/// Whether the kind ignores the policy because it is being deleted (1.7), or at least one Accepted condition has the current generation, and all of those are False (`trustStatus`).
fn distrusted(kind: &Settings, body: &Value) -> Option<String> {
    if kind.ignores_deleted && !body["metadata"]["deletionTimestamp"].is_null() {
        return Some("BeingDeleted".to_owned());
    }
    if !kind.trust_status {
        return None;
    }
    let generation = &body["metadata"]["generation"];
    let status = &body["status"];
    let own = status["conditions"].as_array().into_iter().flatten();
    let ancestors = status["ancestors"].as_array().into_iter().flatten();
    let nested = ancestors
        .filter_map(|a| a["conditions"].as_array())
        .flatten();
    let current = |c: &&Value| c["type"] == "Accepted" && c["observedGeneration"] == *generation;
    let accepted: Vec<&Value> = own.chain(nested).filter(current).collect();
    let all_false = !accepted.is_empty() && accepted.iter().all(|c| c["status"] == "False");
    all_false.then(|| {
        accepted[0]["reason"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    })
}

/// The value of a field of the object at the end of a path, if it says something (specification 6.4).
fn own_value<'o>(objects: &'o Objects, end: &Step, from: &str) -> Option<&'o Value> {
    let object = objects.get(&end.object)?;
    let found = match (from.strip_prefix("spec.rules[*]."), end.rule) {
        (Some(field), Some(rule)) => at(&object.body["spec"]["rules"][rule], field),
        (Some(_), None) => None,
        (None, _) => at(&object.body, from),
    };
    found.filter(|value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    })
}

/// The places whose values the object replaces (specification 6.4).
fn replacements(kind: &Settings, objects: &Objects, steps: &[Step]) -> Vec<(Path, String)> {
    let Some(end) = steps.last() else {
        return Vec::new();
    };
    let fields = kind.own_replacements.iter();
    let said = fields.filter(|(from, _)| own_value(objects, end, from).is_some());
    let mut all: Vec<(Path, String)> = said
        .map(|(_, to)| (dotted(to), end.object.clone()))
        .collect();
    all.sort();
    all.dedup();
    all
}

/// Specification 6.4
fn own_fields(kind: &Settings, objects: &Objects, steps: &[Step]) -> Vec<Leaf> {
    let Some(end) = steps.last() else {
        return Vec::new();
    };
    let mut rules = Value::Object(Map::new());
    for (from, to) in &kind.own_fields {
        if let Some(value) = own_value(objects, end, from) {
            let mut into = &mut rules;
            for step in dotted(to) {
                let super::leaf::Step::Field(name) = step else {
                    continue;
                };
                into = &mut into[name];
            }
            *into = value.clone();
        }
    }
    let shape = Shape::of(kind.schema.as_ref(), &kind.path, &kind.list_keys);
    flatten(&rules, &format!("={}", end.object), &shape)
}

/// Whether policies at a level do not count: on Services without a waypoint, and on backends behind one (2.12).
fn is_barred(trail: &Trail, level: &str) -> bool {
    match level {
        "Gateway" | "Listener" => trail.bars,
        "Backend" | "BackendPort" => trail.bars || trail.behind,
        _ => false,
    }
}

/// The places whose policies count on a path, unless the path drops their level.
fn open_places(
    places: &[(Place, String)],
    closed: &BTreeSet<Place>,
    trail: &Trail,
) -> Vec<(Place, String)> {
    let open = places
        .iter()
        .filter(|(place, level)| !closed.contains(place) && !is_barred(trail, level));
    open.cloned().collect()
}

/// Whether a kind acts on a path by the controller of its Gateway, or nobody knows (2.4, 2.6).
pub fn may_act(
    kind: &Settings,
    objects: &Objects,
    known: &KnownControllers,
    trail: &Trail,
) -> bool {
    if trail.mesh {
        return false;
    }
    let class = trail.class.as_ref();
    let class = class.and_then(|class| objects.get(&format!("GatewayClass/{class}")));
    let name = class.and_then(|class| class.body["spec"]["controllerName"].as_str());
    let (Some(name), false) = (name, kind.controllers.is_empty()) else {
        return true;
    };
    let fits = |name: &str| kind.controllers.iter().any(|e| fits_controller(e, name));
    if known.aliases.iter().any(|(alias, _)| alias == name) {
        let names = known.names(Some(name));
        return names
            .iter()
            .any(|profiles| kind.group == *profiles || fits(profiles));
    }
    fits(name) || !known.listed.iter().any(|e| fits_controller(e, name))
}

/// The limits that concern policies at a place.
fn concerning<'l>(holding: &[&'l Limit], place: &Place) -> Vec<&'l Limit> {
    let limits = holding.iter().copied();
    limits.filter(|limit| limit.concerns(&place.node)).collect()
}

/// The places whose policies do not act on a path (2.10).
fn closed_places(holding: &[&Limit], places: &[(Place, String)]) -> BTreeSet<Place> {
    let is_closed = |place: &&Place| {
        let limits = concerning(holding, place);
        limits.iter().any(|limit| limit.fields.is_empty())
    };
    let places = places.iter().map(|(place, _)| place);
    places.filter(is_closed).cloned().collect()
}

/// The value under a condition, and otherwise an empty one.
fn only_if<T: Default>(holds: bool, value: T) -> T {
    if holds { value } else { T::default() }
}

//! From the name of a path to its answer: one probe a step, keys borrowed from the name.

use hashbrown::{Equivalent, HashMap};

use crate::model::{PathName, Root, RuleStep, Str};

/// The answers of all paths, as a tree: a child is found by its parent and its step.
#[derive(Debug, Default)]
pub(super) struct PathIndex {
    children: HashMap<Key, u32>,
    /// Body of each entry of the tree; `NONE` for those that are no path themselves.
    bodies: Vec<u32>,
    paths: usize,
}

/// No body.
const NONE: u32 = u32::MAX;
/// The parent of all roots.
const TOP: u32 = u32::MAX;

/// Parent and step.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Key(u32, Step<Str>);

/// The same, borrowed.
#[derive(PartialEq, Eq, Hash)]
struct KeyRef<'a>(u32, Step<&'a str>);

/// A step of a path's name. Owned and borrowed ones hash alike, since strings do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step<S> {
    GatewayClass(S),
    Namespace(S),
    Gateway(S, S),
    Service(S, S),
    Client(S),
    ListenerSet(S, S),
    Listener(S),
    Route(S, S, S),
    RuleName(S),
    RuleIndex(u32),
    Backend(S, S, S),
    Port(u16),
}

/// The steps of a path's name, at most ten.
struct Steps<'a> {
    steps: [Option<Step<&'a str>>; 10],
}

impl PathIndex {
    /// How many paths there are; a rule's index beside its name does not count.
    pub fn len(&self) -> usize {
        self.paths
    }

    /// The body of a path. Any client namespace that nothing sets apart answers as `*`
    /// (SEMANTICS §1.3).
    pub fn find(&self, path: &PathName<'_>) -> Option<u32> {
        let mut at = TOP;
        for step in Steps::of(path).steps.into_iter().flatten() {
            let found = self.child(at, step).or_else(|| match step {
                Step::Client(_) => self.child(at, Step::Client("*")),
                _ => None,
            });
            at = found?;
        }
        let body = self.bodies.get(at as usize).copied();
        body.filter(|&body| body != NONE)
    }

    fn child(&self, parent: u32, step: Step<&str>) -> Option<u32> {
        self.children.get(&KeyRef(parent, step)).copied()
    }

    /// Puts a path; its prefixes have been put before. A rule with a name is found by its index,
    /// too.
    pub fn put(&mut self, path: &PathName<'_>, rule: Option<u32>, body: u32) {
        let mut at = TOP;
        for step in Steps::of(path).steps.into_iter().flatten() {
            let parent = at;
            at = match self.child(parent, step) {
                Some(entry) => entry,
                None => self.add(parent, step),
            };
            if let (Step::RuleName(_), Some(index)) = (step, rule) {
                self.children
                    .insert(Key(parent, Step::RuleIndex(index)), at);
            }
        }
        if let Some(held) = self.bodies.get_mut(at as usize) {
            *held = body;
            self.paths += 1;
        }
    }

    fn add(&mut self, parent: u32, step: Step<&str>) -> u32 {
        // 4 billion paths do not fit into memory; the last number is no entry.
        let entry = u32::try_from(self.bodies.len()).unwrap_or(NONE);
        self.bodies.push(NONE);
        self.children.insert(Key(parent, step.owned()), entry);
        entry
    }

    /// Returns unused memory.
    pub fn shrink(&mut self) {
        self.children.shrink_to_fit();
        self.bodies.shrink_to_fit();
    }
}

impl Equivalent<Key> for KeyRef<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        self.0 == key.0 && key.1.is(&self.1)
    }
}

impl Step<Str> {
    fn is(&self, other: &Step<&str>) -> bool {
        use Step::{
            Backend, Client, Gateway, GatewayClass, Listener, ListenerSet, Namespace, Port, Route,
            RuleIndex, RuleName, Service,
        };
        match (self, other) {
            (GatewayClass(a), GatewayClass(b))
            | (Namespace(a), Namespace(b))
            | (Client(a), Client(b))
            | (Listener(a), Listener(b))
            | (RuleName(a), RuleName(b)) => **a == **b,
            (Gateway(a, b), Gateway(c, d))
            | (Service(a, b), Service(c, d))
            | (ListenerSet(a, b), ListenerSet(c, d)) => **a == **c && **b == **d,
            (Route(a, b, c), Route(d, e, f)) | (Backend(a, b, c), Backend(d, e, f)) => {
                **a == **d && **b == **e && **c == **f
            }
            (RuleIndex(a), RuleIndex(b)) => a == b,
            (Port(a), Port(b)) => a == b,
            _ => false,
        }
    }
}

impl Step<&str> {
    fn owned(self) -> Step<Str> {
        match self {
            Step::GatewayClass(a) => Step::GatewayClass(a.into()),
            Step::Namespace(a) => Step::Namespace(a.into()),
            Step::Gateway(a, b) => Step::Gateway(a.into(), b.into()),
            Step::Service(a, b) => Step::Service(a.into(), b.into()),
            Step::Client(a) => Step::Client(a.into()),
            Step::ListenerSet(a, b) => Step::ListenerSet(a.into(), b.into()),
            Step::Listener(a) => Step::Listener(a.into()),
            Step::Route(a, b, c) => Step::Route(a.into(), b.into(), c.into()),
            Step::RuleName(a) => Step::RuleName(a.into()),
            Step::RuleIndex(index) => Step::RuleIndex(index),
            Step::Backend(a, b, c) => Step::Backend(a.into(), b.into(), c.into()),
            Step::Port(port) => Step::Port(port),
        }
    }
}

impl<'a> Steps<'a> {
    fn of(path: &PathName<'a>) -> Self {
        let walk = match path {
            PathName::GatewayClass(name) => return Self::one(Step::GatewayClass(name)),
            PathName::Namespace(name) => return Self::one(Step::Namespace(name)),
            PathName::Walk(walk) => walk,
        };
        let (root, client, root_port) = match walk.root {
            Root::Gateway { namespace, name } => (Step::Gateway(namespace, name), None, None),
            // The client comes after the Service, so that an unknown one can answer as `*`.
            Root::Mesh {
                client,
                namespace,
                name,
                port,
            } => (
                Step::Service(namespace, name),
                Some(Step::Client(client)),
                port.map(Step::Port),
            ),
        };
        Self {
            steps: [
                Some(root),
                client,
                root_port,
                walk.listener_set
                    .map(|s| Step::ListenerSet(s.namespace, s.name)),
                walk.listener.map(Step::Listener),
                walk.route.map(|r| Step::Route(r.kind, r.namespace, r.name)),
                walk.rule.map(|rule| match rule {
                    RuleStep::Index(index) => Step::RuleIndex(index),
                    RuleStep::Name(name) => Step::RuleName(name),
                }),
                walk.backend
                    .map(|b| Step::Backend(b.kind, b.namespace, b.name)),
                walk.port.map(Step::Port),
                None,
            ],
        }
    }

    fn one(step: Step<&'a str>) -> Self {
        let mut steps = [None; 10];
        if let Some(first) = steps.first_mut() {
            *first = Some(step);
        }
        Self { steps }
    }
}

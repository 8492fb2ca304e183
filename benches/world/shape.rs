//! How big a world is and where its policies sit: options, presets, limits.

/// Levels that a policy may be attached to, from least to most specific.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// A whole Namespace, the gateways' own one included.
    Namespace,
    /// A whole Gateway.
    Gateway,
    /// A listener section of a Gateway.
    Listener,
    /// A whole HTTPRoute.
    Route,
    /// A named rule section of an HTTPRoute.
    Rule,
    /// A whole Service that some rule names as backend.
    Service,
    /// A port section of a Service that some rule names as backend.
    Port,
}

/// Which listeners of its Gateway a route joins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Join {
    /// One listener, by `sectionName`; routes are dealt out evenly.
    One,
    /// Every listener: the parentRef names the Gateway alone.
    All,
}

/// Everything that a world is made from. The same shape gives the same bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// Gateways, all of one class and in the namespace `edge`.
    pub gateways: usize,
    /// Listeners of each Gateway, 1 to 64.
    pub listeners: usize,
    /// Namespaces that hold routes and Services; `edge` comes on top.
    pub namespaces: usize,
    /// HTTPRoutes in all, dealt out over the namespaces.
    pub routes: usize,
    /// Which listeners of its Gateway each route joins.
    pub join: Join,
    /// Rules of each route, 1 to 16; the first half (rounded up) is named.
    pub rules: usize,
    /// backendRefs of each rule, 1 to 16; different Services as far as the namespace has them.
    pub backends: usize,
    /// Services in all, dealt out over the namespaces.
    pub services: usize,
    /// Ports of each Service, 1 to 100.
    pub ports: usize,
    /// Policies in all, dealt out over the five kinds.
    pub policies: usize,
    /// Per cent of each kind's policies by level, in the order of [`Level::ALL`]; sums to 100.
    pub shares: [usize; 7],
    /// Least and greatest size of a policy's `spec` as compact JSON, in bytes; drawn evenly.
    pub spec_bytes: (usize, usize),
    /// Makes Limit a Direct kind (strategy None, one policy a node) in place of FieldDefaults.
    pub direct: bool,
    /// Seed of every random choice.
    pub seed: u64,
}

/// Shares of the ordinary placement: most policies on routes and their rules.
const SHARES: [usize; 7] = [3, 2, 5, 40, 25, 15, 10];

/// Shares of `small`: about even, so that few policies still reach every level.
const SHARES_SMALL: [usize; 7] = [14, 14, 14, 16, 14, 14, 14];

/// Shares of `fanout`: fewer at the bottom, since stacks multiply with those at the top.
const SHARES_FANOUT: [usize; 7] = [5, 5, 10, 40, 30, 5, 5];

impl Level {
    /// All levels, from least to most specific.
    pub const ALL: [Level; 7] = [
        Level::Namespace,
        Level::Gateway,
        Level::Listener,
        Level::Route,
        Level::Rule,
        Level::Service,
        Level::Port,
    ];

    /// The level's name in tables, lower case.
    pub fn name(self) -> &'static str {
        match self {
            Level::Namespace => "namespace",
            Level::Gateway => "gateway",
            Level::Listener => "listener",
            Level::Route => "route",
            Level::Rule => "rule",
            Level::Service => "service",
            Level::Port => "port",
        }
    }
}

impl Default for Shape {
    /// The `medium` shape: about 10 000 paths from 1 000 routes and 3 000 policies.
    fn default() -> Self {
        Shape {
            gateways: 10,
            listeners: 4,
            namespaces: 20,
            routes: 1000,
            join: Join::One,
            rules: 3,
            backends: 1,
            services: 500,
            ports: 2,
            policies: 3000,
            shares: SHARES,
            spec_bytes: (512, 4096),
            direct: false,
            seed: 1,
        }
    }
}

impl Shape {
    /// Names of the presets.
    pub const PRESETS: [&'static str; 3] = ["small", "medium", "fanout"];

    /// The preset called `name`, if there is one.
    pub fn preset(name: &str) -> Option<Self> {
        match name {
            "small" => Some(Shape {
                gateways: 2,
                listeners: 2,
                namespaces: 3,
                routes: 12,
                rules: 3,
                backends: 2,
                services: 9,
                policies: 70,
                shares: SHARES_SMALL,
                ..Shape::default()
            }),
            "medium" => Some(Shape::default()),
            "fanout" => Some(Shape {
                gateways: 1,
                listeners: 64,
                join: Join::All,
                rules: 16,
                backends: 4,
                services: 200,
                policies: 400,
                shares: SHARES_FANOUT,
                ..Shape::default()
            }),
            _ => None,
        }
    }

    /// Rules of each route that have a name.
    pub fn named_rules(&self) -> usize {
        self.rules.div_ceil(2)
    }

    /// Says the first reason why no valid world has this shape.
    pub fn check(&self) -> Result<(), String> {
        let ranges = [
            ("gateways", self.gateways, 1, 10_000),
            ("listeners", self.listeners, 1, 64),
            ("namespaces", self.namespaces, 1, 100_000),
            ("routes", self.routes, 1, 1_000_000),
            ("rules", self.rules, 1, 16),
            ("backends", self.backends, 1, 16),
            ("services", self.services, 1, 1_000_000),
            ("ports", self.ports, 1, 100),
            ("policies", self.policies, 0, 1_000_000),
            ("the least of spec-bytes", self.spec_bytes.0, 512, 65_536),
            ("the greatest of spec-bytes", self.spec_bytes.1, 512, 65_536),
        ];
        for (name, value, low, high) in ranges {
            if !(low..=high).contains(&value) {
                return Err(format!("{name} must be {low} to {high}, not `{value}`"));
            }
        }
        self.check_together()
    }

    /// The part of [`Shape::check`] that looks at several options at once.
    fn check_together(&self) -> Result<(), String> {
        if self.routes < self.namespaces || self.services < self.namespaces {
            return Err("each namespace needs a route and a service".into());
        }
        // The namespace with the fewest Services must serve a rule without naming a port twice.
        let choices = self.services / self.namespaces * self.ports;
        if self.backends > choices {
            return Err(format!(
                "{} backends a rule, but a namespace has only {choices} service ports",
                self.backends
            ));
        }
        if self.spec_bytes.0 > self.spec_bytes.1 {
            return Err("the least of spec-bytes is above the greatest".into());
        }
        match self
            .shares
            .iter()
            .try_fold(0, |sum: usize, share| sum.checked_add(*share))
        {
            Some(100) => Ok(()),
            _ => Err("shares must sum to 100".into()),
        }
    }
}

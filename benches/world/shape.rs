//! Parameters of a world: size, placement of policies, presets and limits.

/// Levels that a policy may be attached to, from least to most specific.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// A whole Namespace, including that of the Gateways.
    Namespace,
    /// A whole Gateway.
    Gateway,
    /// A listener section of a Gateway.
    Listener,
    /// A whole HTTPRoute.
    Route,
    /// A named rule section of an HTTPRoute.
    Rule,
    /// A whole Service that is a backend of a rule.
    Service,
    /// A port section of a Service that is a backend of a rule.
    Port,
}

/// Which listeners of its Gateway a route attaches to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Join {
    /// One listener, by `sectionName`; routes are distributed evenly.
    One,
    /// Every listener: the parentRef has no `sectionName`.
    All,
}

/// All parameters of a world. Equal shapes give equal bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// Gateways, all of one class and in the namespace `edge`.
    pub gateways: usize,
    /// Listeners of each Gateway, 1 to 64.
    pub listeners: usize,
    /// Namespaces with routes and Services, in addition to `edge`.
    pub namespaces: usize,
    /// HTTPRoutes in all, distributed over the namespaces.
    pub routes: usize,
    /// Which listeners of its Gateway each route attaches to.
    pub join: Join,
    /// Rules of each route, 1 to 16; the first half (rounded up) is named.
    pub rules: usize,
    /// backendRefs of each rule, 1 to 16; different Services if the namespace has enough.
    pub backends: usize,
    /// Services in all, distributed over the namespaces.
    pub services: usize,
    /// Ports of each Service, 1 to 100.
    pub ports: usize,
    /// Policies in all, distributed over the five kinds.
    pub policies: usize,
    /// Percentage of the policies of each kind by level, in the order of [`Level::ALL`]; the sum is
    /// 100.
    pub shares: [usize; 7],
    /// Minimum and maximum size of the `spec` of a policy as compact JSON in bytes; uniformly
    /// distributed.
    pub spec_bytes: (usize, usize),
    /// Makes Limit a Direct kind (strategy None, one policy per node) instead of FieldDefaults.
    pub direct: bool,
    /// Seed of every random choice.
    pub seed: u64,
}

/// Default shares: most policies are on routes and their rules.
const SHARES: [usize; 7] = [3, 2, 5, 40, 25, 15, 10];

/// Shares of `small`: about even, so that a small number of policies reaches every level.
const SHARES_SMALL: [usize; 7] = [14, 14, 14, 16, 14, 14, 14];

/// Shares of `fanout`: fewer on specific levels, because the numbers of stacks multiply.
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

    /// Returns the name of the level in tables.
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

    /// Returns a preset by name.
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

    /// Returns the number of named rules of each route.
    pub fn named_rules(&self) -> usize {
        self.rules.div_ceil(2)
    }

    /// Checks the shape; returns the first error.
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

    /// Checks combinations of options, as a part of [`Shape::check`].
    fn check_together(&self) -> Result<(), String> {
        if self.routes < self.namespaces || self.services < self.namespaces {
            return Err("each namespace needs a route and a service".into());
        }
        // The namespace with the fewest Services must have enough ports for a rule.
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

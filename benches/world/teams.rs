//! A world as platforms have it: shared Gateways, many small routes of many teams, and a small policy for nearly every
//! route.
//!
//! Every route is on one listener and has a Service of its own. The policies are RateLimitPolicies of Kuadrant, read
//! with the profile that is built in: defaults and overrides on each Gateway, defaults on each listener and each route,
//! and bare rules on the first rule of every second route.

use super::emit::{self, File};
use std::fmt;
use std::path::Path;

/// The size of the world. Equal sizes give equal bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Teams {
    /// Gateways, in the namespace `edge`.
    pub gateways: usize,
    /// Listeners of each Gateway.
    pub listeners: usize,
    /// Namespaces with routes and Services, in addition to `edge`.
    pub namespaces: usize,
    /// HTTPRoutes in all, each with a Service.
    pub routes: usize,
    /// Rules of each route.
    pub rules: usize,
}

impl Default for Teams {
    fn default() -> Self {
        Self {
            gateways: 40,
            listeners: 4,
            namespaces: 200,
            routes: 20_000,
            rules: 5,
        }
    }
}

impl Teams {
    /// Checks the size; returns the first error.
    pub fn check(&self) -> Result<(), String> {
        let ranges = [
            ("gateways", self.gateways, 10_000),
            ("listeners", self.listeners, 64),
            ("namespaces", self.namespaces, 100_000),
            ("routes", self.routes, 1_000_000),
            ("rules", self.rules, 16),
        ];
        for (name, value, high) in ranges {
            if !(1..=high).contains(&value) {
                return Err(format!("{name} must be 1 to {high}, not `{value}`"));
            }
        }
        Ok(())
    }

    /// Number of policies.
    pub fn policies(&self) -> usize {
        2 * self.gateways + self.gateways * self.listeners + self.routes + self.routes.div_ceil(2)
    }

    /// Number of paths that end at a rule.
    pub fn rule_paths(&self) -> usize {
        self.routes * self.rules
    }

    /// Number of distinct answers: the empty one, those of Gateways and listeners, and for each route one at the route,
    /// one at its rules, and one at its first rule if that has a policy. Each answer names its policies, so that no two
    /// routes share one.
    pub fn answers(&self) -> usize {
        let above = self.gateways * (1 + self.listeners);
        1 + above + 2 * self.routes + self.routes.div_ceil(2)
    }

    /// Returns the manifests in a fixed order: class, namespaces, Gateways, Services, routes, policies.
    pub fn manifests(&self) -> Vec<File> {
        let mut files = Vec::new();
        let mut objects = Objects::default();
        emit::chunk(&mut files, "class", [objects.class()]);
        let namespaces = (0..=self.namespaces).map(emit::namespace);
        emit::chunk(&mut files, "namespaces", namespaces);
        let gateways = (0..self.gateways).map(|gateway| objects.gateway(self, gateway));
        emit::chunk(&mut files, "gateways", gateways);
        let services = (0..self.routes).map(|route| objects.service(self, route));
        emit::chunk(&mut files, "services", services);
        let routes = (0..self.routes).map(|route| objects.route(self, route));
        emit::chunk(&mut files, "routes", routes);
        let policies = self.policy_documents(&mut objects);
        emit::chunk(&mut files, "policies", policies);
        files
    }

    /// Writes the directory `manifests` to `out`, as [`super::World::write`] does. Returns the number of bytes written.
    pub fn write(&self, out: &Path) -> Result<usize, String> {
        emit::write_files(out, None, &self.manifests())
    }

    /// Formats all policies, from the Gateways down.
    fn policy_documents(&self, objects: &mut Objects) -> Vec<String> {
        let mut found = Vec::with_capacity(self.policies());
        for gateway in 0..self.gateways {
            let target = emit::target_ref(super::Target::Gateway(gateway));
            for (block, limit) in [("defaults", 1_000), ("overrides", 5_000)] {
                let name = format!("gw-{gateway:03}-{block}");
                let rules = merged(block, &format!("gateway-{block}"), limit);
                found.push(objects.policy(0, &name, &target, &rules));
            }
            for listener in 0..self.listeners {
                let target = emit::target_ref(super::Target::Listener(gateway, listener));
                let name = format!("gw-{gateway:03}-l-{listener:02}");
                let rules = merged("defaults", "listener", 500 + listener);
                found.push(objects.policy(0, &name, &target, &rules));
            }
        }
        for route in 0..self.routes {
            let namespace = 1 + route % self.namespaces;
            let target = emit::target_ref(super::Target::Route(route));
            let rules = merged("defaults", "route", 100 + route % 50);
            let name = format!("route-{route:06}");
            found.push(objects.policy(namespace, &name, &target, &rules));
            if route % 2 == 0 {
                let target = emit::target_ref(super::Target::Rule(route, 0));
                let rules = limits("rule", 10 + route % 7);
                found.push(objects.policy(namespace, &format!("{name}-first"), &target, &rules));
            }
        }
        found
    }
}

/// Formats the objects and counts them, for their creation times.
#[derive(Default)]
struct Objects {
    created: usize,
}

impl Objects {
    /// Formats one object.
    fn object(
        &mut self,
        kind: (&str, &str),
        namespace: Option<usize>,
        name: &str,
        spec: &str,
    ) -> String {
        self.created += 1;
        emit::object(kind, namespace, name, emit::created(self.created), spec)
    }

    /// Formats the GatewayClass, of a controller whose Gateways Kuadrant protects.
    fn class(&mut self) -> String {
        let kind = ("gateway.networking.k8s.io/v1", "GatewayClass");
        let spec = r#"{"controllerName":"istio.io/gateway-controller"}"#;
        self.object(kind, None, "istio", spec)
    }

    /// Formats a Gateway, whose listeners have the hostnames of different routes.
    fn gateway(&mut self, teams: &Teams, number: usize) -> String {
        let listeners = (0..teams.listeners).map(|listener| {
            let port = 8000 + listener;
            format!(
                r#"{{"name":"l-{listener:02}","hostname":"*.l-{listener:02}.gw-{number:03}.example","port":{port},"protocol":"HTTP","allowedRoutes":{{"namespaces":{{"from":"All"}}}}}}"#
            )
        });
        let listeners = emit::joined(listeners);
        let spec = format!(r#"{{"gatewayClassName":"istio","listeners":[{listeners}]}}"#);
        let kind = ("gateway.networking.k8s.io/v1", "Gateway");
        self.object(kind, Some(0), &format!("gw-{number:03}"), &spec)
    }

    /// Formats the Service of a route.
    fn service(&mut self, teams: &Teams, route: usize) -> String {
        let name = format!("svc-{route:05}");
        let spec = format!(
            r#"{{"type":"ClusterIP","selector":{{"app":"{name}"}},"ports":[{{"name":"http","port":8080,"targetPort":8080,"protocol":"TCP"}}]}}"#
        );
        let namespace = 1 + route % teams.namespaces;
        self.object(("v1", "Service"), Some(namespace), &name, &spec)
    }

    /// Formats a route with its own hostname and a path prefix for each rule.
    fn route(&mut self, teams: &Teams, route: usize) -> String {
        let slot = route % (teams.gateways * teams.listeners);
        let (gateway, listener) = (slot % teams.gateways, slot / teams.gateways);
        let rules = (0..teams.rules).map(|rule| {
            format!(
                r#"{{"name":"step-{rule:02}","matches":[{{"path":{{"type":"PathPrefix","value":"/step-{rule:02}"}}}}],"backendRefs":[{{"name":"svc-{route:05}","port":8080}}]}}"#
            )
        });
        let rules = emit::joined(rules);
        let spec = format!(
            r#"{{"parentRefs":[{{"name":"gw-{gateway:03}","namespace":"edge","sectionName":"l-{listener:02}"}}],"hostnames":["r-{route:06}.l-{listener:02}.gw-{gateway:03}.example"],"rules":[{rules}]}}"#
        );
        let kind = ("gateway.networking.k8s.io/v1", "HTTPRoute");
        let namespace = 1 + route % teams.namespaces;
        self.object(kind, Some(namespace), &format!("route-{route:06}"), &spec)
    }

    /// Formats a policy.
    fn policy(&mut self, namespace: usize, name: &str, target: &str, rules: &str) -> String {
        let spec = format!(r#"{{"targetRef":{target},{rules}}}"#);
        let kind = ("kuadrant.io/v1", "RateLimitPolicy");
        self.object(kind, Some(namespace), name, &spec)
    }
}

/// Formats a block of rules that are merged one by one.
fn merged(block: &str, name: &str, limit: usize) -> String {
    let limits = limits(name, limit);
    format!(r#""{block}":{{"strategy":"merge",{limits}}}"#)
}

/// Formats the limits of a policy: one, for each user.
fn limits(name: &str, limit: usize) -> String {
    format!(
        r#""limits":{{"{name}":{{"rates":[{{"limit":{limit},"window":"1m"}}],"counters":[{{"expression":"auth.identity.userid"}}]}}}}"#
    )
}

impl fmt::Display for Teams {
    /// Writes one `name value` pair per line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = [
            ("namespaces", self.namespaces + 1),
            ("gateways", self.gateways),
            ("listeners", self.gateways * self.listeners),
            ("routes", self.routes),
            ("services", self.routes),
            ("rule paths", self.rule_paths()),
            ("policies", self.policies()),
            ("distinct answers", self.answers()),
        ];
        for (name, value) in lines {
            writeln!(f, "{name:<18}{value:>10}")?;
        }
        Ok(())
    }
}

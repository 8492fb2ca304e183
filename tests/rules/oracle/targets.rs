//! Where references, selectors, filters and namespaces attach policies (specification 3.1 to 3.3).

use serde_json::Value;

use super::objects::{
    Found, Objects, at, has_sections, key, matches, normal, rule_named, usual_group,
};
use super::settings::{CrossNamespace, Settings};

/// A node, or a group of its own below it (11.1).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// `Kind/namespace/name`, with `#section` for a section; empty: above everything (3.1, rootNamespace).
    pub node: String,
    /// Only requests of this client namespace (4.6).
    pub client: Option<String>,
    /// The place of a filter in its rule.
    pub filter: Option<usize>,
    /// Named as a section of the Gateway (7.5): weaker than everything else on the path.
    pub weak: bool,
    /// Named by its port (3.6): weaker than what is attached to the listener itself.
    pub port: bool,
}

/// What comes of one reference (3.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Found(Vec<Place>),
    Invalid,
    RefNotPermitted,
    TargetNotFound,
    /// Filters of backendRefs of these rules (2.8).
    NotEvaluated(Vec<String>),
}

/// The references of a policy.
#[derive(Clone, Debug, Default)]
pub struct References {
    /// In the order in which they are written, each with its place in the policy; filters and the namespace after
    /// them (11.46).
    pub outcomes: Vec<(String, Outcome)>,
    /// They contradict each other, are too many, or are missing (3.4).
    pub malformed: bool,
    /// The target is a workload (3.1).
    pub by_workload: bool,
}

impl References {
    /// Every place that a reference found.
    pub fn places(&self) -> Vec<Place> {
        let mut places: Vec<Place> = Vec::new();
        for (_, outcome) in &self.outcomes {
            if let Outcome::Found(found) = outcome {
                places.extend(found.iter().cloned());
            }
        }
        places.sort();
        places.dedup();
        places
    }
}

/// Resolves all that attaches a policy.
pub fn references(kind: &Settings, objects: &Objects, policy: &Found) -> References {
    let spec = &policy.body["spec"];
    let mut all = References::default();
    if let Some(path) = &kind.workload_selector {
        // A selector without labels selects all workloads (11.45).
        let selects = |value: &Value| match value.as_object() {
            Some(fields) => !fields.values().all(is_unset),
            None => !is_unset(value),
        };
        all.by_workload = at(&policy.body, path).is_some_and(selects);
    }
    let resolver = Resolver {
        kind,
        objects,
        policy,
    };
    let one = spec.get("targetRef").filter(|value| !value.is_null());
    let many = spec.get("targetRefs").filter(|value| !is_unset(value));
    let selectors = spec.get("targetSelectors").filter(|value| !is_unset(value));
    all.malformed |= one.is_some() && many.is_some();
    let mut count = usize::from(one.is_some());
    let mut add = |field: String, outcome| all.outcomes.push((field, outcome));
    if let Some(reference) = one {
        add("spec.targetRef".to_owned(), resolver.reference(reference));
    }
    for (name, list) in [("targetRefs", many), ("targetSelectors", selectors)] {
        let Some(list) = list else { continue };
        all.malformed |= !list.is_array();
        for (index, reference) in list.as_array().into_iter().flatten().enumerate() {
            count += 1;
            let outcome = match name {
                "targetSelectors" => resolver.select(reference, reference, reference),
                _ => resolver.reference(reference),
            };
            add(format!("spec.{name}[{index}]"), outcome);
        }
    }
    all.malformed |= count > kind.max_targets;
    let written = !all.outcomes.is_empty();
    if kind.by_filter {
        let filters = resolver.filters();
        let field = "filter".to_owned();
        let of_backends = resolver.rules_of_backend_filters();
        if !filters.is_empty() {
            all.outcomes
                .push((field.clone(), Outcome::Found(filters.clone())));
        }
        if !of_backends.is_empty() {
            let outcome = Outcome::NotEvaluated(of_backends);
            all.outcomes.push((field, outcome));
        } else if filters.is_empty() && !written {
            all.outcomes.push((field, Outcome::TargetNotFound));
        }
    } else if kind.by_namespace && !written {
        let found = Outcome::Found(vec![resolver.own_namespace()]);
        all.outcomes.push(("metadata.namespace".to_owned(), found));
    } else if !written && !all.by_workload {
        all.malformed = true;
    }
    all
}

/// The items of a list, if it is one.
fn each(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// Null, an empty string, an empty list and an empty object (11.45).
fn is_unset(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

struct Resolver<'r> {
    kind: &'r Settings,
    objects: &'r Objects,
    policy: &'r Found,
}

impl Resolver<'_> {
    fn own_namespace(&self) -> Place {
        let namespace = &self.policy.namespace;
        let root = self.kind.root_namespace.as_ref() == Some(namespace);
        whole(if root {
            String::new()
        } else {
            format!("Namespace/{namespace}")
        })
    }

    /// The rules whose filters name the policy, each filter a place of its own (3.1, 11.35).
    fn filters(&self) -> Vec<Place> {
        let mut places = Vec::new();
        for route in self.objects.all() {
            let rules = route.body["spec"]["rules"].as_array();
            for (number, rule) in rules.into_iter().flatten().enumerate() {
                for (filter, item) in rule["filters"].as_array().into_iter().flatten().enumerate() {
                    if self.is_named_by(item) && route.namespace == self.policy.namespace {
                        let mut place = whole(format!("{}##{number}", route.key()));
                        place.filter = Some(filter);
                        places.push(place);
                    }
                }
            }
        }
        places
    }

    /// Whether a filter names the policy, by its name alone.
    fn is_named_by(&self, filter: &Value) -> bool {
        let named = &filter["extensionRef"];
        filter["type"] == "ExtensionRef"
            && named["group"] == *self.policy.group
            && named["kind"] == *self.policy.kind
            && named["name"] == *self.policy.name
    }

    /// The rules with a backendRef of which a filter names the policy (2.8).
    fn rules_of_backend_filters(&self) -> Vec<String> {
        let routes = self.objects.all();
        let routes = routes.filter(|route| route.namespace == self.policy.namespace);
        let rules = routes.flat_map(|route| {
            let rules = each(&route.body["spec"]["rules"]).enumerate();
            rules.map(move |(number, rule)| (format!("{}##{number}", route.key()), rule))
        });
        let named = rules.filter(|(_, rule)| {
            let mut filters = each(&rule["backendRefs"]).flat_map(|one| each(&one["filters"]));
            filters.any(|filter| self.is_named_by(filter))
        });
        named.map(|(rule, _)| rule).collect()
    }

    /// The kind that a reference names, with its group (3.1).
    fn named_kind(&self, reference: &Value) -> Option<(String, String)> {
        let name = reference["kind"].as_str()?;
        let usual = || {
            let targets = self
                .kind
                .targets
                .iter()
                .flatten()
                .map(|t| (&t.group, &t.kind));
            let known = targets.chain(
                self.kind
                    .virtual_targets
                    .iter()
                    .map(|(group, kind)| (group, kind)),
            );
            let mut known = known.filter(|(_, kind)| *kind == name);
            usual_group(name).map_or_else(
                || {
                    known
                        .next()
                        .map(|(group, _)| group.clone())
                        .unwrap_or_default()
                },
                str::to_owned,
            )
        };
        let group = match reference["group"].as_str() {
            None => usual(),
            Some("core") => String::new(),
            // A group/version is read as the group.
            Some(group) => group.split('/').next().unwrap_or_default().to_owned(),
        };
        Some(normal(&group, name))
    }

    fn is_virtual(&self, group: &str, kind: &str) -> bool {
        let mut all = self.kind.virtual_targets.iter();
        all.any(|(g, k)| g == group && k == kind)
    }

    /// Whether the profile allows the kind and the section (3.3).
    fn is_allowed(&self, group: &str, kind: &str, section: bool) -> bool {
        // Before anything is looked for (11.28).
        if section && !has_sections(group, kind) && !self.names_ports(group, kind) {
            return false;
        }
        match &self.kind.targets {
            _ if self.is_virtual(group, kind) && !section => true,
            None => kind != "GatewayClass" || self.kind.classes_too,
            Some(all) => all
                .iter()
                .any(|t| t.group == group && t.kind == kind && (t.sections || !section)),
        }
    }

    /// Why the policy cannot name a kind that others can (2.11).
    fn refused(&self, group: &str, kind: &str) -> Option<Outcome> {
        let mut targets = self.kind.targets.iter().flatten();
        let target = targets.find(|t| t.group == group && t.kind == kind)?;
        let policy = super::policy::Policy::read(self.kind, self.objects, self.policy, None);
        let mut blocks = policy.blocks.iter();
        // With `merged` it keeps its places (2.13).
        if !target.merged && blocks.any(|block| super::refused::forbids(target, &block.rules)) {
            return Some(Outcome::Invalid);
        }
        let root = self.kind.root_namespace.as_ref();
        let elsewhere = root != Some(&self.policy.namespace);
        (target.root_only && elsewhere).then_some(Outcome::RefNotPermitted)
    }

    fn reference(&self, reference: &Value) -> Outcome {
        let selector = reference
            .get("selector")
            .filter(|selector| !selector.is_null());
        if let Some(selector) = selector {
            return self.select(reference, selector, selector);
        }
        let Some((group, kind)) = self.named_kind(reference) else {
            return Outcome::Invalid;
        };
        let Some(name) = reference["name"].as_str().filter(|name| !name.is_empty()) else {
            return Outcome::Invalid;
        };
        let section = reference["sectionName"]
            .as_str()
            .filter(|section| !section.is_empty());
        if !self.is_allowed(&group, &kind, section.is_some()) {
            return Outcome::Invalid;
        }
        let port = match self.port(reference, &group, &kind, section) {
            Ok(port) => port,
            Err(outcome) => return outcome,
        };
        if let Some(outcome) = self.refused(&group, &kind) {
            return outcome;
        }
        let namespace = self.namespace_named(reference, &kind, name);
        let Some(client) = self.permitted(&group, &kind, namespace, name) else {
            return Outcome::RefNotPermitted;
        };
        let node = key(&group, &kind, namespace, name);
        let mut generators = self.generators(&group, &kind, (namespace, name), section);
        for place in &mut generators {
            place.client = client.clone();
        }
        if !self.objects.exists(&node) && !self.is_virtual(&group, &kind) {
            return found(generators);
        }
        let place = |node: String| Place {
            node,
            client: client.clone(),
            filter: None,
            weak: false,
            port: false,
        };
        if let Some(port) = port {
            return self.on_port(&node, port);
        }
        let own = match section {
            None => Some(place(node)),
            Some(section) => match self.section(&node, section) {
                Some(part) => Some(place(format!("{node}#{part}"))),
                None => self.listener_of_sets(&node, section).map(|listener| Place {
                    weak: true,
                    ..whole(listener)
                }),
            },
        };
        generators.extend(own);
        found(generators)
    }

    /// The Routes that generate one with a name, or the sections of them (1.9).
    fn generators(
        &self,
        group: &str,
        kind: &str,
        (namespace, name): (&str, &str),
        section: Option<&str>,
    ) -> Vec<Place> {
        let found = self.objects.generators_of(group, kind);
        let found = found.filter(|route| route.namespace == namespace && route.name == name);
        let node = |route: &Found| match section {
            None => Some(route.key()),
            Some(section) => {
                let part = self.section(&route.key(), section)?;
                Some(format!("{}#{part}", route.key()))
            }
        };
        found.filter_map(node).map(whole).collect()
    }

    /// The namespace in which a reference looks.
    fn namespace_named<'n>(&'n self, reference: &'n Value, kind: &str, name: &'n str) -> &'n str {
        let written = reference["namespace"]
            .as_str()
            .filter(|text| !text.is_empty());
        match kind {
            "GatewayClass" => "",
            // A Namespace counts as living in itself.
            "Namespace" => name,
            _ => written.unwrap_or(&self.policy.namespace),
        }
    }

    /// The port that a reference names (3.6).
    fn port(
        &self,
        reference: &Value,
        group: &str,
        kind: &str,
        section: Option<&str>,
    ) -> Result<Option<u64>, Outcome> {
        let port = &reference["port"];
        if port.is_null() || !self.names_ports(group, kind) {
            return Ok(None);
        }
        match (port.as_u64(), section) {
            (Some(port), None) => Ok(Some(port)),
            _ => Err(Outcome::Invalid),
        }
    }

    /// Whether ports of a target are named by number (3.6).
    fn names_ports(&self, group: &str, kind: &str) -> bool {
        let mut targets = self.kind.targets.iter().flatten();
        targets.any(|t| t.group == group && t.kind == kind && t.ports)
    }

    /// The listeners of a port, those of ListenerSets too, if the Gateway has one of its own (3.6).
    fn on_port(&self, gateway: &str, port: u64) -> Outcome {
        let Some(gateway) = self.objects.get(gateway) else {
            return Outcome::TargetNotFound;
        };
        let listeners = |holder: &Found| -> Vec<Place> {
            let all = holder.body["spec"]["listeners"].as_array();
            let named = all.into_iter().flatten().filter(|l| l["port"] == port);
            named
                .map(|l| Place {
                    port: true,
                    ..whole(format!("{}#{}", holder.key(), l["name"].as_str().unwrap()))
                })
                .collect()
        };
        let mut places = listeners(gateway);
        if places.is_empty() {
            return Outcome::TargetNotFound;
        }
        for set in self.objects.sets_of(gateway) {
            places.extend(listeners(set));
        }
        Outcome::Found(places)
    }

    /// The listener of that name in the Gateway's ListenerSets, if sections may be named so: that of the oldest (7.5).
    fn listener_of_sets(&self, gateway: &str, section: &str) -> Option<String> {
        let found = self.objects.get(gateway)?;
        if !self.kind.gateway_sections || found.kind != "Gateway" {
            return None;
        }
        let sets = self.objects.sets_of(found);
        let has = |set: &&Found| {
            let listeners = set.body["spec"]["listeners"].as_array();
            listeners
                .into_iter()
                .flatten()
                .any(|l| l["name"] == section)
        };
        sets.into_iter()
            .find(has)
            .map(|set| format!("{}#{section}", set.key()))
    }

    /// Whether an object may be named, and the client namespace that is set apart by it (4.6).
    fn permitted(
        &self,
        group: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Option<Option<String>> {
        let own = &self.policy.namespace;
        if namespace == own || kind == "GatewayClass" {
            return Some(None);
        }
        // References of a cluster-scoped policy need `Any` (11.3).
        if own.is_empty() && self.kind.cross_namespace != CrossNamespace::Any {
            return None;
        }
        match self.kind.cross_namespace {
            // A reference to a namespaced object of a cluster-scoped kind names its namespace (11.3).
            CrossNamespace::Any => (!namespace.is_empty()).then_some(None),
            CrossNamespace::ReferenceGrant => self
                .is_granted(group, kind, namespace, name)
                .then_some(None),
            CrossNamespace::Clients => {
                (kind == "Service" && group.is_empty()).then(|| Some(own.clone()))
            }
            CrossNamespace::Never => None,
        }
    }

    fn is_granted(&self, group: &str, kind: &str, namespace: &str, name: &str) -> bool {
        let grants = self
            .objects
            .all()
            .filter(|o| o.kind == "ReferenceGrant" && o.namespace == namespace);
        let same = |item: &Value, group: &str, kind: &str| {
            let text = |field: &str| item[field].as_str().unwrap_or_default();
            normal(text("group"), text("kind")) == (group.to_owned(), kind.to_owned())
        };
        let list = |grant: &Found, field: &str| {
            grant.body["spec"][field]
                .as_array()
                .cloned()
                .unwrap_or_default()
        };
        grants.into_iter().any(|grant| {
            list(grant, "from").iter().any(|from| {
                same(from, &self.policy.group, &self.policy.kind)
                    && from["namespace"] == *self.policy.namespace
            }) && list(grant, "to").iter().any(|to| {
                same(to, group, kind)
                    && to["name"]
                        .as_str()
                        .is_none_or(|n| n.is_empty() || n == name)
            })
        })
    }

    /// The number of a rule or port, or the name of a listener (3.1).
    fn section(&self, node: &str, section: &str) -> Option<String> {
        if self.objects.has_port(node, section) {
            return Some(section.to_owned());
        }
        let found = self.objects.get(node)?;
        let spec = &found.body["spec"];
        let named = |list: &str| {
            let items = spec[list].as_array()?;
            items.iter().find(|item| item["name"] == section)
        };
        match found.kind.as_str() {
            "Gateway" | "ListenerSet" => named("listeners").map(|_| section.to_owned()),
            "Service" => {
                let ports = spec["ports"].as_array().into_iter().flatten();
                let mut numbers = ports.map(|port| port["port"].to_string());
                let by_number = || {
                    let usable = self.names_ports("", "Service");
                    numbers.find(|number| usable && *number == section)
                };
                named("ports")
                    .map(|port| port["port"].to_string())
                    .or_else(by_number)
            }
            _ => self
                .rule(&found.body, section)
                .map(|index| format!("#{index}")),
        }
    }

    /// A rule by its name, or an unnamed one by its position; explicit names win (`unnamedRules`).
    fn rule(&self, route: &Value, section: &str) -> Option<usize> {
        if let Some(index) = rule_named(route, section) {
            return Some(index);
        }
        let pattern = self.kind.unnamed_rules.as_ref()?;
        let rules = route["spec"]["rules"].as_array()?;
        let unnamed = |index: &usize| rules[*index].get("name").is_none_or(Value::is_null);
        (0..rules.len())
            .filter(unnamed)
            .find(|index| pattern.replace("{n}", &(index + 1).to_string()) == section)
    }

    /// Whether a selector looks in a namespace (3.1).
    fn looks_in(&self, holder: &Value, namespace: &str) -> bool {
        let namespaces = &holder["namespaces"];
        match (holder["namespace"].as_str(), namespaces["from"].as_str()) {
            (Some(named), _) => named == namespace,
            (_, Some("All")) => true,
            (_, Some("Selector")) => self
                .objects
                .namespace_matches(namespace, &namespaces["selector"]),
            _ => namespace == self.policy.namespace,
        }
    }

    /// The objects that a selector finds (3.1); `labels` holds matchLabels, `scope` the namespaces.
    fn select(&self, reference: &Value, labels: &Value, scope: &Value) -> Outcome {
        let Some((group, kind)) = self.named_kind(reference) else {
            return Outcome::Invalid;
        };
        let section = reference.get("sectionName").is_some_and(|s| !is_unset(s));
        let named = reference.get("name").is_some_and(|s| !is_unset(s));
        let port = self.names_ports(&group, &kind) && !reference["port"].is_null();
        if section || named || port || !self.is_allowed(&group, &kind, false) {
            return Outcome::Invalid;
        }
        if let Some(outcome) = self.refused(&group, &kind) {
            return outcome;
        }
        let label_value = |o: &Found| matches(labels, &|name| o.label(name));
        let own_scope = ["namespace", "namespaces"];
        let has_scope = own_scope.iter().any(|field| reference.get(field).is_some());
        let holder = if has_scope { reference } else { scope };
        let reaches = |namespace: &str| self.looks_in(holder, namespace);
        let mut places = Vec::new();
        if kind == "Namespace" {
            for namespace in &self.objects.namespaces {
                let permitted = self
                    .permitted(&group, &kind, namespace, namespace)
                    .is_some();
                if permitted
                    && reaches(namespace)
                    && self.objects.namespace_matches(namespace, labels)
                {
                    places.push(whole(format!("Namespace/{namespace}")));
                }
            }
        } else {
            let of_kind = |found: &&Found| found.group == group && found.kind == kind;
            let all = self.objects.all().filter(of_kind);
            for found in all.chain(self.objects.generators_of(&group, &kind)) {
                let fits = label_value(found);
                if !fits || !reaches(&found.namespace) {
                    continue;
                }
                if let Some(client) = self.permitted(&group, &kind, &found.namespace, &found.name) {
                    // The Route that is made of it can also be a backend by its reference.
                    let made = key(&group, &kind, &found.namespace, &found.name);
                    let is_backend = made != found.key() && self.objects.exists(&made);
                    for node in [Some(found.key()), is_backend.then_some(made)] {
                        places.extend(node.map(|node| Place {
                            client: client.clone(),
                            ..whole(node)
                        }));
                    }
                }
            }
        }
        found(places)
    }
}

/// What a reference comes to that names these places.
fn found(places: Vec<Place>) -> Outcome {
    match places.is_empty() {
        true => Outcome::TargetNotFound,
        false => Outcome::Found(places),
    }
}

fn whole(node: String) -> Place {
    Place {
        node,
        client: None,
        filter: None,
        weak: false,
        port: false,
    }
}

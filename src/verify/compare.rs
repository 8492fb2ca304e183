//! Compares effective policies with a proxy's configuration, path by path.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use serde_json::Value;

use super::convert::{Convert, lookup, owned};
use super::dump::{MANAGER, ProxyConfig, ProxyRoute, gateway_path};
use super::judge::{Judgement, judge, shown};
use super::report::{Collector, Finding, Report, Verdict};
use super::rows::{ConfigPart, KINDS, KindRows, Row};
use super::spec::Spec;
use crate::api::v1;
use entail_core::model::{Level, PathName, Root, TrafficPath};

/// Compares effective policies with a proxy's configuration.
#[derive(Debug)]
pub struct Verifier<'c> {
    pub(super) config: &'c ProxyConfig,
    /// The kinds to compare, as `Kind.group`; all if empty.
    kinds: Vec<String>,
    pub(super) found: Collector,
    /// Parsed rules by kind and etag: many paths share them.
    specs: HashMap<(&'static str, String), Option<Arc<Spec>>>,
    pub(super) seen: HashSet<String>,
    /// The names of the Envoy routes that are of a rule, for proxies whose routes tell their rules.
    pub(super) served: HashSet<Box<str>>,
    /// The paths of rules that such a proxy has no route of.
    pub(super) unserved: Vec<String>,
    other_gateways: BTreeSet<String>,
}

/// What the proxy has for one path.
enum Target<'c> {
    Rule(&'c [ProxyRoute]),
    Listener(Vec<(&'c str, &'c Value)>),
}

/// A value that the proxy has for a row, with the name of the thing that has it.
type Actual<'c> = (&'c str, Result<Option<&'c Value>, String>);

impl<'c> Verifier<'c> {
    /// Compares with `config`. `kinds` are the kinds to compare, as `Kind.group`; all if empty.
    pub fn new(config: &'c ProxyConfig, kinds: &[String]) -> Self {
        Self {
            config,
            kinds: kinds.to_vec(),
            found: Collector::default(),
            specs: HashMap::new(),
            seen: HashSet::new(),
            served: HashSet::new(),
            unserved: Vec::new(),
            other_gateways: BTreeSet::new(),
        }
    }

    /// The names of the levels whose paths [`Verifier::compare`] takes.
    pub fn levels() -> Vec<String> {
        let levels = [Level::Listener, Level::RouteRule];
        levels.map(|level| level.as_str().to_owned()).into()
    }

    /// Whether a path is of a Gateway that the proxy serves. Notes other Gateways.
    pub fn serves(&mut self, path: &str) -> bool {
        let gateway = gateway_path(path);
        if self.config.gateways.contains(&gateway) {
            return true;
        }
        if path.starts_with("gateways/") {
            self.other_gateways.insert(gateway);
        }
        false
    }

    /// Compares the policies of a path: of a rule, or of a listener.
    pub fn compare(&mut self, path: &str, policies: &[v1::EffectivePolicy]) {
        let Ok(PathName::Traffic(name)) = PathName::parse(path) else {
            return;
        };
        if !matches!(name.root, Root::Gateway { .. }) || !self.serves(path) {
            return;
        }
        match PathName::Traffic(name).level() {
            Level::RouteRule => self.compare_rule(path, &name, policies),
            Level::Listener => self.compare_listener(path, policies),
            _ => {}
        }
    }

    /// Returns the result. With `all_paths`, every path was compared, so that rules that only the proxy has are
    /// reported.
    pub fn finish(mut self, all_paths: bool) -> Report {
        self.report_unserved();
        if all_paths {
            self.report_foreign();
        }
        for (path, routes) in &self.config.rules {
            if all_paths && !self.seen.contains(path) {
                let reason = "the proxy serves a rule that the input does not have";
                let finding = whole(Verdict::Extra, String::new(), reason);
                let name = routes.first().map(|route| &*route.name);
                self.found.add(finding, path, name.unwrap_or_default());
            }
        }
        self.found.finish(self.other_gateways)
    }

    fn compare_rule(
        &mut self,
        path: &str,
        name: &TrafficPath<'_>,
        policies: &[v1::EffectivePolicy],
    ) {
        self.seen.insert(path.to_owned());
        if let Some(project) = self.config.project {
            self.compare_origins(project, path, name, policies);
            return;
        }
        let kind = name.route.map(|route| route.kind).unwrap_or_default();
        let Some(routes) = self.config.rules.get(path) else {
            if !matches!(kind, "HTTPRoute" | "GRPCRoute") {
                for policy in policies.iter().filter(|policy| is_in_force(policy)) {
                    let reason =
                        format!("rules of {kind}s are not routes in Envoy's configuration");
                    self.cannot_tell_kind(path, policy, &reason);
                }
                return;
            }
            self.found.summary.rules += 1;
            let reason = "the proxy does not serve the rule";
            let finding = whole(Verdict::Missing, String::new(), reason);
            self.found.add(finding, path, "");
            return;
        };
        self.found.summary.rules += 1;
        self.compare_kinds(path, &Target::Rule(routes), policies, false);
    }

    fn compare_listener(&mut self, path: &str, policies: &[v1::EffectivePolicy]) {
        if self.config.project.is_some() {
            for policy in policies.iter().filter(|policy| is_in_force(policy)) {
                if !policy.inherited_only {
                    let reason = "verify does not know where the proxy has policies of this kind";
                    self.cannot_tell_kind(path, policy, reason);
                }
            }
            return;
        }
        let configs = self.config.listeners.get(path).into_iter().flatten();
        let managers: Vec<(&str, &Value)> = configs
            .flat_map(|config| {
                let managers = self.config.managers.get(config).into_iter().flatten();
                managers.map(|manager| (&**config, &**manager))
            })
            .collect();
        if managers.is_empty() {
            let reason = match self.config.has_listeners {
                true => "the dump has no HTTP connection manager of the listener",
                false => "the dump has no listeners",
            };
            for policy in policies.iter().filter(|policy| is_in_force(policy)) {
                if KINDS
                    .iter()
                    .any(|kind| kind.at_listener && is_of(policy, kind))
                {
                    self.cannot_tell_kind(path, policy, reason);
                }
            }
            return;
        }
        self.found.summary.listeners += 1;
        self.compare_kinds(path, &Target::Listener(managers), policies, true);
    }

    fn compare_kinds(
        &mut self,
        path: &str,
        target: &Target<'c>,
        policies: &[v1::EffectivePolicy],
        at_listener: bool,
    ) {
        for kind in KINDS.iter().filter(|kind| kind.at_listener == at_listener) {
            let name = format!("{}.{}", kind.kind, kind.group);
            if self.is_selected(&name) {
                let policy = policies.iter().find(|policy| is_of(policy, kind));
                self.compare_kind(path, target, kind, &name, policy);
            }
        }
        let is_known = |policy: &v1::EffectivePolicy| KINDS.iter().any(|kind| is_of(policy, kind));
        for policy in policies {
            // Kinds that act elsewhere have their own paths.
            if !policy.inherited_only && is_in_force(policy) && !is_known(policy) && !at_listener {
                let reason = "verify does not know where the proxy has policies of this kind";
                self.cannot_tell_kind(path, policy, reason);
            }
        }
    }

    fn compare_kind(
        &mut self,
        path: &str,
        target: &Target<'c>,
        kind: &'static KindRows,
        name: &str,
        policy: Option<&v1::EffectivePolicy>,
    ) {
        if let Some(policy) = policy
            && let Some(reason) = not_known(policy)
        {
            self.cannot_tell_kind(path, policy, &reason);
            return;
        }
        let spec = policy.and_then(|policy| self.spec(kind, policy));
        self.compare_rows(path, target, kind, name, policy, spec.as_deref());
        for field in spec.iter().flat_map(|spec| &spec.unread) {
            let value = spec.as_ref().and_then(|spec| spec.field(field));
            let finding = Finding {
                field: field.clone(),
                expected: value.map(shown),
                origins: origins(policy, field),
                ..whole(
                    Verdict::CannotTell,
                    name.to_owned(),
                    "verify does not know where the proxy has this field",
                )
            };
            self.found.add(finding, path, "");
        }
        if let Target::Rule(routes) = target {
            self.compare_setters(path, routes, kind, name, policy);
        }
    }

    /// Compares the fields that have rows.
    fn compare_rows(
        &mut self,
        path: &str,
        target: &Target<'c>,
        kind: &'static KindRows,
        name: &str,
        policy: Option<&v1::EffectivePolicy>,
        spec: Option<&Spec>,
    ) {
        let mut skipped: Option<&str> = None;
        let mut blocked: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for row in kind.rows {
            if skipped.is_some_and(|block| is_below(row.field, block)) {
                continue;
            }
            let expected = spec.and_then(|spec| spec.field(row.field));
            let origins = || origins(policy, row.field);
            let (judgement, at) = match self.judge_row(row, expected, target, &origins) {
                Ok(Some(judged)) => judged,
                Ok(None) => continue,
                Err(reason) => {
                    if expected.is_some() {
                        blocked.entry(reason).or_default().push(row.field);
                    }
                    continue;
                }
            };
            if judgement.verdict == Verdict::Same {
                let in_part = matches!(row.convert, Convert::Presence) || !row.partly.is_empty();
                self.found.summary.same += 1;
                self.found.summary.same_in_part += usize::from(in_part);
                continue;
            }
            if matches!(row.convert, Convert::Block) {
                skipped = Some(row.field);
            }
            let finding = Finding {
                verdict: judgement.verdict,
                kind: name.to_owned(),
                field: row.field.to_owned(),
                expected: judgement.expected,
                actual: judgement.actual,
                origins: if expected.is_some() {
                    origins()
                } else {
                    Vec::new()
                },
                reason: judgement.reason,
            };
            self.found.add(finding, path, at);
        }
        for (reason, fields) in blocked {
            let reason = format!("{reason}; not compared: {}", fields.join(", "));
            let finding = Finding {
                origins: origins(policy, ""),
                ..whole(Verdict::CannotTell, name.to_owned(), &reason)
            };
            self.found.add(finding, path, "");
        }
    }

    /// Compares the policies that the metadata of Envoy routes name with those that should be in effect.
    fn compare_setters(
        &mut self,
        path: &str,
        routes: &[ProxyRoute],
        kind: &KindRows,
        name: &str,
        policy: Option<&v1::EffectivePolicy>,
    ) {
        let expected = origins(policy, "");
        for route in routes {
            let listed = lookup(&route.config, &["policies"]).and_then(Value::as_array);
            let others: Vec<String> = listed
                .into_iter()
                .flatten()
                .filter(|one| lookup(one, &["kind"]).and_then(Value::as_str) == Some(kind.kind))
                .filter_map(|one| {
                    let namespace = lookup(one, &["namespace"])?.as_str()?;
                    Some(format!("{namespace}/{}", lookup(one, &["name"])?.as_str()?))
                })
                .filter(|one| !expected.contains(one))
                .collect();
            if others.is_empty() {
                continue;
            }
            let verdict = match expected.is_empty() {
                true => Verdict::Extra,
                false => Verdict::Differs,
            };
            let finding = Finding {
                actual: Some(others.join(", ")),
                expected: (!expected.is_empty()).then(|| expected.join(", ")),
                ..whole(
                    verdict,
                    name.to_owned(),
                    "the policy that the proxy names is another one",
                )
            };
            self.found.add(finding, path, &route.name);
            return;
        }
    }

    /// Compares a field in all places of a target. Returns the worst result, with the name of the place.
    ///
    /// # Errors
    /// The reason why a place cannot have the field, if no other place has another value.
    fn judge_row(
        &self,
        row: &Row,
        expected: Option<&Value>,
        target: &Target<'c>,
        origins: &dyn Fn() -> Vec<String>,
    ) -> Result<Option<(Judgement, &'c str)>, String> {
        let mut worst: Option<(Judgement, &'c str)> = None;
        let mut blocked = None;
        for (name, actual) in self.actual(row, target) {
            let judgement = match actual {
                Ok(actual) => judge(row, expected, actual)
                    .map(|judgement| check_owners(row, judgement, actual, origins)),
                Err(reason) => {
                    blocked = Some(reason);
                    None
                }
            };
            let Some(judgement) = judgement else { continue };
            if worst
                .as_ref()
                .is_none_or(|(other, _)| judgement.verdict < other.verdict)
            {
                worst = Some((judgement, name));
            }
        }
        let is_same = worst
            .as_ref()
            .is_none_or(|(worst, _)| worst.verdict == Verdict::Same);
        match blocked {
            Some(reason) if is_same => Err(reason),
            _ => Ok(worst),
        }
    }

    /// What the proxy has for a row, or why it cannot have it.
    fn actual(&self, row: &Row, target: &Target<'c>) -> Vec<Actual<'c>> {
        let config = self.config;
        match (target, row.part) {
            (Target::Rule(routes), ConfigPart::Route) => routes
                .iter()
                .map(|route| {
                    let needs_action = row.at.first() == Some(&"route");
                    let value = match needs_action.then(|| no_action(route)).flatten() {
                        Some(reason) => Err(reason),
                        None => Ok(lookup(&route.config, row.at)),
                    };
                    (&*route.name, value)
                })
                .collect(),
            (Target::Rule(routes), ConfigPart::Cluster) => {
                let clusters = routes.iter().flat_map(|route| match no_action(route) {
                    Some(reason) => vec![(&*route.name, Err(reason))],
                    None => clusters(config, route, row),
                });
                clusters.collect()
            }
            (Target::Listener(managers), ConfigPart::Listener) => managers
                .iter()
                .map(|(name, value)| (*name, Ok(lookup(value, row.at))))
                .collect(),
            (Target::Listener(managers), ConfigPart::Manager) => managers
                .iter()
                .map(|(name, value)| {
                    let manager = lookup(value, &[MANAGER]);
                    (*name, Ok(manager.and_then(|value| lookup(value, row.at))))
                })
                .collect(),
            _ => Vec::new(),
        }
    }

    fn spec(&mut self, kind: &'static KindRows, policy: &v1::EffectivePolicy) -> Option<Arc<Spec>> {
        let json = policy.spec_json.as_ref()?;
        let key = (kind.kind, policy.spec_etag.clone());
        let spec = self.specs.entry(key);
        let spec = spec.or_insert_with(|| Spec::read(json, kind).map(Arc::new));
        spec.clone()
    }

    pub(super) fn is_selected(&self, kind: &str) -> bool {
        self.kinds.is_empty() || self.kinds.iter().any(|selected| selected == kind)
    }

    pub(super) fn cannot_tell_kind(
        &mut self,
        path: &str,
        policy: &v1::EffectivePolicy,
        reason: &str,
    ) {
        let name = match policy.group.as_str() {
            "" => policy.kind.clone(),
            group => format!("{}.{group}", policy.kind),
        };
        if self.is_selected(&name) {
            let finding = Finding {
                origins: origins(Some(policy), ""),
                ..whole(Verdict::CannotTell, name, reason)
            };
            self.found.add(finding, path, "");
        }
    }
}

/// A finding about a kind or a rule as a whole.
pub(super) fn whole(verdict: Verdict, kind: String, reason: &str) -> Finding {
    Finding {
        verdict,
        kind,
        field: String::new(),
        expected: None,
        actual: None,
        origins: Vec::new(),
        reason: reason.to_owned(),
    }
}

/// Why an Envoy route has no action that forwards; `None` if it forwards.
fn no_action(route: &ProxyRoute) -> Option<String> {
    if lookup(&route.config, &["redirect"]).is_some() {
        return Some("the proxy redirects every request of the rule".to_owned());
    }
    let status = lookup(&route.config, &["direct_response", "status"])?;
    let reason = "the proxy answers every request of the rule with status";
    Some(match status.as_u64() {
        Some(500) => format!(
            "{reason} 500: the controller refused a policy or a filter, or the rule has no usable backend"
        ),
        _ => format!("{reason} {status}"),
    })
}

/// What the clusters of an Envoy route have for a row.
fn clusters<'c>(config: &'c ProxyConfig, route: &'c ProxyRoute, row: &Row) -> Vec<Actual<'c>> {
    let own = route
        .name
        .split_once("/match/")
        .map_or(&*route.name, |(rule, _)| rule);
    let clusters = route.clusters.iter().map(|name| {
        let is_own = name
            .strip_prefix(own)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let value = match config.clusters.get(name) {
            _ if !config.has_clusters => Err("the dump has no clusters".to_owned()),
            None => Err(format!("the dump does not have the cluster `{name}`")),
            Some(_) if !is_own => Err(format!("the cluster `{name}` is not of this rule alone")),
            Some(cluster) => Ok(lookup(cluster, row.at)),
        };
        (&**name, value)
    });
    clusters.collect()
}

/// Checks that the owners that names of filters tell are the policies that should be in effect.
fn check_owners(
    row: &Row,
    judgement: Judgement,
    actual: Option<&Value>,
    origins: &dyn Fn() -> Vec<String>,
) -> Judgement {
    let (Convert::Owned(beginning), Some(actual)) = (row.convert, actual) else {
        return judgement;
    };
    if judgement.verdict != Verdict::Same {
        return judgement;
    }
    let expected = origins();
    let owner = |name: &str| {
        let mut parts = name.split('/').skip(1);
        Some(format!("{}/{}", parts.next()?, parts.next()?))
    };
    let others: Vec<String> = owned(actual, beginning)
        .filter_map(owner)
        .filter(|owner| !expected.contains(owner))
        .collect();
    if others.is_empty() {
        return judgement;
    }
    Judgement {
        verdict: Verdict::Differs,
        expected: Some(format!("of {}", expected.join(", "))),
        actual: Some(format!("of {}", others.join(", "))),
        reason: "another policy set it".to_owned(),
    }
}

fn is_of(policy: &v1::EffectivePolicy, kind: &KindRows) -> bool {
    policy.kind == kind.kind && policy.group == kind.group
}

/// Whether a policy has rules, or might have.
pub(super) fn is_in_force(policy: &v1::EffectivePolicy) -> bool {
    policy.spec_json.is_some() || !policy.listed.is_empty() || not_known(policy).is_some()
}

/// Why a policy is not known on a path.
pub(super) fn not_known(policy: &v1::EffectivePolicy) -> Option<String> {
    if let Some(unknown) = &policy.unknown {
        return Some(format!(
            "the effective policy is not known: {}",
            unknown.message
        ));
    }
    let why = &policy.not_computed;
    (!why.is_empty()).then(|| format!("the effective policy was not computed: {why}"))
}

/// Whether a field is in a block.
fn is_below(field: &str, block: &str) -> bool {
    field
        .strip_prefix(block)
        .is_some_and(|rest| rest.starts_with('.'))
}

/// The policies that set a field, as `namespace/name`; of all fields if it is empty.
fn origins(policy: Option<&v1::EffectivePolicy>, field: &str) -> Vec<String> {
    let origins = policy
        .map(|policy| policy.origins.as_slice())
        .unwrap_or_default();
    let names = |is_relevant: &dyn Fn(&str) -> bool| {
        let relevant = origins.iter().filter(|origin| is_relevant(&origin.unit));
        let names = relevant.flat_map(|origin| {
            let policies = origin.policies.iter();
            let names = policies.map(|policy| format!("{}/{}", policy.namespace, policy.name));
            names.chain((!origin.object.is_empty()).then(|| origin.object.clone()))
        });
        let names: BTreeSet<String> = names.collect();
        names.into_iter().collect::<Vec<String>>()
    };
    let is_relevant = |unit: &str| {
        let below = unit
            .strip_prefix(field)
            .is_some_and(|rest| rest.starts_with(['.', '[']));
        unit == "*" || unit == field || is_below(field, unit) || below
    };
    let found = names(&is_relevant);
    match field.is_empty() || found.is_empty() {
        true => names(&|_| true),
        false => found,
    }
}

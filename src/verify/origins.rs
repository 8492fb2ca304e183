//! Compares which policies set the fields of a rule, for proxies that name these and not the values: kgateway's.

use std::collections::BTreeSet;
use std::sync::Arc;

use hashbrown::HashSet;

use serde_json::Value;

use super::compare::{Verifier, whole};
use super::dump::{OriginRoute, Project, rule_key};
use super::report::{Finding, Verdict};
use crate::api::v1;
use entail_core::model::{RuleStep, TrafficPath};

/// The kind whose origins kgateway tells.
const GROUP: &str = "gateway.kgateway.dev";
const KIND: &str = "TrafficPolicy";

/// The fields whose policies kgateway names, and the names (`pkg/kgateway/extensions2/plugins/trafficpolicy/merge.go`).
const FIELDS: &[(&str, &str)] = &[
    ("apiKeyAuth", "api_key_auth"),
    ("autoHostRewrite", "auto_host_rewrite"),
    ("basicAuth", "basic_auth"),
    ("buffer", "buffer"),
    ("compression.requestDecompression", "decompression"),
    ("compression.responseCompression", "compression"),
    ("cors", "cors"),
    ("csrf", "csrf"),
    ("extAuth", "ext_auth"),
    ("extProc", "ext_proc"),
    ("headerModifiers", "header_modifiers"),
    ("jwtAuth", "jwt"),
    ("oauth2", "oidc"),
    ("rateLimit.global", "rateLimit.global"),
    ("rateLimit.local", "rateLimit.local"),
    ("rbac", "rbac"),
    ("retry", "retry"),
    ("timeouts", "timeouts"),
    ("transformation", "transformation"),
    ("urlRewrite", "url_rewrite"),
];

impl Verifier<'_> {
    /// Compares a rule with the routes of a proxy that tell where it came from.
    pub(super) fn compare_origins(
        &mut self,
        project: Project,
        path: &str,
        name: &TrafficPath<'_>,
        policies: &[v1::EffectivePolicy],
    ) {
        let routes = self.routes_of_rule(project, name);
        if routes.is_empty() {
            // A rule that only delegates to child Routes is no route; they come later.
            self.unserved.push(path.to_owned());
            return;
        }
        self.found.summary.rules += 1;
        for policy in policies {
            let is_told = policy.group == GROUP && policy.kind == KIND;
            if is_told && project == Project::Kgateway || policy.inherited_only {
                continue;
            }
            if super::compare::is_in_force(policy) {
                let reason = match project {
                    Project::Kgateway => "kgateway's routes do not tell of policies of this kind",
                    Project::Istio => "Istio's routes do not tell of policies",
                };
                self.cannot_tell_kind(path, policy, reason);
            }
        }
        let kind = format!("{KIND}.{GROUP}");
        if project == Project::Kgateway && self.is_selected(&kind) {
            let mut of_kind = policies.iter();
            let policy = of_kind.find(|policy| policy.group == GROUP && policy.kind == KIND);
            self.compare_setters_of_fields(path, &kind, policy, &routes);
        }
    }

    /// Reports the rules that the proxy does not serve, of those that have no child Routes.
    pub(super) fn report_unserved(&mut self) {
        let delegating: HashSet<&str> = self
            .seen
            .iter()
            .flat_map(|path| rules_above(path))
            .collect();
        let unserved = std::mem::take(&mut self.unserved);
        let unserved = unserved.into_iter();
        let unserved: Vec<String> = unserved
            .filter(|path| !delegating.contains(path.as_str()))
            .collect();
        for path in unserved {
            self.found.summary.rules += 1;
            let reason = "the proxy does not serve the rule";
            let finding = whole(Verdict::Missing, String::new(), reason);
            self.found.add(finding, &path, "");
        }
    }

    /// Reports the routes of the proxy whose rules are not in the input.
    pub(super) fn report_foreign(&mut self) {
        let mut told: BTreeSet<&str> = BTreeSet::new();
        let routes = self.config.origins.values().flatten();
        for route in routes.filter(|route| !self.served.contains(&*route.name)) {
            if told.insert(&route.name) {
                let reason = "the proxy serves a rule that the input does not have";
                let finding = whole(Verdict::Extra, String::new(), reason);
                let key = route.keys.first().map(String::as_str);
                self.found
                    .add(finding, key.unwrap_or_default(), &route.name);
            }
        }
    }

    /// The Envoy routes of a rule. Those of all listeners: routes do not tell theirs.
    fn routes_of_rule(
        &mut self,
        project: Project,
        name: &TrafficPath<'_>,
    ) -> Vec<Arc<OriginRoute>> {
        let (Some(route), Some(rule)) = (name.route, name.rule) else {
            return Vec::new();
        };
        let text = match rule {
            RuleStep::Name(name) => name.to_owned(),
            RuleStep::Index(index) => format!("#{index}"),
        };
        let mut keys = vec![rule_key(&[route.kind, route.namespace, route.name, &text])];
        keys.push(match (project, rule) {
            (Project::Istio, RuleStep::Name(name)) => rule_key(&["istio", name]),
            (Project::Istio, RuleStep::Index(index)) => {
                let name = format!("{}.{}.{index}", route.namespace, route.name);
                rule_key(&["istio", &name])
            }
            (Project::Kgateway, RuleStep::Index(index)) => {
                let kind = route.kind.to_ascii_lowercase();
                let name = format!("{kind}-{}-{}-{index}", route.name, route.namespace);
                rule_key(&["kgateway", &name])
            }
            (Project::Kgateway, RuleStep::Name(_)) => String::new(),
        });
        let found = keys.iter().find_map(|key| self.config.origins.get(key));
        let found = found.cloned().unwrap_or_default();
        self.served
            .extend(found.iter().map(|route| route.name.clone()));
        found
    }

    /// Compares the policies that set each field.
    fn compare_setters_of_fields(
        &mut self,
        path: &str,
        kind: &str,
        policy: Option<&v1::EffectivePolicy>,
        routes: &[Arc<OriginRoute>],
    ) {
        let refused = routes.iter().find_map(|route| Some((route, route.status?)));
        if let (Some((_, 500)), Some(policy)) = (refused, policy) {
            let reason = "the proxy answers every request of the rule with status 500: the controller refused a \
                          policy or a filter, or the rule has no usable backend";
            self.cannot_tell_kind(path, policy, reason);
            return;
        }
        if let Some(policy) = policy
            && let Some(reason) = super::compare::not_known(policy)
        {
            self.cannot_tell_kind(path, policy, &reason);
            return;
        }
        let spec: Value = policy
            .and_then(|policy| serde_json::from_str(policy.spec_json.as_ref()?).ok())
            .unwrap_or_default();
        for (field, name) in FIELDS {
            // kgateway names the policies of a field also where a setting of the rule itself takes its place.
            if is_own_field(policy, field) {
                continue;
            }
            let expected = match field.split('.').try_fold(&spec, |at, step| at.get(step)) {
                Some(_) => setters(policy, field),
                None => BTreeSet::new(),
            };
            let told: Vec<BTreeSet<String>> =
                routes.iter().map(|route| told(route, name)).collect();
            if told.contains(&expected) {
                let is_set = !expected.is_empty();
                self.found.summary.same += usize::from(is_set);
                self.found.summary.same_in_part += usize::from(is_set);
                continue;
            }
            let other = told.iter().zip(routes).find(|(told, _)| !told.is_empty());
            let text = |policies: &BTreeSet<String>| {
                let policies: Vec<&str> = policies.iter().map(String::as_str).collect();
                (!policies.is_empty()).then(|| format!("of {}", policies.join(", ")))
            };
            let finding = Finding {
                verdict: match (expected.is_empty(), &other) {
                    (true, _) => Verdict::Extra,
                    (false, Some(_)) => Verdict::Differs,
                    (false, None) => Verdict::Missing,
                },
                kind: kind.to_owned(),
                field: (*field).to_owned(),
                expected: text(&expected),
                actual: other.as_ref().and_then(|(told, _)| text(told)),
                origins: expected.into_iter().collect(),
                reason: String::new(),
            };
            let at = other.map(|(_, route)| &*route.name).unwrap_or_default();
            self.found.add(finding, path, at);
        }
        self.fields_not_told(path, kind, policy, &spec);
    }

    /// Reports fields whose policies kgateway does not name.
    fn fields_not_told(
        &mut self,
        path: &str,
        kind: &str,
        policy: Option<&v1::EffectivePolicy>,
        spec: &Value,
    ) {
        let is_told = |field: &str| {
            let mut known = FIELDS.iter();
            known.any(|(known, _)| is_within(known, field))
        };
        let fields = spec
            .as_object()
            .into_iter()
            .flat_map(|fields| fields.keys());
        for field in fields.filter(|field| !is_told(field)) {
            let finding = Finding {
                field: field.clone(),
                origins: setters(policy, field).into_iter().collect(),
                ..whole(
                    Verdict::CannotTell,
                    kind.to_owned(),
                    "kgateway's routes do not tell which policy set this field",
                )
            };
            self.found.add(finding, path, "");
        }
    }
}

/// The paths of the rules that delegate to the Route of a path.
fn rules_above(path: &str) -> impl Iterator<Item = &str> {
    let routes = path.match_indices("/routes/").skip(1);
    routes.filter_map(|(at, _)| path.get(..at))
}

/// The policies that set a field, as `namespace/name`.
fn setters(policy: Option<&v1::EffectivePolicy>, field: &str) -> BTreeSet<String> {
    let origins = policy.map(|policy| policy.origins.as_slice());
    let origins = origins.unwrap_or_default().iter();
    let relevant = origins.filter(|origin| {
        let unit = &*origin.unit;
        unit == "*" || is_within(unit, field) || is_within(field, unit)
    });
    let policies = relevant.flat_map(|origin| &origin.policies);
    policies
        .map(|policy| format!("{}/{}", policy.namespace, policy.name))
        .collect()
}

/// Whether the Route itself sets a field, or a part of it.
fn is_own_field(policy: Option<&v1::EffectivePolicy>, field: &str) -> bool {
    let origins = policy.map(|policy| policy.origins.as_slice());
    let mut of_objects = origins
        .unwrap_or_default()
        .iter()
        .filter(|origin| !origin.object.is_empty());
    of_objects.any(|origin| is_within(&origin.unit, field) || is_within(field, &origin.unit))
}

/// The policies that a route names for a field, as `namespace/name`.
fn told(route: &OriginRoute, name: &str) -> BTreeSet<String> {
    let policies = route.fields.get(name).and_then(Value::as_array);
    let policies = policies.into_iter().flatten().filter_map(Value::as_str);
    // `group/kind/namespace/name`
    let names = policies.filter_map(|policy| policy.splitn(3, '/').nth(2));
    names.map(str::to_owned).collect()
}

/// Whether a field is another one, or a part of it.
fn is_within(field: &str, whole: &str) -> bool {
    field
        .strip_prefix(whole)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

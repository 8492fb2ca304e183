//! The comparison of one world.

use std::collections::{BTreeMap, BTreeSet};

use entail::api::v1;
use entail_core::model::{Segment, Unit};
use serde_json::{Map, Value};

use super::admission::text;
use super::answers::{Answers, DIRECT, MERGED, object, policy_name};
use super::circumstances as circumstance;
use super::verdict::{ListenerVerdict, PathKey, PathVerdict, RuleVerdict, Verdict, segments};
use super::worlds::World;
use crate::report::{Facts, Report};

/// The reason of a difference that nothing explains.
const UNEXPLAINED: &str = "unexplained";

/// The reason of paths that Kuadrant has alone and configures nowhere.
pub(super) const NO_COMMON_HOSTNAME: &str = "no-common-hostname";

/// The answers of both sides for one world.
pub struct Comparison<'a> {
    pub(super) world: &'a World,
    pub(super) verdict: &'a Verdict,
    pub(super) answers: Answers,
    pub(super) report: &'a mut Report,
    /// Whether the configuration of gateways is compared, too.
    configuration: bool,
    /// The reasons of differences on paths, by kind and policy that is attached there.
    pub(super) on_paths: BTreeMap<(String, String), BTreeSet<&'static str>>,
}

impl<'a> Comparison<'a> {
    /// A comparison that records in a report.
    pub fn new(
        world: &'a World,
        verdict: &'a Verdict,
        answers: Answers,
        report: &'a mut Report,
    ) -> Self {
        Self {
            world,
            verdict,
            answers,
            report,
            configuration: true,
            on_paths: BTreeMap::new(),
        }
    }

    /// Compares the effective policies alone.
    pub fn run_effective(&mut self) {
        self.configuration = false;
        self.effective();
    }

    /// Compares everything.
    pub fn run(&mut self) {
        self.effective();
        self.listeners();
        self.statuses();
    }

    /// Records a difference.
    pub(super) fn differ(
        &mut self,
        what: &str,
        kind: &str,
        reason: &str,
        answer: &str,
        example: &str,
    ) {
        let facts = [("kind", kind), ("reason", reason), ("answer", answer)];
        let facts: Facts = facts
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        let seed = self.world.seed;
        self.report
            .differ(what, facts, || format!("seed {seed}: {kind}: {example}"));
    }

    /// Compares the effective policies of the merged kinds.
    fn effective(&mut self) {
        let verdicts: BTreeMap<(PathKey, &str), &PathVerdict> = self
            .verdict
            .paths
            .iter()
            .map(|verdict| ((verdict.key(), verdict.kind.as_str()), verdict))
            .collect();
        let answers = std::mem::take(&mut self.answers.paths);
        let keys: BTreeSet<&PathKey> = verdicts
            .keys()
            .map(|(key, _)| key)
            .chain(answers.keys())
            .collect();
        for key in keys {
            for kind in MERGED {
                let theirs = verdicts.get(&(key.clone(), kind)).copied();
                let path = answers.get(key);
                let ours = path.and_then(|kinds| kinds.get(kind));
                match (ours, theirs) {
                    (None, None) => self.report.agree(&format!("paths without {kind}")),
                    (Some(ours), None) => self.only_ours(key, kind, ours),
                    (None, Some(theirs)) => self.only_theirs(key, kind, path.is_some(), theirs),
                    (Some(ours), Some(theirs)) => self.both(key, kind, ours, theirs),
                }
            }
        }
    }

    fn only_ours(&mut self, key: &PathKey, kind: &str, ours: &v1::EffectivePolicy) {
        let reason = if circumstance::through_listener_set(key) {
            "listener-set"
        } else if kind == "TokenRateLimitPolicy" && key.route_kind == "GRPCRoute" {
            "token-limits-on-grpc"
        } else if circumstance::rule_name_taken(self.world, key) {
            "rule-name-taken"
        } else {
            UNEXPLAINED
        };
        self.note(key, kind, reason);
        let policies = origins(ours);
        let example = format!("{key}: entail: {policies:?}, Kuadrant: none");
        let what = format!("effective {kind}");
        self.differ(&what, kind, reason, "entail alone", &example);
    }

    fn only_theirs(&mut self, key: &PathKey, kind: &str, path: bool, theirs: &PathVerdict) {
        if !path && theirs.unconfigured.iter().any(|r| r == "hostname") {
            // The topology of Kuadrant has the path, and the operator passes over it.
            self.note(key, kind, NO_COMMON_HOSTNAME);
            self.report.agree("paths without a common hostname");
            return;
        }
        if path && theirs.unconfigured.iter().any(|r| r == "controller") {
            // The operator computes the policy and configures no gateway of the controller with it.
            self.note(key, kind, "controller");
            self.report.agree("paths of another controller");
            return;
        }
        let reason = if !path && circumstance::not_admitted(self.world, key) {
            "not-admitted"
        } else if circumstance::rule_name_taken(self.world, key) {
            "rule-name-taken"
        } else {
            UNEXPLAINED
        };
        self.note(key, kind, reason);
        let attached = &theirs.attached;
        let example = format!("{key}: entail: path {path}, no policy, Kuadrant: {attached:?}");
        let what = format!("effective {kind}");
        self.differ(&what, kind, reason, "Kuadrant alone", &example);
    }

    fn both(
        &mut self,
        key: &PathKey,
        kind: &str,
        ours: &v1::EffectivePolicy,
        theirs: &PathVerdict,
    ) {
        let what = format!("effective {kind}");
        if equal(ours, theirs) {
            self.report.agree(&what);
            self.configured(key, kind, theirs);
            return;
        }
        let reason = if circumstance::rule_name_taken(self.world, key) {
            "rule-name-taken"
        } else {
            UNEXPLAINED
        };
        self.note(key, kind, reason);
        let example = difference(key, ours, theirs);
        self.differ(&what, kind, reason, "other rules", &example);
    }

    /// Compares entail's claim that the policy is in effect with what the operator configures.
    fn configured(&mut self, key: &PathKey, kind: &str, theirs: &PathVerdict) {
        const WHAT: &str = "configuration of the gateway";
        const REASONS: [&str; 5] = [
            "controller",
            "hostname",
            "hostname-part",
            "route-name",
            "shared-host",
        ];
        if !self.configuration {
            return;
        }
        let named = |reason: &&str| theirs.unconfigured.iter().any(|r| r == reason);
        let reasons: Vec<&'static str> = REASONS.into_iter().filter(named).collect();
        for reason in &reasons {
            self.note(key, kind, reason);
        }
        let Some(reason) = reasons.first() else {
            self.report.agree(WHAT);
            return;
        };
        let example = format!("{key}: {:?}: {:?}", theirs.attached, theirs.unconfigured);
        self.differ(WHAT, kind, reason, "not as effective", &example);
    }

    /// Notes the reason of a difference for every policy that targets the path.
    fn note(&mut self, key: &PathKey, kind: &str, reason: &'static str) {
        for policy in circumstance::policies_on(self.world, kind, key) {
            let key = (kind.to_owned(), policy);
            self.on_paths.entry(key).or_default().insert(reason);
        }
    }

    /// Compares the policies of the direct kinds on listeners.
    fn listeners(&mut self) {
        for verdict in &self.verdict.listeners {
            if !DIRECT.contains(&verdict.kind.as_str()) {
                continue;
            }
            let (gateway, listener) = (&verdict.gateway, &verdict.listener);
            match self.answers.listener(gateway, listener, &verdict.kind) {
                Ok(ours) => self.listener(verdict, ours.as_ref()),
                Err(reason) => {
                    let seed = self.world.seed;
                    self.report.fail("entail does not answer", || {
                        format!("seed {seed}: {reason}")
                    });
                }
            }
        }
    }

    fn listener(&mut self, theirs: &ListenerVerdict, ours: Option<&v1::EffectivePolicy>) {
        let kind = theirs.kind.as_str();
        let what = format!("{kind} of a listener");
        let policies = ours.map(origins).unwrap_or_default();
        let same = policies == theirs.policies;
        if policies.is_empty() && !theirs.passed.is_empty() {
            // The operator passes over the listener.
            self.report.agree(&what);
            return;
        }
        let reason = match policies.as_slice() {
            _ if same && (policies.is_empty() || theirs.passed.is_empty()) => {
                if policies.is_empty() || self.is_whole(kind, ours, &policies) {
                    self.report.agree(&what);
                    return;
                }
                UNEXPLAINED
            }
            _ if same => theirs.passed.as_str(),
            [policy] if theirs.policies.contains(policy) => "equal-age",
            [policy] if self.refused(kind, policy) => "not-valid",
            [_] if circumstance::deleted_on_listener(self.world, theirs) => "deleted",
            _ => UNEXPLAINED,
        };
        let answer = if theirs.policies.is_empty() || !theirs.passed.is_empty() {
            "entail alone"
        } else {
            "other policies"
        };
        let example = format!("{theirs:?}, entail: {policies:?}");
        self.differ(&what, kind, reason, answer, &example);
    }

    /// Whether the answer is the whole specification of its policy.
    fn is_whole(
        &self,
        kind: &str,
        ours: Option<&v1::EffectivePolicy>,
        policies: &[String],
    ) -> bool {
        let policy = policies
            .first()
            .and_then(|policy| object(&self.world.objects, kind, policy));
        let mut spec: Map<String, Value> = policy
            .and_then(|policy| policy.get("spec")?.as_object().cloned())
            .unwrap_or_default();
        spec.remove("targetRef");
        let json = ours.and_then(|ours| ours.spec_json.as_deref());
        let answer: Option<Value> = json.and_then(|json| serde_json::from_str(json).ok());
        answer == Some(Value::Object(spec))
    }

    /// Whether the operator refuses a policy as invalid.
    fn refused(&self, kind: &str, policy: &str) -> bool {
        let named = |p: &&super::verdict::PolicyVerdict| p.kind == kind && p.policy == policy;
        let found = self.verdict.policies.iter().find(named);
        found.is_some_and(|p| p.accepted == "Invalid")
    }

    /// The kind and the `namespace/name` of the target of a policy.
    pub(super) fn target_of(&self, kind: &str, policy: &str) -> (String, String) {
        let found = object(&self.world.objects, kind, policy);
        let namespace = found.map_or("", |policy| text(policy, "/metadata/namespace"));
        let name = found.map_or("", |policy| text(policy, "/spec/targetRef/name"));
        let target = found.map_or("", |policy| text(policy, "/spec/targetRef/kind"));
        (target.to_owned(), format!("{namespace}/{name}"))
    }
}

/// The policies that the answer of entail comes from.
fn origins(ours: &v1::EffectivePolicy) -> Vec<String> {
    let policies = ours.origins.iter().flat_map(|origin| &origin.policies);
    let sorted: BTreeSet<String> = policies.map(policy_name).collect();
    sorted.into_iter().collect()
}

/// The origin that entail names for a rule: the one of the longest unit that covers it.
fn origin(ours: &v1::EffectivePolicy, place: &str) -> Option<String> {
    let fields = segments(place).into_iter();
    let rule = Unit(fields.map(|field| Segment::Field(field.into())).collect());
    let covering = ours.origins.iter().filter_map(|origin| {
        let unit = Unit::parse(&origin.unit)?;
        unit.covers(&rule).then_some((unit.0.len(), origin))
    });
    let (_, nearest) = covering.max_by_key(|(length, _)| *length)?;
    match nearest.policies.as_slice() {
        [policy] => Some(policy_name(policy)),
        _ => None,
    }
}

/// Whether both answers have the same rules, each from the same policy.
fn equal(ours: &v1::EffectivePolicy, theirs: &PathVerdict) -> bool {
    let json = ours.spec_json.as_deref();
    let spec: Option<Value> = json.and_then(|json| serde_json::from_str(json).ok());
    let same =
        |(place, rule): (&String, &RuleVerdict)| origin(ours, place).as_ref() == Some(&rule.source);
    spec == Some(theirs.spec()) && theirs.rules.iter().all(same)
}

/// A text about two answers that differ.
fn difference(key: &PathKey, ours: &v1::EffectivePolicy, theirs: &PathVerdict) -> String {
    let wrong = theirs
        .rules
        .iter()
        .find(|(place, rule)| origin(ours, place).as_ref() != Some(&rule.source));
    let origin = wrong.map(|(place, rule)| format!("{place} from {}", rule.source));
    format!(
        "{key}: attached {:?}; entail: {}; Kuadrant: {}; origin: {origin:?}",
        theirs.attached,
        ours.spec_json.as_deref().unwrap_or_default(),
        theirs.spec()
    )
}

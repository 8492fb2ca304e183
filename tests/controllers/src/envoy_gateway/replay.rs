//! Compares effective values by replay.
//!
//! entail's answer for a rule, given back as one policy on that rule alone, must make the controller
//! produce what it produced from the original policies. And each field of the answer must show: the
//! representation must change if the field is left out.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::answers::{Answers, Effective, ListenerPlace, RULE_KINDS, RuleAnswer, RulePlace, is};
use super::client::{self, Translation};
use super::given_back::{
    answer_text, fails_open, is_unchecked, policy, same_rules, short, target, units,
};
use super::is_untold;
use super::parts::{self, Fields};
use super::references;
use crate::judge::{Judge, JudgeError};
use crate::report::{Facts, Report};

/// The most fields that are left out one after the other.
const MOST_FIELDS: usize = 24;

/// A world with the answers of both sides.
#[derive(Debug)]
pub struct Comparison<'a> {
    /// Names the world in examples.
    pub origin: &'a str,
    /// Facts that hold for the whole world.
    pub facts: &'a Facts,
    /// The objects of the world.
    pub objects: &'a [Value],
    /// What entail answers.
    pub answers: &'a Answers,
    /// What the controller makes of the world.
    pub original: &'a Translation,
}

/// The answers of one replay: for each rule at most one answer of each kind.
type Batch<'a> =
    BTreeMap<&'a RulePlace, (&'a ListenerPlace, &'a BTreeMap<&'static str, Effective>)>;

impl Comparison<'_> {
    /// Compares all rules and listeners.
    ///
    /// # Errors
    /// Returns an error if the judge ended or a replay crashes the translator.
    pub fn run(&self, judge: &mut Judge, report: &mut Report) -> Result<(), JudgeError> {
        self.paths(report);
        let (batches, numbers) = self.batches();
        for (number, batch) in batches.iter().enumerate() {
            let whole = self.translate(batch, None, judge)?;
            self.fail_refused(&whole, report);
            let rules: Vec<&RuleAnswer> = (self.answers.rules.iter().zip(&numbers))
                .filter_map(|(rule, of)| (*of == number).then_some(rule))
                .collect();
            for rule in &rules {
                self.values(rule, &whole, report);
            }
            if number == 0 {
                self.listener_values(&whole, report);
            }
            let listeners = self
                .answers
                .listeners
                .iter()
                .map(|listener| &listener.effective);
            let kinds = rules.iter().flat_map(|rule| rule.kinds.values());
            let most = kinds
                .chain(listeners.filter(|_| number == 0))
                .map(|one| units(one).len())
                .max();
            for left_out in 0..most.unwrap_or(0).min(MOST_FIELDS) {
                let without = self.translate(batch, Some(left_out), judge)?;
                for rule in &rules {
                    self.shows(rule, left_out, &whole, &without, report);
                }
                if number == 0 {
                    self.listener_shows(left_out, &whole, &without, report);
                }
            }
        }
        Ok(())
    }

    /// Puts the answers into as few replays as possible, and returns the replay of each path. A rule
    /// can have other answers on other listeners.
    fn batches(&self) -> (Vec<Batch<'_>>, Vec<usize>) {
        let mut batches: Vec<Batch<'_>> = vec![Batch::new()];
        let mut numbers = Vec::new();
        for answer in &self.answers.rules {
            let free = |batch: &Batch<'_>| match batch.get(&answer.rule) {
                Some((_, known)) => same_rules(known, &answer.kinds),
                None => true,
            };
            let number = batches.iter().position(free).unwrap_or(batches.len());
            if number == batches.len() {
                batches.push(Batch::new());
            }
            if let Some(batch) = batches.get_mut(number) {
                batch
                    .entry(&answer.rule)
                    .or_insert((&answer.listener, &answer.kinds));
            }
            numbers.push(number);
        }
        (batches, numbers)
    }

    fn translate(
        &self,
        batch: &Batch<'_>,
        left_out: Option<usize>,
        judge: &mut Judge,
    ) -> Result<Translation, JudgeError> {
        let mut policies = Vec::new();
        let mut grants = BTreeMap::new();
        let mut targets = BTreeSet::new();
        for (rule, (listener, kinds)) in batch {
            for (kind, effective) in *kinds {
                let target = target(kind, rule, listener);
                let is_new = matches!(effective, Effective::Rules(..))
                    && targets.insert((*kind, target.to_string()));
                if !is_new {
                    continue;
                }
                let name = policies.len();
                let namespace = match target["kind"].as_str() {
                    Some("Gateway" | "ListenerSet") => &listener.namespace,
                    _ => &rule.namespace,
                };
                let made = policy(
                    kind,
                    effective,
                    left_out,
                    namespace,
                    name,
                    target,
                    &mut grants,
                );
                policies.extend(made);
            }
        }
        self.listener_policies(left_out, &mut policies, &mut grants);
        policies.extend(self.backend_policies());
        client::replay(judge, &policies, &references::grants(grants))
    }

    /// Gives the answers for listeners back.
    fn listener_policies(
        &self,
        left_out: Option<usize>,
        policies: &mut Vec<Value>,
        grants: &mut references::Needed,
    ) {
        let kind = "ClientTrafficPolicy";
        let mut targets = BTreeSet::new();
        let mut rest = Vec::new();
        let mut is_whole = false;
        for answer in &self.answers.listeners {
            let place = &answer.listener;
            let target = self.listener_target(place);
            let name = policies.len();
            let made = policy(
                kind,
                &answer.effective,
                left_out,
                &place.namespace,
                name,
                target.clone(),
                grants,
            );
            match made {
                Some(made) if targets.insert((place.namespace.clone(), target.to_string())) => {
                    is_whole |= target.get("sectionName").is_none();
                    policies.push(made);
                }
                Some(_) => {}
                None => rest.push((place, target)),
            }
        }
        // What a whole Gateway has reaches its other listeners, unless they have a policy of their own.
        for (place, target) in rest.into_iter().filter(|_| is_whole) {
            if targets.insert((place.namespace.clone(), target.to_string())) {
                let name = format!("replay-{}", policies.len());
                policies.push(json!({
                    "apiVersion": "gateway.envoyproxy.io/v1alpha1", "kind": kind,
                    "metadata": {"name": name, "namespace": place.namespace},
                    "spec": {"targetRefs": [target]},
                }));
            }
        }
    }

    /// What the policy of a listener targets: the listener; or, as the controller refuses policies of a listener that
    /// shares its port, all listeners of the Gateway or ListenerSet.
    fn listener_target(&self, place: &ListenerPlace) -> Value {
        let mut target = json!({
            "group": "gateway.networking.k8s.io", "kind": place.owner, "name": place.owner_name,
        });
        let own = self.spec_of(place);
        if own["protocol"] != "HTTP" || !self.shares_port(place) {
            target["sectionName"] = place.section.clone().into();
        }
        target
    }

    /// Whether another listener of the Gateway has the port.
    fn shares_port(&self, place: &ListenerPlace) -> bool {
        let own = self.spec_of(place);
        let same = |port: &&Value| **port == own["port"];
        self.original_ports(place).filter(same).count() > 1
    }

    fn backend_policies(&self) -> Vec<Value> {
        let mut policies = Vec::new();
        for answer in &self.answers.backends {
            let (Effective::Rules(_, rules), (kind, namespace, name, port)) =
                (&answer.effective, &answer.backend)
            else {
                continue;
            };
            let group = if kind == "Service" {
                ""
            } else {
                "gateway.envoyproxy.io"
            };
            let mut target = json!({"group": group, "kind": kind, "name": name});
            let service = self
                .objects
                .iter()
                .find(|object| is(object, kind, namespace, name));
            let ports = service.and_then(|service| service["spec"]["ports"].as_array());
            let port = ports
                .into_iter()
                .flatten()
                .find(|one| one["port"].as_u64() == port.parse().ok());
            match port {
                Some(port) if port["name"].is_string() => {
                    target["sectionName"] = port["name"].clone()
                }
                // A backend without a port has its policies at its ports.
                _ if kind == "Service" => continue,
                _ => {}
            }
            let mut spec = rules.clone();
            spec["targetRefs"] = json!([target]);
            policies.push(json!({
                "apiVersion": "gateway.networking.k8s.io/v1", "kind": "BackendTLSPolicy",
                "metadata": {"name": format!("replay-tls-{}", policies.len()), "namespace": namespace},
                "spec": spec,
            }));
        }
        policies
    }

    fn fail_refused(&self, translation: &Translation, report: &mut Report) {
        for refusal in &translation.refused {
            report.fail("an answer cannot be given back", || {
                format!("{} {}: {}", self.origin, refusal.object, refusal.reason)
            });
        }
    }

    /// Both sides must have the same rules on the same listeners.
    fn paths(&self, report: &mut Report) {
        let mut known = BTreeSet::new();
        for answer in &self.answers.rules {
            let (route, index) = (answer.rule.route(), answer.rule.index);
            known.insert((
                answer.listener.name.clone(),
                route.clone(),
                index.to_string(),
            ));
            let found = self
                .original
                .rule(&answer.listener.name, &route, index)
                .is_some();
            if found || !self.is_served(&answer.listener) {
                report.agree("path");
                continue;
            }
            let mut facts = self.rule_facts(&answer.listener, &answer.rule);
            facts.insert("how".to_owned(), "only entail".to_owned());
            report.differ("path", facts, || format!("{} {}", self.origin, answer.path));
        }
        for rule in &self.original.rules {
            let key = (rule.listener.clone(), rule.route.clone(), rule.rule.clone());
            if known.contains(&key) {
                continue;
            }
            let mut facts = self.facts.clone();
            facts.insert("how".to_owned(), "only controller".to_owned());
            let kind = rule.route.split('/').next().unwrap_or_default();
            facts.insert("route".to_owned(), kind.to_owned());
            report.differ("path", facts, || {
                format!(
                    "{} {} {} rule {}",
                    self.origin, rule.listener, rule.route, rule.rule
                )
            });
        }
    }

    /// Whether the listener belongs to a Gateway of this controller.
    fn is_served(&self, listener: &ListenerPlace) -> bool {
        let gateway: Vec<&str> = listener.name.split('/').take(2).collect();
        let prefix = gateway.join("/") + "/";
        self.original
            .listeners
            .iter()
            .any(|one| one.listener.starts_with(&prefix))
    }

    fn values(&self, answer: &RuleAnswer, whole: &Translation, report: &mut Report) {
        let (route, index) = (answer.rule.route(), answer.rule.index);
        let Some(original) = self.original.rule(&answer.listener.name, &route, index) else {
            return;
        };
        let replayed = whole
            .rule(&answer.listener.name, &route, index)
            .unwrap_or_default();
        // Other routes have no status: nothing of the policy is in force there.
        let has_status = ["HTTPRoute", "GRPCRoute"].contains(&answer.rule.kind.as_str());
        let closed = answer
            .kinds
            .values()
            .any(|one| *one == Effective::FailsClosed);
        for kind in RULE_KINDS.iter().chain(&["BackendTLSPolicy", "any"]) {
            let mut facts = self.rule_facts(&answer.listener, &answer.rule);
            let effective = answer.kinds.get(kind).unwrap_or(&Effective::None);
            if *effective == Effective::Unknown && is_untold(self.facts) {
                report.not_known("effective value");
                continue;
            }
            self.kind_facts(kind, effective, original, &mut facts);
            refusal_facts(kind, whole, &mut facts);
            // Requests to a backend must fail, alone or beside others of the rule, whatever the representation of the
            // rest is.
            if answer.closed_backend && fails(original) {
                report.agree("effective value");
                continue;
            }
            // Every request must get a 500, whatever else the representation holds.
            if closed && response(original).is_some_and(|code| code == 500) {
                report.agree("effective value");
                continue;
            }
            if has_status && *effective == Effective::FailsClosed {
                facts.insert("how".to_owned(), "only entail".to_owned());
                facts.insert("field".to_owned(), "directResponse".to_owned());
                report.differ("effective value", facts, || {
                    format!("{} {}: entail fails closed", self.origin, answer.path)
                });
                continue;
            }
            let (controller, entail) = (parts::rule(kind, original), parts::rule(kind, replayed));
            self.fields(&facts, &answer.path, &controller, &entail, report);
        }
    }

    fn fields(
        &self,
        facts: &Facts,
        path: &str,
        controller: &Fields,
        entail: &Fields,
        report: &mut Report,
    ) {
        const WHAT: &str = "effective value";
        if controller.is_empty() && entail.is_empty() {
            return report.agree("no effective value");
        }
        let names: BTreeSet<&String> = controller.keys().chain(entail.keys()).collect();
        for name in names {
            let (theirs, ours) = (controller.get(name), entail.get(name));
            if theirs == ours {
                report.agree(WHAT);
                continue;
            }
            let how = match (theirs, ours) {
                (None, _) => "only entail",
                (_, None) => "only controller",
                _ => "other value",
            };
            let mut facts = facts.clone();
            facts.insert("field".to_owned(), name.clone());
            facts.insert("how".to_owned(), how.to_owned());
            report.differ(WHAT, facts, || {
                format!(
                    "{} {path}: controller {}; entail {}",
                    self.origin,
                    short(theirs),
                    short(ours)
                )
            });
        }
    }

    fn listener_values(&self, whole: &Translation, report: &mut Report) {
        for answer in &self.answers.listeners {
            let Some(original) = self.original.listener(&answer.listener.name) else {
                continue;
            };
            let none = Map::new();
            let replayed = whole.listener(&answer.listener.name).unwrap_or(&none);
            if answer.effective == Effective::Unknown && is_untold(self.facts) {
                report.not_known("effective value");
                continue;
            }
            let facts = self.listener_facts(&answer.listener, &answer.effective);
            let (controller, entail) = (parts::listener(original), parts::listener(replayed));
            self.fields(&facts, &answer.path, &controller, &entail, report);
        }
    }

    /// A field of an answer must change the representation.
    fn shows(
        &self,
        answer: &RuleAnswer,
        left_out: usize,
        whole: &Translation,
        without: &Translation,
        report: &mut Report,
    ) {
        let (route, index) = (answer.rule.route(), answer.rule.index);
        let Some(original) = self.original.rule(&answer.listener.name, &route, index) else {
            return;
        };
        let of = |translation: &Translation, kind| {
            let ir = translation.rule(&answer.listener.name, &route, index);
            parts::rule(kind, ir.unwrap_or_default())
        };
        for (kind, effective) in &answer.kinds {
            let Some(unit) = units(effective).into_iter().nth(left_out) else {
                continue;
            };
            if of(whole, kind) != of(without, kind) {
                report.agree("claimed field shows");
                continue;
            }
            let mut facts = self.rule_facts(&answer.listener, &answer.rule);
            self.kind_facts(kind, effective, original, &mut facts);
            refusal_facts(kind, whole, &mut facts);
            if fails_open(effective, &unit) {
                let told = if is_unchecked(effective) {
                    "unknown"
                } else {
                    "yes"
                };
                facts.insert("failOpen".to_owned(), told.to_owned());
            }
            facts.insert("field".to_owned(), unit.join("."));
            report.differ("claimed field shows", facts, || {
                format!("{} {}", self.origin, answer.path)
            });
        }
    }

    fn listener_shows(
        &self,
        left_out: usize,
        whole: &Translation,
        without: &Translation,
        report: &mut Report,
    ) {
        for answer in &self.answers.listeners {
            let Some(unit) = units(&answer.effective).into_iter().nth(left_out) else {
                continue;
            };
            let name = &answer.listener.name;
            if self.original.listener(name).is_none() {
                continue;
            }
            let of = |translation: &Translation| translation.listener(name).map(parts::listener);
            if of(whole) != of(without) {
                report.agree("claimed field shows");
                continue;
            }
            let mut facts = self.listener_facts(&answer.listener, &answer.effective);
            facts.insert("field".to_owned(), unit.join("."));
            report.differ("claimed field shows", facts, || {
                format!("{} {}", self.origin, answer.path)
            });
        }
    }

    /// The listener as it is written.
    fn spec_of(&self, listener: &ListenerPlace) -> &Value {
        let owner = self.objects.iter().find(|one| {
            is(
                one,
                listener.owner,
                &listener.namespace,
                &listener.owner_name,
            )
        });
        let listeners = owner.and_then(|owner| owner["spec"]["listeners"].as_array());
        let found = listeners
            .into_iter()
            .flatten()
            .find(|one| one["name"] == listener.section);
        found.unwrap_or(&Value::Null)
    }

    /// The ports of all listeners of a listener's Gateway.
    fn original_ports(&self, listener: &ListenerPlace) -> impl Iterator<Item = &Value> {
        let prefix: Vec<&str> = listener.name.split('/').take(2).collect();
        let prefix = prefix.join("/") + "/";
        let all = self.answers.listeners.iter().map(|answer| &answer.listener);
        all.filter(move |one| one.name.starts_with(&prefix))
            .map(|one| &self.spec_of(one)["port"])
    }

    fn rule_facts(&self, listener: &ListenerPlace, rule: &RulePlace) -> Facts {
        let mut facts = self.facts.clone();
        let mut add = |name: &str, value: &str| facts.insert(name.to_owned(), value.to_owned());
        add("route", &rule.kind);
        add("listener", listener.owner);
        if self
            .backends(rule)
            .any(|backend| backend["kind"] == "Backend")
        {
            add("backends", "Backend");
        }
        let own = self.own_fields(rule);
        if !own.is_empty() {
            add("own fields", &own.join("+"));
        }
        facts
    }

    /// The rule as it is written.
    fn rule_of(&self, rule: &RulePlace) -> &Value {
        let of = |one: &&Value| is(one, &rule.kind, &rule.namespace, &rule.name);
        let route = self.objects.iter().find(of);
        route.map_or(&Value::Null, |route| &route["spec"]["rules"][rule.index])
    }

    fn backends(&self, rule: &RulePlace) -> impl Iterator<Item = &Value> {
        self.rule_of(rule)["backendRefs"]
            .as_array()
            .into_iter()
            .flatten()
    }

    /// The fields of the route's rule that replace fields of policies.
    fn own_fields(&self, rule: &RulePlace) -> Vec<&'static str> {
        let rule = self.rule_of(rule);
        let filters = rule["filters"].as_array();
        let has_cors =
            filters.is_some_and(|filters| filters.iter().any(|one| one["type"] == "CORS"));
        let own = [
            ("cors", has_cors),
            ("retry", !rule["retry"].is_null()),
            ("timeouts", !rule["timeouts"].is_null()),
        ];
        own.into_iter()
            .filter_map(|(name, has)| has.then_some(name))
            .collect()
    }

    fn kind_facts(
        &self,
        kind: &str,
        effective: &Effective,
        original: &[Map<String, Value>],
        facts: &mut Facts,
    ) {
        let mut add = |name: &str, value: &str| facts.insert(name.to_owned(), value.to_owned());
        add("kind", kind);
        add("answer", &answer_text(effective));
        if let Some(code) = response(original) {
            add("response", &code.to_string());
        }
    }

    fn listener_facts(&self, listener: &ListenerPlace, effective: &Effective) -> Facts {
        let mut facts = self.facts.clone();
        let mut add = |name: &str, value: &str| facts.insert(name.to_owned(), value.to_owned());
        add("listener", listener.owner);
        let own = self.spec_of(listener);
        add("protocol", own["protocol"].as_str().unwrap_or_default());
        let is_shared = self.shares_port(listener);
        add("port", if is_shared { "shared" } else { "own" });
        add("kind", "ClientTrafficPolicy");
        add("answer", &answer_text(effective));
        facts
    }
}

/// Whether the controller refuses an answer that is given back as one policy for the units of its local rate limits. It
/// checks them before it merges policies, and not after.
fn refusal_facts(kind: &str, whole: &Translation, facts: &mut Facts) {
    let policies = whole.policies.iter().filter(|policy| policy.kind == kind);
    let conditions = policies
        .flat_map(|policy| &policy.ancestors)
        .filter_map(|ancestor| ancestor.condition("Accepted"));
    let mut messages = conditions.map(|condition| condition.message.as_str());
    if messages.any(|message| message.contains("multiple of the default limit unit")) {
        facts.insert("refused".to_owned(), "units of limits".to_owned());
    }
}

/// Whether a rule answers every request with status 500, or some for want of a backend that it can connect to.
fn fails(original: &[Map<String, Value>]) -> bool {
    let is_down = |ir: &Map<String, Value>| {
        let settings = ir.get("destination").map(|one| &one["settings"]);
        let settings = settings.and_then(Value::as_array);
        let mut settings = settings.into_iter().flatten();
        settings.any(|one| one["endpoints"].is_null())
    };
    response(original).is_some_and(|code| code == 500) || original.iter().any(is_down)
}

/// The status with which a rule answers every request itself.
fn response(original: &[Map<String, Value>]) -> Option<&Value> {
    original
        .iter()
        .find_map(|ir| ir.get("directResponse"))
        .map(|one| &one["statusCode"])
}

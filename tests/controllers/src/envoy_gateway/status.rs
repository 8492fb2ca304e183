//! Compares the statuses of policies.

use std::collections::{BTreeMap, BTreeSet};

use entail::api::v1;
use serde_json::Value;

use super::answers::{Answers, ListenerPlace, RulePlace, is, policy_name};
use super::client::{Ancestor, Condition, Translation};
use super::is_untold;
use super::words::Words;
use crate::report::{Facts, Report};

/// Compares Accepted, Conflicted, Overridden and Merged of every policy.
pub fn compare(
    origin: &str,
    facts: &Facts,
    controller: &str,
    objects: &[Value],
    answers: &Answers,
    translation: &Translation,
    report: &mut Report,
) {
    let managed = managed(objects, controller, answers);
    let words = Words::of(answers, objects);
    for status in &answers.statuses {
        let Some((kind, group)) = status.kind.split_once('.') else {
            continue;
        };
        let ours = group == "gateway.envoyproxy.io" || kind == "BackendTLSPolicy";
        // entail says of a kind without a profile that it does not know it.
        let accepted = status.conditions.first();
        let is_unprofiled = accepted.is_some_and(|accepted| accepted.reason == "NoProfile");
        if !ours || is_unprofiled || kind == "EnvoyPatchPolicy" {
            continue;
        }
        let policy = status.policy.clone().unwrap_or_default();
        let find = |object: &&Value| is(object, kind, &policy.namespace, &policy.name);
        let Some(object) = objects.iter().find(find) else {
            continue;
        };
        let comparison = Comparison {
            origin,
            name: policy_name(status),
            facts: circumstances(facts, kind, object),
            ancestors: translation.ancestors(kind, &policy.namespace, &policy.name),
            status,
            managed: &managed,
            targets_managed: targets(object, &policy.namespace, &managed, objects),
            is_used: is_used(status, answers, translation),
        };
        comparison.accepted(report);
        comparison.conflicted(report);
        if comparison.is_accepted() {
            let shares = answers
                .shares
                .get(&comparison.name)
                .map_or(&[][..], Vec::as_slice);
            comparison.overridden(&words, shares, report);
            comparison.merged(&words, report);
            comparison.lost(shares, report);
        }
    }
}

struct Comparison<'a> {
    origin: &'a str,
    name: String,
    facts: Facts,
    ancestors: &'a [Ancestor],
    status: &'a v1::PolicyStatus,
    managed: &'a BTreeSet<String>,
    targets_managed: bool,
    is_used: bool,
}

impl Comparison<'_> {
    fn record(&self, what: &str, entail: &str, controller: &str, report: &mut Report) {
        self.record_with(what, Facts::new(), entail, controller, report);
    }

    /// Records a comparison with facts of its own.
    fn record_with(
        &self,
        what: &str,
        own: Facts,
        entail: &str,
        controller: &str,
        report: &mut Report,
    ) {
        if entail == controller {
            return report.agree(what);
        }
        let mut facts = self.facts.clone();
        facts.extend(own);
        facts.insert("entail".to_owned(), entail.to_owned());
        facts.insert("controller".to_owned(), controller.to_owned());
        facts.insert("cause".to_owned(), self.cause().to_owned());
        let own = self.status.conditions.first().cloned().unwrap_or_default();
        facts.insert("reason".to_owned(), own.reason);
        facts.insert("merged".to_owned(), yes(self.has("Merged")).to_owned());
        report.differ(what, facts, || {
            let conditions: Vec<String> = self.ancestors.iter().map(text).collect();
            let condition = self.status.conditions.first().cloned().unwrap_or_default();
            format!(
                "{} {}: entail {}/{} {} in force {}; controller {}",
                self.origin,
                self.name,
                condition.status,
                condition.reason,
                condition.message,
                self.status.in_force,
                conditions.join("; ")
            )
        });
    }

    /// What the messages of the controller complain about.
    fn cause(&self) -> &'static str {
        let messages = self
            .ancestors
            .iter()
            .flat_map(|ancestor| &ancestor.conditions);
        let refused: Vec<&str> = messages
            .filter(|condition| condition.r#type == "Accepted" && condition.status == "False")
            .map(|condition| condition.message.as_str())
            .collect();
        let has = |part: &str| refused.iter().any(|message| message.contains(part));
        if refused.is_empty() {
            "none"
        } else if has("on the same port") {
            "shared port"
        } else if has("for TCP") {
            "TCP route"
        } else if has("not found") || has("not exist") || has("no ConfigMap") {
            "missing reference"
        } else if refused
            .iter()
            .all(|message| message.contains("has already attached"))
        {
            "conflict"
        } else {
            "invalid value"
        }
    }

    fn is_accepted(&self) -> bool {
        self.entail_accepted() == "Accepted" && self.controller_accepted() == "Accepted"
    }

    fn accepted(&self, report: &mut Report) {
        let (entail, controller) = (self.entail_accepted(), self.controller_accepted());
        if entail == "Unknown" && is_untold(&self.facts) {
            return report.not_known("status Accepted");
        }
        // The controller accepts a policy on a Gateway without routes.
        let is_idle =
            entail == "NoScope" && ["Accepted", "NoTarget"].contains(&controller.as_str());
        // It writes no status for a policy on a backend that no rule uses.
        let is_unused = self.status.kind.starts_with("BackendTLSPolicy.")
            && entail == "Accepted"
            && controller == "NoTarget"
            && !self.is_used;
        // It keeps one status for each parent of a route, and accepts for the others what it refuses for one.
        let is_of_one_parent = entail == "Invalid" && self.is_refused_for("Invalid");
        let is_told =
            is_idle || is_unused || is_of_one_parent || self.is_of_one_reference(&controller);
        let entail = if is_told { &controller } else { &entail };
        self.record("status Accepted", entail, &controller, report);
    }

    /// Whether the word of the controller is that of one of several references: it keeps one status for each Gateway, so
    /// that a reference hides others.
    fn is_of_one_reference(&self, controller: &str) -> bool {
        let references = &self.status.references;
        let word = |reference: &v1::ReferenceStatus| match reference.outcome.as_str() {
            "TargetNotFound" | "RefNotPermitted" => "NoTarget".to_owned(),
            outcome => outcome.to_owned(),
        };
        references.len() > 1
            && self.is_managed()
            && references
                .iter()
                .any(|reference| word(reference) == controller)
    }

    /// `Accepted`, `NoTarget` for a policy without an object of this controller, or the reason.
    fn entail_accepted(&self) -> String {
        let condition = self.status.conditions.first().cloned().unwrap_or_default();
        match (condition.status.as_str(), condition.reason.as_str()) {
            ("True", _) if ["NoScope", "Unknown"].contains(&self.status.in_force.as_str()) => {
                self.status.in_force.clone()
            }
            (_, "TargetNotFound" | "RefNotPermitted") => "NoTarget".to_owned(),
            _ if !self.is_managed() => "NoTarget".to_owned(),
            ("True", _) => "Accepted".to_owned(),
            (_, reason) => reason.to_owned(),
        }
    }

    /// Whether the controller is the one that writes the status: another does for the objects of
    /// another controller.
    fn is_managed(&self) -> bool {
        self.status
            .ancestors
            .iter()
            .any(|ancestor| self.managed.contains(ancestor))
            || self.targets_managed
    }

    /// The same of the controller. It writes no status where it finds no target, and
    /// `TargetNotFound` where only the section is missing.
    fn controller_accepted(&self) -> String {
        if self
            .ancestors
            .iter()
            .any(|ancestor| ancestor.is_true("Accepted"))
        {
            return "Accepted".to_owned();
        }
        let reasons = self
            .ancestors
            .iter()
            .filter_map(|ancestor| ancestor.condition("Accepted"));
        let reasons: Vec<&str> = reasons
            .map(Self::reason)
            .filter(|reason| *reason != "TargetNotFound")
            .collect();
        reasons
            .first()
            .map_or("NoTarget", |reason| *reason)
            .to_owned()
    }

    /// The reason of a condition. The controller calls a conflict by port Invalid.
    fn reason(condition: &Condition) -> &str {
        match condition.message.contains("on the same port") {
            true => "Conflicted",
            false => condition.reason.as_str(),
        }
    }

    fn conflicted(&self, report: &mut Report) {
        // A reference that keeps some objects tells which it lost.
        let of = |reference: &v1::ReferenceStatus| {
            let is_lost_in_part = reference.outcome == "Accepted" && !reference.message.is_empty();
            reference.outcome == "Conflicted" || is_lost_in_part
        };
        let references = self.status.references.iter();
        let entail = self.is_managed() && references.clone().any(of);
        let is_hidden = references.clone().any(of) && !references.clone().all(of);
        let of = |ancestor: &Ancestor| {
            ancestor
                .condition("Accepted")
                .is_some_and(|condition| Self::reason(condition) == "Conflicted")
        };
        let controller = self.ancestors.iter().any(of);
        // The status of another reference can hide that of the one that lost the conflict.
        let entail = entail && (controller || !is_hidden);
        self.record("status Conflicted", yes(entail), yes(controller), report);
    }

    /// The controller calls a policy overridden where a more specific one is attached that does not merge.
    fn overridden(&self, words: &Words, shares: &[v1::AffectedPath], report: &mut Report) {
        const WHAT: &str = "status Overridden";
        let controller = self.has("Overridden");
        let entail = match self.facts.get("kind").map(String::as_str) {
            Some("BackendTLSPolicy") => !lost_fields(shares).is_empty(),
            _ => words.overridden.contains(&self.name),
        };
        self.record(WHAT, yes(entail), yes(controller), report);
    }

    /// The controller calls policies merged where one is attached below the other and merges.
    fn merged(&self, words: &Words, report: &mut Report) {
        let entail = words.merged.contains(&self.name);
        self.record(
            "status Merged",
            yes(entail),
            yes(self.has("Merged")),
            report,
        );
    }

    /// A policy that has lost everything on some path to other policies is overridden or merged.
    fn lost(&self, shares: &[v1::AffectedPath], report: &mut Report) {
        let lost = lost_fields(shares);
        if lost.is_empty() {
            return;
        }
        // It is refused where the result of a merge would be.
        let told = self.has("Overridden") || self.has("Merged") || self.is_refused_for("Invalid");
        let lost: Vec<&str> = lost.into_iter().collect();
        let facts = Facts::from([("lost".to_owned(), lost.join("+"))]);
        self.record_with("loss has a condition", facts, yes(true), yes(told), report);
    }

    /// Whether the policy is refused with a reason for some ancestor.
    fn is_refused_for(&self, reason: &str) -> bool {
        let refused =
            |condition: &Condition| condition.status == "False" && condition.reason == reason;
        let mut ancestors = self.ancestors.iter();
        ancestors.any(|ancestor| ancestor.condition("Accepted").is_some_and(refused))
    }

    fn has(&self, condition: &str) -> bool {
        let mut ancestors = self.ancestors.iter();
        ancestors.any(|ancestor| ancestor.is_true(condition))
    }
}

/// The fields that a policy has lost on paths on which nothing is left of it.
fn lost_fields(shares: &[v1::AffectedPath]) -> BTreeSet<&str> {
    shares
        .iter()
        .filter(|share| share.effective_units.is_empty())
        .flat_map(|share| &share.overridden_units)
        .map(|unit| unit.split(['.', '[']).next().unwrap_or_default())
        .collect()
}

fn yes(holds: bool) -> &'static str {
    if holds { "yes" } else { "no" }
}

fn text(ancestor: &Ancestor) -> String {
    let conditions = ancestor.conditions.iter().map(|condition| {
        format!(
            "{}={}/{} {}",
            condition.r#type, condition.status, condition.reason, condition.message
        )
    });
    format!(
        "{}: {}",
        ancestor.ancestor_ref,
        conditions.collect::<Vec<_>>().join(", ")
    )
}

/// Whether a rule that the controller serves has a backend that the policy targets.
fn is_used(status: &v1::PolicyStatus, answers: &Answers, translation: &Translation) -> bool {
    let nodes: BTreeSet<&str> = status
        .references
        .iter()
        .flat_map(|reference| &reference.nodes)
        .map(String::as_str)
        .collect();
    answers.rules.iter().any(|answer| {
        let (route, index) = (answer.rule.route(), answer.rule.index);
        let is_served = translation.rule(&answer.listener.name, &route, index);
        is_served.is_some()
            && answer
                .backends
                .iter()
                .any(|one| nodes.contains(one.as_str()))
    })
}

/// What classes of differences depend on: the kind, how it targets what, and its strategy.
pub fn circumstances(facts: &Facts, kind: &str, object: &Value) -> Facts {
    let spec = &object["spec"];
    let mut references: Vec<&Value> = spec["targetRefs"]
        .as_array()
        .into_iter()
        .flatten()
        .collect();
    references.extend(spec.get("targetRef"));
    let selectors: Vec<&Value> = spec["targetSelectors"]
        .as_array()
        .into_iter()
        .flatten()
        .collect();
    let mut levels: BTreeMap<String, ()> = BTreeMap::new();
    for reference in references.iter().chain(&selectors) {
        let kind = reference["kind"].as_str().unwrap_or_default();
        let section = if reference["sectionName"].is_string() {
            "#section"
        } else {
            ""
        };
        levels.insert(format!("{kind}{section}"), ());
    }
    let targets = references.len() + selectors.len();
    let mut facts = facts.clone();
    let mut add = |name: &str, value: &str| facts.insert(name.to_owned(), value.to_owned());
    add("kind", kind);
    add("level", &levels.into_keys().collect::<Vec<_>>().join("+"));
    let form = match (selectors.is_empty(), targets) {
        (false, _) => "selector",
        (_, 0 | 1) => "one",
        (_, 2..=16) => "several",
        _ => "more than 16",
    };
    add("references", form);
    add("merge", spec["mergeType"].as_str().unwrap_or("none"));
    facts
}

/// Whether a policy names or selects an object of the controller.
fn targets(object: &Value, namespace: &str, managed: &BTreeSet<String>, objects: &[Value]) -> bool {
    let spec = &object["spec"];
    let selectors = spec["targetSelectors"].as_array().into_iter().flatten();
    for selector in selectors {
        // Expressions are in test inputs alone.
        let is_simple = selector["matchExpressions"].is_null();
        let mut found = objects
            .iter()
            .filter(|one| selects(selector, namespace, one, objects));
        if !is_simple || found.any(|one| managed.contains(&object_name(one))) {
            return true;
        }
    }
    let references = spec["targetRefs"]
        .as_array()
        .into_iter()
        .flatten()
        .chain(spec.get("targetRef"));
    let mut names = references.map(|reference| {
        let text = |field: &str| reference[field].as_str().unwrap_or_default();
        format!("{}/{namespace}/{}", text("kind"), text("name"))
    });
    names.any(|name| managed.contains(&name))
}

/// Whether a selector of a policy in a namespace selects an object.
fn selects(selector: &Value, namespace: &str, object: &Value, objects: &[Value]) -> bool {
    let own = object["metadata"]["namespace"].as_str().unwrap_or_default();
    let from = &selector["namespaces"];
    let is_namespace = match from["from"].as_str() {
        Some("All") => true,
        Some("Selector") => {
            let found = objects.iter().find(|one| is(one, "Namespace", "", own));
            let labels = found.map(|one| &one["metadata"]["labels"]);
            labels.is_some_and(|labels| has_labels(labels, &from["selector"]["matchLabels"]))
        }
        _ => own == namespace,
    };
    let labels = &object["metadata"]["labels"];
    is_namespace
        && object["kind"] == selector["kind"]
        && has_labels(labels, &selector["matchLabels"])
}

/// Whether an object has all wanted labels.
fn has_labels(labels: &Value, wanted: &Value) -> bool {
    let mut wanted = wanted.as_object().into_iter().flatten();
    wanted.all(|(name, value)| labels[name] == *value)
}

/// The objects of the controller: its Gateways, and what is attached to them.
fn managed(objects: &[Value], controller: &str, answers: &Answers) -> BTreeSet<String> {
    let of_kind = |kind: &'static str| objects.iter().filter(move |object| object["kind"] == kind);
    let classes: Vec<&Value> = of_kind("GatewayClass")
        .filter(|class| class["spec"]["controllerName"] == controller)
        .map(|class| &class["metadata"]["name"])
        .collect();
    let mut managed: BTreeSet<String> = of_kind("Gateway")
        .filter(|gateway| classes.contains(&&gateway["spec"]["gatewayClassName"]))
        .map(|gateway| {
            let text = |field: &str| {
                gateway["metadata"][field]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned()
            };
            format!("Gateway/{}/{}", text("namespace"), text("name"))
        })
        .collect();
    let is_own = |listener: &ListenerPlace, managed: &BTreeSet<String>| {
        let gateway: Vec<&str> = listener.name.split('/').take(2).collect();
        managed.contains(&format!("Gateway/{}", gateway.join("/")))
    };
    for listener in answers.listeners.iter().map(|answer| &answer.listener) {
        if is_own(listener, &managed) {
            managed.insert(format!(
                "{}/{}/{}",
                listener.owner, listener.namespace, listener.owner_name
            ));
        }
    }
    for answer in &answers.rules {
        if is_own(&answer.listener, &managed) {
            let RulePlace {
                kind,
                namespace,
                name,
                ..
            } = &answer.rule;
            managed.insert(format!("{kind}/{namespace}/{name}"));
        }
    }
    let routes = objects
        .iter()
        .filter(|object| names_parent(object, &managed));
    let routes: Vec<String> = routes.map(object_name).collect();
    managed.extend(routes);
    managed
}

/// Whether a Route names one of these objects as its parent, whether it is served there or not.
fn names_parent(object: &Value, managed: &BTreeSet<String>) -> bool {
    let kind = object["kind"].as_str().unwrap_or_default();
    let parents = object["spec"]["parentRefs"].as_array();
    let mut names = parents.into_iter().flatten().map(|parent| {
        let text = |field: &str| parent[field].as_str();
        let own = object["metadata"]["namespace"].as_str();
        let namespace = text("namespace").or(own).unwrap_or_default();
        let kind = text("kind").unwrap_or("Gateway");
        format!("{kind}/{namespace}/{}", text("name").unwrap_or_default())
    });
    kind.ends_with("Route") && names.any(|name| managed.contains(&name))
}

/// `Kind/namespace/name`.
pub fn object_name(object: &Value) -> String {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    let kind = object["kind"].as_str().unwrap_or_default();
    format!("{kind}/{}/{}", text("namespace"), text("name"))
}

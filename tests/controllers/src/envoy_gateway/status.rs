//! Compares the statuses of policies.

use std::collections::BTreeMap;

use entail::api::v1;
use serde_json::Value;

use super::answers::{Answers, is, policy_name};
use super::client::{Ancestor, Translation};
use crate::report::{Facts, Report};

/// Compares Accepted, Conflicted, Overridden and Merged of every policy.
pub fn compare(
    origin: &str,
    facts: &Facts,
    objects: &[Value],
    answers: &Answers,
    translation: &Translation,
    report: &mut Report,
) {
    for status in &answers.statuses {
        let Some((kind, group)) = status.kind.split_once('.') else {
            continue;
        };
        let ours = group == "gateway.envoyproxy.io" || kind == "BackendTLSPolicy";
        if !ours || kind == "EnvoyPatchPolicy" {
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
        };
        comparison.accepted(report);
        comparison.conflicted(report);
        if comparison.is_accepted() {
            let shares = answers
                .shares
                .get(&comparison.name)
                .map_or(&[][..], Vec::as_slice);
            comparison.overridden(shares, report);
            comparison.merged(answers, report);
        }
    }
}

struct Comparison<'a> {
    origin: &'a str,
    name: String,
    facts: Facts,
    ancestors: &'a [Ancestor],
    status: &'a v1::PolicyStatus,
}

impl Comparison<'_> {
    fn record(&self, what: &str, entail: &str, controller: &str, report: &mut Report) {
        if entail == controller {
            return report.agree(what);
        }
        let mut facts = self.facts.clone();
        facts.insert("entail".to_owned(), entail.to_owned());
        facts.insert("controller".to_owned(), controller.to_owned());
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

    fn is_accepted(&self) -> bool {
        self.entail_accepted() == "Accepted" && self.controller_accepted() == "Accepted"
    }

    fn accepted(&self, report: &mut Report) {
        let (entail, controller) = (self.entail_accepted(), self.controller_accepted());
        self.record("status Accepted", &entail, &controller, report);
    }

    /// `Accepted`, `NoTarget` for a policy without an object of this controller, or the reason.
    fn entail_accepted(&self) -> String {
        let condition = self.status.conditions.first().cloned().unwrap_or_default();
        match (condition.status.as_str(), condition.reason.as_str()) {
            ("True", _) if self.status.in_force == "NoScope" => "NoTarget".to_owned(),
            ("True", _) if self.status.in_force == "Unknown" => "Unknown".to_owned(),
            ("True", _) => "Accepted".to_owned(),
            (_, "TargetNotFound" | "RefNotPermitted") => "NoTarget".to_owned(),
            (_, reason) => reason.to_owned(),
        }
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
            .map(|condition| condition.reason.as_str())
            .filter(|reason| *reason != "TargetNotFound")
            .collect();
        reasons
            .first()
            .map_or("NoTarget", |reason| *reason)
            .to_owned()
    }

    fn conflicted(&self, report: &mut Report) {
        let entail = self
            .status
            .references
            .iter()
            .any(|reference| reference.outcome == "Conflicted");
        let of = |ancestor: &Ancestor| {
            ancestor
                .condition("Accepted")
                .is_some_and(|condition| condition.reason == "Conflicted")
        };
        let controller = self.ancestors.iter().any(of);
        self.record("status Conflicted", yes(entail), yes(controller), report);
    }

    /// A policy is overridden if on some path it has no part in the answer.
    fn overridden(&self, shares: &[v1::AffectedPath], report: &mut Report) {
        let entail = shares
            .iter()
            .any(|share| share.won.is_empty() && !share.lost.is_empty());
        let controller = self
            .ancestors
            .iter()
            .any(|ancestor| ancestor.is_true("Overridden"));
        self.record("status Overridden", yes(entail), yes(controller), report);
    }

    /// A policy is merged if on some path it shares the answer with another.
    fn merged(&self, answers: &Answers, report: &mut Report) {
        let own = self.status.policy.clone().unwrap_or_default();
        let kind = self.status.kind.split('.').next().unwrap_or_default();
        let entail = answers.rules.iter().any(|rule| {
            let Some(super::answers::Effective::Rules(policy, _)) = rule.kinds.get(kind) else {
                return false;
            };
            let mut names: Vec<&v1::PolicyRef> = policy
                .origins
                .iter()
                .flat_map(|origin| &origin.policies)
                .collect();
            names.dedup();
            names.contains(&&own) && names.iter().any(|name| **name != own)
        });
        let controller = self
            .ancestors
            .iter()
            .any(|ancestor| ancestor.is_true("Merged"));
        self.record("status Merged", yes(entail), yes(controller), report);
    }
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

//! Holds answers against what a case expects.

use std::collections::BTreeSet;

use serde_json::Value;

use super::case::{Case, ExpectPath};
use crate::insight::{Ask, AskError};
use crate::model::Unit;
use crate::wire::v1;

/// One thing that is not as expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// What it is about: a path and a kind, a policy, an object.
    pub about: String,
    /// What was expected.
    pub expected: String,
    /// What was found.
    pub found: String,
}

/// Checks a case against whoever answers.
pub fn check(case: &Case, ask: &mut dyn Ask) -> Vec<Mismatch> {
    let mut checker = Checker {
        ask,
        mismatches: Vec::new(),
    };
    for path in &case.expect.effective {
        checker.path(path);
    }
    for path in &case.expect.paths.valid {
        if let Err(error) = checker.get(path, &[]) {
            checker.differ(path, "a path", &error.to_string());
        }
    }
    for invalid in &case.expect.paths.invalid {
        let reason = invalid.reason.as_deref();
        match checker.get(&invalid.path, &[]) {
            Ok(_) => checker.differ(&invalid.path, reason.unwrap_or("no path"), "a path"),
            Err(AskError::Failure(failure)) => {
                if reason.is_some_and(|reason| reason != failure.reason) {
                    checker.differ(&invalid.path, reason.unwrap_or_default(), &failure.reason);
                }
            }
            Err(error) => checker.differ(&invalid.path, "an answer", &error.to_string()),
        }
    }
    let expect = &case.expect;
    for (there, what) in [
        (!expect.status.is_empty(), "status"),
        (!expect.affected.is_empty(), "affected"),
        (!expect.losses.is_empty(), "losses"),
    ] {
        if there {
            checker.differ(what, "an answer", "not computed by this version");
        }
    }
    checker.mismatches
}

struct Checker<'a> {
    ask: &'a mut dyn Ask,
    mismatches: Vec<Mismatch>,
}

impl Checker<'_> {
    fn differ(&mut self, about: &str, expected: &str, found: &str) {
        self.mismatches.push(Mismatch {
            about: about.to_owned(),
            expected: expected.to_owned(),
            found: found.to_owned(),
        });
    }

    fn equal(&mut self, about: &str, expected: &Value, found: &Value) {
        if expected != found {
            let text = |value: &Value| serde_json::to_string_pretty(value).unwrap_or_default();
            self.differ(about, &text(expected), &text(found));
        }
    }

    fn get(
        &mut self,
        path: &str,
        kinds: &[String],
    ) -> Result<v1::GetEffectivePoliciesResponse, AskError> {
        self.ask.get(v1::GetEffectivePoliciesRequest {
            target: Some(v1::get_effective_policies_request::Target::Path(path.to_owned())),
            kinds: kinds.to_vec(),
            if_none_match: String::new(),
        })
    }

    fn path(&mut self, expect: &ExpectPath) {
        let kinds: Vec<String> = expect
            .policies
            .keys()
            .chain(expect.origins.keys())
            .chain(expect.rejected.keys())
            .chain(expect.listed.keys())
            .chain(&expect.unknown)
            .collect::<BTreeSet<_>>()
            .into_iter()
            .cloned()
            .collect();
        let response = match self.get(&expect.path, &kinds) {
            Ok(response) => response,
            Err(error) => return self.differ(&expect.path, "an answer", &error.to_string()),
        };
        let policies = response.result.unwrap_or_default().policies;
        let unknown: Vec<&str> = response
            .kinds
            .iter()
            .filter(|k| k.state() == v1::kind_state::State::Unknown)
            .map(|k| k.kind.as_str())
            .collect();
        for kind in &kinds {
            let about = format!("{} {kind}", expect.path);
            let is_unknown = unknown.contains(&kind.as_str());
            if expect.unknown.contains(kind) != is_unknown {
                let word = |unknown| if unknown { "unknown" } else { "a known kind" };
                self.differ(&about, word(!is_unknown), word(is_unknown));
            }
            let nothing = v1::EffectivePolicy::default();
            let found = policies.iter().find(|p| name_of(p) == *kind);
            self.policy(expect, kind, &about, found.unwrap_or(&nothing));
        }
    }

    fn policy(&mut self, expect: &ExpectPath, kind: &str, about: &str, found: &v1::EffectivePolicy) {
        if let Some(expected) = expect.policies.get(kind) {
            let is_listed = expect.listed.contains_key(kind);
            if !found.not_computed.is_empty() && !is_listed && found.listed.is_empty() {
                self.differ(about, "an answer", &found.not_computed);
                return;
            }
            let spec = found.spec_json.as_deref();
            let spec = spec.and_then(|json| serde_json::from_str(json).ok());
            self.equal(about, expected, &spec.unwrap_or(Value::Null));
        }
        for (unit, policies) in expect.origins.get(kind).into_iter().flatten() {
            let who = origin_of(found, unit);
            let about = format!("{about} origin of {unit}");
            self.equal(&about, &policies.sorted().into(), &who.into());
        }
        if let Some(expected) = expect.rejected.get(kind) {
            let mut expected: Vec<String> = expected
                .iter()
                .map(|r| format!("{}: {}", r.policy, r.reason))
                .collect();
            expected.sort();
            let mut rejected: Vec<String> = found
                .rejected
                .iter()
                .map(|r| format!("{}: {}", policy_name(r.policy.as_ref()), r.reason))
                .collect();
            rejected.sort();
            let about = format!("{about} rejected");
            self.equal(&about, &expected.into(), &rejected.into());
        }
        if let Some(expected) = expect.listed.get(kind) {
            let listed: Vec<String> = found
                .listed
                .iter()
                .map(|l| policy_name(l.policy.as_ref()))
                .collect();
            let about = format!("{about} listed");
            self.equal(&about, &expected.clone().into(), &listed.into());
        }
    }
}

/// Who says a unit: the origin that covers it, or those of everything below it.
fn origin_of(policy: &v1::EffectivePolicy, unit: &str) -> Vec<String> {
    let Some(wanted) = Unit::parse(unit) else {
        return vec![format!("`{unit}` is no unit")];
    };
    let covers = |a: &Unit, b: &Unit| a.covers(b);
    let names: BTreeSet<String> = policy
        .origins
        .iter()
        .filter(|origin| {
            Unit::parse(&origin.unit)
                .is_some_and(|own| covers(&own, &wanted) || covers(&wanted, &own))
        })
        .flat_map(|origin| {
            let object = (!origin.object.is_empty()).then(|| origin.object.clone());
            let policies = origin.policies.iter().map(|p| policy_name(Some(p)));
            policies.chain(object).collect::<Vec<_>>()
        })
        .collect();
    names.into_iter().collect()
}

fn name_of(policy: &v1::EffectivePolicy) -> String {
    if policy.group.is_empty() {
        policy.kind.clone()
    } else {
        format!("{}.{}", policy.kind, policy.group)
    }
}

fn policy_name(policy: Option<&v1::PolicyRef>) -> String {
    match policy {
        None => String::new(),
        Some(policy) if policy.namespace.is_empty() => policy.name.clone(),
        Some(policy) => format!("{}/{}", policy.namespace, policy.name),
    }
}

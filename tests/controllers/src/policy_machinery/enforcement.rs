//! The comparison of the statuses of policies.

use std::collections::BTreeSet;

use entail::api::v1;

use super::admission::text;
use super::answers::policy_name;
use super::circumstances as circumstance;
use super::compare::{Comparison, NO_COMMON_HOSTNAME};
use super::verdict::PolicyVerdict;

impl Comparison<'_> {
    /// Compares the statuses of all policies that are not being deleted.
    pub(super) fn statuses(&mut self) {
        for theirs in &self.verdict.policies {
            let key = (theirs.kind.clone(), theirs.policy.clone());
            let Some(ours) = self.answers.statuses.remove(&key) else {
                let example = format!("{}: entail has no status", theirs.policy);
                self.differ("acceptance", &theirs.kind, "unexplained", "none", &example);
                continue;
            };
            if self.acceptance(theirs, &ours) && !theirs.enforced.is_empty() {
                self.enforcement(theirs, &ours);
            }
        }
    }

    /// Compares the condition Accepted, and returns whether both accept the policy.
    fn acceptance(&mut self, theirs: &PolicyVerdict, ours: &v1::PolicyStatus) -> bool {
        let accepted = accepted_reason(ours);
        if accepted == theirs.accepted {
            self.report.agree("acceptance");
            return accepted == "Accepted";
        }
        let (kind, policy) = (theirs.kind.as_str(), theirs.policy.as_str());
        let reason = match (accepted, theirs.accepted.as_str()) {
            (_, "Invalid") => "not-valid",
            ("Conflicted", "Accepted") if circumstance::equal_age(self.world, kind, policy) => {
                "equal-age"
            }
            _ => "unexplained",
        };
        let answer = format!("{accepted}, not {}", theirs.accepted);
        self.differ("acceptance", kind, reason, &answer, policy);
        false
    }

    /// Compares how far an accepted policy is enforced.
    fn enforcement(&mut self, theirs: &PolicyVerdict, ours: &v1::PolicyStatus) {
        const WHAT: &str = "enforcement";
        let agree = match theirs.enforced.as_str() {
            "Fully" => ours.in_force.starts_with("All"),
            "Partly" => ours.in_force.starts_with("Part"),
            "Overridden" => ours.in_force == "None",
            // Below Gateways of another controller the operator configures nothing. For entail the policy has no
            // scope there, or the controller is not known (specification 2.6).
            "NoRoutes" | "OutOfSync" => matches!(ours.in_force.as_str(), "NoScope" | "Unknown"),
            _ => false,
        };
        if agree {
            self.report.agree(WHAT);
            if theirs.enforced == "Overridden" {
                self.overriding(theirs, ours);
            }
            return;
        }
        let reason = self.enforcement_reason(theirs, ours);
        let answer = format!("{}, not {}", ours.in_force, theirs.enforced);
        let example = format!(
            "{}: {answer}; paths: {:?}; scopes {}, ready {}",
            theirs.policy,
            self.path_reasons(theirs),
            ours.paths,
            theirs.ready
        );
        self.differ(WHAT, &theirs.kind, &reason, &answer, &example);
    }

    fn path_reasons(&self, theirs: &PolicyVerdict) -> BTreeSet<&'static str> {
        let key = (theirs.kind.clone(), theirs.policy.clone());
        self.on_paths.get(&key).cloned().unwrap_or_default()
    }

    /// Why a policy is enforced otherwise: the word of the operator itself, or the differences on
    /// the paths of the policy.
    fn enforcement_reason(&self, theirs: &PolicyVerdict, ours: &v1::PolicyStatus) -> String {
        if theirs.enforced == "PartlyRefused" && ours.in_force.starts_with("Part") {
            return "token-limits-partly".to_owned();
        }
        let on_paths = self.path_reasons(theirs);
        // Not causes of another status: the operator writes it from the effective policies.
        let causes: Vec<&str> = on_paths
            .iter()
            .copied()
            .filter(|reason| !["shared-host", "hostname-part"].contains(reason))
            .filter(|reason| {
                *reason != "controller"
                    || ours.in_force == "Unknown"
                    || theirs.enforced == "OutOfSync"
                    // Of the paths in part, one side may be on Gateways that the operator does not configure.
                    || theirs.enforced.starts_with("Partly")
            })
            // The status of this kind alone counts paths that the operator does not configure.
            .filter(|reason| *reason != NO_COMMON_HOSTNAME || theirs.kind == "TokenRateLimitPolicy")
            .collect();
        if let Some(cause) = causes.first() {
            return format!("path {cause}");
        }
        if self.is_first_parent(theirs) {
            return "first-parent".to_owned();
        }
        "unexplained".to_owned()
    }

    /// Whether the policy reaches an HTTPRoute with several references to one Gateway.
    fn is_first_parent(&self, theirs: &PolicyVerdict) -> bool {
        let (kind, target) = self.target_of(&theirs.kind, &theirs.policy);
        self.world.objects.iter().any(|route| {
            let gateways = circumstance::repeated_parents(route);
            let namespace = text(route, "/metadata/namespace");
            let name = format!("{namespace}/{}", text(route, "/metadata/name"));
            match kind.as_str() {
                "Gateway" => gateways.contains(&target),
                _ => kind == text(route, "/kind") && target == name && !gateways.is_empty(),
            }
        })
    }

    /// Compares the policies that override a policy wholly.
    fn overriding(&mut self, theirs: &PolicyVerdict, ours: &v1::PolicyStatus) {
        const WHAT: &str = "overriding policies";
        let names: BTreeSet<String> = ours.overridden_by.iter().map(policy_name).collect();
        let wanted: BTreeSet<String> = theirs.overridden_by.iter().flatten().cloned().collect();
        if names == wanted {
            self.report.agree(WHAT);
            return;
        }
        let extra_only = names.is_subset(&wanted);
        let reason = if theirs.kind == "TokenRateLimitPolicy" && extra_only {
            "token-limits-overriding".to_owned()
        } else if let Some(cause) = self.path_reasons(theirs).first() {
            format!("path {cause}")
        } else {
            "unexplained".to_owned()
        };
        let example = format!("{}: entail {names:?}, Kuadrant {wanted:?}", theirs.policy);
        self.differ(WHAT, &theirs.kind, &reason, "other names", &example);
    }
}

/// The reason of the condition Accepted.
fn accepted_reason(status: &v1::PolicyStatus) -> &str {
    let condition = status.conditions.iter().find(|c| c.r#type == "Accepted");
    condition.map_or("", |condition| condition.reason.as_str())
}

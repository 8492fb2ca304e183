//! Why a policy is not in effect on the paths of a query: the first condition that fails, and what would have to change.

use std::io::{self, Write};

use serde_json::Value;

use super::CliError;
use super::names::is_path;
use super::policies::{self, NamedPolicy, query_name, short_kind};
use super::render::document::Document;
use super::render::report::{Report, write_wrapped};
use super::render::spec::{origin_name, policy_name};
use super::render::text::Style;
use super::session::{Session, unknown_states};
use crate::api::v1;
use crate::insight::{PAGE_SIZE, abridged};
use entail_core::model::{PathName, Root, RuleStep, TrafficPath};

/// Maximum number of values and paths that an answer names.
const MAX_NAMED: usize = 5;

/// Why a policy is not in effect, or that it is.
#[derive(Debug, Default)]
pub(super) struct WhyNot {
    /// `kind/namespace/name` of the policy.
    pub(super) policy: String,
    /// Whether the policy sets a value on at least one of the paths.
    pub(super) in_effect: bool,
    /// The first condition that fails, in CamelCase; `InEffect` if none does.
    pub(super) condition: &'static str,
    /// What was found, in a sentence.
    pub(super) finding: String,
    /// The facts behind it.
    pub(super) details: Vec<String>,
    /// What would have to change.
    pub(super) changes: Vec<String>,
    /// The kinds that are not completely known.
    pub(super) states: Vec<v1::KindState>,
}

/// What the replies tell of one policy on the paths of a query.
struct Question<'q> {
    name: &'q str,
    status: &'q v1::PolicyStatus,
    explained: &'q v1::ExplainResponse,
}

/// Finds out why a policy is not in effect on the paths of a query.
///
/// # Errors
/// There is no such policy, or a query fails.
pub(super) fn why_not(session: &mut Session, name: &str, policy: &str) -> Result<WhyNot, CliError> {
    let NamedPolicy { status, .. } = policies::get_policy(session, policy, "")?;
    let explained = session.backend.all_explained(v1::ExplainRequest {
        name: name.to_owned(),
        kinds: vec![status.kind.clone()],
        ..Default::default()
    });
    let explained = explained.map_err(|error| session.failure(error))?;
    let question = Question {
        name,
        status: &status,
        explained: &explained,
    };
    let mut found = question.not_accepted().or_else(|| question.on_paths());
    if found.is_none() {
        // A path is asked about alone, an object about all paths through it.
        let paths = match is_path(name) {
            true => vec![name.to_owned()],
            false => {
                let paths = session.backend.list_paths(v1::ListPathsRequest {
                    name: name.to_owned(),
                    page_size: PAGE_SIZE,
                    ..Default::default()
                });
                paths.map_err(|error| session.failure(error))?.paths
            }
        };
        found = Some(question.not_attached(&paths));
    }
    let found = found.unwrap_or_default();
    let effective = explained.paths.iter().flat_map(|path| &path.kinds);
    let effective = effective.filter_map(|kind| kind.policy.as_ref());
    let selected = std::mem::replace(&mut session.kinds, vec![status.kind.clone()]);
    let states = session.incomplete_with(&explained.kinds, effective);
    session.kinds = selected;
    Ok(WhyNot {
        policy: query_name(&status),
        states,
        ..found
    })
}

impl WhyNot {
    /// An answer with the values that are overridden, each with what would have to change.
    fn of_losses(mut lost: Vec<(String, String)>) -> Self {
        lost.sort();
        lost.dedup();
        let details = lost.iter().map(|(detail, _)| detail.clone());
        let mut found = Self {
            details: details.take(MAX_NAMED).collect(),
            changes: lost.iter().map(|(_, change)| change.clone()).collect(),
            ..Self::default()
        };
        found.changes.sort();
        found.changes.dedup();
        if let Some(more @ 1..) = lost.len().checked_sub(MAX_NAMED) {
            found.details.push(format!("and {more} more"));
        }
        found
    }
}

impl Report for WhyNot {
    fn document(&self, _: &[v1::KindState]) -> Document {
        Document::map([
            ("policy", Document::text(&self.policy)),
            ("inEffect", Document::from(Value::Bool(self.in_effect))),
            ("condition", Document::text(self.condition)),
            ("finding", Document::text(&self.finding)),
            ("details", Document::texts(&self.details)),
            ("changes", Document::texts(&self.changes)),
        ])
    }

    fn table(&self, out: &mut dyn Write, style: Style) -> io::Result<()> {
        let head = format!("{}: {}", self.policy, self.finding);
        write_wrapped(out, &head, 0, |line| style.bold(line))?;
        for detail in &self.details {
            write_wrapped(out, detail, 2, str::to_owned)?;
        }
        if !self.changes.is_empty() && (!self.in_effect || !self.details.is_empty()) {
            writeln!(out, "\n{}", style.bold("what would have to change"))?;
            for change in &self.changes {
                write_wrapped(out, change, 2, str::to_owned)?;
            }
        }
        Ok(())
    }
}

impl Question<'_> {
    /// The policy is not accepted: it is in effect nowhere, or that is not known.
    fn not_accepted(&self) -> Option<WhyNot> {
        let conditions = self.status.conditions.iter();
        let mut refused = conditions.filter(|one| one.r#type == "Accepted" && one.status != "True");
        let refused = refused.next()?;
        let references = self.status.references.iter();
        let failed: Vec<&v1::ReferenceStatus> =
            references.filter(|one| one.outcome != "Accepted").collect();
        let describe = |one: &&v1::ReferenceStatus| match &*one.message {
            "" => format!("{}: {}", one.field, one.outcome),
            message => format!("{}: {}: {message}", one.field, one.outcome),
        };
        let mut details: Vec<String> = failed.iter().map(describe).collect();
        if details.is_empty() {
            details.push(refused.message.clone());
        }
        let mut changes: Vec<String> = failed
            .iter()
            .map(|one| remedy_of(&one.outcome).to_owned())
            .collect();
        if changes.is_empty() {
            changes.push(remedy_of(&refused.reason).to_owned());
        }
        changes.dedup();
        let reason = &refused.reason;
        let (condition, finding) = match &*refused.status {
            "Unknown" => (
                "NotKnown",
                format!("it is not known whether it is in effect ({reason})"),
            ),
            _ => (
                "NotAccepted",
                format!("it is not accepted ({reason}), so it is in effect nowhere"),
            ),
        };
        Some(WhyNot {
            condition,
            finding,
            details,
            changes,
            ..WhyNot::default()
        })
    }

    /// The policy is attached on the paths: what it sets there, and what is overridden; `None` if it is not attached.
    fn on_paths(&self) -> Option<WhyNot> {
        let kinds = self.explained.paths.iter().flat_map(|path| &path.kinds);
        let policy = self.status.policy.as_ref()?;
        let is_attached = |kind: &&v1::KindExplanation| {
            let mut attached = kind.nodes.iter().flat_map(|node| &node.policies);
            attached.any(|one| one.policy.as_ref() == Some(policy))
        };
        let rejected = kinds.clone().filter_map(|kind| kind.policy.as_ref());
        let mut rejected = rejected.flat_map(|effective| &effective.rejected);
        let rejected = rejected.find(|one| one.policy.as_ref() == Some(policy));
        let attached: Vec<&v1::KindExplanation> = kinds.filter(is_attached).collect();
        if attached.is_empty() {
            let rejected = rejected?;
            return Some(WhyNot {
                condition: "RejectedOnPath",
                finding: format!("it is rejected on these paths ({})", rejected.reason),
                details: vec![rejected.message.clone()],
                changes: vec![remedy_of(&rejected.reason).to_owned()],
                ..WhyNot::default()
            });
        }
        Some(self.attached(&attached, policy))
    }

    fn attached(&self, attached: &[&v1::KindExplanation], policy: &v1::PolicyRef) -> WhyNot {
        let effective = attached.iter().filter_map(|kind| kind.policy.as_ref());
        let unknown = unknown_states(effective.clone());
        let is_listed = |one: &v1::ListedPolicy| one.policy.as_ref() == Some(policy);
        let listed = effective.flat_map(|one| &one.listed).any(is_listed);
        let units = attached.iter().flat_map(|kind| &kind.units);
        let mut set: Vec<&str> = units
            .clone()
            .filter(|unit| {
                unit.origin
                    .as_ref()
                    .is_some_and(|by| by.policies.contains(policy))
            })
            .map(|unit| unit_text(&unit.unit))
            .collect();
        set.sort_unstable();
        set.dedup();
        let whole = self.taking_the_whole(units.clone());
        let losses = units.flat_map(|unit| self.losses(unit, policy, &whole));
        let mut found = WhyNot::of_losses(losses.collect());
        let has_losses = !found.details.is_empty();
        if let Some(state) = unknown.first() {
            found.condition = "NotKnown";
            found.finding = format!(
                "it is attached there, but what is in effect is not known: {}",
                state.message
            );
        } else if listed || !set.is_empty() {
            found.in_effect = true;
            found.condition = "InEffect";
            found.finding = match (listed, !has_losses) {
                (true, _) => {
                    "it is in effect: policies of this kind are listed, not merged".to_owned()
                }
                (_, true) => format!("it is in effect: it sets {}", abridged(&set, MAX_NAMED)),
                (_, false) => format!(
                    "it is in effect in part: it sets {}, and others override the rest",
                    abridged(&set, MAX_NAMED)
                ),
            };
        } else if !has_losses {
            found.condition = "NoValue";
            let short = short_kind(&self.status.kind);
            found.finding = "it is attached there, but none of its values counts".to_owned();
            found.details = vec![
                "its spec sets no field that the kind merges, or the kind does not act with these fields on these paths"
                    .to_owned(),
            ];
            found.changes = vec![format!(
                "set a field that counts there: `entail profiles {short}` shows the limits of the kind"
            )];
        } else {
            found.condition = "Overridden";
            found.finding = "it is attached there, but each of its values is overridden".to_owned();
        }
        found
    }

    /// The policies that override this one although they do not set its fields: each takes its part as a whole.
    fn taking_the_whole<'e>(&self, units: impl Iterator<Item = &'e v1::UnitExplanation>) -> String {
        let origins: Vec<&v1::Origin> = units.filter_map(|unit| unit.origin.as_ref()).collect();
        let sets_here =
            |by: &&v1::PolicyRef| origins.iter().any(|origin| origin.policies.contains(by));
        let mut found: Vec<&v1::PolicyRef> = self.status.overridden_by.iter().collect();
        if found.iter().any(sets_here) {
            found.retain(sets_here);
        }
        let names: Vec<String> = found.into_iter().map(policy_name).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        abridged(&names, MAX_NAMED)
    }

    /// The values of a policy that others override in a unit, each with what would have to change.
    fn losses(
        &self,
        unit: &v1::UnitExplanation,
        policy: &v1::PolicyRef,
        whole: &str,
    ) -> Vec<(String, String)> {
        let overridden = unit.overridden.iter();
        let of_policy = overridden.filter(|one| one.policy.as_ref() == Some(policy));
        let winner = unit.origin.as_ref().map(origin_name);
        of_policy
            .map(|one| {
                let whole =
                    Some(whole.to_owned()).filter(|by| !by.is_empty() && is_of_whole(&one.reason));
                let by = winner.clone().or_else(|| whole.clone());
                let by_text = by.iter().map(|by| format!(" by {by}")).collect::<String>();
                let detail = format!(
                    "{} = {}: overridden{by_text} ({})",
                    unit_text(&one.unit),
                    one.value_json,
                    one.reason
                );
                let change = match (&winner, whole) {
                    (None, Some(whole)) => remedy_of_whole(&whole, short_kind(&self.status.kind)),
                    _ => remedy_of_loss(&one.reason, by.as_deref()),
                };
                (detail, change)
            })
            .collect()
    }

    /// No path goes through an object that the policy is attached to, or the kind does not act there.
    fn not_attached(&self, paths: &[String]) -> WhyNot {
        let nodes: Vec<&str> = self
            .status
            .references
            .iter()
            .flat_map(|one| &one.nodes)
            .map(|node| &**node)
            .collect();
        let mut on_paths: Vec<String> = paths.iter().flat_map(|path| objects_of(path)).collect();
        on_paths.sort();
        on_paths.dedup();
        let short = short_kind(&self.status.kind);
        let common: Vec<&str> = nodes
            .iter()
            .copied()
            .filter(|node| on_paths.iter().any(|one| one == node))
            .collect();
        if let [first, ..] = common.as_slice() {
            return WhyNot {
                condition: "KindDoesNotAct",
                finding: format!("it is attached to {first}, but the kind {short} does not take it to these paths"),
                details: vec![
                    "the controller of the Gateway does not implement the kind, or the kind takes effect on other levels, or \
                     for such a target on other paths, such as those of a mesh"
                        .to_owned(),
                ],
                changes: vec![format!(
                    "use a Gateway whose controller implements {short}, or a policy kind of this Gateway's controller; \
                     `entail profiles {short}` shows where the kind acts"
                )],
                ..WhyNot::default()
            };
        }
        let shown: Vec<&str> = on_paths.iter().map(String::as_str).collect();
        WhyNot {
            condition: "NotAttachedOnPath",
            finding: match nodes.is_empty() {
                true => format!("it is attached to no object, so `{}` is not below one", self.name),
                false => format!("it is attached to {}, and no path of `{}` goes through that", abridged(&nodes, MAX_NAMED), self.name),
            },
            details: match shown.is_empty() {
                true => Vec::new(),
                false => vec![format!("the paths go through {}", abridged(&shown, MAX_NAMED))],
            },
            changes: vec!["name one of these objects, or their Namespace, in a target reference of the policy".to_owned()],
            ..WhyNot::default()
        }
    }
}

/// Whether an override for a reason may take a value without setting it.
fn is_of_whole(reason: &str) -> bool {
    matches!(
        reason,
        "more specific default"
            | "more specific override"
            | "less specific override"
            | "a more specific target takes its part whole"
    )
}

/// What would have to change so that a value is in effect which another policy overrides without setting it.
fn remedy_of_whole(other: &str, kind: &str) -> String {
    format!(
        "{other} takes the part as a whole and has no such value: set it there, too, or choose a strategy that merges, if \
         the kind has one (`entail profiles {kind}`)"
    )
}

/// A unit for people.
fn unit_text(unit: &str) -> &str {
    match unit {
        "*" => "the whole",
        unit => unit,
    }
}

/// What would have to change so that an overridden value is in effect.
fn remedy_of_loss(reason: &str, winner: Option<&str>) -> String {
    let other = winner.unwrap_or("the other policy");
    match reason {
        "more specific default"
        | "more specific override"
        | "a more specific target takes its part whole" => format!(
            "remove the field from {other}, or set it in a policy that is attached to an object at least as specific, or as \
             an override where the kind has them"
        ),
        "less specific override" => {
            format!("remove the field from the overrides of {other}: no policy below can change it")
        }
        "older" | "newer" => format!(
            "remove the field from {other}, which is attached to the same object, or attach this policy to a more specific \
             object"
        ),
        "unset" | "deleted by null" => format!("remove the unset or null from {other}"),
        "condition false" => "make the condition of the block true on this path".to_owned(),
        "beyond the closest parent" => {
            "attach it to the closest parent: the kind takes only the policies there".to_owned()
        }
        "own field of the object" => {
            "remove the field from the object itself: it takes precedence".to_owned()
        }
        "missing reference" => "create the object that the policy references".to_owned(),
        "fields that exclude each other" => {
            format!("keep one of the fields that exclude each other; {other} sets the other")
        }
        "override of the same policy" => {
            "set the field once: the overrides of the policy win over its defaults".to_owned()
        }
        _ => format!("change {other}"),
    }
}

/// What would have to change so that a policy is accepted.
fn remedy_of(outcome: &str) -> &'static str {
    match outcome {
        "TargetNotFound" => {
            "create the target, or correct its kind, namespace, name or section in the reference"
        }
        "RefNotPermitted" => {
            "create a ReferenceGrant in the namespace of the target, or move the policy there"
        }
        "Conflicted" => {
            "delete the policy that it conflicts with, or target another object: the older one wins"
        }
        "Invalid" => "correct the spec as the message says",
        "Untrusted" => "apply it with an account that may write the target",
        "NoProfile" => "write a profile for the kind (docs/profiles.md)",
        "SelectorNotEvaluated" => {
            "target objects by name in the place of workloads, where the kind can"
        }
        "BackendFilterNotEvaluated" => "move the filter from the backendRef to its rule",
        _ => "see the message: the policy's controller gave it",
    }
}

/// The objects and sections that a path goes through, named as in statuses.
fn objects_of(path: &str) -> Vec<String> {
    match PathName::parse(path) {
        Ok(PathName::Traffic(path)) => objects_on(&path),
        Ok(PathName::GatewayClass(name)) => vec![format!("GatewayClass/{name}")],
        Ok(PathName::Namespace(name)) => vec![format!("Namespace/{name}")],
        Err(_) => Vec::new(),
    }
}

fn objects_on(path: &TrafficPath<'_>) -> Vec<String> {
    let mut found = Vec::new();
    let mut owner = match path.root {
        Root::Gateway { namespace, name } => format!("Gateway/{namespace}/{name}"),
        Root::Mesh {
            namespace, name, ..
        } => format!("Service/{namespace}/{name}"),
    };
    found.push(owner.clone());
    if let Some(set) = path.listener_set {
        owner = format!("ListenerSet/{}/{}", set.namespace, set.name);
        found.push(owner.clone());
    }
    found.extend(path.listener.map(|listener| format!("{owner}#{listener}")));
    if let Some(route) = path.route {
        let route = format!("{}/{}/{}", route.kind, route.namespace, route.name);
        found.extend(path.rule.map(|rule| match rule {
            RuleStep::Index(index) => format!("{route}##{index}"),
            RuleStep::Name(name) => format!("{route}#{name}"),
        }));
        found.push(route);
    }
    if let Some(backend) = path.backend {
        found.push(format!(
            "{}/{}/{}",
            backend.kind, backend.namespace, backend.name
        ));
    }
    let route = path.route.map(|route| route.namespace);
    let backend = path.backend.map(|backend| backend.namespace);
    let root = match path.root {
        Root::Gateway { namespace, .. } | Root::Mesh { namespace, .. } => namespace,
    };
    let namespaces = [Some(root), route, backend].into_iter().flatten();
    found.extend(namespaces.map(|namespace| format!("Namespace/{namespace}")));
    for (route, rule) in path.delegating.iter() {
        let route = format!("{}/{}/{}", route.kind, route.namespace, route.name);
        found.push(match rule {
            RuleStep::Index(index) => format!("{route}##{index}"),
            RuleStep::Name(name) => format!("{route}#{name}"),
        });
        found.push(route);
    }
    found
}

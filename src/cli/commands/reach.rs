//! `entail reach`: the paths and objects that a policy, or one of its units, affects.

use std::io::{self, Write};

use clap::Args;

use super::args::CommonArgs;
use super::document::Document;
use super::names::NameArgs;
use super::policies::{self, NamedPolicy, short_kind};
use super::report::{self, Report, write_paths, write_wrapped};
use super::session::Session;
use super::spec::policy_name;
use super::text::{Style, count, printable};
use super::{CliError, ExitStatus, console, insight_json};
use crate::api::v1;

/// Maximum number of paths to print per group; the others are counted.
const MAX_PATHS: usize = 5;

/// Arguments of `entail reach`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Paths with the same result are printed together.

Examples:
  entail reach retrypolicy/baker/be-patient --manifests examples/bakery
  entail reach retrypolicy/baker/be-patient --unit backoff --manifests examples/bakery
  entail reach cachepolicy/platform/fresh-daily --manifests examples/bakery -o yaml
  entail reach timeoutpolicy/platform/nobody-waits --server 127.0.0.1:50051")]
pub struct ReachArgs {
    /// The policy.
    #[command(flatten)]
    pub policy: NameArgs,
    /// Only this unit and the units below it, as a dotted path such as `client.request`.
    #[arg(long, value_name = "UNIT")]
    pub unit: Option<String>,
    /// List all paths, and not only the first ones.
    #[arg(long)]
    pub all: bool,
    /// The source, the kinds, and the output format.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// The paths and objects that a policy affects.
struct ReachReport {
    status: v1::PolicyStatus,
    reply: v1::ListAffectedResponse,
    unit: String,
}

/// Runs the command.
pub(in crate::cli) fn run(args: ReachArgs) -> Result<ExitStatus, CliError> {
    let query = args.common.with_name(args.policy).recover_name();
    let name = query.name()?.ok_or_else(|| {
        CliError::Usage(
            "NAME of a policy is required: `kind/name -n namespace`; `entail status` lists policies".to_owned(),
        )
    })?;
    let unit = args.unit.unwrap_or_default();
    let mut session = Session::open(&query)?;
    let NamedPolicy { status, reply } = policies::get_policy(&mut session, &name, &unit)?;
    let states = session.incomplete(&reply.kinds);
    let reach = ReachReport {
        status,
        reply,
        unit,
    };
    let style = console::style().listing_all(args.all);
    report::print_styled(&reach, query.output, &states, style)?;
    if reach.reply.truncated {
        return Ok(ExitStatus::Incomplete);
    }
    Ok(session.exit(&states))
}

impl Report for ReachReport {
    fn document(&self, states: &[v1::KindState]) -> Document {
        insight_json::reach(&self.reply, states)
    }

    fn table(&self, out: &mut dyn Write, style: Style) -> io::Result<()> {
        write_wrapped(out, &self.sentence(), 0, |line| style.bold(line))?;
        if !self.reply.objects.is_empty() {
            // The list of objects covers the whole policy, even if `--unit` selects a unit.
            let heading = match self.unit.is_empty() {
                true => "affected objects",
                false => "affected objects (all units)",
            };
            writeln!(out, "\n{}", style.bold(heading))?;
        }
        for object in &self.reply.objects {
            writeln!(out, "  {}", printable(object))?;
        }
        for group in groups(&self.reply.paths) {
            writeln!(out)?;
            write_paths(out, &group.paths, MAX_PATHS, style)?;
            if !group.effective_units.is_empty() {
                let text = format!("sets {}", units(group.effective_units));
                write_wrapped(out, &text, 4, str::to_owned)?;
            }
            if !group.overridden_units.is_empty() {
                let text = format!("is overridden in {}", units(group.overridden_units));
                write_wrapped(out, &text, 4, |line| style.alert(line))?;
            }
            if group.effective_units.is_empty() && group.overridden_units.is_empty() {
                // A null sets no value and removes the value of a less specific policy.
                write_wrapped(out, "removes a value", 4, str::to_owned)?;
            }
        }
        Ok(())
    }

    fn truncated(&self) -> bool {
        self.reply.truncated
    }
}

impl ReachReport {
    /// Summarizes how far the policy is in force, on how many paths, and what overrides it.
    fn sentence(&self) -> String {
        let status = &self.status;
        let policy = status.policy.as_ref().map(policy_name).unwrap_or_default();
        let name = format!("{} {policy}", short_kind(&status.kind));
        let number = usize::try_from(status.paths).unwrap_or(usize::MAX);
        let paths = count(number, "path");
        let by = overridden_by(status);
        let summary = match status.in_force.as_str() {
            "" if is_accepted(status) => {
                return match accepted_message(status) {
                    Some(why) => format!("{name} is accepted: {why}"),
                    None => format!("{name} is accepted; its kind is listed and not merged"),
                };
            }
            "" => return format!("{name} is not accepted: {}", rejection(status)),
            "Unknown" => {
                return format!(
                    "{name} is not known to be in force: {}",
                    unknown_message(status)
                );
            }
            "NoScope" => {
                if let Some(why) = accepted_message(status) {
                    return format!("{name} is not in effect: {why}");
                }
                return format!(
                    "{name} is not in effect: its targets are on no path at the levels of its kind"
                );
            }
            "None" => {
                format!(
                    "{name} is not in effect: it applies to {paths} and is overridden everywhere{by}"
                )
            }
            "All" => format!("{name} is in force: it applies to {paths} and is not overridden"),
            "AllWithAdditions" => {
                format!("{name} is in force on {paths}; other policies add values")
            }
            _ => {
                let overridden = match status.overridden_paths == status.paths {
                    true => "on all of them".to_owned(),
                    false => format!("on {} of them", status.overridden_paths),
                };
                format!(
                    "{name} is partly in force: it applies to {paths} and is overridden in part \
                     {overridden}{by}"
                )
            }
        };
        if self.unit.is_empty() {
            return summary;
        }
        let number = |matches: fn(&v1::AffectedPath) -> bool| {
            self.reply.paths.iter().filter(|path| matches(path)).count()
        };
        format!(
            "{summary}. It sets `{}` on {} and is overridden on {}",
            self.unit,
            count(number(|path| !path.effective_units.is_empty()), "path"),
            count(number(|path| !path.overridden_units.is_empty()), "path"),
        )
    }
}

/// ` by A, B`, or empty if no policy overrides it.
fn overridden_by(status: &v1::PolicyStatus) -> String {
    let names: Vec<String> = status.overridden_by.iter().map(policy_name).collect();
    match names.as_slice() {
        [] => String::new(),
        names => format!(" by {}", names.join(", ")),
    }
}

/// The reason why a policy is not accepted.
fn is_accepted(status: &v1::PolicyStatus) -> bool {
    let condition = status.conditions.first();
    condition.is_some_and(|condition| condition.status == "True")
}

/// The message of the condition Accepted, such as why a policy that is accepted has no effect.
fn accepted_message(status: &v1::PolicyStatus) -> Option<&str> {
    let condition = status.conditions.first()?;
    let message = condition.message.as_str();
    (!message.is_empty()).then_some(message)
}

/// The message of the condition that is Unknown.
fn unknown_message(status: &v1::PolicyStatus) -> &str {
    let mut conditions = status.conditions.iter();
    let condition = conditions.find(|condition| condition.status == "Unknown");
    condition.map_or("", |condition| condition.message.as_str())
}

fn rejection(status: &v1::PolicyStatus) -> String {
    match status.conditions.first() {
        None => "no condition gives a reason".to_owned(),
        Some(condition) if condition.message.is_empty() => condition.reason.clone(),
        Some(condition) => format!("{} ({})", condition.message, condition.reason),
    }
}

fn units(units: &[String]) -> String {
    match units {
        [whole] if whole == "*" => "all values".to_owned(),
        units => units.join(", "),
    }
}

/// Paths on which the policy sets the same units, and is overridden in the same units.
struct PathGroup<'r> {
    effective_units: &'r [String],
    overridden_units: &'r [String],
    paths: Vec<String>,
}

/// Groups paths with the same result, in the order in which the groups first occur.
fn groups(paths: &[v1::AffectedPath]) -> Vec<PathGroup<'_>> {
    let mut groups: Vec<PathGroup<'_>> = Vec::new();
    for path in paths {
        let same = |group: &&mut PathGroup<'_>| {
            group.effective_units == path.effective_units
                && group.overridden_units == path.overridden_units
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.paths.push(path.path.clone()),
            None => groups.push(PathGroup {
                effective_units: &path.effective_units,
                overridden_units: &path.overridden_units,
                paths: vec![path.path.clone()],
            }),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentence(in_force: &str, paths: u64, overridden_paths: u64, unit: &str) -> String {
        let reach = ReachReport {
            status: v1::PolicyStatus {
                kind: "K.g".to_owned(),
                policy: Some(v1::PolicyRef {
                    namespace: "a".to_owned(),
                    name: "b".to_owned(),
                }),
                in_force: in_force.to_owned(),
                paths,
                overridden_paths,
                ..v1::PolicyStatus::default()
            },
            reply: v1::ListAffectedResponse::default(),
            unit: unit.to_owned(),
        };
        reach.sentence()
    }

    #[test]
    fn the_summary_describes_how_far_a_policy_is_in_force() {
        let all = "K a/b is in force: it applies to 1 path and is not overridden";
        assert_eq!(sentence("All", 1, 0, ""), all);
        assert_eq!(
            sentence("Part", 3, 1, ""),
            "K a/b is partly in force: it applies to 3 paths and is overridden in part on 1 of them"
        );
        assert_eq!(
            sentence("None", 3, 3, "x"),
            "K a/b is not in effect: it applies to 3 paths and is overridden everywhere. It sets `x` \
             on 0 paths and is overridden on 0 paths"
        );
        assert!(sentence("", 0, 0, "").starts_with("K a/b is not accepted"));
    }

    #[test]
    fn paths_with_the_same_result_are_grouped() {
        let path = |path: &str, unit: &str| v1::AffectedPath {
            path: path.to_owned(),
            effective_units: vec![unit.to_owned()],
            overridden_units: Vec::new(),
        };
        let paths = [path("a", "x"), path("b", "y"), path("c", "x")];
        let groups = groups(&paths);
        let names: Vec<&[String]> = groups.iter().map(|group| group.paths.as_slice()).collect();
        assert_eq!(names, [&["a", "c"][..], &["b"]]);
    }
}

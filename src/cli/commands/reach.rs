//! `entail reach`: every path and object that a policy, or one unit of it, affects.

use std::io::{self, Write};

use clap::Args;

use super::args::CommonArgs;
use super::document::Document;
use super::policies::{self, NamedPolicy, short_kind};
use super::report::{self, Report, write_paths, write_wrapped};
use super::session::Session;
use super::spec::policy_name;
use super::text::{Style, count, printable};
use super::{CliError, ExitStatus, insight_json};
use crate::api::v1;

/// Paths that are named; the others are counted.
const MOST_PATHS: usize = 5;

/// Tells where a policy reaches.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Paths on which the policy wins and loses the same are told together.

Examples:
  entail reach retrypolicy/baker/be-patient --manifests examples/bakery
  entail reach retrypolicy/baker/be-patient --unit backoff --manifests examples/bakery
  entail reach cachepolicy/platform/fresh-daily --manifests examples/bakery -o yaml
  entail reach timeoutpolicy/platform/nobody-waits --server 127.0.0.1:50051")]
pub struct ReachArgs {
    /// The policy, `kind/namespace/name` (`kind/name` of a cluster-scoped one).
    #[arg(value_name = "POLICY")]
    pub policy: Option<String>,
    /// Only this unit and what lies below it, a dotted path such as `client.request`.
    #[arg(long, value_name = "UNIT")]
    pub unit: Option<String>,
    /// Where answers come from and how they are printed.
    #[command(flatten)]
    pub read: CommonArgs,
}

/// Where a policy reaches.
struct ReachReport {
    status: v1::PolicyStatus,
    reply: v1::ListAffectedResponse,
    unit: String,
}

/// Answers and prints.
pub(in crate::cli) fn run(args: ReachArgs) -> Result<ExitStatus, CliError> {
    let ask = args.read.with_name(args.policy).recover_name();
    let name = ask.name.clone().filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| {
        CliError::Usage(
            "no policy is given: name one as `kind/namespace/name`; `entail status` lists them"
                .to_owned(),
        )
    })?;
    let unit = args.unit.unwrap_or_default();
    let mut session = Session::open(&ask)?;
    let NamedPolicy { status, reply } = policies::get_policy(&mut session, &name, &unit)?;
    let states = session.incomplete(&reply.kinds);
    let reach = ReachReport {
        status,
        reply,
        unit,
    };
    report::print(&reach, ask.output, &states)?;
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
            // The objects are those of the policy, whatever unit is asked for.
            let heading = match self.unit.is_empty() {
                true => "affects",
                false => "affects, with all its units",
            };
            writeln!(out, "\n{}", style.bold(heading))?;
        }
        for object in &self.reply.objects {
            writeln!(out, "  {}", printable(object))?;
        }
        for group in groups(&self.reply.paths) {
            writeln!(out)?;
            write_paths(out, &group.paths, MOST_PATHS)?;
            if !group.won.is_empty() {
                let text = format!("says {}", units(group.won));
                write_wrapped(out, &text, 4, str::to_owned)?;
            }
            if !group.lost.is_empty() {
                let text = format!("loses {}", units(group.lost));
                write_wrapped(out, &text, 4, |line| style.alert(line))?;
            }
            if group.won.is_empty() && group.lost.is_empty() {
                // A null that stands says nothing and takes something away.
                write_wrapped(out, "takes a value away", 4, str::to_owned)?;
            }
        }
        Ok(())
    }

    fn truncated(&self) -> bool {
        self.reply.truncated
    }
}

impl ReachReport {
    /// How far it is in force, on how many paths, and who beats it.
    fn sentence(&self) -> String {
        let status = &self.status;
        let policy = status.policy.as_ref().map(policy_name).unwrap_or_default();
        let name = format!("{} {policy}", short_kind(&status.kind));
        let scopes = usize::try_from(status.scopes).unwrap_or(usize::MAX);
        let paths = count(scopes, "path");
        let beaten = beaten(status);
        let whole = match status.in_force.as_str() {
            "" => return format!("{name} is not accepted: {}", why(status)),
            "NoScope" => {
                return format!(
                    "{name} does nothing: what it is attached to is on no path of its kind's levels"
                );
            }
            "None" => format!("{name} does nothing: it reaches {paths} and loses all{beaten}"),
            "All" => format!("{name} is in force: it reaches {paths} and loses nothing"),
            "AllWithAdditions" => {
                format!("{name} is in force on {paths}, where other policies add to it")
            }
            _ => {
                let lost = match status.scopes_lost == status.scopes {
                    true => "on all of them".to_owned(),
                    false => format!("on {} of them", status.scopes_lost),
                };
                format!(
                    "{name} is partly in force: it reaches {paths} and loses something \
                     {lost}{beaten}"
                )
            }
        };
        if self.unit.is_empty() {
            return whole;
        }
        let told = |part: fn(&v1::AffectedPath) -> bool| {
            self.reply.paths.iter().filter(|path| part(path)).count()
        };
        format!(
            "{whole}. It says `{}` on {} and loses it on {}",
            self.unit,
            count(told(|path| !path.won.is_empty()), "path"),
            count(told(|path| !path.lost.is_empty()), "path"),
        )
    }
}

/// ` to A, B`, or nothing where no policy beats it.
fn beaten(status: &v1::PolicyStatus) -> String {
    let names: Vec<String> = status.overridden_by.iter().map(policy_name).collect();
    match names.as_slice() {
        [] => String::new(),
        names => format!(" to {}", names.join(", ")),
    }
}

/// Why a policy is not accepted.
fn why(status: &v1::PolicyStatus) -> String {
    match status.conditions.first() {
        None => "nobody says why".to_owned(),
        Some(condition) if condition.message.is_empty() => condition.reason.clone(),
        Some(condition) => format!("{} ({})", condition.message, condition.reason),
    }
}

fn units(units: &[String]) -> String {
    match units {
        [whole] if whole == "*" => "everything".to_owned(),
        units => units.join(", "),
    }
}

/// Paths on which the same is won and lost.
struct PathGroup<'r> {
    won: &'r [String],
    lost: &'r [String],
    paths: Vec<String>,
}

/// In the order in which they are met.
fn groups(paths: &[v1::AffectedPath]) -> Vec<PathGroup<'_>> {
    let mut groups: Vec<PathGroup<'_>> = Vec::new();
    for path in paths {
        let same = |group: &&mut PathGroup<'_>| group.won == path.won && group.lost == path.lost;
        match groups.iter_mut().find(same) {
            Some(group) => group.paths.push(path.path.clone()),
            None => groups.push(PathGroup {
                won: &path.won,
                lost: &path.lost,
                paths: vec![path.path.clone()],
            }),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentence(in_force: &str, scopes: u64, lost: u64, unit: &str) -> String {
        let reach = ReachReport {
            status: v1::PolicyStatus {
                kind: "K.g".to_owned(),
                policy: Some(v1::PolicyRef {
                    namespace: "a".to_owned(),
                    name: "b".to_owned(),
                }),
                in_force: in_force.to_owned(),
                scopes,
                scopes_lost: lost,
                ..v1::PolicyStatus::default()
            },
            reply: v1::ListAffectedResponse::default(),
            unit: unit.to_owned(),
        };
        reach.sentence()
    }

    #[test]
    fn the_first_sentence_says_how_far_it_is_in_force() {
        let all = "K a/b is in force: it reaches 1 path and loses nothing";
        assert_eq!(sentence("All", 1, 0, ""), all);
        assert_eq!(
            sentence("Part", 3, 1, ""),
            "K a/b is partly in force: it reaches 3 paths and loses something on 1 of them"
        );
        assert_eq!(
            sentence("None", 3, 3, "x"),
            "K a/b does nothing: it reaches 3 paths and loses all. It says `x` on 0 paths and \
             loses it on 0 paths"
        );
        assert!(sentence("", 0, 0, "").starts_with("K a/b is not accepted"));
    }

    #[test]
    fn equal_paths_are_told_together() {
        let path = |path: &str, won: &str| v1::AffectedPath {
            path: path.to_owned(),
            won: vec![won.to_owned()],
            lost: Vec::new(),
        };
        let paths = [path("a", "x"), path("b", "y"), path("c", "x")];
        let found = groups(&paths);
        let told: Vec<&[String]> = found.iter().map(|group| group.paths.as_slice()).collect();
        assert_eq!(told, [&["a", "c"][..], &["b"]]);
    }
}

//! `entail explain`: explains each value of effective policies.

use std::io::Write;

use clap::Args;

use super::document::Document;
use super::levels::kind_name;
use super::names::namespace_path;
use super::report::{self, Report, TRUNCATED};
use super::session::{Session, incomplete_lines, is_selected};
use super::text::{Style, printable, wrapped};
use super::{
    CliError, ExitStatus, Format, QueryArgs, console, explain_summary, explain_text, json,
    namespace_text, parameters_text, proto_json, why_not, yaml,
};
use crate::api::v1;

/// Arguments of `entail explain`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
NAME is required. Paths with the same explanation are printed once.

Examples:
  entail explain httproute/baker/bread --manifests examples/bakery
  entail explain service/baker/loaves --kind RetryPolicy --manifests examples/bakery
  entail explain httproute shop -n shop --why-not cachepolicy/platform/fresh-daily --manifests examples/bakery
  entail explain gateways/platform/storefront/listeners/https --manifests examples/bakery -o yaml")]
pub struct ExplainArgs {
    /// The query.
    #[command(flatten)]
    pub query: QueryArgs,
    /// Say why this policy, `kind/namespace/name`, is not in effect there: the first condition that
    /// fails, and what would have to change. Exit code 1 if it is not in effect.
    #[arg(long, value_name = "POLICY")]
    pub why_not: Option<String>,
    /// List all paths, and not only the first ones.
    #[arg(long)]
    pub all: bool,
}

/// Runs the command.
pub(in crate::cli) fn run(args: ExplainArgs) -> Result<ExitStatus, CliError> {
    let query = args.query.clone().recover_name();
    let name = query.name()?.ok_or_else(|| {
        CliError::Usage(
            "NAME is required: an object (`kind/name -n namespace`) or a path (`gateways/...`); `entail get` lists \
             paths"
                .to_owned(),
        )
    })?;
    let namespace = namespace_path(&name);
    let name = namespace.clone().unwrap_or(name);
    let mut session = Session::open(&query)?;
    if let Some(policy) = &args.why_not {
        return explain_why_not(&mut session, &name, policy, query.output);
    }
    let (response, states) = explained(&mut session, &name)?;
    let mut out = console::stdout();
    match query.output {
        Format::Table | Format::Wide => {
            let style = console::style().with_full_names(query.output == Format::Wide);
            let style = style.listing_all(args.all);
            table(&mut out, &session, &name, &response, &states, style)?;
            if let Some(path) = namespace {
                namespace_text::reach(&mut out, &mut session, &path, style)?;
            }
        }
        Format::Json => {
            report::warn_incomplete(&states);
            json::write(&mut out, &proto_json::explanation(&response, &states), 0)?;
            writeln!(out)?;
        }
        Format::Yaml => {
            report::warn_incomplete(&states);
            yaml::write(&mut out, &proto_json::explanation(&response, &states))?;
        }
    }
    out.flush()?;
    Ok(session.exit(&states))
}

/// The document that `-o json` prints of a name: the explanations of its paths, or why a policy is not in effect there.
///
/// # Errors
/// The source or the name cannot be read, or nothing has the name.
pub(in crate::cli) fn document(
    query: &QueryArgs,
    name: &str,
    policy: Option<&str>,
) -> Result<Document, CliError> {
    let mut session = Session::open(query)?;
    if let Some(policy) = policy {
        let found = why_not::why_not(&mut session, name, policy)?;
        return Ok(found.document(&found.states));
    }
    let name = namespace_path(name).unwrap_or_else(|| name.to_owned());
    let (response, states) = explained(&mut session, &name)?;
    Ok(proto_json::explanation(&response, &states))
}

/// The explanations of all paths of a name, and the kinds that are not completely known.
fn explained(
    session: &mut Session,
    name: &str,
) -> Result<(v1::ExplainResponse, Vec<v1::KindState>), CliError> {
    let request = v1::ExplainRequest {
        name: name.to_owned(),
        kinds: session.kinds.clone(),
        ..Default::default()
    };
    let response = session.backend.all_explained(request);
    let response = response.map_err(|error| session.failure(error))?;
    let explained = response.paths.iter().flat_map(|path| &path.kinds);
    let policies = explained.filter_map(|kind| kind.policy.as_ref());
    let states = session.incomplete_with(&response.kinds, policies);
    Ok((response, states))
}

/// Prints why a policy is not in effect.
fn explain_why_not(
    session: &mut Session,
    name: &str,
    policy: &str,
    format: Format,
) -> Result<ExitStatus, CliError> {
    let found = why_not::why_not(session, name, policy)?;
    report::print(&found, format, &found.states)?;
    Ok(match session.exit(&found.states) {
        ExitStatus::Success if !found.in_effect => ExitStatus::Findings,
        exit => exit,
    })
}

fn table(
    out: &mut dyn Write,
    session: &Session,
    name: &str,
    response: &v1::ExplainResponse,
    states: &[v1::KindState],
    style: Style,
) -> Result<(), CliError> {
    for line in incomplete_lines(states, style) {
        writeln!(out, "{line}")?;
    }
    if response.truncated {
        writeln!(out, "{}", style.alert(TRUNCATED))?;
    }
    if !states.is_empty() || response.truncated {
        writeln!(out)?;
    }
    let mut printed = Vec::new();
    for path in &response.paths {
        for kind in &path.kinds {
            explain_text::kind(out, &path.paths, kind, style)?;
            printed.push(kind);
        }
    }
    if printed.is_empty() && namespace_path(name).is_some() {
        // What is attached there is told below.
        return Ok(parameters_text::notes(out, &response.unread_parameters)?);
    }
    if printed.is_empty() {
        let text = printable(&no_policy(session, name, states));
        for line in wrapped(&text, 0) {
            writeln!(out, "{line}")?;
        }
        parameters_text::notes(out, &response.unread_parameters)?;
        return Ok(());
    }
    writeln!(out, "{}", style.bold("Summary"))?;
    for (kind, units) in by_kind(&printed) {
        let sentence = printable(&explain_summary::summary(&kind, &units));
        for (at, line) in wrapped(&sentence, 4).iter().enumerate() {
            let indent = if at == 0 { 2 } else { 4 };
            writeln!(out, "{:indent$}{line}", "")?;
        }
    }
    parameters_text::notes(out, &response.unread_parameters)?;
    Ok(())
}

/// Groups explanations by kind, in the order in which the kinds were printed.
fn by_kind<'k>(
    explanations: &[&'k v1::KindExplanation],
) -> Vec<(String, Vec<&'k v1::KindExplanation>)> {
    let mut kinds: Vec<(String, Vec<&v1::KindExplanation>)> = Vec::new();
    for &kind in explanations {
        let name = kind.policy.as_ref().map(kind_name).unwrap_or_default();
        match kinds.iter_mut().find(|(other, _)| *other == name) {
            Some((_, group)) => group.push(kind),
            None => kinds.push((name, vec![kind])),
        }
    }
    kinds
}

/// The message for a name to which no policy applies, with the kinds that were searched.
fn no_policy(session: &Session, name: &str, states: &[v1::KindState]) -> String {
    let kinds: Vec<&str> = session
        .status
        .kinds
        .iter()
        .filter(|kind| match session.kinds.is_empty() {
            true => kind.policies > 0,
            false => is_selected(&session.kinds, &kind.kind),
        })
        .map(|kind| kind.kind.as_str())
        .collect();
    let searched = match kinds.as_slice() {
        [] if session.kinds.is_empty() => " (there are no policies)".to_owned(),
        [] => String::new(),
        kinds => format!(" (searched {})", kinds.join(", ")),
    };
    let caveat = match states {
        [] => "",
        _ => "; the answer is incomplete: see above",
    };
    let of = match session.kinds.is_empty() {
        true => "of any kind",
        false => "of the requested kinds",
    };
    format!("no policy {of} applies to `{name}`{searched}{caveat}")
}

//! `entail explain`: who said each value, what it beat, and why.

use std::io::Write;

use clap::Args;

use super::document::Document;
use super::levels::kind_name;
use super::session::{Session, incomplete_line, incomplete_lines};
use super::text::{Style, printable, wrapped};
use super::{
    CliError, ExitStatus, Format, QueryArgs, console, explain_summary, explain_text, json,
    proto_json, yaml,
};
use crate::api::v1;

/// Explains effective policies.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
NAME is needed. Paths with the same explanation are told once.

Examples:
  entail explain httproute/baker/bread --manifests examples/bakery
  entail explain service/baker/loaves --kind RetryPolicy --manifests examples/bakery
  entail explain gateways/platform/storefront/listeners/https --manifests examples/bakery -o yaml")]
pub struct ExplainArgs {
    /// What is asked for and how it is printed.
    #[command(flatten)]
    pub ask: QueryArgs,
}

/// Answers and prints.
pub(in crate::cli) fn run(args: ExplainArgs) -> Result<ExitStatus, CliError> {
    let ask = args.ask.recover_name();
    let name = ask
        .name
        .clone()
        .filter(|name| !name.is_empty())
        .ok_or_else(|| {
            CliError::Usage(
                "no name is given: explain a path (`gateways/...`) or an object \
             (`kind/namespace/name`); `entail get` lists paths"
                    .to_owned(),
            )
        })?;
    let mut session = Session::open(&ask)?;
    let request = v1::ExplainRequest {
        name: name.clone(),
        kinds: session.kinds.clone(),
    };
    let response = session.ask.explain(request);
    let response = response.map_err(|error| session.failure(error))?;
    let states = session.incomplete(&response.kinds);
    let mut out = console::stdout();
    match ask.output {
        Format::Table => {
            table(
                &mut out,
                &session,
                &name,
                &response,
                &states,
                console::style(),
            )?;
        }
        Format::Json => {
            json::write(&mut out, &document(&response, &states), 0)?;
            writeln!(out)?;
        }
        Format::Yaml => yaml::write(&mut out, &document(&response, &states))?,
    }
    out.flush()?;
    Ok(session.exit(&states))
}

fn document(response: &v1::ExplainResponse, states: &[v1::KindState]) -> Document {
    for state in states {
        console::print_error(&format!("warning: {}", incomplete_line(state)));
    }
    proto_json::explanation(response, states)
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
        let text = "INCOMPLETE: more paths were found than are told: ask for less";
        writeln!(out, "{}", style.alert(text))?;
    }
    if !states.is_empty() || response.truncated {
        writeln!(out)?;
    }
    let mut told = Vec::new();
    for path in &response.paths {
        for kind in &path.kinds {
            explain_text::kind(out, &path.paths, kind, style)?;
            told.push(kind);
        }
    }
    if told.is_empty() {
        let text = printable(&nothing(session, name, states));
        for line in wrapped(&text, 0) {
            writeln!(out, "{line}")?;
        }
        return Ok(());
    }
    writeln!(out, "{}", style.bold("In short"))?;
    for (kind, units) in by_kind(&told) {
        let sentence = printable(&explain_summary::summary(&kind, &units));
        for (at, line) in wrapped(&sentence, 4).iter().enumerate() {
            let indent = if at == 0 { 2 } else { 4 };
            writeln!(out, "{:indent$}{line}", "")?;
        }
    }
    Ok(())
}

/// The explanations of each kind, in the order in which the kinds were told.
fn by_kind<'k>(told: &[&'k v1::KindExplanation]) -> Vec<(String, Vec<&'k v1::KindExplanation>)> {
    let mut kinds: Vec<(String, Vec<&v1::KindExplanation>)> = Vec::new();
    for kind in told {
        let name = kind.policy.as_ref().map(kind_name).unwrap_or_default();
        match kinds.iter_mut().find(|(known, _)| *known == name) {
            Some((_, explanations)) => explanations.push(kind),
            None => kinds.push((name, vec![kind])),
        }
    }
    kinds
}

/// Says clearly that there is nothing, and how sure that is.
fn nothing(session: &Session, name: &str, states: &[v1::KindState]) -> String {
    let known: Vec<&str> = session
        .status
        .kinds
        .iter()
        .filter(|kind| match session.kinds.is_empty() {
            true => kind.policies > 0,
            false => session.kinds.contains(&kind.kind),
        })
        .map(|kind| kind.kind.as_str())
        .collect();
    let looked = match known.as_slice() {
        [] if session.kinds.is_empty() => " (there are no policies at all)".to_owned(),
        [] => String::new(),
        kinds => format!(" (looked for {})", kinds.join(", ")),
    };
    let sure = match states {
        [] => "",
        _ => ", but not everything is known: see above",
    };
    let of = match session.kinds.is_empty() {
        true => "of any kind",
        false => "of the kinds asked for",
    };
    format!("no policy {of} has a say on `{name}`{looked}{sure}")
}

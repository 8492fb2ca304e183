//! `entail get`: prints effective policies, path by path.

use std::collections::BTreeMap;
use std::io::Write;

use clap::Args;

use super::document::Document;
use super::levels::{EffectiveLevels, PathEnd};
use super::names::{is_path, namespace_path};
use super::session::{Session, incomplete_line, incomplete_lines, unknown_states};
use super::text::{Style, count};
use super::{
    CliError, ExitStatus, Format, QueryArgs, console, get_text, json, namespace_text, proto_json,
    yaml,
};
use crate::api::v1;
use crate::insight::PAGE_SIZE;

/// Arguments of `entail get`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Without NAME, prints all paths. For several paths, each kind is printed at its effective levels
only; for a single path, every kind is printed.

Examples:
  entail get --manifests examples/bakery
  entail get httproute/baker/cakes --manifests examples/bakery -o yaml
  entail get gateways/platform/storefront/listeners/https --manifests examples/bakery
  entail get service/baker/loaves --kind RetryPolicy --server 127.0.0.1:50051 -o json")]
pub struct GetArgs {
    /// The query.
    #[command(flatten)]
    pub query: QueryArgs,
    /// Print every kind at every level, including values that only the levels below inherit.
    #[arg(long)]
    pub all_levels: bool,
}

/// Runs the command.
pub(in crate::cli) fn run(args: GetArgs) -> Result<ExitStatus, CliError> {
    let query = args.query.recover_name();
    let name = query.name()?.unwrap_or_default();
    let mut session = Session::open(&query)?;
    let style = console::style().with_full_names(query.output == Format::Wide);
    let mut printer = Printer::new(console::stdout(), query.output, style);
    let namespace = namespace_path(&name);
    let path = namespace
        .clone()
        .or_else(|| is_path(&name).then(|| name.clone()));
    let states = if let Some(path) = path {
        print_path(&mut session, &mut printer, &path)?
    } else {
        print_paths(&mut session, &mut printer, &name, args.all_levels)?
    };
    let mut states = states;
    states.extend(printer.end()?);
    if let Some(path) = namespace.filter(|_| query.output.is_text()) {
        namespace_text::reach(&mut console::stdout(), &mut session, &path, style)?;
    }
    Ok(session.exit(&states))
}

/// Prints one path with every kind.
fn print_path<W: Write>(
    session: &mut Session,
    printer: &mut Printer<W>,
    name: &str,
) -> Result<Vec<v1::KindState>, CliError> {
    let reply = session.look_up(name)?;
    let states = session.incomplete(&reply.kinds);
    printer.skip_empty = false;
    printer.begin(&reply.version.unwrap_or_default(), &states)?;
    let policies = reply.result.unwrap_or_default().policies;
    printer.path(name, &policies)?;
    Ok(states)
}

/// Prints every path through an object, or every path if `name` is empty.
fn print_paths<W: Write>(
    session: &mut Session,
    printer: &mut Printer<W>,
    name: &str,
    all_levels: bool,
) -> Result<Vec<v1::KindState>, CliError> {
    let levels = EffectiveLevels::read(&session.status.kinds, &session.kinds);
    let mut request = v1::ListPathsRequest {
        name: name.to_owned(),
        // For an object, every path is needed: the path that ends at the object also shows the
        // kinds of the levels above it.
        levels: match name.is_empty() && !all_levels {
            true => levels.names(),
            false => Vec::new(),
        },
        page_size: PAGE_SIZE,
        page_token: String::new(),
    };
    let mut states = None;
    loop {
        let page = session.list_paths(&request)?;
        if states.is_none() {
            let incomplete = session.incomplete(&page.kinds);
            printer.begin(&page.version.clone().unwrap_or_default(), &incomplete)?;
            states = Some(incomplete);
        }
        for path in &page.paths {
            let end = PathEnd::read(path, object_name(&page, name));
            if !all_levels && end.is_some_and(|end| !levels.any_shown(&end)) {
                continue;
            }
            let reply = session.look_up(path)?;
            session.check_version(reply.version.as_ref())?;
            let mut policies = reply.result.unwrap_or_default().policies;
            if let Some(end) = end.filter(|_| !all_levels) {
                policies.retain(|policy| levels.is_shown(policy, &end));
            }
            printer.path(path, &policies)?;
        }
        if page.next_page_token.is_empty() {
            return Ok(states.unwrap_or_default());
        }
        request.page_token = page.next_page_token;
    }
}

/// The object that a query names, as the reply has it: `svc/a/b` is `Service/a/b`.
fn object_name<'n>(page: &'n v1::ListPathsResponse, name: &'n str) -> &'n str {
    match &*page.object {
        // A server of an earlier version does not say.
        "" => name,
        object => object,
    }
}

/// Prints paths one by one, without collecting them in memory.
struct Printer<W: Write> {
    out: W,
    format: Format,
    style: Style,
    /// The number of paths printed.
    printed: usize,
    /// The number of paths without policies that a table omits.
    without_policy: usize,
    /// Whether something is not known.
    is_incomplete: bool,
    /// Whether a table omits paths without policies.
    skip_empty: bool,
    /// The kinds that are unknown on a path, by kind and message.
    unknown: BTreeMap<(String, String), v1::KindState>,
    /// The start of a table, which follows the warnings about kinds that are unknown on a path.
    held: Vec<u8>,
    /// Whether the table is held back, because it is not long yet.
    is_held: bool,
    /// The kinds that were reported as unknown on a path.
    reported: Vec<v1::KindState>,
}

/// The size of a table, in bytes, from which it is printed at once. Warnings about later paths follow it.
const MAX_HELD: usize = 16 << 20;

impl<W: Write> Printer<W> {
    fn new(out: W, format: Format, style: Style) -> Self {
        Self {
            out,
            format,
            style,
            printed: 0,
            without_policy: 0,
            is_incomplete: false,
            skip_empty: true,
            unknown: BTreeMap::new(),
            held: Vec::new(),
            is_held: format.is_text(),
            reported: Vec::new(),
        }
    }

    /// Records the kinds that are unknown on a path.
    fn note_unknown(&mut self, policies: &[v1::EffectivePolicy]) {
        for state in unknown_states(policies) {
            let key = (state.kind.clone(), state.message.clone());
            self.unknown.entry(key).or_insert(state);
        }
    }

    /// Prints the warnings about unknown kinds, and the table that was held back.
    fn release(&mut self) -> Result<(), CliError> {
        self.is_held = false;
        let states: Vec<v1::KindState> = std::mem::take(&mut self.unknown).into_values().collect();
        self.is_incomplete |= !states.is_empty();
        for line in incomplete_lines(&states, self.style) {
            writeln!(self.out, "{line}")?;
        }
        if !states.is_empty() {
            writeln!(self.out)?;
        }
        self.reported.extend(states);
        self.out.write_all(&std::mem::take(&mut self.held))?;
        Ok(())
    }

    /// Prints the part before the first path.
    fn begin(&mut self, version: &v1::Version, states: &[v1::KindState]) -> Result<(), CliError> {
        let (version, kinds) = (proto_json::version(version), proto_json::kinds(states));
        self.is_incomplete |= !states.is_empty();
        match self.format {
            Format::Table | Format::Wide => {
                for line in incomplete_lines(states, self.style) {
                    writeln!(self.out, "{line}")?;
                }
                return Ok(());
            }
            Format::Json => {
                write!(self.out, "{{\n  \"version\": ")?;
                json::write(&mut self.out, &version, 2)?;
                write!(self.out, ",\n  \"kinds\": ")?;
                json::write(&mut self.out, &kinds, 2)?;
                write!(self.out, ",\n  \"paths\": [")?;
            }
            Format::Yaml => {
                let head = Document::map([("version", version), ("kinds", kinds)]);
                yaml::write(&mut self.out, &head)?;
            }
        }
        for state in states {
            console::print_error(&format!("warning: {}", incomplete_line(state)));
        }
        Ok(())
    }

    /// Prints one path.
    fn path(&mut self, path: &str, policies: &[v1::EffectivePolicy]) -> Result<(), CliError> {
        self.note_unknown(policies);
        match self.format {
            Format::Table | Format::Wide => {
                if policies.is_empty() && self.skip_empty {
                    self.without_policy += 1;
                    return Ok(());
                }
                if self.held.len() > MAX_HELD {
                    self.release()?;
                }
                let is_first = self.printed == 0;
                let style = self.style;
                let out: &mut dyn Write = match self.is_held {
                    true => &mut self.held,
                    false => &mut self.out,
                };
                if !is_first {
                    writeln!(out)?;
                }
                get_text::path(out, path, policies, style)?;
            }
            Format::Json => {
                let document = proto_json::path(path, policies);
                json::write_item(&mut self.out, self.printed, &document, 4)?;
            }
            Format::Yaml => {
                if self.printed == 0 {
                    writeln!(self.out, "paths:")?;
                }
                yaml::write_item(&mut self.out, &proto_json::path(path, policies))?;
            }
        }
        self.printed += 1;
        Ok(())
    }

    /// Prints the part after the last path.
    fn end(&mut self) -> Result<Vec<v1::KindState>, CliError> {
        match self.format {
            Format::Table | Format::Wide => self.release()?,
            Format::Json | Format::Yaml => {
                let states = std::mem::take(&mut self.unknown);
                for state in states.values() {
                    console::print_error(&format!("warning: {}", incomplete_line(state)));
                }
                self.reported.extend(states.into_values());
            }
        }
        match self.format {
            Format::Table | Format::Wide if self.printed == 0 => {
                let known = match self.is_incomplete {
                    true => "no policy is known",
                    false => "no policy",
                };
                match self.without_policy {
                    0 => writeln!(self.out, "{known}")?,
                    paths => writeln!(self.out, "{known} on {}", count(paths, "path"))?,
                }
            }
            Format::Table | Format::Wide if self.without_policy > 0 => {
                let without_policy = count(self.without_policy, "more path");
                let verb = if self.without_policy == 1 {
                    "has"
                } else {
                    "have"
                };
                writeln!(self.out, "\n{without_policy} {verb} no policy")?;
            }
            Format::Table | Format::Wide => {}
            Format::Json => {
                let line = if self.printed > 0 { "\n  " } else { "" };
                writeln!(self.out, "{line}]\n}}")?;
            }
            Format::Yaml if self.printed == 0 => writeln!(self.out, "paths: []")?,
            Format::Yaml => {}
        }
        self.out.flush()?;
        Ok(std::mem::take(&mut self.reported))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn printed(format: Format, paths: &[&str]) -> String {
        let mut printer = Printer::new(Vec::new(), format, Style::new(false));
        printer.begin(&v1::Version::default(), &[]).unwrap();
        for path in paths {
            printer.path(path, &[]).unwrap();
        }
        printer.end().unwrap();
        String::from_utf8(printer.out).unwrap()
    }

    fn expected(paths: &[&str]) -> Value {
        let paths: Vec<Value> = paths
            .iter()
            .map(|p| json!({"path": p, "policies": []}))
            .collect();
        json!({"version": {"epoch": "", "generation": "0"}, "kinds": [], "paths": paths})
    }

    #[test]
    fn streamed_documents_are_valid() {
        for paths in [&[][..], &["a"], &["a", "b"]] {
            let json: Value = serde_json::from_str(&printed(Format::Json, paths)).unwrap();
            assert_eq!(json, expected(paths));
            let yaml: Value = serde_saphyr::from_str(&printed(Format::Yaml, paths)).unwrap();
            assert_eq!(yaml, expected(paths));
        }
    }

    #[test]
    fn a_table_counts_paths_without_policies() {
        assert_eq!(
            printed(Format::Table, &["a", "b"]),
            "no policy on 2 paths\n"
        );
    }
}

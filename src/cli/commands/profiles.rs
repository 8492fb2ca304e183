//! `entail profiles`: lists the built-in profiles, or prints their sources.

use std::io::Write;

use clap::Args;

use super::document::Document;
use super::text::{Style, text_width, wrapped};
use super::{CliError, ExitStatus, Format, console, json};
use entail_core::profile::{
    Checked, CheckedBy, EffectiveTarget, Profile, ProfileOrigin, built_in_sources, parse_documents,
};

/// Arguments of `entail profiles`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
`-o yaml` prints the source of the profiles; edit it and pass it with `--profiles`.

Examples:
  entail profiles
  entail profiles BackendTrafficPolicy
  entail profiles AuthPolicy.kuadrant.io -o yaml")]
pub struct ProfilesArgs {
    /// Only this profile: `Kind`, `Kind.group`, or the name of the profile.
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    pub output: Format,
}

/// A built-in profile and its source.
struct BuiltInProfile {
    profile: Profile,
    source: String,
}

/// Runs the command.
pub(in crate::cli) fn run(args: &ProfilesArgs) -> Result<ExitStatus, CliError> {
    let mut profiles = built_in_profiles()?;
    if let Some(name) = &args.name {
        profiles.retain(|one| is_named(&one.profile, name));
        if profiles.is_empty() {
            return Err(CliError::NotFound(format!(
                "no built-in profile `{name}`: `entail profiles` lists them"
            )));
        }
    }
    let mut out = console::stdout();
    match args.output {
        Format::Table | Format::Wide => {
            table(&mut out, &profiles, args.name.is_some(), console::style())?;
        }
        Format::Json => {
            let all = Document::list(&profiles, |one| document(&one.profile));
            json::write(&mut out, &Document::map([("profiles", all)]), 0)?;
            writeln!(out)?;
        }
        Format::Yaml => {
            for (at, one) in profiles.iter().enumerate() {
                let line = if at > 0 { "---\n" } else { "" };
                writeln!(out, "{line}{}", one.source.trim_end())?;
            }
        }
    }
    out.flush()?;
    Ok(ExitStatus::Success)
}

/// Returns the built-in profiles, sorted by policy kind, each with its part of the source file.
fn built_in_profiles() -> Result<Vec<BuiltInProfile>, CliError> {
    let invalid = |error: String| CliError::Unreadable(format!("built-in profile: {error}"));
    let mut all = Vec::new();
    for (file, text) in built_in_sources() {
        // The comments at the top of a file apply to all of its profiles.
        let preamble: String = text
            .lines()
            .take_while(|line| line.starts_with('#') || line.trim().is_empty())
            .map(|line| format!("{line}\n"))
            .collect();
        for (at, part) in text.split("\n---\n").enumerate() {
            for parsed in parse_documents(part, file) {
                let (location, document) =
                    parsed.map_err(|e| invalid(format!("{}: {}", e.location, e.reason)))?;
                let profile = Profile::resolve(&document, ProfileOrigin::BuiltIn, None, &location)
                    .map_err(|e| invalid(format!("{}: {}", e.location, e.reason)))?;
                let preamble = if at == 0 { "" } else { &preamble };
                all.push(BuiltInProfile {
                    profile,
                    source: format!("{preamble}{part}"),
                });
            }
        }
    }
    all.sort_by(|a, b| a.profile.policy.cmp(&b.profile.policy));
    Ok(all)
}

fn is_named(profile: &Profile, name: &str) -> bool {
    let aliases = [
        profile.name.to_string(),
        profile.policy.kind.to_string(),
        profile.policy.to_string(),
        profile.resource().kind.to_string(),
        profile.resource().to_string(),
    ];
    let mut aliases = aliases.iter();
    aliases.any(|alias| alias.eq_ignore_ascii_case(name))
}

fn document(profile: &Profile) -> Document {
    let strategies: Vec<String> = profile.strategies.iter().map(ToString::to_string).collect();
    Document::map([
        ("name", Document::text(&profile.name)),
        ("kind", Document::Text(profile.policy.to_string())),
        ("class", Document::text(profile.class.name())),
        ("effectiveTarget", Document::text(effective(profile))),
        (
            "strategies",
            Document::list(&strategies, |name| Document::text(name)),
        ),
        (
            "controllers",
            Document::list(&profile.controllers, |name| Document::text(name)),
        ),
        (
            "checked",
            profile.checked.as_ref().map_or(Document::Null, checked),
        ),
    ])
}

fn checked(checked: &Checked) -> Document {
    Document::map([
        ("project", Document::text(&checked.project)),
        ("version", Document::text(&checked.version)),
        ("by", Document::text(checked.by.as_str())),
        (
            "approximations",
            Document::list(&checked.approximations, |text| Document::text(text)),
        ),
    ])
}

/// Prints a row for each profile and, with `checks`, how it was checked.
fn table(
    out: &mut dyn Write,
    profiles: &[BuiltInProfile],
    checks: bool,
    style: Style,
) -> std::io::Result<()> {
    let kinds: Vec<String> = profiles
        .iter()
        .map(|one| one.profile.policy.to_string())
        .collect();
    let wide = kinds
        .iter()
        .map(|kind| kind.chars().count())
        .max()
        .unwrap_or(0)
        .max(4);
    // A strategy has its place beside the other columns.
    let wide = wide.min(text_width() - 47);
    let head = format!(
        "{:wide$}  {:9}  {:12}  STRATEGIES",
        "KIND", "CLASS", "EFFECTIVE"
    );
    writeln!(out, "{}", style.bold(&head))?;
    let at = wide + 2 + 9 + 2 + 12 + 2;
    for (one, kind) in profiles.iter().zip(&kinds) {
        let profile = &one.profile;
        let strategies: Vec<String> = profile.strategies.iter().map(ToString::to_string).collect();
        let strategies = wrapped(&strategies.join(" "), at);
        let (class, effective) = (profile.class.name(), effective(profile));
        let first = strategies.first().map_or("", String::as_str);
        let line = format!("{kind:wide$}  {class:9}  {effective:12}  {first}");
        writeln!(out, "{}", line.trim_end())?;
        for line in strategies.iter().skip(1) {
            writeln!(out, "{:at$}{line}", "")?;
        }
        for controller in &profile.controllers {
            writeln!(out, "  {}", style.dim(&format!("controller {controller}")))?;
        }
        if let Some(checked) = profile.checked.as_ref().filter(|_| checks) {
            check(out, checked, style)?;
        }
    }
    Ok(())
}

fn check(out: &mut dyn Write, checked: &Checked, style: Style) -> std::io::Result<()> {
    let by = match checked.by {
        CheckedBy::Judge => "by running its code on the same objects",
        CheckedBy::GoldenCases => "with cases from its own tests and documents",
        CheckedBy::Reading => "by reading its code and documents",
    };
    let text = format!("checked with {} {}, {by}", checked.project, checked.version);
    for line in wrapped(&text, 2) {
        writeln!(out, "  {}", style.dim(&line))?;
    }
    for text in &checked.approximations {
        for (at, line) in wrapped(text, 4).iter().enumerate() {
            let mark = if at == 0 { '-' } else { ' ' };
            writeln!(out, "  {mark} {line}")?;
        }
    }
    Ok(())
}

fn effective(profile: &Profile) -> &'static str {
    match profile.effective {
        EffectiveTarget::Every => "every level",
        EffectiveTarget::Target => "its target",
        EffectiveTarget::Level(level) => level.as_str(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use entail_core::profile::built_in;

    #[test]
    fn every_profile_says_how_it_was_checked() {
        for one in &built_in_profiles().unwrap() {
            let checked = one.profile.checked.as_ref();
            assert!(checked.is_some(), "{} lacks `checked`", one.profile.name);
        }
    }

    #[test]
    fn every_profile_is_listed_with_its_own_source() {
        let all = built_in_profiles().unwrap();
        assert_eq!(all.len(), built_in().len());
        for one in &all {
            let read = parse_documents(&one.source, "text");
            assert_eq!(read.len(), 1, "{}", one.source);
            assert!(one.source.contains(&*one.profile.resource().kind));
            assert!(one.source.starts_with('#'), "{}", one.source);
        }
    }

    #[test]
    fn the_table_fits() {
        let mut out = Vec::new();
        table(
            &mut out,
            &built_in_profiles().unwrap(),
            true,
            Style::new(false),
        )
        .unwrap();
        for line in String::from_utf8(out).unwrap().lines() {
            assert!(line.chars().count() <= text_width(), "{line}");
        }
    }
}

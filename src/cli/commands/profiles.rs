//! `entail profiles`: the built-in profiles.

use std::io::Write;

use clap::Args;

use super::document::Document;
use super::text::{Style, WIDTH, wrapped};
use super::{CliError, ExitStatus, Format, console, json};
use entail_core::profile::{
    EffectiveTarget, PolicyClass, Profile, ProfileOrigin, built_in_sources, parse_documents,
};

/// Lists built-in profiles.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
`-o yaml` prints profiles as they are written, to be changed and given back with `--profiles`.

Examples:
  entail profiles
  entail profiles BackendTrafficPolicy
  entail profiles AuthPolicy.kuadrant.io -o yaml")]
pub struct ProfilesArgs {
    /// Only this one: `Kind`, `Kind.group`, or the name of the profile.
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// How to print.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    pub output: Format,
}

/// A built-in profile and its text.
struct BuiltInProfile {
    profile: Profile,
    text: String,
}

/// Prints them.
pub(in crate::cli) fn run(args: &ProfilesArgs) -> Result<ExitStatus, CliError> {
    let mut shipped = built_in_profiles()?;
    if let Some(name) = &args.name {
        shipped.retain(|one| is_named(&one.profile, name));
        if shipped.is_empty() {
            return Err(CliError::NotFound(format!(
                "there is no built-in profile `{name}`: `entail profiles` lists them"
            )));
        }
    }
    let mut out = console::stdout();
    match args.output {
        Format::Table => table(&mut out, &shipped, console::style())?,
        Format::Json => {
            let all = Document::list(&shipped, |one| document(&one.profile));
            json::write(&mut out, &Document::map([("profiles", all)]), 0)?;
            writeln!(out)?;
        }
        Format::Yaml => {
            for (at, one) in shipped.iter().enumerate() {
                let line = if at > 0 { "---\n" } else { "" };
                writeln!(out, "{line}{}", one.text.trim_end())?;
            }
        }
    }
    out.flush()?;
    Ok(ExitStatus::Success)
}

/// The built-in profiles, sorted by group and kind, each with its own part of its file.
fn built_in_profiles() -> Result<Vec<BuiltInProfile>, CliError> {
    let wrong = |error: String| CliError::Unreadable(format!("built-in profile: {error}"));
    let mut all = Vec::new();
    for (file, text) in built_in_sources() {
        // What stands at the top of a file holds for all of its profiles.
        let preamble: String = text
            .lines()
            .take_while(|line| line.starts_with('#') || line.trim().is_empty())
            .map(|line| format!("{line}\n"))
            .collect();
        for (at, part) in text.split("\n---\n").enumerate() {
            for found in parse_documents(part, file) {
                let (place, document) =
                    found.map_err(|e| wrong(format!("{}: {}", e.place, e.reason)))?;
                let profile = Profile::resolve(&document, ProfileOrigin::BuiltIn, None, &place)
                    .map_err(|e| wrong(format!("{}: {}", e.place, e.reason)))?;
                let preamble = if at == 0 { "" } else { &preamble };
                all.push(BuiltInProfile {
                    profile,
                    text: format!("{preamble}{part}"),
                });
            }
        }
    }
    all.sort_by(|a, b| a.profile.policy.cmp(&b.profile.policy));
    Ok(all)
}

fn is_named(profile: &Profile, name: &str) -> bool {
    let full = profile.policy.to_string();
    [&*profile.name, &*profile.policy.kind, full.as_str()]
        .iter()
        .any(|known| known.eq_ignore_ascii_case(name))
}

fn document(profile: &Profile) -> Document {
    let strategies: Vec<String> = profile.strategies.iter().map(ToString::to_string).collect();
    Document::map([
        ("name", Document::text(&profile.name)),
        ("kind", Document::Text(profile.policy.to_string())),
        ("class", Document::text(class(profile))),
        ("effectiveTarget", Document::text(effective(profile))),
        (
            "strategies",
            Document::list(&strategies, |name| Document::text(name)),
        ),
        (
            "controllers",
            Document::list(&profile.controllers, |name| Document::text(name)),
        ),
    ])
}

fn table(out: &mut dyn Write, shipped: &[BuiltInProfile], style: Style) -> std::io::Result<()> {
    let kinds: Vec<String> = shipped
        .iter()
        .map(|one| one.profile.policy.to_string())
        .collect();
    let wide = kinds
        .iter()
        .map(|kind| kind.chars().count())
        .max()
        .unwrap_or(0)
        .max(4);
    let wide = wide.min(WIDTH / 2);
    let head = format!(
        "{:wide$}  {:9}  {:12}  STRATEGIES",
        "KIND", "CLASS", "EFFECTIVE"
    );
    writeln!(out, "{}", style.bold(&head))?;
    let at = wide + 2 + 9 + 2 + 12 + 2;
    for (one, kind) in shipped.iter().zip(&kinds) {
        let profile = &one.profile;
        let strategies: Vec<String> = profile.strategies.iter().map(ToString::to_string).collect();
        let strategies = wrapped(&strategies.join(" "), at);
        let (class, effective) = (class(profile), effective(profile));
        let first = strategies.first().map_or("", String::as_str);
        let line = format!("{kind:wide$}  {class:9}  {effective:12}  {first}");
        writeln!(out, "{}", line.trim_end())?;
        for line in strategies.iter().skip(1) {
            writeln!(out, "{:at$}{line}", "")?;
        }
        for controller in &profile.controllers {
            writeln!(out, "  {}", style.dim(&format!("below {controller}")))?;
        }
    }
    Ok(())
}

fn class(profile: &Profile) -> &'static str {
    match profile.class {
        PolicyClass::Direct => "Direct",
        PolicyClass::Inherited => "Inherited",
        PolicyClass::Listed => "Listed",
    }
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
    fn every_profile_is_there_and_its_text_is_its_own() {
        let all = built_in_profiles().unwrap();
        assert_eq!(all.len(), built_in().len());
        for one in &all {
            let read = parse_documents(&one.text, "text");
            assert_eq!(read.len(), 1, "{}", one.text);
            assert!(one.text.contains(&*one.profile.policy.kind));
            assert!(one.text.starts_with('#'), "{}", one.text);
        }
    }

    #[test]
    fn the_table_fits() {
        let mut out = Vec::new();
        table(&mut out, &built_in_profiles().unwrap(), Style::new(false)).unwrap();
        for line in String::from_utf8(out).unwrap().lines() {
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
    }
}

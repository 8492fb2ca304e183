//! Findings to leave out: `--ignore`, and the entries of an ignore file.

use std::path::Path;

use jiff::civil::Date;
use serde::Deserialize;
use serde_saphyr::Spanned;

use super::super::CliError;
use super::findings::about_input;
use crate::api::v1;
use crate::insight::Code;

/// Findings to leave out.
#[derive(Clone, Debug, PartialEq)]
pub struct IgnoreRule {
    code: Code,
    /// The object, or the file of findings without one; all if `None`.
    object: Option<String>,
    /// The last day on which the rule counts.
    expires: Option<Date>,
    /// File and line of the entry, or the option.
    location: String,
}

/// The result of applying rules.
pub(super) struct Ignored {
    /// The findings that are left, and those about the rules themselves.
    pub left: Vec<v1::Finding>,
    /// The number of findings that were left out.
    pub count: usize,
}

/// An entry of an ignore file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    code: String,
    object: Option<String>,
    reason: String,
    expires: Option<String>,
}

/// Parses the value of `--ignore`: `CODE` or `CODE:OBJECT`.
pub(super) fn parse_option(text: &str) -> Result<IgnoreRule, String> {
    let (code, object) = match text.split_once(':') {
        Some((code, object)) => (code, Some(object.to_owned())),
        None => (text, None),
    };
    if object.as_deref() == Some("") {
        return Err("the object is empty: use `CODE` or `CODE:OBJECT`".to_owned());
    }
    Ok(IgnoreRule {
        code: code_named(code)?,
        object,
        expires: None,
        location: format!("--ignore {text}"),
    })
}

/// Reads an ignore file.
///
/// # Errors
/// The file cannot be read, or has an entry that is malformed; the message has file and line.
pub(super) fn read_file(path: &Path) -> Result<Vec<IgnoreRule>, CliError> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| CliError::Unreadable(format!("{name}: {error}")))?;
    parse_file(&text, &name).map_err(CliError::Unreadable)
}

fn parse_file(text: &str, name: &str) -> Result<Vec<IgnoreRule>, String> {
    let entries: Option<Vec<Spanned<Entry>>> = serde_saphyr::from_str(text).map_err(|error| {
        // The other lines are an excerpt of the text.
        let message = error.to_string();
        format!("{name}: {}", message.lines().next().unwrap_or_default())
    })?;
    let rules = entries.unwrap_or_default().into_iter().map(|entry| {
        let location = format!("{name}:{}", entry.referenced.line());
        rule(entry.value, location.clone()).map_err(|error| format!("{location}: {error}"))
    });
    rules.collect()
}

fn rule(entry: Entry, location: String) -> Result<IgnoreRule, String> {
    if entry.reason.trim().is_empty() {
        return Err("the reason is empty: say why the finding is ignored".to_owned());
    }
    let expires = entry.expires.map(|text| {
        let date = text.parse::<Date>();
        date.map_err(|_| format!("`{text}` is not a date: use `YYYY-MM-DD`"))
    });
    Ok(IgnoreRule {
        code: code_named(&entry.code)?,
        object: entry.object,
        expires: expires.transpose()?,
        location,
    })
}

fn code_named(name: &str) -> Result<Code, String> {
    Code::find(name).ok_or_else(|| unknown_code(name))
}

/// Says that there is no code with a name, and what is near.
pub(in crate::cli) fn unknown_code(name: &str) -> String {
    let near = Code::nearest(name).map(|near| format!("; did you mean `{near}`?"));
    let near = near.unwrap_or_else(|| ": `entail explain-code` lists them".to_owned());
    format!("no code `{name}`{near}")
}

/// Leaves out what rules name. A rule that has expired counts no more and is a finding itself; so is one that names
/// nothing.
pub(super) fn apply(rules: &[IgnoreRule], found: Vec<v1::Finding>, today: Date) -> Ignored {
    let is_ignored = |finding: &v1::Finding| {
        let mut rules = rules.iter().filter(|rule| !rule.has_expired(today));
        rules.any(|rule| rule.names(finding))
    };
    let about_rules = rules.iter().filter_map(|rule| {
        let is_used = found.iter().any(|finding| rule.names(finding));
        rule.finding(is_used, today)
    });
    let about_rules: Vec<v1::Finding> = about_rules.collect();
    let all = found.into_iter().chain(about_rules);
    let (ignored, left): (Vec<_>, Vec<_>) = all.partition(is_ignored);
    Ignored {
        left,
        count: ignored.len(),
    }
}

impl IgnoreRule {
    fn names(&self, finding: &v1::Finding) -> bool {
        let Some(object) = &self.object else {
            return finding.code == self.code.id();
        };
        let is_object = finding.object == *object || short(&finding.object) == short(object);
        let file = finding.location.rsplit_once(':').map(|(file, _)| file);
        let is_file = [Some(finding.location.as_str()), file].contains(&Some(object.as_str()));
        finding.code == self.code.id() && (is_object || is_file)
    }

    fn has_expired(&self, today: Date) -> bool {
        self.expires.is_some_and(|last| last < today)
    }

    /// The finding about the rule itself, if there is one.
    fn finding(&self, is_used: bool, today: Date) -> Option<v1::Finding> {
        let what = match &self.object {
            Some(object) => format!("{} of `{object}`", self.code.id()),
            None => self.code.id().to_owned(),
        };
        let expired = self.expires.filter(|_| self.has_expired(today));
        let is_about_rules = matches!(self.code, Code::IgnoreExpired | Code::IgnoreUnused);
        let (code, message) = match expired {
            Some(date) => (
                Code::IgnoreExpired,
                format!("{what} was ignored until {date}: mend the cause, or renew the entry"),
            ),
            None if !is_used && !is_about_rules => (
                Code::IgnoreUnused,
                format!("there is no {what} to ignore: remove the entry"),
            ),
            None => return None,
        };
        Some(about_input(code, self.location.clone(), message))
    }
}

/// An object without the group of its kind, in lower case: both are optional in an ignore list.
fn short(object: &str) -> String {
    let (kind, name) = object.split_once('/').unwrap_or((object, ""));
    let kind = kind.split('.').next().unwrap_or(kind);
    format!("{}/{name}", kind.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(code: Code, object: &str, location: &str) -> v1::Finding {
        v1::Finding {
            object: object.to_owned(),
            ..about_input(code, location.to_owned(), "m".to_owned())
        }
    }

    fn apply_to(rules: Vec<IgnoreRule>, found: &[v1::Finding]) -> (Vec<String>, usize) {
        let ignored = apply(&rules, found.to_vec(), jiff::civil::date(2026, 11, 25));
        let left = ignored.left.iter();
        let left = left.map(|finding| format!("{} {}", finding.code, finding.message));
        (left.collect(), ignored.count)
    }

    #[test]
    fn rules_name_codes_objects_and_files() {
        let policy = finding(Code::NoScope, "CachePolicy.x.example/shop/a", "m/a.yaml:3");
        let broken = finding(Code::Broken, "", "m/b.yaml:7");
        for (option, expected) in [
            ("E031", true),
            ("noscope", true),
            ("E031:CachePolicy.x.example/shop/a", true),
            ("E031:cachepolicy/shop/a", true),
            ("E031:cachepolicy/shop/b", false),
            ("E031:m/a.yaml", true),
            ("E031:m/b.yaml", false),
            ("E030", false),
        ] {
            let rule = parse_option(option).unwrap();
            assert_eq!(rule.names(&policy), expected, "{option}");
        }
        assert!(parse_option("E001:m/b.yaml").unwrap().names(&broken));
        assert!(parse_option("E001:m/b.yaml:7").unwrap().names(&broken));
        // An empty object and an object without a name are not each other.
        assert!(!parse_option("E001:x").unwrap().names(&broken));
        assert!(parse_option("E031:").is_err());
        let error = parse_option("TargetNotFond").unwrap_err();
        assert!(error.contains("did you mean `TargetNotFound`"), "{error}");
    }

    #[test]
    fn rules_that_expired_or_name_nothing_are_findings() {
        let text = "\
- {code: E031, object: CachePolicy/shop/a, reason: for the sale, expires: 2026-11-25}
- code: E031
  object: CachePolicy/shop/b
  reason: gone soon
  expires: 2026-11-24
- {code: E020, reason: none here}
";
        let rules = parse_file(text, "i.yaml").unwrap();
        let lines: Vec<&str> = rules.iter().map(|rule| &*rule.location).collect();
        assert_eq!(lines, ["i.yaml:1", "i.yaml:2", "i.yaml:6"]);
        let found = [
            finding(Code::NoScope, "CachePolicy.x.example/shop/a", ""),
            finding(Code::NoScope, "CachePolicy.x.example/shop/b", ""),
        ];
        let (left, count) = apply_to(rules, &found);
        assert_eq!(count, 1);
        assert_eq!(
            left,
            [
                "E031 m",
                "E011 E031 of `CachePolicy/shop/b` was ignored until 2026-11-24: mend the cause, or renew the entry",
                "E012 there is no E020 to ignore: remove the entry",
            ]
        );
        // So that one list serves several sets of manifests.
        let mut rules = parse_file(text, "i.yaml").unwrap();
        rules.push(parse_option("E012").unwrap());
        let (left, count) = apply_to(rules, &found);
        assert_eq!((left.len(), count), (2, 2), "{left:?}");
    }

    #[test]
    fn malformed_entries_are_refused_with_their_line() {
        for (text, expected) in [
            ("- {code: E031}", "reason"),
            (
                "- {code: E031, reason: ' '}",
                "i.yaml:1: the reason is empty",
            ),
            ("- {code: E031, reason: r, objects: x}", "objects"),
            ("\n- {code: E999, reason: r}", "i.yaml:2: no code `E999`"),
            ("- {code: E031, reason: r, expires: soon}", "not a date"),
        ] {
            let error = parse_file(text, "i.yaml").unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
        assert_eq!(parse_file("", "i.yaml"), Ok(Vec::new()));
        assert_eq!(parse_file("# none\n", "i.yaml"), Ok(Vec::new()));
    }
}

//! Findings as SARIF 2.1.0: the codes are the rules, with their pages.

use std::fmt::Write;

use super::super::document::{Document, Field};
use super::{FileLocation, Finding, one_line};
use crate::api::v1;
use crate::insight::Code;
use entail_client::EnumName;
use v1::finding::Severity;

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// The repository that has the pages of the codes, if the package names one.
const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");

/// The log of one run.
pub(super) fn log(findings: &[Finding], states: &[v1::KindState]) -> Document {
    let results = findings.iter().map(result).collect();
    let mut driver = fields([
        ("name", Document::text("entail")),
        ("version", Document::text(env!("CARGO_PKG_VERSION"))),
        ("rules", Document::list(Code::ALL, |code| rule(*code))),
    ]);
    driver.extend(link("informationUri", String::new()));
    let run = Document::map([
        ("tool", Document::map([("driver", Document::Map(driver))])),
        ("columnKind", Document::text("utf16CodeUnits")),
        ("invocations", Document::List(vec![invocation(states)])),
        ("results", Document::List(results)),
    ]);
    Document::map([
        ("$schema", Document::text(SCHEMA)),
        ("version", Document::text("2.1.0")),
        ("runs", Document::List(vec![run])),
    ])
}

/// How complete the run is.
fn invocation(states: &[v1::KindState]) -> Document {
    let notification = |state: &v1::KindState| {
        let name = state.state().name();
        Document::map([
            ("level", Document::text("warning")),
            (
                "message",
                text(&format!("{} is {name}: {}", state.kind, state.message)),
            ),
        ])
    };
    Document::map([
        ("executionSuccessful", Document::Bool(states.is_empty())),
        (
            "toolExecutionNotifications",
            Document::list(states, notification),
        ),
    ])
}

fn rule(code: Code) -> Document {
    let help = Document::map([
        ("text", Document::text(code.page())),
        ("markdown", Document::text(code.page())),
    ]);
    let level = level(code.severity());
    let mut rule = fields([
        ("id", Document::text(code.id())),
        ("name", Document::text(code.reason())),
        ("shortDescription", text(code.title())),
        ("fullDescription", text(&format!("{}.", code.title()))),
        ("help", help),
        (
            "defaultConfiguration",
            Document::map([("level", Document::text(level))]),
        ),
    ]);
    rule.extend(link(
        "helpUri",
        format!("/blob/main/docs/findings/{}.md", code.id()),
    ));
    Document::Map(rule)
}

/// A field with a page of the repository, if that is known.
fn link(field: &'static str, page: String) -> Option<Field> {
    let uri = Document::Text(format!("{REPOSITORY}{page}"));
    (!REPOSITORY.is_empty()).then(|| (field.into(), uri))
}

fn result(finding: &Finding) -> Document {
    let message = &finding.message;
    let mut result = fields([
        ("ruleId", Document::text(&message.code)),
        ("level", Document::text(level(finding.severity()))),
        ("message", text(&finding.full_text())),
    ]);
    let index = Code::ALL.iter().position(|code| code.id() == message.code);
    let index = index.and_then(|index| u32::try_from(index).ok());
    result.extend(index.map(|index| ("ruleIndex".into(), Document::from(index))));
    let location = location(finding);
    if !location.is_empty() {
        let locations = Document::List(vec![Document::Map(location)]);
        result.push(("locations".into(), locations));
    }
    // Code scanning tells by this whether a finding is new. The line may change, and so may the number of places.
    let identity = format!("{}/{}/{}", message.code, message.reason, message.object);
    let identity = match message.object.as_str() {
        "" => format!("{identity}{}", one_line(&message.message)),
        _ => identity,
    };
    let prints = [("findingIdentity/v1", Document::Text(identity))];
    result.push(("partialFingerprints".into(), Document::map(prints)));
    Document::Map(result)
}

/// Where a finding is: file and line, and the object.
fn location(finding: &Finding) -> Vec<Field> {
    let mut location = Vec::new();
    if let Some(FileLocation { file, line }) = finding.file_location() {
        let uri = Document::map([("uri", Document::Text(uri(file)))]);
        let mut physical = fields([("artifactLocation", uri)]);
        let region = line.map(|line| Document::map([("startLine", Document::from(line.max(1)))]));
        physical.extend(region.map(|region| ("region".into(), region)));
        location.extend(fields([("physicalLocation", Document::Map(physical))]));
    }
    let object = finding.message.object.as_str();
    if !object.is_empty() {
        let name = object.rsplit('/').next().unwrap_or(object);
        let logical = Document::text_fields([
            ("name", name),
            ("fullyQualifiedName", object),
            ("kind", "resource"),
        ]);
        location.extend(fields([(
            "logicalLocations",
            Document::List(vec![logical]),
        )]));
    }
    location
}

/// The URI of a file: relative, unless the path is absolute.
fn uri(file: &str) -> String {
    let relative = file.strip_prefix("./").unwrap_or(file);
    let mut uri = match relative.starts_with('/') {
        true => "file://".to_owned(),
        false => String::new(),
    };
    for byte in relative.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                uri.push(char::from(byte));
            }
            // Writing to a String does not fail.
            _ => _ = write!(uri, "%{byte:02X}"),
        }
    }
    uri
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning | Severity::Unspecified => "warning",
        Severity::Note => "note",
    }
}

fn text(text: &str) -> Document {
    Document::text_fields([("text", text)])
}

fn fields<const N: usize>(fields: [(&'static str, Document); N]) -> Vec<Field> {
    let fields = fields.into_iter();
    fields.map(|(name, value)| (name.into(), value)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{finding, findings};
    use super::*;

    #[test]
    fn a_result_has_its_rule_and_its_place() {
        let all = findings(vec![
            finding(Code::TargetNotFound, "./m/a b.yaml:7"),
            finding(Code::Overridden, ""),
        ]);
        let log: serde_json::Value = serde_json::from_str(&all.sarif(&[]).unwrap()).unwrap();
        let run = &log["runs"][0];
        let [error, note] = [&run["results"][0], &run["results"][1]];
        for (result, id) in [(error, "E021"), (note, "E030")] {
            let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
            assert_eq!(result["ruleId"], id);
            assert_eq!(run["tool"]["driver"]["rules"][index]["id"], id);
        }
        let physical = &error["locations"][0]["physicalLocation"];
        assert_eq!(physical["artifactLocation"]["uri"], "m/a%20b.yaml");
        assert_eq!(physical["region"]["startLine"], 7);
        assert_eq!(
            (&error["level"], &note["level"]),
            (&"error".into(), &"note".into())
        );
        let locations = note["locations"].as_array().unwrap();
        assert_eq!(locations.len(), 1);
        assert!(locations[0].get("physicalLocation").is_none());
        let logical = &locations[0]["logicalLocations"][0];
        assert_eq!(logical["fullyQualifiedName"], "K.x.example/a/b");
        assert_eq!(run["invocations"][0]["executionSuccessful"], true);
    }

    #[test]
    fn an_incomplete_run_says_so() {
        let state = v1::KindState {
            kind: "K.x.example".to_owned(),
            message: "why".to_owned(),
            ..v1::KindState::default()
        };
        let log: serde_json::Value =
            serde_json::from_str(&findings(Vec::new()).sarif(&[state]).unwrap()).unwrap();
        let invocation = &log["runs"][0]["invocations"][0];
        assert_eq!(invocation["executionSuccessful"], false);
        let message = &invocation["toolExecutionNotifications"][0]["message"]["text"];
        assert!(message.as_str().unwrap().ends_with(": why"));
    }

    #[test]
    fn absolute_files_have_an_absolute_uri() {
        assert_eq!(uri("/m/ä.yaml"), "file:///m/%C3%A4.yaml");
        assert_eq!(uri("a:b.yaml"), "a%3Ab.yaml");
    }
}

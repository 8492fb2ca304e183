//! Findings as workflow commands of GitHub Actions: `::error file=...,line=...,title=...::message`.

use super::super::text::printable;
use super::{FileLocation, Finding};
use crate::api::v1::finding::Severity;

/// The command that annotates the place of a finding.
pub(super) fn command(finding: &Finding) -> String {
    let name = match finding.severity() {
        Severity::Error => "error",
        Severity::Warning | Severity::Unspecified => "warning",
        Severity::Note => "notice",
    };
    let mut properties = Vec::new();
    if let Some(FileLocation { file, line }) = finding.file_location() {
        properties.push(format!("file={}", property(file)));
        properties.extend(line.map(|line| format!("line={line}")));
    }
    properties.push(format!("title={}", property(&finding.title())));
    let object = match finding.message.object.as_str() {
        "" => String::new(),
        object => format!("{object}: "),
    };
    let message = format!("{object}{}", finding.full_text());
    format!("::{name} {}::{}\n", properties.join(","), data(&message))
}

/// Escapes a message. A line break in it would begin a command of its own.
fn data(text: &str) -> String {
    let text = text.replace('%', "%25").replace('\r', "%0D");
    printable(&text.replace('\n', "%0A"))
}

/// Escapes a property.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::super::tests::{finding, findings};
    use crate::insight::Code;

    #[test]
    fn commands_are_one_escaped_line() {
        let mut odd = finding(Code::Invalid, "a,b:c%.yaml:7");
        odd.object = "K/a\nb".to_owned();
        odd.message = "100 % \u{1b}[2J".to_owned();
        odd.count = 2;
        odd.places = vec!["one".to_owned()];
        let all = findings(vec![odd, finding(Code::FoldOrder, "")]);
        assert_eq!(
            all.workflow_commands(),
            "::error file=a%2Cb%3Ac%25.yaml,line=7,title=E020 Invalid::\
             K/a%0Ab: 100 %25 \\u001b[2J%0Aone%0Aand 1 more\n\
             ::notice title=E033 FoldOrder::K.x.example/a/b: first second\n"
        );
    }
}

//! Findings as JUnit XML: one test case for each, which fails if the finding makes the command fail, and is an error if it
//! says that something is not known.

use std::io;

use quick_xml::Writer;
use quick_xml::events::BytesText;

use super::super::text::printable;
use super::{Effect, Finding, Findings};
use crate::api::v1;

/// The writer of a report in memory.
type Xml = Writer<Vec<u8>>;

/// A test case.
struct TestCase {
    class: String,
    name: String,
    file: Option<String>,
    line: Option<String>,
    result: TestResult,
    /// The code of what is wrong, or the reason.
    kind: String,
    /// What is said of it; its first line is the message.
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TestResult {
    Passed,
    /// It passed, with a remark.
    Remarked,
    Failed,
    /// It is not known whether it passes.
    Error,
}

/// The report with all findings, with what passed, and with the kinds that are incomplete. Without any, it has one test
/// case, which passes: some readers take a report without test cases for a broken one.
pub(super) fn report(findings: &Findings, states: &[v1::KindState]) -> io::Result<String> {
    let suite = findings.suite;
    let of_findings = findings.findings.iter().map(|f| TestCase::of(suite, f));
    let incomplete = states
        .iter()
        .map(|state| TestCase::incomplete(suite, state));
    let passed = findings.passed.iter();
    let passed = passed.map(|(object, location)| TestCase::passed(suite, object, location));
    let mut cases: Vec<TestCase> = of_findings.chain(incomplete).chain(passed).collect();
    if cases.is_empty() {
        cases.push(TestCase::passed(suite, "no findings", ""));
    }
    let count = |result| cases.iter().filter(|case| case.result == result).count();
    let tests = cases.len().to_string();
    let failures = count(TestResult::Failed).to_string();
    let errors = count(TestResult::Error).to_string();
    let totals = [
        ("name", suite),
        ("tests", &*tests),
        ("failures", &*failures),
        ("errors", &*errors),
    ];
    let mut xml = Writer::new_with_indent(Vec::new(), b' ', 2);
    xml.create_element("testsuites")
        .with_attributes(totals)
        .write_inner_content(|xml| {
            xml.create_element("testsuite")
                .with_attributes(totals)
                .write_inner_content(|xml| cases.iter().try_for_each(|case| case.write(xml)))?;
            Ok(())
        })?;
    let body = String::from_utf8_lossy(&xml.into_inner()).into_owned();
    Ok(format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{body}\n"
    ))
}

impl TestCase {
    fn of(suite: &str, finding: &Finding) -> Self {
        let message = &finding.message;
        let place = finding.file_location();
        let line = place.as_ref().and_then(|place| place.line);
        let name = format!("{} {}", finding.title(), printable(&message.object));
        Self {
            class: class(suite, &message.location),
            name: name.trim().to_owned(),
            file: place.map(|place| printable(place.file)),
            line: line.map(|line| line.to_string()),
            result: match finding.effect {
                Effect::Fails => TestResult::Failed,
                Effect::Unknown => TestResult::Error,
                Effect::Remark => TestResult::Remarked,
            },
            kind: message.code.clone(),
            text: printable(&finding.full_text()),
        }
    }

    fn incomplete(suite: &str, state: &v1::KindState) -> Self {
        Self {
            name: format!("INCOMPLETE {}", printable(&state.kind)),
            result: TestResult::Error,
            kind: state.reason.clone(),
            text: printable(&state.message),
            ..Self::passed(suite, "", "")
        }
    }

    fn passed(suite: &str, object: &str, location: &str) -> Self {
        Self {
            class: class(suite, location),
            name: printable(object),
            file: None,
            line: None,
            result: TestResult::Passed,
            kind: String::new(),
            text: String::new(),
        }
    }

    fn write(&self, xml: &mut Xml) -> io::Result<()> {
        let mut attributes = vec![("classname", &*self.class), ("name", &*self.name)];
        attributes.extend(self.file.as_deref().map(|file| ("file", file)));
        attributes.extend(self.line.as_deref().map(|line| ("line", line)));
        let case = xml.create_element("testcase").with_attributes(attributes);
        let element = match self.result {
            TestResult::Passed => {
                case.write_empty()?;
                return Ok(());
            }
            TestResult::Remarked => "system-out",
            TestResult::Failed => "failure",
            TestResult::Error => "error",
        };
        case.write_inner_content(|xml| {
            let mut detail = xml.create_element(element);
            if self.result != TestResult::Remarked {
                let first = self.text.lines().next().unwrap_or_default();
                detail = detail.with_attributes([("type", &*self.kind), ("message", first)]);
            }
            detail.write_text_content(BytesText::new(&self.text))?;
            Ok(())
        })?;
        Ok(())
    }
}

/// The class of a test case: where it is, if that is known.
fn class(suite: &str, location: &str) -> String {
    match location {
        "" => suite.to_owned(),
        location => printable(location),
    }
}

#[cfg(test)]
mod tests {
    use quick_xml::Reader;
    use quick_xml::events::Event;

    use super::super::Findings;
    use super::super::tests::finding;
    use crate::api::v1;
    use crate::api::v1::finding::Severity;
    use crate::insight::Code;

    /// The elements of a report in their order, each with its attributes.
    fn elements(text: &str) -> Vec<String> {
        let mut reader = Reader::from_str(text);
        let mut found = Vec::new();
        loop {
            match reader.read_event().unwrap() {
                Event::Start(element) | Event::Empty(element) => {
                    let attributes = element.attributes().map(|attribute| {
                        let attribute = attribute.unwrap();
                        format!(" {}={}", attribute.key.as_ref(), attribute.value)
                    });
                    let attributes: String = attributes.collect();
                    found.push(format!("{}{attributes}", element.name().as_ref()));
                }
                Event::Eof => return found,
                _ => {}
            }
        }
    }

    #[test]
    fn each_finding_is_a_test_case_that_fails_from_a_severity_on() {
        let mut odd = finding(Code::Invalid, "a&b.yaml:7");
        odd.message = "a < b & \"c\" \u{1b}".to_owned();
        let messages = vec![odd, finding(Code::FoldOrder, "")];
        let all = Findings::new(None, messages, 0, |severity| severity == Severity::Error);
        let text = all.junit(&[]).unwrap();
        assert_eq!(
            elements(&text),
            [
                "testsuites name=entail lint tests=2 failures=1 errors=0",
                "testsuite name=entail lint tests=2 failures=1 errors=0",
                "testcase classname=a&amp;b.yaml:7 name=E020 Invalid K.x.example/a/b file=a&amp;b.yaml line=7",
                "failure type=E020 message=a &lt; b &amp; &quot;c&quot; \\u001b",
                "testcase classname=entail lint name=E033 FoldOrder K.x.example/a/b",
                "system-out",
            ]
        );
    }

    #[test]
    fn a_report_without_findings_passes() {
        let text = Findings::new(None, Vec::new(), 0, |_| true)
            .junit(&[])
            .unwrap();
        let elements = elements(&text);
        assert_eq!(elements.len(), 3, "{text}");
        assert!(elements[2].ends_with("name=no findings"), "{text}");
    }

    #[test]
    fn what_is_not_known_is_an_error_and_what_passed_is_listed() {
        let unknown = finding(Code::AssertionWithoutPaths, "a.yaml:1");
        let all = Findings::new(None, vec![unknown], 0, |_| false);
        let passed = vec![("A/ok".to_owned(), "a.yaml:9".to_owned())];
        let all = all.of_tests("entail check", passed, |_| true);
        let state = v1::KindState {
            kind: "K.x.example".to_owned(),
            reason: "Forbidden".to_owned(),
            message: "may not be read".to_owned(),
            ..v1::KindState::default()
        };
        let elements = elements(&all.junit(&[state]).unwrap());
        assert_eq!(
            elements,
            [
                "testsuites name=entail check tests=3 failures=0 errors=2",
                "testsuite name=entail check tests=3 failures=0 errors=2",
                "testcase classname=a.yaml:1 name=E095 AssertionWithoutPaths K.x.example/a/b file=a.yaml line=1",
                "error type=E095 message=first second",
                "testcase classname=entail check name=INCOMPLETE K.x.example",
                "error type=Forbidden message=may not be read",
                "testcase classname=a.yaml:9 name=A/ok",
            ]
        );
    }
}

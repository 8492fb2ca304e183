//! Findings as JUnit XML: one test case for each, which fails if the finding makes the command fail.

use std::io;

use quick_xml::Writer;
use quick_xml::events::BytesText;

use super::super::text::printable;
use super::Finding;

/// The writer of a report in memory.
type Xml = Writer<Vec<u8>>;

/// The report with all findings. Without findings it has one test case, which passes: some readers take a report
/// without test cases for a broken one.
pub(super) fn report(findings: &[Finding]) -> io::Result<String> {
    let tests = findings.len().max(1).to_string();
    let failures = findings.iter().filter(|finding| finding.fails).count();
    let failures = failures.to_string();
    let totals = [
        ("name", "entail lint"),
        ("tests", &*tests),
        ("failures", &*failures),
        ("errors", "0"),
    ];
    let mut xml = Writer::new_with_indent(Vec::new(), b' ', 2);
    xml.create_element("testsuites")
        .with_attributes(totals)
        .write_inner_content(|xml| {
            xml.create_element("testsuite")
                .with_attributes(totals)
                .write_inner_content(|xml| test_cases(xml, findings))?;
            Ok(())
        })?;
    let body = String::from_utf8_lossy(&xml.into_inner()).into_owned();
    Ok(format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{body}\n"
    ))
}

fn test_cases(xml: &mut Xml, findings: &[Finding]) -> io::Result<()> {
    for finding in findings {
        test_case(xml, finding)?;
    }
    if findings.is_empty() {
        xml.create_element("testcase")
            .with_attributes([("classname", "entail lint"), ("name", "no findings")])
            .write_empty()?;
    }
    Ok(())
}

fn test_case(xml: &mut Xml, finding: &Finding) -> io::Result<()> {
    let message = &finding.message;
    let location = printable(&message.location);
    let name = format!("{} {}", finding.title(), printable(&message.object));
    let class = match location.as_str() {
        "" => "entail lint",
        location => location,
    };
    let mut attributes = vec![("classname", class), ("name", name.trim())];
    let place = finding.file_location();
    let file = place.as_ref().map(|place| printable(place.file));
    let line = place
        .and_then(|place| place.line)
        .map(|line| line.to_string());
    attributes.extend(file.as_deref().map(|file| ("file", file)));
    attributes.extend(line.as_deref().map(|line| ("line", line)));
    let text = printable(&finding.full_text());
    let (first, kind) = (text.lines().next().unwrap_or_default(), &*message.code);
    xml.create_element("testcase")
        .with_attributes(attributes)
        .write_inner_content(|xml| {
            let detail = match finding.fails {
                true => xml
                    .create_element("failure")
                    .with_attributes([("type", kind), ("message", first)]),
                false => xml.create_element("system-out"),
            };
            detail.write_text_content(BytesText::new(&text))?;
            Ok(())
        })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use quick_xml::Reader;
    use quick_xml::events::Event;

    use super::super::Findings;
    use super::super::tests::finding;
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
        let text = all.junit().unwrap();
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
            .junit()
            .unwrap();
        let elements = elements(&text);
        assert_eq!(elements.len(), 3, "{text}");
        assert!(elements[2].ends_with("name=no findings"), "{text}");
    }
}

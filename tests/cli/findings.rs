//! Tests of `lint` and `explain-code`: codes and their pages, places, options, and output formats.

use entail_client::EnumName;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use entail::insight::Code;
use quick_xml::Reader;
use quick_xml::events::Event;
use serde_json::Value;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// A world: the bakery, and a file beside it.
struct Bakery {
    folder: tempfile::TempDir,
}

impl Bakery {
    /// The bakery with a file of manifests.
    fn with(example: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        copy(
            &Path::new(ROOT).join("examples/bakery"),
            &folder.path().join("m"),
        );
        fs::write(folder.path().join("m/example.yaml"), example).unwrap();
        Self { folder }
    }

    /// Runs a command in the folder, where the manifests are in `m`.
    fn run(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_entail"))
            .args(args)
            .current_dir(self.folder.path())
            .output()
            .unwrap()
    }

    /// Runs `lint` with options. Returns the exit code and what it prints.
    fn lint(&self, options: &[&str]) -> (i32, String) {
        let output = self.run(&[&["lint", "--manifests", "m"], options].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(errors.is_empty() || text.is_empty(), "{text}{errors}");
        (output.status.code().unwrap(), text + &errors)
    }

    /// The findings as JSON.
    fn json(&self, options: &[&str]) -> Vec<Value> {
        let (_, text) = self.lint(&[options, &["-o", "json"]].concat());
        let answer: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
        answer["findings"].as_array().unwrap().clone()
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.folder.path().join(file), text).unwrap();
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true => copy(&path, &target),
            false => _ = fs::copy(&path, target).unwrap(),
        }
    }
}

/// The finding with a code.
#[track_caller]
fn with_code<'f>(findings: &'f [Value], code: &str) -> &'f Value {
    let found: Vec<&Value> = findings.iter().filter(|f| f["code"] == code).collect();
    assert_eq!(found.len(), 1, "{code}: {findings:#?}");
    found[0]
}

/// The blocks of a page in a language.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let begin = format!("```{language}\n");
    let parts = page.split(&begin).skip(1);
    parts
        .map(|part| part.split("```").next().unwrap().to_owned())
        .collect()
}

fn pages() -> PathBuf {
    Path::new(ROOT).join("docs/findings")
}

/// The text of `docs/findings/README.md`.
fn index() -> String {
    let mut text = "# Findings

Each finding of `entail lint`, and each reason in an explanation, has a stable code. `entail explain-code E021` prints
its page, and so does `entail explain-code TargetNotFound`. The severity is the usual one; a page says where it differs.

E001 to E015 are about inputs, E020 to E034 about policies, E040 to E046 about what is not known, E050 to E067 about
Gateways, Routes and paths, E070 to E082 say why the value of a policy is not in the result, E090 to E095 are about
assertions, and E100 to E103 about changes under review.

| Code | Reason | Severity | Meaning |
|---|---|---|---|
"
    .to_owned();
    for code in Code::ALL {
        let severity = code.severity().name().to_lowercase();
        text.push_str(&format!(
            "| [{id}]({id}.md) | `{}` | {severity} | {} |\n",
            code.reason(),
            code.title(),
            id = code.id(),
        ));
    }
    text
}

#[test]
fn every_code_has_a_page_and_every_page_a_code() {
    let file = pages().join("README.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&file, index()).unwrap();
    }
    let files: BTreeSet<String> = fs::read_dir(pages())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let expected = Code::ALL.iter().map(|code| format!("{}.md", code.id()));
    assert_eq!(files, expected.chain(["README.md".to_owned()]).collect());
    for code in Code::ALL {
        let page = code.page();
        let heading = format!("# {} {}: {}\n", code.id(), code.reason(), code.title());
        let severity = code.severity().name().to_lowercase();
        assert!(page.starts_with(&heading), "{heading}{page}");
        for part in [
            &*format!("\nSeverity: {severity}.\n"),
            "\n## Example\n",
            "\n## How to mend it\n",
            "\n## When to ignore it\n",
        ] {
            assert!(page.contains(part), "{}: {part}", code.id());
        }
    }
    assert_eq!(fs::read_to_string(file).unwrap(), index());
}

/// The examples of the pages show what the pages are about.
#[test]
fn the_example_of_each_page_shows_the_finding() {
    let mut shown = 0;
    for code in Code::ALL {
        let manifests = blocks(code.page(), "yaml");
        let command = blocks(code.page(), "sh");
        if manifests.is_empty() && command.is_empty() {
            continue;
        }
        let command = command
            .first()
            .map_or("entail lint --manifests examples/bakery", |text| text);
        let example = manifests.first().map_or("", |text| text);
        let is_ignore_file = command.contains("ignore.yaml");
        let bakery = Bakery::with(if is_ignore_file { "" } else { example });
        if is_ignore_file {
            bakery.write("ignore.yaml", example);
        }
        let command = command.replace("examples/bakery", "m");
        let mut words: Vec<&str> = command.split_whitespace().skip(1).collect();
        if words[0] == "lint" {
            words.extend(["-o", "json"]);
        }
        let output = bakery.run(&words);
        let text = String::from_utf8(output.stdout).unwrap();
        let expected = match words[0] {
            "lint" => format!("\"code\": \"{}\"", code.id()),
            _ => phrase(*code),
        };
        assert!(text.contains(&expected), "{} {expected}: {text}", code.id());
        shown += 1;
    }
    assert!(shown >= 40, "{shown}");
}

/// The phrase of an explanation that a code is about.
fn phrase(code: Code) -> String {
    let mut all = entail_core::model::LossReason::ALL.into_iter();
    let loss = all.find(|loss| Code::from(*loss) == code).unwrap();
    loss.as_str().to_owned()
}

#[test]
fn explain_code_prints_pages_and_lists_codes() {
    let bakery = Bakery::with("");
    let page = bakery.run(&["explain-code", "E021"]);
    assert_eq!(page.status.code(), Some(0));
    let text = String::from_utf8(page.stdout.clone()).unwrap();
    assert!(text.starts_with("E021 TargetNotFound: "), "{text}");
    assert!(text.contains("\n    kind: CachePolicy\n"), "{text}");
    assert!(!text.contains("```") && !text.contains("]("), "{text}");
    for name in ["TargetNotFound", "targetnotfound", "e021"] {
        assert_eq!(bakery.run(&["explain-code", name]).stdout, page.stdout);
    }
    for code in Code::ALL {
        let output = bakery.run(&["explain-code", code.id()]);
        let text = String::from_utf8(output.stdout).unwrap();
        // Lines of code are as they are in the file.
        let prose = text.lines().filter(|line| !line.starts_with("    "));
        for line in prose {
            assert!(line.chars().count() <= 80, "{}: {line}", code.id());
        }
    }
    let list = bakery.run(&["explain-code"]);
    let text = String::from_utf8(list.stdout).unwrap();
    assert!(
        text.contains("E072 note     A less specific override wins\n"),
        "{text}"
    );
    let phrase = bakery.run(&["explain-code", "less specific override"]);
    assert!(phrase.stdout.starts_with(b"E072 "));
    let unknown = bakery.run(&["explain-code", "TargetNotFond"]);
    assert_eq!(unknown.status.code(), Some(1));
    let error = String::from_utf8(unknown.stderr).unwrap();
    assert!(error.contains("did you mean `TargetNotFound`?"), "{error}");
}

/// Two policies with references and fields of which several have the same problem.
const SEVERAL: &str = "\
apiVersion: policies.bakery.example/v1
kind: CachePolicy
metadata: {name: crumbs, namespace: baker}
spec:
  targetRefs:
  - {group: gateway.networking.k8s.io, kind: HTTPRoute, name: a}
  - {group: gateway.networking.k8s.io, kind: HTTPRoute, name: b}
  - {group: gateway.networking.k8s.io, kind: HTTPRoute, name: c}
  - {group: gateway.networking.k8s.io, kind: HTTPRoute, name: d}
  ttl: 5m
---
apiVersion: policies.bakery.example/v1
kind: TimeoutPolicy
metadata: {name: back, namespace: platform}
spec:
  targetRefs:
  - {group: gateway.networking.k8s.io, kind: Gateway, name: backdoor}
  defaults: {strategy: atomic, client: {request: 30s, idle: 5s}, backend: {request: 20s}}
";

#[test]
fn one_fact_is_one_finding_with_its_places() {
    let bakery = Bakery::with(SEVERAL);
    let findings = bakery.json(&[]);
    let missing = with_code(&findings, "E021");
    assert_eq!(missing["count"], "4");
    assert_eq!(missing["places"].as_array().unwrap().len(), 3);
    assert_eq!(missing["location"], "m/example.yaml:1");
    assert_eq!(
        missing["message"],
        "The target of a reference does not exist, in 4 places"
    );
    // Two fields that the policies of routes do not set.
    let lost = with_code(&findings, "E032");
    assert_eq!(lost["count"], "2", "{lost:#?}");
    let places = lost["places"].as_array().unwrap();
    assert!(
        places[0]
            .as_str()
            .unwrap()
            .starts_with("`backend.request` is lost on 4 paths: gateways/")
    );
    let findings = bakery.json(&["--all"]);
    assert_eq!(
        with_code(&findings, "E021")["places"]
            .as_array()
            .unwrap()
            .len(),
        4
    );
    let (_, text) = bakery.lint(&[]);
    assert!(
        text.contains("    - and 1 more (`--all` lists them)\n  --> m/example.yaml:1"),
        "{text}"
    );
    assert!(!bakery.lint(&["--all"]).1.contains("`--all`"));
}

#[test]
fn overrides_that_are_meant_do_not_fail() {
    let bakery = Bakery::with("");
    let (code, text) = bakery.lint(&[]);
    assert_eq!(code, 0, "{text}");
    assert!(
        text.starts_with("E030 note: not in effect: overridden on all 7 paths"),
        "{text}"
    );
    assert_eq!(bakery.lint(&["--fail-on", "note"]).0, 1);
}

#[test]
fn the_exit_code_follows_the_severity() {
    let warning = blocks(Code::NoScope.page(), "yaml").remove(0);
    let warning = Bakery::with(&warning);
    let error = blocks(Code::TargetNotFound.page(), "yaml").remove(0);
    let error = Bakery::with(&error);
    for (severity, of_warning, of_error) in [
        ("error", 0, 1),
        ("warning", 1, 1),
        ("note", 1, 1),
        ("never", 0, 0),
    ] {
        for format in ["text", "wide", "json", "yaml", "sarif", "junit", "github"] {
            let options = ["--fail-on", severity, "-o", format];
            assert_eq!(warning.lint(&options).0, of_warning, "{options:?}");
            assert_eq!(error.lint(&options).0, of_error, "{options:?}");
        }
    }
    assert_eq!(warning.lint(&[]).0, 1);
    assert_eq!(warning.lint(&["--fail-on", "fatal"]).0, 2);
}

#[test]
fn unreadable_documents_are_findings_with_file_and_line() {
    let bakery = Bakery::with("a: 1\n---\nb: [\n---\nkind: X\n");
    let (code, text) = bakery.lint(&[]);
    assert_eq!(code, 3, "{text}");
    for expected in [
        "E001 error: document 2: not valid YAML",
        "  --> m/example.yaml:3\n",
        "E002 error: ",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(
        text.ends_with("how to mend it\n") && text.contains("\n3 errors, "),
        "{text}"
    );
    // The readable rest is checked, and a known defect can be ignored.
    let (code, text) = bakery.lint(&["--allow-partial"]);
    assert_eq!(code, 1, "{text}");
    let options = [
        "--allow-partial",
        "--ignore",
        "E001:m/example.yaml",
        "--ignore",
        "E002",
    ];
    let (code, text) = bakery.lint(&options);
    assert_eq!(code, 0, "{text}");
    assert!(
        text.contains("0 errors, 0 warnings, 1 note; 3 ignored\n"),
        "{text}"
    );
}

#[test]
fn findings_can_be_ignored_by_code_object_and_file() {
    let bakery = Bakery::with(SEVERAL);
    let codes = |options: &[&str]| -> BTreeSet<String> {
        let findings = bakery.json(options);
        let codes = findings
            .iter()
            .map(|f| f["code"].as_str().unwrap().to_owned());
        codes.collect()
    };
    let of = |codes: &[&str]| codes.iter().map(|code| (*code).to_owned()).collect();
    assert_eq!(codes(&[]), of(&["E021", "E030", "E032"]));
    assert_eq!(codes(&["--ignore", "E021"]), of(&["E030", "E032"]));
    let object = "SilentLoss:TimeoutPolicy/platform/back";
    assert_eq!(codes(&["--ignore", object]), of(&["E021", "E030"]));
    let other = "E032:TimeoutPolicy/baker/other";
    assert_eq!(
        codes(&["--ignore", other]),
        of(&["E012", "E021", "E030", "E032"])
    );
    // With `--kind`, an entry may be about a kind that is not selected.
    assert_eq!(
        codes(&["--kind", "CachePolicy", "--ignore", other]),
        of(&["E021", "E030"])
    );
    let (code, text) = bakery.lint(&["--ignore", "E999"]);
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("no code `E999`"), "{text}");
}

#[test]
fn an_ignore_file_needs_reasons_and_expires() {
    let bakery = Bakery::with(SEVERAL);
    bakery.write(
        "ignore.yaml",
        "- {code: E021, object: CachePolicy/baker/crumbs, reason: routes come, expires: 2999-01-01}\n\
         - {code: E030, reason: as above}\n\
         - code: E032\n  reason: over\n  expires: 2024-01-31\n\
         - {code: E050, reason: never}\n",
    );
    let file = ["--ignore-file", "ignore.yaml"];
    let findings = bakery.json(&file);
    let codes: Vec<&str> = findings
        .iter()
        .map(|f| f["code"].as_str().unwrap())
        .collect();
    assert_eq!(codes, ["E011", "E032", "E012"], "{findings:#?}");
    assert_eq!(findings[0]["location"], "ignore.yaml:3");
    assert_eq!(findings[2]["location"], "ignore.yaml:6");
    let (code, text) = bakery.lint(&file);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("; 2 ignored\n"), "{text}");
    for (text, expected) in [
        ("- {code: E021}\n", "reason"),
        ("- {code: E021, reason: x, until: y}\n", "until"),
        (
            "- {code: E021, reason: x, expires: soon}\n",
            "ignore.yaml:1: `soon` is not a date",
        ),
    ] {
        bakery.write("ignore.yaml", text);
        let (code, printed) = bakery.lint(&file);
        assert_eq!(code, 3, "{printed}");
        assert!(printed.contains(expected), "{printed}");
    }
    assert_eq!(bakery.lint(&["--ignore-file", "none.yaml"]).0, 3);
}

/// Checks what the schema of SARIF 2.1.0 requires of a log.
fn check_sarif(log: &Value) {
    assert_eq!(log["version"], "2.1.0");
    assert!(
        log["$schema"]
            .as_str()
            .unwrap()
            .ends_with("sarif-schema-2.1.0.json")
    );
    for run in log["runs"].as_array().unwrap() {
        let driver = &run["tool"]["driver"];
        assert!(driver["name"].is_string());
        let rules = driver["rules"].as_array().unwrap();
        for rule in rules {
            for field in ["id", "name"] {
                assert!(!rule[field].as_str().unwrap().is_empty());
            }
            for field in ["shortDescription", "fullDescription", "help"] {
                assert!(!rule[field]["text"].as_str().unwrap().is_empty());
            }
        }
        let ids: BTreeSet<&str> = rules
            .iter()
            .map(|rule| rule["id"].as_str().unwrap())
            .collect();
        assert_eq!(ids.len(), rules.len());
        for result in run["results"].as_array().unwrap() {
            let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
            assert_eq!(result["ruleId"], rules[index]["id"]);
            assert!(!result["message"]["text"].as_str().unwrap().is_empty());
            assert!(["error", "warning", "note"].contains(&result["level"].as_str().unwrap()));
            for location in result["locations"].as_array().unwrap() {
                if let Some(physical) = location.get("physicalLocation") {
                    let uri = physical["artifactLocation"]["uri"].as_str().unwrap();
                    assert!(!uri.contains([' ', '\\']), "{uri}");
                    let region = physical.get("region");
                    assert!(region.is_none_or(|r| r["startLine"].as_u64().unwrap() >= 1));
                }
            }
        }
    }
}

#[test]
fn sarif_has_rules_results_and_places() {
    let bakery = Bakery::with(SEVERAL);
    let (code, text) = bakery.lint(&["-o", "sarif"]);
    assert_eq!(code, 1);
    let log: Value = serde_json::from_str(&text).unwrap();
    check_sarif(&log);
    let run = &log["runs"][0];
    assert_eq!(
        run["tool"]["driver"]["rules"].as_array().unwrap().len(),
        Code::ALL.len()
    );
    let results = run["results"].as_array().unwrap();
    let missing = results
        .iter()
        .find(|result| result["ruleId"] == "E021")
        .unwrap();
    let location = &missing["locations"][0];
    let physical = &location["physicalLocation"];
    assert_eq!(physical["artifactLocation"]["uri"], "m/example.yaml");
    assert_eq!(physical["region"]["startLine"], 1);
    assert_eq!(
        location["logicalLocations"][0]["fullyQualifiedName"],
        "CachePolicy.policies.bakery.example/baker/crumbs"
    );
    let message = missing["message"]["text"].as_str().unwrap();
    assert_eq!(message.lines().count(), 5, "{message}");
    assert_eq!(run["invocations"][0]["executionSuccessful"], true);
}

/// The names of the elements of an XML text, and how many have a name.
fn elements(text: &str) -> Vec<String> {
    let mut reader = Reader::from_str(text);
    reader.config_mut().check_end_names = true;
    let mut names = Vec::new();
    loop {
        match reader.read_event().unwrap() {
            Event::Start(element) | Event::Empty(element) => {
                let _: Vec<_> = element.attributes().map(Result::unwrap).collect();
                names.push(element.name().as_ref().to_owned());
            }
            Event::Eof => return names,
            _ => {}
        }
    }
}

#[test]
fn junit_has_a_test_case_for_each_finding() {
    let bakery = Bakery::with(SEVERAL);
    for (severity, failures) in [("error", 1), ("warning", 2), ("note", 3), ("never", 0)] {
        let (_, text) = bakery.lint(&["-o", "junit", "--fail-on", severity]);
        let names = elements(&text);
        let count = |name: &str| names.iter().filter(|n| *n == name).count();
        assert_eq!(count("testcase"), 3, "{text}");
        assert_eq!(count("failure"), failures, "{severity} {text}");
        let totals = format!("tests=\"3\" failures=\"{failures}\"");
        assert_eq!(text.matches(&totals).count(), 2, "{text}");
    }
    assert_eq!(elements(&bakery.lint(&["-o", "junit"]).1)[0], "testsuites");
}

#[test]
fn workflow_commands_annotate_files_and_lines() {
    let bakery = Bakery::with(SEVERAL);
    let (code, text) = bakery.lint(&["-o", "github"]);
    assert_eq!(code, 1);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    let error = "::error file=m/example.yaml,line=1,title=E021 TargetNotFound::\
                 CachePolicy.policies.bakery.example/baker/crumbs: The target of a reference does not exist, in 4 \
                 places%0Aspec.targetRefs[0]: ";
    assert!(lines[0].starts_with(error), "{text}");
    let note = lines
        .iter()
        .filter(|line| line.starts_with("::notice file=m/policies/cache.yaml,"));
    assert_eq!(note.count(), 1, "{text}");
}

#[test]
fn text_is_narrow_and_names_are_not_broken() {
    let bakery = Bakery::with(SEVERAL);
    let (_, text) = bakery.lint(&["--all"]);
    for line in text.lines() {
        let is_name = line.contains("gateways/") || line.starts_with("      ");
        assert!(is_name || line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn a_line_break_in_the_name_of_a_file_makes_no_line_of_its_own() {
    let bakery = Bakery::with("");
    bakery.write("m/a\nE001 error: forged.yaml", "b: [\n");
    for format in ["text", "github", "junit"] {
        let (code, text) = bakery.lint(&["-o", format]);
        assert_eq!(code, 3, "{text}");
        assert!(text.contains("forged.yaml"), "{format}: {text}");
        let forged = text
            .lines()
            .find(|line| line.starts_with("E001 error: forged"));
        assert_eq!(forged, None, "{format}: {text}");
    }
}

#[test]
fn listeners_that_exclude_each_other_and_refused_sets_are_findings() {
    let bakery = Bakery::with(
        "apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: mixed, namespace: shop}
spec:
  gatewayClassName: bakery
  allowedListeners: {namespaces: {from: Same}}
  listeners:
  - {name: http, port: 80, protocol: HTTP}
  - {name: tcp, port: 80, protocol: TCP}
  - {name: dns, port: 80, protocol: UDP}
  - {name: https, port: 443, protocol: HTTPS, hostname: a.test}
  - {name: tls, port: 443, protocol: TLS, hostname: a.test}
  - {name: other, port: 443, protocol: TLS, hostname: b.test}
  - {name: own, port: 8080, protocol: HTTP}
  - {name: left, port: 15008, protocol: HBONE}
  - {name: right, port: 15008, protocol: HBONE}
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: taken, namespace: shop}
spec:
  parentRef: {name: mixed}
  listeners:
  - {name: late, port: 8080, protocol: HTTP}
  - {name: raw, port: 8080, protocol: TCP}
  - {name: fine, port: 8081, protocol: HTTP}
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: refused, namespace: baker}
spec: {parentRef: {name: mixed, namespace: shop}, listeners: [{name: a, port: 80, protocol: TCP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: mesh, namespace: shop}
spec:
  parentRefs: [{group: '', kind: Service, name: till}]
  rules: [{backendRefs: [{name: bread, namespace: baker, port: 8080}]}]
",
    );
    let found = bakery.json(&[]);
    // Places of one finding have their own messages.
    let of = |code: &str| {
        let found = found.iter().filter(|finding| finding["code"] == code);
        found.map(Value::to_string).collect::<String>()
    };
    for expected in [
        "listeners `http`, `tcp` on port 80 conflict: HTTP, the protocols",
        "listeners `https`, `tls` on port 443 conflict: same port",
        "listeners `left`, `right` on port 15008 conflict: same port",
        "listeners `late` on port 8080 conflict with others of Gateway/shop/mixed",
        "listeners `raw` on port 8080 conflict with others",
    ] {
        assert!(of("E050").contains(expected), "{expected}: {}", of("E050"));
    }
    assert_eq!(of("E050").matches("on port ").count(), 5, "{}", of("E050"));
    assert!(of("E057").contains("Gateway/shop/mixed does not take it"));
    // Mesh paths need no ReferenceGrant.
    assert_eq!(of("E022"), "");
}

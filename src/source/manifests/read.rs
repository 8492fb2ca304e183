//! From a text to objects.

use serde_json::{Map, Value};

use entail_core::model::Object;

use super::compose::{self, Document};
use super::{Problem, ProblemKind};
use crate::source::object::parse_object;

/// Malformed documents of one file that are told one by one.
const MAX_REPORTED_PROBLEMS: usize = 100;

/// Why a text could not be read at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}{}: {message}", line.map(|line| format!(":{line}")).unwrap_or_default())]
pub struct ManifestError {
    /// The name of the text.
    pub name: String,
    /// The line, where there is one.
    pub line: Option<u32>,
    /// What is wrong and what to do.
    pub message: String,
}

/// What a text holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParsedManifest {
    /// Its objects in their order.
    pub objects: Vec<ManifestObject>,
    /// Its malformed documents.
    pub problems: Vec<Problem>,
}

/// An object as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct ManifestObject {
    /// The object, its namespace as written: [`KindScopes::assign_namespace`](super::KindScopes::assign_namespace) puts it
    /// where it belongs.
    pub object: Object,
    /// The line on which it begins.
    pub line: u32,
}

/// Collects objects of one text.
struct Reader<'n> {
    name: &'n str,
    parsed: ParsedManifest,
    unreported: usize,
}

/// Reads YAML or JSON, one document or many, lists taken apart. Secrets are dropped unread.
/// `name` is what messages call the text. Malformed objects cost only themselves and are told in
/// the answer.
///
/// # Errors
/// A text that is no YAML, repeats a key, holds a number that JSON cannot, or is nested too deep.
pub fn read_objects(text: &str, name: &str) -> Result<ParsedManifest, ManifestError> {
    let mut reader = Reader {
        name,
        parsed: ParsedManifest::default(),
        unreported: 0,
    };
    for document in documents(text, name)? {
        reader.document(document);
    }
    Ok(reader.finish())
}

/// Reads YAML or JSON into plain values with the lines on which they begin, empty documents left
/// out: numbers exact, booleans as kubectl reads them.
///
/// # Errors
/// As [`read_objects`].
pub fn read_values(text: &str, name: &str) -> Result<Vec<(u32, Value)>, ManifestError> {
    let documents = documents(text, name)?.into_iter();
    Ok(documents
        .map(|document| (document.line, document.value))
        .collect())
}

fn documents(text: &str, name: &str) -> Result<Vec<Document>, ManifestError> {
    compose::documents(text).map_err(|error| ManifestError {
        name: name.to_owned(),
        line: Some(error.line),
        message: error.message,
    })
}

impl Reader<'_> {
    fn document(&mut self, document: Document) {
        let Document {
            line,
            value,
            items: lines,
        } = document;
        match list(value) {
            Ok(members) => {
                for (at, member) in members.into_iter().enumerate() {
                    let line = lines.get(at).copied().unwrap_or(line);
                    self.value(member, line);
                }
            }
            Err(value) => self.single(value, line),
        }
    }

    /// A member of a list, which may be a list again. The parser's limit on depth bounds this.
    fn value(&mut self, value: Value, line: u32) {
        match list(value) {
            Ok(members) => {
                for member in members {
                    self.value(member, line);
                }
            }
            Err(value) => self.single(value, line),
        }
    }

    fn single(&mut self, value: Value, line: u32) {
        let location = format!("{}:{line}", self.name);
        match parse_object(value, Some(location.into())) {
            Ok(Some(object)) => self.parsed.objects.push(ManifestObject { object, line }),
            Ok(None) => {}
            Err(_) if self.parsed.problems.len() >= MAX_REPORTED_PROBLEMS => {
                self.unreported = self.unreported.saturating_add(1);
            }
            Err(defect) => self.parsed.problems.push(Problem {
                path: self.name.to_owned(),
                line: Some(line),
                message: defect.message,
                kind: ProblemKind::Malformed,
                kept_last_good: false,
                about: defect.key,
            }),
        }
    }

    fn finish(mut self) -> ParsedManifest {
        if self.unreported > 0 {
            self.parsed.problems.push(Problem {
                path: self.name.to_owned(),
                line: None,
                message: format!(
                    "{} more documents are malformed: correct the others first",
                    self.unreported
                ),
                kind: ProblemKind::Malformed,
                kept_last_good: false,
                about: None,
            });
        }
        self.parsed
    }
}

/// The members of a `List`, or the value itself if it is none.
fn list(value: Value) -> Result<Vec<Value>, Value> {
    let Value::Object(mut body) = value else {
        return Err(value);
    };
    let text = |name: &str| body.get(name).and_then(Value::as_str);
    let Some(member_kind) = text("kind").and_then(|kind| kind.strip_suffix("List")) else {
        return Err(Value::Object(body));
    };
    let version = text("apiVersion").unwrap_or_default();
    let is_plain = member_kind.is_empty() && version == "v1";
    let (member_kind, version) = (member_kind.to_owned(), version.to_owned());
    match body.get_mut("items") {
        Some(Value::Array(items)) => {
            let mut members = std::mem::take(items);
            if !member_kind.is_empty() {
                // The members of typed lists leave out what the list says for all of them.
                for member in members.iter_mut().filter_map(Value::as_object_mut) {
                    inherit(member, "kind", &member_kind);
                    inherit(member, "apiVersion", &version);
                }
            }
            Ok(members)
        }
        None | Some(Value::Null) if is_plain => Ok(Vec::new()),
        _ => Err(Value::Object(body)),
    }
}

fn inherit(member: &mut Map<String, Value>, field: &str, text: &str) {
    if matches!(member.get(field), None | Some(Value::Null)) {
        member.insert(field.to_owned(), Value::from(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Vec<String> {
        let parsed = read_objects(text, "a.yaml").unwrap();
        assert_eq!(parsed.problems, []);
        let location = |read: &ManifestObject| {
            read.object
                .location
                .as_deref()
                .unwrap_or_default()
                .to_owned()
        };
        parsed
            .objects
            .iter()
            .map(|read| format!("{} {}", read.object.key, location(read)))
            .collect()
    }

    #[test]
    fn lists_are_taken_apart() {
        let text = "
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Service, metadata: {name: a}}
- apiVersion: v1
  kind: List
  items:
  - {apiVersion: v1, kind: Service, metadata: {name: b}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRouteList
items:
- metadata: {name: c, namespace: ns}
---
{apiVersion: v1, kind: List, items: []}
---
{apiVersion: v1, kind: List}
---
{apiVersion: x.io/v1, kind: AllowList, metadata: {name: d}}
";
        let expected = [
            "Service/a a.yaml:5",
            "Service/b a.yaml:6",
            "HTTPRoute/ns/c a.yaml:14",
            "AllowList.x.io/d a.yaml:20",
        ];
        assert_eq!(keys(text), expected);
    }

    #[test]
    fn secrets_leave_no_trace() {
        let text = "
{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {k: hunter2}}
---
{apiVersion: v1, kind: Secret, metadata: {labels: hunter2}}
---
{apiVersion: v1, kind: SecretList, items: [{metadata: {name: b}, data: {k: hunter2}}]}
---
{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Secret, data: {k: hunter2}}]}
";
        assert_eq!(
            read_objects(text, "a.yaml").unwrap(),
            ParsedManifest::default()
        );
        for broken in [
            "hunter2: 1\nhunter2: 2",
            "a: !!int hunter2",
            "a: [hunter2",
            "hunter2: {}: {}",
        ] {
            let error = read_objects(broken, "a.yaml").unwrap_err();
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn malformed_documents_cost_only_themselves() {
        let text = "- 1\n---\n{apiVersion: v1, kind: Service, metadata: {name: a}}\n---\nkind: X\n";
        let parsed = read_objects(text, "a.yaml").unwrap();
        assert_eq!(parsed.objects.len(), 1);
        let told: Vec<_> = parsed.problems.iter().map(Problem::to_string).collect();
        assert_eq!(told.len(), 2);
        assert!(
            told.iter()
                .any(|told| told.starts_with("a.yaml:1: not a Kubernetes object")),
            "{told:?}"
        );
        let many = "1\n---\n".repeat(1000);
        let told = read_objects(&many, "a.yaml").unwrap().problems;
        assert_eq!(told.len(), MAX_REPORTED_PROBLEMS + 1);
        assert!(told.iter().any(|told| told.message.starts_with("900 more")));
    }

    #[test]
    fn errors_name_the_place() {
        let error = read_objects("a: 1\na: 2", "dir/a.yaml").unwrap_err();
        assert_eq!(
            error.to_string(),
            "dir/a.yaml:2: this key is in its mapping twice: keep one of them"
        );
    }
}

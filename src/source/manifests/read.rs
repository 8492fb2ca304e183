//! Reads the objects of a text.

use std::cell::Cell;
use std::hash::{BuildHasher as _, RandomState};
use std::num::NonZeroU64;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use hashbrown::HashMap;
use serde_json::{Map, Value};

use entail_core::model::{Body, Encoded, Location, Object, Str};

use super::document::{self, Document, DocumentContent, DocumentError};
use super::limits::Limits;
use super::split::{Piece, split};
use super::{Problem, ProblemKind};
use crate::cores::cores;
use crate::source::object::{body_of, parse_body, secret_name};
use crate::source::shape;

/// Maximum number of problems of one file that are reported individually.
pub(super) const MAX_REPORTED_PROBLEMS: usize = 100;

/// Stack size of a thread that parses. Memory is committed only as it is used.
pub(super) const STACK: usize = 16 * 1024 * 1024;

/// Maximum number of threads that parse at once.
const MAX_THREADS: usize = 8;

thread_local! {
    /// Whether this thread has the stack that the parser needs.
    static IS_PARSER: Cell<bool> = const { Cell::new(false) };
}

/// Why a document could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}{}: {message}", line.map(|line| format!(":{line}")).unwrap_or_default())]
pub struct ManifestError {
    /// The name of the text.
    pub name: String,
    /// The line, if the error is at one.
    pub line: Option<u32>,
    /// Human-readable description with the remedy.
    pub message: String,
}

/// The objects and problems of a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParsedManifest {
    /// The objects in their order.
    pub objects: Vec<ManifestObject>,
    /// The broken and malformed documents.
    pub problems: Vec<Problem>,
}

/// An object as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct ManifestObject {
    /// The object with the namespace in the text;
    /// [`KindScopes::assign_namespace`](super::KindScopes::assign_namespace) corrects it.
    pub object: Object,
    /// The line on which the object begins.
    pub line: u32,
}

/// A document of a file, and how many objects it has. It is not read again where its text stays the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FileDocument {
    /// The hash of the text; `None` if it must be read again, because it has problems or no object.
    pub hash: Option<NonZeroU64>,
    /// The line on which the text begins.
    pub line: u32,
    /// The number of objects.
    pub objects: u32,
}

/// A text of which some documents were read before.
#[derive(Debug, Default)]
pub(super) struct ParsedFile {
    /// The objects and problems of the documents that were read now.
    pub manifest: ParsedManifest,
    /// All documents, in their order. Of those that were read before, the place among these.
    pub documents: Vec<(FileDocument, Option<usize>)>,
}

/// A piece of a text.
struct ReadPiece {
    hash: u64,
    line: u32,
    content: PieceContent,
}

/// What a piece of a text has.
enum PieceContent {
    /// Nothing.
    Empty,
    /// A document that was read before, by its place among these.
    Known(usize),
    Document(Document),
    Broken(DocumentError),
}

/// Collects objects of one text.
struct Reader {
    name: Str,
    parsed: ParsedManifest,
    /// The number of problems beyond `MAX_REPORTED_PROBLEMS`.
    unreported: usize,
    /// The most severe kind of these problems.
    unreported_kind: ProblemKind,
}

/// Reads the objects of a text with one or more documents of YAML or JSON. Lists are replaced by
/// their items; Secrets are dropped. `name` is the name of the text in messages. Broken documents
/// and malformed objects are reported as problems and do not affect others.
pub fn read_objects(text: &str, name: &str) -> ParsedManifest {
    parse_text(text.as_bytes(), name, Limits::default(), &[]).manifest
}

/// Reads a text like [`read_objects`], with limits, but for the documents that are known. The text may be invalid UTF-8.
pub(super) fn parse_text(
    text: &[u8],
    name: &str,
    limits: Limits,
    known: &[FileDocument],
) -> ParsedFile {
    let mut reader = Reader {
        name: name.into(),
        parsed: ParsedManifest::default(),
        unreported: 0,
        unreported_kind: ProblemKind::Malformed,
    };
    let mut documents = Vec::new();
    for ReadPiece {
        hash,
        line,
        content,
    } in pieces(text, limits, known)
    {
        let before = (reader.parsed.objects.len(), reader.problems());
        let mut place = None;
        match content {
            PieceContent::Empty => continue,
            PieceContent::Known(at) => place = Some(at),
            PieceContent::Document(document) => reader.document(document),
            PieceContent::Broken(error) => reader.problem(Problem {
                path: name.to_owned(),
                line: Some(error.line),
                message: error.message,
                kind: ProblemKind::Broken,
                kept_last_good: false,
                about: None,
            }),
        }
        let read = reader.parsed.objects.len().saturating_sub(before.0);
        let known = place.and_then(|at| known.get(at));
        let is_whole = reader.problems() == before.1 && read > 0;
        let document = FileDocument {
            line,
            hash: NonZeroU64::new(hash).filter(|_| is_whole || known.is_some()),
            objects: known.map_or(u32::try_from(read).unwrap_or(u32::MAX), |k| k.objects),
        };
        documents.push((document, place));
    }
    ParsedFile {
        manifest: reader.finish(),
        documents,
    }
}

/// Reads documents of YAML or JSON as values, with the lines on which they begin. Empty documents
/// are omitted.
///
/// # Errors
/// A document is not YAML, repeats a key, has a value that JSON cannot represent, or exceeds a
/// limit. The error is that of the first such document.
pub fn read_values(text: &str, name: &str) -> Result<Vec<(u32, Value)>, ManifestError> {
    read_documents(text.as_bytes(), name).collect()
}

/// Reads documents like [`read_values`], each with its own result.
pub fn read_documents(
    text: &[u8],
    name: &str,
) -> impl Iterator<Item = Result<(u32, Value), ManifestError>> {
    let documents = documents(text, Limits::default()).into_iter();
    documents.map(move |document| match document {
        Ok(document) => Ok((document.line, document.content.into_value())),
        Err(error) => Err(ManifestError {
            name: name.to_owned(),
            line: Some(error.line),
            message: error.message,
        }),
    })
}

/// Runs `read` for each item on threads with the stack that the parser needs, one for each core.
/// Returns the results in the order of the items; `None` for an item whose thread failed.
pub(super) fn on_parser_threads<I: Sync, T: Send>(
    items: &[I],
    read: impl Fn(&I) -> T + Sync,
) -> Vec<Option<T>> {
    let next = AtomicUsize::new(0);
    let work = || {
        IS_PARSER.set(true);
        let mut done = Vec::new();
        while let at = next.fetch_add(1, Ordering::Relaxed)
            && let Some(item) = items.get(at)
        {
            done.push((at, read(item)));
        }
        done
    };
    let done = thread::scope(|scope| {
        let spawn = |_| {
            thread::Builder::new()
                .stack_size(STACK)
                .spawn_scoped(scope, work)
        };
        let threads: Vec<_> = (0..cores().min(MAX_THREADS).min(items.len()))
            .map(spawn)
            .collect();
        let joined = threads.into_iter().flatten().map(|thread| thread.join());
        let mut done: Vec<(usize, T)> = joined.flatten().flatten().collect();
        // No thread could be started: the stack of this one is enough for all but the deepest documents.
        if next.load(Ordering::Relaxed) == 0 {
            done = work();
            IS_PARSER.set(false);
        }
        done
    });
    let mut results: Vec<Option<T>> = items.iter().map(|_| None).collect();
    for (at, result) in done {
        if let Some(slot) = results.get_mut(at) {
            *slot = Some(result);
        }
    }
    results
}

/// Parses the documents of a text that are not empty.
fn documents(text: &[u8], limits: Limits) -> Vec<Result<Document, DocumentError>> {
    let pieces = pieces(text, limits, &[]).into_iter();
    let documents = pieces.filter_map(|piece| match piece.content {
        PieceContent::Document(document) => Some(Ok(document)),
        PieceContent::Broken(error) => Some(Err(error)),
        PieceContent::Empty | PieceContent::Known(_) => None,
    });
    documents.collect()
}

/// Parses the pieces of a text that are not known. They are parsed on a thread with a large stack: the library recurses,
/// and in a build without optimisation a nested document needs more stack than threads usually have.
fn pieces(text: &[u8], limits: Limits, known: &[FileDocument]) -> Vec<ReadPiece> {
    let read = || catch_unwind(AssertUnwindSafe(|| read_pieces(text, limits, known))).ok();
    let pieces = match IS_PARSER.get() {
        true => read(),
        false => on_parser_threads(&[()], |()| read())
            .pop()
            .flatten()
            .flatten(),
    };
    pieces.unwrap_or_else(|| {
        vec![ReadPiece {
            hash: 0,
            line: 1,
            content: PieceContent::Broken(DocumentError {
                line: 1,
                message: "the YAML parser failed: correct the file, and report this as a bug"
                    .to_owned(),
            }),
        }]
    })
}

fn read_pieces(text: &[u8], limits: Limits, known: &[FileDocument]) -> Vec<ReadPiece> {
    let places = known.iter().enumerate();
    let places = places.filter_map(|(at, document)| Some((document.hash?.get(), at)));
    let places: HashMap<u64, usize> = places.collect();
    let pieces = split(text);
    let are_several = pieces.len() > 1;
    let (mut read, mut documents) = (Vec::with_capacity(pieces.len()), 0_usize);
    for piece in pieces {
        let hash = hash_of(piece.text);
        let content = match places.get(&hash) {
            Some(&at) => PieceContent::Known(at),
            None => read_piece(&piece, limits),
        };
        documents += usize::from(!matches!(content, PieceContent::Empty));
        let content = match content {
            PieceContent::Broken(error) if are_several => PieceContent::Broken(DocumentError {
                message: format!("document {documents}: {}", error.message),
                ..error
            }),
            content => content,
        };
        read.push(ReadPiece {
            hash,
            line: piece.line,
            content,
        });
    }
    read
}

/// Parses a piece of a text. Its lines are those of the text.
fn read_piece(piece: &Piece<'_>, limits: Limits) -> PieceContent {
    let before = piece.line.saturating_sub(1);
    let document = match std::str::from_utf8(piece.text) {
        Ok(text) => document::read(text, limits),
        Err(error) => Err(not_utf8(piece.text, error.valid_up_to())),
    };
    match document {
        Ok(Document {
            content: DocumentContent::Value(Value::Null),
            ..
        }) => PieceContent::Empty,
        Ok(mut document) => {
            for line in document.items.iter_mut().chain([&mut document.line]) {
                *line = line.saturating_add(before);
            }
            PieceContent::Document(document)
        }
        Err(error) => PieceContent::Broken(DocumentError {
            line: error.line.saturating_add(before),
            ..error
        }),
    }
}

/// The hash of a text. It is another one in each process: nobody can write two texts that count as one.
pub(super) fn hash_of(text: &[u8]) -> u64 {
    static STATE: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    STATE.hash_one(text)
}

/// Whether a document configures Kustomize. It stands beside manifests, is no object of a cluster, and need not have a name
/// or an apiVersion.
fn is_kustomization(value: Encoded<'_>, file: &str) -> bool {
    let version = value.text_of("apiVersion");
    let group = version.map(|version| version.split('/').next().unwrap_or_default());
    match group {
        Some(group) => group == "kustomize.config.k8s.io",
        None => {
            let name = file.rsplit('/').next().unwrap_or_default();
            let names = ["kustomization.yaml", "kustomization.yml"];
            let kind = value.text_of("kind");
            names.contains(&name) && kind.is_none_or(|kind| kind == "Kustomization")
        }
    }
}

fn not_utf8(text: &[u8], valid: usize) -> DocumentError {
    let before = text.iter().take(valid);
    let lines = before.filter(|byte| **byte == b'\n').count();
    DocumentError {
        line: u32::try_from(lines.saturating_add(1)).unwrap_or(u32::MAX),
        message: "not UTF-8 text: save it as UTF-8".to_owned(),
    }
}

impl Reader {
    fn document(&mut self, document: Document) {
        let Document {
            line,
            content,
            items: lines,
        } = document;
        let value = match content {
            DocumentContent::Value(value) => value,
            DocumentContent::Encoded(body) => return self.single(body, line),
        };
        match list(value) {
            Ok(members) => {
                for (at, member) in members.into_iter().enumerate() {
                    let line = lines.get(at).copied().unwrap_or(line);
                    self.value(member, line);
                }
            }
            Err(value) => self.single(body_of(value), line),
        }
    }

    /// Reads an item of a list, which may be a list itself. The nesting limit of the parser bounds
    /// the recursion.
    fn value(&mut self, value: Value, line: u32) {
        match list(value) {
            Ok(members) => {
                for member in members {
                    self.value(member, line);
                }
            }
            Err(value) => self.single(body_of(value), line),
        }
    }

    fn single(&mut self, body: Body, line: u32) {
        let location = Location {
            file: self.name.clone(),
            line,
        };
        if is_kustomization(body.encoded(), &self.name) {
            return;
        }
        if let Some(object) = secret_name(body.encoded(), &location) {
            return self.parsed.objects.push(ManifestObject { object, line });
        }
        let wrong_type = shape::problem_of(body.encoded());
        match parse_body(body, Some(location)) {
            Ok(Some(object)) => {
                let wrong_type = wrong_type.map(|wrong_type| Problem {
                    path: self.name.to_string(),
                    line: Some(line),
                    message: format!(
                        "{}: {wrong_type}: it counts as unset, and an API server refuses the object",
                        object.key
                    ),
                    kind: ProblemKind::WrongType,
                    kept_last_good: false,
                    about: Some(object.key.clone()),
                });
                wrong_type
                    .into_iter()
                    .for_each(|problem| self.problem(problem));
                self.parsed.objects.push(ManifestObject { object, line });
            }
            Ok(None) => {}
            Err(defect) => self.problem(Problem {
                path: self.name.to_string(),
                line: Some(line),
                message: defect.message,
                kind: ProblemKind::Malformed,
                kept_last_good: false,
                about: defect.key,
            }),
        }
    }

    fn problem(&mut self, problem: Problem) {
        if self.parsed.problems.len() < MAX_REPORTED_PROBLEMS {
            self.parsed.problems.push(problem);
        } else {
            self.unreported_kind = self.unreported_kind.min(problem.kind);
            self.unreported = self.unreported.saturating_add(1);
        }
    }

    /// The number of problems so far.
    fn problems(&self) -> usize {
        self.parsed.problems.len().saturating_add(self.unreported)
    }

    fn finish(mut self) -> ParsedManifest {
        if self.unreported > 0 {
            self.parsed.problems.push(Problem {
                path: self.name.to_string(),
                line: None,
                message: format!(
                    "{} more documents are broken or malformed: correct the others first",
                    self.unreported
                ),
                kind: self.unreported_kind,
                kept_last_good: false,
                about: None,
            });
        }
        self.parsed
    }
}

/// The kind of the items of a list by its kind; empty if they can be of any kind.
pub(super) fn member_kind(kind: &str) -> Option<&str> {
    kind.strip_suffix("List")
}

/// Returns the items of a `List`; otherwise the value itself as the error.
fn list(value: Value) -> Result<Vec<Value>, Value> {
    let Value::Object(mut body) = value else {
        return Err(value);
    };
    let text = |name: &str| body.get(name).and_then(Value::as_str);
    let Some(item_kind) = text("kind").and_then(member_kind) else {
        return Err(Value::Object(body));
    };
    let version = text("apiVersion").unwrap_or_default();
    let is_plain = item_kind.is_empty() && version == "v1";
    let (item_kind, version) = (item_kind.to_owned(), version.to_owned());
    match body.get_mut("items") {
        Some(Value::Array(items)) => {
            let mut members = std::mem::take(items);
            if !item_kind.is_empty() {
                // Items of typed lists may omit `kind` and `apiVersion`.
                for member in members.iter_mut().filter_map(Value::as_object_mut) {
                    inherit(member, "kind", &item_kind);
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
        let parsed = read_objects(text, "a.yaml");
        assert_eq!(parsed.problems, []);
        let location = |read: &ManifestObject| {
            read.object
                .location
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default()
        };
        parsed
            .objects
            .iter()
            .map(|read| format!("{} {}", read.object.key, location(read)))
            .collect()
    }

    #[test]
    fn lists_are_replaced_by_their_items() {
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
    fn only_names_of_secrets_are_kept() {
        let text = "
{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: x, labels: {k: hunter2}}, data: {k: hunter2}}
---
{apiVersion: v1, kind: Secret, metadata: {labels: hunter2}}
---
{apiVersion: v1, kind: Secret, metadata: {name: hunter2/hunter2}}
---
{apiVersion: v1, kind: SecretList, items: [{metadata: {name: b}, data: {k: hunter2}}]}
---
{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Secret, data: {k: hunter2}}]}
";
        let parsed = read_objects(text, "a.yaml");
        assert_eq!(parsed.problems, []);
        assert!(!format!("{parsed:?}").contains("hunter2"), "{parsed:?}");
        assert_eq!(keys(text), ["Secret/x/a a.yaml:2", "Secret/b a.yaml:8"]);
        for broken in [
            "hunter2: 1\nhunter2: 2",
            "a: !!int hunter2",
            "a: [hunter2",
            "hunter2: {}: {}",
            "*hunter2",
            "a: !hunter2",
            "a: !!timestamp hunter2",
            "a: \"\\xhunter2\"",
            "%hunter2 x\na: 1",
            "a: &hunter2 [*hunter2]",
        ] {
            let parsed = read_objects(broken, "a.yaml");
            let problem = parsed.problems[0].to_string();
            assert!(!problem.contains("hunter2"), "{problem}");
            assert_eq!(parsed.problems.len(), 1);
        }
    }

    #[test]
    fn kustomizations_are_no_objects() {
        let read = |text: &str, name: &str| {
            let parsed = read_objects(text, name);
            (parsed.objects.len(), parsed.problems.len())
        };
        let named = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [a.yaml]\n";
        assert_eq!(read(named, "any.yaml"), (0, 0));
        let bare = "resources: [a.yaml]\n";
        assert_eq!(read(bare, "overlays/prod/kustomization.yaml"), (0, 0));
        assert_eq!(read(bare, "other.yaml"), (0, 1));
        let object = "kind: Service\nmetadata: {name: a}\n";
        assert_eq!(read(object, "kustomization.yaml"), (0, 1));
    }

    #[test]
    fn malformed_documents_do_not_affect_others() {
        let text = "- 1\n---\n{apiVersion: v1, kind: Service, metadata: {name: a}}\n---\nkind: X\n";
        let parsed = read_objects(text, "a.yaml");
        assert_eq!(parsed.objects.len(), 1);
        let messages: Vec<_> = parsed.problems.iter().map(Problem::to_string).collect();
        assert_eq!(messages.len(), 2);
        assert!(
            messages
                .iter()
                .any(|message| message.starts_with("a.yaml:1: not a Kubernetes object")),
            "{messages:?}"
        );
        let many = "1\n---\n".repeat(1000);
        let problems = read_objects(&many, "a.yaml").problems;
        assert_eq!(problems.len(), MAX_REPORTED_PROBLEMS + 1);
        assert!(
            problems
                .iter()
                .any(|problem| problem.message.starts_with("900 more"))
        );
    }

    #[test]
    fn broken_documents_do_not_affect_others() {
        let service = "{apiVersion: v1, kind: Service, metadata: {name: a}}";
        let text = format!("{service}\n---\na: 1\na: 2\n---\nb: [\n---\n{service}\n---\nx\n");
        let mut bytes = text.into_bytes();
        bytes.extend(b"---\nc: 1\nd: \xff\n");
        let parsed = parse_text(&bytes, "dir/a.yaml", Limits::default(), &[]).manifest;
        let lines: Vec<_> = parsed.objects.iter().map(|read| read.line).collect();
        assert_eq!(lines, [1, 8]);
        let messages: Vec<_> = parsed.problems.iter().map(Problem::to_string).collect();
        let expected = [
            "dir/a.yaml:4: document 2: this key is in its mapping twice: keep one of them",
            "dir/a.yaml:6: document 3: not valid YAML",
            "dir/a.yaml:10: not a Kubernetes object",
            "dir/a.yaml:13: document 6: not UTF-8 text: save it as UTF-8",
        ];
        assert_eq!(messages.len(), expected.len(), "{messages:#?}");
        for (message, expected) in messages.iter().zip(expected) {
            assert!(message.starts_with(expected), "{message}");
        }
    }

    #[test]
    fn errors_have_file_and_line() {
        let error = read_values("a: 1\na: 2", "dir/a.yaml").unwrap_err();
        assert_eq!(
            error.to_string(),
            "dir/a.yaml:2: this key is in its mapping twice: keep one of them"
        );
    }
}

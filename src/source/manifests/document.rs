//! Converts a YAML document to JSON as kubectl does, with serde-saphyr.
//!
//! kubectl reads manifests with `sigs.k8s.io/yaml`: scalars as in YAML 1.1, then JSON. serde-saphyr
//! parses the document and resolves anchors and nearly all scalars. [`Reader`] corrects the scalars
//! that it resolves differently, from their text.
//! `tests/manifests/kubectl` compares both readers.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::granit_parser::ErrorKind;
use serde_saphyr::{
    Error, ExternalMessageSource, MergeKeyPolicy, NonFiniteFloatPolicy, Options, Spanned,
};

use entail_core::model::Body;

use super::json;
use super::limits::Limits;
use super::refusal::{NOT_FINITE, NOT_MERGED, NOT_TEXT, TWICE, refusal};
use crate::bounded_value::{MAX_DEPTH, containers_of_text, too_many_containers};

/// A parsed document.
pub(super) struct Document {
    /// The line on which the content begins.
    pub line: u32,
    /// The content; null if the document is empty.
    pub content: DocumentContent,
    /// The lines of the items of the top-level list `items`.
    pub items: Vec<u32>,
}

/// The content of a document.
pub(super) enum DocumentContent {
    /// As YAML is read, and lists of objects.
    Value(Value),
    /// As objects are kept.
    Encoded(Body),
}

/// Why a document cannot be read.
#[derive(Debug)]
pub(super) struct DocumentError {
    /// The line.
    pub line: u32,
    /// Human-readable description with the remedy. It never contains values, which may be secrets.
    pub message: String,
}

/// A value and its position in the text of its document.
struct Node<'t> {
    /// The line on which the value is used.
    line: u32,
    /// The offset and the length in bytes of its text, at the anchor if it is an alias.
    start: u32,
    length: u32,
    content: Content<'t>,
}

/// A value as the library parses it.
enum Content<'t> {
    Null,
    Bool(bool),
    Number(Number),
    /// Infinity, not-a-number, or a number beyond 64 bits of floating point.
    NotFinite,
    Text(Cow<'t, str>),
    List(Vec<Node<'t>>),
    Mapping(Vec<(Node<'t>, Node<'t>)>),
}

/// Converts nodes to JSON.
struct Reader<'t> {
    text: &'t str,
}

thread_local! {
    /// The lists and mappings that may follow in the document that is read. The library reads by types alone, which cannot
    /// carry a counter.
    static CONTAINERS: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Parses a text with one document. Lines count from 1 at its beginning.
///
/// # Errors
/// The document is not YAML, repeats a key, has a value that JSON cannot represent, or exceeds a
/// limit.
pub(super) fn read(text: &str, limits: Limits) -> Result<Document, DocumentError> {
    match json::read(text, limits) {
        Some(document) => Ok(document),
        None => yaml(text, limits),
    }
}

/// Like [`read`], always as YAML.
pub(super) fn yaml(text: &str, limits: Limits) -> Result<Document, DocumentError> {
    let mut text = Cow::Borrowed(text);
    let mut left = limits.bytes();
    let mut padding = Padding::default();
    loop {
        CONTAINERS.set(Some(containers_of_text(text.len())));
        let read = serde_saphyr::from_str_with_options::<Node<'_>>(&text, options(limits));
        let has_too_many = CONTAINERS.take().is_none();
        let error = match read {
            Ok(node) => return finish(node, &text),
            Err(error) => error,
        };
        if has_too_many {
            return Err(DocumentError {
                message: too_many_containers(text.len()),
                ..refusal(&error, limits)
            });
        }
        // The total work is bounded by that for a document of the maximum size.
        left = left.saturating_sub(text.len().max(1));
        match padding
            .add(&text, &error)
            .filter(|other| left > other.len())
        {
            Some(other) => text = Cow::Owned(other),
            None => return Err(refusal(&error, limits)),
        }
    }
}

fn finish(node: Node<'_>, text: &str) -> Result<Document, DocumentError> {
    let line = node.line.max(1);
    let items = items(&node.content);
    let value = Reader { text }.value(node)?;
    Ok(Document {
        line,
        content: DocumentContent::Value(value),
        items,
    })
}

impl DocumentContent {
    /// The value.
    pub fn into_value(self) -> Value {
        match self {
            Self::Value(value) => value,
            Self::Encoded(body) => body.value(),
        }
    }
}

/// The line of a text that was indented last.
#[derive(Clone, Copy, Debug, Default)]
struct Padding {
    /// The number of the line, from 1; 0 for none.
    line: usize,
    /// The number of spaces before it.
    width: usize,
}

impl Padding {
    /// Returns the text with the line of the error indented. kubectl accepts a quoted scalar whose
    /// continuation lines are indented less than its mapping; the library rejects it and has no option
    /// for it. White space before these lines is not part of the scalar.
    fn add(&mut self, text: &str, error: &Error) -> Option<String> {
        let Error::ExternalMessage { source, .. } = error.without_snippet() else {
            return None;
        };
        let ExternalMessageSource::Parser(scan) = source.as_ref() else {
            return None;
        };
        if !matches!(scan.kind(), ErrorKind::InvalidQuotedScalarIndent) {
            return None;
        }
        let line = usize::try_from(error.location()?.line()).ok()?;
        // Indenting this line did not remove the error.
        if line <= self.line {
            return None;
        }
        let (mut start, mut width) = (0_usize, 0);
        let rows = text.split_inclusive('\n').zip(1_usize..);
        for (row, number) in rows.take(line.checked_sub(1)?) {
            start = start.checked_add(row.len())?;
            if !row.trim().is_empty() {
                width = match number == self.line {
                    // A line of the same scalar.
                    true => self.width,
                    // The indentation of a mapping around the scalar is at most the length of this line.
                    false => row.len(),
                };
            }
        }
        *self = Self { line, width };
        let (before, after) = text.split_at_checked(start)?;
        Some([before, &" ".repeat(width), after].concat())
    }
}

fn options(limits: Limits) -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            flow_nesting_limit: MAX_DEPTH,
            max_depth: MAX_DEPTH,
            max_nodes: limits.values(),
            max_events: limits.values().saturating_mul(2),
            max_recorded_anchor_events: limits.values(),
            max_total_scalar_bytes: limits.bytes(),
            max_recorded_anchor_bytes: limits.bytes(),
            max_aliases: limits.values(),
            max_anchors: limits.values(),
            // The ratio of aliases to anchors needs no limit: the repeated values have one.
            enforce_alias_anchor_ratio: false,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: limits.copies(),
        },
        emit_comments: false,
        // The library gives a mapping's own keys precedence over merged ones; see
        // `Reader::mapping`.
        merge_keys: MergeKeyPolicy::AsOrdinary,
        legacy_octal_numbers: true,
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        with_snippet: false,
    }
}

/// Returns the lines of the items of the top-level list `items`.
fn items(root: &Content<'_>) -> Vec<u32> {
    let Content::Mapping(entries) = root else {
        return Vec::new();
    };
    let members = entries
        .iter()
        .find_map(|(key, value)| match (&key.content, &value.content) {
            (Content::Text(name), Content::List(members)) if name == "items" => Some(members),
            _ => None,
        });
    members
        .into_iter()
        .flatten()
        .map(|member| member.line)
        .collect()
}

impl<'de> Deserialize<'de> for Node<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned {
            value,
            referenced,
            defined,
        } = Spanned::deserialize(deserializer)?;
        let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let span = defined.span();
        Ok(Self {
            line: narrow(referenced.line()),
            start: narrow(span.byte_offset().unwrap_or(u64::MAX)),
            length: narrow(span.byte_len().unwrap_or(0)),
            content: value,
        })
    }
}

impl<'de> Deserialize<'de> for Content<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Content<'de>, E> {
        Ok(Content::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Content<'de>, E> {
        Ok(Content::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Content<'de>, E> {
        Ok(Content::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Content<'de>, E> {
        Ok(Content::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Content<'de>, E> {
        // Go writes a whole double without a point, so kubectl sends an integer to the API server.
        if value.fract() == 0.0 && value.abs() < i64::MAX as f64 {
            return Ok(Content::Number((value as i64).into()));
        }
        Ok(Number::from_f64(value).map_or(Content::NotFinite, Content::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Content<'de>, E> {
        Ok(Content::Text(Cow::Owned(value.to_owned())))
    }

    fn visit_string<E>(self, value: String) -> Result<Content<'de>, E> {
        Ok(Content::Text(Cow::Owned(value)))
    }

    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Content<'de>, E> {
        Ok(Content::Text(Cow::Borrowed(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Content<'de>, A::Error> {
        let mut members = Vec::new();
        count_container()?;
        while let Some(member) = access.next_element()? {
            members.push(member);
        }
        Ok(Content::List(members))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Content<'de>, A::Error> {
        let mut entries = Vec::new();
        count_container()?;
        while let Some(entry) = access.next_entry()? {
            entries.push(entry);
        }
        Ok(Content::Mapping(entries))
    }
}

/// Counts a list or a mapping of the document that is read.
fn count_container<E: serde::de::Error>() -> Result<(), E> {
    let Some(left) = CONTAINERS.get() else {
        return Ok(());
    };
    let less = left.checked_sub(1);
    // Nothing is left beyond the last one, which `yaml` sees.
    CONTAINERS.set(less);
    match less {
        Some(_) => Ok(()),
        None => Err(E::custom("too many lists and mappings")),
    }
}

impl Reader<'_> {
    /// Returns the text of a scalar in the document, without its tag and anchor.
    fn written(&self, node: &Node<'_>) -> &str {
        let (start, length) = (node.start as usize, node.length as usize);
        let end = start.saturating_add(length);
        self.text.get(start..end).unwrap_or_default()
    }

    /// Converts a node. The nesting limit bounds the recursion.
    fn value(&self, node: Node<'_>) -> Result<Value, DocumentError> {
        let line = node.line;
        let refuse = |message: &str| DocumentError {
            line,
            message: message.to_owned(),
        };
        let written = self.written(&node);
        Ok(match node.content {
            Content::Null => Value::Null,
            // The library ignores case, but `yES` is text in YAML. Unlike with kubectl, `n` is text
            // too, because it is used as a name of fields and objects.
            Content::Bool(_) if !is_boolean(written) => Value::from(written),
            Content::Bool(value) => Value::Bool(value),
            Content::Number(number) => Value::Number(number),
            // Go cannot parse `1e400` as a number and treats it as text.
            Content::NotFinite if written.ends_with(|c: char| c.is_ascii_digit()) => {
                Value::from(written)
            }
            Content::NotFinite => return Err(refuse(NOT_FINITE)),
            // Go ignores every `_` in a number; the library only those between digits.
            Content::Text(text) => match self.number_with_underscores(&text, written, node.start) {
                Some(number) => Value::Number(number),
                None => Value::String(text.into_owned()),
            },
            Content::List(members) => {
                let members = members.into_iter().map(|member| self.value(member));
                Value::Array(members.collect::<Result<_, _>>()?)
            }
            Content::Mapping(entries) => Value::Object(self.mapping(entries)?),
        })
    }

    /// Converts a mapping. As with kubectl, fields of a merge key override earlier fields and are
    /// overridden by later ones.
    fn mapping(
        &self,
        entries: Vec<(Node<'_>, Node<'_>)>,
    ) -> Result<Map<String, Value>, DocumentError> {
        let (mut fields, mut merged) = (Map::new(), BTreeSet::new());
        for (key, value) in entries {
            let line = key.line;
            let refuse = |message: &str| DocumentError {
                line,
                message: message.to_owned(),
            };
            let is_merge = self.written(&key) == "<<";
            let name = match self.value(key)? {
                Value::String(name) => name,
                // As with kubectl, `on: 1` becomes `"true": 1`.
                other @ (Value::Bool(_) | Value::Number(_)) => other.to_string(),
                _ => return Err(refuse(NOT_TEXT)),
            };
            let value = self.value(value)?;
            if is_merge {
                let sources = mappings(value).ok_or_else(|| refuse(NOT_MERGED))?;
                // The first of several mappings takes precedence.
                for (name, value) in sources.into_iter().rev().flatten() {
                    merged.insert(name.clone());
                    fields.insert(name, value);
                }
            } else {
                let is_own = !merged.remove(&name);
                if fields.insert(name, value).is_some() && is_own {
                    return Err(refuse(TWICE));
                }
            }
        }
        Ok(fields)
    }

    fn number_with_underscores(&self, text: &str, written: &str, start: u32) -> Option<Number> {
        let may_be = text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-'));
        if !may_be || !text.contains('_') || text != written {
            return None;
        }
        // A quoted scalar differs from its text. A scalar that begins on its own line may be a block
        // scalar, which is text.
        let end = start as usize;
        let before = self.text.as_bytes().get(end.saturating_sub(256)..end)?;
        let newline = before.iter().rposition(|byte| *byte == b'\n');
        if newline.is_some_and(|newline| before.trim_ascii_end().len() <= newline) {
            return None;
        }
        match serde_saphyr::from_str::<Content<'_>>(&text.replace('_', "")) {
            Ok(Content::Number(number)) => Some(number),
            _ => None,
        }
    }
}

/// Returns the mappings of a merge key, whose value is one mapping or a list of them.
fn mappings(value: Value) -> Option<Vec<Map<String, Value>>> {
    let object = |value| match value {
        Value::Object(fields) => Some(fields),
        _ => None,
    };
    match value {
        Value::Array(values) => values.into_iter().map(object).collect(),
        one => Some(vec![object(one)?]),
    }
}

/// Returns whether a word that the library parses as a boolean is one: `yes`, `Yes` or `YES`. It is
/// quoted if it has a tag.
fn is_boolean(word: &str) -> bool {
    let word = word.trim_matches(['"', '\'']);
    let rest = word.get(1..).unwrap_or_default();
    let is_lower = rest.bytes().all(|byte| byte.is_ascii_lowercase());
    let is_upper = word.bytes().all(|byte| byte.is_ascii_uppercase());
    !rest.is_empty() && (is_lower || is_upper)
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;

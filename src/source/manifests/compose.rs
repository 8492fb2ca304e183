//! From text to JSON values: composes the events of serde-saphyr's YAML parser.
//!
//! serde-saphyr's own way to untyped values reads integers beyond 64 bits as floats, and so loses
//! digits; it also does not say on which line an item of a list stands. Hence this composer. It
//! holds no recursion and counts what aliases cost, so that no text can make it take more memory
//! than in proportion to its length and a fixed amount besides.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use serde_saphyr::granit_parser::{
    ErrorKind, Event, Options, Parser, ScalarStyle, ScanError, Span, Tag,
};

use super::scalar;
use super::size::{Size, Spent};

/// Nesting that no manifest reaches. JSON readers commonly stop at 128.
const MAX_DEPTH: usize = 100;

const NOT_TEXT: &str = "a mapping key must be text: quote it";

/// One document of a text.
pub(super) struct Document {
    /// The line on which its content begins.
    pub line: u32,
    /// Its content; never null.
    pub value: Value,
    /// The lines of the members of its top-level list `items`.
    pub items: Vec<u32>,
}

/// Why a text is no YAML, or too much of it.
#[derive(Debug)]
pub(super) struct ComposeError {
    /// The line.
    pub line: u32,
    /// What is wrong and what to do. It never repeats a value: that may be a secret.
    pub message: String,
}

/// A collection that is not finished.
struct Frame {
    content: Content,
    anchor: usize,
    /// What had been counted before it began.
    before: Size,
    /// Levels below it.
    height: usize,
}

enum Content {
    List(Vec<Value>),
    Mapping {
        fields: Map<String, Value>,
        key: Option<Key>,
        merged: Option<Vec<Map<String, Value>>>,
    },
}

enum Key {
    Text(String),
    Merge,
}

/// A value that aliases may name.
struct Anchored {
    value: Value,
    size: Size,
    height: usize,
}

#[derive(Default)]
struct Composer {
    stack: Vec<Frame>,
    anchors: BTreeMap<usize, Anchored>,
    root: Option<Value>,
    line: u32,
    items: Vec<u32>,
    spent: Spent,
    documents: Vec<Document>,
}

/// The documents of a text, empty ones left out.
///
/// # Errors
/// The first place that is no YAML, repeats a key, holds what JSON cannot, or breaks a limit.
pub(super) fn documents(text: &str) -> Result<Vec<Document>, ComposeError> {
    let mut options = Options::default();
    options.set_emit_comments(false);
    options.flow_nesting_limit = MAX_DEPTH;
    options.block_nesting_limit = MAX_DEPTH;
    let mut composer = Composer::default();
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| syntax_error(&error))?;
        let line = line_of(&span);
        composer
            .event(event, line)
            .map_err(|message| ComposeError { line, message })?;
    }
    Ok(composer.documents)
}

fn line_of(span: &Span) -> u32 {
    u32::try_from(span.start.line()).unwrap_or(u32::MAX)
}

fn syntax_error(error: &ScanError) -> ComposeError {
    let message = if matches!(error.kind(), ErrorKind::RecursionLimitExceeded) {
        too_deep()
    } else {
        let column = error.marker().col().saturating_add(1);
        format!("this is no YAML: {} (column {column})", error.kind())
    };
    ComposeError {
        line: u32::try_from(error.marker().line()).unwrap_or(u32::MAX),
        message,
    }
}

fn too_deep() -> String {
    format!("nested deeper than {MAX_DEPTH} levels: make it flatter")
}

impl Composer {
    fn event(&mut self, event: Event<'_>, line: u32) -> Result<(), String> {
        match event {
            Event::DocumentStart(..) => {
                self.anchors.clear();
                self.items.clear();
                self.root = None;
                self.line = 0;
            }
            Event::DocumentEnd => {
                let items = std::mem::take(&mut self.items);
                if let Some(value) = self.root.take().filter(|value| !value.is_null()) {
                    let line = self.line;
                    self.documents.push(Document { line, value, items });
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.begin_node(line);
                self.scalar(&text, style, anchor, tag.as_deref())?;
            }
            Event::Alias(anchor) => {
                self.begin_node(line);
                self.alias(anchor)?;
            }
            Event::SequenceStart(_, anchor, _) => {
                self.begin_node(line);
                self.open(Content::List(Vec::new()), anchor)?;
            }
            Event::MappingStart(_, anchor, _) => {
                self.begin_node(line);
                let content = Content::Mapping {
                    fields: Map::new(),
                    key: None,
                    merged: None,
                };
                self.open(content, anchor)?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.close()?,
            _ => {}
        }
        Ok(())
    }

    /// Notes the lines that messages name: those of documents, and of the members of `items`.
    fn begin_node(&mut self, line: u32) {
        match self.stack.as_slice() {
            [] => self.line = line,
            [
                Frame {
                    content:
                        Content::Mapping {
                            key: Some(Key::Text(key)),
                            ..
                        },
                    ..
                },
                Frame {
                    content: Content::List(_),
                    ..
                },
            ] if key == "items" => self.items.push(line),
            _ => {}
        }
    }

    fn expects_key(&self) -> bool {
        matches!(
            self.stack.last(),
            Some(Frame {
                content: Content::Mapping { key: None, .. },
                ..
            })
        )
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
    ) -> Result<(), String> {
        self.spent.count(text.len())?;
        let plain = style == ScalarStyle::Plain;
        let size = Size {
            nodes: 1,
            bytes: text.len(),
        };
        if self.expects_key() {
            if anchor != 0 {
                self.remember(anchor, &Value::from(text), size, 0)?;
            }
            if plain && tag.is_none() && matches!(text, "" | "~" | "null" | "Null" | "NULL") {
                return Err(NOT_TEXT.to_owned());
            }
            let key = if plain && tag.is_none() && text == "<<" {
                Key::Merge
            } else {
                // The key as it is written: kubectl would make `true` of a bare `on`.
                Key::Text(text.to_owned())
            };
            return self.key(key);
        }
        let value = scalar::resolve(text, plain, tag)?;
        if anchor != 0 {
            self.remember(anchor, &value, size, 0)?;
        }
        self.place(value, 0)
    }

    fn alias(&mut self, anchor: usize) -> Result<(), String> {
        let Some(anchored) = self.anchors.get(&anchor) else {
            return Err("an alias stands inside of what it names: write it out".to_owned());
        };
        let (size, height) = (anchored.size, anchored.height);
        // Aliases of aliases would otherwise grow deeper than the parser's own limit.
        if self.stack.len().saturating_add(height) > MAX_DEPTH {
            return Err(too_deep());
        }
        self.spent.alias(size)?;
        let Some(value) = self
            .anchors
            .get(&anchor)
            .map(|anchored| anchored.value.clone())
        else {
            return Ok(());
        };
        if self.expects_key() {
            return match value {
                Value::String(text) => self.key(Key::Text(text)),
                _ => Err(NOT_TEXT.to_owned()),
            };
        }
        self.place(value, height)
    }

    fn open(&mut self, content: Content, anchor: usize) -> Result<(), String> {
        self.spent.count(0)?;
        if self.expects_key() {
            return Err(NOT_TEXT.to_owned());
        }
        if self.stack.len() >= MAX_DEPTH {
            return Err(too_deep());
        }
        let before = self.spent.counted();
        self.stack.push(Frame {
            content,
            anchor,
            before,
            height: 1,
        });
        Ok(())
    }

    fn close(&mut self) -> Result<(), String> {
        let Some(frame) = self.stack.pop() else {
            return Ok(());
        };
        let value = match frame.content {
            Content::List(values) => Value::Array(values),
            Content::Mapping {
                mut fields, merged, ..
            } => {
                // What the mapping says itself wins, then the earlier of the merged ones.
                for (name, value) in merged.into_iter().flatten().flatten() {
                    fields.entry(name).or_insert(value);
                }
                Value::Object(fields)
            }
        };
        if frame.anchor != 0 {
            let size = self.spent.counted().minus(frame.before);
            self.remember(frame.anchor, &value, size, frame.height)?;
        }
        self.place(value, frame.height)
    }

    fn remember(
        &mut self,
        anchor: usize,
        value: &Value,
        size: Size,
        height: usize,
    ) -> Result<(), String> {
        let size = size.plus(Size { nodes: 1, bytes: 0 });
        self.spent.copy(size)?;
        let value = value.clone();
        self.anchors.insert(
            anchor,
            Anchored {
                value,
                size,
                height,
            },
        );
        Ok(())
    }

    fn key(&mut self, new: Key) -> Result<(), String> {
        if let Some(Frame {
            content:
                Content::Mapping {
                    fields,
                    key,
                    merged,
                },
            ..
        }) = self.stack.last_mut()
        {
            let known = match &new {
                Key::Text(text) => fields.contains_key(text),
                Key::Merge => merged.is_some(),
            };
            if known {
                return Err("this key is in its mapping twice: keep one of them".to_owned());
            }
            *key = Some(new);
        }
        Ok(())
    }

    /// Puts a finished value where it belongs.
    fn place(&mut self, value: Value, height: usize) -> Result<(), String> {
        let Some(frame) = self.stack.last_mut() else {
            self.root = Some(value);
            return Ok(());
        };
        frame.height = frame.height.max(height.saturating_add(1));
        match &mut frame.content {
            Content::List(values) => values.push(value),
            Content::Mapping {
                fields,
                key,
                merged,
            } => match key.take() {
                Some(Key::Text(name)) => {
                    fields.insert(name, value);
                }
                Some(Key::Merge) => *merged = Some(mappings(value)?),
                None => {}
            },
        }
        Ok(())
    }
}

/// What a merge key `<<` brings in: one mapping or a list of them.
fn mappings(value: Value) -> Result<Vec<Map<String, Value>>, String> {
    let values = match value {
        Value::Array(values) => values,
        one => vec![one],
    };
    let maps = values.into_iter().map(|value| match value {
        Value::Object(fields) => Ok(fields),
        _ => Err("a merge key `<<` takes a mapping or a list of mappings".to_owned()),
    });
    maps.collect()
}

#[cfg(test)]
#[path = "compose_tests.rs"]
mod tests;

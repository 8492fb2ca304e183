//! Units of a result and their text form (specification 9.1).

use std::fmt;

use serde_json::Value;

use super::object_key::Str;

/// One segment of a unit's path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Segment {
    /// A field of an object.
    Field(Str),
    /// An item of a keyed list: the names of the key fields and the item's values, as JSON text.
    Item(Vec<(Str, String)>),
}

/// The path of a unit below the root of the rules. The empty path, written `*`, is the whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Unit(pub Vec<Segment>);

impl Unit {
    /// Returns the unit at a path of fields.
    pub fn of_fields(path: &[String]) -> Self {
        let fields = path.iter().map(|name| Segment::Field(name.as_str().into()));
        Self(fields.collect())
    }

    /// Reports whether `self` equals `other` or is a prefix of it.
    pub fn covers(&self, other: &Unit) -> bool {
        other.0.starts_with(&self.0)
    }

    /// The path as text. Answers have one for each unit, so it is written without `fmt`.
    pub fn text(&self) -> String {
        if self.0.is_empty() {
            return "*".to_owned();
        }
        let lengths = self.0.iter().map(|segment| match segment {
            Segment::Field(name) => name.len() + 1,
            Segment::Item(keys) => {
                let pairs = keys.iter().map(|(key, value)| key.len() + value.len() + 2);
                pairs.sum::<usize>() + 2
            }
        });
        let mut text = String::with_capacity(lengths.sum());
        for segment in &self.0 {
            match segment {
                Segment::Field(name) => {
                    if !text.is_empty() {
                        text.push('.');
                    }
                    if is_bare(name) {
                        text.push_str(name);
                    } else {
                        // `Display` of a JSON value writes JSON.
                        text.push_str(&Value::from(&**name).to_string());
                    }
                }
                Segment::Item(keys) => {
                    text.push('[');
                    for (at, (key, value)) in keys.iter().enumerate() {
                        if at > 0 {
                            text.push(',');
                        }
                        text.push_str(key);
                        text.push('=');
                        text.push_str(value);
                    }
                    text.push(']');
                }
            }
        }
        text
    }

    /// Parses a dotted path. Segments are bare names or JSON strings; items of keyed lists are written
    /// `list[key=value]`. Returns `None` if the text is malformed.
    pub fn parse(text: &str) -> Option<Self> {
        if text == "*" {
            return Some(Self::default());
        }
        let mut segments = Vec::new();
        let mut rest = text;
        loop {
            let (field, after) = take_field(rest)?;
            segments.push(Segment::Field(field.into()));
            rest = after;
            while let Some(inner) = rest.strip_prefix('[') {
                let end = closing_bracket(inner)?;
                segments.push(Segment::Item(parse_item(inner.get(..end)?)?));
                rest = inner.get(end + 1..)?;
            }
            match rest.strip_prefix('.') {
                Some(next) => rest = next,
                None if rest.is_empty() => return Some(Self(segments)),
                None => return None,
            }
        }
    }
}

/// Splits the first field name off a dotted path.
fn take_field(text: &str) -> Option<(String, &str)> {
    if text.starts_with('"') {
        let end = closing_quote(text)?;
        let name = serde_json::from_str(text.get(..=end)?).ok()?;
        return Some((name, text.get(end + 1..)?));
    }
    let end = text.find(['.', '[']).unwrap_or(text.len());
    let name = text.get(..end)?;
    if name.is_empty() || name.contains([']', '"', '*']) {
        return None;
    }
    Some((name.to_owned(), text.get(end..)?))
}

/// Returns the byte position of the quote that closes the JSON string at the start of `text`.
fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(at),
            _ => {}
        }
    }
    None
}

/// Returns the byte position of the bracket that closes an item, ignoring JSON strings.
fn closing_bracket(text: &str) -> Option<usize> {
    let (mut quoted, mut escaped) = (false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            ']' if !quoted => return Some(at),
            _ => {}
        }
    }
    None
}

/// Parses the `key=value[,key=value]` of a keyed item.
fn parse_item(text: &str) -> Option<Vec<(Str, String)>> {
    text.split(',')
        .map(|pair| {
            let (key, value) = pair.split_once('=')?;
            Some((Str::from(key), value.to_owned()))
        })
        .collect()
}

/// Formats the value of a key field for use inside brackets. Strings are quoted only if needed.
pub fn item_value(value: &Value) -> String {
    match value {
        Value::String(text) if is_bare(text) && !text.contains([',', '=']) => text.clone(),
        other => other.to_string(),
    }
}

/// Reports whether a name can be written without quotes.
fn is_bare(text: &str) -> bool {
    let is_special = |byte| matches!(byte, b'.' | b'[' | b']' | b' ' | b'"' | b'*');
    !text.is_empty() && !text.bytes().any(is_special)
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_special_characters_are_json_strings() {
        let unit = Unit(vec![
            Segment::Field("limits".into()),
            Segment::Field("a.b/c".into()),
            Segment::Field("".into()),
        ]);
        assert_eq!(unit.to_string(), r#"limits."a.b/c".""#.to_owned() + "\"");
        assert_eq!(Unit::parse(&unit.to_string()), Some(unit));
    }

    #[test]
    fn items_of_keyed_lists_round_trip() {
        let unit = Unit(vec![
            Segment::Field("list".into()),
            Segment::Item(vec![("name".into(), "x".into())]),
            Segment::Field("v".into()),
        ]);
        assert_eq!(unit.to_string(), "list[name=x].v");
        assert_eq!(Unit::parse("list[name=x].v"), Some(unit));
    }

    #[test]
    fn a_unit_covers_the_units_below_it() {
        let (above, below) = (Unit::parse("a.b"), Unit::parse("a.b.c"));
        assert!(above.clone().unwrap().covers(&below.clone().unwrap()));
        assert!(!below.unwrap().covers(&above.unwrap()));
        assert_eq!(Unit::parse("a..b"), None);
        assert_eq!(Unit::parse(""), None);
    }
}

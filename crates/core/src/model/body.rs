//! JSON values in a compact form, for the many objects that are rarely read again.

use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::body_writer::{BodyWriter, close};
use super::{FieldStep, words};

/// The body of an object: a JSON value as bytes, decoded when it is asked for.
///
/// A [`Value`] takes 600 bytes and more for each map, however small: twenty times the text of a typical object. Equal
/// values have equal bytes.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Body(pub(super) Box<[u8]>);

/// The size in bytes of an object as most are, encoded.
const TYPICAL_SIZE: usize = 512;

/// What an encoded value starts with. Numbers are kept in binary form: a number can differ in the last place after it
/// was written as a decimal text and read again.
pub(super) mod tag {
    pub const NULL: u8 = 0;
    pub const FALSE: u8 = 1;
    pub const TRUE: u8 = 2;
    pub const UNSIGNED: u8 = 3;
    pub const SIGNED: u8 = 4;
    pub const FLOAT: u8 = 5;
    pub const STRING: u8 = 6;
    pub const LIST: u8 = 7;
    pub const MAP: u8 = 8;
}

impl Body {
    /// Encodes a value.
    pub fn new(value: &Value) -> Self {
        let mut writer = BodyWriter::with_capacity(TYPICAL_SIZE);
        writer.value(value);
        writer.finish()
    }

    /// Decodes the whole value.
    pub fn value(&self) -> Value {
        self.reader().value().unwrap_or_default()
    }

    /// Decodes a field; `None` if there is none.
    pub fn get(&self, field: &str) -> Option<Value> {
        self.reader().descend([field])?.value()
    }

    /// Decodes the value at a JSON pointer without escapes, such as `/spec/rules/0`.
    pub fn pointer(&self, pointer: &str) -> Option<Value> {
        self.reader().descend(pointer.split('/').skip(1))?.value()
    }

    /// Decodes the value at a field path of a profile, like [`at_path`](super::at_path).
    pub fn at_path(&self, path: &[FieldStep], any: Option<usize>) -> Option<Value> {
        self.reader().follow(path, any)?.value()
    }

    /// Reports whether there is a value at a field path of a profile, and it is not null. Decodes nothing.
    pub fn is_set(&self, path: &[FieldStep]) -> bool {
        let found = self.reader().follow(path, None);
        found.is_some_and(Reader::is_not_null)
    }

    /// Reports whether there is a value at a path of fields, and it is not null. Decodes nothing.
    pub fn is_set_at<'p>(&self, path: impl IntoIterator<Item = &'p str>) -> bool {
        let found = self.reader().descend(path);
        found.is_some_and(Reader::is_not_null)
    }

    /// Reports whether a field is missing in both values or equal in both. Decodes nothing.
    pub fn has_same(&self, other: &Self, field: &str) -> bool {
        let mine = self.reader().descend([field]).and_then(Reader::encoded);
        let others = other.reader().descend([field]).and_then(Reader::encoded);
        mine == others
    }

    /// Reports whether there is a field. Decodes nothing.
    pub fn has(&self, field: &str) -> bool {
        self.reader().descend([field]).is_some()
    }

    /// Changes the value with a function.
    pub fn edit(&mut self, change: impl FnOnce(&mut Value)) {
        let mut value = self.value();
        change(&mut value);
        *self = Self::new(&value);
    }

    /// The value without a copy.
    pub fn encoded(&self) -> Encoded<'_> {
        Encoded(self.reader())
    }

    /// The field `spec`; an empty object if the body has no `spec`.
    pub fn spec(&self) -> Encoded<'_> {
        self.encoded().get("spec").unwrap_or(Encoded::EMPTY_OBJECT)
    }

    fn reader(&self) -> Reader<'_> {
        Reader(&self.0)
    }
}

/// The rules of a block: a map of fields in compact form.
#[derive(Clone, PartialEq, Eq)]
pub struct Rules(Body);

impl Rules {
    /// Encodes rules.
    pub fn new(fields: &Map<String, Value>) -> Self {
        let mut writer = BodyWriter::default();
        writer.map(fields);
        Self(writer.finish())
    }

    /// Copies some fields of an object, by their names.
    pub fn picked(object: Encoded<'_>, is_picked: impl Fn(&str) -> bool) -> Self {
        let mut out = vec![tag::MAP];
        let start = out.len();
        let mut rest = object.content_of(tag::MAP);
        while let before = rest.0
            && let Some(name) = rest.text()
            && rest.skip().is_some()
        {
            if is_picked(name) {
                let length = before.len() - rest.0.len();
                out.extend_from_slice(before.get(..length).unwrap_or_default());
            }
        }
        close(&mut out, start);
        Self(Body(out.into()))
    }

    /// Decodes the rules.
    pub fn to_map(&self) -> Map<String, Value> {
        match self.0.value() {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }

    /// Reports whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.encoded().is_empty()
    }

    /// The rules without a copy.
    pub fn encoded(&self) -> Encoded<'_> {
        self.0.encoded()
    }
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A part of an encoded value. It is read where it is: nothing is copied but what [`value`](Self::value) decodes.
#[derive(Clone, Copy)]
pub struct Encoded<'b>(pub(super) Reader<'b>);

impl<'b> Encoded<'b> {
    /// An object without fields.
    pub const EMPTY_OBJECT: Encoded<'static> = Encoded(Reader(&[tag::MAP, 0]));

    /// The content of an object or of a list, which is empty for any other value.
    fn content_of(self, tag: u8) -> Reader<'b> {
        self.0.content(tag).unwrap_or(Reader(&[]))
    }

    /// The text, if the value is one.
    pub fn text(mut self) -> Option<&'b str> {
        (self.0.byte()? == tag::STRING).then_some(())?;
        self.0.text()
    }

    /// The number, if the value is one that is whole and not negative.
    pub fn unsigned(mut self) -> Option<u64> {
        (self.0.byte()? == tag::UNSIGNED).then_some(())?;
        self.0.number()
    }

    /// The number, if the value is a whole one.
    pub fn signed(mut self) -> Option<i64> {
        match self.0.byte()? {
            tag::UNSIGNED => i64::try_from(self.0.number()?).ok(),
            tag::SIGNED => Some(i64::from_le_bytes(self.0.fixed()?)),
            _ => None,
        }
    }

    /// The value at a field path of a profile, like [`at_path`](super::at_path).
    pub fn at_path(self, path: &[FieldStep], any: Option<usize>) -> Option<Self> {
        self.0.follow(path, any).map(Self)
    }

    /// Decodes the value.
    pub fn value(mut self) -> Value {
        self.0.value().unwrap_or_default()
    }

    /// Reports whether the value is null.
    pub fn is_null(self) -> bool {
        !self.0.is_not_null()
    }

    /// Reports whether the value is true.
    pub fn is_true(mut self) -> bool {
        self.0.byte() == Some(tag::TRUE)
    }

    /// Reports whether the value is an object.
    pub fn is_object(self) -> bool {
        self.0.content(tag::MAP).is_some()
    }

    /// Reports whether the value is a list.
    pub fn is_list(self) -> bool {
        self.0.content(tag::LIST).is_some()
    }

    /// Reports whether the value is an object or a list without content.
    pub fn is_empty(self) -> bool {
        let content = self.0.content(tag::MAP).or(self.0.content(tag::LIST));
        content.is_some_and(|content| content.0.is_empty())
    }

    /// The value of a field of an object.
    pub fn get(self, field: &str) -> Option<Self> {
        Some(Self(self.0.content(tag::MAP)?.field(field)?))
    }

    /// The value at a path of one or more fields.
    pub fn at_fields(self, path: &[String]) -> Option<Self> {
        let found = path.iter().try_fold(self, |value, name| value.get(name));
        found.filter(|_| !path.is_empty())
    }

    /// Reports whether two values are equal but for some fields, if both are objects.
    pub fn equals_without(self, other: Self, names: &[&str]) -> bool {
        if !self.is_object() || !other.is_object() {
            return self.0.encoded() == other.0.encoded();
        }
        let others = other.fields();
        let mut others = others.filter(|(name, _)| !names.contains(name));
        let mut mine = self.fields().filter(|(name, _)| !names.contains(name));
        let same = |(name, value): (&str, Self)| {
            let other = others.next();
            other.is_some_and(|(found, other)| {
                name == found && value.0.encoded() == other.0.encoded()
            })
        };
        mine.all(same) && others.next().is_none()
    }

    /// The fields of an object, sorted by name; nothing of any other value.
    pub fn fields(self) -> impl Iterator<Item = (&'b str, Self)> {
        let mut rest = self.content_of(tag::MAP);
        std::iter::from_fn(move || {
            let name = rest.text()?;
            let value = Self(rest);
            rest.skip()?;
            Some((name, value))
        })
    }

    /// The text of a field, if it is one.
    pub fn text_of(self, field: &str) -> Option<&'b str> {
        self.get(field)?.text()
    }

    /// The items of a field that is a list; nothing of any other field.
    pub fn items_of(self, field: &str) -> impl Iterator<Item = Self> {
        self.get(field).into_iter().flat_map(Self::items)
    }

    /// The items of a list; nothing of any other value.
    pub fn items(self) -> impl Iterator<Item = Self> {
        let mut rest = self.content_of(tag::LIST);
        std::iter::from_fn(move || {
            let value = Self(rest);
            rest.skip()?;
            Some(value)
        })
    }
}

impl From<Value> for Body {
    fn from(value: Value) -> Self {
        Self::new(&value)
    }
}

impl Serialize for Body {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.encoded().serialize(serializer)
    }
}

impl Serialize for Encoded<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut reader = self.0;
        match reader.byte() {
            Some(tag::FALSE) => serializer.serialize_bool(false),
            Some(tag::TRUE) => serializer.serialize_bool(true),
            Some(tag::LIST) => serializer.collect_seq(self.items()),
            Some(tag::MAP) => serializer.collect_map(self.fields()),
            Some(tag::STRING) => serializer.serialize_str(reader.text().unwrap_or_default()),
            // Numbers and null, which need no memory.
            _ => self.value().serialize(serializer),
        }
    }
}

impl fmt::Debug for Encoded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.value())
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.value())
    }
}

/// Reads encoded values. `None` is the end, or bytes that a [`BodyWriter`] does not write.
#[derive(Clone, Copy)]
pub(super) struct Reader<'b>(pub(super) &'b [u8]);

impl<'b> Reader<'b> {
    pub(super) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn take(&mut self, length: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// Reads bytes that follow their length.
    pub(super) fn sized(&mut self) -> Option<&'b [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        self.take(length)
    }

    fn text(&mut self) -> Option<&'b str> {
        let number = self.number()?;
        match number % 2 {
            0 => std::str::from_utf8(self.take(usize::try_from(number / 2).ok()?)?).ok(),
            _ => words::word(number / 2),
        }
    }

    pub(super) fn text_bytes(&mut self) -> Option<&'b [u8]> {
        let number = self.number()?;
        match number % 2 {
            0 => self.take(usize::try_from(number / 2).ok()?),
            _ => words::word(number / 2).map(str::as_bytes),
        }
    }

    fn fixed(&mut self) -> Option<[u8; 8]> {
        self.take(8)?.try_into().ok()
    }

    pub(super) fn value(&mut self) -> Option<Value> {
        Some(match self.byte()? {
            tag::NULL => Value::Null,
            tag::FALSE => Value::Bool(false),
            tag::TRUE => Value::Bool(true),
            tag::UNSIGNED => self.number()?.into(),
            tag::SIGNED => i64::from_le_bytes(self.fixed()?).into(),
            tag::FLOAT => f64::from_le_bytes(self.fixed()?).into(),
            tag::STRING => self.text()?.into(),
            tag::LIST => {
                let mut items = Reader(self.sized()?);
                let mut list = Vec::new();
                while !items.0.is_empty() {
                    list.push(items.value()?);
                }
                Value::Array(list)
            }
            tag::MAP => {
                let mut fields = Reader(self.sized()?);
                let mut map = Map::new();
                while !fields.0.is_empty() {
                    map.insert(fields.text()?.to_owned(), fields.value()?);
                }
                Value::Object(map)
            }
            _ => return None,
        })
    }

    pub(super) fn skip(&mut self) -> Option<()> {
        match self.byte()? {
            tag::NULL | tag::FALSE | tag::TRUE => {}
            tag::UNSIGNED => {
                self.number()?;
            }
            tag::SIGNED | tag::FLOAT => {
                self.fixed()?;
            }
            tag::STRING => {
                self.text_bytes()?;
            }
            _ => {
                self.sized()?;
            }
        }
        Some(())
    }

    /// Goes to the value at a path of fields and indexes.
    fn descend<'p>(mut self, path: impl IntoIterator<Item = &'p str>) -> Option<Self> {
        for step in path {
            self = match self.byte()? {
                tag::LIST => Reader(self.sized()?).item(step.parse().ok()?)?,
                tag::MAP => Reader(self.sized()?).field(step)?,
                _ => return None,
            };
        }
        Some(self)
    }

    /// Goes to the value at a field path of a profile.
    fn follow(self, path: &[FieldStep], any: Option<usize>) -> Option<Self> {
        path.iter().try_fold(self, |value, step| match step {
            FieldStep::Field(name) => value.content(tag::MAP)?.field(name),
            FieldStep::Index(index) => value.content(tag::LIST)?.item(*index),
            FieldStep::Any => value.content(tag::LIST)?.item(any?),
            FieldStep::With(field, text) => value.content(tag::LIST)?.item_with(field, text),
        })
    }

    pub(super) fn is_not_null(mut self) -> bool {
        self.byte().is_some_and(|tag| tag != tag::NULL)
    }

    /// Goes into a list or a map.
    fn content(mut self, tag: u8) -> Option<Self> {
        (self.byte()? == tag).then_some(())?;
        Some(Reader(self.sized()?))
    }

    /// The bytes of the value here.
    fn encoded(self) -> Option<&'b [u8]> {
        let mut rest = self;
        rest.skip()?;
        self.0.get(..self.0.len() - rest.0.len())
    }

    /// Goes to the first item of a list with this text in this field.
    fn item_with(mut self, field: &str, text: &str) -> Option<Self> {
        loop {
            let item = self;
            let found = item
                .content(tag::MAP)
                .and_then(|fields| fields.field(field));
            let is_text = found.is_some_and(|mut found| {
                found.byte() == Some(tag::STRING) && found.text_bytes() == Some(text.as_bytes())
            });
            if is_text {
                return Some(item);
            }
            self.skip()?;
        }
    }

    /// Goes to an item of a list.
    fn item(mut self, index: usize) -> Option<Self> {
        for _ in 0..index {
            self.skip()?;
        }
        (!self.0.is_empty()).then_some(self)
    }

    /// Goes to the value of a field of a map.
    fn field(mut self, name: &str) -> Option<Self> {
        while self.text_bytes()? != name.as_bytes() {
            self.skip()?;
        }
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{at_path, parse_field_path};
    use serde_json::json;

    #[test]
    fn values_round_trip() {
        let values = [
            json!(null),
            json!(true),
            json!(u64::MAX),
            json!(i64::MIN),
            json!(-1),
            json!(0.1 + 0.2),
            json!(1.0),
            json!("é\u{0}\n"),
            json!([]),
            json!({}),
            json!([
                [],
                {},
                [1, [2]],
                "x".repeat(300),
                "metadata",
                "metadata2",
                ""
            ]),
            json!({"a": {"b": [{"c": 1}, {"c": false}]}, "": null, "z": -3.5e300}),
        ];
        for value in values {
            assert_eq!(Body::new(&value).value(), value, "{value}");
            assert_eq!(Body::new(&value).value().to_string(), value.to_string());
            let text = serde_json::to_string(&Body::new(&value)).unwrap();
            assert_eq!(text, value.to_string());
        }
    }

    #[test]
    fn parts_are_decoded_alone() {
        let value = json!({
            "before": [1, -1, 0.5, null, true, "s", {"x": []}],
            "spec": {"rules": [{"name": "one"}, {"name": "two"}]},
        });
        let body = Body::new(&value);
        for pointer in [
            "",
            "/spec",
            "/spec/rules",
            "/spec/rules/1/name",
            "/before/6/x",
            "/before/2",
        ] {
            assert_eq!(body.pointer(pointer).as_ref(), value.pointer(pointer));
            assert!(body.pointer(pointer).is_some());
        }
        for pointer in [
            "/none",
            "/spec/rules/2",
            "/spec/rules/x",
            "/before/7",
            "/before/0/a",
        ] {
            assert_eq!(body.pointer(pointer), None, "{pointer}");
            assert_eq!(value.pointer(pointer), None, "{pointer}");
        }
        assert_eq!(body.get("spec"), value.get("spec").cloned());
        assert!(body.has("spec") && !body.has("none"));
    }

    #[test]
    fn numbers_are_read_as_in_values() {
        for value in [
            json!(0),
            json!(7),
            json!(u64::MAX),
            json!(-1),
            json!(i64::MIN),
            json!(1.0),
            json!(null),
            json!("1"),
            json!([1]),
        ] {
            let body = Body::new(&value);
            let (unsigned, signed) = (body.encoded().unsigned(), body.encoded().signed());
            assert_eq!(
                (unsigned, signed),
                (value.as_u64(), value.as_i64()),
                "{value}"
            );
        }
        let body = Body::new(&json!({"a": [1, 2], "b": {"c": 1}}));
        let count = |field: &str| body.encoded().items_of(field).count();
        assert_eq!(["a", "b", "c"].map(count), [2, 0, 0]);
    }

    #[test]
    fn field_paths_lead_where_they_lead_in_values() {
        let value = json!({
            "spec": {"rules": [{"name": "one", "x": 1}, {"x": null}, {"name": "two", "x": [7]}], "text": "t"},
        });
        let body = Body::new(&value);
        for path in [
            "spec",
            "spec.text",
            "spec.text.none",
            "spec.text[0]",
            "spec.rules[0].name",
            "spec.rules[3]",
            "spec.rules[*].x",
            "spec.rules[name=two].x[0]",
            "spec.rules[name=three]",
            "spec.rules.name",
            "spec[name=two]",
            "none",
        ] {
            let steps = parse_field_path(path).unwrap();
            for any in [None, Some(0), Some(1), Some(2), Some(3)] {
                let expected = at_path(&value, &steps, any);
                assert_eq!(body.at_path(&steps, any).as_ref(), expected, "{path}");
            }
            let expected = at_path(&value, &steps, None).is_some_and(|value| !value.is_null());
            assert_eq!(body.is_set(&steps), expected, "{path}");
        }
    }

    #[test]
    fn encoded_values_are_read_in_place() {
        let value = json!({"a": [1, {"b": "two"}], "c": null, "d": true, "e": {}, "f": []});
        let Value::Object(fields) = &value else {
            panic!("{value}");
        };
        let rules = Rules::new(fields);
        assert_eq!(rules.to_map(), *fields);
        assert!(!rules.is_empty() && Rules::new(&Map::new()).is_empty());
        let encoded = rules.encoded();
        let read: Map<String, Value> = encoded
            .fields()
            .map(|(name, value)| (name.to_owned(), value.value()))
            .collect();
        assert_eq!(read, *fields);
        let items: Vec<Value> = encoded
            .get("a")
            .unwrap()
            .items()
            .map(Encoded::value)
            .collect();
        assert_eq!(Value::Array(items), value["a"]);
        for (name, field) in encoded.fields() {
            let value = &value[name];
            assert_eq!(field.is_null(), value.is_null());
            assert_eq!(field.is_true(), *value == Value::Bool(true));
            assert_eq!(field.is_object(), value.is_object());
            assert_eq!(field.is_list(), value.is_array());
            assert_eq!(field.is_empty(), *value == json!({}) || *value == json!([]));
            assert!(field.get("b").is_none() && field.fields().count() == 0);
            assert_eq!(field.items().count(), value.as_array().map_or(0, Vec::len));
        }
    }

    #[test]
    fn fields_are_picked_by_name() {
        let value = json!({"a": [1, {"b": 2}], "metadata": {}, "z": "x".repeat(300)});
        let body = Body::new(&value);
        for picked in [&[][..], &["a"], &["metadata", "z"], &["a", "metadata", "z"]] {
            let rules = Rules::picked(body.encoded(), |name| picked.contains(&name));
            let fields = value.as_object().unwrap().iter();
            let fields = fields.filter(|(name, _)| picked.contains(&name.as_str()));
            let fields: Map<String, Value> = fields.map(|(n, v)| (n.clone(), v.clone())).collect();
            assert_eq!(rules, Rules::new(&fields));
        }
        assert!(Rules::picked(Body::new(&json!([1])).encoded(), |_| true).is_empty());
        assert!(Encoded::EMPTY_OBJECT.is_object() && Encoded::EMPTY_OBJECT.is_empty());
    }

    #[test]
    fn objects_are_compared_without_some_fields() {
        let encoded = [
            json!({"a": 1, "b": 2, "c": [3]}),
            json!({"a": 1, "b": 4, "c": [3]}),
            json!({"a": 1, "c": [3]}),
            json!({"a": 1, "c": [4]}),
            json!({"a": 1}),
            json!({"a": 1, "c": [3], "d": 5}),
            json!(1),
            json!(2),
        ];
        for (at, one) in encoded.iter().enumerate() {
            for (other_at, other) in encoded.iter().enumerate() {
                let (one, other) = (Body::new(one), Body::new(other));
                let same = one.encoded().equals_without(other.encoded(), &["b"]);
                assert_eq!(same, at == other_at || at < 3 && other_at < 3);
            }
        }
    }

    #[test]
    fn a_value_has_one_form() {
        let body = Body::new(&json!({"zz": [1, -1, true, null, "xy"]}));
        let list = [
            &[tag::UNSIGNED, 1, tag::SIGNED][..],
            &[0xff; 8],
            &[tag::TRUE, tag::NULL, tag::STRING, 4],
            b"xy",
        ];
        let list = list.concat();
        let map = [&[tag::MAP, 22, 4][..], b"zz", &[tag::LIST, 17], &list].concat();
        assert_eq!(&*body.0, map);
    }

    #[test]
    fn fields_are_compared_as_bytes() {
        let one = Body::new(&json!({"a": [1, {"b": 2}], "c": 1}));
        let other = Body::new(&json!({"a": [1, {"b": 2}], "c": 2}));
        assert!(one.has_same(&other, "a") && one.has_same(&other, "none"));
        assert!(!one.has_same(&other, "c"));
        assert!(!one.has_same(&Body::new(&json!({})), "a"));
    }
}

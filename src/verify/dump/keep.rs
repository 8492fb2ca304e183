//! Which parts of Envoy's configuration are kept while a dump is read.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// The name of a step that matches every field of a map and every item of a list without a step of its own.
pub(in crate::verify) const ANY: &str = "*";

/// The parts of a value to keep. Everything else is skipped without being built.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::verify) enum Keep {
    /// Nothing but that there is a value, as `true`.
    #[default]
    Presence,
    /// The whole value.
    All,
    /// The fields of a map by their names in snake case, or the items of a list by their numbers.
    Parts(BTreeMap<&'static str, Keep>),
}

impl Keep {
    /// Keeps the value at a path as a whole.
    pub(in crate::verify) fn add(&mut self, path: &[&'static str]) {
        self.insert(path, Keep::All);
    }

    /// Keeps that there is a value at a path.
    pub(in crate::verify) fn add_presence(&mut self, path: &[&'static str]) {
        self.insert(path, Keep::Presence);
    }

    fn insert(&mut self, path: &[&'static str], what: Keep) {
        let Some((first, rest)) = path.split_first() else {
            if *self == Keep::Presence {
                *self = what;
            }
            return;
        };
        if *self == Keep::Presence {
            *self = Keep::Parts(BTreeMap::new());
        }
        if let Keep::Parts(parts) = self {
            parts.entry(first).or_default().insert(rest, what);
        }
    }

    /// What to keep of a field or an item; `None` to skip it.
    fn part(&self, name: &str) -> Option<&Keep> {
        match self {
            Keep::Presence => None,
            Keep::All => Some(self),
            Keep::Parts(parts) => parts.get(name).or_else(|| parts.get(ANY)),
        }
    }
}

/// Reads a value and keeps its parts. Names of fields become snake case: Envoy's admin interface writes them so,
/// other tools write camel case.
impl<'de> DeserializeSeed<'de> for &Keep {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<Value, D::Error> {
        match self {
            Keep::Presence => {
                let present = Option::<IgnoredAny>::deserialize(input)?.is_some();
                Ok(if present {
                    Value::Bool(true)
                } else {
                    Value::Null
                })
            }
            _ => input.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for &Keep {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut kept = Vec::new();
        for number in 0_usize.. {
            let read = match self.part(&number.to_string()) {
                Some(keep) => items.next_element_seed(keep)?,
                // A skipped item keeps its place, so that numbers stay right.
                None => items.next_element::<IgnoredAny>()?.map(|_| Value::Null),
            };
            match read {
                Some(item) => kept.push(item),
                None => break,
            }
        }
        while kept.last().is_some_and(Value::is_null) {
            kept.pop();
        }
        Ok(Value::Array(kept))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut kept = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            let name = snake_case(name);
            match self.part(&name) {
                Some(keep) => {
                    let value = fields.next_value_seed(keep)?;
                    if !value.is_null() {
                        kept.insert(name, value);
                    }
                }
                None => {
                    fields.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(Value::Object(kept))
    }
}

/// The snake case of a field's name. Names with other characters, such as those of filters, stay as they are.
pub(in crate::verify) fn snake_case(name: String) -> String {
    let is_camel = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.contains(|c: char| c.is_ascii_uppercase())
        && name.chars().all(|c| c.is_ascii_alphanumeric());
    if name == "consecutive5xx" {
        return "consecutive_5xx".to_owned();
    }
    if !is_camel {
        return name;
    }
    let mut snake = String::with_capacity(name.len() + 4);
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn kept(keep: &Keep, text: &str) -> Value {
        let mut input = serde_json::Deserializer::from_str(text);
        keep.deserialize(&mut input).unwrap()
    }

    #[test]
    fn only_the_named_parts_are_kept() {
        let mut keep = Keep::default();
        keep.add(&["route", "retry_policy"]);
        keep.add(&["list", "1", "name"]);
        keep.add_presence(&["filters", ANY]);
        keep.add(&["filters", "envoy.filters.http.cors"]);
        let text = r#"{"other": {"a": [1]}, "route": {"retryPolicy": {"numRetries": 3}, "cluster": "c"},
            "list": [{"name": "a"}, {"name": "b", "x": 1}],
            "filters": {"envoy.filters.http.cors": {"maxAge": "1"}, "secret": {"inline": "x"}, "none": null}}"#;
        assert_eq!(
            kept(&keep, text),
            json!({
                "route": {"retry_policy": {"num_retries": 3}},
                "list": [null, {"name": "b"}],
                "filters": {"envoy.filters.http.cors": {"max_age": "1"}, "secret": true},
            })
        );
    }

    #[test]
    fn names_become_snake_case() {
        for (name, expected) in [
            ("retryPolicy", "retry_policy"),
            ("retry_policy", "retry_policy"),
            ("consecutive5xx", "consecutive_5xx"),
            ("envoy.filters.http.jwtAuthn", "envoy.filters.http.jwtAuthn"),
            ("@type", "@type"),
        ] {
            assert_eq!(snake_case(name.to_owned()), expected);
        }
    }
}

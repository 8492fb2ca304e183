//! Reads the JSON of an object whose writer is not trusted: what it takes in memory is bounded, and an object that exceeds
//! the bounds is read without the rest, so that its name is known.

use std::cell::Cell;
use std::fmt;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Map, Number, Value};

/// Maximum nesting of an object. None that people write reaches it; JSON readers commonly stop at 128.
pub(crate) const MAX_DEPTH: usize = 100;
/// The number of lists and maps that an object can have. One takes several hundred bytes, however short it is. The largest
/// objects that people write, CRDs of a megabyte, have a third of it.
const MAX_CONTAINERS: usize = 50_000;
/// The number of lists and maps that every text can have.
const FEW_CONTAINERS: usize = 10_000;
/// Beyond these, the bytes of text for each list or map.
const BYTES_OF_CONTAINER: usize = 24;

/// A JSON value within the bounds of an object.
#[derive(Clone, Debug, Default)]
pub(crate) struct BoundedValue {
    /// The value, without what exceeds the bounds.
    pub value: Value,
    /// Why something was left out, if it was.
    pub cut: Option<Cut>,
}

/// Why a part of a value was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// It is nested too deep.
    Depth,
    /// There are too many lists and maps.
    Containers,
}

impl Cut {
    /// What is wrong with the value, and what to do.
    pub fn message(self) -> String {
        match self {
            Self::Depth => too_deep(),
            Self::Containers => {
                format!("of more than {MAX_CONTAINERS} lists and maps: make it smaller")
            }
        }
    }
}

/// Why an object is refused that is nested deeper than [`MAX_DEPTH`].
pub(crate) fn too_deep() -> String {
    format!("nested deeper than {MAX_DEPTH} levels: make it flatter")
}

/// The number of lists and maps that a text of some bytes can have.
pub(crate) fn containers_of_text(bytes: usize) -> usize {
    FEW_CONTAINERS.saturating_add(bytes / BYTES_OF_CONTAINER)
}

/// What is said of a text that has more.
pub(crate) fn too_many_containers(bytes: usize) -> String {
    format!(
        "more than {} lists and mappings, with those that aliases repeat, in {bytes} bytes: split the document, or write \
         less of what is nearly empty",
        containers_of_text(bytes)
    )
}

impl<'de> Deserialize<'de> for BoundedValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (containers, cut) = (Cell::new(MAX_CONTAINERS), Cell::new(None));
        let reader = ValueReader {
            left: MAX_DEPTH,
            containers: &containers,
            cut: &cut,
        };
        let value = reader.deserialize(deserializer)?;
        Ok(Self {
            value,
            cut: cut.get(),
        })
    }
}

/// Reads any value, without what exceeds the bounds.
struct ValueReader<'c> {
    /// How many levels may follow.
    left: usize,
    /// How many lists and maps may follow.
    containers: &'c Cell<usize>,
    cut: &'c Cell<Option<Cut>>,
}

impl ValueReader<'_> {
    /// The reader of what is inside; `None` if that is too deep.
    fn inner(&self) -> Option<Self> {
        Some(Self {
            left: self.left.checked_sub(1)?,
            ..*self
        })
    }

    /// Counts a list or a map.
    fn count(&self) {
        self.containers.set(self.containers.get().saturating_sub(1));
    }
}

impl<'de> DeserializeSeed<'de> for ValueReader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let cut = match (self.left, self.containers.get()) {
            (0, _) => Some(Cut::Depth),
            (_, 0) => Some(Cut::Containers),
            _ => None,
        };
        if cut.is_some() {
            self.cut.set(cut);
            // Skipping takes no stack and no memory, whatever the value is.
            IgnoredAny::deserialize(deserializer)?;
            return Ok(Value::Null);
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueReader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        self.count();
        let mut items = Vec::new();
        while let Some(inner) = self.inner() {
            match access.next_element_seed(inner)? {
                Some(item) => items.push(item),
                None => break,
            }
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        self.count();
        let mut fields = Map::new();
        while let Some(name) = access.next_key::<String>()? {
            let Some(inner) = self.inner() else { break };
            let value = access.next_value_seed(inner)?;
            // Of what is skipped, the names are not kept either.
            if self.containers.get() > 0 || !value.is_null() {
                fields.insert(name, value);
            }
        }
        Ok(Value::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_of_many_small_maps_is_cut() {
        let spec = vec![r#"{"":0}"#; MAX_CONTAINERS].join(",");
        let text = format!(r#"{{"spec": [{spec}], "metadata": {{"name": "many"}}, "z": 1}}"#);
        let read: BoundedValue = serde_json::from_str(&text).unwrap();
        assert_eq!(read.cut, Some(Cut::Containers));
        let items = read.value["spec"].as_array().unwrap();
        assert!(items.iter().filter(|item| item.is_object()).count() < MAX_CONTAINERS);
        let few = text.replacen(&spec, "[]", 1);
        let read: BoundedValue = serde_json::from_str(&few).unwrap();
        assert_eq!(
            (read.cut, &read.value["metadata"]["name"]),
            (None, &"many".into())
        );
    }
}

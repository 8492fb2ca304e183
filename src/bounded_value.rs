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
            part: Part::Root,
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
    part: Part,
}

/// The part of an object that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Root,
    /// The field `metadata` of the object, without what is below its fields.
    Metadata,
    Other,
}

impl ValueReader<'_> {
    /// The reader of what is inside; `None` if that is too deep.
    fn inner(&self) -> Option<Self> {
        Some(Self {
            left: self.left.checked_sub(1)?,
            part: Part::Other,
            ..*self
        })
    }

    /// Counts a list or a map. False if there may be no more, so that it must be skipped.
    fn counts(&self) -> bool {
        if let Some(left) = self.containers.get().checked_sub(1) {
            self.containers.set(left);
            return true;
        }
        // The metadata are always read: the object is known by its name.
        let is_read = self.part == Part::Metadata;
        if !is_read {
            self.cut.set(Some(Cut::Containers));
        }
        is_read
    }
}

impl<'de> DeserializeSeed<'de> for ValueReader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        if self.left == 0 {
            self.cut.set(Some(Cut::Depth));
            // Skipping takes no stack, however deep the value is.
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
        let mut items = Vec::new();
        if !self.counts() {
            while access.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(Value::Null);
        }
        while let Some(inner) = self.inner() {
            match access.next_element_seed(inner)? {
                Some(item) => items.push(item),
                None => break,
            }
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        if !self.counts() {
            while access.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(Value::Null);
        }
        while let Some(name) = access.next_key::<String>()? {
            // Only the API server and kubectl use these, and they have a map for each field.
            if self.part == Part::Metadata && name == "managedFields" {
                access.next_value::<IgnoredAny>()?;
                continue;
            }
            let Some(mut inner) = self.inner() else { break };
            if self.part == Part::Root && name == "metadata" {
                inner.part = Part::Metadata;
            }
            fields.insert(name, access.next_value_seed(inner)?);
        }
        Ok(Value::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> BoundedValue {
        serde_json::from_str(text).unwrap()
    }

    /// An object of small maps, which are sorted before its other fields.
    fn many(maps: usize) -> BoundedValue {
        let maps = vec![r#"{"":0}"#; maps].join(",");
        let metadata = r#"{"annotations": {"a": "b"}, "managedFields": [{"f": {}}, {"f": {}}], "name": "many", "resourceVersion": "7"}"#;
        read(&format!(
            r#"{{"a": [{maps}], "metadata": {metadata}, "z": [1]}}"#
        ))
    }

    #[test]
    fn an_object_of_many_small_maps_is_cut_and_known_by_its_name() {
        let cut = many(MAX_CONTAINERS);
        assert_eq!(cut.cut, Some(Cut::Containers));
        let kept = cut.value["a"].as_array().unwrap().iter();
        assert_eq!(
            kept.filter(|item| item.is_object()).count(),
            MAX_CONTAINERS - 2
        );
        let metadata = &cut.value["metadata"];
        assert_eq!(
            (&metadata["name"], &metadata["resourceVersion"]),
            (&"many".into(), &"7".into())
        );
        assert_eq!(cut.value["z"], Value::Null);
        // The object, two lists, the metadata and the annotations.
        let whole = many(MAX_CONTAINERS - 5);
        assert_eq!((whole.cut, &whole.value["z"][0]), (None, &1.into()));
        assert!(whole.value["metadata"].get("managedFields").is_none());
    }
}

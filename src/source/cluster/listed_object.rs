//! Objects as an API server sends them, read so that one that cannot be read costs itself alone: a list or a watch with
//! it goes on.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::{ApiResource, DynamicResourceScope};
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Map, Number, Value};

use crate::source::object::MAX_DEPTH;

/// An object of any kind, with whatever values it has.
#[derive(Clone, Debug)]
pub(super) struct ListedObject {
    /// The object, without what is nested too deep.
    pub value: Value,
    /// Whether something was left out.
    pub is_cut: bool,
    /// The name, the namespace and the version, as far as they are texts. Watches need no more.
    metadata: ObjectMeta,
}

impl<'de> Deserialize<'de> for ListedObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let is_cut = Cell::new(false);
        let reader = ValueReader {
            left: MAX_DEPTH,
            is_cut: &is_cut,
        };
        let value = reader.deserialize(deserializer)?;
        let text = |name: &str| {
            let text = value
                .get("metadata")
                .and_then(|metadata| metadata.get(name)?.as_str());
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        Ok(Self {
            metadata: ObjectMeta {
                name: text("name"),
                namespace: text("namespace"),
                resource_version: text("resourceVersion"),
                ..ObjectMeta::default()
            },
            is_cut: is_cut.get(),
            value,
        })
    }
}

impl Resource for ListedObject {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        (&*resource.kind).into()
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        (&*resource.group).into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        (&*resource.version).into()
    }

    fn api_version(resource: &ApiResource) -> Cow<'_, str> {
        (&*resource.api_version).into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        (&*resource.plural).into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// Reads any value, and nothing that is nested too deep.
struct ValueReader<'c> {
    /// How many levels may follow.
    left: usize,
    is_cut: &'c Cell<bool>,
}

impl ValueReader<'_> {
    /// The reader of what is inside; `None` if that is too deep.
    fn inner(&self) -> Option<Self> {
        Some(Self {
            left: self.left.checked_sub(1)?,
            is_cut: self.is_cut,
        })
    }
}

impl<'de> DeserializeSeed<'de> for ValueReader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        if self.left == 0 {
            // Skipping takes no stack, however deep the value is.
            self.is_cut.set(true);
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
        while let Some(name) = access.next_key::<String>()? {
            let Some(inner) = self.inner() else { break };
            fields.insert(name, access.next_value_seed(inner)?);
        }
        Ok(Value::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::{ObjectList, WatchEvent};

    fn nested(levels: usize) -> String {
        format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels))
    }

    #[test]
    fn an_object_that_cannot_be_read_costs_itself_in_a_list() {
        let odd = [
            r#"{"metadata": {"name": "ok", "namespace": "ns", "resourceVersion": "7"}, "spec": {"n": 1.5}}"#.to_owned(),
            format!(r#"{{"metadata": {{"name": "deep"}}, "spec": {}}}"#, nested(10_000)),
            r#"{"metadata": {"name": "magic"}, "spec": {"$serde_json::private::RawValue": "{"}}"#.to_owned(),
            r#"{"metadata": {"name": "number"}, "spec": {"$serde_json::private::Number": "x"}}"#.to_owned(),
            r#"{"metadata": {"name": ["wrong"], "labels": 1}}"#.to_owned(),
            "7".to_owned(),
            "null".to_owned(),
        ];
        let text = format!(
            r#"{{"kind": "List", "apiVersion": "v1", "metadata": {{"resourceVersion": "9"}}, "items": [{}]}}"#,
            odd.join(",")
        );
        let list: ObjectList<ListedObject> = serde_json::from_str(&text).unwrap();
        let cut: Vec<bool> = list.items.iter().map(|item| item.is_cut).collect();
        assert_eq!(cut, [false, true, false, false, false, false, false]);
        let [first, deep, magic, ..] = list.items.as_slice() else {
            panic!("{list:?}");
        };
        assert_eq!(first.meta().resource_version.as_deref(), Some("7"));
        assert_eq!(first.value["spec"]["n"], 1.5);
        assert_eq!(deep.meta().name.as_deref(), Some("deep"));
        assert_eq!(magic.value["spec"]["$serde_json::private::RawValue"], "{");
    }

    #[test]
    fn an_object_that_cannot_be_read_costs_itself_in_a_watch() {
        let text = format!(
            r#"{{"type": "ADDED", "object": {{"metadata": {{"name": "deep"}}, "spec": {}}}}}"#,
            nested(200)
        );
        let WatchEvent::Added(added) =
            serde_json::from_str::<WatchEvent<ListedObject>>(&text).unwrap()
        else {
            panic!("not an addition");
        };
        assert!(added.is_cut);
        assert_eq!(added.meta().name.as_deref(), Some("deep"));
    }
}

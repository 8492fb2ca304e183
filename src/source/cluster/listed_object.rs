//! Objects as an API server sends them, read so that one that cannot be read costs itself alone: a list or a watch with
//! it goes on.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::{ApiResource, DynamicResourceScope};
use serde::de::{Deserialize, Deserializer};
use serde_json::Value;

use crate::bounded_value::{BoundedValue, Cut};

/// An object of any kind, with whatever values it has.
#[derive(Clone, Debug)]
pub(super) struct ListedObject {
    /// The object, without what exceeds the bounds.
    pub value: Value,
    /// Why something was left out, if it was.
    pub cut: Option<Cut>,
    /// The name, the namespace and the version, as far as they are texts. Watches need no more.
    metadata: ObjectMeta,
}

impl<'de> Deserialize<'de> for ListedObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let BoundedValue { value, cut } = BoundedValue::deserialize(deserializer)?;
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
            cut,
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
        let cut: Vec<bool> = list.items.iter().map(|item| item.cut.is_some()).collect();
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
        assert!(added.cut.is_some());
        assert_eq!(added.meta().name.as_deref(), Some("deep"));
    }
}

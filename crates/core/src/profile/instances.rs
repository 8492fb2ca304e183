//! Reads the instances of a field (specification 5.11).

use serde_json::{Map, Value};

use super::{InstanceField, Profile};
use crate::model::ObjectKey;

/// Replaces the value of each field that has instances by a map with one entry: the instance by its identity,
/// or what turns off all instances by its name.
pub(super) fn by_identity(profile: &Profile, policy: &ObjectKey, rules: &mut Map<String, Value>) {
    for field in &profile.instances {
        let Some((last, above)) = field.path.split_last() else {
            continue;
        };
        let mut fields = Some(&mut *rules);
        for name in above {
            fields = fields.and_then(|fields| fields.get_mut(name)?.as_object_mut());
        }
        let value = fields.and_then(|fields| fields.get_mut(last));
        if field.key.is_empty() {
            if let Some(value) = value.filter(|value| !value.is_null()) {
                let instance = std::mem::take(value);
                *value = Value::Object(Map::from_iter([(policy.qualified_name(), instance)]));
            }
            continue;
        }
        if let Some(Value::Object(value)) = value {
            let instance = std::mem::take(value);
            let disabled = field.disable.as_ref();
            let entry =
                match disabled.and_then(|name| Some((name.clone(), instance.get(name)?.clone()))) {
                    Some(disabled) => disabled,
                    None => (
                        identity(field, &policy.namespace, &instance),
                        Value::Object(instance),
                    ),
                };
            value.extend([entry]);
        }
    }
}

/// The identity of an instance: `namespace/name` of the object that it references. References without a
/// namespace resolve in that of the policy.
fn identity(field: &InstanceField, namespace: &str, instance: &Map<String, Value>) -> String {
    let mut key = None;
    let mut fields = Some(instance);
    for name in &field.key {
        key = fields.and_then(|fields| fields.get(name));
        fields = key.and_then(Value::as_object);
    }
    let text = |name: &str| key.and_then(|key| key.get(name)?.as_str());
    let namespace = text("namespace")
        .filter(|own| !own.is_empty())
        .unwrap_or(namespace);
    let name = match (text("name"), key) {
        (Some(name), _) => name.to_owned(),
        (None, Some(Value::String(name))) => name.clone(),
        (None, Some(other)) => other.to_string(),
        (None, None) => String::new(),
    };
    format!("{namespace}/{name}")
}

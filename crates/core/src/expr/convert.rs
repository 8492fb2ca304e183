//! Conversions between JSON and CEL values.

use std::sync::Arc;

use cel::objects::Key;
use serde_json::{Map, Value};

/// Converts a JSON value to CEL. Integers that fit 64 bits stay integers; other numbers become
/// doubles.
pub(super) fn to_cel(value: &Value) -> cel::Value {
    match value {
        Value::Null => cel::Value::Null,
        Value::Bool(b) => cel::Value::Bool(*b),
        Value::String(text) => cel::Value::String(Arc::new(text.clone())),
        Value::Number(number) => {
            if let Some(int) = number.as_i64() {
                cel::Value::Int(int)
            } else if let Some(unsigned) = number.as_u64() {
                cel::Value::UInt(unsigned)
            } else {
                cel::Value::Float(number.as_f64().unwrap_or(f64::NAN))
            }
        }
        Value::Array(items) => cel::Value::List(Arc::new(items.iter().map(to_cel).collect())),
        Value::Object(fields) => {
            #[allow(clippy::disallowed_types, reason = "the type that the cel crate takes")]
            let map: std::collections::HashMap<Key, cel::Value> = fields
                .iter()
                .map(|(name, value)| (Key::String(Arc::new(name.clone())), to_cel(value)))
                .collect();
            map.into()
        }
    }
}

/// Converts a CEL value to JSON.
///
/// # Errors
/// The value cannot be represented in JSON.
pub(super) fn from_cel(value: &cel::Value) -> Result<Value, String> {
    Ok(match value {
        cel::Value::Null => Value::Null,
        cel::Value::Bool(b) => Value::Bool(*b),
        cel::Value::Int(int) => (*int).into(),
        cel::Value::UInt(unsigned) => (*unsigned).into(),
        cel::Value::Float(float) => serde_json::Number::from_f64(*float)
            .map(Value::Number)
            .ok_or("the result is not a finite number")?,
        cel::Value::String(text) => Value::String(text.to_string()),
        cel::Value::List(items) => items.iter().map(from_cel).collect::<Result<_, _>>()?,
        cel::Value::Map(map) => {
            let mut fields = Map::new();
            // A CEL map is unordered; a JSON map sorts its keys.
            #[allow(clippy::iter_over_hash_type, reason = "the target is sorted")]
            for (key, value) in map.map.iter() {
                let Key::String(name) = key else {
                    return Err("a key of the result is not a string".to_owned());
                };
                fields.insert(name.to_string(), from_cel(value)?);
            }
            Value::Object(fields)
        }
        _ => return Err("the result cannot be represented in JSON".to_owned()),
    })
}

//! Conversions between JSON and CEL values.

use cel::common::types::{
    CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString, CelUInt,
};
use cel::common::value::Val;
use cel::objects::Key;
use serde_json::{Map, Number, Value};

use super::access::Access;

/// A value of CEL that borrows its texts.
pub(super) type Borrowed<'v> = Box<dyn Val + 'v>;

/// Converts what is read of a JSON value to CEL. Integers that fit 64 bits stay integers; other numbers become doubles.
/// The result borrows the texts.
pub(super) fn to_cel<'v>(value: &'v Value, read: &Access) -> Borrowed<'v> {
    converted(value, read, CelString::from)
}

/// Converts a JSON value to CEL. The result has its own texts.
pub(super) fn to_owned_cel(value: &Value) -> Borrowed<'static> {
    converted(value, &Access::Whole, |text| {
        CelString::from(text.to_owned())
    })
}

fn converted<'v, 'o>(
    value: &'v Value,
    read: &Access,
    string: fn(&'v str) -> CelString<'o>,
) -> Borrowed<'o> {
    match value {
        Value::Null => Box::new(CelNull),
        Value::Bool(b) => Box::new(CelBool::from(*b)),
        Value::String(text) => Box::new(string(text)),
        Value::Number(number) => converted_number(number),
        Value::Array(items) => {
            let items = items.iter();
            let items = items.map(|item| converted(item, &Access::Whole, string));
            Box::new(CelList::from(items.collect::<Vec<_>>()))
        }
        Value::Object(fields) => {
            let field = |name: &'v str, value: &'v Value, read: &Access| {
                (
                    CelMapKey::String(string(name)),
                    converted(value, read, string),
                )
            };
            let fields = match read {
                Access::Whole => {
                    let fields = fields.iter();
                    fields
                        .map(|(name, value)| field(name, value, read))
                        .collect()
                }
                Access::Fields(names) => {
                    let present = names.iter().filter_map(|(name, read)| {
                        let (name, value) = fields.get_key_value(&**name)?;
                        Some(field(name, value, read))
                    });
                    present.collect()
                }
            };
            #[allow(clippy::disallowed_types, reason = "the type that the cel crate takes")]
            let fields: std::collections::HashMap<CelMapKey<'o>, Borrowed<'o>> = fields;
            Box::new(CelMap::from(fields))
        }
    }
}

fn converted_number<'o>(number: &Number) -> Borrowed<'o> {
    if let Some(int) = number.as_i64() {
        Box::new(CelInt::from(int))
    } else if let Some(unsigned) = number.as_u64() {
        Box::new(CelUInt::from(unsigned))
    } else {
        Box::new(CelDouble::from(number.as_f64().unwrap_or(f64::NAN)))
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

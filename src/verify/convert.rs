//! Makes values of policies and of Envoy's configuration comparable.

use serde_json::Value;

/// How a value of a policy and one of Envoy's configuration are compared.
#[derive(Clone, Copy)]
pub(super) enum Convert {
    /// Whether both are there. The fields of the block have rows of their own.
    Block,
    /// Whether both are there: the contents are not compared.
    Presence,
    /// A number. Envoy writes 64-bit numbers as texts.
    Number,
    /// A number of which 0 means that it is not set, or one that is the default.
    NumberUnless(i64),
    /// A duration: `1h30m` in policies, `5400s` in Envoy.
    Duration,
    /// A duration in policies, a number of seconds in Envoy.
    Seconds,
    /// A text.
    Text,
    /// A flag; Envoy omits false.
    Flag,
    /// A flag with the opposite meaning in Envoy.
    NotFlag,
    /// A quantity such as `32Ki` in policies, a number of bytes in Envoy.
    Quantity,
    /// One of these names, each with Envoy's; an empty one if Envoy omits it.
    OneOf(&'static [(&'static str, &'static str)]),
    /// A list of texts in policies, texts with commas in Envoy; `*` alone if the list has it.
    Commas,
    /// The same without regard of the order.
    CommaSet,
    /// Configurations of filters with this beginning of their names. The rest of each name is the policy that set
    /// it: `KIND/NAMESPACE/NAME`. Of a list, each item has one.
    Owned(&'static str),
    /// Other shapes: what both become.
    Shape(ReadShape, ReadShape),
}

/// Reads a value into a form that can be compared; `None` if it is malformed.
pub(super) type ReadShape = fn(&Value) -> Option<Value>;

/// A value could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unreadable;

impl Convert {
    /// The comparable form of a policy's value; `None` if it means that the field is not set.
    ///
    /// # Errors
    /// The value has an unexpected form.
    pub(super) fn of_policy(&self, value: &Value) -> Result<Option<Value>, Unreadable> {
        let read = match self {
            Convert::Block | Convert::Presence => Some(Value::Bool(true)),
            Convert::Number => number(value),
            Convert::NumberUnless(unset) => {
                return unless(number(value), *unset);
            }
            Convert::Duration => value.as_str().and_then(policy_nanoseconds),
            Convert::Seconds => {
                let nanoseconds = value.as_str().and_then(policy_nanoseconds);
                let seconds = nanoseconds
                    .and_then(|n| n.as_i64())
                    .map(|n| n / NANOSECONDS);
                seconds.map(Value::from)
            }
            Convert::Text => value.as_str().map(Value::from),
            Convert::Flag => return value.as_bool().map(flag).ok_or(Unreadable),
            Convert::NotFlag => return value.as_bool().map(|v| flag(!v)).ok_or(Unreadable),
            Convert::Quantity => quantity(value),
            Convert::OneOf(names) => {
                let found = names.iter().find(|(name, _)| value.as_str() == Some(name));
                let (_, name) = found.ok_or(Unreadable)?;
                return Ok((!name.is_empty()).then(|| Value::from(*name)));
            }
            Convert::Commas | Convert::CommaSet => return self.commas_of(texts(value)),
            Convert::Owned(_) => {
                let number = value.as_array().map_or(1, Vec::len);
                return Ok((number > 0).then(|| Value::from(number)));
            }
            Convert::Shape(of_policy, _) => of_policy(value),
        };
        read.map(Some).ok_or(Unreadable)
    }

    /// The comparable form of Envoy's value; `None` if it means that the field is not set.
    ///
    /// # Errors
    /// The value has an unexpected form.
    pub(super) fn of_envoy(&self, value: &Value) -> Result<Option<Value>, Unreadable> {
        let read = match self {
            Convert::Block | Convert::Presence => Some(Value::Bool(true)),
            Convert::Number | Convert::Quantity | Convert::Seconds => number(value),
            Convert::NumberUnless(unset) => return unless(number(value), *unset),
            Convert::Duration => value.as_str().and_then(envoy_nanoseconds),
            Convert::Text => value.as_str().map(Value::from),
            Convert::Flag | Convert::NotFlag => {
                return value.as_bool().map(flag).ok_or(Unreadable);
            }
            Convert::OneOf(names) => {
                let found = names.iter().find(|(_, name)| value.as_str() == Some(name));
                found.map(|(_, name)| Value::from(*name))
            }
            Convert::Commas | Convert::CommaSet => {
                let parts = value
                    .as_str()
                    .map(|text| text.split(',').map(str::trim).collect());
                return self.commas_of(parts);
            }
            Convert::Owned(beginning) => {
                let number = owned(value, beginning).count();
                return Ok((number > 0).then(|| Value::from(number)));
            }
            Convert::Shape(_, of_envoy) => of_envoy(value),
        };
        read.map(Some).ok_or(Unreadable)
    }

    fn commas_of(&self, parts: Option<Vec<&str>>) -> Result<Option<Value>, Unreadable> {
        let mut parts = parts.ok_or(Unreadable)?;
        parts.retain(|part| !part.is_empty());
        if parts.contains(&"*") {
            parts = vec!["*"];
        }
        if matches!(self, Convert::CommaSet) {
            parts.sort_unstable();
        }
        Ok((!parts.is_empty()).then(|| Value::from(parts.join(", "))))
    }
}

impl std::fmt::Debug for Convert {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Convert")
    }
}

/// The policies that own configurations of filters, as `kind/namespace/name` and perhaps more.
pub(super) fn owned<'v>(filters: &'v Value, beginning: &str) -> impl Iterator<Item = &'v str> {
    let names = filters.as_object().into_iter().flat_map(|map| map.keys());
    names.filter_map(move |name| name.strip_prefix(beginning))
}

/// The value at a path: names of fields, numbers of items.
pub(super) fn lookup<'v>(value: &'v Value, path: &[&str]) -> Option<&'v Value> {
    let found = path.iter().try_fold(value, |value, step| match value {
        Value::Object(map) => map.get(*step),
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        _ => None,
    });
    found.filter(|value| !value.is_null())
}

/// Removes a field of a map.
pub(super) fn take(value: &mut Value, field: &str) -> Option<Value> {
    value.as_object_mut()?.remove(field)
}

/// The text of a value.
pub(super) fn text(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// The texts of a list.
pub(super) fn texts(value: &Value) -> Option<Vec<&str>> {
    value.as_array()?.iter().map(Value::as_str).collect()
}

fn unless(read: Option<Value>, unset: i64) -> Result<Option<Value>, Unreadable> {
    let number = read.as_ref().and_then(Value::as_i64).ok_or(Unreadable)?;
    Ok(read.filter(|_| number != unset && number != 0))
}

fn flag(value: bool) -> Option<Value> {
    value.then_some(Value::Bool(true))
}

/// A whole number, from a number or from its text.
pub(super) fn number(value: &Value) -> Option<Value> {
    let number = match value {
        Value::String(text) => text.parse().ok()?,
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => number,
            // Envoy writes percentages as doubles.
            (None, Some(double)) if double.fract() == 0.0 && double.abs() < 1e15 => {
                format!("{double}").parse().ok()?
            }
            _ => return None,
        },
        _ => return None,
    };
    Some(Value::from(number))
}

const NANOSECONDS: i64 = 1_000_000_000;

/// The nanoseconds of a duration in a policy, such as `1h30m` or `0.5s`.
fn policy_nanoseconds(text: &str) -> Option<Value> {
    if text == "0" {
        return Some(Value::from(0));
    }
    let mut rest = text;
    let mut total: i64 = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (digits, after) = rest.split_at_checked(end)?;
        let end = after.find(|c: char| c.is_ascii_digit() || c == '.');
        let (unit, after) = after.split_at_checked(end.unwrap_or(after.len()))?;
        let unit = match unit {
            "ns" => 1,
            "us" | "µs" => 1_000,
            "ms" => 1_000_000,
            "s" => NANOSECONDS,
            "m" => 60 * NANOSECONDS,
            "h" => 3_600 * NANOSECONDS,
            _ => return None,
        };
        total = total.checked_add(fraction(digits, unit)?)?;
        rest = after;
    }
    (!text.is_empty()).then(|| Value::from(total))
}

/// The nanoseconds of a duration in Envoy's configuration, such as `0.500s`.
fn envoy_nanoseconds(text: &str) -> Option<Value> {
    let seconds = text.strip_suffix('s')?;
    fraction(seconds, NANOSECONDS).map(Value::from)
}

/// A decimal number of units.
fn fraction(digits: &str, unit: i64) -> Option<i64> {
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let mut total = match whole {
        "" if !part.is_empty() => 0,
        whole => whole.parse::<i64>().ok()?.checked_mul(unit)?,
    };
    let mut scale = unit;
    for digit in part.chars() {
        scale /= 10;
        total = total.checked_add(i64::from(digit.to_digit(10)?).checked_mul(scale)?)?;
    }
    Some(total)
}

/// The bytes of a quantity.
fn quantity(value: &Value) -> Option<Value> {
    let text = match value {
        Value::String(text) => text.as_str(),
        other => return number(other),
    };
    let end = text.find(|c: char| !c.is_ascii_digit());
    let (digits, unit) = text.split_at_checked(end.unwrap_or(text.len()))?;
    let unit: i64 = match unit {
        "" => 1,
        "k" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        _ => return None,
    };
    Some(Value::from(digits.parse::<i64>().ok()?.checked_mul(unit)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn equal(convert: Convert, policy: Value, envoy: Value) {
        assert_eq!(convert.of_policy(&policy), convert.of_envoy(&envoy));
        assert!(convert.of_policy(&policy).is_ok());
    }

    #[test]
    fn values_of_both_sides_are_comparable() {
        equal(Convert::Duration, json!("1h30m"), json!("5400s"));
        equal(Convert::Duration, json!("0.5s"), json!("0.500s"));
        equal(Convert::Duration, json!("250ms"), json!("0.250s"));
        equal(Convert::Duration, json!("0s"), json!("0s"));
        equal(Convert::Seconds, json!("10m"), json!("600"));
        equal(Convert::Number, json!(5), json!("5"));
        equal(Convert::Number, json!(30), json!(30.0));
        equal(Convert::NumberUnless(50), json!(50), json!(0));
        equal(Convert::Quantity, json!("32Ki"), json!(32768));
        equal(Convert::Quantity, json!(100), json!(100));
        equal(Convert::Commas, json!(["a", "b"]), json!("a, b"));
        equal(Convert::Commas, json!(["a", "*"]), json!("*"));
        equal(Convert::CommaSet, json!(["b", "a"]), json!("a,b"));
        equal(Convert::NotFlag, json!(true), json!(false));
        let names = Convert::OneOf(&[("A", "ENVOY_A"), ("B", "")]);
        equal(names, json!("A"), json!("ENVOY_A"));
        assert_eq!(names.of_policy(&json!("B")), Ok(None));
        let filters = json!({"ext/securitypolicy/a/b": true, "other": true});
        equal(Convert::Owned("ext/"), json!({}), filters.clone());
        let owners: Vec<&str> = owned(&filters, "ext/").collect();
        assert_eq!(owners, ["securitypolicy/a/b"]);
    }

    #[test]
    fn malformed_values_are_no_values() {
        for (convert, value) in [
            (Convert::Duration, json!("soon")),
            (Convert::Duration, json!("1x")),
            (Convert::Duration, json!(3)),
            (Convert::Number, json!("many")),
            (Convert::Quantity, json!("1Zi")),
            (Convert::Text, json!([])),
            (Convert::OneOf(&[("A", "a")]), json!("C")),
        ] {
            assert_eq!(convert.of_policy(&value), Err(Unreadable), "{value}");
        }
        assert_eq!(Convert::Duration.of_envoy(&json!("5")), Err(Unreadable));
    }
}

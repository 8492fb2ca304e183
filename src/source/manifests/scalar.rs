//! What a YAML scalar means: as kubectl takes it (YAML 1.1 by sigs.k8s.io/yaml), with exact
//! numbers.
//!
//! Two differences are on purpose. kubectl reads a bare `y` or `n` as a boolean; here, as with
//! most other readers, they are text, so that a thing can be called `n`. And kubectl rounds
//! numbers to 64 bits, takes `1e400` for text, and drops digits; here a number keeps its value or
//! is refused (specification 6.6).

use std::borrow::Cow;

use serde_json::{Number, Value};
use serde_saphyr::granit_parser::Tag;

/// Why a scalar is refused, for people. It never repeats the text: that may be a secret.
pub(super) type Refusal = &'static str;

const NOT_FINITE: Refusal =
    "infinity and not-a-number cannot be written as JSON: quote the value if it is text";
const TOO_LARGE: Refusal = "a number is too large: quote the value if it is text";
const WRONG_TAG: Refusal = "a value does not fit its tag: correct one of them";
const BINARY: Refusal = "`!!binary` values are not supported: write the text itself";

const YAML_NAMESPACE: &str = "tag:yaml.org,2002:";

/// A number in decimal, taken apart.
struct Decimal<'t> {
    negative: bool,
    integer: &'t str,
    fraction: &'t str,
    exponent: &'t str,
}

/// The value of a scalar; `plain` says that it is not quoted.
///
/// # Errors
/// What JSON cannot hold, and values that contradict their tag.
pub(super) fn resolve(text: &str, plain: bool, tag: Option<&Tag>) -> Result<Value, Refusal> {
    let Some(tag) = tag else {
        return if plain {
            resolve_plain(text)
        } else {
            Ok(Value::from(text))
        };
    };
    if let Some(name) = tag.suffix_in_namespace(YAML_NAMESPACE) {
        let value = match &*name {
            "null" | "bool" | "int" | "float" => resolve_plain(text)?,
            "binary" => return Err(BINARY),
            _ => return Ok(Value::from(text)),
        };
        let fits = match &*name {
            "null" => value.is_null(),
            "bool" => value.is_boolean(),
            "int" => matches!(&value, Value::Number(n) if is_integer(n)),
            _ => value.is_number(),
        };
        return if fits { Ok(value) } else { Err(WRONG_TAG) };
    }
    // A tag of somebody's own says nothing here; the value is text, as with kubectl.
    Ok(Value::from(text))
}

fn is_integer(number: &Number) -> bool {
    !number.as_str().contains(['.', 'e', 'E'])
}

fn resolve_plain(text: &str) -> Result<Value, Refusal> {
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Value::Bool(true),
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => {
            Value::Bool(false)
        }
        ".nan" | ".NaN" | ".NAN" | ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF"
        | "-.inf" | "-.Inf" | "-.INF" => return Err(NOT_FINITE),
        _ => match number(text)? {
            Some(number) => Value::Number(number),
            None => Value::from(text),
        },
    })
}

/// The number that a plain scalar is, if it is one.
fn number(text: &str) -> Result<Option<Number>, Refusal> {
    let starts_a_number = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.');
    if !text.starts_with(starts_a_number) {
        return Ok(None);
    }
    let bare = if text.contains('_') {
        Cow::Owned(text.replace('_', ""))
    } else {
        Cow::Borrowed(text)
    };
    match integer(&bare) {
        Some(number) => Ok(Some(number)),
        None => float(&bare),
    }
}

fn split_sign(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

/// Integers: decimal of any length, `0x`, `0o`, `0b` and YAML 1.1's `0755` within 64 bits.
fn integer(text: &str) -> Option<Number> {
    let (negative, digits) = split_sign(text);
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, digits.get(2..)?),
        [b'0', b'o' | b'O', ..] => (8, digits.get(2..)?),
        [b'0', b'b' | b'B', ..] => (2, digits.get(2..)?),
        [b'0', _, ..] if digits.bytes().all(|b| matches!(b, b'0'..=b'7')) => (8, digits),
        _ => (10, digits),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    if radix == 10 {
        let digits = digits.trim_start_matches('0');
        return match (digits, negative) {
            ("", _) => Some(Number::from(0)),
            (digits, false) => digits.parse().ok(),
            (digits, true) => format!("-{digits}").parse().ok(),
        };
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    if negative {
        i64::try_from(-i128::from(magnitude)).ok().map(Number::from)
    } else {
        Some(Number::from(magnitude))
    }
}

/// Floats, in the shortest form if 64 bits hold them exactly as written, else as they stand.
fn float(text: &str) -> Result<Option<Number>, Refusal> {
    let Some(decimal) = Decimal::parse(text) else {
        return Ok(None);
    };
    let written = decimal.to_json();
    let Ok(value) = written.parse::<f64>() else {
        return Ok(None);
    };
    let Some(shortest) = Number::from_f64(value) else {
        return Err(TOO_LARGE);
    };
    let meant = decimal.value();
    let same = meant.is_some()
        && Decimal::parse(shortest.as_str()).and_then(|shortest| shortest.value()) == meant;
    Ok(if same {
        Some(shortest)
    } else {
        written.parse().ok()
    })
}

impl<'t> Decimal<'t> {
    /// `[sign] digits [. digits] [e digits]`, with a digit before or behind the point.
    fn parse(text: &'t str) -> Option<Self> {
        let (negative, rest) = split_sign(text);
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, Some(exponent)),
            None => (rest, None),
        };
        let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        let is_number = digits(integer)
            && digits(fraction)
            && !(integer.is_empty() && fraction.is_empty())
            && exponent.is_none_or(|exponent| {
                let (_, exponent) = split_sign(exponent);
                !exponent.is_empty() && digits(exponent)
            });
        is_number.then_some(Self {
            negative,
            integer,
            fraction,
            exponent: exponent.unwrap_or(""),
        })
    }

    /// The same digits in JSON's grammar, which wants a digit on both sides of the point.
    fn to_json(&self) -> String {
        let sign = if self.negative { "-" } else { "" };
        let integer = match self.integer.trim_start_matches('0') {
            "" => "0",
            digits => digits,
        };
        let fraction = match self.fraction {
            "" => "0",
            digits => digits,
        };
        let mark = if self.exponent.is_empty() { "" } else { "e" };
        format!("{sign}{integer}.{fraction}{mark}{}", self.exponent)
    }

    /// Sign, digits without zeros at either end, and the power of ten of the last digit. Equal
    /// exactly for equal numbers. `None` if the exponent is beyond all measure.
    fn value(&self) -> Option<(bool, String, i64)> {
        let digits = format!("{}{}", self.integer, self.fraction);
        let digits = digits.trim_start_matches('0');
        let trimmed = digits.trim_end_matches('0');
        if trimmed.is_empty() {
            return Some((self.negative, String::new(), 0));
        }
        let zeros = i64::try_from(digits.len().checked_sub(trimmed.len())?).ok()?;
        let exponent = match self.exponent {
            "" => 0,
            exponent => exponent.parse::<i64>().ok()?,
        };
        let fraction = i64::try_from(self.fraction.len()).ok()?;
        let power = exponent.checked_sub(fraction)?.checked_add(zeros)?;
        Some((self.negative, trimmed.to_owned(), power))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        match resolve(text, true, None) {
            Ok(value) => value.to_string(),
            Err(refusal) => format!("refused: {refusal}"),
        }
    }

    #[test]
    fn scalars_mean_what_kubectl_takes_them_for() {
        // Left of the arrow the YAML, right of it what sigs.k8s.io/yaml v1.6.0 makes of it.
        for (text, json) in [
            ("yes", "true"),
            ("Off", "false"),
            ("oN", "\"oN\""),
            ("tRue", "\"tRue\""),
            ("", "null"),
            ("~", "null"),
            ("nULL", "\"nULL\""),
            ("0755", "493"),
            ("-0755", "-493"),
            ("0o755", "493"),
            ("0b101", "5"),
            ("-0x1f", "-31"),
            ("+0x1F", "31"),
            ("1_000", "1000"),
            ("_1", "\"_1\""),
            ("089", "89"),
            ("00", "0"),
            ("+1", "1"),
            ("-0", "0"),
            (".5", "0.5"),
            ("-.5", "-0.5"),
            ("1.50", "1.5"),
            ("0xFFFFFFFFFFFFFFFFFF", "\"0xFFFFFFFFFFFFFFFFFF\""),
            ("0x", "\"0x\""),
            ("1:20", "\"1:20\""),
            ("2001-12-14", "\"2001-12-14\""),
            ("1.2.3", "\"1.2.3\""),
            ("1e", "\"1e\""),
            ("+", "\"+\""),
            (".", "\".\""),
            ("1,000", "\"1,000\""),
            ("18446744073709551615", "18446744073709551615"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("0x+5", "\"0x+5\""),
            ("٣", "\"٣\""),
            ("=", "\"=\""),
        ] {
            assert_eq!(plain(text), json, "{text}");
        }
    }

    #[test]
    fn bare_letters_are_text() {
        for text in ["y", "Y", "n", "N"] {
            assert_eq!(plain(text), format!("\"{text}\""));
        }
    }

    #[test]
    fn numbers_are_exact_or_refused() {
        for (text, json) in [
            ("18446744073709551616", "18446744073709551616"),
            ("-9223372036854775809", "-9223372036854775809"),
            (
                "123456789012345678901234567890",
                "123456789012345678901234567890",
            ),
            ("9007199254740993.0", "9007199254740993.0"),
            (
                "0.1000000000000000055511151231257827",
                "0.1000000000000000055511151231257827",
            ),
            ("1e-400", "1.0e-400"),
            ("50.0", "50.0"),
            ("1e3", "1000.0"),
            ("1.", "1.0"),
            ("0.10", "0.1"),
            ("1e22", "1e+22"),
            ("5e-324", "5e-324"),
            ("0e9", "0.0"),
        ] {
            assert_eq!(plain(text), json, "{text}");
        }
        for text in ["1e400", "-1e400", ".inf", "-.INF", ".nan"] {
            assert!(plain(text).starts_with("refused"), "{text}");
        }
    }
}

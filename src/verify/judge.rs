//! Compares one field of a policy with its place in Envoy's configuration.

use serde_json::Value;

use super::convert::{Convert, owned};
use super::report::Verdict;
use super::rows::{Row, Unset};

/// The result of comparing one field in one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Judgement {
    /// The result.
    pub(super) verdict: Verdict,
    /// The value that should be in effect.
    pub(super) expected: Option<String>,
    /// The value that the proxy has.
    pub(super) actual: Option<String>,
    /// Why the values cannot be compared, or what a difference may come from.
    pub(super) reason: String,
}

impl Judgement {
    /// The values cannot be compared.
    fn cannot_tell(expected: Option<&Value>, reason: String) -> Self {
        Self {
            verdict: Verdict::CannotTell,
            expected: expected.map(shown),
            actual: None,
            reason,
        }
    }
}

/// Compares a field of a policy with what the proxy has. `None` if neither sets it.
pub(super) fn judge(
    row: &Row,
    expected: Option<&Value>,
    actual: Option<&Value>,
) -> Option<Judgement> {
    let Ok(read) = actual.map(|value| row.convert.of_envoy(value)).transpose() else {
        let reason = "the proxy's value has a form that is not known".to_owned();
        return Some(Judgement {
            actual: actual.map(shown),
            ..Judgement::cannot_tell(expected, reason)
        });
    };
    let read = read.flatten();
    let Some(expected) = expected else {
        return judge_unset(row, read?, actual);
    };
    let Ok(wanted) = row.convert.of_policy(expected) else {
        let reason = "the policy's value has a form that is not known".to_owned();
        return Some(Judgement::cannot_tell(Some(expected), reason));
    };
    let verdict = match (&wanted, &read) {
        _ if wanted == read => Verdict::Same,
        (Some(_), None) => Verdict::Missing,
        _ => Verdict::Differs,
    };
    let (expected, actual) = match row.convert {
        // Values of two shapes are shown in the common one.
        Convert::Shape(..) => (wanted, read),
        _ => (Some(expected.clone()), actual_shown(row, actual)),
    };
    Some(Judgement {
        verdict,
        expected: expected.as_ref().map(shown),
        actual: actual.as_ref().map(shown),
        reason: reason(row, verdict),
    })
}

/// Judges a value that only the proxy has.
fn judge_unset(row: &Row, read: Value, actual: Option<&Value>) -> Option<Judgement> {
    let Unset::Nothing(defaults) = row.unset else {
        return None;
    };
    let is_default = defaults.iter().any(|json| {
        let value: Option<Value> = serde_json::from_str(json).ok();
        let value = value.and_then(|value| row.convert.of_envoy(&value).ok());
        value.flatten().as_ref() == Some(&read)
    });
    if is_default {
        return None;
    }
    let actual = match row.convert {
        Convert::Shape(..) => Some(read),
        _ => actual_shown(row, actual),
    };
    Some(Judgement {
        verdict: Verdict::Extra,
        expected: None,
        actual: actual.as_ref().map(shown),
        reason: reason(row, Verdict::Extra),
    })
}

/// What is shown of the proxy's value.
fn actual_shown(row: &Row, actual: Option<&Value>) -> Option<Value> {
    match row.convert {
        Convert::Owned(beginning) => {
            let names: Vec<&str> = owned(actual?, beginning).collect();
            (!names.is_empty()).then(|| Value::from(names))
        }
        Convert::Block | Convert::Presence => actual.map(|_| Value::from("(present)")),
        _ => actual.cloned(),
    }
}

fn reason(row: &Row, verdict: Verdict) -> String {
    match verdict {
        Verdict::Differs | Verdict::Extra => row.hint.to_owned(),
        _ => String::new(),
    }
}

/// The most characters of a value that are shown.
const MAX_SHOWN: usize = 300;

/// A value as text: JSON without the quotes of texts.
pub(super) fn shown(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::rows::all_rows;
    use serde_json::json;

    #[track_caller]
    fn verdict(field: &str, expected: Value, actual: Value) -> Option<Verdict> {
        let row = all_rows().find(|row| row.field == field).unwrap();
        let some = |value: Value| (!value.is_null()).then_some(value);
        let judgement = judge(row, some(expected).as_ref(), some(actual).as_ref());
        judgement.map(|judgement| judgement.verdict)
    }

    #[test]
    fn values_are_judged() {
        let retries = "retry.numRetries";
        assert_eq!(verdict(retries, json!(3), json!(3)), Some(Verdict::Same));
        assert_eq!(verdict(retries, json!(3), json!(2)), Some(Verdict::Differs));
        assert_eq!(
            verdict(retries, json!(3), json!(null)),
            Some(Verdict::Missing)
        );
        assert_eq!(
            verdict(retries, json!(null), json!(3)),
            Some(Verdict::Extra)
        );
        assert_eq!(verdict(retries, json!(null), json!(2)), None);
        assert_eq!(verdict(retries, json!(null), json!(null)), None);
        assert_eq!(
            verdict(retries, json!("x"), json!(2)),
            Some(Verdict::CannotTell)
        );
        assert_eq!(
            verdict(retries, json!(3), json!("x")),
            Some(Verdict::CannotTell)
        );
    }

    #[test]
    fn values_that_mean_nothing_are_not_set() {
        let idle = "timeout.http.streamIdleTimeout";
        assert_eq!(verdict(idle, json!(null), json!("3600s")), None);
        let slashes = "path.disableMergeSlashes";
        assert_eq!(
            verdict(slashes, json!(true), json!(null)),
            Some(Verdict::Same)
        );
        assert_eq!(
            verdict(slashes, json!(true), json!(true)),
            Some(Verdict::Differs)
        );
        assert_eq!(verdict(slashes, json!(null), json!(true)), None);
        let credentials = "cors.allowCredentials";
        assert_eq!(verdict(credentials, json!(null), json!(false)), None);
        assert_eq!(
            verdict(credentials, json!(true), json!(false)),
            Some(Verdict::Missing)
        );
    }
}

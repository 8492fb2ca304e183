//! What the result of an assertion says, as findings.

use super::result::NO_PATHS;
use crate::api::v1;
use crate::insight::Code;
use v1::assertion_result::Outcome;

/// Returns the findings of a result, each with its message: paths that are not as expected or not known to be, and what is wrong with the
/// assertion itself. A result that is as it should be has none.
pub fn assertion_findings(result: &v1::AssertionResult) -> Vec<(Code, String)> {
    let mut found = Vec::new();
    let mut add = |code: Code, message: String| found.push((code, message));
    if result.outcome() == Outcome::Invalid {
        add(Code::AssertionInvalid, result.message.clone());
        return found;
    }
    let paths = result.paths;
    if result.failed > 0 {
        let first = first(result, Outcome::Failed);
        let failed = result.failed;
        add(
            Code::AssertionFailed,
            format!("{failed} of {paths} paths are not as expected{first}"),
        );
    }
    if result.unknown > 0 {
        let first = first(result, Outcome::Unknown);
        let unknown = result.unknown;
        add(
            Code::AssertionUnknown,
            format!("it is not known whether {unknown} of {paths} paths are as expected{first}"),
        );
    } else if !result.message.is_empty() && result.message != NO_PATHS {
        let message = &result.message;
        add(
            Code::AssertionUnknown,
            format!("it is not known whether all paths are as expected: {message}"),
        );
    }
    for exception in &result.exceptions {
        let object = &exception.object;
        if exception.has_expired {
            let expires = &exception.expires;
            let message = format!(
                "`{object}` was excepted until {expires}: mend the cause, or renew the entry"
            );
            add(Code::ExceptionExpired, message);
        } else if exception.paths == 0 && result.outcome() != Outcome::Unknown {
            let message = format!("no path of `{object}` needs the exception: remove the entry");
            add(Code::ExceptionUnused, message);
        }
    }
    if result.message == NO_PATHS {
        add(Code::AssertionWithoutPaths, NO_PATHS.to_owned());
    }
    found
}

/// Whether a finding says the outcome of an assertion, as its result does.
pub fn is_of_result(finding: &v1::Finding) -> bool {
    let outcomes = [
        Code::AssertionFailed,
        Code::AssertionUnknown,
        Code::AssertionInvalid,
    ];
    outcomes.iter().any(|code| code.id() == finding.code)
}

/// The first path with an outcome, and why it has that.
fn first(result: &v1::AssertionResult, outcome: Outcome) -> String {
    let mut failures = result.failures.iter();
    let first = failures.find(|failure| failure.outcome() == outcome);
    first.map_or_else(String::new, |first| {
        format!(", the first of them {}: {}", first.path, first.message)
    })
}

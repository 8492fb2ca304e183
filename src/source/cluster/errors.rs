//! Messages of errors of the API server.

use kube::core::Status;

/// Formats an error with its causes; a cause that its parent already includes is omitted.
pub(super) fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        let cause = error.to_string();
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
        next = error.source();
    }
    text
}

/// Formats a reply that is an error.
pub(super) fn status_message(status: &Status) -> String {
    let message = match status.message.is_empty() {
        true => &status.reason,
        false => &status.message,
    };
    format!("{message} (HTTP {})", status.code)
}

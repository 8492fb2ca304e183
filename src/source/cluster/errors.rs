//! Messages of errors of the API server.

use kube::Error;
use kube::core::Status;

use entail_client::failure::TlsFailure;

/// Formats an error with its causes; a cause that its parent already includes is omitted. A failure of TLS is named alone,
/// with what to do.
pub(super) fn error_chain(error: &Error) -> String {
    if let Some(failure) = TlsFailure::of(error) {
        return format!("{failure}; {}", tls_hint(&failure));
    }
    // The client puts the names of types, and the debug format of a status, before the messages.
    let first: &dyn std::error::Error = match error {
        Error::Api(status) => return status_message(status),
        Error::Service(error) => &**error,
        Error::HyperError(error) => error,
        Error::HttpError(error) => error,
        error => error,
    };
    let mut text = first.to_string();
    let mut next = first.source();
    while let Some(error) = next {
        let cause = error.to_string();
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
        next = error.source();
    }
    text
}

fn tls_hint(failure: &TlsFailure) -> &'static str {
    match failure {
        failure if failure.concerns_client() => {
            "correct `client-certificate` and `client-key` of the user in the kubeconfig"
        }
        TlsFailure::NotTls => "correct `server` of the cluster in the kubeconfig",
        _ => {
            "correct `certificate-authority`, `server` or `tls-server-name` of the cluster in the kubeconfig"
        }
    }
}

/// Formats a reply that is an error.
pub(super) fn status_message(status: &Status) -> String {
    let message = match status.message.is_empty() {
        true => &status.reason,
        false => &status.message,
    };
    format!("{message} (HTTP {})", status.code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_that_is_an_error_is_its_message() {
        let status = Status {
            message: "too many requests".to_owned(),
            reason: "TooManyRequests".to_owned(),
            code: 429,
            ..Status::default()
        };
        let text = error_chain(&Error::Api(Box::new(status)));
        assert_eq!(text, "too many requests (HTTP 429)");
    }

    #[test]
    fn failures_of_a_connection_are_told_with_what_to_do() {
        let service = |text: &str| Error::Service(std::io::Error::other(text.to_owned()).into());
        for (cause, expected) in [
            (
                "received fatal alert: CertificateRequired",
                "TLS: the server requires a client certificate; correct `client-certificate`",
            ),
            (
                "invalid peer certificate: UnknownIssuer",
                "not signed by a known CA; correct `certificate-authority`",
            ),
            ("no route to host", "no route to host"),
        ] {
            let text = error_chain(&service(cause));
            assert!(text.contains(expected), "{text}");
            assert!(!text.contains("ServiceError"), "{text}");
        }
    }
}

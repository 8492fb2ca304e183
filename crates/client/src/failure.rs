//! Why connections and calls failed, in words for users.

use tonic::Code;

/// The names of the gRPC codes, in the order of their numbers.
pub const CODES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// Returns the name of a gRPC code, such as `NOT_FOUND`.
pub fn code_name(code: Code) -> &'static str {
    CODES.get(code as usize).copied().unwrap_or("UNKNOWN")
}

/// Returns the message of the innermost cause: the outer errors of a transport are generic.
pub fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// Why a server and its client did not agree on a TLS connection.
///
/// A server checks the certificate of its client after the client has begun to send requests, so such a failure is the
/// error of a connection or of the first call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsFailure {
    /// The server requires a client certificate, and got none.
    #[error("TLS: the server requires a client certificate")]
    ClientCertificateMissing,
    /// The server did not accept the client certificate; the name of the TLS alert tells more.
    #[error("TLS: the server rejected the client certificate (alert {0})")]
    ClientCertificateRejected(String),
    /// No CA that the client knows has signed the certificate of the server.
    #[error("TLS: the certificate of the server is not signed by a known CA")]
    UnknownServerCa,
    /// The certificate of the server is not valid for another reason, such as its name or its time.
    #[error("TLS: the certificate of the server is not valid: {0}")]
    InvalidServerCertificate(String),
    /// What answered does not speak TLS.
    #[error("TLS: the server does not speak TLS at this port")]
    NotTls,
    /// The server ended the handshake with another alert.
    #[error("TLS: the server ended the handshake (alert {0})")]
    Alert(String),
}

impl TlsFailure {
    /// Returns the failure that is the cause of an error of a transport, or of a call; `None` if it has another cause.
    pub fn of(error: &(dyn std::error::Error + 'static)) -> Option<Self> {
        // HTTP/2 passes on no more of the cause than its message.
        Self::parse(&root_cause(error))
    }

    /// Reads the message of an error of rustls.
    fn parse(message: &str) -> Option<Self> {
        if let Some((_, reason)) = message.split_once("invalid peer certificate: ") {
            return Some(match reason {
                // The second is of another CA with the same name.
                "UnknownIssuer" | "BadSignature" => Self::UnknownServerCa,
                _ => Self::InvalidServerCertificate(reason.to_owned()),
            });
        }
        if message.contains("received corrupt message of type InvalidContentType") {
            return Some(Self::NotTls);
        }
        let (_, alert) = message.split_once("received fatal alert: ")?;
        let alert = alert.split(|c: char| !c.is_alphanumeric()).next()?;
        Some(match alert {
            "CertificateRequired" => Self::ClientCertificateMissing,
            "BadCertificate"
            | "UnsupportedCertificate"
            | "CertificateRevoked"
            | "CertificateExpired"
            | "CertificateUnknown"
            | "UnknownCA"
            | "AccessDenied"
            | "DecryptError" => Self::ClientCertificateRejected(alert.to_owned()),
            _ => Self::Alert(alert.to_owned()),
        })
    }

    /// Reports whether the client certificate is missing or was rejected.
    pub fn concerns_client(&self) -> bool {
        match self {
            Self::ClientCertificateMissing | Self::ClientCertificateRejected(_) => true,
            // Until TLS 1.3 there is no alert of its own for a missing certificate.
            Self::Alert(alert) => alert == "HandshakeFailure",
            Self::UnknownServerCa | Self::InvalidServerCertificate(_) | Self::NotTls => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tls_failures_are_named() {
        use TlsFailure::*;
        let alert = |name: &str| format!("connection error: received fatal alert: {name}");
        for (message, expected) in [
            (alert("CertificateRequired"), Some(ClientCertificateMissing)),
            (
                alert("UnknownCA"),
                Some(ClientCertificateRejected("UnknownCA".to_owned())),
            ),
            (
                alert("HandshakeFailure"),
                Some(Alert("HandshakeFailure".to_owned())),
            ),
            (
                "invalid peer certificate: UnknownIssuer".to_owned(),
                Some(UnknownServerCa),
            ),
            (
                "invalid peer certificate: certificate expired".to_owned(),
                Some(InvalidServerCertificate("certificate expired".to_owned())),
            ),
            (
                "received corrupt message of type InvalidContentType".to_owned(),
                Some(NotTls),
            ),
            ("connection refused".to_owned(), None),
        ] {
            assert_eq!(TlsFailure::parse(&message), expected, "{message}");
        }
        assert!(Alert("HandshakeFailure".to_owned()).concerns_client());
    }

    #[test]
    fn codes_have_their_numbers() {
        for (number, name) in CODES.iter().enumerate() {
            let code = Code::from_i32(i32::try_from(number).unwrap());
            let debug = format!("{code:?}").to_uppercase();
            assert_eq!(debug, name.replace('_', ""), "{number}");
            assert_eq!(code_name(code), *name);
        }
    }
}

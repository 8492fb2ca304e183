//! Parses addresses of servers and connects to them.

use std::path::{Path, PathBuf};

use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use crate::failure::{TlsFailure, root_cause};

/// TLS settings for addresses that begin with `https://`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientTls {
    /// PEM file with the CA certificate that signed the server certificate.
    pub ca: Option<PathBuf>,
    /// PEM files with the client certificate and its private key.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Name expected in the server certificate, if it differs from the host of the address.
    pub server_name: Option<String>,
}

/// Why a client cannot be created or connected. The message tells how to fix it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConnectError(pub(crate) String);

/// Connects to an endpoint; `address` is the text from which it was created, for error messages.
///
/// A [`Mirror`](crate::Mirror) connects by itself. Use this function with [`stubs`](crate::stubs).
///
/// # Errors
/// Returns an error if the connection or the TLS handshake fails.
pub async fn connect(endpoint: &Endpoint, address: &str) -> Result<Channel, ConnectError> {
    let connected = endpoint.connect().await;
    connected.map_err(|error| ConnectError::of(&error, address))
}

impl ConnectError {
    /// Describes why [`Endpoint::connect`] failed for an address.
    pub fn of(error: &tonic::transport::Error, address: &str) -> Self {
        let reason = match TlsFailure::of(error) {
            Some(failure) => failure.to_string(),
            None => format!("{}; is `entail serve` running there?", root_cause(error)),
        };
        Self(format!("failed to connect to {address}: {reason}"))
    }
}

/// Returns the endpoint of an address: `host:port`, `http://host:port`, `https://host:port` or
/// `unix:PATH`. It does not connect; timeouts and keep-alive can be set on the endpoint.
///
/// # Errors
/// Returns an error if the address is malformed, if a certificate cannot be used, or if `tls` is set
/// and the address does not begin with `https://`.
pub fn endpoint(address: &str, tls: &ClientTls) -> Result<Endpoint, ConnectError> {
    let invalid = |why: &str| {
        ConnectError(format!(
            "`{address}` is not a server address: {why}; use `host:port`, `https://host:port` or \
             `unix:PATH`"
        ))
    };
    let uses_tls = address.starts_with("https://");
    if !uses_tls && *tls != ClientTls::default() {
        return Err(invalid("certificates need `https://host:port`"));
    }
    let has_scheme = uses_tls || address.starts_with("http://") || address.starts_with("unix:");
    let uri = if has_scheme {
        address.to_owned()
    } else {
        format!("http://{address}")
    };
    if !address.starts_with("unix:") {
        let parsed: http::Uri = uri.parse().map_err(|_| invalid("not a URI"))?;
        if parsed.port_u16().is_none() {
            return Err(invalid("the port is missing"));
        }
    }
    let endpoint = Endpoint::from_shared(uri).map_err(|error| invalid(&root_cause(&error)))?;
    if !uses_tls {
        return Ok(endpoint);
    }
    let endpoint = endpoint.tls_config(tls.config()?);
    endpoint.map_err(|error| {
        ConnectError(format!(
            "failed to load the certificates: {}",
            root_cause(&error)
        ))
    })
}

impl ClientTls {
    fn config(&self) -> Result<ClientTlsConfig, ConnectError> {
        let read = |path: &Path| {
            std::fs::read(path)
                .map_err(|error| ConnectError(format!("{}: {error}", path.display())))
        };
        let mut config = ClientTlsConfig::new();
        if let Some(ca) = &self.ca {
            config = config.ca_certificate(Certificate::from_pem(read(ca)?));
        }
        if let Some((cert, key)) = &self.identity {
            config = config.identity(Identity::from_pem(read(cert)?, read(key)?));
        }
        if let Some(name) = &self.server_name {
            config = config.domain_name(name);
        }
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed() {
        for valid in [
            "127.0.0.1:1",
            "localhost:1",
            "[::1]:1",
            "http://h:1",
            "https://h:1",
            "unix:/x",
            "unix:///x",
        ] {
            assert!(endpoint(valid, &ClientTls::default()).is_ok(), "{valid}");
        }
        for invalid in ["", "localhost", "https://h", "a b:1", "http://", "1"] {
            let error = endpoint(invalid, &ClientTls::default())
                .map(drop)
                .unwrap_err()
                .to_string();
            assert!(error.contains("host:port"), "{invalid}: {error}");
        }
    }
}

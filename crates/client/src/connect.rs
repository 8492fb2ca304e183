//! Addresses of servers, and connecting to them.

use std::path::{Path, PathBuf};

use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

/// Certificates for servers that speak TLS (`https://host:port`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientTls {
    /// The CA of the server's certificate, in PEM.
    pub ca: Option<PathBuf>,
    /// The caller's own certificate and its key, in PEM.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// The name in the server's certificate, where it is not that of the address.
    pub server_name: Option<String>,
}

/// Why there is no connection: a sentence that says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConnectError(pub(crate) String);

/// Connects to an endpoint at an address.
pub async fn connect(endpoint: &Endpoint, address: &str) -> Result<Channel, ConnectError> {
    endpoint.connect().await.map_err(|error| {
        ConnectError(format!(
            "no server answers at {address}: {}; is `entail serve` running there?",
            root_cause(&error)
        ))
    })
}

/// The endpoint of an address: `host:port`, `http://host:port`, `https://host:port` or `unix:PATH`.
pub fn endpoint(address: &str, tls: &ClientTls) -> Result<Endpoint, ConnectError> {
    let wrong = |why: &str| {
        ConnectError(format!(
            "`{address}` is no address of a server: {why}; write `host:port`, `https://host:port` \
             or `unix:PATH`"
        ))
    };
    let speaks_tls = address.starts_with("https://");
    if !speaks_tls && *tls != ClientTls::default() {
        return Err(wrong("certificates are for `https://host:port`"));
    }
    let is_whole = speaks_tls || address.starts_with("http://") || address.starts_with("unix:");
    let uri = if is_whole {
        address.to_owned()
    } else {
        format!("http://{address}")
    };
    if !address.starts_with("unix:") {
        let parsed: http::Uri = uri.parse().map_err(|_| wrong("it cannot be read"))?;
        if parsed.port_u16().is_none() {
            return Err(wrong("it lacks a port"));
        }
    }
    let endpoint = Endpoint::from_shared(uri).map_err(|error| wrong(&root_cause(&error)))?;
    if !speaks_tls {
        return Ok(endpoint);
    }
    let endpoint = endpoint.tls_config(tls.config()?);
    endpoint.map_err(|error| {
        ConnectError(format!(
            "certificates cannot be used: {}",
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

/// What lies behind an error: the outer ones of a transport say little.
fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        for good in [
            "127.0.0.1:1",
            "localhost:1",
            "[::1]:1",
            "http://h:1",
            "https://h:1",
            "unix:/x",
            "unix:///x",
        ] {
            assert!(endpoint(good, &ClientTls::default()).is_ok(), "{good}");
        }
        for bad in ["", "localhost", "https://h", "a b:1", "http://", "1"] {
            let error = endpoint(bad, &ClientTls::default())
                .map(drop)
                .unwrap_err()
                .to_string();
            assert!(error.contains("host:port"), "{bad}: {error}");
        }
    }
}

//! TLS certificates, reloaded when their files change. New connections use the current
//! certificates; open connections stay as long as the current CAs verify the client certificate, and
//! until it expires.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use tokio_rustls::rustls::{CertificateError, Error, RootCertStore, ServerConfig};
use webpki::{EndEntityCert, KeyUsage};

/// Interval at which the files are read.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// A time after the expiry of every certificate, in seconds: the year 10 000 and later.
const END_OF_TIME: u64 = 1 << 40;

/// Files of certificates and keys, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate of the server, followed by the intermediate certificates.
    pub cert: PathBuf,
    /// The private key of the server.
    pub key: PathBuf,
    /// The CAs that sign client certificates. Without it, clients need no certificate.
    pub client_ca: Option<PathBuf>,
}

/// What is spoken over TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpVersion {
    /// HTTP/1.1, of API servers that call a webhook.
    Http1,
    /// HTTP/2, of gRPC.
    Http2,
}

/// Error of loading certificates.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{path}: {source}")]
    File {
        /// The path of the file.
        path: String,
        /// The error of reading it.
        source: io::Error,
    },
    /// A file does not contain the expected PEM.
    #[error("{path}: {why}")]
    Content {
        /// The path of the file.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// The files do not match each other.
    #[error("the certificates cannot be used: {0}")]
    Unusable(String),
}

/// The certificates in use, and counters of their reloads.
#[derive(Debug)]
pub struct Certificates {
    files: TlsFiles,
    version: HttpVersion,
    current: ArcSwap<TlsContext>,
    reloads: AtomicU64,
    failures: AtomicU64,
}

/// The TLS configuration of one version of the files.
#[derive(Debug)]
pub(in crate::server) struct TlsContext {
    /// Number of the version; grows by one with every reload.
    pub generation: u64,
    pub config: Arc<ServerConfig>,
    verifier: Option<Arc<dyn ClientCertVerifier>>,
    expiries: Vec<(&'static str, u64)>,
    contents: TlsFileContents,
}

/// The contents of the files.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TlsFileContents {
    cert: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
}

impl HttpVersion {
    /// The name of the protocol in a handshake.
    fn protocol(self) -> &'static [u8] {
        match self {
            Self::Http1 => b"http/1.1",
            Self::Http2 => b"h2",
        }
    }
}

impl Certificates {
    /// Loads the files.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read or used.
    pub fn load(files: TlsFiles, version: HttpVersion) -> Result<Self, TlsError> {
        let trust = TlsContext::of(&files, TlsFileContents::read(&files)?, (1, version))?;
        Ok(Self {
            files,
            version,
            current: ArcSwap::from_pointee(trust),
            reloads: AtomicU64::new(0),
            failures: AtomicU64::new(0),
        })
    }

    /// Returns the current TLS configuration.
    pub(in crate::server) fn current(&self) -> Guard<Arc<TlsContext>> {
        self.current.load()
    }

    /// Returns how often changed files were loaded, and how often loading them failed.
    pub fn reloads(&self) -> (u64, u64) {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (read(&self.reloads), read(&self.failures))
    }

    /// Returns when the first certificate expires of those that the server presents (`server`), and of the CAs of clients
    /// (`client_ca`), in seconds since the Unix epoch.
    pub fn expiries(&self) -> Vec<(&'static str, u64)> {
        self.current.load().expiries.clone()
    }

    /// Reloads the files whenever they change, until the task is aborted. Changed files are loaded
    /// when two consecutive reads are equal, so that a rotation in progress is not loaded. Files
    /// that cannot be used are logged once, and the previous certificates stay in use.
    pub async fn watch_files(self: Arc<Self>) {
        let (mut previous, mut loaded) = (None, None);
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            let contents = TlsFileContents::read(&self.files).map_err(|error| error.to_string());
            let is_stable = previous.as_ref() == Some(&contents);
            previous = Some(contents.clone());
            if !is_stable || loaded.as_ref() == Some(&contents) {
                continue;
            }
            loaded = Some(contents.clone());
            match contents.and_then(|contents| self.reload(contents)) {
                Ok(false) => {}
                Ok(true) => {
                    self.reloads.fetch_add(1, Ordering::Relaxed);
                    tracing::info!("reloaded the certificates; new connections use them");
                }
                Err(error) => {
                    self.failures.fetch_add(1, Ordering::Relaxed);
                    tracing::warn!(
                        "failed to reload the certificates, keeping the previous ones: {error}"
                    );
                }
            }
        }
    }

    /// Uses other contents from now on. Returns `false` if they equal the current ones.
    fn reload(&self, contents: TlsFileContents) -> Result<bool, String> {
        let current = self.current.load();
        if contents == current.contents {
            return Ok(false);
        }
        let next = (current.generation + 1, self.version);
        let trust = TlsContext::of(&self.files, contents, next);
        let trust = trust.map_err(|error| error.to_string())?;
        self.current.store(Arc::new(trust));
        Ok(true)
    }
}

impl TlsFileContents {
    fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        let read = |path: &Path| {
            std::fs::read(path).map_err(|source| TlsError::File {
                path: path.display().to_string(),
                source,
            })
        };
        Ok(Self {
            cert: read(&files.cert)?,
            key: read(&files.key)?,
            client_ca: files.client_ca.as_deref().map(read).transpose()?,
        })
    }
}

impl TlsContext {
    fn of(
        files: &TlsFiles,
        contents: TlsFileContents,
        (generation, version): (u64, HttpVersion),
    ) -> Result<Self, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let expiries = expiries(files, &contents)?;
        let chain = certificates(&files.cert, &contents.cert)?;
        let key = PrivateKeyDer::from_pem_slice(&contents.key)
            .map_err(|error| content_error(&files.key, &format!("no private key: {error}")))?;
        let verifier = match (&files.client_ca, &contents.client_ca) {
            (Some(path), Some(bytes)) => Some(verifier(path, bytes, &provider)?),
            _ => None,
        };
        let unusable = |error: &dyn std::fmt::Display| TlsError::Unusable(error.to_string());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(&error))?;
        let config = match &verifier {
            Some(verifier) => config.with_client_cert_verifier(Arc::clone(verifier)),
            None => config.with_no_client_auth(),
        };
        let mut config = config
            .with_single_cert(chain, key)
            .map_err(|error| unusable(&error))?;
        config.alpn_protocols = vec![version.protocol().to_vec()];
        // A resumed session would not verify the client certificate again, even if it has expired.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Self {
            generation,
            config: Arc::new(config),
            verifier,
            expiries,
            contents,
        })
    }

    /// Reports whether the current CAs verify a client certificate chain. Always true if clients
    /// need no certificate.
    pub fn verifies(&self, certs: &[CertificateDer<'static>]) -> bool {
        let (Some(verifier), Some((certificate, intermediates))) =
            (&self.verifier, certs.split_first())
        else {
            return self.verifier.is_none();
        };
        let verified = verifier.verify_client_cert(certificate, intermediates, UnixTime::now());
        verified.is_ok()
    }

    /// Returns the time until a client certificate expires; `None` if it is not verified. Only the
    /// certificate itself counts: clients may send others that are not needed to verify it.
    pub fn remaining(&self, certificate: &CertificateDer<'static>) -> Option<Duration> {
        // The error of the verification at the end of all time has the time of expiry, which is
        // checked before signatures.
        let verified = self.verifier.as_ref()?.verify_client_cert(
            certificate,
            &[],
            UnixTime::since_unix_epoch(Duration::from_secs(END_OF_TIME)),
        );
        let Err(Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) =
            verified
        else {
            return None;
        };
        let remaining = not_after
            .as_secs()
            .saturating_sub(UnixTime::now().as_secs());
        // The last second counts.
        Some(Duration::from_secs(remaining.saturating_add(1)))
    }
}

/// Returns the first expiry of each file. A certificate whose time cannot be read is left out.
fn expiries(
    files: &TlsFiles,
    contents: &TlsFileContents,
) -> Result<Vec<(&'static str, u64)>, TlsError> {
    let mut read = vec![("server", certificates(&files.cert, &contents.cert)?)];
    if let (Some(path), Some(bytes)) = (&files.client_ca, &contents.client_ca) {
        read.push(("client_ca", certificates(path, bytes)?));
    }
    let first = |(name, chain): (_, Vec<_>)| Some((name, chain.iter().filter_map(expiry).min()?));
    Ok(read.into_iter().filter_map(first).collect())
}

/// Returns when a certificate expires, in seconds since the Unix epoch.
pub fn expiry(certificate: &CertificateDer<'static>) -> Option<u64> {
    // The parser tells the time of expiry only in the error of a verification after it, which it checks before anything
    // else.
    let certificate = EndEntityCert::try_from(certificate).ok()?;
    let verified = certificate.verify_for_usage(
        &[],
        &[],
        &[],
        UnixTime::since_unix_epoch(Duration::from_secs(END_OF_TIME)),
        KeyUsage::server_auth(),
        None,
        None,
    );
    match verified.map(drop) {
        Err(webpki::Error::CertExpired { not_after, .. }) => Some(not_after.as_secs()),
        _ => None,
    }
}

fn verifier(
    path: &Path,
    bytes: &[u8],
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path, bytes)? {
        let added = roots.add(certificate);
        added.map_err(|error| content_error(path, &format!("not a CA: {error}")))?;
    }
    let builder =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
    builder
        .build()
        .map_err(|error| content_error(path, &error.to_string()))
}

fn certificates(path: &Path, bytes: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let parsed: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(bytes).collect();
    match parsed {
        Ok(chain) if !chain.is_empty() => Ok(chain),
        Ok(_) => Err(content_error(path, "no certificate in the file")),
        Err(error) => Err(content_error(path, &format!("invalid PEM: {error}"))),
    }
}

fn content_error(path: &Path, why: &str) -> TlsError {
    TlsError::Content {
        path: path.display().to_string(),
        why: why.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, date_time_ymd};

    use super::*;

    /// A certificate that expires on the first day of a year, and its key.
    fn certificate(year: i32, is_ca: bool) -> (String, String) {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.not_after = date_time_ymd(year, 1, 1);
        if is_ca {
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        }
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    #[test]
    fn the_first_expiry_of_each_file_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        let (own, key) = certificate(2040, false);
        let cas = [2050, 2045].map(|year| certificate(year, true).0);
        fs::write(file("tls.crt"), own).unwrap();
        fs::write(file("tls.key"), key).unwrap();
        fs::write(file("ca.crt"), cas.concat()).unwrap();
        let mut files = TlsFiles {
            cert: file("tls.crt"),
            key: file("tls.key"),
            client_ca: Some(file("ca.crt")),
        };
        let year_2040 = 2_208_988_800;
        let year_2045 = 2_366_841_600;
        let certificates = Certificates::load(files.clone(), HttpVersion::Http2).unwrap();
        assert_eq!(
            certificates.expiries(),
            [("server", year_2040), ("client_ca", year_2045)]
        );
        // Others are loaded.
        let (own, key) = certificate(2045, false);
        fs::write(file("tls.crt"), own).unwrap();
        fs::write(file("tls.key"), key).unwrap();
        let contents = TlsFileContents::read(&files).unwrap();
        assert_eq!(certificates.reload(contents), Ok(true));
        assert_eq!(certificates.expiries()[0], ("server", year_2045));
        files.client_ca = None;
        let certificates = Certificates::load(files, HttpVersion::Http2).unwrap();
        assert_eq!(certificates.expiries(), [("server", year_2045)]);
    }
}

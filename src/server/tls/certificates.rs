//! Certificates of the server and of those who may call it, taken anew when their files change. Each
//! new connection meets what is valid now; open ones stay while their caller is trusted.

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
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

/// How often the files are looked at.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Files of certificates, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's certificate with those between it and its CA.
    pub cert: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// The CAs of those who may call; without it anybody may.
    pub client_ca: Option<PathBuf>,
}

/// Why certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// A file is no PEM of what it should be.
    #[error("{path}: {why}")]
    Content {
        /// Which.
        path: String,
        /// What is wrong.
        why: String,
    },
    /// The files do not go together.
    #[error("the certificates cannot be used: {0}")]
    Unusable(String),
}

/// The certificates in use.
#[derive(Debug)]
pub struct Certificates {
    files: TlsFiles,
    now: ArcSwap<TlsContext>,
    reloads: AtomicU64,
    failures: AtomicU64,
}

/// What is valid at one time.
#[derive(Debug)]
pub(in crate::server) struct TlsContext {
    /// Grows with every change.
    pub generation: u64,
    pub config: Arc<ServerConfig>,
    verifier: Option<Arc<dyn ClientCertVerifier>>,
    content: TlsFileContents,
}

/// The files' bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TlsFileContents {
    cert: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
}

impl Certificates {
    /// Reads the files.
    ///
    /// # Errors
    /// A file cannot be read or used.
    pub fn load(files: TlsFiles) -> Result<Self, TlsError> {
        let trust = TlsContext::of(&files, TlsFileContents::read(&files)?, 1)?;
        Ok(Self {
            files,
            now: ArcSwap::from_pointee(trust),
            reloads: AtomicU64::new(0),
            failures: AtomicU64::new(0),
        })
    }

    /// What is valid now.
    pub(in crate::server) fn current(&self) -> Guard<Arc<TlsContext>> {
        self.now.load()
    }

    /// How often changed files were taken into use, and how often they were refused.
    pub fn reloads(&self) -> (u64, u64) {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (read(&self.reloads), read(&self.failures))
    }

    /// Takes the files into use again and again, until the task is ended. Files count once two looks
    /// have found them the same, so that half of a rotation is none; those that cannot be used are
    /// told once and leave everything as it is.
    pub async fn watch_files(self: Arc<Self>) {
        let (mut seen, mut taken) = (None, None);
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            let found = TlsFileContents::read(&self.files).map_err(|error| error.to_string());
            let is_steady = seen.as_ref() == Some(&found);
            seen = Some(found.clone());
            if !is_steady || taken.as_ref() == Some(&found) {
                continue;
            }
            taken = Some(found.clone());
            match found.and_then(|content| self.take(content)) {
                Ok(false) => {}
                Ok(true) => {
                    self.reloads.fetch_add(1, Ordering::Relaxed);
                    tracing::info!("changed certificates are in use for new connections");
                }
                Err(error) => {
                    self.failures.fetch_add(1, Ordering::Relaxed);
                    tracing::warn!("changed certificates are refused, the last ones stay: {error}");
                }
            }
        }
    }

    /// Whether these are others than before, and in use now.
    fn take(&self, content: TlsFileContents) -> Result<bool, String> {
        let now = self.now.load();
        if content == now.content {
            return Ok(false);
        }
        let trust = TlsContext::of(&self.files, content, now.generation + 1);
        let trust = trust.map_err(|error| error.to_string())?;
        self.now.store(Arc::new(trust));
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
    fn of(files: &TlsFiles, content: TlsFileContents, generation: u64) -> Result<Self, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let chain = certificates(&files.cert, &content.cert)?;
        let key = PrivateKeyDer::from_pem_slice(&content.key)
            .map_err(|error| wrong(&files.key, &format!("no private key: {error}")))?;
        let verifier = match (&files.client_ca, &content.client_ca) {
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
        config.alpn_protocols = vec![b"h2".to_vec()];
        // A session that is taken up again would bring its certificate unverified, run out or not.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Self {
            generation,
            config: Arc::new(config),
            verifier,
            content,
        })
    }

    /// Whether a caller's certificate is still good.
    pub fn verifies(&self, certs: &[CertificateDer<'static>]) -> bool {
        let (Some(verifier), Some((own, between))) = (&self.verifier, certs.split_first()) else {
            // Nobody has to show one.
            return self.verifier.is_none();
        };
        let verified = verifier.verify_client_cert(own, between, UnixTime::now());
        verified.is_ok()
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
        added.map_err(|error| wrong(path, &format!("no CA: {error}")))?;
    }
    let builder =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
    builder
        .build()
        .map_err(|error| wrong(path, &error.to_string()))
}

fn certificates(path: &Path, bytes: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(bytes).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(wrong(path, "no certificate in it")),
        Err(error) => Err(wrong(path, &format!("no PEM: {error}"))),
    }
}

fn wrong(path: &Path, why: &str) -> TlsError {
    TlsError::Content {
        path: path.display().to_string(),
        why: why.to_owned(),
    }
}

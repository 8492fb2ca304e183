//! TLS: authentication of clients, permissions by certificate name, and reloads of certificates.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use entail::api::v1;
use entail::app::serve;
use entail::cli::health;
use entail::config::{ServeSettings, TlsFiles};
use entail_client::stubs::effective_policy_service_client::EffectivePolicyServiceClient;
use entail_client::stubs::policy_insight_service_client::PolicyInsightServiceClient;
use entail_client::{ClientTls, Mirror, MirrorSettings};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, Status};

use super::server::{PATH, by_path, world};

/// Maximum time until changed files are loaded.
const PATIENCE: Duration = Duration::from_secs(20);

/// A certificate authority.
pub struct Ca(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key.
#[derive(Clone)]
pub struct Pair {
    pub cert: String,
    pub key: String,
}

/// A server with TLS, and its files.
pub struct TlsServer {
    folder: TempDir,
    address: String,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Ca {
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Self(CertifiedIssuer::self_signed(params, key).unwrap())
    }

    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// Settings of a client that trusts this authority and speaks a protocol.
    pub fn client_config(&self, own: Option<&Pair>, protocol: &str) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        let root = CertificateDer::from_pem_slice(self.pem().as_bytes()).unwrap();
        roots.add(root).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match own {
            None => config.with_no_client_auth(),
            Some(Pair { cert, key }) => {
                let cert = CertificateDer::from_pem_slice(cert.as_bytes()).unwrap();
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
                config.with_client_auth_cert(vec![cert], key).unwrap()
            }
        };
        config.alpn_protocols = vec![protocol.into()];
        config
    }

    /// Signs a certificate for some names; names with `://` are URIs.
    pub fn sign(&self, names: &[&str]) -> Pair {
        self.sign_until(names, None)
    }

    /// Signs a certificate that expires at a time.
    pub fn sign_until(&self, names: &[&str], end: Option<SystemTime>) -> Pair {
        let (uris, hosts): (Vec<&str>, Vec<&str>) = names.iter().partition(|n| n.contains("://"));
        let hosts: Vec<String> = hosts.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(hosts).unwrap();
        let uris = uris
            .into_iter()
            .map(|uri| SanType::URI(uri.try_into().unwrap()));
        params.subject_alt_names.extend(uris);
        if let Some(end) = end {
            params.not_after = end.into();
        }
        let key = KeyPair::generate().unwrap();
        let cert = params.signed_by(&key, &self.0).unwrap();
        Pair {
            cert: cert.pem(),
            key: key.serialize_pem(),
        }
    }
}

impl TlsServer {
    pub async fn start(ca: &Ca, adjust: impl FnOnce(&mut ServeSettings)) -> Self {
        let folder = world();
        let own = folder.path().join("tls");
        std::fs::create_dir(&own).unwrap();
        write(&own, "ca.crt", &ca.0.pem());
        let pair = ca.sign(&["localhost"]);
        write(&own, "tls.crt", &pair.cert);
        write(&own, "tls.key", &pair.key);
        let mut settings = ServeSettings {
            listen: vec!["127.0.0.1:0".to_owned()],
            tls: Some(TlsFiles {
                cert: own.join("tls.crt"),
                key: own.join("tls.key"),
                client_ca: Some(own.join("ca.crt")),
            }),
            ..ServeSettings::default()
        };
        settings.inputs.manifests = vec![folder.path().to_owned()];
        adjust(&mut settings);
        let (sender, bound) = oneshot::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let bound = |addresses: &entail::app::BoundAddresses| {
                sender.send(addresses.all[0].to_string()).unwrap();
            };
            let stopped = async move { drop(stopped.await) };
            serve(settings, bound, stopped).await.unwrap();
        });
        let address = bound.await.unwrap();
        Self {
            folder,
            address,
            stop,
            task,
        }
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join("tls").join(name)
    }

    fn write(&self, name: &str, text: &str) {
        write(&self.folder.path().join("tls"), name, text);
    }

    pub async fn connect(&self, ca: &Ca, own: Option<&Pair>) -> Result<Channel, String> {
        self.connect_from([127, 0, 0, 1], ca, own).await
    }

    /// Connects from an address of loopback.
    async fn connect_from(
        &self,
        from: [u8; 4],
        ca: &Ca,
        own: Option<&Pair>,
    ) -> Result<Channel, String> {
        let mut tls = ClientTlsConfig::new()
            .ca_certificate(Certificate::from_pem(ca.0.pem()))
            .domain_name("localhost");
        if let Some(own) = own {
            tls = tls.identity(Identity::from_pem(&own.cert, &own.key));
        }
        let endpoint = Endpoint::from_shared(format!("https://{}", self.address)).unwrap();
        let endpoint = endpoint.local_address(Some(from.into()));
        let connected = endpoint.tls_config(tls).unwrap().connect().await;
        connected.map_err(|error| format!("{error:?}"))
    }

    /// Looks up a path over a new connection. With TLS 1.3, a client certificate is rejected only
    /// after the handshake of the client, so connecting is not enough.
    async fn get(&self, ca: &Ca, own: Option<&Pair>) -> Result<(), String> {
        let channel = self.connect(ca, own).await?;
        let result = get(&channel).await;
        result.map_err(|status| format!("{status:?}"))
    }

    /// Waits until look-ups over new connections succeed, or fail.
    pub async fn until(&self, ca: &Ca, own: &Pair, is_answered: bool) {
        let end = Instant::now() + PATIENCE;
        while self.get(ca, Some(own)).await.is_ok() != is_answered {
            assert!(Instant::now() < end, "answered: {}", !is_answered);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub async fn stop(self) {
        self.stop.send(()).unwrap();
        self.task.await.unwrap();
    }
}

async fn get(channel: &Channel) -> Result<(), Status> {
    let mut client = EffectivePolicyServiceClient::new(channel.clone());
    client.get_effective_policies(by_path(PATH)).await.map(drop)
}

async fn status(channel: &Channel) -> Result<(), Status> {
    let mut client = PolicyInsightServiceClient::new(channel.clone());
    let request = v1::GetServerStatusRequest {};
    client.get_server_status(request).await.map(drop)
}

/// Replaces a file by renaming, as mounted Secrets change.
fn write(folder: &Path, name: &str, text: &str) {
    let temporary = folder.join(format!("{name}.new"));
    std::fs::write(&temporary, text).unwrap();
    std::fs::rename(temporary, folder.join(name)).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn only_clients_with_a_certificate_of_the_ca_are_accepted() {
    let (ca, other) = (Ca::new(), Ca::new());
    let server = TlsServer::start(&ca, |_| {}).await;
    let caller = ca.sign(&["proxy.shop.svc"]);
    server.until(&ca, &caller, true).await;
    for own in [None, Some(&other.sign(&["proxy.shop.svc"]))] {
        let refused = server.get(&ca, own).await.unwrap_err();
        assert!(!refused.contains("PermissionDenied"), "{refused}");
    }
    // A client that trusts another CA rejects the server, and a client without TLS fails.
    server.get(&other, Some(&caller)).await.unwrap_err();
    let plain = Endpoint::from_shared(format!("http://{}", server.address)).unwrap();
    let is_rejected = match plain.connect().await {
        Ok(channel) => get(&channel).await.is_err(),
        Err(_) => true,
    };
    assert!(is_rejected);

    // The commands can use a client certificate.
    server.write("own.crt", &caller.cert);
    server.write("own.key", &caller.key);
    let tls = ClientTls {
        ca: Some(server.file("ca.crt")),
        identity: Some((server.file("own.crt"), server.file("own.key"))),
        server_name: Some("localhost".to_owned()),
    };
    let address = format!("https://{}", server.address);
    let is_healthy = tokio::task::spawn_blocking(move || health(&address, &tls, "", PATIENCE));
    assert!(is_healthy.await.unwrap().unwrap());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_name_what_is_wrong_with_certificates() {
    let (ca, other) = (Ca::new(), Ca::new());
    let server = TlsServer::start(&ca, |_| {}).await;
    server.until(&ca, &ca.sign(&["a"]), true).await;
    let stranger = other.sign(&["a"]);
    server.write("other.crt", &other.pem());
    server.write("stranger.crt", &stranger.cert);
    server.write("stranger.key", &stranger.key);
    let strange = (server.file("stranger.crt"), server.file("stranger.key"));
    let cases = [
        (
            "ca.crt",
            None,
            "localhost",
            ["a client certificate", "--tls-cert"],
        ),
        (
            "ca.crt",
            Some(strange),
            "localhost",
            ["client certificate", "--tls-cert"],
        ),
        (
            "other.crt",
            None,
            "localhost",
            ["not signed by a known CA", "--tls-ca"],
        ),
        (
            "ca.crt",
            None,
            "elsewhere",
            ["certificate of the server is not valid", "elsewhere"],
        ),
    ];
    for (ca, identity, name, expected) in cases {
        let tls = ClientTls {
            ca: Some(server.file(ca)),
            identity,
            server_name: Some(name.to_owned()),
        };
        // The alert of the server arrives during the first call, or before it, or is lost.
        for _ in 0..8 {
            let (address, tls) = (format!("https://{}", server.address), tls.clone());
            let failed = tokio::task::spawn_blocking(move || health(&address, &tls, "", PATIENCE));
            let error = failed.await.unwrap().unwrap_err().to_string();
            for expected in expected {
                assert!(error.contains(expected), "{error}");
            }
        }
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_in_certificates_select_the_permitted_services() {
    let ca = Ca::new();
    let server = TlsServer::start(&ca, |settings| {
        settings.data_plane_sans = vec!["*.shop.svc".to_owned()];
        settings.insight_sans = vec!["spiffe://a/ns/people/*".to_owned()];
    })
    .await;
    let proxy = ca.sign(&["proxy.shop.svc"]);
    server.until(&ca, &proxy, true).await;
    let cases = [
        (proxy, (Code::Ok, Code::PermissionDenied)),
        (
            ca.sign(&["spiffe://a/ns/people/sa/x"]),
            (Code::PermissionDenied, Code::Ok),
        ),
        (
            ca.sign(&["proxy.shop.svc", "spiffe://a/ns/people/sa/x"]),
            (Code::Ok, Code::Ok),
        ),
        (
            ca.sign(&["proxy.shop.svc.evil"]),
            (Code::PermissionDenied, Code::PermissionDenied),
        ),
    ];
    for (own, expected) in cases {
        let channel = server.connect(&ca, Some(&own)).await.unwrap();
        let code =
            |result: Result<(), Status>| result.map_or_else(|status| status.code(), |()| Code::Ok);
        let codes = (code(get(&channel).await), code(status(&channel).await));
        assert_eq!(codes, expected);
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_rotated_without_a_failed_look_up() {
    let (old, new) = (Ca::new(), Ca::new());
    let server = TlsServer::start(&old, |_| {}).await;
    let (before, after) = (old.sign(&["proxy.svc"]), new.sign(&["proxy.svc"]));
    server.until(&old, &before, true).await;
    let open = server.connect(&old, Some(&before)).await.unwrap();
    get(&open).await.unwrap();
    server.until(&old, &after, false).await;

    // A malformed certificate changes nothing.
    server.write(
        "tls.crt",
        "-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n",
    );
    tokio::time::sleep(Duration::from_secs(3)).await;
    server.get(&old, Some(&before)).await.unwrap();

    // First trust both CAs, then use a server certificate of the new one, then trust only the new
    // one.
    server.write("ca.crt", &format!("{}{}", old.0.pem(), new.0.pem()));
    let pair = new.sign(&["localhost"]);
    server.write("tls.crt", &pair.cert);
    server.write("tls.key", &pair.key);
    server.until(&new, &after, true).await;
    get(&open).await.unwrap();
    server.get(&new, Some(&before)).await.unwrap();

    server.write("ca.crt", &new.0.pem());
    server.until(&new, &before, false).await;
    server.get(&new, Some(&after)).await.unwrap();
    // Open connections with a certificate of the old CA are rejected.
    let refused = get(&open).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated, "{refused:?}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_files_are_errors_at_the_start() {
    let folder = world();
    let pair = Ca::new().sign(&["localhost"]);
    write(folder.path(), "tls.crt", &pair.cert);
    write(folder.path(), "tls.key", &pair.cert);
    let mut settings = ServeSettings {
        listen: vec!["127.0.0.1:0".to_owned()],
        tls: Some(TlsFiles {
            cert: folder.path().join("tls.crt"),
            key: folder.path().join("tls.key"),
            client_ca: None,
        }),
        ..ServeSettings::default()
    };
    settings.inputs.manifests = vec![folder.path().to_owned()];
    let error = serve(settings.clone(), |_| {}, std::future::pending()).await;
    let message = error.unwrap_err().to_string();
    assert!(message.contains("tls.key: no private key"), "{message}");
    let other = Ca::new().sign(&["localhost"]);
    write(folder.path(), "tls.key", &other.key);
    let error = serve(settings, |_| {}, std::future::pending()).await;
    let message = error.unwrap_err().to_string();
    assert!(message.contains("cannot be used"), "{message}");
}

/// Before, a connection outlived the certificate of its client.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_ends_when_its_certificate_expires() {
    let ca = Ca::new();
    let server = TlsServer::start(&ca, |_| {}).await;
    let lasting = ca.sign(&["neighbour.svc"]);
    server.until(&ca, &lasting, true).await;
    let neighbour = server.connect(&ca, Some(&lasting)).await.unwrap();
    let end = SystemTime::now() + Duration::from_secs(3);
    let brief = ca.sign_until(&["proxy.svc"], Some(end));
    let open = server.connect(&ca, Some(&brief)).await.unwrap();
    get(&open).await.unwrap();
    // After GOAWAY the client connects again, which fails.
    let patience = Instant::now() + PATIENCE;
    while get(&open).await.is_ok() {
        assert!(Instant::now() < patience, "the connection does not end");
        get(&neighbour).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    get(&neighbour).await.unwrap();
    server.stop().await;
}

/// Before, a mirror connected with the certificate of its start for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_mirror_connects_with_its_renewed_certificate() {
    let ca = Ca::new();
    let server = TlsServer::start(&ca, |settings| {
        settings.limits.connection_grace = Duration::from_millis(100);
    })
    .await;
    server.until(&ca, &ca.sign(&["proxy.svc"]), true).await;
    let folder = tempfile::tempdir().unwrap();
    let end = SystemTime::now() + Duration::from_secs(3);
    let brief = ca.sign_until(&["proxy.svc"], Some(end));
    write(folder.path(), "ca.crt", &ca.pem());
    write(folder.path(), "tls.crt", &brief.cert);
    write(folder.path(), "tls.key", &brief.key);
    let mirror = Mirror::follow(MirrorSettings {
        server: format!("https://{}", server.address),
        tls: ClientTls {
            ca: Some(folder.path().join("ca.crt")),
            identity: Some((folder.path().join("tls.crt"), folder.path().join("tls.key"))),
            server_name: Some("localhost".to_owned()),
        },
        ..MirrorSettings::default()
    });
    let mirror = mirror.unwrap();
    mirror.ready().await;
    let wait = async |is_connected: bool| {
        let patience = Instant::now() + PATIENCE;
        while mirror.is_connected() != is_connected {
            assert!(Instant::now() < patience, "connected: {}", !is_connected);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    wait(true).await;
    wait(false).await;
    let renewed = ca.sign(&["proxy.svc"]);
    write(folder.path(), "tls.crt", &renewed.cert);
    write(folder.path(), "tls.key", &renewed.key);
    wait(true).await;
    server.stop().await;
}

/// Counts the connections of one certificate, from addresses that have fewer than their own share.
#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_has_a_share_of_connections() {
    let ca = Ca::new();
    let server = TlsServer::start(&ca, |settings| settings.limits.connections_per_client = 5).await;
    let (greedy, other) = (ca.sign(&["greedy.svc"]), ca.sign(&["other.svc"]));
    server.until(&ca, &other, true).await;
    let mut open = Vec::new();
    for last in [1, 1, 1, 2, 2] {
        let from = [127, 0, 0, last];
        let channel = server.connect_from(from, &ca, Some(&greedy)).await;
        let channel = channel.unwrap();
        get(&channel).await.unwrap();
        open.push(channel);
    }
    let more = server
        .connect_from([127, 0, 0, 3], &ca, Some(&greedy))
        .await;
    let answered = match &more {
        Ok(channel) => get(channel).await.is_ok(),
        Err(_) => false,
    };
    assert!(!answered);
    let others = server.connect_from([127, 0, 0, 3], &ca, Some(&other)).await;
    get(&others.unwrap()).await.unwrap();
    for channel in &open {
        get(channel).await.unwrap();
    }
    server.stop().await;
}

/// Handshakes that do not end, and such that send a byte now and then, take no place for longer than
/// the time for a handshake, and no newcomer's place meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn handshakes_that_do_not_end_are_ended() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let ca = Ca::new();
    let server = TlsServer::start(&ca, |settings| {
        settings.limits.connections_per_client = 100;
        settings.limits.connection_setup = Duration::from_secs(2);
    })
    .await;
    let caller = ca.sign(&["caller.svc"]);
    server.until(&ca, &caller, true).await;
    // The begin of a record with a ClientHello of 508 bytes.
    let begin = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xFC, 3, 3];
    let mut held = Vec::new();
    for number in 0..300 {
        let mut stream = tokio::net::TcpStream::connect(&server.address)
            .await
            .unwrap();
        let sent = begin.get(..number % begin.len()).unwrap();
        stream.write_all(sent).await.unwrap();
        held.push(stream);
        if number % 50 == 0 {
            server.get(&ca, Some(&caller)).await.unwrap();
        }
    }
    let end = Instant::now() + PATIENCE;
    for stream in &mut held {
        // An end or an error: the server has closed the connection although bytes arrive.
        loop {
            assert!(Instant::now() < end, "a handshake is still under way");
            let _sent = stream.write_all(&[0]).await;
            let wait = Duration::from_millis(300);
            match tokio::time::timeout(wait, stream.read(&mut [0; 64])).await {
                Ok(Ok(length)) if length > 0 => {}
                Ok(_) => break,
                Err(_) => {}
            }
        }
    }
    server.get(&ca, Some(&caller)).await.unwrap();
    server.stop().await;
}

/// Returns the first frame of the server for a caller whose HTTP/2 preface arrives in one piece with the end of its
/// handshake.
fn first_frame(mut tls: ClientConnection, address: &str) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let receive = |tls: &mut ClientConnection, stream: &mut TcpStream| {
        if tls.read_tls(stream)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        tls.process_new_packets().map_err(std::io::Error::other)
    };
    while tls.is_handshaking() {
        while tls.wants_write() {
            tls.write_tls(&mut stream)?;
        }
        receive(&mut tls, &mut stream)?;
    }
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    tls.writer()
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")?;
    tls.writer().write_all(&settings)?;
    let mut piece = Vec::new();
    while tls.wants_write() {
        tls.write_tls(&mut piece)?;
    }
    stream.write_all(&piece)?;
    let mut frame = vec![0; settings.len()];
    while receive(&mut tls, &mut stream)?.plaintext_bytes_to_read() < frame.len() {}
    tls.reader().read_exact(&mut frame)?;
    Ok(frame)
}

/// HTTP/2 begins when the socket has bytes. What the handshake has read is not in it any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_preface_that_arrives_with_the_handshake_is_answered() {
    let ca = Ca::new();
    let server = TlsServer::start(&ca, |_| {}).await;
    let own = ca.sign(&["caller.svc"]);
    let config = Arc::new(ca.client_config(Some(&own), "h2"));
    let tls = ClientConnection::new(config, "localhost".try_into().unwrap()).unwrap();
    let address = server.address.clone();
    let frame = tokio::task::spawn_blocking(move || first_frame(tls, &address));
    let frame = frame.await.unwrap().unwrap();
    assert_eq!(frame.get(3), Some(&4), "no SETTINGS frame: {frame:?}");
    server.stop().await;
}

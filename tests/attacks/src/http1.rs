//! HTTP/1.1 by hand, over TLS and without: for the admission webhook and the console.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// A listener that speaks HTTP/1.1.
#[derive(Clone)]
pub struct Endpoint {
    /// The address.
    pub address: SocketAddr,
    tls: Option<TlsConnector>,
}

/// What is read and written: a TCP connection, with TLS or without.
pub trait Socket: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Socket for S {}

/// An open connection.
pub type Stream = Box<dyn Socket>;

/// Addresses of loopback to connect from. Newcomers come from the first one, attackers from others.
pub const HOME: u8 = 0;
/// See [`HOME`].
pub const AWAY: u8 = 2;

/// A response, read to its end.
#[derive(Clone, Debug)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// The status line and headers, in lower case.
    pub head: String,
    /// The body, without the frame of chunks.
    pub body: Vec<u8>,
}

/// A client that trusts one certificate.
pub fn trusting(certificate: &CertificateDer<'static>) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

impl Endpoint {
    /// A listener at an address.
    pub fn new(address: SocketAddr, tls: Option<TlsConnector>) -> Self {
        Self { address, tls }
    }

    /// Connects from the address 127.0.`from`.1, with a TLS handshake if the listener has TLS.
    pub async fn connect(&self, from: u8) -> Result<Stream, String> {
        let open = async {
            let socket = TcpSocket::new_v4()?;
            socket.bind((Ipv4Addr::new(127, 0, from, 1), 0).into())?;
            let stream = socket.connect(self.address).await?;
            stream.set_nodelay(true)?;
            let stream: Stream = match &self.tls {
                None => Box::new(stream),
                Some(tls) => {
                    let name = "localhost".try_into().unwrap();
                    Box::new(tls.connect(name, stream).await?)
                }
            };
            std::io::Result::Ok(stream)
        };
        open.await.map_err(|error| error.to_string())
    }

    /// Sends a request on a connection of its own and reads the response.
    pub async fn ask(&self, from: u8, request: &[u8]) -> Result<Response, String> {
        let mut stream = self.connect(from).await?;
        exchange(&mut stream, request).await
    }
}

/// Sends a request and reads the response.
pub async fn exchange(stream: &mut Stream, request: &[u8]) -> Result<Response, String> {
    // A server may answer before it has read all.
    let written = stream.write_all(request).await;
    let written = match written {
        Ok(()) => stream.flush().await,
        error => error,
    };
    let response = Response::read(stream).await;
    response.map_err(|error| match written {
        Err(written) => format!("{written}, {error}"),
        Ok(()) => error,
    })
}

/// A request with a body of known length, and more headers, one a line.
pub fn post(path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n{headers}\r\n"
    );
    [head.as_bytes(), body].concat()
}

impl Response {
    /// Reads one response.
    pub async fn read(stream: &mut Stream) -> Result<Self, String> {
        let mut bytes = Vec::new();
        let end = loop {
            if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            more(stream, &mut bytes).await?;
        };
        let mut body = bytes.split_off(end);
        let head = String::from_utf8_lossy(&bytes).to_lowercase();
        let status = head.split(' ').nth(1).and_then(|text| text.parse().ok());
        let status = status.ok_or_else(|| "no status line".to_owned())?;
        let header = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
        if let Some(length) = header("content-length: ") {
            let length: usize = length.trim().parse().unwrap();
            while body.len() < length {
                more(stream, &mut body).await?;
            }
        } else if header("transfer-encoding: chunked").is_some() {
            body = chunks(stream, body).await?;
        }
        Ok(Self { status, head, body })
    }
}

async fn more(stream: &mut Stream, bytes: &mut Vec<u8>) -> Result<(), String> {
    match stream.read_buf(bytes).await {
        Ok(0) => Err("closed".to_owned()),
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// Reads chunks to the last one.
async fn chunks(stream: &mut Stream, mut bytes: Vec<u8>) -> Result<Vec<u8>, String> {
    let (mut body, mut at) = (Vec::new(), 0);
    loop {
        let line = bytes[at..].windows(2).position(|two| two == b"\r\n");
        let Some(line) = line else {
            more(stream, &mut bytes).await?;
            continue;
        };
        let digits = String::from_utf8_lossy(&bytes[at..at + line]).into_owned();
        let length = usize::from_str_radix(&digits, 16).map_err(|error| error.to_string())?;
        let from = at + line + 2;
        while bytes.len() < from + length + 2 {
            more(stream, &mut bytes).await?;
        }
        if length == 0 {
            return Ok(body);
        }
        body.extend_from_slice(&bytes[from..from + length]);
        at = from + length + 2;
    }
}

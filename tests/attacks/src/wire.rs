//! Connections, requests and frames, without the manners of a gRPC library.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use h2::SendStream;
use h2::client::{ResponseFuture, SendRequest};
use http::{HeaderMap, Request};
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

/// Sends requests on a connection.
pub type Requests = SendRequest<Bytes>;

/// Methods of the services.
pub const GET: &str = "/entail.v1.EffectivePolicyService/GetEffectivePolicies";
/// See [`GET`].
pub const BATCH: &str = "/entail.v1.EffectivePolicyService/BatchGetEffectivePolicies";
/// See [`GET`].
pub const WATCH: &str = "/entail.v1.EffectivePolicyService/WatchEffectivePolicies";
/// See [`GET`].
pub const RESOLVE: &str = "/entail.v1.EffectivePolicyService/ResolveRequest";
/// See [`GET`].
pub const HEALTH: &str = "/grpc.health.v1.Health/Check";
/// See [`GET`].
pub const REFLECTION: &str = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
/// See [`GET`].
pub const CHECK: &str = "/envoy.service.auth.v3.Authorization/Check";

/// The method of PolicyInsightService.
pub fn insight(method: &str) -> String {
    format!("/entail.v1.PolicyInsightService/{method}")
}

/// A reply, read to its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// The HTTP status.
    pub http: u16,
    /// `grpc-status`, from the trailers or the headers.
    pub grpc: Option<String>,
    /// `grpc-message`.
    pub message: String,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Vec<u8>,
}

/// Connects with the usual windows.
pub async fn connect(address: SocketAddr) -> Result<Requests, String> {
    connect_with(address, &h2::client::Builder::new()).await
}

/// Connects with settings of HTTP/2.
pub async fn connect_with(
    address: SocketAddr,
    settings: &h2::client::Builder,
) -> Result<Requests, String> {
    let socket = TcpStream::connect(address)
        .await
        .map_err(|e| e.to_string())?;
    socket.set_nodelay(true).map_err(|e| e.to_string())?;
    let (requests, connection) = settings
        .handshake(socket)
        .await
        .map_err(|e| e.to_string())?;
    tokio::spawn(async move {
        // An attack whose connection ends is weaker than it says.
        if let Err(error) = connection.await {
            eprintln!("    connection ended: {error}");
        }
    });
    Ok(requests)
}

/// A client whose streams have a window of one byte, so that no reply is delivered.
pub fn one_byte_window() -> h2::client::Builder {
    let mut settings = h2::client::Builder::new();
    settings
        .initial_window_size(1)
        .max_concurrent_reset_streams(100_000);
    settings
}

/// A request of a method, as gRPC requires it.
pub fn request(method: &str) -> Request<()> {
    Request::post(format!("http://entail{method}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())
        .unwrap()
}

/// Opens a stream for a request whose message is sent later.
pub async fn open(
    connection: &Requests,
    method: &str,
) -> Result<(ResponseFuture, SendStream<Bytes>), String> {
    let open = async {
        let mut ready = connection.clone().ready().await?;
        ready.send_request(request(method), false)
    };
    open.await.map_err(|error| error.to_string())
}

/// The frame of a message.
pub fn message(message: &impl Message) -> Bytes {
    bytes_of(&message.encode_to_vec())
}

/// The frame of an encoded message.
pub fn bytes_of(message: &[u8]) -> Bytes {
    let length = u32::try_from(message.len()).unwrap();
    [&[0], &length.to_be_bytes()[..], message].concat().into()
}

/// Sends a request and reads its reply, within a time.
pub async fn call(
    requests: &Requests,
    method: &str,
    body: Bytes,
    limit: Duration,
) -> Result<Reply, String> {
    send(requests, request(method), body, limit).await
}

/// Sends a request with headers of its own and reads its reply, within a time.
pub async fn send(
    requests: &Requests,
    request: Request<()>,
    body: Bytes,
    limit: Duration,
) -> Result<Reply, String> {
    let reply = timeout(limit, exchange(requests.clone(), request, body)).await;
    match reply {
        Ok(Ok(reply)) => Ok(reply),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no reply within {} s", limit.as_secs())),
    }
}

async fn exchange(
    requests: Requests,
    request: Request<()>,
    body: Bytes,
) -> Result<Reply, h2::Error> {
    let mut requests = requests.ready().await?;
    let (reply, mut sending) = requests.send_request(request, body.is_empty())?;
    if !body.is_empty() {
        sending.send_data(body, true)?;
    }
    let (parts, mut body) = reply.await?.into_parts();
    let mut read = Vec::new();
    while let Some(data) = body.data().await {
        let data = data?;
        body.flow_control().release_capacity(data.len())?;
        read.extend_from_slice(&data);
    }
    let trailers = body.trailers().await?.unwrap_or_default();
    let header = |name: &str| {
        let value = trailers.get(name).or_else(|| parts.headers.get(name))?;
        Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    Ok(Reply {
        http: parts.status.as_u16(),
        grpc: header("grpc-status"),
        message: header("grpc-message").unwrap_or_default(),
        headers: parts.headers.clone(),
        body: read,
    })
}

impl Reply {
    /// Decodes the message if the call succeeded.
    pub fn decode<M: Message + Default>(&self) -> Result<M, String> {
        if self.grpc.as_deref() != Some("0") {
            let code = self.grpc.as_deref().unwrap_or("none");
            return Err(format!("status {code}: {}", self.message));
        }
        let body = self.body.get(5..).unwrap_or_default();
        M::decode(body).map_err(|error| error.to_string())
    }

    /// The outcome in a few words.
    pub fn outcome(&self) -> String {
        match self.grpc.as_deref() {
            Some("0") => format!("OK, {} bytes", self.body.len()),
            Some(code) => {
                let message: String = self.message.chars().take(80).collect();
                format!("status {code} {message}")
            }
            None => format!("HTTP {} without grpc-status", self.http),
        }
    }
}

/// What a connection of hand-made frames has received.
#[derive(Clone, Copy, Debug, Default)]
pub struct Received {
    /// Bytes.
    pub bytes: u64,
    /// Whether the server closed the connection.
    pub is_closed: bool,
    /// The error code of a GOAWAY frame.
    pub goaway: Option<u32>,
}

/// A connection on which frames are written by hand.
pub struct RawConnection {
    write: tokio::net::tcp::OwnedWriteHalf,
    read: Option<JoinHandle<Received>>,
    /// Kept open and never read.
    _unread: Option<tokio::net::tcp::OwnedReadHalf>,
}

impl RawConnection {
    /// Connects, and sends the preface and empty settings. Without `is_read`, nothing is read.
    pub async fn open(address: SocketAddr, is_read: bool) -> Result<Self, String> {
        let socket = TcpStream::connect(address)
            .await
            .map_err(|e| e.to_string())?;
        let (read, write) = socket.into_split();
        let (read, unread) = if is_read {
            (Some(tokio::spawn(drain(read))), None)
        } else {
            (None, Some(read))
        };
        let mut this = Self {
            write,
            read,
            _unread: unread,
        };
        let mut preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        preface.extend(frame(4, 0, 0, &[]));
        this.write(&preface).await?;
        Ok(this)
    }

    /// Writes bytes, or fails if the server has closed the connection.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.write.write_all(bytes).await.map_err(|e| e.to_string())
    }

    /// Writes the batches of a function until it returns `None`, the server closes the connection, or
    /// the time is over. Returns the number of bytes and how it ended.
    pub async fn flood(
        &mut self,
        limit: Duration,
        mut next: impl FnMut() -> Option<Vec<u8>>,
    ) -> (u64, &'static str) {
        let (end, mut sent) = (Instant::now() + limit, 0);
        while let Some(bytes) = next() {
            match tokio::time::timeout_at(end, self.write(&bytes)).await {
                Err(_) => return (sent, "not read in time"),
                Ok(Err(_)) => return (sent, "closed by the server"),
                Ok(Ok(())) => sent += bytes.len() as u64,
            }
            if Instant::now() > end {
                return (sent, "time over");
            }
        }
        (sent, "all sent")
    }

    /// Closes the sending half and returns what was received within a short time.
    pub async fn close(mut self) -> Received {
        let _closed = self.write.shutdown().await;
        match self.read {
            None => Received::default(),
            Some(read) => timeout(Duration::from_secs(2), read)
                .await
                .map_or_else(|_| Received::default(), |read| read.unwrap_or_default()),
        }
    }
}

/// Reads frames until the connection ends.
async fn drain(mut read: tokio::net::tcp::OwnedReadHalf) -> Received {
    let mut received = Received::default();
    let mut payload = Vec::new();
    let mut head = [0; 9];
    while read.read_exact(&mut head).await.is_ok() {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        payload.resize(length as usize, 0);
        if read.read_exact(&mut payload).await.is_err() {
            break;
        }
        received.bytes += 9 + u64::from(length);
        if head[3] == 7
            && let Some(code) = payload.get(4..8)
        {
            received.goaway = Some(u32::from_be_bytes([code[0], code[1], code[2], code[3]]));
        }
    }
    received.is_closed = true;
    received
}

/// A frame of HTTP/2.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, flags];
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// A header without compression and without an entry in the table.
pub fn literal(name: &str, value: &str) -> Vec<u8> {
    let mut bytes = vec![0];
    for text in [name, value] {
        // An integer with a prefix of seven bits.
        if text.len() < 127 {
            bytes.push(u8::try_from(text.len()).unwrap());
        } else {
            bytes.push(127);
            let mut rest = text.len() - 127;
            while rest >= 128 {
                bytes.push(u8::try_from(rest % 128).unwrap() | 128);
                rest /= 128;
            }
            bytes.push(u8::try_from(rest).unwrap());
        }
        bytes.extend(text.as_bytes());
    }
    bytes
}

/// The headers of a call of a method.
pub fn header_block(method: &str) -> Vec<u8> {
    [
        literal(":method", "POST"),
        literal(":scheme", "http"),
        literal(":authority", "entail"),
        literal(":path", method),
        literal("content-type", "application/grpc"),
        literal("te", "trailers"),
    ]
    .concat()
}

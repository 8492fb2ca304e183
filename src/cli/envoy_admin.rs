//! Fetches the configuration of an Envoy from its admin interface, as a stream.

use std::future::poll_fn;
use std::io::{self, Read};
use std::pin::Pin;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use bytes::{Buf, Bytes};
use http::{Request, StatusCode, Uri, header};
use http_body::Body;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::CliError;

/// How long to wait for a connection, for the reply, and for each part of it.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The most parts of the reply that wait to be read.
const PARTS: usize = 16;

/// The port of the admin interface of Envoy Gateway's proxies, if the address has none.
const PORT: u16 = 19_000;

/// The body of a reply, read while it arrives.
#[derive(Debug)]
pub(super) struct DumpReader {
    parts: Receiver<io::Result<Bytes>>,
    current: Bytes,
}

impl DumpReader {
    /// Requests `/config_dump` of an admin address: `http://HOST:PORT`, or `HOST:PORT`.
    ///
    /// # Errors
    /// The address is malformed. Everything else is an error of the reader.
    pub(super) fn fetch(address: &str) -> Result<Self, CliError> {
        let authority = authority(address)?;
        let (sender, parts) = sync_channel(PARTS);
        // The JSON reader blocks, so the connection is driven by a thread of its own. It ends when the reply ends, or
        // when the reader is gone.
        std::thread::Builder::new()
            .name("envoy-admin".to_owned())
            .spawn(move || {
                if let Err(error) = run(&authority, &sender) {
                    // The reader may be gone already.
                    let _ = sender.send(Err(error));
                }
            })
            .map_err(|error| CliError::Unreadable(format!("failed to start a thread: {error}")))?;
        Ok(Self {
            parts,
            current: Bytes::new(),
        })
    }
}

impl Read for DumpReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() {
            match self.parts.recv() {
                Ok(part) => self.current = part?,
                Err(_) => return Ok(0),
            }
        }
        let size = buffer.len().min(self.current.len());
        if let Some(buffer) = buffer.get_mut(..size) {
            self.current.copy_to_slice(buffer);
        }
        Ok(size)
    }
}

/// The host and port of an address.
fn authority(address: &str) -> Result<String, CliError> {
    let wrong = |why: &str| {
        CliError::Usage(format!(
            "`--admin {address}`: {why}; use `http://HOST:PORT`"
        ))
    };
    if address.starts_with("https://") {
        return Err(wrong("Envoy's admin interface speaks no TLS"));
    }
    let rest = address.strip_prefix("http://").unwrap_or(address);
    let uri: Uri = rest
        .trim_end_matches('/')
        .parse()
        .map_err(|_| wrong("malformed address"))?;
    if !matches!(uri.path(), "" | "/") {
        return Err(wrong("the address has a path"));
    }
    let authority = uri.authority().ok_or_else(|| wrong("malformed address"))?;
    let port = authority.port_u16().unwrap_or(PORT);
    Ok(format!("{}:{port}", authority.host()))
}

fn run(authority: &str, parts: &SyncSender<io::Result<Bytes>>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(request(authority, parts))
}

async fn request(authority: &str, parts: &SyncSender<io::Result<Bytes>>) -> io::Result<()> {
    let failed = |what: &str, why: &dyn std::fmt::Display| {
        io::Error::other(format!("the admin interface at {authority} {what}: {why}"))
    };
    let late = || {
        io::Error::other(format!(
            "the admin interface at {authority} does not answer within {} s",
            TIMEOUT.as_secs()
        ))
    };
    let stream = timeout(TIMEOUT, TcpStream::connect(authority))
        .await
        .map_err(|_| late())?;
    let stream = stream.map_err(|error| failed("is not reachable", &error))?;
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|error| failed("failed", &error))?;
    let driver = tokio::spawn(connection);
    let request = Request::get("/config_dump")
        .header(header::HOST, authority)
        .body(String::new())
        .map_err(|error| failed("failed", &error))?;
    let reply = timeout(TIMEOUT, sender.send_request(request))
        .await
        .map_err(|_| late())?;
    let reply = reply.map_err(|error| failed("failed", &error))?;
    if reply.status() != StatusCode::OK {
        return Err(failed("refused the request", &reply.status()));
    }
    let mut body = reply.into_body();
    loop {
        let frame = poll_fn(|context| Pin::new(&mut body).poll_frame(context));
        let Some(frame) = timeout(TIMEOUT, frame).await.map_err(|_| late())? else {
            break;
        };
        let frame = frame.map_err(|error| failed("failed", &error))?;
        if let Ok(data) = frame.into_data()
            && parts.send(Ok(data)).is_err()
        {
            break;
        }
    }
    driver.abort();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_host_and_a_port() {
        for (address, expected) in [
            ("http://127.0.0.1:9901", "127.0.0.1:9901"),
            ("http://127.0.0.1:9901/", "127.0.0.1:9901"),
            ("localhost:9901", "localhost:9901"),
            ("http://[::1]:9901", "[::1]:9901"),
            ("http://localhost", "localhost:19000"),
        ] {
            assert_eq!(authority(address).unwrap(), expected);
        }
        for address in ["https://localhost:1", "http://a/b", "", "http://"] {
            assert!(authority(address).is_err(), "{address}");
        }
    }
}

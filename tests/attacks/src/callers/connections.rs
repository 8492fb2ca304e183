//! Connections that say nothing.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

use crate::run::{Attack, Outcome};
use crate::target::Target;

/// The attacks of this family.
pub const ATTACKS: &[Attack] = &[
    ("d-silent-connections", |target| {
        Box::pin(silent(target.addresses().data))
    }),
    ("d-preface-only", |target| {
        Box::pin(preface_only(target.addresses().data))
    }),
    ("d-silent-health", |target| {
        Box::pin(silent(target.addresses().health))
    }),
    ("d-silent-admin", |target| Box::pin(silent_admin(target))),
];

/// One more than the server accepts.
const CONNECTIONS: usize = 10_001;

/// Opens connections until no more are allowed.
async fn open(address: SocketAddr, count: usize, first: &[u8]) -> (Vec<TcpStream>, String) {
    let end = Instant::now() + Duration::from_secs(8);
    let mut open = Vec::new();
    while open.len() < count {
        if Instant::now() > end {
            return (open, "the time was over".to_owned());
        }
        match timeout(Duration::from_secs(2), TcpStream::connect(address)).await {
            Ok(Ok(mut stream)) => {
                if !first.is_empty() && stream.write_all(first).await.is_err() {
                    return (open, "the server closes connections".to_owned());
                }
                open.push(stream);
            }
            Ok(Err(error)) => return (open, error.to_string()),
            Err(_) => return (open, "connections are no longer accepted".to_owned()),
        }
    }
    (open, "all of them".to_owned())
}

/// The number of connections that the server has closed.
async fn closed(streams: &mut [TcpStream]) -> usize {
    let mut closed = 0;
    let mut bytes = [0; 1024];
    for stream in streams {
        loop {
            match timeout(Duration::ZERO, stream.read(&mut bytes)).await {
                Err(_) => break,
                Ok(Ok(length)) if length > 0 => {}
                Ok(_) => {
                    closed += 1;
                    break;
                }
            }
        }
    }
    closed
}

async fn hold(address: SocketAddr, count: usize, first: &[u8]) -> Outcome {
    let (mut streams, why) = open(address, count, first).await;
    sleep(Duration::from_secs(6)).await;
    let closed = closed(&mut streams).await;
    Ok(format!(
        "{} connections ({why}), of which the server closed {closed}",
        streams.len()
    ))
}

async fn silent(address: SocketAddr) -> Outcome {
    hold(address, CONNECTIONS, b"").await
}

/// Connections of callers that know HTTP/2 and ask nothing.
async fn preface_only(address: SocketAddr) -> Outcome {
    let mut preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    preface.extend(crate::wire::frame(4, 0, 0, &[]));
    hold(address, CONNECTIONS, &preface).await
}

async fn silent_admin(target: Arc<Target>) -> Outcome {
    hold(target.addresses().admin, 200, b"").await
}

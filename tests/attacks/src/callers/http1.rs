//! What a hostile caller does to any listener of HTTP/1.1: connections, headers and bodies. The families of the webhook
//! and of the console use it with requests of their own.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::http1::{AWAY, Endpoint, Response, Stream, exchange};
use crate::run::Outcome;

/// How long bytes are sent.
const SENDING: Duration = Duration::from_secs(12);
/// How long a flood lasts.
const FLOOD: Duration = Duration::from_secs(8);
/// Maximum time for a response: longer than the 10 s that a message may take to arrive.
const PATIENCE: Duration = Duration::from_secs(13);

/// What a connection sends first and what it repeats afterwards.
pub struct Drip {
    /// The first bytes.
    pub first: Bytes,
    /// The bytes that follow, again and again.
    pub next: Bytes,
    /// The time between two of them.
    pub pause: Duration,
}

/// Opens connections from a few addresses at once, those that the server accepts.
async fn open(endpoint: &Endpoint, count: usize) -> Vec<Stream> {
    let mut opening = JoinSet::new();
    for part in 0..16 {
        let endpoint = endpoint.clone();
        opening.spawn(async move {
            let (end, mut open) = (Instant::now() + Duration::from_secs(6), Vec::new());
            while open.len() < count.div_ceil(16) && Instant::now() < end {
                let from = AWAY + u8::from(part % 2 == 1);
                if let Ok(Ok(stream)) =
                    timeout(Duration::from_secs(2), endpoint.connect(from)).await
                {
                    open.push(stream);
                }
            }
            open
        });
    }
    opening.join_all().await.into_iter().flatten().collect()
}

/// Whether the server has closed a connection. Discards what it has sent.
async fn is_closed(stream: &mut Stream) -> bool {
    let mut bytes = [0; 4096];
    loop {
        match timeout(Duration::from_millis(1), stream.read(&mut bytes)).await {
            Err(_) => return false,
            Ok(Ok(length)) if length > 0 => {}
            Ok(_) => return true,
        }
    }
}

/// Opens many connections and sends nothing.
pub async fn silent(endpoint: Endpoint, count: usize) -> Outcome {
    let mut streams = open(&endpoint, count).await;
    sleep(Duration::from_secs(6)).await;
    let mut closed = 0;
    for stream in &mut streams {
        closed += usize::from(is_closed(stream).await);
    }
    Ok(format!(
        "{} of {count} connections were opened, of which the server closed {closed}",
        streams.len()
    ))
}

/// Opens many connections and sends a little on each, now and then. A connection that was closed is opened again.
pub async fn drip(endpoint: Endpoint, count: usize, drip: Drip) -> Outcome {
    let mut streams = open(&endpoint, count).await;
    for stream in &mut streams {
        let _closed = timeout(Duration::from_secs(1), send(stream, &drip.first)).await;
    }
    let (opened, end) = (streams.len(), Instant::now() + SENDING);
    let (mut ended, mut answers) = (0, BTreeMap::<String, usize>::new());
    while Instant::now() < end {
        let mut open = Vec::new();
        for mut stream in streams {
            let sent = timeout(Duration::from_millis(20), send(&mut stream, &drip.next)).await;
            match sent {
                Ok(Err(_)) => {
                    ended += 1;
                    let answer = timeout(Duration::from_millis(20), Response::read(&mut stream));
                    let answer = match answer.await {
                        Ok(Ok(response)) => format!("HTTP {}", response.status),
                        _ => "no response".to_owned(),
                    };
                    *answers.entry(answer).or_default() += 1;
                }
                _ => open.push(stream),
            }
        }
        streams = open;
        sleep(drip.pause).await;
    }
    let left = streams.len();
    for mut stream in streams.into_iter().take(50) {
        let answer = timeout(Duration::from_millis(5), Response::read(&mut stream)).await;
        if let Ok(Ok(response)) = answer {
            let answer = format!("HTTP {}", response.status);
            *answers.entry(answer).or_default() += 1;
        }
    }
    Ok(format!(
        "{opened} of {count} connections, {ended} were ended, {left} are open after {} s: {}",
        SENDING.as_secs(),
        listed(&answers)
    ))
}

async fn send(stream: &mut Stream, bytes: &[u8]) -> std::io::Result<()> {
    stream.write_all(bytes).await?;
    stream.flush().await
}

/// Sends a head and then parts of a body as fast as the server reads, on some connections.
pub async fn endless(
    endpoint: Endpoint,
    connections: usize,
    (head, part): (Bytes, Bytes),
) -> Outcome {
    let mut sending = JoinSet::new();
    for _ in 0..connections {
        let (endpoint, head, part) = (endpoint.clone(), head.clone(), part.clone());
        sending.spawn(async move {
            let end = Instant::now() + FLOOD;
            let (mut bytes, mut ends) = (0, BTreeMap::<String, usize>::new());
            while Instant::now() < end {
                let (sent, how) = one_endless(&endpoint, (&head, &part), end).await;
                bytes += sent;
                *ends.entry(how).or_default() += 1;
            }
            (bytes, ends)
        });
    }
    let (mut bytes, mut ends) = (0, BTreeMap::<String, usize>::new());
    for (sent, how) in sending.join_all().await {
        bytes += sent;
        for (how, count) in how {
            *ends.entry(how).or_default() += count;
        }
    }
    Ok(format!("{} MiB sent: {}", bytes >> 20, listed(&ends)))
}

async fn one_endless(
    endpoint: &Endpoint,
    (head, part): (&[u8], &[u8]),
    end: Instant,
) -> (u64, String) {
    let mut stream = match endpoint.connect(AWAY).await {
        Ok(stream) => stream,
        Err(error) => return (0, error),
    };
    let mut sent = 0;
    let mut bytes = head;
    loop {
        match tokio::time::timeout_at(end, send(&mut stream, bytes)).await {
            Err(_) => return (sent, "time over".to_owned()),
            Ok(Ok(())) => sent += bytes.len() as u64,
            Ok(Err(_)) => {
                let answer = timeout(Duration::from_millis(100), Response::read(&mut stream)).await;
                return match answer {
                    Ok(Ok(response)) => (sent, format!("HTTP {}", response.status)),
                    _ => (sent, "closed".to_owned()),
                };
            }
        }
        bytes = part;
    }
}

/// Sends requests one after the other on some connections for a while, and counts how they are answered.
pub async fn flood(
    endpoint: Endpoint,
    connections: usize,
    requests: Vec<Bytes>,
    outcome: fn(&Response) -> String,
) -> Outcome {
    let mut sending = JoinSet::new();
    for first in 0..connections {
        let (endpoint, requests) = (endpoint.clone(), requests.clone());
        sending.spawn(async move {
            let (end, mut outcomes) = (Instant::now() + FLOOD, Vec::new());
            let (mut stream, mut at) = (None, first);
            while Instant::now() < end {
                let asked = ask(&endpoint, &mut stream, &requests[at % requests.len()]);
                let begin = Instant::now();
                let answer = timeout(PATIENCE, asked).await;
                let answer = answer.unwrap_or_else(|_| Err("no reply in time".to_owned()));
                if answer.is_err() {
                    stream = None;
                }
                outcomes.push((
                    answer.map_or_else(|error| error, |it| outcome(&it)),
                    begin.elapsed(),
                ));
                at += 1;
            }
            outcomes
        });
    }
    let (mut counts, mut longest) = (BTreeMap::<String, usize>::new(), Duration::ZERO);
    for (outcome, time) in sending.join_all().await.into_iter().flatten() {
        *counts.entry(outcome).or_default() += 1;
        longest = longest.max(time);
    }
    Ok(format!(
        "on {connections} connections {}; the longest took {} ms",
        listed(&counts),
        longest.as_millis()
    ))
}

async fn ask(
    endpoint: &Endpoint,
    stream: &mut Option<Stream>,
    request: &[u8],
) -> Result<Response, String> {
    let mut open = match stream.take() {
        Some(open) => open,
        None => endpoint.connect(AWAY).await?,
    };
    let response = exchange(&mut open, request).await?;
    if !response.head.contains("connection: close") {
        *stream = Some(open);
    }
    Ok(response)
}

/// Sends a request many times on some connections without waiting for replies. If they are not read, the connections are
/// held for a while.
pub async fn pipelined(
    endpoint: Endpoint,
    connections: usize,
    request: Bytes,
    is_read: bool,
) -> Outcome {
    let mut sending = JoinSet::new();
    for number in 0..connections {
        let (endpoint, request) = (endpoint.clone(), request.clone());
        sending.spawn(async move {
            let from = AWAY + u8::from(number % 2 == 1);
            let Ok(mut stream) = endpoint.connect(from).await else {
                return (0, 0);
            };
            let (end, mut sent, mut read) = (Instant::now() + FLOOD, 0, 0);
            let mut bytes = vec![0; 1 << 16];
            while Instant::now() < end {
                let write = timeout(Duration::from_millis(50), send(&mut stream, &request));
                match write.await {
                    Ok(Err(_)) => break,
                    Ok(Ok(())) => sent += 1,
                    Err(_) if !is_read => {
                        // The server does not read any more. It has what it has.
                        sleep(Duration::from_millis(200)).await;
                    }
                    Err(_) => {}
                }
                if is_read {
                    let reading = timeout(Duration::from_millis(1), stream.read(&mut bytes));
                    read += reading.await.map_or(0, Result::unwrap_or_default);
                }
            }
            (sent, read)
        });
    }
    let both = sending.join_all().await;
    let sent: usize = both.iter().map(|(sent, _)| sent).sum();
    let read: usize = both.iter().map(|(_, read)| read).sum();
    Ok(format!(
        "{sent} requests on {connections} connections, {} KiB of replies were read",
        read >> 10
    ))
}

/// Sends requests whose replies are not read, each on a connection of its own, and holds these for a while.
pub async fn unread(endpoint: Endpoint, connections: usize, requests: Vec<Bytes>) -> Outcome {
    let mut open = Vec::new();
    let end = Instant::now() + FLOOD;
    for number in 0..connections {
        if Instant::now() > end {
            break;
        }
        let from = AWAY + u8::from(number % 2 == 1);
        if let Ok(mut stream) = endpoint.connect(from).await {
            let request = &requests[number % requests.len()];
            let sent = timeout(Duration::from_secs(1), send(&mut stream, request)).await;
            if sent.is_ok_and(|sent| sent.is_ok()) {
                open.push(stream);
            }
        }
    }
    sleep(Duration::from_secs(5)).await;
    Ok(format!(
        "{} connections with a reply that is not read",
        open.len()
    ))
}

/// Sends each request on a connection of its own and cuts it after a while, again and again.
pub async fn cut(endpoint: Endpoint, connections: usize, requests: Vec<Bytes>) -> Outcome {
    let mut sending = JoinSet::new();
    for first in 0..connections {
        let (endpoint, requests) = (endpoint.clone(), requests.clone());
        sending.spawn(async move {
            let (end, mut at) = (Instant::now() + FLOOD, first);
            while Instant::now() < end {
                if let Ok(mut stream) = endpoint.connect(AWAY).await {
                    let request = &requests[at % requests.len()];
                    let _closed = timeout(Duration::from_secs(1), send(&mut stream, request)).await;
                    sleep(Duration::from_millis((at % 7) as u64)).await;
                }
                at += 1;
            }
            at - first
        });
    }
    let sent: usize = sending.join_all().await.into_iter().sum();
    Ok(format!("{sent} requests whose connections were cut"))
}

/// Counts, in one line.
pub fn listed(counts: &BTreeMap<String, usize>) -> String {
    let counts = counts
        .iter()
        .map(|(text, count)| format!("{count} x {text}"));
    counts.collect::<Vec<_>>().join(", ")
}

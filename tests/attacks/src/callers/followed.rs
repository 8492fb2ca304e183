//! One caller that follows as many paths as it can, and another one that wants to follow some.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::watches::selection;
use crate::run::{Attack, Outcome};
use crate::target::Target;
use crate::wire::{self, Requests};

/// The attacks of this family.
pub const ATTACKS: &[Attack] = &[
    ("e-followed-one-connection", |target| {
        Box::pin(follow(target, 1))
    }),
    ("e-followed-8-connections", |target| {
        Box::pin(follow(target, 8))
    }),
];

/// Opens a stream and waits for its headers. Returns the stream, or the gRPC status.
async fn stream(requests: &Requests, number: usize) -> Result<h2::RecvStream, String> {
    let open = async {
        let mut requests = requests.clone().ready().await?;
        let (reply, mut body) = requests.send_request(wire::request(wire::WATCH), false)?;
        body.send_data(wire::message(&selection(number)), true)?;
        let reply = reply.await?;
        let status = reply.headers().get("grpc-status").cloned();
        let message = reply.headers().get("grpc-message").cloned();
        Ok::<_, h2::Error>((status, message, reply.into_body()))
    };
    let opened = timeout(Duration::from_secs(3), open).await;
    let opened = opened.map_err(|_| "no headers within 3 s".to_owned())?;
    let (status, message, body) = opened.map_err(|error| error.to_string())?;
    match status {
        None => Ok(body),
        Some(status) => Err(format!(
            "status {} {}",
            status.to_str().unwrap_or("?"),
            message
                .as_ref()
                .and_then(|text| text.to_str().ok())
                .unwrap_or_default()
        )),
    }
}

async fn follow(target: Arc<Target>, connections: usize) -> Outcome {
    let end = Instant::now() + Duration::from_secs(10);
    // Windows that hold the first update, which nobody reads.
    let mut settings = h2::client::Builder::new();
    settings
        .initial_window_size(1 << 16)
        .initial_connection_window_size(1 << 30);
    let (mut open, mut refusal) = (Vec::new(), "nothing".to_owned());
    let mut held = Vec::new();
    for number in 0..connections {
        let connection = wire::connect_with(target.addresses().data, &settings).await?;
        for at in 0..1_000 {
            if Instant::now() > end {
                break;
            }
            match stream(&connection, number * 1_000 + at).await {
                Ok(stream) => open.push(stream),
                Err(error) => {
                    refusal = error;
                    break;
                }
            }
        }
        held.push(connection);
    }
    let other = target.connect().await;
    let begin = Instant::now();
    let opened = stream(&other, usize::MAX).await;
    let note = format!("{} streams, then refused: {refusal}", open.len());
    let mut body = opened.map_err(|error| format!("{note}; another caller: {error}"))?;
    match timeout(Duration::from_secs(3), body.data()).await {
        Ok(Some(Ok(_))) => Ok(format!(
            "{note}; another caller: first data after {:.1?}",
            begin.elapsed()
        )),
        _ => Err(format!("{note}; another caller gets no data")),
    }
}

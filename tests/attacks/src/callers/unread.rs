//! Large replies that nobody reads: the windows of all streams are one byte.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use entail_client::v1;
use tokio::time::{Instant, sleep, timeout};

use crate::run::{Attack, Outcome};
use crate::target::{Target, by_path};
use crate::wire::{self, Requests};
use crate::world;

/// The attacks of this family.
pub const ATTACKS: &[Attack] = &[
    ("a-unread-one-connection", |target| {
        Box::pin(unread(target, 1))
    }),
    ("a-unread-16-connections", |target| {
        Box::pin(unread(target, 16))
    }),
    ("a-unread-then-reset", |target| Box::pin(then_reset(target))),
];

/// How long requests are sent.
const SENDING: Duration = Duration::from_secs(8);
/// The most requests of one connection.
const REQUESTS: usize = 3_000;

/// The requests, most of which have large replies.
fn requests() -> Vec<(String, Bytes)> {
    let names = (0..2_000).map(|at| world::path(at % world::ROUTES, at % 2));
    let batch = v1::BatchGetEffectivePoliciesRequest {
        requests: names.map(|name| by_path(&name)).collect(),
        kinds: Vec::new(),
    };
    let policies = v1::ListPoliciesRequest {
        page_size: 10_000,
        ..Default::default()
    };
    let paths = v1::ListPathsRequest {
        page_size: 10_000,
        ..Default::default()
    };
    let batch = wire::message(&batch);
    vec![
        (wire::BATCH.to_owned(), batch.clone()),
        (
            wire::GET.to_owned(),
            wire::message(&by_path(&world::path(0, 0))),
        ),
        (wire::insight("ListPolicies"), wire::message(&policies)),
        (wire::BATCH.to_owned(), batch),
        (wire::insight("ListPaths"), wire::message(&paths)),
        (wire::insight("GetTopology"), wire::bytes_of(&[])),
        (wire::insight("ListFindings"), wire::bytes_of(&[])),
    ]
}

/// Sends requests on a connection until streams are used up or the time is over. Returns the streams,
/// which stay open.
async fn send_all(connection: Requests) -> Vec<h2::client::ResponseFuture> {
    let kinds = requests();
    let end = Instant::now() + SENDING;
    let mut open = Vec::new();
    let mut connection = connection;
    while open.len() < REQUESTS && Instant::now() < end {
        let Ok(Ok(mut ready)) = timeout(Duration::from_secs(1), connection.ready()).await else {
            break;
        };
        let (method, body) = &kinds[open.len() % kinds.len()];
        let Ok((reply, mut sending)) = ready.send_request(wire::request(method), false) else {
            break;
        };
        let _refused = sending.send_data(body.clone(), true);
        open.push(reply);
        connection = ready;
        tokio::task::yield_now().await;
    }
    open
}

async fn unread(target: Arc<Target>, connections: usize) -> Outcome {
    let mut sending = tokio::task::JoinSet::new();
    for _ in 0..connections {
        let settings = wire::one_byte_window();
        let connection = wire::connect_with(target.addresses().data, &settings).await?;
        sending.spawn(send_all(connection));
    }
    let open = sending.join_all().await;
    // The replies are computed meanwhile.
    sleep(Duration::from_secs(4)).await;
    let streams: usize = open.iter().map(Vec::len).sum();
    Ok(format!(
        "{streams} open streams with an unread reply on {connections} connections"
    ))
}

/// Abandons each stream as soon as its request is sent, so that the limit of streams does not count.
async fn then_reset(target: Arc<Target>) -> Outcome {
    let settings = wire::one_byte_window();
    let mut connection = wire::connect_with(target.addresses().data, &settings).await?;
    let (kinds, end, mut sent) = (requests(), Instant::now() + SENDING, 0_usize);
    while Instant::now() < end {
        let Ok(Ok(mut ready)) = timeout(Duration::from_secs(1), connection.ready()).await else {
            break;
        };
        let (method, body) = &kinds[sent % kinds.len()];
        let Ok((reply, mut sending)) = ready.send_request(wire::request(method), false) else {
            break;
        };
        let _refused = sending.send_data(body.clone(), true);
        sent += 1;
        tokio::spawn(async move {
            sleep(Duration::from_millis(5)).await;
            sending.send_reset(h2::Reason::CANCEL);
            drop(reply);
        });
        connection = ready;
        tokio::task::yield_now().await;
    }
    Ok(format!("{sent} requests, reset after 5 ms"))
}

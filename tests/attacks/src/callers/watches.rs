//! Watch streams that nobody reads, while all answers change.

use std::sync::Arc;
use std::time::Duration;

use entail_client::v1;
use tokio::time::{sleep, timeout};

use crate::run::{Attack, Outcome};
use crate::target::Target;
use crate::wire;

/// The attacks of this family.
pub const ATTACKS: &[Attack] = &[
    ("b-unread-watches", |target| Box::pin(unread(target, false))),
    ("b-unread-watches-distinct", |target| {
        Box::pin(unread(target, true))
    }),
];

/// The number of streams.
const STREAMS: usize = 1_000;
/// The number of changes.
const CHANGES: usize = 50;

/// The selection of a stream: everything, written in a different way for each number.
pub fn selection(number: usize) -> v1::WatchEffectivePoliciesRequest {
    v1::WatchEffectivePoliciesRequest {
        prefixes: vec![
            "gateways/quiet/web".to_owned(),
            format!("gateways/quiet/no-{number}"),
        ],
        ..Default::default()
    }
}

async fn unread(target: Arc<Target>, are_distinct: bool) -> Outcome {
    let settings = wire::one_byte_window();
    let connection = wire::connect_with(target.addresses().data, &settings).await?;
    let mut open = Vec::new();
    for number in 0..STREAMS {
        let ready = timeout(Duration::from_secs(2), connection.clone().ready()).await;
        let Ok(Ok(mut ready)) = ready else { break };
        let request = if are_distinct {
            selection(number)
        } else {
            v1::WatchEffectivePoliciesRequest::default()
        };
        let sent = ready.send_request(wire::request(wire::WATCH), false);
        let Ok((reply, mut sending)) = sent else {
            break;
        };
        let _refused = sending.send_data(wire::message(&request), true);
        open.push(reply);
        tokio::task::yield_now().await;
    }
    for _ in 0..CHANGES {
        target.edit();
        sleep(Duration::from_millis(100)).await;
    }
    let arrival = target.edit_arrives_within(Duration::from_secs(5)).await?;
    Ok(format!(
        "{} streams, {CHANGES} changes, the next one arrives after {arrival:.1?}",
        open.len()
    ))
}

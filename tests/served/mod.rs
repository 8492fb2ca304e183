//! A server in this process over snapshots that the test publishes.

use std::future;
use std::sync::Arc;
use std::time::Duration;

use entail::insight::Notes;
use entail::serve::{Address, Answers, Health, Limits, Listener, Security, Server};
use entail::snapshot::Snapshots;
use tokio::runtime::Runtime;
use tokio::sync::{oneshot, watch};

/// A server on a port that is free. It ends with its runtime.
pub struct Served {
    #[allow(dead_code, reason = "not every test runs something on it")]
    pub runtime: Runtime,
    pub snapshots: Arc<Snapshots>,
    pub address: String,
    _notes: watch::Sender<Arc<Notes>>,
}

/// Starts a server; it waits for its first snapshot.
pub fn serve(limits: Limits) -> Served {
    let runtime = Runtime::new().unwrap();
    let snapshots = Arc::new(Snapshots::default());
    let (notes, receiver) = watch::channel(Arc::default());
    let answers = Answers {
        snapshots: Arc::clone(&snapshots),
        notes: receiver,
        change: entail::app::change_world,
    };
    let (bound, address) = oneshot::channel();
    runtime.spawn(async move {
        let wanted: Address = "127.0.0.1:0".parse().unwrap();
        let listener = Listener::bind(&wanted).await.unwrap();
        bound.send(listener.address().to_string()).unwrap();
        let health = Health::new().await;
        Server::new(answers, health, limits, Security::default())
            .run(vec![listener], None, Duration::ZERO, future::pending())
            .await
            .unwrap();
    });
    Served {
        address: address.blocking_recv().unwrap(),
        runtime,
        snapshots,
        _notes: notes,
    }
}

//! A server in this process that serves snapshots published by the test.

use std::future;
use std::sync::Arc;
use std::time::Duration;

use entail::insight::SourceProblems;
use entail::server::{Address, BoundListener, Health, Limits, Security, Server, ServiceContext};
use entail::subscription::SubscriptionHub;
use tokio::runtime::Runtime;
use tokio::sync::{oneshot, watch};

/// A server on a free port. Stops when its runtime is dropped.
pub struct TestServer {
    #[allow(dead_code, reason = "not every test spawns tasks on it")]
    pub runtime: Runtime,
    pub subscriptions: Arc<SubscriptionHub>,
    pub address: String,
    _source_problems: watch::Sender<Arc<SourceProblems>>,
}

/// Starts a server without a snapshot.
pub fn serve(limits: Limits) -> TestServer {
    let runtime = Runtime::new().unwrap();
    let subscriptions = Arc::new(SubscriptionHub::default());
    let (source_problems, receiver) = watch::channel(Arc::default());
    let answers = ServiceContext {
        subscriptions: Arc::clone(&subscriptions),
        source_problems: receiver,
        change: entail::app::change_world,
    };
    let (bound, address) = oneshot::channel();
    runtime.spawn(async move {
        let wanted: Address = "127.0.0.1:0".parse().unwrap();
        let listener = BoundListener::bind(&wanted).await.unwrap();
        bound.send(listener.address().to_string()).unwrap();
        let health = Health::new().await;
        Server::new(answers, health, limits, Security::default())
            .run(listener.into(), Duration::ZERO, future::pending())
            .await
            .unwrap();
    });
    TestServer {
        address: address.blocking_recv().unwrap(),
        runtime,
        subscriptions,
        _source_problems: source_problems,
    }
}

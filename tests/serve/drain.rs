//! Requests in progress at shutdown.

use std::time::Duration;

use entail::api::v1;
use tokio::sync::oneshot;
use tokio_stream::StreamExt;
use tonic::Request;
use tonic::client::Grpc;
use tonic_prost::ProstCodec;

use super::server::{PATH, Running, batch_of, by_path, start};

/// The server receives the headers of a batch before it stops, and the message afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_started_before_shutdown_is_answered() {
    let running = start(|_| {}).await;
    let (polled, started) = oneshot::channel::<()>();
    let (go, wait) = oneshot::channel::<()>();
    let mut once = Some((polled, wait));
    let message = tokio_stream::iter([()]).then(move |()| {
        let (polled, wait) = once.take().unwrap();
        async move {
            polled.send(()).unwrap();
            wait.await.unwrap();
            batch_of([PATH; 10_000])
        }
    });
    let mut client = Grpc::new(running.channel().await);
    let call = tokio::spawn(async move {
        client.ready().await.unwrap();
        let path = "/entail.v1.EffectivePolicyService/BatchGetEffectivePolicies";
        let codec: ProstCodec<_, v1::BatchGetEffectivePoliciesResponse> = ProstCodec::default();
        client
            .client_streaming(
                Request::new(message),
                http::uri::PathAndQuery::from_static(path),
                codec,
            )
            .await
    });
    // The body is polled after the headers are queued. Frames of a connection keep their order, so
    // a later reply shows that the server has received the headers.
    started.await.unwrap();
    running.get(by_path(PATH)).await.unwrap();

    let Running {
        stop,
        task,
        address,
        ..
    } = running;
    stop.send(()).unwrap();
    while tokio::net::TcpStream::connect(&address).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // Leave time for both GOAWAY frames and the ping between them.
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!task.is_finished(), "the server did not wait");
    go.send(()).unwrap();
    let reply = call.await.unwrap().unwrap().into_inner();
    assert_eq!(reply.results.len(), 10_000);
    let ended = tokio::time::timeout(Duration::from_secs(5), task).await;
    ended.unwrap().unwrap().unwrap();
}

//! A server that returns constant bytes.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use entail::server::Limits;
use tokio::net::TcpListener;
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

use crate::raw::Raw;

/// Argument that starts the server instead of the benchmark; followed by the size of a reply.
pub const FLAG: &str = "--constant";

/// Replies with the same bytes to every request.
#[derive(Clone)]
struct Constant(Bytes);

impl UnaryService<Bytes> for Constant {
    type Response = Bytes;
    type Future = Ready<Result<Response<Bytes>, Status>>;

    fn call(&mut self, _: Request<Bytes>) -> Self::Future {
        ready(Ok(Response::new(self.0.clone())))
    }
}

impl NamedService for Constant {
    const NAME: &'static str = "entail.v1.EffectivePolicyService";
}

impl Service<http::Request<Body>> for Constant {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(Grpc::new(Raw).unary(service, request).await) })
    }
}

/// Prints the address and serves until the process is killed.
pub fn serve(bytes: usize) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        println!("{}", socket.local_addr().unwrap());
        let limits = Limits::default();
        let incoming = TcpIncoming::from(socket)
            .with_nodelay(Some(true))
            .with_keepalive(Some(limits.keepalive));
        Server::builder()
            .max_concurrent_streams(limits.streams)
            .concurrency_limit_per_connection(limits.requests_per_connection)
            .http2_max_header_list_size(limits.header_bytes)
            .http2_keepalive_interval(Some(limits.keepalive))
            .http2_keepalive_timeout(Some(limits.keepalive_timeout))
            .add_service(Constant(vec![b'x'; bytes].into()))
            .serve_with_incoming(incoming)
            .await
            .unwrap();
    });
}

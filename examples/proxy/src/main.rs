//! A reverse proxy that applies retries and rate limits of effective policies: an example of a data
//! plane with a [`Mirror`]. hyper implements HTTP.
//!
//! ```sh
//! entail serve --manifests examples/proxy/world.yaml
//! cargo run -p entail-example-proxy -- --gateway shop/web --listener http \
//!   --rule '/cart=HTTPRoute/shop/cart/rules/look@http://127.0.0.1:9000' \
//!   --rule '/cart/pay=HTTPRoute/shop/cart/rules/pay@http://127.0.0.1:9000' \
//!   --rule '/search=HTTPRoute/shop/search/rules/#0@http://127.0.0.1:9000'
//! curl -i http://127.0.0.1:8080/cart/pay
//! ```
//!
//! Read [`policy`] first: it compiles an answer of entail to the settings of the proxy, once. Then
//! [`forward`]: it handles a request, and fails closed if policies are not known. [`limit`] and
//! [`retry`] apply the settings; [`rules`] is the routing table that a controller would configure.

mod forward;
mod limit;
mod policy;
mod retry;
mod rules;

use std::convert::Infallible;
use std::error::Error;
use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use entail_client::{Freshness, Mirror, MirrorSettings};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};

use forward::Proxy;
use policy::{Compiled, KIND};
use rules::{RuleFlag, Table};

/// A reverse proxy that applies retries and rate limits of effective policies.
#[derive(Debug, Parser)]
struct Args {
    /// Address of entail: `host:port`, `https://host:port` or `unix:PATH`.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:50051")]
    server: String,
    /// Address to listen on; port 0 for any free port.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Gateway that this proxy implements.
    #[arg(long, value_name = "NAMESPACE/NAME")]
    gateway: String,
    /// Listener of the Gateway.
    #[arg(long, value_name = "NAME")]
    listener: String,
    /// Requests whose path begins with PREFIX match this rule and are forwarded to the server at
    /// URL. May be repeated; the longest prefix wins.
    #[arg(long = "rule", value_name = RuleFlag::FORM, required = true)]
    rules: Vec<RuleFlag>,
}

#[tokio::main]
async fn main() -> ExitCode {
    // The log goes to stderr: stdout is for the address.
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    match run(Args::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: Args) -> Result<(), Box<dyn Error>> {
    let listener_path = format!("gateways/{}/listeners/{}", args.gateway, args.listener);
    let table = Table::new(&listener_path, args.rules)?;
    let settings = MirrorSettings {
        server: args.server,
        // Only the paths of this proxy, at the effective level of the policy kind.
        prefixes: vec![listener_path],
        levels: vec!["RouteRule".to_owned()],
        kinds: vec![KIND.to_owned()],
        ..MirrorSettings::default()
    };
    // The proxy does not wait for entail: until the first update, requests fail with 503, and health
    // checks of the process succeed.
    let mirror = Mirror::compiled(settings, policy::compile)?;
    tokio::spawn(log_freshness(mirror.clone()));

    let mut terminate = signal(SignalKind::terminate())?;
    let listener = TcpListener::bind(args.listen).await?;
    writeln!(std::io::stdout(), "listening on {}", listener.local_addr()?)?;
    let proxy = Arc::new(Proxy::new(mirror, table));
    // A proxy for production would wait for the requests in flight.
    tokio::select! {
        () = serve(&listener, &proxy) => {}
        _ = terminate.recv() => {}
        ctrl_c = tokio::signal::ctrl_c() => ctrl_c?,
    }
    Ok(())
}

/// Logs when the mirror connects and disconnects. Requests are served from the last copy meanwhile,
/// and their responses have a header with its state.
async fn log_freshness(mirror: Mirror<Compiled>) {
    let mut logged = Freshness::default();
    loop {
        logged = mirror.wait_for(|current| differs(&logged, current)).await;
        match &logged.error {
            Some(error) => {
                let age = logged.synced_at.and_then(|at| at.elapsed().ok());
                tracing::warn!(?age, "disconnected from entail: {error}");
            }
            None => tracing::info!(kinds = ?logged.kinds, "connected to entail"),
        }
    }
}

fn differs(a: &Freshness, b: &Freshness) -> bool {
    a.connected != b.connected || a.error != b.error || a.kinds != b.kinds
}

async fn serve(listener: &TcpListener, proxy: &Arc<Proxy>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(connection(stream, Arc::clone(proxy)));
            }
            // Temporary errors, such as too many open files.
            Err(error) => {
                tracing::warn!("failed to accept a connection: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, proxy: Arc<Proxy>) {
    // Otherwise a small response can wait until the client acknowledges the previous one.
    let _ignored = stream.set_nodelay(true);
    let service = service_fn(|request| {
        let proxy = Arc::clone(&proxy);
        async move { Ok::<_, Infallible>(proxy.handle(request).await) }
    });
    // With a timer, hyper closes connections that take too long to send the request headers.
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!("connection failed: {error}");
    }
}

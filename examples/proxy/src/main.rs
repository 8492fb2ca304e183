//! A reverse proxy that applies the retries and rate limits that entail tells it: what a data plane
//! does with a [`Mirror`]. HTTP itself is left to hyper.
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
//! Read [`policy`] first: it turns an answer of entail into what the proxy works with, once. Then
//! [`forward`]: what happens to a request, above all where not everything is known. [`limit`] and
//! [`retry`] do what was found there; [`rules`] is what a controller would have configured.

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

/// A reverse proxy that applies the retries and rate limits that entail tells it.
#[derive(Debug, Parser)]
struct Args {
    /// Where entail answers: `host:port`, `https://host:port` or `unix:PATH`.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:50051")]
    server: String,
    /// Where to listen; port 0 takes any that is free.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// The Gateway that this is a proxy of.
    #[arg(long, value_name = "NAMESPACE/NAME")]
    gateway: String,
    /// The listener of the Gateway.
    #[arg(long, value_name = "NAME")]
    listener: String,
    /// Requests whose path begins with PREFIX take this rule and go to the server at URL. May be
    /// repeated; the longest prefix counts.
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
        // No more than this proxy serves, at the level where policies of the kind act.
        prefixes: vec![listener_path],
        levels: vec!["RouteRule".to_owned()],
        kinds: vec![KIND.to_owned()],
        ..MirrorSettings::default()
    };
    // It need not be there yet. The proxy does not wait for it: until it answers, requests are told
    // 503, and whoever asks for health sees a process that lives.
    let mirror = Mirror::compiled(settings, policy::compile)?;
    tokio::spawn(tell_freshness(mirror.clone()));

    let mut terminate = signal(SignalKind::terminate())?;
    let listener = TcpListener::bind(args.listen).await?;
    writeln!(std::io::stdout(), "listening on {}", listener.local_addr()?)?;
    let proxy = Arc::new(Proxy::new(mirror, table));
    // A proxy for production would let requests under way come to their end.
    tokio::select! {
        () = serve(&listener, &proxy) => {}
        _ = terminate.recv() => {}
        ctrl_c = tokio::signal::ctrl_c() => ctrl_c?,
    }
    Ok(())
}

/// Says in the log whenever entail comes or goes. Requests do not wait for it, so this is where one
/// sees that they are answered from an old copy; each of them says it in a header as well.
async fn tell_freshness(mirror: Mirror<Compiled>) {
    let mut told = Freshness::default();
    loop {
        let is_other = |now: &_| differs(&told, now);
        told = mirror.wait_for(is_other).await;
        match &told.error {
            Some(trouble) => {
                let age = told.synced_at.and_then(|at| at.elapsed().ok());
                tracing::warn!(?age, "policies are not followed: {trouble}");
            }
            None => tracing::info!(kinds = ?told.kinds, "policies are followed"),
        }
    }
}

fn differs(told: &Freshness, now: &Freshness) -> bool {
    told.connected != now.connected || told.error != now.error || told.kinds != now.kinds
}

async fn serve(listener: &TcpListener, proxy: &Arc<Proxy>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(connection(stream, Arc::clone(proxy)));
            }
            // Such as too many open files: it passes when some are closed.
            Err(error) => {
                tracing::warn!("no connection is taken: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, proxy: Arc<Proxy>) {
    // Without it small answers wait for the client to acknowledge the one before.
    let _slower = stream.set_nodelay(true);
    let service = service_fn(|request| {
        let proxy = Arc::clone(&proxy);
        async move { Ok::<_, Infallible>(proxy.answer(request).await) }
    });
    // With a timer hyper ends connections that take too long to say what they want.
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!("a connection broke: {error}");
    }
}

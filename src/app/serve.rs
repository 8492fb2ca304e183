//! The server as a whole: listeners, the source, the writer.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::cluster;
use super::intake::Intake;
use super::load::read_profiles;
use super::writer::Writer;
use super::{AppError, ServeSettings, port_file};
use crate::config::Listeners;
use crate::insight::Notes;
use crate::serve::{Address, Answers, Health, Listener, Server};
use crate::snapshot::Snapshots;
use crate::source::manifests::{Manifests, watch as follow};
use crate::telemetry;

/// Steps of the source that may wait for the writer.
const WAITING_STEPS: usize = 4;
/// How long work that nobody waits for may hold up the end of the process.
const LAST_WORK: Duration = Duration::from_secs(1);

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// With all services.
    pub all: Vec<Address>,
    /// With health alone.
    pub health: Option<Address>,
}

/// Runs the server until SIGTERM or SIGINT: logging, threads and all.
///
/// # Errors
/// Wrong settings, refused profiles, or listeners that fail.
pub fn run(settings: ServeSettings) -> Result<(), AppError> {
    settings.check().map_err(AppError::Usage)?;
    telemetry::init(&settings.log).map_err(|error| AppError::Usage(vec![error]))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("entail")
        .build()
        .map_err(|error| AppError::Process(format!("threads cannot be started: {error}")))?;
    let ended = runtime.block_on(async {
        let stop = stop_signal()
            .map_err(|error| AppError::Process(format!("signals cannot be caught: {error}")))?;
        serve(settings, |_| {}, stop).await
    });
    runtime.shutdown_timeout(LAST_WORK);
    match &ended {
        Ok(()) => tracing::info!("stopped"),
        Err(error) => tracing::error!(%error, "stopped"),
    }
    ended
}

/// Catches the signals before anything else begins: one that comes early counts.
fn stop_signal() -> std::io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Serves until `shutdown` is done. `bound` is told where, as soon as callers may connect; until
/// the first snapshot they are told UNAVAILABLE and health is NOT_SERVING.
///
/// Manifests are followed. The files of `--profiles` are read once; profiles that are to change
/// while the server runs belong among the manifests.
///
/// # Errors
/// Wrong settings, refused profiles, or listeners that fail.
pub async fn serve(
    settings: ServeSettings,
    bound: impl FnOnce(&Addresses),
    shutdown: impl Future<Output = ()>,
) -> Result<(), AppError> {
    let started = Instant::now();
    let wanted = settings.check().map_err(AppError::Usage)?;
    let mut intake = Intake::new(read_profiles(&settings.inputs.profiles)?);
    let cluster = match &settings.inputs.cluster {
        Some(access) => Some(cluster::connect(access).await?),
        None => None,
    };
    if cluster.is_some() {
        intake = intake.watched();
    }
    let (listeners, health_alone) = listen(&wanted).await?;
    let addresses = Addresses {
        all: listeners.iter().map(|l| l.address().clone()).collect(),
        health: health_alone.as_ref().map(|l| l.address().clone()),
    };
    announce(&settings, &addresses)?;
    bound(&addresses);

    let health = Health::new().await;
    let snapshots = Arc::new(Snapshots::default());
    let (notes, told) = watch::channel(Arc::<Notes>::default());
    let answers = Answers {
        change: super::change_world,
        snapshots: Arc::clone(&snapshots),
        notes: told,
    };
    let manifests = Manifests::new(settings.inputs.manifests.clone(), intake.scopes());
    let (wanted, wanting) = cluster::wanted(&intake);
    let writer = Writer {
        intake,
        snapshots,
        notes,
        health: health.clone(),
        allow_partial: settings.inputs.allow_partial,
        started,
        wanted: cluster.is_some().then_some(wanted),
    };
    // All end with this function: nothing is published while the server drains.
    let mut background = JoinSet::new();
    if let Some(cluster) = cluster {
        let (steps, taken) = mpsc::channel(WAITING_STEPS);
        background.spawn(cluster::watch(cluster, wanting, steps));
        background.spawn(writer.run(taken));
    } else {
        let (scans, taken) = mpsc::channel(WAITING_STEPS);
        background.spawn(follow(manifests, scans, settings.poll));
        background.spawn(writer.run(taken));
    }
    let shutdown = async {
        shutdown.await;
        background.shutdown().await;
    };
    let server = Server::new(answers, health, settings.limits);
    let drain = settings.drain_timeout;
    server.run(listeners, health_alone, drain, shutdown).await?;
    Ok(())
}

async fn listen(wanted: &Listeners) -> Result<(Vec<Listener>, Option<Listener>), AppError> {
    let mut listeners = Vec::with_capacity(wanted.all.len());
    for address in &wanted.all {
        listeners.push(bind(address).await?);
    }
    let health = match &wanted.health {
        Some(address) => Some(bind(address).await?),
        None => None,
    };
    Ok((listeners, health))
}

async fn bind(address: &Address) -> Result<Listener, AppError> {
    let bound = Listener::bind(address).await;
    bound.map_err(|error| AppError::Listen(format!("cannot listen on {address}: {error}")))
}

/// Logs where the server listens and writes it to the port file.
fn announce(settings: &ServeSettings, addresses: &Addresses) -> Result<(), AppError> {
    let first = addresses.all.iter().find(|a| matches!(a, Address::Tcp(_)));
    if let (Some(path), Some(first)) = (&settings.port_file, first) {
        port_file::write(path, &first.to_string()).map_err(|error| {
            AppError::Listen(format!(
                "cannot write the port file {}: {error}",
                path.display()
            ))
        })?;
    }
    let listening: Vec<String> = addresses.all.iter().map(Address::to_string).collect();
    let manifests = settings.inputs.manifests.iter();
    let manifests: Vec<String> = manifests.map(|path| path.display().to_string()).collect();
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        listen = listening.join(" "),
        health = addresses.health.as_ref().map(Address::to_string),
        manifests = manifests.join(" "),
        cluster = settings.inputs.cluster.is_some(),
        "starting"
    );
    Ok(())
}

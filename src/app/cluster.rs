//! Connects to a cluster, and reads it once for commands.

use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::{mpsc, watch as channel};
use tokio::time::{Instant, timeout_at};

use super::AppError;
use super::object_cache::ObjectCache;
use crate::config::{ClusterSettings, Inputs};
use crate::insight::{SourceProblem, SourceProblems};
use crate::source::cluster::{
    ApiTimeouts, Cluster, ClusterConfig, DesiredKinds, KnownObjects, WatchFilter,
};
use entail_core::model::Str;

pub(super) use crate::source::cluster::watch;

/// Maximum time that a command waits until all desired kinds are in sync.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// Creates the client of the configured cluster; `None` if the inputs are manifests.
pub(super) async fn connect_if_configured(inputs: &Inputs) -> Result<Option<Cluster>, AppError> {
    match &inputs.cluster {
        Some(access) => Ok(Some(connect(access).await?)),
        None => Ok(None),
    }
}

/// The objects of a cluster to read.
pub(super) fn watch_filter(access: &ClusterSettings) -> WatchFilter {
    let names = |names: &[String]| names.iter().map(|name| Str::from(name.as_str())).collect();
    let gateways = access.gateways.iter();
    WatchFilter {
        namespaces: names(&access.namespaces),
        gateways: gateways
            .map(|(ns, name)| (ns.as_str().into(), name.as_str().into()))
            .collect(),
        classes: names(&access.classes),
    }
}

/// Creates the client of a cluster. The API server is not contacted yet.
pub(super) async fn connect(access: &ClusterSettings) -> Result<Cluster, AppError> {
    let access = ClusterConfig {
        kubeconfig: access.kubeconfig.clone(),
        context: access.context.clone(),
        filter: watch_filter(access),
        timeouts: ApiTimeouts {
            request: access.timeouts.request,
            stale_after: access.timeouts.stale_after,
            forbidden_after: access.timeouts.forbidden_after,
            start_jitter: access.timeouts.start_jitter,
            long_read: ApiTimeouts::LONG_READ,
        },
    };
    let connected = Cluster::connect(&access).await;
    connected.map_err(|error| AppError::Input(vec![error.to_string()]))
}

/// Creates the channel through which the cluster watch learns the desired kinds.
pub(super) fn desired_kinds(
    cache: &ObjectCache,
) -> (
    channel::Sender<DesiredKinds>,
    channel::Receiver<DesiredKinds>,
) {
    channel::channel(desired_after(cache, 0))
}

/// The kinds that are desired after an update of the cluster.
pub(super) fn desired_after(cache: &ObjectCache, after: u64) -> DesiredKinds {
    DesiredKinds {
        kinds: cache.desired_kinds().clone(),
        targets_only: cache.targets_only().clone(),
        without_status: cache.without_status().clone(),
        after,
    }
}

/// Converts problems of a cluster, each with its location.
pub(super) fn cluster_problems(problems: Vec<(String, String)>) -> SourceProblems {
    let problems = problems.into_iter();
    SourceProblems {
        problems: problems
            .map(|(location, message)| SourceProblem {
                location,
                message,
                code: None,
            })
            .collect(),
    }
}

/// The runtime of a command that talks to a cluster.
pub(super) fn runtime() -> Result<Runtime, AppError> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| AppError::Process(format!("failed to start the runtime: {error}")))
}

/// Reads a cluster once. Returns its problems, and whether all desired kinds are in sync.
pub(super) fn read(
    cache: &mut ObjectCache,
    access: &ClusterSettings,
) -> Result<(SourceProblems, bool), AppError> {
    runtime()?.block_on(async {
        let cluster = connect(access).await?;
        let (desired, desired_receiver) = desired_kinds(cache);
        let (sender, mut updates) = mpsc::channel(1);
        let url = cluster.url.clone();
        tokio::spawn(watch(
            cluster,
            desired_receiver,
            KnownObjects::default(),
            sender,
        ));
        let end = Instant::now() + READ_TIMEOUT;
        let mut source_problems = SourceProblems::default();
        while let Ok(Some(update)) = timeout_at(end, updates.recv()).await {
            cache.apply(update.change);
            source_problems = cluster_problems(update.problems);
            if update.is_complete {
                return Ok((source_problems, true));
            }
            desired.send_replace(desired_after(cache, update.number));
        }
        if cache.objects() == 0 {
            let problems = source_problems.problems.iter();
            let problems = problems.map(ToString::to_string);
            let mut messages = vec![format!(
                "nothing could be read from the API server {url} within {} s",
                READ_TIMEOUT.as_secs()
            )];
            messages.extend(problems);
            return Err(AppError::Input(messages));
        }
        Ok((source_problems, false))
    })
}

//! A cluster as source: connecting, and reading it once for commands.

use std::time::Duration;

use tokio::sync::{mpsc, watch as channel};
use tokio::time::{Instant, timeout_at};

use super::AppError;
use super::object_cache::ObjectCache;
use crate::config::{ClusterSettings, Inputs};
use crate::insight::SourceProblems;
use crate::source::cluster::{Cluster, ClusterConfig, DesiredKinds, KnownObjects, WatchFilter};
use entail_core::model::Str;

pub(super) use crate::source::cluster::watch;

/// How long a cluster may take until all that is wanted of it is known.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// The cluster to follow, if one is to be followed.
pub(super) async fn connect_if_configured(inputs: &Inputs) -> Result<Option<Cluster>, AppError> {
    match &inputs.cluster {
        Some(access) => Ok(Some(connect(access).await?)),
        None => Ok(None),
    }
}

/// Prepares the connection.
async fn connect(access: &ClusterSettings) -> Result<Cluster, AppError> {
    let names = |names: &[String]| names.iter().map(|name| Str::from(name.as_str())).collect();
    let gateways = access.gateways.iter();
    let access = ClusterConfig {
        kubeconfig: access.kubeconfig.clone(),
        context: access.context.clone(),
        filter: WatchFilter {
            namespaces: names(&access.namespaces),
            gateways: gateways
                .map(|(ns, name)| (ns.as_str().into(), name.as_str().into()))
                .collect(),
            classes: names(&access.classes),
        },
    };
    let connected = Cluster::connect(&access).await;
    connected.map_err(|error| AppError::Input(vec![error.to_string()]))
}

/// The channel that tells a cluster what is wanted.
pub(super) fn wanted(
    cache: &ObjectCache,
) -> (
    channel::Sender<DesiredKinds>,
    channel::Receiver<DesiredKinds>,
) {
    channel::channel(DesiredKinds {
        kinds: cache.wanted().clone(),
        after: 0,
    })
}

/// Reads a cluster once. Returns what is wrong, and whether all is known that is wanted.
pub(super) fn read(
    cache: &mut ObjectCache,
    access: &ClusterSettings,
) -> Result<(SourceProblems, bool), AppError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| AppError::Process(format!("threads cannot be started: {error}")))?;
    runtime.block_on(async {
        let cluster = connect(access).await?;
        let (wanted, wanting) = wanted(cache);
        let (tx, mut steps) = mpsc::channel(1);
        let url = cluster.url.clone();
        tokio::spawn(watch(cluster, wanting, KnownObjects::default(), tx));
        let end = Instant::now() + READ_TIMEOUT;
        let mut source_problems = SourceProblems::default();
        while let Ok(Some(step)) = timeout_at(end, steps.recv()).await {
            cache.apply(step.change);
            source_problems.problems = step.problems;
            if step.is_complete {
                return Ok((source_problems, true));
            }
            wanted.send_replace(DesiredKinds {
                kinds: cache.wanted().clone(),
                after: step.number,
            });
        }
        if cache.objects() == 0 {
            let why = source_problems
                .problems
                .iter()
                .map(|(place, why)| format!("{place}: {why}"));
            let mut told = vec![format!("the cluster {url} does not answer")];
            told.extend(why);
            return Err(AppError::Input(told));
        }
        Ok((source_problems, false))
    })
}

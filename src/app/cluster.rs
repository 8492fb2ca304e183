//! A cluster as source: connecting, and reading it once for commands.

use std::time::Duration;

use tokio::sync::{mpsc, watch as channel};
use tokio::time::{Instant, timeout_at};

use super::AppError;
use super::intake::Intake;
use crate::config::{ClusterAccess, Inputs};
use crate::insight::Notes;
use crate::source::cluster::{Access, Cluster, Known, Scope, Wanted};
use entail_core::model::Str;

pub(super) use crate::source::cluster::watch;

/// How long a cluster may take until all that is wanted of it is known.
const PATIENCE: Duration = Duration::from_secs(30);

/// The cluster to follow, if one is to be followed.
pub(super) async fn chosen(inputs: &Inputs) -> Result<Option<Cluster>, AppError> {
    match &inputs.cluster {
        Some(access) => Ok(Some(connect(access).await?)),
        None => Ok(None),
    }
}

/// Prepares the connection.
async fn connect(access: &ClusterAccess) -> Result<Cluster, AppError> {
    let names = |names: &[String]| names.iter().map(|name| Str::from(name.as_str())).collect();
    let gateways = access.gateways.iter();
    let access = Access {
        kubeconfig: access.kubeconfig.clone(),
        context: access.context.clone(),
        scope: Scope {
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
pub(super) fn wanted(intake: &Intake) -> (channel::Sender<Wanted>, channel::Receiver<Wanted>) {
    channel::channel(Wanted {
        kinds: intake.wanted().clone(),
        after: 0,
    })
}

/// Reads a cluster once. Returns what is wrong, and whether all is known that is wanted.
pub(super) fn read(intake: &mut Intake, access: &ClusterAccess) -> Result<(Notes, bool), AppError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| AppError::Process(format!("threads cannot be started: {error}")))?;
    runtime.block_on(async {
        let cluster = connect(access).await?;
        let (wanted, wanting) = wanted(intake);
        let (tx, mut steps) = mpsc::channel(1);
        let url = cluster.url.clone();
        tokio::spawn(watch(cluster, wanting, Known::default(), tx));
        let end = Instant::now() + PATIENCE;
        let mut notes = Notes::default();
        while let Ok(Some(step)) = timeout_at(end, steps.recv()).await {
            intake.apply(step.change);
            notes.problems = step.problems;
            if step.is_complete {
                return Ok((notes, true));
            }
            wanted.send_replace(Wanted {
                kinds: intake.wanted().clone(),
                after: step.number,
            });
        }
        if intake.objects() == 0 {
            let why = notes
                .problems
                .iter()
                .map(|(place, why)| format!("{place}: {why}"));
            let mut told = vec![format!("the cluster {url} does not answer")];
            told.extend(why);
            return Err(AppError::Input(told));
        }
        Ok((notes, false))
    })
}

//! All contact of the commands with the wiring: loading manifests, asking a server, serving.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::args::ManifestArgs;
use super::commands::serve::{InsightAuthArg, LogFormatArg};
use super::commands::test::{Case, Mismatch, check};
use super::remote::{self, RemoteBackend};
use super::render::console;
use super::{CliError, ExitStatus, ServeArgs, SourceArgs, TestArgs};
use crate::api::v1;
use crate::insight::{self, AccessScope, QueryBackend};
use crate::{app, config};
use entail_client::ClientTls;

/// Where a server listens unless it is told otherwise.
pub(super) const DEFAULT_SERVER: &str = config::DEFAULT_LISTEN;

/// How long a server has to answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Who answers, and whether its inputs could be read whole.
pub(super) struct Connection {
    /// Who answers.
    pub(super) ask: Box<dyn QueryBackend>,
    /// Something could not be read, and that was not allowed: the command ends with exit code 3.
    pub(super) incomplete: bool,
}

/// Reads the manifests or reaches the server, whichever is named. What is wrong in the manifests
/// is told on standard error.
pub(super) fn connect(source: &SourceArgs) -> Result<Connection, CliError> {
    source.check()?;
    if let Some(address) = &source.server {
        let mut remote = RemoteBackend::connect(address, &source.tls.files(), REQUEST_TIMEOUT)?;
        if let Some(token) = &source.token_file {
            remote = remote.with_token(token)?;
        }
        return Ok(Connection {
            ask: Box::new(remote),
            incomplete: false,
        });
    }
    let loaded = load(&app::Inputs {
        manifests: source.manifests.clone(),
        profiles: source.profiles.clone(),
        allow_partial: source.allow_partial,
        max_manifest_mib: source.limits.max_manifest_size,
        cluster: source.cluster.access(&source.manifests),
    })?;
    Ok(Connection {
        ask: Box::new(loaded.local),
        incomplete: loaded.incomplete,
    })
}

/// Reads inputs and tells on standard error what is wrong with them.
fn load(inputs: &app::Inputs) -> Result<app::LoadedInputs, CliError> {
    let loaded = app::load(inputs)?;
    for warning in &loaded.warnings {
        console::print_error(&format!("warning: {warning}"));
    }
    Ok(loaded)
}

/// What differs between two sets of manifests.
pub(super) struct Comparison {
    /// The differences.
    pub(super) reply: v1::PreviewChangeResponse,
    /// Who answers for the second set, and whether both could be read whole.
    pub(super) after: Connection,
    /// The kinds that the first set knows.
    pub(super) known: Vec<v1::KindStatus>,
}

/// Reads two sets of manifests and compares what they come to.
pub(super) fn compare(
    sets: [&Path; 2],
    profiles: &[PathBuf],
    allow_partial: bool,
    limits: ManifestArgs,
) -> Result<Comparison, CliError> {
    let [before, after] = sets.map(|path| {
        load(&app::Inputs {
            manifests: vec![path.to_owned()],
            profiles: profiles.to_vec(),
            allow_partial,
            max_manifest_mib: limits.max_manifest_size,
            cluster: None,
        })
    });
    let (mut before, after) = (before?, after?);
    let (old, new) = (&before.local.snapshot, &after.local.snapshot);
    let reply = insight::compare(old.world(), new.world(), &AccessScope::default());
    Ok(Comparison {
        reply,
        known: before.local.server_status()?.kinds,
        after: Connection {
            ask: Box::new(after.local),
            incomplete: before.incomplete || after.incomplete,
        },
    })
}

/// Whether a server says that it, or one of its services, serves.
pub(super) fn health(
    address: &str,
    tls: &ClientTls,
    service: &str,
    patience: Duration,
) -> Result<bool, CliError> {
    Ok(remote::health(address, tls, service, patience)?)
}

/// Serves until it is told to stop.
pub(super) fn serve(args: &ServeArgs) -> Result<ExitStatus, CliError> {
    let settings = config::ServeSettings {
        inputs: app::Inputs {
            manifests: args.manifests.clone(),
            profiles: args.profiles.clone(),
            allow_partial: args.allow_partial,
            max_manifest_mib: args.manifest.max_manifest_size,
            cluster: args.cluster.access(&args.manifests),
        },
        listen: args.listen.clone(),
        health_listen: args.health_listen.clone(),
        admin_listen: args.admin_listen.clone(),
        admin_socket: args.admin_socket.clone(),
        tls: args.tls_files(),
        data_plane_sans: args.data_plane_sans.clone(),
        insight_sans: args.insight_sans.clone(),
        callers: args.callers.clone(),
        insight_auth: match args.insight_auth {
            InsightAuthArg::None => config::InsightAuth::None,
            InsightAuthArg::Kubernetes => config::InsightAuth::Kubernetes,
        },
        envoy: args.envoy_config.clone(),
        limits: args.limits(),
        checkpoint: args.checkpoint.clone(),
        checkpoint_pause: Duration::from_secs(args.checkpoint_pause),
        port_file: args.port_file.clone(),
        insecure_listen: args.insecure_listen,
        drain_timeout: Duration::from_secs(args.drain_timeout),
        log: config::LogSettings {
            filter: args.log.clone(),
            format: match args.log_format {
                LogFormatArg::Text => config::LogFormat::Text,
                LogFormatArg::Json => config::LogFormat::Json,
            },
        },
        ..config::ServeSettings::default()
    };
    app::run(settings)?;
    Ok(ExitStatus::Success)
}

/// Runs conformance cases.
pub(super) fn test(args: &TestArgs) -> Result<ExitStatus, CliError> {
    super::commands::test::run(args)
}

/// The values of a YAML file with the lines on which they begin.
pub(super) fn read_values(path: &Path) -> Result<Vec<(u32, Value)>, CliError> {
    Ok(app::read_values(path)?)
}

/// Holds cases against the answers of their own small worlds.
pub(super) struct CaseRunner {
    profiles: Vec<PathBuf>,
}

impl CaseRunner {
    /// With profiles beside those of the cases.
    pub(super) fn new(profiles: &[PathBuf]) -> Result<Self, CliError> {
        Ok(Self {
            profiles: profiles.to_vec(),
        })
    }

    /// What is not as a case expects.
    pub(super) fn run(&self, case: &Case) -> Vec<Mismatch> {
        match app::load_values(&case.inputs(), &self.profiles) {
            Ok(mut local) => check(case, &mut local),
            Err(error) => vec![Mismatch {
                about: "the case's objects".to_owned(),
                expected: "they can be read".to_owned(),
                found: error.to_string(),
            }],
        }
    }
}

//! Connects the commands to [`app`]: loads manifests, connects to servers, runs the server.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::args::{ClusterArgs, ControllerArgs, ManifestArgs};
use super::commands::serve::{InsightAuthArg, LogFormatArg};
use super::commands::test::{Case, Mismatch, check, unknown_names};
use super::remote::{self, RemoteBackend};
use super::render::console;
use super::{CliError, ExitStatus, ServeArgs, SourceArgs, TestArgs};
use crate::api::{StateReason, v1};
use crate::insight::{self, AccessScope, QueryBackend};
use crate::snapshot::Snapshot;
use crate::{app, config};
use entail_client::ClientTls;

/// The default address of a server.
pub(super) const DEFAULT_SERVER: &str = config::DEFAULT_LISTEN;

/// Timeout of connections and requests to a server.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// A backend, and whether its inputs were read completely.
pub(super) struct Connection {
    /// Answers the queries.
    pub(super) backend: Box<dyn QueryBackend>,
    /// Some input could not be read and `--allow-partial` is not set: the exit code is 3.
    pub(super) incomplete: bool,
    /// The kinds of which the inputs lack objects that paths depend on, unless `--allow-partial` is set.
    pub(super) lacking: Vec<v1::KindState>,
}

/// Connects to the server, or loads the manifests or the cluster, whichever the options select.
/// Prints problems of the inputs on standard error.
pub(super) fn connect(source: &SourceArgs) -> Result<Connection, CliError> {
    connect_with(source, |loaded| {
        print_warnings(&loaded.warnings);
        print_note(loaded.note.as_deref());
        loaded.incomplete
    })
}

/// Loads the profiles in effect: those of manifests or a cluster, or without both the built-in ones, and those of files.
pub(super) fn load_profiles(
    manifests: &[PathBuf],
    cluster: &ClusterArgs,
    profiles: &[PathBuf],
) -> Result<Arc<Snapshot>, CliError> {
    let cluster = cluster.access(manifests);
    if manifests.is_empty() && cluster.is_none() {
        return Ok(app::load_values(&[], profiles)?.snapshot);
    }
    let loaded = app::load(&app::Inputs {
        manifests: manifests.to_vec(),
        profiles: profiles.to_vec(),
        cluster,
        ..app::Inputs::default()
    })?;
    print_warnings(&loaded.warnings);
    Ok(loaded.local.snapshot)
}

/// Connects like [`connect`], and prints only the problems of the inputs that are not findings. Manifests without objects
/// count as incomplete: they would pass any check.
pub(super) fn connect_for_findings(source: &SourceArgs) -> Result<Connection, CliError> {
    connect_with(source, |loaded| {
        let problems = loaded.local.source_problems.problems.iter();
        let others = problems.filter(|problem| problem.code.is_none());
        print_warnings(&others.map(ToString::to_string).collect::<Vec<_>>());
        loaded.incomplete || loaded.is_empty && !source.allow_partial
    })
}

fn connect_with(
    source: &SourceArgs,
    report: impl FnOnce(&app::LoadedInputs) -> bool,
) -> Result<Connection, CliError> {
    source.check()?;
    if let Some(address) = &source.server {
        let mut remote = RemoteBackend::connect(address, &source.tls.files(), REQUEST_TIMEOUT)?;
        if let Some(token) = &source.token_file {
            remote = remote.with_token(token)?;
        }
        return Ok(Connection {
            backend: Box::new(remote),
            incomplete: false,
            lacking: Vec::new(),
        });
    }
    let loaded = app::load(&app::Inputs {
        manifests: source.manifests.clone(),
        profiles: source.profiles.clone(),
        controllers: source.controllers.settings(),
        allow_partial: source.allow_partial,
        max_manifest_mib: source.limits.max_manifest_size,
        cluster: source.cluster.access(&source.manifests),
    })?;
    let incomplete = report(&loaded);
    print_warnings(&loaded.remarks);
    Ok(Connection {
        lacking: lacking(&[&loaded], source.allow_partial),
        backend: Box::new(loaded.local),
        incomplete,
    })
}

/// The kinds of which inputs lack objects that paths depend on.
fn lacking(inputs: &[&app::LoadedInputs], allow_partial: bool) -> Vec<v1::KindState> {
    let mut inputs = inputs.iter().filter(|_| !allow_partial);
    let message = inputs.find_map(|loaded| loaded.missing_namespaces.clone());
    let state = message.map(|message| v1::KindState {
        message,
        ..StateReason::NotRead.kind_state("Namespace".to_owned())
    });
    state.into_iter().collect()
}

fn print_note(note: Option<&str>) {
    if let Some(note) = note {
        console::print_error(&format!("note: {note}"));
    }
}

/// Prints the notes about two sets of manifests; one note if they are equal.
fn print_notes(before: Option<&str>, after: Option<&str>) {
    print_note(before);
    if after != before {
        print_note(after);
    }
}

fn print_warnings(warnings: &[String]) {
    for warning in warnings {
        console::print_error(&format!("warning: {warning}"));
    }
}

/// The differences between two sets of manifests.
pub(super) struct Comparison {
    /// The differences.
    pub(super) reply: v1::PreviewChangeResponse,
    /// The backend of the first set.
    pub(super) before: Box<dyn QueryBackend>,
    /// The backend of the second set; `incomplete` covers both sets.
    pub(super) after: Connection,
    /// The policy kinds of the first set.
    pub(super) kinds_before: Vec<v1::KindStatus>,
}

/// A set of manifests to compare.
pub(super) struct ManifestSet {
    /// Files and directories, or `-` for standard input.
    pub(super) paths: Vec<PathBuf>,
    /// The git revision that they are of.
    pub(super) revision: Option<app::Revision>,
}

impl ManifestSet {
    /// Loads the set, and prints its problems on standard error.
    fn load(&self, inputs: app::Inputs) -> Result<app::LoadedInputs, CliError> {
        let manifests = match &self.revision {
            Some(revision) => revision.roots(),
            None => self.paths.clone(),
        };
        let mut loaded = app::load(&app::Inputs {
            manifests,
            ..inputs
        })?;
        let named = |warning: &String| match &self.revision {
            Some(revision) => revision.named(warning),
            None => warning.clone(),
        };
        let warnings = loaded.warnings.iter().chain(&loaded.remarks).map(named);
        print_warnings(&warnings.collect::<Vec<_>>());
        for problem in &mut loaded.local.source_problems.problems {
            problem.location = named(&problem.location);
        }
        Ok(loaded)
    }
}

/// Loads two sets of manifests and compares their effective policies.
pub(super) fn compare(
    [before, after]: [ManifestSet; 2],
    profiles: &[PathBuf],
    controllers: &ControllerArgs,
    allow_partial: bool,
    limits: ManifestArgs,
) -> Result<Comparison, CliError> {
    let inputs = || app::Inputs {
        profiles: profiles.to_vec(),
        controllers: controllers.settings(),
        allow_partial,
        max_manifest_mib: limits.max_manifest_size,
        ..app::Inputs::default()
    };
    let (mut before, after) = (before.load(inputs())?, after.load(inputs())?);
    print_notes(before.note.as_deref(), after.note.as_deref());
    let lacking = lacking(&[&before, &after], allow_partial);
    let (old, new) = (&before.local.snapshot, &after.local.snapshot);
    let all = AccessScope::default();
    let mut reply = insight::compare(old.engine(), new.engine(), &all);
    reply.warnings = insight::change_warnings([old.world(), new.world()], &reply, &all);
    Ok(Comparison {
        reply,
        kinds_before: before.local.server_status()?.kinds,
        before: Box::new(before.local),
        after: Connection {
            backend: Box::new(after.local),
            incomplete: before.incomplete || after.incomplete,
            lacking,
        },
    })
}

/// Whether a server, or one of its services, is SERVING.
pub(super) fn health(
    address: &str,
    tls: &ClientTls,
    service: &str,
    timeout: Duration,
) -> Result<bool, CliError> {
    Ok(remote::health(address, tls, service, timeout)?)
}

/// Runs the server until SIGTERM or SIGINT.
pub(super) fn serve(args: &ServeArgs) -> Result<ExitStatus, CliError> {
    let settings = config::ServeSettings {
        inputs: app::Inputs {
            manifests: args.manifests.clone(),
            profiles: args.profiles.clone(),
            controllers: args.controllers.settings(),
            allow_partial: args.allow_partial,
            max_manifest_mib: args.manifest.max_manifest_size,
            cluster: args.cluster_settings(),
        },
        listen: args.listen.clone(),
        health_listen: args.health_listen.clone(),
        admin_listen: args.admin_listen.clone(),
        admin_socket: args.admin_socket.clone(),
        tls: args.tls_files(),
        admission: args.admission_settings(),
        console_listen: args.console_listen.clone(),
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

/// Runs test cases.
pub(super) fn test(args: &TestArgs) -> Result<ExitStatus, CliError> {
    super::commands::test::run(args)
}

/// Returns the documents of a YAML file with the lines on which they begin.
pub(super) fn read_values(path: &Path) -> Result<Vec<(u32, Value)>, CliError> {
    Ok(app::read_values(path)?)
}

/// Runs test cases, each against a backend with only the objects of the case.
pub(super) struct CaseRunner {
    profiles: Vec<PathBuf>,
}

impl CaseRunner {
    /// Uses `profiles` in addition to those of the cases.
    ///
    /// # Errors
    /// A profile cannot be read, or is refused.
    pub(super) fn new(profiles: &[PathBuf]) -> Result<Self, CliError> {
        // Refused once, and not by each case.
        app::load_values(&[], profiles)?;
        Ok(Self {
            profiles: profiles.to_vec(),
        })
    }

    /// Returns the differences between the answers and what a case expects.
    ///
    /// # Errors
    /// The reasons why the case cannot run, each with its field.
    pub(super) fn run(&self, case: &Case) -> Result<Vec<Mismatch>, Vec<String>> {
        let mut local = app::load_values(&case.inputs(), &self.profiles)
            .map_err(|error| vec![error.to_string()])?;
        let unknown = unknown_names(case, &mut local);
        if unknown.is_empty() {
            Ok(check(case, &mut local))
        } else {
            Err(unknown)
        }
    }
}

//! All contact of the commands with the wiring: loading manifests, asking a server, serving.

use std::time::Duration;

use super::{CliError, Exit, ServeArgs, SourceArgs, TestArgs, output};
use crate::insight::Ask;
use crate::{app, client, config};

/// Where a server listens unless it is told otherwise.
pub(super) const DEFAULT_SERVER: &str = "127.0.0.1:50051";

/// How long a server has to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Reads the manifests or reaches the server, whichever is named. What is wrong in the manifests
/// is told on standard error.
pub(super) fn connect(source: &SourceArgs) -> Result<Box<dyn Ask>, CliError> {
    source.check()?;
    if let Some(address) = &source.server {
        let remote = client::Remote::connect(address, PATIENCE)?;
        return Ok(Box::new(remote));
    }
    let loaded = app::load(&app::Inputs {
        manifests: source.manifests.clone(),
        profiles: source.profiles.clone(),
        allow_partial: source.allow_partial,
    })
    .map_err(|error| CliError::Unreadable(error.to_string()))?;
    for warning in &loaded.warnings {
        output::say(&format!("warning: {warning}"));
    }
    Ok(Box::new(loaded.local))
}

/// Whether a server says that it, or one of its services, serves.
pub(super) fn health(address: &str, service: &str, patience: Duration) -> Result<bool, CliError> {
    Ok(client::health(address, service, patience)?)
}

/// Serves until it is told to stop.
pub(super) fn serve(args: &ServeArgs) -> Result<Exit, CliError> {
    let settings = config::Settings {
        manifests: args.manifests.clone(),
        profiles: args.profiles.clone(),
        allow_partial: args.allow_partial,
        listen: args.listen.clone(),
        health_listen: args.health_listen.clone(),
        port_file: args.port_file.clone(),
        insecure_listen: args.insecure_listen,
        tls_cert: args.tls_cert.clone(),
        tls_key: args.tls_key.clone(),
        client_ca: args.client_ca.clone(),
    };
    app::serve(settings).map_err(|error| CliError::Unreadable(error.to_string()))?;
    Ok(Exit::Fine)
}

/// Runs conformance cases.
pub(super) fn test(args: &TestArgs) -> Result<Exit, CliError> {
    super::test::run(args)
}

//! The task of a mirror: watches a server, and reconnects after errors.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tonic::transport::Endpoint;
use tonic::{Code, Status};

use super::decoder::{CompileFn, StreamDecoder};
use super::path_map::PathSelector;
use super::{CurrentCopy, MirrorSettings, Shared, SnapshotInfo};
use crate::connect::{connect, endpoint};
use crate::failure::{TlsFailure, code_name, root_cause};
use crate::stubs::effective_policy_service_client::EffectivePolicyServiceClient;
use crate::v1;
use crate::{ConnectError, MAX_REPLY_BYTES};
use entail_core::model::{Level, PathPrefix};

/// Ratio of the maximum delay between attempts to the first delay.
const BACKOFF_RATIO: u32 = 100;

/// The task of a mirror.
pub(super) struct Reflector<T> {
    settings: MirrorSettings,
    decoder: StreamDecoder<T>,
    shared: Arc<Shared<T>>,
    /// Resume token of the last complete update; empty before the first.
    resume_token: String,
    /// Delay before the next attempt.
    backoff: Duration,
}

/// The endpoint of the server. The certificates are read anew for each connection, because they are renewed meanwhile.
fn endpoint_of(settings: &MirrorSettings) -> Result<Endpoint, ConnectError> {
    let timeout = settings.timeout;
    Ok(endpoint(&settings.server, &settings.tls)?
        .connect_timeout(timeout)
        .http2_keep_alive_interval(timeout)
        .keep_alive_timeout(timeout)
        .keep_alive_while_idle(true))
}

impl<T> Reflector<T> {
    pub fn new(
        settings: MirrorSettings,
        compile: CompileFn<T>,
        shared: Arc<Shared<T>>,
    ) -> Result<Self, ConnectError> {
        endpoint_of(&settings)?;
        let selector = PathSelector {
            prefixes: parse_all(&settings.prefixes, |text| {
                PathPrefix::parse(text)
                    .map_err(|error| format!("malformed prefix `{text}`: {error}"))
            })?,
            levels: parse_all(&settings.levels, |text| {
                Level::parse(text).ok_or_else(|| format!("`{text}` is not a level"))
            })?,
        };
        Ok(Self {
            backoff: settings.max_backoff / BACKOFF_RATIO,
            settings,
            decoder: StreamDecoder::new(selector, compile),
            shared,
            resume_token: String::new(),
        })
    }

    /// Watches the server until the task is aborted.
    pub async fn run(mut self) {
        let _guard = DisconnectGuard(Arc::clone(&self.shared));
        loop {
            let error = match self.watch_once().await {
                Ok(()) => "the server closed the stream".to_owned(),
                Err(error) => error,
            };
            self.shared.freshness.send_modify(|freshness| {
                freshness.connected = false;
                freshness.error = Some(error);
            });
            tokio::time::sleep(self.backoff).await;
            self.backoff = (2 * self.backoff).min(self.settings.max_backoff);
        }
    }

    /// Opens one watch stream and reads it to its end.
    async fn watch_once(&mut self) -> Result<(), String> {
        let timeout = self.settings.timeout;
        let endpoint = endpoint_of(&self.settings).map_err(|error| error.to_string())?;
        let channel = connect(&endpoint, &self.settings.server).await;
        let channel = channel.map_err(|error| error.to_string())?;
        let mut client =
            EffectivePolicyServiceClient::new(channel).max_decoding_message_size(MAX_REPLY_BYTES);
        let request = v1::WatchEffectivePoliciesRequest {
            prefixes: self.settings.prefixes.clone(),
            levels: self.settings.levels.clone(),
            kinds: self.settings.kinds.clone(),
            resume_token: self.resume_token.clone(),
        };
        let timed_out = |_| {
            format!(
                "no message from the server within {} s",
                timeout.as_secs_f32()
            )
        };
        let response =
            tokio::time::timeout(timeout, client.watch_effective_policies(request)).await;
        let mut messages = response
            .map_err(timed_out)?
            .map_err(|s| status_message(&s))?
            .into_inner();
        self.decoder.start_stream();
        loop {
            let message = tokio::time::timeout(timeout, messages.message()).await;
            let message = message
                .map_err(timed_out)?
                .map_err(|s| status_message(&s))?;
            let Some(message) = message else {
                return Ok(());
            };
            self.apply(message)?;
        }
    }

    /// Decodes a message and publishes the copy if the message completes an update.
    fn apply(&mut self, mut message: v1::WatchEffectivePoliciesResponse) -> Result<(), String> {
        let copy = match self.decoder.decode(&mut message) {
            Ok(copy) => copy,
            Err(error) => {
                self.resume_token.clear();
                return Err(error.to_string());
            }
        };
        let Some(copy) = copy else { return Ok(()) };
        let synced_at = message.synced_at.map(SystemTime::try_from);
        let info = SnapshotInfo {
            version: message.version,
            synced_at: synced_at.and_then(Result::ok),
            kinds: message.kinds,
        };
        let current = CurrentCopy {
            copy,
            info: info.clone(),
        };
        self.shared.current.store(Some(Arc::new(current)));
        self.resume_token = message.resume_token;
        self.backoff = self.settings.max_backoff / BACKOFF_RATIO;
        self.shared.freshness.send_modify(|freshness| {
            freshness.connected = true;
            freshness.version = info.version;
            freshness.synced_at = info.synced_at;
            freshness.kinds = info.kinds;
            freshness.error = None;
        });
        Ok(())
    }
}

/// Marks the mirror as disconnected when the task ends, also if it panics or is aborted.
struct DisconnectGuard<T>(Arc<Shared<T>>);

impl<T> Drop for DisconnectGuard<T> {
    fn drop(&mut self) {
        self.0.freshness.send_modify(|freshness| {
            freshness.connected = false;
            freshness.error = Some("the task of the mirror has ended".to_owned());
        });
    }
}

fn parse_all<V>(
    texts: &[String],
    parse: impl Fn(&str) -> Result<V, String>,
) -> Result<Vec<V>, ConnectError> {
    let values = texts.iter().map(|text| parse(text).map_err(ConnectError));
    values.collect()
}

fn status_message(status: &Status) -> String {
    use std::error::Error;
    match (status.source(), status.code()) {
        // A status with a source does not come from the server, but from the transport, whose own message is generic.
        (Some(error), _) => match TlsFailure::of(error) {
            Some(failure) => format!("connection failed: {failure}"),
            None => format!("connection failed: {}", root_cause(error)),
        },
        (None, Code::Unavailable) => {
            format!("the server is not available: {}", status.message())
        }
        (None, code) => format!(
            "the server rejected the request ({}): {}",
            code_name(code),
            status.message()
        ),
    }
}

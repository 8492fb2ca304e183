//! Follows a server, again and again.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tonic::transport::Endpoint;
use tonic::{Code, Status};

use super::decoder::{CompileFn, StreamDecoder};
use super::path_map::PathSelector;
use super::{CurrentCopy, MirrorSettings, Shared, SnapshotInfo};
use crate::connect::{connect, endpoint};
use crate::stubs::effective_policy_service_client::EffectivePolicyServiceClient;
use crate::v1;
use crate::{ConnectError, MAX_REPLY_BYTES};
use entail_core::model::{Level, PathPrefix};

/// How many times shorter than the longest the first pause is.
const BACKOFF_RATIO: u32 = 100;

/// The task of a mirror.
pub(super) struct Reflector<T> {
    settings: MirrorSettings,
    endpoint: Endpoint,
    decoder: StreamDecoder<T>,
    shared: Arc<Shared<T>>,
    /// Of the last complete update.
    token: String,
    /// Before the next attempt.
    pause: Duration,
}

impl<T> Reflector<T> {
    pub fn new(
        settings: MirrorSettings,
        compile: CompileFn<T>,
        shared: Arc<Shared<T>>,
    ) -> Result<Self, ConnectError> {
        let timeout = settings.timeout;
        let endpoint = endpoint(&settings.server, &settings.tls)?
            .connect_timeout(timeout)
            .http2_keep_alive_interval(timeout)
            .keep_alive_timeout(timeout)
            .keep_alive_while_idle(true);
        let scope = PathSelector {
            prefixes: all(&settings.prefixes, |text| {
                PathPrefix::parse(text).map_err(|error| format!("`{text}` is no path: {error}"))
            })?,
            levels: all(&settings.levels, |word| {
                Level::parse(word).ok_or_else(|| format!("`{word}` is no level"))
            })?,
        };
        Ok(Self {
            pause: settings.max_backoff / BACKOFF_RATIO,
            settings,
            endpoint,
            decoder: StreamDecoder::new(scope, compile),
            shared,
            token: String::new(),
        })
    }

    /// Follows until it is aborted.
    pub async fn run(mut self) {
        let _end = DisconnectGuard(Arc::clone(&self.shared));
        loop {
            let trouble = match self.follow().await {
                Ok(()) => "the server has ended the stream".to_owned(),
                Err(trouble) => trouble,
            };
            self.shared.freshness.send_modify(|freshness| {
                freshness.connected = false;
                freshness.error = Some(trouble);
            });
            tokio::time::sleep(self.pause).await;
            self.pause = (2 * self.pause).min(self.settings.max_backoff);
        }
    }

    /// Follows one stream to its end.
    async fn follow(&mut self) -> Result<(), String> {
        let timeout = self.settings.timeout;
        let channel = connect(&self.endpoint, &self.settings.server).await;
        let channel = channel.map_err(|error| error.to_string())?;
        let mut client =
            EffectivePolicyServiceClient::new(channel).max_decoding_message_size(MAX_REPLY_BYTES);
        let request = v1::WatchEffectivePoliciesRequest {
            prefixes: self.settings.prefixes.clone(),
            levels: self.settings.levels.clone(),
            kinds: self.settings.kinds.clone(),
            resume_token: self.token.clone(),
        };
        let silent = |_| format!("the server was silent for {timeout:?}");
        let begun = tokio::time::timeout(timeout, client.watch_effective_policies(request)).await;
        let mut messages = begun
            .map_err(silent)?
            .map_err(|s| status_message(&s))?
            .into_inner();
        self.decoder.begin();
        loop {
            let message = tokio::time::timeout(timeout, messages.message()).await;
            let message = message.map_err(silent)?.map_err(|s| status_message(&s))?;
            let Some(message) = message else {
                return Ok(());
            };
            self.take(message)?;
        }
    }

    fn take(&mut self, mut message: v1::WatchEffectivePoliciesResponse) -> Result<(), String> {
        let copy = match self.decoder.take(&mut message) {
            Ok(copy) => copy,
            Err(broken) => {
                self.token.clear();
                return Err(broken.to_string());
            }
        };
        let Some(copy) = copy else { return Ok(()) };
        let synced_at = message.synced_at.map(SystemTime::try_from);
        let known = SnapshotInfo {
            version: message.version,
            synced_at: synced_at.and_then(Result::ok),
            kinds: message.kinds,
        };
        let held = CurrentCopy {
            copy,
            known: known.clone(),
        };
        self.shared.current.store(Some(Arc::new(held)));
        self.token = message.resume_token;
        self.pause = self.settings.max_backoff / BACKOFF_RATIO;
        self.shared.freshness.send_modify(|freshness| {
            freshness.connected = true;
            freshness.version = known.version;
            freshness.synced_at = known.synced_at;
            freshness.kinds = known.kinds;
            freshness.error = None;
        });
        Ok(())
    }
}

/// Says that nothing is followed any more, however that comes.
struct DisconnectGuard<T>(Arc<Shared<T>>);

impl<T> Drop for DisconnectGuard<T> {
    fn drop(&mut self) {
        self.0.freshness.send_modify(|freshness| {
            freshness.connected = false;
            freshness.error = Some("the mirror has ended: its task is gone".to_owned());
        });
    }
}

fn all<V>(
    words: &[String],
    read: impl Fn(&str) -> Result<V, String>,
) -> Result<Vec<V>, ConnectError> {
    let read = words.iter().map(|word| read(word).map_err(ConnectError));
    read.collect()
}

fn status_message(status: &Status) -> String {
    use std::error::Error;
    match status.code() {
        // No status that a server has sent: what became of the connection.
        Code::Unknown | Code::Internal if status.source().is_some() => {
            format!("the connection broke off: {}", status.message())
        }
        Code::Unavailable => format!("the server is not available: {}", status.message()),
        code => format!("the server refuses ({code:?}): {}", status.message()),
    }
}

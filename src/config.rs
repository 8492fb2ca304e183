//! Settings: plain data that the command line fills, and what is wrong with them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::serve::{Address, Limits};
pub use crate::telemetry::{LogFormat, LogSettings};

/// Where a server listens unless it is told otherwise.
pub const DEFAULT_LISTEN: &str = "127.0.0.1:50051";
/// How long requests may take to end after the signal to stop, unless told otherwise.
pub const DEFAULT_DRAIN: Duration = Duration::from_secs(10);
/// How often manifests are looked at even if the file system tells of no change.
pub const DEFAULT_POLL: Duration = Duration::from_secs(10);
/// Longer drains are mistakes of the unit.
const MAX_DRAIN: Duration = Duration::from_secs(3600);

/// What a command reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inputs {
    /// Manifests: files, directories with all below them, `-` for standard input.
    pub manifests: Vec<PathBuf>,
    /// Files of PolicyProfile documents, or directories of such files.
    pub profiles: Vec<PathBuf>,
    /// Whether to go on with what can be read.
    pub allow_partial: bool,
    /// The cluster to read instead of manifests.
    pub cluster: Option<ClusterAccess>,
}

/// How to reach a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterAccess {
    /// The kubeconfig; else `KUBECONFIG`, the user's own one, or the pod's account.
    pub kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig; else its current one.
    pub context: Option<String>,
}

/// Settings of `serve`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServeSettings {
    /// What to read and follow.
    pub inputs: Inputs,
    /// Where to listen: `IP:PORT` or `unix:PATH`.
    pub listen: Vec<String>,
    /// Where to serve health alone.
    pub health_listen: Option<String>,
    /// Whether others than this machine may connect without TLS.
    pub insecure_listen: bool,
    /// A file to write the address of the first TCP listener to.
    pub port_file: Option<PathBuf>,
    /// How long requests may take to end after the signal to stop.
    pub drain_timeout: Duration,
    /// How often to look at manifests even if the file system tells of no change.
    pub poll: Duration,
    /// What one caller may cost.
    pub limits: Limits,
    /// What to log.
    pub log: LogSettings,
}

/// Addresses to listen on, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listeners {
    /// For all services.
    pub all: Vec<Address>,
    /// For health alone.
    pub health: Option<Address>,
}

impl Default for ServeSettings {
    fn default() -> Self {
        Self {
            inputs: Inputs::default(),
            listen: vec![DEFAULT_LISTEN.to_owned()],
            health_listen: None,
            insecure_listen: false,
            port_file: None,
            drain_timeout: DEFAULT_DRAIN,
            poll: DEFAULT_POLL,
            limits: Limits::default(),
            log: LogSettings {
                filter: None,
                format: LogFormat::Text,
            },
        }
    }
}

impl Inputs {
    /// Checks the inputs.
    ///
    /// # Errors
    /// All that is wrong, one sentence each.
    pub fn check(&self) -> Result<(), Vec<String>> {
        let mut wrong = Vec::new();
        match (&self.cluster, self.manifests.is_empty()) {
            (None, true) => wrong.push(
                "nothing to read: name files or directories with `--manifests`, or a cluster with \
                 `--kube`"
                    .to_owned(),
            ),
            (Some(_), false) => {
                wrong.push("`--manifests` beside a cluster: name one of the two".to_owned());
            }
            _ => {}
        }
        let is_stdin = |path: &&PathBuf| path.as_path() == Path::new("-");
        if self.manifests.iter().filter(is_stdin).count() > 1 {
            wrong.push("`--manifests -` stands twice: standard input is read once".to_owned());
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }
}

impl ServeSettings {
    /// Checks all settings and reads the addresses.
    ///
    /// # Errors
    /// All that is wrong, one sentence each.
    pub fn check(&self) -> Result<Listeners, Vec<String>> {
        let mut wrong = self.inputs.check().err().unwrap_or_default();
        let mut all: Vec<Address> = Vec::new();
        if self.listen.is_empty() {
            wrong.push("nowhere to listen: give `--listen`".to_owned());
        }
        for text in &self.listen {
            match self.listen_address(text) {
                Ok(address) if all.contains(&address) && !takes_any_port(&address) => {
                    wrong.push(format!("`--listen {text}` stands twice: remove one"));
                }
                Ok(address) => all.push(address),
                Err(message) => wrong.push(message),
            }
        }
        // Probes come from the node and speak no TLS, so health alone may be open to it.
        let health = match self.health_listen.as_deref().map(str::parse::<Address>) {
            None => None,
            Some(Ok(address)) if all.contains(&address) && !takes_any_port(&address) => {
                wrong.push(format!(
                    "`--health-listen {address}` is taken by `--listen`"
                ));
                None
            }
            Some(Ok(address)) => Some(address),
            Some(Err(error)) => {
                wrong.push(format!("--health-listen: {error}"));
                None
            }
        };
        if self.port_file.is_some() && !all.iter().any(|a| matches!(a, Address::Tcp(_))) {
            wrong.push("`--port-file` needs a TCP address in `--listen`".to_owned());
        }
        if self.drain_timeout > MAX_DRAIN {
            wrong.push(format!(
                "`--drain-timeout` is over {} s",
                MAX_DRAIN.as_secs()
            ));
        }
        wrong.extend(self.zero_limits());
        wrong.extend(self.log.check().err());
        if wrong.is_empty() {
            Ok(Listeners { all, health })
        } else {
            Err(wrong)
        }
    }

    fn listen_address(&self, text: &str) -> Result<Address, String> {
        let address: Address = text.parse().map_err(|error| format!("--listen: {error}"))?;
        if address.is_local() || self.insecure_listen {
            return Ok(address);
        }
        Err(format!(
            "`--listen {text}` would be open to other machines without TLS, which this version \
             does not speak: listen on loopback or `unix:PATH` behind a proxy that does, or give \
             `--insecure-listen`"
        ))
    }

    fn zero_limits(&self) -> impl Iterator<Item = String> {
        let limits = &self.limits;
        [
            ("request bytes", limits.request_bytes == 0),
            ("reply bytes", limits.reply_bytes == 0),
            ("streams", limits.streams == 0),
            (
                "requests per connection",
                limits.requests_per_connection == 0,
            ),
            ("header bytes", limits.header_bytes == 0),
            ("keepalive", limits.keepalive.is_zero()),
            ("keepalive timeout", limits.keepalive_timeout.is_zero()),
            ("insight questions at once", limits.insight_at_once == 0),
            ("insight timeout", limits.insight_timeout.is_zero()),
            ("batches at once", limits.batches_at_once == 0),
        ]
        .into_iter()
        .filter(|(_, is_zero)| *is_zero)
        .map(|(name, _)| format!("the limit of {name} is 0: nothing could be answered"))
    }
}

fn takes_any_port(address: &Address) -> bool {
    matches!(address, Address::Tcp(address) if address.port() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> ServeSettings {
        let inputs = Inputs {
            manifests: vec!["a".into()],
            ..Inputs::default()
        };
        ServeSettings {
            inputs,
            ..ServeSettings::default()
        }
    }

    #[test]
    fn defaults_are_right() {
        let listeners = settings().check().unwrap();
        assert_eq!(listeners.all, [DEFAULT_LISTEN.parse().unwrap()]);
    }

    #[test]
    fn all_that_is_wrong_is_told_at_once() {
        let mut wrong = settings();
        wrong.inputs.manifests.clear();
        wrong.listen = ["nowhere", "0.0.0.0:1", "unix:/x", "unix:/x"]
            .map(str::to_owned)
            .into();
        wrong.health_listen = Some("x".to_owned());
        wrong.port_file = Some("p".into());
        wrong.drain_timeout = Duration::MAX;
        wrong.limits.streams = 0;
        wrong.log.filter = Some("=".to_owned());
        let told = wrong.check().unwrap_err();
        let words = [
            "nothing to read",
            "`nowhere`",
            "--insecure-listen",
            "stands twice",
            "--health-listen",
            "--port-file",
            "--drain-timeout",
            "streams",
            "--log",
        ];
        assert_eq!(told.len(), words.len(), "{told:#?}");
        for (told, word) in told.iter().zip(words) {
            assert!(told.contains(word), "{told}");
        }
    }

    #[test]
    fn an_open_listener_has_to_be_asked_for() {
        let mut open = settings();
        open.listen = vec!["0.0.0.0:1".to_owned()];
        open.health_listen = Some("0.0.0.0:2".to_owned());
        assert_eq!(open.check().unwrap_err().len(), 1);
        open.insecure_listen = true;
        open.check().unwrap();
    }

    #[test]
    fn any_port_may_be_asked_for_twice() {
        let mut settings = settings();
        settings.listen = vec!["127.0.0.1:0".to_owned(); 2];
        assert_eq!(settings.check().unwrap().all.len(), 2);
    }
}

//! Logs on standard error; what is logged can be changed while the process runs.

use std::fmt;
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tracing_subscriber::filter::ParseError;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry, reload};

/// What is logged unless somebody asks for more.
const DEFAULT_FILTER: &str = "info";
/// What the client of the API server says of each attempt to reach it is told once by us; a filter
/// that names it has it all the same.
const BASE_DIRECTIVES: &str = "kube_client=off";
/// The variable that sets the filter where `--log` does not.
const FILTER_VARIABLE: &str = "ENTAIL_LOG";

/// Of the process's one log.
static CONTROL: OnceLock<LogControl> = OnceLock::new();

/// What to log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogSettings {
    /// A level, or levels by target, such as `info,entail::app=debug`; where it is missing
    /// `ENTAIL_LOG` counts, then `info`.
    pub filter: Option<String>,
    /// How a line is written.
    pub format: LogFormat,
}

/// How a line of the log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Changes what is logged.
#[derive(Clone)]
pub struct LogControl {
    filter: Arc<Mutex<String>>,
    reload: reload::Handle<EnvFilter, Registry>,
}

impl LogSettings {
    /// Checks the filter.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self) -> Result<(), String> {
        self.directives().map(drop)
    }

    fn directives(&self) -> Result<EnvFilter, String> {
        let (source, text) = self.text();
        read(&text).map_err(|error| wrong(source, &text, &error))
    }

    /// Where the filter is from, and what it says.
    fn text(&self) -> (&'static str, String) {
        let (source, text) = match &self.filter {
            Some(text) => ("--log", text.clone()),
            None => (
                FILTER_VARIABLE,
                std::env::var(FILTER_VARIABLE).unwrap_or_default(),
            ),
        };
        let is_empty = text.is_empty();
        (
            source,
            if is_empty {
                DEFAULT_FILTER.to_owned()
            } else {
                text
            },
        )
    }
}

/// Reads a filter.
fn read(text: &str) -> Result<EnvFilter, ParseError> {
    EnvFilter::try_new(format!("{BASE_DIRECTIVES},{text}"))
}

fn wrong(source: &str, text: &str, error: &dyn fmt::Display) -> String {
    format!("{source} is `{text}`, no log filter: {error}; write `debug` or `entail=debug`")
}

impl fmt::Debug for LogControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LogControl").field(&self.filter()).finish()
    }
}

impl LogControl {
    /// What is logged.
    pub fn filter(&self) -> String {
        let filter = self.filter.lock();
        filter.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Logs something else from now on.
    ///
    /// # Errors
    /// The filter is wrong.
    pub fn set(&self, filter: &str) -> Result<(), String> {
        if filter.is_empty() {
            return Err("the filter is empty: write `debug` or `entail=debug`".to_owned());
        }
        let read = read(filter).map_err(|error| wrong("the filter", filter, &error))?;
        let changed = self.reload.reload(read);
        changed.map_err(|error| format!("the filter is not changed: {error}"))?;
        let mut told = self.filter.lock().unwrap_or_else(PoisonError::into_inner);
        filter.clone_into(&mut told);
        Ok(())
    }
}

/// The control of the process's log, once it has begun.
pub fn log_control() -> Option<LogControl> {
    CONTROL.get().cloned()
}

/// Begins to log on standard error. Later calls change nothing.
///
/// # Errors
/// The filter is wrong.
pub fn init(settings: &LogSettings) -> Result<(), String> {
    let (filter, handle) = reload::Layer::new(settings.directives()?);
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(coloured());
    let log = tracing_subscriber::registry().with(filter);
    // A second subscriber is refused: the process has one log, and who was first keeps it.
    let first = match settings.format {
        LogFormat::Text => log.with(lines.compact()).try_init(),
        LogFormat::Json => log.with(lines.json().flatten_event(true)).try_init(),
    };
    if first.is_ok() {
        let filter = Arc::new(Mutex::new(settings.text().1));
        CONTROL.get_or_init(|| LogControl {
            filter,
            reload: handle,
        });
    }
    Ok(())
}

/// Colours for people alone, and not for those who refuse them.
fn coloured() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !refused && std::io::stderr().is_terminal()
}

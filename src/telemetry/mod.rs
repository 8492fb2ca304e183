//! What the process tells of itself: logs on standard error.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// What is logged unless somebody asks for more.
const DEFAULT_FILTER: &str = "info";
/// The variable that sets the filter where `--log` does not.
const VARIABLE: &str = "ENTAIL_LOG";

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

impl LogSettings {
    /// Checks the filter.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self) -> Result<(), String> {
        self.directives().map(drop)
    }

    fn directives(&self) -> Result<EnvFilter, String> {
        let (source, text) = match &self.filter {
            Some(text) => ("--log", text.clone()),
            None => (VARIABLE, std::env::var(VARIABLE).unwrap_or_default()),
        };
        let text = if text.is_empty() {
            DEFAULT_FILTER
        } else {
            &text
        };
        EnvFilter::try_new(text).map_err(|error| {
            format!("{source} is `{text}`, no log filter: {error}; write `debug` or `entail=debug`")
        })
    }
}

/// Begins to log on standard error. Later calls change nothing.
///
/// # Errors
/// The filter is wrong.
pub fn init(settings: &LogSettings) -> Result<(), String> {
    let builder = tracing_subscriber::fmt()
        .with_env_filter(settings.directives()?)
        .with_writer(std::io::stderr)
        .with_ansi(coloured());
    // A second subscriber is refused: the process has one log, and who was first keeps it.
    let _first = match settings.format {
        LogFormat::Text => builder.compact().try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    Ok(())
}

/// Colours for people alone, and not for those who refuse them.
fn coloured() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !refused && std::io::stderr().is_terminal()
}

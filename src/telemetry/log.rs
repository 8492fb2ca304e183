//! Logs on standard error, with a filter that can be changed while the process runs.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::printable::{escape, is_hidden};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry, reload};

/// The filter if neither `--log` nor `ENTAIL_LOG` is set.
const DEFAULT_FILTER: &str = "info";
/// Directives before those of the filter. The Kubernetes client logs every failed attempt, which
/// entail logs once as a problem of the source; a filter that names `kube_client` overrides this.
const BASE_DIRECTIVES: &str = "kube_client=off";
/// Further directives unless the level of all modules is `debug` or `trace`. These libraries warn of
/// what any caller can send: frames, headers and server names that violate their protocol. A filter
/// that names them overrides this, too.
const PROTOCOL_DIRECTIVES: &str = ",h2=error,hyper=error,rustls=error";
/// The environment variable with the filter, if `--log` is not set.
const FILTER_VARIABLE: &str = "ENTAIL_LOG";

/// The levels of a filter.
const LEVELS: &str = "off, error, warn, info, debug, trace";

/// The control of the log of this process.
static CONTROL: OnceLock<LogControl> = OnceLock::new();

/// Settings of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogSettings {
    /// A level, or levels by target, such as `info,entail::app=debug`. Default: `ENTAIL_LOG`, then
    /// `info`.
    pub filter: Option<String>,
    /// Format of the log lines.
    pub format: LogFormat,
}

/// Format of the log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Human-readable text.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Reads and changes the log filter.
#[derive(Clone)]
pub struct LogControl {
    filter: Arc<Mutex<String>>,
    reload: reload::Handle<EnvFilter, Registry>,
}

impl LogSettings {
    /// Checks the filter.
    ///
    /// # Errors
    /// Returns a message if the filter is invalid.
    pub fn check(&self) -> Result<(), String> {
        self.directives().map(drop)
    }

    fn directives(&self) -> Result<EnvFilter, String> {
        let (source, text) = self.text();
        parse(&text).map_err(|error| invalid_filter(source, &text, &error))
    }

    /// Returns the origin of the filter and its text.
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

/// Parses a filter: levels, and levels by target.
///
/// # Errors
/// Returns what is wrong. [`EnvFilter`] itself takes a misspelled level for the name of a target, and then logs nothing
/// else.
fn parse(text: &str) -> Result<EnvFilter, String> {
    let mut filter = BASE_DIRECTIVES.to_owned();
    if !text.split(',').any(is_verbose) {
        filter.push_str(PROTOCOL_DIRECTIVES);
    }
    for directive in text.split(',').map(str::trim) {
        check_directive(directive)?;
        filter.extend([",", directive]);
    }
    EnvFilter::try_new(filter).map_err(|error| error.to_string())
}

/// Reports whether a directive sets the level of all modules to `debug` or `trace`.
fn is_verbose(directive: &str) -> bool {
    let level = directive.trim().parse::<LevelFilter>();
    level.is_ok_and(|level| level >= LevelFilter::DEBUG)
}

/// Checks that a directive is a level, or ends with `=` and a level.
fn check_directive(directive: &str) -> Result<(), String> {
    let (target, level) = match directive.rsplit_once('=') {
        Some((target, level)) => (Some(target), level),
        None => (None, directive),
    };
    if directive.is_empty() {
        return Err("a directive is empty".to_owned());
    }
    if level.parse::<LevelFilter>().is_err() {
        return Err(format!("`{level}` is not a level ({LEVELS})"));
    }
    // Spans are checked by the parser.
    let module = target.map(|target| target.split('[').next().unwrap_or_default());
    let is_module_character = |c: char| c.is_ascii_alphanumeric() || "_:-.".contains(c);
    match (target, module) {
        (Some(""), _) => Err(format!("`{directive}` has no module before `=`")),
        (_, Some(module)) if !module.chars().all(is_module_character) => {
            Err(format!("`{module}` is not the name of a module"))
        }
        _ => Ok(()),
    }
}

fn invalid_filter(source: &str, text: &str, error: &str) -> String {
    format!(
        "{source} is not a valid log filter, `{text}`: {error}; for example `debug` or \
         `info,entail::source=debug`"
    )
}

impl fmt::Debug for LogControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LogControl").field(&self.filter()).finish()
    }
}

impl LogControl {
    /// Returns the current filter.
    pub fn filter(&self) -> String {
        let filter = self.filter.lock();
        filter.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes the filter.
    ///
    /// # Errors
    /// Returns a message if the filter is invalid.
    pub fn set(&self, filter: &str) -> Result<(), String> {
        if filter.is_empty() {
            return Err(
                "the filter is empty; for example `debug` or `info,entail::source=debug`"
                    .to_owned(),
            );
        }
        let directives =
            parse(filter).map_err(|error| invalid_filter("the filter", filter, &error))?;
        let reloaded = self.reload.reload(directives);
        reloaded.map_err(|error| format!("failed to change the log filter: {error}"))?;
        let mut current = self.filter.lock().unwrap_or_else(PoisonError::into_inner);
        filter.clone_into(&mut current);
        Ok(())
    }
}

/// Returns the control of the log; `None` before [`init`].
pub fn log_control() -> Option<LogControl> {
    CONTROL.get().cloned()
}

/// Starts to log on standard error. Later calls have no effect.
///
/// # Errors
/// Returns a message if the filter is invalid.
pub fn init(settings: &LogSettings) -> Result<(), String> {
    let (filter, handle) = reload::Layer::new(settings.directives()?);
    let is_colored = use_color();
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(move || PrintableLines {
            out: io::stderr(),
            is_colored,
        })
        .with_ansi(is_colored);
    let log = tracing_subscriber::registry().with(filter);
    // A process can have one subscriber: `try_init` fails if there is one already.
    let initialized = match settings.format {
        LogFormat::Text => log.with(lines.compact()).try_init(),
        LogFormat::Json => log.with(lines.json().flatten_event(true)).try_init(),
    };
    if initialized.is_ok() {
        let filter = Arc::new(Mutex::new(settings.text().1));
        CONTROL.get_or_init(|| LogControl {
            filter,
            reload: handle,
        });
    }
    Ok(())
}

/// Writes the lines of a log without hidden characters: an event is one line, whatever names and texts are in it. Each
/// event is written at once.
struct PrintableLines<W> {
    out: W,
    /// Whether escapes of colors stay.
    is_colored: bool,
}

/// Whether what follows an escape sets a color or a style, and does nothing else.
fn begins_with_color(text: &str) -> bool {
    let parameters = text.strip_prefix('[').and_then(|rest| rest.split_once('m'));
    parameters.is_some_and(|(list, _)| list.bytes().all(|c| c.is_ascii_digit() || c == b';'))
}

impl<W: Write> Write for PrintableLines<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let line = text.strip_suffix('\n').unwrap_or(&text);
        let mut parts = line.split('\u{1b}');
        let mut written = escape(parts.next().unwrap_or_default(), is_hidden);
        for part in parts {
            let is_color = self.is_colored && begins_with_color(part);
            written.push_str(if is_color { "\u{1b}" } else { "\\u001b" });
            written.push_str(&escape(part, is_hidden));
        }
        written.push('\n');
        self.out.write_all(written.as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Reports whether to color the log: on a terminal, unless `NO_COLOR` is set.
fn use_color() -> bool {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !no_color && std::io::stderr().is_terminal()
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn an_event_is_one_line_without_hidden_characters() {
        for (is_colored, expected) in [
            (
                true,
                "\u{1b}[1mWARN\u{1b}[0m a\\u000aERROR \\u202eb\\u001b[2J\n",
            ),
            (
                false,
                "\\u001b[1mWARN\\u001b[0m a\\u000aERROR \\u202eb\\u001b[2J\n",
            ),
        ] {
            let mut out = Vec::new();
            let mut lines = PrintableLines {
                out: &mut out,
                is_colored,
            };
            let event = "\u{1b}[1mWARN\u{1b}[0m a\nERROR \u{202e}b\u{1b}[2J\n";
            lines.write_all(event.as_bytes()).unwrap();
            lines.write_all(b"plain\n").unwrap();
            assert_eq!(
                String::from_utf8(out).unwrap(),
                format!("{expected}plain\n")
            );
        }
    }

    #[test]
    fn filters_are_levels_and_levels_by_target() {
        for valid in [
            "debug",
            "INFO",
            "info,entail::source=debug",
            "info, entail=trace",
            "warn,[request{method=Explain}]=debug",
            "entail[request]=debug",
        ] {
            assert_eq!(parse(valid).map(drop), Ok(()), "{valid}");
        }
        for (invalid, expected) in [
            ("debgu", "`debgu` is not a level (off, error, warn"),
            ("entail::source", "`entail::source` is not a level"),
            ("entail=loud", "`loud` is not a level"),
            ("info,,debug", "a directive is empty"),
            ("info,", "a directive is empty"),
            ("=debug", "no module before `=`"),
            ("a b=debug", "`a b` is not the name of a module"),
            ("{\"level\": \"debug\"}", "is not a level"),
        ] {
            let error = parse(invalid).map(drop).unwrap_err();
            assert!(error.contains(expected), "{invalid}: {error}");
        }
    }

    #[test]
    fn warnings_that_callers_can_cause_are_shown_on_request() {
        let is_shown = |filter: &str| {
            let log = tracing_subscriber::registry().with(parse(filter).unwrap());
            tracing::subscriber::with_default(log, || {
                assert!(tracing::enabled!(target: "entail::server", Level::ERROR));
                assert!(tracing::enabled!(target: "h2::proto", Level::ERROR));
                [
                    tracing::enabled!(target: "h2::proto::ping_pong", Level::WARN),
                    tracing::enabled!(target: "hyper::proto::h2", Level::WARN),
                    tracing::enabled!(target: "rustls::msgs::handshake", Level::WARN),
                ]
            })
        };
        for quiet in ["info", "warn", "error,entail=warn", "info,entail=debug"] {
            assert_eq!(is_shown(quiet), [false; 3], "{quiet}");
        }
        for verbose in [
            "debug",
            "TRACE",
            "info, debug",
            "warn,h2=warn,hyper=debug,rustls=info",
        ] {
            assert_eq!(is_shown(verbose), [true; 3], "{verbose}");
        }
        assert_eq!(is_shown("info,h2=warn"), [true, false, false]);
    }
}

//! `entail health`: checks the health of a server.

use std::io::Write;
use std::time::Duration;

use clap::Args;

use super::args::TlsArgs;
use super::{CliError, ExitStatus, connect, console};

/// Arguments of `entail health`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Exit codes: 0 serving; 1 not serving; 3 unreachable.

Examples:
  entail health
  entail health --server 127.0.0.1:50051 --service liveness --timeout 2")]
pub struct HealthArgs {
    /// Address of the server: `host:port`, `https://host:port` or `unix:PATH`.
    #[arg(long, value_name = "ADDR", default_value = connect::DEFAULT_SERVER)]
    pub server: String,
    /// Certificates for `--server`.
    #[command(flatten)]
    pub tls: TlsArgs,
    /// Service to check: empty for the server as a whole, `liveness` for liveness.
    #[arg(long, value_name = "NAME", default_value = "")]
    pub service: String,
    /// Timeout in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    pub timeout: Duration,
}

/// Runs the command.
pub(in crate::cli) fn run(args: &HealthArgs) -> Result<ExitStatus, CliError> {
    let is_serving = connect::health(&args.server, &args.tls.files(), &args.service, args.timeout)?;
    let mut out = console::stdout();
    writeln!(
        out,
        "{}",
        if is_serving { "serving" } else { "not serving" }
    )?;
    out.flush()?;
    Ok(if is_serving {
        ExitStatus::Success
    } else {
        ExitStatus::Findings
    })
}

/// Parses a number of seconds, with or without the suffix `s`.
fn seconds(text: &str) -> Result<Duration, String> {
    let number = text.strip_suffix('s').unwrap_or(text).parse::<f64>().ok();
    number
        .filter(|seconds| *seconds > 0.0)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| "expected a number of seconds above zero, such as `5`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_parsed() {
        assert_eq!(seconds("5"), Ok(Duration::from_secs(5)));
        assert_eq!(seconds("0.5s"), Ok(Duration::from_millis(500)));
        for wrong in ["0", "-1", "nan", "inf", "1e99", "x", ""] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}

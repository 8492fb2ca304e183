//! `entail verify`: compares effective policies with the configuration that a proxy has.

use std::fs::File;
use std::io::{self, Read};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;

use clap::{ArgGroup, Args, ValueEnum};

use super::envoy_admin::DumpReader;
use super::report;
use super::session::Session;
use super::verify_text::VerifyReport;
use super::{CliError, ExitStatus, QueryArgs, console};
use crate::api::v1;
use crate::insight::PAGE_SIZE;
use crate::verify::{Group, ProxyConfig, Verdict, Verifier, read_dump};

/// Arguments of `entail verify`.
#[derive(Args, Clone, Debug)]
#[command(
    group = ArgGroup::new("proxy").required(true),
    after_help = "\
Reads the configuration of an Envoy of Envoy Gateway: values; kgateway: the policies that set each
field; or Istio: rules alone. What cannot be compared is reported as `cannot tell`. With NAME, only the rules through an object are compared.
Exit code 1 if there is a finding that --fail-on names.

Examples:
  entail verify --config-dump dump.json --manifests gateway.yaml
  kubectl port-forward -n envoy-gateway-system deploy/envoy-shop-web 19000 &
  entail verify --admin http://127.0.0.1:19000 --kube
  entail verify httproute/shop/cart --config-dump dump.json --server 127.0.0.1:50051 -o json"
)]
pub struct VerifyArgs {
    /// The query.
    #[command(flatten)]
    pub query: QueryArgs,
    /// List everything, and not only the first entries.
    #[arg(long)]
    pub all: bool,
    /// The reply to `/config_dump` of Envoy's admin interface: a file, or `-` for standard input.
    #[arg(long, value_name = "FILE", group = "proxy")]
    pub config_dump: Option<PathBuf>,
    /// Address of Envoy's admin interface, such as `http://127.0.0.1:19000`.
    #[arg(long, value_name = "ADDR", group = "proxy")]
    pub admin: Option<String>,
    /// The findings that make the exit code 1.
    #[arg(
        long,
        value_enum,
        value_name = "FINDING",
        value_delimiter = ',',
        default_values_t = [FailOn::Differs, FailOn::Missing]
    )]
    pub fail_on: Vec<FailOn>,
}

/// A kind of finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// The proxy has another value.
    Differs,
    /// The proxy does not have what should be in effect.
    Missing,
    /// The proxy has what should not be in effect.
    Extra,
    /// The values cannot be compared.
    CannotTell,
    /// No finding.
    None,
}

impl FailOn {
    fn verdict(self) -> Option<Verdict> {
        match self {
            FailOn::Differs => Some(Verdict::Differs),
            FailOn::Missing => Some(Verdict::Missing),
            FailOn::Extra => Some(Verdict::Extra),
            FailOn::CannotTell => Some(Verdict::CannotTell),
            FailOn::None => None,
        }
    }
}

/// Runs the command.
pub(in crate::cli) fn run(args: VerifyArgs) -> Result<ExitStatus, CliError> {
    let query = args.query.recover_name();
    let name = query.name()?.unwrap_or_default();
    let stdin = Path::new("-");
    let manifests = &query.source.manifests;
    if args.config_dump.as_deref() == Some(stdin) && manifests.iter().any(|path| path == stdin) {
        return Err(CliError::Usage(
            "`--config-dump -` and `--manifests -` both read standard input: write one of them to a file".to_owned(),
        ));
    }
    // The dump and the manifests are read side by side: either can take seconds.
    let (config, session) = thread::scope(|scope| {
        let dump = scope.spawn(|| read(args.config_dump.as_deref(), args.admin.as_deref()));
        let session = Session::open(&query);
        let config = dump.join();
        (config.unwrap_or_else(|panic| resume_unwind(panic)), session)
    });
    let config = config?;
    for update in config.pending() {
        console::print_error(&format!(
            "warning: the proxy's configuration is not complete: {update}"
        ));
    }
    let mut session = session?;
    let mut verifier = Verifier::new(&config, &session.kinds);
    let states = compare(&mut session, &mut verifier, &name)?;
    let found = verifier.finish(name.is_empty() && !session.is_partial);
    let compared = found.summary.rules + found.summary.listeners;
    let is_foreign = |group: &Group| group.finding.verdict == Verdict::Extra;
    if compared == 0 && found.groups.iter().all(is_foreign) {
        return Err(nothing_compared(&config, &found.other_gateways, &name));
    }
    let fails = args
        .fail_on
        .iter()
        .filter_map(|one| one.verdict())
        .any(|verdict| found.count(verdict) > 0);
    let found = VerifyReport {
        version: session.status.version.clone().unwrap_or_default(),
        found,
    };
    let style = console::style().listing_all(args.all);
    report::print_styled(&found, query.output, &states, style)?;
    Ok(match session.exit(&states) {
        ExitStatus::Success if fails => ExitStatus::Findings,
        exit => exit,
    })
}

/// Reads the configuration of the proxy.
fn read(file: Option<&Path>, admin: Option<&str>) -> Result<ProxyConfig, CliError> {
    let (name, input): (String, Box<dyn Read>) = match (file, admin) {
        (Some(file), _) if file == Path::new("-") => {
            ("standard input".to_owned(), Box::new(io::stdin().lock()))
        }
        (Some(file), _) => {
            let name = file.display().to_string();
            let open = File::open(file);
            let open = open.map_err(|error| CliError::Unreadable(format!("{name}: {error}")))?;
            (name, Box::new(open))
        }
        (None, Some(address)) => (address.to_owned(), Box::new(DumpReader::fetch(address)?)),
        (None, None) => {
            let message = "no proxy: use `--config-dump FILE` or `--admin ADDR`";
            return Err(CliError::Usage(message.to_owned()));
        }
    };
    read_dump(input).map_err(|error| CliError::Unreadable(format!("{name}: {error}")))
}

/// Compares all paths through an object; all paths if `name` is empty. Returns the incomplete kinds.
fn compare(
    session: &mut Session,
    verifier: &mut Verifier<'_>,
    name: &str,
) -> Result<Vec<v1::KindState>, CliError> {
    let mut request = v1::ListPathsRequest {
        name: name.to_owned(),
        levels: Verifier::levels(),
        page_size: PAGE_SIZE,
        page_token: String::new(),
    };
    let mut states = None;
    loop {
        let page = session.list_paths(&request)?;
        states.get_or_insert_with(|| session.incomplete(&page.kinds));
        for path in &page.paths {
            if !verifier.serves(path) {
                continue;
            }
            let reply = session.look_up(path)?;
            session.check_version(reply.version.as_ref())?;
            verifier.compare(path, &reply.result.unwrap_or_default().policies);
        }
        if page.next_page_token.is_empty() {
            return Ok(states.unwrap_or_default());
        }
        request.page_token = page.next_page_token;
    }
}

/// The error if the proxy and the input have no Gateway in common.
fn nothing_compared(config: &ProxyConfig, others: &[String], name: &str) -> CliError {
    let gateways: Vec<&str> = config.gateways().collect();
    let through = match name {
        "" => String::new(),
        name => format!(" with paths through `{name}`"),
    };
    let input = match others {
        [] => "no Gateway".to_owned(),
        others => others.join(", "),
    };
    CliError::Unreadable(format!(
        "nothing to compare: the proxy serves {}, the input has {input}{through}; use the dump of a proxy of these \
         Gateways, or add their manifests",
        gateways.join(", ")
    ))
}

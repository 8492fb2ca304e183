//! `entail resolve`: the rule that a request takes, and what holds there.

use std::io::{self, Write};

use clap::Args;

use super::args::CommonArgs;
use super::document::Document;
use super::get_text;
use super::insight_json;
use super::report::{self, Report, write_wrapped};
use super::session::Session;
use super::text::{Style, printable};
use super::{CliError, ExitStatus};
use crate::api::v1;
use crate::insight::path_ref;
use entail_core::model::PathName;
use v1::resolve_request_request::{HostnamePrecedence, Protocol};

/// Tells which rule a request takes.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
The rule is found by the precedence of the Gateway API, on every Gateway unless `--at` names one.
Exit code 1 if no rule takes the request.

Examples:
  entail resolve --host cakes.bakery.example --path /order --manifests examples/bakery
  entail resolve --host cakes.bakery.example --method POST --header 'x-env: test' --manifests examples/bakery
  entail resolve --at gateways/platform/storefront/listeners/https --host cakes.bakery.example \\
    --manifests examples/bakery
  entail resolve --at mesh/shop/services/baker/loaves --path / --server 127.0.0.1:50051 -o json")]
pub struct ResolveArgs {
    /// The host that the request names, with or without a port.
    #[arg(long, value_name = "HOST", default_value = "")]
    pub host: String,
    /// Its path, with the query.
    #[arg(long, value_name = "PATH", default_value = "/")]
    pub path: String,
    /// Its method.
    #[arg(long, value_name = "METHOD", default_value = "GET")]
    pub method: String,
    /// A header of it, `name: value`. May be repeated.
    #[arg(long = "header", short = 'H', value_name = "HEADER", value_parser = header)]
    pub headers: Vec<(String, String)>,
    /// A gRPC call instead of a path and method, `package.Service/Method`.
    #[arg(long, value_name = "CALL", conflicts_with_all = ["path", "method"])]
    pub grpc: Option<String>,
    /// A TLS connection that is passed on by this server name.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["host", "path", "method", "headers", "grpc"])]
    pub sni: Option<String>,
    /// A TCP connection.
    #[arg(long, conflicts_with_all = ["host", "path", "method", "headers", "grpc", "sni"])]
    pub tcp: bool,
    /// A UDP packet.
    #[arg(long, conflicts_with_all = ["host", "path", "method", "headers", "grpc", "sni", "tcp"])]
    pub udp: bool,
    /// Where it comes in: the path of a Gateway, of a listener, or of a Service in the mesh
    /// (`mesh/CLIENT-NAMESPACE/services/NAMESPACE/NAME`).
    #[arg(long, value_name = "NAME")]
    pub at: Option<String>,
    /// The port of the listener, or of the Service.
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
    /// Where a listener's hostname makes those of routes equal, let the path decide and not what
    /// the routes say themselves, as before Gateway API 1.7.
    #[arg(long)]
    pub by_intersection: bool,
    /// Let routes of all listeners of the port serve, not only of the one whose hostname says most.
    #[arg(long)]
    pub not_isolated: bool,
    /// Where answers come from and how they are printed.
    #[command(flatten)]
    pub read: CommonArgs,
}

/// What became of a request.
struct ResolveReport(v1::ResolveRequestResponse);

/// Answers and prints.
pub(in crate::cli) fn run(args: ResolveArgs) -> Result<ExitStatus, CliError> {
    let mut request = request(&args)?;
    let ask = args.read.with_name(None);
    let mut session = Session::open(&ask)?;
    request.kinds.clone_from(&session.kinds);
    let reply = session.ask.resolve(request);
    let reply = reply.map_err(|error| session.failure(error))?;
    let states = session.incomplete(&reply.kinds);
    let resolved = ResolveReport(reply);
    report::print(&resolved, ask.output, &states)?;
    match session.exit(&states) {
        ExitStatus::Success if resolved.0.resolved.is_empty() => Ok(ExitStatus::Findings),
        exit => Ok(exit),
    }
}

fn request(args: &ResolveArgs) -> Result<v1::ResolveRequestRequest, CliError> {
    let protocol = match args {
        _ if args.grpc.is_some() => Protocol::Grpc,
        _ if args.sni.is_some() => Protocol::Tls,
        _ if args.tcp => Protocol::Tcp,
        _ if args.udp => Protocol::Udp,
        _ => Protocol::Http,
    };
    let precedence = match args.by_intersection {
        true => HostnamePrecedence::Intersection,
        false => HostnamePrecedence::Route,
    };
    let headers = args.headers.iter().cloned();
    let path = args
        .grpc
        .as_ref()
        .map(|call| format!("/{}", call.trim_start_matches('/')));
    let mut request = v1::ResolveRequestRequest {
        protocol: protocol.into(),
        port: args.port.unwrap_or_default().into(),
        host: args.host.clone(),
        method: match protocol {
            Protocol::Grpc => String::new(),
            _ => args.method.clone(),
        },
        path: path.unwrap_or_else(|| args.path.clone()),
        headers: headers
            .map(|(name, value)| v1::RequestHeader { name, value })
            .collect(),
        sni: args.sni.clone().unwrap_or_default(),
        hostname_precedence: precedence.into(),
        not_isolated: args.not_isolated,
        ..Default::default()
    };
    if let Some(at) = &args.at {
        set_entry_point(at, &mut request)?;
    }
    Ok(request)
}

/// Names where a request comes in.
fn set_entry_point(at: &str, request: &mut v1::ResolveRequestRequest) -> Result<(), CliError> {
    let wrong = |why: &str| {
        CliError::Usage(format!(
            "`--at {at}`: {why}; name a Gateway or a listener (`gateways/ns/name/listeners/name`) or \
             a Service of the mesh (`mesh/client/services/ns/name`)"
        ))
    };
    let walk = match PathName::parse(at) {
        Ok(PathName::Traffic(walk)) if walk.route.is_none() => walk,
        Ok(_) => return Err(wrong("nothing comes in there")),
        Err(error) => return Err(wrong(&error.to_string())),
    };
    let parts = path_ref(&walk);
    request.gateway = parts.gateway;
    request.listener_set = parts.listener_set;
    request.listener = parts.listener;
    request.service = parts.service;
    request.client_namespace = parts.client_namespace;
    if parts.service_port != 0 {
        request.port = parts.service_port;
    }
    Ok(())
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once(':')
        .filter(|(name, _)| !name.trim().is_empty())
        .ok_or_else(|| "write a header as `name: value`".to_owned())?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

impl Report for ResolveReport {
    fn document(&self, states: &[v1::KindState]) -> Document {
        insight_json::resolved(&self.0, states)
    }

    fn table(&self, out: &mut dyn Write, style: Style) -> io::Result<()> {
        let reply = &self.0;
        for (at, resolved) in reply.resolved.iter().enumerate() {
            if at > 0 {
                writeln!(out)?;
            }
            write_resolved(out, resolved, style)?;
        }
        if !reply.resolved.is_empty() {
            return Ok(());
        }
        writeln!(out, "{}", style.alert("no rule takes the request"))?;
        for not in &reply.unresolved {
            write_unresolved(out, not, style)?;
        }
        Ok(())
    }
}

/// The rule, what its match asks, where it leads, and what holds there.
fn write_resolved(
    out: &mut dyn Write,
    resolved: &v1::ResolvedRequest,
    style: Style,
) -> io::Result<()> {
    let policies = resolved
        .policies
        .as_ref()
        .map(|policies| &policies.policies[..]);
    get_text::path(out, &resolved.path, policies.unwrap_or_default(), style)?;
    writeln!(out)?;
    let matched = match resolved.match_index {
        Some(at) => format!("  matched by {} (match {at} of the rule)", resolved.matched),
        None => "  matched by its place alone".to_owned(),
    };
    write_wrapped(out, matched.trim_start(), 2, str::to_owned)?;
    if resolved.port != 0 {
        writeln!(out, "  comes in by port {}", resolved.port)?;
    }
    for backend in &resolved.backends {
        let name = printable(&backend.backend);
        let weight = match backend.weight {
            1 => String::new(),
            weight => format!(" (weight {weight})"),
        };
        let trouble = match &*backend.reason {
            "" => String::new(),
            reason => style.alert(&format!(" {}", printable(reason))),
        };
        writeln!(out, "  goes to {name}{weight}{trouble}")?;
    }
    if resolved.backends.is_empty() {
        writeln!(out, "  goes to no backend")?;
    }
    Ok(())
}

fn write_unresolved(
    out: &mut dyn Write,
    not: &v1::UnresolvedRequest,
    style: Style,
) -> io::Result<()> {
    writeln!(out, "\n{}", style.bold(&printable(&not.path)))?;
    write_wrapped(out, &not.message, 2, str::to_owned)?;
    for near in &not.nearest {
        let text = format!(
            "{} rule {} asks for {}",
            near.route,
            near.rule_index,
            near.lacks.join(", and for ")
        );
        write_wrapped(out, &text, 4, str::to_owned)?;
    }
    Ok(())
}

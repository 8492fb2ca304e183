//! `entail resolve`: the rule that matches a request, and the effective policies of that rule.

use std::io::{self, Write};

use clap::Args;

use super::args::CommonArgs;
use super::document::Document;
use super::get_text;
use super::insight_json;
use super::levels::kind_name;
use super::names::NameArgs;
use super::parameters_text;
use super::report::{self, Report, write_wrapped};
use super::session::Session;
use super::text::{Style, printable};
use super::{CliError, ExitStatus};
use crate::api::v1;
use crate::insight::path_ref;
use entail_core::model::PathName;
use v1::resolve_request_request::{HostnamePrecedence, Protocol};

/// Arguments of `entail resolve`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Routes as the controller of each Gateway does, else by the precedence rules of the Gateway API; on every
Gateway unless `--at` names one.
Exit code 1 if no rule matches the request.

Examples:
  entail resolve --host cakes.bakery.example --path /order --manifests examples/bakery
  entail resolve --host cakes.bakery.example --method POST --header 'x-env: test' --manifests examples/bakery
  entail resolve --at gateways/platform/storefront/listeners/https --host cakes.bakery.example \\
    --manifests examples/bakery
  entail resolve --at mesh/shop/services/baker/loaves --path / --server 127.0.0.1:50051 -o json")]
pub struct ResolveArgs {
    /// Host header of the request, with or without a port.
    #[arg(long, value_name = "HOST", default_value = "")]
    pub host: String,
    /// Path of the request, with the query.
    #[arg(long, value_name = "PATH", default_value = "/")]
    pub path: String,
    /// Method of the request.
    #[arg(long, value_name = "METHOD", default_value = "GET")]
    pub method: String,
    /// Header of the request, `name: value`. May be repeated.
    #[arg(long = "header", short = 'H', value_name = "HEADER", value_parser = header)]
    pub headers: Vec<(String, String)>,
    /// gRPC method instead of path and method, `package.Service/Method`.
    #[arg(long, value_name = "CALL", conflicts_with_all = ["path", "method"])]
    pub grpc: Option<String>,
    /// Server name (SNI) of a TLS passthrough connection.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["host", "path", "method", "headers", "grpc"])]
    pub sni: Option<String>,
    /// Resolve a TCP connection.
    #[arg(long, conflicts_with_all = ["host", "path", "method", "headers", "grpc", "sni"])]
    pub tcp: bool,
    /// Resolve a UDP packet.
    #[arg(long, conflicts_with_all = ["host", "path", "method", "headers", "grpc", "sni", "tcp"])]
    pub udp: bool,
    /// Where the request enters: path name of a Gateway, a listener, or a Service of the mesh
    /// (`mesh/CLIENT-NAMESPACE/services/NAMESPACE/NAME`).
    #[arg(long, value_name = "NAME")]
    pub at: Option<String>,
    /// Port of the listener, or of the Service.
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
    /// Dialect of routing, instead of that of each Gateway's controller: `specification`,
    /// `envoy-gateway`.
    #[arg(long, value_name = "DIALECT", default_value = "")]
    pub dialect: String,
    /// Say why this rule does not take the request, at each listener of its route: `rule/NAME`, or
    /// `kind/namespace/name#rule`. Exit code 1 if the rule takes it nowhere.
    #[arg(long, value_name = "RULE", default_value = "")]
    pub why_not: String,
    /// The path is the one that the proxy matches: it is not decoded, and may contain `//` and `%25`.
    #[arg(long, conflicts_with_all = ["sni", "tcp", "udp"])]
    pub normalized_path: bool,
    /// Compare the intersections of route and listener hostnames instead of the hostnames of the
    /// routes, as before Gateway API 1.7.
    #[arg(long)]
    pub by_intersection: bool,
    /// Match routes of all listeners of the port, not only those of the listener with the most
    /// specific hostname.
    #[arg(long)]
    pub disable_listener_isolation: bool,
    /// The source, the kinds, and the output format.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// The reason of a rule that takes the request.
const TAKES_REQUEST: &str = "TakesRequest";

/// The routing result of a request.
struct ResolveReport(v1::ResolveRequestResponse);

/// Runs the command.
pub(in crate::cli) fn run(args: ResolveArgs) -> Result<ExitStatus, CliError> {
    let output = args.common.output;
    let (session, resolved, states) = resolved(args)?;
    report::print(&resolved, output, &states)?;
    let misses = &resolved.0.why_not;
    let is_taken = misses.iter().any(|miss| miss.reason == TAKES_REQUEST);
    let fails = resolved.0.resolved.is_empty() || !misses.is_empty() && !is_taken;
    match session.exit(&states) {
        ExitStatus::Success if fails => Ok(ExitStatus::Findings),
        exit => Ok(exit),
    }
}

/// The document that `-o json` prints.
///
/// # Errors
/// The source cannot be read, or the request is malformed.
pub(in crate::cli) fn document(args: ResolveArgs) -> Result<Document, CliError> {
    let (_, resolved, states) = resolved(args)?;
    Ok(resolved.document(&states))
}

/// The result, with the session that it is of and the kinds that are not completely known.
fn resolved(args: ResolveArgs) -> Result<(Session, ResolveReport, Vec<v1::KindState>), CliError> {
    let mut request = request(&args)?;
    let query = args.common.with_name(NameArgs::default());
    let mut session = Session::open(&query)?;
    request.kinds.clone_from(&session.kinds);
    let reply = session.backend.resolve(request);
    let reply = reply.map_err(|error| session.failure(error))?;
    let of_rules = reply.resolved.iter().flat_map(|one| &one.policies);
    let of_rules = of_rules.flat_map(|found| &found.policies);
    let backends = reply.resolved.iter().flat_map(|one| &one.backends);
    let policies = of_rules.chain(backends.flat_map(|backend| &backend.policies));
    let states = session.incomplete_with(&reply.kinds, policies);
    Ok((session, ResolveReport(reply), states))
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
        false => HostnamePrecedence::Unspecified,
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
        disable_listener_isolation: args.disable_listener_isolation,
        normalized_path: args.normalized_path,
        dialect: args.dialect.clone(),
        why_not: args.why_not.clone(),
        ..Default::default()
    };
    if let Some(at) = &args.at {
        set_entry_point(at, &mut request)?;
    }
    Ok(request)
}

/// Sets the entry point of a request: a Gateway, a listener, or a Service of the mesh.
fn set_entry_point(at: &str, request: &mut v1::ResolveRequestRequest) -> Result<(), CliError> {
    let invalid = |why: &str| {
        CliError::Usage(format!(
            "`--at {at}`: {why}; use a Gateway or a listener (`gateways/ns/name/listeners/name`) or \
             a Service of the mesh (`mesh/client/services/ns/name`)"
        ))
    };
    let path = match PathName::parse(at) {
        Ok(PathName::Traffic(path)) if path.route.is_none() => path,
        Ok(_) => return Err(invalid("requests do not enter at this path")),
        Err(error) => return Err(invalid(&error.to_string())),
    };
    let parts = path_ref(&path);
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
        .ok_or_else(|| "use `name: value`".to_owned())?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

impl Report for ResolveReport {
    fn document(&self, states: &[v1::KindState]) -> Document {
        insight_json::resolved(&self.0, states)
    }

    fn table(&self, out: &mut dyn Write, style: Style) -> io::Result<()> {
        let reply = &self.0;
        if !reply.why_not.is_empty() {
            return write_misses(out, reply, style);
        }
        for (at, resolved) in reply.resolved.iter().enumerate() {
            if at > 0 {
                writeln!(out)?;
            }
            write_resolved(out, resolved, style)?;
        }
        if !reply.resolved.is_empty() {
            return parameters_text::notes(out, &reply.unread_parameters);
        }
        writeln!(out, "{}", style.alert("no rule matches the request"))?;
        for unresolved in &reply.unresolved {
            write_unresolved(out, unresolved, style)?;
        }
        Ok(())
    }
}

/// Writes why rules do not take the request, each with the listener and what would have to change.
fn write_misses(
    out: &mut dyn Write,
    reply: &v1::ResolveRequestResponse,
    style: Style,
) -> io::Result<()> {
    for (at, miss) in reply.why_not.iter().enumerate() {
        if at > 0 {
            writeln!(out)?;
        }
        let rule = match &*miss.rule_name {
            "" => format!("{} rule #{}", miss.route, miss.rule_index),
            name => format!("{} rule {name}", miss.route),
        };
        let (finding, change) = told(&miss.reason);
        let head = match &*miss.path {
            "" => format!("{rule}: {finding}"),
            path => format!("{rule} at {}: {finding}", style.path(path)),
        };
        write_wrapped(out, &head, 0, |line| style.bold(line))?;
        for detail in &miss.details {
            write_wrapped(out, detail, 2, str::to_owned)?;
        }
        if !change.is_empty() {
            write_wrapped(out, &format!("to change that: {change}"), 2, |line| {
                style.dim(line)
            })?;
        }
    }
    for resolved in &reply.resolved {
        let text = format!("the request takes {}", style.path(&resolved.path));
        writeln!(out)?;
        write_wrapped(out, &text, 0, str::to_owned)?;
    }
    Ok(())
}

/// What a reason means, and what would have to change.
fn told(reason: &str) -> (&str, &'static str) {
    match reason {
        TAKES_REQUEST => ("it takes the request", ""),
        "NotAttached" => (
            "its route is attached to no listener",
            "name a parent that exists and admits the route in its parentRefs",
        ),
        "NotAddressed" => (
            "the request does not enter at this listener",
            "send it to the port and with the protocol of the listener, or attach the route to the one that it enters by",
        ),
        "ListenerHostname" => (
            "the listener does not serve the host",
            "use a host that the hostname of the listener includes, or attach the route to the listener that serves it",
        ),
        "RouteHostname" => (
            "its route does not serve the host",
            "add the host to the hostnames of the route",
        ),
        "UnmetCondition" => (
            "the request does not meet its conditions",
            "send what the conditions require, or add a match to the rule",
        ),
        "OtherMatchFirst" => (
            "the request meets its conditions, but another match comes first",
            "make this match more specific than the other one",
        ),
        "NotDecided" => ("it is not decided whether it takes the request", ""),
        other => (other, ""),
    }
}

/// Writes the rule with its effective policies, the match, the port, and the backends.
fn write_resolved(
    out: &mut dyn Write,
    resolved: &v1::ResolvedRequest,
    style: Style,
) -> io::Result<()> {
    let policies = resolved.policies.as_ref();
    let policies = policies.map_or(&[][..], |found| &found.policies);
    let elsewhere = |policy: &v1::EffectivePolicy| is_of_backends(policy, &resolved.backends);
    writeln!(out, "{}", style.bold(&style.path(&resolved.path)))?;
    for policy in policies.iter().filter(|policy| !elsewhere(policy)) {
        get_text::policy(out, policy, 2, style)?;
    }
    let on_backends = |backend: &v1::ResolvedBackend| !backend.policies.is_empty();
    if policies.is_empty() && !resolved.backends.iter().any(on_backends) {
        writeln!(out, "  no policy")?;
    }
    writeln!(out)?;
    let matched = match resolved.match_index {
        Some(at) => format!("  matched by {} (match {at} of the rule)", resolved.matched),
        None => "  matched without conditions".to_owned(),
    };
    write_wrapped(out, matched.trim_start(), 2, str::to_owned)?;
    if resolved.port != 0 {
        writeln!(out, "  port {}", resolved.port)?;
    }
    write_backends(out, &resolved.backends, style)?;
    if resolved.backends.is_empty() {
        writeln!(out, "  no backend")?;
    }
    write_dialect(out, &resolved.dialect, &resolved.refusal, style)
}

/// Whether a policy of a rule takes effect on backends, and at least one of them has its own answer.
fn is_of_backends(policy: &v1::EffectivePolicy, backends: &[v1::ResolvedBackend]) -> bool {
    let same_kind = |other: &v1::EffectivePolicy| kind_name(other) == kind_name(policy);
    let has_kind = |backend: &v1::ResolvedBackend| backend.policies.iter().any(same_kind);
    policy.inherited_only && backends.iter().any(has_kind)
}

/// Writes backends with their weights and the policies that take effect there. Backends in sequence with equal policies
/// share them.
fn write_backends(
    out: &mut dyn Write,
    backends: &[v1::ResolvedBackend],
    style: Style,
) -> io::Result<()> {
    let all: u64 = backends
        .iter()
        .map(|backend| u64::from(backend.weight))
        .sum();
    for (at, backend) in backends.iter().enumerate() {
        let name = printable(&backend.backend);
        let weight = match backend.weight {
            _ if backends.len() == 1 && backend.weight > 0 => String::new(),
            0 => " (weight 0: receives no requests)".to_owned(),
            weight => format!(" (weight {weight} of {all})"),
        };
        let problem = match &*backend.reason {
            "" => String::new(),
            reason => style.alert(&format!(" {}", printable(reason))),
        };
        writeln!(out, "  backend {name}{weight}{problem}")?;
        let next = backends.get(at + 1);
        let is_shared = |next: &v1::ResolvedBackend| {
            next.policies == backend.policies && next.reason == backend.reason
        };
        if next.is_some_and(is_shared) {
            continue;
        }
        for policy in &backend.policies {
            get_text::policy(out, policy, 4, style)?;
        }
    }
    Ok(())
}

/// Writes the dialect, if it is not that of the specification, and why the proxy refuses the request.
fn write_dialect(
    out: &mut dyn Write,
    dialect: &str,
    refusal: &str,
    style: Style,
) -> io::Result<()> {
    if !matches!(dialect, "" | "specification") {
        writeln!(out, "  as {} routes it", printable(dialect))?;
    }
    if !refusal.is_empty() {
        let text =
            format!("the proxy refuses the request unless it is configured otherwise: {refusal}");
        write_wrapped(out, &style.alert(&text), 2, str::to_owned)?;
    }
    Ok(())
}

/// Writes why no rule of a Gateway or Service matches, with the nearest rules.
fn write_unresolved(
    out: &mut dyn Write,
    unresolved: &v1::UnresolvedRequest,
    style: Style,
) -> io::Result<()> {
    writeln!(out, "\n{}", style.bold(&style.path(&unresolved.path)))?;
    write_wrapped(out, &unresolved.message, 2, str::to_owned)?;
    for near in &unresolved.near_misses {
        let text = format!(
            "{} rule {} requires {}",
            near.route,
            near.rule_index,
            near.missing.join(" and ")
        );
        write_wrapped(out, &text, 4, str::to_owned)?;
    }
    write_dialect(out, &unresolved.dialect, &unresolved.refusal, style)
}

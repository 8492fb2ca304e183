//! Path names in a form that fits on a line of a terminal: the names that tell paths apart, without the words between.

use std::fmt::Write;

use entail_core::model::{ObjectKey, PathName, Root, RouteStep, RuleStep, TrafficPath};

/// Shortens the name of a path: `platform/storefront#https > baker/bread#menu > baker/loaves`. The kinds Gateway, HTTPRoute
/// and Service are left out, others are named; a rule without a name has its index in brackets. Different paths have
/// different short names. Any other text stays as it is.
pub(in crate::cli) fn short_path(name: &str) -> String {
    match PathName::parse(name) {
        Ok(PathName::Traffic(path)) => shortened(&path),
        Ok(PathName::GatewayClass(_) | PathName::Namespace(_)) | Err(_) => name.to_owned(),
    }
}

/// The Route of a path; of a delegated one, the last.
pub(in crate::cli) fn route_of(name: &str) -> Option<ObjectKey> {
    let Ok(PathName::Traffic(path)) = PathName::parse(name) else {
        return None;
    };
    path.route.map(|route| route.key())
}

fn shortened(path: &TrafficPath<'_>) -> String {
    let mut text = match path.root {
        Root::Gateway { namespace, name } => format!("{namespace}/{name}"),
        Root::Mesh {
            client,
            namespace,
            name,
            port,
        } => {
            let client = if client == "*" {
                "mesh".to_owned()
            } else {
                format!("mesh from {client}")
            };
            let port = port.map(|port| format!(":{port}")).unwrap_or_default();
            format!("{client} > {namespace}/{name}{port}")
        }
    };
    // Writing to a String does not fail.
    if let Some(set) = path.listener_set {
        let _ = write!(text, " > ListenerSet {}/{}", set.namespace, set.name);
    }
    if let Some(listener) = path.listener {
        let _ = write!(text, "#{listener}");
    }
    for (route, rule) in path.delegating.iter() {
        push_route(&mut text, route, Some(rule));
    }
    if let Some(route) = path.route {
        push_route(&mut text, route, path.rule);
    }
    if let Some(backend) = path.backend {
        let kind = match backend.kind {
            "Service" => String::new(),
            kind => format!("{kind} "),
        };
        let _ = write!(text, " > {kind}{}/{}", backend.namespace, backend.name);
    }
    if let Some(port) = path.port {
        let _ = write!(text, ":{port}");
    }
    text
}

fn push_route(text: &mut String, route: RouteStep<'_>, rule: Option<RuleStep<'_>>) {
    let kind = match route.kind {
        "HTTPRoute" => String::new(),
        kind => format!("{kind} "),
    };
    let _ = write!(text, " > {kind}{}/{}", route.namespace, route.name);
    let _ = match rule {
        Some(RuleStep::Index(index)) => write!(text, "[{index}]"),
        Some(RuleStep::Name(name)) => write!(text, "#{name}"),
        None => Ok(()),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_tell_paths_apart() {
        for (name, short) in [
            ("gateways/p/g", "p/g"),
            ("gateways/p/g/listeners/web", "p/g#web"),
            (
                "gateways/p/g/listenersets/s/l/listeners/web",
                "p/g > ListenerSet s/l#web",
            ),
            (
                "gateways/p/g/listeners/web/routes/HTTPRoute/a/r/rules/#0/backends/Service/a/b/ports/80",
                "p/g#web > a/r[0] > a/b:80",
            ),
            (
                "gateways/p/g/listeners/web/routes/GRPCRoute/a/r/rules/x/backends/Pool.i.io/a/b",
                "p/g#web > GRPCRoute a/r#x > Pool.i.io a/b",
            ),
            (
                "gateways/p/g/listeners/web/routes/HTTPRoute/a/r/rules/x/routes/HTTPRoute/b/c/rules/y",
                "p/g#web > a/r#x > b/c#y",
            ),
            ("mesh/*/services/a/b/ports/80", "mesh > a/b:80"),
            ("mesh/c/services/a/b", "mesh from c > a/b"),
            ("namespaces/a", "namespaces/a"),
            ("no path", "no path"),
        ] {
            assert_eq!(short_path(name), short);
        }
    }
}

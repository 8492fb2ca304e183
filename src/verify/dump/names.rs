//! Names that Envoy Gateway gives to routes, virtual hosts and route configurations.

/// The kinds of routes that Envoy routes are made of, as Envoy Gateway writes them in names.
const ROUTE_KINDS: [(&str, &str); 2] = [("httproute", "HTTPRoute"), ("grpcroute", "GRPCRoute")];

/// The rule that an Envoy route is made of: `httproute/NAMESPACE/NAME/rule/0/match/0/HOST`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RouteName {
    kind: &'static str,
    namespace: String,
    name: String,
    index: u32,
    /// The name of the rule, if it has one.
    pub(super) section: Option<String>,
}

impl RouteName {
    /// Parses the name of an Envoy route.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('/');
        let kind = parts.next()?;
        let (_, kind) = ROUTE_KINDS.iter().find(|(short, _)| *short == kind)?;
        let (namespace, name) = (parts.next()?, parts.next()?);
        (parts.next()? == "rule").then_some(())?;
        Some(Self {
            kind,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            index: parts.next()?.parse().ok()?,
            section: None,
        })
    }

    /// The name of the path of the rule below a listener.
    pub(super) fn path(&self, listener: &str) -> String {
        let Self {
            kind,
            namespace,
            name,
            index,
            section,
        } = self;
        let rules = format!("{listener}/routes/{kind}/{namespace}/{name}/rules");
        match section {
            Some(section) => format!("{rules}/{section}"),
            None => format!("{rules}/#{index}"),
        }
    }
}

/// The path of a listener: of `NAMESPACE/GATEWAY/LISTENER`, or of `NAMESPACE/GATEWAY/NAMESPACE/LISTENERSET/LISTENER`.
pub(super) fn listener_path(name: &str) -> Option<String> {
    let parts: Vec<&str> = name.split('/').collect();
    if parts.iter().any(|part| part.is_empty()) {
        return None;
    }
    match *parts.as_slice() {
        [namespace, gateway, listener] => Some(format!(
            "gateways/{namespace}/{gateway}/listeners/{listener}"
        )),
        [namespace, gateway, set_namespace, set, listener] => Some(format!(
            "gateways/{namespace}/{gateway}/listenersets/{set_namespace}/{set}/listeners/{listener}"
        )),
        _ => None,
    }
}

/// A text that names a rule in a proxy, of its parts: kind, namespace, name and rule; or the name of a control plane and
/// what its routes are called.
pub(in crate::verify) fn rule_key(parts: &[&str]) -> String {
    parts.join("/")
}

/// The path of the Gateway of a path: its first three steps.
pub(in crate::verify) fn gateway_path(path: &str) -> String {
    let steps: Vec<&str> = path.splitn(4, '/').take(3).collect();
    steps.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_paths() {
        let listener = listener_path("infra/web/https").unwrap();
        let name = RouteName::parse("httproute/shop/cart/rule/2/match/0/www_example_com").unwrap();
        assert_eq!(
            name.path(&listener),
            "gateways/infra/web/listeners/https/routes/HTTPRoute/shop/cart/rules/#2"
        );
        assert_eq!(gateway_path(&listener), "gateways/infra/web");
        assert_eq!(
            listener_path("infra/web/shop/extra/https").unwrap(),
            "gateways/infra/web/listenersets/shop/extra/listeners/https"
        );
        for other in [
            "first-route",
            "httproute/a/b",
            "httproute/a/b/rule/x",
            "tcproute/a/b/rule/0",
        ] {
            assert_eq!(RouteName::parse(other), None, "{other}");
        }
        assert_eq!(listener_path("http-80"), None);
    }
}

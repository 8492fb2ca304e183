//! A path's name, taken apart into its nodes.

use super::objects::{Objects, rule_named};

/// One step of a path.
#[derive(Clone, Debug)]
pub struct Step {
    pub node: String,
    pub level: &'static str,
    /// Set where the node is a whole object that lives in a namespace.
    pub namespace: Option<String>,
    /// The key of the whole object.
    pub object: String,
    pub rule: Option<usize>,
}

/// A path, taken apart.
#[derive(Clone, Debug)]
pub struct Trail {
    pub steps: Vec<Step>,
    /// The namespace of the client: a Gateway's own, or that of a mesh path; `None`: any.
    pub client: Option<String>,
    /// The class that the path's Gateway names.
    pub class: Option<String>,
    pub mesh: bool,
    /// A waypoint, or one of which that is not known, stands above the mesh root (2.12).
    pub behind: bool,
    /// It is not known which Gateway is the waypoint.
    pub undecided: bool,
    /// No attachments to the Service and backends count, because it has no waypoint.
    pub bars: bool,
    /// Where the waypoint is, seen from the Service.
    pub waypoint: Option<&'static str>,
}

impl Trail {
    /// The node of the path's Gateway.
    pub fn root(&self) -> Option<String> {
        let gateway = self.steps.iter().find(|step| step.level == "Gateway");
        gateway.map(|step| step.node.clone())
    }
}

fn whole(kind: &str, namespace: &str, name: &str, level: &'static str) -> Step {
    let key = format!("{kind}/{namespace}/{name}");
    Step {
        node: key.clone(),
        level,
        namespace: Some(namespace.to_owned()),
        object: key,
        rule: None,
    }
}

fn lone(node: String, level: &'static str) -> Step {
    Step {
        object: node.clone(),
        node,
        level,
        namespace: None,
        rule: None,
    }
}

/// Reads the name of a path that exists.
#[allow(
    clippy::too_many_lines,
    reason = "one step after another, each of a few lines"
)]
pub fn trail(objects: &Objects, path: &str) -> Trail {
    let parts: Vec<&str> = path.split('/').collect();
    let mut trail = Trail {
        steps: Vec::new(),
        client: None,
        class: None,
        mesh: path.starts_with("mesh/"),
        behind: false,
        undecided: false,
        bars: false,
        waypoint: None,
    };
    let mut at = 0;
    while at < parts.len() {
        let arg = |n: usize| parts[at + n];
        let before = trail.steps.last().cloned();
        let section = |text: String, level: &'static str, rule: Option<usize>| {
            let object = before.as_ref().unwrap().object.clone();
            Step {
                node: format!("{object}#{text}"),
                level,
                namespace: None,
                object,
                rule,
            }
        };
        let (step, taken) = match arg(0) {
            "gatewayclasses" => {
                trail.class = Some(arg(1).to_owned());
                (lone(format!("GatewayClass/{}", arg(1)), "GatewayClass"), 2)
            }
            "namespaces" => (lone(format!("Namespace/{}", arg(1)), "Namespace"), 2),
            "gateways" => {
                let gateway = whole("Gateway", arg(1), arg(2), "Gateway");
                let found = objects.get(&gateway.object).unwrap();
                let class = found.body["spec"]["gatewayClassName"]
                    .as_str()
                    .unwrap_or_default();
                if objects.get(&format!("GatewayClass/{class}")).is_some() {
                    trail
                        .steps
                        .push(lone(format!("GatewayClass/{class}"), "GatewayClass"));
                }
                trail.class = Some(class.to_owned());
                trail.client = Some(arg(1).to_owned());
                (gateway, 3)
            }
            "mesh" => {
                trail.client = Some(arg(1).to_owned()).filter(|client| client != "*");
                (whole("Service", arg(3), arg(4), "Gateway"), 5)
            }
            "listenersets" => (whole("ListenerSet", arg(1), arg(2), "ListenerSet"), 3),
            "listeners" => (section(arg(1).to_owned(), "Listener", None), 2),
            "routes" => (whole(arg(1), arg(2), arg(3), "Route"), 4),
            "rules" => {
                let route = &before.as_ref().unwrap().object;
                let index = match arg(1).strip_prefix('#') {
                    Some(index) => index.parse().unwrap(),
                    None => rule_named(&objects.get(route).unwrap().body, arg(1)).unwrap(),
                };
                (section(format!("#{index}"), "RouteRule", Some(index)), 2)
            }
            "backends" => (whole(arg(1), arg(2), arg(3), "Backend"), 4),
            "ports" => {
                let root = before.as_ref().unwrap().level == "Gateway";
                let level = if root { "Listener" } else { "BackendPort" };
                (section(arg(1).to_owned(), level, None), 2)
            }
            other => panic!("{other} in {path}"),
        };
        trail.steps.push(step);
        at += taken;
    }
    trail
}

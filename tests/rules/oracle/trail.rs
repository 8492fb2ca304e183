//! A path's name, taken apart into its nodes.

use serde_json::Value;

use super::place::{by_key, object, rule_named};

/// One step of a path.
#[derive(Clone, Debug)]
pub struct Step {
    pub node: String,
    pub level: &'static str,
    /// Set where the node is a whole object that lives in a namespace.
    pub namespace: Option<String>,
    pub object: String,
    pub rule: Option<usize>,
}

/// A whole object.
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

/// A node that lives in no namespace.
fn lone(node: String, level: &'static str) -> Step {
    Step {
        object: node.clone(),
        node,
        level,
        namespace: None,
        rule: None,
    }
}

/// Reads a path's name.
pub fn steps(objects: &[Value], path: &str) -> Vec<Step> {
    let parts: Vec<&str> = path.split('/').collect();
    let mut steps: Vec<Step> = Vec::new();
    let mut at = 0;
    while at < parts.len() {
        let arg = |n: usize| parts[at + n];
        let before = steps.last().cloned();
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
            "gatewayclasses" => (lone(format!("GatewayClass/{}", arg(1)), "GatewayClass"), 2),
            "namespaces" => (lone(format!("Namespace/{}", arg(1)), "Namespace"), 2),
            "gateways" => {
                let gateway = object(objects, "Gateway", arg(1), arg(2)).unwrap();
                let class = gateway["spec"]["gatewayClassName"].as_str().unwrap();
                if object(objects, "GatewayClass", "", class).is_some() {
                    steps.push(lone(format!("GatewayClass/{class}"), "GatewayClass"));
                }
                (whole("Gateway", arg(1), arg(2), "Gateway"), 3)
            }
            "mesh" => (whole("Service", arg(3), arg(4), "Gateway"), 5),
            "listenersets" => (whole("ListenerSet", arg(1), arg(2), "ListenerSet"), 3),
            "listeners" => (section(arg(1).to_owned(), "Listener", None), 2),
            "routes" => (whole(arg(1), arg(2), arg(3), "Route"), 4),
            "rules" => {
                let index = rule_index(objects, before.as_ref().unwrap(), arg(1));
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
        steps.push(step);
        at += taken;
    }
    steps
}

fn rule_index(objects: &[Value], route: &Step, text: &str) -> usize {
    if let Some(index) = text.strip_prefix('#') {
        return index.parse().unwrap();
    }
    rule_named(by_key(objects, &route.object).unwrap(), text).unwrap()
}

//! Random requests near the matches of a world.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use super::world::{CALLS, HEADERS, METHODS, PARAMETERS, SERVICES, VALUES};
use crate::rng::Rng;

/// A request as a client sends it.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method.
    pub method: String,
    /// The host, perhaps with a port.
    pub host: String,
    /// The path with the query.
    pub path: String,
    /// The other headers in their order.
    pub headers: Vec<(String, String)>,
}

/// What the matches of a world name.
#[derive(Debug)]
pub struct Hints {
    hosts: Vec<String>,
    paths: Vec<String>,
}

impl Hints {
    /// Collects the hosts and paths of the objects.
    pub fn of(objects: &[Value]) -> Self {
        let mut hosts = BTreeSet::from(["elsewhere.net".to_owned()]);
        let mut paths = BTreeSet::from(["/".to_owned(), "/a".to_owned(), "/b/b".to_owned()]);
        for object in objects {
            let spec = &object["spec"];
            let listeners = spec["listeners"].as_array().into_iter().flatten();
            let hostnames = spec["hostnames"].as_array().into_iter().flatten();
            for hostname in listeners.map(|one| &one["hostname"]).chain(hostnames) {
                let Some(hostname) = hostname.as_str() else {
                    continue;
                };
                let Some(rest) = hostname.strip_prefix('*') else {
                    hosts.insert(hostname.to_owned());
                    continue;
                };
                hosts.extend(["x", "b", "y.x", "a"].map(|label| format!("{label}{rest}")));
            }
            let rules = spec["rules"].as_array().into_iter().flatten();
            for one in rules.flat_map(|rule| rule["matches"].as_array().into_iter().flatten()) {
                if let Some(path) = one["path"]["value"].as_str()
                    && !path.contains(['*', '|', '[', '(', '\\'])
                {
                    paths.insert(path.to_owned());
                }
                if let Some(service) = one["method"]["service"].as_str()
                    && !service.contains(['*', '|', '[', '\\'])
                {
                    paths.insert(format!("/{service}"));
                }
            }
        }
        Self {
            hosts: hosts.into_iter().collect(),
            paths: paths.into_iter().collect(),
        }
    }

    /// Returns a random request.
    pub fn request(&self, rng: &mut Rng) -> Request {
        let mut headers = headers(rng);
        let is_call = rng.percent(25);
        if is_call {
            headers.push(("content-type".to_owned(), "application/grpc".to_owned()));
        }
        Request {
            method: match rng.below(40) {
                _ if is_call => "POST",
                0 => "BREW",
                1 => "PURGE",
                _ => rng.pick(&METHODS),
            }
            .to_owned(),
            host: self.host(rng),
            path: self.path(rng),
            headers,
        }
    }

    fn host(&self, rng: &mut Rng) -> String {
        let mut host = rng.choose(&self.hosts);
        if rng.percent(10) {
            host = host.to_uppercase();
        }
        match rng.below(50) {
            0..2 => host.push('.'),
            2 => host.push_str(":99999"),
            3 => host.push_str(":http"),
            4 => host.push_str(",a.test"),
            5 => host.insert(0, '.'),
            6..10 => host.push_str(":8080"),
            _ => {}
        }
        host
    }

    fn path(&self, rng: &mut Rng) -> String {
        let mut path = match rng.percent(30) {
            true => format!("/{}/{}", rng.pick(&SERVICES), rng.pick(&CALLS)),
            false => rng.choose(&self.paths),
        };
        match rng.below(40) {
            0..4 => path.push_str("/b"),
            4..6 => path.push('b'),
            6..8 => path.push('/'),
            8..10 => path.push_str("/Get"),
            10..12 => path = path.replacen("/a", "/%61", 1),
            12 => path.push_str("%25"),
            13 => path = path.replacen('/', "//", 1),
            14 => path.push_str("/../b"),
            15 => path.push_str("/caf%c3%a9"),
            16 => path.push('é'),
            17 => path.push_str("/%7E-._~!$&'()*+,;=:@"),
            18 => path.push_str("/./b"),
            _ => {}
        }
        let mut pairs = Vec::new();
        if rng.percent(45) {
            for _ in 0..rng.within(1, 3) {
                let name = rng.pick(&PARAMETERS);
                match rng.below(8) {
                    0 => pairs.push(name.to_owned()),
                    1 => pairs.push(format!("{name}=a%20b&other=1")),
                    2 => pairs.push(format!("{name}=%31")),
                    3 => pairs.push(format!("{name}=x+y")),
                    _ => pairs.push(format!("{name}={}", rng.pick(&["1", "2", "1,2", "3"]))),
                }
            }
        }
        if !pairs.is_empty() {
            path.push('?');
            path.push_str(&pairs.join("&"));
        }
        path
    }
}

fn headers(rng: &mut Rng) -> Vec<(String, String)> {
    let mut headers = Vec::new();
    for name in rng.some(&HEADERS, 50) {
        for _ in 0..if rng.percent(25) { 2 } else { 1 } {
            headers.push((name.to_owned(), rng.pick(&VALUES).to_owned()));
        }
    }
    if rng.percent(3) {
        headers.push(("x_odd".to_owned(), "1".to_owned()));
    }
    headers
}

impl Request {
    /// Whether it is a gRPC call.
    pub fn is_call(&self) -> bool {
        self.headers.iter().any(|(name, _)| name == "content-type")
    }

    /// The properties by which differences are classified.
    pub fn traits(&self) -> Vec<&'static str> {
        let (path, query) = self.path.split_once('?').unwrap_or((&self.path, ""));
        let names: Vec<&String> = self.headers.iter().map(|(name, _)| name).collect();
        let is_repeated = names
            .iter()
            .any(|name| names.iter().filter(|other| other == &name).count() > 1);
        let host = self.host.trim_end_matches(":8080");
        let all = [
            ("call", self.is_call()),
            ("encoded path", path.contains('%')),
            ("segments", path.contains("//") || path.contains("/.")),
            ("raw path", !path.is_ascii()),
            ("encoded query", query.contains(['%', '+'])),
            ("repeated header", is_repeated),
            (
                "odd host",
                host.contains([':', ',']) || host.starts_with('.') || host.ends_with('.'),
            ),
            ("odd method", matches!(&*self.method, "BREW" | "PURGE")),
            ("underscore", names.iter().any(|name| name.contains('_'))),
        ];
        all.into_iter()
            .filter(|(_, has)| *has)
            .map(|(name, _)| name)
            .collect()
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} host {}", self.method, self.path, self.host)?;
        self.headers
            .iter()
            .try_for_each(|(name, value)| write!(f, " {name}: {value}"))
    }
}

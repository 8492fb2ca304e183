//! The world of teams, answered by the server that is shipped: its start, its memory, and edits as a caller sees them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use entail_client::stubs::effective_policy_service_client::EffectivePolicyServiceClient;
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tonic::transport::{Channel, Endpoint};

use crate::bench_world::request;
use crate::process::{self, ServerProcess, cpu_seconds, resident_mb};
use crate::rows::{Row, median, millis, row};
use crate::world::Teams;

/// Number of routes that are edited, twice each, and of policies.
const ROUTE_EDITS: usize = 4;
const POLICY_EDITS: usize = 40;
/// How long the server rests before its memory is measured: its allocator gives back what has been free for a while.
const REST: Duration = Duration::from_secs(15);
/// The time between edits that no caller waits for.
const PAUSE: Duration = Duration::from_millis(300);
/// An edit that no caller sees by then is a failure.
const LIMIT: Duration = Duration::from_secs(10);
/// Number of routes with 10 000 rules.
const ROUTES_OF_10_000_RULES: usize = 2_000;

/// A server over the files of the world.
struct Server {
    process: ServerProcess,
    caller: Caller,
    manifests: PathBuf,
    /// From the start of the process to its first answer.
    started: Duration,
    _folder: TempDir,
}

/// A caller of a server.
struct Caller {
    runtime: Runtime,
    client: EffectivePolicyServiceClient<Channel>,
}

/// A document of a file, one on each line.
struct Document {
    file: PathBuf,
    line: usize,
}

/// Finds a document of a route, and the path whose answer it changes.
type OfRoute = fn(&Path, &str) -> (Document, String);

/// What an edit takes, in milliseconds.
struct Edits {
    /// The median until a caller sees it.
    millis: f64,
    /// The mean CPU time of the server.
    cpu_millis: f64,
}

/// The rows that need a server.
pub fn served() -> Vec<Row> {
    let teams = Teams::default();
    let mut server = Server::start(&teams);
    let started = millis(server.started);
    let cpu = 1_000.0 * cpu_seconds(server.process.id());
    let mut rows = vec![row(
        &format!(
            "start: {} routes, {} policies",
            teams.routes,
            teams.policies()
        ),
        "<= 1200 ms",
        format!("{started:.0} ms ({cpu:.0} of CPU)"),
        started <= 1_200.0,
    )];
    let memory = server.megabytes_at_rest();
    rows.push(of_memory("memory after it", memory, 250.0));
    let routes = server.edit_each(&routes_of(&teams, ROUTE_EDITS), last_rule, |route| {
        route["spec"]["rules"].as_array_mut().unwrap().pop();
    });
    rows.push(routes.row("a route loses a rule, to a caller's reply", None, 5.0));
    let growth = 100.0 * (server.megabytes_at_rest() / memory - 1.0);
    rows.push(row(
        &format!("memory after {} edits of routes", 2 * ROUTE_EDITS),
        "<= 5 % more",
        format!("{growth:.1} % more"),
        growth <= 5.0,
    ));
    let policies = server.edit_each(&routes_of(&teams, POLICY_EDITS), policy, |policy| {
        let rate = &mut policy["spec"]["defaults"]["limits"]["route"]["rates"][0];
        rate["limit"] = (1_000 + rate["limit"].as_u64().unwrap()).into();
    });
    rows.push(policies.row("an edited policy, to a caller's reply", Some(60.0), 2.0));
    drop(server);
    let large = Teams {
        routes: 50_000,
        ..teams
    };
    let memory = Server::start(&large).megabytes_at_rest();
    let what = format!(
        "memory: {} routes, {} policies",
        large.routes,
        large.policies()
    );
    rows.push(of_memory(&what, memory, 500.0));
    rows.push(get_all());
    rows
}

/// `get` of everything, the whole command.
fn get_all() -> Row {
    let teams = Teams {
        routes: ROUTES_OF_10_000_RULES,
        ..Teams::default()
    };
    let (_folder, manifests) = write(&teams);
    let times = (0..5).map(|_| {
        let began = Instant::now();
        let status = Command::new(process::BINARY)
            .args(["get", "-o", "json", "--manifests"])
            .arg(&manifests)
            .stdout(Stdio::null())
            .status();
        assert!(status.unwrap().success());
        began.elapsed()
    });
    let time = millis(median(times.collect()));
    row(
        &format!("`get -o json`, {} rule paths", teams.rule_paths()),
        "<= 400 ms",
        format!("{time:.0} ms"),
        time <= 400.0,
    )
}

fn of_memory(what: &str, megabytes: f64, most: f64) -> Row {
    row(
        what,
        &format!("<= {most} MB"),
        format!("{megabytes:.0} MB"),
        megabytes <= most,
    )
}

/// Writes the world to a temporary folder.
fn write(teams: &Teams) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let world = folder.path().join("world");
    teams.write(&world).unwrap();
    (folder, world.join("manifests"))
}

/// The names of routes that are spread over the world.
fn routes_of(teams: &Teams, many: usize) -> Vec<String> {
    // Not a multiple of the number of Gateways.
    let step = teams.routes / many - 1;
    let numbers = (0..many).map(|number| number * step);
    numbers.map(|number| format!("route-{number:06}")).collect()
}

/// The document of a policy of a route, and the path whose answer changes: at a rule that has no policy of its own.
fn policy(manifests: &Path, route: &str) -> (Document, String) {
    let (_, path) = last_rule(manifests, route);
    (Document::find(manifests, "policies", route), path)
}

/// The document of a route, and the path of its last rule.
fn last_rule(manifests: &Path, route: &str) -> (Document, String) {
    let document = Document::find(manifests, "routes", route);
    let object = document.read();
    let text = |pointer: &str| object.pointer(pointer).unwrap().as_str().unwrap();
    let rules = object["spec"]["rules"].as_array().unwrap();
    let path = format!(
        "gateways/{}/{}/listeners/{}/routes/HTTPRoute/{}/{route}/rules/{}",
        text("/spec/parentRefs/0/namespace"),
        text("/spec/parentRefs/0/name"),
        text("/spec/parentRefs/0/sectionName"),
        text("/metadata/namespace"),
        rules[rules.len() - 1]["name"].as_str().unwrap(),
    );
    (document, path)
}

impl Server {
    /// Writes the world, starts a server over it and waits for its first answer.
    fn start(teams: &Teams) -> Self {
        let (folder, manifests) = write(teams);
        let port = folder.path().join("port");
        let (_, path) = last_rule(&manifests, "route-000000");
        let began = Instant::now();
        let process = process::serve(&manifests, None, &port);
        let address = loop {
            match std::fs::read_to_string(&port) {
                Ok(address) if address.ends_with('\n') => break address,
                _ => sleep(Duration::from_millis(1)),
            }
        };
        let mut caller = Caller::new(address.trim());
        while caller.etag(&path).is_none() {
            sleep(Duration::from_millis(1));
        }
        Self {
            started: began.elapsed(),
            process,
            caller,
            manifests,
            _folder: folder,
        }
    }

    /// The resident memory in millions of bytes, after a rest.
    fn megabytes_at_rest(&self) -> f64 {
        sleep(REST);
        resident_mb(self.process.id()) * f64::from(1 << 20) / 1e6
    }

    /// Edits a document of each route, one after the other, until a caller sees that; and then again without a caller, whose
    /// questions would count as CPU time.
    fn edit_each(&mut self, routes: &[String], of_route: OfRoute, edit: fn(&mut Value)) -> Edits {
        let found = routes.iter().map(|route| of_route(&self.manifests, route));
        let documents: Vec<(Document, String)> = found.collect();
        let seen = |(document, path): &(Document, String)| {
            let etag = self.caller.etag(path);
            let began = document.edit(edit);
            while self.caller.etag(path) == etag {
                assert!(began.elapsed() < LIMIT, "no caller sees an edit of {path}");
                sleep(Duration::from_millis(1));
            }
            began.elapsed()
        };
        let times = documents.iter().map(seen).collect();
        let before = cpu_seconds(self.process.id());
        for (document, _) in &documents {
            document.edit(edit);
            sleep(PAUSE);
        }
        let cpu = cpu_seconds(self.process.id()) - before;
        Edits {
            millis: millis(median(times)),
            cpu_millis: 1_000.0 * cpu / routes.len() as f64,
        }
    }
}

impl Caller {
    fn new(address: &str) -> Self {
        let runtime = Runtime::new().unwrap();
        let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
        let channel = runtime.block_on(endpoint.connect()).unwrap();
        Self {
            runtime,
            client: EffectivePolicyServiceClient::new(channel),
        }
    }

    /// The etag of the answer for a path; `None` if there is no answer.
    fn etag(&mut self, path: &str) -> Option<String> {
        let reply = self.client.get_effective_policies(request(path));
        let reply = self.runtime.block_on(reply).ok()?.into_inner();
        Some(reply.result?.etag)
    }
}

impl Document {
    /// Finds the object with a name in the files whose names begin with a stem.
    fn find(manifests: &Path, stem: &str, name: &str) -> Self {
        // As in metadata, in the order of the world and in that of `serde_json`.
        let name = format!(r#""name":"{name}","namespace":"#);
        let files = std::fs::read_dir(manifests).unwrap();
        let files = files.map(|entry| entry.unwrap().path());
        let mut files = files.filter(|file| {
            let file = file.file_name().and_then(|file| file.to_str());
            file.is_some_and(|file| file.starts_with(stem))
        });
        let found = files.find_map(|file| {
            let text = std::fs::read_to_string(&file).unwrap();
            let line = text.lines().position(|line| line.contains(&name))?;
            Some(Self { file, line })
        });
        found.unwrap_or_else(|| panic!("no {name} in {stem}"))
    }

    fn read(&self) -> Value {
        let text = std::fs::read_to_string(&self.file).unwrap();
        serde_json::from_str(text.lines().nth(self.line).unwrap()).unwrap()
    }

    /// Replaces the file by one with a changed object, atomically, as in mounted volumes. Returns when that began.
    fn edit(&self, edit: fn(&mut Value)) -> Instant {
        let text = std::fs::read_to_string(&self.file).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        let mut object: Value = serde_json::from_str(lines[self.line]).unwrap();
        edit(&mut object);
        let object = object.to_string();
        lines[self.line] = &object;
        let text = lines.join("\n");
        let temporary = self.file.with_extension("new");
        let began = Instant::now();
        std::fs::write(&temporary, text).unwrap();
        std::fs::rename(&temporary, &self.file).unwrap();
        began
    }
}

impl Edits {
    /// A row with targets for the time, if it has one, and the CPU time.
    fn row(&self, what: &str, most: Option<f64>, most_cpu: f64) -> Row {
        let target = match most {
            None => format!("CPU <= {most_cpu} ms"),
            Some(most) => format!("<= {most} ms, CPU <= {most_cpu}"),
        };
        row(
            what,
            &target,
            format!("{:.1} ms, CPU {:.1}", self.millis, self.cpu_millis),
            most.is_none_or(|most| self.millis <= most) && self.cpu_millis <= most_cpu,
        )
    }
}

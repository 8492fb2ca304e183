//! The two servers as child processes, which are killed at the end of the benchmark.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::bench_world::{generate, names, shape, version};
use crate::edit::EditedPolicy;
use crate::load::Load;
use crate::process::{ServerProcess, ready, serve};
use crate::world::World;

/// `entail serve` with a generated world.
pub struct Entail {
    pub process: ServerProcess,
    pub address: String,
    /// Random path names.
    pub names: Vec<String>,
    /// A policy in its own file, for edits.
    pub edited: Option<EditedPolicy>,
    _folder: tempfile::TempDir,
}

/// The server of constant bytes.
pub struct Constant {
    pub process: ServerProcess,
    pub address: String,
}

impl Entail {
    /// Starts a server with a world of a shape. A policy that targets an object of the kind `target`
    /// can be edited.
    pub fn start(name: &'static str, target: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |file: &str| folder.path().join(file);
        let world = World::generate(&shape(name)).unwrap();
        world.write(&at("world")).unwrap();
        let edited = EditedPolicy::take(&at("world/manifests"), target);
        let profiles = at("world/profiles.yaml");
        let process = serve(&at("world/manifests"), Some(&profiles), &at("port"));
        let snapshot = generate(name).snapshot_builder().snapshot(version());
        let names = names(&snapshot, 100_000);
        let address = ready(&at("port"));
        Self {
            process,
            address,
            names,
            edited: Some(edited),
            _folder: folder,
        }
    }
}

/// Measures the time from the start of `entail serve` to its first answer, with one file per object.
/// Returns the median, and a description of the world.
pub fn first_answer(name: &'static str) -> (Duration, String) {
    let folder = tempfile::tempdir().unwrap();
    let manifests = folder.path().join("manifests");
    std::fs::create_dir(&manifests).unwrap();
    let world = World::generate(&shape(name)).unwrap();
    let files = world.manifests();
    let documents = files.iter().flat_map(|file| file.text.split("---\n"));
    let mut many = 0;
    for document in documents.filter(|document| !document.trim().is_empty()) {
        std::fs::write(manifests.join(format!("{many}.yaml")), document).unwrap();
        many += 1;
    }
    let profiles = folder.path().join("profiles.yaml");
    std::fs::write(&profiles, world.shape.profiles().text).unwrap();
    let snapshot = generate(name).snapshot_builder().snapshot(version());
    let load = Load::new(&names(&snapshot, 1), 1);
    let times = (0..9).map(|run| {
        let port = folder.path().join(format!("port-{run}"));
        let began = Instant::now();
        let _process = serve(&manifests, Some(&profiles), &port);
        while !load.is_answered(&port) {
            std::thread::sleep(Duration::from_millis(1));
        }
        began.elapsed()
    });
    let mut times: Vec<Duration> = times.collect();
    times.sort();
    let policies = world.policies.len();
    let what = format!("first answer from {many} manifests, {policies} of them policies");
    (times[times.len() / 2], what)
}

impl Constant {
    pub fn start(bytes: usize) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args([crate::constant::FLAG, &bytes.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let output = process.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        Self {
            process: ServerProcess(process),
            address: line.trim().to_owned(),
        }
    }
}

//! `entail serve` as a child process, and what it uses.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The binary that is measured.
pub const BINARY: &str = env!("CARGO_BIN_EXE_entail");
/// Clock ticks per second, the unit of CPU time in /proc.
const TICKS: f64 = 100.0;

/// A server in a process of its own, which is killed when this is dropped.
pub struct ServerProcess(pub Child);

impl ServerProcess {
    /// The number of the process.
    pub fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts `entail serve` with a folder of manifests, and profiles besides the built-in ones.
pub fn serve(manifests: &Path, profiles: Option<&Path>, port: &Path) -> ServerProcess {
    let profiles = profiles.map(|profiles| [OsStr::new("--profiles"), profiles.as_os_str()]);
    let process = Command::new(BINARY)
        .arg("serve")
        .arg("--manifests")
        .arg(manifests)
        .args(profiles.into_iter().flatten())
        .args(["--listen", "127.0.0.1:0", "--log", "error", "--port-file"])
        .arg(port)
        .spawn();
    ServerProcess(process.unwrap())
}

/// Waits until the server is ready; returns the address in the port file.
pub fn ready(file: &Path) -> String {
    for _ in 0..600 {
        let found = std::fs::read_to_string(file).unwrap_or_default();
        if let Some(address) = found.split_whitespace().next() {
            let health = Command::new(BINARY)
                .args(["health", "--server", address])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            if health.unwrap().success() {
                return address.to_owned();
            }
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("the server is not ready after a minute");
}

/// Returns the CPU time of a process.
pub fn cpu_seconds(process: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    // The name of the process, in parentheses, may contain spaces and parentheses.
    let fields: Vec<&str> = text
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    let ticks = |at: usize| fields[at].parse::<f64>().unwrap();
    (ticks(11) + ticks(12)) / TICKS
}

/// Returns the resident memory of a process in MB.
pub fn resident_mb(process: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = text.lines().find(|line| line.starts_with("VmRSS"));
    let kib = line.unwrap().split_whitespace().nth(1).unwrap();
    kib.parse::<f64>().unwrap() / 1024.0
}

//! External load generators: h2load for the maximum rate, ghz for a fixed rate with decoded replies.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::bench_world::framed;
use crate::raw::METHOD;

/// Result of ghz.
pub struct Ghz {
    pub per_second: f64,
    pub p50_micros: f64,
    pub p99_micros: f64,
    /// Replies by status, such as `20000 OK`.
    pub statuses: String,
}

/// Finds a tool in `PATH`, or in the cache directory of the test scripts.
fn tool(name: &str) -> Option<PathBuf> {
    let cache = std::env::var("XDG_CACHE_HOME").map(PathBuf::from);
    let cache =
        cache.or_else(|_| std::env::var("HOME").map(|home| Path::new(&home).join(".cache")));
    let built = cache.ok().map(|cache| cache.join("entail-tools/bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = built.into_iter().chain(std::env::split_paths(&path));
    folders.find_map(|folder| Some(folder.join(name)).filter(|file| file.is_file()))
}

/// Returns the maximum rate in requests per second, over 4 connections with 8 concurrent requests
/// each. All requests have the same path, because h2load always sends the same data.
pub fn h2load(address: &str, path: &str, requests: usize) -> Option<f64> {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("request");
    std::fs::write(&data, framed(path)).unwrap();
    let output = Command::new(tool("h2load")?)
        .args(["-n", &requests.to_string(), "-c", "4", "-m", "8", "-t", "1"])
        .args(["-H", "content-type: application/grpc", "-H", "te: trailers"])
        .arg("-d")
        .arg(&data)
        .arg(format!("http://{address}{METHOD}"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains(&format!("{requests} succeeded")), "{text}");
    let line = text.lines().find(|line| line.starts_with("finished in"));
    let rate = line.and_then(|line| line.split(", ").nth(1)?.split(' ').next());
    Some(rate.unwrap().parse().unwrap())
}

/// Sends requests for the paths in turn, at a fixed rate.
pub fn ghz(address: &str, paths: &[String], per_second: usize, seconds: usize) -> Option<Ghz> {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("requests.json");
    let requests: Vec<Value> = paths.iter().map(|path| json!({ "path": path })).collect();
    std::fs::write(&data, Value::from(requests).to_string()).unwrap();
    let output = Command::new(tool("ghz")?)
        .args([
            "--insecure",
            "--call",
            METHOD.trim_start_matches('/'),
            "-O",
            "json",
        ])
        .args(["--connections", "4", "--concurrency", "32"])
        .args(["--rps", &per_second.to_string()])
        .args(["--total", &(per_second * seconds).to_string()])
        .arg("--data-file")
        .arg(&data)
        .arg(address)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let at = |percent: u64| {
        let all = report["latencyDistribution"].as_array().unwrap();
        let point = all.iter().find(|point| point["percentage"] == percent);
        point.unwrap()["latency"].as_f64().unwrap() / 1_000.0
    };
    let statuses = report["statusCodeDistribution"].as_object().unwrap();
    let statuses: Vec<String> = statuses
        .iter()
        .map(|(code, n)| format!("{n} {code}"))
        .collect();
    Some(Ghz {
        per_second: report["rps"].as_f64().unwrap(),
        p50_micros: at(50),
        p99_micros: at(99),
        statuses: statuses.join(", "),
    })
}

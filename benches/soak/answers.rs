//! Compares the answers of a server with those that a command computes from the manifests.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::process::BINARY;

/// Compares the answers for some paths; reports whether all are equal.
pub fn compare(address: &str, manifests: &Path, paths: &[String]) -> bool {
    let computed = computed(manifests, paths);
    let mut different = 0;
    for path in paths {
        let served = served(address, path);
        if served.as_ref() != computed.get(path.as_str()) {
            different += 1;
            println!(
                "  {path}: served {served:?}, computed {:?}",
                computed.get(path.as_str())
            );
        }
    }
    let absent = paths.len() - computed.len();
    let verdict = if different == 0 { "pass" } else { "MISS" };
    println!(
        "answers that differ from `entail get --manifests`: {different} of {} edited paths, {absent} of which do not \
         exist  {verdict}",
        paths.len()
    );
    different == 0
}

/// Returns the policies that a server answers for a path; `None` if it does not exist.
fn served(address: &str, path: &str) -> Option<Value> {
    let output = Command::new(BINARY)
        .args(["get", path, "-o", "json", "--server", address])
        .output()
        .unwrap();
    match output.status.code() {
        Some(0) => {
            let mut reply: Value = serde_json::from_slice(&output.stdout).unwrap();
            Some(reply["paths"][0]["policies"].take())
        }
        Some(1) => None,
        _ => panic!("{path}: {}", String::from_utf8_lossy(&output.stderr)),
    }
}

/// Returns the policies of those paths that exist.
fn computed<'p>(manifests: &Path, paths: &'p [String]) -> BTreeMap<&'p str, Value> {
    let mut command = Command::new(BINARY)
        .args(["get", "-o", "json", "--manifests"])
        .arg(manifests)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(command.stdout.take().unwrap());
    let mut found = BTreeMap::new();
    let (mut entry, mut all) = (String::new(), 0);
    // The whole is large. The brackets of each path are on lines of their own, indented by four.
    for line in output.lines().map(Result::unwrap) {
        match line.as_str() {
            "    {" => entry = line,
            "    }" | "    }," => {
                all += 1;
                let path = entry.lines().nth(1).and_then(|line| line.split('"').nth(3));
                let path = paths.iter().find(|name| Some(name.as_str()) == path);
                if let Some(path) = path {
                    let mut read: Value = serde_json::from_str(&(entry.clone() + "}")).unwrap();
                    found.insert(path.as_str(), read["policies"].take());
                }
            }
            _ => entry.extend(["\n", &line]),
        }
    }
    assert!(command.wait().unwrap().success() && all > 0);
    found
}

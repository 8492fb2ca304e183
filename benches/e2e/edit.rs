//! Edits a policy repeatedly.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;

use crate::bench_world::{self, mark};

/// A policy of the world, moved to its own file.
pub struct EditedPolicy {
    file: PathBuf,
    policy: Value,
    /// Increases with every edit, so that each is a change.
    number: usize,
}

/// A thread that edits a policy until it is stopped.
pub struct EditLoop {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<(EditedPolicy, u64)>,
}

impl EditedPolicy {
    /// Moves the first policy that targets a whole object of a kind to its own file.
    pub fn take(manifests: &Path, target: &str) -> Self {
        let mut files: Vec<PathBuf> = std::fs::read_dir(manifests)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap();
            let found = text.lines().find(|line| is_on(line, target));
            if let Some(line) = found {
                std::fs::write(&file, text.replace(&format!("---\n{line}\n"), "")).unwrap();
                let edited = Self {
                    file: manifests.join("edited.yaml"),
                    policy: serde_json::from_str(line).unwrap(),
                    number: 0,
                };
                edited.write();
                return edited;
            }
        }
        panic!("no policy on a {target}");
    }

    /// Writes the policy with a new number in its rules. The file is replaced atomically, as in
    /// mounted volumes.
    fn write(&self) {
        let mut policy = self.policy.clone();
        mark(&mut policy, self.number);
        let temporary = self.file.with_extension("new");
        std::fs::write(&temporary, policy.to_string()).unwrap();
        std::fs::rename(&temporary, &self.file).unwrap();
    }

    /// Starts to edit the policy at an interval.
    pub fn every(mut self, interval: Duration) -> EditLoop {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut edits = 0;
            while !stopped.load(Ordering::Relaxed) {
                edits += 1;
                self.number += 1;
                self.write();
                std::thread::sleep(interval);
            }
            (self, edits)
        });
        EditLoop { stop, thread }
    }
}

impl EditLoop {
    /// Stops the thread; returns the policy and the number of edits.
    pub fn end(self) -> (EditedPolicy, u64) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// Reports whether a line is a policy of the benchmark that targets a whole object of a kind.
fn is_on(line: &str, target: &str) -> bool {
    let Ok(policy) = serde_json::from_str::<Value>(line) else {
        return false;
    };
    let group = policy["apiVersion"].as_str().unwrap_or_default();
    group.starts_with("bench.") && bench_world::is_on(&policy, target)
}

//! A policy that changes again and again, in a file of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;

use crate::bench_world::{self, mark};

/// A policy of the world, moved to a file of its own.
pub struct EditedPolicy {
    file: PathBuf,
    policy: Value,
    /// Grows with every edit, so that each is a change.
    number: usize,
}

/// Edits that go on until this is stopped.
pub struct EditLoop {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<(EditedPolicy, u64)>,
}

impl EditedPolicy {
    /// Takes the first policy on a whole object of a kind out of the manifests.
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

    /// The policy with a number in its rules that was not there. The file is replaced at once, as
    /// mounted files are.
    fn write(&self) {
        let mut policy = self.policy.clone();
        mark(&mut policy, self.number);
        let made = self.file.with_extension("new");
        std::fs::write(&made, policy.to_string()).unwrap();
        std::fs::rename(&made, &self.file).unwrap();
    }

    /// Edits it every so often.
    pub fn every(mut self, pause: Duration) -> EditLoop {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut made = 0;
            while !stopped.load(Ordering::Relaxed) {
                made += 1;
                self.number += 1;
                self.write();
                std::thread::sleep(pause);
            }
            (self, made)
        });
        EditLoop { stop, thread }
    }
}

impl EditLoop {
    /// Ends it; returns the policy and how many edits there were.
    pub fn end(self) -> (EditedPolicy, u64) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// Whether a line is a policy of the bench on a whole object of a kind.
fn is_on(line: &str, target: &str) -> bool {
    let Ok(policy) = serde_json::from_str::<Value>(line) else {
        return false;
    };
    let group = policy["apiVersion"].as_str().unwrap_or_default();
    group.starts_with("bench.") && bench_world::is_on(&policy, target)
}

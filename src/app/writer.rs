//! The one writer: from changes of the sources to the next snapshot.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::sync::{mpsc, watch};

use super::intake::{Intake, epoch, now};
use super::load::notes;
use crate::insight::Notes;
use crate::model::{Change, Str};
use crate::serve::Health;
use crate::snapshot::{Snapshot, Snapshots, Version};
use crate::source::manifests::{Problem, Scan};

/// Problems that one look logs one by one.
const MAX_LOGGED: usize = 20;

/// Publishes snapshots.
///
/// `synced_at` of a snapshot is when the look at the files that it was built from was taken. A look
/// that finds nothing new publishes nothing, so a quiet source leaves it where it is.
pub(super) struct Writer {
    pub intake: Intake,
    pub snapshots: Arc<Snapshots>,
    pub notes: watch::Sender<Arc<Notes>>,
    pub health: Health,
    /// Whether to publish although something could not be read at the start.
    pub allow_partial: bool,
    /// When the process began, for the log.
    pub started: Instant,
}

/// What the writer remembers between changes.
struct Running {
    writer: Writer,
    intake: Arc<Mutex<Intake>>,
    epoch: Str,
    generation: u64,
    /// Objects changed that no snapshot has.
    pending: usize,
    told: BTreeSet<String>,
}

/// What was built, and from how many objects.
struct Built {
    snapshot: Option<Snapshot>,
    /// Why profiles are refused.
    refused: BTreeSet<String>,
    changed: usize,
    objects: usize,
}

impl Writer {
    /// Takes scans until there are no more.
    pub async fn run(mut self, mut scans: mpsc::Receiver<Scan>) {
        let placeholder = Intake::new(crate::store::Profiles::default());
        let intake = std::mem::replace(&mut self.intake, placeholder);
        let mut running = Running {
            writer: self,
            intake: Arc::new(Mutex::new(intake)),
            epoch: epoch(),
            generation: 0,
            pending: 0,
            told: BTreeSet::new(),
        };
        while let Some(first) = scans.recv().await {
            // What has gathered while the last snapshot was built is one step.
            let mut changes = Vec::new();
            let mut last = first;
            while let Ok(next) = scans.try_recv() {
                changes.push(std::mem::take(&mut last.change));
                last = next;
            }
            changes.push(std::mem::take(&mut last.change));
            running.take(changes, &last).await;
        }
        running.ended();
    }
}

impl Running {
    /// Takes one step.
    async fn take(&mut self, changes: Vec<Change>, scan: &Scan) {
        let began = Instant::now();
        let synced_at = now();
        self.tell(scan);
        let is_first = self.generation == 0;
        let hold = is_first && scan.is_partial() && !self.writer.allow_partial;
        let version = Version {
            epoch: Arc::clone(&self.epoch),
            generation: self.generation + 1,
            synced_at,
        };
        let built = match self.build(changes, version, hold).await {
            Ok(built) => built,
            Err(error) => {
                tracing::error!(%error, "no snapshot could be built: the last one stays in use");
                // It is not known what was applied: the next change builds anew.
                self.pending += 1;
                return;
            }
        };
        self.pending += built.changed;
        let Some(snapshot) = built.snapshot else {
            if hold {
                tracing::error!(
                    problems = scan.problems.len(),
                    "not ready: something cannot be read; correct it, or allow partial answers \
                     with `--allow-partial`"
                );
            }
            return;
        };
        self.log_new(built.refused, "profile");
        self.publish(snapshot, built.objects, began).await;
    }

    /// Applies changes and builds a snapshot, if something changed or there is none yet.
    async fn build(
        &self,
        changes: Vec<Change>,
        version: Version,
        hold: bool,
    ) -> Result<Built, tokio::task::JoinError> {
        let intake = Arc::clone(&self.intake);
        let needed = version.generation == 1 || self.pending > 0;
        tokio::task::spawn_blocking(move || {
            let mut intake = intake.lock().unwrap_or_else(PoisonError::into_inner);
            let changed = changes.into_iter().map(|change| intake.apply(change)).sum();
            let build = !hold && (needed || changed > 0);
            Built {
                snapshot: build.then(|| intake.snapshot(version)),
                refused: intake.problems(),
                changed,
                objects: intake.objects(),
            }
        })
        .await
    }

    async fn publish(&mut self, snapshot: Snapshot, objects: usize, began: Instant) {
        self.generation = snapshot.version().generation;
        let (paths, answers) = (snapshot.paths(), snapshot.distinct_answers());
        let old = self.writer.snapshots.publish(Arc::new(snapshot));
        // Freeing a large snapshot takes its time: not here, and never a reader's.
        drop(tokio::task::spawn_blocking(move || drop(old)));
        let millis = began.elapsed().as_millis();
        let changed = std::mem::take(&mut self.pending);
        let generation = self.generation;
        tracing::info!(
            generation,
            changed,
            objects,
            paths,
            answers,
            millis,
            "published"
        );
        if generation == 1 {
            self.writer.health.ready().await;
            let millis = self.writer.started.elapsed().as_millis();
            tracing::info!(objects, paths, answers, millis, "ready");
        }
    }

    /// Tells the problems of a scan to those who ask for the status, and new ones to the log.
    fn tell(&mut self, scan: &Scan) {
        let now = Arc::new(notes(&scan.problems));
        self.writer.notes.send_if_modified(|before| {
            let differs = **before != *now;
            *before = Arc::clone(&now);
            differs
        });
        let lines = scan.problems.iter().map(Problem::to_string).collect();
        self.log_new(lines, "manifests");
    }

    /// Logs the problems that were not there before.
    fn log_new(&mut self, now: BTreeSet<String>, of: &'static str) {
        // Problems of manifests and of profiles are told apart, or each would forget the other's.
        let tagged: BTreeSet<String> = now.iter().map(|line| format!("{of} {line}")).collect();
        let others = self
            .told
            .iter()
            .filter(|line| !line.starts_with(of))
            .cloned();
        let mended = self
            .told
            .iter()
            .filter(|l| l.starts_with(of) && !tagged.contains(*l))
            .count();
        let new = now
            .iter()
            .filter(|line| !self.told.contains(&format!("{of} {line}")));
        for (number, problem) in new.enumerate() {
            if number == MAX_LOGGED {
                tracing::warn!(
                    problems = now.len(),
                    "there are more: ask for the server's status"
                );
                break;
            }
            tracing::warn!("{problem}");
        }
        if mended > 0 {
            tracing::info!(mended, remaining = now.len(), "{of}: problems are gone");
        }
        self.told = others.chain(tagged).collect();
    }

    /// The source has ended, which it never should.
    fn ended(&self) {
        tracing::error!("the manifests are no longer followed: the last snapshot stays in use");
        self.writer.notes.send_modify(|notes| {
            let mut now = Notes::clone(notes);
            let message = "no longer followed: restart the server, and see its log".to_owned();
            now.problems.push(("manifests".to_owned(), message));
            *notes = Arc::new(now);
        });
    }
}

//! The one writer: from changes of the sources to the next snapshot.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::sync::{mpsc, watch};

use super::intake::{Intake, epoch, now};
use super::load::notes;
use crate::insight::Notes;
use crate::model::{Change, GroupKind, Str};
use crate::serve::Health;
use crate::snapshot::{Snapshot, Snapshots, Version};
use crate::source::cluster::{self, Wanted};
use crate::source::manifests::Scan;

/// Problems that one look logs one by one.
const MAX_LOGGED: usize = 20;

/// One step of a source.
pub(super) struct Input {
    /// Its number, if the source counts them.
    number: u64,
    change: Change,
    /// All that is wrong now: where, and what.
    problems: Notes,
    /// Whether less is known than there is: a server that has just started is then not ready.
    is_partial: bool,
}

impl From<Scan> for Input {
    fn from(scan: Scan) -> Self {
        Self {
            number: 0,
            is_partial: scan.is_partial(),
            problems: notes(&scan.problems),
            change: scan.change,
        }
    }
}

impl From<cluster::Step> for Input {
    fn from(step: cluster::Step) -> Self {
        Self {
            number: step.number,
            is_partial: !step.is_complete,
            problems: Notes {
                problems: step.problems,
            },
            change: step.change,
        }
    }
}

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
    /// Tells a cluster which kinds to follow.
    pub wanted: Option<watch::Sender<Wanted>>,
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
    wanted: Option<BTreeSet<GroupKind>>,
}

impl Writer {
    /// Takes steps until there are no more.
    pub async fn run<S: Into<Input>>(mut self, mut steps: mpsc::Receiver<S>) {
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
        while let Some(first) = steps.recv().await {
            // What has gathered while the last snapshot was built is one step.
            let mut changes = Vec::new();
            let mut last: Input = first.into();
            while let Ok(next) = steps.try_recv() {
                changes.push(std::mem::take(&mut last.change));
                last = next.into();
            }
            changes.push(std::mem::take(&mut last.change));
            running.take(changes, &last).await;
        }
        running.ended();
    }
}

impl Running {
    /// Takes one step.
    async fn take(&mut self, changes: Vec<Change>, input: &Input) {
        let began = Instant::now();
        let synced_at = now();
        self.tell(input);
        let is_first = self.generation == 0;
        let hold = is_first && input.is_partial && !self.writer.allow_partial;
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
        if let (Some(channel), Some(kinds)) = (&self.writer.wanted, built.wanted) {
            let after = input.number;
            let _ = channel.send_replace(Wanted { kinds, after });
        }
        let Some(snapshot) = built.snapshot else {
            if hold && !input.problems.problems.is_empty() {
                tracing::error!(
                    problems = input.problems.problems.len(),
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
        let asks = self.writer.wanted.is_some();
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
                wanted: asks.then(|| intake.wanted().clone()),
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
    fn tell(&mut self, input: &Input) {
        let now = Arc::new(input.problems.clone());
        self.writer.notes.send_if_modified(|before| {
            let differs = **before != *now;
            *before = Arc::clone(&now);
            differs
        });
        let problems = input.problems.problems.iter();
        let lines = problems.map(|(place, message)| format!("{place}: {message}"));
        self.log_new(lines.collect(), "source");
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
        tracing::error!("the source is no longer followed: the last snapshot stays in use");
        self.writer.notes.send_modify(|notes| {
            let mut now = Notes::clone(notes);
            let message = "no longer followed: restart the server, and see its log".to_owned();
            now.problems.push(("source".to_owned(), message));
            *notes = Arc::new(now);
        });
    }
}

//! The table that a run prints, and what makes a run fail.

use std::collections::BTreeMap;

use crate::neighbour::Record;

/// Memory that a server may keep besides twice that of a quiet one, in bytes. What its allocator gives back later is not
/// waited for, unless the test is strict.
const SLACK: u64 = 64 << 20;
/// The 99th percentile that is always allowed, in milliseconds.
const FLOOR: f64 = 5.0;

/// The figures of the server before any attack.
#[derive(Clone, Copy, Debug)]
pub struct Quiet {
    /// Resident memory in bytes.
    pub resident: u64,
    /// 99th percentile of the neighbour's latencies in milliseconds.
    pub p99: f64,
    /// Whether latencies count, and memory without slack.
    pub is_strict: bool,
}

/// The figures of one attack.
#[derive(Clone, Debug)]
pub struct Row {
    /// The name.
    pub name: &'static str,
    /// Resident memory before, at most and afterwards, in bytes.
    pub resident: [u64; 3],
    /// CPU time of the server, in hundredths of a second, and seconds that passed.
    pub cpu: (u64, f64),
    /// Processor time that the host gave to others meanwhile, in hundredths of a second.
    pub stolen: u64,
    /// What the neighbour saw.
    pub neighbour: Record,
    /// 99th percentile of its latencies without the attack, in milliseconds.
    pub quiet_p99: f64,
    /// Metrics that tell of the attack.
    pub told: Vec<String>,
    /// What the attack itself reports.
    pub note: String,
    /// What the attack itself found to be wrong.
    pub failures: Vec<String>,
}

impl Quiet {
    /// The memory that a server may use after an attack.
    pub fn most(&self) -> u64 {
        let slack = if self.is_strict { 0 } else { SLACK };
        2 * self.resident + slack
    }
}

impl Row {
    /// Whether nothing is wrong but latencies, while the host took away enough to cause that: the 99th percentile is that of
    /// the slowest hundredth of the time.
    pub fn is_disturbed(&self, quiet: &Quiet) -> bool {
        #[allow(clippy::cast_precision_loss, reason = "hundredths of a second")]
        let is_stolen = self.stolen as f64 >= self.cpu.1;
        is_stolen && self.wrong(quiet).is_empty() && self.slow(quiet).is_some()
    }

    /// Why the run fails.
    pub fn verdict(&self, quiet: &Quiet) -> Vec<String> {
        let mut reasons = self.wrong(quiet);
        reasons.extend(self.slow(quiet));
        reasons
    }

    /// What is wrong, besides latencies.
    fn wrong(&self, quiet: &Quiet) -> Vec<String> {
        let mut reasons = self.failures.clone();
        let mut add = |what: &str, counts: &BTreeMap<String, usize>| {
            reasons.extend(
                counts
                    .iter()
                    .map(|(why, count)| format!("{what}: {count} x {why}")),
            );
        };
        add("neighbour", &self.neighbour.errors);
        add("newcomer", &self.neighbour.rejected);
        if self.resident[2] > quiet.most() {
            reasons.push(format!(
                "memory afterwards {} MiB, at most {} MiB are allowed",
                self.resident[2] >> 20,
                quiet.most() >> 20
            ));
        }
        reasons
    }

    /// The latencies, if they are too long.
    fn slow(&self, quiet: &Quiet) -> Option<String> {
        let p99 = self.neighbour.quantile(0.99);
        let most = (3.0 * self.quiet_p99).max(FLOOR);
        let is_slow = quiet.is_strict && p99 > most;
        is_slow.then(|| format!("p99 {p99:.1} ms, at most {most:.1} ms are allowed"))
    }

    /// Prints the row, and below it what it reports and why it fails.
    pub fn print(&self, quiet: &Quiet) {
        let [before, peak, after] = self.resident.map(|bytes| bytes >> 20);
        let reasons = self.verdict(quiet);
        let count = |counts: &BTreeMap<String, usize>| counts.values().sum::<usize>();
        let memory = format!("{before}/{peak}/{after}");
        let latency = format!(
            "{:.1}/{:.1}/{:.1}",
            self.quiet_p99,
            self.neighbour.quantile(0.5),
            self.neighbour.quantile(0.99)
        );
        #[allow(clippy::cast_precision_loss, reason = "hundredths of a second")]
        let [cpu, stolen] = [self.cpu.0, self.stolen].map(|time| time as f64 / 100.0);
        println!(
            "| {:<27} | {memory:>15} | {cpu:>5.1} / {stolen:>4.2} / {:>4.1} | {:>5}/{:<4}/{:<3} | {latency:>16} | {} | {} |",
            self.name,
            self.cpu.1,
            self.neighbour.latencies.len(),
            count(&self.neighbour.errors),
            count(&self.neighbour.rejected),
            if reasons.is_empty() {
                "ok    "
            } else {
                "FAILED"
            },
            shortened(&self.told.join(", "), 300),
        );
        if !self.note.is_empty() {
            println!("    {}", shortened(&self.note, 600));
        }
        for reason in reasons {
            println!("    ! {}", shortened(&reason, 400));
        }
    }
}

/// Prints the heads of the columns.
pub fn print_head(quiet: &Quiet) {
    println!(
        "quiet: {} MiB resident, p99 {:.2} ms; at most {} MiB are allowed after an attack",
        quiet.resident >> 20,
        quiet.p99,
        quiet.most() >> 20
    );
    println!(
        "| {:<27} | {:>15} | {:>19} | {:>14} | {:>16} | {:<6} | told by (metric) |",
        "attack", "MiB b/peak/aft", "CPU / stolen / time", "Gets/err/new", "p99q/p50/p99 ms", ""
    );
}

fn shortened(text: &str, most: usize) -> String {
    let cut: String = text.chars().take(most).collect();
    if cut.len() == text.len() {
        cut
    } else {
        cut + " ..."
    }
}

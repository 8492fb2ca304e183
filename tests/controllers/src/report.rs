//! Comparisons, agreements, and classes of differences.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Scope;
use crate::judge::Controller;
use crate::known::{KnownClass, KnownClasses};

/// The number of examples that are kept of each kind of difference.
const EXAMPLES: usize = 3;

/// A run of fewer random worlds need not find every class.
const MOST_SHORT: u64 = 100;

/// What a comparison is about, as names and values: the comparison, the policy kind, the field, how
/// the two answers differ, and the circumstances. Differences with equal facts are counted together,
/// and known classes match on facts alone.
pub type Facts = BTreeMap<String, String>;

/// The comparisons of a run.
#[derive(Debug)]
pub struct Report {
    controller: Controller,
    seed: u64,
    worlds: u64,
    golden: u64,
    comparisons: BTreeMap<String, Count>,
    differences: BTreeMap<Facts, Examples>,
    not_known: BTreeMap<String, u64>,
    failures: BTreeMap<String, Examples>,
}

/// How often something was compared, and how often both answers agreed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Count {
    /// All comparisons.
    pub comparisons: u64,
    /// Those with equal answers.
    pub agreements: u64,
}

/// A number of occurrences with the first few of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Examples {
    /// All occurrences.
    pub count: u64,
    /// Descriptions of the first few.
    pub first: Vec<String>,
}

/// The outcome of a run, as it is written to a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// The controller that was compared.
    pub controller: Controller,
    /// The seed of the first random world.
    pub seed: u64,
    /// The number of random worlds.
    pub worlds: u64,
    /// The number of the controller's own test inputs.
    pub golden: u64,
    /// The comparisons, by what was compared.
    pub comparisons: BTreeMap<String, Count>,
    /// The known classes with their differences.
    pub classes: Vec<ClassCount>,
    /// Differences that no class describes.
    pub unknown: Vec<UnknownDifference>,
    /// What entail answers with "not known", in worlds in which it is not told what their controllers are. It counts
    /// neither as a comparison nor as an agreement.
    #[serde(default)]
    pub not_known: BTreeMap<String, u64>,
    /// What could not be compared, by reason: crashes of the controller's code, refused objects,
    /// unreadable replies. It counts neither as a comparison nor as an agreement.
    pub failures: BTreeMap<String, Examples>,
}

/// A known class and how often it occurred.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassCount {
    /// The class.
    pub class: KnownClass,
    /// Its differences.
    pub differences: Examples,
}

/// A difference that no class describes.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnknownDifference {
    /// What the comparison is about.
    pub facts: Facts,
    /// Its occurrences.
    pub differences: Examples,
}

impl Report {
    /// A report without comparisons.
    pub fn new(controller: Controller, scope: &Scope) -> Self {
        Self {
            controller,
            seed: scope.seed,
            worlds: 0,
            golden: 0,
            comparisons: BTreeMap::new(),
            differences: BTreeMap::new(),
            not_known: BTreeMap::new(),
            failures: BTreeMap::new(),
        }
    }

    /// Counts a random world that was compared.
    pub fn add_world(&mut self) {
        self.worlds += 1;
    }

    /// Counts a test input of the controller that was compared.
    pub fn add_golden(&mut self) {
        self.golden += 1;
    }

    /// Records a comparison in which both answers are equal.
    pub fn agree(&mut self, what: &str) {
        let count = self.comparisons.entry(what.to_owned()).or_default();
        count.comparisons += 1;
        count.agreements += 1;
    }

    /// Records a comparison in which the answers differ. The example says where, and what each side
    /// answered. The fact `comparison` is added.
    pub fn differ(&mut self, what: &str, mut facts: Facts, example: impl FnOnce() -> String) {
        self.comparisons
            .entry(what.to_owned())
            .or_default()
            .comparisons += 1;
        facts.insert("comparison".to_owned(), what.to_owned());
        self.differences.entry(facts).or_default().add(example);
    }

    /// Records a question that entail answers with "not known", in a world that is to have such answers.
    pub fn not_known(&mut self, what: &str) {
        *self.not_known.entry(what.to_owned()).or_default() += 1;
    }

    /// Records something that could not be compared.
    pub fn fail(&mut self, reason: &str, example: impl FnOnce() -> String) {
        self.failures
            .entry(reason.to_owned())
            .or_default()
            .add(example);
    }

    /// Puts the differences into known classes.
    pub fn finish(self, known: &KnownClasses) -> Outcome {
        let mut classes: Vec<ClassCount> = known.classes().iter().map(ClassCount::new).collect();
        let mut unknown = Vec::new();
        for (facts, found) in self.differences {
            match classes.iter_mut().find(|count| count.class.matches(&facts)) {
                Some(count) => count.differences.merge(found),
                None => unknown.push(UnknownDifference {
                    facts,
                    differences: found,
                }),
            }
        }
        Outcome {
            controller: self.controller,
            seed: self.seed,
            worlds: self.worlds,
            golden: self.golden,
            comparisons: self.comparisons,
            classes,
            unknown,
            not_known: self.not_known,
            failures: self.failures,
        }
    }
}

impl Examples {
    fn add(&mut self, example: impl FnOnce() -> String) {
        self.count += 1;
        if self.first.len() < EXAMPLES {
            self.first.push(example());
        }
    }

    fn merge(&mut self, other: Self) {
        self.count += other.count;
        let rest = EXAMPLES.saturating_sub(self.first.len());
        self.first.extend(other.first.into_iter().take(rest));
    }
}

impl ClassCount {
    fn new(class: &KnownClass) -> Self {
        Self {
            class: class.clone(),
            differences: Examples::default(),
        }
    }
}

impl Outcome {
    /// The sum of all comparisons.
    pub fn total(&self) -> Count {
        let mut total = Count::default();
        for count in self.comparisons.values() {
            total.comparisons += count.comparisons;
            total.agreements += count.agreements;
        }
        total
    }

    /// Prints the outcome, `N passed, N failed` last, and returns whether nothing failed. Known
    /// differences are neither passed nor failed. A class without a difference fails unless it is
    /// marked as rare or the run is short; so does a run without comparisons.
    pub fn print(&self) -> bool {
        let mut failed = 0;
        for (what, count) in &self.comparisons {
            let Count {
                comparisons,
                agreements,
            } = count;
            println!("compared {what}: {agreements} of {comparisons} agree");
        }
        for (what, count) in &self.not_known {
            println!("not known {count} x {what}: entail says so");
        }
        for count in &self.classes {
            let (class, found) = (&count.class, count.differences.count);
            if found > 0 {
                println!("known    {found} x {}: {}", class.id, class.verdict);
            } else if class.is_rare() || self.worlds < MOST_SHORT {
                println!("none     {}", class.id);
            } else {
                failed += 1;
                println!(
                    "FAILED   class {} has no difference any more; remove it",
                    class.id
                );
            }
        }
        for (reason, found) in &self.failures {
            failed += found.count;
            println!("FAILED   {} x not comparable: {reason}", found.count);
            found
                .first
                .iter()
                .for_each(|text| println!("         {text}"));
        }
        for difference in &self.unknown {
            failed += difference.differences.count;
            let facts: Vec<String> = difference
                .facts
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            println!(
                "FAILED   {} x {}",
                difference.differences.count,
                facts.join(" ")
            );
            difference
                .differences
                .first
                .iter()
                .for_each(|text| println!("         {text}"));
        }
        let total = self.total();
        println!(
            "{} {}: {} random worlds from seed {}, {} test inputs",
            self.controller.name, self.controller.version, self.worlds, self.seed, self.golden
        );
        println!("{} passed, {failed} failed", total.agreements);
        failed == 0 && total.comparisons > 0
    }
}

//! Kuadrant: the Go module policy-machinery with the policy kinds and strategies of the operator.
//!
//! Compared are the effective policies of each path with the origin of each rule, whether the
//! operator configures the gateway accordingly, the statuses of policies, and the policies of
//! direct kinds on listeners.

mod admission;
mod answers;
mod circumstances;
mod compare;
mod enforcement;
mod policies;
mod verdict;
mod worlds;

use std::path::Path;

use entail::cli::test::read_cases;
use serde_json::{Value, json};

use crate::judge::{Judge, JudgeError};
use crate::report::Report;
use crate::{RunError, Scope};
use answers::Answers;
use compare::Comparison;
use verdict::Verdict;
use worlds::World;

/// Compares the worlds of the scope.
///
/// # Errors
/// Returns an error if the judge ended.
pub fn run(scope: &Scope, judge: &mut Judge, report: &mut Report) -> Result<(), RunError> {
    for seed in scope.seed..scope.seed.saturating_add(scope.worlds) {
        compare(&World::new(seed), judge, report)?;
    }
    if scope.golden {
        compare_cases(judge, report)?;
    }
    Ok(())
}

/// Compares one world. A world without an answer of either side is a failure and no comparison.
fn compare(world: &World, judge: &mut Judge, report: &mut Report) -> Result<(), RunError> {
    let asked = judge.ask::<Verdict>(&json!({"op": "judge", "objects": world.objects}));
    let verdict = match asked {
        Ok(verdict) => verdict,
        Err(JudgeError::Refused(reason)) => {
            report.fail("the judge refuses a world", || {
                format!("seed {}: {reason}", world.seed)
            });
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    match Answers::read(&world.objects) {
        Ok(answers) => {
            report.add_world();
            Comparison::new(world, &verdict, answers, report).run();
        }
        Err(reason) => report.fail("entail does not answer", || {
            format!("seed {}: {reason}", world.seed)
        }),
    }
    Ok(())
}

/// Compares the effective policies of the conformance cases that were taken from the operator, so
/// that the strategies of the judge are those of the operator.
fn compare_cases(judge: &mut Judge, report: &mut Report) -> Result<(), RunError> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance");
    let files = ["kuadrant-operator.yaml", "kuadrant-probes.yaml"].map(|file| folder.join(file));
    let fail = |error: String| RunError::File(folder.display().to_string(), error);
    for (_, case) in read_cases(&files).map_err(|error| fail(error.to_string()))? {
        let world = World {
            seed: 0,
            objects: case.inputs(),
        };
        let own_profile = |object: &Value| object["kind"] == "PolicyProfile";
        if world.objects.iter().any(own_profile) {
            continue;
        }
        let asked = judge.ask::<Verdict>(&json!({"op": "judge", "objects": world.objects}));
        let reason = match (asked, Answers::read(&world.objects)) {
            // The API server does not take such a policy, so the operator never reads it.
            (Ok(_), Ok(answers)) if answers.has_invalid() => continue,
            (Ok(verdict), Ok(answers)) => {
                report.add_golden();
                Comparison::new(&world, &verdict, answers, report).run_effective();
                continue;
            }
            (Err(JudgeError::Refused(reason)), _) | (Ok(_), Err(reason)) => reason,
            (Err(error), _) => return Err(error.into()),
        };
        report.fail("a case cannot be compared", || {
            format!("{}: {reason}", case.name)
        });
    }
    Ok(())
}

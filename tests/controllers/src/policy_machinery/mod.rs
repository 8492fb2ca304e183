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

use serde_json::json;

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

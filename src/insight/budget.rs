//! The work that a query may do.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::Failure;
use crate::background;

/// The number of steps of a thread after which it looks how much of the CPU it has used.
const STEPS_PER_LOOK: u32 = 16;

/// The work that a query may do: until its caller is gone, or its deadline has passed. The loops of a query ask for
/// each step, so that work never outlives its request.
#[derive(Debug, Default)]
pub struct Budget {
    is_over: AtomicBool,
    steps: AtomicU64,
    late_steps: AtomicU64,
    /// The number of steps after which the budget is over; 0 for no limit.
    limit: u64,
}

impl Budget {
    /// Creates a budget that ends after some steps.
    pub fn of_steps(limit: u64) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }

    /// Returns a budget that never ends.
    pub fn unlimited() -> &'static Self {
        static UNLIMITED: Budget = Budget {
            is_over: AtomicBool::new(false),
            steps: AtomicU64::new(0),
            late_steps: AtomicU64::new(0),
            limit: 0,
        };
        &UNLIMITED
    }

    /// Ends the budget: the query stops at its next step.
    pub fn stop(&self) {
        // Relaxed is enough: the flag does not guard other memory.
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Counts a step. Returns false if the query has to stop.
    pub fn step(&self) -> bool {
        yield_now_and_then();
        if self.is_over.load(Ordering::Relaxed) {
            self.late_steps.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        if self.limit > 0 && self.steps.fetch_add(1, Ordering::Relaxed) >= self.limit {
            self.stop();
            return false;
        }
        true
    }

    /// Counts a step.
    ///
    /// # Errors
    /// The query has to stop.
    pub fn check(&self) -> Result<(), Failure> {
        match self.step() {
            true => Ok(()),
            false => Err(Failure::cancelled()),
        }
    }

    /// Returns the number of steps that the query tried after the end of the budget.
    pub fn late_steps(&self) -> u64 {
        self.late_steps.load(Ordering::Relaxed)
    }
}

/// Lets threads of usual priority run, if this one has a low one.
fn yield_now_and_then() {
    thread_local!(static STEPS: Cell<u32> = const { Cell::new(0) });
    let steps = STEPS.get().wrapping_add(1);
    STEPS.set(steps);
    if steps.is_multiple_of(STEPS_PER_LOOK) {
        background::yield_core();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_ends_after_its_steps_or_when_it_is_stopped() {
        let budget = Budget::of_steps(2);
        assert!(budget.step() && budget.step() && !budget.step());
        assert!(!budget.step());
        assert_eq!(budget.late_steps(), 1);
        let stopped = Budget::default();
        assert!(stopped.check().is_ok());
        stopped.stop();
        assert!(stopped.check().is_err());
    }
}

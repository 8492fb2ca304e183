//! The results of assertions, kept with the snapshot that they are of.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::civil::Date;

use super::InProgress;
use crate::api::v1;

/// The results of all assertions of a snapshot on one day, for callers who see everything.
#[derive(Debug, Default)]
pub struct AssertionMemo {
    known: Mutex<Option<(Date, AssertionResults)>>,
    being_made: InProgress<Date>,
}

/// Results in the order of the assertions.
pub type AssertionResults = Arc<[v1::AssertionResult]>;

impl AssertionMemo {
    /// Returns the results of a day, made by `make` if they are not known. Others who ask meanwhile wait for them, as long
    /// as `may_wait` permits it.
    ///
    /// # Errors
    /// That of `may_wait` or of `make`; nothing is kept then.
    pub fn get_or_make<E>(
        &self,
        day: Date,
        may_wait: impl Fn() -> Result<(), E>,
        make: impl FnOnce() -> Result<Vec<v1::AssertionResult>, E>,
    ) -> Result<AssertionResults, E> {
        if let Some(results) = self.get(day) {
            return Ok(results);
        }
        let _begun = self.being_made.begin(day, may_wait)?;
        if let Some(results) = self.get(day) {
            return Ok(results);
        }
        let results: AssertionResults = make()?.into();
        *self.lock() = Some((day, Arc::clone(&results)));
        Ok(results)
    }

    /// Keeps results that were made elsewhere.
    pub fn keep(&self, day: Date, results: &[v1::AssertionResult]) {
        *self.lock() = Some((day, results.into()));
    }

    fn get(&self, day: Date) -> Option<AssertionResults> {
        let known = self.lock();
        let (of, results) = known.as_ref()?;
        (*of == day).then(|| Arc::clone(results))
    }

    fn lock(&self) -> MutexGuard<'_, Option<(Date, AssertionResults)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn result(paths: u64) -> v1::AssertionResult {
        v1::AssertionResult {
            paths,
            ..Default::default()
        }
    }

    #[test]
    fn results_are_made_once_for_a_day() {
        let memo = AssertionMemo::default();
        let day = |day| Date::constant(2026, 11, day);
        let paths = |on: i8, made: u64| {
            let may_wait = || Ok::<_, Infallible>(());
            let made = memo.get_or_make(day(on), may_wait, || Ok(vec![result(made)]));
            made.map(|results| results.iter().map(|r| r.paths).sum::<u64>())
        };
        assert_eq!(paths(1, 5), Ok(5));
        assert_eq!(paths(1, 6), Ok(5));
        assert_eq!(paths(2, 7), Ok(7), "another day");
        memo.keep(day(2), &[result(8)]);
        assert_eq!(paths(2, 9), Ok(8));
    }

    #[test]
    fn an_error_is_not_kept() {
        let memo = AssertionMemo::default();
        let day = Date::constant(2026, 11, 1);
        let may_wait = || Ok::<(), &str>(());
        let failed = memo.get_or_make(day, may_wait, || Err("too late"));
        assert_eq!(failed, Err("too late"));
        let made = memo.get_or_make(day, may_wait, || Ok::<_, &str>(vec![result(1)]));
        assert_eq!(made.map(|results| results.len()), Ok(1));
    }
}

//! The results of assertions, kept with the snapshot that they are of.

use std::sync::{Arc, Mutex, PoisonError};

use jiff::civil::Date;

use crate::api::v1;

/// The results of all assertions of a snapshot on one day, for callers who see everything.
#[derive(Debug, Default)]
pub struct AssertionMemo(Mutex<Option<(Date, AssertionResults)>>);

/// Results in the order of the assertions.
pub type AssertionResults = Arc<[v1::AssertionResult]>;

impl AssertionMemo {
    /// Returns the results of a day, made by `make` if they are not known. Others who ask meanwhile wait for them.
    ///
    /// # Errors
    /// That of `make`; nothing is kept then.
    pub fn get_or_make<E>(
        &self,
        day: Date,
        make: impl FnOnce() -> Result<Vec<v1::AssertionResult>, E>,
    ) -> Result<AssertionResults, E> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, results)) = &*known
            && *of == day
        {
            return Ok(Arc::clone(results));
        }
        let results: AssertionResults = make()?.into();
        *known = Some((day, Arc::clone(&results)));
        Ok(results)
    }

    /// Keeps results. Does not wait for somebody who is about to make them.
    pub fn keep(&self, day: Date, results: &[v1::AssertionResult]) {
        if let Ok(mut known) = self.0.try_lock() {
            *known = Some((day, results.into()));
        }
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
            let made = memo.get_or_make(day(on), || Ok::<_, Infallible>(vec![result(made)]));
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
        assert_eq!(memo.get_or_make(day, || Err("too late")), Err("too late"));
        let made = memo.get_or_make(day, || Ok::<_, Infallible>(vec![result(1)]));
        assert_eq!(made.map(|results| results.len()), Ok(1));
    }
}

//! Work that is done once, though several ask for it at the same time.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often those who wait ask whether they may go on waiting.
const PATIENCE: Duration = Duration::from_millis(20);

/// The work that is being done, by key.
#[derive(Debug)]
pub struct InProgress<K> {
    keys: Mutex<Vec<K>>,
    ended: Condvar,
}

/// Work that is being done; dropping it lets the next one begin, whether it has a result or not.
#[derive(Debug)]
pub struct Begun<'p, K: PartialEq> {
    all: &'p InProgress<K>,
    key: K,
}

impl<K> Default for InProgress<K> {
    fn default() -> Self {
        Self {
            keys: Mutex::default(),
            ended: Condvar::new(),
        }
    }
}

impl<K: Clone + PartialEq> InProgress<K> {
    /// Begins work with a key, after others with this key have ended: their result may be there then. Blocks the thread,
    /// as long as `may_wait` permits it.
    ///
    /// # Errors
    /// That of `may_wait`.
    pub fn begin<E>(
        &self,
        key: K,
        may_wait: impl Fn() -> Result<(), E>,
    ) -> Result<Begun<'_, K>, E> {
        let mut keys = self.lock();
        while keys.contains(&key) {
            let waited = self.ended.wait_timeout(keys, PATIENCE);
            (keys, _) = waited.unwrap_or_else(PoisonError::into_inner);
            may_wait()?;
        }
        keys.push(key.clone());
        Ok(Begun { all: self, key })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<K>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: PartialEq> Drop for Begun<'_, K> {
    fn drop(&mut self) {
        let mut keys = self.all.keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.retain(|key| *key != self.key);
        drop(keys);
        self.all.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn one_key_is_worked_on_once_at_a_time() {
        let all = InProgress::default();
        let (running, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let work = || {
            let _begun = all.begin(7, || Ok::<(), Infallible>(())).unwrap();
            let now = running.fetch_add(1, Ordering::SeqCst) + 1;
            most.fetch_max(now, Ordering::SeqCst);
            thread::yield_now();
            running.fetch_sub(1, Ordering::SeqCst);
        };
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(work);
            }
        });
        assert_eq!(most.into_inner(), 1);
        assert!(all.lock().is_empty());
    }

    #[test]
    fn who_may_not_wait_does_not() {
        let all = InProgress::default();
        let begun = all.begin(1, || Ok::<(), &str>(())).unwrap();
        assert_eq!(all.begin(1, || Err("too late")).err(), Some("too late"));
        let other = all.begin(2, || Err("too late"));
        assert!(other.is_ok());
        drop(begun);
        assert!(all.begin(1, || Err("too late")).is_ok());
    }
}

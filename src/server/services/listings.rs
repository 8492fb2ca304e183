//! Turns in which the paths of watch groups are listed: a caller has one at a time, so that those of many streams do not
//! keep out the others.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// Maximum number of watch groups whose paths are listed concurrently. Listing occupies a thread.
const MAX_LISTINGS: usize = 2;

/// The listings in progress, in all and by caller.
#[derive(Debug)]
pub(super) struct Listings {
    all: Arc<Semaphore>,
    by_caller: Mutex<HashMap<Arc<str>, Arc<Semaphore>>>,
}

/// A listing in progress; dropping it lets another one begin.
#[derive(Debug)]
pub(super) struct Listing {
    _of_all: OwnedSemaphorePermit,
    _of_caller: CallerListing,
}

/// A listing of a caller that is in progress or waits.
#[derive(Debug)]
struct CallerListing {
    listings: Arc<Listings>,
    caller: Arc<str>,
    own: Arc<Semaphore>,
    /// Set when it is the turn of the listing among those of its caller.
    permit: Option<OwnedSemaphorePermit>,
}

impl Listings {
    /// Creates the turns of a server.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            all: Arc::new(Semaphore::new(MAX_LISTINGS)),
            by_caller: Mutex::default(),
        })
    }

    /// Waits for the turn of a caller.
    ///
    /// # Errors
    /// None: the semaphores are never closed.
    pub async fn begin(self: &Arc<Self>, caller: &Arc<str>) -> Result<Listing, AcquireError> {
        let own = {
            let mut by_caller = self.lock();
            let own = by_caller.entry(Arc::clone(caller));
            Arc::clone(own.or_insert_with(|| Arc::new(Semaphore::new(1))))
        };
        let mut of_caller = CallerListing {
            listings: Arc::clone(self),
            caller: Arc::clone(caller),
            own,
            permit: None,
        };
        let permit = Arc::clone(&of_caller.own).acquire_owned().await?;
        of_caller.permit = Some(permit);
        Ok(Listing {
            _of_all: Arc::clone(&self.all).acquire_owned().await?,
            _of_caller: of_caller,
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<Semaphore>>> {
        self.by_caller
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CallerListing {
    fn drop(&mut self) {
        self.permit = None;
        let mut by_caller = self.listings.lock();
        // The map has it, and this one. All others of the caller would have it as well.
        if Arc::strong_count(&self.own) <= 2 {
            by_caller.remove(&self.caller);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn a_caller_with_many_listings_does_not_keep_out_another() {
        let listings = Listings::new();
        let (one, other): (Arc<str>, Arc<str>) = ("one".into(), "other".into());
        let first = listings.begin(&one).await.unwrap();
        let waiting: Vec<_> = (0..10)
            .map(|_| {
                let (listings, one) = (Arc::clone(&listings), Arc::clone(&one));
                tokio::spawn(async move { listings.begin(&one).await.map(drop) })
            })
            .collect();
        tokio::task::yield_now().await;
        let second = timeout(Duration::from_secs(10), listings.begin(&other)).await;
        drop((first, second.unwrap().unwrap()));
        for (number, one) in waiting.into_iter().enumerate() {
            match number % 2 {
                0 => one.await.unwrap().unwrap(),
                _ => one.abort(),
            }
        }
        tokio::task::yield_now().await;
        assert!(listings.lock().is_empty());
    }
}

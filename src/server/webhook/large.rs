//! The large reviews that are read at the same time: few in all, and not all of them of one address, so that a caller
//! that sends them slowly does not keep out the API server.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::server::admission::connections::ClientAddress;

/// Maximum number of large reviews in all.
const TOTAL: usize = 4;
/// Maximum number of large reviews of one address.
const PER_ADDRESS: usize = 3;

/// Counts large reviews by address.
#[derive(Debug, Default)]
pub(super) struct LargeReviews(Mutex<BTreeMap<ClientAddress, usize>>);

/// A large review; dropping it lets another one be read.
#[derive(Debug)]
pub(super) struct LargeReview<'a> {
    all: &'a LargeReviews,
    address: ClientAddress,
}

impl LargeReviews {
    /// Counts a large review; `None` if too many are read.
    pub fn begin(&self, address: ClientAddress) -> Option<LargeReview<'_>> {
        let mut counts = self.lock();
        let of_address = counts.get(&address).copied().unwrap_or_default();
        let is_room = counts.values().sum::<usize>() < TOTAL && of_address < PER_ADDRESS;
        is_room.then(|| {
            counts.insert(address, of_address + 1);
            LargeReview { all: self, address }
        })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ClientAddress, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LargeReview<'_> {
    fn drop(&mut self) {
        let mut counts = self.all.lock();
        if let Some(count) = counts.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_does_not_take_all() {
        let all = LargeReviews::default();
        let [one, other] = [1, 2].map(|last| ClientAddress::of([127, 0, 0, last].into()));
        let mut held: Vec<_> = (0..PER_ADDRESS).map(|_| all.begin(one).unwrap()).collect();
        assert!(all.begin(one).is_none());
        held.push(all.begin(other).unwrap());
        assert!(all.begin(other).is_none());
        held.clear();
        assert!(all.lock().is_empty());
    }
}

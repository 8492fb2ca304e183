//! The reviews in progress, in all and by address, so that a caller with many, or with slow ones, does not keep out the API
//! server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::server::admission::connections::ClientAddress;

/// Counts reviews in progress by address.
#[derive(Debug)]
pub(super) struct AddressShares {
    /// Maximum number in all.
    total: usize,
    /// Maximum number of one address.
    per_address: usize,
    counts: Mutex<BTreeMap<ClientAddress, usize>>,
}

/// A review in progress; dropping it lets another one begin.
#[derive(Debug)]
pub(super) struct AddressShare {
    all: Arc<AddressShares>,
    address: ClientAddress,
}

impl AddressShares {
    /// Creates the counts for a number of reviews in all, and of one address.
    pub fn new(total: usize, per_address: usize) -> Arc<Self> {
        Arc::new(Self {
            total,
            per_address,
            counts: Mutex::default(),
        })
    }

    /// Counts a review; `None` if too many are in progress.
    pub fn begin(self: &Arc<Self>, address: ClientAddress) -> Option<AddressShare> {
        let mut counts = self.lock();
        let of_address = counts.get(&address).copied().unwrap_or_default();
        let is_room = counts.values().sum::<usize>() < self.total && of_address < self.per_address;
        is_room.then(|| {
            counts.insert(address, of_address + 1);
            AddressShare {
                all: Arc::clone(self),
                address,
            }
        })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ClientAddress, usize>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for AddressShare {
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
        let all = AddressShares::new(4, 3);
        let [one, other] = [1, 2].map(|last| ClientAddress::of([127, 0, 0, last].into()));
        let mut held: Vec<_> = (0..3).map(|_| all.begin(one).unwrap()).collect();
        assert!(all.begin(one).is_none());
        held.push(all.begin(other).unwrap());
        assert!(all.begin(other).is_none());
        held.clear();
        assert!(all.lock().is_empty());
    }
}

//! Pseudo-random numbers: splitmix64 (Steele, Lea, Flood 2014), one stream per purpose.
//!
//! Streams are keyed by name, so that a different number of policies does not change the routes.

/// A splitmix64 generator: 64 bits of state, period 2^64, not cryptographic.
#[derive(Debug, Clone)]
pub struct Rng {
    state: u64,
}

impl Rng {
    /// Creates the stream `name` of a seed.
    pub fn stream(seed: u64, name: &str) -> Self {
        // FNV-1a is stable across compiler versions, unlike the hasher of std.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let mut rng = Rng { state: seed };
        rng.state = rng.next_u64() ^ hash;
        rng
    }

    /// Returns the next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number in `0..bound`; 0 for an empty range. The bias (below 2^-32 here) is
    /// negligible.
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next_u64()) * bound as u128) >> 64) as usize
    }

    /// Returns a number in `low..=high`; `low` if the range is empty.
    pub fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below((high + 1).saturating_sub(low))
    }

    /// Shuffles `items` (Fisher-Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

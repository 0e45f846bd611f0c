//! Pseudorandom numbers, which are the same in every run with the same seed.

/// A sequence of numbers (SplitMix64).
#[derive(Debug, Clone)]
pub struct Numbers(u64);

impl Numbers {
    /// Returns a separate sequence for each client.
    pub fn of_client(number: usize) -> Self {
        Self(number as u64)
    }

    /// Returns a separate sequence for each name and seed.
    pub fn named(seed: u64, name: &str) -> Self {
        Self(seed ^ fingerprint(&[name.as_bytes()]))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns the next number below `end`, or 0 if `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// Returns the next number from 0 (included) to 1 (excluded).
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns the next interval between two events of a Poisson process with a mean interval of 1.
    pub fn gap(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }
}

/// Returns a hash of several texts (FNV-1a). It depends on where one text ends and the next one begins.
pub fn fingerprint(parts: &[&[u8]]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut take = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    for part in parts {
        part.iter().copied().for_each(&mut take);
        take(0xff);
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_spread_evenly() {
        let mut numbers = Numbers::of_client(3);
        let mut seen = [0; 10];
        for _ in 0..10_000 {
            seen[numbers.below(10)] += 1;
        }
        assert!(seen.iter().all(|count| (800..1200).contains(count)), "{seen:?}");
        assert_eq!(numbers.below(0), 0);
    }

    #[test]
    fn gaps_have_a_mean_of_one() {
        let mut numbers = Numbers::named(7, "gaps");
        let sum: f64 = (0..10_000).map(|_| numbers.gap()).sum();
        assert!((9_500.0..10_500.0).contains(&sum), "{sum}");
        assert_ne!(Numbers::named(7, "a").next(), Numbers::named(7, "b").next());
        assert_eq!(Numbers::named(7, "a").next(), Numbers::named(7, "a").next());
    }

    #[test]
    fn fingerprints_tell_parts_apart() {
        assert_ne!(fingerprint(&[b"ab", b"c"]), fingerprint(&[b"a", b"bc"]));
    }
}

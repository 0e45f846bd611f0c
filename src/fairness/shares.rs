//! The seats of priority levels: the server's seats divided by shares (KEP-1040, "Assured Concurrency and Borrowing").

/// The part of the server's seats that a level is configured to have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Share {
    /// Its shares among those of all levels.
    pub shares: u32,
    /// The part of its seats that other levels may use while it does not, in percent.
    pub lendable_percent: u32,
    /// The most further seats that it may borrow, in percent of its own. `None` if it may borrow all that others lend.
    pub borrowing_percent: Option<u32>,
}

/// The limits of a level, in seats.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limit {
    /// Its own seats.
    pub nominal: u32,
    /// The number of its own seats that other levels may use while it does not.
    pub lendable: u32,
    /// The most seats that it can have, borrowed ones included.
    pub most: u32,
}

/// Divides the seats of the server among levels. Parts are rounded up: their sum may be a little larger than `total`.
pub fn divide(total: usize, shares: &[Share]) -> Vec<Limit> {
    let sum: f64 = shares.iter().map(|share| f64::from(share.shares)).sum();
    let limit = |share: &Share| {
        let nominal = if sum > 0.0 { (total as f64 * f64::from(share.shares) / sum).ceil() } else { 0.0 };
        let part = |percent: u32| (nominal * f64::from(percent) / 100.0).round();
        let borrowed = share.borrowing_percent.map_or(total as f64, part);
        Limit {
            nominal: nominal as u32,
            lendable: part(share.lendable_percent) as u32,
            most: (nominal + borrowed) as u32,
        }
    };
    shares.iter().map(limit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_follow_shares() {
        let share = |shares, lendable_percent, borrowing_percent| Share { shares, lendable_percent, borrowing_percent };
        // The suggested levels: catch-all, exempt, global-default, leader-election, node-high, system, workload-high,
        // workload-low.
        let suggested = [(5, 0), (0, 0), (20, 50), (10, 0), (40, 25), (30, 33), (40, 50), (100, 90)];
        let limits = divide(600, &suggested.map(|(shares, lent)| share(shares, lent, None)));
        let nominal: Vec<u32> = limits.iter().map(|limit| limit.nominal).collect();
        assert_eq!(nominal, [13, 0, 49, 25, 98, 74, 98, 245]);
        let lendable: Vec<u32> = limits.iter().map(|limit| limit.lendable).collect();
        assert_eq!(lendable, [0, 0, 25, 0, 25, 24, 49, 221]);
        assert_eq!(limits[2].most, 649, "it may borrow whatever there is");
        let limits = divide(10, &[share(1, 0, Some(0)), share(1, 100, Some(50))]);
        assert_eq!(limits[0], Limit { nominal: 5, lendable: 0, most: 5 });
        assert_eq!(limits[1], Limit { nominal: 5, lendable: 5, most: 8 });
        assert_eq!(divide(10, &[share(0, 0, Some(0))]), [Limit::default()], "no shares, no seats");
    }
}

//! What rules may cost, and how it is said that they cost more.

/// The most that one rule may cost at all places of an object together.
pub const RULE_COST: u64 = 10_000_000;
/// The most that all rules of a schema may cost together.
pub const SCHEMA_COST: u64 = 100_000_000;
/// The most that one evaluation may cost.
pub const CALL_COST: u64 = 1_000_000;
/// The most that all evaluations for one object may cost together.
pub const OBJECT_COST: u64 = 10_000_000;
/// Bytes of the longest message that an expression may give.
pub const MESSAGE_BYTES: usize = 5 * 1024;
/// Bytes of memory that the errors about one object take, and so the warnings; there may be one more.
pub const TOLD_BYTES: usize = 1 << 20;
/// How many of the dearest rules are named where all together are too dear.
const DEAREST: usize = 4;

/// What is said of a cost above its limit.
pub fn complaint(name: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = match factor {
        _ if factor > 100.0 => "more than 100x".to_owned(),
        // One digit could say that the limit was met.
        _ if factor < 1.5 => format!("{factor:.6}x"),
        _ => format!("{factor:.1}x"),
    };
    format!(
        "{name} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and \
         maxLength where arrays, maps, and strings are declared)"
    )
}

/// What all rules of a schema cost.
#[derive(Debug, Default)]
pub struct Total {
    /// Together.
    pub cost: u64,
    /// The places of the dearest, those first.
    dearest: Vec<(String, u64)>,
}

impl Total {
    /// Adds what a rule at a place costs.
    pub fn add(&mut self, place: &str, cost: u64) {
        self.cost = self.cost.saturating_add(cost);
        if cost < SCHEMA_COST / 100 {
            return;
        }
        self.dearest.push((place.to_owned(), cost));
        self.dearest.sort_by(|(_, a), (_, b)| b.cmp(a));
        self.dearest.truncate(DEAREST);
    }

    /// The places of the dearest rules, if all together are too dear.
    pub fn too_dear(&self) -> Option<impl Iterator<Item = &str>> {
        (self.cost > SCHEMA_COST).then(|| self.dearest.iter().map(|(place, _)| &**place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_told_in_as_many_digits_as_matter() {
        let factor = |cost| {
            let text = complaint("c", cost, RULE_COST);
            text.split_once("factor of ").unwrap().1.split_once(" (").unwrap().0.to_owned()
        };
        assert_eq!(factor(10_066_340), "1.006634x");
        assert_eq!(factor(45_000_000), "4.5x");
        assert_eq!(factor(u64::MAX), "more than 100x");
    }
}

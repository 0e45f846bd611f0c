//! Limits on the cost of rules, and the messages about exceeding them.

/// Largest estimated cost of one rule for all its evaluations on one object.
pub const RULE_COST: u64 = 10_000_000;
/// Largest estimated cost of all rules of a schema.
pub const SCHEMA_COST: u64 = 100_000_000;
/// Largest actual cost of one evaluation.
pub const CALL_COST: u64 = 1_000_000;
/// Largest actual cost of all evaluations for one object.
pub const OBJECT_COST: u64 = 10_000_000;
/// How many of the costliest rules the error about the total cost names.
const MOST_EXPENSIVE: usize = 4;

/// Returns the message about a cost above its limit.
pub fn complaint(name: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = match factor {
        _ if factor > 100.0 => "more than 100x".to_owned(),
        // With one digit it could look as if the limit were met.
        _ if factor < 1.5 => format!("{factor:.6}x"),
        _ => format!("{factor:.1}x"),
    };
    format!(
        "{name} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and \
         maxLength where arrays, maps, and strings are declared)"
    )
}

/// The total cost of the rules of a schema.
#[derive(Debug, Default)]
pub struct Total {
    /// The sum.
    pub cost: u64,
    /// The paths of the costliest rules, in descending order.
    most_expensive: Vec<(String, u64)>,
}

impl Total {
    /// Adds the cost of a rule at a path.
    pub fn add(&mut self, place: &str, cost: u64) {
        self.cost = self.cost.saturating_add(cost);
        if cost < SCHEMA_COST / 100 {
            return;
        }
        self.most_expensive.push((place.to_owned(), cost));
        self.most_expensive.sort_by(|(_, a), (_, b)| b.cmp(a));
        self.most_expensive.truncate(MOST_EXPENSIVE);
    }

    /// Returns the paths of the costliest rules if the total exceeds the limit. `None` if it does not.
    pub fn too_expensive(&self) -> Option<impl Iterator<Item = &str>> {
        (self.cost > SCHEMA_COST).then(|| self.most_expensive.iter().map(|(place, _)| &**place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_have_as_many_digits_as_matter() {
        let factor = |cost| {
            let text = complaint("c", cost, RULE_COST);
            text.split_once("factor of ").unwrap().1.split_once(" (").unwrap().0.to_owned()
        };
        assert_eq!(factor(10_066_340), "1.006634x");
        assert_eq!(factor(45_000_000), "4.5x");
        assert_eq!(factor(u64::MAX), "more than 100x");
    }
}

//! The report of an import, by resource.

use std::collections::BTreeMap;
use std::fmt;

use crate::limits::MOVING_REFUSALS_LISTED;

/// How many objects of a resource were imported and refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    taken: u64,
    refused: u64,
}

/// The report of an import.
#[derive(Clone, Debug, Default)]
pub(super) struct Report {
    by_resource: BTreeMap<String, Count>,
    /// The number of keys that are not objects, by the reason for leaving them out.
    left_out: BTreeMap<&'static str, u64>,
    /// The first refused keys, with reasons.
    refused: Vec<(String, String)>,
    /// Bytes of the imported objects, in their new stored form.
    bytes: u64,
}

impl Report {
    /// Counts an imported object.
    pub(super) fn taken(&mut self, resource: &str, bytes: usize) {
        self.count(resource).taken += 1;
        self.bytes += bytes as u64;
    }

    /// Counts a refused object.
    pub(super) fn refused(&mut self, resource: &str, key: &str, why: &str) {
        self.count(resource).refused += 1;
        if self.refused.len() < MOVING_REFUSALS_LISTED {
            self.refused.push((key.to_owned(), why.to_owned()));
        }
    }

    /// Counts a key that is left out on purpose.
    pub(super) fn left_out(&mut self, why: &'static str) {
        *self.left_out.entry(why).or_default() += 1;
    }

    /// Returns how many objects were imported.
    pub(super) fn taken_count(&self) -> u64 {
        self.by_resource.values().map(|count| count.taken).sum()
    }

    /// Returns how many objects were refused.
    pub(super) fn refused_count(&self) -> u64 {
        self.by_resource.values().map(|count| count.refused).sum()
    }

    fn count(&mut self, resource: &str) -> &mut Count {
        self.by_resource.entry(resource.to_owned()).or_default()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.by_resource.keys().map(String::len).max().unwrap_or(0).max("resource".len());
        writeln!(f, "{:width$}  {:>9}  {:>9}", "resource", "imported", "refused")?;
        for (resource, Count { taken, refused }) in &self.by_resource {
            writeln!(f, "{resource:width$}  {taken:>9}  {refused:>9}")?;
        }
        let (taken, refused) = (self.taken_count(), self.refused_count());
        writeln!(f, "{:width$}  {taken:>9}  {refused:>9}", "all")?;
        for (why, count) in &self.left_out {
            writeln!(f, "left out: {count} keys, because {why}")?;
        }
        for (key, why) in &self.refused {
            writeln!(f, "refused: {key}: {why}")?;
        }
        let more = refused.saturating_sub(self.refused.len() as u64);
        if more > 0 {
            writeln!(f, "refused: {more} more")?;
        }
        write!(f, "{} bytes", self.bytes)
    }
}

//! What an import came to, by resource.

use std::collections::BTreeMap;
use std::fmt;

use crate::limits::MOVING_TOLD;

/// How many objects of a resource came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    taken: u64,
    refused: u64,
}

/// What an import came to.
#[derive(Clone, Debug, Default)]
pub(super) struct Report {
    by_resource: BTreeMap<String, Count>,
    /// Keys that are no objects, by why they were left out.
    left_out: BTreeMap<&'static str, u64>,
    /// The first keys that were refused, and why.
    refused: Vec<(String, String)>,
    /// Bytes of the objects that came, as they are stored here.
    bytes: u64,
}

impl Report {
    /// An object came.
    pub(super) fn taken(&mut self, resource: &str, bytes: usize) {
        self.count(resource).taken += 1;
        self.bytes += bytes as u64;
    }

    /// An object did not.
    pub(super) fn refused(&mut self, resource: &str, key: &str, why: &str) {
        self.count(resource).refused += 1;
        if self.refused.len() < MOVING_TOLD {
            self.refused.push((key.to_owned(), why.to_owned()));
        }
    }

    /// A key was no object that is to come.
    pub(super) fn left_out(&mut self, why: &'static str) {
        *self.left_out.entry(why).or_default() += 1;
    }

    /// How many objects came.
    pub(super) fn taken_count(&self) -> u64 {
        self.by_resource.values().map(|count| count.taken).sum()
    }

    /// How many did not.
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
        writeln!(f, "{:width$}  {:>9}  {:>9}", "resource", "came", "refused")?;
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

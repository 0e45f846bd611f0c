//! Complaints of strict decoding, bounded while they are found: a body can have more errors than anyone wants to read,
//! and their paths can have many more bytes than the body.

use crate::limits::{COMPLAINTS_BYTES_MAX, COMPLAINTS_MAX};

/// Complaints in the order in which they were found, each once.
#[derive(Debug, Default)]
pub struct Complaints {
    found: Vec<String>,
    bytes: usize,
}

impl Complaints {
    /// Returns whether no more complaints are kept, so that the caller need not write any.
    pub fn is_full(&self) -> bool {
        self.found.len() >= COMPLAINTS_MAX || self.bytes >= COMPLAINTS_BYTES_MAX
    }

    /// Adds a complaint, unless it is known already or there are enough.
    pub fn add(&mut self, complaint: String) {
        if self.is_full() {
            return;
        }
        self.bytes += complaint.len();
        if !self.found.contains(&complaint) {
            self.found.push(complaint);
        }
    }

    /// Returns all complaints.
    pub fn into_vec(self) -> Vec<String> {
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_are_bounded_in_number_and_in_bytes() {
        let mut complaints = Complaints::default();
        for number in 0..300 {
            complaints.add(format!("{}", number / 2));
        }
        let found = complaints.into_vec();
        assert_eq!((found.len(), found[99].as_str()), (COMPLAINTS_MAX, "99"));
        let (mut complaints, long) = (Complaints::default(), "x".repeat(300_000));
        (0..10).for_each(|_| complaints.add(long.clone()));
        assert!(complaints.is_full(), "what is repeated takes time as well");
        assert_eq!(complaints.into_vec().len(), 1);
    }
}

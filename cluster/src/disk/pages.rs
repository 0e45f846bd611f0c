//! A byte buffer that is aligned to a page.

use super::PAGE;

/// Bytes aligned to a page in memory, as direct I/O requires.
#[derive(Default)]
pub(crate) struct Pages {
    /// Padding up to the page, then the bytes.
    storage: Vec<u8>,
    start: usize,
}

impl Pages {
    /// Copies bytes into an aligned buffer.
    pub(crate) fn of(bytes: &[u8]) -> Pages {
        let mut pages = Pages::default();
        pages.extend_from_slice(bytes);
        pages
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.storage[self.start..]
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.storage[self.start..]
    }

    pub(crate) fn len(&self) -> usize {
        self.storage.len() - self.start
    }

    /// Moves the bytes to a buffer with this capacity.
    fn move_to(&mut self, capacity: usize) {
        let mut storage: Vec<u8> = Vec::with_capacity(capacity.next_power_of_two() + PAGE);
        let start = storage.as_ptr().align_offset(PAGE).min(PAGE);
        storage.resize(start, 0);
        storage.extend_from_slice(self.as_slice());
        *self = Pages { storage, start };
    }

    fn reserve(&mut self, length: usize) {
        if self.storage.capacity() < self.start + length || self.storage.capacity() == 0 {
            self.move_to(length);
        }
    }

    pub(crate) fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.reserve(self.len() + bytes.len());
        self.storage.extend_from_slice(bytes);
    }

    /// Cuts bytes off or appends zeros, up to this length.
    pub(crate) fn resize(&mut self, length: usize) {
        self.reserve(length);
        self.storage.resize(self.start + length, 0);
    }

    /// Removes the first `length` bytes, and frees memory beyond roughly `capacity_max`.
    pub(crate) fn advance(&mut self, length: usize, capacity_max: usize) {
        self.storage.drain(self.start..self.start + length);
        if self.storage.capacity() > capacity_max + 2 * PAGE {
            self.move_to(self.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_of_any_size_begins_at_a_page() {
        let mut pages = Pages::of(b"begin");
        for round in 0..40_usize {
            let before = pages.as_slice().to_vec();
            let more = vec![round as u8; round * 977];
            pages.extend_from_slice(&more);
            assert_eq!(pages.as_slice().as_ptr().align_offset(PAGE), 0);
            assert_eq!(pages.as_slice(), [before, more].concat());
            let end = pages.len();
            pages.resize(end.next_multiple_of(PAGE));
            assert!(pages.as_slice()[end..].iter().all(|byte| *byte == 0));
            assert_eq!(pages.as_slice().as_ptr().align_offset(PAGE), 0);
            pages.resize(end);
            let kept = pages.as_slice()[end / PAGE * PAGE..].to_vec();
            pages.advance(end / PAGE * PAGE, 8 * PAGE);
            assert_eq!(pages.as_slice(), kept);
            assert!(pages.storage.capacity() <= 10 * PAGE);
        }
    }
}

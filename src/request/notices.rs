//! The parts of an answer besides its result.

use crate::limits;

/// Warnings and audit annotations, in order. The methods take at most [`NOTICES_BYTES`](limits::NOTICES_BYTES) from
/// webhooks and policies; clients get fewer warnings than that.
#[derive(Debug, Clone, Default)]
pub struct Notices {
    /// Texts of `Warning` headers.
    pub warnings: Vec<String>,
    /// Audit annotations: keys and values.
    pub annotations: Vec<(String, String)>,
    bytes: usize,
}

impl Notices {
    /// Adds a warning, if there is room.
    pub fn warn(&mut self, text: String) {
        if self.takes(text.len()) {
            self.warnings.push(text);
        }
    }

    /// Adds an audit annotation, if there is room.
    pub fn annotate(&mut self, key: String, value: String) {
        if self.takes(key.len() + value.len()) {
            self.annotations.push((key, value));
        }
    }

    /// Adds all warnings and annotations of another collection, as far as there is room.
    pub fn take_in(&mut self, other: Self) {
        other.warnings.into_iter().for_each(|text| self.warn(text));
        other.annotations.into_iter().for_each(|(key, value)| self.annotate(key, value));
    }

    /// Returns whether there is no more room.
    pub const fn is_full(&self) -> bool {
        self.bytes >= limits::NOTICES_BYTES
    }

    fn takes(&mut self, bytes: usize) -> bool {
        let is_full = self.is_full();
        self.bytes = self.bytes.saturating_add(bytes + size_of::<String>());
        !is_full
    }
}

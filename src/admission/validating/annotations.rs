//! What policies tell the audit log.

use std::time::Duration;

use super::super::Attributes;

/// Bytes that are kept of a value.
const VALUE_BYTES_MAX: usize = 10 << 10;

/// What an expression says the audit log is to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Annotation {
    /// Key and value.
    Told(String, String),
    /// It failed, and failures refuse the write.
    Failed(String, Duration),
}

/// What the bindings of one policy tell the audit log.
#[derive(Debug, Default)]
pub struct Collected(Vec<(String, Vec<String>)>);

impl Collected {
    /// Adds a value, once.
    pub fn add(&mut self, key: String, mut value: String) {
        if value.len() > VALUE_BYTES_MAX {
            let end = (0..=VALUE_BYTES_MAX).rev().find(|end| value.is_char_boundary(*end));
            value.truncate(end.unwrap_or(0));
        }
        match self.0.iter_mut().find(|(own, _)| *own == key) {
            Some((_, values)) if values.contains(&value) => {}
            Some((_, values)) => values.push(value),
            None => self.0.push((key, vec![value])),
        }
    }

    /// Tells the audit log all of it.
    pub fn tell(self, policy: &str, attributes: &Attributes<'_>) {
        for (key, values) in self.0 {
            attributes.annotate(format!("{policy}/{key}"), values.join(", "));
        }
    }
}

//! What a watch sends next: events, as bytes.

use bytes::Bytes;

/// Events to be sent at once. One that others send too is not copied unless there are more.
#[derive(Debug, Default)]
pub struct Events {
    shared: Bytes,
    text: Vec<u8>,
}

impl Events {
    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.shared.len() + self.text.len()
    }

    /// Appends an event that others send too.
    pub fn share(&mut self, event: &Bytes) {
        if self.is_empty() {
            self.shared = event.clone();
        } else {
            self.text().extend_from_slice(event);
        }
    }

    /// Where to append others.
    pub fn text(&mut self) -> &mut Vec<u8> {
        if !self.shared.is_empty() {
            self.text.extend_from_slice(&std::mem::take(&mut self.shared));
        }
        &mut self.text
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

impl From<Events> for Bytes {
    fn from(events: Events) -> Self {
        if events.text.is_empty() { events.shared } else { events.text.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_keep_their_order() {
        let shared = Bytes::from_static(b"shared ");
        let mut events = Events::default();
        assert!(events.is_empty());
        events.share(&shared);
        assert_eq!(events.len(), 7);
        assert_eq!(Bytes::from(std::mem::take(&mut events)).as_ptr(), shared.as_ptr());
        events.share(&shared);
        events.share(&shared);
        events.text().extend_from_slice(b"own ");
        events.share(&shared);
        assert_eq!(events.len(), 25);
        assert_eq!(Bytes::from(events), "shared shared own shared ");
    }
}

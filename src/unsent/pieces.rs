//! The next bytes of an answer: its own text, and parts that it shares with the store or other answers.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::limits;

/// Bytes to send next, as a sequence of pieces. A large shared part is a piece of its own and not copied. A small
/// shared part is not copied either if it is alone.
#[derive(Debug, Default)]
pub struct Pieces {
    /// The first finished piece. Empty when there is none.
    first: Bytes,
    rest: VecDeque<Bytes>,
    /// The last piece, which still grows.
    text: Vec<u8>,
    /// The number of bytes in finished pieces that are not shared.
    own: usize,
}

impl Pieces {
    /// Returns no pieces, with capacity for text.
    pub fn with_room(bytes: usize) -> Self {
        Self { text: Vec::with_capacity(bytes), ..Self::default() }
    }

    /// Returns whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.first.is_empty() && self.text.is_empty()
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.first.len() + self.rest.iter().map(Bytes::len).sum::<usize>() + self.text.len()
    }

    /// Returns the number of bytes that are not shared.
    pub fn own(&self) -> usize {
        self.own + self.text.len()
    }

    /// Returns whether there is at most one piece.
    pub fn is_one(&self) -> bool {
        self.first.is_empty() || (self.rest.is_empty() && self.text.is_empty())
    }

    /// Appends a shared part.
    pub fn share(&mut self, part: &Bytes) {
        if self.is_empty() {
            self.first = part.clone();
        } else if part.len() < limits::SHARED_BYTES_MIN {
            self.text().extend_from_slice(part);
        } else {
            self.finish(part.clone());
        }
    }

    /// Appends a slice of a shared part. `part` must lie within `of`.
    pub fn share_part(&mut self, of: &Bytes, part: &[u8]) {
        if part.len() < limits::SHARED_BYTES_MIN {
            self.text().extend_from_slice(part);
        } else {
            self.finish(of.slice_ref(part));
        }
    }

    /// Returns the buffer to which to append text.
    pub fn text(&mut self) -> &mut Vec<u8> {
        if self.text.is_empty() && self.rest.is_empty() && self.first.len() < limits::SHARED_BYTES_MIN {
            self.text.extend_from_slice(&std::mem::take(&mut self.first));
        }
        &mut self.text
    }

    /// Ends the text and appends a part as a piece of its own.
    fn finish(&mut self, part: Bytes) {
        if !self.text.is_empty() {
            self.own += self.text.len();
            let text = std::mem::take(&mut self.text).into();
            self.push(text);
        }
        self.push(part);
    }

    fn push(&mut self, piece: Bytes) {
        if self.first.is_empty() {
            self.first = piece;
        } else {
            self.rest.push_back(piece);
        }
    }

    /// Removes and returns the next piece. `None` if there are no bytes.
    pub fn take(&mut self) -> Option<Bytes> {
        if self.first.is_empty() {
            self.own = 0;
            return (!self.text.is_empty()).then(|| std::mem::take(&mut self.text).into());
        }
        let next = self.rest.pop_front().unwrap_or_default();
        Some(std::mem::replace(&mut self.first, next))
    }

    /// Returns all bytes as one piece.
    pub fn whole(mut self) -> Bytes {
        if self.is_one() {
            return self.take().unwrap_or_default();
        }
        let mut whole = Vec::with_capacity(self.len());
        while let Some(piece) = self.take() {
            whole.extend_from_slice(&piece);
        }
        whole.into()
    }

    /// Removes all pieces.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn large(byte: u8) -> Bytes {
        vec![byte; limits::SHARED_BYTES_MIN].into()
    }

    #[test]
    fn small_parts_keep_their_order_and_a_single_one_is_not_copied() {
        let shared = Bytes::from_static(b"shared ");
        let mut pieces = Pieces::default();
        assert!(pieces.is_empty() && pieces.take().is_none());
        pieces.share(&shared);
        assert_eq!((pieces.len(), pieces.own()), (7, 0));
        assert_eq!(pieces.take().unwrap().as_ptr(), shared.as_ptr());
        pieces.share(&shared);
        pieces.share(&shared);
        pieces.text().extend_from_slice(b"own ");
        pieces.share_part(&shared, &shared[..3]);
        assert_eq!((pieces.len(), pieces.own()), (21, 21));
        assert_eq!(pieces.take().unwrap(), "shared shared own sha");
        assert!(pieces.is_empty() && pieces.own() == 0);
    }

    #[test]
    fn large_parts_are_pieces_of_their_own() {
        let parts = [large(1), large(2), large(3)];
        let mut pieces = Pieces::with_room(10);
        pieces.text().extend_from_slice(b"head");
        pieces.share_part(&parts[0], &parts[0]);
        pieces.share(&parts[1]);
        pieces.text().extend_from_slice(b"middle");
        pieces.share(&parts[2]);
        pieces.text().extend_from_slice(b"tail");
        assert_eq!(pieces.own(), 14);
        assert_eq!(pieces.len(), 14 + 3 * limits::SHARED_BYTES_MIN);
        let expected = [b"head", &parts[0][..], &parts[1], b"middle", &parts[2], b"tail"];
        for part in expected {
            assert_eq!(pieces.take().unwrap(), part);
        }
        assert!(pieces.take().is_none() && pieces.is_empty());
        pieces.share(&parts[0]);
        pieces.text().extend_from_slice(b"tail");
        assert!(!pieces.is_one());
        assert_eq!(pieces.whole(), [&parts[0][..], b"tail"].concat());
    }
}

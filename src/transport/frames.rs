//! Finds the boundaries of HTTP/2 frames in bytes that are written or read (RFC 9113, section 4.1).
//!
//! Only the nine bytes before each payload are examined. The bytes may arrive in parts of any size.

/// Bytes before the payload of a frame.
const HEADER: usize = 9;

/// Bytes that a client sends before its first frame (section 3.4).
const PREFACE: usize = 24;

/// Frames with a block of headers, which further frames may have to continue (section 6).
const HEADERS: u8 = 1;
const PUSH_PROMISE: u8 = 5;
const CONTINUATION: u8 = 9;

/// The flag of the last frame of a block of headers.
const END_HEADERS: u8 = 4;

/// A frame that asks the other side to open no more streams: on the connection (stream 0), with the highest possible
/// last stream (2^31-1), without an error (section 6.8).
pub const GO_AWAY: [u8; HEADER + 8] = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0];

/// Follows the frames that one side of a connection sends.
#[derive(Debug)]
pub struct Frames {
    /// The known bytes of the next frame's header.
    header: [u8; HEADER],
    known: usize,
    /// The missing bytes of the present frame's payload.
    rest: usize,
    /// Whether only a certain kind of frame may follow.
    is_bound: bool,
}

impl Frames {
    /// Follows a server's frames, from its first byte.
    pub fn of_server() -> Self {
        // The first frame must be SETTINGS.
        Self { header: [0; HEADER], known: 0, rest: 0, is_bound: true }
    }

    /// Follows a client's frames, from its first byte.
    pub fn of_client() -> Self {
        Self { rest: PREFACE, ..Self::of_server() }
    }

    /// Returns whether another frame may be inserted here.
    pub fn is_between(&self) -> bool {
        self.rest == 0 && self.known == 0 && !self.is_bound
    }

    /// Advances by bytes that were sent.
    pub fn follow(&mut self, mut bytes: &[u8]) {
        loop {
            let passed = self.rest.min(bytes.len());
            self.rest -= passed;
            bytes = &bytes[passed..];
            if bytes.is_empty() {
                return;
            }
            let (known, rest) = bytes.split_at((HEADER - self.known).min(bytes.len()));
            self.header[self.known..self.known + known.len()].copy_from_slice(known);
            (self.known, bytes) = (self.known + known.len(), rest);
            if self.known == HEADER {
                self.begin();
            }
        }
    }

    /// Begins the frame whose header is complete.
    fn begin(&mut self) {
        let [high, middle, low, kind, flags, ..] = self.header;
        self.known = 0;
        self.rest = u32::from_be_bytes([0, high, middle, low]) as usize;
        self.is_bound = matches!(kind, HEADERS | PUSH_PROMISE | CONTINUATION) && flags & END_HEADERS == 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, payload: usize) -> Vec<u8> {
        let [_, high, middle, low] = (payload as u32).to_be_bytes();
        // The payload looks like headers of frames.
        [vec![high, middle, low, kind, flags, 0, 0, 0, 1], vec![CONTINUATION; payload]].concat()
    }

    /// Returns frames, and the offsets at which another frame may be inserted.
    fn sent(before: usize) -> (Vec<u8>, Vec<usize>) {
        let frames = [
            (frame(4, 0, 18), true),
            (frame(0, 0, 0), true),
            (frame(HEADERS, END_HEADERS, 40), true),
            (frame(HEADERS, 1, 40), false),
            (frame(CONTINUATION, 0, 0), false),
            (frame(CONTINUATION, END_HEADERS, 3), true),
            (frame(0, 1, 300), true),
            (frame(PUSH_PROMISE, 0, 7), false),
            (frame(CONTINUATION, END_HEADERS, 1), true),
            (GO_AWAY.to_vec(), true),
        ];
        let (mut bytes, mut places) = (vec![b'P'; before], Vec::new());
        for (frame, is_free) in frames {
            bytes.extend(frame);
            places.extend(is_free.then_some(bytes.len()));
        }
        (bytes, places)
    }

    #[test]
    fn frames_are_followed_in_parts_of_any_size() {
        for (begin, before) in [(Frames::of_server as fn() -> Frames, 0), (Frames::of_client, PREFACE)] {
            let (bytes, places) = sent(before);
            for step in (1..30).chain([bytes.len()]) {
                let (mut frames, mut at) = (begin(), 0);
                for part in bytes.chunks(step) {
                    assert_eq!(frames.is_between(), places.contains(&at), "behind {at} bytes, {step} at a time");
                    frames.follow(part);
                    at += part.len();
                }
                assert!(frames.is_between());
            }
            for middle in 0..=bytes.len() {
                let mut frames = begin();
                frames.follow(&bytes[..middle]);
                assert_eq!(frames.is_between(), places.contains(&middle), "behind {middle} bytes at once");
                frames.follow(&[]);
                frames.follow(&bytes[middle..]);
                assert!(frames.is_between(), "cut at {middle}");
            }
        }
    }

    #[test]
    fn the_largest_frame_is_passed_in_parts() {
        let bytes = frame(0, 0, (1 << 24) - 1);
        let mut frames = Frames::of_server();
        for part in bytes.chunks(65_536) {
            assert!(!frames.is_between());
            frames.follow(part);
        }
        assert!(frames.is_between());
    }

    #[test]
    fn no_frame_is_inserted_before_the_first_one() {
        assert!(!Frames::of_server().is_between());
        let mut frames = Frames::of_client();
        frames.follow(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        assert!(!frames.is_between());
        frames.follow(&frame(4, 0, 0));
        assert!(frames.is_between());
    }
}

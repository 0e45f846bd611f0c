//! Forwards chunked bodies (RFC 9112, section 7.1) in a canonical form: no chunk extensions and no trailers.

use crate::limits;

/// The state of reading a chunked body.
#[derive(Debug, Default)]
pub(super) struct Chunked {
    stage: ChunkStage,
    /// The current line: the size of a chunk, or a trailer.
    line: Vec<u8>,
    /// The number of bytes in trailers.
    trailers: usize,
}

#[derive(Debug, Default)]
enum ChunkStage {
    /// Reads the line with the size of the next chunk.
    #[default]
    Size,
    /// Reads a chunk; this many bytes of it are missing.
    Data(u64),
    /// Reads the line end after a chunk.
    End,
    Trailer,
    /// The body is complete.
    Done,
    /// The body is malformed.
    Broken,
}

/// A line that no reader accepts as the size of a chunk.
const BROKEN: &[u8] = b"?\r\n";

impl Chunked {
    /// Returns whether the body is complete.
    pub fn is_done(&self) -> bool {
        matches!(self.stage, ChunkStage::Done)
    }

    /// Returns whether the body is malformed.
    pub fn is_broken(&self) -> bool {
        matches!(self.stage, ChunkStage::Broken)
    }

    /// Forwards bytes of the body to `out`. Returns the bytes after its end, which belong to the next request.
    pub fn pass<'b>(&mut self, mut bytes: &'b [u8], out: &mut Vec<u8>) -> &'b [u8] {
        while !bytes.is_empty() && !self.is_done() && !self.is_broken() {
            if let ChunkStage::Data(left) = &mut self.stage {
                let (data, rest) = bytes.split_at(bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX)));
                out.extend_from_slice(data);
                *left -= data.len() as u64;
                bytes = rest;
                if *left == 0 {
                    self.stage = ChunkStage::End;
                }
                continue;
            }
            let end = memchr::memchr(b'\n', bytes);
            let (line, rest) = bytes.split_at(end.map_or(bytes.len(), |end| end + 1));
            self.line.extend_from_slice(line);
            bytes = rest;
            if self.line.len() > limits::CHUNK_SIZE_LINE_BYTES || self.trailers > limits::HEAD_BYTES {
                self.line.clear();
                self.fail(out);
            } else if end.is_some() {
                let line = std::mem::take(&mut self.line);
                self.read(line.trim_ascii(), line.len(), out);
            }
        }
        bytes
    }

    fn read(&mut self, line: &[u8], length: usize, out: &mut Vec<u8>) {
        match self.stage {
            ChunkStage::Size => match size(line) {
                Some(0) => self.stage = ChunkStage::Trailer,
                Some(size) => {
                    out.extend_from_slice(format!("{size:x}\r\n").as_bytes());
                    self.stage = ChunkStage::Data(size);
                }
                None => self.fail(out),
            },
            ChunkStage::End if line.is_empty() => {
                out.extend_from_slice(b"\r\n");
                self.stage = ChunkStage::Size;
            }
            ChunkStage::Trailer if line.is_empty() => {
                out.extend_from_slice(b"0\r\n\r\n");
                self.stage = ChunkStage::Done;
            }
            ChunkStage::Trailer => self.trailers += length,
            _ => self.fail(out),
        }
    }

    fn fail(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(BROKEN);
        self.stage = ChunkStage::Broken;
    }
}

/// Parses the size on a line, ignoring extensions.
fn size(line: &[u8]) -> Option<u64> {
    let digits = line.split(|byte| *byte == b';').next()?.trim_ascii();
    let text = std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u64::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Forwards a text in steps of `step` bytes. Returns the result, the remaining bytes, whether the body is
    /// complete, and whether it is malformed.
    fn passed(text: &str, step: usize) -> (String, String, bool, bool) {
        let (mut body, mut out, mut left) = (Chunked::default(), Vec::new(), Vec::new());
        for part in text.as_bytes().chunks(step) {
            left.extend_from_slice(body.pass(part, &mut out));
        }
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (text(out), text(left), body.is_done(), body.is_broken())
    }

    #[test]
    fn bodies_are_forwarded_in_parts_of_any_size() {
        let body = "2;x=\"y\"\r\n{}\r\nA\nmore chunks\n0\r\nTrailer: x\r\n\r\nGET";
        let body = body.replace("more chunks", "0123456789");
        for step in 1..body.len() {
            let (out, left, done, broken) = passed(&body, step);
            assert_eq!((&*out, &*left), ("2\r\n{}\r\na\r\n0123456789\r\n0\r\n\r\n", "GET"), "{step} at a time");
            assert!(done && !broken);
        }
    }

    #[test]
    fn invalid_chunks_are_left_to_the_next_reader() {
        let long = format!("1;{}\r\n", "x".repeat(limits::CHUNK_SIZE_LINE_BYTES));
        for body in ["zz\r\n", "\r\n", "-1\r\n", "1\r\nab\r\n", "10000000000000000\r\n", &long] {
            let (out, _, done, broken) = passed(body, 7);
            assert!(out.ends_with("?\r\n") && broken && !done, "{body}: {out}");
        }
        let trailers = format!("0\r\n{}", "T: x\r\n".repeat(limits::HEAD_BYTES / 6 + 2));
        assert!(passed(&trailers, 1_000).3);
    }
}

//! Finds the ends of strings and values without reading their content.

use wide::u8x16;

/// A byte in each place of a word.
const ONES: u64 = 0x0101_0101_0101_0101;
/// The highest bit of each byte.
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Returns a word with the highest bit set in the bytes that are zero. Bytes above the lowest of these may be marked
/// wrongly.
const fn zeros(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGH
}

/// Returns which bytes of a word end the plain part of a string, marked as by [`zeros`].
const fn ends(word: u64) -> u64 {
    let control = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
    zeros(word ^ (ONES * b'"' as u64)) | zeros(word ^ (ONES * b'\\' as u64)) | control
}

/// Returns the position of the first quote, backslash or control character from `at` on; the length of the text if
/// there is none.
pub(crate) fn plain_end(bytes: &[u8], at: usize) -> usize {
    let mut at = at;
    // Most strings end in the first word or are long.
    if let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let found = ends(u64::from_le_bytes(*chunk));
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk::<LANES>) {
        let lanes = u8x16::from(*chunk);
        let control = lanes.min(u8x16::splat(0x1f)).simd_eq(lanes);
        let found = lanes.simd_eq(u8x16::splat(b'"')) | lanes.simd_eq(u8x16::splat(b'\\')) | control;
        let found = found.to_bitmask();
        if found != 0 {
            return at + found.trailing_zeros() as usize;
        }
        at += LANES;
    }
    while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let found = ends(u64::from_le_bytes(*chunk));
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let rest = bytes.get(at..).unwrap_or_default();
    rest.iter().position(|&byte| byte == b'"' || byte == b'\\' || byte < 0x20).map_or(bytes.len(), |more| at + more)
}

/// Returns the position after the string that starts with the quote at `at`, and whether the string has escapes. `None`
/// when it does not end. Control characters in it are not reported.
pub(crate) fn string_end(bytes: &[u8], at: usize) -> Option<(usize, bool)> {
    let (mut at, mut escapes) = (at + 1, false);
    loop {
        at = plain_end(bytes, at);
        match bytes.get(at)? {
            b'"' => return Some((at + 1, escapes)),
            b'\\' => {
                escapes = true;
                at += 2;
            }
            _ => at += 1,
        }
    }
}

/// Returns the position after the value that starts at `at`, which must be JSON: only strings and brackets are
/// examined. `None` when the value does not end.
pub(crate) fn value_end(bytes: &[u8], at: usize) -> Option<usize> {
    let spaces = |byte: &&u8| matches!(byte, b' ' | b'\n' | b'\r' | b'\t');
    let at = at + bytes.get(at..)?.iter().take_while(spaces).count();
    match *bytes.get(at)? {
        b'"' => Some(string_end(bytes, at)?.0),
        b'{' | b'[' if matches!(bytes.get(at + 1), Some(b'}' | b']')) => Some(at + 2),
        b'{' | b'[' => container_end(bytes, at),
        b'}' | b']' | b',' | b':' => None,
        _ => {
            let ends = |byte: &u8| !(byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.'));
            let length = bytes[at..].iter().position(ends).unwrap_or(bytes.len() - at);
            Some(at + length.max(1))
        }
    }
}

/// The number of bytes that are examined together.
const BLOCK: usize = 64;
/// The number of bytes that one instruction compares.
const LANES: usize = 16;

/// The positions of the significant bytes of a block, one bit each.
#[derive(Default)]
struct Marks {
    quotes: u64,
    backslashes: u64,
    opening: u64,
    closing: u64,
}

impl Marks {
    fn of(block: &[u8; BLOCK]) -> Self {
        let mut marks = Self::default();
        for (part, lanes) in block.as_chunks::<LANES>().0.iter().enumerate() {
            let lanes = u8x16::from(*lanes);
            // Braces and brackets differ from each other only in this bit.
            let folded = lanes | u8x16::splat(b'{' ^ b'[');
            let place = |found: u8x16| u64::from(found.to_bitmask()) << (part * LANES);
            marks.quotes |= place(lanes.simd_eq(u8x16::splat(b'"')));
            marks.backslashes |= place(lanes.simd_eq(u8x16::splat(b'\\')));
            marks.opening |= place(folded.simd_eq(u8x16::splat(b'{')));
            marks.closing |= place(folded.simd_eq(u8x16::splat(b'}')));
        }
        marks
    }
}

/// Scans a text block by block. The method, which does not examine single bytes, is described in "Parsing Gigabytes of
/// JSON per Second" (Langdale and Lemire, 2019), section 3.1.
#[derive(Default)]
struct Passing {
    /// Whether the first byte of the next block is escaped.
    escaped: u64,
    /// All bits are set while the next block begins inside a string.
    inside: u64,
}

impl Passing {
    /// Returns the opening and closing brackets of a block that are outside of strings.
    fn brackets(&mut self, block: &[u8; BLOCK]) -> (u64, u64) {
        let marks = Marks::of(block);
        let mut strings = marks.quotes & !self.escapes(marks.backslashes);
        // Every bit becomes the parity of the number of quotes up to its position.
        for shift in [1, 2, 4, 8, 16, 32] {
            strings ^= strings << shift;
        }
        strings ^= self.inside;
        self.inside = 0_u64.wrapping_sub(strings >> 63);
        (marks.opening & !strings, marks.closing & !strings)
    }

    /// Returns the bytes that are escaped by a backslash before them.
    fn escapes(&mut self, backslashes: u64) -> u64 {
        const EVEN: u64 = 0x5555_5555_5555_5555;
        let backslashes = backslashes & !self.escaped;
        let behind = backslashes << 1 | self.escaped;
        // Runs of backslashes that begin at odd positions; the addition carries to the end of each run.
        let odd = backslashes & !EVEN & !behind;
        let (ends, over) = odd.overflowing_add(backslashes);
        self.escaped = over.into();
        (EVEN ^ ends << 1) & behind
    }
}

/// Returns the position after the object or list that starts at `at`. Returns `None` when it does not end.
fn container_end(bytes: &[u8], at: usize) -> Option<usize> {
    let (mut passing, mut depth) = (Passing::default(), 0);
    for start in (at..bytes.len()).step_by(BLOCK) {
        let rest = &bytes[start..];
        let mut last = [0; BLOCK];
        let block = rest.first_chunk().unwrap_or_else(|| {
            last[..rest.len()].copy_from_slice(rest);
            &last
        });
        let (opening, closing) = passing.brackets(block);
        // A bracket that is closed in the same block does not end an outer container.
        let empty = opening & closing >> 1;
        let (opening, closing) = (opening ^ empty, closing ^ empty << 1);
        let closed = closing.count_ones();
        if closed < depth {
            depth += opening.count_ones();
            depth -= closed;
            continue;
        }
        let mut brackets = opening | closing;
        while brackets != 0 {
            let lowest = brackets & brackets.wrapping_neg();
            brackets ^= lowest;
            if opening & lowest != 0 {
                depth += 1;
                continue;
            }
            depth = depth.checked_sub(1)?;
            if depth == 0 {
                return Some(start + lowest.trailing_zeros() as usize + 1);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_found_at_every_position() {
        let plain = "abcdefg \u{7f}\u{e9}\u{20ac}!#[]~ 0123456789".as_bytes();
        for before in 0..plain.len() {
            for end in [b'"', b'\\', 0, b'\n', 0x1f] {
                let mut text = plain[..before].to_vec();
                assert_eq!(plain_end(&text, 0), before);
                text.push(end);
                text.extend_from_slice(b"\"\\ more of it \x01");
                for from in 0..=before {
                    assert_eq!(plain_end(&text, from), before, "{end} at {before} from {from}");
                }
            }
        }
        assert_eq!(plain_end(b"", 0), 0);
        for byte in 0..=u8::MAX {
            let is_end = byte == b'"' || byte == b'\\' || byte < 0x20;
            assert_eq!(
                plain_end(&[b'a', byte, b'b', b'c', b'd', b'e', b'f', b'g', b'h'], 0),
                if is_end { 1 } else { 9 }
            );
        }
    }

    #[test]
    fn values_end_where_they_do() {
        let values = [
            "{}",
            "[]",
            "12",
            "-1.5e+3",
            "true",
            "null",
            r#""a\"]}\\""#,
            r#"{"a":[{"b":"}"},[1,2 , 3]],"c":{}}"#,
            "[[]]",
        ];
        for value in values {
            for behind in ["", ",", "}", "]", " ,1", "\n"] {
                let text = format!("[{value}{behind}");
                assert_eq!(value_end(text.as_bytes(), 1), Some(1 + value.len()), "{text}");
            }
        }
        for cut in ["{", "[1", r#"{"a"#, r#""a\"#, "", "]"] {
            assert_eq!(value_end(cut.as_bytes(), 0), None, "{cut}");
        }
    }

    /// Does the same one byte at a time.
    fn slow_end(bytes: &[u8]) -> Option<usize> {
        let (mut depth, mut string, mut escaped) = (0_usize, false, false);
        for (at, byte) in bytes.iter().enumerate() {
            match byte {
                _ if std::mem::take(&mut escaped) => {}
                b'\\' => escaped = true,
                b'"' => string = !string,
                b'{' | b'[' if !string => depth += 1,
                b'}' | b']' if !string => {
                    depth -= 1;
                    if depth == 0 {
                        return Some(at + 1);
                    }
                }
                _ => {}
            }
        }
        None
    }

    #[test]
    fn containers_end_where_they_do_in_any_block() {
        let parts = [
            "{",
            "}",
            "[",
            "]",
            r#""a""#,
            r#""\"""#,
            r#""\\""#,
            r#""{""#,
            r#""]\\\"""#,
            ",",
            ":",
            "1",
            "\u{e9}",
            "abcdefg",
            r#""a string of more than a block, that has { and ] and \" in it, and goes on, for a while""#,
        ];
        let mut random = 1_u64;
        for _ in 0..20_000 {
            let mut text = String::from("[");
            for _ in 0..30 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                text.push_str(parts[(random >> 40) as usize % parts.len()]);
            }
            if matches!(text.as_bytes()[1], b'}' | b']') {
                continue;
            }
            assert_eq!(value_end(text.as_bytes(), 0), slow_end(text.as_bytes()), "{text}");
            let behind = format!("{}{text}", " ".repeat((random >> 33) as usize % 70));
            let end = slow_end(text.as_bytes()).map(|end| end + behind.len() - text.len());
            assert_eq!(value_end(behind.as_bytes(), behind.len() - text.len()), end, "{text}");
        }
    }
}

//! Finding where strings and values end, without reading what they hold.

/// A byte in each place of a word.
const ONES: u64 = 0x0101_0101_0101_0101;
/// The highest bit of each byte.
const HIGH: u64 = 0x8080_8080_8080_8080;

/// A word with the highest bit set in the bytes that are zero; bytes above the lowest such may be marked wrongly.
const fn zeros(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGH
}

/// The bytes of a word that end the plain part of a string, as [`zeros`] marks them.
const fn ends(word: u64) -> u64 {
    let control = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
    zeros(word ^ (ONES * b'"' as u64)) | zeros(word ^ (ONES * b'\\' as u64)) | control
}

/// The position of the first quote, backslash or control character from `at` on; the length of the text if there is
/// none.
pub(crate) fn plain_end(bytes: &[u8], at: usize) -> usize {
    let mut at = at;
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

/// The position behind the string that starts with the quote at `at`, and whether it holds escapes; `None` where it does
/// not end. Control characters in it are not found wrong.
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

/// The position behind the value that starts at `at`, which must be JSON: only strings and brackets are looked at.
/// `None` where it does not end.
pub(crate) fn value_end(bytes: &[u8], at: usize) -> Option<usize> {
    let (mut at, mut open) = (at, 0_usize);
    loop {
        match *bytes.get(at)? {
            b'"' => at = string_end(bytes, at)?.0,
            b'{' | b'[' => {
                open += 1;
                at += 1;
                continue;
            }
            b'}' | b']' => {
                open = open.checked_sub(1)?;
                at += 1;
            }
            b',' | b':' | b' ' | b'\n' | b'\r' | b'\t' => {
                at += 1;
                continue;
            }
            _ => {
                let ends = |byte: &u8| !(byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.'));
                let length = bytes[at..].iter().position(ends).unwrap_or(bytes.len() - at);
                at += length.max(1);
            }
        }
        if open == 0 {
            return Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_found_wherever_it_stands() {
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
}

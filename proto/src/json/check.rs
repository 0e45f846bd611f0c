//! Checks that a text is JSON which the parser accepts, without making a tree.

use super::parse::{Error, parse};
use super::scan;
use crate::limits::JSON_READ_DEPTH_MAX;

/// Bits of a word.
const WORD: usize = 64;
const _: () = assert!(JSON_READ_DEPTH_MAX.is_multiple_of(WORD));
/// Numbers with fewer characters and without an exponent are never too large.
const LONG: usize = 300;

/// Checks that a text is JSON in UTF-8, and that [`parse`] keeps all of it.
///
/// # Errors
/// The reason why it is not, in the parser's words.
pub fn check(text: &[u8]) -> Result<(), Error> {
    if std::str::from_utf8(text).is_err() {
        return Err(Error::Encoding);
    }
    let mut checker = Checker { bytes: text, at: 0, depth: 0, objects: [0; JSON_READ_DEPTH_MAX / WORD] };
    match checker.text() {
        Some(()) => Ok(()),
        // The parser reports the error best.
        None => parse(text).map(drop),
    }
}

struct Checker<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The number of open containers.
    depth: usize,
    /// Whether each of them is an object, one bit each.
    objects: [u64; JSON_READ_DEPTH_MAX / WORD],
}

/// The kind of value that was passed.
enum Passed {
    Whole,
    /// The beginning of a container that is not empty.
    Opened,
}

impl Checker<'_> {
    fn text(&mut self) -> Option<()> {
        loop {
            if let Passed::Opened = self.value()? {
                continue;
            }
            if self.close()? {
                return (self.peek().is_none() && self.at == self.bytes.len()).then_some(());
            }
        }
    }

    /// Passes a scalar, an empty container, or the beginning of another one.
    fn value(&mut self) -> Option<Passed> {
        match self.peek()? {
            b'"' => self.string()?,
            b'{' => return self.open(true, b'}'),
            b'[' => return self.open(false, b']'),
            b't' => self.word(b"true")?,
            b'f' => self.word(b"false")?,
            b'n' => self.word(b"null")?,
            b'-' | b'0'..=b'9' => self.number()?,
            _ => return None,
        }
        Some(Passed::Whole)
    }

    fn open(&mut self, object: bool, close: u8) -> Option<Passed> {
        self.at += 1;
        if self.peek()? == close {
            self.at += 1;
            return Some(Passed::Whole);
        }
        // There is a bit for every container that may be open.
        let (word, bit) = (self.objects.get_mut(self.depth / WORD)?, 1 << (self.depth % WORD));
        *word = if object { *word | bit } else { *word & !bit };
        self.depth += 1;
        if object {
            self.key()?;
        }
        Some(Passed::Opened)
    }

    /// Passes the sign after a value, and the ends of containers. Returns whether everything has ended.
    fn close(&mut self) -> Option<bool> {
        while self.depth > 0 {
            let innermost = self.depth - 1;
            let object = self.objects[innermost / WORD] >> (innermost % WORD) & 1 == 1;
            match self.peek()? {
                b',' => {
                    self.at += 1;
                    if object {
                        self.key()?;
                    }
                    return Some(false);
                }
                b'}' if object => {}
                b']' if !object => {}
                _ => return None,
            }
            self.at += 1;
            self.depth = innermost;
        }
        Some(true)
    }

    fn key(&mut self) -> Option<()> {
        (self.peek()? == b'"').then_some(())?;
        self.string()?;
        (self.peek()? == b':').then(|| self.at += 1)
    }

    fn string(&mut self) -> Option<()> {
        self.at += 1;
        loop {
            self.at = scan::plain_end(self.bytes, self.at);
            match *self.bytes.get(self.at)? {
                b'"' => {
                    self.at += 1;
                    return Some(());
                }
                b'\\' => self.escape()?,
                _ => return None,
            }
        }
    }

    fn escape(&mut self) -> Option<()> {
        let length = match self.bytes.get(self.at + 1)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 2,
            b'u' => {
                let digits = self.bytes.get(self.at + 2..self.at + 6)?;
                digits.iter().all(u8::is_ascii_hexdigit).then_some(6)?
            }
            _ => return None,
        };
        self.at += length;
        Some(())
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        self.bytes[self.at..].starts_with(word).then(|| self.at += word.len())
    }

    fn number(&mut self) -> Option<()> {
        let start = self.at;
        self.at += usize::from(self.bytes[self.at] == b'-');
        match self.bytes.get(self.at)? {
            b'0' => self.at += 1,
            _ => self.digits()?,
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        let mut may_overflow = self.at - start > LONG;
        if let Some(b'e' | b'E') = self.bytes.get(self.at) {
            may_overflow = true;
            self.at += 1;
            self.at += usize::from(matches!(self.bytes.get(self.at), Some(b'+' | b'-')));
            self.digits()?;
        }
        if may_overflow {
            let text = std::str::from_utf8(&self.bytes[start..self.at]).ok()?;
            return text.parse::<f64>().ok().filter(|number| number.is_finite()).map(drop);
        }
        Some(())
    }

    /// Passes one digit or more.
    fn digits(&mut self) -> Option<()> {
        let count = self.bytes[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        (count > 0).then_some(())
    }

    /// Returns the next byte that is not a space.
    fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.bytes.get(self.at) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXTS: &[&str] = &[
        r#"{"a":[1,-2.5e-3,0.10,{"b":"x\"\\\/\b\f\n\r\té\ud800y","":{}}],"c":[],"d":null,"e":true,"f":false}"#,
        " [ { } , [ ] , \"\" , 1E+2 ,\t0 ] \n",
        r#"{"v":1e400,"w":-1.8e308}"#,
        r#"{"v":infe+0}"#,
        r#"{"v":01,"w":1.,"x":.5,"y":+1,"z":1e}"#,
        "\"a string of more than sixteen bytes, to pass whole lanes \u{e9}\u{20ac}\"",
    ];

    fn agrees(text: &[u8]) {
        let kept = std::str::from_utf8(text).is_ok();
        assert_eq!(check(text).is_ok(), kept && parse(text).is_ok(), "{}", String::from_utf8_lossy(text));
    }

    #[test]
    fn the_check_accepts_what_the_parser_accepts() {
        for text in TEXTS {
            agrees(text.as_bytes());
            for end in 0..text.len() {
                agrees(&text.as_bytes()[..end]);
                for byte in *b"\"\\{}[],:0-.eE+x \x01\xff" {
                    let mut changed = text.as_bytes().to_vec();
                    changed[end] = byte;
                    agrees(&changed);
                    changed.insert(end, b'1');
                    agrees(&changed);
                }
            }
        }
        assert!(check(TEXTS[0].as_bytes()).is_ok() && check(TEXTS[1].as_bytes()).is_ok());
    }

    #[test]
    fn numbers_are_limited_as_in_the_parser() {
        for digits in [1, 18, 19, 20, 299, 300, 308, 309, 310, 400] {
            agrees("9".repeat(digits).as_bytes());
            agrees(format!("-0.{}", "9".repeat(digits)).as_bytes());
            agrees(format!("1{}.5", "0".repeat(digits)).as_bytes());
        }
        assert_eq!(check(b"1e400"), Err(Error::Number("1e400".into())));
        assert!(check(b"1e308").is_ok() && check(b"1e-400").is_ok());
    }

    #[test]
    fn depth_is_limited_as_in_the_parser() {
        for levels in [1, 63, 64, 65, JSON_READ_DEPTH_MAX - 1, JSON_READ_DEPTH_MAX, JSON_READ_DEPTH_MAX + 1, 2000] {
            for (open, inside, close) in
                [("[", "", "]"), ("[", "1", "]"), ("{\"a\":", "1", "}"), ("{\"a\":[", "2", "]}")]
            {
                agrees((open.repeat(levels) + inside + &close.repeat(levels)).as_bytes());
            }
        }
    }
}

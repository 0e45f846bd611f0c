//! Writes a tree as text in the layout of go-yaml v2: block style, sorted keys, lines folded at 80 columns.

use std::cmp::Ordering;

use super::scalar;
use crate::json;
use crate::limits::YAML_SIMPLE_KEY_BYTES_MAX;
use crate::value::{Map, Value};

/// The column after which plain and quoted texts continue on a new line.
const WIDTH: usize = 80;

/// Appends a value as a YAML document.
pub fn write(value: &Value, out: &mut Vec<u8>) {
    let mut writer = YamlWriter { out, column: 0 };
    writer.node(value, 0, Context::Document);
    writer.line();
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Context {
    Document,
    Item,
    Member,
}

struct YamlWriter<'o> {
    out: &'o mut Vec<u8>,
    column: usize,
}

impl YamlWriter<'_> {
    fn text(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
        self.column += text.chars().count();
    }

    fn line(&mut self) {
        if self.out.last() != Some(&b'\n') {
            self.out.push(b'\n');
        }
        self.column = 0;
    }

    fn indent(&mut self, depth: usize) {
        self.line();
        self.out.resize(self.out.len() + depth, b' ');
        self.column = depth;
    }

    fn node(&mut self, value: &Value, depth: usize, context: Context) {
        match value {
            Value::Object(map) if !map.is_empty() => self.map(map, depth, context),
            Value::Array(items) if !items.is_empty() => self.list(items, depth, context),
            other => {
                if context != Context::Document {
                    self.text(" ");
                }
                match other {
                    Value::Str(text) => self.string(text, depth, false),
                    Value::Object(_) => self.text("{}"),
                    Value::Float(number) => self.text(&scalar::float_text(number.get())),
                    scalar => self.text(&String::from_utf8_lossy(&json::to_vec(scalar))),
                }
            }
        }
    }

    fn map(&mut self, map: &Map, depth: usize, context: Context) {
        let mut members: Vec<(&str, &Value)> = map.iter().collect();
        members.sort_by(|a, b| natural(a.0, b.0));
        for (n, (key, value)) in members.into_iter().enumerate() {
            if n == 0 && context == Context::Item {
                self.text(" ");
            } else if n > 0 || context != Context::Document {
                self.indent(depth);
            }
            if !is_simple_key(key) {
                self.text("? ");
                self.string(key, depth + 2, false);
                self.indent(depth);
                self.text(":");
                self.node(value, depth + 2, Context::Item);
                continue;
            }
            self.string(key, depth, true);
            self.text(":");
            let deeper = if matches!(value, Value::Array(_)) { depth } else { depth + 2 };
            self.node(value, deeper, Context::Member);
        }
    }

    fn list(&mut self, items: &[Value], depth: usize, context: Context) {
        for (n, item) in items.iter().enumerate() {
            if n == 0 && context == Context::Item {
                self.text(" ");
            } else if n > 0 || context != Context::Document {
                self.indent(depth);
            }
            self.text("-");
            self.node(item, depth + 2, Context::Item);
        }
    }

    fn string(&mut self, text: &str, depth: usize, key: bool) {
        match style(text, key) {
            Style::Plain => self.folded(text, depth, key, ""),
            Style::Single => self.folded(&text.replace('\'', "''"), depth, key, "'"),
            Style::Double => self.double(text, depth, key),
            Style::Literal => self.literal(text, depth),
        }
    }

    /// Writes a text. Breaks the line at single blanks beyond the width.
    fn folded(&mut self, text: &str, depth: usize, key: bool, quote: &str) {
        self.text(quote);
        let chars: Vec<char> = text.chars().collect();
        let mut buffer = [0; 4];
        for (n, &c) in chars.iter().enumerate() {
            let lone = n > 0 && n + 1 < chars.len() && chars[n - 1] != ' ' && chars[n + 1] != ' ';
            if c == ' ' && lone && !key && self.column > WIDTH {
                self.indent(depth.max(2));
            } else {
                self.text(c.encode_utf8(&mut buffer));
            }
        }
        self.text(quote);
    }

    fn double(&mut self, text: &str, depth: usize, key: bool) {
        self.text("\"");
        let chars: Vec<char> = text.chars().collect();
        let mut buffer = [0; 4];
        let mut after_blank = false;
        for (n, &c) in chars.iter().enumerate() {
            let within = n > 0 && n + 1 < chars.len();
            if c == ' ' && !key && !after_blank && within && self.column > WIDTH {
                self.indent(depth.max(2));
                if chars[n + 1] == ' ' {
                    self.text("\\");
                }
                after_blank = true;
                continue;
            }
            after_blank = c == ' ';
            match escape(c) {
                Some(escaped) => self.text(&escaped),
                None => self.text(c.encode_utf8(&mut buffer)),
            }
        }
        self.text("\"");
    }

    fn literal(&mut self, text: &str, depth: usize) {
        self.text("|");
        if text.starts_with([' ', '\n']) {
            self.text("2");
        }
        let body = text.trim_end_matches('\n');
        match text.len() - body.len() {
            0 => self.text("-"),
            1 if !body.is_empty() => {}
            _ => self.text("+"),
        }
        let lines = text.strip_suffix('\n').unwrap_or(text);
        for line in lines.split('\n') {
            self.out.push(b'\n');
            self.column = 0;
            if !line.is_empty() {
                self.out.resize(self.out.len() + depth.max(2), b' ');
                self.text(line);
            }
        }
        if lines.ends_with('\n') {
            self.out.push(b'\n');
        }
    }
}

/// Returns whether a key may precede a colon on the same line: readers look ahead only 1,024 characters for the colon,
/// and writers stop long before that.
fn is_simple_key(key: &str) -> bool {
    key.len() <= YAML_SIMPLE_KEY_BYTES_MAX && !key.contains(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'])
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Plain,
    Single,
    Double,
    Literal,
}

/// Returns the style of a text: plain if it is read as the same text again.
fn style(text: &str, key: bool) -> Style {
    let printable = text.chars().all(|c| c == '\n' || escape(c).is_none() || matches!(c, '"' | '\\'));
    if !printable {
        return Style::Double;
    }
    if scalar::is_ambiguous(text) {
        return Style::Double;
    }
    if text.contains('\n') {
        let literal = !key && !text.contains(" \n") && !text.ends_with(' ');
        return if literal { Style::Literal } else { Style::Double };
    }
    if is_plain(text) { Style::Plain } else { Style::Single }
}

/// Returns whether a text may be written without quotes in block style.
fn is_plain(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (Some(&first), Some(&last)) = (bytes.first(), bytes.last()) else { return false };
    if first == b' ' || last == b' ' || text.starts_with("---") || text.starts_with("...") {
        return false;
    }
    if b"#,[]{}&*!|>'\"%@`".contains(&first) {
        return false;
    }
    let blank_follows = |at: usize| bytes.get(at + 1).is_none_or(|b| b" \t\n".contains(b));
    if b"?:-".contains(&first) && blank_follows(0) {
        return false;
    }
    let mut before = b' ';
    for (at, &byte) in bytes.iter().enumerate() {
        match byte {
            b':' if blank_follows(at) => return false,
            b'#' if at > 0 && before == b' ' => return false,
            _ => {}
        }
        before = byte;
    }
    true
}

/// Returns the escape of a character that cannot be written as it is in a double-quoted text.
fn escape(c: char) -> Option<String> {
    Some(match c {
        '"' => "\\\"".into(),
        '\\' => "\\\\".into(),
        '\n' => "\\n".into(),
        '\r' => "\\r".into(),
        '\t' => "\\t".into(),
        '\0' => "\\0".into(),
        '\u{7}' => "\\a".into(),
        '\u{8}' => "\\b".into(),
        '\u{b}' => "\\v".into(),
        '\u{c}' => "\\f".into(),
        '\u{1b}' => "\\e".into(),
        '\u{85}' => "\\N".into(),
        '\u{a0}' => "\\_".into(),
        '\u{2028}' => "\\L".into(),
        '\u{2029}' => "\\P".into(),
        '\u{feff}' | '\u{fffe}' | '\u{ffff}' => format!("\\u{:04X}", c as u32),
        c if (c as u32) < 0x20 || (0x7f..0xa0).contains(&(c as u32)) => format!("\\x{:02X}", c as u32),
        c if (c as u32) > 0xffff => format!("\\U{:08X}", c as u32),
        _ => return None,
    })
}

/// Returns the order of two keys: digits are compared as numbers, and letters come after everything else.
fn natural(a: &str, b: &str) -> Ordering {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    for n in 0..a.len().min(b.len()) {
        if a[n] == b[n] {
            continue;
        }
        let (letter_a, letter_b) = (a[n].is_alphabetic(), b[n].is_alphabetic());
        if letter_a && letter_b {
            return a[n].cmp(&b[n]);
        }
        if letter_a || letter_b {
            return if letter_b { Ordering::Less } else { Ordering::Greater };
        }
        // A zero within a number counts as one of its digits.
        let within = a[..n].iter().rev().take_while(|c| c.is_ascii_digit()).any(|&c| c != '0');
        let start = i64::from((a[n] == '0' || b[n] == '0') && within);
        let number = |text: &[char]| {
            let digits = text[n..].iter().take_while(|c| c.is_ascii_digit());
            digits.fold((start, 0), |(value, length), c| {
                (value.wrapping_mul(10).wrapping_add(i64::from(*c as u32 - '0' as u32)), length + 1)
            })
        };
        return number(&a).cmp(&number(&b)).then(a[n].cmp(&b[n]));
    }
    a.len().cmp(&b.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    fn yaml(value: &Value) -> String {
        let mut out = Vec::new();
        write(value, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn objects_are_laid_out_in_blocks() {
        let object = value!({
            "kind": "X", "list": [{"b": 1, "a": [1, 2]}, []], "empty": {}, "none": null, "t": "2020-01-01T00:00:00Z",
            "n": "5", "yes": "yes", "s": "a: b", "multi": "one\ntwo\n", "trail": "one\ntwo ", "esc": "a\tb", "a10": 1, "a2": 2, "": ""
        });
        assert_eq!(
            yaml(&object),
            "\"\": \"\"\na2: 2\na10: 1\nempty: {}\nesc: \"a\\tb\"\nkind: X\nlist:\n- a:\n  - 1\n  - 2\n  b: 1\n- []\nmulti: |\n  one\n  two\n\"n\": \"5\"\nnone: null\ns: 'a: b'\nt: \"2020-01-01T00:00:00Z\"\ntrail: \"one\\ntwo \"\n\"yes\": \"yes\"\n"
        );
    }

    #[test]
    fn long_keys_and_keys_of_several_lines_get_a_question_mark() {
        let long = "k".repeat(129);
        let key = long.as_str();
        let object = value!({key: {"a": [1]}, "l\nm\n": [{"x": 1}, 2], "z": {key: "v"}});
        let text = format!("? {long}\n: a:\n  - 1\n? |\n  l\n  m\n: - x: 1\n  - 2\nz:\n  ? {long}\n  : v\n");
        assert_eq!(yaml(&object), text);
        for length in [128, 129, 1_024, 1_025, 5_000] {
            let object =
                value!({"a": {("k y".repeat(length / 3)): {"b": [{("x".repeat(length)): [[]]}]}}, "c\u{85}d": 1});
            assert_eq!(super::super::parse(yaml(&object).as_bytes()).map(|parsed| parsed.value), Ok(object));
        }
    }

    #[test]
    fn written_yaml_reads_back() {
        for text in [
            "",
            " x",
            "x ",
            "- a",
            "a # b",
            "a #b",
            "#",
            "'",
            "\"",
            "x\n",
            "\nx",
            "x\n\n",
            "a \nb",
            "é ✓",
            "~",
            "1e3",
            "\u{fffe}a\u{ffff}",
            "\u{feff}",
            "0x1",
            "{",
            "@",
            "a:",
            "::",
            "?x",
            "-",
            "--- a",
            "true",
            "\u{7}",
            "😀",
            "<<",
        ] {
            let object = value!({"k": text});
            let back = super::super::parse(yaml(&object).as_bytes()).unwrap().value;
            assert_eq!(back.str_at(&["k"]), text, "{}", yaml(&object));
        }
    }
}

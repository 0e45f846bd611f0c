//! The writer: compact, or indented by two spaces, with Go's escapes and number forms.

use crate::value::Value;

/// Appends a value as compact JSON.
pub fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Object(map) => {
            if let Some(text) = map.text() {
                return out.extend_from_slice(text);
            }
            out.push(b'{');
            for (n, (key, value)) in map.iter().enumerate() {
                if n > 0 {
                    out.push(b',');
                }
                write_str(key, out);
                out.push(b':');
                write(value, out);
            }
            out.push(b'}');
        }
        Value::Array(items) => {
            out.push(b'[');
            for (n, item) in items.iter().enumerate() {
                if n > 0 {
                    out.push(b',');
                }
                write(item, out);
            }
            out.push(b']');
        }
        scalar => write_scalar(scalar, out),
    }
}

/// Appends a value as JSON indented by two spaces.
pub fn write_pretty(value: &Value, out: &mut Vec<u8>) {
    write_indented(value, 0, out);
}

fn write_indented(value: &Value, depth: usize, out: &mut Vec<u8>) {
    let line = |depth: usize, out: &mut Vec<u8>| {
        out.push(b'\n');
        out.resize(out.len() + 2 * depth, b' ');
    };
    match value {
        Value::Object(map) if !map.is_empty() => {
            out.push(b'{');
            for (n, (key, value)) in map.iter().enumerate() {
                if n > 0 {
                    out.push(b',');
                }
                line(depth + 1, out);
                write_str(key, out);
                out.extend_from_slice(b": ");
                write_indented(value, depth + 1, out);
            }
            line(depth, out);
            out.push(b'}');
        }
        Value::Array(items) if !items.is_empty() => {
            out.push(b'[');
            for (n, item) in items.iter().enumerate() {
                if n > 0 {
                    out.push(b',');
                }
                line(depth + 1, out);
                write_indented(item, depth + 1, out);
            }
            line(depth, out);
            out.push(b']');
        }
        other => write(other, out),
    }
}

fn write_scalar(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Int(number) => write_int(*number, out),
        Value::Float(number) => write_float(*number, out),
        Value::Str(text) => write_str(text, out),
        _ => out.extend_from_slice(b"null"),
    }
}

fn write_int(number: i64, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = number.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends a float as ES6 and Go do: plain digits within 1e-6 and 1e21, an exponent outside.
fn write_float(number: f64, out: &mut Vec<u8>) {
    let size = number.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{number:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
        out.extend_from_slice(mantissa.as_bytes());
        out.push(b'e');
        out.push(sign as u8);
        out.extend_from_slice(digits.as_bytes());
    } else {
        out.extend_from_slice(format!("{number}").as_bytes());
    }
}

/// For each byte: whether it needs a look before it may stand in a string.
static ESCAPED: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = true;
        byte += 1;
    }
    table[b'"' as usize] = true;
    table[b'\\' as usize] = true;
    table[b'<' as usize] = true;
    table[b'>' as usize] = true;
    table[b'&' as usize] = true;
    table[0xe2] = true; // may begin U+2028 and U+2029
    table
};

/// Appends a string with quotes; `<`, `>`, `&`, U+2028 and U+2029 are escaped, as Go's encoder does.
pub fn write_str(text: &str, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let bytes = text.as_bytes();
    out.reserve(bytes.len() + 2);
    out.push(b'"');
    let mut from = 0;
    while let Some(step) = bytes[from..].iter().position(|&b| ESCAPED[b as usize]) {
        let at = from + step;
        out.extend_from_slice(&bytes[from..at]);
        from = at + 1;
        match bytes[at] {
            b'"' => out.extend_from_slice(br#"\""#),
            b'\\' => out.extend_from_slice(br"\\"),
            b'\n' => out.extend_from_slice(br"\n"),
            b'\r' => out.extend_from_slice(br"\r"),
            b'\t' => out.extend_from_slice(br"\t"),
            8 => out.extend_from_slice(br"\b"),
            12 => out.extend_from_slice(br"\f"),
            0xe2 => match bytes.get(at + 1..at + 3) {
                Some([0x80, last @ (0xa8 | 0xa9)]) => {
                    out.extend_from_slice(if *last == 0xa8 { br"\u2028" } else { br"\u2029" });
                    from = at + 3;
                }
                _ => out.push(0xe2),
            },
            b => {
                out.extend_from_slice(br"\u00");
                out.push(HEX[(b >> 4) as usize]);
                out.push(HEX[(b & 15) as usize]);
            }
        }
    }
    out.extend_from_slice(&bytes[from..]);
    out.push(b'"');
}

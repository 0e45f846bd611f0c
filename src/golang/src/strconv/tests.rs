//! The results of Go itself for numbers, and for quoting.

use super::*;

#[test]
fn numbers_are_read_and_written_as_in_go() {
    let mut complaints = Vec::new();
    for line in include_str!("expected.txt").lines() {
        let (text, expected) = line.split_once('\t').unwrap();
        let shown = |number: f64| {
            // Rust's standard library writes infinity as `inf`. Only `format_float` writes it as Go does.
            let all = [format_float(number), format_exponent(number, 3), format!("{number:.2}")];
            if number.is_finite() { all.join(" ") } else { [&*all[0]; 3].join(" ") }
        };
        let float = parse_float(text).map(shown).unwrap_or_else(|error| format!("!{error}"));
        let int = parse_int(text).map(|number| number.to_string()).unwrap_or_else(|error| format!("!{error}"));
        let uint = parse_uint(text).map(|number| number.to_string()).unwrap_or_else(|error| format!("!{error}"));
        let actual = format!("{float}\t{int}\t{uint}");
        if actual != expected {
            complaints.push(format!("{text}\n  Go:   {expected}\n  here: {actual}"));
        }
    }
    assert!(complaints.is_empty(), "{} differ:\n{}", complaints.len(), complaints.join("\n"));
}

#[test]
fn texts_are_quoted_as_in_go() {
    for (text, quoted) in [
        ("a\"b\\", r#""a\"b\\""#),
        ("\n\r\t\u{7}\u{8}\u{b}\u{c}\0\u{1f}\u{7f}", r#""\n\r\t\a\b\v\f\x00\x1f\x7f""#),
        ("é日\u{301}", "\"é日\u{301}\""),
        ("\u{a0}\u{2028}\u{feff}\u{85}\u{e000}\u{3000}", r#""\u00a0\u2028\ufeff\u0085\ue000\u3000""#),
        ("\u{e0001}\u{10ffff}😀", "\"\\U000e0001\\U0010ffff😀\""),
    ] {
        assert_eq!(quote(text), quoted);
    }
}

use super::*;
use crate::limits::{JSON_DEPTH_MAX, JSON_NESTING_MAX, JSON_READ_DEPTH_MAX};
use crate::value::{Hole, Value};

fn roundtrip(text: &str) -> String {
    String::from_utf8(to_vec(&parse(text.as_bytes()).unwrap())).unwrap()
}

#[test]
fn texts_come_back_as_go_writes_them() {
    for (text, want) in [
        (r#" {"b":1,"a":[1,-2,{"x":null}],"c":{}, "d":[]} "#, r#"{"b":1,"a":[1,-2,{"x":null}],"c":{},"d":[]}"#),
        (r#""\u00e9\u4e2d\n\t\u0000 <>&\u2028 \"\\\/""#, "\"é中\\n\\t\\u0000 \\u003c\\u003e\\u0026\\u2028 \\\"\\\\/\""),
        (r#""\ud83d\ude00 \ud83d""#, "\"😀 \u{fffd}\""),
        ("[1.5,1e3,1e-7,1e21,12345678901234567890,-0.25,1E+2]", "[1.5,1000,1e-7,1e+21,12345678901234567000,-0.25,100]"),
        ("[true,false,null,-9223372036854775808]", "[true,false,null,-9223372036854775808]"),
    ] {
        assert_eq!(roundtrip(text), want);
    }
}

#[test]
fn errors_are_worded_as_go_words_them() {
    for (text, want) in [
        ("", "unexpected end of JSON input"),
        ("{\"a\"", "unexpected end of JSON input"),
        ("{\"a\":1,}", "invalid character '}' looking for beginning of object key string"),
        ("{'a':1}", "invalid character '\\'' looking for beginning of object key string"),
        ("{\"a\" 1}", "invalid character '1' after object key"),
        ("{\"a\":1 \"b\"}", "invalid character '\"' after object key:value pair"),
        ("[1 2]", "invalid character '2' after array element"),
        ("{} x", "invalid character 'x' after top-level value"),
        ("[\"a", "unexpected end of JSON input"),
        ("tru", "invalid character ' ' in literal true (expecting 'e')"),
        ("[-", "invalid character ' ' in numeric literal"),
        ("1.", "invalid character ' ' after decimal point in numeric literal"),
        ("1e+", "invalid character ' ' in exponent of numeric literal"),
        (r#""\"#, "invalid character ' ' in string escape code"),
        (r#""\u12"#, r"invalid character ' ' in \u hexadecimal character escape"),
        (r#"{\"#, r"invalid character '\\' looking for beginning of object key string"),
        ("txue", "invalid character 'x' in literal true (expecting 'r')"),
        ("nulx", "invalid character 'x' in literal null (expecting 'l')"),
        ("01", "invalid character '1' after top-level value"),
        ("1.x", "invalid character 'x' after decimal point in numeric literal"),
        ("\"\n\"", "invalid character '\\n' in string literal"),
        ("\"\\x\"", "invalid character 'x' in string escape code"),
        ("\"\\u12g4\"", "invalid character 'g' in \\u hexadecimal character escape"),
        ("abc", "invalid character 'a' looking for beginning of value"),
    ] {
        assert_eq!(parse(text.as_bytes()).unwrap_err().to_string(), want, "{text}");
    }
}

#[test]
fn repeated_keys_are_reported_with_their_path() {
    let parsed = parse_tracking(br#"{"spec":{"c":[{"n":1},{"n":1,"n":2}]},"spec":{}}"#).unwrap();
    assert_eq!(parsed.duplicates, ["spec.c[1].n", "spec"]);
    // The second object is decoded over the first, which it leaves as it is.
    assert_eq!(parsed.value.at(&["spec", "c"]).as_array().map(<[Value]>::len), Some(2));
}

#[test]
fn nesting_is_bounded() {
    let text = "[".repeat(100_000);
    assert_eq!(parse(text.as_bytes()).unwrap_err(), Error::TooDeep);
    let fine = "[".repeat(JSON_DEPTH_MAX) + &"]".repeat(JSON_DEPTH_MAX);
    assert!(parse(fine.as_bytes()).is_ok());
}

#[test]
fn values_that_nest_too_deep_are_checked_and_not_kept() {
    let deep = |levels: usize, inside: &str| "[".repeat(levels) + inside + &"]".repeat(levels);
    let parsed = parse_tracking(format!(r#"{{"a":1,"b":{}}}"#, deep(JSON_NESTING_MAX - 1, "1")).as_bytes()).unwrap();
    assert!(parsed.deep && parsed.value.hole() == Some(&Hole::Deep));
    assert_eq!(parsed.value.int_at(&["a"]), Some(1));
    assert_eq!(parsed.value.at(&["a"]).hole(), None);
    assert_eq!(parse_tracking(deep(JSON_NESTING_MAX + 1, "1").as_bytes()).unwrap_err(), Error::TooDeep);
    assert!(matches!(parse_tracking(deep(5_000, "x").as_bytes()).unwrap_err(), Error::InvalidCharacter { .. }));
    assert!(parse_tracking(deep(JSON_DEPTH_MAX + 1, "1").as_bytes()).unwrap().deep);
    assert!(!parse_tracking(deep(JSON_DEPTH_MAX, "1").as_bytes()).unwrap().deep);
    assert!(parse(deep(JSON_READ_DEPTH_MAX, "1").as_bytes()).is_ok());
    assert_eq!(parse(deep(JSON_READ_DEPTH_MAX + 1, "1").as_bytes()).unwrap_err(), Error::TooDeep);
}

#[test]
fn pretty_output_is_indented_by_two() {
    let mut out = Vec::new();
    write_pretty(&parse(br#"{"a":[1,{"b":{}}],"c":[]}"#).unwrap(), &mut out);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "{\n  \"a\": [\n    1,\n    {\n      \"b\": {}\n    }\n  ],\n  \"c\": []\n}"
    );
}

#[test]
fn numbers_are_kept_as_they_stand() {
    let text = b"[2e0,2.5,1.50,7,18446744073709551616,1e-400]";
    let mut parsed = parse_tracking(text).unwrap();
    assert!(parsed.has_literals && parsed.value.hole().is_none());
    assert_eq!(parsed.value.list_at(&[])[0], Value::Hole(Hole::Literal("2e0".into())));
    assert_eq!(to_vec(&parsed.value), text);
    parsed.value.resolve_literals();
    assert_eq!(to_vec(&parsed.value), b"[2,2.5,1.5,7,18446744073709552000,0]");
    assert_eq!(parsed.value, parse(text).unwrap());
    assert!(!parse_tracking(b"[2.5,7]").unwrap().has_literals);
}

#[test]
fn numbers_that_no_tree_keeps_are_told_and_never_written() {
    let long = "9".repeat(400);
    let text = format!(r#"{{"a":[1e400,-1.8e308],"b":{long},"c":1e308,"d":1e-400}}"#);
    let parsed = parse_tracking(text.as_bytes()).unwrap();
    assert_eq!(parsed.overflow.as_deref(), Some("1e400"));
    assert_eq!(parsed.value.hole(), Some(&Hole::Number("1e400".into())));
    assert_eq!(parsed.value.at(&["b"]), &Value::Hole(Hole::Number(long.into())));
    assert_eq!(to_vec(&parsed.value), br#"{"a":[null,null],"b":null,"c":1e308,"d":1e-400}"#);
    assert_eq!(to_vec_as_stated(&parsed.value), text.as_bytes());
    let why = "json: cannot unmarshal number 1e400 into Go value of type float64";
    assert_eq!(parsed.whole().unwrap_err().to_string(), why);
    assert_eq!(parse(text.as_bytes()).unwrap_err().to_string(), why);
}

//! The meaning of YAML: documents that were sent to the reference, with its results; and bounds.

use super::parse::{Error, parse};
use crate::limits::JSON_DEPTH_MAX;

/// The beginning of every document, which `H` stands for.
const HEAD: &str = "apiVersion: example.com/v1\nkind: Yam\nmetadata: {name: a}\n";

fn document(short: &str) -> String {
    short.replacen("H\n", HEAD, 1)
}

fn json(text: &str) -> String {
    let mut value = parse(text.as_bytes()).unwrap().value;
    value.resolve_literals();
    String::from_utf8(crate::json::to_vec(&value)).unwrap()
}

/// The members of a document behind its head, as JSON.
const READ: &[(&str, &str)] = &[
    ("%YAML 1.1\n---\nH\nx: 1\n", r#"{"x":1}"#),
    ("%TAG ! tag:e,2000:\n---\nH\nx: !a 1\n", r#"{"x":"1"}"#),
    ("\u{feff}H\n", r#"{}"#),
    ("---\nH\nx: 1\n", r#"{"x":1}"#),
    ("--- \n# c\nH\n", r#"{}"#),
    ("\n\n# c\nH\n", r#"{}"#),
    ("H\nx:\n  a: 'one\n  two'\n", r#"{"x":{"a":"one two"}}"#),
    ("H\nx: \"one\ntwo\"\n", r#"{"x":"one two"}"#),
    ("H\nx:\n  a: \"one\n two\"\n", r#"{"x":{"a":"one two"}}"#),
    ("H\nx:\n  a: [1,\n  2\n]\n", r#"{"x":{"a":[1,2]}}"#),
    ("H\nx:\n  a: {b: 1,\nc: 2\n}\n", r#"{"x":{"a":{"b":1,"c":2}}}"#),
    ("H\nx:\n    a: [\n 1,\n2]\n", r#"{"x":{"a":[1,2]}}"#),
    ("H\n.inf: 1\n.nan: 2\n-.inf: 3\n", r#"{"-.inf":3,".inf":1,".nan":2}"#),
    ("H\nx: !!binary aGk=\n", r#"{"x":"hi"}"#),
    ("H\nx: !!binary |\n  aGVs\n  bG8=\n", r#"{"x":"hello"}"#),
    ("H\nx: !!binary /w==\n", r#"{"x":"�"}"#),
    ("H\n0x10: a\n", r#"{"16":"a"}"#),
    ("H\nyes: a\n", r#"{"true":"a"}"#),
    ("H\n1.5: a\n1e7: b\n1e-5: c\n", r#"{"1.5":"a","1e+07":"b","1e-05":"c"}"#),
    ("H\n2001-01-01: a\n", r#"{"2001-01-01":"a"}"#),
    ("H\nx: |\n  foo", r#"{"x":"foo"}"#),
    ("H\nx: >\n  foo\n  bar", r#"{"x":"foo bar"}"#),
    ("H\nx: |+\n  foo\n\n", r#"{"x":"foo\n\n"}"#),
    ("H\nx: |-\n  foo", r#"{"x":"foo"}"#),
    ("H\nx: 'a\u{2028}b'\n", r#"{"x":"a\u2028b"}"#),
    ("H\nx: |\n  a\u{2028}  b\n", r#"{"x":"a\u2028b\n"}"#),
    ("H\nx: a\u{85}b: c\n", r#"{"b":"c","x":"a"}"#),
    ("H\nx: 010\ny: 0o10\nz: 0b11\nw: -0x10\nv: 1_000\nu: 0x_1\n", r#"{"true":8,"u":1,"v":1000,"w":-16,"x":8,"z":3}"#),
    (
        "H\nx: 1e3\ny: 1.0\nz: 1e-7\nw: 1e21\nv: 123456789.125\nu: .5\nt: 1.\ns: +1\nr: +.5\nq: 1e400\n",
        r#"{"q":"1e400","r":0.5,"s":1,"t":1,"true":1,"u":0.5,"v":123456789.125,"w":1e+21,"x":1000,"z":1e-07}"#,
    ),
    ("H\nx: 190:20:30\ny: 17:00:00\nz: 1:2\n", r#"{"true":"17:00:00","x":"190:20:30","z":"1:2"}"#),
    (
        "H\nx: 2001-01-01\ny: 2001-12-14T21:59:43Z\nz: 2001-12-14 21:59:43.10 -5\n",
        r#"{"true":"2001-12-14T21:59:43Z","x":"2001-01-01","z":"2001-12-14 21:59:43.10 -5"}"#,
    ),
    (
        "H\nx: !!str 1\ny: !!int '1'\nz: !!float 1\nw: !!bool yes\nv: !!null ''\nu: !foo bar\n",
        r#"{"true":1,"u":"bar","v":null,"w":true,"x":"1","z":1}"#,
    ),
    (
        "H\nx: 18446744073709551615\ny: 9223372036854775808\nz: 123456789012345678901234567890\n\
         w: -9223372036854775809\n",
        r#"{"true":9223372036854776000,"w":-9223372036854776000,"x":18446744073709552000,"z":1.2345678901234568e+29}"#,
    ),
    ("H\nx: !!set {a, b}\n", r#"{"x":{"a":null,"b":null}}"#),
    ("H\n'': a\n", r#"{"":"a"}"#),
    ("H\n&a b: *a\n", r#"{"b":"b"}"#),
    ("H\nx: ~\ny:\nz: Null\n", r#"{"true":null,"x":null,"z":null}"#),
    ("H\nx: 1\t\ny:\t2\n", r#"{"true":2,"x":1}"#),
    ("H\nx: a#b\ny: a #b\n", r#"{"true":"a","x":"a#b"}"#),
    ("H\nx: a:b\ny: http://a\n", r#"{"true":"http://a","x":"a:b"}"#),
    ("H\nx: {a:1, b: 2}\ny: [a:1]\nz: {\"a\":1}\n", r#"{"true":["a:1"],"x":{"a:1":null,"b":2},"z":{"a":1}}"#),
    ("H\nx: 1\r\ny: |\r\n  a\r\n  b\r\nz: 'q\r\n  r'\r\n", r#"{"true":"a\nb\n","x":1,"z":"q r"}"#),
    ("H\nx: 1\ry: 2\r", r#"{"true":2,"x":1}"#),
    ("H\nx: 1\n---\nfoo: [\n", r#"{"x":1}"#),
    ("H\nx: 1\n...\n", r#"{"x":1}"#),
    ("H\nx: 1\n...\nfoo\n", r#"{"x":1}"#),
    ("H\nx:\n- a\n- b\ny:\n  - - 1\n    - 2\n", r#"{"true":[[1,2]],"x":["a","b"]}"#),
    ("H\nx: a\n  b\n  c\n", r#"{"x":"a b c"}"#),
    ("H\nx: [a, b,]\ny: {a: 1,}\n", r#"{"true":{"a":1},"x":["a","b"]}"#),
    ("H\nx: [a: b, c]\n", r#"{"x":[{"a":"b"},"c"]}"#),
    ("H\nx: '1'\ny: \"true\"\n", r#"{"true":"true","x":"1"}"#),
    ("H\nx: =\n=: y\n", r#"{"=":true,"x":"="}"#),
    ("H\nx: -0\ny: -0.0\nz: 0.0\n", r#"{"true":0,"x":0,"z":0}"#),
    ("H\nx: 1_000.5\ny: _1\nz: 1__0\n", r#"{"true":"_1","x":1000.5,"z":10}"#),
    ("H\nx: 😀\n", r#"{"x":"😀"}"#),
    ("H\nx: \u{feff}a\n", r#"{"x":"﻿a"}"#),
];

const REFUSED: &[(&str, &str)] = &[
    ("%YAML 1.2\n---\nH\n", "yaml: found incompatible YAML document"),
    ("%FOO bar\n---\nH\n", "yaml: found unknown directive name"),
    ("\t\nH\n", "yaml: found character that cannot start any token"),
    ("H\nx: .inf\n", "json: unsupported value: +Inf"),
    ("H\nx: .nan\n", "json: unsupported value: NaN"),
    ("H\nx: !!binary '%%'\n", "yaml: !!binary value contains invalid base64 data"),
    ("H\nnull: a\n", "unsupported map key of type: %!s(<nil>), key: <nil>, value: \"a\""),
    ("H\n~: a\n", "unsupported map key of type: %!s(<nil>), key: <nil>, value: \"a\""),
    ("H\n? \n: a\n", "unsupported map key of type: %!s(<nil>), key: <nil>, value: \"a\""),
    ("H\nx:\n  <<: 5\n", "yaml: map merge requires map or sequence of maps as the value"),
    ("H\nx:\n  <<: [5]\n", "yaml: map merge requires map or sequence of maps as the value"),
    ("H\nx: a\u{2028}b\n", "yaml: line 6: could not find expected ':'"),
    ("H\nx: !!int a\n", "yaml: cannot decode !!str `a` as a !!int"),
    ("H\nx: !!bool a\n", "yaml: cannot decode !!str `a` as a !!bool"),
    ("H\nx: !!float a\n", "yaml: cannot decode !!str `a` as a !!float"),
    ("H\n? [a]\n: b\n", "yaml: invalid map key: []interface {}{\"a\"}"),
    ("H\nx: \"\\u263a\\x41\\n\\/\\e\\_\\N\\L\\P\\0\"\n", "yaml: line 4: found unknown escape character"),
    ("H\nx: \"\\q\"\n", "yaml: line 4: found unknown escape character"),
    ("H\nx: \"\\ud800\"\n", "yaml: line 4: found invalid Unicode character escape code"),
    ("H\nx:\n\ta: 1\n", "yaml: line 5: found character that cannot start any token"),
    ("H\nx: {? a : b}\ny: [a?, ?b]\n", "yaml: line 4: did not find expected ',' or ']'"),
    ("H\nx: %a\n", "yaml: line 4: found character that cannot start any token"),
    ("H\nx: @a\n", "yaml: line 4: found character that cannot start any token"),
    ("H\nx: `a\n", "yaml: line 4: found character that cannot start any token"),
    ("H\nx: [a, , b]\n", "yaml: line 3: did not find expected node content"),
    ("H\nx: *nope\n", "yaml: unknown anchor 'nope' referenced"),
    ("H\nx: &a [*a]\n", "yaml: anchor 'a' value contains itself"),
    ("H\nx: [a\n", "yaml: line 4: did not find expected ',' or ']'"),
    ("H\nx: {a: 1\n", "yaml: line 4: did not find expected ',' or '}'"),
    ("H\nx: 'a\n", "yaml: line 5: found unexpected end of stream"),
    ("H\nx:\n  a: 1\n b: 2\n", "yaml: line 5: did not find expected key"),
    ("H\nx: 1\nfoo\n", "yaml: line 6: could not find expected ':'"),
    ("H\nx:\n- a\nb\n", "yaml: line 7: could not find expected ':'"),
    ("H\nx: -\n", "yaml: line 4: block sequence entries are not allowed in this context"),
    ("H\nx: - a\n", "yaml: line 4: block sequence entries are not allowed in this context"),
    ("H\nx: \u{7}\n", "yaml: control characters are not allowed"),
    ("H\nx: \u{7f}\n", "yaml: control characters are not allowed"),
    ("H\nx: \u{fffe}\n", "yaml: control characters are not allowed"),
];

const REPEATED: &[(&str, &[&str])] = &[
    ("H\n1: a\n2: b\n01: c\n", &["line 6: key 1 already set in map"]),
    ("H\na: &a {k: 1, j: 2}\nx:\n  <<: *a\n  k: 3\n", &["line 7: key \"k\" already set in map"]),
    ("H\na: &a {k: 1, j: 2}\nx:\n  k: 3\n  <<: *a\n", &["line 4: key \"k\" already set in map"]),
    ("H\na: &a {k: 1}\nb: &b {k: 2, l: 3}\nx:\n  <<: [*a, *b]\n", &["line 4: key \"k\" already set in map"]),
    ("H\na: &a {k: 1}\nb: &b {k: 2}\nx:\n  <<: *a\n  <<: *b\n", &["line 5: key \"k\" already set in map"]),
    ("H\nx: 1\nx: 2\n", &["line 5: key \"x\" already set in map"]),
    (
        "H\nx:\n  a: 1\n  a: 2\n  1: 3\n  1: 4\n",
        &["line 6: key \"a\" already set in map", "line 8: key 1 already set in map"],
    ),
    ("H\nx: y\nn: n\nyes: no\non: off\n", &["line 7: key true already set in map"]),
];

#[test]
fn documents_are_read_as_by_the_reference() {
    for (short, want) in READ {
        let read = parse(document(short).as_bytes()).map(|parsed| {
            let mut value = parsed.value;
            for head in ["apiVersion", "kind", "metadata"] {
                value.remove_at(&[head]);
            }
            value.resolve_literals();
            value
        });
        let want = crate::json::parse(want.as_bytes()).unwrap();
        let shown = |value: &crate::value::Value| String::from_utf8_lossy(&crate::json::to_vec(value)).into_owned();
        assert_eq!(read.as_ref().map(shown), Ok(shown(&want)), "{short}");
    }
}

#[test]
fn documents_are_refused_as_by_the_reference() {
    for (short, want) in REFUSED {
        let refused = parse(document(short).as_bytes()).err().map(|error| error.to_string()).unwrap_or_default();
        // For an invalid key the reference shows the value, too.
        assert!(want.starts_with(&refused) && !refused.is_empty(), "{short}: {refused}, not {want}");
    }
}

#[test]
fn repeated_keys_are_reported_as_by_the_reference() {
    for (short, want) in REPEATED {
        assert_eq!(parse(document(short).as_bytes()).unwrap().duplicates, *want, "{short}");
    }
    // The last value of a key counts, even one from a merge.
    assert_eq!(json("a: &a {k: 1, j: 2}\nx: {k: 3, <<: *a}\n"), r#"{"a":{"j":2,"k":1},"x":{"j":2,"k":1}}"#);
    assert_eq!(json("a: &a {k: 1}\nx: {<<: [*a, {k: 2, l: 3}], m: 4}\n"), r#"{"a":{"k":1},"x":{"k":1,"l":3,"m":4}}"#);
}

#[test]
fn texts_are_utf_8_unless_a_mark_names_another_encoding() {
    for (bytes, why) in [
        (&b"x: \xff"[..], "invalid leading UTF-8 octet"),
        (b"x: \xc3\n", "invalid trailing UTF-8 octet"),
        (b"x: \xe2\x82", "incomplete UTF-8 octet sequence"),
        (b"x: \xc0\x80", "invalid length of a UTF-8 sequence"),
        (b"x: \xed\xa0\x80", "invalid Unicode character"),
    ] {
        assert_eq!(parse(bytes).unwrap_err().to_string(), format!("yaml: {why}"));
    }
    for unit in [u16::to_le_bytes, u16::to_be_bytes] {
        let text: Vec<u8> = "\u{feff}a: \u{1f600}".encode_utf16().flat_map(unit).collect();
        assert_eq!(parse(&text).unwrap().value.str_at(&["a"]), "\u{1f600}");
    }
}

#[test]
fn hostile_texts_take_little_time_and_cause_no_panic() {
    let parts = [
        "a",
        ":",
        " ",
        "\n",
        "-",
        "?",
        "[",
        "]",
        "{",
        "}",
        ",",
        "'",
        "\"",
        "|",
        ">",
        "&",
        "*",
        "!",
        "%",
        "#",
        "@",
        "\t",
        "\r",
        "\\",
        "0",
        "+",
        "<<",
        "...",
        "---",
        "\u{85}",
        "\u{2028}",
        "\u{feff}",
        "é",
        "\n  ",
        ": ",
        "- ",
        "%YAML 1.1\n",
        "%TAG ! a\n",
        "!<",
        "!!",
        "\\x4",
        "&a ",
        "*a ",
    ];
    let mut state = 1_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 20) as usize
    };
    for _ in 0..20_000 {
        let text: String = (0..next() % 24).map(|_| parts[next() % parts.len()]).collect();
        let _ = parse(text.as_bytes());
    }
    for many in ["[", "- ", "? ", "a: b\n", "a,", "{", "\n", "a: [", "'a' ", "&a ", "!a ", "| \n", "*a "] {
        let _ = parse(many.repeat(100_000 / many.len()).as_bytes());
        let _ = parse(format!("{}{}", "[".repeat(500), many.repeat(100_000 / many.len())).as_bytes());
    }
}

#[test]
fn documents_become_json() {
    for (text, want) in [
        ("a: 1\nb: [x, 'y', \"z\"]\n", r#"{"a":1,"b":["x","y","z"]}"#),
        ("b: yes\na: ~\nc: 'yes'\nd: 1e3\ne: 0x10\nf: 010\n", r#"{"a":null,"b":true,"c":"yes","d":1000,"e":16,"f":8}"#),
        ("1: x\ntrue: z\ny: q\n", r#"{"1":"x","true":"q"}"#),
        ("a: |\n  one\n  two\nb: >-\n  three\n  four\n", r#"{"a":"one\ntwo\n","b":"three four"}"#),
        ("x: &a {k: v}\nw: *a\nz: {<<: *a, j: w}\n", r#"{"w":{"k":"v"},"x":{"k":"v"},"z":{"j":"w","k":"v"}}"#),
        (
            "{'<<': {a: b}, \"c\": {\"<<\": d}, e: <<}\n",
            r#"{"\u003c\u003c":{"a":"b"},"c":{"\u003c\u003c":"d"},"e":"\u003c\u003c"}"#,
        ),
        ("a: b\n---\na: c\n", r#"{"a":"b"}"#),
        ("a: b\u{85}c: |\u{85}  d\u{85}", r#"{"a":"b","c":"d\n"}"#),
        ("", "null"),
    ] {
        assert_eq!(json(text), want, "{text}");
    }
}

#[test]
fn signs_stand_before_the_whole_number() {
    for text in ["0x-5", "0x+5", "0o-5", "-0b-1", "-0x-8000000000000000", "+0b-1", "0x+ffffffffffffffff"] {
        assert_eq!(json(&format!("a: {text}\n")), format!("{{\"a\":\"{text}\"}}"));
    }
    // go-yaml takes `0b` away before it parses the rest.
    assert_eq!(json("a: 0b-1\nb: -0x8000000000000000\n"), r#"{"a":-1,"b":-9223372036854775808}"#);
    let ones = "1".repeat(64);
    assert_eq!(json(&format!("a: 0b{ones}\n")), r#"{"a":18446744073709552000}"#);
    assert_eq!(json(&format!("a: 0b+{ones}\n")), format!("{{\"a\":\"0b+{ones}\"}}"));
}

#[test]
fn numbers_that_are_too_large_are_text() {
    let nines = "9".repeat(400);
    for number in ["1e400", "-1.8e308", "+1e309", "1e+400", &nines] {
        assert_eq!(json(&format!("a: {number}\n")), format!("{{\"a\":\"{number}\"}}"));
    }
    assert_eq!(json("a: 0xFFFFFFFFFFFFFFFF\n"), r#"{"a":18446744073709552000}"#);
    assert_eq!(json("a: 1e308\nb: 1e-400\n1e400: c\n"), r#"{"1e400":"c","a":1e+308,"b":0}"#);
}

#[test]
fn infinities_are_refused_unless_they_are_keys() {
    for (text, name) in
        [(".inf", "+Inf"), ("+.Inf", "+Inf"), ("-.INF", "-Inf"), (".nan", "NaN"), ("!!float .NaN", "NaN")]
    {
        for document in [format!("a: [1, {text}]\n"), text.to_owned(), format!("a: {{b: {text}}}\nc: .nan\n")] {
            let why = parse(document.as_bytes()).unwrap_err().to_string();
            assert_eq!(why, format!("json: unsupported value: {name}"), "{document}");
        }
    }
    assert_eq!(json("+.inf: '.inf'\n.NaN: \".nan\"\nx: !!str .inf\n"), r#"{".inf":".inf",".nan":".nan","x":".inf"}"#);
    assert!(matches!(parse(b"a: .inf\nb: [\n"), Err(Error::Syntax { .. })));
}

#[test]
fn aliases_nest_no_deeper_than_what_they_stand_for() {
    let nested = |levels: usize, inside: &str| "[".repeat(levels) + inside + &"]".repeat(levels);
    let chain = |levels: usize| {
        let [a, b, c] = [nested(200, "x"), nested(200, "*a"), nested(levels, "*b")];
        format!("a: &a {a}\nb: &b {b}\nc: {c}\n")
    };
    assert_eq!(parse(chain(JSON_DEPTH_MAX - 401).as_bytes()).err(), None);
    assert_eq!(parse(chain(JSON_DEPTH_MAX - 400).as_bytes()).err(), Some(Error::TooDeep));
}

#[test]
fn repeated_keys_are_reported_by_line() {
    let parsed = parse(b"metadata:\n  name: d\ndata:\n  k: a\n  k: b\n").unwrap();
    assert_eq!(parsed.duplicates, ["line 5: key \"k\" already set in map"]);
    let many: String = (0..40).map(|n| format!("k{}: {n}\n", n % 30)).collect();
    let parsed = parse(many.as_bytes()).unwrap();
    assert_eq!((parsed.duplicates.len(), parsed.value.int_at(&["k9"])), (10, Some(39)));
    assert_eq!(parsed.duplicates[0], "line 31: key \"k0\" already set in map");
}

#[test]
fn aliases_and_depth_are_bounded() {
    let mut bomb = String::from("a: &a [x,x,x,x,x,x,x,x,x,x]\n");
    for (name, of) in [("b", "a"), ("c", "b"), ("d", "c"), ("e", "d"), ("f", "e"), ("g", "f")] {
        bomb += &format!("{name}: &{name} [{}]\n", vec![format!("*{of}"); 10].join(","));
    }
    assert_eq!(parse(bomb.as_bytes()).unwrap_err(), Error::Aliasing);
    let texts = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), "*a,".repeat(50));
    assert_eq!(parse(texts.as_bytes()).unwrap_err(), Error::Aliasing);
    let nested: String = (0..400).map(|n| format!("[&a{n} ")).collect();
    let nested = nested + "[" + &"1,".repeat(50_000) + "]" + &"]".repeat(400);
    assert_eq!(parse(nested.as_bytes()).unwrap_err(), Error::Aliasing);
    assert!(parse("[".repeat(100_000).as_bytes()).is_err());
}

#[test]
fn errors_are_worded_as_by_go_yaml() {
    for (text, want) in [
        ("a: b: c\n", "yaml: mapping values are not allowed in this context"),
        ("a: [b\n", "yaml: line 1: did not find expected ',' or ']'"),
        ("a:\n\tb: c\n", "yaml: line 2: found character that cannot start any token"),
        ("\ta: b\n", "yaml: found character that cannot start any token"),
        ("a: b\n\tc: d\n", "yaml: line 2: found a tab character that violates indentation"),
        ("a: 'x\n", "yaml: line 2: found unexpected end of stream"),
        ("- a\nb: c\n", "yaml: line 1: did not find expected '-' indicator"),
        ("a:\n  - b\n c: d\n", "yaml: line 2: did not find expected key"),
        ("a: *x\n", "yaml: unknown anchor 'x' referenced"),
        ("a: |\n b\n  c\nd\n", "yaml: line 5: could not find expected ':'"),
        ("a: @b\n", "yaml: found character that cannot start any token"),
        ("key: [a, b]]\n", "yaml: did not find expected key"),
        ("a: }\n", "yaml: did not find expected node content"),
        ("a: \u{1}\n", "yaml: control characters are not allowed"),
    ] {
        assert_eq!(parse(text.as_bytes()).unwrap_err().to_string(), want, "{text}");
    }
}

#[test]
fn texts_that_yaml_1_1_reads_otherwise_are_quoted() {
    let written = |value: &crate::value::Value| {
        let mut out = Vec::new();
        crate::yaml::write(value, &mut out);
        String::from_utf8(out).unwrap()
    };
    for text in ["17:00:00", "1:2", "190:20:30.15", "-1:59", "1_0:0", "0x10", "1e3", "<<"] {
        assert_eq!(written(&text.into()), format!("\"{text}\"\n"));
    }
    for text in ["1:60", "1:2:", "a:1", ":1", "1:2.x", "12:345"] {
        assert_ne!(written(&text.into()), format!("\"{text}\"\n"));
    }
    for (json, yaml) in [
        ("0.00001", "1e-05"),
        ("12345678.5", "1.23456785e+07"),
        ("100000.5", "100000.5"),
        ("1e21", "1e+21"),
        ("18446744073709551615", "1.8446744073709552e+19"),
        ("0.5", "0.5"),
    ] {
        assert_eq!(written(&crate::json::parse(json.as_bytes()).unwrap()), format!("{yaml}\n"), "{json}");
    }
}

//! Tests of the rules that every table must keep, and of the results of functions.

use std::collections::HashSet;

use super::*;
use crate::error::Outcome;
use crate::functions::Call;
use crate::types::Signature;
use crate::value::Value;

#[test]
fn signatures_are_well_formed_and_names_unique() {
    let mut ids = HashSet::new();
    for library in LIBRARIES {
        for function in library.functions {
            for overload in function.overloads {
                assert!(Signature::read(overload.signature).is_some(), "{}", overload.signature);
                assert!(ids.insert(overload.id), "{} stands twice", overload.id);
            }
        }
    }
}

/// Calls an overload.
fn call<'a>(id: &str, arguments: &[Value<'a>]) -> Outcome<Value<'a>> {
    let overloads = LIBRARIES.iter().flat_map(|library| library.functions).flat_map(|function| function.overloads);
    match overloads.into_iter().find(|overload| overload.id == id).map(|overload| overload.call) {
        Some(Call::Native(native)) => native(arguments),
        Some(Call::Prepared { argument, prepare, call }) => call(&prepare(&arguments[argument])?, arguments),
        _ => panic!("{id} is no function"),
    }
}

fn shown(value: Outcome<Value<'_>>) -> String {
    match value {
        Ok(Value::Opaque(value)) => value.text(),
        Ok(Value::Optional(None)) => "none".to_owned(),
        Ok(Value::Optional(Some(value))) => format!("some {}", shown(Ok((*value).clone()))),
        Ok(Value::List(list)) => {
            format!("[{}]", list.iter().map(shown).collect::<Vec<_>>().join(", "))
        }
        Ok(value) => text_format::shown(&value),
        Err(error) => format!("! {error}"),
    }
}

fn of(id: &str, arguments: &[Value<'_>]) -> String {
    shown(call(id, arguments))
}

fn text(text: &str) -> Value<'_> {
    text.into()
}

fn ints(numbers: &[i64]) -> Value<'static> {
    Value::list(numbers.iter().copied().map(Value::Int).collect())
}

#[test]
fn quantities_keep_their_text_as_in_the_reference() {
    let form = "! quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    let suffix = "! unable to parse quantity's suffix";
    for (written, expected) in [
        ("1", "1"),
        ("1.5Gi", "1536Mi"),
        ("1500m", "1500m"),
        ("1E3", "1E3"),
        ("1E", "1E"),
        ("100k", "100k"),
        (".5", "500m"),
        ("5.", "5."),
        ("-1", "-1"),
        ("0.5n", "1n"),
        ("1K", suffix),
        ("1 k", form),
        ("", form),
        ("1e", suffix),
        ("8Ei", "9223372036854775807"),
        ("9223372036854775808", "9223372036854775808"),
        ("1e-100", "1e-9"),
        ("12345678901234567890123", "12345678901234567890123"),
    ] {
        assert_eq!(of("string_to_quantity", &[text(written)]), expected, "{written}");
    }
}

#[test]
fn quantities_are_exact_at_any_size() {
    let quantity = |text: &'static str| call("string_to_quantity", &[text.into()]).unwrap();
    for (a, b, sum) in [
        ("1k", "1Ki", "2024"),
        ("1Ki", "1k", "2024"),
        ("0", "1Ki", "1Ki"),
        ("9223372036854775807", "1", "9223372036854775808"),
        ("1e30", "1", "1000000000000000000000000000001"),
        ("1e1000000000", "1", "! quantity has too many digits"),
    ] {
        assert_eq!(of("quantity_add", &[quantity(a), quantity(b)]), sum, "{a} {b}");
    }
    for (a, b, order) in [("1", "2", "-1"), ("1e31", "2e30", "1"), ("1", "1000m", "0"), ("-1e99", "1", "-1")] {
        assert_eq!(of("quantity_compare_to", &[quantity(a), quantity(b)]), order, "{a} {b}");
    }
    for (a, integer) in [("50k", "50000"), ("1000m", "! cannot convert value to integer"), ("1.5k", "1500")] {
        assert_eq!(of("quantity_get_int", &[quantity(a)]), integer, "{a}");
    }
    let computed = call("quantity_add_int", &[quantity("1"), Value::Int(1)]).unwrap();
    assert_eq!(crate::value::equal(&computed, &quantity("2")), Ok(true));
    assert!(crate::value::equal(&quantity("2"), &computed).is_err());
}

#[test]
fn versions_are_read_strictly_or_loosely() {
    for (written, expected) in [
        ("1.2.3-rc.1+build.5", "1.2.3-rc.1+build.5"),
        ("v1.2.3", "! Invalid character(s) found in major number \"v1\""),
        ("1", "! No Major.Minor.Patch elements found"),
        ("01.2.3", "! Major number must not contain leading zeroes \"01\""),
        ("1.2.3-01", "! Numeric PreRelease version must not contain leading zeroes \"01\""),
        ("1.2.3-", "! Prerelease is empty"),
        ("", "! Version string empty"),
    ] {
        assert_eq!(of("string_to_semver", &[text(written)]), expected, "{written}");
    }
    for (written, expected) in [
        ("v01.02", "1.2.0"),
        ("V1.0", "! Invalid character(s) found in major number \"0V1\""),
        ("1.2-a", "! short version cannot contain PreRelease/Build meta data"),
    ] {
        assert_eq!(of("string_bool_to_semver", &[text(written), true.into()]), expected, "{written}");
    }
    let version = |text: &'static str| call("string_to_semver", &[text.into()]).unwrap();
    for (a, b, order) in [("1.2.3", "1.2.3-rc1", "1"), ("1.2.3+a", "1.2.3+b", "0"), ("1.2.3-a.9", "1.2.3-a.10", "-1")] {
        assert_eq!(of("semver_compare_to", &[version(a), version(b)]), order, "{a} {b}");
    }
}

#[test]
fn strings_are_counted_in_characters() {
    for (id, arguments, expected) in [
        ("string_char_at_int", vec![text("日本"), Value::Int(1)], "本"),
        ("string_char_at_int", vec![text("abc"), Value::Int(4)], "! index out of range: 4"),
        ("string_index_of_string", vec![text("日本語"), text("語")], "2"),
        ("string_index_of_string_int", vec![text("hello mellow"), text("ello"), Value::Int(20)], "-1"),
        ("string_last_index_of_string", vec![text("hello mellow"), text("ello")], "7"),
        ("string_last_index_of_string_int", vec![text("hello mellow"), text("ello"), Value::Int(6)], "1"),
        ("string_last_index_of_string_int", vec![text("hello mellow"), text("ello"), Value::Int(7)], "7"),
        ("string_last_index_of_string_int", vec![text("aaa"), text("a"), Value::Int(-1)], "! index out of range: -1"),
        ("string_replace_string_string", vec![text("日本"), text(""), text("-")], "-日-本-"),
        ("string_replace_string_string_int", vec![text("hello"), text(""), text("_"), Value::Int(2)], "_h_ello"),
        ("string_split_string", vec![text("hello"), text("")], "[h, e, l, l, o]"),
        ("string_split_string", vec![text(""), text("")], "[]"),
        ("string_split_string_int", vec![text("abc"), text(""), Value::Int(2)], "[a, bc]"),
        ("string_split_string_int", vec![text("a b c"), text(" "), Value::Int(0)], "[]"),
        ("string_substring_int_int", vec![text("日本語"), Value::Int(1), Value::Int(2)], "本"),
        (
            "string_substring_int_int",
            vec![text("ab"), Value::Int(2), Value::Int(1)],
            "! invalid substring range. start: 2, end: 1",
        ),
        ("string_trim", vec![text("\u{a0}\u{2003}x\u{3000}\u{85}")], "x"),
        ("strings_quote", vec![text("a\n\"é")], "\"a\\n\\\"é\""),
        ("string_find_all_string", vec![text("aaa"), text("a*")], "[aaa]"),
        ("string_find_string", vec![text("a"), text("(")], "! error parsing regexp: missing closing ): `(`"),
    ] {
        assert_eq!(of(id, &arguments), expected, "{id} {arguments:?}");
    }
}

#[test]
fn format_fills_texts() {
    let format = |template: &'static str, values: Vec<Value<'static>>| {
        of("string_format", &[template.into(), Value::list(values)])
    };
    let mixed = Value::list(vec![text("a"), Value::Int(1), Value::Double(1.5), Value::Null]);
    let map = Value::map([(text("b"), Value::Int(1)), (text("a"), text("x"))]);
    for (template, values, expected) in [
        ("%s %d%%", vec![text("a"), Value::Int(5)], "a 5%"),
        ("%.3f", vec![Value::Double(1_234_567.891)], "1,234,567.891"),
        ("%.3e", vec![Value::Double(1_052.032_911_275)], "1.052033×10⁰³"),
        ("%x %X", vec![text("hello"), Value::Int(-255)], "68656c6c6f -FF"),
        ("%b", vec![Value::Bool(true)], "1"),
        ("%s", vec![mixed], "[\"a\", 1, 1.500000, null]"),
        ("%s", vec![map], "{\"a\":\"x\", \"b\":1}"),
        ("%s", vec![], "! index 0 out of range"),
        ("%z", vec![Value::Int(1)], "! could not parse formatting clause: unrecognized formatting clause \"z\""),
        (
            "%d",
            vec![text("a")],
            "! error during formatting: decimal clause can only be used on integers, was given string",
        ),
    ] {
        assert_eq!(format(template, values), expected, "{template}");
    }
}

#[test]
fn lists_are_ordered_and_summed() {
    for (id, arguments, expected) in [
        ("list_int_is_sorted_bool", vec![ints(&[1, 2, 2])], "true"),
        ("list_int_is_sorted_bool", vec![ints(&[2, 1])], "false"),
        ("list_int_sum_int", vec![ints(&[i64::MAX, 1])], "! integer overflow"),
        ("list_int_min_int", vec![ints(&[])], "! min called on empty list"),
        ("list_int_max_int", vec![ints(&[1, 3, 2])], "3"),
        ("list_a_last_index_of_int", vec![ints(&[1, 2, 1]), Value::Double(1.0)], "2"),
        ("list_slice", vec![ints(&[1, 2, 3]), Value::Int(0), Value::Int(4)], "! cannot slice(0, 4), list is length 3"),
        ("list_flatten", vec![Value::list(vec![ints(&[1, 2]), Value::list(vec![ints(&[3])])])], "[1, 2, [3]]"),
        ("list_int_sort", vec![ints(&[3, 1, 2])], "[1, 2, 3]"),
        ("list_int_sortByAssociatedKeys", vec![ints(&[7, 8]), ints(&[2, 1])], "[8, 7]"),
        ("list_distinct", vec![ints(&[1, 2, 1])], "[1, 2]"),
        ("lists_range", vec![Value::Int(-1)], "[]"),
        ("lists_range", vec![Value::Int(i64::MAX)], "! operation cancelled: actual cost limit exceeded"),
        ("list_sets_contains_list", vec![ints(&[1, 2]), ints(&[2])], "true"),
        ("list_sets_equivalent_list", vec![ints(&[1, 1]), ints(&[1])], "true"),
        ("list_sets_intersects_list", vec![ints(&[1]), ints(&[2])], "false"),
    ] {
        assert_eq!(of(id, &arguments), expected, "{id} {arguments:?}");
    }
}

#[test]
fn addresses_have_the_errors_of_the_reference() {
    for (id, written, expected) in [
        ("string_to_ip", "2001:0db8::0001", "2001:db8::1"),
        ("string_to_ip", "::ffff:1.2.3.4", "! IPv4-mapped IPv6 address \"::ffff:1.2.3.4\" is not allowed"),
        ("string_to_ip", "fe80::1%eth0", "! IP address \"fe80::1%eth0\" with zone value is not allowed"),
        ("string_to_cidr", "192.168.0.1/24", "192.168.0.1/24"),
        (
            "string_to_cidr",
            "",
            "! network address parse error during conversion from string: network address parse error during \
             conversion from string: netip.ParsePrefix(\"\"): no '/'",
        ),
        ("string_to_url", "https://a/b?c=d#e", "https://a/b?c=d#e"),
        (
            "string_to_url",
            "relative",
            "! URL parse error during conversion from string: parse \"relative\": invalid URI for request",
        ),
        ("string_jsonpatch_escapeKey_string", "a/b~c", "a~1b~0c"),
    ] {
        assert_eq!(of(id, &[text(written)]), expected, "{id} {written}");
    }
    let cidr = |text: &'static str| call("string_to_cidr", &[text.into()]).unwrap();
    assert_eq!(of("cidr_contains_ip_string", &[cidr("192.168.0.0/24"), text("192.168.0.1")]), "true");
    assert_eq!(of("cidr_contains_ip_string", &[cidr("192.168.0.0/24"), text("abc")]), "! no such overload");
    assert_eq!(of("cidr_contains_cidr", &[cidr("0.0.0.0/0"), cidr("10.0.0.0/8")]), "true");
    assert_eq!(of("cidr_contains_cidr", &[cidr("10.0.0.0/8"), cidr("0.0.0.0/0")]), "false");
    assert_eq!(of("cidr_masked", &[cidr("2001:db8::1/48")]), "2001:db8::/48");
}

#[test]
fn forms_have_names() {
    assert_eq!(of("format-named", &[text("dns1123Label")]), "some DNS1123Label");
    assert_eq!(of("format-named", &[text("DNS1123Label")]), "none");
    let label = call("format.dns1123Label", &[]).unwrap();
    assert_eq!(of("format-validate", &[label.clone(), text("a")]), "none");
    assert_eq!(of("format-validate", &[label, text("a.b")]), "some [must not contain dots]");
}

//! The formats that are checked when a schema states them.

use std::sync::LazyLock;

use flotilla_cel::library::form;
use flotilla_cel::value::formats;
use flotilla_golang::url::Url;
use flotilla_proto::structural::{Structural, ValueType};
use regex::Regex;

use super::format_text as text;
use crate::rules::addresses;

/// A format of strings.
struct Format {
    /// The name without dashes. Schemas may write dashes anywhere in it.
    name: &'static str,
    holds: fn(&str) -> bool,
}

/// The formats of strings, sorted by name.
static FORMATS: [Format; 26] = [
    Format { name: "bsonobjectid", holds: |text| text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit()) },
    Format { name: "byte", holds: form::is_base64 },
    Format { name: "cidr", holds: is_cidr },
    Format { name: "creditcard", holds: text::is_credit_card },
    Format { name: "date", holds: form::is_date },
    Format { name: "datetime", holds: form::is_date_time },
    Format { name: "duration", holds: |text| formats::duration(text).is_ok() },
    Format { name: "email", holds: text::is_email },
    Format { name: "hexcolor", holds: |text| HEX_COLOR.is_match(text) },
    Format { name: "hostname", holds: is_hostname },
    Format { name: "ipv4", holds: |text| text.contains('.') && addresses::parse_sloppy(text).is_some() },
    Format { name: "ipv6", holds: |text| text.contains(':') && text.parse::<std::net::Ipv6Addr>().is_ok() },
    Format { name: "isbn", holds: |text| text::is_isbn10(text) || text::is_isbn13(text) },
    Format { name: "isbn10", holds: text::is_isbn10 },
    Format { name: "isbn13", holds: text::is_isbn13 },
    Format { name: "k8slongname", holds: |text| text.len() <= 253 && text.split('.').all(text::is_short_name) },
    Format { name: "k8sshortname", holds: |text| text.len() <= 63 && text::is_short_name(text) },
    Format { name: "mac", holds: text::is_mac },
    Format { name: "password", holds: |_| true },
    Format { name: "rgbcolor", holds: |text| RGB_COLOR.is_match(text) },
    Format { name: "ssn", holds: |text| text.len() == 11 && SSN.is_match(text) },
    Format { name: "uri", holds: |text| Url::parse_request(text).is_ok() },
    Format { name: "uuid", holds: form::is_uuid },
    Format { name: "uuid3", holds: |text| form::is_uuid(text) && text::uuid_version(text) == Some('3') },
    Format { name: "uuid4", holds: |text| form::is_uuid(text) && text::is_random_uuid(text, '4') },
    Format { name: "uuid5", holds: |text| form::is_uuid(text) && text::is_random_uuid(text, '5') },
];

static HEX_COLOR: LazyLock<Regex> = LazyLock::new(|| regex("^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"));
static HOSTNAME: LazyLock<Regex> = LazyLock::new(|| {
    let sign = r"[a-zA-Z0-9\p{S}\p{L}]";
    let inner = r"[a-zA-Z0-9\-\p{S}\p{L}]";
    regex(&format!(
        r"^({sign}((-?{sign}{{0,62}})?)|({sign}(({inner}{{0,61}}{sign})?)(\.)){{1,}}([a-zA-Z\p{{L}}]){{2,63}})$"
    ))
});
static RGB_COLOR: LazyLock<Regex> = LazyLock::new(|| {
    let part = r"[\t\n\f\r ]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[\t\n\f\r ]*";
    regex(&format!(r"^rgb\({part},{part},{part}\)$"))
});
static SSN: LazyLock<Regex> = LazyLock::new(|| regex("^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$"));

#[expect(clippy::expect_used, reason = "a fixed pattern, compiled in a test")]
fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is valid")
}

fn find(format: &str) -> Option<&'static Format> {
    let bare: String;
    let name = if format.contains('-') {
        bare = format.replace('-', "");
        &bare
    } else {
        format
    };
    FORMATS.binary_search_by(|known| known.name.cmp(name)).ok().map(|at| &FORMATS[at])
}

/// Returns the format of a schema. Returns the empty text if the schema states none, or one that is not checked.
pub fn checked(schema: &Structural) -> &str {
    let format = schema.rules().format();
    let known = !format.is_empty()
        && match schema.of {
            _ if schema.int_or_string => find(format).is_some(),
            None | Some(ValueType::String) => find(format).is_some(),
            Some(ValueType::Integer) => matches!(format, "int32" | "int64"),
            Some(ValueType::Number) => matches!(format, "float" | "double"),
            Some(ValueType::Object | ValueType::Array | ValueType::Boolean) => false,
        };
    if known { format } else { "" }
}

/// Returns whether this is a format that is checked for strings.
pub fn is_of_strings(format: &str) -> bool {
    !format.is_empty() && find(format).is_some()
}

/// Returns whether a string has the format. Returns true for unknown formats.
pub fn holds(format: &str, text: &str) -> bool {
    find(format).is_none_or(|format| (format.holds)(text))
}

fn is_hostname(text: &str) -> bool {
    text.len() <= 255 && text.split('.').all(|label| label.len() <= 63) && HOSTNAME.is_match(text)
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let most = if address.contains(':') { 128 } else { 32 };
    let digits = !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
    digits && bits.parse::<u8>().is_ok_and(|bits| bits <= most) && addresses::parse_sloppy(address).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_found_with_or_without_dashes() {
        assert!(FORMATS.is_sorted_by_key(|format| format.name));
        assert!(is_of_strings("date-time") && is_of_strings("datetime") && is_of_strings("k8s-short-name"));
        assert!(!is_of_strings("int32") && !is_of_strings("") && !is_of_strings("unknown-format"));
    }

    #[test]
    fn formats_take_what_the_reference_takes() {
        let cases: &[(&str, &[&str], &[&str])] = &[
            ("date", &["2024-02-29"], &["2023-02-29", "2024-2-9", "2024-01-01T00:00:00Z", ""]),
            (
                "date-time",
                &["2024-01-01T00:00:00Z", "2024-01-01t23:59:59.123+02:00"],
                &[
                    "2024-01-01",
                    "2024-01-01T24:00:00Z",
                    "2024-01-01 00:00:00Z",
                    "2024-01-01T00:00:00",
                    "2024-01-01T1é:00:00Z",
                ],
            ),
            (
                "duration",
                &["1h30m", "3 weeks", "1d", "1.5h", "-2m", "0", "22 ns", "+1s", "1µs"],
                &["soon", "1", "", "h", "1 fortnight"],
            ),
            (
                "email",
                &["a@b.example", "A B <a@b.example>", "\"x y\"@b.example", "a@b"],
                &["nobody", "a@", "@b", "a b@c", "a@b.example x", "a..b@c", ""],
            ),
            ("hostname", &["a.example", "a", "a-b.example.com", "1.example"], &["a_b!", "-a", "a.-b", "a.b.c1", ""]),
            ("ipv4", &["10.0.0.1", "010.0.0.1"], &["256.0.0.1", "fe80::1", "1.2.3", ""]),
            ("ipv6", &["fe80::1", "::"], &["10.0.0.1", "fe80::1%eth0", "x"]),
            ("cidr", &["10.0.0.0/8", "fe80::/64", "10.0.0.1/8"], &["10.0.0.1", "10.0.0.0/33", "/8", "10.0.0.0/+8"]),
            ("uri", &["https://e.example/x", "/x", "mailto:x"], &["not a uri", "", "x", "#a", "http://[::1", "/%zz"]),
            (
                "uuid",
                &["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "A0EEBC999C0B4EF8BB6D6BB9BD380A11"],
                &["a0eebc99", "g0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"],
            ),
            ("uuid4", &["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"], &["x", "a0eebc99-9c0b-3ef8-bb6d-6bb9bd380a11"]),
            ("uuid3", &["a0eebc99-9c0b-3ef8-0b6d-6bb9bd380a11"], &["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]),
            ("uuid5", &["a0eebc99-9c0b-5ef8-bb6d-6bb9bd380a11"], &["a0eebc99-9c0b-5ef8-cb6d-6bb9bd380a11"]),
            ("mac", &["00:11:22:33:44:55", "00-11-22-33-44-55", "0011.2233.4455"], &["00:11", "00:11:22:33:44-55", ""]),
            ("byte", &["aGk=", "aGkh", "aGl="], &["***", "aGk", "", "a-_="]),
            ("password", &["", "x"], &[]),
            ("hexcolor", &["#ffffff", "fff"], &["white", "#ffff"]),
            ("rgbcolor", &["rgb(1,2,3)", "rgb( 0 , 255 , 10 )"], &["rgb(900,2,3)", "rgb(1,2)"]),
            ("isbn", &["0-306-40615-2", "978-3-16-148410-0"], &["1", "0-306-40615-3"]),
            ("isbn13", &["978-0321751041"], &["0321751043"]),
            ("creditcard", &["4111111111111111", "4111-1111-1111-1111"], &["1", "4111111111111112"]),
            ("ssn", &["111-11-1111", "111 11 1111"], &["1", "111111111"]),
            ("k8s-short-name", &["abc", "a-1"], &["Abc", "", "-a", "a."]),
            ("k8s-long-name", &["a.b"], &["A.B", "a..b", "a."]),
            ("bsonobjectid", &["5f5e7b3e4c9a2b0001234567"], &["x"]),
            ("unknown-format", &["anything"], &[]),
        ];
        for (format, good, bad) in cases {
            good.iter().for_each(|text| assert!(holds(format, text), "{format} {text:?}"));
            bad.iter().for_each(|text| assert!(!holds(format, text), "{format} {text:?}"));
        }
    }
}

//! Quantities as the reference writes them, recorded from it: alone, and in a list of resources.

use super::*;

/// Text sent, text of a quantity, text in a list of resources, where amounts are whole thousandths.
const WRITTEN: &[(&str, &str, &str)] = &[
    ("0", "0", "0"),
    ("1", "1", "1"),
    ("-1", "-1", "-1"),
    ("1.500", "1.500", "1.500"),
    ("1E3", "1E3", "1E3"),
    ("500e-3", "500e-3", "500e-3"),
    ("+5Gi", "+5Gi", "+5Gi"),
    ("007", "007", "007"),
    ("9223372036854775807", "9223372036854775807", "9223372036854775807"),
    ("9223372036854775808", "9223372036854775808", "9223372036854775808"),
    ("1e30", "1e30", "1e30"),
    ("1e31", "10e30", "10e30"),
    ("1000E", "1", "1"),
    ("100E", "100E", "100E"),
    ("10000E", "10", "10"),
    ("1000000000000000000000", "1", "1"),
    ("1000000000000000000000000", "1", "1"),
    ("123456789012345678901234567890", "123456789012345678901234567890", "123456789012345678901234567890"),
    ("-1.5m", "-1500u", "-2m"),
    ("1.5m", "1500u", "2m"),
    ("1.5Gi", "1536Mi", "1536Mi"),
    ("0.5", "500m", "500m"),
    (".5", "500m", "500m"),
    ("5.", "5.", "5."),
    ("1.50", "1500m", "1500m"),
    ("1.000", "1", "1"),
    ("1000", "1k", "1k"),
    ("1000m", "1", "1"),
    ("10e3", "10e3", "10e3"),
    ("1e3", "1e3", "1e3"),
    ("12e2", "1200", "1200"),
    ("1e-3", "1e-3", "1e-3"),
    ("1e-4", "100e-6", "1e-3"),
    ("1e-9", "1e-9", "1e-3"),
    ("1e-10", "1e-9", "1e-3"),
    ("0.1n", "1n", "1m"),
    ("1n", "1n", "1m"),
    ("0.0000000001", "1n", "1m"),
    ("1025Ki", "1025Ki", "1025Ki"),
    ("1024Ki", "1Mi", "1Mi"),
    ("2044Ki", "2044Ki", "2044Ki"),
    ("8Ki", "8Ki", "8Ki"),
    ("9Ki", "9Ki", "9Ki"),
    ("1Ei", "1Ei", "1Ei"),
    ("7Ei", "7Ei", "7Ei"),
    ("8Ei", "9223372036854775807", "9223372036854775807"),
    ("64Ei", "9223372036854775807", "9223372036854775807"),
    ("1Ti", "1Ti", "1Ti"),
    ("1Pi", "1Pi", "1Pi"),
    ("3Ti", "3Ti", "3Ti"),
    ("16Ti", "16Ti", "16Ti"),
    ("1001Ti", "1001Ti", "1001Ti"),
    ("99999Ki", "99999Ki", "99999Ki"),
    ("0.1Ki", "102400m", "102400m"),
    ("1.1Ki", "1126400m", "1126400m"),
    ("0.5Ki", "512", "512"),
    ("0.0001Ki", "102400u", "103m"),
    ("-0.5Ki", "-512", "-512"),
    ("-0.0001Ki", "-102400u", "-103m"),
    ("-1Ki", "-1Ki", "-1Ki"),
    ("-5Ki", "-5Ki", "-5Ki"),
    ("-64Ei", "-9223372036854775807", "-9223372036854775807"),
    ("0Gi", "0", "0"),
    ("00", "0", "0"),
    ("0.0", "0", "0"),
    ("-0", "0", "0"),
    ("+", "0", "0"),
    ("-", "0", "0"),
    (".", "0", "0"),
    ("-.", "0", "0"),
    ("+Gi", "0", "0"),
    ("000.500", "500m", "500m"),
    ("1e0", "1e0", "1e0"),
    ("1E0", "1E0", "1E0"),
    ("1e+3", "1e+3", "1e+3"),
    ("1E+03", "1E+03", "1E+03"),
    ("1e03", "1e03", "1e03"),
    ("1e4294967299", "1e4294967299", "1e4294967299"),
    ("1e-4294967293", "1e-4294967293", "1e-4294967293"),
    ("1e99999", "1e99999", "1e99999"),
    ("123456789012345678", "123456789012345678", "123456789012345678"),
    ("1234567890123456789", "1234567890123456789", "1234567890123456789"),
    ("0.123456789", "123456789n", "124m"),
    ("0.1234567891", "123456790n", "124m"),
    ("1.0000000000000000000", "1", "1"),
    ("0.00000000000000000000", "0", "0"),
    ("1500m", "1500m", "1500m"),
    ("2000000", "2M", "2M"),
    ("1234567", "1234567", "1234567"),
    ("5k", "5k", "5k"),
    ("5000k", "5M", "5M"),
    ("1001k", "1001k", "1001k"),
    ("0.001k", "1", "1"),
    ("1e18", "1e18", "1e18"),
    ("1e19", "10e18", "10e18"),
    ("1E", "1E", "1E"),
    ("9E", "9E", "9E"),
    ("10E", "10E", "10E"),
    ("9.3E", "9300P", "9300P"),
    ("1.5e3", "1500", "1500"),
    ("1.55e3", "1550", "1550"),
    ("15e-1", "1500e-3", "1500e-3"),
    ("1500e-3", "1500e-3", "1500e-3"),
    ("1.Ei", "1Ei", "1Ei"),
    ("E", "0", "0"),
    ("e3", "0", "0"),
];

const REFUSED: &[(&str, Error)] = &[
    ("1k5", Error::Suffix),
    ("lots", Error::Form),
    ("1x", Error::Form),
    ("1 Gi", Error::Form),
    ("1.2.3", Error::Form),
    ("1Gi2x", Error::Form),
    ("1KI", Error::Form),
    ("1kk", Error::Suffix),
    ("1ee3", Error::Suffix),
    ("1K", Error::Suffix),
    ("Ei", Error::Number),
    ("+Ei", Error::Number),
    (".Ei", Error::Number),
    ("-Ei", Error::Number),
    ("--5", Error::Suffix),
    ("1e", Error::Suffix),
    ("1E3.5", Error::Form),
    ("１", Error::Form),
];

#[test]
fn texts_are_written_as_by_the_reference() {
    for (text, want, in_list) in WRITTEN {
        assert_eq!(written(text).unwrap(), *want, "{text}");
        let mut quantity = Quantity::parse(text).unwrap();
        assert_eq!(quantity.to_string(), *want, "{text}");
        quantity.round_to_milli();
        assert_eq!(quantity.to_string(), *in_list, "{text} in a list");
    }
}

#[test]
fn canonical_quantities_stay_as_they_are() {
    let texts = WRITTEN.iter().flat_map(|(_, text, in_list)| [text, in_list]);
    for text in texts {
        assert_eq!(written(text).unwrap(), *text);
    }
}

#[test]
fn other_texts_are_refused() {
    for (text, why) in REFUSED {
        assert_eq!(Quantity::parse(text).unwrap_err(), *why, "{text}");
    }
    assert_eq!(Quantity::parse("").unwrap_err(), Error::Form);
}

fn q(text: &str) -> Quantity {
    Quantity::parse(text).unwrap()
}

#[test]
fn amounts_of_any_size_compare() {
    let rising = [
        "-1e31",
        "-2e30",
        "-64Ei",
        "-1",
        "-1m",
        "0",
        "1n",
        "1m",
        "999m",
        "1",
        "1G",
        "1Gi",
        "9223372036854775807",
        "9223372036854775808",
        "1e30",
        "2e30",
        "2000000000000000000000000000001",
        "1e31",
        "1e99999",
    ];
    for (n, a) in rising.iter().enumerate() {
        for (m, b) in rising.iter().enumerate() {
            assert_eq!(q(a).cmp(&q(b)), n.cmp(&m), "{a} and {b}");
        }
    }
    for (a, b) in [("1", "1000m"), ("1e3", "1k"), ("1e30", "1000000000000000000000000000000"), ("-0", "0")] {
        assert_eq!(q(a), q(b));
    }
}

#[test]
fn sums_are_exact() {
    for (a, b, sum) in [
        ("1", "500m", "1500m"),
        ("1Gi", "-512Mi", "512Mi"),
        ("0", "1Gi", "1Gi"),
        ("1e30", "1", "1000000000000000000000000000001"),
        ("1e30", "-1", "999999999999999999999999999999"),
        ("9223372036854775807", "1", "9223372036854775808"),
        ("7Ei", "1Ei", "8Ei"),
        ("1.5", "-1500m", "0"),
        ("999m", "1m", "1"),
        ("1e2000000000", "1", "100e1999999998"),
    ] {
        assert_eq!(q(a).plus(&q(b)).to_string(), sum, "{a} and {b}");
        assert_eq!(q(b).plus(&q(a)), q(a).plus(&q(b)), "{b} and {a}");
        assert_eq!(q(a).minus(&q(b)), q(a).plus(&q("0").minus(&q(b))), "{a} less {b}");
    }
}

#[test]
fn values_beyond_64_bits_are_read_as_by_the_reference() {
    for (text, value, milli) in [
        ("1500m", 2, 1500),
        ("-1500m", -2, -1500),
        ("1.5", 2, 1500),
        ("1e19", 0, 0),
        ("1e31", 0, 0),
        ("9300P", 0, 0),
        ("9223372036854775807", i64::MAX, -1000),
        ("9223372036854775808", i64::MIN, 0),
        ("18446744073709551617", 1, 1000),
        ("1n", 1, 1),
    ] {
        assert_eq!((q(text).value(), q(text).milli_value()), (value, milli), "{text}");
    }
}

#[test]
fn long_texts_cost_what_is_in_them() {
    let digits = "123456789".repeat(100_000);
    assert_eq!(written(&digits).unwrap(), *digits);
    assert_eq!(written(&format!("{digits}Ki")).unwrap(), "9223372036854775807");
    assert_eq!(written(&format!("0.{digits}Ki")).unwrap(), "126419752063n");
}

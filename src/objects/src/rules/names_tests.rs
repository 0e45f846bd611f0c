use super::*;

fn holds(form: Form, texts: &[&str]) {
    for text in texts {
        assert!(form(text).is_empty(), "{text:?}: {:?}", form(text));
    }
}

fn breaks(form: Form, texts: &[&str]) {
    for text in texts {
        assert!(!form(text).is_empty(), "{text:?}");
    }
}

#[test]
fn labels_and_subdomains() {
    holds(dns1123_label, &["a", "0", "a-b", &"a".repeat(63)]);
    breaks(dns1123_label, &["", "-a", "a-", "A", "a_b", "a.b", "a b", &"a".repeat(64)]);
    assert_eq!(dns1123_label("a.b"), ["must not contain dots"]);
    holds(dns1123_subdomain, &["a", "0.1", "a-b.c", &"a".repeat(253)]);
    breaks(dns1123_subdomain, &["", ".", "a..b", "a.", ".a", "a.-b", &"a".repeat(254)]);
    holds(dns1035_label, &["a", "a1-2"]);
    breaks(dns1035_label, &["", "1a", "a.b"]);
    holds(wildcard_subdomain, &["*.a", "*.a.b"]);
    breaks(wildcard_subdomain, &["*", "a.b", "*a.b", "*.*.a", "*."]);
}

#[test]
fn qualified_names() {
    holds(qualified_name, &["a", "A.b_c-d", "example.com/x", "1/2"]);
    breaks(qualified_name, &["", "/a", "a/", "a/b/c", "Up/x", "a b", "_a", &"a".repeat(64)]);
    assert_eq!(qualified_name("").len(), 2);
    holds(label_value, &["", "a", "A_1"]);
    breaks(label_value, &["-", "a b", &"a".repeat(64)]);
}

#[test]
fn ports_keys_and_identifiers() {
    holds(port_name, &["http", "a1", "1a", "a-b"]);
    breaks(port_name, &["", "1", "a--b", "-a", "a-", "HTTP", "abcdefghijklmnop"]);
    holds(config_map_key, &["a", ".a", "A_b-c.d"]);
    breaks(config_map_key, &["", ".", "..", "..a", "a/b", &"a".repeat(254)]);
    holds(c_identifier, &["a", "_1"]);
    breaks(c_identifier, &["", "1a", "a-b"]);
    holds(percent, &["1%", "100%"]);
    breaks(percent, &["%", "1", "a%", "-1%"]);
}

#[test]
fn a_trailing_dash_may_end_in_anything() {
    assert_eq!(without_trailing_dash("ab-"), "aa");
    assert_eq!(without_trailing_dash("-"), "-");
    assert_eq!(without_trailing_dash("ab"), "ab");
    assert!(!without_trailing_dash("é-").is_empty());
}

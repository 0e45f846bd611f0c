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
fn ports_keys_identifiers_and_wildcards_are_recognized() {
    holds(port_name, &["http", "a1", "1a", "a-b"]);
    breaks(port_name, &["", "1", "a--b", "-a", "a-", "HTTP", "abcdefghijklmnop"]);
    holds(config_map_key, &["a", ".a", "A_b-c.d"]);
    breaks(config_map_key, &["", ".", "..", "..a", "a/b", &"a".repeat(254)]);
    holds(c_identifier, &["a", "_1"]);
    breaks(c_identifier, &["", "1a", "a-b"]);
    holds(percent, &["1%", "100%"]);
    breaks(percent, &["%", "1", "a%", "-1%"]);
    holds(wildcard_subdomain, &["*.a", "*.a.b"]);
    breaks(wildcard_subdomain, &["*", "a.b", "*a.b", "*.*.a", "*."]);
}

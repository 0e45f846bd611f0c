//! Labels, subdomains and keys, as the API writes them, and the messages about the faults of texts that should be one.
//! A valid text costs no allocation: the list of messages stays empty.

use std::borrow::Cow;

/// The messages about the faults of a text; empty if the text is valid.
pub type Messages = Vec<Cow<'static, str>>;

/// Most bytes in a label of a domain name (RFC 1123).
pub const LABEL_BYTES_MAX: usize = 63;
/// Most bytes in a domain name (RFC 1123).
pub const SUBDOMAIN_BYTES_MAX: usize = 253;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
    and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
    start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
    alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
    validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
    alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \
    '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex \
    used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// Returns the message that a text has more than `max` characters.
pub fn too_many_characters(max: usize) -> Cow<'static, str> {
    format!("must be no more than {max} characters").into()
}

/// Returns the message that a part of a text has more than `max` bytes; `part` names it, with a space behind it.
pub fn too_many_bytes(part: &str, max: usize) -> Cow<'static, str> {
    format!("{part}must be no more than {max} bytes").into()
}

/// Returns whether a text is an RFC 1123 label, ignoring its length.
fn is_label(text: &[u8]) -> bool {
    let inner = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-';
    !text.is_empty() && text[0] != b'-' && text[text.len() - 1] != b'-' && text.iter().all(inner)
}

/// Returns whether a text is an RFC 1123 subdomain in lower case, ignoring its length.
pub fn is_subdomain(text: &str) -> bool {
    text.as_bytes().split(|b| *b == b'.').all(is_label)
}

/// Returns the faults of a text that should be an RFC 1123 label, of at most 63 bytes.
pub fn dns1123_label(text: &str) -> Messages {
    let mut messages = Messages::new();
    if text.len() > LABEL_BYTES_MAX {
        messages.push(too_many_characters(LABEL_BYTES_MAX));
    }
    if !is_label(text.as_bytes()) {
        messages.push(if is_subdomain(text) { "must not contain dots" } else { LABEL }.into());
    }
    messages
}

/// Returns the faults of a text that should be an RFC 1123 subdomain, of at most 253 bytes.
pub fn dns1123_subdomain(text: &str) -> Messages {
    let mut messages = Messages::new();
    if text.len() > SUBDOMAIN_BYTES_MAX {
        messages.push(too_many_characters(SUBDOMAIN_BYTES_MAX));
    }
    if !is_subdomain(text) {
        messages.push(SUBDOMAIN.into());
    }
    messages
}

/// Returns the faults of a text that should be an RFC 1035 label, of at most 63 bytes.
pub fn dns1035_label(text: &str) -> Messages {
    let mut messages = Messages::new();
    if text.len() > LABEL_BYTES_MAX {
        messages.push(too_many_characters(LABEL_BYTES_MAX));
    }
    if !is_label(text.as_bytes()) || text.as_bytes()[0].is_ascii_digit() {
        messages.push(LABEL_1035.into());
    }
    messages
}

/// Returns whether a text is made of letters, digits and inner `-`, `_`, `.`.
fn is_qualified(text: &str) -> bool {
    let bytes = text.as_bytes();
    let inner = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    !bytes.is_empty()
        && bytes[0].is_ascii_alphanumeric()
        && bytes[bytes.len() - 1].is_ascii_alphanumeric()
        && bytes.iter().all(inner)
}

/// Returns the faults of a text that should be `name` or `prefix/name`: the key of a label or annotation, a finalizer,
/// the name of a resource.
pub fn qualified_name(text: &str) -> Messages {
    let mut messages = Messages::new();
    let mut parts = text.split('/');
    let (prefix, name) = match (parts.next(), parts.next(), parts.next()) {
        (Some(name), None, _) => (None, name),
        (Some(prefix), Some(name), None) => (Some(prefix), name),
        _ => {
            let optional = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {QUALIFIED} {optional}").into()];
        }
    };
    match prefix {
        Some("") => messages.push("prefix part must be non-empty".into()),
        Some(prefix) => {
            if prefix.len() > SUBDOMAIN_BYTES_MAX {
                messages.push(too_many_bytes("prefix part ", SUBDOMAIN_BYTES_MAX));
            }
            if !is_subdomain(prefix) {
                messages.push(format!("prefix part {SUBDOMAIN}").into());
            }
        }
        None => {}
    }
    if name.is_empty() {
        messages.push("name part must be non-empty".into());
    } else if name.len() > LABEL_BYTES_MAX {
        messages.push(too_many_bytes("name part ", LABEL_BYTES_MAX));
    }
    if !is_qualified(name) {
        messages.push(format!("name part {QUALIFIED}").into());
    }
    messages
}

/// Returns the faults of a text that should be the value of a label.
pub fn label_value(text: &str) -> Messages {
    let mut messages = Messages::new();
    if text.len() > LABEL_BYTES_MAX {
        messages.push(too_many_bytes("", LABEL_BYTES_MAX));
    }
    if !text.is_empty() && !is_qualified(text) {
        messages.push(LABEL_VALUE.into());
    }
    messages
}

/// Prepares a `generateName` prefix for a check as a name: a trailing dash stands for the generated end. As in the
/// reference, the byte before the dash is not checked.
pub fn without_trailing_dash(prefix: &str) -> Cow<'_, str> {
    if prefix.len() > 1 && prefix.ends_with('-') {
        let kept = &prefix.as_bytes()[..prefix.len() - 2];
        return format!("{}a", String::from_utf8_lossy(kept)).into();
    }
    prefix.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(form: fn(&str) -> Messages, texts: &[&str]) {
        for text in texts {
            assert!(form(text).is_empty(), "{text:?}: {:?}", form(text));
        }
    }

    fn breaks(form: fn(&str) -> Messages, texts: &[&str]) {
        for text in texts {
            assert!(!form(text).is_empty(), "{text:?}");
        }
    }

    #[test]
    fn labels_and_subdomains_are_recognized() {
        holds(dns1123_label, &["a", "0", "a-b", &"a".repeat(63)]);
        breaks(dns1123_label, &["", "-a", "a-", "A", "a_b", "a.b", "a b", &"a".repeat(64)]);
        assert_eq!(dns1123_label("a.b"), ["must not contain dots"]);
        holds(dns1123_subdomain, &["a", "0.1", "a-b.c", &"a".repeat(253)]);
        breaks(dns1123_subdomain, &["", ".", "a..b", "a.", ".a", "a.-b", &"a".repeat(254)]);
        holds(dns1035_label, &["a", "a1-2"]);
        breaks(dns1035_label, &["", "1a", "a.b"]);
    }

    #[test]
    fn qualified_names_and_label_values_are_recognized() {
        holds(qualified_name, &["a", "A.b_c-d", "example.com/x", "1/2", "example.com/My_name"]);
        breaks(qualified_name, &["", "/a", "a/", "a/b/c", "Up/x", "a b", "_a", &"a".repeat(64)]);
        assert_eq!(qualified_name("").len(), 2);
        assert_eq!(qualified_name("/b"), ["prefix part must be non-empty"]);
        holds(label_value, &["", "a", "A_1"]);
        breaks(label_value, &["-", "a b", &"a".repeat(64)]);
    }

    #[test]
    fn any_byte_may_precede_a_trailing_dash() {
        assert_eq!(without_trailing_dash("ab-"), "aa");
        assert_eq!(without_trailing_dash("-"), "-");
        assert_eq!(without_trailing_dash("ab"), "ab");
        breaks(|text| dns1123_label(&without_trailing_dash(text)), &["aé-"]);
    }
}

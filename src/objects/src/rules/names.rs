//! The forms of names, each with the messages about its faults.
//!
//! A valid name costs no allocation: the list of messages stays empty.

use std::borrow::Cow;

pub use flotilla_proto::names::{
    LABEL_BYTES_MAX, Messages, SUBDOMAIN_BYTES_MAX, dns1035_label, dns1123_label, dns1123_subdomain, label_value,
    qualified_name, too_many_characters, without_trailing_dash,
};
use flotilla_proto::names::{is_subdomain, too_many_bytes};

use crate::field::{Errors, Path, quote};
use crate::status::{ApiError, ApiResult};

/// A form of names: a function that returns the faults of a text.
pub type Form = fn(&str) -> Messages;

/// Most bytes in the name of a port (RFC 6335).
pub const PORT_NAME_BYTES_MAX: usize = 15;

/// The group of users who may do everything.
pub const MASTERS: &str = "system:masters";

const SUBDOMAIN_CASELESS: &str = "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', \
    and must start and end with an alphanumeric character (e.g. 'Example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const SUBDOMAIN_UNDERSCORE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
    '_', '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for \
    validation is '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')";
const WILDCARD: &str = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which \
    must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. \
    '*.example.com', regex used for validation is \
    '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const C_IDENTIFIER: &str = "a valid C identifier must start with alphabetic character or '_', followed by a string of \
    alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is \
    '[A-Za-z_][A-Za-z0-9_]*')";
const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. \
    'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
const ENV_NAME: &str =
    "a valid environment variable name must consist only of printable ASCII characters other than '='";
const ENV_NAME_STRICT: &str = "a valid environment variable name must consist of alphabetic characters, digits, '_', \
    '-', or '.', and must not start with a digit (e.g. 'my.env-name',  or 'MY_ENV.NAME',  or 'MyEnvName1', regex used \
    for validation is '[-._a-zA-Z][-._a-zA-Z0-9]*')";
const PERCENT: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or \
    '93%', regex used for validation is '[0-9]+%')";
const HEADER_NAME: &str = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', \
    regex used for validation is '[-A-Za-z0-9]+')";

/// Adds an error for each fault that `form` finds in `text`.
pub fn check(path: &Path<'_>, text: &str, form: Form, errors: &mut Errors) {
    for message in form(text) {
        errors.invalid_str(path, text, message);
    }
}

/// Adds errors unless a text is a path below a domain, as `acme.io/foo`.
pub fn check_domain_path(path: &Path<'_>, text: &str, errors: &mut Errors) {
    if text.is_empty() {
        return errors.required(path, "");
    }
    let parts = text.split_once('/').filter(|(domain, rest)| !domain.is_empty() && !rest.is_empty());
    let Some((domain, rest)) = parts else {
        return errors.invalid_str(path, text, "must be a domain-prefixed path (such as \"acme.io/foo\")");
    };
    check(path, domain, dns1123_subdomain, errors);
    if !rest.bytes().all(|b| b.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&b)) {
        let why = "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
        errors.invalid_str(path, rest, why);
    }
}

/// Adds an error if a required text is empty or is not one of those allowed.
pub fn check_choice(path: &Path<'_>, text: &str, allowed: &[&str], errors: &mut Errors) {
    if text.is_empty() {
        errors.required(path, "");
    } else if !allowed.contains(&text) {
        errors.not_supported(path, text, allowed);
    }
}

/// Returns the message that a number is outside `low..=high`.
pub fn between(low: i64, high: i64) -> Cow<'static, str> {
    format!("must be between {low} and {high}, inclusive").into()
}

/// RFC 1123 subdomain, as the declarative rules of the reference check it: they count bytes.
pub fn long_name(text: &str) -> Messages {
    let mut messages = dns1123_subdomain(text);
    if let Some(length) = messages.first_mut().filter(|_| text.len() > SUBDOMAIN_BYTES_MAX) {
        *length = too_many_bytes("", SUBDOMAIN_BYTES_MAX);
    }
    messages
}

/// RFC 1123 subdomain in either case.
pub fn dns1123_subdomain_caseless(text: &str) -> Messages {
    let mut messages = Messages::new();
    if text.len() > SUBDOMAIN_BYTES_MAX {
        messages.push(too_many_bytes("", SUBDOMAIN_BYTES_MAX));
    }
    if !is_subdomain(&text.to_ascii_lowercase()) {
        messages.push(SUBDOMAIN_CASELESS.into());
    }
    messages
}

/// RFC 1123 subdomain in which labels may hold underscores: host names in DNS searches.
pub fn dns1123_subdomain_underscore(text: &str) -> Messages {
    let label = |text: &[u8]| {
        let text = text.strip_prefix(b"_").unwrap_or(text);
        let edge = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        !text.is_empty()
            && edge(text[0])
            && edge(text[text.len() - 1])
            && text.iter().all(|b| edge(*b) || matches!(b, b'-' | b'_'))
    };
    let mut messages = Messages::new();
    if text.len() > SUBDOMAIN_BYTES_MAX {
        messages.push(too_many_characters(SUBDOMAIN_BYTES_MAX));
    }
    if !text.as_bytes().split(|b| *b == b'.').all(label) {
        messages.push(SUBDOMAIN_UNDERSCORE.into());
    }
    messages
}

/// RFC 1123 subdomain behind `*.`.
pub fn wildcard_subdomain(text: &str) -> Messages {
    let mut messages = Messages::new();
    if text.len() > SUBDOMAIN_BYTES_MAX {
        messages.push(too_many_characters(SUBDOMAIN_BYTES_MAX));
    }
    if !text.strip_prefix("*.").is_some_and(is_subdomain) {
        messages.push(WILDCARD.into());
    }
    messages
}

/// Checks the name of another object that a body states.
///
/// # Errors
/// 400 if no path can contain the name.
pub fn check_parameter(name: &str) -> ApiResult<()> {
    if name.is_empty() {
        return Err(ApiError::bad_request("Name parameter required."));
    }
    let wrong = path_segment(name);
    if wrong.is_empty() {
        return Ok(());
    }
    Err(ApiError::bad_request(format!("Name parameter invalid: {}: {}", quote(name), wrong.join(";"))))
}

/// Anything that can be a segment of a path.
pub fn path_segment(text: &str) -> Messages {
    match text {
        "." | ".." => vec![format!("may not be '{text}'").into()],
        _ => path_segment_prefix(text),
    }
}

/// Anything that can start a segment of a path.
pub fn path_segment_prefix(text: &str) -> Messages {
    let mut messages = Messages::new();
    if text.contains('/') {
        messages.push("may not contain '/'".into());
    }
    if text.contains('%') {
        messages.push("may not contain '%'".into());
    }
    messages
}

/// Checks the name of an object that a plugin looks up. The error says why no request can ask for the object, in the
/// words of the reference's client.
pub fn check_resource_name(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("resource name may not be empty".into());
    }
    let messages = path_segment(name);
    if messages.is_empty() {
        return Ok(());
    }
    Err(format!("invalid resource name {}: [{}]", quote(name), messages.join(" ")))
}

/// Name of a port (RFC 6335).
pub fn port_name(text: &str) -> Messages {
    let mut messages = Messages::new();
    if text.len() > PORT_NAME_BYTES_MAX {
        messages.push(too_many_characters(PORT_NAME_BYTES_MAX));
    }
    let bytes = text.as_bytes();
    let allowed = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-';
    if bytes.is_empty() || !bytes.iter().all(allowed) {
        messages.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".into());
    }
    if !bytes.iter().any(u8::is_ascii_lowercase) {
        messages.push("must contain at least one letter (a-z)".into());
    }
    if text.contains("--") {
        messages.push("must not contain consecutive hyphens".into());
    }
    if text.starts_with('-') || text.ends_with('-') {
        messages.push("must not begin or end with a hyphen".into());
    }
    messages
}

/// Number of a port.
pub fn port_number(port: i64) -> Messages {
    if (1..=65535).contains(&port) { Messages::new() } else { vec![between(1, 65535)] }
}

/// A C identifier.
pub fn c_identifier(text: &str) -> Messages {
    let bytes = text.as_bytes();
    let word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    let holds = !bytes.is_empty() && !bytes[0].is_ascii_digit() && bytes.iter().all(word);
    if holds { Messages::new() } else { vec![C_IDENTIFIER.into()] }
}

/// Key in the data of a ConfigMap or Secret.
pub fn config_map_key(text: &str) -> Messages {
    let mut messages = Messages::new();
    if text.len() > SUBDOMAIN_BYTES_MAX {
        messages.push(too_many_characters(SUBDOMAIN_BYTES_MAX));
    }
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    if text.is_empty() || !text.bytes().all(allowed) {
        messages.push(CONFIG_KEY.into());
    }
    directory(text, &mut messages);
    messages
}

fn directory(text: &str, messages: &mut Messages) {
    match text {
        "." => messages.push("must not be '.'".into()),
        ".." => messages.push("must not be '..'".into()),
        _ if text.starts_with("..") => messages.push("must not start with '..'".into()),
        _ => {}
    }
}

/// Name of an environment variable, as allowed since 1.34.
pub fn env_name(text: &str) -> Messages {
    let mut messages = Messages::new();
    if text.is_empty() {
        messages.push("environment variable name must be non-empty".into());
    }
    if !text.bytes().all(|b| (0x20..0x7f).contains(&b) && b != b'=') {
        messages.push(ENV_NAME.into());
    }
    messages
}

/// Name of an environment variable in the older, narrower form.
pub fn env_name_strict(text: &str) -> Messages {
    let mut messages = Messages::new();
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    if text.is_empty() || text.as_bytes()[0].is_ascii_digit() || !text.bytes().all(allowed) {
        messages.push(ENV_NAME_STRICT.into());
    }
    directory(text, &mut messages);
    messages
}

/// Digits and a percent sign.
pub fn percent(text: &str) -> Messages {
    let digits = text.strip_suffix('%').unwrap_or("");
    let holds = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    if holds { Messages::new() } else { vec![PERCENT.into()] }
}

/// Name of an HTTP header.
pub fn http_header_name(text: &str) -> Messages {
    let holds = !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if holds { Messages::new() } else { vec![HEADER_NAME.into()] }
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;

//! Formats of text that have a name in Kubernetes, and the messages about texts that do not have them.

const LABEL_BYTES: usize = 63;
const SUBDOMAIN_BYTES: usize = 253;

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
    start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
    '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const OLD_LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
    alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
    validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const LABEL_KEY: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
    alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \
    '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex \
    used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// Returns whether a text consists of `inner` and begins and ends with letters or digits.
fn is_word(text: &str, inner: impl Fn(u8) -> bool) -> bool {
    let ends = text.bytes().next().zip(text.bytes().last());
    ends.is_some_and(|(first, last)| first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric())
        && text.bytes().all(inner)
}

fn is_label(text: &str) -> bool {
    is_word(text, |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn is_label_key(text: &str) -> bool {
    is_word(text, |byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

fn faults(is_too_long: bool, most: usize, unit: &str, form: Option<&str>) -> Vec<String> {
    let length = is_too_long.then(|| format!("must be no more than {most} {unit}"));
    length.into_iter().chain(form.map(str::to_owned)).collect()
}

/// Checks an RFC 1123 label; returns the messages.
pub fn label(text: &str) -> Vec<String> {
    let form = match (is_label(text), is_subdomain(text)) {
        (true, _) => None,
        (false, true) => Some("must not contain dots"),
        (false, false) => Some(LABEL),
    };
    faults(text.len() > LABEL_BYTES, LABEL_BYTES, "characters", form)
}

/// Checks an RFC 1123 subdomain; returns the messages.
pub fn subdomain(text: &str) -> Vec<String> {
    let form = (!is_subdomain(text)).then_some(SUBDOMAIN);
    faults(text.len() > SUBDOMAIN_BYTES, SUBDOMAIN_BYTES, "characters", form)
}

/// Checks an RFC 1035 label; returns the messages.
pub fn old_label(text: &str) -> Vec<String> {
    let is_form = is_label(text) && text.starts_with(|sign: char| sign.is_ascii_lowercase());
    faults(text.len() > LABEL_BYTES, LABEL_BYTES, "characters", (!is_form).then_some(OLD_LABEL))
}

/// Returns the text as a prefix of a longer name: replaces a dash at its end, since more text will follow it.
pub fn without_dash(text: &str) -> String {
    match text.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => {
            let mut kept = rest.to_owned();
            kept.pop();
            kept + "a"
        }
        _ => text.to_owned(),
    }
}

/// Checks the key of a label, which may have a subdomain before it; returns the messages.
pub fn qualified_name(text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    let name = match text.split_once('/') {
        None => text,
        Some((_, name)) if name.contains('/') => {
            let example = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {LABEL_KEY} {example}")];
        }
        Some(("", name)) => {
            complaints.push("prefix part must be non-empty".to_owned());
            name
        }
        Some((prefix, name)) => {
            let form = (!is_subdomain(prefix)).then_some(SUBDOMAIN);
            let found = faults(prefix.len() > SUBDOMAIN_BYTES, SUBDOMAIN_BYTES, "bytes", form);
            complaints.extend(found.into_iter().map(|fault| format!("prefix part {fault}")));
            name
        }
    };
    if name.is_empty() {
        complaints.push("name part must be non-empty".to_owned());
    }
    let found = faults(name.len() > LABEL_BYTES, LABEL_BYTES, "bytes", (!is_label_key(name)).then_some(LABEL_KEY));
    complaints.extend(found.into_iter().map(|fault| format!("name part {fault}")));
    complaints
}

/// Checks the value of a label; returns the messages.
pub fn label_value(text: &str) -> Vec<String> {
    let is_form = text.is_empty() || is_label_key(text);
    faults(text.len() > LABEL_BYTES, LABEL_BYTES, "bytes", (!is_form).then_some(LABEL_VALUE))
}

/// Returns whether a text is 32 hexadecimal digits, with or without dashes between their groups.
pub fn is_uuid(text: &str) -> bool {
    let mut rest = text;
    for (place, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if place > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some((group, after)) = rest.split_at_checked(length) else { return false };
        if !group.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return false;
        }
        rest = after;
    }
    rest.is_empty()
}

/// Returns whether a text is base64 with padding; false if it is empty.
pub fn is_base64(text: &str) -> bool {
    let bare = text.trim_end_matches('=');
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    let padding = text.len() - bare.len();
    !text.is_empty() && text.len().is_multiple_of(4) && padding <= 2 && bare.bytes().all(is_sign)
}

/// Returns whether a text is a day of the calendar: `2024-02-29`.
pub fn is_date(text: &str) -> bool {
    let [_, _, _, _, b'-', _, _, b'-', _, _] = text.as_bytes() else { return false };
    let number = |part: Option<&str>| {
        part.filter(|part| part.bytes().all(|byte| byte.is_ascii_digit())).and_then(|part| part.parse::<u32>().ok())
    };
    let (Some(year), Some(month), Some(day)) = (number(text.get(..4)), number(text.get(5..7)), number(text.get(8..)))
    else {
        return false;
    };
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    (1..=days).contains(&day)
}

/// Returns whether a text is a date and a time with its zone, loosely by RFC 3339.
pub fn is_date_time(text: &str) -> bool {
    let text = text.to_lowercase();
    let mut parts = text.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    let Some((clock, zone)) = time.split_at_checked(8) else { return false };
    let bytes = clock.as_bytes();
    let are_digits = [0, 1, 3, 4, 6, 7].into_iter().all(|at| bytes[at].is_ascii_digit());
    let is_in_range = are_digits && &clock[..2] <= "23" && &clock[3..5] <= "59" && &clock[6..] <= "59";
    is_date(date) && is_in_range && bytes[2] == b':' && bytes[5] == b':' && is_zone(zone)
}

/// Returns whether a text is a zone, with or without a fraction of a second before it.
fn is_zone(text: &str) -> bool {
    let mut zone = text;
    if !text.starts_with(['z', '+', '-']) {
        let mut rest = text.chars();
        // The reference accepts any character as the point.
        rest.next();
        zone = rest.as_str().trim_start_matches(|sign: char| sign.is_ascii_digit());
        if zone.len() == rest.as_str().len() {
            return false;
        }
    }
    match zone.as_bytes() {
        b"z" => true,
        [b'+' | b'-', a, b, b':', c, d] => [a, b, c, d].into_iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_told_from_what_has_none() {
        assert!(label("my-label").is_empty() && subdomain("a.b").is_empty() && old_label("abc").is_empty());
        assert_eq!(label("a.b"), ["must not contain dots"]);
        assert!(!old_label("1a").is_empty() && !label("-a").is_empty() && !label("").is_empty());
        assert!(qualified_name("example.com/My_name").is_empty() && !qualified_name("a/b/c").is_empty());
        assert_eq!(qualified_name("/b"), ["prefix part must be non-empty"]);
        assert!(label(&without_dash("abc-")).is_empty() && label_value("").is_empty());
        assert!(is_uuid("123e4567e89b12d3a456426614174000") && is_uuid("123E4567-E89B-12D3-A456-426614174000"));
        assert!(!is_uuid("123e4567") && is_base64("aGVsbG8=") && !is_base64("aGVsbG8") && !is_base64(""));
        assert!(is_date("2024-02-29") && !is_date("2023-02-29") && !is_date("2021-1-1"));
        assert!(is_date_time("2021-01-01T00:00:00Z") && is_date_time("2021-01-01t00:00:00.5+01:00"));
        assert!(!is_date_time("2021-01-01 00:00:00Z") && !is_date_time("2021-01-01T00:00:00"));
    }
}

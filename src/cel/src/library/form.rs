//! Forms of text that schemas and expressions can demand by a name.

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
    fn texts_are_compared_with_forms() {
        assert!(is_uuid("123e4567e89b12d3a456426614174000") && is_uuid("123E4567-E89B-12D3-A456-426614174000"));
        assert!(!is_uuid("123e4567") && is_base64("aGVsbG8=") && !is_base64("aGVsbG8") && !is_base64(""));
        assert!(is_date("2024-02-29") && !is_date("2023-02-29") && !is_date("2021-1-1"));
        assert!(is_date_time("2021-01-01T00:00:00Z") && is_date_time("2021-01-01t00:00:00.5+01:00"));
        assert!(!is_date_time("2021-01-01 00:00:00Z") && !is_date_time("2021-01-01T00:00:00"));
        assert!(!is_date_time("2021-01-01T1é:00:00Z") && !is_date_time("2021-01-01T00:00:00é"));
    }
}

//! Formats for which a pattern is not enough.

/// Returns whether a text is an e-mail address, alone or in angle brackets behind a name.
pub fn is_email(text: &str) -> bool {
    let text = text.trim_matches([' ', '\t']);
    match text.strip_suffix('>').and_then(|rest| rest.split_once('<')) {
        Some((name, address)) => is_phrase(name) && is_address(address),
        None => is_address(text),
    }
}

/// Returns whether a text is a name before an address: words, or quoted text.
fn is_phrase(name: &str) -> bool {
    let name = name.trim_matches([' ', '\t']);
    is_quoted(name)
        || name.split([' ', '\t']).all(|word| word.is_empty() || word.chars().all(|c| is_atom(c) || c == '.'))
}

fn is_address(address: &str) -> bool {
    let Some((local, domain)) = address.rsplit_once('@') else { return false };
    let literal = domain.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let domain = match literal {
        Some(address) => address.strip_prefix("IPv6:").unwrap_or(address).parse::<std::net::IpAddr>().is_ok(),
        None => is_dot_atom(domain),
    };
    domain && (is_dot_atom(local) || is_quoted(local) && local.len() > 2)
}

fn is_dot_atom(text: &str) -> bool {
    text.split('.').all(|atom| !atom.is_empty() && atom.chars().all(is_atom))
}

fn is_atom(sign: char) -> bool {
    sign.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(sign) || !sign.is_ascii()
}

fn is_quoted(text: &str) -> bool {
    let Some(inner) = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else { return false };
    let mut signs = inner.chars();
    while let Some(sign) = signs.next() {
        let escaped = if sign == '\\' { signs.next() } else { Some('x') };
        if sign == '"' || escaped.is_none() || sign.is_control() && sign != '\t' {
            return false;
        }
    }
    true
}

/// Returns whether a text is a hardware address of 6, 8 or 20 bytes, in pairs or fours of hexadecimal digits.
pub fn is_mac(text: &str) -> bool {
    let parts = |separator: char, digits: usize| {
        let parts: Vec<&str> = text.split(separator).collect();
        let hex = |part: &&str| part.len() == digits && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        parts.iter().all(hex) && [6, 8, 20].contains(&(parts.len() * digits / 2))
    };
    parts(':', 2) || parts('-', 2) || parts('.', 4)
}

/// Returns whether a text is the number of a credit card. Characters between its digits are ignored.
pub fn is_credit_card(text: &str) -> bool {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_digit).map(|digit| digit - b'0').collect();
    let prefix = |length: usize| digits.iter().take(length).fold(0, |number, digit| number * 10 + u32::from(*digit));
    let issued = match digits.len() {
        13 => prefix(1) == 4,
        14 => (300..=305).contains(&prefix(3)) || matches!(prefix(2), 36 | 38),
        15 => matches!(prefix(2), 34 | 37) || matches!(prefix(4), 2131 | 1800),
        16 => {
            let four = prefix(4);
            prefix(1) == 4
                || (51..=55).contains(&prefix(2))
                || four == 6011
                || (6500..=6599).contains(&four)
                || prefix(2) == 35
        }
        _ => false,
    };
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(at, digit)| match u32::from(*digit) * (1 + at as u32 % 2) {
            twice @ 10.. => twice - 9,
            digit => digit,
        })
        .sum();
    issued && sum.is_multiple_of(10)
}

/// Returns the digits of an ISBN, without blanks and dashes.
fn book_number(text: &str) -> Vec<u8> {
    text.bytes().filter(|byte| !matches!(byte, b'\t' | b'\n' | 0xc | b'\r' | b' ' | b'-')).collect()
}

/// Returns whether a text is an ISBN of ten digits, the last of which may be an X.
pub fn is_isbn10(text: &str) -> bool {
    let signs = book_number(text);
    let value = |(at, sign): (usize, &u8)| match sign {
        b'0'..=b'9' => Some(u32::from(sign - b'0')),
        b'X' if at == 9 => Some(10),
        _ => None,
    };
    let digits: Option<Vec<u32>> = signs.iter().enumerate().map(value).collect();
    digits.is_some_and(|digits| {
        let sum: u32 = (1..).zip(&digits).map(|(weight, digit)| weight * digit).sum();
        digits.len() == 10 && sum.is_multiple_of(11)
    })
}

/// Returns whether a text is an ISBN of thirteen digits.
pub fn is_isbn13(text: &str) -> bool {
    let signs = book_number(text);
    let weights = [1, 3].into_iter().cycle();
    signs.len() == 13
        && signs.iter().all(u8::is_ascii_digit)
        && weights.zip(&signs).map(|(weight, sign)| weight * u32::from(sign - b'0')).sum::<u32>().is_multiple_of(10)
}

/// Returns the digits of a UUID that state its version and its variant. Returns `None` if the text is too short.
fn uuid_digits(text: &str) -> Option<(char, char)> {
    let mut digits = text.chars().filter(|c| *c != '-').skip(12);
    Some((digits.next()?, digits.nth(3)?))
}

/// Returns the version of a UUID. Returns `None` if the text is too short.
pub fn uuid_version(text: &str) -> Option<char> {
    uuid_digits(text).map(|(version, _)| version)
}

/// Returns whether a UUID has this version and the variant of RFC 4122.
pub fn is_random_uuid(text: &str, of: char) -> bool {
    uuid_digits(text).is_some_and(|(version, variant)| version == of && "89abAB".contains(variant))
}

/// Returns whether a text is a label in lower case.
pub fn is_short_name(text: &str) -> bool {
    let is_sign = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends = text.bytes().next().is_some_and(is_sign) && text.bytes().next_back().is_some_and(is_sign);
    ends && text.bytes().all(|byte| is_sign(byte) || byte == b'-')
}

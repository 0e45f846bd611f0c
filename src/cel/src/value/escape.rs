//! Names of properties in expressions: `a-b` becomes `a__dash__b`, `if` becomes `__if__`.

use std::borrow::Cow;

/// Reserved words, which cannot be names of variables, functions or fields.
pub(crate) const RESERVED: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// Replacements of characters that names of fields cannot have.
const SIGNS: [(&str, &str); 4] = [("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__")];

/// Returns the name of a property in expressions. `None` if expressions cannot name it.
pub fn escape(property: &str) -> Option<Cow<'_, str>> {
    if property.is_empty() || property.starts_with(|sign: char| sign.is_ascii_digit()) {
        return None;
    }
    if RESERVED.contains(&property) {
        return Some(format!("__{property}__").into());
    }
    let is_sign = |sign: char| sign.is_ascii_alphanumeric() || sign == '_';
    let has_signs = property.contains(['.', '-', '/']) || property.contains("__");
    if !has_signs {
        return property.chars().all(is_sign).then_some(property.into());
    }
    let mut escaped = String::with_capacity(property.len() + 16);
    let mut rest = property;
    while let Some(sign) = rest.chars().next() {
        match SIGNS.iter().find(|(sign, _)| rest.starts_with(sign)) {
            Some((sign, name)) => {
                escaped.push_str(name);
                rest = &rest[sign.len()..];
            }
            None if is_sign(sign) => {
                escaped.push(sign);
                rest = &rest[1..];
            }
            None => return None,
        }
    }
    Some(escaped.into())
}

/// Returns the property that expressions call by this name, or by this word of the language. `None` if no property has
/// the name.
pub(super) fn property(name: &str) -> Option<Cow<'_, str>> {
    if !name.contains("__") && !name.contains(['-', '.', '/']) {
        return Some(name.into());
    }
    let property = unescape(name).map_or(Cow::Borrowed(name), Cow::Owned);
    let is_named_so = escape(&property).as_deref().unwrap_or(&property) == name;
    is_named_so.then_some(property)
}

/// Returns the name of the property that expressions call by this name. `None` if both names are the same.
pub fn unescape(name: &str) -> Option<String> {
    let word = name.strip_prefix("__").and_then(|rest| rest.strip_suffix("__"));
    if let Some(word) = word.filter(|word| RESERVED.contains(word)) {
        return Some(word.to_owned());
    }
    let (mut unescaped, mut rest) = (String::with_capacity(name.len()), name);
    while let Some(first) = rest.chars().next() {
        let (length, sign) = match SIGNS.iter().find(|(_, escaped)| rest.starts_with(escaped)) {
            Some((sign, escaped)) => (escaped.len(), *sign),
            None => (first.len_utf8(), &rest[..first.len_utf8()]),
        };
        unescaped.push_str(sign);
        rest = &rest[length..];
    }
    (unescaped != name).then_some(unescaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_names_are_read_back() {
        for property in ["a-b.c/d", "a__b", "if", "a.b"] {
            assert_eq!(unescape(&escape(property).unwrap()).as_deref(), Some(property));
        }
        assert_eq!((unescape("a_b"), unescape("__x__")), (None, None));
    }

    #[test]
    fn a_property_is_found_by_its_escaped_name_and_words_also_as_they_are() {
        for (name, of) in [
            ("a", Some("a")),
            ("a__dash__b", Some("a-b")),
            ("a-b", None),
            ("a b", Some("a b")),
            ("a-é", Some("a-é")),
            ("if", Some("if")),
            ("__if__", Some("if")),
            ("__a__", None),
            ("__underscores__a", Some("__a")),
        ] {
            assert_eq!(property(name).as_deref(), of, "{name}");
        }
    }

    #[test]
    fn properties_are_escaped_unless_they_are_names() {
        for (property, name) in [
            ("a", Some("a")),
            ("a_b1", Some("a_b1")),
            ("a-b.c/d", Some("a__dash__b__dot__c__slash__d")),
            ("a__b", Some("a__underscores__b")),
            ("___", Some("__underscores___")),
            ("if", Some("__if__")),
            ("namespace", Some("__namespace__")),
            ("1a", None),
            ("", None),
            ("a b", None),
            ("é", None),
            ("a-é", None),
        ] {
            assert_eq!(escape(property).as_deref(), name, "{property}");
        }
    }
}

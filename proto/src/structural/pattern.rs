//! Patterns that strings must match, in the syntax of Go (RE2), which differs in details from that of the `regex`
//! crate.

use std::sync::{Arc, OnceLock};

use regex::{Regex, RegexBuilder};

use crate::value::Str;

/// Most bytes that a compiled pattern may take.
const COMPILED_BYTES_MAX: usize = 32 << 20;

/// A pattern that is compiled when it is first asked for.
#[derive(Debug, Clone)]
pub struct Pattern {
    text: Str,
    compiled: Arc<OnceLock<Option<Regex>>>,
}

impl Pattern {
    /// A pattern in Go's syntax.
    pub fn new(text: &str) -> Self {
        Self { text: text.into(), compiled: Arc::default() }
    }

    /// The pattern as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the pattern is one.
    pub fn is_valid(&self) -> bool {
        self.compiled().is_some()
    }

    /// Whether a part of the text matches. Everything matches a pattern that is none: definitions with such patterns
    /// are refused, so that this one was accepted by other rules than ours.
    pub fn matches(&self, text: &str) -> bool {
        self.compiled().is_none_or(|regex| regex.is_match(text))
    }

    fn compiled(&self) -> Option<&Regex> {
        let compile =
            || RegexBuilder::new(&translate(&self.text)).octal(true).size_limit(COMPILED_BYTES_MAX).build().ok();
        self.compiled.get_or_init(compile).as_ref()
    }
}

/// Spells a pattern of Go for the `regex` crate: classes that Go knows in ASCII only, literal text between `\Q` and
/// `\E`, and signs that mean themselves in Go.
fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern;
    let mut class: Option<usize> = None;
    while let Some(sign) = rest.chars().next() {
        let (taken, spelled) = match (sign, class) {
            ('\\', _) => escape(rest, class.is_some()),
            ('[', None) => {
                class = Some(0);
                open_class(rest)
            }
            ('[', Some(_)) => posix_class(rest),
            (']', Some(_)) => {
                class = None;
                (1, None)
            }
            ('&' | '~' | '-', Some(_)) if rest[1..].starts_with(sign) => (1, Some(format!("\\{sign}"))),
            ('{', None) => (1, (!is_repetition(rest)).then(|| "\\{".to_owned())),
            _ => (sign.len_utf8(), None),
        };
        match spelled {
            Some(spelled) => out.push_str(&spelled),
            None => out.push_str(&rest[..taken]),
        }
        rest = &rest[taken..];
    }
    out
}

/// How many bytes are taken, and what is written for them; `None` for the same.
type Step = (usize, Option<String>);

/// The beginning of a class, with a `]` that belongs to it.
fn open_class(rest: &str) -> Step {
    let inner = rest[1..].strip_prefix('^').unwrap_or(&rest[1..]);
    let open = rest.len() - inner.len();
    if inner.starts_with(']') { (open + 1, Some(format!("{}\\]", &rest[..open]))) } else { (open, None) }
}

/// A `[` inside a class: one of the named classes, or itself.
fn posix_class(rest: &str) -> Step {
    match rest.strip_prefix("[:").and_then(|inner| inner.find(":]")) {
        Some(end) => (end + 4, None),
        None => (1, Some("\\[".to_owned())),
    }
}

fn escape(rest: &str, in_class: bool) -> Step {
    let Some(sign) = rest[1..].chars().next() else { return (1, None) };
    let spelled = match sign {
        'd' => "[0-9]",
        'D' => "[^0-9]",
        's' => r"[\t\n\f\r ]",
        'S' => r"[^\t\n\f\r ]",
        'w' => "[0-9A-Za-z_]",
        'W' => "[^0-9A-Za-z_]",
        'b' if !in_class => r"(?-u:\b)",
        'B' if !in_class => r"(?:\B)",
        '<' => "<",
        '>' => ">",
        'Q' => return quoted(rest),
        // A class of Unicode or a code point in braces.
        'p' | 'P' | 'x' if rest[2..].starts_with('{') => {
            return (rest.find('}').map_or(rest.len(), |end| end + 1), None);
        }
        _ => return (1 + sign.len_utf8(), None),
    };
    (2, Some(spelled.to_owned()))
}

/// Literal text up to `\E` or the end.
fn quoted(rest: &str) -> Step {
    let text = &rest[2..];
    let (text, taken) = match text.find("\\E") {
        Some(end) => (&text[..end], end + 4),
        None => (text, rest.len()),
    };
    (taken, Some(regex::escape(text)))
}

/// Whether a `{` begins a count, as in `{2}`, `{2,}`, `{2,3}`.
fn is_repetition(rest: &str) -> bool {
    let Some((inner, _)) = rest[1..].split_once('}') else { return false };
    let (least, most) = inner.split_once(',').unwrap_or((inner, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    !least.is_empty() && digits(least) && digits(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_go() {
        for (pattern, text, expected) in [
            ("^[a-z]+$", "abc", true),
            ("^[a-z]+$", "ABC", false),
            (r"^\d{2,3}$", "12", true),
            (r"^\d+$", "٣", false),
            (r"^\w+$", "é", false),
            (r"^[\w.-]+$", "a-b.c_d", true),
            (r"^[^\d]+$", "abc", true),
            (r"^\D+$", "٣", true),
            (r"\bfoo\b", "a foo b", true),
            ("^.{3}$", "éèê", true),
            ("^{foo}$", "{foo}", true),
            ("^a{,2}$", "a{,2}", true),
            ("^[[]$", "[", true),
            ("^[]a]+$", "]a", true),
            ("^[^]a]+$", "b", true),
            ("^[[:alpha:]_]+$", "ab_", true),
            ("^[a&&b]+$", "a&b", true),
            (r"^\Qa.b\E$", "a.b", true),
            (r"^\Qa.b\E$", "axb", false),
            (r"^\<a\>$", "<a>", true),
            (r"^a\/b$", "a/b", true),
            ("(?i)^abc$", "ABC", true),
            ("abc", "xxabcxx", true),
            ("^a$", "a\n", false),
            (r"^[a-zA-Z0-9+\-.]*$", "a-b", true),
            (r"^[+-]?[0-9]+$", "-5", true),
            (r"^\p{L}+$", "é", true),
            (r"^\p{Lu}{2}$", "ÉÈ", true),
            (r"^[\P{L}_]+$", "é", false),
            (r"^\x{e9}{2}$", "éé", true),
            (r"^\x41$", "A", true),
        ] {
            let compiled = Pattern::new(pattern);
            assert!(compiled.is_valid(), "{pattern}: {}", translate(pattern));
            assert_eq!(compiled.matches(text), expected, "{pattern} {text}: {}", translate(pattern));
        }
        assert!(!Pattern::new("(").is_valid());
        assert!(Pattern::new("(").matches("anything"));
    }
}

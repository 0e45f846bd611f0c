//! Parts of a text that are kept as they are written, repeated keys included.

use super::pass::Pass;
use super::scan;

/// Returns the text of the member `name` in each object of a list, without blanks and with the escapes that Go writes.
/// `None` stands for an item without that member. If an item repeats it, the last one counts. Returns no texts when
/// `text`, which was parsed before, is not a list of objects.
pub fn members_of_items(text: &str, name: &str) -> Vec<Option<String>> {
    items(text, name).unwrap_or_default()
}

fn items(text: &str, name: &str) -> Option<Vec<Option<String>>> {
    let mut pass = Pass { bytes: text.as_bytes(), at: 0 };
    let mut found = Vec::new();
    if pass.peek()? != b'[' || pass.is_empty(b']')? {
        return Some(found);
    }
    loop {
        found.push(match pass.peek()? {
            b'{' => member(&mut pass, text, name)?,
            _ => {
                pass.value()?;
                None
            }
        });
        if pass.ends(b']')? {
            return Some(found);
        }
    }
}

/// Passes an object, and returns the text of one of its members.
fn member(pass: &mut Pass<'_>, text: &str, name: &str) -> Option<Option<String>> {
    let mut found = None;
    if pass.is_empty(b'}')? {
        return Some(found);
    }
    loop {
        let is_it = pass.written_key()?.is(name);
        pass.peek()?;
        let from = pass.at;
        pass.at = scan::value_end(pass.bytes, from)?;
        if is_it {
            found = Some(compact(text.get(from..pass.at)?));
        }
        if pass.ends(b'}')? {
            return Some(found);
        }
    }
}

fn compact(text: &str) -> String {
    let (mut out, mut quoted, mut escaped) = (String::with_capacity(text.len()), false, false);
    for c in text.chars() {
        match c {
            ' ' | '\n' | '\r' | '\t' if !quoted => continue,
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            c => out.push(c),
        }
        quoted ^= c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_members_are_kept() {
        let text =
            r#" [ {"op":"add", "value" : {"a": "\" <", "a":[ 1.0, {} ]}} ,{}, {"value":1,"v\u0061lue":"x y"},3] "#;
        let texts = members_of_items(text, "value");
        let expected = [Some(r#"{"a":"\" \u003c","a":[1.0,{}]}"#), None, Some(r#""x y""#), None];
        assert_eq!(texts.iter().map(Option::as_deref).collect::<Vec<_>>(), expected);
        for other in ["", "{}", "[]", "[{", "[{\"value\":", "[1"] {
            assert!(members_of_items(other, "value").iter().flatten().next().is_none(), "{other}");
        }
    }
}

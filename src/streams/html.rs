//! Rewrites links in HTML pages, so that they lead through the proxy from which the page came.

/// The attributes whose values are links, by element. Sorted.
const LINKS: &[(&str, &[&str])] = &[
    ("a", &["href"]),
    ("applet", &["codebase"]),
    ("area", &["href"]),
    ("audio", &["src"]),
    ("base", &["href"]),
    ("blockquote", &["cite"]),
    ("body", &["background"]),
    ("button", &["formaction"]),
    ("command", &["icon"]),
    ("del", &["cite"]),
    ("embed", &["src"]),
    ("form", &["action"]),
    ("frame", &["longdesc", "src"]),
    ("head", &["profile"]),
    ("html", &["manifest"]),
    ("iframe", &["longdesc", "src"]),
    ("img", &["longdesc", "src", "usemap"]),
    ("input", &["src", "usemap", "formaction"]),
    ("ins", &["cite"]),
    ("link", &["href"]),
    ("object", &["classid", "codebase", "data", "usemap"]),
    ("q", &["cite"]),
    ("script", &["src"]),
    ("source", &["src"]),
    ("video", &["poster", "src"]),
];

/// Elements whose content is text up to their end tag.
const RAW: [&str; 9] = ["iframe", "noembed", "noframes", "plaintext", "script", "style", "textarea", "title", "xmp"];

/// Character references that occur in links, and their characters.
const ENTITIES: [(&str, &str); 6] =
    [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#34;", "\""), ("&#39;", "'"), ("&amp;", "&")];

/// Rewrites the links of a page by `link`, which returns `None` for a link that stays. Tags of elements that may have
/// links are written in one form, other bytes stay.
pub fn rewrite(page: &[u8], link: impl Fn(&str) -> Option<String>) -> Vec<u8> {
    let mut out = Vec::with_capacity(page.len() + page.len() / 16);
    let mut rest = page;
    while let Some(at) = memchr::memchr(b'<', rest) {
        let (before, from) = rest.split_at(at);
        out.extend_from_slice(before);
        let end = match from.get(1) {
            Some(b'!') if from.starts_with(b"<!--") => memchr::memmem::find(&from[4..], b"-->").map(|end| end + 7),
            Some(b'!' | b'/' | b'?') => memchr::memchr(b'>', from).map(|end| end + 1),
            Some(letter) if letter.is_ascii_alphabetic() => match Tag::read(from) {
                Some(tag) => {
                    let name = String::from_utf8_lossy(tag.name).to_ascii_lowercase();
                    match LINKS.binary_search_by(|(element, _)| (*element).cmp(&name)) {
                        Ok(at) => tag.write(&name, LINKS[at].1, &link, &mut out),
                        Err(_) => out.extend_from_slice(&from[..tag.length]),
                    }
                    rest = &from[tag.length..];
                    if RAW.contains(&&*name) {
                        let content = end_of_raw(rest, &name);
                        out.extend_from_slice(&rest[..content]);
                        rest = &rest[content..];
                    }
                    continue;
                }
                None => None,
            },
            _ => Some(1),
        };
        let end = end.unwrap_or(from.len());
        out.extend_from_slice(&from[..end]);
        rest = &from[end..];
    }
    out.extend_from_slice(rest);
    out
}

/// Returns the end of the content of a raw text element.
fn end_of_raw(content: &[u8], name: &str) -> usize {
    let mut from = 0;
    while let Some(at) = memchr::memmem::find(&content[from..], b"</") {
        let begin = from + at + 2;
        let found = content.get(begin..begin + name.len());
        if found.is_some_and(|found| found.eq_ignore_ascii_case(name.as_bytes())) {
            return begin - 2;
        }
        from = begin;
    }
    content.len()
}

/// The start tag of an element.
struct Tag<'p> {
    name: &'p [u8],
    attributes: Vec<(&'p [u8], &'p [u8])>,
    closes_itself: bool,
    length: usize,
}

impl<'p> Tag<'p> {
    /// Reads a tag. `None` when the page ends within it.
    fn read(page: &'p [u8]) -> Option<Self> {
        let until = |from: usize, stop: fn(u8) -> bool| {
            page.get(from..)?.iter().position(|byte| stop(*byte)).map(|length| from + length)
        };
        let mut at = until(1, |byte| byte.is_ascii_whitespace() || byte == b'/' || byte == b'>')?;
        let name = &page[1..at];
        let (mut attributes, mut closes_itself) = (Vec::new(), false);
        loop {
            at = until(at, |byte| !byte.is_ascii_whitespace())?;
            match page[at] {
                b'>' => return Some(Self { name, attributes, closes_itself, length: at + 1 }),
                b'/' => {
                    closes_itself = page.get(at + 1) == Some(&b'>');
                    at += 1;
                    continue;
                }
                _ => {}
            }
            let ends_key = |byte: u8| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>' | b'=');
            // A `=` at the beginning is part of the name.
            let key_end = until(at + 1, ends_key)?;
            let key = &page[at..key_end];
            at = until(key_end, |byte| !byte.is_ascii_whitespace())?;
            if page[at] != b'=' {
                attributes.push((key, &page[at..at]));
                continue;
            }
            at = until(at + 1, |byte| !byte.is_ascii_whitespace())?;
            let (begin, end, next) = match page[at] {
                b'"' => (at + 1, until(at + 1, |byte| byte == b'"')?, 1),
                b'\'' => (at + 1, until(at + 1, |byte| byte == b'\'')?, 1),
                _ => (at, until(at, |byte| byte.is_ascii_whitespace() || byte == b'>')?, 0),
            };
            attributes.push((key, &page[begin..end]));
            at = end + next;
        }
    }

    fn write(&self, name: &str, links: &[&str], link: impl Fn(&str) -> Option<String>, out: &mut Vec<u8>) {
        out.push(b'<');
        out.extend_from_slice(name.as_bytes());
        for (key, value) in &self.attributes {
            let key = String::from_utf8_lossy(key).to_ascii_lowercase();
            out.extend_from_slice(format!(" {key}=\"").as_bytes());
            let is_link = links.contains(&&*key);
            match std::str::from_utf8(value).ok().filter(|_| is_link).and_then(|text| link(&unescape(text))) {
                Some(changed) => out.extend_from_slice(escape(&changed).as_bytes()),
                None => value.iter().for_each(|byte| match byte {
                    b'"' => out.extend_from_slice(b"&#34;"),
                    b'\'' => out.extend_from_slice(b"&#39;"),
                    byte => out.push(*byte),
                }),
            }
            out.push(b'"');
        }
        out.extend_from_slice(if self.closes_itself { b"/>" } else { b">" });
    }
}

fn unescape(text: &str) -> String {
    // `&` is decoded last, because decoding it first could create further escapes.
    ENTITIES.iter().fold(text.to_owned(), |text, (name, sign)| text.replace(name, sign))
}

fn escape(text: &str) -> String {
    let signs = [('&', "&amp;"), ('\'', "&#39;"), ('<', "&lt;"), ('>', "&gt;"), ('"', "&#34;")];
    signs.iter().fold(text.to_owned(), |text, (sign, name)| text.replace(*sign, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(page: &str) -> String {
        let link = |link: &str| link.starts_with('/').then(|| format!("/p{link}"));
        String::from_utf8(rewrite(page.as_bytes(), link)).unwrap()
    }

    #[test]
    fn only_links_are_changed() {
        assert_eq!(rewritten("x <A HREF='/a?b&amp;c' Id=d>y</A>"), "x <a href=\"/p/a?b&amp;c\" id=\"d\">y</A>");
        assert_eq!(rewritten("<img src=/i><br/><p title=\"/x\">"), "<img src=\"/p/i\"><br/><p title=\"/x\">");
        assert_eq!(rewritten("<link href=\"rel\" />"), "<link href=\"rel\"/>");
        assert_eq!(rewritten("<input disabled src=\"/s\">"), "<input disabled=\"\" src=\"/p/s\">");
    }

    #[test]
    fn texts_that_only_look_like_links_are_left_alone() {
        for same in [
            "<!-- <a href=\"/a\"> -->",
            "<style><a href=\"/a\"></style>",
            "1 < 2 and <",
            "<a href=\"/unfinished",
            "<!DOCTYPE html><?xml?>",
            "<title><a href=\"/a\"></Title>",
        ] {
            assert_eq!(rewritten(same), same);
        }
        assert_eq!(
            rewritten("<script>'<a href=\"/a\">'</script><a href=/b>"),
            "<script>'<a href=\"/a\">'</script><a href=\"/p/b\">"
        );
    }
}

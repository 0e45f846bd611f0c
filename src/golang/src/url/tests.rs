//! The results of Go itself for URLs: their parts, and whether a request may have them.

use super::*;
use crate::strconv::quote;

fn parts(url: &Url) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let user = url.user.as_ref().map_or("-".to_owned(), UserInfo::text);
    [
        url.scheme.clone(),
        url.opaque.clone(),
        user,
        quote(&text(&url.host)),
        text(url.hostname()),
        text(url.port()),
        url.escaped_path(),
        url.raw_query.clone(),
        quote(&text(&url.fragment)),
        url.to_string(),
    ]
    .join("|")
}

#[test]
fn addresses_are_read_as_in_go() {
    let mut complaints = Vec::new();
    for line in include_str!("expected.txt").lines() {
        let (text, expected) = line.split_once('\t').unwrap();
        let lenient = Url::parse(text).map_or_else(|error| format!("!{error}"), |url| parts(&url));
        let strict = Url::parse_request(text).map_or_else(|error| format!("!{error}"), |_| "ok".to_owned());
        let actual = format!("{lenient}\t{strict}");

        if actual != expected {
            complaints.push(format!("{text}\n  Go:   {expected}\n  here: {actual}"));
        }
    }
    assert!(complaints.is_empty(), "{} differ:\n{}", complaints.len(), complaints.join("\n"));
}

#[test]
fn queries_are_read_in_their_order() {
    let query = |text: &str| {
        let pairs = Url::parse(text).unwrap().query().into_iter();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        pairs.map(|(key, value)| format!("{}={}", text(key), text(value))).collect::<Vec<_>>()
    };
    assert_eq!(query("/?b=1&a=%20+x&b=2&&c&d=e=f"), ["b=1", "a=  x", "b=2", "c=", "d=e=f"]);
    assert_eq!(query("/?a=%zz&b;c&d=1"), ["d=1"]);
}

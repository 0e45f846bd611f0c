//! The results of Go itself for patterns, pattern by pattern.
//!
//! `expected.txt` begins with texts (`= text`). Each further line is a pattern, and after a tab either Go's error
//! (`!error`) or the texts with a match: the text's number, and where the first match begins and ends.

use super::*;

fn decoded(text: &str) -> String {
    text.replace("⏎2028", "\u{2028}").replace('⏎', "\n").replace('⇥', "\t").replace('⇩', "\u{b}")
}

fn answer(pattern: &str, texts: &[String]) -> String {
    let found = match Regexp::new(pattern) {
        Ok(found) => found,
        Err(error) => return format!("!{error}"),
    };
    let mut answer = String::new();
    for (index, text) in texts.iter().enumerate() {
        assert_eq!(found.is_match(text), found.find(text).is_some(), "{pattern} {text}");
        if let Some(found) = found.compiled.find(text) {
            answer.push_str(&format!("{index}:{}-{} ", found.start(), found.end()));
        }
    }
    answer
}

#[test]
fn patterns_match_as_in_go() {
    let mut texts = Vec::new();
    let mut complaints = Vec::new();
    let mut patterns = 0;
    for line in include_str!("expected.txt").lines() {
        if let Some(text) = line.strip_prefix("= ") {
            texts.push(decoded(text));
            continue;
        }
        let (pattern, expected) = line.split_once('\t').unwrap();
        patterns += 1;
        let (actual, expected) = (answer(pattern, &texts), decoded(expected));
        if actual != expected {
            complaints.push(format!("{pattern}\n  Go:   {expected}\n  here: {actual}"));
        }
    }
    assert!(patterns > 700);
    assert!(complaints.is_empty(), "{} of {patterns} differ:\n{}", complaints.len(), complaints.join("\n"));
}

#[test]
fn depth_and_size_are_bounded() {
    let nested = |levels: usize, open: &str, close: &str| open.repeat(levels) + "a" + &close.repeat(levels);
    assert!(Regexp::new(&nested(999, "(", ")")).unwrap().is_match("a"));
    assert_eq!(Regexp::new(&nested(1000, "(", ")")).unwrap_err().fault(), Fault::Depth);
    assert!(Regexp::new(&nested(999, "(?:", ")*")).unwrap().is_match(""));
    assert_eq!(Regexp::new(&nested(1000, "(?:", ")*")).unwrap_err().fault(), Fault::Depth);
    assert!(Regexp::new(&nested(100_000, "(?:", ")")).unwrap().is_match("a"));
    assert_eq!(Regexp::new(&nested(100_000, "(", "")).unwrap_err().fault(), Fault::OpenGroup);
    let counted = "(a{1000}b{1000})".repeat(2_000);
    assert_eq!(Regexp::new(&counted).unwrap_err().fault(), Fault::Large);
    assert!(Regexp::new(r"^\pL{250}$").unwrap().is_match(&"é".repeat(250)));
}

#[test]
fn all_matches_are_found() {
    let all = |pattern: &str, text| Regexp::new(pattern).unwrap().find_all(text).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(all("a*", "baac"), ["", "aa", ""]);
    assert_eq!(all(r"\d+", "1 22 333"), ["1", "22", "333"]);
    assert!(all("x", "abc").is_empty());
}

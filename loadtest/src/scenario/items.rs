//! Splits a list into its items as they arrive, so that a long list is never in memory as a whole.

use memchr::{memchr2, memmem};

use super::mark::metadata_in;
use crate::limits;

/// The text before the items of a list.
const ITEMS: &[u8] = br#""items":["#;

/// The largest size of a list's text before its items, and after them, in bytes.
const HEAD_BYTES_MAX: usize = 1 << 16;

/// Splits the text of a list.
#[derive(Default)]
pub struct Items {
    /// The text before the items.
    head: Vec<u8>,
    is_past_head: bool,
    /// The item that is not complete yet.
    item: Vec<u8>,
    depth: usize,
    is_in_string: bool,
    is_escaped: bool,
    is_over: bool,
    /// The text after the items, where lists of custom resources have their metadata.
    tail: Vec<u8>,
}

impl Items {
    /// Processes the next bytes, and calls `each` with every complete item. Returns whether the text may be a list.
    pub fn push(&mut self, data: &[u8], mut each: impl FnMut(&[u8])) -> bool {
        if self.is_past_head {
            return self.split(data, &mut each);
        }
        self.head.extend_from_slice(data);
        let Some(at) = memmem::find(&self.head, ITEMS) else { return self.head.len() <= HEAD_BYTES_MAX };
        self.is_past_head = true;
        let rest = self.head.split_off(at + ITEMS.len());
        self.split(&rest, &mut each)
    }

    fn split(&mut self, data: &[u8], each: &mut impl FnMut(&[u8])) -> bool {
        let mut begun = if self.depth > 0 { Some(0) } else { None };
        let mut at = 0;
        while at < data.len() && !self.is_over {
            if self.is_in_string {
                at = self.string(data, at);
                continue;
            }
            match data[at] {
                b'"' => self.is_in_string = true,
                b'{' | b'[' => {
                    if self.depth == 0 {
                        begun = Some(at);
                    }
                    self.depth += 1;
                }
                b']' if self.depth == 0 => self.is_over = true,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if let (0, Some(start)) = (self.depth, begun) {
                        self.hand_on(&data[start..=at], each);
                        begun = None;
                    }
                }
                _ => {}
            }
            at += 1;
        }
        if let Some(start) = begun {
            self.item.extend_from_slice(&data[start..]);
        }
        if self.is_over {
            self.tail.extend_from_slice(&data[at..]);
        }
        self.item.len() <= limits::LIST_ITEM_BYTES_MAX && self.tail.len() <= HEAD_BYTES_MAX
    }

    fn hand_on(&mut self, end: &[u8], each: &mut impl FnMut(&[u8])) {
        if self.item.is_empty() {
            return each(end);
        }
        self.item.extend_from_slice(end);
        each(&self.item);
        self.item.clear();
    }

    /// Skips a string from a position within it. Returns where to continue.
    fn string(&mut self, data: &[u8], at: usize) -> usize {
        if std::mem::take(&mut self.is_escaped) {
            return at + 1;
        }
        let Some(found) = memchr2(b'"', b'\\', &data[at..]) else { return data.len() };
        match data[at + found] {
            b'\\' => self.is_escaped = true,
            _ => self.is_in_string = false,
        }
        at + found + 1
    }

    /// Returns the revision of the list and the token of the next page. `None` if no metadata has arrived.
    pub fn metadata(&self) -> Option<(u64, String)> {
        metadata_in(&self.head).or_else(|| metadata_in(&self.tail))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_the_same_however_a_list_arrives() {
        let items = [r#"{"a":"}]\\\"","b":[1,{"c":[]}]}"#, "{}", r#"{"metadata":{"name":"\\"}}"#];
        let text = format!(r#"{{"kind":"L","metadata":{{"resourceVersion":"7"}},"items":[{}]}}"#, items.join(","));
        for step in 1..text.len() {
            let (mut split, mut found) = (Items::default(), Vec::new());
            for piece in text.as_bytes().chunks(step) {
                assert!(split.push(piece, |item| found.push(String::from_utf8(item.to_vec()).unwrap())));
            }
            assert_eq!(found, items, "in steps of {step}");
            assert_eq!(split.metadata(), Some((7, String::new())));
        }
    }

    #[test]
    fn lists_of_custom_resources_have_their_metadata_at_the_end() {
        let text = br#"{"apiVersion":"a/v1","items":[{"metadata":{"resourceVersion":"3"}}],"kind":"L","metadata":{"continue":"x","resourceVersion":"7"}}"#;
        for step in 1..text.len() {
            let (mut split, mut count) = (Items::default(), 0);
            for piece in text.chunks(step) {
                assert!(split.push(piece, |_| count += 1));
            }
            assert_eq!((split.metadata(), count), (Some((7, "x".to_owned())), 1), "in steps of {step}");
        }
        let mut cut = Items::default();
        cut.push(&text[..text.len() - 20], |_| {});
        assert_eq!(cut.metadata(), None);
    }

    #[test]
    fn text_that_is_no_list_is_not_kept() {
        let mut split = Items::default();
        assert!(!split.push(&vec![b'x'; HEAD_BYTES_MAX + 1], |_| panic!("no item")));
        let mut empty = Items::default();
        assert!(empty.push(br#"{"metadata":{"resourceVersion":"9"},"items":null}"#, |_| panic!("no item")));
        assert_eq!(empty.metadata(), Some((9, String::new())));
    }
}

//! Lazy trees: text whose objects become maps only when they are read, and which is kept until they are changed.

use bytes::Bytes;

use super::{Map, Str, Value};
use crate::json;
use crate::json::pass::Pass;
use crate::json::scan;
use crate::limits::READ_ON_USE_DEPTH_MAX;

/// The text of one object. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ObjectText {
    /// UTF-8, from brace to brace.
    bytes: Bytes,
    /// The number of objects that enclose it.
    depth: u8,
}

/// Returns the tree of an object whose text [`crate::json::write`] has made. Members of its members are read on first
/// use, and unchanged parts are written as they are in the text. `None` when that is not possible: then the text must
/// be parsed.
pub fn read(text: &Bytes) -> Option<Value> {
    let object = ObjectText { bytes: text.slice(..text.trim_ascii_end().len()), depth: 0 };
    (object.bytes.starts_with(b"{") && !object.bytes.starts_with(b"{}")).then_some(())?;
    let members = object.try_members()?;
    Some(Value::Object(Map::of_text_with(object, members)))
}

/// Returns the map of an object with members whose text has the form that [`crate::json::write`] gives it. The text is
/// not read until a member is asked for.
pub fn of_written(text: Vec<u8>) -> Map {
    Map::of_text(ObjectText { bytes: text.into(), depth: 0 })
}

impl ObjectText {
    /// Returns the text of an object: the text that it was made from, or else a newly written one. `None` for other
    /// values.
    pub fn of(value: &Value) -> Option<Self> {
        let map = value.as_object()?;
        Some(map.text().cloned().unwrap_or_else(|| Self { bytes: json::to_vec(value).into(), depth: 0 }))
    }

    /// Returns the text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the object as a tree that does not refer to the text.
    pub fn parse(&self) -> Value {
        json::parse(&self.bytes).unwrap_or_default() // the text was read or written before
    }

    /// Returns the members of the object; those that are objects refer to the same text. Returns no members when the
    /// text is not JSON, which does not happen for a text that this program wrote.
    pub(super) fn members(&self) -> Vec<(Str, Value)> {
        self.try_members().unwrap_or_default()
    }

    fn try_members(&self) -> Option<Vec<(Str, Value)>> {
        let mut reader = MemberReader { text: self, pass: Pass { bytes: &self.bytes, at: 0 } };
        let members = reader.members()?;
        (reader.pass.at == self.bytes.len()).then_some(members)
    }
}

/// Reads one object of a text.
struct MemberReader<'a> {
    text: &'a ObjectText,
    pass: Pass<'a>,
}

impl MemberReader<'_> {
    fn members(&mut self) -> Option<Vec<(Str, Value)>> {
        let mut members = Vec::with_capacity(8);
        self.pass.at += 1;
        loop {
            let key = self.pass.key()?;
            members.push((key, self.value()?));
            if self.pass.ends(b'}')? {
                return Some(members);
            }
        }
    }

    fn value(&mut self) -> Option<Value> {
        match self.pass.peek()? {
            b'[' => self.list().map(Value::Array),
            b'{' if self.pass.bytes.get(self.pass.at + 1) == Some(&b'}') => {
                self.pass.at += 2;
                Some(Value::object())
            }
            b'{' if self.text.depth < READ_ON_USE_DEPTH_MAX => {
                let from = self.pass.at;
                self.pass.at = scan::value_end(self.pass.bytes, from)?;
                let text = ObjectText { bytes: self.text.bytes.slice(from..self.pass.at), depth: self.text.depth + 1 };
                Some(Value::Object(Map::of_text(text)))
            }
            _ => self.pass.value(),
        }
    }

    /// Reads a list. Lists nest only a few levels deep.
    fn list(&mut self) -> Option<Vec<Value>> {
        let mut items = Vec::new();
        if self.pass.is_empty(b']')? {
            return Some(items);
        }
        loop {
            items.push(self.value()?);
            if self.pass.ends(b']')? {
                return Some(items);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    const TEXT: &str = concat!(
        r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","labels":{"a":"\"}\\","b":"\u003c"},"managedFields":["#,
        r#"{"manager":"m","fieldsV1":{"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:name":{}}}}}}]},"#,
        r#""spec":{"containers":[{"name":"c","env":[{"name":"d"},{"name":"e","value":"}"}],"resources":{}},{"name":"f"}],"#,
        r#""terminationGracePeriodSeconds":30,"args":[[1.5,[]],[true,{"x":null}]]},"status":{}}"#
    );

    fn parsed() -> Value {
        json::parse(TEXT.as_bytes()).unwrap()
    }

    #[test]
    fn lazy_trees_equal_parsed_trees() {
        let tree = read(&Bytes::from_static(TEXT.as_bytes())).unwrap();
        assert_eq!(json::to_vec(&tree), TEXT.as_bytes());
        assert_eq!(tree.str_at(&["metadata", "labels", "a"]), "\"}\\");
        assert_eq!((&tree, &parsed()), (&parsed(), &tree));
        assert_eq!(read(&format!("{TEXT}\n").into()), Some(parsed()));
        let large: Map = (0..200).rev().map(|n| (format!("k{n}"), Value::from(n))).collect();
        let large = Value::from(large);
        assert_eq!(read(&json::to_vec(&large).into()).unwrap().int_at(&["k77"]), Some(77));
    }

    #[test]
    fn the_text_of_a_part_is_that_of_the_whole() {
        let whole = Bytes::from_static(TEXT.as_bytes());
        let tree = read(&whole).unwrap();
        let part = ObjectText::of(tree.at(&["spec"])).unwrap();
        assert!(whole.as_ptr_range().contains(&part.as_bytes().as_ptr()));
        assert_eq!((part.parse(), &ObjectText::of(&Value::from(1)).is_none()), (tree.at(&["spec"]).clone(), &true));
        let parsed = parsed();
        assert_eq!(ObjectText::of(parsed.at(&["spec"])).unwrap().as_bytes(), part.as_bytes());
    }

    #[test]
    fn written_text_is_known_without_parsing() {
        let text = json::to_vec(&parsed());
        let (written, unseen) = (of_written(text.clone()), of_written(text.clone()));
        assert_eq!(written.text_bytes(), Some(&text[..]));
        assert_eq!(Value::from(written.clone()), parsed());
        assert_eq!((written.text_bytes(), written.get("kind")), (Some(&text[..]), Some(&Value::from("Pod"))));
        assert_eq!(unseen, written);
    }

    #[test]
    fn a_change_leaves_what_it_does_not_concern() {
        let before = read(&Bytes::from_static(TEXT.as_bytes())).unwrap();
        let (mut after, mut expected) = (before.clone(), parsed());
        for value in [&mut after, &mut expected] {
            value.set_at(&["metadata", "labels", "b"], "2");
            value.remove_at(&["metadata", "managedFields"]);
        }
        assert_eq!((&after, json::to_vec(&after)), (&expected, json::to_vec(&expected)));
        assert_eq!(before, parsed());
        let shared = |path: &[&str]| after.at(path).is_same(before.at(path));
        assert!(shared(&["spec"]) && shared(&["status"]) && !shared(&["metadata"]) && !shared(&["metadata", "labels"]));
        assert!(!Value::Null.is_same(&Value::Null));
    }

    #[test]
    fn deeply_nested_values_are_read_lazily() {
        let depth = 3 * usize::from(READ_ON_USE_DEPTH_MAX);
        let text = r#"{"a":[{"b":1},"#.repeat(depth) + "2" + &"]}".repeat(depth);
        let tree = read(&text.clone().into()).unwrap();
        assert_eq!(tree, json::parse(text.as_bytes()).unwrap());
        let mut changed = tree.clone();
        changed.set_at(&["c"], 3);
        assert_eq!(json::to_vec(&changed), format!("{},\"c\":3}}", &text[..text.len() - 1]).as_bytes());
        assert_eq!(tree, read(&text.into()).unwrap());
    }

    #[test]
    fn invalid_json_is_refused_without_a_panic() {
        for end in 0..TEXT.len() {
            assert_eq!(read(&Bytes::from_static(&TEXT.as_bytes()[..end])), None, "{end}");
        }
        for at in 0..TEXT.len() {
            let mut text = TEXT.as_bytes().to_vec();
            for byte in [b'"', b'{', b'}', b'[', b']', b'\\', b',', b':', b'x', 0xff] {
                text[at] = byte;
                if let Some(mut tree) = read(&text.clone().into()) {
                    tree.sort_members();
                }
            }
        }
    }
}

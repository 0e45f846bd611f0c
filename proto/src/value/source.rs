//! Text whose objects become maps only when somebody looks into them, and whose text stays at hand until they change.

use std::sync::Arc;

use bytes::Bytes;

use super::{Map, Str, Value};
use crate::json::pass::Pass;
use crate::json::{DEPTH_MAX, scan};

/// A JSON text, with where the objects in it are.
#[derive(Debug)]
struct Source {
    /// UTF-8.
    text: Bytes,
    /// The objects with members, in the order in which they begin.
    objects: Vec<Span>,
}

/// Where an object is in its text.
#[derive(Debug, Clone, Copy)]
struct Span {
    start: u32,
    end: u32,
    /// The number of the next object that is not in this one.
    after: u32,
}

/// One object of a text. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Text {
    source: Arc<Source>,
    object: u32,
}

/// The tree of an object whose text [`crate::json::write`] has made: members of members are read when they are looked
/// at, and what is not changed is written as it stands. `None` where that is not possible: then the text is to be parsed.
pub fn read(text: &Bytes) -> Option<Value> {
    std::str::from_utf8(text).ok()?;
    let source = Arc::new(Source { objects: objects(text)?, text: text.clone() });
    let root = source.objects.first()?;
    (root.start == 0 && text[root.end as usize..].trim_ascii().is_empty())
        .then(|| Value::Object(Map::of_text(Text { source, object: 0 })))
}

/// Finds the objects of a text; `None` when its brackets do not match, or are too many.
fn objects(bytes: &[u8]) -> Option<Vec<Span>> {
    u32::try_from(bytes.len()).ok()?;
    let (mut objects, mut open, mut at) = (Vec::with_capacity(bytes.len() / 48), Vec::new(), 0);
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'"' => at = scan::string_end(bytes, at - 1)?.0,
            b'{' if bytes.get(at) == Some(&b'}') => at += 1,
            b'{' => {
                if open.len() >= DEPTH_MAX {
                    return None;
                }
                open.push(objects.len());
                objects.push(Span { start: at as u32 - 1, end: 0, after: 0 });
            }
            b'}' => {
                let after = objects.len() as u32;
                let closed = objects.get_mut(open.pop()?)?;
                (closed.end, closed.after) = (at as u32, after);
            }
            _ => {}
        }
    }
    open.is_empty().then_some(objects)
}

impl Text {
    fn span(&self) -> Span {
        self.source.objects[self.object as usize]
    }

    /// The text of the object.
    pub(super) fn as_bytes(&self) -> &[u8] {
        let Span { start, end, .. } = self.span();
        &self.source.text[start as usize..end as usize]
    }

    /// The members of the object; those that are objects are of the same text. None where it is no JSON, which only a
    /// text can be that nobody has written.
    pub(super) fn members(&self) -> Vec<(Str, Value)> {
        let at = self.span().start as usize;
        let pass = Pass { bytes: &self.source.text, at };
        let mut reader = Reader { source: &self.source, pass, next: self.object + 1 };
        reader.members().unwrap_or_default()
    }
}

/// Reads one object of a text.
struct Reader<'a> {
    source: &'a Arc<Source>,
    pass: Pass<'a>,
    /// The number of the next object.
    next: u32,
}

impl Reader<'_> {
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
            b'"' => self.pass.string().map(Value::Str),
            b'[' => self.list().map(Value::Array),
            b'{' if self.pass.bytes.get(self.pass.at + 1) == Some(&b'}') => {
                self.pass.at += 2;
                Some(Value::object())
            }
            b'{' => {
                let object = self.next;
                let Span { start, end, after } = *self.source.objects.get(object as usize)?;
                if start as usize != self.pass.at {
                    return None;
                }
                (self.pass.at, self.next) = (end as usize, after);
                Some(Value::Object(Map::of_text(Text { source: Arc::clone(self.source), object })))
            }
            _ => self.pass.value(),
        }
    }

    /// Reads a list; lists in lists are never many.
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
    use crate::{catalogue, conform, json, order};

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
    fn what_is_read_late_is_what_the_parser_makes_of_it() {
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
    fn what_is_shared_needs_no_second_look() {
        let pod = catalogue::kind("", "v1", "Pod").unwrap();
        let mut stored = parsed();
        conform::conform(&pod.of, &mut stored).unwrap();
        let before = read(&json::to_vec(&stored).into()).unwrap();
        let change = |value: &mut Value| {
            value.set_at(&["spec", "unknown"], 1);
            value.set_at(&["status", "phase"], "Running");
            value.set_at(&["metadata", "annotations"], crate::value!({"b": "1", "a": "2"}));
            let containers = value.get_mut("spec").and_then(|spec| spec.get_mut("containers"));
            let containers = containers.and_then(Value::as_array_mut).unwrap();
            containers.swap(0, 1);
            containers[0].set_at(&["resources"], crate::value!({"limits": {"cpu": "1000m"}, "requests": null}));
        };
        let (mut whole, mut part) = (stored.clone(), before.clone());
        for (value, before) in [(&mut whole, &Value::Null), (&mut part, &before)] {
            change(value);
            assert_eq!(conform::conform_changed(&pod.of, value, before), Ok(vec!["spec.unknown".into()]));
            value.set_at(&["apiVersion"], "v1");
            conform::forget_empty(&pod.of, value, before);
            order::order(&pod.of, value, before);
        }
        assert_eq!(json::to_vec(&part), json::to_vec(&whole));
    }

    #[test]
    fn what_is_no_json_is_never_a_panic() {
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

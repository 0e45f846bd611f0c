//! From events to a tree.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use saphyr_parser::{Event, Parser, ScalarStyle};

use super::{scalar, wording};
use crate::json::DEPTH_MAX;
use crate::value::{Map, Str, Value};

/// How many nodes aliases may add to a body: what they stand for is copied in.
pub const ALIASED_NODES_MAX: usize = 100_000;

/// How many bytes of a tree may be copied for aliases: what has an anchor is kept once more, and stands wherever an
/// alias does.
const COPIED_BYTES_MAX: usize = 16 << 20;

/// Most bytes that are told of keys that stand more than once.
const TOLD_BYTES_MAX: usize = 1 << 20;

/// Above this many members of a map its keys are looked up in a set.
const SEARCHED_MAX: usize = 16;

const NEXT_LINE: char = '\u{85}';

/// Why a text is not YAML that the server takes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It breaks a rule of YAML.
    #[error("yaml: {}{why}", line.map(|line| format!("line {line}: ")).unwrap_or_default())]
    Syntax {
        /// Where, as go-yaml counts.
        line: Option<usize>,
        /// What is wrong.
        why: String,
    },
    /// Aliases stand for too much.
    #[error("yaml: document contains excessive aliasing")]
    Aliasing,
    /// Lists and maps nest too deeply.
    #[error("yaml: exceeded max depth of {DEPTH_MAX}")]
    TooDeep,
    /// An alias names no anchor before it.
    #[error("yaml: unknown anchor referenced")]
    UnknownAnchor,
}

/// A parsed text with what strict decoding wants to know.
#[derive(Debug, Default)]
pub struct Parsed {
    /// The value.
    pub value: Value,
    /// Keys that stand more than once, as `line 5: key "k" already set in map`.
    pub duplicates: Vec<String>,
}

enum Open {
    List { items: Vec<Value>, anchor: usize },
    Map { entries: Vec<(Str, Value)>, seen: HashSet<Str>, key: Option<Str>, anchor: usize },
}

#[derive(Default)]
struct Tree {
    open: Vec<Open>,
    anchors: HashMap<usize, (Value, usize)>,
    aliased: usize,
    /// How many bytes were copied for anchors and aliases.
    copied: usize,
    duplicates: Vec<String>,
    /// How many bytes they take.
    told: usize,
    root: Option<Value>,
}

/// To YAML 1.1 the control character NEL ends a line like any other break, to the parser it is text.
fn with_breaks(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.contains(NEXT_LINE) { text.replace(NEXT_LINE, "\n").into() } else { text }
}

/// Parses the first document of a text.
pub fn parse(text: &[u8]) -> Result<Parsed, Error> {
    let text = with_breaks(String::from_utf8_lossy(text));
    let mut tree = Tree::default();
    let syntax = |(line, why)| Error::Syntax { line, why };
    if let Some(refused) = wording::refused(&text) {
        return Err(syntax(refused));
    }
    for event in Parser::new_from_str(&text) {
        let (event, span) = event.map_err(|error| syntax(wording::of(&error, &text)))?;
        let line = span.start.line();
        match event {
            Event::DocumentEnd | Event::StreamEnd => break,
            Event::Scalar(text, style, anchor, tag) => {
                let tag = tag.map(|tag| tag.suffix.clone());
                let value = scalar::resolve(&text, style == ScalarStyle::Plain, tag.as_deref());
                tree.anchor(anchor, &value)?;
                tree.add(value, Some(&text), line)?;
            }
            Event::SequenceStart(anchor, _) => tree.push(Open::List { items: Vec::new(), anchor })?,
            Event::MappingStart(anchor, _) => tree.push_map(anchor)?,
            Event::SequenceEnd | Event::MappingEnd => tree.close(line)?,
            Event::Alias(anchor) => {
                let value = tree.alias(anchor)?;
                tree.add(value, None, line)?;
            }
            Event::Nothing | Event::StreamStart | Event::DocumentStart(_) => {}
        }
    }
    Ok(Parsed { value: tree.root.unwrap_or_default(), duplicates: tree.duplicates })
}

impl Tree {
    fn push(&mut self, open: Open) -> Result<(), Error> {
        if self.open.len() >= DEPTH_MAX {
            return Err(Error::TooDeep);
        }
        self.open.push(open);
        Ok(())
    }

    fn push_map(&mut self, anchor: usize) -> Result<(), Error> {
        self.push(Open::Map { entries: Vec::new(), seen: HashSet::new(), key: None, anchor })
    }

    /// Keeps a value for aliases of it.
    fn anchor(&mut self, anchor: usize, value: &Value) -> Result<(), Error> {
        if anchor > 0 {
            let nodes = self.copy(value)?;
            self.anchors.insert(anchor, (value.clone(), nodes));
        }
        Ok(())
    }

    /// What an alias stands for.
    fn alias(&mut self, anchor: usize) -> Result<Value, Error> {
        let (value, nodes) = self.anchors.remove(&anchor).ok_or(Error::UnknownAnchor)?;
        self.aliased += nodes;
        self.copy(&value)?;
        if self.aliased > ALIASED_NODES_MAX {
            return Err(Error::Aliasing);
        }
        self.anchors.insert(anchor, (value.clone(), nodes));
        Ok(value)
    }

    /// Counts a copy of a value before it is made; how many nodes it has.
    fn copy(&mut self, value: &Value) -> Result<usize, Error> {
        let mut room = COPIED_BYTES_MAX.saturating_sub(self.copied);
        let before = room;
        let nodes = nodes(value, &mut room).ok_or(Error::Aliasing)?;
        self.copied += before - room;
        Ok(nodes)
    }

    /// Puts a finished node where it belongs. Keys are texts; `text` is how a scalar was written.
    fn add(&mut self, value: Value, text: Option<&str>, line: usize) -> Result<(), Error> {
        match self.open.last_mut() {
            None => self.root = Some(value),
            Some(Open::List { items, .. }) => items.push(value),
            Some(Open::Map { entries, seen, key, .. }) => match key.take() {
                Some(name) => {
                    if stands(entries, seen, &name) && self.told < TOLD_BYTES_MAX {
                        let complaint = format!("line {line}: key {name:?} already set in map");
                        self.told += complaint.len();
                        self.duplicates.push(complaint);
                    }
                    entries.push((name, value));
                }
                None => *key = Some(scalar::key(&value, text).ok_or_else(|| not_a_key(line))?),
            },
        }
        Ok(())
    }

    fn close(&mut self, line: usize) -> Result<(), Error> {
        let (value, anchor) = match self.open.pop() {
            Some(Open::List { items, anchor }) => (Value::Array(items), anchor),
            Some(Open::Map { entries, anchor, .. }) => {
                let mut map = Map::from_unique(last_of_each(entries));
                map.sort();
                (Value::Object(merged(map)), anchor)
            }
            None => (Value::Null, 0),
        };
        self.anchor(anchor, &value)?;
        self.add(value, None, line)
    }
}

/// Whether a key stands in the map already. `seen` has the keys of maps that are not short.
fn stands(entries: &[(Str, Value)], seen: &mut HashSet<Str>, name: &Str) -> bool {
    if entries.len() < SEARCHED_MAX {
        return entries.iter().any(|(key, _)| key == name);
    }
    if seen.is_empty() {
        seen.extend(entries.iter().map(|(key, _)| key.clone()));
    }
    !seen.insert(name.clone())
}

/// The entries, of those with the same key the last one.
fn last_of_each(mut entries: Vec<(Str, Value)>) -> Vec<(Str, Value)> {
    if !entries.is_sorted_by(|a, b| a.0 < b.0) {
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        entries.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                std::mem::swap(later, earlier);
            }
            same
        });
    }
    entries
}

fn not_a_key(line: usize) -> Error {
    Error::Syntax { line: Some(line), why: "invalid map key".into() }
}

/// Resolves the merge key `<<`: members of the map itself win.
fn merged(mut map: Map) -> Map {
    let Some(source) = map.remove("<<") else { return map };
    let sources = match source {
        Value::Array(items) => items,
        other => vec![other],
    };
    for source in sources {
        for (key, value) in source.as_object().into_iter().flat_map(Map::iter) {
            if !map.contains_key(key) {
                map.insert(key, value.clone());
            }
        }
    }
    map.sort();
    map
}

/// How many nodes a value has. Takes the bytes of its copy from the room that there is; `None` when it is not enough.
fn nodes(value: &Value, room: &mut usize) -> Option<usize> {
    let own = match value {
        Value::Str(text) => size_of::<Value>() + text.len(),
        _ => size_of::<Value>(),
    };
    *room = room.checked_sub(own)?;
    let below = match value {
        Value::Array(items) => items.iter().try_fold(0, |sum, item| Some(sum + nodes(item, room)?))?,
        Value::Object(map) => map.iter().try_fold(0, |sum, (key, value)| {
            *room = room.checked_sub(size_of::<Str>() + key.len())?;
            Some(sum + nodes(value, room)?)
        })?,
        _ => 0,
    };
    Some(1 + below)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> String {
        String::from_utf8(crate::json::to_vec(&parse(text.as_bytes()).unwrap().value)).unwrap()
    }

    #[test]
    fn documents_become_json() {
        for (text, want) in [
            ("a: 1\nb: [x, 'y', \"z\"]\n", r#"{"a":1,"b":["x","y","z"]}"#),
            (
                "b: yes\na: ~\nc: 'yes'\nd: 1e3\ne: 0x10\nf: 010\n",
                r#"{"a":null,"b":true,"c":"yes","d":1000,"e":16,"f":8}"#,
            ),
            ("1: x\ntrue: z\ny: q\n", r#"{"1":"x","true":"q"}"#),
            ("a: |\n  one\n  two\nb: >-\n  three\n  four\n", r#"{"a":"one\ntwo\n","b":"three four"}"#),
            ("x: &a {k: v}\nw: *a\nz: {<<: *a, j: w}\n", r#"{"w":{"k":"v"},"x":{"k":"v"},"z":{"j":"w","k":"v"}}"#),
            ("a: b\n---\na: c\n", r#"{"a":"b"}"#),
            ("a: b\u{85}c: |\u{85}  d\u{85}", r#"{"a":"b","c":"d\n"}"#),
            ("", "null"),
        ] {
            assert_eq!(json(text), want, "{text}");
        }
    }

    #[test]
    fn repeated_keys_are_reported_by_line() {
        let parsed = parse(b"metadata:\n  name: d\ndata:\n  k: a\n  k: b\n").unwrap();
        assert_eq!(parsed.duplicates, ["line 5: key \"k\" already set in map"]);
        let many: String = (0..40).map(|n| format!("k{}: {n}\n", n % 30)).collect();
        let parsed = parse(many.as_bytes()).unwrap();
        assert_eq!((parsed.duplicates.len(), parsed.value.int_at(&["k9"])), (10, Some(39)));
        assert_eq!(parsed.duplicates[0], "line 31: key \"k0\" already set in map");
    }

    #[test]
    fn aliases_and_depth_are_bounded() {
        let mut bomb = String::from("a: &a [x,x,x,x,x,x,x,x,x,x]\n");
        for (name, of) in [("b", "a"), ("c", "b"), ("d", "c"), ("e", "d"), ("f", "e"), ("g", "f")] {
            bomb += &format!("{name}: &{name} [{}]\n", vec![format!("*{of}"); 10].join(","));
        }
        assert_eq!(parse(bomb.as_bytes()).unwrap_err(), Error::Aliasing);
        let texts = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), "*a,".repeat(50));
        assert_eq!(parse(texts.as_bytes()).unwrap_err(), Error::Aliasing);
        let nested: String = (0..400).map(|n| format!("[&a{n} ")).collect();
        let nested = nested + "[" + &"1,".repeat(50_000) + "]" + &"]".repeat(400);
        assert_eq!(parse(nested.as_bytes()).unwrap_err(), Error::Aliasing);
        assert!(parse("[".repeat(100_000).as_bytes()).is_err());
    }
}

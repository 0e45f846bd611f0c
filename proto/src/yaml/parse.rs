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
    /// A value that JSON has no word for.
    #[error("json: unsupported value: {0}")]
    Unsupported(&'static str),
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
    Map { entries: Vec<(Str, Value)>, seen: HashSet<Str>, key: Option<Key>, merged: Vec<Value>, anchor: usize },
}

/// The key whose value comes next.
enum Key {
    Named(Str),
    /// `<<`, without quotes: the value has members of the map.
    Merge,
}

/// What an anchor names.
struct Anchored {
    value: Value,
    size: Size,
}

/// How much a value is.
#[derive(Clone, Copy)]
struct Size {
    nodes: usize,
    /// How deep its lists and maps nest.
    depth: usize,
}

#[derive(Default)]
struct Tree {
    open: Vec<Open>,
    anchors: HashMap<usize, Anchored>,
    aliased: usize,
    /// How many bytes were copied for anchors and aliases.
    copied: usize,
    duplicates: Vec<String>,
    /// How many bytes they take.
    told: usize,
    /// The first value that JSON has no word for, as Go names it.
    unsupported: Option<&'static str>,
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
                let (plain, tag) = (style == ScalarStyle::Plain, tag.as_deref());
                let value = match scalar::infinity(&text, plain, tag) {
                    Some(infinity) => tree.infinite(infinity),
                    None => scalar::resolve(&text, plain, tag),
                };
                tree.anchor(anchor, &value)?;
                if plain && tag.is_none() && text == "<<" && tree.begin_merge() {
                    continue;
                }
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
    match tree.unsupported {
        Some(name) => Err(Error::Unsupported(name)),
        None => Ok(Parsed { value: tree.root.unwrap_or_default(), duplicates: tree.duplicates }),
    }
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
        self.push(Open::Map { entries: Vec::new(), seen: HashSet::new(), key: None, merged: Vec::new(), anchor })
    }

    /// Keeps a value for aliases of it.
    fn anchor(&mut self, anchor: usize, value: &Value) -> Result<(), Error> {
        if anchor > 0 {
            let size = self.copy(value)?;
            self.anchors.insert(anchor, Anchored { value: value.clone(), size });
        }
        Ok(())
    }

    /// What stands for an infinite scalar, which may be a key and nothing else.
    fn infinite(&mut self, infinity: scalar::Infinity) -> Value {
        if !matches!(self.open.last(), Some(Open::Map { key: None, .. })) {
            self.unsupported.get_or_insert(infinity.name);
        }
        infinity.key.into()
    }

    /// Whether `<<` is a key here, whose value is then merged.
    fn begin_merge(&mut self) -> bool {
        match self.open.last_mut() {
            Some(Open::Map { key: key @ None, .. }) => {
                *key = Some(Key::Merge);
                true
            }
            _ => false,
        }
    }

    /// What an alias stands for.
    fn alias(&mut self, anchor: usize) -> Result<Value, Error> {
        let Anchored { value, size } = self.anchors.remove(&anchor).ok_or(Error::UnknownAnchor)?;
        self.aliased += size.nodes;
        self.copy(&value)?;
        if self.aliased > ALIASED_NODES_MAX {
            return Err(Error::Aliasing);
        }
        if self.open.len() + size.depth > DEPTH_MAX {
            return Err(Error::TooDeep);
        }
        self.anchors.insert(anchor, Anchored { value: value.clone(), size });
        Ok(value)
    }

    /// Counts a copy of a value before it is made; how much it is.
    fn copy(&mut self, value: &Value) -> Result<Size, Error> {
        let mut room = COPIED_BYTES_MAX.saturating_sub(self.copied);
        let before = room;
        let size = size(value, &mut room).ok_or(Error::Aliasing)?;
        self.copied += before - room;
        Ok(size)
    }

    /// Puts a finished node where it belongs. Keys are texts; `text` is how a scalar was written.
    fn add(&mut self, value: Value, text: Option<&str>, line: usize) -> Result<(), Error> {
        match self.open.last_mut() {
            None => self.root = Some(value),
            Some(Open::List { items, .. }) => items.push(value),
            Some(Open::Map { entries, seen, key, merged, .. }) => match key.take() {
                Some(Key::Merge) => merged.push(value),
                Some(Key::Named(name)) => {
                    if stands(entries, seen, &name) && self.told < TOLD_BYTES_MAX {
                        let complaint = format!("line {line}: key {name:?} already set in map");
                        self.told += complaint.len();
                        self.duplicates.push(complaint);
                    }
                    entries.push((name, value));
                }
                None => *key = Some(Key::Named(scalar::key(&value, text).ok_or_else(|| not_a_key(line))?)),
            },
        }
        Ok(())
    }

    fn close(&mut self, line: usize) -> Result<(), Error> {
        let (value, anchor) = match self.open.pop() {
            Some(Open::List { items, anchor }) => (Value::Array(items), anchor),
            Some(Open::Map { entries, merged, anchor, .. }) => {
                let mut map = Map::from_unique(last_of_each(entries));
                map.sort();
                merge(&mut map, merged);
                (Value::Object(map), anchor)
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

/// Adds what the merge key `<<` names: members of the map itself win.
fn merge(map: &mut Map, merged: Vec<Value>) {
    if merged.is_empty() {
        return;
    }
    let sources = merged.into_iter().flat_map(|source| match source {
        Value::Array(items) => items,
        other => vec![other],
    });
    for source in sources {
        for (key, value) in source.as_object().into_iter().flat_map(Map::iter) {
            if !map.contains_key(key) {
                map.insert(key, value.clone());
            }
        }
    }
    map.sort();
}

/// How much a value is. Takes the bytes of its copy from the room that there is; `None` when it is not enough.
fn size(value: &Value, room: &mut usize) -> Option<Size> {
    let own = match value {
        Value::Str(text) => size_of::<Value>() + text.len(),
        _ => size_of::<Value>(),
    };
    *room = room.checked_sub(own)?;
    let mut sum = Size { nodes: 1, depth: usize::from(matches!(value, Value::Array(_) | Value::Object(_))) };
    let mut add = |below: Size| {
        sum.nodes += below.nodes;
        sum.depth = sum.depth.max(1 + below.depth);
    };
    match value {
        Value::Array(items) => {
            for item in items {
                add(size(item, room)?);
            }
        }
        Value::Object(map) => {
            for (key, value) in map.iter() {
                *room = room.checked_sub(size_of::<Str>() + key.len())?;
                add(size(value, room)?);
            }
        }
        _ => {}
    }
    Some(sum)
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
            (
                "{'<<': {a: b}, \"c\": {\"<<\": d}, e: <<}\n",
                r#"{"\u003c\u003c":{"a":"b"},"c":{"\u003c\u003c":"d"},"e":"\u003c\u003c"}"#,
            ),
            ("a: b\n---\na: c\n", r#"{"a":"b"}"#),
            ("a: b\u{85}c: |\u{85}  d\u{85}", r#"{"a":"b","c":"d\n"}"#),
            ("", "null"),
        ] {
            assert_eq!(json(text), want, "{text}");
        }
    }

    #[test]
    fn numbers_that_are_too_large_are_text() {
        let nines = "9".repeat(400);
        for number in ["1e400", "-1.8e308", "+1e309", "1e+400", &nines] {
            assert_eq!(json(&format!("a: {number}\n")), format!("{{\"a\":\"{number}\"}}"));
        }
        assert_eq!(json("a: 1e308\nb: 1e-400\n1e400: c\n"), r#"{"1e400":"c","a":1e+308,"b":0}"#);
    }

    #[test]
    fn infinities_are_refused_unless_they_are_keys() {
        for (text, name) in
            [(".inf", "+Inf"), ("+.Inf", "+Inf"), ("-.INF", "-Inf"), (".nan", "NaN"), ("!!float .NaN", "NaN")]
        {
            for document in [format!("a: [1, {text}]\n"), text.to_owned(), format!("a: {{b: {text}}}\nc: .nan\n")] {
                let why = parse(document.as_bytes()).unwrap_err().to_string();
                assert_eq!(why, format!("json: unsupported value: {name}"), "{document}");
            }
        }
        assert_eq!(
            json("+.inf: '.inf'\n.NaN: \".nan\"\nx: !!str .inf\n"),
            r#"{".inf":".inf",".nan":".nan","x":".inf"}"#
        );
        assert!(matches!(parse(b"a: .inf\nb: [\n"), Err(Error::Syntax { .. })));
    }

    #[test]
    fn aliases_nest_no_deeper_than_what_they_stand_for() {
        let nested = |levels: usize, inside: &str| "[".repeat(levels) + inside + &"]".repeat(levels);
        let chain = |levels: usize| {
            let [a, b, c] = [nested(200, "x"), nested(200, "*a"), nested(levels, "*b")];
            format!("a: &a {a}\nb: &b {b}\nc: {c}\n")
        };
        assert_eq!(parse(chain(DEPTH_MAX - 401).as_bytes()).err(), None);
        assert_eq!(parse(chain(DEPTH_MAX - 400).as_bytes()).err(), Some(Error::TooDeep));
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

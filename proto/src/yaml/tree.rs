//! The tree of a document: keys are strings, aliases are copies, and merge keys are resolved.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use flotilla_golang::strconv::quote;

use super::parse::{Error, Parsed};
use super::scalar::{self, Scalar};
use crate::limits::{
    JSON_DEPTH_MAX, YAML_ALIASED_NODES_MAX, YAML_COMPLAINTS_BYTES_MAX, YAML_COPIED_BYTES_MAX, YAML_SEARCHED_MEMBERS_MAX,
};
use crate::value::{Map, Str, Value};

const NO_MAP: &str = "map merge requires map or sequence of maps as the value";

/// A list or map that has not ended.
pub(super) struct Open {
    anchor: Option<String>,
    line: usize,
    of: Of,
}

enum Of {
    List(Vec<Value>),
    /// The list in a merge key: maps whose members the enclosing map gets.
    Sources(Vec<MapWithLines>),
    Map {
        entries: Vec<(Str, Value, usize)>,
        seen: HashSet<Str>,
        key: Option<NextKey>,
    },
}

impl Open {
    pub fn list(anchor: Option<String>, line: usize) -> Self {
        Self { anchor, line, of: Of::List(Vec::new()) }
    }

    pub fn map(anchor: Option<String>, line: usize) -> Self {
        Self { anchor, line, of: Of::Map { entries: Vec::new(), seen: HashSet::new(), key: None } }
    }
}

/// The key of the next value.
enum NextKey {
    Named {
        name: Str,
        is_text: bool,
    },
    /// `<<` without quotes: the members of the value become members of the map.
    Merge,
}

/// A map with the lines of its values, in its order.
#[derive(Clone)]
struct MapWithLines {
    map: Map,
    lines: Rc<[usize]>,
}

/// A node with an anchor.
struct Anchored {
    value: Value,
    /// The lines of the values, if it is a map.
    lines: Option<Rc<[usize]>>,
    size: Size,
}

/// The size of a value.
#[derive(Clone, Copy)]
struct Size {
    nodes: usize,
    /// How deep its lists and maps nest.
    depth: usize,
}

#[derive(Default)]
pub(super) struct Tree {
    open: Vec<Open>,
    /// Nodes by their anchors; `None` while a node is open.
    anchors: HashMap<String, Option<Anchored>>,
    aliased: usize,
    /// The number of bytes that were copied for anchors and aliases.
    copied: usize,
    duplicates: Vec<String>,
    /// The number of bytes of `duplicates`.
    complaint_bytes: usize,
    /// The first error in the values of the text.
    failure: Option<Error>,
    /// The first key that JSON cannot express.
    no_key: Option<Error>,
    /// The first value that JSON cannot express.
    no_value: Option<Error>,
    root: Option<Value>,
}

impl Tree {
    /// Returns the tree at the end of the text.
    pub fn finish(self) -> Result<Parsed, Error> {
        match self.failure.or(self.no_key).or(self.no_value) {
            Some(error) => Err(error),
            None => Ok(Parsed { value: self.root.unwrap_or_default(), duplicates: self.duplicates }),
        }
    }

    fn fail(&mut self, why: impl Into<String>) {
        self.failure.get_or_insert(Error::of(why));
    }

    /// Returns whether a key comes next.
    fn expects_key(&self) -> bool {
        matches!(self.open.last(), Some(Open { of: Of::Map { key: None, .. }, .. }))
    }

    /// Begins a merge if `<<` is a key here. Returns whether it is.
    pub fn begin_merge(&mut self) -> bool {
        match self.open.last_mut() {
            Some(Open { of: Of::Map { key: key @ None, .. }, .. }) => {
                *key = Some(NextKey::Merge);
                true
            }
            _ => false,
        }
    }

    /// Adds a scalar. `text` is its written form.
    pub fn scalar(
        &mut self,
        scalar: Result<Scalar, String>,
        text: &str,
        anchor: Option<String>,
        line: usize,
    ) -> Result<(), Error> {
        let value = match scalar {
            Ok(Scalar::Value(value)) => value,
            Ok(Scalar::Whole(number)) if self.expects_key() => scalar::shortest(number as f64).into(),
            Ok(Scalar::Whole(number)) => Value::Int(number),
            Ok(Scalar::Infinite { name, key }) => {
                if !self.expects_key() {
                    self.no_value.get_or_insert(Error::Unsupported(name));
                }
                key.into()
            }
            Err(why) => {
                self.fail(why);
                text.into()
            }
        };
        self.add(value, None, anchor, line)
    }

    /// Begins a list or map.
    pub fn open(&mut self, mut open: Open) -> Result<(), Error> {
        if self.open.len() >= JSON_DEPTH_MAX {
            return Err(Error::TooDeep);
        }
        if let Some(name) = &open.anchor {
            self.anchors.insert(name.clone(), None);
        }
        let is_merged = matches!(self.open.last(), Some(Open { of: Of::Map { key: Some(NextKey::Merge), .. }, .. }));
        if is_merged && matches!(open.of, Of::List(_)) {
            open.of = Of::Sources(Vec::new());
        }
        self.open.push(open);
        Ok(())
    }

    /// Ends the innermost list or map.
    pub fn close(&mut self) -> Result<(), Error> {
        let Some(Open { anchor, line, of }) = self.open.pop() else { return Ok(()) };
        match of {
            Of::List(items) => self.add(Value::Array(items), None, anchor, line),
            Of::Sources(sources) => {
                if let Some(Open { of: Of::Map { key, .. }, .. }) = self.open.last_mut() {
                    *key = None;
                }
                // The last entry with a key wins, so the first map of the list is merged last.
                sources.into_iter().rev().for_each(|source| self.merge(source));
                Ok(())
            }
            Of::Map { entries, .. } => {
                let (mut members, mut lines) = (Vec::new(), Vec::new());
                for (key, value, line) in last_of_each(entries) {
                    members.push((key, value));
                    lines.push(line);
                }
                let map = Map::from_entries(members).0;
                self.add(Value::Object(map), Some(lines.into()), anchor, line)
            }
        }
    }

    /// Adds a copy of the node that an alias refers to.
    pub fn alias(&mut self, name: &str, line: usize) -> Result<(), Error> {
        let (value, lines) = match self.anchors.get(name) {
            None => return Err(Error::of(format!("unknown anchor '{name}' referenced"))),
            Some(None) => {
                self.fail(format!("anchor '{name}' value contains itself"));
                (Value::Null, None)
            }
            Some(Some(Anchored { value, lines, size })) => {
                self.aliased += size.nodes;
                if self.aliased > YAML_ALIASED_NODES_MAX {
                    return Err(Error::Aliasing);
                }
                if self.open.len() + size.depth > JSON_DEPTH_MAX {
                    return Err(Error::TooDeep);
                }
                count(value, &mut self.copied)?;
                (value.clone(), lines.clone())
            }
        };
        self.add(value, lines, None, line)
    }

    /// Adds a finished node to its container, and keeps it for aliases.
    fn add(
        &mut self,
        value: Value,
        lines: Option<Rc<[usize]>>,
        anchor: Option<String>,
        line: usize,
    ) -> Result<(), Error> {
        if let Some(name) = anchor {
            let size = count(&value, &mut self.copied)?;
            let anchored = Anchored { value: value.clone(), lines: lines.clone(), size };
            self.anchors.insert(name, Some(anchored));
        }
        let Some(Open { of, .. }) = self.open.last_mut() else {
            self.root = Some(value);
            return Ok(());
        };
        match of {
            Of::List(items) => items.push(value),
            Of::Sources(sources) => match (value, lines) {
                (Value::Object(map), Some(lines)) => sources.push(MapWithLines { map, lines }),
                _ => self.fail(NO_MAP),
            },
            Of::Map { entries, seen, key, .. } => match key.take() {
                Some(NextKey::Named { name, is_text }) => {
                    if stands(entries, seen, &name) {
                        let shown = if is_text { quote(&name) } else { name.to_string() };
                        complain(&mut self.duplicates, &mut self.complaint_bytes, line, &shown);
                    }
                    entries.push((name, value, line));
                }
                Some(NextKey::Merge) => match (value, lines) {
                    (Value::Object(map), Some(lines)) => self.merge(MapWithLines { map, lines }),
                    _ => self.fail(NO_MAP),
                },
                None => {
                    let name = scalar::key(&value);
                    *key = Some(NextKey::Named {
                        is_text: value.as_str().is_some(),
                        name: name.clone().unwrap_or_default(),
                    });
                    if name.is_none() {
                        self.unfit(&value);
                    }
                }
            },
        }
        Ok(())
    }

    /// Records a value that cannot be a key.
    fn unfit(&mut self, key: &Value) {
        if key.is_null() {
            self.no_key.get_or_insert(Error::Key("%!s(<nil>), key: <nil>".to_owned()));
        } else {
            self.fail(format!("invalid map key: {}", scalar::go_syntax(key)));
        }
    }

    /// Adds the members of a map to the enclosing one, as if they were written there.
    fn merge(&mut self, source: MapWithLines) {
        let Some(Open { of: Of::Map { entries, seen, .. }, .. }) = self.open.last_mut() else { return };
        for ((key, value), line) in source.map.iter().zip(source.lines.iter()) {
            let key = Str::from(key);
            if stands(entries, seen, &key) {
                complain(&mut self.duplicates, &mut self.complaint_bytes, *line, &quote(&key));
            }
            entries.push((key, value.clone(), *line));
        }
    }
}

/// Reports that a key occurs more than once.
fn complain(duplicates: &mut Vec<String>, complaint_bytes: &mut usize, line: usize, key: &str) {
    if *complaint_bytes < YAML_COMPLAINTS_BYTES_MAX {
        let complaint = format!("line {}: key {key} already set in map", line + 1);
        *complaint_bytes += complaint.len();
        duplicates.push(complaint);
    }
}

/// Returns whether the map has a key already. If the map is not small, looks the key up in `seen` and adds it there.
fn stands(entries: &[(Str, Value, usize)], seen: &mut HashSet<Str>, name: &Str) -> bool {
    if entries.len() < YAML_SEARCHED_MEMBERS_MAX {
        return entries.iter().any(|(key, ..)| key == name);
    }
    if seen.is_empty() {
        seen.extend(entries.iter().map(|(key, ..)| key.clone()));
    }
    !seen.insert(name.clone())
}

/// Returns the entries, sorted by key. Of entries with the same key it returns the last one.
fn last_of_each(mut entries: Vec<(Str, Value, usize)>) -> Vec<(Str, Value, usize)> {
    if !entries.is_sorted_by(|a, b| a.0 < b.0) {
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        entries.dedup_by(|later, earlier| {
            let is_same = later.0 == earlier.0;
            if is_same {
                std::mem::swap(later, earlier);
            }
            is_same
        });
    }
    entries
}

/// Counts the bytes of a copy before it is made. Returns the size of the value.
fn count(value: &Value, copied: &mut usize) -> Result<Size, Error> {
    let mut room = YAML_COPIED_BYTES_MAX.saturating_sub(*copied);
    let before = room;
    let size = size(value, &mut room).ok_or(Error::Aliasing)?;
    *copied += before - room;
    Ok(size)
}

/// Returns the size of a value, and subtracts the bytes of its copy from `room`. Returns `None` when `room` is too
/// small.
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

//! Evaluates a path on an object.

use std::borrow::Cow;
use std::cmp::Ordering;

use flotilla_proto::value::Value;

use super::{Filter, Path, PathNode, Slice};
use crate::limits::JSONPATH_VALUES_MAX;

/// An intermediate value: a part of the object, or a literal.
type PathValue<'a> = Cow<'a, Value>;

/// The error that a step does not fit its value; it makes the whole path fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mismatch;

impl Path {
    /// Returns the values that the path leads to. There are none where keys are missing.
    ///
    /// # Errors
    /// If an index is out of bounds, a step needs a list and finds another value, or values of different types are
    /// compared.
    pub fn find<'a>(&self, object: &'a Value) -> Result<Vec<Cow<'a, Value>>, Mismatch> {
        self.walk(vec![Cow::Borrowed(object)])
    }

    fn walk<'a>(&self, mut values: Vec<PathValue<'a>>) -> Result<Vec<PathValue<'a>>, Mismatch> {
        for node in &self.nodes {
            values = node.step(&values)?;
        }
        Ok(values)
    }
}

/// Collects the results of `each` for all values.
fn gather<'a>(
    values: &[PathValue<'a>],
    mut each: impl FnMut(&PathValue<'a>, &mut Vec<PathValue<'a>>) -> Result<(), Mismatch>,
) -> Result<Vec<PathValue<'a>>, Mismatch> {
    let mut found = Vec::new();
    for value in values {
        each(value, &mut found)?;
        if found.len() > JSONPATH_VALUES_MAX {
            return Err(Mismatch);
        }
    }
    Ok(found)
}

impl PathNode {
    fn step<'a>(&self, values: &[PathValue<'a>]) -> Result<Vec<PathValue<'a>>, Mismatch> {
        let literal = |value: Value| Ok(values.iter().map(|_| Cow::Owned(value.clone())).collect());
        match self {
            Self::Field(name) => Ok(values.iter().filter_map(|value| member(value, name)).collect()),
            Self::Wildcard => gather(values, |value, found| {
                found.extend(children(value));
                Ok(())
            }),
            Self::Recursive => gather(values, |value, found| {
                descend(value, found);
                Ok(())
            }),
            Self::Slice(slice) => slice.step(values),
            Self::Union(parts) => {
                let mut found = Vec::new();
                for part in parts {
                    found.extend(part.walk(values.to_vec())?);
                    if found.len() > JSONPATH_VALUES_MAX {
                        return Err(Mismatch);
                    }
                }
                Ok(found)
            }
            Self::Filter(filter) => gather(values, |value, found| filter.step(value, found)),
            Self::Text(text) => Ok(vec![Cow::Owned(text.as_str().into())]),
            Self::Int(number) => literal(Value::Int(*number)),
            Self::Float(number) => literal(Value::Float(*number)),
            Self::Bool(flag) => literal(Value::Bool(*flag)),
            Self::Word => Err(Mismatch),
        }
    }
}

fn member<'a>(value: &PathValue<'a>, name: &str) -> Option<PathValue<'a>> {
    match value {
        Cow::Borrowed(value) => value.get(name).map(Cow::Borrowed),
        Cow::Owned(value) => value.get(name).cloned().map(Cow::Owned),
    }
}

/// Returns the members or items of a value, or the bytes of a string.
fn children<'a>(value: &PathValue<'a>) -> Vec<PathValue<'a>> {
    let of_text = |text: &str| text.bytes().map(|byte| Cow::Owned(Value::Int(byte.into()))).collect();
    match value {
        Cow::Borrowed(Value::Object(map)) => map.values().map(Cow::Borrowed).collect(),
        Cow::Borrowed(Value::Array(items)) => items.iter().map(Cow::Borrowed).collect(),
        Cow::Borrowed(Value::Str(text)) => of_text(text),
        Cow::Owned(Value::Object(map)) => map.values().cloned().map(Cow::Owned).collect(),
        Cow::Owned(Value::Array(items)) => items.iter().cloned().map(Cow::Owned).collect(),
        Cow::Owned(Value::Str(text)) => of_text(text),
        _ => Vec::new(),
    }
}

/// Collects the value and all objects and lists in it, outer ones first.
fn descend<'a>(value: &PathValue<'a>, found: &mut Vec<PathValue<'a>>) {
    if !matches!(value.as_ref(), Value::Object(_) | Value::Array(_)) {
        return;
    }
    let children = children(value);
    if !children.is_empty() {
        found.push(value.clone());
        children.iter().for_each(|child| descend(child, found));
    }
}

impl Slice {
    fn step<'a>(&self, values: &[PathValue<'a>]) -> Result<Vec<PathValue<'a>>, Mismatch> {
        let mut is_over = false;
        gather(values, |value, found| {
            if is_over || value.is_null() {
                return Ok(());
            }
            let length = value.as_array().ok_or(Mismatch)?.len();
            let Some((from, to)) = self.bounds(length)? else {
                is_over = true; // an empty range of one list also ends the search in the others
                return Ok(());
            };
            let step = match self.step {
                None => 1,
                Some(step) => usize::try_from(step).ok().filter(|step| *step > 0).ok_or(Mismatch)?,
            };
            found.extend(children(value).into_iter().take(to).skip(from).step_by(step));
            Ok(())
        })
    }

    /// Returns the bounds in a list of this length. Returns `None` if they enclose nothing.
    fn bounds(&self, length: usize) -> Result<Option<(usize, usize)>, Mismatch> {
        let length = i64::try_from(length).map_err(|_| Mismatch)?;
        let mut from = self.from.unwrap_or(0);
        if from < 0 {
            from += length;
        }
        let mut to = self.to.unwrap_or(length);
        if to < 0 || (to == 0 && self.is_index) {
            to += length;
        }
        if from == to {
            return Ok(None);
        }
        if !(0..length).contains(&from) || !(0..=length).contains(&to) || from > to {
            return Err(Mismatch);
        }
        Ok(usize::try_from(from).ok().zip(usize::try_from(to).ok()))
    }
}

impl Filter {
    fn step<'a>(&self, value: &PathValue<'a>, found: &mut Vec<PathValue<'a>>) -> Result<(), Mismatch> {
        value.as_array().ok_or(Mismatch)?;
        for item in children(value) {
            if self.takes(&item)? {
                found.push(item);
            }
        }
        Ok(())
    }

    fn takes(&self, item: &PathValue<'_>) -> Result<bool, Mismatch> {
        let left = self.left.walk(vec![item.clone()]);
        let Some((operator, right)) = &self.test else {
            // A part that fails to evaluate counts as existing.
            return Ok(left.map_or(true, |left| !left.is_empty()));
        };
        let left = left?;
        if left.is_empty() {
            return Ok(false);
        }
        let right = if left.len() == 1 { right.walk(vec![item.clone()])? } else { return Err(Mismatch) };
        match &right[..] {
            [] => Ok(false),
            [right] => compare(&left[0], operator, right),
            _ => Err(Mismatch),
        }
    }
}

/// Compares scalars of one type. Booleans are compared only for equality.
fn compare(left: &Value, operator: &str, right: &Value) -> Result<bool, Mismatch> {
    let order = match (left, right) {
        (Value::Bool(a), Value::Bool(b)) if matches!(operator, "==" | "!=") => a.cmp(b),
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b).ok_or(Mismatch)?,
        (Value::Str(a), Value::Str(b)) => a.cmp(b),
        _ => return Err(Mismatch),
    };
    match operator {
        "==" => Ok(order == Ordering::Equal),
        "!=" => Ok(order != Ordering::Equal),
        "<" => Ok(order == Ordering::Less),
        "<=" => Ok(order != Ordering::Greater),
        ">" => Ok(order == Ordering::Greater),
        ">=" => Ok(order != Ordering::Less),
        _ => Err(Mismatch),
    }
}

//! JSON pointers (RFC 6901) in a document that a patch changes, as lenient as the reference: indices may be negative,
//! and text before the first slash is ignored.

use flotilla_proto::value::Value;

use self::Failed::{DoesNotApply, Endless};
use crate::limits;

/// The reason why an operation was not carried out.
#[derive(Debug)]
pub(super) enum Failed {
    /// It does not fit the document. The reference gives no more detail for a client's patch either.
    DoesNotApply,
    /// The operations so far have moved more values than allowed.
    Endless,
}

pub(super) type PatchResult<T> = Result<T, Failed>;

/// The cost of the operations so far.
#[derive(Default)]
pub(super) struct PatchCost {
    pub(super) copied_bytes: usize,
    moved_values: usize,
}

impl PatchCost {
    /// Counts values that are moved within a list or visited one by one.
    pub(super) fn take(&mut self, values: usize) -> PatchResult<()> {
        self.moved_values += values;
        if self.moved_values > limits::JSON_PATCH_MOVED_VALUES { Err(Endless) } else { Ok(()) }
    }
}

/// The container of the value that a pointer names, and the last segment of the pointer.
pub(super) struct PatchLocation<'a> {
    pub(super) container: &'a mut Value,
    pub(super) key: String,
}

impl<'a> PatchLocation<'a> {
    /// Follows a JSON pointer (RFC 6901) to the container of its last segment.
    pub(super) fn find(document: &'a mut Value, pointer: &str) -> PatchResult<Self> {
        let mut segments = pointer.split('/').skip(1).peekable();
        let mut container = document;
        while let Some(segment) = segments.next() {
            let key = unescape(segment);
            if segments.peek().is_none() {
                return match container {
                    Value::Object(_) | Value::Array(_) => Ok(Self { container, key }),
                    _ => Err(DoesNotApply),
                };
            }
            container = member_mut(container, &key).ok_or(DoesNotApply)?;
        }
        Err(DoesNotApply)
    }

    pub(super) fn get(&self) -> PatchResult<Option<&Value>> {
        match &*self.container {
            Value::Object(map) => Ok(map.get(&self.key)),
            Value::Array(items) => Ok(items.get(index(&self.key, items.len()).ok_or(DoesNotApply)?)),
            _ => Err(DoesNotApply),
        }
    }

    pub(super) fn set(self, value: Value) -> PatchResult<()> {
        match self.container {
            Value::Object(map) => {
                map.insert(self.key, value);
            }
            Value::Array(items) => {
                let at = index(&self.key, items.len()).ok_or(DoesNotApply)?;
                items[at] = value;
            }
            _ => return Err(DoesNotApply),
        }
        Ok(())
    }

    pub(super) fn add(self, value: Value, cost: &mut PatchCost) -> PatchResult<()> {
        match self.container {
            Value::Array(items) if self.key == "-" => items.push(value),
            Value::Array(items) => {
                // The index after the last item is valid: it appends.
                let at = index(&self.key, items.len() + 1).ok_or(DoesNotApply)?;
                cost.take(items.len() - at)?;
                items.insert(at, value);
            }
            _ => return self.set(value),
        }
        Ok(())
    }

    pub(super) fn remove(self, cost: &mut PatchCost) -> PatchResult<Value> {
        match self.container {
            Value::Object(map) => map.remove(&self.key).ok_or(DoesNotApply),
            Value::Array(items) => {
                let at = index(&self.key, items.len()).ok_or(DoesNotApply)?;
                cost.take(items.len() - at)?;
                Ok(items.remove(at))
            }
            _ => Err(DoesNotApply),
        }
    }
}

pub(super) fn member_mut<'a>(container: &'a mut Value, key: &str) -> Option<&'a mut Value> {
    match container {
        Value::Object(map) => map.get_mut(key),
        Value::Array(items) => {
            let at = index(key, items.len())?;
            items.get_mut(at)
        }
        _ => None,
    }
}

/// Parses a segment as an index below `len`. Negative indices count from the end. Returns `None` if the segment is no
/// such index.
pub(super) fn index(segment: &str, len: usize) -> Option<usize> {
    let number: i64 = segment.parse().ok()?;
    let at = if number < 0 { usize::try_from(number + i64::try_from(len).ok()?) } else { usize::try_from(number) };
    at.ok().filter(|&at| at < len)
}

pub(super) fn unescape(segment: &str) -> String {
    if segment.contains('~') { segment.replace("~1", "/").replace("~0", "~") } else { segment.to_owned() }
}

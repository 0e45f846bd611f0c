//! The `Table` of `meta.k8s.io`: columns and rows, written as JSON straight into a buffer.
//!
//! A list is written by [`Table::begin`], any number of [`Table::row`], and [`Table::end`]; a single object or a watch
//! event by [`Table::single`]. No intermediate table is built: the buffer of a row's cells is reused, and the object in
//! a row is copied from its encoding if the caller has one.

use std::cmp::Ordering;

use flotilla_proto::json::{self, Part};
use flotilla_proto::order;
use flotilla_proto::schema::Column;
use flotilla_proto::time::Timestamp;
use flotilla_proto::value::Value;

use crate::status::{ApiError, ApiResult};

/// The function that appends the cells of an object's row, with ages relative to `now`.
pub type Row = fn(object: &Value, now: Timestamp, cells: &mut Vec<Value>);

/// A row's condition `Completed`: the object has finished its purpose, or failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// Machine-readable.
    pub reason: &'static str,
    /// For people.
    pub message: &'static str,
}

/// How objects become rows: a static [`Printer`] for built-in kinds, the columns of a definition for custom resources.
pub trait Rows: Sync {
    /// Appends the cells of an object's row.
    fn cells(&self, object: &Value, now: Timestamp, cells: &mut Vec<Value>);

    /// Returns the condition of an object's row. Returns `None` if it has none.
    fn completion(&self, _object: &Value) -> Option<Completion> {
        None
    }

    /// Returns the order of rows. Returns `None` if they are in the order of keys.
    fn order(&self) -> Option<fn(&Value, &Value) -> Ordering> {
        None
    }

    /// Returns whether a list without items has `rows: null`.
    fn is_null_when_empty(&self) -> bool {
        false
    }

    /// Returns whether every event of a watch has the columns, not only the first.
    fn repeats_columns(&self) -> bool {
        false
    }

    /// Returns the parts of an object that its row depends on; the rest of a stored object need not be parsed.
    fn reads(&self) -> Part {
        Part::Whole
    }
}

/// The parts that rows of most kinds depend on: everything but `managedFields`, which is the last member of metadata.
/// Annotations are included, since one distinguishes bookmarks from other objects.
pub const ALL_BUT_OWNERS: Part = Part::but(&[("metadata", Part::but(&[("managedFields", Part::Rest)]))]);

/// The rows of a built-in kind.
#[derive(Debug, Clone, Copy)]
pub struct Printer {
    /// The cells.
    pub row: Row,
    /// The row's condition.
    pub completion: fn(&Value) -> Option<Completion>,
    /// The order of rows. `None` if they are in the order of keys.
    pub order: Option<fn(&Value, &Value) -> Ordering>,
    /// Whether a list without items has `rows: null`.
    pub null_when_empty: bool,
    /// Whether every event of a watch states the columns.
    pub repeats_columns: bool,
    /// The parts of an object that the functions above read.
    pub reads: Part,
}

impl Printer {
    /// Returns a printer with cells and no other properties.
    pub const fn of(row: Row) -> Self {
        let reads = ALL_BUT_OWNERS;
        Self { row, completion: |_| None, order: None, null_when_empty: false, repeats_columns: false, reads }
    }
}

impl Rows for Printer {
    fn cells(&self, object: &Value, now: Timestamp, cells: &mut Vec<Value>) {
        (self.row)(object, now, cells);
    }

    fn completion(&self, object: &Value) -> Option<Completion> {
        (self.completion)(object)
    }

    fn order(&self) -> Option<fn(&Value, &Value) -> Ordering> {
        self.order
    }

    fn is_null_when_empty(&self) -> bool {
        self.null_when_empty
    }

    fn repeats_columns(&self) -> bool {
        self.repeats_columns
    }

    fn reads(&self) -> Part {
        self.reads
    }
}

/// The part of its object that a row contains (`includeObject`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Includer {
    /// Nothing.
    None,
    /// Its metadata, as `PartialObjectMetadata`.
    #[default]
    Metadata,
    /// All of it.
    Object,
}

impl Includer {
    /// Reads the query parameter `includeObject`; absent and empty mean metadata.
    ///
    /// # Errors
    /// 400 BadRequest for any other word.
    pub fn from_query(word: Option<&str>) -> ApiResult<Self> {
        match word.unwrap_or("") {
            "" | "Metadata" => Ok(Self::Metadata),
            "None" => Ok(Self::None),
            "Object" => Ok(Self::Object),
            other => Err(ApiError::new(
                400,
                "BadRequest",
                format!(
                    "Unable to convert to Table as requested: includeObject: Invalid value: {}: must be 'Metadata', \
                     'Object', 'None', or empty",
                    crate::field::quote(other)
                ),
            )),
        }
    }
}

/// The version of `meta.k8s.io` that a client asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// `v1`.
    V1,
    /// `v1beta1`.
    V1Beta1,
}

impl Version {
    /// `apiVersion` of the table and of partial objects in it.
    pub const fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1Beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// The metadata of a list, as the table repeats it.
#[derive(Debug, Clone, Copy, Default)]
pub struct ListMeta<'a> {
    /// Revision of the list; left out when empty.
    pub resource_version: &'a str,
    /// Token for the next page; left out when empty.
    pub continue_token: &'a str,
    /// How many items follow, if known.
    pub remaining: Option<i64>,
}

/// Encodings of an object that the caller has already; missing ones are computed from the value.
#[derive(Debug, Clone, Copy, Default)]
pub struct Encoded<'a> {
    /// The object in its stored version, if the request is for another version: the cells are computed from this.
    pub stored: Option<&'a Value>,
    /// JSON of the object's `metadata`.
    pub metadata: Option<&'a [u8]>,
    /// JSON of the whole object with its `kind` and `apiVersion`, in the version that is served.
    pub object: Option<&'a [u8]>,
}

/// Writes one table, or the tables of one watch.
pub struct Table<'a> {
    rows: &'a dyn Rows,
    columns: &'a [Column],
    version: Version,
    includer: Includer,
    now: Timestamp,
    cells: Vec<Value>,
    is_empty: bool,
    /// Whether columns have been written. In a watch, usually only the first event has them.
    has_columns: bool,
}

/// Objects with this annotation mark the end of a watch's initial events; their metadata is always included.
pub const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

impl<'a> Table<'a> {
    /// Returns a table of `rows` under `columns`, with ages counted to `now`.
    pub fn new(
        rows: &'a dyn Rows,
        columns: &'a [Column],
        version: Version,
        includer: Includer,
        now: Timestamp,
    ) -> Self {
        let cells = Vec::with_capacity(columns.len() + 1);
        Self { rows, columns, version, includer, now, cells, is_empty: true, has_columns: false }
    }

    /// Sets the point in time that ages are counted to, for the later events of a watch.
    pub fn set_now(&mut self, now: Timestamp) {
        self.now = now;
    }

    /// Sets whether an earlier event of the watch had the columns.
    pub fn set_columns_sent(&mut self, sent: bool) {
        self.has_columns = sent;
    }

    /// Returns the parts of an object that [`Table::row`] reads, in addition to the given encodings.
    pub fn reads(&self) -> Part {
        self.rows.reads()
    }

    /// Sorts the items of a list or page if the kind has an order of its own.
    pub fn sort<T>(&self, items: &mut [T], value: impl Fn(&T) -> &Value) {
        if let Some(order) = self.rows.order() {
            items.sort_by(|a, b| order(value(a), value(b)));
        }
    }

    /// Appends everything before the first row.
    pub fn begin(&mut self, meta: &ListMeta<'_>, out: &mut Vec<u8>) {
        self.is_empty = true;
        out.extend_from_slice(br#"{"kind":"Table","apiVersion":""#);
        out.extend_from_slice(self.version.api_version().as_bytes());
        out.extend_from_slice(br#"","metadata":"#);
        write_list_meta(meta, out);
        out.extend_from_slice(br#","columnDefinitions":"#);
        if self.has_columns && !self.rows.repeats_columns() {
            out.extend_from_slice(b"null");
        } else {
            write_columns(self.columns, out);
        }
        self.has_columns = true;
        out.extend_from_slice(br#","rows":"#);
    }

    /// Appends an object's row.
    pub fn row(&mut self, object: &Value, encoded: Encoded<'_>, out: &mut Vec<u8>) {
        out.push(if self.is_empty { b'[' } else { b',' });
        self.is_empty = false;
        self.cells.clear();
        self.rows.cells(encoded.stored.unwrap_or(object), self.now, &mut self.cells);
        for (n, cell) in self.cells.iter().enumerate() {
            out.extend_from_slice(if n == 0 { br#"{"cells":["# } else { b"," });
            json::write(cell, out);
        }
        out.push(b']');
        if let Some(completion) = self.rows.completion(encoded.stored.unwrap_or(object)) {
            write_completion(completion, out);
        }
        out.extend_from_slice(br#","object":"#);
        self.write_included(object, encoded, out);
        out.push(b'}');
    }

    /// Appends everything after the last row.
    pub fn end(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(match (self.is_empty, self.rows.is_null_when_empty()) {
            (false, _) => b"]}",
            (true, true) => b"null}",
            (true, false) => b"[]}",
        });
    }

    /// Appends the table of one object: an answer about it, or a watch event (a bookmark's object is an empty one).
    pub fn single(&mut self, object: &Value, encoded: Encoded<'_>, out: &mut Vec<u8>) {
        let resource_version = object.str_at(&["metadata", "resourceVersion"]);
        self.begin(&ListMeta { resource_version, ..ListMeta::default() }, out);
        self.row(object, encoded, out);
        self.end(out);
    }

    fn write_included(&self, object: &Value, encoded: Encoded<'_>, out: &mut Vec<u8>) {
        let is_end = object.str_at(&["metadata", "annotations", INITIAL_EVENTS_END]) == "true";
        match self.includer {
            Includer::Object => match encoded.object {
                Some(bytes) => out.extend_from_slice(bytes),
                None => json::write(object, out),
            },
            Includer::None if !is_end => out.extend_from_slice(b"null"),
            Includer::None | Includer::Metadata => {
                out.extend_from_slice(br#"{"kind":"PartialObjectMetadata","apiVersion":""#);
                out.extend_from_slice(self.version.api_version().as_bytes());
                out.extend_from_slice(br#"","metadata":"#);
                match (encoded.metadata, object.get("metadata")) {
                    (Some(bytes), _) => out.extend_from_slice(bytes),
                    (None, Some(metadata)) => {
                        let mut metadata = metadata.clone();
                        order::reorder_metadata(&mut metadata);
                        json::write(&metadata, out);
                    }
                    (None, None) => out.extend_from_slice(b"{}"),
                }
                out.push(b'}');
            }
        }
    }
}

fn write_list_meta(meta: &ListMeta<'_>, out: &mut Vec<u8>) {
    let mut mark = b'{';
    for (name, text) in [("resourceVersion", meta.resource_version), ("continue", meta.continue_token)] {
        if !text.is_empty() {
            out.push(mark);
            json::write_str(name, out);
            out.push(b':');
            json::write_str(text, out);
            mark = b',';
        }
    }
    if let Some(remaining) = meta.remaining {
        out.push(mark);
        out.extend_from_slice(br#""remainingItemCount":"#);
        json::write(&Value::Int(remaining), out);
        mark = b',';
    }
    if mark == b'{' {
        out.push(mark);
    }
    out.push(b'}');
}

fn write_columns(columns: &[Column], out: &mut Vec<u8>) {
    for (n, column) in columns.iter().enumerate() {
        out.extend_from_slice(if n == 0 { b"[{" } else { b",{" });
        for (name, text) in [
            (r#""name":"#, &column.name),
            (r#","type":"#, &column.kind),
            (r#","format":"#, &column.format),
            (r#","description":"#, &column.description),
        ] {
            out.extend_from_slice(name.as_bytes());
            json::write_str(text, out);
        }
        out.extend_from_slice(br#","priority":"#);
        json::write(&Value::Int(column.priority.into()), out);
        out.push(b'}');
    }
    out.extend_from_slice(if columns.is_empty() { b"[]" } else { b"]" });
}

fn write_completion(completion: Completion, out: &mut Vec<u8>) {
    out.extend_from_slice(br#","conditions":[{"type":"Completed","status":"True","reason":"#);
    json::write_str(completion.reason, out);
    out.extend_from_slice(br#","message":"#);
    json::write_str(completion.message, out);
    out.extend_from_slice(b"}]");
}

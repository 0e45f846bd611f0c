//! Reads, writes and orders the entries of `metadata.managedFields`, and bounds their number.

use std::collections::BTreeMap;

use flotilla_proto::value::{Map, Str, Value};

use super::set;
use crate::field::quote;

/// The maximum number of entries with the operation `Update`. Above it, the oldest are merged, one entry per version.
pub const UPDATERS_MAX: usize = 10;

/// The manager of the merged entry of old updates.
const ANCIENT: &str = "ancient-changes";

/// The identity of an entry. Owners are ordered as the reference orders its identifiers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldOwner {
    /// Name of the field manager.
    pub manager: Str,
    /// Whether the fields were applied rather than updated.
    pub applied: bool,
    /// The version in which an updater wrote. Empty for an applier, which has one entry for all versions.
    version: Str,
    /// The subresource through which the fields were written. Empty for the object itself.
    pub subresource: Str,
}

impl FieldOwner {
    /// Returns the owner with these parts.
    pub fn new(manager: &str, applied: bool, api_version: &str, subresource: &str) -> Self {
        let manager = if manager.is_empty() { "unknown" } else { manager };
        let version = if applied { "" } else { api_version };
        Self { manager: manager.into(), applied, version: version.into(), subresource: subresource.into() }
    }

    fn operation(&self) -> &'static str {
        if self.applied { "Apply" } else { "Update" }
    }

    /// Formats the owner for conflict messages.
    pub fn shown(&self) -> String {
        let mut text = quote(&self.manager);
        if !self.subresource.is_empty() {
            text.push_str(&format!(" with subresource {}", quote(&self.subresource)));
        }
        if !self.applied {
            text.push_str(&format!(" using {}", self.version));
        }
        text
    }
}

/// The fields that one owner has.
#[derive(Debug, Clone, PartialEq)]
pub struct Owned {
    /// The version in which the set names the fields.
    pub api_version: Str,
    /// When the owner last wrote them: RFC 3339 in whole seconds. `None` for fields taken over from another resource's
    /// entries. Empty if a client stated the zero time.
    pub time: Option<Str>,
    /// The fields; [`super::set`] describes the form.
    pub set: Map,
}

/// All entries of an object.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Entries(pub BTreeMap<FieldOwner, Owned>);

/// The reason why `managedFields` cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The operation is neither `Apply` nor `Update`.
    #[error("operation must be `Apply` or `Update`")]
    Operation,
    /// The version is empty.
    #[error("apiVersion must not be empty")]
    Version,
    /// The type of the fields is missing.
    #[error("missing fieldsType in managed fields entry {0}")]
    MissingType(usize),
    /// The type of the fields is unknown.
    #[error("invalid fieldsType {1:?} in managed fields entry {0}")]
    Type(usize, String),
    /// The fields are not a valid set.
    #[error("error decoding set in managed fields entry {0}")]
    Fields(usize),
}

impl Entries {
    /// Reads entries that the server wrote. Their sets are canonical and not converted.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn read(list: Value) -> Result<Self, Error> {
        Self::read_with(list, |_, fields| match fields {
            Value::Object(map) => Ok(map),
            _ => Ok(Map::new()),
        })
    }

    /// Reads entries that a client wrote.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn read_foreign(list: Value) -> Result<Self, Error> {
        Self::read_with(list, |n, fields| set::canonical(&fields).map_err(|_| Error::Fields(n)))
    }

    fn read_with(list: Value, read: impl Fn(usize, Value) -> Result<Map, Error>) -> Result<Self, Error> {
        let Value::Array(list) = list else { return Ok(Self::default()) };
        let mut entries = BTreeMap::new();
        for (n, mut entry) in list.into_iter().enumerate() {
            let fields = entry.as_object_mut().and_then(|entry| entry.remove("fieldsV1")).unwrap_or_default();
            let applied = match entry.str_at(&["operation"]) {
                "Apply" => true,
                "Update" => false,
                _ => return Err(Error::Operation),
            };
            let api_version = entry.str_at(&["apiVersion"]);
            if api_version.is_empty() {
                return Err(Error::Version);
            }
            match entry.str_at(&["fieldsType"]) {
                "FieldsV1" => {}
                "" => return Err(Error::MissingType(n)),
                other => return Err(Error::Type(n, other.to_owned())),
            }
            let owner = FieldOwner {
                manager: entry.str_at(&["manager"]).into(),
                applied,
                version: if applied { "" } else { api_version }.into(),
                subresource: entry.str_at(&["subresource"]).into(),
            };
            let time = entry.get("time").map(|time| Str::from(time.as_str().unwrap_or("")));
            entries.insert(owner, Owned { api_version: api_version.into(), time, set: read(n, fields)? });
        }
        Ok(Self(entries))
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Drops entries that own nothing.
    pub fn drop_empty(&mut self) {
        self.0.retain(|_, owned| !owned.set.is_empty());
    }

    /// Returns the value of `managedFields`. `None` when there are no entries.
    pub fn write(self) -> Option<Value> {
        Self::write_all(self.0.into_iter().collect())
    }

    /// Does the same as [`Entries::write`], for a list in which an owner may occur twice.
    pub fn write_all(mut entries: Vec<(FieldOwner, Owned)>) -> Option<Value> {
        if entries.is_empty() {
            return None;
        }
        entries.sort_by(|(a, a_owned), (b, b_owned)| {
            let operation = a.operation().cmp(b.operation());
            operation
                .then_with(|| a_owned.time.cmp(&b_owned.time))
                .then_with(|| a.manager.cmp(&b.manager))
                .then_with(|| a_owned.api_version.cmp(&b_owned.api_version))
                .then_with(|| a.subresource.cmp(&b.subresource))
        });
        Some(Value::Array(entries.into_iter().map(|(owner, owned)| write_entry(owner, owned)).collect()))
    }

    /// Merges the oldest updates of each version into one entry until at most [`UPDATERS_MAX`] entries of updates
    /// remain.
    pub fn cap(&mut self) {
        let mut count = self.0.keys().filter(|owner| !owner.applied).count();
        if count <= UPDATERS_MAX {
            return;
        }
        let mut updaters: Vec<FieldOwner> = self.0.keys().filter(|owner| !owner.applied).cloned().collect();
        updaters.sort_by_cached_key(|owner| self.0[owner].time.clone());
        let mut first_of: BTreeMap<Str, FieldOwner> = BTreeMap::new();
        for owner in updaters {
            if count <= UPDATERS_MAX {
                return;
            }
            let version = self.0[&owner].api_version.clone();
            let Some(first) = first_of.get(&version) else {
                first_of.insert(version, owner);
                continue;
            };
            let bucket = FieldOwner::new(ANCIENT, false, &version, "");
            if !self.0.contains_key(&bucket)
                && let Some(owned) = self.0.remove(first)
            {
                self.0.insert(bucket.clone(), owned);
            }
            if owner == bucket {
                continue;
            }
            if let (Some(gone), Some(kept)) = (self.0.remove(&owner), self.0.get_mut(&bucket)) {
                set::unite(&mut kept.set, &gone.set);
                kept.time = gone.time;
                count -= 1;
            }
        }
    }
}

fn write_entry(owner: FieldOwner, owned: Owned) -> Value {
    let mut entry = Map::with_capacity(7);
    let operation = owner.operation();
    if !owner.manager.is_empty() {
        entry.insert("manager", owner.manager);
    }
    entry.insert("operation", operation);
    entry.insert("apiVersion", owned.api_version);
    if let Some(time) = owned.time {
        entry.insert("time", if time.is_empty() { Value::Null } else { Value::Str(time) });
    }
    entry.insert("fieldsType", "FieldsV1");
    entry.insert("fieldsV1", owned.set);
    if !owner.subresource.is_empty() {
        entry.insert("subresource", owner.subresource);
    }
    entry.into()
}

//! Updates `managedFields` on create, update and patch.

use std::collections::BTreeMap;

use flotilla_proto::conform;
use flotilla_proto::value::{Str, Value};

use super::check::complaints;
use super::compare::{ElementChange, compare};
use super::entries::{Entries, Error, FieldOwner, Owned};
use super::form::Form;
use super::{ManagedResource, Write, equal_besides_ownership, owned, set};
use crate::status::ApiResult;

/// Returns whether a client's object switches tracking off: its `managedFields` is `[]` or `[{}]`.
pub fn untracks(undecoded: &Value) -> bool {
    match undecoded.at(&["metadata", "managedFields"]) {
        Value::Array(entries) => match &entries[..] {
            [] => true,
            [Value::Object(entry)] => entry.is_empty(),
            _ => false,
        },
        _ => false,
    }
}

/// Checks entries that admission has changed.
///
/// # Errors
/// The reason why the first bad entry cannot be read, as text for a warning.
pub fn validate(managed_fields: &Value) -> Result<(), String> {
    Entries::read_foreign(managed_fields.clone()).map(drop).map_err(|error| error.to_string())
}

/// Writes `metadata.managedFields` of `new`, which replaces `live`. `live` is `None` on create. `untracked` is the
/// result of [`untracks`] for the object that the client sent.
pub fn update(
    resource: &ManagedResource<'_>,
    write: &Write<'_>,
    live: Option<&Value>,
    new: &mut Value,
    untracked: bool,
) {
    let given = new.remove_at(&["metadata", "managedFields"]);
    let Some((mut entries, foreign)) = starting_point(write, live, given, untracked) else { return };
    if entries.is_empty() && live.is_some() {
        // An object without owners stays untracked until it is applied.
        return;
    }
    if track(resource, write, live, new, &mut entries, foreign).is_err() {
        return;
    }
    entries.cap();
    if let (Some(list), Some(metadata)) = (entries.write(), new.get_mut("metadata").and_then(Value::as_object_mut)) {
        metadata.insert("managedFields", list);
    }
}

/// Returns the entries before the write, and whether a client wrote them. `None` when there is nothing to track.
fn starting_point(
    write: &Write<'_>,
    live: Option<&Value>,
    given: Option<Value>,
    untracked: bool,
) -> Option<(Entries, bool)> {
    let current = live.map_or(&Value::Null, |live| live.at(&["metadata", "managedFields"]));
    let own = |list: Value| (Entries::read(list).unwrap_or_default(), false);
    if !write.subresource.is_empty() {
        return Some(own(given.filter(|given| given == current).unwrap_or_else(|| current.clone())));
    }
    if untracked {
        return Some((Entries::default(), false));
    }
    match given {
        Some(given) if given == *current => Some(own(given)),
        Some(given) => match Entries::read_foreign(given) {
            Ok(entries) if !entries.is_empty() => Some((entries, true)),
            Ok(_)
            | Err(Error::Operation | Error::Version | Error::MissingType(_) | Error::Type(..) | Error::Fields(_)) => {
                Some(own(current.clone()))
            }
        },
        None => Some(own(current.clone())),
    }
}

/// Moves the fields that the write changed into its owner's entry.
fn track(
    resource: &ManagedResource<'_>,
    write: &Write<'_>,
    live: Option<&Value>,
    new: &Value,
    entries: &mut Entries,
    foreign: bool,
) -> Result<(), Untrackable> {
    let zero;
    let old = match live {
        Some(live) => live,
        None => {
            zero = conform::zero(resource.of);
            &zero
        }
    };
    if !resource.fixed {
        // Objects that were stored under another schema may not fit this one.
        let misfit = [new].into_iter().chain(live).find_map(|object| complaints(resource.of, object, true));
        misfit.map_or(Ok(()), |why| Err(Untrackable(why)))?;
    }
    if foreign || !resource.fixed {
        reconcile(resource, old, entries)?;
    }
    let version = resource.api_version();
    let mut changes = Changes::new(resource, &version, old, new)?;
    changes.take_from_others(entries, None)?;
    entries.drop_empty();
    let touched = changes.own().touched();
    if !touched.is_empty() {
        let owner = FieldOwner::new(write.manager, false, &version, write.subresource);
        let entry = entries.0.entry(owner).or_insert_with(|| Owned {
            api_version: Str::from(version.as_str()),
            time: None,
            set: Default::default(),
        });
        match entry.set.is_empty() {
            true => entry.set = touched,
            false => set::unite(&mut entry.set, &touched),
        }
        entry.time = Some(write.now.into());
    }
    Ok(())
}

/// The objects cannot be compared or converted, for this reason.
pub struct Untrackable(pub String);

/// Adapts entries to the present schema.
///
/// # Errors
/// The live object cannot be converted to the version of an entry.
pub fn reconcile(resource: &ManagedResource<'_>, live: &Value, entries: &mut Entries) -> Result<(), Untrackable> {
    let version = resource.api_version();
    for entry in entries.0.values_mut() {
        if entry.api_version == version {
            owned::reconcile(&mut entry.set, Form::of_type(resource.of));
        } else if let Some((of, _)) = converted(resource, live, &entry.api_version)? {
            owned::reconcile(&mut entry.set, Form::of_type(&of));
        }
    }
    Ok(())
}

type Converted = Option<(flotilla_proto::schema::Ref<flotilla_proto::schema::Type>, Value)>;

fn converted(resource: &ManagedResource<'_>, object: &Value, api_version: &str) -> Result<Converted, Untrackable> {
    resource.versions.convert(object, api_version).map_err(|error| Untrackable(error.message))
}

/// The changes of a write, in every version in which an entry names fields.
pub struct Changes<'a> {
    resource: &'a ManagedResource<'a>,
    old: &'a Value,
    new: &'a Value,
    version: &'a str,
    own: ElementChange,
    others: BTreeMap<Str, Option<ElementChange>>,
}

impl<'a> Changes<'a> {
    /// Compares the objects in the version of the request.
    ///
    /// # Errors
    /// A list holds an item that has no identity.
    pub fn new(
        resource: &'a ManagedResource<'a>,
        version: &'a str,
        old: &'a Value,
        new: &'a Value,
    ) -> Result<Self, Untrackable> {
        let mut own = compare(resource.of, old, new).map_err(|error| Untrackable(error.to_string()))?;
        resource.reset.iter().for_each(|path| own.forget(path));
        Ok(Self { resource, old, new, version, own, others: BTreeMap::new() })
    }

    /// Returns the changes in the version of the request.
    pub fn own(self) -> ElementChange {
        self.own
    }

    /// Returns the changes in a version. `None` when it is not served.
    ///
    /// # Errors
    /// The objects cannot be converted to the version or compared in it.
    pub fn in_version(&mut self, api_version: &Str) -> Result<Option<&ElementChange>, Untrackable> {
        if api_version == self.version {
            return Ok(Some(&self.own));
        }
        if !self.others.contains_key(api_version) {
            let change = self.compare_in(api_version)?;
            self.others.insert(api_version.clone(), change);
        }
        Ok(self.others.get(api_version).and_then(Option::as_ref))
    }

    fn compare_in(&self, api_version: &str) -> Result<Option<ElementChange>, Untrackable> {
        let Some((of, old)) = converted(self.resource, self.old, api_version)? else { return Ok(None) };
        let Some((_, new)) = converted(self.resource, self.new, api_version)? else { return Ok(None) };
        let mut change = compare(&of, &old, &new).map_err(|error| Untrackable(error.to_string()))?;
        self.resource.reset.iter().for_each(|path| change.forget(path));
        Ok(Some(change))
    }

    /// Removes the changed fields from all entries except that of `but`. Drops entries whose version is no longer
    /// served.
    ///
    /// # Errors
    /// As for [`Changes::in_version`].
    pub fn take_from_others(&mut self, entries: &mut Entries, but: Option<&FieldOwner>) -> Result<(), Untrackable> {
        let mut failure = None;
        entries.0.retain(|owner, entry| {
            if failure.is_some() || Some(owner) == but {
                return true;
            }
            match self.in_version(&entry.api_version) {
                Ok(Some(change)) => change.take_from(&mut entry.set),
                Ok(None) => return false,
                Err(error) => failure = Some(error),
            }
            true
        });
        failure.map_or(Ok(()), Err)
    }
}

/// Restores the times in `managedFields` if an update changes nothing else, so that repeating a write changes nothing.
pub fn restore_times(live: &Value, new: &mut Value) {
    const PATH: [&str; 2] = ["metadata", "managedFields"];
    let (before, after) = (live.list_at(&PATH), new.list_at(&PATH));
    let same_besides_time = |(a, b): (&Value, &Value)| match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let count = |map: &flotilla_proto::value::Map| map.len() - usize::from(map.contains_key("time"));
            count(a) == count(b) && a.iter().all(|(key, value)| key == "time" || b.get(key) == Some(value))
        }
        (a, b) => a == b,
    };
    let moved = before.len() == after.len()
        && before != after
        && before.iter().zip(after).all(same_besides_time)
        && equal_besides_ownership(live, new);
    if moved {
        let before = Value::Array(before.to_vec());
        new.set_at(&PATH, before);
    }
}

/// Converts the error of a result to the one that apply answers; `what` begins its message.
///
/// # Errors
/// 500 if the objects cannot be compared or converted.
pub fn or_unknown<T>(result: Result<T, Untrackable>, what: &str) -> ApiResult<T> {
    result.map_err(|Untrackable(why)| crate::status::ApiError::unknown(format!("{what}{why}")))
}

#[cfg(test)]
mod tests {
    use flotilla_proto::{catalogue, value};

    use super::super::OneVersion;
    use super::*;

    #[test]
    fn objects_that_do_not_fit_the_present_schema_are_not_tracked() {
        let of = &catalogue::kind("", "v1", "ConfigMap").unwrap().of;
        let resource = |fixed| ManagedResource {
            of,
            group: "",
            version: "v1",
            kind: "ConfigMap",
            fixed,
            reset: Default::default(),
            versions: &OneVersion,
        };
        let write = Write { manager: "m", subresource: "", now: "2026-01-01T00:00:00Z" };
        let mut live = value!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}});
        update(&resource(false), &write, None, &mut live, false);
        let is_tracked = |old: &Value, fixed: bool| {
            let mut new = live.clone();
            new.set_at(&["data", "k"], "w");
            update(&resource(fixed), &write, Some(old), &mut new, false);
            !new.at(&["metadata", "managedFields"]).is_null()
        };
        let mut misfit = live.clone();
        misfit.set_at(&["data", "k"], 1);
        assert!(is_tracked(&live, false));
        assert!(!is_tracked(&misfit, false));
        assert!(is_tracked(&misfit, true));
    }
}

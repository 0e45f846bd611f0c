//! Server-side apply.

use std::borrow::Cow;
use std::collections::BTreeMap;

use flotilla_proto::value::{Map, Value};
use flotilla_proto::{conform, json};

use super::check::complaints;
use super::compare::compare;
use super::entries::{Entries, FieldOwner, Owned};
use super::merge::merge;
use super::prune::prune;
use super::update::{Changes, or_unknown, reconcile};
use super::{ManagedResource, Write, compare as comparison, described, equal_besides_ownership, owned, set};
use crate::limits;
use crate::patch::restore;
use crate::status::{ApiError, ApiResult};

/// The manager that owns the fields set before the first apply.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// The annotation in which client-side apply stores the configuration.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The manager whose server-side applies take over fields from client-side apply.
const KUBECTL: &str = "kubectl";

/// Size limit of all annotations of an object together, in bytes.
const ANNOTATIONS_BYTES_MAX: usize = 256 << 10;

/// The result of an apply.
#[derive(Debug)]
pub struct Applied {
    /// The merged object before decoding. `None` when the apply does not change the live object.
    pub object: Option<Value>,
    entries: Entries,
}

impl Applied {
    /// Writes `metadata.managedFields` into the decoded object, or into the live object if that stays.
    pub fn finish(self, object: &mut Value) {
        object.remove_at(&["metadata", "managedFields"]);
        if let Some(list) = self.entries.write() {
            object.set_at(&["metadata", "managedFields"], list);
        }
    }
}

/// Applies a configuration to the live object. `live` is `None` when the object does not exist yet.
///
/// # Errors
/// 400 if the configuration has another kind than the path, or has `managedFields`. 409 without `force`, with a cause
/// for each field that another manager owns. 500 if the configuration does not fit the type.
pub fn apply(
    resource: &ManagedResource<'_>,
    write: &Write<'_>,
    live: Option<&Value>,
    applied: &Value,
    force: bool,
) -> ApiResult<Applied> {
    check_kind(resource, applied)?;
    let applied = &with_whole_numbers(applied);
    let zero;
    let current = match live {
        Some(live) => live,
        None => {
            zero = empty(resource);
            &zero
        }
    };
    let mut entries = Entries::read(current.at(&["metadata", "managedFields"]).clone())
        .map_err(|error| ApiError::unknown(format!("failed to decode managed fields: {error}")))?;
    if entries.is_empty() && live.is_some() {
        entries = before_first_apply(resource, write, current)?;
    }
    check_configuration(resource, current, applied)?;
    or_unknown(reconcile(resource, current, &mut entries), "")?;
    let attempt = ApplyAttempt { resource, write, current, applied };
    let again = (write.manager == KUBECTL).then(|| entries.clone());
    let mut outcome = match attempt.run(entries, force)? {
        Ok(outcome) => outcome,
        Err(conflicts) => {
            let Some(entries) = again else { return Err(refusal(&conflicts)) };
            let rest = allowed(resource, current, conflicts);
            if !rest.is_empty() {
                return Err(refusal(&rest));
            }
            attempt.run(entries, true)?.map_err(|conflicts| refusal(&conflicts))?
        }
    };
    if write.manager == KUBECTL {
        keep_last_applied(&mut outcome, current, applied);
    }
    // Custom resources are not converted: their schemas decide which numbers they take.
    if resource.fixed
        && let Some(object) = &mut outcome.object
    {
        restore::numbers(resource.of, object, current);
    }
    Ok(outcome)
}

/// Returns the configuration with `5` in place of `5.0`, because apply treats them as equal.
fn with_whole_numbers(applied: &Value) -> Cow<'_, Value> {
    fn has_floats(value: &Value) -> bool {
        match value {
            Value::Float(_) => true,
            Value::Array(items) => items.iter().any(has_floats),
            Value::Object(map) => map.values().any(has_floats),
            _ => false,
        }
    }
    fn convert(value: &mut Value) {
        match value {
            Value::Float(_) => {
                if let Some(whole) = restore::whole_number(value) {
                    *value = Value::Int(whole);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(convert),
            Value::Object(map) => map.iter_mut().for_each(|(_, value)| convert(value)),
            _ => {}
        }
    }
    if !has_floats(applied) {
        return Cow::Borrowed(applied);
    }
    let mut applied = applied.clone();
    convert(&mut applied);
    Cow::Owned(applied)
}

/// Returns an object without any field set.
fn empty(resource: &ManagedResource<'_>) -> Value {
    let mut zero = conform::zero(resource.of);
    if let Value::Object(map) = &mut zero {
        map.insert("kind", resource.kind);
        map.insert("apiVersion", resource.api_version());
    }
    zero
}

fn check_kind(resource: &ManagedResource<'_>, applied: &Value) -> ApiResult<()> {
    let (api_version, kind) = (applied.str_at(&["apiVersion"]), applied.str_at(&["kind"]));
    let (group, version) = match api_version.split_once('/') {
        Some((_, rest)) if rest.contains('/') => ("", ""),
        Some(parts) => parts,
        None => ("", api_version),
    };
    let kind = if api_version.matches('/').count() > 1 { "" } else { kind };
    if (group, version, kind) == (resource.group, resource.version, resource.kind) {
        return Ok(());
    }
    Err(ApiError::bad_request(format!("invalid object type: {}", described(group, version, kind))))
}

fn check_configuration(resource: &ManagedResource<'_>, live: &Value, applied: &Value) -> ApiResult<()> {
    if applied.at(&["metadata", "managedFields"]).as_array().is_some() {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    let refuse = |what: &str, object: &Value, why: String| {
        ApiError::unknown(format!("failed to create typed {what} object ({}): {why}", resource.object(object)))
    };
    if let Some(why) = complaints(resource.of, applied, false) {
        return Err(refuse("patch", applied, why));
    }
    match (!resource.fixed).then(|| complaints(resource.of, live, true)).flatten() {
        Some(why) => Err(refuse("live", live, why)),
        None => Ok(()),
    }
}

/// Returns an entry that owns all fields of an object that had no owners so far.
fn before_first_apply(resource: &ManagedResource<'_>, write: &Write<'_>, live: &Value) -> ApiResult<Entries> {
    let mut change = compare(resource.of, &conform::zero(resource.of), live).map_err(|error| {
        let why = complaints(resource.of, live, true).unwrap_or_else(|| error.to_string());
        let what = format!("failed to convert new object ({}) to smd typed: {why}", resource.object(live));
        ApiError::unknown(format!("failed to create manager for existing fields: {what}"))
    })?;
    resource.reset.iter().for_each(|path| change.forget(path));
    let (set, version) = (change.touched(), resource.api_version());
    let mut entries = Entries::default();
    if !set.is_empty() {
        let owner = FieldOwner::new(BEFORE_FIRST_APPLY, false, &version, write.subresource);
        entries.0.insert(owner, Owned { api_version: version.into(), time: Some(write.now.into()), set });
    }
    Ok(entries)
}

/// For each other manager, the fields that it owns and the apply would change.
type Conflicts = BTreeMap<FieldOwner, Map>;

/// An apply. It runs again with `force` when conflicts turn out to be allowed.
struct ApplyAttempt<'a> {
    resource: &'a ManagedResource<'a>,
    write: &'a Write<'a>,
    current: &'a Value,
    applied: &'a Value,
}

impl ApplyAttempt<'_> {
    fn run(&self, mut entries: Entries, force: bool) -> ApiResult<Result<Applied, Conflicts>> {
        let Self { resource, write, current, applied } = self;
        let version = resource.api_version();
        let owner = FieldOwner::new(write.manager, true, &version, write.subresource);
        let mut fields = owned::fields(resource.of, applied);
        resource.reset.iter().for_each(|path| set::cut(&mut fields, path));
        let last = entries.0.remove(&owner);
        let time = last.as_ref().and_then(|last| last.time.clone());
        entries.0.insert(owner.clone(), Owned { api_version: version.as_str().into(), time, set: fields });
        let merged = prune(resource, merge(resource.of, current, applied), &entries, last.as_ref())?;
        let compared = Changes::new(resource, &version, current, &merged);
        let mut changes = or_unknown(compared, "failed to compare objects: ")?;
        if !force {
            let mut conflicts = Conflicts::new();
            for (other, entry) in entries.0.iter().filter(|(other, _)| **other != owner) {
                if let Some(change) = or_unknown(changes.in_version(&entry.api_version), "")? {
                    let found = change.touched_in(&entry.set);
                    if !found.is_empty() {
                        conflicts.insert(other.clone(), found);
                    }
                }
            }
            if !conflicts.is_empty() {
                return Ok(Err(conflicts));
            }
        }
        or_unknown(changes.take_from_others(&mut entries, Some(&owner)), "")?;
        let unchanged = equal_besides_ownership(current, &merged);
        if let Some(entry) = entries.0.get_mut(&owner) {
            strip(&mut entry.set);
            if !unchanged {
                entry.time = Some(write.now.into());
            }
        }
        entries.drop_empty();
        Ok(Ok(Applied { object: (!unchanged).then_some(merged), entries }))
    }
}

/// Removes the fields that never have an owner from a set.
pub fn strip(fields: &mut Map) {
    fields.retain(|key, _| !super::element::name(key).is_some_and(|name| comparison::is_unowned(None, name)));
    let metadata = super::element::of_name("metadata");
    if let Some(Value::Object(below)) = fields.remove(&metadata) {
        let mut below = below;
        let parent = Some("metadata");
        below.retain(|key, _| !super::element::name(key).is_some_and(|name| comparison::is_unowned(parent, name)));
        if let Some(node) = set::node(false, below) {
            fields.insert(metadata, node);
            set::order(fields);
        }
    }
}

/// Returns the conflicts that remain. Fields that were last set by client-side apply, and have not changed since, are
/// not in conflict.
fn allowed(resource: &ManagedResource<'_>, live: &Value, mut conflicts: Conflicts) -> Conflicts {
    let text = live.str_at(&["metadata", "annotations", LAST_APPLIED]);
    let Ok(last) = json::parse(text.as_bytes()) else { return conflicts };
    let fits = |object: &Value| complaints(resource.of, object, false).is_none();
    if last.str_at(&["apiVersion"]) != resource.api_version() || !fits(&last) || !fits(live) {
        return conflicts;
    }
    let Ok(change) = compare(resource.of, &last, live) else { return conflicts };
    let mut fields = owned::fields(resource.of, &last);
    change.take_from(&mut fields);
    conflicts.values_mut().for_each(|found| set::subtract(found, &fields));
    conflicts.retain(|_, found| !found.is_empty());
    conflicts
}

fn refusal(conflicts: &Conflicts) -> ApiError {
    let mut room = limits::ERROR_BYTES;
    let named: Vec<(String, Vec<String>)> =
        conflicts.iter().map(|(owner, fields)| (owner.shown(), set::paths(fields, &mut room))).collect();
    let count: usize = named.iter().map(|(_, paths)| paths.len()).sum();
    let message = match &named[..] {
        [(owner, paths)] if paths.len() == 1 => {
            format!("Apply failed with 1 conflict: conflict with {owner}: {}", paths[0])
        }
        _ => {
            let blocks: Vec<String> = named
                .iter()
                .map(|(owner, paths)| {
                    let lines: String = paths.iter().map(|path| format!("\n- {path}")).collect();
                    format!("conflicts with {owner}:{lines}")
                })
                .collect();
            format!("Apply failed with {count} conflicts: {}", blocks.join("\n"))
        }
    };
    let causes = named.iter().flat_map(|(owner, paths)| paths.iter().map(move |path| (owner, path)));
    causes.fold(ApiError::new(409, "Conflict", message), |error, (owner, path)| {
        error.with_cause("FieldManagerConflict", format!("conflict with {owner}"), path)
    })
}

/// Rewrites the annotation of client-side apply, if the object has it, so that a later client-side apply compares with
/// this configuration.
fn keep_last_applied(outcome: &mut Applied, live: &Value, applied: &Value) {
    const PATH: [&str; 3] = ["metadata", "annotations", LAST_APPLIED];
    let object = outcome.object.as_ref().unwrap_or(live);
    if object.str_at(&PATH).is_empty() {
        return;
    }
    let mut stated = applied.clone();
    stated.remove_at(&PATH);
    stated.sort_members();
    let mut text = json::to_vec(&stated);
    text.push(b'\n');
    let text = String::from_utf8_lossy(&text).into_owned();
    let others: usize = object
        .map_at(&PATH[..2])
        .into_iter()
        .flat_map(Map::iter)
        .filter(|(key, _)| *key != LAST_APPLIED)
        .map(|(key, value)| key.len() + value.as_str().map_or(0, str::len))
        .sum();
    let fits = others + LAST_APPLIED.len() + text.len() <= ANNOTATIONS_BYTES_MAX;
    let object = outcome.object.get_or_insert_with(|| live.clone());
    if fits {
        object.set_at(&PATH, text);
    } else {
        object.remove_at(&PATH);
    }
}

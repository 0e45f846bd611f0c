//! Handles stored objects that cannot be decoded, whether an earlier release, a bug or an altered backup wrote them.
//!
//! Objects that this process encoded are known to be sound (`tables::encode::draft`). Any other is checked when it is
//! first read, once for each version. A read of an unsound object and a list that contains it return 500, as in the
//! reference with the feature AllowUnsafeMalformedObjectDeletion. Code that scans many objects skips unsound ones
//! ([`skip_unreadable`]).

use std::collections::BTreeMap;
use std::time::Instant;

use flotilla_cluster::Object;
use flotilla_objects::api_version;
use flotilla_proto::catalogue;
use flotilla_proto::json;
use flotilla_proto::value::{self, Value};
use parking_lot::Mutex;

use crate::limits;
use crate::status::{ApiError, ApiResult, Cause};

/// The reason of errors of lists and events that contain an object which cannot be decoded.
pub const REASON: &str = "StorageReadError";
/// The beginning of the message about one such object.
const CORRUPT: &str = "StorageError: corrupt object, Code: 7";

/// Checks that a stored object can be decoded. Does nothing for objects that were encoded or checked by this process.
///
/// # Errors
/// 500: it cannot be decoded. The first time, this is logged and counted.
#[inline]
pub fn prove(object: &Object) -> ApiResult<()> {
    match object.is_decodable() {
        Some(true) => Ok(()),
        known => examine(object, known.is_none()),
    }
}

#[cold]
fn examine(object: &Object, is_news: bool) -> ApiResult<()> {
    let checked = json::check(object.bytes());
    object.keep_decodable(checked.is_ok());
    let Err(why) = checked else { return Ok(()) };
    if is_news {
        UNREADABLE.lock().add(object, &why);
    }
    Err(ApiError::internal(described(object, &why)))
}

/// Decodes a stored object, in its stored version.
///
/// # Errors
/// 500: it cannot be decoded.
pub fn value(object: &Object) -> ApiResult<Value> {
    prove(object)?;
    json::parse(object.bytes()).map_err(|error| ApiError::internal(format!("stored object {}: {error}", object.key())))
}

/// Decodes a stored object lazily: members that the caller does not look at are never parsed, and unchanged ones keep
/// their text.
///
/// # Errors
/// As for [`value`].
pub fn tree(object: &Object) -> ApiResult<Value> {
    prove(object)?;
    value::read(object.bytes()).map_or_else(|| value(object), Ok)
}

/// Returns the cause in the error of a list for an object that cannot be decoded. Returns `None` if it can.
pub fn cause(object: &Object) -> Option<Cause> {
    let why = json::check(object.bytes()).err()?;
    let (reason, message) = ("UnexpectedServerResponse".into(), described(object, &why));
    Some(Cause { reason, message, field: place(object) })
}

/// Returns the value that was read, for code that scans many objects and skips unsound ones. Returns `None` if the
/// object cannot be decoded. [`prove`] has already logged the error.
pub fn skip_unreadable<T>(read: ApiResult<T>) -> Option<T> {
    read.ok()
}

/// Returns whether an error says that an object cannot be decoded.
pub fn is_told_by(error: &ApiError) -> bool {
    error.code == 500 && (error.reason == REASON || error.message.contains(CORRUPT))
}

/// Returns the error message about an object, in the reference's wording.
fn described(object: &Object, why: &json::Error) -> String {
    let (place, revision) = (place(object), object.revision());
    let what = format!("object not decodable revision={revision}: {why}");
    format!("{CORRUPT}, Key: {place}, ResourceVersion: 0, AdditionalErrorMsg: {what}")
}

/// Returns the key of an object in the reference's store.
fn place(object: &Object) -> String {
    let (group, resource) = resource(object);
    format!("/registry/{group}{}{resource}/{}", if group.is_empty() { "" } else { "/" }, object.key())
}

/// Returns group and resource of an object, from the kind at the beginning of its text. For a custom resource returns
/// the kind instead of the resource.
fn resource(object: &Object) -> (String, String) {
    let (group, kind) = kind(object);
    let versions = catalogue::group(&group).map_or(&[][..], |group| group.versions).iter();
    let name = versions.flat_map(|version| version.resources).find(|resource| resource.kind.name == kind.as_str());
    let name = name.map_or(kind, |resource| resource.name.to_string());
    (group, name)
}

/// Returns the group and kind at the beginning of an object's text.
fn kind(object: &Object) -> (String, String) {
    let head = object.bytes().get(..object.layout().head as usize).unwrap_or_default();
    let head = String::from_utf8_lossy(head);
    let member = |name: &str| {
        let rest = head.split_once(&format!("\"{name}\":\"")).map_or("", |(_, rest)| rest);
        rest.split_once('"').map_or("", |(text, _)| text).to_owned()
    };
    let group = api_version::group(&member("apiVersion")).to_owned();
    (group, member("kind"))
}

/// Returns 500 for the event of a deleted object that cannot be decoded.
pub fn deleted(object: &Object, error: ApiError) -> ApiError {
    match json::check(object.bytes()) {
        Err(why) => {
            let revision = object.revision();
            let why = format!("object not decodable revision={revision}: {why}");
            ApiError::new(500, REASON, format!("saw a DELETED event, but object data is corrupt - {why}"))
        }
        Ok(()) => error,
    }
}

/// The unsound objects that this process has found.
static UNREADABLE: Mutex<UnreadableCounts> =
    Mutex::new(UnreadableCounts { counts: BTreeMap::new(), since: None, lines: 0 });

struct UnreadableCounts {
    /// The number of found objects, by group and resource.
    counts: BTreeMap<(String, String), u64>,
    /// When the minute began in which `lines` counts log lines.
    since: Option<Instant>,
    lines: usize,
}

impl UnreadableCounts {
    fn add(&mut self, object: &Object, why: &json::Error) {
        let of = resource(object);
        if self.counts.len() < limits::UNREADABLE_KINDS || self.counts.contains_key(&of) {
            *self.counts.entry(of).or_default() += 1;
        }
        if self.since.is_none_or(|since| since.elapsed() > limits::UNREADABLE_LINES_INTERVAL) {
            (self.since, self.lines) = (Some(Instant::now()), 0);
        }
        self.lines += 1;
        if self.lines <= limits::UNREADABLE_LINES {
            let (place, revision) = (place(object), object.revision());
            tracing::error!(object = %place, %revision, %why, "a stored object cannot be read");
        }
        if self.lines == limits::UNREADABLE_LINES {
            tracing::error!("further objects that cannot be decoded are not logged for a minute");
        }
    }
}

/// Returns how many versions of objects could not be decoded, by group and resource.
pub fn counts() -> Vec<((String, String), u64)> {
    UNREADABLE.lock().counts.iter().map(|(of, count)| (of.clone(), *count)).collect()
}

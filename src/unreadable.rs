//! Stored objects that cannot be decoded, whatever made them so: an earlier release, a bug, a changed backup.
//!
//! What is written here is known to be readable (`registry::encode::draft`); of anything else that is found out when it
//! is first read, once for each version. Such an object is answered with 500, and so is a list that has it, as in the
//! reference with the feature AllowUnsafeMalformedObjectDeletion. Who looks at many objects for somebody else goes on
//! with the others ([`others`]).

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use flotilla_cluster::Object;
use flotilla_proto::catalogue;
use flotilla_proto::json;
use flotilla_proto::value::Value;
use parking_lot::Mutex;

use crate::limits;
use crate::status::{ApiError, ApiResult, Cause};

/// The reason of lists, and of events, that have an object which cannot be decoded.
pub const REASON: &str = "StorageReadError";
/// How the message begins that says so of one object.
const CORRUPT: &str = "StorageError: corrupt object, Code: 7";

/// Makes sure that a stored object can be decoded. Of what was written here, or looked at before, that is known.
///
/// # Errors
/// 500: it cannot. The first time it is told in the log, and counted.
#[inline]
pub fn prove(object: &Object) -> ApiResult<()> {
    match object.is_sound() {
        Some(true) => Ok(()),
        known => examine(object, known.is_none()),
    }
}

#[cold]
fn examine(object: &Object, is_news: bool) -> ApiResult<()> {
    let checked = json::check(object.bytes());
    object.take_proof(checked.is_ok());
    let Err(why) = checked else { return Ok(()) };
    if is_news {
        FOUND.lock().add(object, &why);
    }
    Err(ApiError::internal(described(object, &why)))
}

/// The tree of a stored object, in its stored version.
///
/// # Errors
/// 500: it cannot be decoded.
pub fn value(object: &Object) -> ApiResult<Value> {
    prove(object)?;
    json::parse(object.bytes()).map_err(|error| ApiError::internal(format!("stored object {}: {error}", object.key())))
}

/// What a list says of an object that cannot be decoded.
pub fn cause(object: &Object) -> Option<Cause> {
    let why = json::check(object.bytes()).err()?;
    let (reason, message) = ("UnexpectedServerResponse".into(), described(object, &why));
    Some(Cause { reason, message, field: place(object) })
}

/// What could be read of one of many objects: who looks at all of them goes on with the others. That one cannot be
/// decoded has been told where it was found ([`prove`]).
pub fn others<T>(read: ApiResult<T>) -> Option<T> {
    read.ok()
}

/// Whether an error says that an object cannot be decoded.
pub fn is_told_by(error: &ApiError) -> bool {
    error.code == 500 && (error.reason == REASON || error.message.contains(CORRUPT))
}

/// What is wrong with an object, in the reference's words.
fn described(object: &Object, why: &json::Error) -> String {
    let (place, revision) = (place(object), object.revision());
    let what = format!("object not decodable revision={revision}: {why}");
    format!("{CORRUPT}, Key: {place}, ResourceVersion: 0, AdditionalErrorMsg: {what}")
}

/// Where an object is.
fn place(object: &Object) -> String {
    let (group, resource) = resource(object);
    format!("/registry/{group}{}{resource}/{}", if group.is_empty() { "" } else { "/" }, object.key())
}

/// The group and resource of an object, by the kind that its text begins with; of a custom resource that kind.
fn resource(object: &Object) -> (String, String) {
    let (group, kind) = kind(object);
    let versions = catalogue::group(&group).map_or(&[][..], |group| group.versions).iter();
    let name = versions.flat_map(|version| version.resources).find(|resource| resource.kind.name == kind.as_str());
    let name = name.map_or(kind, |resource| resource.name.to_string());
    (group, name)
}

/// The group and kind that the text of an object begins with.
fn kind(object: &Object) -> (String, String) {
    let head = object.bytes().get(..object.layout().head as usize).unwrap_or_default();
    let head = String::from_utf8_lossy(head);
    let member = |name: &str| {
        let rest = head.split_once(&format!("\"{name}\":\"")).map_or("", |(_, rest)| rest);
        rest.split_once('"').map_or("", |(text, _)| text).to_owned()
    };
    let group = member("apiVersion").split_once('/').map_or(String::new(), |(group, _)| group.to_owned());
    (group, member("kind"))
}

/// 500 for the event of an object that was deleted and cannot be decoded.
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

/// What was found by this process.
static FOUND: Mutex<Found> = Mutex::new(Found { counts: BTreeMap::new(), since: None, lines: 0 });

struct Found {
    /// How many, by group and resource.
    counts: BTreeMap<(String, String), u64>,
    /// When the lines began that are counted.
    since: Option<Instant>,
    lines: usize,
}

impl Found {
    fn add(&mut self, object: &Object, why: &json::Error) {
        const MINUTE: Duration = Duration::from_secs(60);
        let of = resource(object);
        if self.counts.len() < limits::UNREADABLE_KINDS || self.counts.contains_key(&of) {
            *self.counts.entry(of).or_default() += 1;
        }
        if self.since.is_none_or(|since| since.elapsed() > MINUTE) {
            (self.since, self.lines) = (Some(Instant::now()), 0);
        }
        self.lines += 1;
        if self.lines <= limits::UNREADABLE_LINES {
            let (place, revision) = (place(object), object.revision());
            tracing::error!(object = %place, %revision, %why, "a stored object cannot be read");
        }
        if self.lines == limits::UNREADABLE_LINES {
            tracing::error!("more objects that cannot be read are not named for a minute");
        }
    }
}

/// How many versions of objects were found that cannot be decoded, by group and resource.
pub fn counts() -> Vec<((String, String), u64)> {
    FOUND.lock().counts.iter().map(|(of, count)| (of.clone(), *count)).collect()
}

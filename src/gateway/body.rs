//! Request bodies: reading them within their limit, and decoding them into objects of a type.

use std::collections::HashSet;

use actix_web::web;
use bytes::{Bytes, BytesMut};
use flotilla_objects::api_version;
use flotilla_proto::schema::Kind;
use flotilla_proto::value::Value;
use flotilla_proto::{catalogue, conform, json, protobuf, yaml};
use futures_util::StreamExt;

use crate::field::quote;
use crate::fieldmanager;
use crate::limits;
use crate::registry::Incoming;
use crate::request::{FieldValidation, Media};
use crate::served::Served;
use crate::status::{ApiError, ApiResult, Details};
use crate::type_meta::{internal_package, missing_kind, type_meta, unknown_conversion};
use flotilla_proto::limits::COMPLAINTS_MAX;

use super::past_versions;

/// Reads a whole body. 413 once it is longer than its limit.
pub async fn read(mut payload: web::Payload) -> ApiResult<Bytes> {
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(chunk) = payload.next().await {
        let chunk = chunk.map_err(|error| ApiError::bad_request(format!("unable to read the body: {error}")))?;
        if first.len() + all.len() + chunk.len() > limits::BODY_BYTES {
            return Err(too_large());
        }
        if first.is_empty() && all.is_empty() {
            first = chunk;
        } else {
            if all.is_empty() {
                all.extend_from_slice(&std::mem::take(&mut first));
            }
            all.extend_from_slice(&chunk);
        }
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}

/// Returns the error 413.
pub fn too_large() -> ApiError {
    let message = format!("Request entity too large: limit is {}", limits::BODY_BYTES);
    ApiError::new(413, "RequestEntityTooLarge", message)
}

/// Returns the encoding that a Content-Type names. JSON if the header is empty.
pub fn media(content_type: &str) -> ApiResult<Media> {
    if !has_sound_parameters(content_type) {
        return Err(unsupported_media());
    }
    match content_type.split(';').next().unwrap_or("").trim().to_ascii_lowercase().as_str() {
        "" if content_type.is_empty() => Ok(Media::Json),
        "application/json" => Ok(Media::Json),
        "application/yaml" => Ok(Media::Yaml),
        "application/vnd.kubernetes.protobuf" => Ok(Media::Protobuf),
        _ => Err(unsupported_media()),
    }
}

/// Returns whether the parameters after a media type are names with values (RFC 9110, 5.6.6). One semicolon at the end
/// is allowed, two are not.
fn has_sound_parameters(content_type: &str) -> bool {
    let Some((_, parameters)) = content_type.split_once(';') else { return true };
    let mut parts = parameters.split(';').map(str::trim).peekable();
    while let Some(part) = parts.next() {
        let is_pair = part.split_once('=').is_some_and(|(name, value)| !name.trim().is_empty() && !value.is_empty());
        let is_end = part.is_empty() && parts.peek().is_none();
        if !is_pair && !is_end {
            return false;
        }
    }
    true
}

/// Returns the error 415 for a body that should hold an object.
fn unsupported_media() -> ApiError {
    unsupported(&Media::ALL.map(Media::name))
}

/// Returns the error 415 for a patch of a custom resource, in a format that such resources do not accept.
pub fn unsupported_custom_patch() -> ApiError {
    unsupported(&["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"])
}

fn unsupported(accepted: &[&str]) -> ApiError {
    let message = format!(
        "the body of the request was in an unknown format - accepted media types include: {}",
        accepted.join(", ")
    );
    ApiError::new(415, "UnsupportedMediaType", message)
}

/// Decodes a body that must hold an object of a resource.
pub fn decode(body: &[u8], media: Media, served: &Served, validation: FieldValidation) -> ApiResult<Incoming> {
    let expected = served.kind();
    if served.custom.is_some() && media == Media::Protobuf {
        return Err(unsupported_media());
    }
    let raw = raw(body, media, expected)?;
    let (kind, version) = (raw.value.str_at(&["kind"]).to_owned(), raw.value.str_at(&["apiVersion"]).to_owned());
    let stated = StatedKind { kind, version: version.rsplit('/').next().unwrap_or("").to_owned() };
    let mut value = raw.value;
    let untracked = fieldmanager::untracks(&value);
    let incoming = |value, warnings| Incoming { value, warnings, untracked, owned: false };
    if served.custom.is_some() {
        if let Some(number) = raw.overflow {
            return Err(stated.refuse(expected, &json::Error::Number(number)));
        }
        check_has_kind(&value, body, media, expected)?;
    } else {
        check_kind(&value, &stated, expected)?;
        value.set_at(&["kind"], &*expected.name);
        value.set_at(&["apiVersion"], expected.api_version());
    }
    let refused = |why: &dyn std::fmt::Display| stated.refuse(expected, why);
    let conformed = served.conform(&mut value, &Value::Null);
    let unknown = conformed.map_err(|error| refused(&error))?;
    if raw.deep
        && let Some(hole) = value.hole()
    {
        return Err(refused(&json::Error::from(hole)));
    }
    if media == Media::Protobuf {
        return Ok(incoming(value, Vec::new()));
    }
    if validation == FieldValidation::Ignore {
        return Ok(incoming(value, Vec::new()));
    }
    let complaints = complaints(served, body, (media, validation), raw.duplicates, unknown);
    match validation {
        FieldValidation::Strict if !complaints.is_empty() => {
            Err(refused(&format!("strict decoding error: {}", complaints.join(", "))))
        }
        FieldValidation::Warn => Ok(incoming(value, complaints)),
        _ => Ok(incoming(value, Vec::new())),
    }
}

/// Returns the complaints of strict decoding about a body with these repeated members and unknown paths. Each complaint
/// occurs once, in the order of the reference.
fn complaints(
    served: &Served,
    body: &[u8],
    (media, validation): (Media, FieldValidation),
    duplicates: Vec<String>,
    mut unknown: Vec<String>,
) -> Vec<String> {
    let repeated = match (validation, media) {
        // The YAML decoder reports all its complaints as one.
        (FieldValidation::Strict, Media::Yaml) if !duplicates.is_empty() => {
            vec![format!("yaml: unmarshal errors:\n  {}", duplicates.join("\n  "))]
        }
        (_, Media::Json) if !duplicates.is_empty() || !unknown.is_empty() => {
            let of = served.custom.is_none().then(|| served.of());
            if of.is_some() {
                unknown.clear(); // one decoder reports both
            }
            json::strict::complaints(&String::from_utf8_lossy(body), of)
        }
        _ => duplicates,
    };
    let mut seen = HashSet::new();
    let unknown = unknown.iter().map(|path| format!("unknown field {}", quote(path)));
    let mut complaints: Vec<String> =
        repeated.into_iter().chain(unknown).filter(|complaint| seen.insert(complaint.clone())).collect();
    if served.custom.is_none() {
        // In the reference one decoder finds repeated and unknown members, and this bounds their sum.
        complaints.truncate(COMPLAINTS_MAX);
    }
    complaints
}

/// The kind and version that the body states, after defaults.
struct StatedKind {
    kind: String,
    version: String,
}

impl StatedKind {
    /// Returns the error 400, in the reference's words, for a body of a known kind.
    fn refuse(&self, expected: &Kind, why: &dyn std::fmt::Display) -> ApiError {
        let kind = if self.kind.is_empty() { &*expected.name } else { &self.kind };
        let version = if self.version.is_empty() { &*expected.version } else { &self.version };
        let message = format!("{kind} in version {} cannot be handled as a {}: {why}", quote(version), expected.name);
        ApiError::bad_request(message)
    }
}

/// A body that was parsed, but not compared with its type.
#[derive(Default)]
struct Raw {
    value: Value,
    /// Complaints of strict decoding about repeated keys.
    duplicates: Vec<String>,
    /// Whether a part was nested too deep and was dropped.
    deep: bool,
    /// The first number that a tree cannot hold.
    overflow: Option<String>,
}

/// Decodes a protobuf body as the kind that it states, or as the expected one.
fn open_protobuf(body: &[u8], expected: &Kind) -> Result<Value, protobuf::Error> {
    let envelope = protobuf::open(body)?;
    let (group, version) = api_version::split(&envelope.api_version);
    let stated = catalogue::kind(group, version, &envelope.kind);
    protobuf::decode_object(stated.map_or(&expected.of, |kind| &kind.of), &envelope)
}

/// Returns the error 400 for a body whose kind the server cannot find out.
fn unrecognized(body: &[u8], expected: &Kind, why: &str) -> ApiError {
    let message =
        format!("the object provided is unrecognized (must be of type {}): {why} ({})", expected.name, summary(body));
    ApiError::bad_request(message)
}

/// Refuses a custom resource that states no kind. Other objects without a kind get that of the path.
fn check_has_kind(value: &Value, body: &[u8], media: Media, expected: &Kind) -> ApiResult<()> {
    if !value.str_at(&["kind"]).is_empty() {
        return Ok(());
    }
    let why = match media {
        Media::Json => missing_kind(body),
        _ => missing_kind(&json::to_vec(value)),
    };
    Err(unrecognized(body, expected, &why))
}

/// Refuses a decoded custom resource that states another version or another kind than the path. Built-in objects pass:
/// decoding refuses theirs.
pub fn check_stated(served: &Served, value: &Value) -> ApiResult<()> {
    let Some(custom) = &served.custom else { return Ok(()) };
    check_version(value.str_at(&["apiVersion"]), served.kind())?;
    custom.check_type(value)
}

fn check_version(stated: &str, expected: &Kind) -> ApiResult<()> {
    let expected = expected.api_version();
    if stated == expected {
        return Ok(());
    }
    let message =
        format!("the API version in the data ({stated}) does not match the expected API version ({expected})");
    Err(ApiError::bad_request(message))
}

/// Parses a body of any encoding into a tree. Does not check the tree against its type.
fn raw(body: &[u8], media: Media, expected: &Kind) -> ApiResult<Raw> {
    let unrecognized = |why: String| unrecognized(body, expected, &why);
    let mut parsed = match media {
        Media::Json => {
            let parsed = json::parse_tracking(body)
                .map_err(|error| unrecognized(format!("couldn't get version/kind; json parse error: {error}")))?;
            let complaint = |path: String| format!("duplicate field {}", quote(&path));
            let duplicates = parsed.duplicates.into_iter().map(complaint).collect();
            let json::Parsed { value, deep, overflow, .. } = parsed;
            Raw { value, duplicates, deep, overflow }
        }
        Media::Yaml => {
            let parsed = yaml::parse(body).map_err(|error| unrecognized(error.to_string()))?;
            Raw { value: parsed.value, duplicates: parsed.duplicates, ..Raw::default() }
        }
        Media::Protobuf => {
            let envelope = protobuf::open(body).map_err(|error| unrecognized(error.to_string()))?;
            let version = envelope.api_version.rsplit('/').next().unwrap_or("").to_owned();
            let stated = StatedKind { kind: envelope.kind.to_string(), version };
            let value = open_protobuf(body, expected).map_err(|error| stated.refuse(expected, &error))?;
            Raw { value, ..Raw::default() }
        }
    };
    type_meta(&parsed.value)
        .map_err(|why| unrecognized(format!("couldn't get version/kind; json parse error: {why}")))?;
    if parsed.value.is_null() {
        parsed.value = Value::object();
    }
    let version = parsed.value.str_at(&["apiVersion"]);
    if version.matches('/').count() > 1 {
        return Err(unrecognized(format!("unexpected GroupVersion string: {version}")));
    }
    Ok(parsed)
}

/// Returns the beginning of a body, as error messages show it.
fn summary(body: &[u8]) -> String {
    const SHOWN: usize = 30;
    let part = &body[..body.len().min(SHOWN)];
    let dots = if body.len() > SHOWN { " ..." } else { "" };
    match body.first() {
        None => "<empty>".into(),
        Some(b'{') => String::from_utf8_lossy(part).into_owned() + dots,
        Some(_) => part.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + dots,
    }
}

/// A kind that bodies may state in a version that is no longer served.
const TAKEN_STILL: (&str, &str) = ("Eviction", "policy/v1beta1");

/// Refuses bodies that state another kind or version than the path.
fn check_kind(value: &Value, stated: &StatedKind, expected: &Kind) -> ApiResult<()> {
    let api_version = value.str_at(&["apiVersion"]);
    let kind = if stated.kind.is_empty() { &*expected.name } else { stated.kind.as_str() };
    let (group, version) = match api_version::split(api_version) {
        ("", "") => (&*expected.group, &*expected.version),
        (group, "") if group == expected.group => (group, &*expected.version),
        stated => stated,
    };
    if kind == expected.name && group == expected.group && version == expected.version {
        return Ok(());
    }
    if kind == expected.name && (kind, api_version) == TAKEN_STILL {
        return Ok(());
    }
    let known = catalogue::kind(group, version, kind);
    let served = catalogue::group(group).is_some_and(|of| of.versions.iter().any(|of| of.name == version));
    let registered = scheme(group) == scheme(&expected.group)
        && (known.is_some() || past_versions::is_known(api_version, kind, served));
    if !registered {
        let why = format!(
            "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
            quote(kind),
            quote(&if group.is_empty() { version.into() } else { format!("{group}/{version}") })
        );
        return Err(stated.refuse(expected, &why));
    }
    let other_group = |known: &Kind| internal_package(&known.group) != internal_package(&expected.group);
    if kind != expected.name || known.is_some_and(other_group) {
        return Err(stated.refuse(expected, &unknown_conversion(version, kind, expected)));
    }
    check_version(api_version, expected)
}

/// Returns the name of the set of kinds to which a group belongs. In the reference, the servers of definitions and of
/// aggregation know only their own kinds, and the server of all other groups does not know these.
fn scheme(group: &str) -> &str {
    match group {
        "apiextensions.k8s.io" | "apiregistration.k8s.io" => group,
        _ => "",
    }
}

/// Decodes the body of a delete: `DeleteOptions`, or nothing.
pub fn decode_delete_options(body: &[u8], content_type: &str) -> ApiResult<Option<Value>> {
    if body.is_empty() {
        return Ok(None);
    }
    let media = media(content_type)?;
    let Some(kind) = catalogue::kind("", "v1", "DeleteOptions") else { return Ok(None) };
    let bad = |why: String| ApiError::bad_request(why);
    let mut value = match media {
        Media::Json => {
            let parsed = json::parse_tracking(body);
            parsed.map_err(|e| bad(format!("couldn't get version/kind; json parse error: {e}")))?.value
        }
        Media::Yaml => yaml::parse(body).map_err(|e| bad(e.to_string()))?.value,
        Media::Protobuf => open_protobuf(body, kind).map_err(|e| bad(e.to_string()))?,
    };
    type_meta(&value).map_err(|why| bad(format!("couldn't get version/kind; json parse error: {why}")))?;
    if value.is_null() {
        value = Value::object();
    }
    check_delete_options(value.str_at(&["kind"]), value.str_at(&["apiVersion"]))?;
    conform::conform(&kind.of, &mut value).map_err(|error| bad(error.to_string()))?;
    Ok(Some(value))
}

/// Refuses a body of another kind than `DeleteOptions`.
fn check_delete_options(kind: &str, version: &str) -> ApiResult<()> {
    if matches!(kind, "" | "DeleteOptions") {
        return Ok(());
    }
    let version = if version.is_empty() { "meta.k8s.io/v1" } else { version };
    let scheme = "in scheme \"pkg/runtime/scheme.go:111\"";
    let why = match (kind, version) {
        // The reference can read these kinds, but not convert them.
        ("Status", "v1" | "meta.k8s.io/v1") | ("CreateOptions" | "ListOptions" | "UpdateOptions", "meta.k8s.io/v1") => {
            format!("converting (v1.{kind}) to (v1.DeleteOptions): unknown conversion")
        }
        _ => format!("no kind {} is registered for version {} {scheme}", quote(kind), quote(version)),
    };
    Err(ApiError::bad_request(why))
}

/// Returns the error 415 for a patch whose format is unknown.
pub fn unsupported_patch() -> ApiError {
    let details = Details::default();
    ApiError {
        details: Some(Box::new(details)),
        ..ApiError::new(415, "UnsupportedMediaType", "415: Unsupported Media Type")
    }
}

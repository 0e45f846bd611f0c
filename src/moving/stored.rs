//! Decodes the values that kube-apiserver stores: a protobuf message in an envelope, or JSON, for built-in kinds; JSON
//! for custom resources.

use flotilla_objects::api_version;
use flotilla_proto::schema::Kind;
use flotilla_proto::value::Value;
use flotilla_proto::{conform, json, protobuf};

use super::{definitions, older};
use crate::registry::adopt;
use crate::served::Served;

/// The reason why a value cannot be imported.
#[derive(Debug, thiserror::Error)]
pub(super) enum StoredError {
    /// The value cannot be decoded.
    #[error("it cannot be decoded: {0}")]
    Undecodable(String),
    /// The kind or its version is unknown.
    #[error("version {api_version} has no kind {kind}")]
    Kind {
        /// The stated version.
        api_version: String,
        /// The stated kind.
        kind: String,
    },
    /// The object does not match its key.
    #[error("it is not the object that its key names: {0}")]
    Misplaced(String),
    /// The store cannot keep the object.
    #[error("it cannot be stored: {0}")]
    Unstorable(String),
}

/// Converts a value to a draft. The value must be the object of this name.
pub(super) fn draft(
    served: &Served,
    namespace: &str,
    name: &str,
    bytes: &[u8],
) -> Result<flotilla_cluster::Draft, StoredError> {
    let object = object(served, bytes)?;
    let states = |field| object.str_at(&["metadata", field]).to_owned();
    if (states("namespace"), states("name")) != (namespace.to_owned(), name.to_owned()) {
        let stated = format!("it states the namespace {:?} and the name {:?}", states("namespace"), states("name"));
        return Err(StoredError::Misplaced(stated));
    }
    adopt(served, object).map_err(|error| StoredError::Unstorable(error.message))
}

/// Decodes a value. Built-in objects are converted to the version that the store keeps.
pub(super) fn object(served: &Served, bytes: &[u8]) -> Result<Value, StoredError> {
    let undecodable = |error: &dyn std::fmt::Display| StoredError::Undecodable(error.to_string());
    if served.custom.is_some() {
        let object = json::parse(bytes).map_err(|error| undecodable(&error))?;
        return stated(served, object);
    }
    let mut object;
    let of;
    if bytes.starts_with(&protobuf::MAGIC) {
        let envelope = protobuf::open(bytes).map_err(|error| undecodable(&error))?;
        if !envelope.content_encoding.is_empty() || !envelope.content_type.is_empty() {
            return Err(undecodable(&"its message has an unknown encoding"));
        }
        of = kind(served, &envelope.api_version, &envelope.kind)?;
        object = protobuf::decode_object(&of.of, &envelope).map_err(|error| undecodable(&error))?;
    } else {
        object = json::parse(bytes).map_err(|error| undecodable(&error))?;
        if object.str_at(&["apiVersion"]) == definitions::VERSION {
            definitions::upgrade(&mut object);
        }
        of = kind(served, object.str_at(&["apiVersion"]), object.str_at(&["kind"]))?;
        conform::conform(&of.of, &mut object).map_err(|error| undecodable(&error))?;
    }
    older::make_explicit(&mut object);
    Ok(served.converted_to_stored(of, object))
}

/// Returns the kind by which to decode an object with this version and kind. It must be a kind of the resource.
fn kind(served: &Served, api_version: &str, name: &str) -> Result<&'static Kind, StoredError> {
    let (group, version) = api_version::split(api_version);
    let unknown = || StoredError::Kind { api_version: api_version.to_owned(), kind: name.to_owned() };
    if name != served.stored.name {
        return Err(StoredError::Misplaced(format!("it states the kind {name}")));
    }
    // Events belong to two groups.
    if group != served.stored.group && !(served.stored.name == "Event" && group == "events.k8s.io") {
        return Err(StoredError::Misplaced(format!("it states the version {api_version}")));
    }
    older::kind(group, version, name).ok_or_else(unknown)
}

/// Checks that a custom resource has the kind and a version of its definition.
fn stated(served: &Served, object: Value) -> Result<Value, StoredError> {
    let (api_version, kind) = (object.str_at(&["apiVersion"]), object.str_at(&["kind"]));
    if kind != served.stored.name {
        return Err(StoredError::Misplaced(format!("it states the kind {kind}")));
    }
    match served.custom.as_ref().and_then(|custom| custom.definition().of_api_version(api_version)) {
        Some(_) => Ok(object),
        None => Err(StoredError::Kind { api_version: api_version.to_owned(), kind: kind.to_owned() }),
    }
}

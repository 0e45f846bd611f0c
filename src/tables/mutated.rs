//! Converts objects to the version that a policy or webhook asks for, and decodes the objects that it returns.

use flotilla_objects::api_version;
use flotilla_proto::catalogue;
use flotilla_proto::value::Value;

use super::{GroupVersionKind, Tables, convert, encode};
use crate::field::quote;
use crate::served::Served;
use crate::status::{ApiError, ApiResult};
use crate::type_meta;

impl Tables {
    /// Converts an object of a resource, or the document of one of its subresources, to another version of its kind.
    ///
    /// # Errors
    /// 500: there is no conversion to that version.
    pub async fn convert_object(&self, served: &Served, object: &Value, kind: &GroupVersionKind) -> ApiResult<Value> {
        let to = kind.api_version();
        if object.str_at(&["apiVersion"]) == to && object.str_at(&["kind"]) == kind.kind {
            return Ok(object.clone());
        }
        if let Some(custom) = &served.custom {
            if let Some(definition) = custom.converted_by_webhook() {
                self.convert_ahead(definition, &to, vec![object.clone()]).await?;
            }
            return custom.convert(object.clone(), &to);
        }
        let of = |api_version: &str, kind: &str| {
            let (group, version) = api_version::split(api_version);
            catalogue::kind(group, version, kind)
        };
        let (own_version, own_kind) = (object.str_at(&["apiVersion"]), object.str_at(&["kind"]));
        match (of(own_version, own_kind), of(&to, &kind.kind)) {
            (Some(from), Some(to)) if from.name == to.name => {
                let mut converted = served.strategy.convert(from, to, object.clone());
                encode::order_members(&mut converted, &to.of);
                Ok(converted)
            }
            _ => Err(ApiError::internal(format!(
                "converting ({own_version}.{own_kind}) to ({to}.{}): unknown conversion",
                kind.kind
            ))),
        }
    }

    /// Decodes an object that a policy or webhook returned, as a body is decoded, with its defaults. `version` is the
    /// resource, or its subresource, in the version of the object. Returns also whether the object differs from
    /// `before`.
    ///
    /// # Errors
    /// 500: it is not an object of the kind.
    pub fn decode_mutated(&self, version: &Served, mut object: Value, before: &Value) -> ApiResult<(Value, bool)> {
        state_kind(version, &mut object, before)?;
        version.conform(&mut object, before).map_err(ApiError::internal)?;
        let is_changed = object != *before;
        if is_changed {
            convert::default(version, &mut object)?;
        }
        Ok((object, is_changed))
    }
}

/// Adds the kind and version to an object that lacks them. Refuses an object that states others than `before`. Custom
/// resources have rules of their own.
fn state_kind(version: &Served, object: &mut Value, before: &Value) -> ApiResult<()> {
    if version.custom.is_some() || object.as_object().is_none() {
        return Ok(());
    }
    for field in ["apiVersion", "kind"] {
        if object.str_at(&[field]).is_empty() && matches!(object.at(&[field]), Value::Null | Value::Str(_)) {
            object.set_at(&[field], before.at(&[field]).clone());
        }
    }
    let of = |object: &Value| (object.str_at(&["apiVersion"]).to_owned(), object.str_at(&["kind"]).to_owned());
    let ((stated, kind), (own, own_kind)) = (of(object), of(before));
    if (&stated, &kind) == (&own, &own_kind) {
        return Ok(());
    }
    let parts = |of: &str| of.split_once('/').map_or((String::new(), of.to_owned()), |(a, b)| (a.into(), b.into()));
    let ((group, number), (own_group, own_number)) = (parts(&stated), parts(&own));
    match (catalogue::kind(&group, &number, &kind), catalogue::kind(&own_group, &own_number, &own_kind)) {
        (Some(_), Some(expected)) => {
            Err(ApiError::new(500, "", type_meta::unknown_conversion(&number, &kind, expected)))
        }
        _ => Err(ApiError::internal(format!(
            "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
            quote(&kind),
            quote(&stated)
        ))),
    }
}

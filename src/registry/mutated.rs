//! Converts objects to the version that a policy or webhook asks for, and decodes what it returns.

use flotilla_proto::catalogue;
use flotilla_proto::value::Value;

use super::{Registry, Served, convert, encode};
use crate::admission::GroupVersionKind;
use crate::kinds::conversion;
use crate::status::{ApiError, ApiResult};

impl Registry {
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
            return custom.convert(object, &to).map(|(_, converted)| converted);
        }
        let of = |api_version: &str, kind: &str| {
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            catalogue::kind(group, version, kind)
        };
        let (own_version, own_kind) = (object.str_at(&["apiVersion"]), object.str_at(&["kind"]));
        match (of(own_version, own_kind), of(&to, &kind.kind)) {
            (Some(from), Some(to)) if from.name == to.name => {
                let mut converted = conversion::convert(from, to, object.clone());
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
    /// 500: it is no object of the kind.
    /// 500: it is no object of the kind.
    pub fn decode_mutated(&self, version: &Served, mut object: Value, before: &Value) -> ApiResult<(Value, bool)> {
        version.conform(&mut object, before).map_err(ApiError::internal)?;
        let is_changed = object != *before;
        if is_changed {
            convert::default(version, &mut object)?;
        }
        Ok((object, is_changed))
    }
}

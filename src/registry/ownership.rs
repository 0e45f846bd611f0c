//! Describes resources to field management.

use std::sync::Arc;

use flotilla_objects::api_version;
use flotilla_proto::catalogue;
use flotilla_proto::schema::{Ref, Type};
use flotilla_proto::value::Value;
use parking_lot::Mutex;

use super::{Registry, Served, WriteOptions, now};
use crate::fieldmanager::{self, ManagedResource, Versions, Write};
use crate::limits;
use crate::status::{ApiError, ApiResult};
use crate::webhooks::conversion::cache;

/// The reason of a refusal when [`limits::OWNERS_CONVERSIONS_MAX`] conversions were not enough.
pub(super) const TOO_MANY_VERSIONS: &str = "the owners of fields have too many versions";

/// A conversion by webhook that was needed and not fetched before: the object, and the version.
pub(super) type Missing = (Value, String);

/// The versions in which the objects of a resource can be served.
pub(super) struct ServedVersions<'a> {
    served: &'a Served,
    /// The conversions by webhook that were not fetched before. `None` if the caller cannot wait for them: objects are
    /// then interpreted in other versions without conversion.
    missing: Option<Mutex<Vec<Missing>>>,
}

impl<'a> ServedVersions<'a> {
    /// Returns the versions for a caller that fetches missing conversions and begins again.
    pub fn converted(served: &'a Served) -> Self {
        Self { served, missing: Some(Mutex::default()) }
    }

    /// Returns the versions for a caller that cannot wait for conversions.
    pub fn interpreted(served: &'a Served) -> Self {
        Self { served, missing: None }
    }

    /// Returns the conversions that were missing. If there are any, the caller's result is void.
    pub fn into_missing(self) -> Vec<Missing> {
        self.missing.map(Mutex::into_inner).unwrap_or_default()
    }
}

impl Versions for ServedVersions<'_> {
    fn convert(&self, object: &Value, api_version: &str) -> ApiResult<Option<(Ref<Type>, Value)>> {
        if let Some(custom) = &self.served.custom {
            let Some(missing) = &self.missing else { return custom.interpret(object, api_version).map(Some) };
            let known = custom.known_conversion(object, api_version)?;
            if known.is_none() {
                missing.lock().push((object.clone(), api_version.to_owned()));
                return Err(ApiError::unavailable("the object was not converted in time", 1));
            }
            return Ok(known);
        }
        let own = self.served.kind();
        let find = |api_version: &str| {
            let (group, version) = api_version::split(api_version);
            catalogue::kind(group, version, &own.name)
        };
        let Some(to) = find(api_version).filter(|to| to.group == own.group) else { return Ok(None) };
        let Some(from) = find(object.str_at(&["apiVersion"])) else { return Ok(None) };
        let converted = if std::ptr::eq(from, to) {
            object.clone()
        } else {
            self.served.strategy.convert(from, to, object.clone())
        };
        Ok(Some((to.of.clone(), converted)))
    }
}

/// Returns a resource as field management sees it.
pub(super) fn managed_resource<'a>(
    served: &'a Served,
    subresource: &str,
    versions: &'a dyn Versions,
) -> ManagedResource<'a> {
    ManagedResource {
        of: served.of(),
        group: &served.kind().group,
        version: &served.kind().version,
        kind: &served.kind().name,
        fixed: served.custom.is_none(),
        reset: served.strategy.reset_fields(subresource),
        versions,
    }
}

/// A write whose fields get an owner.
pub struct Recorded<'a> {
    /// The resource.
    pub served: &'a Served,
    /// Subresource; empty for the object itself.
    pub subresource: &'a str,
    /// The options, which name the manager.
    pub options: &'a WriteOptions,
    /// The object before. `None` for a create.
    pub live: Option<&'a Value>,
    /// Whether the client turns the tracking of field owners off.
    pub untracked: bool,
}

impl Recorded<'_> {
    /// Records in `managedFields` which manager set which fields of a new or changed object. Both objects are in the
    /// version of the request.
    pub fn record(&self, new: &mut Value) {
        self.record_by(&ServedVersions::interpreted(self.served), new);
    }

    fn record_by(&self, versions: &ServedVersions<'_>, new: &mut Value) {
        let resource = managed_resource(self.served, self.subresource, versions);
        let now = now().to_string();
        let write = Write { manager: &self.options.manager, subresource: self.subresource, now: &now };
        fieldmanager::update(&resource, &write, self.live, new, self.untracked);
    }
}

impl Registry {
    /// Does the same as [`Recorded::record`], and has webhooks convert objects for that. If they cannot convert an
    /// object, nobody owns its fields, as in the reference.
    ///
    /// # Errors
    /// 500 if owners state more versions than [`limits::OWNERS_CONVERSIONS_MAX`] conversions reach, 503 if a conversion
    /// was broken off. The write is refused then, because an object that is stored without its owners loses them.
    pub(super) async fn record(&self, write: Recorded<'_>, new: &mut Value) -> ApiResult<()> {
        if write.served.custom.as_ref().is_none_or(|custom| custom.converted_by_webhook().is_none()) {
            write.record(new);
            return Ok(());
        }
        Box::pin(self.record_converted(write, new)).await
    }

    async fn record_converted(&self, write: Recorded<'_>, new: &mut Value) -> ApiResult<()> {
        let mut held = Vec::new();
        for _ in 0..limits::OWNERS_CONVERSIONS_MAX {
            let versions = ServedVersions::converted(write.served);
            let mut recorded = new.clone();
            write.record_by(&versions, &mut recorded);
            let missing = versions.into_missing();
            let is_complete = missing.is_empty();
            let converted = self.convert_missing(write.served, missing, &mut held).await;
            if let Err(error) = &converted
                && error.code == 503
            {
                return converted;
            }
            if is_complete || converted.is_err() {
                *new = recorded;
                return Ok(());
            }
        }
        Err(ApiError::internal(TOO_MANY_VERSIONS))
    }

    /// Has webhooks make the conversions that were missing. The caller needs all of them at once. As long as it holds
    /// them in `held`, they stay known, however many others are made meanwhile.
    ///
    /// # Errors
    /// A webhook fails to convert an object.
    pub(super) async fn convert_missing(
        &self,
        served: &Served,
        missing: Vec<Missing>,
        held: &mut Vec<Arc<Value>>,
    ) -> ApiResult<()> {
        let Some(definition) = served.custom.as_ref().and_then(|custom| custom.converted_by_webhook()) else {
            return Ok(());
        };
        for (object, to) in missing {
            let key = cache::key(definition.serial, &to, &object);
            self.tables.convert_ahead(definition, &to, vec![object]).await?;
            held.extend(cache::get(&key));
        }
        Ok(())
    }
}

//! Describes resources to field management.

use flotilla_proto::catalogue;
use flotilla_proto::schema::{Ref, Type};
use flotilla_proto::value::Value;

use super::{Served, WriteOptions, now};
use crate::fieldmanager::{self, Target, Versions, Write};
use crate::kinds::conversion;
use crate::status::ApiResult;

/// The versions in which the objects of a resource can be served.
pub(super) struct ServedVersions<'a>(pub &'a Served);

impl Versions for ServedVersions<'_> {
    fn convert(&self, object: &Value, api_version: &str) -> ApiResult<Option<(Ref<Type>, Value)>> {
        if let Some(custom) = &self.0.custom {
            return custom.interpret(object, api_version).map(Some);
        }
        let own = self.0.kind();
        let find = |api_version: &str| {
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            catalogue::kind(group, version, &own.name)
        };
        let Some(to) = find(api_version).filter(|to| to.group == own.group) else { return Ok(None) };
        let Some(from) = find(object.str_at(&["apiVersion"])) else { return Ok(None) };
        let converted =
            if std::ptr::eq(from, to) { object.clone() } else { conversion::convert(from, to, object.clone()) };
        Ok(Some((to.of.clone(), converted)))
    }
}

/// Returns a resource as field management sees it.
pub(super) fn target<'a>(served: &'a Served, subresource: &str, versions: &'a dyn Versions) -> Target<'a> {
    Target {
        of: served.of(),
        group: &served.kind().group,
        version: &served.kind().version,
        kind: &served.kind().name,
        fixed: served.custom.is_none(),
        reset: match &served.custom {
            Some(custom) => fieldmanager::custom_reset_fields(custom.version().status, subresource),
            None => fieldmanager::reset_fields(served.group(), &served.resource.name, subresource),
        },
        versions,
    }
}

/// Records in `managedFields` which manager set which fields of a new or changed object. Both objects are in the
/// version of the request.
pub fn record(
    served: &Served,
    subresource: &str,
    options: &WriteOptions,
    live: Option<&Value>,
    new: &mut Value,
    untracked: bool,
) {
    let versions = ServedVersions(served);
    let target = target(served, subresource, &versions);
    let now = now().to_string();
    let write = Write { manager: &options.manager, subresource, now: &now };
    fieldmanager::update(&target, &write, live, new, untracked);
}

//! AlwaysDeny: refuses every write and every connection of clients. The server's own objects are written all the same,
//! since it could not start without them.

use flotilla_proto::value::Value;

use crate::admission::plugin::{DecidesBy, Plugin, Presence, ResourcePart};
use crate::admission::{BuiltInAttributes, Operation};
use crate::status::ApiResult;

/// The plugin.
pub const PLUGIN: Plugin = Plugin { applies, ..Plugin::new("AlwaysDeny", Presence::Off).mutating(decides_by, mutate) };

const fn decides_by(_: ResourcePart<'_>, _: Operation) -> Option<DecidesBy> {
    Some(DecidesBy::Object)
}

fn applies(write: &BuiltInAttributes<'_>, _: &Value) -> bool {
    !write.caller.identity.is_server()
}

fn mutate(write: &BuiltInAttributes<'_>, object: &mut Value) -> ApiResult<()> {
    Err(write.refuse(object, "admission control is denying all modifications"))
}

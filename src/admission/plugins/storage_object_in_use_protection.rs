//! StorageObjectInUseProtection: gives new storage objects the finalizer that keeps them until nobody uses them.

use flotilla_proto::value::Value;

use crate::admission::plugin::{DecidesBy, Plugin, Presence, ResourcePart};
use crate::admission::{BuiltInAttributes, Operation};
use crate::kinds::admission;
use crate::status::ApiResult;

/// The plugin.
pub const PLUGIN: Plugin = Plugin::new("StorageObjectInUseProtection", Presence::On).mutating(decides_by, mutate);

fn decides_by(part: ResourcePart<'_>, operation: Operation) -> Option<DecidesBy> {
    let is_protected = part.subresource.is_empty() && part.served.strategy.protection.is_some();
    (is_protected && operation == Operation::Create).then_some(DecidesBy::Object)
}

fn mutate(write: &BuiltInAttributes<'_>, object: &mut Value) -> ApiResult<()> {
    if let Some(protection) = write.target.served.strategy.protection {
        admission::protect(protection, object);
    }
    Ok(())
}

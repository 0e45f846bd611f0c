//! StorageObjectInUseProtection: gives new storage objects the finalizer that keeps them until nobody uses them.

use flotilla_proto::value::Value;

use crate::admission::plugin::{DecidesBy, Plugin, Presence, ResourcePart};
use crate::admission::{BuiltInAttributes, Operation};
use crate::kinds::admission;
use crate::status::ApiResult;

/// The plugin.
pub const PLUGIN: Plugin = Plugin::new("StorageObjectInUseProtection", Presence::On).mutating(decides_by, mutate);

const PROTECTED: [(&str, &str, &str); 3] = [
    ("", "persistentvolumeclaims", ""),
    ("", "persistentvolumes", ""),
    ("storage.k8s.io", "volumeattributesclasses", ""),
];

fn decides_by(part: ResourcePart<'_>, operation: Operation) -> Option<DecidesBy> {
    (PROTECTED.contains(&part.name()) && operation == Operation::Create).then_some(DecidesBy::Object)
}

fn mutate(write: &BuiltInAttributes<'_>, object: &mut Value) -> ApiResult<()> {
    admission::protect(&write.target.served.resource.name, object);
    Ok(())
}
